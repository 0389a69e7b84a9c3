//! What instructions touch on chip, as affine boxes, and which parts of the buffers a program uses.

use super::nest::for_each_loop;
use act_isa::{Affine, AttrVal, BetaVal, BufferId, Env, Expr, InstrId, Isa, LoopId, Program, Slice, Space};
use std::collections::BTreeMap;

/// A box of a buffer; starts are affine in the loops around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) buffer: BufferId,
    pub(super) start: Vec<Affine>,
    pub(super) len: Vec<i64>,
}

/// One slice of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    OnChip(Region),
    /// Bytes of a segment of d0.
    Hbm(Space),
}

/// The slices of an instruction, inputs and outputs.
#[derive(Clone, Debug)]
pub(super) struct Accesses {
    pub(super) inputs: Vec<Access>,
    pub(super) outputs: Vec<Access>,
}

/// How two boxes lie to each other at one and the same iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Disjoint,
    /// The first covers the second.
    Covers,
    /// They overlap, or it cannot be told.
    Overlaps,
}

impl Region {
    /// How `self` lies to `other`, both at the same values of all loop variables.
    pub(super) fn relation(&self, other: &Region, trips: &BTreeMap<LoopId, u64>) -> Relation {
        if self.buffer != other.buffer {
            return Relation::Disjoint;
        }
        let mut covers = true;
        for d in 0..self.len.len() {
            let Some(offset) = difference(&other.start[d], &self.start[d]) else {
                covers = false;
                let apart = bounds(&self.start[d], trips).zip(bounds(&other.start[d], trips));
                if apart.is_some_and(|(own, theirs)| {
                    own.1.saturating_add(self.len[d]) <= theirs.0
                        || theirs.1.saturating_add(other.len[d]) <= own.0
                }) {
                    return Relation::Disjoint;
                }
                continue;
            };
            if offset >= self.len[d] || offset + other.len[d] <= 0 {
                return Relation::Disjoint;
            }
            covers &= offset >= 0 && offset + other.len[d] <= self.len[d];
        }
        if covers { Relation::Covers } else { Relation::Overlaps }
    }
}

/// `a - b` where that is the same for all values of the loop variables.
pub(super) fn difference(a: &Affine, b: &Affine) -> Option<i64> {
    if a.ivs == b.ivs { a.c0.checked_sub(b.c0) } else { None }
}

/// Smallest and largest value of an affine form over the trips of its loops; `None` on overflow or an unknown loop.
pub(super) fn bounds(value: &Affine, trips: &BTreeMap<LoopId, u64>) -> Option<(i64, i64)> {
    let (mut low, mut high) = (value.c0, value.c0);
    for (iv, factor) in &value.ivs {
        let last = i64::try_from(trips.get(iv)?.saturating_sub(1)).ok()?;
        let reach = factor.checked_mul(last)?;
        low = low.checked_add(reach.min(0))?;
        high = high.checked_add(reach.max(0))?;
    }
    Some((low, high))
}

/// What an instruction touches; `None` when a slice is not affine.
pub(super) fn accesses(isa: &Isa, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> Option<Accesses> {
    let instr = isa.instrs.get(usize::from(op.0))?;
    let alpha: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
    let registers = isa.register_values();
    let env = Env { alpha: &alpha, beta: &[], registers: &registers };
    let access = |slice: &Slice| {
        Some(match slice {
            Slice::Hbm(window) => {
                let mut space = None;
                window.start.for_each_leaf(&mut |leaf| {
                    if let Expr::Beta(k) = leaf
                        && let Some(BetaVal::Hbm(found, _)) = beta.get(usize::from(*k))
                    {
                        space = Some(*found);
                    }
                });
                Access::Hbm(space?)
            }
            Slice::OnChip(slice) => {
                let start = slice.start.iter().map(|e| Affine::of(e, env, beta));
                let len = slice.len.iter().map(|e| {
                    let len = Affine::of(e, env, beta)?;
                    len.ivs.is_empty().then_some(len.c0)
                });
                Access::OnChip(Region {
                    buffer: slice.buffer,
                    start: start.collect::<Option<_>>()?,
                    len: len.collect::<Option<_>>()?,
                })
            }
        })
    };
    Some(Accesses {
        inputs: instr.inputs.iter().map(access).collect::<Option<_>>()?,
        outputs: instr.outputs.iter().map(access).collect::<Option<_>>()?,
    })
}

/// A box with the values that its starts take over all iterations.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) buffer: BufferId,
    /// First and last-plus-one position per access dimension.
    pub(super) range: Vec<(i64, i64)>,
}

