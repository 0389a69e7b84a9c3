//! Rewrites of loop nests, as equalities of an e-graph. Which of them are tried is guided by the skeleton: loops are split
//! into sizes the hardware has, sums are taken apart where it adds partial ones.

use super::nest::{Derived, Head, Leaf, Nest, Order, Table, Value, value};
use super::skeleton::{LoopClass, Skeleton, Trips};
use crate::hex::expand::{Expanded, constant};
use crate::hex::syntax::*;
use crate::verify::term::Term;
use egg::{EGraph, Id};
use std::collections::{HashMap, HashSet};

/// What an equality rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Every element is the same term as before.
    Terms,
    /// Sums are the same in ideal arithmetic, in another order.
    Arithmetic,
}

/// The rules by name.
pub const RULES: &[(&str, Basis)] = &[
    ("split a loop", Basis::Terms),
    ("exchange loops", Basis::Terms),
    ("distribute a loop", Basis::Terms),
    ("regroup statements", Basis::Terms),
    ("insert a loop of one iteration", Basis::Terms),
    ("skew a loop", Basis::Terms),
    ("start in the first iteration", Basis::Terms),
    ("finish in the last iteration", Basis::Terms),
    ("finish in place", Basis::Terms),
    ("put a value in", Basis::Terms),
    ("add in another order", Basis::Arithmetic),
    ("add partial sums", Basis::Arithmetic),
];

/// More nodes than aligning the measured cases takes.
const MOST_NODES: usize = 60_000;
const ROUNDS: usize = 24;

pub struct Search<'a> {
    pub graph: EGraph<Nest, ()>,
    case: &'a Expanded,
    names: &'a mut Names,
    table: &'a mut Table,
    skeleton: &'a Skeleton,
    /// Hardware starts from, or finishes, what it accumulates inside of the loop.
    starts: bool,
    finishes: bool,
    /// Maps and folds whose counters are added in an index, with the map's stride.
    skews: Vec<(Sym, Sym, i64)>,
    nodes: HashMap<Id, Vec<Nest>>,
    additive: HashSet<Id>,
    new: Vec<(Id, Id, &'static str)>,
}

