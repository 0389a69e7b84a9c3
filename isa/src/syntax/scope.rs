//! Names in force at a term, and terms to expressions and conditions over them.

use super::ast::{BinaryOp, Name, Term, TermKind};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::parser::Parsed;
use crate::expr::{Cond, Env, Expr};
use crate::model::{AttrDecl, AttrKind};

/// Attributes of the instruction at hand, registers and named constants of the description.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub alpha: Vec<AttrDecl>,
    pub beta: Vec<AttrDecl>,
    pub registers: Vec<(String, i64)>,
    pub constants: Vec<(String, i64)>,
    /// Variables of the enclosing `repeat`s, outermost first.
    pub variables: Vec<String>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Alpha(u16),
    F32Alpha(u16),
    Beta(u16),
    Register(u16),
    Constant(i64),
    Variable(u16),
}

/// Words that a term cannot take for an attribute.
pub(super) const RESERVED: [&str; 9] = ["and", "or", "not", "in", "by", "inf", "nan", "true", "false"];

impl Scope {
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let attrs = self.alpha.iter().chain(&self.beta).map(|a| a.name.as_str());
        let fixed = self.registers.iter().chain(&self.constants).map(|(name, _)| name.as_str());
        attrs.chain(fixed).chain(self.variables.iter().map(String::as_str))
    }

    /// The meaning of a name; `@c.`, `@a.`, `@s.` and `@l.` (released TAIDL) ask for one kind.
    pub(super) fn meaning(&self, text: &str) -> Option<Meaning> {
        let attr = |list: &[AttrDecl], name: &str| list.iter().position(|a| a.name == name);
        let alpha = |name: &str| {
            let at = attr(&self.alpha, name)?;
            Some(match self.alpha[at].kind {
                AttrKind::Int { .. } => Meaning::Alpha(at as u16),
                AttrKind::F32 => Meaning::F32Alpha(at as u16),
            })
        };
        let beta = |name: &str| attr(&self.beta, name).map(|at| Meaning::Beta(at as u16));
        let register = |name: &str| {
            self.registers.iter().position(|(n, _)| n == name).map(|at| Meaning::Register(at as u16))
        };
        let constant =
            |name: &str| self.constants.iter().find(|(n, _)| n == name).map(|(_, v)| Meaning::Constant(*v));
        if let Some(name) = text.strip_prefix("@c.") {
            alpha(name)
        } else if let Some(name) = text.strip_prefix("@a.") {
            beta(name)
        } else if let Some(name) = text.strip_prefix("@s.") {
            register(name)
        } else if let Some(name) = text.strip_prefix("@l.") {
            self.variables.iter().position(|v| v == name).map(|at| Meaning::Variable(at as u16))
        } else {
            let variable = || {
                let at = self.variables.iter().position(|v| v == text)?;
                Some(Meaning::Variable(at as u16))
            };
            let attribute = alpha(text).or_else(|| beta(text)).or_else(|| register(text));
            attribute.or_else(|| constant(text)).or_else(variable)
        }
    }

    /// The integer expression that a term is.
    ///
    /// # Errors
    /// Unknown names, f32 attributes, conditions.
    pub(super) fn expr(&self, term: &Term) -> Parsed<Expr> {
        let not_a_number = |found: &str| {
            let problem = Problem::Expected { expected: "an integer".to_owned(), found: found.to_owned() };
            Err(Diagnostic::error(term.span, problem))
        };
        Ok(match &term.kind {
            TermKind::Int(v) => Expr::Int(
                i64::try_from(*v)
                    .map_err(|_| Diagnostic::error(term.span, Problem::BadNumber(v.to_string())))?,
            ),
            TermKind::Name(name) => match self.meaning(name) {
                Some(Meaning::Alpha(at)) => Expr::Alpha(at),
                Some(Meaning::Beta(at)) => Expr::Beta(at),
                Some(Meaning::Register(at)) => Expr::Register(at),
                Some(Meaning::Constant(v)) => Expr::Int(v),
                Some(Meaning::Variable(at)) => Expr::Variable(at),
                Some(Meaning::F32Alpha(_)) => return not_a_number("an f32 attribute"),
                None => return Err(self.unknown(name, term.span)),
            },
            TermKind::Negate(a) => Expr::Sub(Expr::Int(0).into(), self.expr(a)?.into()),
            TermKind::Binary(op, a, b) => {
                let make = match op {
                    BinaryOp::Add => Expr::Add,
                    BinaryOp::Sub => Expr::Sub,
                    BinaryOp::Mul => Expr::Mul,
                    BinaryOp::Div => Expr::Div,
                    BinaryOp::Mod => Expr::Mod,
                    BinaryOp::Shl => Expr::Shl,
                    BinaryOp::Shr => Expr::Shr,
                    BinaryOp::Compare(_) | BinaryOp::And | BinaryOp::Or => {
                        return not_a_number("a condition");
                    }
                };
                make(self.expr(a)?.into(), self.expr(b)?.into())
            }
            TermKind::Call(name, args) => self.call(name, args)?,
            TermKind::Not(_) | TermKind::In(..) => return not_a_number("a condition"),
        })
    }

    fn call(&self, name: &Name, args: &[Term]) -> Parsed<Expr> {
        const FUNCTIONS: [&str; 3] = ["min", "max", "ceildiv"];
        if !FUNCTIONS.contains(&name.text.as_str()) {
            let nearest = nearest(&name.text, FUNCTIONS);
            let problem = Problem::UnknownName { what: "function", name: name.text.clone(), nearest };
            return Err(Diagnostic::error(name.span, problem));
        }
        let [first, rest @ ..] = args else { return Err(count(name, args.len())) };
        if rest.is_empty() || (name.text == "ceildiv" && rest.len() != 1) {
            return Err(count(name, args.len()));
        }
        let mut value = self.expr(first)?;
        for arg in rest {
            let arg = self.expr(arg)?;
            value = match name.text.as_str() {
                "min" => Expr::Min(value.into(), arg.into()),
                "max" => Expr::Max(value.into(), arg.into()),
                _ => Expr::CeilDiv(value.into(), arg.into()),
            };
        }
        Ok(value)
    }

    /// The condition that a term is.
    ///
    /// # Errors
    /// Unknown names, plain numbers.
    pub(super) fn cond(&self, term: &Term) -> Parsed<Cond> {
        Ok(match &term.kind {
            TermKind::Binary(BinaryOp::Compare(relation), a, b) => {
                Cond::Cmp(*relation, self.expr(a)?, self.expr(b)?)
            }
            TermKind::Binary(BinaryOp::And, a, b) => Cond::And(self.cond(a)?.into(), self.cond(b)?.into()),
            TermKind::Binary(BinaryOp::Or, a, b) => Cond::Or(self.cond(a)?.into(), self.cond(b)?.into()),
            TermKind::Not(a) => Cond::Not(self.cond(a)?.into()),
            TermKind::In(a, set) => {
                let values = set.iter().map(|v| self.value(v)).collect::<Parsed<Vec<i64>>>()?;
                Cond::In(self.expr(a)?, values)
            }
            _ => {
                let problem =
                    Problem::Expected { expected: "a condition".to_owned(), found: "a number".to_owned() };
                return Err(Diagnostic::error(term.span, problem));
            }
        })
    }

    /// The value of a term over numbers and named constants.
    ///
    /// # Errors
    /// Attributes and registers in it, overflow.
    pub(super) fn value(&self, term: &Term) -> Parsed<i64> {
        // Only constants have a value here.
        let constant = |mut fault: Diagnostic| {
            if let Problem::UnknownName { what, .. } = &mut fault.problem {
                *what = if *what == "attribute" { "constant" } else { *what };
            }
            fault
        };
        let expr = self.expr(term).map_err(constant)?;
        expr.eval(Env::default())
            .map_err(|error| Diagnostic::error(term.span, Problem::NotConstant(error.to_string())))
    }

    pub(super) fn unknown(&self, name: &str, span: Span) -> Diagnostic {
        let bare = ["@c.", "@a.", "@s.", "@l."].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
        let nearest = nearest(bare, self.names());
        Diagnostic::error(span, Problem::UnknownName { what: "attribute", name: bare.to_owned(), nearest })
    }
}

fn count(name: &Name, got: usize) -> Diagnostic {
    let what = format!("arguments of {}", name.text);
    Diagnostic::error(name.span, Problem::Count { what, expected: 2, got })
}
