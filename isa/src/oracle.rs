//! The oracle: executes assembly and loop programs exactly as the description says (ACT paper, appendix A): slice the
//! operands, compute g(α) with the reference evaluator, put the result back. Slow, checks every access, and knows
//! nothing of how the code came about.

mod counters;
mod fault;
mod memory;
#[cfg(test)]
mod tests;

pub use counters::{Counters, Profile};
pub use fault::{Fault, FaultKind};

use crate::assembly::{Assembly, AttrVal, BetaVal};
use crate::expr::{Env, Expr};
use crate::model::{AttrKind, BufferId, BufferSlice, InstrId, Isa, Slice};
use crate::program::{Affine, LoopId, LoopProgram, Program, Space, View};
use act_hlo::{Graph, Literal, Shape};
use memory::{Memory, Window, saturate};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What an instruction does for one α.
struct Concrete {
    graph: Graph,
    alpha: Vec<Option<i64>>,
    profile: Profile,
}

/// By instruction, attributes and, for instructions that depend on registers which change, the registers' values.
type ConcreteInstrs = BTreeMap<(InstrId, Vec<AttrVal>, Vec<i64>), Arc<Concrete>>;

/// Executes programs of one description; concrete instructions are kept from run to run.
pub struct Oracle<'a> {
    isa: &'a Isa,
    /// Whether the instruction depends on registers that some instruction changes.
    varies: Vec<bool>,
    strict: bool,
    /// Says when a run is to end early.
    ends: Option<&'a (dyn Fn() -> bool + Sync)>,
    concrete: Mutex<ConcreteInstrs>,
}

/// A location in one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Segment(Space),
    Buffer(BufferId),
}

/// The state of one invocation: buffers poisoned, operands and constants read-only.
pub struct Machine<'a> {
    oracle: &'a Oracle<'a>,
    buffers: Vec<Memory>,
    operands: Vec<Memory>,
    results: Vec<Memory>,
    scratch: Memory,
    consts: Memory,
    loops: Vec<(LoopId, i64)>,
    /// The control registers now.
    registers: Vec<i64>,
    counters: Counters,
    /// Per buffer and access dimension: end of the slices accessed so far, in elements.
    extents: Vec<Vec<u64>>,
    /// Instructions and host copies executed.
    executed: u64,
}

impl<'a> Oracle<'a> {
    pub fn new(isa: &'a Isa) -> Oracle<'a> {
        let mutable = isa.mutable_registers();
        let varies = isa.instrs.iter().map(|i| !i.registers_mentioned().is_disjoint(&mutable)).collect();
        Oracle { isa, varies, strict: false, ends: None, concrete: Mutex::default() }
    }

    /// Also finds what only happens to work: a load of bytes of main memory, by an instruction or the host, that an
    /// instruction stored with no fence in between, unless the description calls main memory `ordered`. On real
    /// hardware the store may still be under way.
    #[must_use]
    pub fn strict(self) -> Oracle<'a> {
        Oracle { strict: true, ..self }
    }

