//! Random kernels that show the left side of each rule.

use act_hlo::random::SplitMix64;
use std::fmt::Write;

/// Draws shapes and attributes, and writes the kernel that they make.
pub(super) struct Draw {
    rng: SplitMix64,
    body: String,
    parameters: usize,
    values: usize,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Draw {
        Draw { rng: SplitMix64::new(seed), body: String::new(), parameters: 0, values: 0 }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Dimensions of `rank`, each 1 to 4.
    fn dims(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| 1 + self.below(4)).collect()
    }

    fn rank(&mut self) -> usize {
        1 + self.below(3)
    }

    fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            let j = self.below(i + 1);
            all.swap(i, j);
        }
        all
    }

    /// Increasing positions of `count` out of `n`.
    fn positions(&mut self, count: usize, n: usize) -> Vec<usize> {
        let mut some = self.permutation(n)[..count].to_vec();
        some.sort_unstable();
        some
    }

    fn parameter(&mut self, elem: &str, dims: &[usize]) -> String {
        let k = self.parameters;
        self.parameters += 1;
        self.op(elem, dims, &format!("parameter({k})"))
    }

    fn op(&mut self, elem: &str, dims: &[usize], text: &str) -> String {
        let name = format!("v{}", self.values);
        self.values += 1;
        let _ = writeln!(self.body, "  {name} = {elem}[{}] {text}", list(dims));
        name
    }

    fn splat(&mut self, elem: &str, dims: &[usize], value: &str) -> String {
        let scalar = self.op(elem, &[], &format!("constant({value})"));
        self.op(elem, dims, &format!("broadcast({scalar}), dimensions={{}}"))
    }

    fn transpose(&mut self, elem: &str, x: &str, dims: &[usize]) -> (String, Vec<usize>) {
        let perm = self.permutation(dims.len());
        let out: Vec<usize> = perm.iter().map(|&p| dims[p]).collect();
        let text = format!("transpose({x}), dimensions={{{}}}", list(&perm));
        (self.op(elem, &out, &text), out)
    }

    /// A box of x, with strides when `strided`.
    fn slice(&mut self, elem: &str, x: &str, dims: &[usize], strided: bool) -> (String, Vec<usize>) {
        let (mut out, mut ranges) = (Vec::new(), Vec::new());
        for &n in dims {
            let start = self.below(n);
            let limit = start + 1 + self.below(n - start);
            let stride = if strided { 1 + self.below(2) } else { 1 };
            out.push((limit - start).div_ceil(stride));
            ranges.push(format!("[{start}:{limit}:{stride}]"));
        }
        let text = format!("slice({x}), slice={{{}}}", ranges.join(", "));
        (self.op(elem, &out, &text), out)
    }

    fn broadcast(&mut self, elem: &str, x: &str, dims: &[usize]) -> (String, Vec<usize>) {
        let rank = dims.len() + self.below(2);
        let at = self.positions(dims.len(), rank);
        let mut out = self.dims(rank);
        for (d, &p) in at.iter().enumerate() {
            out[p] = dims[d];
        }
        let text = format!("broadcast({x}), dimensions={{{}}}", list(&at));
        (self.op(elem, &out, &text), out)
    }

    /// The same elements with dimensions of size 1 put in or left out.
    fn degenerate(&mut self, elem: &str, x: &str, dims: &[usize]) -> (String, Vec<usize>) {
        let mut out = Vec::new();
        for &n in dims {
            if self.below(3) == 0 {
                out.push(1);
            }
            if n != 1 || self.below(2) == 0 {
                out.push(n);
            }
        }
        (self.op(elem, &out, &format!("reshape({x})")), out)
    }

    /// Any movement.
    fn moved(&mut self, elem: &str, x: &str, dims: &[usize], slices: bool) -> (String, Vec<usize>) {
        match self.below(if slices { 5 } else { 4 }) {
            0 => self.transpose(elem, x, dims),
            1 => {
                let flat = vec![dims.iter().product()];
                (self.op(elem, &flat, &format!("reshape({x})")), flat)
            }
            2 => self.broadcast(elem, x, dims),
            3 => {
                let count = 1 + self.below(dims.len());
                let at = self.positions(count, dims.len());
                let text = format!("reverse({x}), dimensions={{{}}}", list(&at));
                (self.op(elem, dims, &text), dims.to_vec())
            }
            _ => self.slice(elem, x, dims, true),
        }
    }

    /// The kernel with the last value as its result.
    fn done(self) -> String {
        let combiners: String = ["add", "maximum", "minimum"]
            .iter()
            .flat_map(|op| ["f32", "bf16", "s32"].map(|e| (op, e)))
            .map(|(op, e)| {
                format!("{op}_{e} {{ a = {e}[] parameter(0)\n b = {e}[] parameter(1)\n ROOT c = {e}[] {op}(a, b) }}\n")
            })
            .collect();
        let mut lines: Vec<&str> = self.body.lines().collect();
        let last = lines.pop().expect("a kernel has a value").trim();
        format!("HloModule example\n{combiners}ENTRY main {{\n{}\n  ROOT {last}\n}}\n", lines.join("\n"))
    }
}

