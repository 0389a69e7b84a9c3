//! Custom numerics: values of an aligned program written as the hardware computes them. A formula of the hardware stands for
//! ideal arithmetic; where a value of the program is that, in some order and with some distribution over choices, the
//! formula takes its place with the program's own elements in it.

use super::nest::{Leaf, Nest, Table, Tree, Value};
use super::skeleton::Skeleton;
use crate::hex::expand::{Expanded, constant};
use crate::hex::printer::print_expr;
use crate::hex::syntax::*;
use egg::{EGraph, Id};
use std::collections::HashMap;

/// More equal terms than a value of the measured cases has.
const MOST_NODES: usize = 4000;
const ROUNDS: usize = 8;

/// A program with the hardware's functions in it, and what was done to it, one step after the other.
#[derive(Clone, Debug)]
pub(super) struct Numeric {
    pub trees: Vec<Tree>,
    pub steps: Vec<(String, Vec<Tree>)>,
}

/// Ways to write a program's values as the hardware does; more than one where operands could be either way round.
pub(super) fn numeric(
    case: &Expanded,
    names: &mut Names,
    table: &mut Table,
    skeleton: &Skeleton,
    trees: &[Tree],
    most: usize,
) -> Vec<Numeric> {
    let mut found: Vec<Numeric> = Vec::new();
    let mut choices: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut writer = Writer {
            case,
            names,
            table,
            skeleton,
            types: HashMap::new(),
            choices: choices.clone(),
            met: 0,
            whole: trees.to_vec(),
            steps: Vec::new(),
        };
        writer.statements(&mut Vec::new(), None);
        writer.constants(&mut Vec::new());
        choices = writer.choices;
        found.push(Numeric { trees: writer.whole, steps: writer.steps });
        // The next combination, the last choice fastest.
        while choices.last().is_some_and(|(taken, of)| taken + 1 >= *of) {
            choices.pop();
        }
        match choices.last_mut() {
            Some(last) if found.len() < most => last.0 += 1,
            _ => return found,
        }
    }
}

struct Writer<'a> {
    case: &'a Expanded,
    names: &'a mut Names,
    table: &'a mut Table,
    skeleton: &'a Skeleton,
    /// Types of scalars as they turn out.
    types: HashMap<Sym, Type>,
    /// Which of how many ways was taken, choice by choice.
    choices: Vec<(usize, usize)>,
    met: usize,
    whole: Vec<Tree>,
    steps: Vec<(String, Vec<Tree>)>,
}

type Bindings = HashMap<String, Value>;

