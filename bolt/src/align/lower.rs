//! From a loop nest to statements: counters of loops that were split or skewed are computed from the new ones, scalars get
//! the places they need.

use super::nest::{Derived, Head, Leaf, Table, Tree, Value};
use super::skeleton::Trips;
use crate::hex::expand::{Expanded, substitute};
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::verify::term::Term;
use std::collections::{HashMap, HashSet};

/// A program with the tensors it needs besides those of the case.
#[derive(Clone, Debug, Default)]
pub(super) struct Lowered {
    pub body: Vec<Stmt>,
    pub decls: Vec<Decl>,
}

pub(super) fn lower(case: &Expanded, names: &mut Names, table: &mut Table, trees: &[Tree]) -> Lowered {
    let mut lowerer = Lowerer {
        case,
        names,
        table,
        types: HashMap::new(),
        storage: HashMap::new(),
        declared: HashSet::new(),
        dropped: HashSet::new(),
        decls: Vec::new(),
        counters: Vec::new(),
        values: HashMap::new(),
        guards: Vec::new(),
    };
    lowerer.allocate(trees);
    let body = lowerer.body(trees);
    Lowered { body, decls: lowerer.decls }
}

/// Where a scalar is kept.
#[derive(Clone, Debug)]
enum Storage {
    Local,
    /// A place whose indices are names of counters.
    Place(Expr),
}

/// Counters that one comes from, with their trips where these are plain.
type Way = Vec<(Sym, Option<Term>)>;

/// One use of a scalar: the loops around it, and whether it is given a value there.
struct Use {
    path: Vec<(usize, Head)>,
    set: bool,
}

struct Lowerer<'a> {
    case: &'a Expanded,
    names: &'a mut Names,
    table: &'a mut Table,
    types: HashMap<Sym, Type>,
    storage: HashMap<Sym, Storage>,
    declared: HashSet<Sym>,
    /// Stores of scalars that are kept in the output itself.
    dropped: HashSet<Leaf>,
    decls: Vec<Decl>,
    counters: Vec<Sym>,
    /// Counters of the program as it was, by those of the loops around the place.
    values: HashMap<Sym, Expr>,
    /// Guards of the loops around the place that are not tested yet.
    guards: Vec<Expr>,
}

fn make(kind: ExprKind, span: Span) -> Expr {
    Expr { kind, span }
}

fn binary(operator: Binary, a: Expr, b: Expr) -> Expr {
    let span = a.span;
    make(ExprKind::Binary(operator, Box::new(a), Box::new(b)), span)
}

