//! Finds rewrites of a tensor program that bring its loops to the skeleton's: splitting and labelling loops, and putting the
//! hardware's functions where the arithmetic they stand for is. Best effort: what it does not reach stays as it is, and what
//! it does is checked by running.

use super::skeleton::{SkeletonLoop, skeleton};
use crate::hex::expand::{Expanded, constant, substitute};
use crate::hex::printer::print_expr;
use crate::hex::source::Span;
use crate::hex::syntax::*;
use std::collections::HashMap;

/// A rewritten program with the steps that led to it.
#[derive(Clone, Debug)]
pub struct Alignment {
    pub body: Vec<Stmt>,
    pub steps: Vec<Step>,
}

/// One rewrite: what it did, and the program after it.
#[derive(Clone, Debug)]
pub struct Step {
    pub what: String,
    pub body: Vec<Stmt>,
}

/// Aligns the tensor program of a case with its hardware code.
#[must_use]
pub fn align(case: &mut Expanded) -> Alignment {
    let wanted = skeleton(&case.hardware);
    let mut alignment = Alignment { body: case.ir.clone(), steps: Vec::new() };
    // One rewrite at a time, so that each can be checked.
    while let Some((body, what)) = structural(&alignment.body, &wanted, &mut case.names) {
        alignment.body.clone_from(&body);
        alignment.steps.push(Step { what, body });
    }
    let mut rules: Vec<(&Function, &Expr)> =
        case.applied().into_iter().filter_map(|f| Some((f, f.reads.as_ref()?))).collect();
    // The largest pattern first: a mean before the sum in it.
    rules.sort_by_key(|(_, reads)| std::cmp::Reverse(size(reads)));
    for (function, reads) in rules {
        let rule = Rule { case, function, reads };
        let body = rule.body(&alignment.body);
        if body != alignment.body {
            let what = format!("{} for {}", case.names.text(function.name), print_expr(&case.names, reads));
            alignment.body.clone_from(&body);
            alignment.steps.push(Step { what, body });
        }
    }
    alignment
}

/// The first rewrite that brings a loop nearer to the skeleton.
fn structural(body: &[Stmt], wanted: &[SkeletonLoop], names: &mut Names) -> Option<(Vec<Stmt>, String)> {
    for (at, stmt) in body.iter().enumerate() {
        let StmtKind::Loop(inner) = &stmt.kind else { continue };
        let replaced = |inner: Loop, what: String| {
            let mut body = body.to_vec();
            body[at].kind = StmtKind::Loop(Box::new(inner));
            Some((body, what))
        };
        if let Some(label) = inner.label {
            let Some(partner) = wanted.iter().find(|one| one.label == label) else { continue };
            if let Some((body, what)) = structural(&inner.body, &partner.inner, names) {
                return replaced(Loop { body, ..(**inner).clone() }, what);
            }
            continue;
        }
        if inner.lo.kind != ExprKind::Int(0) {
            continue;
        }
        let free = |one: &&SkeletonLoop| {
            !body
                .iter()
                .any(|stmt| matches!(&stmt.kind, StmtKind::Loop(other) if other.label == Some(one.label)))
        };
        for partner in wanted.iter().filter(free) {
            let label = names.text(partner.label).to_owned();
            let counter = names.text(inner.counter).to_owned();
            if same(&inner.hi, &partner.trips) {
                let what = format!("align {counter} with @{label}");
                return replaced(Loop { label: Some(partner.label), ..(**inner).clone() }, what);
            }
            if let Some(rest) = quotient(&inner.hi, &partner.trips) {
                let what = format!("split {counter}, its outer part being @{label}");
                return replaced(split(inner, partner, &rest, stmt.span, names), what);
            }
        }
    }
    None
}

fn same(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
        (ExprKind::Name(a), ExprKind::Name(b)) => a == b,
        (ExprKind::Binary(f, a, b), ExprKind::Binary(g, c, d)) => f == g && same(a, c) && same(b, d),
        _ => false,
    }
}

/// `whole / part`, if that comes out even and is more than one.
fn quotient(whole: &Expr, part: &Expr) -> Option<Expr> {
    if let (Some(whole), Some(part)) = (constant(whole), constant(part)) {
        return (part > 1 && whole > part && whole % part == 0)
            .then(|| Expr::int(whole / part, Span::default()));
    }
    match &whole.kind {
        ExprKind::Binary(Binary::Mul, a, b) if same(a, part) => Some((**b).clone()),
        ExprKind::Binary(Binary::Mul, a, b) if same(b, part) => Some((**a).clone()),
        _ => None,
    }
}

