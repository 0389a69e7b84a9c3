//! Expressions of a program as terms in a state. Registers are unbounded integers here; that nothing leaves its width or
//! its buffer is noted as an obligation at the place.

use super::condition::Unsupported;
use super::generate::Generator;
use super::state::State;
use super::term::{Function, Sort, Term};
use crate::hex::source::Span;
use crate::hex::syntax::*;
use std::collections::HashMap;

/// Variables of a relation, before names of the program.
pub(super) type Bindings = HashMap<Sym, Term>;

pub(super) fn sort_of(ty: Type) -> Sort {
    match ty {
        Type::Int | Type::Bits(_) => Sort::Int,
        Type::Bool => Sort::Bool,
        Type::Elem(sym) => Sort::Elem(sym),
    }
}

impl Generator<'_> {
    pub(super) fn eval(
        &mut self,
        expr: &Expr,
        state: &State,
        bindings: &Bindings,
    ) -> Result<Term, Unsupported> {
        match &expr.kind {
            ExprKind::Int(value) => Ok(self.terms.int(i128::from(*value))),
            ExprKind::Bool(value) => Ok(self.terms.bool(*value)),
            ExprKind::Name(name) => {
                let value =
                    bindings.get(name).or_else(|| state.scalars.get(name)).or_else(|| self.params.get(name));
                value.copied().ok_or_else(|| Unsupported {
                    span: expr.span,
                    reason: format!("`{}` has no value here", self.case.names.text(*name)),
                })
            }
            ExprKind::Access(name, indices) => {
                let index = self.index(*name, indices, state, bindings, expr.span)?;
                state.read(&mut self.terms, *name, &index).map_err(|_| self.not_invertible(*name, expr.span))
            }
            ExprKind::Apply(name, arguments) => {
                let arguments = self.evals(arguments, state, bindings)?;
                let result = self.case.function(*name).map(|function| sort_of(function.result));
                let function = Function::Case(*name);
                self.terms.results.insert(function, result.unwrap_or(Sort::Int));
                Ok(self.terms.apply(function, arguments))
            }
            ExprKind::Builtin(builtin, arguments) => {
                let arguments = self.evals(arguments, state, bindings)?;
                let (a, b) = (arguments[0], arguments[1]);
                match self.terms.sort(a) {
                    Sort::Elem(sort) => {
                        let function = Function::Builtin(*builtin, sort);
                        self.terms.results.insert(function, Sort::Elem(sort));
                        Ok(self.terms.apply(function, arguments))
                    }
                    _ if *builtin == Builtin::Min => Ok(self.terms.min(a, b)),
                    _ => {
                        let first = self.terms.at_most(a, b);
                        Ok(self.terms.ite(first, b, a))
                    }
                }
            }
            ExprKind::Wrap(bits, inner) => {
                let value = self.eval(inner, state, bindings)?;
                self.fits(value, *bits, expr.span);
                Ok(value)
            }
            ExprKind::Negate(inner) => {
                let value = self.eval(inner, state, bindings)?;
                Ok(self.terms.scale(value, -1))
            }
            ExprKind::Not(inner) => {
                let value = self.eval(inner, state, bindings)?;
                Ok(self.terms.not(value))
            }
            ExprKind::Select(condition, then, other) => {
                let condition = self.eval(condition, state, bindings)?;
                match self.terms.is_bool(condition) {
                    Some(true) => self.eval(then, state, bindings),
                    Some(false) => self.eval(other, state, bindings),
                    None => {
                        // Either side need only be defined where it is taken.
                        self.guard.push(condition);
                        let then = self.eval(then, state, bindings);
                        self.guard.pop();
                        let not = self.terms.not(condition);
                        self.guard.push(not);
                        let other = self.eval(other, state, bindings);
                        self.guard.pop();
                        Ok(self.terms.ite(condition, then?, other?))
                    }
                }
            }
            ExprKind::Binary(operator, left, right) => self.binary(*operator, left, right, state, bindings),
        }
    }

    pub(super) fn evals(
        &mut self,
        exprs: &[Expr],
        state: &State,
        bindings: &Bindings,
    ) -> Result<Vec<Term>, Unsupported> {
        exprs.iter().map(|expr| self.eval(expr, state, bindings)).collect()
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &Expr,
        right: &Expr,
        state: &State,
        bindings: &Bindings,
    ) -> Result<Term, Unsupported> {
        let span = left.span;
        let a = self.eval(left, state, bindings)?;
        // As the interpreter does it: what follows `and` is met only where the left side holds.
        let shield = match operator {
            Binary::And => Some(a),
            Binary::Or => Some(self.terms.not(a)),
            _ => None,
        };
        self.guard.extend(shield);
        let b = self.eval(right, state, bindings);
        self.guard.truncate(self.guard.len() - usize::from(shield.is_some()));
        let b = b?;
        if matches!(operator, Binary::Div | Binary::Mod) {
            let one = self.terms.int(1);
            let positive = self.terms.at_most(one, b);
            self.oblige(positive, span, "divisors are positive");
        }
        let terms = &mut self.terms;
        Ok(match operator {
            Binary::Add => terms.add(a, b),
            Binary::Sub => terms.sub(a, b),
            Binary::Mul => terms.mul(a, b),
            Binary::Div => terms.div(a, b),
            Binary::Mod => terms.rem(a, b),
            Binary::Eq => terms.equal(a, b),
            Binary::Ne => {
                let equal = terms.equal(a, b);
                terms.not(equal)
            }
            Binary::Lt => terms.less(a, b),
            Binary::Le => terms.at_most(a, b),
            Binary::Gt => terms.less(b, a),
            Binary::Ge => terms.at_most(b, a),
            Binary::And => terms.and(vec![a, b]),
            Binary::Or => terms.or(vec![a, b]),
        })
    }

    /// Indices of an access, each obliged to be inside.
    pub(super) fn index(
        &mut self,
        buffer: Sym,
        indices: &[Expr],
        state: &State,
        bindings: &Bindings,
        span: Span,
    ) -> Result<Vec<Term>, Unsupported> {
        let index = self.evals(indices, state, bindings)?;
        let extents = self.extents[&buffer].clone();
        for (&at, extent) in index.iter().zip(extents) {
            let zero = self.terms.int(0);
            let (low, high) = (self.terms.at_most(zero, at), self.terms.less(at, extent));
            let inside = self.terms.and(vec![low, high]);
            self.oblige(inside, span, "accesses stay inside of their buffers");
        }
        Ok(index)
    }

    /// Obliges an integer to have so many bits.
    pub(super) fn fits(&mut self, value: Term, bits: u32, span: Span) {
        let (zero, size) = (self.terms.int(0), self.terms.int(1 << bits));
        let (low, high) = (self.terms.at_most(zero, value), self.terms.less(value, size));
        let inside = self.terms.and(vec![low, high]);
        self.oblige(inside, span, "registers do not overflow");
    }

    pub(super) fn not_invertible(&self, buffer: Sym, span: Span) -> Unsupported {
        let name = self.case.names.text(buffer);
        Unsupported {
            span,
            reason: format!("the addresses of a parfor that wrote `{name}` cannot be read backwards"),
        }
    }
}
