//! A loop program as the queue model runs it: every instruction with its times, and the boxes that it reads and writes
//! as linear forms of the loop variables.

use super::sum::{HOST_COPY_CYCLES_PER_BYTE, instruction_cost, view_bytes};
use act_isa::{Affine, AttrVal, BetaVal, Env, InstrId, Isa, LoopId, Program, Slice, Space};
use std::collections::BTreeMap;

/// Dimensions of a box that are looked at; further ones count as overlapping.
pub(super) const DIMS: usize = 4;

#[derive(Clone, Debug)]
pub(super) enum Nest {
    Seq(Vec<Nest>),
    Loop(Loop),
    Step(Step),
    /// The processor is busy for so many cycles.
    Host(u64),
    Fence,
}

#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// Position of the loop's variable among the values.
    pub(super) slot: usize,
    pub(super) trip: u64,
    pub(super) body: Box<Nest>,
    /// Where accesses to banks move with this loop's variable.
    pub(super) moves: Vec<Move>,
}

/// A range of positions along one banked dimension that moves with a loop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    /// First position at the first iteration of the loop and of those inside it.
    pub(super) base: Form,
    pub(super) step: i64,
    /// What the loops inside and the length add: the range is `low ..= high` around the base.
    pub(super) low: i64,
    pub(super) high: i64,
    /// Positions of a bank.
    pub(super) bank: i64,
}

/// `constant + Σ coefficient · value of a loop variable`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    constant: i64,
    terms: Vec<(usize, i64)>,
}

impl Form {
    /// What a round of a loop adds.
    pub(super) fn step(&self, slot: usize) -> i64 {
        self.terms.iter().find(|term| term.0 == slot).map_or(0, |term| term.1)
    }

