//! Examples of the algebra of reductions.

use super::draw::Draw;

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&["s32", "s32", "f32"]);
    let dims = [1 + d.below(3), 2 + d.below(3), 1 + d.below(3)];
    let least = if elem == "s32" { "-2147483648" } else { "-inf" };
    let combiner = if d.below(2) == 0 { ("add", "0") } else { ("maximum", least) };
    match rule {
        "red-none" => {
            let x = d.parameter(elem, &dims);
            d.reduce(elem, &x, &dims, &[], combiner);
        }
        "red-1" => {
            let dims = [dims[0], 1, dims[1], 1];
            let x = d.parameter(elem, &dims);
            let over: &[usize] = if d.below(2) == 0 { &[1] } else { &[1, 3] };
            d.reduce(elem, &x, &dims, over, combiner);
        }
        "red-red" => {
            let x = d.parameter(elem, &dims);
            let first = d.below(3);
            let (r, kept) = d.reduce(elem, &x, &dims, &[first], combiner);
            let second = d.below(2);
            d.reduce(elem, &r, &kept, &[second], (combiner.0, "5"));
        }
        "red-split-dims" => {
            let dims = [2 + d.below(2), dims[1], 2 + d.below(2)];
            let x = d.parameter(elem, &dims);
            d.reduce(elem, &x, &dims, &[0, 2], ("add", "0"));
        }
        "red-to-instruction" => {
            let x = d.parameter(elem, &dims);
            let over: &[usize] = if d.below(2) == 0 { &[2] } else { &[1, 2] };
            d.reduce(elem, &x, &dims, over, ("add", "0"));
        }
        "red-splat" => {
            // Larger than what is folded by evaluation.
            let x = d.splat(elem, &[64, 2048], "-3");
            let combiner = if d.below(2) == 0 { ("add", "7") } else { ("maximum", "-7") };
            d.reduce(elem, &x, &[64, 2048], &[1], combiner);
        }
        "red-bcast-add" | "red-bcast-order" => {
            let x = d.parameter(elem, &[dims[1], dims[2]]);
            let b = d.spread(elem, &x, &[1, 2], &dims);
            let most = if elem == "s32" { "2147483647" } else { "inf" };
            let order = if d.below(2) == 0 { ("maximum", least) } else { ("minimum", most) };
            d.reduce(elem, &b, &dims, &[0], if rule == "red-bcast-add" { ("add", "0") } else { order });
        }
        "red-const-in" | "red-const-out" | "red-neg" | "neg-red" => linear(rule, d, &dims),
        "red-add" | "red-add-out" => {
            let (x, y) = (d.parameter(elem, &dims), d.parameter(elem, &dims));
            let over = [d.below(3)];
            if rule == "red-add" {
                let (p, out) = d.reduce(elem, &x, &dims, &over, combiner);
                let (q, _) = d.reduce(elem, &y, &dims, &over, (combiner.0, "4"));
                d.op(elem, &out, &format!("{}({p}, {q})", combiner.0));
            } else {
                let s = d.op(elem, &dims, &format!("{}({x}, {y})", combiner.0));
                d.reduce(elem, &s, &dims, &over, (combiner.0, "4"));
            }
        }
        "red-max-neg" | "red-max-not" => {
            let elem = if rule == "red-max-neg" { "f32" } else { "s32" };
            let x = d.parameter(elem, &dims);
            let over = [d.below(3)];
            let combiner = d.pick(&["maximum", "minimum"]);
            d.reduce(elem, &x, &dims, &over, (combiner, "3"));
        }
        "red-init" => {
            let x = d.parameter(elem, &dims);
            let over = [d.below(3)];
            d.reduce(elem, &x, &dims, &over, (combiner.0, "-4"));
        }
        "red-cat" | "red-cat-other" => {
            let more = [dims[0] + 1, dims[1], dims[2]];
            let (x, y) = (d.parameter(elem, &dims), d.parameter(elem, &more));
            let whole = [dims[0] + more[0], dims[1], dims[2]];
            let cat = d.op(elem, &whole, &format!("concatenate({x}, {y}), dimensions={{0}}"));
            let over: &[usize] = match (rule, d.below(2)) {
                ("red-cat", 0) => &[0],
                ("red-cat", _) => &[0, 2],
                (_, 0) => &[1],
                _ => &[1, 2],
            };
            d.reduce(elem, &cat, &whole, over, (combiner.0, "2"));
        }
        "red-halve" | "red-peel" => {
            let mut dims = [2 * dims[0] + usize::from(rule == "red-peel"), dims[1]];
            let over = d.below(2);
            dims.swap(0, over);
            let x = d.parameter(elem, &dims);
            d.reduce(elem, &x, &dims, &[over], (combiner.0, "1"));
        }
        "slice-reduce" => {
            let x = d.parameter(elem, &dims);
            let over = [d.below(3)];
            let (r, out) = d.reduce(elem, &x, &dims, &over, (combiner.0, "2"));
            d.slice(elem, &r, &out, false);
        }
        _ => return false,
    }
    true
}

fn linear(rule: &str, d: &mut Draw, dims: &[usize]) {
    let mut x = d.parameter("s32", dims);
    let over = [d.below(3)];
    match rule {
        "red-const-out" => {
            let c = d.splat("s32", dims, "-5");
            x = d.op("s32", dims, &format!("multiply({c}, {x})"));
        }
        "neg-red" => x = d.op("s32", dims, &format!("negate({x})")),
        _ => {}
    }
    let (r, out) = d.reduce("s32", &x, dims, &over, ("add", "0"));
    match rule {
        "red-const-in" => {
            let c = d.splat("s32", &out, "-5");
            d.op("s32", &out, &format!("multiply({r}, {c})"));
        }
        "red-neg" => {
            d.op("s32", &out, &format!("negate({r})"));
        }
        _ => {}
    }
}
