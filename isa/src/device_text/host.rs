//! Programs in the assembly of the processor that issues the device's instructions: one function of the C calling
//! convention that takes a table of the segments' addresses. Loops, addresses, operand words and the host's copies become
//! the processor's own instructions. Knows no processor: what one needs is an [`Architecture`].

use super::value::{Addresses, Linear, Value};
use super::{Context, DeviceTextError, MAX_BYTES, Use, f32_text, segments};
use crate::device::LoopConstruct;
use crate::encoding::{EncodeError, Encoding, Field, FieldValue, Insn, Piece, Template};
use crate::model::Instr;
use crate::program::{Affine, LoopId, LoopProgram, Program, Space, View};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Label of the function and of the constants behind it.
pub(super) const FUNCTION: &str = "act_kernel";
pub(super) const CONSTANTS: &str = "act_constants";

/// A processor's assembly. Registers that hold operands are numbered by the architecture's pool.
pub(super) trait Architecture {
    /// Most loops within each other that it has counters for.
    fn counters(&self, frame: &Frame) -> u64;
    /// The function's first instructions, behind its label: room and registers for the counters and the table.
    fn enter(&self, frame: &Frame, out: &mut String);
    fn leave(&self, frame: &Frame, out: &mut String);
    /// How the counter of the `depth`-th enclosing loop is written.
    fn counter(&self, frame: &Frame, depth: usize) -> String;
    fn loop_begin(&self, counter: &str, label: &str, out: &mut String);
    fn loop_end(&self, counter: &str, label: &str, trip: u64, out: &mut String);
    /// Registers for operands, least important for the encodings first.
    fn pool(&self) -> &'static [&'static str];
    /// `register = segment + sum of counters times factors + constant`; the segment by its place in the table.
    fn compute(&self, register: &str, value: &Sum, out: &mut String);
    /// Whether a memory operand can have this displacement.
    fn displaces(&self, offset: i64) -> bool;
    fn memory(&self, register: &str, displacement: i64) -> String;
    /// Copies `bytes` (a power of two up to 8) from where one pool register points to where the other does.
    fn copy(&self, from: &str, to: &str, bytes: u64, out: &mut String);
}

/// What the function keeps: known before the first line is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// Loops within each other.
    pub depth: usize,
    /// Registers that encodings change, as they name them.
    pub clobbers: BTreeSet<String>,
}

/// A value to compute, ready for an architecture.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    pub base: Option<Base>,
    /// Counters, as they are written, and their factors.
    pub terms: Vec<(String, i64)>,
    pub constant: i64,
}

/// Where a segment's address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Place in the table of segments.
    Table(usize),
    Constants,
}

pub(super) fn print(
    context: Context<'_>,
    architecture: &dyn Architecture,
    program: &LoopProgram,
) -> Result<String, DeviceTextError> {
    let isa = context.isa;
    let dialect = context.dialect;
    let device = &isa.device;
    let mut frame = Frame { depth: depth(&program.body), clobbers: BTreeSet::new() };
    let own = device.prologue.iter().chain(&device.epilogue).chain(&device.fence);
    for encoding in own.chain(isa.instrs.iter().flat_map(|i| &i.encodings)) {
        if let Encoding::Text { dialect: of, clobbers, .. } = encoding
            && *of == dialect
        {
            frame.clobbers.extend(clobbers.iter().cloned());
        }
    }
    let mut out = format!("# A kernel for {}.\n# void {FUNCTION}(void *const segments[])\n", isa.name);
    segments("#", program, &mut out);
    let _ = write!(out, "    .text\n    .globl {FUNCTION}\n    .type {FUNCTION}, @function\n{FUNCTION}:\n");
    architecture.enter(&frame, &mut out);
    let table = program.operands.len();
    let mut writer = Writer {
        context,
        architecture,
        frame,
        operands: table,
        results: program.results.len(),
        labels: 0,
        out,
    };
    let nothing = Instr::default();
    let prologue = writer.context.plain(&nothing, &device.prologue);
    writer.encodings(&prologue)?;
    writer.nest(&program.body)?;
    let epilogue = writer.context.plain(&nothing, &device.epilogue);
    writer.encodings(&epilogue)?;
    let Writer { frame, mut out, .. } = writer;
    architecture.leave(&frame, &mut out);
    if !program.consts.is_empty() {
        let _ = write!(out, "    .section .rodata\n    .balign 64\n{CONSTANTS}:\n");
        for row in program.consts.chunks(16) {
            let row: Vec<String> = row.iter().map(|byte| format!("{byte:#04x}")).collect();
            let _ = writeln!(out, "    .byte {}", row.join(", "));
        }
    }
    out.push_str("    .section .note.GNU-stack,\"\",@progbits\n");
    Ok(out)
}

