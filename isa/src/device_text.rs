//! A loop program as text for its device: every instruction in its encodings, the loops in the description's construct or
//! in the assembly of the processor that feeds the device, prologue, fences and epilogue around them. Which language the
//! text is in follows from the encodings. Knows no assembler and no compiler of kernels.

mod call;
mod host;
mod riscv;
mod value;
mod x86;

use crate::assembly::{AttrVal, BetaVal, print_instr};
use crate::device::LoopConstruct;
use crate::encoding::{Dialect, EncodeError, Encoding};
use crate::expr::Env;
use crate::model::{AttrKind, Instr, InstrId, Isa};
use crate::program::{Affine, LoopId, LoopProgram, Program};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Why a program cannot be written for the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceTextError {
    #[error(
        "instruction `{instr}` of {target} has no {language}encoding; give it one in its description, such as `{example}`"
    )]
    NoEncoding { target: String, instr: String, language: &'static str, example: String },
    #[error(
        "the program has loops, and the kernel language of {target} gets none; add to its description `loop NAME {{ \
         begin \"for {{iv}} in range({{trip}}):\" }}` as its loops are written"
    )]
    NoLoop { target: String },
    #[error("a loop of {trip} rounds, but `{construct}` has at most {max}")]
    Trip { construct: String, trip: u64, max: u64 },
    #[error("loops nest {depth} deep, but `{construct}` at most {max}")]
    Depth { construct: String, depth: u64, max: u64 },
    #[error(
        "the host copies a tensor inside the program, for which a kernel language has no statement: lay the kernel's \
         operands out as the device's loads read them, in whole tiles"
    )]
    HostCopy,
    #[error("no such instruction")]
    NoSuchInstruction,
    #[error("{instr}: {error}")]
    Encode { instr: String, error: EncodeError },
    #[error("{instr}: assembly cannot compute `{what}` of an address")]
    NotAffine { instr: String, what: String },
    #[error("{instr}: its encoding binds more operands than there are registers")]
    Operands { instr: String },
    #[error(
        "the text has more than {limit} bytes: a loop is unrolled whose variable an instruction has as a number"
    )]
    TooLong { limit: usize },
}

/// Bytes beyond which a text is of no use to anybody.
const MAX_BYTES: usize = 1 << 28;

/// The program's text.
///
/// # Errors
/// What the description does not say how to write, or the device cannot do.
pub fn print_device(isa: &Isa, program: &LoopProgram) -> Result<String, DeviceTextError> {
    let context = Context {
        isa,
        dialect: dialect(isa, program)?,
        registers: isa.register_values(),
        loops: Vec::new(),
        bound: BTreeMap::new(),
    };
    match context.dialect {
        Dialect::Call => call::print(context, program),
        Dialect::Riscv => host::print(context, &riscv::Riscv, program),
        Dialect::X86 => host::print(context, &x86::X86, program),
    }
}

/// Whether the device of a description is written to by encodings at all.
pub fn has_encodings(isa: &Isa) -> bool {
    first_dialect(isa).is_some()
}

fn first_dialect(isa: &Isa) -> Option<Dialect> {
    let all = isa.device.prologue.iter().chain(isa.instrs.iter().flat_map(|i| &i.encodings));
    all.map(Encoding::dialect).next()
}

/// The language of a description: that of its first encoding.
fn dialect(isa: &Isa, program: &LoopProgram) -> Result<Dialect, DeviceTextError> {
    first_dialect(isa).ok_or_else(|| {
        let used = first_instr(&program.body).and_then(|op| isa.instrs.get(usize::from(op.0)));
        used.or(isa.instrs.first())
            .map_or(DeviceTextError::NoSuchInstruction, |instr| no_encoding(isa, instr, None))
    })
}

fn first_instr(program: &Program) -> Option<InstrId> {
    match program {
        Program::Seq(parts) => parts.iter().find_map(first_instr),
        Program::For { body, .. } => first_instr(body),
        Program::Instr { op, .. } => Some(*op),
        Program::HostCopy { .. } | Program::Fence => None,
    }
}

fn no_encoding(isa: &Isa, instr: &Instr, dialect: Option<Dialect>) -> DeviceTextError {
    let holes: Vec<String> =
        instr.beta.iter().chain(&instr.alpha).map(|a| format!("{{{}}}", a.name)).collect();
    let name = &instr.name;
    let example = match dialect {
        None | Some(Dialect::Call) => format!("encode call \"{name}({})\"", holes.join(", ")),
        Some(Dialect::X86) => format!("encode x86 \"{name} {}\"", holes.join(", ")),
        Some(Dialect::Riscv) => {
            let mut attrs = instr.beta.iter().chain(&instr.alpha);
            let first = attrs.find(|a| a.kind != AttrKind::F32).map_or("0", |a| a.name.as_str());
            format!(
                "encode riscv insn(opcode 0x7b, funct3 3, funct7 0) {{ rs1 {{ {first} at 0 width 64 }} }}"
            )
        }
    };
    let language = match dialect {
        None => "",
        Some(Dialect::Call) => "`call` ",
        Some(Dialect::X86) => "`x86` ",
        Some(Dialect::Riscv) => "`riscv` ",
    };
    DeviceTextError::NoEncoding { target: isa.name.clone(), instr: name.clone(), language, example }
}