impl Writer<'_> {
    fn at(&self, path: &[usize]) -> &Tree {
        let mut list = &self.whole;
        for &step in &path[..path.len() - 1] {
            let Tree::Loop { body, .. } = &list[step] else { break };
            list = body;
        }
        &list[path[path.len() - 1]]
    }

    fn list(&self, path: &[usize]) -> usize {
        let mut list = &self.whole;
        for &step in path {
            let Tree::Loop { body, .. } = &list[step] else { return 0 };
            list = body;
        }
        list.len()
    }

    fn replace(&mut self, path: &[usize], by: Tree) {
        let mut list = &mut self.whole;
        for &step in &path[..path.len() - 1] {
            let Tree::Loop { body, .. } = &mut list[step] else { return };
            list = body;
        }
        list[path[path.len() - 1]] = by;
    }

    fn statements(&mut self, path: &mut Vec<usize>, label: Option<Sym>) {
        for index in 0..self.list(path) {
            path.push(index);
            match self.at(path).clone() {
                Tree::Loop { label: own, .. } => self.statements(path, own.or(label)),
                Tree::Set(name, value) => {
                    if let Some((value, ty, formula)) = self.written(&value, label, self.wanted(name)) {
                        self.types.insert(name, ty);
                        self.replace(path, Tree::Set(name, value));
                        self.steps.push((formula, self.whole.clone()));
                    }
                }
                Tree::Store(place, value) => {
                    let wanted = match &self.table.expr(place).kind {
                        ExprKind::Access(output, _) => self.case.decl(*output).map(|decl| decl.ty),
                        _ => None,
                    };
                    if let Some((value, _, formula)) = self.written(&value, label, wanted) {
                        self.replace(path, Tree::Store(place, value));
                        self.steps.push((formula, self.whole.clone()));
                    }
                }
            }
            path.pop();
        }
    }

    fn wanted(&self, name: Sym) -> Option<Type> {
        self.types.get(&name).copied()
    }

    /// Constants of the types that their scalars have turned out to have.
    fn constants(&mut self, path: &mut Vec<usize>) {
        for index in 0..self.list(path) {
            path.push(index);
            match self.at(path).clone() {
                Tree::Loop { .. } => self.constants(path),
                Tree::Set(name, value) => {
                    let ideal = self.ideal(&value);
                    let own = self.leaf_type(&value);
                    if let (Value::Number(number), Some(ty)) = (ideal, self.wanted(name))
                        && own != Some(ty)
                        && let Some(leaf) = self.number(number, ty)
                    {
                        self.replace(path, Tree::Set(name, Value::Leaf(leaf)));
                        let text = print_expr(self.names, self.table.expr(leaf));
                        self.steps.push((format!("{text} for {number}"), self.whole.clone()));
                    }
                }
                Tree::Store(..) => {}
            }
            path.pop();
        }
    }

    /// A value as a formula of the hardware, with its type.
    fn written(
        &mut self,
        value: &Value,
        label: Option<Sym>,
        wanted: Option<Type>,
    ) -> Option<(Value, Type, String)> {
        let ideal = self.ideal(value);
        // A bare constant is left to its type, unless the hardware loop has that very constant.
        let (graph, root) = saturated(&ideal);
        let mut own = Vec::new();
        self.integers(value, &mut own);
        let here = |at: &usize| label.is_some_and(|label| self.skeleton.loops[*at].label == label);
        let mut order: Vec<usize> = (0..self.skeleton.loops.len()).filter(here).collect();
        let others = (0..self.skeleton.loops.len()).filter(|at| !here(at));
        order.extend(others.collect::<Vec<_>>());
        let number = matches!(ideal, Value::Number(_));
        for at in order {
            for formula in self.skeleton.loops[at].formulas.clone() {
                let Some(ty) =
                    self.formula_type(&formula).filter(|ty| wanted.is_none_or(|wanted| wanted == *ty))
                else {
                    continue;
                };
                let Some(pattern) = self.pattern(&formula) else { continue };
                // Integers that the hardware is given change what it computes, whatever that reads as: the program must give
                // the same.
                let mut given = Vec::new();
                integers_of(&formula, &mut given);
                if given != own || number != matches!(pattern, Value::Number(_)) {
                    continue;
                }
                let mut holes = HashMap::new();
                self.holes(&formula, &mut holes);
                let found = matches(&graph, &pattern, root, &HashMap::new());
                let mut fitting: Vec<(Bindings, Value)> = Vec::new();
                for bindings in found {
                    if let Some(bindings) = self.fit(&graph, &bindings, &holes)
                        && let Some(written) = self.put(&formula, &bindings)
                        && !fitting.iter().any(|(_, other)| *other == written)
                    {
                        fitting.push((bindings, written));
                    }
                }
                if fitting.is_empty() {
                    continue;
                }
                if self.met == self.choices.len() {
                    self.choices.push((0, fitting.len()));
                }
                let taken = self.choices[self.met].0.min(fitting.len() - 1);
                self.met += 1;
                let (bindings, written) = fitting.swap_remove(taken);
                for (text, ty) in &holes {
                    if let (Some(Value::Var(name)), Some(ty)) = (bindings.get(text), ty) {
                        self.types.insert(*name, *ty);
                    }
                }
                let text = print_expr(self.names, &formula);
                return Some((written, ty, format!("{text} for what it stands for")));
            }
        }
        None
    }

    fn formula_type(&self, formula: &Expr) -> Option<Type> {
        match &formula.kind {
            ExprKind::Apply(name, _) => self.case.function(*name).map(|function| function.result),
            ExprKind::Select(_, then, other) => self.formula_type(then).or_else(|| self.formula_type(other)),
            ExprKind::Builtin(_, parts) => parts.iter().find_map(|part| self.formula_type(part)),
            ExprKind::Access(name, _) | ExprKind::Name(name) => {
                self.case.decl(*name).map(|decl| decl.ty).filter(|ty| matches!(ty, Type::Elem(_)))
            }
            _ => None,
        }
    }

    /// Types that places of a formula must have; conditions have none.
    fn holes(&self, formula: &Expr, into: &mut HashMap<String, Option<Type>>) {
        match &formula.kind {
            ExprKind::Apply(name, parts) => {
                let Some(function) = self.case.function(*name) else { return };
                for (part, (_, ty)) in parts.iter().zip(&function.params) {
                    if matches!(part.kind, ExprKind::Access(..) | ExprKind::Name(_)) {
                        into.insert(print_expr(self.names, part), Some(*ty));
                    } else {
                        self.holes(part, into);
                    }
                }
            }
            ExprKind::Select(condition, then, other) => {
                into.entry(print_expr(self.names, condition)).or_insert(None);
                for part in [then, other] {
                    self.holes(part, into);
                }
            }
            ExprKind::Builtin(_, parts) => parts.iter().for_each(|part| self.holes(part, into)),
            ExprKind::Access(name, _) => {
                into.entry(print_expr(self.names, formula))
                    .or_insert_with(|| self.case.decl(*name).map(|decl| decl.ty));
            }
            _ => {}
        }
    }

    /// The ideal arithmetic of a formula; places are variables by their text.
    fn pattern(&mut self, formula: &Expr) -> Option<Value> {
        let hole = |writer: &mut Self, expr: &Expr| {
            let text = print_expr(writer.names, expr);
            Value::Var(writer.names.intern(&text))
        };
        Some(match &formula.kind {
            ExprKind::Access(..) | ExprKind::Name(_) => hole(self, formula),
            ExprKind::Apply(name, parts) => {
                let function = self.case.function(*name)?.clone();
                let mut values = HashMap::new();
                for (part, (param, ty)) in parts.iter().zip(&function.params) {
                    if matches!(ty, Type::Elem(_)) {
                        values.insert(*param, self.pattern(part)?);
                    } else if constant(part).is_none() {
                        return None;
                    }
                }
                simple(read(self.case, function.reads.as_ref()?, &values)?)
            }
            ExprKind::Builtin(builtin, parts) => simple(Value::Builtin(
                *builtin,
                Box::new([self.pattern(&parts[0])?, self.pattern(&parts[1])?]),
            )),
            ExprKind::Select(condition, then, other) => {
                Value::Select(Box::new([hole(self, condition), self.pattern(then)?, self.pattern(other)?]))
            }
            _ => return None,
        })
    }

    /// Bindings as values of the program: elements of the right type, constants, conditions.
    fn fit(
        &mut self,
        graph: &EGraph<Nest, ()>,
        bindings: &HashMap<Sym, Id>,
        holes: &HashMap<String, Option<Type>>,
    ) -> Option<Bindings> {
        let mut fitted = Bindings::new();
        for (text, ty) in holes {
            let class = *bindings.get(&self.names.find(text)?)?;
            let candidates = graph[class].nodes.iter().filter_map(|node| match node {
                Nest::Leaf(leaf) => Some(Value::Leaf(*leaf)),
                Nest::Var(name) => Some(Value::Var(*name)),
                Nest::Number(number) => Some(Value::Number(*number)),
                _ => None,
            });
            let candidates: Vec<Value> = candidates.collect();
            let good = candidates.iter().find_map(|candidate| match (candidate, ty) {
                (Value::Leaf(leaf), None) => {
                    let condition = matches!(
                        self.table.expr(*leaf).kind,
                        ExprKind::Binary(..) | ExprKind::Not(_) | ExprKind::Bool(_)
                    );
                    condition.then(|| candidate.clone())
                }
                (Value::Leaf(_), Some(ty)) => {
                    (self.leaf_type(candidate) == Some(*ty)).then(|| candidate.clone())
                }
                (Value::Var(name), Some(ty)) => {
                    self.types.get(name).is_none_or(|own| own == ty).then(|| candidate.clone())
                }
                (Value::Number(number), Some(ty)) => self.number(*number, *ty).map(Value::Leaf),
                _ => None,
            });
            fitted.insert(text.clone(), good?);
        }
        Some(fitted)
    }

    /// Integer arguments in a value, those of a function after those in its operands.
    fn integers(&self, value: &Value, into: &mut Vec<Option<i64>>) {
        match value {
            Value::Leaf(_) | Value::Var(_) | Value::Number(_) => {}
            Value::Apply(_, integers, parts) => {
                parts.iter().for_each(|part| self.integers(part, into));
                into.extend(integers.iter().map(|leaf| constant(self.table.expr(*leaf))));
            }
            Value::Builtin(_, parts) => parts.iter().for_each(|part| self.integers(part, into)),
            Value::Select(parts) => parts.iter().for_each(|part| self.integers(part, into)),
        }
    }

    fn leaf_type(&self, value: &Value) -> Option<Type> {
        let Value::Leaf(leaf) = value else { return None };
        match &self.table.expr(*leaf).kind {
            ExprKind::Access(name, _) | ExprKind::Name(name) => self.case.decl(*name).map(|decl| decl.ty),
            ExprKind::Apply(name, _) => self.case.function(*name).map(|function| function.result),
            _ => None,
        }
    }

    /// A constant of a type that reads as a number.
    fn number(&mut self, number: i64, ty: Type) -> Option<Leaf> {
        let function = self.case.functions.iter().find(|function| {
            function.params.is_empty()
                && function.result == ty
                && function.reads.as_ref().and_then(constant) == Some(number)
        })?;
        let expr = Expr { kind: ExprKind::Apply(function.name, Vec::new()), span: function.span };
        Some(self.table.leaf(self.names, &expr))
    }

    /// A formula with the program's own elements.
    fn put(&mut self, formula: &Expr, bindings: &Bindings) -> Option<Value> {
        Some(match &formula.kind {
            ExprKind::Access(..) | ExprKind::Name(_) => {
                bindings.get(&print_expr(self.names, formula))?.clone()
            }
            ExprKind::Apply(_, parts) if parts.is_empty() => {
                Value::Leaf(self.table.leaf(self.names, formula))
            }
            ExprKind::Apply(name, parts) => {
                let function = self.case.function(*name)?;
                let (mut integers, mut elements) = (Vec::new(), Vec::new());
                for (part, (_, ty)) in parts.iter().zip(&function.params) {
                    if matches!(ty, Type::Elem(_)) {
                        elements.push(self.put(part, bindings)?);
                    } else {
                        integers.push(self.table.leaf(self.names, part));
                    }
                }
                Value::Apply(*name, integers, elements)
            }
            ExprKind::Builtin(builtin, parts) => Value::Builtin(
                *builtin,
                Box::new([self.put(&parts[0], bindings)?, self.put(&parts[1], bindings)?]),
            ),
            ExprKind::Select(condition, then, other) => Value::Select(Box::new([
                bindings.get(&print_expr(self.names, condition))?.clone(),
                self.put(then, bindings)?,
                self.put(other, bindings)?,
            ])),
            _ => return None,
        })
    }

    /// A value as ideal arithmetic.
    fn ideal(&self, value: &Value) -> Value {
        match value {
            Value::Leaf(leaf) => match &self.table.expr(*leaf).kind {
                ExprKind::Apply(name, _) => self
                    .case
                    .function(*name)
                    .and_then(|function| function.reads.as_ref().and_then(constant))
                    .map_or_else(|| value.clone(), Value::Number),
                _ => value.clone(),
            },
            Value::Var(_) | Value::Number(_) => value.clone(),
            Value::Apply(name, integers, parts) => {
                let parts: Vec<Value> = parts.iter().map(|part| self.ideal(part)).collect();
                let function = self.case.function(*name);
                let reads = function.and_then(|function| {
                    let elements = function.params.iter().filter(|(_, ty)| matches!(ty, Type::Elem(_)));
                    let values = elements.map(|(name, _)| *name).zip(parts.iter().cloned()).collect();
                    read(self.case, function.reads.as_ref()?, &values)
                });
                reads.map_or_else(|| Value::Apply(*name, integers.clone(), parts), simple)
            }
            Value::Builtin(builtin, parts) => {
                simple(Value::Builtin(*builtin, Box::new([self.ideal(&parts[0]), self.ideal(&parts[1])])))
            }
            Value::Select(parts) => {
                Value::Select(Box::new([parts[0].clone(), self.ideal(&parts[1]), self.ideal(&parts[2])]))
            }
        }
    }
}

