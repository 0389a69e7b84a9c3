//! Which values of some variables give wanted indices: addresses read backwards, as digits of a mixed radix.

use super::term::{Node, Term, Terms};
use std::collections::HashMap;

/// A variable with its range, `lo <= var < hi`.
#[derive(Clone, Copy, Debug)]
pub struct Ranged {
    pub var: Term,
    pub lo: Term,
    pub hi: Term,
}

/// Whether any of the variables occurs in a term.
#[must_use]
pub(super) fn mentions(terms: &Terms, term: Term, vars: &[Term]) -> bool {
    terms.closure(&[term]).iter().any(|part| vars.contains(part))
}

/// Values of `vars` for which `indices` can be `wanted`, the only ones there can be: if other values gave these indices too,
/// this is None. That the values are in range and give the indices is for the caller to require.
pub(super) fn solve(
    terms: &mut Terms,
    vars: &[Ranged],
    indices: &[Term],
    wanted: &[Term],
) -> Option<HashMap<Term, Term>> {
    let mut solved: HashMap<Term, Term> = HashMap::new();
    loop {
        let open: Vec<Ranged> =
            vars.iter().filter(|ranged| !solved.contains_key(&ranged.var)).copied().collect();
        if open.is_empty() {
            return Some(solved);
        }
        let mut progress = false;
        // A variable of one value needs no index.
        for ranged in &open {
            let next = terms.sub(ranged.hi, ranged.lo);
            if terms.constant(next) == Some(1) {
                solved.insert(ranged.var, ranged.lo);
                progress = true;
            }
        }
        for (&index, &value) in indices.iter().zip(wanted) {
            if progress {
                break;
            }
            if let Some(found) = digits(terms, &open, &solved, index, value) {
                solved.extend(found);
                progress = true;
            }
        }
        if !progress {
            return None;
        }
    }
}

/// Values of `vars` that may give the wanted indices, where a variable is multiplied by something that is not a constant:
/// what the wanted index has the same multiple of. A guess; for choosing instances only.
pub(super) fn guess(
    terms: &mut Terms,
    vars: &[Ranged],
    indices: &[Term],
    wanted: &[Term],
) -> Option<HashMap<Term, Term>> {
    let names: Vec<Term> = vars.iter().map(|ranged| ranged.var).collect();
    let mut values: HashMap<Term, Term> = HashMap::new();
    for (&index, &target) in indices.iter().zip(wanted) {
        for (part, coefficient) in terms.linear(index).1 {
            let Node::Product(factors) = terms.node(part).clone() else { continue };
            let (own, others): (Vec<Term>, Vec<Term>) =
                factors.iter().partition(|factor| names.contains(factor));
            if own.len() != 1 || others.iter().any(|other| mentions(terms, *other, &names)) {
                continue;
            }
            let mut sum = terms.int(0);
            for (piece, multiple) in terms.linear(target).1 {
                if multiple % coefficient != 0 {
                    continue;
                }
                let mut left = match terms.node(piece) {
                    Node::Product(factors) => factors.clone(),
                    _ => vec![piece],
                };
                let all = others.iter().all(|other| {
                    let at = left.iter().position(|factor| factor == other);
                    at.map(|at| left.remove(at)).is_some()
                });
                if all {
                    let mut rest = terms.int(multiple / coefficient);
                    for factor in left {
                        rest = terms.mul(rest, factor);
                    }
                    sum = terms.add(sum, rest);
                }
            }
            values.entry(own[0]).or_insert(sum);
        }
    }
    if values.is_empty() {
        return None;
    }
    let indices: Vec<Term> = indices.iter().map(|index| terms.substitute(*index, &values)).collect();
    let open: Vec<Ranged> = vars.iter().filter(|ranged| !values.contains_key(&ranged.var)).copied().collect();
    values.extend(solve(terms, &open, &indices, wanted)?);
    Some(values)
}

