//! The description as written: names unresolved, every part with its place.

use super::diagnostic::Span;
use act_hlo::ElemType;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Shl,
    Shr,
    Compare(crate::expr::Relation),
    And,
    Or,
}

/// A number or a condition; which of them it is, the lowering finds out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub kind: TermKind,
    pub span: Span,
    /// Height of the tree, kept small so that no later recursion runs out of stack.
    pub depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TermKind {
    Int(i128),
    Name(String),
    Negate(Box<Term>),
    Not(Box<Term>),
    Binary(BinaryOp, Box<Term>, Box<Term>),
    Call(Name, Vec<Term>),
    In(Box<Term>, Vec<Term>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttrAst {
    pub name: Name,
    pub kind: AttrKindAst,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum AttrKindAst {
    Plain,
    /// `min..max`, both inclusive; without an end the range is open.
    Range(Term, Option<Term>),
    /// `{0, 1, 4}`: these values and no others.
    Set(Vec<Term>, Span),
    F32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SliceAst {
    pub memory: Name,
    pub kind: SliceKindAst,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum SliceKindAst {
    /// `[start :+ len, ..]`
    Box(Vec<(Term, Term)>),
    /// `[start; len by stride, ..]`
    Window(Term, Vec<(Term, Option<Term>)>),
}

/// A constant as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConstantAst {
    Term(Term),
    Float(f64, Span),
    /// Bits of a float, or an integer.
    Hex(u128, Span),
    List(Vec<ConstantAst>, Span),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgsAst {
    Operands(Vec<Name>),
    Parameter(Term),
    Constant(ConstantAst),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum OptionAst {
    Terms(Vec<Term>),
    /// `{[start:limit:stride], ..}`
    Ranges(Vec<(Term, Term, Option<Term>)>),
    Word(Term),
    /// `init=-inf`
    Constant(ConstantAst),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct StmtAst {
    pub root: bool,
    pub name: Name,
    pub elem: ElemType,
    pub dims: Vec<Term>,
    pub op: Name,
    pub args: ArgsAst,
    pub options: Vec<(Name, OptionAst)>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StepAst {
    Stmt(StmtAst),
    If { cond: Term, then: Vec<StepAst>, otherwise: Vec<StepAst> },
    Repeat { name: Name, count: Term, body: Vec<StepAst> },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComputationAst {
    pub steps: Vec<StepAst>,
    pub returns: Option<Vec<Name>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum EncodingAst {
    /// opcode, funct3, funct7 and the fields of the operand words.
    Insn {
        numbers: Vec<Term>,
        rs1: Vec<FieldAst>,
        rs2: Vec<FieldAst>,
    },
    Text {
        dialect: crate::encoding::Dialect,
        text: (String, Span),
        clobbers: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldAst {
    pub value: FieldValueAst,
    pub at: Term,
    pub width: Term,
    pub signed: bool,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldValueAst {
    Term(Term),
    /// `bits(..)`
    Bits(ConstantAst),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoopAst {
    pub name: Name,
    pub host: bool,
    pub numbers: Vec<(Name, Term)>,
    pub texts: Vec<(Name, (String, Span))>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct InstrAst {
    pub name: Name,
    pub alpha: Vec<AttrAst>,
    pub beta: Vec<AttrAst>,
    pub inputs: Vec<SliceAst>,
    pub outputs: Vec<SliceAst>,
    pub requires: Vec<Term>,
    pub updates: Vec<(Name, Term)>,
    pub cost: Option<Term>,
    pub unit: Option<Name>,
    pub asm: Option<(String, Span)>,
    pub computation: Option<ComputationAst>,
    pub encodings: Vec<EncodingAst>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct BufferAst {
    pub name: Name,
    pub elem: ElemType,
    pub access: Vec<Term>,
    pub unit: Vec<Term>,
    pub align: Option<(Vec<Term>, Span)>,
    pub nospill: bool,
    pub init: Option<(ConstantAst, Span)>,
}

/// What of the device side an encoding is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DevicePart {
    Prologue,
    Epilogue,
    Fence,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Isa(Name),
    Hbm { name: Name, size: Term, scale: u64, align: Option<Term>, ordered: bool },
    Buffer(BufferAst),
    Register(Name, Term),
    Const(Name, Term),
    Units(Vec<Name>),
    Device(DevicePart, EncodingAst, Span),
    Loop(LoopAst),
    Timing(super::timing::TimingAst),
    Instr(Box<InstrAst>),
}
