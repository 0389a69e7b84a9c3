//! Proofs of laws with Z3, and the link from each law to the code of its rule. A law is stated as two tensor terms at
//! symbolic sizes; the solver shows that both have one shape and one element at every index. The link: at given sizes the
//! rule's code, run on the left side, proposes a term with the operators and the values of the right side.

mod concrete;
mod dots;
mod language;
mod movement;
mod ring;
mod smt;
mod words;

use super::rewrites::{Rebuild, vocabularies};
use crate::numerics::FloatPolicy;
use crate::phase1::explore::{initial, proposals};
use crate::phase1::rules::{self, Rule};
use act_bolt::{Solver, Verdict};
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{ElemType, Literal, eval};
use concrete::{Build, operators};
use language::{Size, T};
use smt::{Elements, Reading};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What is proven of a rule.
struct Law {
    rule: &'static str,
    elements: Elements,
    /// The element type in which the rule's code is run.
    elem: ElemType,
    /// Every size and position that is named, with a value at which the code is run.
    sizes: Vec<(&'static str, i64)>,
    /// What is assumed of them beyond being no less than 0, in SMT-LIB.
    given: &'static str,
    left: T,
    right: T,
    /// Whether something else than ranks is fixed: sizes of a general reshape, lengths of a sum of words.
    concrete: bool,
}

impl Law {
    /// A law that moves elements.
    fn moves(rule: &'static str, sizes: &[(&'static str, i64)], left: T, right: T) -> Law {
        Law {
            rule,
            elements: Elements::Uninterpreted,
            elem: ElemType::S32,
            sizes: sizes.to_vec(),
            given: "true",
            left,
            right,
            concrete: false,
        }
    }

    /// A law of arithmetic on wrapping bytes.
    fn bytes(rule: &'static str, sizes: &[(&'static str, i64)], left: T, right: T) -> Law {
        Law { elements: Elements::Words(8), ..Law::moves(rule, sizes, left, right) }
    }

    /// The same of wrapping words.
    fn words(self, bits: u32) -> Law {
        Law { elements: Elements::Words(bits), ..self }
    }

    fn in_type(self, elem: ElemType) -> Law {
        Law { elem, ..self }
    }

    fn given(self, given: &'static str) -> Law {
        Law { given, ..self }
    }

    fn concrete(self) -> Law {
        Law { concrete: true, ..self }
    }

    /// Holds together exactly if some index refutes that the left side is `right`.
    fn refutation(&self, right: &T) -> String {
        let reading = Reading::new(self.elements);
        let (dims, others) = (self.left.dims(), right.dims());
        assert_eq!(dims.len(), others.len(), "{}: ranks", self.rule);
        let index: Vec<String> = (0..dims.len()).map(|d| format!("i{d}")).collect();
        let (left, right) = (reading.at(&self.left, &index), reading.at(right, &index));
        let mut script = reading.declarations();
        for (name, _) in &self.sizes {
            script += &format!("(declare-const {name} Int) (assert (<= 0 {name}))\n");
        }
        script += &reading.within();
        let mut equal = vec!["true".to_owned()];
        for (d, (a, b)) in dims.iter().zip(&others).enumerate() {
            script += &format!("(declare-const i{d} Int)\n");
            script += &format!("(assert (and (<= 0 i{d}) (< i{d} {})))\n", a.smt());
            equal.push(format!("(= {} {})", a.smt(), b.smt()));
        }
        script
            + &format!("(assert {})\n(assert (not (and {} (= {left} {right}))))", self.given, equal.join(" "))
    }
}

fn laws() -> Vec<Law> {
    [movement::laws(), dots::laws(), ring::laws(), words::laws()].into_iter().flatten().collect()
}

const LIMIT: Duration = Duration::from_secs(20);

fn solver() -> Solver {
    let path = std::env::var_os("ACT_Z3_LIB").expect("ACT_Z3_LIB names libz3.so, as ci/test sets it");
    Solver::open(Path::new(&path)).unwrap_or_else(|e| panic!("{e}"))
}

fn verdict(solver: &Solver, script: &str) -> Verdict {
    solver.check(script, LIMIT).unwrap_or_else(|e| panic!("{e}\n{script}"))
}

#[test]
fn every_law_is_proven() {
    let solver = solver();
    let wrong: Vec<String> = laws()
        .iter()
        .filter_map(|law| match verdict(&solver, &law.refutation(&law.right)) {
            Verdict::Unsatisfiable => None,
            other => Some(format!("{}: {other:?}", law.rule)),
        })
        .collect();
    assert!(wrong.is_empty(), "{} laws:\n{}", wrong.len(), wrong.join("\n"));
}

