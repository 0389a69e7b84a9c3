//! Instances of what is known, chosen by what the goal reads: a relation is used at exactly the places where one of its
//! sides meets a read of the condition. Instances of true facts are true, so the choice decides only what can be proved.

use super::condition::{Condition, Fact};
use super::inverse::{guess, mentions, solve};
use super::term::{Array, Node, Term, Terms};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// More instances than any condition of the measured cases takes; a bound on the work for those that cannot be proved.
const MOST: usize = 4000;

/// Which instances are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that come first and take no address apart twice. Most conditions need no others, and quotients of remainders are
    /// what solvers have the most trouble with.
    Simple,
    All,
}

/// How far reads of instances give further ones.
const ROUNDS: usize = 8;
const SIMPLE_ROUNDS: usize = 2;

/// A fact with the indices of one of its reads.
type Pattern = (Rc<Fact>, Vec<Term>);

/// The formula of a fact at values of its variables.
fn instance(terms: &mut Terms, fact: &Fact, values: &HashMap<Term, Term>) -> Term {
    let guard = terms.substitute(fact.guard, values);
    let (left, right) = (terms.substitute(fact.left, values), terms.substitute(fact.right, values));
    let equal = terms.equal(left, right);
    terms.implies(guard, equal)
}

fn reads(terms: &Terms, roots: &[Term]) -> Vec<(Array, Vec<Term>)> {
    let reads = terms.closure(roots).into_iter();
    reads
        .filter_map(|term| match terms.node(term) {
            Node::Read(array, indices) => Some((*array, indices.clone())),
            _ => None,
        })
        .collect()
}

/// Instances of the facts of a condition.
pub fn instances(terms: &mut Terms, condition: &Condition, which: Which) -> Vec<Term> {
    let mut patterns: HashMap<Array, Vec<Pattern>> = HashMap::new();
    for fact in &condition.facts {
        let vars: Vec<Term> = fact.vars.iter().map(|ranged| ranged.var).collect();
        for (array, indices) in reads(terms, &[fact.left, fact.right]) {
            if indices.iter().any(|index| mentions(terms, *index, &vars)) {
                patterns.entry(array).or_default().push((Rc::clone(fact), indices));
            }
        }
    }
    let mut found: Vec<Term> = Vec::new();
    let mut seen: HashSet<Term> = HashSet::new();
    let mut met: HashSet<(Array, Vec<Term>)> = HashSet::new();
    let mut roots: Vec<Term> = condition.assumptions.clone();
    roots.push(condition.goal);
    let own: HashSet<Term> = terms.closure(&roots).into_iter().collect();
    let rounds = if which == Which::Simple { SIMPLE_ROUNDS } else { ROUNDS };
    for _ in 0..rounds {
        let mut fresh = Vec::new();
        for (array, indices) in reads(terms, &roots) {
            if !met.insert((array, indices.clone())) {
                continue;
            }
            let Some(candidates) = patterns.get(&array) else { continue };
            for (fact, pattern) in candidates.clone() {
                let values = solve(terms, &fact.vars, &pattern, &indices)
                    .or_else(|| guess(terms, &fact.vars, &pattern, &indices));
                let Some(values) = values else { continue };
                let formula = instance(terms, &fact, &values);
                let wanted = which == Which::All || nesting(terms, formula, &own) < 2;
                if wanted && terms.is_bool(formula) != Some(true) && seen.insert(formula) {
                    fresh.push(formula);
                }
            }
        }
        if fresh.is_empty() || found.len() > MOST {
            break;
        }
        found.extend(&fresh);
        roots = fresh;
    }
    found
}

/// How deep quotients and remainders are nested that a condition does not have by itself.
fn nesting(terms: &Terms, formula: Term, own: &HashSet<Term>) -> usize {
    let mut depths: HashMap<Term, usize> = HashMap::new();
    for part in terms.closure(&[formula]) {
        let inner = terms.children(part).iter().map(|child| depths[child]).max().unwrap_or(0);
        let takes_apart = matches!(terms.node(part), Node::Div(..) | Node::Mod(..)) && !own.contains(&part);
        depths.insert(part, inner + usize::from(takes_apart));
    }
    depths.get(&formula).copied().unwrap_or(0)
}

/// All instances of the facts of a condition, if their ranges are constants and together not above `most`.
pub fn flatten(terms: &mut Terms, condition: &Condition, most: i128) -> Option<Vec<Term>> {
    let mut sizes = Vec::new();
    let mut total = 0i128;
    for fact in &condition.facts {
        let mut ranges = Vec::new();
        let mut size = 1i128;
        for ranged in &fact.vars {
            let (lo, hi) = (terms.constant(ranged.lo)?, terms.constant(ranged.hi)?);
            size = size.checked_mul((hi - lo).max(0))?;
            ranges.push((lo, hi));
        }
        total = total.checked_add(size)?;
        sizes.push(ranges);
    }
    if total > most {
        return None;
    }
    let mut found = Vec::new();
    for (fact, ranges) in condition.facts.iter().zip(sizes) {
        let mut points: Vec<Vec<i128>> = vec![Vec::new()];
        for (lo, hi) in ranges {
            points = points
                .iter()
                .flat_map(|point| (lo..hi).map(move |at| [&point[..], &[at]].concat()))
                .collect();
        }
        for point in points {
            let values =
                fact.vars.iter().zip(point).map(|(ranged, at)| (ranged.var, terms.int(at))).collect();
            let formula = instance(terms, fact, &values);
            if terms.is_bool(formula) != Some(true) {
                found.push(formula);
            }
        }
    }
    Some(found)
}
