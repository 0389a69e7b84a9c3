//! Trip counts and indices in a normal form, so that sizes that are equal are one, with parameters left open.

use crate::hex::printer::print_expr;
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::verify::term::{Node, Sort, Term, Terms};
use std::collections::HashMap;

/// Integer expressions as terms, and back.
#[derive(Debug, Default)]
pub struct Sizes {
    terms: Terms,
    by_name: HashMap<Sym, Term>,
    by_text: HashMap<String, Term>,
    leaves: HashMap<Term, Expr>,
}

impl Sizes {
    pub fn int(&mut self, value: i64) -> Term {
        self.terms.int(i128::from(value))
    }

    #[must_use]
    pub fn constant(&self, term: Term) -> Option<i64> {
        self.terms.constant(term).and_then(|value| i64::try_from(value).ok())
    }

    pub fn add(&mut self, a: Term, b: Term) -> Term {
        self.terms.add(a, b)
    }

    pub fn mul(&mut self, a: Term, b: Term) -> Term {
        self.terms.mul(a, b)
    }

    /// The normal form of an integer expression.
    pub fn term(&mut self, names: &Names, expr: &Expr) -> Term {
        match &expr.kind {
            ExprKind::Int(value) => self.int(*value),
            ExprKind::Name(name) => {
                if let Some(term) = self.by_name.get(name) {
                    return *term;
                }
                let term = self.terms.var(names.text(*name), Sort::Int, None, None);
                self.by_name.insert(*name, term);
                self.leaves.insert(term, Expr { kind: expr.kind.clone(), span: Span::default() });
                term
            }
            ExprKind::Negate(inner) => {
                let inner = self.term(names, inner);
                self.terms.scale(inner, -1)
            }
            ExprKind::Binary(operator, left, right)
                if matches!(
                    operator,
                    Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Mod
                ) =>
            {
                let (a, b) = (self.term(names, left), self.term(names, right));
                match operator {
                    Binary::Add => self.terms.add(a, b),
                    Binary::Sub => self.terms.sub(a, b),
                    Binary::Mul => self.terms.mul(a, b),
                    Binary::Div => self.terms.div(a, b),
                    _ => self.terms.rem(a, b),
                }
            }
            _ => {
                let text = print_expr(names, expr);
                if let Some(term) = self.by_text.get(&text) {
                    return *term;
                }
                let term = self.terms.var(&text, Sort::Int, None, None);
                self.by_text.insert(text, term);
                self.leaves.insert(term, expr.clone());
                term
            }
        }
    }

    /// An expression of this value.
    #[must_use]
    pub fn expr(&self, term: Term) -> Expr {
        let make = |kind| Expr { kind, span: Span::default() };
        let binary = |operator, a: Expr, b: Expr| make(ExprKind::Binary(operator, Box::new(a), Box::new(b)));
        if let Some(leaf) = self.leaves.get(&term) {
            return leaf.clone();
        }
        match self.terms.node(term) {
            Node::Sum(constant, parts) => {
                let mut sum: Option<Expr> = None;
                for (part, factor) in parts {
                    let size = Expr::int(i64::try_from(factor.abs()).unwrap_or(0), Span::default());
                    let part = self.expr(*part);
                    let part = if factor.abs() == 1 { part } else { binary(Binary::Mul, part, size) };
                    sum = Some(match sum {
                        Some(sum) if *factor < 0 => binary(Binary::Sub, sum, part),
                        Some(sum) => binary(Binary::Add, sum, part),
                        None if *factor < 0 => make(ExprKind::Negate(Box::new(part))),
                        None => part,
                    });
                }
                let value = i64::try_from(*constant).unwrap_or(0);
                match sum {
                    None => Expr::int(value, Span::default()),
                    Some(sum) if value == 0 => sum,
                    Some(sum) if value < 0 => binary(Binary::Sub, sum, Expr::int(-value, Span::default())),
                    Some(sum) => binary(Binary::Add, sum, Expr::int(value, Span::default())),
                }
            }
            Node::Product(parts) => parts
                .iter()
                .map(|part| self.expr(*part))
                .reduce(|a, b| binary(Binary::Mul, a, b))
                .unwrap_or_else(|| Expr::int(1, Span::default())),
            Node::Div(a, b) => binary(Binary::Div, self.expr(*a), self.expr(*b)),
            Node::Mod(a, b) => binary(Binary::Mod, self.expr(*a), self.expr(*b)),
            _ => Expr::int(0, Span::default()),
        }
    }

    /// `whole / part` where that comes out even whatever the parameters are.
    pub fn quotient(&mut self, whole: Term, part: Term) -> Option<Term> {
        let (factor, wanted) = self.monomial(part)?;
        let (constant, pieces) = self.terms.linear(whole);
        if constant % factor != 0 || (constant != 0 && !wanted.is_empty()) {
            return None;
        }
        let mut sum = self.terms.int(constant / factor);
        for (piece, coefficient) in pieces {
            let mut left = match self.terms.node(piece) {
                Node::Product(parts) => parts.clone(),
                _ => vec![piece],
            };
            for one in &wanted {
                let at = left.iter().position(|other| other == one)?;
                left.remove(at);
            }
            if coefficient % factor != 0 {
                return None;
            }
            let mut rest = self.terms.int(coefficient / factor);
            for one in left {
                rest = self.terms.mul(rest, one);
            }
            sum = self.terms.add(sum, rest);
        }
        Some(sum)
    }

    /// A term as a constant times other terms.
    fn monomial(&self, term: Term) -> Option<(i128, Vec<Term>)> {
        let (constant, parts) = self.terms.linear(term);
        match &parts[..] {
            [] if constant > 0 => Some((constant, Vec::new())),
            [(part, factor)] if constant == 0 && *factor > 0 => match self.terms.node(*part) {
                Node::Product(parts) => Some((*factor, parts.clone())),
                _ => Some((*factor, vec![*part])),
            },
            _ => None,
        }
    }
}
