//! Examples of the rules on maximum, minimum and clamp.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let rank = d.rank();
    let dims = d.dims(rank);
    match rule {
        "clamp-min-max" | "min-max-clamp" | "max-min-clamp" | "max-const-fold" | "monotone-max"
        | "clamp-straddle" => order(rule, d, &dims),
        _ => return false,
    }
    true
}

fn order(rule: &str, d: &mut Draw, dims: &[usize]) {
    let elem = d.pick(&["f32", "s32"]);
    let (low, high) = (-(d.below(5) as i64), 1 + d.below(5));
    let low = low.to_string();
    match rule {
        "clamp-min-max" => {
            let x = d.parameter(elem, dims);
            let lo = if d.below(2) == 0 {
                d.parameter(elem, &[])
            } else {
                d.op(elem, &[], &format!("constant({low})"))
            };
            let hi = d.op(elem, &[], &format!("constant({high})"));
            d.op(elem, dims, &format!("clamp({lo}, {x}, {hi})"));
        }
        "min-max-clamp" | "max-min-clamp" | "max-const-fold" => {
            let x = d.parameter(elem, dims);
            let lo = d.splat(elem, dims, &low);
            let hi = d.splat(elem, dims, &high.to_string());
            let (first, second) = match rule {
                "min-max-clamp" => (format!("maximum({x}, {lo})"), "minimum"),
                "max-min-clamp" => (format!("minimum({hi}, {x})"), "maximum"),
                _ => (format!("maximum({x}, {lo})"), "maximum"),
            };
            let inner = d.op(elem, dims, &first);
            let outer = if rule == "max-min-clamp" { lo } else { hi };
            d.op(elem, dims, &format!("{second}({outer}, {inner})"));
        }
        "clamp-straddle" => {
            let x = d.parameter("f32", dims);
            let lo = d.op("f32", &[], &format!("constant({low})"));
            let hi = d.op("f32", &[], &format!("constant({high})"));
            let c = d.op("f32", dims, &format!("clamp({lo}, {x}, {hi})"));
            d.op("s8", dims, &format!("convert({c})"));
        }
        _ => {
            // The requantization chain, in full or in part.
            let x = d.parameter("s32", dims);
            let c = d.splat("s32", dims, &low);
            let bound = d.pick(&["maximum", "minimum"]);
            let m = d.op("s32", dims, &format!("{bound}({x}, {c})"));
            let mut y = d.op("f32", dims, &format!("convert({m})"));
            if d.below(2) == 0 {
                let s = d.splat("f32", dims, "0.37");
                y = d.op("f32", dims, &format!("multiply({y}, {s})"));
            }
            let round = d.pick(&["round-nearest-even", "floor", "ceil"]);
            y = d.op("f32", dims, &format!("{round}({y})"));
            if d.below(2) == 0 {
                let lo = d.op("f32", &[], "constant(-128)");
                let hi = d.op("f32", &[], "constant(127)");
                y = d.op("f32", dims, &format!("clamp({lo}, {y}, {hi})"));
            }
            d.op("s8", dims, &format!("convert({y})"));
        }
    }
}
