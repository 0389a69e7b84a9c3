//! Loop program to stitched MLIR. Knows the description only as the text of its instructions.

use super::{HOST_COPY, KERNEL, StitchedModule, syntax};
use act_isa::{Affine, BetaVal, Isa, LoopId, LoopProgram, Program, Space, View};
use std::fmt::Write;

/// Why a loop program is not well-formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    #[error("instruction {0} is not in the description")]
    NoSuchInstruction(u16),
    #[error("{instr}: expected {expected} {what} attributes, got {got}")]
    AttributeCount { instr: String, what: &'static str, expected: usize, got: usize },
    #[error("{instr}: attribute `{attr}` is an address where a position is given, or the other way round")]
    BetaKind { instr: String, attr: String },
    #[error("address in {0:?}, which the program does not have")]
    NoSuchSegment(Space),
    #[error("loop variable {0:?} used outside its loop")]
    UnboundLoop(LoopId),
    #[error("loop {0:?} stands inside itself")]
    NestedLoop(LoopId),
    #[error("a trip count of {0} does not fit 63 bits")]
    TripCount(u64),
    #[error("a host copy between different shapes or element types")]
    HostCopyShape,
}

/// The stitched form of `program`.
///
/// `@kernel(%operand.., %result.., %scratch, %consts, %machine)` of pointers; segment sizes and constants are its
/// attributes. An address is the segment's base plus an affine offset in `i64`.
///
/// # Errors
/// When the program does not fit the description or itself.
pub fn emit(isa: &Isa, program: &LoopProgram) -> Result<StitchedModule, EmitError> {
    let mut emitter = Emitter { isa, program, text: String::new(), next: 0, depth: 2, loops: Vec::new() };
    emitter.program(&program.body)?;
    let body = emitter.text;

    let mut text = String::new();
    let bases = segments(program);
    let arguments: Vec<String> = bases
        .iter()
        .map(|name| format!("%{name}: !llvm.ptr"))
        .chain(["%machine: !llvm.ptr".to_owned()])
        .collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "module attributes {{act.target = \"{}\"}} {{", escape(&isa.name));
    let _ = writeln!(text, "  func.func private @{HOST_COPY}(i64, i64)");
    let _ = writeln!(text, "  func.func @{KERNEL}({}) attributes {{", arguments.join(", "));
    let _ = writeln!(text, "    act.operand_bytes = {},", array(&program.operands));
    let _ = writeln!(text, "    act.result_bytes = {},", array(&program.results));
    let _ = writeln!(text, "    act.scratch_bytes = {} : i64,", program.scratch_bytes);
    let _ = writeln!(text, "    act.consts = {}", dense(&program.consts));
    let _ = writeln!(text, "  }} {{");
    let _ = writeln!(text, "    %zero = arith.constant 0 : i64");
    let _ = writeln!(text, "    %one = arith.constant 1 : i64");
    for name in &bases {
        let _ = writeln!(text, "    %{name}_base = llvm.ptrtoint %{name} : !llvm.ptr to i64");
    }
    text.push_str(&body);
    text.push_str("    return\n  }\n}\n");
    Ok(StitchedModule { text: text.into() })
}

fn segments(program: &LoopProgram) -> Vec<String> {
    let operands = (0..program.operands.len()).map(|k| format!("operand{k}"));
    let results = (0..program.results.len()).map(|k| format!("result{k}"));
    operands.chain(results).chain(["scratch".to_owned(), "consts".to_owned()]).collect()
}

fn array<T: std::fmt::Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(T::to_string).collect();
    if values.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {}>", values.join(", ")) }
}

fn dense(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len() + 32);
    text.push_str("dense<");
    if !bytes.is_empty() {
        text.push_str("\"0x");
        for byte in bytes {
            let _ = write!(text, "{byte:02X}");
        }
        text.push('"');
    }
    let _ = write!(text, "> : tensor<{}xi8>", bytes.len());
    text
}

/// A string as it stands between quotes in MLIR.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\' {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "\\{byte:02X}");
        }
    }
    escaped
}

struct Emitter<'a> {
    isa: &'a Isa,
    program: &'a LoopProgram,
    text: String,
    next: u32,
    depth: usize,
    /// Loops around the current position.
    loops: Vec<LoopId>,
}

