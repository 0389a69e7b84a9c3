//! Finds the rewrites that bring a tensor program to the skeleton of hardware code, by equality saturation: first of its loops,
//! then of its values. It is done with the sizes left open; every step is run at small sizes against the one before. Best
//! effort: what it does not reach stays as it is.

use super::extract::extract;
use super::lift::lift;
use super::lower::{Lowered, lower};
use super::nest::{Nest, Table, Tree, Value, tree};
use super::numeric::numeric;
use super::rules::{Basis, RULES, Search};
use super::skeleton::{Item, Skeleton, SkeletonLoop, skeleton};
use crate::hex::domain::{Domain, Reading};
use crate::hex::expand::{Expanded, expand_open, substitute};
use crate::hex::run::{run, run_traced};
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::hex::trace::Trace;
use egg::{Id, Language, RecExpr};
use std::collections::{HashMap, HashSet};

/// A rewritten program with the steps that led to it.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    pub body: Vec<Stmt>,
    /// Tensors that the tensor program did not have.
    pub decls: Vec<Decl>,
    pub steps: Vec<Step>,
    /// Labels of hardware loops by their places; some are new.
    pub labels: HashMap<Span, Sym>,
    /// Loops of the skeleton, and how many of them no loop of the program was brought to.
    pub loops: usize,
    pub unaligned: usize,
    /// The skeleton, one loop a line.
    pub skeleton: String,
}

/// One rewrite.
#[derive(Clone, Debug)]
pub struct Step {
    pub what: String,
    pub basis: Basis,
    /// Why the programs before and after it are not the same, if a run showed so.
    pub fault: Option<String>,
}

/// Ways to put in operands that are tried at most.
const WAYS: usize = 16;

/// Statements a run at small sizes may take.
const FUEL: u64 = 3_000_000;

/// Aligns the tensor program of a case with its hardware code. `expanded` is the case at its sizes; its table of names grows.
#[must_use]
pub fn align(case: &Case, settings: &[(&str, i64)], expanded: &mut Expanded) -> Option<Alignment> {
    let sizes = sizes(case);
    for round in 0..3 {
        let samples: HashMap<Sym, i64> = sizes
            .iter()
            .enumerate()
            .filter_map(|(index, (name, value))| {
                let text = case.names.text(*name);
                let value =
                    settings.iter().find(|(name, _)| *name == text).map_or(*value, |(_, value)| *value);
                let small = i64::try_from(match round {
                    0 => 4 + index % 3,
                    _ => 7 - index % 3,
                })
                .ok()?;
                Some((*name, if round == 2 { value } else { value.min(small) }))
            })
            .collect();
        let Ok(open) = expand_open(case, settings, &samples) else { continue };
        if let Some(found) = attempt(open, expanded) {
            return Some(close(found, &samples, case, settings, expanded));
        }
    }
    None
}

/// Sizes become what they are in the case.
fn close(
    mut found: Alignment,
    samples: &HashMap<Sym, i64>,
    case: &Case,
    settings: &[(&str, i64)],
    expanded: &Expanded,
) -> Alignment {
    let mut values = HashMap::new();
    for name in samples.keys() {
        if expanded.symbolic.iter().any(|param| param.name == *name) {
            continue;
        }
        let text = case.names.text(*name);
        let set = settings.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        let own = case.params.iter().find(|param| param.name == *name).map(|param| &param.value);
        let value = set.or_else(|| own.and_then(crate::hex::expand::constant));
        if let Some(value) = value {
            values.insert(*name, Expr::int(value, Span::default()));
        }
    }
    found.body = with(&found.body, &|expr| substitute(expr, &values));
    for decl in &mut found.decls {
        decl.dims = decl.dims.iter().map(|dim| substitute(dim, &values)).collect();
    }
    found
}