    pub(super) fn at(&self, values: &[i64]) -> i64 {
        self.terms.iter().fold(self.constant, |sum, &(slot, k)| {
            sum.wrapping_add(k.wrapping_mul(values.get(slot).copied().unwrap_or(0)))
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Index into the queues of the description; without one nothing runs beside the instruction.
    pub(super) queue: Option<usize>,
    /// Cycles that the unit is occupied, bank conflicts aside.
    pub(super) busy: u64,
    pub(super) accesses: Vec<Access>,
}

#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) memory: usize,
    pub(super) kind: Kind,
    pub(super) dims: Vec<(Form, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    /// A read of what the same instruction overwrites: an accumulation.
    Update,
    Write,
}

/// Lowers programs of one description.
pub(super) struct Lowering<'a> {
    isa: &'a Isa,
    registers: Vec<i64>,
    /// Queue of every unit.
    queue_of: Vec<Option<usize>>,
    /// Loops around, with their trips.
    loops: Vec<(LoopId, u64)>,
    segments: BTreeMap<Space, usize>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(isa: &'a Isa) -> Lowering<'a> {
        let unit_queue = |unit: usize| isa.timing.queues.iter().position(|q| usize::from(q.unit) == unit);
        Lowering {
            isa,
            registers: isa.register_values(),
            queue_of: (0..isa.units.len()).map(unit_queue).collect(),
            loops: Vec::new(),
            segments: BTreeMap::new(),
        }
    }

    pub(super) fn nest(&mut self, program: &Program) -> Nest {
        match program {
            Program::Seq(parts) => Nest::Seq(parts.iter().map(|part| self.nest(part)).collect()),
            Program::For { iv, trip, body, .. } => {
                let slot = self.loops.len();
                self.loops.push((*iv, *trip));
                let inner = self.nest(body);
                let mut moves = Vec::new();
                self.moves(&inner, slot, &mut moves);
                moves.sort_unstable();
                moves.dedup();
                self.loops.pop();
                Nest::Loop(Loop { slot, trip: *trip, body: Box::new(inner), moves })
            }
            Program::Instr { op, alpha, beta } => Nest::Step(self.step(*op, alpha, beta)),
            Program::HostCopy { from, .. } => {
                Nest::Host(view_bytes(from).saturating_mul(HOST_COPY_CYCLES_PER_BYTE))
            }
            Program::Fence => Nest::Fence,
        }
    }

    /// The queue of an instruction and the cycles for which it occupies its unit.
    pub(super) fn times(&self, op: InstrId, alpha: &[AttrVal]) -> (Option<usize>, u64) {
        let unit = self.isa.instrs.get(usize::from(op.0)).and_then(|instr| instr.unit);
        let queue = unit.and_then(|u| self.queue_of.get(usize::from(u)).copied().flatten());
        let start = queue.and_then(|q| self.isa.timing.queues.get(q)).map_or(0, |q| q.start);
        (queue, instruction_cost(self.isa, op, alpha).saturating_add(start))
    }

    fn step(&mut self, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> Step {
        let (queue, busy) = self.times(op, alpha);
        let Some(instr) = self.isa.instrs.get(usize::from(op.0)) else {
            return Step { queue, busy, accesses: Vec::new() };
        };
        let updated: Vec<Option<usize>> =
            (0..instr.outputs.len()).map(|k| instr.updates_in_place(k)).collect();
        let reads =
            instr.inputs.iter().enumerate().map(|(k, slice)| {
                (if updated.contains(&Some(k)) { Kind::Update } else { Kind::Read }, slice)
            });
        let slices = reads.chain(instr.outputs.iter().map(|slice| (Kind::Write, slice)));
        let ints: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
        let accesses = slices.filter_map(|(kind, slice)| self.access(kind, slice, &ints, beta)).collect();
        Step { queue, busy, accesses }
    }

    fn access(
        &mut self,
        kind: Kind,
        slice: &Slice,
        alpha: &[Option<i64>],
        beta: &[BetaVal],
    ) -> Option<Access> {
        let isa = self.isa;
        let registers = self.registers.clone();
        let env = Env { alpha, beta: &[], registers: &registers };
        match slice {
            Slice::OnChip(slice) => {
                let buffer = isa.buffers.get(usize::from(slice.buffer.0))?;
                let dims =
                    slice.start.iter().zip(&slice.len).zip(&buffer.access).map(|((start, len), &size)| {
                        let start = Affine::of(start, env, beta).and_then(|start| self.form(&start));
                        match start.zip(len.eval(env).ok()) {
                            Some(known) => known,
                            // Anywhere in the buffer.
                            None => (Form::default(), i64::try_from(size).unwrap_or(i64::MAX)),
                        }
                    });
                let dims = dims.take(DIMS).collect();
                Some(Access { memory: usize::from(slice.buffer.0), kind, dims })
            }
            // Where main memory is not ordered, fences stand where it matters.
            Slice::Hbm(_) if !isa.hbm.ordered => None,
            Slice::Hbm(window) => {
                let mut space = None;
                window.start.for_each_leaf(&mut |leaf| {
                    if let act_isa::Expr::Beta(k) = leaf
                        && let Some(BetaVal::Hbm(found, _)) = beta.get(usize::from(*k))
                    {
                        space = Some(*found);
                    }
                });
                let next = isa.buffers.len() + self.segments.len();
                let memory = *self.segments.entry(space?).or_insert(next);
                let mut start = Affine::of(&window.start, env, beta)?;
                let mut len: i64 = 1;
                for (count, stride) in &window.dims {
                    let (count, stride) = (count.eval(env).ok()?, stride.eval(env).ok()?);
                    let reach = stride.checked_mul(count.saturating_sub(1))?;
                    start.c0 = start.c0.checked_add(reach.min(0))?;
                    len = len.checked_add(reach.checked_abs()?)?;
                }
                Some(Access { memory, kind, dims: vec![(self.form(&start)?, len)] })
            }
        }
    }

    /// `None` for a loop that is not around.
    fn form(&self, affine: &Affine) -> Option<Form> {
        let slot = |iv: LoopId| self.loops.iter().rposition(|l| l.0 == iv);
        let terms = affine.ivs.iter().map(|&(iv, k)| Some((slot(iv)?, k))).collect::<Option<_>>()?;
        Some(Form { constant: affine.c0, terms })
    }

    /// What moves with the loop `slot` in `nest`, whose loops are those inside it.
    fn moves(&self, nest: &Nest, slot: usize, found: &mut Vec<Move>) {
        let mut trips: Vec<u64> = self.loops.iter().map(|l| l.1).collect();
        self.moves_within(nest, slot, &mut trips, found);
    }

    fn moves_within(&self, nest: &Nest, slot: usize, trips: &mut Vec<u64>, found: &mut Vec<Move>) {
        match nest {
            Nest::Seq(parts) => parts.iter().for_each(|part| self.moves_within(part, slot, trips, found)),
            Nest::Loop(inner) => {
                trips.truncate(inner.slot);
                trips.push(inner.trip);
                self.moves_within(&inner.body, slot, trips, found);
            }
            Nest::Step(step) => {
                for access in &step.accesses {
                    found.extend(self.moves_of(access, slot, trips));
                }
            }
            Nest::Host(_) | Nest::Fence => {}
        }
    }

    fn moves_of(&self, access: &Access, slot: usize, trips: &[u64]) -> Vec<Move> {
        let banks = self.isa.timing.banks.iter().find(|b| usize::from(b.buffer.0) == access.memory);
        let Some((banks, buffer)) = banks.zip(self.isa.buffers.get(access.memory)) else { return Vec::new() };
        let mut moves = Vec::new();
        for (dim, (form, len)) in access.dims.iter().enumerate() {
            let Some(&(_, step)) = form.terms.iter().find(|t| t.0 == slot) else { continue };
            if banks.count.get(dim).is_none_or(|&count| count == 1) {
                continue;
            }
            let (mut low, mut high) = (0i64, len.saturating_sub(1));
            for &(inner, k) in form.terms.iter().filter(|t| t.0 > slot) {
                let last =
                    trips.get(inner).map_or(0, |&t| i64::try_from(t).unwrap_or(i64::MAX).saturating_sub(1));
                let reach = k.saturating_mul(last);
                low = low.saturating_add(reach.min(0));
                high = high.saturating_add(reach.max(0));
            }
            let outer = form.terms.iter().filter(|t| t.0 < slot).copied().collect();
            let base = Form { constant: form.constant, terms: outer };
            let bank = i64::try_from(banks.length(buffer, dim)).unwrap_or(i64::MAX);
            moves.push(Move { base, step, low, high, bank });
        }
        moves
    }
}
