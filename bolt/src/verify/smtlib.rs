//! Verification conditions as SMT-LIB text: integers, uninterpreted functions for buffers and elements, nothing else. The
//! text is whole, so that any solver can replay it.

use super::term::{Function, Node, Sort, Term, Terms};
use crate::hex::expand::Expanded;
use crate::hex::syntax::{Builtin, Sym};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A script that is unsatisfiable if and only if the assertions contradict each other.
pub fn script(case: &Expanded, terms: &mut Terms, comment: &str, assertions: &[Term]) -> String {
    let mut all: Vec<Term> = assertions.to_vec();
    all.extend(mirrored(case, terms, assertions));
    let order = terms.closure(&all);
    let mut printer = Printer { case, terms, out: String::new() };
    for line in comment.lines() {
        writeln!(printer.out, "; {line}").expect("a string takes all");
    }
    printer.declare(&order);
    for &term in &order {
        printer.define(term);
    }
    for assertion in all {
        let text = printer.name(assertion);
        writeln!(printer.out, "(assert {text})").expect("a string takes all");
    }
    printer.out
}

/// f(a, b) = f(b, a) for the commutative applications.
fn mirrored(case: &Expanded, terms: &mut Terms, assertions: &[Term]) -> Vec<Term> {
    let mut laws = Vec::new();
    for term in terms.closure(assertions) {
        let Node::Apply(function, arguments) = terms.node(term).clone() else { continue };
        let commutes = match function {
            Function::Case(name) => case.function(name).is_some_and(|function| function.commutative),
            Function::Builtin(builtin, _) => builtin != Builtin::Sub,
        };
        if commutes && arguments.len() == 2 && arguments[0] != arguments[1] {
            let other = terms.apply(function, vec![arguments[1], arguments[0]]);
            laws.push(terms.equal(term, other));
        }
    }
    laws
}

struct Printer<'a> {
    case: &'a Expanded,
    terms: &'a Terms,
    out: String,
}