impl<'a> Search<'a> {
    pub fn new(
        case: &'a Expanded,
        names: &'a mut Names,
        table: &'a mut Table,
        skeleton: &'a Skeleton,
        hints: (bool, bool),
    ) -> Search<'a> {
        let skews = skews(table);
        Search {
            graph: EGraph::default().with_explanations_enabled(),
            case,
            names,
            table,
            skeleton,
            starts: hints.0,
            finishes: hints.1,
            skews,
            nodes: HashMap::new(),
            additive: HashSet::new(),
            new: Vec::new(),
        }
    }

    /// Whether a scalar is a part of a sum that the rules made.
    pub fn is_partial(&self, name: Sym) -> bool {
        !self.table.uses.contains_key(&name)
    }

    /// Adds equalities until there are no more, or enough.
    pub fn saturate(&mut self) {
        for _ in 0..ROUNDS {
            self.snapshot();
            let mut classes: Vec<Id> = self.nodes.keys().copied().collect();
            classes.sort_unstable();
            for class in classes {
                for node in self.nodes[&class].clone() {
                    self.rewrite(class, &node);
                }
                if self.graph.total_size() > MOST_NODES {
                    break;
                }
            }
            let mut changed = false;
            for (from, to, rule) in std::mem::take(&mut self.new) {
                changed |= self.graph.union_trusted(from, to, rule);
            }
            self.graph.rebuild();
            if !changed || self.graph.total_size() > MOST_NODES {
                return;
            }
        }
    }

    fn snapshot(&mut self) {
        self.nodes = self.graph.classes().map(|class| (class.id, class.nodes.clone())).collect();
        self.additive.clear();
        loop {
            let before = self.additive.len();
            for (id, nodes) in &self.nodes {
                let adds = |node: &Nest| match node {
                    Nest::Loop(_, [inner]) => self.additive.contains(inner),
                    Nest::Set(name, [inner]) => {
                        let sum = value(&|id| &self.nodes[&self.graph.find(id)][0], *inner);
                        addend(*name, &sum).is_some()
                    }
                    _ => false,
                };
                if !self.additive.contains(id) && nodes.iter().any(adds) {
                    self.additive.insert(*id);
                }
            }
            if self.additive.len() == before {
                return;
            }
        }
    }

    fn of(&self, id: Id) -> Vec<Nest> {
        self.nodes.get(&self.graph.find(id)).cloned().unwrap_or_default()
    }

    fn value(&self, id: Id) -> Value {
        value(&|id| &self.nodes[&self.graph.find(id)][0], id)
    }

    fn add(&mut self, node: Nest) -> Id {
        self.graph.add_uncanonical(node)
    }

    fn a_loop(&mut self, head: Head, body: Id) -> Id {
        self.add(Nest::Loop(head, [body]))
    }

    fn equal(&mut self, from: Id, to: Id, rule: &'static str) {
        self.new.push((from, to, rule));
    }

    fn put(&mut self, value: &Value) -> Id {
        let node = match value {
            Value::Leaf(leaf) => Nest::Leaf(*leaf),
            Value::Var(name) => Nest::Var(*name),
            Value::Number(number) => Nest::Number(*number),
            Value::Apply(name, integers, parts) => {
                let parts = parts.iter().map(|part| self.put(part)).collect();
                Nest::Apply(*name, integers.clone(), parts)
            }
            Value::Builtin(builtin, parts) => {
                Nest::Builtin(*builtin, [self.put(&parts[0]), self.put(&parts[1])])
            }
            Value::Select(parts) => {
                Nest::Select([self.put(&parts[0]), self.put(&parts[1]), self.put(&parts[2])])
            }
        };
        self.add(node)
    }

    fn rewrite(&mut self, class: Id, node: &Nest) {
        match node {
            Nest::Loop(head, [body]) => {
                self.split(*head, *body);
                self.sum(*head, *body);
                self.unit(class);
                for inner in self.of(*body) {
                    match inner {
                        Nest::Loop(below, [rest]) => {
                            self.exchange(*head, below, rest);
                            self.skew(*head, below, rest);
                        }
                        Nest::Seq([first, second]) if head.order == Order::Map => {
                            let inner = self.add(inner.clone());
                            let from = self.a_loop(*head, inner);
                            let (a, b) = (self.a_loop(*head, first), self.a_loop(*head, second));
                            let to = self.add(Nest::Seq([a, b]));
                            self.equal(from, to, "distribute a loop");
                        }
                        _ => {}
                    }
                }
            }
            Nest::Seq([first, second]) => {
                self.unit(class);
                self.regroup(*first, *second);
                self.sink(*first, *second);
            }
            Nest::Store(place, [inner]) => self.in_place(*place, *inner),
            _ => {}
        }
    }

    fn split(&mut self, head: Head, body: Id) {
        let Trips::Exact(whole) = head.trips else { return };
        for at in 0..self.skeleton.loops.len() {
            let target = &self.skeleton.loops[at];
            let label = self.names.text(target.label).to_owned();
            let counter = self.names.text(head.counter).to_owned();
            let ragged = target.inner.iter().find_map(|inner| match self.skeleton.loops[*inner].trips {
                Trips::Ragged { total, size } if total == whole => Some(size),
                _ => None,
            });
            let (rest, size, ragged) = match (ragged, target.trips) {
                (Some(size), _) => (Trips::Ragged { total: whole, size }, size, true),
                (None, Trips::Exact(part)) => {
                    let one = self.table.sizes.constant(part) == Some(1);
                    let Some(rest) = self.table.sizes.quotient(whole, part).filter(|_| !one) else {
                        continue;
                    };
                    if self.table.sizes.constant(rest) == Some(1)
                        || part == whole
                        || !factors(rest, &self.skeleton.below(at), self.skeleton, self.table)
                    {
                        continue;
                    }
                    (Trips::Exact(rest), rest, false)
                }
                (None, Trips::Ragged { .. }) => continue,
            };
            let outer = self.names.intern(&format!("{counter}.{label}"));
            let inner = self.names.intern(&format!("{counter}.{label}.rest"));
            let known = self.table.derived.entry(head.counter).or_default();
            let derived = Derived::Split { outer, inner, size, ragged };
            if !known.contains(&derived) {
                known.push(derived);
            }
            let from = self.a_loop(head, body);
            let below = self.a_loop(Head { counter: inner, trips: rest, ..head }, body);
            let trips = self.skeleton.loops[at].trips;
            let to = self.a_loop(Head { counter: outer, trips, ..head }, below);
            self.equal(from, to, "split a loop");
        }
    }

    fn exchange(&mut self, head: Head, below: Head, rest: Id) {
        // The inner part of a ragged split depends on the outer one.
        let depends = matches!(below.trips, Trips::Ragged { .. })
            && self.table.derived.values().flatten().any(|derived| {
                matches!(derived, Derived::Split { outer, inner, .. } if *outer == head.counter && *inner == below.counter)
            });
        // Of loops that look alike the order they have is as good a guess as any.
        let tap =
            |name: Sym| self.table.derived.values().flatten().any(|derived| *derived == Derived::Same(name));
        let alike = head.trips == below.trips && (head.order == below.order || tap(head.counter));
        let rule = match (head.order, below.order) {
            _ if depends || alike => return,
            (Order::Map, _) => "exchange loops",
            (Order::Fold, Order::Fold) if self.additive.contains(&self.graph.find(rest)) => {
                "add in another order"
            }
            _ => return,
        };
        let inner = self.a_loop(below, rest);
        let from = self.a_loop(head, inner);
        let inner = self.a_loop(head, rest);
        let to = self.a_loop(below, inner);
        self.equal(from, to, rule);
    }

    /// Outputs from all inputs become inputs to all outputs.
    fn skew(&mut self, head: Head, below: Head, rest: Id) {
        if head.order != Order::Map || below.order != Order::Fold {
            return;
        }
        let stride = self.skews.iter().find(|skew| skew.0 == head.counter && skew.1 == below.counter);
        let (Some(&(_, _, stride)), Trips::Exact(trips), Trips::Exact(taps)) =
            (stride, head.trips, below.trips)
        else {
            return;
        };
        let (map, fold) =
            (self.names.text(head.counter).to_owned(), self.names.text(below.counter).to_owned());
        let (sum, tap) =
            (self.names.intern(&format!("{map}+{fold}")), self.names.intern(&format!("{fold}.{map}")));
        self.table.derived.insert(below.counter, vec![Derived::Same(tap)]);
        self.table
            .derived
            .insert(head.counter, vec![Derived::Skew { sum, minus: below.counter, stride, trips }]);
        let sizes = &mut self.table.sizes;
        let (minus, step) = (sizes.int(-1), sizes.int(stride));
        let last = sizes.add(trips, minus);
        let span = sizes.mul(last, step);
        let total = sizes.add(span, taps);
        let inner = self.a_loop(below, rest);
        let from = self.a_loop(head, inner);
        let inner = self.a_loop(Head { order: Order::Map, counter: tap, trips: below.trips }, rest);
        let to = self.a_loop(Head { order: Order::Skewed, counter: sum, trips: Trips::Exact(total) }, inner);
        self.equal(from, to, "skew a loop");
    }

    fn unit(&mut self, class: Id) {
        for target in &self.skeleton.loops {
            let Trips::Exact(trips) = target.trips else { continue };
            if self.table.sizes.constant(trips) == Some(1) {
                let name = format!("unit.{}", self.names.text(target.label));
                let head = Head { order: Order::Map, counter: self.names.intern(&name), trips: target.trips };
                let to = self.graph.add_uncanonical(Nest::Loop(head, [class]));
                self.new.push((class, to, "insert a loop of one iteration"));
            }
        }
    }

    fn regroup(&mut self, first: Id, second: Id) {
        for inner in self.of(first) {
            if let Nest::Seq([a, b]) = inner {
                let head = self.add(inner);
                let from = self.add(Nest::Seq([head, second]));
                let tail = self.add(Nest::Seq([b, second]));
                let to = self.add(Nest::Seq([a, tail]));
                self.equal(from, to, "regroup statements");
            }
        }
        for inner in self.of(second) {
            if let Nest::Seq([a, b]) = inner {
                let tail = self.add(inner);
                let from = self.add(Nest::Seq([first, tail]));
                let head = self.add(Nest::Seq([first, a]));
                let to = self.add(Nest::Seq([head, b]));
                self.equal(from, to, "regroup statements");
            }
        }
    }

    /// A sum over a loop, apart from what it is added to.
    fn sum(&mut self, head: Head, body: Id) {
        let partial = self.skeleton.loops.iter().any(|target| {
            target.trips == head.trips && target.class != LoopClass::Map && target.inner.is_empty()
        });
        if head.order != Order::Fold || !partial {
            return;
        }
        for inner in self.of(body) {
            let Nest::Set(name, [sum]) = inner else { continue };
            let sum = self.value(sum);
            let (Some(addend), Some(ty)) = (addend(name, &sum), self.table.types.get(&name).copied()) else {
                continue;
            };
            let text = format!("{}.{}", self.names.text(name), self.names.text(head.counter));
            // A partial sum is not taken apart again.
            if !self.table.uses.contains_key(&name) {
                continue;
            }
            let Some(zero) = self.zero(ty) else { continue };
            let part = self.names.intern(&text);
            self.table.types.insert(part, ty);
            let scope = self.table.scope.get(&name).cloned().unwrap_or_default();
            self.table.scope.insert(part, scope);
            let place = self.table.places.get(&name).copied().unwrap_or_default();
            self.table.places.insert(part, place);
            let plus = |a, b| Value::Builtin(Builtin::Add, Box::new([a, b]));
            let set = self.add(inner);
            let from = self.a_loop(head, set);
            let values =
                [Value::Leaf(zero), plus(Value::Var(part), addend), plus(Value::Var(name), Value::Var(part))];
            let [start, step, end] = values.map(|value| self.put(&value));
            let (start, step) = (self.add(Nest::Set(part, [start])), self.add(Nest::Set(part, [step])));
            let end = self.add(Nest::Set(name, [end]));
            let step = self.a_loop(head, step);
            let tail = self.add(Nest::Seq([step, end]));
            let to = self.add(Nest::Seq([start, tail]));
            self.equal(from, to, "add partial sums");
        }
    }

    /// A constant of a type that reads as zero.
    fn zero(&mut self, ty: Type) -> Option<Leaf> {
        let function = self.case.functions.iter().find(|function| {
            function.params.is_empty()
                && function.result == ty
                && function.reads.as_ref().and_then(constant) == Some(0)
        })?;
        let zero = Expr { kind: ExprKind::Apply(function.name, Vec::new()), span: function.span };
        Some(self.table.leaf(self.names, &zero))
    }

    /// What stands before or after a loop goes into its first or last iteration.
    fn sink(&mut self, first: Id, second: Id) {
        let (before, after) = (self.of(first), self.of(second));
        for a in &before {
            for b in &after {
                match (a, b) {
                    (Nest::Set(name, [start]), Nest::Loop(head, [body]))
                        if self.starts && head.order == Order::Fold && self.carried(*name) =>
                    {
                        let zero = self.table.sizes.int(0);
                        let at = self.table.is_at(self.names, head.counter, zero);
                        let start = self.value(*start);
                        let parts = [Value::Leaf(at), start, Value::Var(*name)];
                        let start = self.put(&Value::Select(Box::new(parts)));
                        let start = self.add(Nest::Set(*name, [start]));
                        let (a, b) = (self.add(a.clone()), self.add(b.clone()));
                        let from = self.add(Nest::Seq([a, b]));
                        let inner = self.add(Nest::Seq([start, *body]));
                        let to = self.a_loop(*head, inner);
                        self.equal(from, to, "start in the first iteration");
                    }
                    (Nest::Loop(head, [body]), Nest::Set(name, [end]))
                        if self.finishes && head.order == Order::Fold && self.carried(*name) =>
                    {
                        let (end, Trips::Exact(trips)) = (self.value(*end), head.trips) else { continue };
                        if !end.reads(*name) {
                            continue;
                        }
                        let minus = self.table.sizes.int(-1);
                        let last = self.table.sizes.add(trips, minus);
                        let at = self.table.is_at(self.names, head.counter, last);
                        let parts = [Value::Leaf(at), end, Value::Var(*name)];
                        let end = self.put(&Value::Select(Box::new(parts)));
                        let end = self.add(Nest::Set(*name, [end]));
                        let (a, b) = (self.add(a.clone()), self.add(b.clone()));
                        let from = self.add(Nest::Seq([a, b]));
                        let inner = self.add(Nest::Seq([*body, end]));
                        let to = self.a_loop(*head, inner);
                        self.equal(from, to, "finish in the last iteration");
                    }
                    (Nest::Set(name, [inner]), Nest::Set(..) | Nest::Store(..))
                        if self.finishes && self.table.uses.get(name) == Some(&1) =>
                    {
                        let inner = self.value(*inner);
                        let (Nest::Set(_, [outer]) | Nest::Store(_, [outer])) = b else { continue };
                        let outer = self.value(*outer);
                        if !outer.reads(*name) || inner.reads(*name) {
                            continue;
                        }
                        let whole = self.put(&outer.replace(*name, &inner));
                        let to = match b {
                            Nest::Set(other, _) => self.add(Nest::Set(*other, [whole])),
                            Nest::Store(place, _) => self.add(Nest::Store(*place, [whole])),
                            _ => continue,
                        };
                        let (a, b) = (self.add(a.clone()), self.add(b.clone()));
                        let from = self.add(Nest::Seq([a, b]));
                        self.equal(from, to, "put a value in");
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether a scalar is one of the program's own that loops change.
    fn carried(&self, name: Sym) -> bool {
        self.table.uses.get(&name).is_some_and(|uses| *uses > 1)
    }

    fn in_place(&mut self, place: Leaf, inner: Id) {
        let end = self.value(inner);
        let mut vars = HashSet::new();
        end.visit(&mut |part| {
            if let Value::Var(name) = part {
                vars.insert(*name);
            }
        });
        let ExprKind::Access(output, _) = self.table.expr(place).kind else { return };
        let (1, Some(&name)) = (vars.len(), vars.iter().next()) else { return };
        if !self.finishes
            || matches!(end, Value::Var(_))
            || !self.carried(name)
            || self.case.decl(output).map(|decl| decl.ty) != self.table.types.get(&name).copied()
        {
            return;
        }
        let from = self.add(Nest::Store(place, [inner]));
        let (set, var) = (self.add(Nest::Set(name, [inner])), self.add(Nest::Var(name)));
        let store = self.add(Nest::Store(place, [var]));
        let to = self.add(Nest::Seq([set, store]));
        self.equal(from, to, "finish in place");
    }
}

/// What a value adds to a scalar.
fn addend(name: Sym, sum: &Value) -> Option<Value> {
    let Value::Builtin(Builtin::Add, parts) = sum else { return None };
    let [a, b] = &**parts;
    match (a, b) {
        (Value::Var(own), other) | (other, Value::Var(own)) if *own == name && !other.reads(name) => {
            Some(other.clone())
        }
        _ => None,
    }
}

/// Whether a size is made of trip counts of these loops, in this order.
fn factors(size: Term, loops: &[usize], skeleton: &Skeleton, table: &mut Table) -> bool {
    if table.sizes.constant(size) == Some(1) {
        return true;
    }
    loops.iter().enumerate().any(|(at, target)| match skeleton.loops[*target].trips {
        Trips::Exact(part) if table.sizes.constant(part) != Some(1) => table
            .sizes
            .quotient(size, part)
            .is_some_and(|rest| factors(rest, &loops[at + 1..], skeleton, table)),
        _ => false,
    })
}

/// Counters that are added in an index: `stride * a + b`.
fn skews(table: &mut Table) -> Vec<(Sym, Sym, i64)> {
    fn counter(expr: &Expr) -> Option<(Sym, i64)> {
        match &expr.kind {
            ExprKind::Name(name) => Some((*name, 1)),
            ExprKind::Binary(Binary::Mul, a, b) => match (&a.kind, &b.kind) {
                (ExprKind::Name(name), ExprKind::Int(stride))
                | (ExprKind::Int(stride), ExprKind::Name(name)) => Some((*name, *stride)),
                _ => None,
            },
            _ => None,
        }
    }
    let mut found = Vec::new();
    for leaf in table.all() {
        visit_expr(leaf, &mut |part| {
            let ExprKind::Access(_, indices) = &part.kind else { return };
            for index in indices {
                let ExprKind::Binary(Binary::Add, a, b) = &index.kind else { continue };
                let (Some((a, m)), Some((b, n))) = (counter(a), counter(b)) else { continue };
                if n == 1 && m > 0 {
                    found.push((a, b, m));
                }
                if m == 1 && n > 0 {
                    found.push((b, a, n));
                }
            }
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}
