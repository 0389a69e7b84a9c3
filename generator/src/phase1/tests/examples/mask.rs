//! Examples of the rules on masks and on movement in pieces.

use super::draw::{Draw, list};

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    let dims = [2 + d.below(4), 2 + d.below(4)];
    match rule {
        "mask-affine" => {
            let elem = d.pick(&["f32", "s32", "s8"]);
            let (x, y) = (d.parameter(elem, &dims), d.parameter(elem, &dims));
            // A half plane: bounded by a line along a row, a column or a diagonal.
            let (i, j) = (iota(d, "s32", &dims, 0), iota(d, "s32", &dims, 1));
            let bound = d.below(4).to_string();
            let bound = d.splat("s32", &dims, &bound);
            let line = match d.below(4) {
                0 => i,
                1 => j,
                2 => d.op("s32", &dims, &format!("subtract({i}, {j})")),
                _ => d.op("s32", &dims, &format!("add({i}, {j})")),
            };
            let direction = d.pick(&["LT", "LE", "GT", "GE"]);
            let mask = d.op("pred", &dims, &format!("compare({line}, {bound}), direction={direction}"));
            d.op(elem, &dims, &format!("select({mask}, {x}, {y})"));
        }
        "mask-read" => {
            let elem = d.pick(&["f32", "s32", "s8"]);
            let (x, y) = (d.parameter(elem, &dims), d.parameter(elem, &dims));
            let row = |d: &mut Draw| {
                let bits: Vec<&str> = (0..dims[1]).map(|_| d.pick(&["true", "false"])).collect();
                format!("{{{}}}", bits.join(", "))
            };
            let rows: Vec<String> = (0..dims[0]).map(|_| row(d)).collect();
            let mask = d.op("pred", &dims, &format!("constant({{{}}})", rows.join(", ")));
            d.op(elem, &dims, &format!("select({mask}, {x}, {y})"));
        }
        "cmp-int-by-float" => {
            let elem = d.pick(&["s32", "u32", "s64"]);
            let x = d.parameter(elem, &dims);
            let y = match d.below(3) {
                0 => iota(d, elem, &dims, 1),
                1 => d.splat(elem, &dims, "16777215"),
                _ => {
                    let (all, low) = (d.parameter(elem, &dims), d.splat(elem, &dims, "255"));
                    d.op(elem, &dims, &format!("and({all}, {low})"))
                }
            };
            let direction = d.pick(&["EQ", "NE", "LT", "LE", "GT", "GE"]);
            let operands = if d.below(2) == 0 { format!("{x}, {y}") } else { format!("{y}, {x}") };
            d.op("pred", &dims, &format!("compare({operands}), direction={direction}"));
        }
        "bc-pieces" => {
            let elem = d.pick(&["f32", "s32", "s8"]);
            let at = d.below(2);
            let x = d.parameter(elem, &[dims[at]]);
            d.spread(elem, &x, &[at], &dims);
        }
        "rev-pieces" => {
            let elem = d.pick(&["f32", "s32", "s8"]);
            let x = d.parameter(elem, &dims);
            let count = 1 + d.below(2);
            let over = d.positions(count, 2);
            d.op(elem, &dims, &format!("reverse({x}), dimensions={{{}}}", list(&over)));
        }
        "slice-of-stack" => {
            let (rows, groups) = (2 + d.below(20), 2 + d.below(6));
            let x = {
                let columns = groups * 16 + d.below(9);
                d.parameter("s8", &[rows, columns])
            };
            let first = d.below(rows);
            let (last, column) = (first + 1 + d.below((rows - first).min(16)), 16 * d.below(groups));
            let text = format!("slice({x}), slice={{[{first}:{last}], [{column}:{}]}}", column + 16);
            d.op("s8", &[last - first, 16], &text);
        }
        "result-as-stack" => {
            let columns = 32 + d.below(90);
            let x = d.parameter("s32", &[16, columns]);
            d.op("s8", &[16, columns], &format!("convert({x})"));
        }
        "product-as-stack" => {
            let (rows, blocks, k) = (1 + d.below(16), 2 + d.below(4), 1 + d.below(20));
            let (a, b) = (d.parameter("s8", &[rows, k]), d.parameter("s8", &[k, 16 * blocks]));
            let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
            let product = d.op("s32", &[rows, 16 * blocks], &format!("dot({a}, {b}), {dims}"));
            let split = d.op("s32", &[rows, blocks, 16], &format!("reshape({product})"));
            let turned =
                d.op("s32", &[blocks, rows, 16], &format!("transpose({split}), dimensions={{1,0,2}}"));
            d.op("s32", &[blocks * rows, 16], &format!("reshape({turned})"));
        }
        _ => return false,
    }
    true
}

fn iota(d: &mut Draw, elem: &str, dims: &[usize], dim: usize) -> String {
    d.op(elem, dims, &format!("iota(), iota_dimension={dim}"))
}