impl Extent {
    pub(super) fn of(region: &Region, trips: &BTreeMap<LoopId, u64>) -> Option<Extent> {
        let range = region.start.iter().zip(&region.len).map(|(start, &len)| {
            let (low, high) = bounds(start, trips)?;
            Some((low, high.checked_add(len)?))
        });
        Some(Extent { buffer: region.buffer, range: range.collect::<Option<_>>()? })
    }

    pub(super) fn overlaps(&self, other: &Extent) -> bool {
        self.buffer == other.buffer
            && self.range.iter().zip(&other.range).all(|(a, b)| a.0 < b.1 && b.0 < a.1)
    }
}

/// What a program uses of the buffers before any panel is made.
pub(super) struct Layout {
    pub(super) trips: BTreeMap<LoopId, u64>,
    /// Per buffer and access dimension: the position after the last one used.
    pub(super) ends: Vec<Vec<i64>>,
    /// What straight-line runs read that they did not write themselves: values that live from run to run.
    pub(super) exposed: Vec<Extent>,
}

impl Layout {
    /// `None` when some access is not affine: nothing is known then.
    pub(super) fn of(isa: &Isa, program: &Program) -> Option<Layout> {
        let mut trips = BTreeMap::new();
        for_each_loop(program, &mut |iv, trip| {
            trips.insert(iv, trip);
        });
        let ends = isa.buffers.iter().map(|b| vec![0; b.access.len()]).collect();
        let mut layout = Layout { trips, ends, exposed: Vec::new() };
        layout.visit(isa, program)?;
        Some(layout)
    }

    fn visit(&mut self, isa: &Isa, program: &Program) -> Option<()> {
        match program {
            Program::Seq(parts) => {
                let mut written: Vec<Region> = Vec::new();
                for part in parts {
                    match part {
                        Program::Instr { op, alpha, beta } => {
                            let found = accesses(isa, *op, alpha, beta)?;
                            self.run_step(&found, &mut written)?;
                        }
                        Program::HostCopy { .. } | Program::Fence => {}
                        Program::Seq(_) | Program::For { .. } => {
                            written.clear();
                            self.visit(isa, part)?;
                        }
                    }
                }
                Some(())
            }
            Program::For { body, .. } => self.visit(isa, body),
            Program::Instr { op, alpha, beta } => {
                self.run_step(&accesses(isa, *op, alpha, beta)?, &mut Vec::new())
            }
            Program::HostCopy { .. } | Program::Fence => Some(()),
        }
    }

    fn run_step(&mut self, found: &Accesses, written: &mut Vec<Region>) -> Option<()> {
        for access in &found.inputs {
            if let Access::OnChip(region) = access {
                let extent = self.note(region)?;
                if !written.iter().any(|w| w.relation(region, &self.trips) == Relation::Covers) {
                    self.exposed.push(extent);
                }
            }
        }
        for access in &found.outputs {
            if let Access::OnChip(region) = access {
                self.note(region)?;
                written.push(region.clone());
            }
        }
        Some(())
    }

    fn note(&mut self, region: &Region) -> Option<Extent> {
        let extent = Extent::of(region, &self.trips)?;
        let ends = self.ends.get_mut(usize::from(region.buffer.0))?;
        for (end, range) in ends.iter_mut().zip(&extent.range) {
            *end = (*end).max(range.1);
        }
        Some(extent)
    }
}