/// Statements with every expression replaced.
fn with(body: &[Stmt], by: &dyn Fn(&Expr) -> Expr) -> Vec<Stmt> {
    let kind = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Let(name, value) => StmtKind::Let(*name, by(value)),
        StmtKind::Assign(name, indices, value) => {
            StmtKind::Assign(*name, indices.iter().map(by).collect(), by(value))
        }
        StmtKind::If(condition, then, other) => StmtKind::If(by(condition), with(then, by), with(other, by)),
        StmtKind::Call(name, arguments) => StmtKind::Call(*name, arguments.iter().map(by).collect()),
        StmtKind::Loop(inner) => StmtKind::Loop(Box::new(Loop {
            lo: by(&inner.lo),
            hi: by(&inner.hi),
            body: with(&inner.body, by),
            ..(**inner).clone()
        })),
    };
    body.iter().map(|stmt| Stmt { kind: kind(stmt), span: stmt.span }).collect()
}

/// Parameters that say how often loops run and decide nothing else, with their values.
fn sizes(case: &Case) -> Vec<(Sym, i64)> {
    let mut bounds = HashSet::new();
    let mut conditions = HashSet::new();
    let calls: HashMap<Sym, &CallDef> = case.calls.iter().map(|call| (call.name, call)).collect();
    for decl in &case.ir.decls {
        decl.dims.iter().for_each(|dim| mentioned(dim, &mut bounds));
    }
    let aligned = case.aligned.iter().flat_map(|side| &side.body);
    let bodies = case.ir.body.iter().chain(aligned).chain(&case.mapping.body);
    for stmt in bodies {
        look(std::slice::from_ref(stmt), &calls, &mut bounds, &mut conditions);
    }
    for call in &case.calls {
        look(&call.body, &calls, &mut bounds, &mut conditions);
    }
    // What is computed from parameters passes on to them.
    for param in case.params.iter().rev() {
        for set in [&mut bounds, &mut conditions] {
            if set.contains(&param.name) {
                mentioned(&param.value, set);
            }
        }
    }
    case.params
        .iter()
        .filter(|param| bounds.contains(&param.name) && !conditions.contains(&param.name))
        .filter_map(|param| Some((param.name, crate::hex::expand::constant(&param.value)?)))
        .collect()
}

fn mentioned(expr: &Expr, into: &mut HashSet<Sym>) {
    visit_expr(expr, &mut |part| {
        if let ExprKind::Name(name) = part.kind {
            into.insert(name);
        }
    });
}

