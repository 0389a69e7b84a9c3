//! A case as parsed: names are interned, places kept. Nothing is resolved yet; `check` says what must hold of it.

use super::source::Span;
use std::collections::HashMap;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(pub u32);

/// Names and their numbers.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_text: HashMap<String, Sym>,
    texts: Vec<String>,
}

impl Names {
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.by_text.get(text) {
            return sym;
        }
        let sym = Sym(u32::try_from(self.texts.len()).expect("fewer than 2^32 names"));
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), sym);
        sym
    }

    #[must_use]
    pub fn find(&self, text: &str) -> Option<Sym> {
        self.by_text.get(text).copied()
    }

    #[must_use]
    pub fn text(&self, sym: Sym) -> &str {
        &self.texts[sym.0 as usize]
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Rounds towards minus infinity; the divisor is positive.
    Div,
    /// The remainder that goes with `Div`: never negative.
    Mod,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

/// Functions of the language itself. On integers `Min` and `Max`; on elements all of them, as ideal arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    Add,
    Sub,
    Mul,
    Max,
    Min,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Int(i64),
    Bool(bool),
    /// A parameter, counter, local, or a buffer without dimensions.
    Name(Sym),
    Access(Sym, Vec<Expr>),
    /// A function or an index macro of the case.
    Apply(Sym, Vec<Expr>),
    Builtin(Builtin, Vec<Expr>),
    /// `bv16(e)`: e modulo 2^16.
    Wrap(u32, Box<Expr>),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    #[must_use]
    pub fn int(value: i64, span: Span) -> Expr {
        Expr { kind: ExprKind::Int(value), span }
    }
}

/// What a buffer, a parameter of a function, or a value holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Unbounded integers: counters, parameters, addresses.
    Int,
    Bool,
    /// A register's integer of so many bits, unsigned.
    Bits(u32),
    /// Elements of tensors, about which only functions know anything.
    Elem(Sym),
}

/// Who may write it, and whether it is compared in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read by both programs, written by none.
    Input,
    /// Compared when both programs have ended.
    Output,
    /// State of one program, with unknown content at its start.
    State,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decl {
    pub name: Sym,
    pub role: Role,
    /// Extents; none for a single register.
    pub dims: Vec<Expr>,
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// Counts from `lo` to `hi` by itself: driver code, or an IR's loop.
    Counted,
    /// A map: every iteration sees the state before the loop and its own writes; two must not write one place.
    Parallel,
    /// A hardware loop: runs its body, then ends if `until` holds. `lo..hi` only says what the counter is claimed to do.
    Hardware,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub kind: LoopKind,
    pub label: Option<Sym>,
    pub counter: Sym,
    pub lo: Expr,
    pub hi: Expr,
    /// What registers are at the loop's head, in terms of the counter.
    pub whereby: Vec<Expr>,
    pub until: Option<Expr>,
    pub body: Vec<Stmt>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// A name private to the block it stands in.
    Let(Sym, Expr),
    /// To a buffer's place, a register or a local.
    Assign(Sym, Vec<Expr>, Expr),
    Loop(Box<Loop>),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// A hw_call: one command to the accelerator.
    Call(Sym, Vec<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: Sym,
    /// For a symbolic parameter, its bounds (`lo <= p < hi`); proofs then hold for all of them.
    pub range: Option<(Expr, Expr)>,
    /// The value, for a symbolic parameter the sample that programs are run with.
    pub value: Expr,
    pub span: Span,
}

/// How the bits of an element are read; it matters to concrete runs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElemKind {
    Unsigned,
    Signed,
    /// Sign, exponent of so many bits, mantissa. A value is the bit pattern; random ones are of moderate size.
    Float {
        exponent: u32,
    },
}

/// An element type.
#[derive(Clone, Debug, PartialEq)]
pub struct ElemType {
    pub name: Sym,
    pub kind: ElemKind,
    pub bits: u32,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: Sym,
    pub params: Vec<(Sym, Type)>,
    pub result: Type,
    pub commutative: bool,
    /// What it computes on integers of its types, for concrete runs.
    pub concrete: Option<Expr>,
    /// The operator of HLO that it is in concrete runs, with the parameters as operands.
    pub foreign: Option<String>,
    /// The ideal arithmetic it stands for: a numeric rule that the verdict rests on.
    pub reads: Option<Expr>,
    pub span: Span,
}

