//! Descriptions and graphs for the tests, built as data. Only what phase 2 reads is filled in: no semantics.

use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_hlo::{ElemType, Graph, Shape};
use act_isa::{
    Affine, AttrDecl, AttrKind, AttrVal, Buffer, BufferId, BufferSlice, Cond, Expr, Hbm, HbmWindow, Instr,
    InstrId, Isa, Phase, Place, Slice, Space, TiledKernel, View,
};

pub(super) fn isa(buffers: Vec<Buffer>, instrs: Vec<Instr>) -> Isa {
    let hbm = Hbm { name: "d0".into(), size: 1 << 20, align: 1, ordered: false };
    Isa { name: "test".into(), hbm, buffers, instrs, ..Isa::default() }
}

pub(super) fn buffer(name: &str, access: &[u64]) -> Buffer {
    Buffer {
        name: name.into(),
        access: access.to_vec(),
        unit: vec![64],
        elem: ElemType::BF16,
        align: vec![1; access.len()],
        ..Buffer::default()
    }
}

pub(super) fn alpha(k: u16) -> Expr {
    Expr::Alpha(k)
}

pub(super) fn beta(k: u16) -> Expr {
    Expr::Beta(k)
}

pub(super) fn int(v: i64) -> Expr {
    Expr::Int(v)
}

pub(super) fn times(a: Expr, b: i64) -> Expr {
    Expr::Mul(Box::new(a), Box::new(int(b)))
}

pub(super) fn slice(buffer: u16, start: &[Expr], len: &[Expr]) -> Slice {
    Slice::OnChip(BufferSlice { buffer: BufferId(buffer), start: start.to_vec(), len: len.to_vec() })
}

pub(super) fn window(start: Expr, bytes: Expr) -> Slice {
    Slice::Hbm(HbmWindow { start, dims: vec![(bytes, int(1))] })
}

/// An instruction of cost 1 with `alphas` computational and `betas` addressing attributes in 0..=2^20.
pub(super) fn instr(name: &str, alphas: usize, betas: usize, inputs: Vec<Slice>, output: Slice) -> Instr {
    let decl = |prefix: &str, k: usize| AttrDecl {
        name: format!("{prefix}{k}"),
        kind: AttrKind::Int { min: 0, max: 1 << 20 },
    };
    Instr {
        name: name.into(),
        alpha: (0..alphas).map(|k| decl("n", k)).collect(),
        beta: (0..betas).map(|k| decl("a", k)).collect(),
        inputs,
        outputs: vec![output],
        cost: int(1),
        ..Instr::default()
    }
}

pub(super) fn requires(mut instr: Instr, cond: Cond) -> Instr {
    instr.requires.push(cond);
    instr
}

/// The paper's running example (facts: d1 of 128 rows, d2 of 64).
pub(super) fn h_qkv() -> Isa {
    let n = || alpha(0);
    let load = |name| instr(name, 1, 2, vec![window(beta(0), times(n(), 128))], slice(0, &[beta(1)], &[n()]));
    let store =
        |name| instr(name, 1, 2, vec![slice(0, &[beta(0)], &[n()])], window(beta(1), times(n(), 128)));
    let gemm = instr(
        "gemm",
        0,
        3,
        vec![slice(0, &[beta(0)], &[int(64)]), slice(0, &[beta(1)], &[int(64)])],
        slice(1, &[beta(2)], &[int(64)]),
    );
    isa(
        vec![buffer("d1", &[128]), buffer("d2", &[64])],
        vec![
            load("load_rm"),
            load("load_cm"),
            store("store_rm"),
            instr("mov", 1, 2, vec![slice(1, &[beta(0)], &[n()])], slice(0, &[beta(1)], &[n()])),
            gemm,
            instr("softmax", 1, 1, vec![slice(1, &[beta(0)], &[n()])], slice(1, &[beta(0)], &[n()])),
        ],
    )
}

/// A pii graph under construction.
pub(super) struct Builder<'a> {
    pub(super) isa: &'a Isa,
    pub(super) graph: PiiGraph,
}

