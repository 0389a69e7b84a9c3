//! A loop program executed on terms: every iteration with its addresses, every instruction by its description, as the
//! oracle does it on numbers. What depends on an order that nothing enforces is a fault. Knows no tiles and no plan of the
//! compiler's.

use super::RegionSpec;
use super::algebra::Algebra;
use super::budget::{Budget, Spent};
use super::memory::{Hazard, Iterations, Memory, Moment, Parallel, Unordered, offsets};
use super::tensor::{TermError, TermGraph};
use super::term::Term;
use act_hlo::{ElemType, Shape};
use act_isa::{
    Affine, AttrKind, AttrVal, BetaVal, BufferId, BufferSlice, Env, Expr, FaultKind, HbmWindow,
    InstantiateError, Instr, InstrId, Isa, LoopId, LoopProgram, Program, Slice, Space, View,
};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Why execution ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    /// The program is wrong whatever the data.
    #[error("{0}")]
    Fault(Box<Trouble>),
    #[error("{0}")]
    Term(TermError),
    #[error(transparent)]
    Spent(#[from] Spent),
    /// A result element whose last value is another than expected.
    #[error("another result")]
    Differs,
    #[error("{0}")]
    Unsupported(String),
}

impl Stop {
    fn of(error: TermError) -> Stop {
        match error {
            TermError::Spent(spent) => Stop::Spent(spent),
            other => Stop::Term(other),
        }
    }
}

/// A fault and where it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Number of the instruction, from 1.
    pub number: Moment,
    pub instr: String,
    pub place: String,
    /// The loops around it and their counters.
    pub loops: Vec<(LoopId, u64)>,
    pub what: String,
    /// Whether executing instruction by instruction shows it too.
    pub sequential: bool,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "instruction {} ({})", self.number, self.instr)?;
        for (iv, value) in &self.loops {
            write!(f, ", {iv} = {value}")?;
        }
        if !self.place.is_empty() {
            write!(f, ", {}", self.place)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What a run of the same program showed, and what the results have to be.
pub(super) struct Watch {
    pub(super) results: Vec<WatchedResult>,
}

pub(super) struct WatchedResult {
    pub(super) elem: ElemType,
    /// Of every byte, who wrote it last.
    pub(super) last: Vec<Moment>,
    /// Of the first byte of every element, what the element has to be; nothing else.
    pub(super) expected: Vec<Term>,
}

/// What an instruction does for one choice of attributes.
struct Concrete {
    graph: TermGraph,
    alpha: Vec<Option<i64>>,
}

/// Values of addressing attributes, and the segments of those that are addresses.
struct Addresses {
    values: Vec<Option<i64>>,
    spaces: Vec<Option<Space>>,
}

type Cached = HashMap<(InstrId, Vec<AttrVal>, Vec<i64>), Rc<Concrete>>;

enum Location {
    Operand(u16),
    Consts,
    Scratch,
    Result(u16),
    Buffer(BufferId),
}

/// The state of an execution.
pub(super) struct TermMachine<'a> {
    isa: &'a Isa,
    program: &'a LoopProgram,
    algebra: &'a mut Algebra,
    /// Element types of the operands' segments.
    operand_elems: Vec<ElemType>,
    buffers: Vec<Memory>,
    results: Vec<Memory>,
    scratch: Memory,
    registers: Vec<i64>,
    register_written: Vec<Moment>,
    mentioned: Vec<BTreeSet<u16>>,
    varies: Vec<bool>,
    concrete: Cached,
    /// Of the program's nodes, by address: the program stays where it is. Only those that no register changes.
    of_node: HashMap<usize, Rc<Concrete>>,
    /// Results that end the run when they come out otherwise.
    watch: Option<&'a Watch>,
    loops: Vec<(LoopId, i64)>,
    iterations: Iterations,
    now: Moment,
    budget: Budget<'a>,
}