fn look(
    body: &[Stmt],
    calls: &HashMap<Sym, &CallDef>,
    bounds: &mut HashSet<Sym>,
    conditions: &mut HashSet<Sym>,
) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                mentioned(&inner.lo, bounds);
                mentioned(&inner.hi, bounds);
                look(&inner.body, calls, bounds, conditions);
            }
            StmtKind::If(condition, then, other) => {
                mentioned(condition, conditions);
                look(then, calls, bounds, conditions);
                look(other, calls, bounds, conditions);
            }
            StmtKind::Call(name, arguments) => {
                let Some(call) = calls.get(name) else { continue };
                let mut own = HashSet::new();
                look(&call.body, calls, &mut own, &mut HashSet::new());
                for (param, argument) in call.params.iter().zip(arguments) {
                    if own.contains(param) {
                        mentioned(argument, bounds);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Aligns at one choice of small sizes. None where the programs do not run there.
fn attempt(mut open: Expanded, expanded: &mut Expanded) -> Option<Alignment> {
    let domain = Domain::new(&open, Reading::Hashed, 1);
    let outcome = run(&open, &open.ir, &domain, FUEL).ok()?;
    let empty = |name: &Sym| outcome.buffers.get(name).is_none_or(Vec::is_empty);
    let mut outputs = open.decls.iter().filter(|decl| decl.role == Role::Output).map(|decl| decl.name);
    let written = outputs.clone().any(|name| outcome.buffers.contains_key(&name));
    if !written || outputs.any(|name| outcome.buffers.contains_key(&name) && empty(&name)) {
        return None;
    }
    let (_, trace) = run_traced(&open, &open.hardware, &domain, FUEL, Trace::default()).ok()?;
    // New names are new in both.
    for index in open.names.len()..expanded.names.len() {
        let text = expanded.names.text(Sym(u32::try_from(index).ok()?)).to_owned();
        open.names.intern(&text);
    }
    let mut table = Table::default();
    let skeleton = skeleton(&mut open, &trace, &mut table.sizes);
    let mut names = open.names.clone();
    let mut alignment = Alignment {
        loops: skeleton.loops.len(),
        unaligned: skeleton.loops.len(),
        labels: skeleton.labels.clone(),
        body: open.ir.clone(),
        skeleton: show(&open.names, &skeleton),
        ..Alignment::default()
    };
    let Some((term, root)) = lift(&open, &mut names, &mut table) else {
        expanded.names = names;
        return Some(alignment);
    };
    let hints = hints(&skeleton.loops);
    let mut search = Search::new(&open, &mut names, &mut table, &skeleton, hints);
    let top = search.graph.add_expr(&term);
    search.graph.rebuild();
    search.saturate();
    let extraction = extract(&search.graph, &skeleton, &|name| search.is_partial(name), top)?;
    let mut explanation = search.graph.explain_equivalence(&term, &extraction.term);
    let flat: Vec<(Option<String>, RecExpr<Nest>)> = explanation
        .make_flat_explanation()
        .iter()
        .map(|step| {
            let mut term = RecExpr::default();
            rebuilt(step, &mut term);
            (rule_of(step), term)
        })
        .collect();
    alignment.unaligned = extraction.unaligned;

    let mut checker = Checker { open: &open, names: &mut names, table: &mut table, last: None };
    checker.start(&trees_of(&term, root));
    for (rule, term) in flat {
        let Some(rule) = rule else { continue };
        let basis =
            RULES.iter().find(|(name, _)| *name == rule).map_or(Basis::Arithmetic, |(_, basis)| *basis);
        let trees = trees_of(&term, Id::from(term.len() - 1));
        alignment.steps.push(checker.step(rule, basis, &trees));
    }
    let mut trees = trees_of(&extraction.term, Id::from(extraction.term.len() - 1));
    label(&mut trees, &mut extraction.labels.iter());
    let mut fused = fuse(&trees, &trees);
    join_conditions(&mut fused, checker.names, checker.table);
    if fused != trees {
        alignment.steps.push(checker.step("put values together".to_owned(), Basis::Terms, &fused));
    }
    let ways = numeric(&open, checker.names, checker.table, &skeleton, &fused, WAYS);
    let best = checker.like_hardware(&ways);
    let chosen = &ways[best];
    for (what, trees) in &chosen.steps {
        alignment.steps.push(checker.step(what.clone(), Basis::Arithmetic, trees));
    }
    let Lowered { body, decls } = lower(&open, &mut names, &mut table, &chosen.trees);
    alignment.body = body;
    alignment.decls = decls;
    expanded.names = names;
    Some(alignment)
}

/// Whether the hardware starts from something else in one of the iterations of what it accumulates, and whether it ends with
/// something else.
fn hints(loops: &[SkeletonLoop]) -> (bool, bool) {
    let reads = |expr: &Expr| {
        let mut count = 0;
        visit_expr(expr, &mut |part| {
            if matches!(part.kind, ExprKind::Access(..)) {
                count += 1;
            }
        });
        count
    };
    let (mut starts, mut ends) = (false, false);
    for formula in loops.iter().flat_map(|one| &one.formulas) {
        visit_expr(formula, &mut |part| {
            if let ExprKind::Select(_, then, other) = &part.kind {
                // The first tap has nothing to add to; the last one has something more.
                if reads(then) < reads(other) {
                    starts = true;
                } else {
                    ends = true;
                }
            }
        });
    }
    (starts, ends)
}

fn rule_of(step: &egg::FlatTerm<Nest>) -> Option<String> {
    let own = step.forward_rule.or(step.backward_rule).map(|rule| rule.to_string());
    own.or_else(|| step.children.iter().find_map(rule_of))
}

/// A term of an explanation.
fn rebuilt(step: &egg::FlatTerm<Nest>, into: &mut RecExpr<Nest>) -> Id {
    let mut node = step.node.clone();
    for (own, child) in node.children_mut().iter_mut().zip(&step.children) {
        *own = rebuilt(child, into);
    }
    into.add(node)
}

fn trees_of(term: &RecExpr<Nest>, root: Id) -> Vec<Tree> {
    let mut trees = Vec::new();
    tree(&|id| &term[id], root, &mut trees);
    trees
}

fn label<'a>(trees: &mut [Tree], labels: &mut impl Iterator<Item = &'a Option<Sym>>) {
    for tree in trees {
        if let Tree::Loop { label: own, body, .. } = tree {
            *own = labels.next().copied().flatten();
            label(body, labels);
        }
    }
}

/// Values that a scalar takes one after the other, as one.
fn fuse(trees: &[Tree], all: &[Tree]) -> Vec<Tree> {
    let mut out: Vec<Tree> = Vec::new();
    for tree in trees {
        match tree {
            Tree::Loop { head, label, body } => {
                out.push(Tree::Loop { head: *head, label: *label, body: fuse(body, all) });
            }
            // What nothing reads is not computed.
            Tree::Set(name, _) if !all.iter().any(|tree| reads(tree, *name)) => {}
            Tree::Set(name, value) => {
                let mut value = value.clone();
                let before = out.iter().rposition(|tree| writes(tree, *name));
                if let Some(at) = before
                    && let Tree::Set(_, first) = &out[at]
                    && out[at + 1..].iter().all(|tree| !reads(tree, *name))
                    && value.reads(*name)
                    && carried(trees, *name)
                {
                    let mut changed = false;
                    first.visit(&mut |part| {
                        if let Value::Var(other) = part {
                            changed |= out[at + 1..].iter().any(|tree| writes(tree, *other));
                        }
                    });
                    if !changed {
                        value = value.replace(*name, first);
                        out.remove(at);
                    }
                }
                out.push(Tree::Set(*name, value));
            }
            Tree::Store(..) => out.push(tree.clone()),
        }
    }
    out
}

/// A choice in a choice with one alternative, as one: its conditions hold together.
fn join_conditions(trees: &mut [Tree], names: &Names, table: &mut Table) {
    for tree in trees.iter_mut() {
        match tree {
            Tree::Loop { body, .. } => join_conditions(body, names, table),
            Tree::Set(_, value) | Tree::Store(_, value) => *value = joined(value, names, table),
        }
    }
}

fn joined(value: &Value, names: &Names, table: &mut Table) -> Value {
    let mut all = |parts: &[Value]| parts.iter().map(|part| joined(part, names, table)).collect::<Vec<_>>();
    match value {
        Value::Leaf(_) | Value::Var(_) | Value::Number(_) => value.clone(),
        Value::Apply(name, integers, parts) => Value::Apply(*name, integers.clone(), all(parts)),
        Value::Builtin(builtin, parts) => {
            let [a, b] = &**parts;
            Value::Builtin(*builtin, Box::new([joined(a, names, table), joined(b, names, table)]))
        }
        Value::Select(parts) => {
            let [condition, then, other] = &**parts;
            let (then, other) = (joined(then, names, table), joined(other, names, table));
            if let (Value::Leaf(outer), Value::Select(inside)) = (condition, &then)
                && let [Value::Leaf(inner), a, b] = &**inside
                && *b == other
            {
                let (outer, inner) = (table.expr(*outer).clone(), table.expr(*inner).clone());
                let span = outer.span;
                let both = ExprKind::Binary(Binary::And, Box::new(outer), Box::new(inner));
                let both = Value::Leaf(table.leaf(names, &Expr { kind: both, span }));
                return Value::Select(Box::new([both, a.clone(), other]));
            }
            Value::Select(Box::new([condition.clone(), then, other]))
        }
    }
}

/// Whether a scalar is read before it is given a value.
fn carried(trees: &[Tree], name: Sym) -> bool {
    trees.iter().find_map(|tree| match tree {
        Tree::Set(own, value) if *own == name => Some(value.reads(name)),
        _ if reads(tree, name) => Some(true),
        _ => None,
    }) == Some(true)
}

fn writes(tree: &Tree, name: Sym) -> bool {
    match tree {
        Tree::Loop { body, .. } => body.iter().any(|tree| writes(tree, name)),
        Tree::Set(own, _) => *own == name,
        Tree::Store(..) => false,
    }
}

fn reads(tree: &Tree, name: Sym) -> bool {
    match tree {
        Tree::Loop { body, .. } => body.iter().any(|tree| reads(tree, name)),
        Tree::Set(_, value) | Tree::Store(_, value) => value.reads(name),
    }
}

/// Runs programs at small sizes.
struct Checker<'a> {
    open: &'a Expanded,
    names: &'a mut Names,
    table: &'a mut Table,
    last: Option<[Result<Outputs, String>; 2]>,
}

type Outputs = Vec<(Sym, Vec<i64>)>;

impl Checker<'_> {
    /// Outputs of a program on hashed and on ideal elements.
    fn outputs(&mut self, trees: &[Tree]) -> [Result<Outputs, String>; 2] {
        let lowered = lower(self.open, self.names, self.table, trees);
        let mut case = self.open.clone();
        case.names.clone_from(self.names);
        case.decls.extend(lowered.decls);
        [Reading::Hashed, Reading::Ideal].map(|reading| {
            let domain = Domain::new(&case, reading, 1);
            let outcome = run(&case, &lowered.body, &domain, FUEL).map_err(|fault| fault.kind.to_string())?;
            let outputs = self.open.decls.iter().filter(|decl| decl.role == Role::Output);
            Ok(outputs
                .filter_map(|decl| Some((decl.name, outcome.buffers.get(&decl.name)?.clone())))
                .collect())
        })
    }

    fn start(&mut self, trees: &[Tree]) {
        self.last = Some(self.outputs(trees));
    }

    fn step(&mut self, what: String, basis: Basis, trees: &[Tree]) -> Step {
        let now = self.outputs(trees);
        let reading = usize::from(basis == Basis::Arithmetic);
        let fault = match (&now[reading], self.last.as_ref().map(|last| &last[reading])) {
            (Ok(now), Some(Ok(last))) if now == last => None,
            (Err(fault), _) | (_, Some(Err(fault))) => Some(fault.clone()),
            _ => Some("the programs before and after it differ".to_owned()),
        };
        self.last = Some(now);
        Step { what, basis, fault }
    }

    /// The first of some programs that has the outputs of the hardware on hashed elements, or the first of all.
    fn like_hardware(&mut self, ways: &[super::numeric::Numeric]) -> usize {
        if ways.len() < 2 {
            return 0;
        }
        let domain = Domain::new(self.open, Reading::Hashed, 1);
        let Ok(hardware) = run(self.open, &self.open.hardware, &domain, FUEL) else { return 0 };
        let wanted: HashSet<Vec<i64>> = self
            .open
            .decls
            .iter()
            .filter(|decl| decl.role == Role::Output)
            .filter_map(|decl| hardware.buffers.get(&decl.name).cloned())
            .collect();
        let good = ways.iter().position(|way| {
            let [hashed, _] = self.outputs(&way.trees);
            hashed.is_ok_and(|outputs| outputs.iter().all(|(_, data)| wanted.contains(data)))
        });
        good.unwrap_or(0)
    }
}