/// What is known where a part of the program is written.
struct Context<'a> {
    isa: &'a Isa,
    dialect: Dialect,
    registers: Vec<i64>,
    /// Enclosing loops that are written as such, outermost first, and their trip counts.
    loops: Vec<(LoopId, u64)>,
    /// Values of the variables of enclosing loops that are unrolled.
    bound: BTreeMap<LoopId, i64>,
}

/// An instruction whose encodings are to be written.
struct Use<'a> {
    instr: &'a Instr,
    encodings: Vec<&'a Encoding>,
    alpha: &'a [AttrVal],
    ints: Vec<Option<i64>>,
    /// Variables of unrolled loops have their values in it.
    beta: Vec<BetaVal>,
    /// As assembly prints it.
    listing: String,
}

impl Use<'_> {
    fn env<'b>(&'b self, registers: &'b [i64]) -> Env<'b> {
        Env { alpha: &self.ints, beta: &[], registers }
    }

    fn fault(&self, error: impl Into<EncodeError>) -> DeviceTextError {
        DeviceTextError::Encode { instr: self.instr.name.clone(), error: error.into() }
    }
}

impl<'a> Context<'a> {
    fn instr(&self, op: InstrId, alpha: &'a [AttrVal], beta: &[BetaVal]) -> Result<Use<'a>, DeviceTextError> {
        let isa = self.isa;
        let instr = isa.instrs.get(usize::from(op.0)).ok_or(DeviceTextError::NoSuchInstruction)?;
        let encodings: Vec<&Encoding> =
            instr.encodings.iter().filter(|e| e.dialect() == self.dialect).collect();
        if encodings.is_empty() {
            return Err(no_encoding(isa, instr, Some(self.dialect)));
        }
        let beta: Vec<BetaVal> = beta
            .iter()
            .map(|value| match value {
                BetaVal::Int(affine) => BetaVal::Int(self.unrolled(affine)),
                BetaVal::Hbm(space, offset) => BetaVal::Hbm(*space, self.unrolled(offset)),
            })
            .collect();
        let listing = print_instr(isa, op, alpha, &beta);
        let ints = alpha.iter().map(|v| v.as_int()).collect();
        Ok(Use { instr, encodings, alpha, ints, beta, listing })
    }

    /// With the variables of unrolled loops replaced; a sum that overflows stays as it is.
    fn unrolled(&self, affine: &Affine) -> Affine {
        let mut out = Affine::constant(affine.c0);
        for &(iv, factor) in &affine.ivs {
            let added = match self.bound.get(&iv) {
                Some(value) => {
                    let sum = value.checked_mul(factor).and_then(|v| out.c0.checked_add(v));
                    sum.map(|sum| out.c0 = sum)
                }
                None => out.add_term(iv, factor),
            };
            if added.is_none() {
                return affine.clone();
            }
        }
        out
    }

    /// Whether the device's loops take one more loop of so many rounds here.
    fn check_loop(&self, construct: &LoopConstruct, trip: u64) -> Result<(), DeviceTextError> {
        let name = || construct.name.clone();
        if let Some(max) = construct.max_trip.filter(|max| trip > *max) {
            return Err(DeviceTextError::Trip { construct: name(), trip, max });
        }
        let depth = self.loops.len() as u64 + 1;
        match construct.max_depth {
            Some(max) if depth > max => Err(DeviceTextError::Depth { construct: name(), depth, max }),
            _ => Ok(()),
        }
    }

    fn trip(&self, iv: LoopId) -> Option<u64> {
        self.loops.iter().find(|(id, _)| *id == iv).map(|(_, trip)| *trip)
    }

    /// An encoding's part of the device side, which has no attributes.
    fn plain<'b>(&self, instr: &'b Instr, encodings: &'b [Encoding]) -> Use<'b> {
        let encodings = encodings.iter().filter(|e| e.dialect() == self.dialect).collect();
        Use { instr, encodings, alpha: &[], ints: Vec::new(), beta: Vec::new(), listing: String::new() }
    }
}

/// An f32 attribute as text.
fn f32_text(used: &Use<'_>, k: u16) -> Result<String, DeviceTextError> {
    match used.alpha.get(usize::from(k)) {
        Some(value @ AttrVal::F32(_)) => Ok(value.to_string()),
        _ => Err(used.fault(EncodeError::NoF32(k))),
    }
}

/// `// operand0: 64 bytes` and its like, behind what begins a comment.
fn segments(comment: &str, program: &LoopProgram, out: &mut String) {
    let mut index = 0;
    let mut line = |name: String, bytes: u64| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{comment}   [{index}] {name}: {bytes} bytes");
        index += 1;
    };
    for (k, &bytes) in program.operands.iter().enumerate() {
        line(format!("operand{k}"), bytes);
    }
    for (k, &bytes) in program.results.iter().enumerate() {
        line(format!("result{k}"), bytes);
    }
    if program.scratch_bytes > 0 {
        line("scratch".to_owned(), program.scratch_bytes);
    }
}