/// The same of a formula.
fn integers_of(formula: &Expr, into: &mut Vec<Option<i64>>) {
    match &formula.kind {
        ExprKind::Apply(_, parts) => {
            parts.iter().for_each(|part| integers_of(part, into));
            into.extend(parts.iter().filter_map(|part| constant(part).map(Some)));
        }
        ExprKind::Builtin(_, parts) => parts.iter().for_each(|part| integers_of(part, into)),
        ExprKind::Select(_, then, other) => {
            [then, other].into_iter().for_each(|part| integers_of(part, into));
        }
        _ => {}
    }
}

/// What a function reads as, with values for its parameters.
fn read(case: &Expanded, reads: &Expr, values: &HashMap<Sym, Value>) -> Option<Value> {
    Some(match &reads.kind {
        ExprKind::Name(name) => values.get(name)?.clone(),
        ExprKind::Int(number) => Value::Number(*number),
        ExprKind::Builtin(builtin, parts) => Value::Builtin(
            *builtin,
            Box::new([read(case, &parts[0], values)?, read(case, &parts[1], values)?]),
        ),
        ExprKind::Apply(name, parts) => {
            let function = case.function(*name)?;
            let inner: Option<HashMap<Sym, Value>> = function
                .params
                .iter()
                .zip(parts)
                .map(|((param, _), part)| Some((*param, read(case, part, values)?)))
                .collect();
            read(case, function.reads.as_ref()?, &inner?)?
        }
        _ => return None,
    })
}

