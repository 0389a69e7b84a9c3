//! What a library of Gemmini kernels computes by one call, and by several, as kernels for the generated backend; and what
//! the code for them executes and moves.

use act_generator::{Backend, CompileError, Compiled, Options, model_of};
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{Literal, parse_graph};
use act_isa::{AsmInstr, Isa, Oracle, Phase, Place, Slice, Space, TiledKernel, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program and what a library of single operations moves for it.
pub(crate) struct Composite {
    pub(crate) name: &'static str,
    /// Operands.
    pub(crate) inputs: usize,
    /// One line per operation: `.` a product, `+` a sum, over operands and the results before.
    steps: &'static [(char, &'static str, &'static str)],
}

/// Every operation of the library loads two tensors and stores one.
pub(crate) const COMPOSITES: [Composite; 9] = [
    Composite { name: "A·B·C", inputs: 3, steps: &[('.', "a", "b"), ('.', "0", "c")] },
    Composite { name: "A·B·C·D", inputs: 4, steps: &[('.', "a", "b"), ('.', "0", "c"), ('.', "1", "d")] },
    Composite { name: "A·B+C", inputs: 3, steps: &[('.', "a", "b"), ('+', "0", "c")] },
    Composite { name: "A·B·C+D", inputs: 4, steps: &[('.', "a", "b"), ('.', "0", "c"), ('+', "1", "d")] },
    Composite { name: "A·B+A·C", inputs: 3, steps: &[('.', "a", "b"), ('.', "a", "c"), ('+', "0", "1")] },
    Composite { name: "A+B+C", inputs: 3, steps: &[('+', "a", "b"), ('+', "0", "c")] },
    Composite { name: "A+B+C+D", inputs: 4, steps: &[('+', "a", "b"), ('+', "0", "c"), ('+', "1", "d")] },
    Composite { name: "(A+B)·C", inputs: 3, steps: &[('+', "a", "b"), ('.', "0", "c")] },
    Composite {
        name: "(A+B)·(C+D)", inputs: 4, steps: &[('+', "a", "b"), ('+', "c", "d"), ('.', "0", "1")]
    },
];

impl Composite {
    /// Tensors that separate calls move.
    pub(crate) fn separate(&self) -> u64 {
        3 * self.steps.len() as u64
    }

    /// Square s8 tensors of one tile. Sums and products are s32; a product is saturated to s8 where it is multiplied
    /// again, as the result is.
    pub(crate) fn hlo(&self) -> String {
        let mut text = String::from(
            "HloModule m\nENTRY e {\n  low = s32[] constant(-128)\n  high = s32[] constant(127)\n",
        );
        for (k, name) in ["a", "b", "c", "d"].into_iter().take(self.inputs).enumerate() {
            text += &format!("  {name} = s8[16,16] parameter({k})\n  w{name} = s32[16,16] convert({name})\n");
        }
        let mut product = Vec::new();
        for (k, (op, left, right)) in self.steps.iter().enumerate() {
            let value = |name: &str, narrow: bool| match name.parse::<usize>() {
                Err(_) => format!("w{name}"),
                Ok(at) if narrow && product.get(at) == Some(&true) => format!("n{at}"),
                Ok(at) => format!("v{at}"),
            };
            let (left, right) = (value(left, *op == '.'), value(right, *op == '.'));
            text += &match op {
                '.' => format!(
                    "  v{k} = s32[16,16] dot({left}, {right}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                ),
                _ => format!("  v{k} = s32[16,16] add({left}, {right})\n"),
            };
            text += &format!(
                "  s{k} = s32[16,16] clamp(low, v{k}, high)\n  b{k} = s8[16,16] convert(s{k})\n  n{k} = s32[16,16] \
                 convert(b{k})\n"
            );
            product.push(*op == '.');
        }
        let last = self.steps.len() - 1;
        text + &format!("  ROOT r = s8[16,16] copy(b{last})\n}}\n")
    }
}

/// Bytes of a tile of a [`Composite`].
pub(crate) const TILE: u64 = 256;

/// The single operations at 64 by 64, with what the experts' code for them takes: loads, stores and products.
pub(crate) const SINGLE: [(&str, u64, u64, u64); 3] =
    [("GEMM", 8, 4, 64), ("MAC", 12, 4, 64), ("ADD", 8, 4, 0)];

/// Operators that the library lacks; it leaves them to the host.
pub(crate) const UNSUPPORTED: [(&str, &str); 3] = [
    (
        "broadcast",
        "HloModule m\nENTRY e {\n  x = s8[16] parameter(0)\n  ROOT r = s8[16,16] broadcast(x), dimensions={0}\n}\n",
    ),
    (
        "reverse",
        "HloModule m\nENTRY e {\n  x = s8[16,16] parameter(0)\n  ROOT r = s8[16,16] reverse(x), dimensions={1}\n}\n",
    ),
    (
        "reduce",
        "HloModule m\nadd {\n  x = s32[] parameter(0)\n  y = s32[] parameter(1)\n  ROOT s = s32[] add(x, y)\n}\n\
         ENTRY e {\n  x = s8[16,16] parameter(0)\n  w = s32[16,16] convert(x)\n  z = s32[] constant(0)\n  \
         ROOT r = s32[16] reduce(w, z), dimensions={1}, to_apply=add\n}\n",
    ),
];

pub(crate) fn single_hlo(name: &str) -> String {
    let head = "HloModule m\nENTRY e {\n  low = s32[] constant(-128)\n  high = s32[] constant(127)\n";
    let leaf = |name: &str, k: usize| {
        format!("  {name} = s8[64,64] parameter({k})\n  w{name} = s32[64,64] convert({name})\n")
    };
    let dot = "  p = s32[64,64] dot(wa, wb), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
    let middle = match name {
        "GEMM" => leaf("a", 0) + &leaf("b", 1) + dot + "  v = s32[64,64] copy(p)\n",
        "MAC" => leaf("a", 0) + &leaf("b", 1) + &leaf("c", 2) + dot + "  v = s32[64,64] add(p, wc)\n",
        _ => leaf("a", 0) + &leaf("b", 1) + "  v = s32[64,64] add(wa, wb)\n",
    };
    format!("{head}{middle}  s = s32[64,64] clamp(low, v, high)\n  ROOT r = s8[64,64] convert(s)\n}}\n")
}

/// What a kernel's code does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) loads: u64,
    pub(crate) stores: u64,
    /// Pairs of preload and compute.
    pub(crate) products: u64,
    /// Between main memory and the chip.
    pub(crate) bytes: u64,
    pub(crate) by_name: BTreeMap<String, u64>,
}

fn dense(hlo: &str) -> TiledKernel {
    let graph = parse_graph(hlo).unwrap_or_else(|e| panic!("{e}\n{hlo}"));
    let place = |space, id: &act_hlo::NodeId| Place::Hbm(View::row_major(space, graph.shape(*id)));
    let ins = graph.params().iter().zip(0..).map(|(id, k)| place(Space::Operand(k), id)).collect();
    let outs: Vec<Place> = graph.roots().iter().zip(0..).map(|(id, k)| place(Space::Result(k), id)).collect();
    let accumulators = vec![None; outs.len()];
    TiledKernel { ins, outs, accumulators, phase: Phase::Whole, graph }
}

pub(crate) fn compile(isa: &Isa, hlo: &str) -> Result<Compiled, CompileError> {
    let backend = Backend::generate(Arc::new(isa.clone())).unwrap_or_else(|e| panic!("{e}"));
    backend.compile(&dense(hlo), &Options::default(), model_of(isa).as_ref())
}

pub(crate) fn counts(isa: &Isa, compiled: &Compiled) -> Counts {
    let mut counts = Counts::default();
    for AsmInstr { op, alpha, .. } in &compiled.assembly.instrs {
        let instr = isa.instr(*op);
        let alpha: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
        let env = act_isa::Env { alpha: &alpha, ..act_isa::Env::default() };
        let bytes = |slices: &[Slice]| -> u64 {
            let of = |slice: &Slice| match slice {
                Slice::Hbm(w) => {
                    w.dims.iter().map(|(len, _)| len.eval(env).unwrap().unsigned_abs()).product()
                }
                Slice::OnChip(_) => 0,
            };
            slices.iter().map(of).sum()
        };
        let (loaded, stored) = (bytes(&instr.inputs), bytes(&instr.outputs));
        counts.loads += u64::from(loaded > 0 && stored == 0);
        counts.stores += u64::from(stored > 0);
        counts.products += u64::from(instr.name.starts_with("matmul"));
        counts.bytes += loaded + stored;
        *counts.by_name.entry(instr.name.clone()).or_default() += 1;
    }
    counts
}

/// Runs the code on random operands; whether its result is that of the reference evaluator, bit for bit.
pub(crate) fn is_right(isa: &Isa, hlo: &str, compiled: &Compiled) -> bool {
    let graph = parse_graph(hlo).unwrap();
    let mut rng = SplitMix64::new(11);
    let inputs: Vec<Literal> =
        graph.params().iter().map(|&p| random_literal(&mut rng, graph.shape(p), Values::Full)).collect();
    let expected = act_hlo::eval(&graph, &inputs).unwrap();
    let operands: Vec<&[u8]> = inputs.iter().map(Literal::bytes).collect();
    let mut results = vec![vec![0xa5; expected[0].bytes().len()]];
    let run = Oracle::new(isa).run_assembly(&compiled.assembly, &operands, &mut results);
    run.is_ok() && results[0] == expected[0].bytes()
}
