//! How an instruction is handed to the device: RISC-V instruction words with two operand words, inline assembly, calls
//! of a kernel language. Data, and its evaluation for given attributes. Knows no assembler and no compiler.

use crate::AttrVal;
use crate::expr::{Env, EvalExprError, Expr};
use crate::model::Instr;
use std::fmt::Write;

/// One command to the device; an instruction emits its encodings in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    Insn(Insn),
    Text { dialect: Dialect, text: Template, clobbers: Vec<String> },
}

/// What a text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Inline assembly of RISC-V.
    Riscv,
    /// Inline assembly of x86-64 in AT&T syntax.
    X86,
    /// A statement of a kernel language.
    Call,
}

/// A RISC-V instruction of R type whose two source registers carry the operands (`.insn r`); rd is x0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insn {
    /// 7, 3 and 7 bits.
    pub opcode: u8,
    pub funct3: u8,
    pub funct7: u8,
    /// Fields of the 64-bit operand words. They do not overlap; bits without a field are 0.
    pub rs1: Vec<Field>,
    pub rs2: Vec<Field>,
}

/// Bits `at .. at + width` of an operand word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub value: FieldValue,
    pub at: u8,
    pub width: u8,
    /// Two's complement; otherwise the value is not negative.
    pub signed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    Int(Expr),
    /// Bits of a fixed f32.
    F32(u32),
    /// Bits of an f32 attribute, by position in alpha.
    F32Attr(u16),
}

/// Text with holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(pub Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// The value as text; in inline assembly an address of main memory is a memory operand instead.
    Value(Expr),
    /// In inline assembly: a register that holds the value.
    InRegister(Expr),
    /// In a call: the segment of main memory that the value, an address, lies in.
    Segment(Expr),
    /// In a call: the value, addresses counted from the beginning of their segment.
    Offset(Expr),
    F32Attr(u16),
}

/// Values of an instruction's attributes; addresses of main memory are absolute.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    pub alpha: &'a [AttrVal],
    pub beta: &'a [i64],
    pub registers: &'a [i64],
}

/// An evaluated encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// The instruction word with rs1 = a0 (x10) and rs2 = a1 (x11), and the values of these registers.
    Insn { word: u32, rs1: u64, rs2: u64 },
    /// `$0`, `$1`, .. in inline assembly stand for the operands, `$$` for a dollar sign, as in LLVM. A call has none.
    Text { text: String, operands: Vec<AsmOperand> },
}

/// What an operand of inline assembly is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsmOperand {
    /// The memory at an address.
    Memory(i64),
    Register(i64),
}

