//! The queue model. A processor issues instructions in their order; every unit has a queue, from which its instructions
//! start one after the other, each when its operands are there; units work at the same time. All parameters come from
//! the description's `queue` and `banks` items (act-isa, `timing.rs`).

use super::CostModel;
use super::nest::{Access, DIMS, Kind, Lowering, Nest, Step};
use super::sum::{HOST_COPY_CYCLES_PER_BYTE, view_bytes};
use crate::pii::{PiiGraph, PiiOp};
use act_isa::{Isa, Program};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// Simulates the queues of a description. A loop is run until the state of the queues repeats; the rounds that are left
/// are taken to last as long (`steady.rs`).
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueModel;

/// Changes whenever the same description and program would get another number.
const VERSION: &[u8] = b"queue model 1";

impl CostModel for QueueModel {
    fn lower_bound(&self, isa: &Isa, graph: &PiiGraph) -> u64 {
        let lowering = Lowering::new(isa);
        let mut load = Load::new(isa);
        for node in &graph.nodes {
            if let PiiOp::Instr { op, alpha, .. } = &node.op {
                let (queue, busy) = lowering.times(*op, alpha);
                load.add(isa, queue, busy, 1);
            }
        }
        load.bound()
    }

    fn cost(&self, isa: &Isa, program: &Program) -> u64 {
        let nest = Lowering::new(isa).nest(program);
        let mut machine = Machine::new(isa);
        machine.run(&nest, &mut Vec::new());
        machine.finished().max(self.nest_bound(isa, program))
    }

    fn nest_bound(&self, isa: &Isa, program: &Program) -> u64 {
        let mut load = Load::new(isa);
        load.program(isa, &Lowering::new(isa), program, 1);
        load.bound()
    }

    fn fingerprint(&self) -> [u8; 32] {
        // The parameters are part of the description, which keys have beside this.
        let mut hash = Sha256::new();
        hash.update(VERSION);
        hash.update(HOST_COPY_CYCLES_PER_BYTE.to_le_bytes());
        hash.finalize().into()
    }
}

/// What every resource has to do at least, whatever the order.
struct Load {
    processor: u64,
    alone: u64,
    units: Vec<u64>,
}

impl Load {
    fn new(isa: &Isa) -> Load {
        Load { processor: 0, alone: 0, units: vec![0; isa.timing.queues.len()] }
    }

    fn add(&mut self, isa: &Isa, queue: Option<usize>, busy: u64, times: u64) {
        let sum = |to: &mut u64, cycles: u64| *to = to.saturating_add(cycles.saturating_mul(times));
        match queue.and_then(|q| Some((self.units.get_mut(q)?, isa.timing.queues.get(q)?))) {
            Some((unit, queue)) => {
                sum(unit, busy.saturating_add(if queue.serial { queue.latency } else { 0 }));
                sum(&mut self.processor, queue.issue);
            }
            None => sum(&mut self.alone, busy),
        }
    }

    fn program(&mut self, isa: &Isa, lowering: &Lowering<'_>, program: &Program, times: u64) {
        match program {
            Program::Seq(parts) => parts.iter().for_each(|part| self.program(isa, lowering, part, times)),
            Program::For { trip, body, .. } => self.program(isa, lowering, body, times.saturating_mul(*trip)),
            Program::Instr { op, alpha, .. } => {
                let (queue, busy) = lowering.times(*op, alpha);
                self.add(isa, queue, busy, times);
            }
            Program::HostCopy { from, .. } => {
                let cycles = view_bytes(from).saturating_mul(HOST_COPY_CYCLES_PER_BYTE);
                self.processor = self.processor.saturating_add(cycles.saturating_mul(times));
            }
            Program::Fence => {}
        }
    }

    fn bound(&self) -> u64 {
        let longest = self.units.iter().copied().max().unwrap_or(0).max(self.processor);
        longest.saturating_add(self.alone)
    }
}

/// The first position and the one behind the last, per dimension.
type Box = [(i64, i64); DIMS];

