//! The sync-skeleton of hardware code: its loops that compute tensors, what each computes, and how its iterations depend on
//! each other. Loops that only move data are left out. What is dynamic about it is read off a run: it guides a search, and
//! nothing rests on it.

use super::sizes::Sizes;
use crate::hex::expand::Expanded;
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::hex::trace::{Carried, Trace};
use crate::verify::term::Term;
use std::collections::{HashMap, HashSet};

/// How the iterations of a loop depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopClass {
    /// Not at all.
    Map,
    /// Each goes on with what the one before left in the same places.
    Reduce,
    /// In some other way.
    Unknown,
}

/// How often a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trips {
    Exact(Term),
    /// `min(size, total - size * outer)`: a part of `total`, the last one smaller.
    Ragged {
        total: Term,
        size: Term,
    },
}

/// A loop of the skeleton.
#[derive(Clone, Debug)]
pub struct SkeletonLoop {
    pub label: Sym,
    pub class: LoopClass,
    /// As claimed: for a hardware loop only a hint, since its exit test is proved elsewhere.
    pub trips: Trips,
    /// Loops directly in it, in their order.
    pub inner: Vec<usize>,
    /// Loops and formulas directly in it, in their order.
    pub items: Vec<Item>,
    /// What its own statements store, composed over locals; places that are read are left as they stand.
    pub formulas: Vec<Expr>,
    /// What its iterations pass on.
    accumulators: HashSet<Sym>,
    /// Whether that is a part of what a loop around it accumulates.
    pub partial: bool,
}

/// A part of a loop's body, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Loop(usize),
    Formula(usize),
}

#[derive(Clone, Debug, Default)]
pub struct Skeleton {
    pub loops: Vec<SkeletonLoop>,
    pub outermost: Vec<Item>,
    /// Labels by the places of the loops; some of them are new.
    pub labels: HashMap<Span, Sym>,
}

impl Skeleton {
    /// Loops below one, itself left out.
    #[must_use]
    pub fn below(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for &inner in &self.loops[at].inner {
            found.push(inner);
            found.extend(self.below(inner));
        }
        found
    }
}

/// The skeleton of hardware code of which a run left a trace.
pub fn skeleton(case: &mut Expanded, trace: &Trace, sizes: &mut Sizes) -> Skeleton {
    let body = case.hardware.clone();
    let mut names = std::mem::take(&mut case.names);
    let mut accumulators = HashSet::new();
    accumulate(&body, trace, &mut accumulators);
    let mut reader =
        Reader { case, names: &mut names, trace, accumulators, sizes, skeleton: Skeleton::default() };
    let mut found = Found::default();
    reader.body(&body, &mut Values::default(), &mut found);
    let mut skeleton = reader.skeleton;
    skeleton.outermost = found.items;
    case.names = names;
    for at in 0..skeleton.loops.len() {
        let around: HashSet<Sym> = (0..skeleton.loops.len())
            .filter(|outer| skeleton.below(*outer).contains(&at))
            .flat_map(|outer| skeleton.loops[outer].accumulators.iter().copied())
            .collect();
        let own = &skeleton.loops[at].accumulators;
        let partial = !own.is_empty() && !around.is_empty() && own.is_disjoint(&around);
        skeleton.loops[at].partial = partial;
    }
    skeleton
}

/// What locals hold, as far as it is straight.
type Values = HashMap<Sym, Expr>;

#[derive(Default)]
struct Found {
    items: Vec<Item>,
    formulas: Vec<Expr>,
}

impl Found {
    fn formula(&mut self, formula: Expr) {
        self.items.push(Item::Formula(self.formulas.len()));
        self.formulas.push(formula);
    }
}

struct Reader<'a> {
    case: &'a Expanded,
    names: &'a mut Names,
    trace: &'a Trace,
    /// What loops that count pass on.
    accumulators: HashSet<Sym>,
    sizes: &'a mut Sizes,
    skeleton: Skeleton,
}

