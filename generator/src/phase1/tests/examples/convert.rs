//! Examples of the rules on value conversions.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let rank = d.rank();
    let dims = d.dims(rank);
    match rule {
        "cvt-cvt-wide" | "cvt-narrow-int" => {
            let chains: &[[&str; 3]] = if rule == "cvt-cvt-wide" {
                &[["s8", "s32", "s8"], ["bf16", "f32", "bf16"], ["u8", "s16", "f32"], ["s8", "f32", "s32"]]
            } else {
                &[["s32", "s16", "s8"], ["s8", "u32", "s16"], ["u32", "s32", "u8"]]
            };
            let [a, b, c] = chains[d.below(chains.len())];
            let x = d.parameter(a, &dims);
            let y = d.op(b, &dims, &format!("convert({x})"));
            d.op(c, &dims, &format!("convert({y})"));
        }
        "cvt-clamped" => {
            let x = d.parameter("f32", &dims);
            let low = d.op("f32", &[], "constant(-3.5)");
            let high = d.op("f32", &[], "constant(100)");
            let c = d.op("f32", &dims, &format!("clamp({low}, {x}, {high})"));
            d.op("s8", &dims, &format!("convert({c})"));
        }
        "cvt-sign" => {
            let from = d.pick(&["s32", "u32", "s8", "s16"]);
            let x = d.parameter(from, &dims);
            d.op("u8", &dims, &format!("convert({x})"));
        }
        "op-narrow-exact" | "op-narrow-rounding" => {
            let x = d.parameter("bf16", &dims);
            let y = d.parameter("bf16", &dims);
            let wx = d.op("f32", &dims, &format!("convert({x})"));
            let wy = d.op("f32", &dims, &format!("convert({y})"));
            let op = if rule == "op-narrow-exact" {
                d.pick(&["maximum", "minimum"])
            } else {
                d.pick(&["add", "multiply", "subtract"])
            };
            let f = d.op("f32", &dims, &format!("{op}({wx}, {wy})"));
            d.op("bf16", &dims, &format!("convert({f})"));
        }
        "op-widen" => {
            let x = d.parameter("bf16", &dims);
            let op = d.pick(&["exponential"]);
            d.op("bf16", &dims, &format!("{op}({x})"));
        }
        "excess-precision" => {
            let x = d.parameter("f32", &dims);
            let n = d.op("bf16", &dims, &format!("convert({x})"));
            d.op("f32", &dims, &format!("convert({n})"));
        }
        _ => return false,
    }
    true
}