/// Wrong statements near the law: reversed in one dimension, or one added to every number.
fn mutants(law: &Law) -> Vec<T> {
    match law.elements {
        Elements::Uninterpreted => {
            (0..law.right.dims().len()).map(|d| law.right.clone().reverse(&[d])).collect()
        }
        Elements::Words(_) | Elements::Integers => {
            let one = T::Splat(1, law.right.dims());
            vec![law.right.clone().binary(act_hlo::Binary::Add, one)]
        }
    }
}

/// A proof that cannot fail is none, nor is one from assumptions that contradict each other.
#[test]
fn a_wrong_statement_near_each_law_is_refuted() {
    let solver = solver();
    for law in laws() {
        let refuted = mutants(&law)
            .iter()
            .any(|right| matches!(verdict(&solver, &law.refutation(right)), Verdict::Satisfiable { .. }));
        assert!(refuted, "{}: no mutant is refuted", law.rule);
    }
}

fn rule(name: &str) -> &'static Rule {
    let found = rules::all().into_iter().find(|r| r.name == name);
    found.unwrap_or_else(|| panic!("{name}: no rule of this name"))
}

/// Whether the rule's code proposes the right side for the left one, at the law's sizes.
fn proposed(law: &Law) -> Result<(), String> {
    let rule = rule(law.rule);
    let sizes: BTreeMap<&'static str, i64> = law.sizes.iter().copied().collect();
    let mut build = Build::new(law.elem, &sizes);
    let left = build.term(&law.left);
    let mut kernel_graph = build.graph.clone();
    kernel_graph.add_root(left).map_err(|e| e.to_string())?;
    let right = build.term(&law.right);
    let both = build.graph;
    let mut seen = Vec::new();
    for vocabulary in vocabularies(rule) {
        let policy = rule.policy.max(FloatPolicy::Xla);
        let kernel = super::tiled(kernel_graph.clone());
        let (egraph, classes) = initial(&kernel, policy);
        let root = egraph.find(classes[left.0 as usize]);
        let known = kernel_graph.ids().zip(&classes).rev().map(|(id, c)| (egraph.find(*c), id)).collect();
        let mut rebuild = Rebuild { egraph: &egraph, graph: both.clone(), known };
        for (_, class, term) in proposals(&egraph, &[rule], &vocabulary, policy) {
            if egraph.find(class) != root {
                continue;
            }
            let built = rebuild.term(&term);
            let mut graph = rebuild.graph.clone();
            let (wanted, have) = (operators(&graph, right), operators(&graph, built));
            graph.add_root(right).map_err(|e| e.to_string())?;
            graph.add_root(built).map_err(|e| e.to_string())?;
            let mut rng = SplitMix64::new(7);
            let inputs: Vec<Literal> = graph
                .params()
                .iter()
                .map(|&p| random_literal(&mut rng, graph.shape(p), Values::Full))
                .collect();
            let results = eval(&graph, &inputs).map_err(|e| e.to_string())?;
            if wanted == have && results[0] == results[1] {
                return Ok(());
            }
            seen.push(format!("{have:?} for {wanted:?}, equal: {}", results[0] == results[1]));
        }
    }
    Err(format!("{}: the code proposes {seen:?}", law.rule))
}

#[test]
fn the_code_of_each_rule_proposes_the_right_side_of_its_law() {
    let wrong: Vec<String> = laws().iter().filter_map(|law| proposed(law).err()).collect();
    assert!(wrong.is_empty(), "{} laws:\n{}", wrong.len(), wrong.join("\n"));
}

/// Per rule whether its law is proven at symbolic sizes or at fixed ones.
#[test]
fn the_list_of_proofs_is_what_is_proven() {
    let mut proofs: BTreeMap<&str, bool> = BTreeMap::new();
    for law in laws() {
        let concrete = proofs.entry(law.rule).or_insert(law.concrete);
        *concrete &= law.concrete;
    }
    let line = |(rule, concrete): (&&str, &bool)| {
        format!("{rule}\t{}\n", if *concrete { "concrete" } else { "symbolic" })
    };
    super::generated::compare("proofs.tsv", &proofs.iter().map(line).collect::<String>());
    assert!(proofs.len() >= 60, "{} rules carry a proof", proofs.len());
}

/// Named sizes.
fn lens(names: &[&'static str]) -> Vec<Size> {
    names.iter().map(|name| Size::Named(name)).collect()
}