impl Lowerer<'_> {
    /// The type of a value, as far as the types of scalars are known.
    fn type_of(&self, value: &Value) -> Option<Type> {
        match value {
            Value::Leaf(leaf) => match &self.table.expr(*leaf).kind {
                ExprKind::Access(name, _) | ExprKind::Name(name) => self.case.decl(*name).map(|decl| decl.ty),
                ExprKind::Apply(name, _) => self.case.function(*name).map(|function| function.result),
                _ => None,
            },
            Value::Var(name) => self.types.get(name).copied(),
            Value::Number(_) => None,
            Value::Apply(name, _, _) => self.case.function(*name).map(|function| function.result),
            Value::Builtin(_, parts) => self.type_of(&parts[0]).or_else(|| self.type_of(&parts[1])),
            Value::Select(parts) => self.type_of(&parts[1]).or_else(|| self.type_of(&parts[2])),
        }
    }

    fn allocate(&mut self, trees: &[Tree]) {
        let mut uses: Vec<(Sym, Use)> = Vec::new();
        let mut stores: Vec<(Leaf, Value)> = Vec::new();
        let mut sets: Vec<(Sym, Value)> = Vec::new();
        let mut number = 0;
        gather(trees, &mut Vec::new(), &mut number, &mut uses, &mut stores, &mut sets);
        for _ in 0..=sets.len() {
            for (name, value) in &sets {
                if let (None, Some(ty)) = (self.types.get(name), self.type_of(value)) {
                    self.types.insert(*name, ty);
                }
            }
        }
        let mut order: Vec<Sym> = Vec::new();
        for (name, _) in &uses {
            if !order.contains(name) {
                order.push(*name);
            }
        }
        for name in order {
            let own: Vec<&Use> = uses.iter().filter(|(of, _)| *of == name).map(|(_, one)| one).collect();
            self.place(name, &own, &stores);
        }
    }

    fn place(&mut self, name: Sym, uses: &[&Use], stores: &[(Leaf, Value)]) {
        let mut shared = uses[0].path.len();
        for one in uses {
            let same = one.path.iter().zip(&uses[0].path).take_while(|(a, b)| a.0 == b.0).count();
            shared = shared.min(same);
        }
        let around: HashSet<Sym> = uses[0].path[..shared].iter().map(|(_, head)| head.counter).collect();
        let mut dims: Vec<(Sym, Term)> = Vec::new();
        for (counter, trips) in self.table.scope.get(&name).cloned().unwrap_or_default() {
            let mut ways: Vec<Option<Way>> =
                uses.iter().map(|one| self.counters_of(counter, &one.path)).collect();
            ways.dedup();
            let inside = |way: &Option<Way>| {
                way.as_ref().is_some_and(|way| way.iter().all(|(counter, _)| around.contains(counter)))
            };
            if ways.iter().all(inside) {
                continue;
            }
            match &ways[..] {
                [Some(way)] if way.iter().all(|(_, trips)| trips.is_some()) => {
                    let open = way.iter().filter(|(counter, _)| !around.contains(counter));
                    dims.extend(open.filter_map(|(counter, trips)| Some((*counter, (*trips)?))));
                }
                _ => dims.push((counter, trips)),
            }
        }
        let local = dims.is_empty() && uses[0].set && uses[0].path.len() == shared;
        if local {
            self.storage.insert(name, Storage::Local);
            return;
        }
        if let Some(place) = self.output(name, &dims, stores) {
            self.storage.insert(name, Storage::Place(place));
            return;
        }
        let span = self.table.places.get(&name).copied().unwrap_or_default();
        let tensor = self.names.intern(&format!("{}.all", self.names.text(name)));
        let extents = dims.iter().map(|(_, trips)| self.table.sizes.expr(*trips)).collect();
        let ty = self.types.get(&name).copied().unwrap_or(Type::Int);
        self.decls.push(Decl { name: tensor, role: Role::State, dims: extents, ty, span });
        let indices: Vec<Expr> =
            dims.iter().map(|(counter, _)| make(ExprKind::Name(*counter), span)).collect();
        let kind =
            if indices.is_empty() { ExprKind::Name(tensor) } else { ExprKind::Access(tensor, indices) };
        self.storage.insert(name, Storage::Place(make(kind, span)));
    }

    /// The output that a scalar is stored to as it is, if it can be kept there all along.
    fn output(&mut self, name: Sym, dims: &[(Sym, Term)], stores: &[(Leaf, Value)]) -> Option<Expr> {
        let mut own = stores.iter().filter(|(_, value)| *value == Value::Var(name));
        let (leaf, _) = own.next()?;
        let place = self.table.expr(*leaf).clone();
        let ExprKind::Access(output, indices) = &place.kind else { return None };
        let to_it = stores.iter().filter(
            |(leaf, _)| matches!(&self.table.expr(*leaf).kind, ExprKind::Access(other, _) if other == output),
        );
        let scope = self.table.scope.get(&name)?;
        let named = scope.iter().all(|(counter, _)| {
            indices.iter().any(|index| matches!(index.kind, ExprKind::Name(name) if name == *counter))
        });
        let alike = self.case.decl(*output).map(|decl| decl.ty) == self.types.get(&name).copied();
        if dims.is_empty() || own.next().is_some() || to_it.count() != 1 || !named || !alike {
            return None;
        }
        self.dropped.insert(*leaf);
        Some(place)
    }

    /// Counters of the loops around a place that a counter of the program comes from, with their trips where these are
    /// plain. None where it has no value.
    fn counters_of(&self, counter: Sym, path: &[(usize, Head)]) -> Option<Way> {
        if let Some((_, head)) = path.iter().find(|(_, head)| head.counter == counter) {
            let trips = match head.trips {
                Trips::Exact(trips) => Some(trips),
                Trips::Ragged { .. } => None,
            };
            return Some(vec![(counter, trips)]);
        }
        self.table.derived.get(&counter)?.iter().find_map(|derived| match derived {
            Derived::Split { outer, inner, .. } => {
                let mut found = self.counters_of(*outer, path)?;
                found.extend(self.counters_of(*inner, path)?);
                Some(found)
            }
            Derived::Skew { sum, minus, .. } => {
                let mut found = self.counters_of(*sum, path)?;
                found.extend(self.counters_of(*minus, path)?);
                found.iter_mut().for_each(|(_, trips)| *trips = None);
                Some(found)
            }
            Derived::Same(other) => self.counters_of(*other, path),
        })
    }

    fn body(&mut self, trees: &[Tree]) -> Vec<Stmt> {
        let mut out = Vec::new();
        for tree in trees {
            match tree {
                Tree::Loop { head, label, body } => {
                    let stmt = self.a_loop(head, *label, body);
                    if !matches!(&stmt.kind, StmtKind::Loop(inner) if inner.body.is_empty()) {
                        out.push(stmt);
                    }
                }
                Tree::Set(name, value) => {
                    let value = self.value(value);
                    let span = self.table.places.get(name).copied().unwrap_or(value.span);
                    let kind = match self.storage.get(name).cloned() {
                        Some(Storage::Place(place)) => match self.at(&place).kind {
                            ExprKind::Access(buffer, indices) => StmtKind::Assign(buffer, indices, value),
                            ExprKind::Name(buffer) => StmtKind::Assign(buffer, Vec::new(), value),
                            _ => continue,
                        },
                        _ if self.declared.insert(*name) => StmtKind::Let(*name, value),
                        _ => StmtKind::Assign(*name, Vec::new(), value),
                    };
                    out.push(Stmt { kind, span });
                }
                Tree::Store(place, value) => {
                    if self.dropped.contains(place) && matches!(value, Value::Var(_)) {
                        continue;
                    }
                    let place = self.table.expr(*place).clone();
                    let (place, value) = (self.at(&place), self.value(value));
                    if let ExprKind::Access(buffer, indices) = place.kind {
                        out.push(Stmt { kind: StmtKind::Assign(buffer, indices, value), span: place.span });
                    }
                }
            }
        }
        out
    }

    fn a_loop(&mut self, head: &Head, label: Option<Sym>, body: &[Tree]) -> Stmt {
        let span = spans(body, self.table).unwrap_or_default();
        let hi = match head.trips {
            Trips::Exact(trips) => self.table.sizes.expr(trips),
            Trips::Ragged { total, size } => {
                let outer = self.table.derived.values().flatten().find_map(|derived| match derived {
                    Derived::Split { outer, inner, .. } if *inner == head.counter => Some(*outer),
                    _ => None,
                });
                let outer = make(ExprKind::Name(outer.unwrap_or(head.counter)), span);
                let (total, size) = (self.table.sizes.expr(total), self.table.sizes.expr(size));
                let left = binary(Binary::Sub, total, binary(Binary::Mul, size.clone(), outer));
                make(ExprKind::Builtin(Builtin::Min, vec![size, left]), span)
            }
        };
        let before = self.values.clone();
        self.counters.push(head.counter);
        while let Some((counter, value)) = self.known() {
            let value = self.normal(&value);
            if let Some(guard) = self.guard(counter, &value) {
                self.guards.push(guard);
            }
            self.values.insert(counter, value);
        }
        // Loops that have nothing but a loop in them are left to run.
        let nested = matches!(body, [Tree::Loop { .. }]);
        let guards = if nested { Vec::new() } else { std::mem::take(&mut self.guards) };
        let mut stmts = self.body(body);
        if nested {
            self.guards.clear();
        }
        if let Some(guard) =
            guards.into_iter().filter(|_| !stmts.is_empty()).reduce(|a, b| binary(Binary::And, a, b))
        {
            stmts = vec![Stmt { kind: StmtKind::If(guard, stmts, Vec::new()), span }];
        }
        self.counters.pop();
        self.values = before;
        let inner = Loop {
            kind: LoopKind::Counted,
            label,
            counter: head.counter,
            lo: Expr::int(0, span),
            hi,
            whereby: Vec::new(),
            until: None,
            body: stmts,
        };
        Stmt { kind: StmtKind::Loop(Box::new(inner)), span }
    }

    /// A counter of the program that has a value now and had none before.
    fn known(&self) -> Option<(Sym, Expr)> {
        let value = |name: &Sym| {
            let own = self.counters.contains(name).then(|| make(ExprKind::Name(*name), Span::default()));
            own.or_else(|| self.values.get(name).cloned())
        };
        let mut counters: Vec<&Sym> = self.table.derived.keys().collect();
        counters.sort_unstable();
        for counter in counters {
            if value(counter).is_some() {
                continue;
            }
            for derived in &self.table.derived[counter] {
                let found = match derived {
                    Derived::Split { outer, inner, size, .. } => {
                        value(outer).zip(value(inner)).map(|(outer, inner)| {
                            let size = self.table.sizes.expr(*size);
                            binary(Binary::Add, binary(Binary::Mul, outer, size), inner)
                        })
                    }
                    Derived::Skew { sum, minus, stride, .. } => {
                        value(sum).zip(value(minus)).map(|(sum, minus)| {
                            let whole = binary(Binary::Sub, sum, minus);
                            match stride {
                                1 => whole,
                                _ => binary(Binary::Div, whole, Expr::int(*stride, Span::default())),
                            }
                        })
                    }
                    Derived::Same(other) => value(other),
                };
                if let Some(found) = found {
                    return Some((*counter, found));
                }
            }
        }
        None
    }

    /// When a skewed counter is one of the program's.
    fn guard(&self, counter: Sym, value: &Expr) -> Option<Expr> {
        let skewed = |counter: &Sym| {
            self.table.derived.get(counter)?.iter().find_map(|derived| match derived {
                Derived::Skew { sum, minus, stride, trips } => Some((*sum, *minus, *stride, *trips)),
                _ => None,
            })
        };
        let (sum, minus, stride, trips) = skewed(&counter)?;
        let known = |name: Sym| {
            let own = make(ExprKind::Name(name), Span::default());
            self.values.get(&name).cloned().unwrap_or(own)
        };
        let zero = Expr::int(0, Span::default());
        let low = binary(Binary::Ge, value.clone(), zero.clone());
        let high = binary(Binary::Lt, value.clone(), self.table.sizes.expr(trips));
        let mut guard = binary(Binary::And, low, high);
        if stride != 1 {
            let whole = binary(Binary::Sub, known(sum), known(minus));
            let rest = binary(Binary::Mod, whole, Expr::int(stride, Span::default()));
            guard = binary(Binary::And, binary(Binary::Eq, rest, zero), guard);
        }
        Some(guard)
    }

    fn normal(&mut self, expr: &Expr) -> Expr {
        let term = self.table.sizes.term(self.names, expr);
        Expr { span: expr.span, ..self.table.sizes.expr(term) }
    }

    /// An expression of the program with the counters there are; indices in their normal form.
    fn at(&mut self, expr: &Expr) -> Expr {
        let put = substitute(expr, &self.values);
        match put.kind {
            ExprKind::Access(name, indices) => {
                let indices = indices.iter().map(|index| self.normal(index)).collect();
                make(ExprKind::Access(name, indices), put.span)
            }
            _ => put,
        }
    }

    fn value(&mut self, value: &Value) -> Expr {
        match value {
            Value::Leaf(leaf) => {
                let expr = self.table.expr(*leaf).clone();
                self.at(&expr)
            }
            Value::Var(name) => match self.storage.get(name).cloned() {
                Some(Storage::Place(place)) => self.at(&place),
                _ => make(ExprKind::Name(*name), self.table.places.get(name).copied().unwrap_or_default()),
            },
            Value::Number(number) => Expr::int(*number, Span::default()),
            Value::Apply(name, integers, parts) => {
                let params = self.case.function(*name).map(|function| function.params.clone());
                let (mut integers, mut parts) = (integers.iter(), parts.iter());
                let mut arguments = Vec::new();
                for (_, ty) in params.unwrap_or_default() {
                    if matches!(ty, Type::Elem(_)) {
                        arguments.extend(parts.next().map(|part| self.value(part)));
                    } else {
                        let integer = integers.next().map(|leaf| self.table.expr(*leaf).clone());
                        arguments.extend(integer.map(|integer| self.at(&integer)));
                    }
                }
                let span = arguments.first().map(|part| part.span).unwrap_or_default();
                make(ExprKind::Apply(*name, arguments), span)
            }
            Value::Builtin(builtin, parts) => {
                let parts: Vec<Expr> = parts.iter().map(|part| self.value(part)).collect();
                let span = parts[0].span;
                make(ExprKind::Builtin(*builtin, parts), span)
            }
            Value::Select(parts) => {
                let [a, b, c] = &**parts;
                let [a, b, c] = [a, b, c].map(|part| Box::new(self.value(part)));
                let span = b.span;
                make(ExprKind::Select(a, b, c), span)
            }
        }
    }
}