    /// Ends runs with [`FaultKind::Stopped`] once `ends` says so; it is asked before every instruction and iteration.
    #[must_use]
    pub fn until(self, ends: &'a (dyn Fn() -> bool + Sync)) -> Oracle<'a> {
        Oracle { ends: Some(ends), ..self }
    }

    /// Runs a loop program; every result is given its size and its bytes.
    ///
    /// # Errors
    /// The first fault: wrong operands, an access out of bounds or of bytes never written, a requirement violated.
    pub fn run(
        &self,
        program: &LoopProgram,
        operands: &[&[u8]],
        results: &mut [Vec<u8>],
    ) -> Result<Counters, Fault> {
        let before =
            |what| Fault { number: 0, instr: "before the first".to_owned(), buffer: String::new(), what };
        for (what, expected, got) in [
            ("operands", program.operands.len(), operands.len()),
            ("results", program.results.len(), results.len()),
        ] {
            if expected != got {
                return Err(before(FaultKind::Count { what, expected, got }));
            }
        }
        for (index, (&expected, bytes)) in program.operands.iter().zip(operands).enumerate() {
            let got = bytes.len() as u64;
            if got != expected {
                return Err(before(FaultKind::OperandSize { index, expected, got }));
            }
        }
        let mut machine = self.machine(operands, &program.results, program.scratch_bytes, &program.consts);
        machine.execute(&program.body)?;
        let (counters, data) = machine.finish();
        results.iter_mut().zip(data).for_each(|(result, data)| *result = data);
        Ok(counters)
    }

    /// Runs straight-line assembly; the results keep the sizes they come with.
    ///
    /// # Errors
    /// As [`Oracle::run`].
    pub fn run_assembly(
        &self,
        assembly: &Assembly,
        operands: &[&[u8]],
        results: &mut [Vec<u8>],
    ) -> Result<Counters, Fault> {
        self.run(&assembly.to_program(operands, results), operands, results)
    }

    /// A machine in its initial state, for stepping by hand or for values that lie on chip.
    pub fn machine(&self, operands: &[&[u8]], results: &[u64], scratch: u64, consts: &[u8]) -> Machine<'_> {
        let buffer = |b: &crate::Buffer| {
            let bytes = Shape::new(b.elem, [b.access.as_slice(), b.unit.as_slice()].concat()).bytes();
            match &b.init {
                None => Memory::poisoned(bytes),
                Some(value) => Memory::filled(bytes, value.bytes()),
            }
        };
        Machine {
            oracle: self,
            buffers: self.isa.buffers.iter().map(buffer).collect(),
            operands: operands.iter().map(|data| Memory::known(data)).collect(),
            results: results.iter().map(|&bytes| Memory::poisoned(bytes)).collect(),
            scratch: Memory::poisoned(scratch),
            consts: Memory::known(consts),
            loops: Vec::new(),
            registers: self.isa.register_values(),
            counters: Counters::default(),
            extents: self.isa.buffers.iter().map(|b| vec![0; b.access.len()]).collect(),
            executed: 0,
        }
    }

