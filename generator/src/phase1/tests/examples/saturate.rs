//! Examples of the rules on saturation.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let rank = d.rank();
    let dims = d.dims(rank);
    match rule {
        "clamp-in-float" | "clamp-by-narrowing" => {
            let low = -(d.below(129) as i64);
            let x = d.parameter("s32", &dims);
            let low = d.op("s32", &[], &format!("constant({low})"));
            let high = d.below(128);
            let high = d.op("s32", &[], &format!("constant({high})"));
            let clamped = d.op("s32", &dims, &format!("clamp({low}, {x}, {high})"));
            if rule == "clamp-in-float" {
                d.op("s8", &dims, &format!("convert({clamped})"));
            }
        }
        "max-saturate" | "max-of-saturated" => {
            // The ends of the type as often as anything between.
            let c = [-128, 127, 0, d.below(256) as i64 - 128][d.below(4)];
            let x = d.parameter("s8", &dims);
            let c = d.splat("s8", &dims, &c.to_string());
            // Only the maximum stands in an instruction of the witness.
            let op = if rule == "max-saturate" { d.pick(&["maximum", "minimum"]) } else { "maximum" };
            d.op("s8", &dims, &format!("{op}({x}, {c})"));
        }
        _ => return false,
    }
    true
}