/// The open variables of one index as digits of the wanted value.
fn digits(
    terms: &mut Terms,
    open: &[Ranged],
    solved: &HashMap<Term, Term>,
    index: Term,
    wanted: Term,
) -> Option<Vec<(Term, Term)>> {
    let index = terms.substitute(index, solved);
    let names: Vec<Term> = open.iter().map(|ranged| ranged.var).collect();
    let (constant, parts) = terms.linear(index);
    let mut digits: Vec<(Ranged, i128)> = Vec::new();
    let mut halves: HashMap<Term, Halves> = HashMap::new();
    let mut rest = Vec::new();
    let mut order: Vec<Digit> = Vec::new();
    for (part, coefficient) in parts {
        if let Some(ranged) = open.iter().find(|ranged| ranged.var == part) {
            digits.push((*ranged, coefficient));
        } else if let Some((var, half, divisor)) = half(terms, part, &names) {
            let entry = halves.entry(var).or_insert(Halves { divisor, div: None, rem: None });
            if entry.divisor != divisor {
                return None;
            }
            *(if half { &mut entry.div } else { &mut entry.rem }) = Some(coefficient);
        } else if mentions(terms, part, &names) {
            return None;
        } else {
            rest.push((part, coefficient));
        }
    }
    for (ranged, coefficient) in digits {
        let lo = terms.constant(ranged.lo);
        let size = lo.zip(terms.constant(ranged.hi)).map(|(lo, hi)| hi - lo);
        order.push(Digit { var: ranged.var, kind: Kind::Whole(ranged.lo), coefficient, size });
    }
    for ranged in open {
        let Some(pair) = halves.get(&ranged.var) else { continue };
        // Both halves of a number that starts at 0 and of which both are in the index.
        let (div, rem, size) = (pair.div?, pair.rem?, terms.constant(ranged.hi)?);
        if terms.constant(ranged.lo) != Some(0) || order.iter().any(|digit| digit.var == ranged.var) {
            return None;
        }
        let high = (size - 1) / pair.divisor + 1;
        order.push(Digit {
            var: ranged.var,
            kind: Kind::High(pair.divisor),
            coefficient: div,
            size: Some(high),
        });
        order.push(Digit {
            var: ranged.var,
            kind: Kind::Low,
            coefficient: rem,
            size: Some(pair.divisor.min(size)),
        });
    }
    if order.is_empty() || order.iter().any(|digit| digit.coefficient <= 0) {
        return None;
    }
    order.sort_by_key(|digit| std::cmp::Reverse(digit.coefficient));
    let mut below = 0;
    for digit in order.iter().rev() {
        if digit.coefficient <= below {
            return None;
        }
        match digit.size {
            Some(size) => below += digit.coefficient * (size - 1),
            // Of unknown size only the highest digit may be.
            None if digit.var == order[0].var && order.iter().filter(|d| d.size.is_none()).count() == 1 => {}
            None => return None,
        }
    }
    let base = terms.sum(constant, rest);
    let mut left = terms.sub(wanted, base);
    let mut found: HashMap<Term, Term> = HashMap::new();
    let mut vars = Vec::new();
    // Digits count from their lower bounds.
    for digit in &order {
        if let Kind::Whole(lo) = digit.kind {
            let start = terms.scale(lo, digit.coefficient);
            left = terms.sub(left, start);
        }
    }
    for digit in &order {
        let coefficient = terms.int(digit.coefficient);
        let value = terms.div(left, coefficient);
        left = terms.rem(left, coefficient);
        let value = match digit.kind {
            Kind::Whole(lo) => terms.add(value, lo),
            Kind::High(divisor) => terms.scale(value, divisor),
            Kind::Low => value,
        };
        match found.get(&digit.var).copied() {
            Some(other) => {
                let both = terms.add(other, value);
                found.insert(digit.var, both);
            }
            None => {
                found.insert(digit.var, value);
                vars.push(digit.var);
            }
        }
    }
    Some(vars.into_iter().map(|var| (var, found[&var])).collect())
}

struct Halves {
    divisor: i128,
    div: Option<i128>,
    rem: Option<i128>,
}

enum Kind {
    Whole(Term),
    High(i128),
    Low,
}

struct Digit {
    var: Term,
    kind: Kind,
    coefficient: i128,
    size: Option<i128>,
}

/// `var / c` (true) or `var % c` (false) of an open variable.
fn half(terms: &Terms, part: Term, names: &[Term]) -> Option<(Term, bool, i128)> {
    let (a, b, high) = match terms.node(part) {
        Node::Div(a, b) => (*a, *b, true),
        Node::Mod(a, b) => (*a, *b, false),
        _ => return None,
    };
    names.contains(&a).then_some(())?;
    Some((a, high, terms.constant(b)?))
}
