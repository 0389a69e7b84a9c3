//! Examples of the rules on the structure of products.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&["s32", "f32"]);
    let (m, k, n, more) = (1 + d.below(3), 2 + d.below(3), 1 + d.below(3), 1 + d.below(3));
    match rule {
        "dot-cat-k" => {
            let (x, y) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[m, more]));
            let cat = d.op(elem, &[m, k + more], &format!("concatenate({x}, {y}), dimensions={{1}}"));
            let b = d.parameter(elem, &[k + more, n]);
            d.matmul(elem, &cat, &b, &[m, n]);
        }
        "dot-cat-m" => {
            let (x, y) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[more, k]));
            let cat = d.op(elem, &[m + more, k], &format!("concatenate({x}, {y}), dimensions={{0}}"));
            let b = d.parameter(elem, &[k, n]);
            d.matmul(elem, &cat, &b, &[m + more, n]);
        }
        "dot-cat-n" => {
            let (x, y) = (d.parameter(elem, &[k, n]), d.parameter(elem, &[k, more]));
            let cat = d.op(elem, &[k, n + more], &format!("concatenate({x}, {y}), dimensions={{1}}"));
            let a = d.parameter(elem, &[m, k]);
            d.matmul(elem, &a, &cat, &[m, n + more]);
        }
        "cat-dot-m" => {
            let (x, y) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[more, k]));
            let b = d.parameter(elem, &[k, n]);
            let (p, q) = (d.matmul(elem, &x, &b, &[m, n]), d.matmul(elem, &y, &b, &[more, n]));
            d.op(elem, &[m + more, n], &format!("concatenate({p}, {q}), dimensions={{0}}"));
        }
        "cat-dot-n" => {
            let (x, y) = (d.parameter(elem, &[k, n]), d.parameter(elem, &[k, more]));
            let a = d.parameter(elem, &[m, k]);
            let (p, q) = (d.matmul(elem, &a, &x, &[m, n]), d.matmul(elem, &a, &y, &[m, more]));
            d.op(elem, &[m, n + more], &format!("concatenate({p}, {q}), dimensions={{1}}"));
        }
        "dot-batch-unroll" | "slice-dot-b" => {
            let batch = 2 + d.below(2);
            let (a, b) = (d.parameter(elem, &[m, batch, k]), d.parameter(elem, &[batch, k, n]));
            let text = format!(
                "dot({a}, {b}), lhs_batch_dims={{1}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, \
                 rhs_contracting_dims={{1}}"
            );
            let p = d.op(elem, &[batch, m, n], &text);
            if rule == "slice-dot-b" {
                d.op(elem, &[1, m, n], &format!("slice({p}), slice={{[1:2], [0:{m}], [0:{n}]}}"));
            }
        }
        "rev-dot-free-l" | "rev-dot-free-r" => {
            let (a, b) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[k, n]));
            let p = d.matmul(elem, &a, &b, &[m, n]);
            let over = usize::from(rule.ends_with('r'));
            d.op(elem, &[m, n], &format!("reverse({p}), dimensions={{{over}}}"));
        }
        "rev-dot-contract" => {
            let (a, b) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[k, n]));
            let a = d.op(elem, &[m, k], &format!("reverse({a}), dimensions={{1}}"));
            let b = d.op(elem, &[k, n], &format!("reverse({b}), dimensions={{0}}"));
            d.matmul(elem, &a, &b, &[m, n]);
        }
        "pad-dot-k" | "pad-dot-m" | "pad-dot-n" => {
            let (a, b) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[k, n]));
            d.matmul(elem, &a, &b, &[m, n]);
        }
        _ => return false,
    }
    true
}
