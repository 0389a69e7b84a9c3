//! Examples of the rules that move and scale by products with constants.

use super::draw::{Draw, list};

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    // Zeros times infinities are no zeros: floats are left alone below the policy `fast`.
    let elem = "s32";
    let (m, n) = (1 + d.below(4), 2 + d.below(3));
    let dims = [m, n];
    match rule {
        "dot-eye-r" | "dot-eye-l" => {
            let x = d.parameter(elem, &dims);
            let size = dims[if rule == "dot-eye-r" { 1 } else { 0 }].max(2);
            let eye: Vec<String> = (0..size)
                .map(|i| list(&(0..size).map(|j| usize::from(i == j)).collect::<Vec<_>>()))
                .collect();
            let eye = d.op(elem, &[size, size], &format!("constant({{{{{}}}}})", eye.join("},{")));
            let x = if rule == "dot-eye-l" && m == 1 { d.parameter(elem, &[2, n]) } else { x };
            if rule == "dot-eye-r" {
                d.matmul(elem, &x, &eye, &[m, size]);
            } else {
                d.matmul(elem, &eye, &x, &[size, n]);
            }
        }
        "dot-const-convert" => {
            let x = d.parameter(elem, &dims);
            let c = if d.below(2) == 0 {
                d.splat(elem, &[n, 2], "-128")
            } else {
                let rows: Vec<String> = (0..n).map(|i| list(&[3 * i, 127])).collect();
                d.op(elem, &[n, 2], &format!("constant({{{{{}}}}})", rows.join("},{")))
            };
            d.matmul(elem, &x, &c, &[m, 2]);
        }
        "add-eye" | "sub-eye" => {
            let (x, y) = (d.parameter(elem, &dims), d.parameter(elem, &dims));
            let op = if rule == "add-eye" { "add" } else { "subtract" };
            d.op(elem, &dims, &format!("{op}({x}, {y})"));
        }
        "neg-eye" => {
            let x = d.parameter(elem, &dims);
            d.op(elem, &dims, &format!("negate({x})"));
        }
        "scale-eye" => {
            let x = d.parameter(elem, &dims);
            let c = d.splat(elem, &dims, "-3");
            d.op(elem, &dims, &format!("multiply({x}, {c})"));
        }
        "mul-diag-l" | "mul-diag-r" => {
            let x = d.parameter(elem, &dims);
            let along = usize::from(rule.ends_with('r'));
            let values: Vec<usize> = (0..dims[along]).map(|i| i + 2 * d.below(5)).collect();
            let c = d.op(elem, &[dims[along]], &format!("constant({{{}}})", list(&values)));
            let c = d.spread(elem, &c, &[along], &dims);
            d.op(elem, &dims, &format!("multiply({x}, {c})"));
        }
        "T-eye-l" | "T-eye-r" => {
            let x = d.parameter(elem, &dims);
            d.op(elem, &[n, m], &format!("transpose({x}), dimensions={{1,0}}"));
        }
        "bc-dot-rows" | "bc-dot-columns" => {
            let along = usize::from(rule == "bc-dot-rows");
            let v = d.parameter(elem, &[dims[along]]);
            d.spread(elem, &v, &[along], &dims);
        }
        "rev-dot-l" | "rev-dot-r" => {
            let x = d.parameter(elem, &dims);
            let along = usize::from(rule.ends_with('r'));
            d.op(elem, &dims, &format!("reverse({x}), dimensions={{{along}}}"));
        }
        "slice-select-l" => {
            let x = d.parameter(elem, &[m + 2, n]);
            let start = d.below(2);
            let len = (m + 2 - start).div_ceil(2);
            d.op(elem, &[len, n], &format!("slice({x}), slice={{[{start}:{}:2], [0:{n}]}}", m + 2));
        }
        "slice-select-r" => {
            let x = d.parameter(elem, &[m, n + 1]);
            let start = d.below(2);
            let len = (n + 1 - start).div_ceil(2);
            d.op(elem, &[m, len], &format!("slice({x}), slice={{[0:{m}], [{start}:{}:2]}}", n + 1));
        }
        "pad-select-l" | "pad-select-r" => {
            let x = d.parameter(elem, &dims);
            let zero = d.op(elem, &[], "constant(0)");
            let (low, high, interior) = (d.below(3), d.below(3), d.below(2));
            let along = usize::from(rule.ends_with('r'));
            let mut out = dims;
            out[along] += low + high + interior * (dims[along] - 1);
            let padding = format!("{low}_{high}_{interior}");
            let padding = if along == 0 { format!("{padding}x0_0_0") } else { format!("0_0_0x{padding}") };
            d.op(elem, &out, &format!("pad({x}, {zero}), padding={padding}"));
        }
        _ => return false,
    }
    true
}