impl<'a> TermMachine<'a> {
    /// The state before the first instruction.
    ///
    /// # Errors
    /// Operands that terms are not made of.
    pub(super) fn new(
        isa: &'a Isa,
        spec: &RegionSpec<'_>,
        program: &'a LoopProgram,
        algebra: &'a mut Algebra,
        budget: Budget<'a>,
    ) -> Result<TermMachine<'a>, Stop> {
        let operand_elems = spec.operand_elems(program.operands.len()).map_err(Stop::Unsupported)?;
        let total =
            program.results.iter().chain([&program.scratch_bytes]).fold(0u64, |n, b| n.saturating_add(*b));
        const MOST_BYTES: u64 = 1 << 27;
        if total > MOST_BYTES {
            return Err(Stop::Unsupported(format!("{total} bytes of results and scratch")));
        }
        let buffer = |b: &act_isa::Buffer| {
            let count = Shape::new(b.elem, [b.access.as_slice(), b.unit.as_slice()].concat()).elements();
            let value = b.init.as_ref().map_or(Term::POISON, |v| Term::constant(super::algebra::bits_of(v)));
            Memory::new(count as usize, value, false)
        };
        let mutable = isa.mutable_registers();
        let mentioned: Vec<BTreeSet<u16>> = isa.instrs.iter().map(Instr::registers_mentioned).collect();
        Ok(TermMachine {
            isa,
            program,
            algebra,
            operand_elems,
            buffers: isa.buffers.iter().map(buffer).collect(),
            results: program.results.iter().map(|&n| Memory::new(n as usize, Term::POISON, true)).collect(),
            scratch: Memory::new(program.scratch_bytes as usize, Term::POISON, true),
            registers: isa.register_values(),
            register_written: vec![0; isa.registers.len()],
            varies: mentioned.iter().map(|m| !m.is_disjoint(&mutable)).collect(),
            mentioned,
            concrete: HashMap::new(),
            of_node: HashMap::new(),
            watch: None,
            loops: Vec::new(),
            iterations: Iterations::default(),
            now: 0,
            budget,
        })
    }

    /// Ends the run as soon as a result differs for good.
    pub(super) fn watched(mut self, watch: Option<&'a Watch>) -> TermMachine<'a> {
        self.watch = watch;
        self
    }

    /// Runs the program. Returns how many instructions it executed.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn run(&mut self) -> Result<Moment, Stop> {
        let program = self.program;
        self.execute(&program.body)?;
        Ok(self.now)
    }

    /// The bytes of a result and who wrote each; the program has that many results.
    pub(super) fn result(&self, index: usize) -> &Memory {
        &self.results[index]
    }

    /// The value that bytes are.
    pub(super) fn value(&mut self, elem: ElemType, bytes: &[Term]) -> Term {
        self.algebra.of_bytes(elem, bytes)
    }

    /// The next instruction; moments are numbered as far as their type goes.
    fn tick(&mut self) -> Result<(), Stop> {
        let limit = Moment::MAX.into();
        self.now = self.now.checked_add(1).ok_or(Spent::Steps { limit })?;
        Ok(())
    }

    fn execute(&mut self, program: &Program) -> Result<(), Stop> {
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.execute(part)),
            Program::For { iv, trip, parallel, body } => {
                let begin = self.now + 1;
                if *parallel {
                    self.iterations.running.push(Parallel { iv: *iv, begin, iteration: begin });
                }
                for step in 0..*trip {
                    if let Some(running) = self.iterations.running.last_mut().filter(|_| *parallel) {
                        running.iteration = self.now + 1;
                    }
                    self.budget.take(1)?;
                    self.loops.push((*iv, i64::try_from(step).unwrap_or(i64::MAX)));
                    let done = self.execute(body);
                    self.loops.pop();
                    done?;
                }
                if *parallel {
                    self.iterations.finish(self.now + 1);
                }
                Ok(())
            }
            Program::Instr { op, alpha, beta } => {
                self.tick()?;
                let node = std::ptr::from_ref(program) as usize;
                let concrete = match self.of_node.get(&node) {
                    Some(known) => Rc::clone(known),
                    None => self.concrete(node, *op, alpha)?,
                };
                self.instr(&concrete, *op, beta)
            }
            Program::HostCopy { from, to } => {
                self.tick()?;
                self.host_copy(from, to)
            }
            Program::Fence => {
                let now = self.now;
                self.results.iter_mut().chain([&mut self.scratch]).for_each(|memory| memory.fence(now));
                Ok(())
            }
        }
    }

    fn trouble(&self, instr: &str, place: String, what: String, sequential: bool) -> Stop {
        let loops = self.loops.iter().map(|&(iv, value)| (iv, value as u64)).collect();
        Stop::Fault(Box::new(Trouble {
            number: self.now,
            instr: instr.to_owned(),
            place,
            loops,
            what,
            sequential,
        }))
    }

    fn fault(&self, instr: &str, place: &str, what: FaultKind) -> Stop {
        self.trouble(instr, place.to_owned(), what.to_string(), true)
    }

    fn hazard(&self, instr: &str, location: &Location, hazard: Hazard) -> Stop {
        let Hazard::Fault { offset, kind } = hazard;
        let sequential =
            matches!(kind, Unordered::NeverWritten | Unordered::Unfenced { .. } | Unordered::Overlap);
        let unit = if matches!(location, Location::Buffer(_)) { "element" } else { "byte" };
        let what = format!("{unit} {offset} {kind}");
        self.trouble(instr, self.name(location), what, sequential)
    }

    fn name(&self, location: &Location) -> String {
        match location {
            Location::Operand(k) => Space::Operand(*k).to_string(),
            Location::Result(k) => Space::Result(*k).to_string(),
            Location::Scratch => Space::Scratch.to_string(),
            Location::Consts => Space::Consts.to_string(),
            Location::Buffer(b) => {
                self.isa.buffers.get(usize::from(b.0)).map_or_else(String::new, |b| b.name.clone())
            }
        }
    }

    fn affine(&self, value: &Affine) -> Result<i64, FaultKind> {
        let loop_value = |iv| self.loops.iter().rev().find(|(l, _)| *l == iv).map(|(_, v)| *v);
        value.eval(loop_value).ok_or(FaultKind::Address)
    }

    fn concrete(&mut self, node: usize, op: InstrId, alpha: &[AttrVal]) -> Result<Rc<Concrete>, Stop> {
        let varies = self.varies.get(usize::from(op.0)).copied().unwrap_or(false);
        let key = (op, alpha.to_vec(), if varies { self.registers.clone() } else { Vec::new() });
        let made = match self.concrete.get(&key) {
            Some(known) => Rc::clone(known),
            None => {
                let made = Rc::new(self.instantiated(op, alpha)?);
                self.concrete.insert(key, Rc::clone(&made));
                made
            }
        };
        if !varies {
            self.of_node.insert(node, Rc::clone(&made));
        }
        Ok(made)
    }

    fn instantiated(&self, op: InstrId, alpha: &[AttrVal]) -> Result<Concrete, Stop> {
        let Some(instr) = self.isa.instrs.get(usize::from(op.0)) else {
            return Err(self.fault("?", "", FaultKind::NoSuchInstruction));
        };
        let made = instr
            .instantiate_with(self.isa, alpha, &self.registers)
            .and_then(|graph| Ok((graph, instr.alpha_env(alpha)?)));
        let (graph, alpha) =
            made.map_err(|e: InstantiateError| self.fault(&instr.name, "", FaultKind::from(e)))?;
        Ok(Concrete { graph: TermGraph::new(graph).map_err(Stop::Term)?, alpha })
    }

    fn instr(&mut self, concrete: &Concrete, op: InstrId, beta: &[BetaVal]) -> Result<(), Stop> {
        let isa = self.isa;
        let instr = isa.instr(op);
        let nowhere = |machine: &Self, what: FaultKind| machine.fault(&instr.name, "", what);
        if beta.len() != instr.beta.len() {
            let (expected, got) = (instr.beta.len(), beta.len());
            return Err(nowhere(self, FaultKind::Count { what: "addressing attributes", expected, got }));
        }
        for register in &self.mentioned[usize::from(op.0)] {
            let by = self.register_written.get(usize::from(*register)).copied().unwrap_or(0);
            let loops =
                self.iterations.running.iter().find(|l| by > 0 && (l.begin..l.iteration).contains(&by));
            if let Some(running) = loops {
                let what = format!("depends on a register that another iteration of {} changed", running.iv);
                return Err(self.trouble(&instr.name, String::new(), what, false));
            }
        }
        let Addresses { values, spaces } = self.attributes(instr, beta)?;
        let registers = self.registers.clone();
        let env = Env { alpha: &concrete.alpha, beta: &values, registers: &registers };
        for (index, require) in instr.requires.iter().enumerate() {
            if require.eval(env) != Ok(true) {
                return Err(nowhere(self, FaultKind::Requirement { index }));
            }
        }
        // All reads come before all writes.
        let mut inputs = Vec::with_capacity(instr.inputs.len());
        for slice in &instr.inputs {
            let (location, window) = self.place(instr, slice, env, &spaces)?;
            let loaded = self.load(&location, &window);
            inputs.push(loaded.map_err(|hazard| self.hazard(&instr.name, &location, hazard))?);
        }
        let elements: u64 = inputs.iter().map(|x| x.len() as u64).sum();
        self.budget.take(elements + 1)?;
        let values = concrete.graph.eval(self.algebra, &mut self.budget, inputs).map_err(Stop::of)?;
        let mut updates = Vec::with_capacity(instr.updates.len());
        for (register, value) in &instr.updates {
            let slot = usize::from(*register);
            let name = || isa.registers.get(slot).map_or_else(String::new, |r| r.0.clone());
            let value = value.eval(env);
            updates.push((
                slot,
                value.map_err(|error| nowhere(self, FaultKind::Update { register: name(), error }))?,
            ));
        }
        for (slice, value) in instr.outputs.iter().zip(&values) {
            let (location, window) = self.place(instr, slice, env, &spaces)?;
            if window.len() != value.len() {
                return Err(self.fault(&instr.name, &self.name(&location), FaultKind::Type));
            }
            self.store(&instr.name, &location, &window, value, !isa.hbm.ordered)?;
        }
        for (slot, value) in updates {
            if let Some(register) = self.registers.get_mut(slot) {
                *register = value;
                self.register_written[slot] = self.now;
            }
        }
        Ok(())
    }

    /// Values of the addressing attributes, and the segments of those that are addresses.
    fn attributes(&self, instr: &Instr, beta: &[BetaVal]) -> Result<Addresses, Stop> {
        let nowhere = |what: FaultKind| self.fault(&instr.name, "", what);
        let (mut values, mut spaces) = (Vec::with_capacity(beta.len()), Vec::with_capacity(beta.len()));
        for (k, (value, decl)) in beta.iter().zip(&instr.beta).enumerate() {
            let attr = || decl.name.clone();
            let (space, offset) = match (value, instr.is_address(k)) {
                (BetaVal::Hbm(space, offset), true) => (Some(*space), offset),
                (BetaVal::Int(offset), false) => (None, offset),
                (_, true) => {
                    let expected = "an address of main memory";
                    return Err(nowhere(FaultKind::BetaKind { attr: attr(), expected }));
                }
                (_, false) => {
                    let expected = "a position on chip";
                    return Err(nowhere(FaultKind::BetaKind { attr: attr(), expected }));
                }
            };
            let value = self.affine(offset).map_err(nowhere)?;
            if let AttrKind::Int { min, max } = decl.kind
                && !(min..=max).contains(&value)
            {
                return Err(nowhere(FaultKind::BetaRange { attr: attr(), value, min, max }));
            }
            values.push(Some(value));
            spaces.push(space);
        }
        Ok(Addresses { values, spaces })
    }

    /// Where a slice lies, element by element.
    fn place(
        &self,
        instr: &Instr,
        slice: &Slice,
        env: Env<'_>,
        spaces: &[Option<Space>],
    ) -> Result<(Location, Vec<usize>), Stop> {
        match slice {
            Slice::Hbm(window) => self.window(instr, window, env, spaces),
            Slice::OnChip(slice) => self.slice(instr, slice, env),
        }
    }

    fn window(
        &self,
        instr: &Instr,
        window: &HbmWindow,
        env: Env<'_>,
        spaces: &[Option<Space>],
    ) -> Result<(Location, Vec<usize>), Stop> {
        let hbm = &self.isa.hbm;
        let fault = |place: &str, what: FaultKind| self.fault(&instr.name, place, what);
        let mut space = None;
        window.start.for_each_leaf(&mut |leaf| {
            if let Expr::Beta(k) = leaf {
                space = space.or(spaces.get(usize::from(*k)).copied().flatten());
            }
        });
        let space = space.ok_or_else(|| fault(&hbm.name, FaultKind::NoSuchSegment))?;
        let eval = |e: &Expr| e.eval(env).map_err(|_| fault(&hbm.name, FaultKind::Address));
        let start = eval(&window.start)?;
        if !start.unsigned_abs().is_multiple_of(hbm.align) {
            return Err(fault(&space.to_string(), FaultKind::Misaligned { start, align: hbm.align }));
        }
        let mut dims = Vec::with_capacity(window.dims.len());
        for (len, stride) in &window.dims {
            let len = u64::try_from(eval(len)?).map_err(|_| fault(&hbm.name, FaultKind::Type))?;
            dims.push((len, eval(stride)?));
        }
        let location = self.segment(space).ok_or_else(|| fault(&hbm.name, FaultKind::NoSuchSegment))?;
        let found = offsets(start, &dims, 1, self.size(&location));
        Ok((location, found.map_err(|what| fault(&space.to_string(), what))?))
    }

    fn slice(
        &self,
        instr: &Instr,
        slice: &BufferSlice,
        env: Env<'_>,
    ) -> Result<(Location, Vec<usize>), Stop> {
        let location = Location::Buffer(slice.buffer);
        let name = self.name(&location);
        let fault = |what: FaultKind| self.fault(&instr.name, &name, what);
        let buffer =
            self.isa.buffers.get(usize::from(slice.buffer.0)).ok_or_else(|| fault(FaultKind::Type))?;
        if slice.start.len() != buffer.access.len() || slice.len.len() != buffer.access.len() {
            return Err(fault(FaultKind::Type));
        }
        let shape = Shape::new(buffer.elem, [buffer.access.as_slice(), buffer.unit.as_slice()].concat());
        let strides = shape.row_major_strides();
        let mut at = 0i64;
        let mut dims = Vec::with_capacity(shape.rank());
        for (dim, (start, len)) in slice.start.iter().zip(&slice.len).enumerate() {
            let eval = |e: &Expr| e.eval(env).map_err(|_| fault(FaultKind::Address));
            let (start, len) = (eval(start)?, eval(len)?);
            let len = u64::try_from(len).map_err(|_| fault(FaultKind::Type))?;
            let size = buffer.access[dim];
            let end = i128::from(start) + i128::from(len);
            if start < 0 || end > i128::from(size) {
                let end = i64::try_from(end).unwrap_or(i64::MAX);
                return Err(fault(FaultKind::OutOfSlots { dim, start, end, size }));
            }
            let align = buffer.align.get(dim).copied().unwrap_or(1);
            if !(start as u64).is_multiple_of(align) {
                return Err(fault(FaultKind::Misaligned { start, align }));
            }
            at += start * strides[dim] as i64;
            dims.push((len, strides[dim] as i64));
        }
        dims.extend(
            buffer.unit.iter().zip(&strides[buffer.access.len()..]).map(|(&len, &s)| (len, s as i64)),
        );
        let found = offsets(at, &dims, 1, shape.elements());
        Ok((location, found.map_err(fault)?))
    }

    fn segment(&self, space: Space) -> Option<Location> {
        let (index, count) = match space {
            Space::Operand(k) => (k, self.program.operands.len()),
            Space::Result(k) => (k, self.program.results.len()),
            Space::Scratch | Space::Consts => (0, 1),
        };
        (usize::from(index) < count).then_some(match space {
            Space::Operand(k) => Location::Operand(k),
            Space::Result(k) => Location::Result(k),
            Space::Scratch => Location::Scratch,
            Space::Consts => Location::Consts,
        })
    }

    fn size(&self, location: &Location) -> u64 {
        match location {
            Location::Operand(k) => self.program.operands.get(usize::from(*k)).copied().unwrap_or(0),
            Location::Consts => self.program.consts.len() as u64,
            Location::Scratch => self.scratch.len() as u64,
            Location::Result(k) => self.results.get(usize::from(*k)).map_or(0, |r| r.len() as u64),
            Location::Buffer(b) => self.buffers.get(usize::from(b.0)).map_or(0, |b| b.len() as u64),
        }
    }

    fn load(&mut self, location: &Location, offsets: &[usize]) -> Result<Vec<Term>, Hazard> {
        let memory = match location {
            Location::Operand(k) => {
                let elem = self.operand_elems[usize::from(*k)];
                return Ok(operand_bytes(self.algebra, *k, elem, offsets));
            }
            Location::Consts => {
                let byte =
                    |&at: &usize| Term::constant(self.program.consts.get(at).copied().unwrap_or(0).into());
                return Ok(offsets.iter().map(byte).collect());
            }
            Location::Scratch => &mut self.scratch,
            Location::Result(k) => &mut self.results[usize::from(*k)],
            Location::Buffer(b) => &mut self.buffers[usize::from(b.0)],
        };
        memory.load(offsets, self.now, &self.iterations)
    }

    fn store(
        &mut self,
        instr: &str,
        location: &Location,
        offsets: &[usize],
        values: &[Term],
        pending: bool,
    ) -> Result<(), Stop> {
        let memory = match location {
            Location::Operand(_) | Location::Consts => {
                return Err(self.fault(instr, &self.name(location), FaultKind::ReadOnly));
            }
            Location::Scratch => &mut self.scratch,
            Location::Result(k) => &mut self.results[usize::from(*k)],
            Location::Buffer(b) => &mut self.buffers[usize::from(b.0)],
        };
        let stored = memory.store(offsets, values, self.now, &self.iterations, pending);
        stored.map_err(|hazard| self.hazard(instr, location, hazard))?;
        match (self.watch, location) {
            (Some(watch), Location::Result(k)) => self.compare_last(watch, usize::from(*k), offsets),
            _ => Ok(()),
        }
    }

    /// Compares the first element among the stored ones that is not written again.
    fn compare_last(&mut self, watch: &Watch, k: usize, offsets: &[usize]) -> Result<(), Stop> {
        let Some(result) = watch.results.get(k) else { return Ok(()) };
        let width = result.elem.bytes() as usize;
        let is_last =
            |at: usize| result.last.get(at..at + width).is_some_and(|b| b.iter().all(|&m| m <= self.now));
        let of_element = |&&at: &&usize| result.expected.get(at).is_some_and(|&term| term != Term::POISON);
        let Some(&at) = offsets.iter().filter(of_element).find(|&&at| is_last(at)) else { return Ok(()) };
        let value = self.algebra.of_bytes(result.elem, &self.results[k].terms[at..at + width]);
        if value == result.expected[at] { Ok(()) } else { Err(Stop::Differs) }
    }

    fn host_copy(&mut self, from: &View, to: &View) -> Result<(), Stop> {
        const NAME: &str = "host_copy";
        let mut sides = Vec::with_capacity(2);
        for view in [from, to] {
            let place = view.space.to_string();
            let start = self.affine(&view.start).map_err(|what| self.fault(NAME, &place, what))?;
            let location =
                self.segment(view.space).ok_or_else(|| self.fault(NAME, &place, FaultKind::NoSuchSegment))?;
            let found = offsets(start, &view.dims, view.elem.bytes(), self.size(&location));
            sides.push((location, found.map_err(|what| self.fault(NAME, &place, what))?));
        }
        let (target, target_offsets) = sides.pop().unwrap_or((Location::Consts, Vec::new()));
        let (source, source_offsets) = sides.pop().unwrap_or((Location::Consts, Vec::new()));
        self.budget.take(source_offsets.len() as u64)?;
        let loaded = self.load(&source, &source_offsets);
        let values = loaded.map_err(|hazard| self.hazard(NAME, &source, hazard))?;
        self.store(NAME, &target, &target_offsets, &values, false)
    }
}

/// Bytes of an operand: of its elements, which are what the region computes from.
fn operand_bytes(algebra: &Algebra, operand: u16, elem: ElemType, offsets: &[usize]) -> Vec<Term> {
    let width = elem.bytes() as usize;
    let mut out = Vec::with_capacity(offsets.len());
    let mut bytes: Vec<Term> = Vec::with_capacity(width);
    let mut held = usize::MAX;
    for &at in offsets {
        let element = at / width;
        if element != held {
            bytes.clear();
            algebra.bytes(elem, algebra.leaf(u64::from(operand), element as u64), |byte| bytes.push(byte));
            held = element;
        }
        out.push(bytes[at % width]);
    }
    out
}