fn list(v: &[usize]) -> String {
    v.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

const ELEMS: [&str; 5] = ["f32", "bf16", "s32", "s8", "u8"];

/// A kernel on which the rule of this name should fire.
pub(super) fn example(rule: &str, d: &mut Draw) -> String {
    let mut own = Draw::new(d.rng.next_u64());
    build(rule, &mut own);
    own.done()
}

fn build(rule: &str, d: &mut Draw) {
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
        "neutral-element" => {
            let elem = d.pick(&["s32", "u8", "f32"]);
            let (op, value) = match (d.below(4), elem) {
                (0, "f32") => ("subtract", "0"),
                (1, "f32") => ("divide", "1"),
                (_, "f32") => ("multiply", "1"),
                (0, _) => ("add", "0"),
                (1, _) => ("or", "0"),
                (2, _) => ("xor", "0"),
                _ => ("multiply", "1"),
            };
            let x = d.parameter(elem, &dims);
            let c = d.splat(elem, &dims, value);
            d.op(elem, &dims, &format!("{op}({x}, {c})"));
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
        "elementwise-push" => {
            let x = d.parameter(elem, &dims);
            let y = if d.below(2) == 0 { d.parameter(elem, &dims) } else { d.splat(elem, &dims, "3") };
            let op = d.pick(&["add", "multiply", "maximum", "subtract"]);
            let f = d.op(elem, &dims, &format!("{op}({x}, {y})"));
            d.moved(elem, &f, &dims, true);
        }
        "elementwise-pull" => {
            let x = d.parameter(elem, &dims);
            let (tx, out) = d.moved(elem, &x, &dims, false);
            if d.below(2) == 0 {
                d.op(elem, &out, &format!("negate({tx})"));
            } else {
                let c = d.splat(elem, &out, "2");
                d.op(elem, &out, &format!("minimum({c}, {tx})"));
            }
        }
        "elementwise-cat" => {
            let (a, b) = (1 + d.below(3), 1 + d.below(3));
            let x = d.parameter(elem, &[2, a]);
            let y = d.parameter(elem, &[2, b]);
            let c = d.op(elem, &[2, a + b], &format!("concatenate({x}, {y}), dimensions={{1}}"));
            let s = d.splat(elem, &[2, a + b], "5");
            d.op(elem, &[2, a + b], &format!("add({s}, {c})"));
        }
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
        "dot-canonical"
        | "T-dot"
        | "dot-operand-types"
        | "dot-narrow"
        | "dot-convert-result"
        | "dot-wrapped"
        | "dot-onto-zero"
        | "dot-slice"
        | "dot-split-k"
        | "split-to-instruction"
        | "add-assoc-product" => product(rule, d),
        "red-degenerate" | "red-T" | "T-red" | "red-rs" | "red-kept" | "red-narrow" | "red-widen" => {
            reduction(rule, d);
        }
        "clamp-min-max" | "min-max-clamp" | "max-min-clamp" | "max-const-fold" | "monotone-max"
        | "clamp-straddle" => order(rule, d, &dims),
        "mul-recip" | "div-bcast" | "softmax-shift" => quotient(rule, d),
        "rs-to-instruction" => {
            let n = 4 * (1 + d.below(3));
            let x = d.parameter("f32", &[n]);
            d.op("f32", &[n], &format!("exponential({x})"));
        }
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
        other => panic!("{other} has no example"),
    }
}

fn add_squares(d: &mut Draw) {
    let x = d.parameter("s32", &[2, 2]);
    let y = d.parameter("s32", &[2, 2]);
    d.op("s32", &[2, 2], &format!("add({x}, {y})"));
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

fn product(rule: &str, d: &mut Draw) {
    let (m, k, n) = (1 + d.below(4), 1 + d.below(4), 1 + d.below(4));
    match rule {
        "dot-canonical" => {
            let elem = d.pick(&["f32", "s32"]);
            if d.below(2) == 0 {
                let a = d.parameter(elem, &[1, k, m, 2]);
                let b = d.parameter(elem, &[n, 2, 1, k]);
                let text = format!(
                    "dot({a}, {b}), lhs_batch_dims={{0}}, rhs_batch_dims={{2}}, \
                     lhs_contracting_dims={{3,1}}, rhs_contracting_dims={{1,3}}"
                );
                d.op(elem, &[1, m, n], &text);
            } else {
                let a = d.parameter(elem, &[m, k]);
                let b = d.parameter(elem, &[n, k]);
                d.op(
                    elem,
                    &[m, n],
                    &format!("dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"),
                );
            }
        }
        "dot-operand-types" => {
            let a = d.parameter("s8", &[m, k]);
            let b = d.parameter("s8", &[k, n]);
            let (mut x, mut y) = (a, b);
            let wide = d.pick(&["s32", "s16"]);
            x = d.op(wide, &[m, k], &format!("convert({x})"));
            y = d.op(wide, &[k, n], &format!("convert({y})"));
            matmul(d, "s32", &x, &y, m, n);
        }
        "dot-wrapped" => {
            let elem = d.pick(&["s8", "u8", "s16"]);
            let a = d.parameter(elem, &[m, k]);
            let b = d.parameter(elem, &[k, n]);
            matmul(d, elem, &a, &b, m, n);
        }
        "dot-narrow" | "dot-convert-result" => {
            let a = d.parameter("bf16", &[m, k]);
            let b = d.parameter("bf16", &[k, n]);
            if rule == "dot-convert-result" {
                matmul(d, "bf16", &a, &b, m, n);
            } else {
                let x = d.op("f32", &[m, k], &format!("convert({a})"));
                let y = d.op("f32", &[k, n], &format!("convert({b})"));
                let c = matmul(d, "f32", &x, &y, m, n);
                d.op("bf16", &[m, n], &format!("convert({c})"));
            }
        }
        _ => {
            let elem = d.pick(&["f32", "s32"]);
            let (m, k, n) = if rule.contains("split") { (m + 2, k + 3, n + 2) } else { (m, k, n) };
            let a = d.parameter(elem, &[m, k]);
            let b = d.parameter(elem, &[k, n]);
            let c = matmul(d, elem, &a, &b, m, n);
            match rule {
                "T-dot" => {
                    d.op(elem, &[n, m], &format!("transpose({c}), dimensions={{1,0}}"));
                }
                "dot-slice" => {
                    d.slice(elem, &c, &[m, n], false);
                }
                "add-assoc-product" => {
                    let x = d.parameter(elem, &[m, n]);
                    let y = d.parameter(elem, &[m, n]);
                    let s = d.op(elem, &[m, n], &format!("add({x}, {c})"));
                    d.op(elem, &[m, n], &format!("add({y}, {s})"));
                }
                _ => {}
            }
        }
    }
}

fn matmul(d: &mut Draw, elem: &str, a: &str, b: &str, m: usize, n: usize) -> String {
    d.op(elem, &[m, n], &format!("dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"))
}

fn reduction(rule: &str, d: &mut Draw) {
    let narrow = matches!(rule, "red-narrow" | "red-widen");
    let elem = if narrow { "bf16" } else { d.pick(&["f32", "s32"]) };
    let dims = match rule {
        "red-degenerate" => vec![1 + d.below(2), 2 + d.below(2), 1],
        _ => vec![2 + d.below(2), 1 + d.below(3), 2 + d.below(2)],
    };
    let combiner = if narrow { "add" } else { d.pick(&["add", "maximum"]) };
    let x = d.parameter(elem, &dims);
    let reduce = |d: &mut Draw, elem: &str, x: &str, dims: &[usize], over: usize| {
        let zero = d.op(elem, &[], "constant(0)");
        let kept: Vec<usize> = (0..dims.len()).filter(|&i| i != over).map(|i| dims[i]).collect();
        let text = format!("reduce({x}, {zero}), dimensions={{{over}}}, to_apply={combiner}_{elem}");
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
        "red-rs" => {
            let out = [dims[0], 1, dims[1], dims[2]];
            let r = d.op(elem, &out, &format!("reshape({x})"));
            let over = [0, 3][d.below(2)];
            reduce(d, elem, &r, &out, over);
        }
        "red-narrow" => {
            let w = d.op("f32", &dims, &format!("convert({x})"));
            let over = d.below(3);
            let (r, out) = reduce(d, "f32", &w, &dims, over);
            d.op("bf16", &out, &format!("convert({r})"));
        }
        _ => {
            let over = if rule == "red-degenerate" { 1 } else { d.below(3) };
            reduce(d, elem, &x, &dims, over);
        }
    }
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

fn quotient(rule: &str, d: &mut Draw) {
    let (m, n) = (1 + d.below(4), 2 + d.below(4));
    let x = d.parameter("f32", &[m, n]);
    match rule {
        "mul-recip" | "div-bcast" => {
            // Away from zero: exp is positive.
            let y = d.parameter("f32", &[m]);
            let mut y = d.op("f32", &[m], &format!("exponential({y})"));
            if rule == "mul-recip" {
                let one = d.splat("f32", &[m], "1");
                y = d.op("f32", &[m], &format!("divide({one}, {y})"));
            }
            let b = d.op("f32", &[m, n], &format!("broadcast({y}), dimensions={{0}}"));
            let op = if rule == "mul-recip" { "multiply" } else { "divide" };
            d.op("f32", &[m, n], &format!("{op}({x}, {b})"));
        }
        _ => {
            let top = d.parameter("f32", &[m]);
            let tops = d.op("f32", &[m, n], &format!("broadcast({top}), dimensions={{0}}"));
            let s = d.op("f32", &[m, n], &format!("subtract({x}, {tops})"));
            let e = d.op("f32", &[m, n], &format!("exponential({s})"));
            let zero = d.op("f32", &[], "constant(0)");
            let r = d.op("f32", &[m], &format!("reduce({e}, {zero}), dimensions={{1}}, to_apply=add_f32"));
            let b = d.op("f32", &[m, n], &format!("broadcast({r}), dimensions={{0}}"));
            d.op("f32", &[m, n], &format!("divide({e}, {b})"));
        }
    }
}