/// Without zeros that are added.
fn simple(value: Value) -> Value {
    match &value {
        Value::Builtin(Builtin::Add, parts) => match &**parts {
            [Value::Number(0), other] | [other, Value::Number(0)] => other.clone(),
            _ => value,
        },
        _ => value,
    }
}

fn insert(graph: &mut EGraph<Nest, ()>, value: &Value) -> Id {
    let node = match value {
        Value::Leaf(leaf) => Nest::Leaf(*leaf),
        Value::Var(name) => Nest::Var(*name),
        Value::Number(number) => Nest::Number(*number),
        Value::Apply(name, integers, parts) => {
            let parts = parts.iter().map(|part| insert(graph, part)).collect();
            Nest::Apply(*name, integers.clone(), parts)
        }
        Value::Builtin(builtin, parts) => {
            Nest::Builtin(*builtin, [insert(graph, &parts[0]), insert(graph, &parts[1])])
        }
        Value::Select(parts) => {
            Nest::Select([insert(graph, &parts[0]), insert(graph, &parts[1]), insert(graph, &parts[2])])
        }
    };
    graph.add(node)
}

/// A value with all that is equal to it in ideal arithmetic, as far as some rounds of rewriting go.
fn saturated(value: &Value) -> (EGraph<Nest, ()>, Id) {
    let mut graph = EGraph::default();
    let root = insert(&mut graph, value);
    graph.rebuild();
    for _ in 0..ROUNDS {
        let classes: Vec<(Id, Vec<Nest>)> =
            graph.classes().map(|class| (class.id, class.nodes.clone())).collect();
        let nodes: HashMap<Id, &Vec<Nest>> = classes.iter().map(|(id, nodes)| (*id, nodes)).collect();
        let mut new: Vec<(Id, Id)> = Vec::new();
        let before = graph.total_size();
        for (class, own) in &classes {
            for node in own {
                let Nest::Builtin(builtin, [a, b]) = node else { continue };
                let (a, b) = (*a, *b);
                if *builtin != Builtin::Sub {
                    new.push((*class, graph.add(Nest::Builtin(*builtin, [b, a]))));
                }
                for inner in nodes.get(&graph.find(a)).into_iter().flat_map(|nodes| nodes.iter()) {
                    match inner {
                        Nest::Number(0) if *builtin == Builtin::Add => new.push((*class, b)),
                        Nest::Builtin(other, [x, y]) if other == builtin && *builtin == Builtin::Add => {
                            let rest = graph.add(Nest::Builtin(*builtin, [*y, b]));
                            new.push((*class, graph.add(Nest::Builtin(*builtin, [*x, rest]))));
                        }
                        Nest::Select([condition, x, y]) => {
                            let x = graph.add(Nest::Builtin(*builtin, [*x, b]));
                            let y = graph.add(Nest::Builtin(*builtin, [*y, b]));
                            new.push((*class, graph.add(Nest::Select([*condition, x, y]))));
                        }
                        _ => {}
                    }
                }
            }
        }
        for (a, b) in new {
            graph.union(a, b);
        }
        graph.rebuild();
        if graph.total_size() == before || graph.total_size() > MOST_NODES {
            break;
        }
    }
    let root = graph.find(root);
    (graph, root)
}

