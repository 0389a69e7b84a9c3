//! Draws shapes and attributes, and writes the kernel that they make. Knows no rule.

use act_hlo::random::SplitMix64;
use std::fmt::Write;

/// A kernel in the making.
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

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    pub(super) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Dimensions of `rank`, each 1 to 4.
    pub(super) fn dims(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| 1 + self.below(4)).collect()
    }

    pub(super) fn rank(&mut self) -> usize {
        1 + self.below(3)
    }

    pub(super) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            let j = self.below(i + 1);
            all.swap(i, j);
        }
        all
    }

    /// Increasing positions of `count` out of `n`.
    pub(super) fn positions(&mut self, count: usize, n: usize) -> Vec<usize> {
        let mut some = self.permutation(n)[..count].to_vec();
        some.sort_unstable();
        some
    }

    pub(super) fn parameter(&mut self, elem: &str, dims: &[usize]) -> String {
        let k = self.parameters;
        self.parameters += 1;
        self.op(elem, dims, &format!("parameter({k})"))
    }

    pub(super) fn op(&mut self, elem: &str, dims: &[usize], text: &str) -> String {
        let name = format!("v{}", self.values);
        self.values += 1;
        let _ = writeln!(self.body, "  {name} = {elem}[{}] {text}", list(dims));
        name
    }

    pub(super) fn splat(&mut self, elem: &str, dims: &[usize], value: &str) -> String {
        let scalar = self.op(elem, &[], &format!("constant({value})"));
        self.op(elem, dims, &format!("broadcast({scalar}), dimensions={{}}"))
    }

    pub(super) fn transpose(&mut self, elem: &str, x: &str, dims: &[usize]) -> (String, Vec<usize>) {
        let perm = self.permutation(dims.len());
        let out: Vec<usize> = perm.iter().map(|&p| dims[p]).collect();
        let text = format!("transpose({x}), dimensions={{{}}}", list(&perm));
        (self.op(elem, &out, &text), out)
    }

    /// A box of x, with strides when `strided`.
    pub(super) fn slice(
        &mut self,
        elem: &str,
        x: &str,
        dims: &[usize],
        strided: bool,
    ) -> (String, Vec<usize>) {
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

    pub(super) fn broadcast(&mut self, elem: &str, x: &str, dims: &[usize]) -> (String, Vec<usize>) {
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
    pub(super) fn degenerate(&mut self, elem: &str, x: &str, dims: &[usize]) -> (String, Vec<usize>) {
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
    pub(super) fn moved(
        &mut self,
        elem: &str,
        x: &str,
        dims: &[usize],
        slices: bool,
    ) -> (String, Vec<usize>) {
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

    /// The reduction of the dimensions `over` by one of the combiners that every kernel has.
    pub(super) fn reduce(
        &mut self,
        elem: &str,
        x: &str,
        dims: &[usize],
        over: &[usize],
        (combiner, init): (&str, &str),
    ) -> (String, Vec<usize>) {
        let init = self.op(elem, &[], &format!("constant({init})"));
        let kept: Vec<usize> = (0..dims.len()).filter(|d| !over.contains(d)).map(|d| dims[d]).collect();
        let over = list(over);
        let text = format!("reduce({x}, {init}), dimensions={{{over}}}, to_apply={combiner}_{elem}");
        (self.op(elem, &kept, &text), kept)
    }

    /// The plain product of two matrices.
    pub(super) fn matmul(&mut self, elem: &str, a: &str, b: &str, out: &[usize]) -> String {
        let text = format!("dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}");
        self.op(elem, out, &text)
    }

    pub(super) fn spread(&mut self, elem: &str, x: &str, at: &[usize], out: &[usize]) -> String {
        self.op(elem, out, &format!("broadcast({x}), dimensions={{{}}}", list(at)))
    }

    /// The kernel with the last value as its result.
    pub(super) fn done(self) -> String {
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

pub(super) fn list(v: &[usize]) -> String {
    v.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) const ELEMS: [&str; 5] = ["f32", "bf16", "s32", "s8", "u8"];
