//! Examples of the rules on data movement.

use super::draw::{Draw, ELEMS, list};

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let elem = d.pick(&ELEMS);
    let rank = d.rank();
    let dims = d.dims(rank);
    match rule {
        "movement-identity" => {
            let x = d.parameter(elem, &dims);
            let all = list(&(0..rank).collect::<Vec<_>>());
            let text = match d.below(5) {
                0 => format!("copy({x})"),
                1 => format!("reshape({x})"),
                2 => format!("transpose({x}), dimensions={{{all}}}"),
                3 => format!("broadcast({x}), dimensions={{{all}}}"),
                _ => format!("convert({x})"),
            };
            d.op(elem, &dims, &text);
        }
        "T-T"
        | "slice-slice"
        | "bc-bc"
        | "bc-swap-T"
        | "slice-bcast"
        | "rs-T-swap"
        | "bc-of-degenerate-rs"
        | "rs-bcast" => movement_pair(rule, d, elem, &dims),
        "rs-rs" => {
            let x = d.parameter(elem, &dims);
            let flat = [dims.iter().product::<usize>()];
            let y = d.op(elem, &flat, &format!("reshape({x})"));
            d.op(elem, &[1, flat[0], 1], &format!("reshape({y})"));
        }
        "rs-T-degenerate" => {
            let n = [1, dims[0], 1, 3];
            let x = d.parameter(elem, &n);
            let perm = if d.below(2) == 0 { [1, 0, 2, 3] } else { [2, 1, 3, 0] };
            let out: Vec<usize> = perm.iter().map(|&p| n[p]).collect();
            d.op(elem, &out, &format!("transpose({x}), dimensions={{{}}}", list(&perm)));
        }
        "bc-reshape" => {
            let x = d.parameter(elem, &dims);
            let at = d.positions(rank, rank + 1);
            let mut out = vec![1; rank + 1];
            at.iter().zip(&dims).for_each(|(&p, &n)| out[p] = n);
            d.op(elem, &out, &format!("broadcast({x}), dimensions={{{}}}", list(&at)));
        }
        "slice-cat" => {
            let (a, b) = (1 + d.below(3), 1 + d.below(3));
            let x = d.parameter(elem, &[a, 3]);
            let y = d.parameter(elem, &[b, 3]);
            let c = d.op(elem, &[a + b, 3], &format!("concatenate({x}, {y}), dimensions={{0}}"));
            let (start, limit) = if d.below(2) == 0 { (0, a) } else { (a, a + b) };
            d.op(elem, &[limit - start, 2], &format!("slice({c}), slice={{[{start}:{limit}], [1:3]}}"));
        }
        "cat-slices" => {
            let n = 2 + d.below(3);
            let x = d.parameter(elem, &[n, 4]);
            let (lo, hi) = (d.below(2), 3 + d.below(2));
            let k = 1 + d.below(n - 1);
            let a = d.op(elem, &[k, hi - lo], &format!("slice({x}), slice={{[0:{k}], [{lo}:{hi}]}}"));
            let b = d.op(elem, &[n - k, hi - lo], &format!("slice({x}), slice={{[{k}:{n}], [{lo}:{hi}]}}"));
            d.op(elem, &[n, hi - lo], &format!("concatenate({a}, {b}), dimensions={{0}}"));
        }
        "const-to-rank" => {
            let elem = d.pick(&["f32", "s32"]);
            let n = 1 + d.below(4);
            d.splat(elem, &[n], "3");
        }
        "rs-to-instruction" => {
            let n = 4 * (1 + d.below(3));
            let x = d.parameter("f32", &[n]);
            d.op("f32", &[n], &format!("exponential({x})"));
        }
        _ => return false,
    }
    true
}

fn movement_pair(rule: &str, d: &mut Draw, elem: &str, dims: &[usize]) {
    let x = d.parameter(elem, dims);
    match rule {
        "T-T" => {
            let (y, out) = d.transpose(elem, &x, dims);
            d.transpose(elem, &y, &out);
        }
        "slice-slice" => {
            let (y, out) = d.slice(elem, &x, dims, true);
            d.slice(elem, &y, &out, true);
        }
        "bc-bc" => {
            let (y, out) = d.broadcast(elem, &x, dims);
            d.broadcast(elem, &y, &out);
        }
        "bc-swap-T" => {
            let (y, out) = d.broadcast(elem, &x, dims);
            d.transpose(elem, &y, &out);
        }
        "slice-bcast" => {
            let (y, out) = d.broadcast(elem, &x, dims);
            d.slice(elem, &y, &out, true);
        }
        "rs-T-swap" => {
            let (y, out) = d.degenerate(elem, &x, dims);
            d.transpose(elem, &y, &out);
        }
        "bc-of-degenerate-rs" => {
            let (y, out) = d.degenerate(elem, &x, dims);
            d.broadcast(elem, &y, &out);
        }
        _ => {
            let (y, out) = d.broadcast(elem, &x, dims);
            d.degenerate(elem, &y, &out);
        }
    }
}
