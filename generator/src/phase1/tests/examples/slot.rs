//! Examples of the rules that put values in the form of a slot.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let rank = d.rank();
    let dims = d.dims(rank);
    match rule {
        "operand-to-slot" => match d.below(3) {
            0 => {
                let x = d.parameter("s8", &[2, 8]);
                d.op("s32", &[2, 8], &format!("convert({x})"));
            }
            1 => {
                let x = d.parameter("s8", &[8, 2]);
                d.op("s32", &[8, 2], &format!("convert({x})"));
            }
            _ => add_squares(d),
        },
        "result-to-slot" => add_squares(d),
        "bitcast-bitcast" => {
            let x = d.parameter("s32", &dims);
            let (to, inner) = if d.below(2) == 0 { ("s8", 4) } else { ("s16", 2) };
            let wide = [dims, vec![inner]].concat();
            let b = d.op(to, &wide, &format!("bitcast-convert({x})"));
            d.op("s32", &wide[..wide.len() - 1], &format!("bitcast-convert({b})"));
        }
        _ => return false,
    }
    true
}

fn add_squares(d: &mut Draw) {
    let x = d.parameter("s32", &[2, 2]);
    let y = d.parameter("s32", &[2, 2]);
    d.op("s32", &[2, 2], &format!("add({x}, {y})"));
}
