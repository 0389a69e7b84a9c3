//! Examples of the rules on reductions.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    match rule {
        "red-T" | "T-red" | "red-narrow" | "red-widen" => {
            reduction(rule, d);
        }
        _ => return false,
    }
    true
}

fn reduction(rule: &str, d: &mut Draw) {
    let narrow = matches!(rule, "red-narrow" | "red-widen");
    let elem = if narrow { "bf16" } else { d.pick(&["f32", "s32"]) };
    let dims = vec![2 + d.below(2), 1 + d.below(3), 2 + d.below(2)];
    let combiner = if narrow { "add" } else { d.pick(&["add", "maximum"]) };
    let x = d.parameter(elem, &dims);
    let reduce = |d: &mut Draw, elem: &str, x: &str, dims: &[usize], over: usize| {
        // What a narrow type is summed from must be exact in it.
        let init = d.pick(&["0", "2"]);
        let init = d.op(elem, &[], &format!("constant({init})"));
        let kept: Vec<usize> = (0..dims.len()).filter(|&i| i != over).map(|i| dims[i]).collect();
        let text = format!("reduce({x}, {init}), dimensions={{{over}}}, to_apply={combiner}_{elem}");
        (d.op(elem, &kept, &text), kept)
    };
    match rule {
        "red-T" => {
            let (t, out) = d.transpose(elem, &x, &dims);
            let over = d.below(3);
            reduce(d, elem, &t, &out, over);
        }
        "T-red" => {
            let over = d.below(3);
            let (r, out) = reduce(d, elem, &x, &dims, over);
            d.transpose(elem, &r, &out);
        }
        "red-narrow" => {
            let w = d.op("f32", &dims, &format!("convert({x})"));
            let over = d.below(3);
            let (r, out) = reduce(d, "f32", &w, &dims, over);
            d.op("bf16", &out, &format!("convert({r})"));
        }
        _ => {
            let over = d.below(3);
            reduce(d, elem, &x, &dims, over);
        }
    }
}