impl Emitter<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        let _ = self.text.write_fmt(text);
        self.text.push('\n');
    }

    fn op(&mut self, text: std::fmt::Arguments<'_>) -> String {
        let name = format!("%{}", self.next);
        self.next += 1;
        self.line(format_args!("{name} = {text}"));
        name
    }

    fn program(&mut self, program: &Program) -> Result<(), EmitError> {
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.program(part)),
            Program::For { iv, trip, parallel, body } => self.for_loop(*iv, *trip, *parallel, body),
            Program::Instr { op, alpha, beta } => {
                let instr =
                    self.isa.instrs.get(usize::from(op.0)).ok_or(EmitError::NoSuchInstruction(op.0))?;
                let counts = [
                    ("computational", instr.alpha.len(), alpha.len()),
                    ("addressing", instr.beta.len(), beta.len()),
                ];
                for (what, expected, got) in counts {
                    if expected != got {
                        let instr = instr.name.clone();
                        return Err(EmitError::AttributeCount { instr, what, expected, got });
                    }
                }
                for (k, value) in beta.iter().enumerate() {
                    if matches!(value, BetaVal::Hbm(..)) != instr.is_address(k) {
                        let (instr, attr) = (instr.name.clone(), instr.beta[k].name.clone());
                        return Err(EmitError::BetaKind { instr, attr });
                    }
                }
                let operands = beta.iter().map(|b| self.beta(b)).collect::<Result<Vec<String>, _>>()?;
                self.inline_asm(&syntax::print(self.isa, *op, alpha), &operands);
                Ok(())
            }
            Program::HostCopy { from, to } => self.host_copy(from, to),
            Program::Fence => {
                self.inline_asm(syntax::FENCE, &[]);
                Ok(())
            }
        }
    }

    fn for_loop(&mut self, iv: LoopId, trip: u64, parallel: bool, body: &Program) -> Result<(), EmitError> {
        if self.loops.contains(&iv) {
            return Err(EmitError::NestedLoop(iv));
        }
        let trip = i64::try_from(trip).map_err(|_| EmitError::TripCount(trip))?;
        let end = self.op(format_args!("arith.constant {trip} : i64"));
        self.line(format_args!("scf.for %i{} = %zero to {end} step %one : i64 {{", iv.0));
        self.depth += 1;
        self.loops.push(iv);
        self.program(body)?;
        self.loops.pop();
        self.depth -= 1;
        self.line(format_args!("}}{}", if parallel { " {act.parallel}" } else { "" }));
        Ok(())
    }

    fn inline_asm(&mut self, text: &str, operands: &[String]) {
        let constraints: String = operands.iter().map(|_| "r,").collect();
        let types = vec!["i64"; operands.len()].join(", ");
        let space = if operands.is_empty() { "" } else { " " };
        self.line(format_args!(
            "llvm.inline_asm has_side_effects \"{}\", \"{constraints}~{{memory}}\"{space}{} : ({types}) -> ()",
            escape(text),
            operands.join(", "),
        ));
    }

    /// The copy's shape stands in attributes of the call; every lowering makes its own loops of it.
    fn host_copy(&mut self, from: &View, to: &View) -> Result<(), EmitError> {
        let lens: Vec<u64> = from.dims.iter().map(|d| d.0).collect();
        if from.elem != to.elem || !to.dims.iter().map(|d| d.0).eq(lens.iter().copied()) {
            return Err(EmitError::HostCopyShape);
        }
        let source = self.address(from.space, &from.start)?;
        let target = self.address(to.space, &to.start)?;
        let strides = |view: &View| array(&view.dims.iter().map(|d| d.1).collect::<Vec<_>>());
        self.line(format_args!(
            "func.call @{HOST_COPY}({source}, {target}) {{act.elem_bytes = {} : i64, act.lengths = {}, \
             act.from_strides = {}, act.to_strides = {}}} : (i64, i64) -> ()",
            from.elem.bytes(),
            array(&lens),
            strides(from),
            strides(to),
        ));
        Ok(())
    }

    fn beta(&mut self, beta: &BetaVal) -> Result<String, EmitError> {
        match beta {
            BetaVal::Int(affine) => self.affine(affine, None),
            BetaVal::Hbm(space, affine) => self.address(*space, affine),
        }
    }

    fn address(&mut self, space: Space, offset: &Affine) -> Result<String, EmitError> {
        let base = match space {
            Space::Operand(k) if usize::from(k) < self.program.operands.len() => format!("%operand{k}_base"),
            Space::Result(k) if usize::from(k) < self.program.results.len() => format!("%result{k}_base"),
            Space::Scratch => "%scratch_base".to_owned(),
            Space::Consts => "%consts_base".to_owned(),
            Space::Operand(_) | Space::Result(_) => return Err(EmitError::NoSuchSegment(space)),
        };
        self.affine(offset, Some(base))
    }

    /// `base + c0 + Σ coefficient · loop variable`.
    fn affine(&mut self, affine: &Affine, base: Option<String>) -> Result<String, EmitError> {
        let mut sum = base;
        for &(iv, k) in &affine.ivs {
            if !self.loops.contains(&iv) {
                return Err(EmitError::UnboundLoop(iv));
            }
            let term = if k == 1 {
                format!("%i{}", iv.0)
            } else {
                let factor = self.op(format_args!("arith.constant {k} : i64"));
                self.op(format_args!("arith.muli %i{}, {factor} : i64", iv.0))
            };
            sum = Some(self.add(sum, term));
        }
        if affine.c0 != 0 || sum.is_none() {
            let constant = self.op(format_args!("arith.constant {} : i64", affine.c0));
            sum = Some(self.add(sum, constant));
        }
        Ok(sum.unwrap_or_default())
    }

    fn add(&mut self, sum: Option<String>, term: String) -> String {
        match sum {
            None => term,
            Some(sum) => self.op(format_args!("arith.addi {sum}, {term} : i64")),
        }
    }
}