/// Puts labels on hardware loops that have none.
#[must_use]
pub fn labelled(body: &[Stmt], labels: &HashMap<Span, Sym>) -> Vec<Stmt> {
    let kind = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Loop(inner) => StmtKind::Loop(Box::new(Loop {
            label: inner.label.or_else(|| labels.get(&stmt.span).copied()),
            body: labelled(&inner.body, labels),
            ..(**inner).clone()
        })),
        StmtKind::If(condition, then, other) => {
            StmtKind::If(condition.clone(), labelled(then, labels), labelled(other, labels))
        }
        other => other.clone(),
    };
    body.iter().map(|stmt| Stmt { kind: kind(stmt), span: stmt.span }).collect()
}

/// What a skeleton looks like, one loop a line.
fn show(names: &Names, skeleton: &Skeleton) -> String {
    fn walk(names: &Names, skeleton: &Skeleton, loops: &[usize], depth: usize, out: &mut String) {
        for &at in loops {
            let one = &skeleton.loops[at];
            out.push_str(&format!("{}{:?} @{}\n", "  ".repeat(depth), one.class, names.text(one.label)));
            walk(names, skeleton, &one.inner, depth + 1, out);
        }
    }
    let mut out = String::new();
    let outermost = skeleton.outermost.iter().filter_map(|item| match item {
        Item::Loop(at) => Some(*at),
        Item::Formula(_) => None,
    });
    walk(names, skeleton, &outermost.collect::<Vec<_>>(), 0, &mut out);
    out
}
