//! From a tensor program to a loop nest: scalars get a name for each value that is not carried by a loop, loops are maps
//! where nothing is carried.

use super::nest::{Head, Leaf, Nest, Order, Table};
use super::skeleton::Trips;
use crate::hex::expand::{Expanded, substitute};
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::verify::term::Term;
use egg::{Id, RecExpr};
use std::collections::{HashMap, HashSet};

/// The nest of a program. None where it has a form that is not searched: it is left as it is then.
pub(super) fn lift(case: &Expanded, names: &mut Names, table: &mut Table) -> Option<(RecExpr<Nest>, Id)> {
    let mut lifter = Lifter {
        case,
        names,
        table,
        term: RecExpr::default(),
        integers: HashMap::new(),
        scalars: HashMap::new(),
        around: Vec::new(),
        taken: HashSet::new(),
    };
    let parts = lifter.body(&case.ir)?;
    let root = lifter.sequence(&parts)?;
    let Lifter { term, .. } = lifter;
    Some((term, root))
}

/// A scalar of the program: the name of its present value, and how many loops are around its definition.
#[derive(Clone, Copy)]
struct Scalar {
    version: Sym,
    depth: usize,
}

struct Lifter<'a> {
    case: &'a Expanded,
    names: &'a mut Names,
    table: &'a mut Table,
    term: RecExpr<Nest>,
    integers: HashMap<Sym, Expr>,
    scalars: HashMap<Sym, Scalar>,
    around: Vec<(Sym, Term, bool)>,
    taken: HashSet<Sym>,
}