/// The first place of the text that trees come from.
fn spans(trees: &[Tree], table: &Table) -> Option<Span> {
    trees.iter().find_map(|tree| match tree {
        Tree::Loop { body, .. } => spans(body, table),
        Tree::Set(name, _) => table.places.get(name).copied(),
        Tree::Store(place, _) => Some(table.expr(*place).span),
    })
}

fn gather(
    trees: &[Tree],
    path: &mut Vec<(usize, Head)>,
    number: &mut usize,
    uses: &mut Vec<(Sym, Use)>,
    stores: &mut Vec<(Leaf, Value)>,
    sets: &mut Vec<(Sym, Value)>,
) {
    let see = |value: &Value, path: &[(usize, Head)], uses: &mut Vec<(Sym, Use)>| {
        value.visit(&mut |part| {
            if let Value::Var(name) = part {
                uses.push((*name, Use { path: path.to_vec(), set: false }));
            }
        });
    };
    for tree in trees {
        match tree {
            Tree::Loop { head, body, .. } => {
                *number += 1;
                path.push((*number, *head));
                gather(body, path, number, uses, stores, sets);
                path.pop();
            }
            Tree::Set(name, value) => {
                see(value, path, uses);
                uses.push((*name, Use { path: path.clone(), set: true }));
                sets.push((*name, value.clone()));
            }
            Tree::Store(place, value) => {
                see(value, path, uses);
                stores.push((*place, value.clone()));
            }
        }
    }
}
