//! Examples of the algebra of products.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&["s32", "s32", "f32"]);
    let (m, k, n) = (1 + d.below(3), 1 + d.below(4), 1 + d.below(3));
    match rule {
        "dot-comm" => {
            let (x, y) = (d.parameter("s8", &[m, k]), d.parameter("u8", &[k, n]));
            d.matmul("s32", &x, &y, &[m, n]);
        }
        "dot-assoc-l" | "dot-assoc-r" => {
            let (a, b, c) =
                (d.parameter("s32", &[m, k]), d.parameter("s32", &[k, n]), d.parameter("s32", &[n, 2]));
            if rule == "dot-assoc-l" {
                let bc = d.matmul("s32", &b, &c, &[k, 2]);
                d.matmul("s32", &a, &bc, &[m, 2]);
            } else {
                let ab = d.matmul("s32", &a, &b, &[m, n]);
                d.matmul("s32", &ab, &c, &[m, 2]);
            }
        }
        "dot-distr-l" | "dot-distr-r" | "dot-factor-l" | "dot-factor-r" => sums(rule, d, elem, [m, k, n]),
        "dot-scale-l" | "dot-scale-r" | "dot-scale-row" | "dot-scale-col" | "scale-dot-l" | "scale-dot-r" => {
            scales(rule, d, "s32", [m, k, n]);
        }
        "dot-neg-l" | "dot-neg-r" | "neg-dot-l" | "neg-dot-r" => {
            let (mut a, mut b) = (d.parameter("s32", &[m, k]), d.parameter("s32", &[k, n]));
            match rule {
                "dot-neg-l" => a = d.op("s32", &[m, k], &format!("negate({a})")),
                "dot-neg-r" => b = d.op("s32", &[k, n], &format!("negate({b})")),
                _ => {}
            }
            let p = d.matmul("s32", &a, &b, &[m, n]);
            if rule.starts_with("neg") {
                d.op("s32", &[m, n], &format!("negate({p})"));
            }
        }
        _ => return false,
    }
    true
}

fn sums(rule: &str, d: &mut Draw, elem: &str, [m, k, n]: [usize; 3]) {
    let left = rule.ends_with('l');
    let (first, second) = if left { ([m, k], [k, n]) } else { ([k, n], [m, k]) };
    let (x, y) = (d.parameter(elem, &first), d.parameter(elem, &first));
    let other = d.parameter(elem, &second);
    let product = |d: &mut Draw, x: &str| {
        let (a, b) = if left { (x, other.as_str()) } else { (other.as_str(), x) };
        d.matmul(elem, a, b, &[m, n])
    };
    if rule.starts_with("dot-distr") {
        let s = d.op(elem, &first, &format!("add({x}, {y})"));
        product(d, &s);
    } else {
        let (p, q) = (product(d, &x), product(d, &y));
        d.op(elem, &[m, n], &format!("add({p}, {q})"));
    }
}

fn scales(rule: &str, d: &mut Draw, elem: &str, [m, k, n]: [usize; 3]) {
    let (a, b) = (d.parameter(elem, &[2, m, k]), d.parameter(elem, &[k, n, 2]));
    let (left, right, out) = ([2, m, k], [k, n, 2], [2, m, n]);
    let dot = |d: &mut Draw, a: &str, b: &str| {
        let text = format!(
            "dot({a}, {b}), lhs_batch_dims={{0}}, rhs_batch_dims={{2}}, lhs_contracting_dims={{2}}, \
             rhs_contracting_dims={{0}}"
        );
        d.op(elem, &out, &text)
    };
    let scalar = |d: &mut Draw, dims: &[usize]| {
        if d.below(2) == 0 {
            d.splat(elem, dims, "3")
        } else {
            let c = d.parameter(elem, &[]);
            d.spread(elem, &c, &[], dims)
        }
    };
    match rule {
        "dot-scale-l" | "dot-scale-row" => {
            let c = if rule == "dot-scale-row" {
                let v = d.parameter(elem, &[2, m]);
                d.spread(elem, &v, &[0, 1], &left)
            } else {
                scalar(d, &left)
            };
            let a = d.op(elem, &left, &format!("multiply({c}, {a})"));
            dot(d, &a, &b);
        }
        "dot-scale-r" | "dot-scale-col" => {
            let c = if rule == "dot-scale-col" {
                let v = d.parameter(elem, &[n]);
                d.spread(elem, &v, &[1], &right)
            } else {
                scalar(d, &right)
            };
            let b = d.op(elem, &right, &format!("multiply({b}, {c})"));
            dot(d, &a, &b);
        }
        _ => {
            let p = dot(d, &a, &b);
            let c = scalar(d, &out);
            d.op(elem, &out, &format!("multiply({c}, {p})"));
        }
    }
}
