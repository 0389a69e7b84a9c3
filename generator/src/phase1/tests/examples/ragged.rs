//! Examples of the rules for values that are shorter than instructions take: witnesses have instructions of sizes 3 and 4.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&["s32", "f32"]);
    let (m, n) = (1 + d.below(4), 1 + d.below(3));
    match rule {
        "pad-to-instruction" => pointwise(elem, m, n, d),
        "slice-padded" => {
            let x = d.parameter(elem, &[m + 1, n]);
            let rest = d.splat(elem, &[m + 1, 2], "7");
            let padded = d.op(elem, &[m + 1, n + 2], &format!("concatenate({x}, {rest}), dimensions={{1}}"));
            d.op(elem, &[m, n + 2], &format!("slice({padded}), slice={{[1:{}], [0:{}]}}", m + 1, n + 2));
        }
        "cat-to-pad" => {
            let x = d.parameter(elem, &[m, n]);
            let (along, rest) = if d.below(2) == 0 { (0, [2, n]) } else { (1, [m, 3]) };
            let value = d.pick(&["0", "7"]);
            let rest = d.splat(elem, &rest, value);
            let dims = if along == 0 { [m + 2, n] } else { [m, n + 3] };
            d.op(elem, &dims, &format!("concatenate({x}, {rest}), dimensions={{{along}}}"));
        }
        _ => return false,
    }
    true
}

fn pointwise(elem: &str, m: usize, n: usize, d: &mut Draw) {
    // Of a parameter, of the beginning of a longer one, or of a splat.
    let operand = |d: &mut Draw| match d.below(3) {
        0 => d.parameter(elem, &[m, n]),
        1 => {
            let long = d.parameter(elem, &[4, 4]);
            d.op(elem, &[m, n], &format!("slice({long}), slice={{[0:{m}], [0:{n}]}}"))
        }
        _ => {
            let x = d.parameter(elem, &[m, n]);
            let splat = d.splat(elem, &[m, n], "5");
            d.op(elem, &[m, n], &format!("subtract({splat}, {x})"))
        }
    };
    let (x, y) = (operand(d), operand(d));
    let sum = d.op(elem, &[m, n], &format!("add({x}, {y})"));
    match d.below(3) {
        0 => {
            d.reduce(elem, &sum, &[m, n], &[1], ("add", "0"));
        }
        1 => {
            d.op(elem, &[n, m], &format!("transpose({sum}), dimensions={{1,0}}"));
        }
        _ => {
            let row = d.parameter(elem, &[n]);
            let rows = d.spread(elem, &row, &[1], &[m, n]);
            d.op(elem, &[m, n], &format!("add({sum}, {rows})"));
        }
    }
}
