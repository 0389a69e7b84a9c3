//! Examples of the rules that cut and pad: witnesses have instructions of sizes 2 to 4.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&["s32", "f32"]);
    let (m, n) = (2 + d.below(9), 1 + d.below(9));
    match rule {
        "split-red" | "red-split" => {
            let dims = if rule == "split-red" { [m, 2 + d.below(3)] } else { [2 + d.below(3), m] };
            let x = d.parameter(elem, &dims);
            let init = d.pick(&["0", "2"]);
            d.reduce(elem, &x, &dims, &[1], ("add", init));
        }
        "pad-reduce" => {
            let dims = [2 + d.below(3), 1];
            let x = d.parameter(elem, &dims);
            d.reduce(elem, &x, &dims, &[1], ("add", "3"));
        }
        "split-bc" => {
            let x = d.parameter(elem, &[m]);
            d.spread(elem, &x, &[0], &[m, n]);
        }
        "split-T" => {
            let x = d.parameter(elem, &[m, n]);
            d.op(elem, &[n, m], &format!("transpose({x}), dimensions={{1,0}}"));
        }
        "split-rev" => {
            let x = d.parameter(elem, &[m, n]);
            d.op(elem, &[m, n], &format!("reverse({x}), dimensions={{0}}"));
        }
        _ => return false,
    }
    true
}