/// Loops within each other, those of copies by the host with them.
fn depth(program: &Program) -> usize {
    match program {
        Program::Seq(parts) => parts.iter().map(depth).max().unwrap_or(0),
        Program::For { body, .. } => 1 + depth(body),
        Program::HostCopy { from, .. } => from.dims.len(),
        Program::Instr { .. } | Program::Fence => 0,
    }
}

struct Writer<'a> {
    context: Context<'a>,
    architecture: &'a dyn Architecture,
    frame: Frame,
    /// Segments of each kind in the table.
    operands: usize,
    results: usize,
    labels: usize,
    out: String,
}

impl<'a> Writer<'a> {
    fn nest(&mut self, program: &'a Program) -> Result<(), DeviceTextError> {
        if self.out.len() > MAX_BYTES {
            return Err(DeviceTextError::TooLong { limit: MAX_BYTES });
        }
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.nest(part)),
            Program::For { iv, trip, body, .. } => {
                if self.needs_number(*iv, body)? {
                    for round in 0..i64::try_from(*trip).unwrap_or(i64::MAX) {
                        self.context.bound.insert(*iv, round);
                        self.nest(body)?;
                    }
                    self.context.bound.remove(iv);
                    return Ok(());
                }
                self.in_loop(*iv, *trip, &mut |writer| writer.nest(body))
            }
            Program::Instr { op, alpha, beta } => {
                let used = self.context.instr(*op, alpha, beta)?;
                self.encodings(&used)
            }
            Program::HostCopy { from, to } => {
                self.fence()?;
                self.copy(from, to)?;
                self.fence()
            }
            Program::Fence => self.fence(),
        }
    }

    fn fence(&mut self) -> Result<(), DeviceTextError> {
        let nothing = Instr::default();
        let isa = self.context.isa;
        let fence = self.context.plain(&nothing, &isa.device.fence);
        self.encodings(&fence)
    }

    fn in_loop(
        &mut self,
        iv: LoopId,
        trip: u64,
        body: &mut dyn FnMut(&mut Self) -> Result<(), DeviceTextError>,
    ) -> Result<(), DeviceTextError> {
        if trip == 0 {
            return Ok(());
        }
        let depth = self.context.loops.len();
        let isa = self.context.isa;
        if let Some(construct) = &isa.device.loops {
            self.context.check_loop(construct, trip)?;
            let name = construct.variable_of(iv);
            self.out.push_str(&line(&LoopConstruct::filled(&construct.begin, &name, trip)));
            self.context.loops.push((iv, trip));
            body(self)?;
            self.context.loops.pop();
            self.out.push_str(&line(&LoopConstruct::filled(&construct.end, &name, trip)));
            return Ok(());
        }
        let most = self.architecture.counters(&self.frame);
        if depth as u64 >= most {
            let construct = "the host's loops".to_owned();
            return Err(DeviceTextError::Depth { construct, depth: depth as u64 + 1, max: most });
        }
        let label = format!(".Lact_{}", self.labels);
        self.labels += 1;
        let counter = self.architecture.counter(&self.frame, depth);
        let architecture = self.architecture;
        let _ = writeln!(self.out, "    # for {iv} in 0..{trip}");
        architecture.loop_begin(&counter, &label, &mut self.out);
        self.context.loops.push((iv, trip));
        body(self)?;
        self.context.loops.pop();
        architecture.loop_end(&counter, &label, trip, &mut self.out);
        Ok(())
    }

    /// Whether some encoding in the loop's body has to have the variable's value as a number: in a register's name, in a
    /// field that may be negative, in a value that is not affine.
    fn needs_number(&mut self, iv: LoopId, program: &'a Program) -> Result<bool, DeviceTextError> {
        Ok(match program {
            Program::Seq(parts) => {
                for part in parts {
                    if self.needs_number(iv, part)? {
                        return Ok(true);
                    }
                }
                false
            }
            Program::For { body, .. } => self.needs_number(iv, body)?,
            Program::Instr { op, alpha, beta } => {
                let used = self.context.instr(*op, alpha, beta)?;
                let mut wanted = BTreeSet::new();
                for encoding in &used.encodings {
                    self.numbers(&used, encoding, &mut wanted)?;
                }
                wanted.contains(&iv)
            }
            Program::HostCopy { .. } | Program::Fence => false,
        })
    }

    fn numbers(
        &self,
        used: &Use<'_>,
        encoding: &Encoding,
        wanted: &mut BTreeSet<LoopId>,
    ) -> Result<(), DeviceTextError> {
        let value = |e| {
            let value = Value::of(e, used.env(&self.context.registers), &used.beta, Addresses::Absolute);
            value.map_err(|error| used.fault(error))
        };
        match encoding {
            Encoding::Insn(insn) => {
                for field in insn.rs1.iter().chain(&insn.rs2) {
                    let FieldValue::Int(e) = &field.value else { continue };
                    let value = value(e)?;
                    if field.signed || matches!(value, Value::Operation(..)) {
                        value.loops(wanted);
                    }
                }
            }
            Encoding::Text { text, .. } => {
                for piece in &text.0 {
                    let (Piece::Value(e) | Piece::InRegister(e)) = piece else { continue };
                    let value = value(e)?;
                    let number =
                        matches!(piece, Piece::Value(_)) && !crate::encoding::is_address(e, used.instr);
                    if number || matches!(value, Value::Operation(..)) {
                        value.loops(wanted);
                    }
                }
            }
        }
        Ok(())
    }

    fn encodings(&mut self, used: &Use<'_>) -> Result<(), DeviceTextError> {
        for listed in used.listing.lines() {
            let _ = writeln!(self.out, "    # {listed}");
        }
        for encoding in &used.encodings {
            match encoding {
                Encoding::Insn(insn) => self.insn(used, insn)?,
                Encoding::Text { text, clobbers, .. } => self.template(used, text, clobbers)?,
            }
        }
        Ok(())
    }

    fn insn(&mut self, used: &Use<'_>, insn: &Insn) -> Result<(), DeviceTextError> {
        let mut registers = ["x0"; 2];
        let words = [("rs1", &insn.rs1), ("rs2", &insn.rs2)];
        for ((name, fields), register) in words.into_iter().zip(&mut registers) {
            let word = self.word(used, name, fields)?;
            if word.number() != Some(0) {
                let at = self.architecture.pool().get(usize::from(name == "rs2"));
                let at = *at.ok_or_else(|| DeviceTextError::Operands { instr: used.instr.name.clone() })?;
                let sum = self.sum(&word);
                self.architecture.compute(at, &sum, &mut self.out);
                *register = at;
            }
        }
        let [rs1, rs2] = registers;
        self.out.push_str(&line(&insn.text(rs1, rs2)));
        Ok(())
    }

    /// An operand word: its fields do not overlap and are not negative where they depend on a loop, so it is their sum.
    /// Everything is modulo 2^64.
    fn word(
        &self,
        used: &Use<'_>,
        operand: &'static str,
        fields: &[Field],
    ) -> Result<Linear, DeviceTextError> {
        let mut word = Linear::default();
        for field in fields {
            let env = used.env(&self.context.registers);
            let symbolic = match &field.value {
                FieldValue::Int(e) => {
                    let value = Value::of(e, env, &used.beta, Addresses::Absolute);
                    match value.map_err(|error| used.fault(error))? {
                        Value::Linear(linear) => Some(linear),
                        Value::Operation(..) => return Err(not_affine(used)),
                    }
                }
                FieldValue::F32(_) | FieldValue::F32Attr(_) => None,
            };
            let overflow = |value: i128| {
                let Field { at, width, signed, .. } = *field;
                let value = i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
                used.fault(EncodeError::Overflow { operand, at, width, signed, value })
            };
            match symbolic {
                Some(linear) if linear.number().is_none() => {
                    let (low, high) = field.range();
                    if linear.segment.is_none() {
                        let range = linear.range(|iv| self.context.trip(iv));
                        let (min, max) = range.unwrap_or((i128::MIN, i128::MAX));
                        if min < low || max > high {
                            return Err(overflow(if min < low { min } else { max }));
                        }
                    } else if (field.at, field.width) != (0, 64) {
                        // An address is as wide as a register.
                        return Err(overflow(i128::from(i64::MAX)));
                    }
                    let at = u32::from(field.at);
                    word.segment = word.segment.or(linear.segment);
                    word.affine.c0 = word.affine.c0.wrapping_add(linear.affine.c0.wrapping_shl(at));
                    for (iv, factor) in linear.affine.ivs {
                        let before = word.affine.ivs.iter_mut().find(|(known, _)| *known == iv);
                        let added = factor.wrapping_shl(at);
                        match before {
                            Some((_, sum)) => *sum = sum.wrapping_add(added),
                            None => word.affine.ivs.push((iv, added)),
                        }
                    }
                }
                _ => {
                    let known: Vec<Option<i64>> = used.beta.iter().map(number).collect();
                    let env = crate::Env { beta: &known, ..env };
                    let bits = field.bits(operand, env, used.alpha).map_err(|error| used.fault(error))?;
                    word.affine.c0 = word.affine.c0.wrapping_add(bits as i64);
                }
            }
        }
        Ok(word)
    }

    fn template(
        &mut self,
        used: &Use<'_>,
        template: &Template,
        clobbers: &[String],
    ) -> Result<(), DeviceTextError> {
        let architecture = self.architecture;
        let mut free = architecture.pool().iter().filter(|r| !clobbers.iter().any(|c| names(c, r)));
        // Values in registers already, and where.
        let mut bound: Vec<(Linear, &str)> = Vec::new();
        let mut text = String::new();
        for piece in &template.0 {
            let (e, kind) = match piece {
                Piece::Text(piece) => {
                    text.push_str(piece);
                    continue;
                }
                Piece::F32Attr(k) => {
                    text.push_str(&f32_text(used, *k)?);
                    continue;
                }
                Piece::InRegister(e) => (e, Hole::Register),
                Piece::Value(e) if crate::encoding::is_address(e, used.instr) => (e, Hole::Memory),
                Piece::Value(e) => (e, Hole::Number),
                Piece::Segment(_) | Piece::Offset(_) => return Err(used.fault(EncodeError::NoSegment)),
            };
            let value = Value::of(e, used.env(&self.context.registers), &used.beta, Addresses::Absolute);
            let Value::Linear(mut value) = value.map_err(|error| used.fault(error))? else {
                return Err(not_affine(used));
            };
            if kind == Hole::Number {
                let number = value.number().ok_or_else(|| not_affine(used))?;
                text.push_str(&number.to_string());
                continue;
            }
            let mut displacement = 0;
            if kind == Hole::Memory && architecture.displaces(value.affine.c0) {
                displacement = std::mem::take(&mut value.affine.c0);
            }
            let register = match bound.iter().find(|(known, _)| *known == value) {
                Some((_, register)) => *register,
                None => {
                    let register = *free
                        .next()
                        .ok_or_else(|| DeviceTextError::Operands { instr: used.instr.name.clone() })?;
                    let sum = self.sum(&value);
                    architecture.compute(register, &sum, &mut self.out);
                    bound.push((value, register));
                    register
                }
            };
            text.push_str(&match kind {
                Hole::Memory => architecture.memory(register, displacement),
                _ => register.to_owned(),
            });
        }
        self.out.push_str(&line(&text));
        Ok(())
    }

    fn sum(&self, value: &Linear) -> Sum {
        let base = value.segment.map(|segment| match segment {
            Space::Operand(k) => Base::Table(usize::from(k)),
            Space::Result(k) => Base::Table(self.operands + usize::from(k)),
            Space::Scratch => Base::Table(self.operands + self.results),
            Space::Consts => Base::Constants,
        });
        let terms = value.affine.ivs.iter().map(|&(iv, factor)| (self.counter(iv), factor)).collect();
        Sum { base, terms, constant: value.affine.c0 }
    }

    fn counter(&self, iv: LoopId) -> String {
        match &self.context.isa.device.loops {
            Some(construct) => construct.variable_of(iv),
            None => {
                let depth = self.context.loops.iter().position(|(known, _)| *known == iv).unwrap_or_default();
                self.architecture.counter(&self.frame, depth)
            }
        }
    }

    /// Element by element, in loops of its own.
    fn copy(&mut self, from: &View, to: &View) -> Result<(), DeviceTextError> {
        let _ = writeln!(
            self.out,
            "    # host_copy of {} elements",
            from.dims.iter().map(|d| d.0).product::<u64>()
        );
        let first = self.context.loops.iter().map(|(iv, _)| iv.0 + 1).max().unwrap_or(0);
        let ends: Vec<Linear> = [from, to]
            .into_iter()
            .map(|view| {
                let mut affine = self.context.unrolled(&view.start);
                for (k, &(_, stride)) in (first..).zip(&view.dims) {
                    // Loops of the copy have numbers of their own, so no term is there yet.
                    let _ = affine.add_term(LoopId(k), stride);
                }
                Linear { segment: Some(view.space), affine }
            })
            .collect();
        let trips: Vec<(LoopId, u64)> = (first..).map(LoopId).zip(from.dims.iter().map(|d| d.0)).collect();
        self.copy_loops(&trips, &ends, from.elem.bytes())
    }

    fn copy_loops(
        &mut self,
        trips: &[(LoopId, u64)],
        ends: &[Linear],
        bytes: u64,
    ) -> Result<(), DeviceTextError> {
        if let [(iv, trip), inner @ ..] = trips {
            return self.in_loop(*iv, *trip, &mut |writer| writer.copy_loops(inner, ends, bytes));
        }
        let ([from, to, ..], [source, destination, ..]) = (self.architecture.pool(), ends) else {
            return Ok(());
        };
        for word in (0..bytes).step_by(8) {
            for (register, end) in [(from, source), (to, destination)] {
                let shifted = Affine { c0: end.affine.c0.wrapping_add(word as i64), ..end.affine.clone() };
                let sum = self.sum(&Linear { affine: shifted, ..end.clone() });
                self.architecture.compute(register, &sum, &mut self.out);
            }
            self.architecture.copy(from, to, bytes.min(8), &mut self.out);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hole {
    Memory,
    Register,
    Number,
}

/// Whether a clobber names this register, with or without the sign before it.
fn names(clobber: &str, register: &str) -> bool {
    clobber.trim_start_matches('%') == register.trim_start_matches('%')
}

fn number(value: &crate::BetaVal) -> Option<i64> {
    match value {
        crate::BetaVal::Int(affine) if affine.ivs.is_empty() => Some(affine.c0),
        _ => None,
    }
}

fn not_affine(used: &Use<'_>) -> DeviceTextError {
    DeviceTextError::NotAffine { instr: used.instr.name.clone(), what: used.listing.clone() }
}

/// The lines of a text, indented as assembly is.
fn line(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