impl Lifter<'_> {
    fn sequence(&mut self, parts: &[Id]) -> Option<Id> {
        let (&last, rest) = parts.split_last()?;
        Some(rest.iter().rev().fold(last, |tail, part| self.term.add(Nest::Seq([*part, tail]))))
    }

    /// A name that nothing else has.
    fn fresh(&mut self, name: Sym) -> Sym {
        let mut own = name;
        let mut number = 1;
        while !self.taken.insert(own) {
            own = self.names.intern(&format!("{}.{number}", self.names.text(name)));
            number += 1;
        }
        own
    }

    fn body(&mut self, body: &[Stmt]) -> Option<Vec<Id>> {
        let outer: Vec<Sym> = self.scalars.keys().copied().collect();
        let mut parts = Vec::new();
        for stmt in body {
            match &stmt.kind {
                StmtKind::Let(name, value) => {
                    let Some(ty) = self.element(value) else {
                        let value = substitute(value, &self.integers);
                        self.integers.insert(*name, value);
                        continue;
                    };
                    let value = self.value(value)?;
                    let version = self.define(*name, ty, stmt.span);
                    parts.push(self.term.add(Nest::Set(version, [value])));
                }
                StmtKind::Assign(name, indices, value) if indices.is_empty() => {
                    let scalar = *self.scalars.get(name)?;
                    let ty = self.element(value)?;
                    let value = self.value(value)?;
                    let version = if scalar.depth == self.around.len() {
                        self.define(*name, ty, stmt.span)
                    } else {
                        scalar.version
                    };
                    parts.push(self.term.add(Nest::Set(version, [value])));
                }
                StmtKind::Assign(name, indices, value) => {
                    if self.case.decl(*name)?.role != Role::Output {
                        return None;
                    }
                    let value = self.value(value)?;
                    let indices = indices.iter().map(|index| substitute(index, &self.integers)).collect();
                    let place = Expr { kind: ExprKind::Access(*name, indices), span: stmt.span };
                    let place = self.table.leaf(self.names, &place);
                    parts.push(self.term.add(Nest::Store(place, [value])));
                }
                StmtKind::Loop(inner) => parts.push(self.a_loop(inner)?),
                StmtKind::If(..) | StmtKind::Call(..) => return None,
            }
        }
        self.scalars.retain(|name, _| outer.contains(name));
        Some(parts)
    }

    fn define(&mut self, name: Sym, ty: Type, place: Span) -> Sym {
        let version = self.fresh(name);
        self.scalars.insert(name, Scalar { version, depth: self.around.len() });
        self.table.types.insert(version, ty);
        self.table.places.insert(version, place);
        let maps = self.around.iter().filter(|(_, _, map)| *map).map(|(name, trips, _)| (*name, *trips));
        self.table.scope.insert(version, maps.collect());
        version
    }

    fn a_loop(&mut self, inner: &Loop) -> Option<Id> {
        if inner.lo.kind != ExprKind::Int(0) || inner.kind == LoopKind::Hardware {
            return None;
        }
        let hi = substitute(&inner.hi, &self.integers);
        let trips = self.table.sizes.term(self.names, &hi);
        let counter = self.fresh(inner.counter);
        let before = self.integers.clone();
        self.integers.insert(inner.counter, Expr { kind: ExprKind::Name(counter), span: hi.span });
        let map = independent(&inner.body, inner.counter);
        self.around.push((counter, trips, map));
        let parts = self.body(&inner.body)?;
        self.around.pop();
        self.integers = before;
        let body = self.sequence(&parts)?;
        let order = if map { Order::Map } else { Order::Fold };
        Some(self.term.add(Nest::Loop(Head { order, counter, trips: Trips::Exact(trips) }, [body])))
    }

    /// The type of an element's expression; None for integers.
    fn element(&self, expr: &Expr) -> Option<Type> {
        match &expr.kind {
            ExprKind::Name(name) if self.scalars.contains_key(name) => {
                self.table.types.get(&self.scalars[name].version).copied()
            }
            ExprKind::Name(name) | ExprKind::Access(name, _) => {
                self.case.decl(*name).map(|decl| decl.ty).filter(|ty| matches!(ty, Type::Elem(_)))
            }
            ExprKind::Apply(name, _) => self.case.function(*name).map(|function| function.result),
            ExprKind::Builtin(_, parts) => self.element(&parts[0]),
            ExprKind::Select(_, then, _) => self.element(then),
            _ => None,
        }
    }

    fn leaf(&mut self, expr: &Expr) -> Leaf {
        let expr = substitute(expr, &self.integers);
        self.table.leaf(self.names, &expr)
    }

    fn value(&mut self, expr: &Expr) -> Option<Id> {
        let node = match &expr.kind {
            ExprKind::Name(name) if self.scalars.contains_key(name) => {
                let version = self.scalars[name].version;
                *self.table.uses.entry(version).or_default() += 1;
                Nest::Var(version)
            }
            ExprKind::Name(name) | ExprKind::Access(name, _) => {
                if self.case.decl(*name)?.role != Role::Input {
                    return None;
                }
                Nest::Leaf(self.leaf(expr))
            }
            ExprKind::Apply(_, parts) if parts.is_empty() => Nest::Leaf(self.leaf(expr)),
            ExprKind::Apply(name, parts) => {
                let function = self.case.function(*name)?;
                let (mut integers, mut elements) = (Vec::new(), Vec::new());
                for (part, (_, ty)) in parts.iter().zip(&function.params) {
                    if matches!(ty, Type::Elem(_)) {
                        elements.push(self.value(part)?);
                    } else {
                        integers.push(self.leaf(part));
                    }
                }
                Nest::Apply(*name, integers, elements)
            }
            ExprKind::Builtin(builtin, parts) => {
                Nest::Builtin(*builtin, [self.value(&parts[0])?, self.value(&parts[1])?])
            }
            ExprKind::Select(condition, then, other) => {
                let condition = Nest::Leaf(self.leaf(condition));
                let condition = self.term.add(condition);
                Nest::Select([condition, self.value(then)?, self.value(other)?])
            }
            _ => return None,
        };
        Some(self.term.add(node))
    }
}

/// Whether iterations neither pass a scalar on nor store to one place.
fn independent(body: &[Stmt], counter: Sym) -> bool {
    fn walk(body: &[Stmt], counter: Sym, own: &mut Vec<Sym>) -> bool {
        let outside = own.len();
        let good = body.iter().all(|stmt| match &stmt.kind {
            StmtKind::Let(name, _) => {
                own.push(*name);
                true
            }
            StmtKind::Assign(name, indices, _) if indices.is_empty() => own.contains(name),
            StmtKind::Assign(_, indices, _) => indices.iter().any(|index| {
                let mut found = false;
                visit_expr(index, &mut |part| {
                    found |= matches!(part.kind, ExprKind::Name(name) if name == counter);
                });
                found
            }),
            StmtKind::Loop(inner) => walk(&inner.body, counter, own),
            StmtKind::If(..) | StmtKind::Call(..) => false,
        });
        own.truncate(outside);
        good
    }
    walk(body, counter, &mut Vec::new())
}
