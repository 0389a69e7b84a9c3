//! Examples of the rules on products.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    match rule {
        "dot-canonical"
        | "T-dot"
        | "dot-operand-types"
        | "dot-narrow"
        | "dot-convert-result"
        | "dot-wrapped"
        | "dot-onto-zero"
        | "dot-outer"
        | "dot-outer-sum"
        | "dot-slice"
        | "dot-split-k"
        | "split-to-instruction"
        | "add-assoc-product" => product(rule, d),
        _ => return false,
    }
    true
}

fn product(rule: &str, d: &mut Draw) {
    let (m, k, n) = (1 + d.below(4), 1 + d.below(4), 1 + d.below(4));
    match rule {
        "dot-canonical" => {
            let elem = d.pick(&["f32", "s32"]);
            if d.below(2) == 0 {
                let a = d.parameter(elem, &[1, k, m, 2]);
                let b = d.parameter(elem, &[n, 2, 1, k]);
                let text = format!(
                    "dot({a}, {b}), lhs_batch_dims={{0}}, rhs_batch_dims={{2}}, \
                     lhs_contracting_dims={{3,1}}, rhs_contracting_dims={{1,3}}"
                );
                d.op(elem, &[1, m, n], &text);
            } else {
                let a = d.parameter(elem, &[m, k]);
                let b = d.parameter(elem, &[n, k]);
                d.op(
                    elem,
                    &[m, n],
                    &format!("dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"),
                );
            }
        }
        "dot-operand-types" => {
            let a = d.parameter("s8", &[m, k]);
            let b = d.parameter("s8", &[k, n]);
            let (mut x, mut y) = (a, b);
            let wide = d.pick(&["s32", "s16"]);
            x = d.op(wide, &[m, k], &format!("convert({x})"));
            y = d.op(wide, &[k, n], &format!("convert({y})"));
            matmul(d, "s32", &x, &y, m, n);
        }
        "dot-wrapped" => {
            let elem = d.pick(&["s8", "u8", "s16"]);
            let a = d.parameter(elem, &[m, k]);
            let b = d.parameter(elem, &[k, n]);
            matmul(d, elem, &a, &b, m, n);
        }
        "dot-narrow" | "dot-convert-result" => {
            let a = d.parameter("bf16", &[m, k]);
            let b = d.parameter("bf16", &[k, n]);
            if rule == "dot-convert-result" {
                matmul(d, "bf16", &a, &b, m, n);
            } else {
                let x = d.op("f32", &[m, k], &format!("convert({a})"));
                let y = d.op("f32", &[k, n], &format!("convert({b})"));
                let c = matmul(d, "f32", &x, &y, m, n);
                d.op("bf16", &[m, n], &format!("convert({c})"));
            }
        }
        _ => {
            let elem = d.pick(&["f32", "s32"]);
            let (m, k, n) = match rule {
                "dot-outer" => (m, 1, n),
                "dot-outer-sum" => (m.min(3), k.max(2), n),
                "dot-onto-zero" => (m.min(2), k, n.min(2)),
                rule if rule.contains("split") => (m + 2, k + 3, n + 2),
                _ => (m, k, n),
            };
            let a = d.parameter(elem, &[m, k]);
            let b = d.parameter(elem, &[k, n]);
            let c = matmul(d, elem, &a, &b, m, n);
            match rule {
                "T-dot" => {
                    d.op(elem, &[n, m], &format!("transpose({c}), dimensions={{1,0}}"));
                }
                "dot-slice" => {
                    d.slice(elem, &c, &[m, n], false);
                }
                "add-assoc-product" => {
                    let x = d.parameter(elem, &[m, n]);
                    let y = d.parameter(elem, &[m, n]);
                    let s = d.op(elem, &[m, n], &format!("add({x}, {c})"));
                    d.op(elem, &[m, n], &format!("add({y}, {s})"));
                }
                _ => {}
            }
        }
    }
}

fn matmul(d: &mut Draw, elem: &str, a: &str, b: &str, m: usize, n: usize) -> String {
    d.op(elem, &[m, n], &format!("dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"))
}