impl Printer<'_> {
    fn sort(&self, sort: Sort) -> String {
        match sort {
            Sort::Int => "Int".to_owned(),
            Sort::Bool => "Bool".to_owned(),
            Sort::Elem(sym) => format!("elem.{}", self.case.names.text(sym)),
        }
    }

    fn function(&self, function: Function) -> String {
        match function {
            Function::Case(sym) => format!("fun.{}", self.case.names.text(sym)),
            Function::Builtin(builtin, sort) => {
                let name = match builtin {
                    Builtin::Add => "add",
                    Builtin::Sub => "sub",
                    Builtin::Mul => "mul",
                    Builtin::Max => "max",
                    Builtin::Min => "min",
                };
                format!("ideal.{name}.{}", self.case.names.text(sort))
            }
        }
    }

    fn declare(&mut self, order: &[Term]) {
        let mut sorts: BTreeSet<Sym> = BTreeSet::new();
        let mut vars: BTreeSet<u32> = BTreeSet::new();
        let mut arrays = BTreeSet::new();
        let mut functions: BTreeMap<Function, Vec<Sort>> = BTreeMap::new();
        for &term in order {
            if let Sort::Elem(sym) = self.terms.sort(term) {
                sorts.insert(sym);
            }
            match self.terms.node(term) {
                Node::Var(var) => {
                    vars.insert(*var);
                }
                Node::Read(array, _) => {
                    arrays.insert(*array);
                }
                Node::Apply(function, arguments) => {
                    functions
                        .insert(*function, arguments.iter().map(|term| self.terms.sort(*term)).collect());
                }
                _ => {}
            }
        }
        for sym in sorts {
            let sort = self.sort(Sort::Elem(sym));
            writeln!(self.out, "(declare-sort {sort} 0)").expect("a string takes all");
        }
        for (function, arguments) in functions {
            let arguments: Vec<String> = arguments.into_iter().map(|sort| self.sort(sort)).collect();
            let (name, result) = (self.function(function), self.sort(self.terms.results[&function]));
            writeln!(self.out, "(declare-fun {name} ({}) {result})", arguments.join(" "))
                .expect("a string takes all");
        }
        for array in arrays {
            let info = &self.terms.arrays[array.0 as usize];
            let (rank, result) = (vec!["Int"; info.rank].join(" "), self.sort(info.sort));
            writeln!(self.out, "(declare-fun {} ({rank}) {result})", info.name).expect("a string takes all");
        }
        for var in vars {
            let info = &self.terms.vars[var as usize];
            let sort = self.sort(info.sort);
            writeln!(self.out, "(declare-const {} {sort})", info.name).expect("a string takes all");
            if let Some(lo) = info.lo {
                writeln!(self.out, "(assert (<= {} {}))", number(lo), info.name).expect("a string takes all");
            }
            if let Some(hi) = info.hi {
                writeln!(self.out, "(assert (<= {} {}))", info.name, number(hi)).expect("a string takes all");
            }
        }
    }

    /// How a term is written where it is used.
    fn name(&self, term: Term) -> String {
        match self.terms.node(term) {
            Node::Var(var) => self.terms.vars[*var as usize].name.clone(),
            Node::Bool(value) => value.to_string(),
            Node::Sum(value, parts) if parts.is_empty() => number(*value),
            _ => format!("t{}", term.number()),
        }
    }

    fn define(&mut self, term: Term) {
        let list = |parts: &[Term]| parts.iter().map(|part| self.name(*part)).collect::<Vec<_>>().join(" ");
        let body = match self.terms.node(term) {
            Node::Var(_) | Node::Bool(_) => return,
            Node::Sum(value, parts) => {
                if parts.is_empty() {
                    return;
                }
                let mut items: Vec<String> = parts
                    .iter()
                    .map(|(part, k)| {
                        if *k == 1 {
                            self.name(*part)
                        } else {
                            format!("(* {} {})", number(*k), self.name(*part))
                        }
                    })
                    .collect();
                if *value != 0 {
                    items.push(number(*value));
                }
                if items.len() == 1 { items.remove(0) } else { format!("(+ {})", items.join(" ")) }
            }
            Node::Product(parts) => format!("(* {})", list(parts)),
            Node::Div(a, b) => format!("(div {} {})", self.name(*a), self.name(*b)),
            Node::Mod(a, b) => format!("(mod {} {})", self.name(*a), self.name(*b)),
            Node::Read(array, indices) => {
                format!("({} {})", self.terms.arrays[array.0 as usize].name, list(indices))
            }
            Node::Apply(function, arguments) if arguments.is_empty() => self.function(*function),
            Node::Apply(function, arguments) => format!("({} {})", self.function(*function), list(arguments)),
            Node::Ite(a, b, c) => format!("(ite {} {} {})", self.name(*a), self.name(*b), self.name(*c)),
            Node::AtMostZero(a) => format!("(<= {} 0)", self.name(*a)),
            Node::IsZero(a) => format!("(= {} 0)", self.name(*a)),
            Node::Same(a, b) => format!("(= {} {})", self.name(*a), self.name(*b)),
            Node::Not(a) => format!("(not {})", self.name(*a)),
            Node::And(parts) => format!("(and {})", list(parts)),
            Node::Or(parts) => format!("(or {})", list(parts)),
        };
        let (name, sort) = (self.name(term), self.sort(self.terms.sort(term)));
        writeln!(self.out, "(define-fun {name} () {sort} {body})").expect("a string takes all");
        // What a register file holds has its width.
        if let Node::Read(array, _) = self.terms.node(term)
            && let Some(bits) = self.terms.arrays[array.0 as usize].bits
        {
            writeln!(self.out, "(assert (and (<= 0 {name}) (< {name} {})))", 1i128 << bits)
                .expect("a string takes all");
        }
    }
}

fn number(value: i128) -> String {
    if value < 0 { format!("(- {})", -value) } else { value.to_string() }
}