/// An access of an instruction that is not complete.
#[derive(Clone, Debug)]
struct Flight<'a> {
    queue: usize,
    access: &'a Access,
    span: Box,
    complete: u64,
}

/// Cycles during which a unit that does not yield has a bank's port.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    end: u64,
}

#[derive(Clone, Debug, Default)]
struct Unit {
    /// When it can start another instruction.
    free: u64,
    /// When its last instruction is complete.
    complete: u64,
    /// When those issued and not complete are.
    waiting: VecDeque<u64>,
}

/// Windows of one bank that are kept; older ones are past.
const MOST_WINDOWS: usize = 64;

/// The state of processor, queues and banks. Times are cycles since the beginning.
#[derive(Clone, Debug)]
pub(super) struct Machine<'a> {
    isa: &'a Isa,
    pub(super) clock: u64,
    units: Vec<Unit>,
    flights: Vec<Flight<'a>>,
    /// Of every bank, buffer by buffer.
    windows: Vec<Vec<Window>>,
    /// Of every buffer with banks, by buffer: where its banks begin in `windows`, and positions of a bank and number of
    /// banks per dimension.
    banks: Vec<Option<BankShape>>,
    /// Instructions simulated so far.
    pub(super) steps: u64,
    /// Whether rounds of loops may be left out; always, except where tests compare.
    pub(super) extrapolates: bool,
}

#[derive(Clone, Debug)]
struct BankShape {
    first: usize,
    dims: Vec<(i64, i64)>,
    port: u64,
}