impl<'a> Builder<'a> {
    pub(super) fn new(isa: &'a Isa) -> Builder<'a> {
        Builder { isa, graph: PiiGraph::default() }
    }

    fn push(&mut self, op: PiiOp, operands: &[PiiId], buffer: Option<BufferId>, lens: Vec<u64>) -> PiiId {
        self.graph.nodes.push(PiiNode { op, operands: operands.to_vec(), buffer, lens });
        PiiId(self.graph.nodes.len() as u32 - 1)
    }

    pub(super) fn bytes(&mut self, operand: u16, start: i64, bytes: u64) -> PiiId {
        self.push(PiiOp::HbmView(byte_view(Space::Operand(operand), start, bytes)), &[], None, Vec::new())
    }

    pub(super) fn input(&mut self, k: usize, buffer: u16, lens: &[u64]) -> PiiId {
        self.push(PiiOp::OnChipInput(k), &[], Some(BufferId(buffer)), lens.to_vec())
    }

    /// An instruction whose lengths follow from its description.
    pub(super) fn run(&mut self, name: &str, alpha: &[i64], operands: &[PiiId]) -> PiiId {
        let (buffer, lens) = self.output(name, alpha);
        let op = self.isa.instr_named(name).unwrap();
        let alpha = alpha.iter().map(|&v| AttrVal::Int(v)).collect();
        self.push(PiiOp::Instr { op, alpha, store: None }, operands, Some(buffer), lens)
    }

    pub(super) fn store(
        &mut self,
        name: &str,
        alpha: &[i64],
        operand: PiiId,
        start: i64,
        bytes: u64,
    ) -> PiiId {
        let op = self.isa.instr_named(name).unwrap();
        let alpha = alpha.iter().map(|&v| AttrVal::Int(v)).collect();
        let store = Some(byte_view(Space::Result(0), start, bytes));
        self.push(PiiOp::Instr { op, alpha, store }, &[operand], None, Vec::new())
    }

    fn output(&self, name: &str, alpha: &[i64]) -> (BufferId, Vec<u64>) {
        let op: InstrId = self.isa.instr_named(name).unwrap();
        let alpha: Vec<Option<i64>> = alpha.iter().map(|&v| Some(v)).collect();
        let env = act_isa::Env { alpha: &alpha, beta: &[], registers: &[] };
        match &self.isa.instr(op).outputs[0] {
            Slice::OnChip(s) => (s.buffer, s.len.iter().map(|l| l.eval(env).unwrap() as u64).collect()),
            Slice::Hbm(_) => panic!("{name} stores"),
        }
    }

    pub(super) fn cut(&mut self, operand: PiiId, start: &[u64], lens: &[u64]) -> PiiId {
        let buffer = self.graph.node(operand).buffer;
        self.push(PiiOp::SliceH { start: start.to_vec() }, &[operand], buffer, lens.to_vec())
    }

    pub(super) fn glue(&mut self, dim: usize, operands: &[PiiId]) -> PiiId {
        let first = self.graph.node(operands[0]).clone();
        let mut lens = first.lens;
        lens[dim] = operands.iter().map(|&o| self.graph.node(o).lens[dim]).sum();
        self.push(PiiOp::ConcatH { dim }, operands, first.buffer, lens)
    }

    pub(super) fn root(mut self, ids: &[PiiId]) -> PiiGraph {
        self.graph.roots.push(ids.to_vec());
        self.graph
    }
}

pub(super) fn byte_view(space: Space, start: i64, bytes: u64) -> View {
    View { space, elem: ElemType::U8, dims: vec![(bytes, 1)], start: Affine::constant(start) }
}

/// A kernel with these places; parameters and results are of shape `lens ++ [64]` where they lie on chip.
pub(super) fn kernel(ins: Vec<Place>, outs: Vec<Place>, accumulators: Vec<Option<usize>>) -> TiledKernel {
    TiledKernel { graph: Graph::new("kernel"), ins, outs, accumulators, phase: Phase::Whole }
}

/// A kernel whose parameters and single result lie in d0.
pub(super) fn in_hbm(parameters: u16) -> TiledKernel {
    let place = |space| {
        let shape = Shape::new(ElemType::BF16, vec![64, 64]);
        Place::Hbm(View::row_major(space, &shape))
    };
    let ins = (0..parameters).map(|k| place(Space::Operand(k))).collect();
    kernel(ins, vec![place(Space::Result(0))], vec![None])
}

pub(super) fn on_chip(buffer: u16, slot: Option<&[i64]>, carried: bool) -> Place {
    Place::OnChip {
        buf: BufferId(buffer),
        slot: slot.map(<[i64]>::to_vec),
        carried: carried.then_some(act_isa::LoopId(0)),
    }
}
