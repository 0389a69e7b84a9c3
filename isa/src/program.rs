//! The loop program as plain data: where tensors lie, one tiled kernel to compile, and the loop nest that compiled
//! kernels are stitched into.

use crate::assembly::{AttrVal, BetaVal};
use crate::expr::{Env, Expr};
use crate::model::{BufferId, InstrId};
use act_hlo::{ElemType, Graph};

/// A loop of a nest; its variable counts 0, 1, .. trip-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(pub u32);

/// The segments of d0: XLA's buffers are separate allocations, so an address is a segment and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    Operand(u16),
    Result(u16),
    Scratch,
    Consts,
}

/// `c0 + Σ coefficient · loop variable`. Terms are sorted by loop, coefficients are not 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Affine {
    pub c0: i64,
    pub ivs: Vec<(LoopId, i64)>,
}

/// A strided tensor in d0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View {
    pub space: Space,
    pub elem: ElemType,
    /// (length in elements, byte stride) of every dimension, outermost first.
    pub dims: Vec<(u64, i64)>,
    /// Byte offset of the first element within the segment.
    pub start: Affine,
}

/// Where an input or output of a tiled kernel lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Hbm(View),
    /// In a buffer; `slot` is the start per access dimension, chosen by phase 2 when absent. `carried`: the value lives
    /// across the iterations of that loop at a fixed slot.
    OnChip {
        buf: BufferId,
        slot: Option<Vec<i64>>,
        carried: Option<LoopId>,
    },
}

/// What part of a contraction a kernel is (design: prologue makes the accumulator, body accumulates, epilogue finishes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    Prologue,
    Body,
    Epilogue,
    Whole,
}

/// Valid part of one input or output at a ragged edge: length per dimension, at most the tile's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Extent(pub Vec<u64>);

/// One tile's worth of a region, to be compiled to assembly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TiledKernel {
    pub graph: Graph,
    /// Place of every parameter.
    pub ins: Vec<Place>,
    /// Place of every root.
    pub outs: Vec<Place>,
    /// For every root, the parameter whose on-chip slot it must take over (accumulate in place).
    pub accumulators: Vec<Option<usize>>,
    pub phase: Phase,
}

/// A loop nest over accelerator instructions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    Seq(Vec<Program>),
    /// `parallel`: the iterations may run in any order, or at the same time each on a copy of the on-chip state at the
    /// loop's begin; what they leave on chip is not read after the loop.
    For {
        iv: LoopId,
        trip: u64,
        parallel: bool,
        body: Box<Program>,
    },
    Instr {
        op: InstrId,
        alpha: Vec<AttrVal>,
        beta: Vec<BetaVal>,
    },
    /// The host copies one view onto another of the same element type and lengths (packing); bytes are counted.
    HostCopy {
        from: View,
        to: View,
    },
    /// Orders the accelerator's stores before later loads of the same bytes.
    Fence,
}

/// A stitched region: what runs for one custom call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoopProgram {
    pub body: Program,
    /// Byte sizes of the operand and result segments.
    pub operands: Vec<u64>,
    pub results: Vec<u64>,
    pub scratch_bytes: u64,
    pub consts: Vec<u8>,
}

impl Affine {
    pub fn constant(c0: i64) -> Affine {
        Affine { c0, ivs: Vec::new() }
    }

    /// The sum of two, or `None` on overflow.
    pub fn checked_add(&self, other: &Affine) -> Option<Affine> {
        let mut sum = self.clone();
        sum.c0 = sum.c0.checked_add(other.c0)?;
        for &(iv, k) in &other.ivs {
            sum.add_term(iv, k)?;
        }
        Some(sum)
    }

    /// Adds `coefficient · iv`; `None` on overflow.
    pub fn add_term(&mut self, iv: LoopId, coefficient: i64) -> Option<()> {
        match self.ivs.binary_search_by_key(&iv, |t| t.0) {
            Ok(at) => {
                self.ivs[at].1 = self.ivs[at].1.checked_add(coefficient)?;
                if self.ivs[at].1 == 0 {
                    self.ivs.remove(at);
                }
            }
            Err(at) if coefficient != 0 => self.ivs.insert(at, (iv, coefficient)),
            Err(_) => {}
        }
        Some(())
    }

    /// The form with every coefficient multiplied; `None` on overflow.
    pub fn checked_scale(&self, factor: i64) -> Option<Affine> {
        let mut scaled = Affine::constant(self.c0.checked_mul(factor)?);
        for &(iv, k) in &self.ivs {
            scaled.add_term(iv, k.checked_mul(factor)?)?;
        }
        Some(scaled)
    }

    /// The value of an expression of a description whose addressing attributes have the values `beta`; `None` where it
    /// is not affine in the loops, or has no value.
    pub fn of(expr: &Expr, env: Env<'_>, beta: &[BetaVal]) -> Option<Affine> {
        let rest = |e: &Expr| Affine::of(e, env, beta);
        match expr {
            Expr::Beta(k) => match beta.get(usize::from(*k))? {
                BetaVal::Int(value) | BetaVal::Hbm(_, value) => Some(value.clone()),
            },
            Expr::Add(a, b) => rest(a)?.checked_add(&rest(b)?),
            Expr::Sub(a, b) => rest(a)?.checked_add(&rest(b)?.checked_scale(-1)?),
            Expr::Mul(a, b) => {
                let (a, b) = (rest(a)?, rest(b)?);
                match (a.ivs.is_empty(), b.ivs.is_empty()) {
                    (true, _) => b.checked_scale(a.c0),
                    (_, true) => a.checked_scale(b.c0),
                    _ => None,
                }
            }
            _ => expr.eval(Env { beta: &[], ..env }).ok().map(Affine::constant),
        }
    }

    /// The value for given loop variables; `None` when one is missing or the sum overflows.
    pub fn eval(&self, mut value_of: impl FnMut(LoopId) -> Option<i64>) -> Option<i64> {
        self.ivs.iter().try_fold(self.c0, |sum, &(iv, k)| sum.checked_add(value_of(iv)?.checked_mul(k)?))
    }
}

impl View {
    /// A dense row-major tensor at the start of a segment.
    pub fn row_major(space: Space, shape: &act_hlo::Shape) -> View {
        let mut step = shape.elem.bytes() as i64;
        let mut dims: Vec<(u64, i64)> = Vec::with_capacity(shape.rank());
        for &len in shape.dims.iter().rev() {
            dims.push((len, step));
            step = step.saturating_mul(len.max(1) as i64);
        }
        dims.reverse();
        View { space, elem: shape.elem, dims, start: Affine::constant(0) }
    }
}