impl<'a> Machine<'a> {
    pub(super) fn new(isa: &'a Isa) -> Machine<'a> {
        let mut count = 0usize;
        let banks = isa.buffer_ids().map(|id| {
            let banks = isa.timing.banks(id)?;
            let of_dim = |(dim, &n): (usize, &u64)| {
                let length = i64::try_from(banks.length(isa.buffer(id), dim)).unwrap_or(i64::MAX);
                (length, i64::try_from(n).unwrap_or(1))
            };
            let dims: Vec<(i64, i64)> = banks.count.iter().enumerate().map(of_dim).take(DIMS).collect();
            let first = count;
            count += dims.iter().map(|d| usize::try_from(d.1).unwrap_or(1)).product::<usize>();
            Some(BankShape { first, dims, port: banks.port })
        });
        let banks = banks.collect();
        Machine {
            isa,
            clock: 0,
            units: vec![Unit::default(); isa.timing.queues.len()],
            flights: Vec::new(),
            windows: vec![Vec::new(); count],
            banks,
            steps: 0,
            extrapolates: true,
        }
    }

    /// When all is complete.
    pub(super) fn finished(&self) -> u64 {
        self.units.iter().map(|unit| unit.complete).fold(self.clock, u64::max)
    }

    pub(super) fn run(&mut self, nest: &'a Nest, values: &mut Vec<i64>) {
        match nest {
            Nest::Seq(parts) => parts.iter().for_each(|part| self.run(part, values)),
            Nest::Loop(of) => self.run_loop(of, values),
            Nest::Step(step) => self.step(step, values),
            Nest::Host(cycles) => self.clock = self.clock.saturating_add(*cycles),
            Nest::Fence => self.clock = self.finished(),
        }
    }

    fn step(&mut self, step: &'a Step, values: &[i64]) {
        self.steps += 1;
        let timed = step.queue.and_then(|q| Some((q, *self.isa.timing.queues.get(q)?)));
        let Some((q, queue)) = timed else {
            self.clock = self.finished().saturating_add(step.busy);
            self.flights.clear();
            return;
        };
        if let Some(depth) = queue.depth {
            let waiting = &mut self.units[q].waiting;
            while waiting.len() as u64 >= depth {
                self.clock = self.clock.max(waiting.pop_front().unwrap_or(0));
            }
        }
        self.clock = self.clock.saturating_add(queue.issue);
        let clock = self.clock;
        self.flights.retain(|flight| flight.complete > clock);

        let before = self.units[q].free;
        let mut start = clock.max(before);
        for access in &step.accesses {
            let span = access.span(values);
            for flight in &self.flights {
                if flight.access.memory == access.memory
                    && flight.complete > start
                    && waits(access.kind, flight.access.kind, flight.queue == q)
                    && overlap(&flight.span, &span)
                {
                    start = flight.complete;
                }
            }
        }
        let uses = self.port_use(step, values);
        let longest = uses.iter().map(|u| u.1).fold(step.busy, u64::max);
        let mut end = start.saturating_add(longest);
        if queue.yields {
            end = end.max(self.give_way(&uses, before, start));
        }
        let unit = &mut self.units[q];
        let complete = end.saturating_add(queue.latency).max(unit.complete);
        unit.complete = complete;
        unit.free = if queue.serial { complete } else { end };
        if queue.depth.is_some() {
            unit.waiting.push_back(complete);
        }
        if !queue.yields {
            for (bank, cycles) in uses {
                self.take_port(bank, cycles, complete);
            }
        }
        for access in &step.accesses {
            let span = access.span(values);
            self.flights.push(Flight { queue: q, access, span, complete });
        }
    }

    /// How long an instruction has the ports of the banks that it reads from and writes to, bank by bank. The read of
    /// what it accumulates onto goes with the write.
    fn port_use(&self, step: &Step, values: &[i64]) -> Vec<(usize, u64)> {
        let mut uses: Vec<(usize, u64)> = Vec::new();
        for access in step.accesses.iter().filter(|a| a.kind != Kind::Update) {
            let Some(Some(shape)) = self.banks.get(access.memory) else { continue };
            if shape.port == 0 {
                continue;
            }
            shape.for_each(&access.span(values), |bank, positions| {
                let cycles = positions.saturating_mul(shape.port);
                match uses.iter_mut().find(|u| u.0 == bank) {
                    Some(known) => known.1 = known.1.saturating_add(cycles),
                    None => uses.push((bank, cycles)),
                }
            });
        }
        uses
    }

    /// When an instruction of a unit that yields has had the ports that it needs. The unit was free from `before` on; the
    /// instruction starts at `start`. What took a port before `before` met instructions that were placed already, so this
    /// one pays for it.
    fn give_way(&mut self, uses: &[(usize, u64)], before: u64, start: u64) -> u64 {
        let mut last = start;
        for &(bank, cycles) in uses {
            let Some(windows) = self.windows.get_mut(bank) else { continue };
            let mut end = start.saturating_add(cycles);
            windows.retain_mut(|window| {
                end = end.saturating_add(window.end.min(before).saturating_sub(window.start));
                window.start = window.start.max(start);
                if window.start < end {
                    end = end.saturating_add(window.end.saturating_sub(window.start));
                    return false;
                }
                window.start < window.end
            });
            last = last.max(end);
        }
        last
    }

    /// Takes a bank's port for so many cycles that end at `end`.
    fn take_port(&mut self, bank: usize, cycles: u64, end: u64) {
        let Some(windows) = self.windows.get_mut(bank) else { return };
        if windows.len() == MOST_WINDOWS {
            windows.remove(0);
        }
        windows.push(Window { start: end.saturating_sub(cycles), end });
    }

    /// Everything that decides about the future, relative to the clock, positions left out.
    pub(super) fn signature(&mut self) -> Vec<i64> {
        let clock = self.clock;
        self.flights.retain(|flight| flight.complete > clock);
        let since = |time: u64| time as i64 - clock as i64;
        let mut signature = Vec::with_capacity(64);
        for unit in &mut self.units {
            while unit.waiting.front().is_some_and(|&c| c <= clock) {
                unit.waiting.pop_front();
            }
            signature.extend([since(unit.free).max(0), since(unit.complete).max(0)]);
            signature.extend(unit.waiting.iter().map(|&c| since(c)));
            signature.push(i64::MIN);
        }
        signature.extend(self.flights.iter().map(|f| since(f.complete)));
        let oldest = self.units.iter().map(|unit| unit.free).min().unwrap_or(0).min(clock);
        for windows in &mut self.windows {
            windows.retain(|window| window.end > oldest);
            signature.push(i64::MIN);
            signature.extend(windows.iter().flat_map(|w| [since(w.start), since(w.end)]));
        }
        signature
    }

    /// Leaves out so many rounds of the loop `slot`, which take so many cycles: all is as it was, later and further on.
    pub(super) fn pass(&mut self, slot: usize, rounds: u64, cycles: u64) {
        let later = |time: &mut u64| *time = time.saturating_add(cycles);
        later(&mut self.clock);
        for unit in &mut self.units {
            later(&mut unit.free);
            later(&mut unit.complete);
            unit.waiting.iter_mut().for_each(later);
        }
        let rounds = i64::try_from(rounds).unwrap_or(i64::MAX);
        for flight in &mut self.flights {
            later(&mut flight.complete);
            for ((from, end), (start, _)) in flight.span.iter_mut().zip(&flight.access.dims) {
                let further = start.step(slot).saturating_mul(rounds);
                (*from, *end) = (from.saturating_add(further), end.saturating_add(further));
            }
        }
        for window in self.windows.iter_mut().flatten() {
            later(&mut window.start);
            later(&mut window.end);
        }
    }
}

impl Access {
    fn span(&self, values: &[i64]) -> Box {
        let mut span = [(0, i64::MAX); DIMS];
        for (to, (start, len)) in span.iter_mut().zip(&self.dims) {
            let start = start.at(values);
            *to = (start, start.saturating_add(*len));
        }
        span
    }
}

/// Whether an access waits for an earlier one of the same place. A unit runs its own instructions in order; only what
/// one reads must be complete, unless it accumulates onto it.
fn waits(access: Kind, earlier: Kind, same_unit: bool) -> bool {
    if same_unit {
        access == Kind::Read && earlier == Kind::Write
    } else {
        access == Kind::Write || earlier == Kind::Write
    }
}

fn overlap(a: &Box, b: &Box) -> bool {
    a.iter().zip(b).all(|(a, b)| a.0 < b.1 && b.0 < a.1)
}

impl BankShape {
    /// The banks of a box: the first and the one behind the last per dimension.
    fn range(&self, span: &Box) -> Box {
        let mut range = [(0, 1); DIMS];
        for ((to, &(length, count)), &(from, end)) in range.iter_mut().zip(&self.dims).zip(span) {
            let last = count - 1;
            *to = (from.div_euclid(length).clamp(0, last), (end - 1).div_euclid(length).clamp(0, last) + 1);
        }
        range
    }

    /// Calls with every bank of a box, and how many positions of it lie there.
    fn for_each(&self, span: &Box, mut visit: impl FnMut(usize, u64)) {
        let range = self.range(span);
        let divided = self.dims.iter().any(|d| d.1 > 1);
        let mut at: [i64; DIMS] = range.map(|r| r.0);
        loop {
            let (mut bank, mut positions) = (0i64, 1i64);
            for (dim, &(length, count)) in self.dims.iter().enumerate() {
                bank = bank * count + at[dim];
                if count > 1 || (!divided && dim == 0) {
                    let (from, end) = (at[dim] * length, (at[dim] + 1) * length);
                    positions =
                        positions.saturating_mul((span[dim].1.min(end) - span[dim].0.max(from)).max(0));
                }
            }
            let bank = usize::try_from(bank).unwrap_or(0);
            visit(self.first + bank, u64::try_from(positions).unwrap_or(0));
            let Some(dim) = (0..DIMS).rev().find(|&dim| at[dim] + 1 < range[dim].1) else { return };
            at[dim] += 1;
            for (at, range) in at.iter_mut().zip(&range).skip(dim + 1) {
                *at = range.0;
            }
        }
    }
}
