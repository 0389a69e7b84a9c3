//! Examples of the rules on elementwise operators and their way through data movement.

use super::draw::{Draw, ELEMS};

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&ELEMS);
    let rank = d.rank();
    let dims = d.dims(rank);
    match rule {
        "elementwise-push" => {
            let x = d.parameter(elem, &dims);
            let y = if d.below(2) == 0 { d.parameter(elem, &dims) } else { d.splat(elem, &dims, "3") };
            let op = d.pick(&["add", "multiply", "maximum", "subtract"]);
            let f = d.op(elem, &dims, &format!("{op}({x}, {y})"));
            d.moved(elem, &f, &dims, true);
        }
        "elementwise-pull" => {
            let x = d.parameter(elem, &dims);
            let (tx, out) = d.moved(elem, &x, &dims, false);
            if d.below(2) == 0 {
                d.op(elem, &out, &format!("negate({tx})"));
            } else {
                let c = d.splat(elem, &out, "2");
                d.op(elem, &out, &format!("minimum({c}, {tx})"));
            }
        }
        "elementwise-cat" => {
            let (a, b) = (1 + d.below(3), 1 + d.below(3));
            let x = d.parameter(elem, &[2, a]);
            let y = d.parameter(elem, &[2, b]);
            let c = d.op(elem, &[2, a + b], &format!("concatenate({x}, {y}), dimensions={{1}}"));
            let s = d.splat(elem, &[2, a + b], "5");
            d.op(elem, &[2, a + b], &format!("add({s}, {c})"));
        }
        "add-fma" | "mul-fma" => {
            let elem = if rule == "add-fma" { "f32" } else { "bf16" };
            let x = d.parameter(elem, &dims);
            let y = d.parameter(elem, &dims);
            let p = d.op(elem, &dims, &format!("multiply({x}, {y})"));
            if rule == "add-fma" {
                let z = d.parameter(elem, &dims);
                d.op(elem, &dims, &format!("add({z}, {p})"));
            }
        }
        _ => return false,
    }
    true
}
