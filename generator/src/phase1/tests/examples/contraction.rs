//! Examples of the rules where products and sums meet.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&["s32", "s32", "f32"]);
    let (m, k, n, b) = (1 + d.below(3), 1 + d.below(4), 1 + d.below(3), 1 + d.below(3));
    match rule {
        "red-ones-dot" | "ones-red-dot" => {
            let dims = [m, k, n];
            let x = d.parameter(elem, &dims);
            let count = 1 + d.below(2);
            let over = d.positions(count, 3);
            d.reduce(elem, &x, &dims, &over, ("add", "0"));
        }
        "red-mul-dot" => {
            let (x, y) = (d.parameter(elem, &[m, k]), d.parameter(elem, &[k, n]));
            let full = [m, k, n];
            let u = d.spread(elem, &x, &[0, 1], &full);
            let v = d.spread(elem, &y, &[1, 2], &full);
            let (u, v) = if d.below(2) == 0 { (u, v) } else { (v, u) };
            let p = d.op(elem, &full, &format!("multiply({u}, {v})"));
            d.reduce(elem, &p, &full, &[1], ("add", "0"));
        }
        "dot-to-mulred" | "red-dot-batch" => {
            let x = d.parameter(elem, &[b, k, m]);
            let y = d.parameter(elem, &[n, b, k]);
            let text = format!(
                "dot({x}, {y}), lhs_batch_dims={{0}}, rhs_batch_dims={{1}}, lhs_contracting_dims={{1}}, \
                 rhs_contracting_dims={{2}}"
            );
            let p = d.op(elem, &[b, m, n], &text);
            if rule == "red-dot-batch" {
                d.reduce(elem, &p, &[b, m, n], &[0], ("add", "0"));
            }
        }
        "dot-nocontract" => {
            let x = d.parameter(elem, &[b, m]);
            let y = d.parameter(elem, &[n, b]);
            let text = format!("dot({x}, {y}), lhs_batch_dims={{0}}, rhs_batch_dims={{1}}");
            d.op(elem, &[b, m, n], &text);
        }
        "mul-outer-dot" => {
            let (x, y) = (d.parameter(elem, &[m]), d.parameter(elem, &[k, n]));
            let full = [k, m, n];
            let u = d.spread(elem, &x, &[1], &full);
            let v = d.spread(elem, &y, &[0, 2], &full);
            d.op(elem, &full, &format!("multiply({u}, {v})"));
        }
        "red-dot-free-l" | "red-dot-free-r" => {
            let (x, y) = (d.parameter(elem, &[m, b, k]), d.parameter(elem, &[k, b, n]));
            let text = format!("dot({x}, {y}), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}");
            let full = [m, b, b, n];
            let p = d.op(elem, &full, &text);
            let over: &[usize] = match (rule, d.below(2)) {
                ("red-dot-free-l", 0) => &[0],
                ("red-dot-free-l", _) => &[0, 1],
                (_, 0) => &[3],
                _ => &[2, 3],
            };
            d.reduce(elem, &p, &full, over, ("add", "0"));
        }
        _ => return false,
    }
    true
}