/// A loop of `trips * rest` as two, the outer one being the skeleton's.
fn split(whole: &Loop, partner: &SkeletonLoop, rest: &Expr, span: Span, names: &mut Names) -> Loop {
    let text = names.text(whole.counter).to_owned();
    let (outer, inner) = (names.intern(&format!("{text}.outer")), names.intern(&format!("{text}.inner")));
    let expr = |kind| Expr { kind, span };
    let boxed = |kind| Box::new(expr(kind));
    let product = ExprKind::Binary(Binary::Mul, boxed(ExprKind::Name(outer)), Box::new(rest.clone()));
    let index = expr(ExprKind::Binary(Binary::Add, boxed(product), boxed(ExprKind::Name(inner))));
    let values = HashMap::from([(whole.counter, index)]);
    let body = rewrite(&whole.body, &|expr| substitute(expr, &values));
    let counted = |counter, hi: &Expr, body| Loop {
        kind: LoopKind::Counted,
        label: None,
        counter,
        lo: Expr::int(0, span),
        hi: hi.clone(),
        whereby: Vec::new(),
        until: None,
        body,
    };
    let nested = Stmt { kind: StmtKind::Loop(Box::new(counted(inner, rest, body))), span };
    Loop { label: Some(partner.label), ..counted(outer, &partner.trips, vec![nested]) }
}

/// Statements with every expression replaced.
fn rewrite(body: &[Stmt], with: &dyn Fn(&Expr) -> Expr) -> Vec<Stmt> {
    let kind = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Let(name, value) => StmtKind::Let(*name, with(value)),
        StmtKind::Assign(name, indices, value) => {
            StmtKind::Assign(*name, indices.iter().map(with).collect(), with(value))
        }
        StmtKind::If(condition, then, other) => {
            StmtKind::If(with(condition), rewrite(then, with), rewrite(other, with))
        }
        StmtKind::Call(name, arguments) => StmtKind::Call(*name, arguments.iter().map(with).collect()),
        StmtKind::Loop(inner) => StmtKind::Loop(Box::new(Loop {
            lo: with(&inner.lo),
            hi: with(&inner.hi),
            body: rewrite(&inner.body, with),
            ..(**inner).clone()
        })),
    };
    body.iter().map(|stmt| Stmt { kind: kind(stmt), span: stmt.span }).collect()
}

fn size(expr: &Expr) -> usize {
    let mut count = 0;
    visit_expr(expr, &mut |_| count += 1);
    count
}

/// A hardware function for the arithmetic it stands for.
struct Rule<'a> {
    case: &'a Expanded,
    function: &'a Function,
    reads: &'a Expr,
}

impl Rule<'_> {
    fn body(&self, body: &[Stmt]) -> Vec<Stmt> {
        rewrite(body, &|expr| self.expr(expr))
    }

    fn expr(&self, expr: &Expr) -> Expr {
        let mut values = HashMap::new();
        // A bare variable stands for everything: such rules need a place, which is not searched for.
        if !matches!(self.reads.kind, ExprKind::Name(_) | ExprKind::Int(_))
            && self.matches(self.reads, expr, &mut values)
            && self.function.params.iter().all(|(name, _)| values.contains_key(name))
        {
            let arguments = self.function.params.iter().map(|(name, _)| self.expr(&values[name])).collect();
            return Expr { kind: ExprKind::Apply(self.function.name, arguments), span: expr.span };
        }
        let kind = match &expr.kind {
            ExprKind::Builtin(builtin, parts) => {
                ExprKind::Builtin(*builtin, parts.iter().map(|part| self.expr(part)).collect())
            }
            ExprKind::Apply(name, parts) if !parts.is_empty() => {
                ExprKind::Apply(*name, parts.iter().map(|part| self.expr(part)).collect())
            }
            other => other.clone(),
        };
        Expr { kind, span: expr.span }
    }

    fn matches(&self, pattern: &Expr, expr: &Expr, values: &mut HashMap<Sym, Expr>) -> bool {
        match (&pattern.kind, &expr.kind) {
            (ExprKind::Name(name), _) => match values.get(name) {
                Some(bound) => bound.kind == expr.kind,
                None => {
                    values.insert(*name, expr.clone());
                    true
                }
            },
            // A constant of elements is a function that reads as a number.
            (ExprKind::Int(value), ExprKind::Apply(name, parts)) if parts.is_empty() => {
                let reads = self.case.function(*name).and_then(|function| function.reads.as_ref());
                reads.and_then(constant) == Some(*value)
            }
            (ExprKind::Builtin(f, pattern), ExprKind::Builtin(g, parts)) if f == g => {
                let before = values.clone();
                if self.matches(&pattern[0], &parts[0], values)
                    && self.matches(&pattern[1], &parts[1], values)
                {
                    return true;
                }
                values.clone_from(&before);
                *f != Builtin::Sub
                    && self.matches(&pattern[0], &parts[1], values)
                    && self.matches(&pattern[1], &parts[0], values)
            }
            _ => false,
        }
    }
}