/// Why an encoding has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{0}")]
    Expr(#[from] EvalExprError),
    #[error("attribute {0} is no f32")]
    NoF32(u16),
    #[error("only an address of main memory in a loop program has a segment, and only a call names it")]
    NoSegment,
    #[error("{value} does not fit {width} {}bits at {at} of {operand}", if *signed { "signed " } else { "" })]
    Overflow { operand: &'static str, at: u8, width: u8, signed: bool, value: i64 },
}

impl Field {
    /// Smallest and largest value that fits.
    pub fn range(&self) -> (i128, i128) {
        let width = u32::from(self.width.min(64));
        if self.signed {
            (-(1i128 << width.saturating_sub(1)), (1i128 << width.saturating_sub(1)) - 1)
        } else {
            (0, (1i128 << width) - 1)
        }
    }

    pub(crate) fn bits(
        &self,
        operand: &'static str,
        env: Env<'_>,
        alpha: &[AttrVal],
    ) -> Result<u64, EncodeError> {
        let value = match &self.value {
            FieldValue::Int(e) => e.eval(env)?,
            FieldValue::F32(bits) => i64::from(*bits),
            FieldValue::F32Attr(k) => i64::from(f32_bits(alpha, *k)?),
        };
        let (low, high) = self.range();
        if i128::from(value) < low || i128::from(value) > high {
            let Field { at, width, signed, .. } = *self;
            return Err(EncodeError::Overflow { operand, at, width, signed, value });
        }
        let mask = if self.width >= 64 { u64::MAX } else { (1 << self.width) - 1 };
        Ok((value as u64 & mask).checked_shl(u32::from(self.at)).unwrap_or(0))
    }
}

fn f32_bits(alpha: &[AttrVal], k: u16) -> Result<u32, EncodeError> {
    match alpha.get(usize::from(k)) {
        Some(AttrVal::F32(bits)) => Ok(*bits),
        _ => Err(EncodeError::NoF32(k)),
    }
}

impl Insn {
    /// The instruction word for given source registers (RISC-V unprivileged ISA, R type: funct7, rs2, rs1, funct3, rd,
    /// opcode from bit 31 down).
    pub fn word(&self, rs1: u8, rs2: u8) -> u32 {
        let bits = |value: u8, mask: u8, at: u32| u32::from(value & mask) << at;
        bits(self.funct7, 0x7f, 25)
            | bits(rs2, 0x1f, 20)
            | bits(rs1, 0x1f, 15)
            | bits(self.funct3, 7, 12)
            | bits(self.opcode, 0x7f, 0)
    }

    /// For GNU as and LLVM: `.insn r 0x7b, 3, 2, x0, a0, a1`.
    pub fn text(&self, rs1: &str, rs2: &str) -> String {
        format!(".insn r {:#x}, {}, {}, x0, {rs1}, {rs2}", self.opcode, self.funct3, self.funct7)
    }
}

impl Encoding {
    /// The encoding for given attributes.
    ///
    /// # Errors
    /// A value that does not fit its field, or an expression without a value.
    pub fn evaluate(&self, instr: &Instr, operands: Operands<'_>) -> Result<Encoded, EncodeError> {
        let ints: Vec<Option<i64>> = operands.alpha.iter().map(|v| v.as_int()).collect();
        let beta: Vec<Option<i64>> = operands.beta.iter().copied().map(Some).collect();
        let env = Env { alpha: &ints, beta: &beta, registers: operands.registers };
        match self {
            Encoding::Insn(insn) => {
                let word = |name, fields: &[Field]| {
                    fields.iter().try_fold(0, |word, f| {
                        Ok::<_, EncodeError>(word | f.bits(name, env, operands.alpha)?)
                    })
                };
                let (rs1, rs2) = (word("rs1", &insn.rs1)?, word("rs2", &insn.rs2)?);
                Ok(Encoded::Insn { word: insn.word(10, 11), rs1, rs2 })
            }
            Encoding::Text { dialect, text, .. } => {
                let mut out = String::new();
                let mut bound = Vec::new();
                let inline = *dialect != Dialect::Call;
                for piece in &text.0 {
                    match piece {
                        Piece::Text(text) if inline => out.push_str(&text.replace('$', "$$")),
                        Piece::Text(text) => out.push_str(text),
                        Piece::F32Attr(k) => {
                            let _ = write!(out, "{}", AttrVal::F32(f32_bits(operands.alpha, *k)?));
                        }
                        Piece::Value(e) if inline && is_address(e, instr) => {
                            let _ = write!(out, "${}", bound.len());
                            bound.push(AsmOperand::Memory(e.eval(env)?));
                        }
                        Piece::InRegister(e) if inline => {
                            let _ = write!(out, "${}", bound.len());
                            bound.push(AsmOperand::Register(e.eval(env)?));
                        }
                        Piece::Value(e) | Piece::InRegister(e) => {
                            let _ = write!(out, "{}", e.eval(env)?);
                        }
                        Piece::Segment(_) | Piece::Offset(_) => return Err(EncodeError::NoSegment),
                    }
                }
                Ok(Encoded::Text { text: out, operands: bound })
            }
        }
    }

    /// The language it is written in.
    pub fn dialect(&self) -> Dialect {
        match self {
            Encoding::Insn(_) => Dialect::Riscv,
            Encoding::Text { dialect, .. } => *dialect,
        }
    }
}

/// Whether an address of main memory occurs.
pub(crate) fn is_address(e: &Expr, instr: &Instr) -> bool {
    let mut found = false;
    e.for_each_leaf(&mut |leaf| found |= matches!(leaf, Expr::Beta(k) if instr.is_address(usize::from(*k))));
    found
}