/// All ways in which a class is a pattern, whose variables stand for classes.
fn matches(
    graph: &EGraph<Nest, ()>,
    pattern: &Value,
    class: Id,
    bound: &HashMap<Sym, Id>,
) -> Vec<HashMap<Sym, Id>> {
    let class = graph.find(class);
    let parts: &[Value] = match pattern {
        Value::Var(name) => {
            let mut bound = bound.clone();
            let other = *bound.entry(*name).or_insert(class);
            return if other == class { vec![bound] } else { Vec::new() };
        }
        Value::Number(number) => {
            let found = graph[class].nodes.contains(&Nest::Number(*number));
            return if found { vec![bound.clone()] } else { Vec::new() };
        }
        Value::Leaf(_) | Value::Apply(..) => return Vec::new(),
        Value::Builtin(_, parts) => &**parts,
        Value::Select(parts) => &**parts,
    };
    let members = |node: &Nest| match (node, pattern) {
        (Nest::Builtin(own, ids), Value::Builtin(wanted, _)) if own == wanted => Some(ids.to_vec()),
        (Nest::Select(ids), Value::Select(_)) => Some(ids.to_vec()),
        _ => None,
    };
    let mut found = Vec::new();
    for ids in graph[class].nodes.iter().filter_map(members) {
        let mut partial = vec![bound.clone()];
        for (part, id) in parts.iter().zip(ids) {
            partial = partial.iter().flat_map(|bound| matches(graph, part, id, bound)).collect();
        }
        found.extend(partial);
    }
    found
}