impl Reader<'_> {
    fn body(&mut self, body: &[Stmt], values: &mut Values, found: &mut Found) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Let(name, value) => {
                    let value = self.inline(value, values);
                    values.insert(*name, value);
                }
                StmtKind::Assign(name, indices, value) => {
                    let value = self.inline(value, values);
                    if indices.is_empty() && values.contains_key(name) {
                        values.insert(*name, value);
                    } else if computes(&value) || (is_constant(&value) && self.accumulators.contains(name)) {
                        found.formula(value);
                    }
                }
                StmtKind::If(condition, then, other) => match self.taken(condition) {
                    (true, false) => self.body(then, values, found),
                    (false, true) => self.body(other, values, found),
                    (true, true) => {
                        let mut alternative = values.clone();
                        self.body(then, values, found);
                        self.body(other, &mut alternative, found);
                        for (name, value) in values.iter_mut() {
                            if let Some(other) = alternative.get(name)
                                && other != value
                            {
                                let parts = [condition, &*value, other].map(|part| Box::new(part.clone()));
                                let [a, b, c] = parts;
                                *value = Expr { kind: ExprKind::Select(a, b, c), span: condition.span };
                            }
                        }
                    }
                    (false, false) => {}
                },
                StmtKind::Loop(inner) => self.a_loop(inner, stmt.span, values, found),
                StmtKind::Call(..) => {}
            }
        }
    }

    fn a_loop(&mut self, inner: &Loop, span: Span, values: &mut Values, found: &mut Found) {
        // What it changes is unknown in it and after it.
        let mut changed = HashSet::new();
        assigned(&inner.body, &mut changed);
        values.retain(|name, _| !changed.contains(name));
        let mut own = Found::default();
        self.body(&inner.body, &mut values.clone(), &mut own);
        let counts = counts(inner);
        let computes = !own.items.is_empty();
        if !(counts && computes && inner.lo.kind == ExprKind::Int(0)) {
            for item in own.items {
                match item {
                    Item::Loop(_) => found.items.push(item),
                    Item::Formula(at) => found.formula(own.formulas[at].clone()),
                }
            }
            return;
        }
        let label = self.skeleton.labels.get(&span).copied().or(inner.label).unwrap_or_else(|| {
            let (name, number) = (self.names.text(inner.counter).to_owned(), self.skeleton.loops.len());
            self.names.intern(&format!("{name}.{number}"))
        });
        self.skeleton.labels.insert(span, label);
        let class = match self.trace.carried.get(&span) {
            None => LoopClass::Map,
            Some(Carried::Same) => LoopClass::Reduce,
            Some(Carried::Different) => LoopClass::Unknown,
        };
        let trips = self.trips(&inner.hi);
        let loops = own.items.iter().filter_map(|item| match item {
            Item::Loop(at) => Some(*at),
            Item::Formula(_) => None,
        });
        self.skeleton.loops.push(SkeletonLoop {
            label,
            class,
            trips,
            inner: loops.collect(),
            items: own.items,
            formulas: own.formulas,
            accumulators: self.trace.accumulators.get(&span).cloned().unwrap_or_default(),
            partial: false,
        });
        found.items.push(Item::Loop(self.skeleton.loops.len() - 1));
    }

    fn trips(&mut self, hi: &Expr) -> Trips {
        if let ExprKind::Builtin(Builtin::Min, parts) = &hi.kind
            && let [size, Expr { kind: ExprKind::Binary(Binary::Sub, total, rest), .. }] = &parts[..]
            && let ExprKind::Binary(Binary::Mul, a, b) = &rest.kind
        {
            let [size, total, a, b] = [size, total, a, b].map(|expr| self.sizes.term(self.names, expr));
            if a == size || b == size {
                return Trips::Ragged { total, size };
            }
        }
        Trips::Exact(self.sizes.term(self.names, hi))
    }

    /// Whether a condition ever held, and whether it ever did not.
    fn taken(&self, condition: &Expr) -> (bool, bool) {
        let was = |holds| self.trace.branches.contains(&(condition.span, holds));
        (was(true), was(false))
    }

    /// A value with locals put in, branches that are never taken left out, and integers for functions as they were.
    fn inline(&self, expr: &Expr, values: &Values) -> Expr {
        let all = |parts: &[Expr]| parts.iter().map(|part| self.inline(part, values)).collect();
        let kind = match &expr.kind {
            ExprKind::Name(name) => match values.get(name) {
                Some(value) => return value.clone(),
                None => expr.kind.clone(),
            },
            ExprKind::Apply(name, parts) => {
                let mut parts: Vec<Expr> = all(parts);
                if let (Some(function), Some(known)) =
                    (self.case.function(*name), self.trace.arguments.get(&expr.span))
                {
                    for ((part, (_, ty)), known) in parts.iter_mut().zip(&function.params).zip(known) {
                        if let (Type::Int, Some(known)) = (ty, known) {
                            *part = Expr::int(*known, part.span);
                        }
                    }
                }
                ExprKind::Apply(*name, parts)
            }
            ExprKind::Builtin(builtin, parts) => ExprKind::Builtin(*builtin, all(parts)),
            ExprKind::Select(condition, then, other) => match self.taken(condition) {
                (true, false) => return self.inline(then, values),
                (false, true) => return self.inline(other, values),
                _ => ExprKind::Select(
                    condition.clone(),
                    Box::new(self.inline(then, values)),
                    Box::new(self.inline(other, values)),
                ),
            },
            other => other.clone(),
        };
        Expr { kind, span: expr.span }
    }
}

/// Whether a loop goes over something, rather than over steps of its control.
fn counts(inner: &Loop) -> bool {
    inner.label.is_some() || !inner.whereby.is_empty() || indexes(inner)
}

fn accumulate(body: &[Stmt], trace: &Trace, found: &mut HashSet<Sym>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                if counts(inner) {
                    found.extend(trace.accumulators.get(&stmt.span).into_iter().flatten());
                }
                accumulate(&inner.body, trace, found);
            }
            StmtKind::If(_, then, other) => {
                accumulate(then, trace, found);
                accumulate(other, trace, found);
            }
            _ => {}
        }
    }
}

/// Locals and buffers that statements assign.
fn assigned(body: &[Stmt], found: &mut HashSet<Sym>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign(name, ..) => {
                found.insert(*name);
            }
            StmtKind::Loop(inner) => assigned(&inner.body, found),
            StmtKind::If(_, then, other) => {
                assigned(then, found);
                assigned(other, found);
            }
            _ => {}
        }
    }
}

/// Whether a loop's counter says which elements are used.
fn indexes(inner: &Loop) -> bool {
    let mut found = false;
    visit_exprs(&inner.body, &mut |expr| {
        found |= matches!(expr.kind, ExprKind::Name(name) if name == inner.counter);
    });
    found
}

/// Whether a value makes elements from elements.
pub(super) fn computes(value: &Expr) -> bool {
    let mut found = false;
    visit_expr(value, &mut |expr| {
        found |= matches!(&expr.kind, ExprKind::Apply(_, arguments) if !arguments.is_empty());
    });
    found
}

fn is_constant(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Apply(_, arguments) if arguments.is_empty())
}