    fn concrete(
        &self,
        op: InstrId,
        alpha: &[AttrVal],
        registers: &[i64],
    ) -> Result<Arc<Concrete>, FaultKind> {
        let varies = self.varies.get(usize::from(op.0)).copied().unwrap_or(false);
        let key = (op, alpha.to_vec(), if varies { registers.to_vec() } else { Vec::new() });
        let mut known = self.concrete.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&key) {
            return Ok(Arc::clone(found));
        }
        let instr = self.isa.instrs.get(usize::from(op.0)).ok_or(FaultKind::NoSuchInstruction)?;
        let made = Arc::new(Concrete {
            graph: instr.instantiate_with(self.isa, alpha, registers)?,
            alpha: instr.alpha_env(alpha)?,
            profile: instr.profile_with(self.isa, alpha, registers)?,
        });
        known.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

impl Assembly {
    /// The assembly as a loop program without loops.
    pub fn to_program(&self, operands: &[&[u8]], results: &[Vec<u8>]) -> LoopProgram {
        let instr =
            |i: &crate::AsmInstr| Program::Instr { op: i.op, alpha: i.alpha.clone(), beta: i.beta.clone() };
        LoopProgram {
            body: Program::Seq(self.instrs.iter().map(instr).collect()),
            operands: operands.iter().map(|o| o.len() as u64).collect(),
            results: results.iter().map(|r| r.len() as u64).collect(),
            scratch_bytes: self.scratch_bytes,
            consts: self.consts.clone(),
        }
    }
}

impl Machine<'_> {
    /// Executes a program on the present state.
    ///
    /// # Errors
    /// As [`Oracle::run`].
    pub fn execute(&mut self, program: &Program) -> Result<(), Fault> {
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.execute(part)),
            Program::For { iv, trip, body, .. } => {
                for step in 0..*trip {
                    self.goes_on("a loop")?;
                    self.loops.push((*iv, i64::try_from(step).unwrap_or(i64::MAX)));
                    let done = self.execute(body);
                    self.loops.pop();
                    done?;
                }
                Ok(())
            }
            Program::Instr { op, alpha, beta } => {
                let isa = self.oracle.isa;
                let name = || isa.instrs.get(usize::from(op.0)).map_or("?", |i| i.name.as_str());
                self.goes_on(name())?;
                let done = self.instr(*op, alpha, beta);
                done.map_err(|(buffer, what)| self.fault(name(), buffer, what))?;
                self.executed += 1;
                Ok(())
            }
            Program::HostCopy { from, to } => {
                let done = self.host_copy(from, to);
                done.map_err(|(buffer, what)| self.fault("host_copy", buffer, what))?;
                self.executed += 1;
                Ok(())
            }
            Program::Fence => {
                self.results.iter_mut().chain([&mut self.scratch]).for_each(Memory::fence);
                Ok(())
            }
        }
    }

    fn goes_on(&self, at: &str) -> Result<(), Fault> {
        let ends = self.oracle.ends.is_some_and(|ends| ends());
        if ends { Err(self.fault(at, String::new(), FaultKind::Stopped)) } else { Ok(()) }
    }

    /// The counters so far, and the bytes of the results.
    pub fn finish(mut self) -> (Counters, Vec<Vec<u8>>) {
        self.counters.unwritten_result_bytes = self.results.iter().map(Memory::unwritten).sum();
        for (buffer, extents) in self.oracle.isa.buffers.iter().zip(&self.extents) {
            let dims = extents.iter().chain(&buffer.unit).copied().collect::<Vec<u64>>();
            let bytes = Shape::new(buffer.elem, dims).bytes();
            if bytes > 0 {
                self.counters.peak_bytes.insert(buffer.name.clone(), bytes);
            }
        }
        (self.counters, self.results.into_iter().map(Memory::into_data).collect())
    }

    /// The value of a control register now.
    pub fn register(&self, name: &str) -> Option<i64> {
        let at = self.oracle.isa.registers.iter().position(|(n, _)| n == name)?;
        self.registers.get(at).copied()
    }

    /// Puts a value of type `elem[len ++ unit]` into a buffer.
    ///
    /// # Errors
    /// A place outside the buffer, or a value of another type.
    pub fn set_slot(&mut self, buf: BufferId, start: &[i64], value: &Literal) -> Result<(), Fault> {
        let done = self.slot(buf, start, value.shape()).and_then(|window| {
            let memory = self.buffers.get_mut(usize::from(buf.0)).ok_or(FaultKind::Type)?;
            memory.write(&window, value.bytes())
        });
        done.map_err(|what| self.fault("set_slot", self.buffer_name(buf), what))
    }

    /// The value of type `shape` at a place of a buffer.
    ///
    /// # Errors
    /// As [`Machine::set_slot`], and bytes never written.
    pub fn slot_value(&self, buf: BufferId, start: &[i64], shape: &Shape) -> Result<Literal, Fault> {
        let value = self.slot(buf, start, shape).and_then(|window| {
            let memory = self.buffers.get(usize::from(buf.0)).ok_or(FaultKind::Type)?;
            Literal::from_bytes(shape.clone(), memory.read(&window)?).map_err(|_| FaultKind::Type)
        });
        value.map_err(|what| self.fault("slot_value", self.buffer_name(buf), what))
    }

    fn fault(&self, instr: &str, buffer: String, what: FaultKind) -> Fault {
        Fault { number: self.executed, instr: instr.to_owned(), buffer, what }
    }

    fn buffer_name(&self, buf: BufferId) -> String {
        self.oracle.isa.buffers.get(usize::from(buf.0)).map_or_else(String::new, |b| b.name.clone())
    }

    fn affine(&self, value: &Affine) -> Result<i64, FaultKind> {
        let loop_value = |iv| self.loops.iter().rev().find(|(l, _)| *l == iv).map(|(_, v)| *v);
        value.eval(loop_value).ok_or(FaultKind::Address)
    }

    fn memory(&self, location: &Location) -> Result<&Memory, FaultKind> {
        let found = match location {
            Location::Buffer(buf) => self.buffers.get(usize::from(buf.0)),
            Location::Segment(Space::Operand(k)) => self.operands.get(usize::from(*k)),
            Location::Segment(Space::Result(k)) => self.results.get(usize::from(*k)),
            Location::Segment(Space::Scratch) => Some(&self.scratch),
            Location::Segment(Space::Consts) => Some(&self.consts),
        };
        found.ok_or(FaultKind::NoSuchSegment)
    }

    fn read(&self, location: &Location, window: &Window) -> Result<Vec<u8>, FaultKind> {
        let memory = self.memory(location)?;
        let bytes = memory.read(window)?;
        match memory.waiting(window) {
            Some((offset, store)) => Err(FaultKind::Unfenced { offset, store }),
            None => Ok(bytes),
        }
    }

    fn write(&mut self, location: &Location, window: &Window, bytes: &[u8]) -> Result<(), FaultKind> {
        let memory = match location {
            Location::Buffer(buf) => self.buffers.get_mut(usize::from(buf.0)),
            Location::Segment(Space::Operand(_) | Space::Consts) => return Err(FaultKind::ReadOnly),
            Location::Segment(Space::Result(k)) => self.results.get_mut(usize::from(*k)),
            Location::Segment(Space::Scratch) => Some(&mut self.scratch),
        };
        memory.ok_or(FaultKind::NoSuchSegment)?.write(window, bytes)
    }

    /// Bytes of main memory now wait for a fence.
    fn note_store(&mut self, location: &Location, window: &Window) {
        let number = self.executed;
        let memory = match location {
            Location::Segment(Space::Result(k)) => self.results.get_mut(usize::from(*k)),
            Location::Segment(Space::Scratch) => Some(&mut self.scratch),
            Location::Segment(Space::Operand(_) | Space::Consts) | Location::Buffer(_) => None,
        };
        if let Some(memory) = memory {
            memory.note_store(window, number);
        }
    }

    fn location_name(&self, location: &Location) -> String {
        match location {
            Location::Segment(space) => space.to_string(),
            Location::Buffer(buf) => self.buffer_name(*buf),
        }
    }

    fn instr(&mut self, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> Result<(), (String, FaultKind)> {
        let nowhere = |what: FaultKind| (String::new(), what);
        let oracle = self.oracle;
        let concrete = oracle.concrete(op, alpha, &self.registers).map_err(nowhere)?;
        let instr = oracle.isa.instr(op);
        if beta.len() != instr.beta.len() {
            let (expected, got) = (instr.beta.len(), beta.len());
            return Err(nowhere(FaultKind::Count { what: "addressing attributes", expected, got }));
        }
        let mut values = Vec::with_capacity(beta.len());
        let mut spaces = Vec::with_capacity(beta.len());
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
                    return Err(nowhere(FaultKind::BetaKind {
                        attr: attr(),
                        expected: "a position on chip",
                    }));
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
        let before = self.registers.clone();
        let env = Env { alpha: &concrete.alpha, beta: &values, registers: &before };
        for (index, require) in instr.requires.iter().enumerate() {
            if require.eval(env) != Ok(true) {
                return Err(nowhere(FaultKind::Requirement { index }));
            }
        }

        // All reads come before all writes: an operand may be the slice that is written.
        let mut operands = Vec::with_capacity(instr.inputs.len());
        for (slice, &param) in instr.inputs.iter().zip(concrete.graph.params()) {
            let (location, window) = self.place(slice, env, &spaces)?;
            let bytes = self.read(&location, &window);
            let bytes = bytes.map_err(|what| (self.location_name(&location), what))?;
            let value = Literal::from_bytes(concrete.graph.shape(param).clone(), bytes);
            operands.push(value.map_err(|_| (self.location_name(&location), FaultKind::Type))?);
        }
        let values = act_hlo::eval(&concrete.graph, &operands).map_err(|e| nowhere(e.into()))?;
        let mut updates = Vec::with_capacity(instr.updates.len());
        for (register, value) in &instr.updates {
            let slot = usize::from(*register);
            let name = || oracle.isa.registers.get(slot).map_or_else(String::new, |r| r.0.clone());
            let value =
                value.eval(env).map_err(|error| nowhere(FaultKind::Update { register: name(), error }))?;
            updates.push((slot, value));
        }
        let places = instr.outputs.iter().map(|slice| self.place(slice, env, &spaces));
        let places = places.collect::<Result<Vec<_>, _>>()?;
        for (k, (location, window)) in places.iter().enumerate().skip_while(|_| places.len() < 2) {
            let inside = self.memory(location).and_then(|memory| memory.check(window));
            inside.map_err(|what| (self.location_name(location), what))?;
            let clash = |(other, theirs): &(Location, Window)| other == location && theirs.meets(window);
            if places[..k].iter().any(clash) {
                return Err((self.location_name(location), FaultKind::OverlappingOutputs { output: k }));
            }
        }
        for ((location, window), value) in places.into_iter().zip(&values) {
            self.write(&location, &window, value.bytes())
                .map_err(|what| (self.location_name(&location), what))?;
            if oracle.strict && !oracle.isa.hbm.ordered {
                self.note_store(&location, &window);
            }
        }
        for (slot, value) in updates {
            if let Some(register) = self.registers.get_mut(slot) {
                *register = value;
            }
        }
        instr.inputs.iter().chain(&instr.outputs).for_each(|slice| self.note_extent(slice, env));
        self.counters.count(&concrete.profile);
        Ok(())
    }

    /// Widens the used part of a buffer by a slice that was accessed.
    fn note_extent(&mut self, slice: &Slice, env: Env<'_>) {
        let Slice::OnChip(BufferSlice { buffer, start, len }) = slice else { return };
        let Some(extents) = self.extents.get_mut(usize::from(buffer.0)) else { return };
        let value = |e: &Expr| e.eval(env).ok().and_then(|v| u64::try_from(v).ok()).unwrap_or(0);
        for (extent, (start, len)) in extents.iter_mut().zip(start.iter().zip(len)) {
            if value(len) > 0 {
                *extent = (*extent).max(value(start) + value(len));
            }
        }
    }

    /// Where a slice lies.
    fn place(
        &self,
        slice: &Slice,
        env: Env<'_>,
        spaces: &[Option<Space>],
    ) -> Result<(Location, Window), (String, FaultKind)> {
        let isa = self.oracle.isa;
        let eval = |e: &Expr, buffer: &str| e.eval(env).map_err(|_| (buffer.to_owned(), FaultKind::Address));
        match slice {
            Slice::Hbm(hbm) => {
                let name = &isa.hbm.name;
                let mut space = None;
                hbm.start.for_each_leaf(&mut |leaf| {
                    if let Expr::Beta(k) = leaf {
                        space = space.or(spaces.get(usize::from(*k)).copied().flatten());
                    }
                });
                let space = space.ok_or_else(|| (name.clone(), FaultKind::NoSuchSegment))?;
                let start = eval(&hbm.start, name)?;
                if !start.unsigned_abs().is_multiple_of(isa.hbm.align) {
                    return Err((space.to_string(), FaultKind::Misaligned { start, align: isa.hbm.align }));
                }
                let mut dims = Vec::with_capacity(hbm.dims.len());
                for (len, stride) in &hbm.dims {
                    let len = u64::try_from(eval(len, name)?).map_err(|_| (name.clone(), FaultKind::Type))?;
                    dims.push((len, eval(stride, name)?));
                }
                Ok((Location::Segment(space), Window { start, dims, width: 1 }))
            }
            Slice::OnChip(BufferSlice { buffer, start, len }) => {
                let name = self.buffer_name(*buffer);
                let start = start.iter().map(|e| eval(e, &name)).collect::<Result<Vec<i64>, _>>()?;
                let mut dims = Vec::with_capacity(len.len());
                for len in len {
                    dims.push(u64::try_from(eval(len, &name)?).map_err(|_| (name.clone(), FaultKind::Type))?);
                }
                let window = self.box_window(*buffer, &start, &dims).map_err(|what| (name, what))?;
                Ok((Location::Buffer(*buffer), window))
            }
        }
    }

    /// The bytes of a slot that holds a value of type `shape`.
    fn slot(&self, buf: BufferId, start: &[i64], shape: &Shape) -> Result<Window, FaultKind> {
        let buffer = self.oracle.isa.buffers.get(usize::from(buf.0)).ok_or(FaultKind::Type)?;
        let access = buffer.access.len();
        let fits = shape.elem == buffer.elem
            && shape.rank() == access + buffer.unit.len()
            && shape.dims[access..] == buffer.unit[..];
        if !fits {
            return Err(FaultKind::Type);
        }
        self.box_window(buf, start, &shape.dims[..access])
    }

    /// A box of a buffer, checked against its bounds and alignment dimension by dimension.
    fn box_window(&self, buf: BufferId, start: &[i64], len: &[u64]) -> Result<Window, FaultKind> {
        let buffer = self.oracle.isa.buffers.get(usize::from(buf.0)).ok_or(FaultKind::Type)?;
        if start.len() != buffer.access.len() || len.len() != buffer.access.len() {
            return Err(FaultKind::Type);
        }
        let shape = Shape::new(buffer.elem, [buffer.access.as_slice(), buffer.unit.as_slice()].concat());
        let width = buffer.elem.bytes();
        let strides = shape.row_major_strides();
        let mut offset = 0i64;
        for (dim, ((&start, &len), &size)) in start.iter().zip(len).zip(&buffer.access).enumerate() {
            let end = i128::from(start) + i128::from(len);
            if start < 0 || end > i128::from(size) {
                return Err(FaultKind::OutOfSlots { dim, start, end: saturate(end), size });
            }
            let align = buffer.align.get(dim).copied().unwrap_or(1);
            if !(start as u64).is_multiple_of(align) {
                return Err(FaultKind::Misaligned { start, align });
            }
            // Bounded by the buffer's size, which fits.
            offset += start * (strides[dim] * width) as i64;
        }
        let lens = len.iter().chain(&buffer.unit);
        let dims = lens.zip(&strides).map(|(&len, &stride)| (len, (stride * width) as i64)).collect();
        Ok(Window { start: offset, dims, width })
    }

    fn host_copy(&mut self, from: &View, to: &View) -> Result<(), (String, FaultKind)> {
        let lens = |view: &View| view.dims.iter().map(|d| d.0).collect::<Vec<u64>>();
        if from.elem != to.elem || lens(from) != lens(to) {
            return Err((String::new(), FaultKind::CopyShape));
        }
        let window = |machine: &Machine<'_>, view: &View| {
            let start = machine.affine(&view.start).map_err(|what| (view.space.to_string(), what))?;
            Ok(Window { start, dims: view.dims.clone(), width: view.elem.bytes() })
        };
        let (source, target) = (window(self, from)?, window(self, to)?);
        let bytes = self.read(&Location::Segment(from.space), &source);
        let bytes = bytes.map_err(|what| (from.space.to_string(), what))?;
        self.write(&Location::Segment(to.space), &target, &bytes)
            .map_err(|what| (to.space.to_string(), what))?;
        self.counters.host_copy_bytes = self.counters.host_copy_bytes.saturating_add(bytes.len() as u64);
        Ok(())
    }
}