/// A named index function, expanded wherever it is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexMacro {
    pub name: Sym,
    pub params: Vec<Sym>,
    pub body: Expr,
    pub span: Span,
}

/// What one command makes the accelerator do.
#[derive(Clone, Debug, PartialEq)]
pub struct CallDef {
    pub name: Sym,
    pub params: Vec<Sym>,
    pub body: Vec<Stmt>,
    pub span: Span,
}

/// Declarations and statements of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub decls: Vec<Decl>,
    pub body: Vec<Stmt>,
}

/// Where in the loops an element of a relation is made or used up: expressions of the relation's variables at labels,
/// from the outermost loop inwards.
pub type Position = Vec<(Expr, Sym)>;

/// A layout sketch: two places hold the same element, for all values of the variables, as long as the guards say.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    pub left: Expr,
    pub right: Expr,
    pub vars: Vec<(Sym, Expr, Expr)>,
    /// Holds for elements whose position is before the counters (map), and for all once the loops are over.
    pub made: Position,
    /// Holds only for elements whose position is not before the counters (overwritten).
    pub used: Position,
    /// Labels of the loops it is claimed at; empty: wherever one of its sides is written.
    pub at: Vec<Sym>,
    pub span: Span,
}

/// A formula over registers and counters that holds at the head of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Invariant {
    pub at: Sym,
    pub formula: Expr,
    pub span: Span,
}

/// Two output tensors that must agree where the guard holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    pub left: Expr,
    pub right: Expr,
    pub vars: Vec<(Sym, Expr, Expr)>,
    pub span: Span,
}

/// A parsed file, with what it includes.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub name: String,
    pub names: Names,
    pub params: Vec<Param>,
    pub requires: Vec<Expr>,
    pub types: Vec<ElemType>,
    pub functions: Vec<Function>,
    pub macros: Vec<IndexMacro>,
    /// The tensor program as the compiler had it.
    pub ir: Block,
    /// The same, rewritten so that its loops carry labels of hardware loops.
    pub aligned: Option<Block>,
    /// State of the accelerator.
    pub state: Vec<Decl>,
    pub calls: Vec<CallDef>,
    /// Driver code.
    pub mapping: Block,
    pub relations: Vec<Relation>,
    /// Whether further relations are read off the data movement.
    pub infer: bool,
    pub invariants: Vec<Invariant>,
    pub posts: Vec<Post>,
}

/// Calls `visit` for every expression in statements, parts before wholes.
pub fn visit_exprs(body: &[Stmt], visit: &mut dyn FnMut(&Expr)) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Let(_, value) => visit_expr(value, visit),
            StmtKind::Assign(_, indices, value) => {
                indices.iter().for_each(|index| visit_expr(index, visit));
                visit_expr(value, visit);
            }
            StmtKind::If(condition, then, other) => {
                visit_expr(condition, visit);
                visit_exprs(then, visit);
                visit_exprs(other, visit);
            }
            StmtKind::Call(_, arguments) => arguments.iter().for_each(|argument| visit_expr(argument, visit)),
            StmtKind::Loop(inner) => {
                visit_expr(&inner.lo, visit);
                visit_expr(&inner.hi, visit);
                inner.whereby.iter().chain(&inner.until).for_each(|expr| visit_expr(expr, visit));
                visit_exprs(&inner.body, visit);
            }
        }
    }
}

/// Calls `visit` for an expression, after its parts.
pub fn visit_expr(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Name(_) => {}
        ExprKind::Access(_, parts) | ExprKind::Apply(_, parts) | ExprKind::Builtin(_, parts) => {
            parts.iter().for_each(|part| visit_expr(part, visit));
        }
        ExprKind::Wrap(_, inner) | ExprKind::Negate(inner) | ExprKind::Not(inner) => visit_expr(inner, visit),
        ExprKind::Binary(_, left, right) => {
            visit_expr(left, visit);
            visit_expr(right, visit);
        }
        ExprKind::Select(a, b, c) => [a, b, c].into_iter().for_each(|part| visit_expr(part, visit)),
    }
    visit(expr);
}
