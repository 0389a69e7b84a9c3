//! Terms of verification conditions, shared and simplified as they are built: integers in a normal form of sums, so that
//! equal addresses are one term. Knows neither programs nor solvers.

use crate::hex::syntax::{Builtin, Sym};
use std::collections::HashMap;

/// A term of a `Terms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sort {
    Int,
    Bool,
    Elem(Sym),
}

/// A version of a buffer's contents, an uninterpreted function of its indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Array(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    Case(Sym),
    Builtin(Builtin, Sym),
}

impl PartialOrd for Builtin {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Builtin {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (*self as u8).cmp(&(*other as u8))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// `constant + sum of coefficient * part`; parts are integers that are no sums, in order, with coefficients not 0.
    Sum(i128, Vec<(Term, i128)>),
    /// An unknown: a counter, a register's content, an index a condition is about.
    Var(u32),
    /// Two or more factors that are neither sums nor products, in order.
    Product(Vec<Term>),
    Div(Term, Term),
    Mod(Term, Term),
    Read(Array, Vec<Term>),
    Apply(Function, Vec<Term>),
    Ite(Term, Term, Term),
    Bool(bool),
    /// The integer is at most 0.
    AtMostZero(Term),
    /// The integer is 0.
    IsZero(Term),
    Same(Term, Term),
    Not(Term),
    And(Vec<Term>),
    Or(Vec<Term>),
}

/// What an unknown stands for.
#[derive(Clone, Debug)]
pub struct Var {
    pub name: String,
    pub sort: Sort,
    /// Bounds, both included, which are assumed wherever it occurs.
    pub lo: Option<i128>,
    pub hi: Option<i128>,
}

#[derive(Clone, Debug)]
pub struct ArrayInfo {
    pub name: String,
    pub rank: usize,
    pub sort: Sort,
    /// Width of a register file's entries.
    pub bits: Option<u32>,
}

impl Term {
    /// Its number among the terms of its case.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

type Bounds = (Option<i128>, Option<i128>);

/// All terms of one case.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: Vec<Node>,
    index: HashMap<Node, Term>,
    bounds: Vec<Bounds>,
    pub vars: Vec<Var>,
    pub arrays: Vec<ArrayInfo>,
    /// Results of functions.
    pub results: HashMap<Function, Sort>,
}

impl Terms {
    #[must_use]
    pub fn node(&self, term: Term) -> &Node {
        &self.nodes[term.0 as usize]
    }

    fn intern(&mut self, node: Node) -> Term {
        if let Some(&term) = self.index.get(&node) {
            return term;
        }
        let bounds = self.bounds_of(&node);
        let term = Term(u32::try_from(self.nodes.len()).expect("fewer than 2^32 terms"));
        self.nodes.push(node.clone());
        self.bounds.push(bounds);
        self.index.insert(node, term);
        term
    }

    /// What is known of an integer's range.
    #[must_use]
    pub fn bounds(&self, term: Term) -> Bounds {
        self.bounds[term.0 as usize]
    }

    fn bounds_of(&self, node: &Node) -> Bounds {
        match node {
            Node::Sum(constant, parts) => {
                let mut bounds = (Some(*constant), Some(*constant));
                for &(part, coefficient) in parts {
                    let (lo, hi) = self.bounds(part);
                    let (low, high) = if coefficient > 0 { (lo, hi) } else { (hi, lo) };
                    bounds.0 = bounds.0.zip(low).map(|(sum, low)| sum + coefficient * low);
                    bounds.1 = bounds.1.zip(high).map(|(sum, high)| sum + coefficient * high);
                }
                bounds
            }
            Node::Var(var) => {
                let var = &self.vars[*var as usize];
                (var.lo, var.hi)
            }
            Node::Product(parts) => {
                let mut bounds = (Some(1), Some(1));
                for &part in parts {
                    match self.bounds(part) {
                        (Some(lo), hi) if lo >= 0 => {
                            bounds = (
                                bounds.0.map(|low: i128| low * lo),
                                bounds.1.zip(hi).map(|(high, hi): (i128, i128)| high * hi),
                            );
                        }
                        _ => return (None, None),
                    }
                }
                bounds
            }
            Node::Div(a, b) => {
                let (lo, hi) = self.bounds(*a);
                match self.bounds(*b) {
                    (Some(low), high) if low > 0 => {
                        let least = lo.map(|lo| match (lo >= 0, high) {
                            (true, Some(high)) => lo / high,
                            (true, None) => 0,
                            (false, _) => lo.div_euclid(low),
                        });
                        let most = hi.map(|hi| if hi >= 0 { hi / low } else { -1 });
                        (least, most)
                    }
                    _ => (None, None),
                }
            }
            Node::Mod(a, b) => match self.bounds(*b) {
                (Some(low), high) if low > 0 => {
                    let most = high.map(|high| high - 1);
                    let of_a = self.bounds(*a);
                    let below = if of_a.0.is_some_and(|lo| lo >= 0) { of_a.1 } else { None };
                    (Some(0), most.into_iter().chain(below).min())
                }
                _ => (None, None),
            },
            Node::Ite(_, a, b) => {
                let (a, b) = (self.bounds(*a), self.bounds(*b));
                (a.0.zip(b.0).map(|(a, b)| a.min(b)), a.1.zip(b.1).map(|(a, b)| a.max(b)))
            }
            Node::Read(array, _) => match self.arrays[array.0 as usize].bits {
                Some(bits) => (Some(0), Some((1 << bits) - 1)),
                None => (None, None),
            },
            _ => (None, None),
        }
    }

    #[must_use]
    pub fn sort(&self, term: Term) -> Sort {
        match self.node(term) {
            Node::Sum(..) | Node::Product(_) | Node::Div(..) | Node::Mod(..) => Sort::Int,
            Node::Var(var) => self.vars[*var as usize].sort,
            Node::Read(array, _) => self.arrays[array.0 as usize].sort,
            Node::Apply(function, _) => self.results[function],
            Node::Ite(_, then, _) => self.sort(*then),
            _ => Sort::Bool,
        }
    }

    /// A fresh unknown.
    pub fn var(&mut self, name: &str, sort: Sort, lo: Option<i128>, hi: Option<i128>) -> Term {
        let id = u32::try_from(self.vars.len()).expect("fewer than 2^32 unknowns");
        self.vars.push(Var { name: format!("{name}!{id}"), sort, lo, hi });
        self.intern(Node::Var(id))
    }

    /// A fresh version of a buffer.
    pub fn array(&mut self, name: &str, rank: usize, sort: Sort, bits: Option<u32>) -> Array {
        let id = u32::try_from(self.arrays.len()).expect("fewer than 2^32 arrays");
        self.arrays.push(ArrayInfo { name: format!("{name}!{id}"), rank, sort, bits });
        Array(id)
    }

    pub fn int(&mut self, value: i128) -> Term {
        self.intern(Node::Sum(value, Vec::new()))
    }

    #[must_use]
    pub fn constant(&self, term: Term) -> Option<i128> {
        match self.node(term) {
            Node::Sum(value, parts) if parts.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// An integer as `constant + sum of parts`.
    #[must_use]
    pub fn linear(&self, term: Term) -> (i128, Vec<(Term, i128)>) {
        match self.node(term) {
            Node::Sum(constant, parts) => (*constant, parts.clone()),
            _ => (0, vec![(term, 1)]),
        }
    }

    pub fn sum(&mut self, constant: i128, parts: Vec<(Term, i128)>) -> Term {
        let mut flat: Vec<(Term, i128)> = parts;
        flat.sort_by_key(|(part, _)| *part);
        let mut merged: Vec<(Term, i128)> = Vec::with_capacity(flat.len());
        for (part, coefficient) in flat {
            match merged.last_mut() {
                Some(last) if last.0 == part => last.1 += coefficient,
                _ => merged.push((part, coefficient)),
            }
        }
        merged.retain(|(_, coefficient)| *coefficient != 0);
        // A number without its remainder is a multiple: `x - x mod c` is `c * (x div c)`, and one unknown less.
        let rest = merged.iter().find_map(|&(part, k)| match self.node(part) {
            Node::Mod(a, c) if merged.contains(&(*a, -k)) => Some((part, *a, *c, -k)),
            _ => None,
        });
        if let Some((part, a, c, k)) = rest
            && let Some(divisor) = self.constant(c).filter(|divisor| *divisor > 0)
        {
            merged.retain(|(other, _)| *other != part && *other != a);
            let quotient = self.intern(Node::Div(a, c));
            merged.push((quotient, k * divisor));
            return self.sum(constant, merged);
        }
        if constant == 0 && merged.len() == 1 && merged[0].1 == 1 {
            return merged[0].0;
        }
        self.intern(Node::Sum(constant, merged))
    }

    pub fn add(&mut self, a: Term, b: Term) -> Term {
        let ((ca, mut pa), (cb, pb)) = (self.linear(a), self.linear(b));
        pa.extend(pb);
        self.sum(ca + cb, pa)
    }

    pub fn scale(&mut self, a: Term, factor: i128) -> Term {
        let (constant, mut parts) = self.linear(a);
        for part in &mut parts {
            part.1 *= factor;
        }
        self.sum(constant * factor, parts)
    }

    pub fn sub(&mut self, a: Term, b: Term) -> Term {
        let b = self.scale(b, -1);
        self.add(a, b)
    }

    pub fn mul(&mut self, a: Term, b: Term) -> Term {
        if let Some(value) = self.constant(a) {
            return self.scale(b, value);
        }
        if let Some(value) = self.constant(b) {
            return self.scale(a, value);
        }
        let ((ca, pa), (cb, pb)) = (self.linear(a), self.linear(b));
        let mut parts: Vec<(Term, i128)> = Vec::new();
        parts.extend(pa.iter().map(|(part, k)| (*part, k * cb)));
        parts.extend(pb.iter().map(|(part, k)| (*part, k * ca)));
        for &(x, kx) in &pa {
            for &(y, ky) in &pb {
                let mut factors = Vec::new();
                for part in [x, y] {
                    match self.node(part) {
                        Node::Product(inner) => factors.extend(inner.iter().copied()),
                        _ => factors.push(part),
                    }
                }
                factors.sort_unstable();
                let product = self.intern(Node::Product(factors));
                parts.push((product, kx * ky));
            }
        }
        self.sum(ca * cb, parts)
    }

    fn within(&self, term: Term, size: i128) -> bool {
        matches!(self.bounds(term), (Some(lo), Some(hi)) if lo >= 0 && hi < size)
    }

    /// A number as `divisor * quotient + rest`, the rest's coefficients being smaller than the divisor.
    fn split(&mut self, a: Term, divisor: i128) -> (Term, Term) {
        let (constant, parts) = self.linear(a);
        let quotient = parts.iter().map(|(part, k)| (*part, k / divisor)).collect();
        let rest = parts.iter().map(|(part, k)| (*part, k % divisor)).collect();
        let quotient = self.sum(constant.div_euclid(divisor), quotient);
        (quotient, self.sum(constant.rem_euclid(divisor), rest))
    }

    /// Rounds towards minus infinity.
    pub fn div(&mut self, a: Term, b: Term) -> Term {
        match self.constant(b) {
            Some(1) => a,
            Some(divisor) if divisor > 1 => {
                let (quotient, rest) = self.split(a, divisor);
                if self.within(rest, divisor) {
                    return quotient;
                }
                let rest = self.intern(Node::Div(rest, b));
                self.add(quotient, rest)
            }
            _ => self.intern(Node::Div(a, b)),
        }
    }

    pub fn rem(&mut self, a: Term, b: Term) -> Term {
        match self.constant(b) {
            Some(divisor) if divisor > 0 => {
                let (_, rest) = self.split(a, divisor);
                if self.within(rest, divisor) {
                    return rest;
                }
                self.intern(Node::Mod(rest, b))
            }
            _ => self.intern(Node::Mod(a, b)),
        }
    }

    pub fn bool(&mut self, value: bool) -> Term {
        self.intern(Node::Bool(value))
    }

    #[must_use]
    pub fn is_bool(&self, term: Term) -> Option<bool> {
        match self.node(term) {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub fn at_most(&mut self, a: Term, b: Term) -> Term {
        let difference = self.sub(a, b);
        match self.bounds(difference) {
            (_, Some(hi)) if hi <= 0 => self.bool(true),
            (Some(lo), _) if lo > 0 => self.bool(false),
            _ => self.intern(Node::AtMostZero(difference)),
        }
    }

    pub fn less(&mut self, a: Term, b: Term) -> Term {
        let one = self.int(1);
        let next = self.add(a, one);
        self.at_most(next, b)
    }

    /// Equality of two terms of one sort.
    pub fn equal(&mut self, a: Term, b: Term) -> Term {
        if a == b {
            return self.bool(true);
        }
        match self.sort(a) {
            Sort::Int => {
                let difference = self.sub(a, b);
                let (constant, parts) = self.linear(difference);
                let divisor = parts.iter().fold(0, |divisor, (_, k)| gcd(divisor, *k));
                let apart = matches!(self.bounds(difference), (Some(lo), _) if lo > 0)
                    || matches!(self.bounds(difference), (_, Some(hi)) if hi < 0)
                    || (divisor > 1 && constant % divisor != 0);
                if constant == 0 && parts.is_empty() {
                    return self.bool(true);
                }
                if apart {
                    return self.bool(false);
                }
                // One sign for both orders.
                let negative = parts.first().is_some_and(|(_, k)| *k < 0);
                let difference = if negative { self.scale(difference, -1) } else { difference };
                self.intern(Node::IsZero(difference))
            }
            Sort::Bool => {
                let (not_a, not_b) = (self.not(a), self.not(b));
                let (both, none) = (self.and(vec![a, b]), self.and(vec![not_a, not_b]));
                self.or(vec![both, none])
            }
            Sort::Elem(_) => self.intern(Node::Same(a.min(b), a.max(b))),
        }
    }

    pub fn not(&mut self, a: Term) -> Term {
        match self.node(a).clone() {
            Node::Bool(value) => self.bool(!value),
            Node::Not(inner) => inner,
            Node::AtMostZero(difference) => {
                let (zero, minus) = (self.int(0), self.scale(difference, -1));
                self.less(minus, zero)
            }
            _ => self.intern(Node::Not(a)),
        }
    }

    pub fn and(&mut self, parts: Vec<Term>) -> Term {
        let mut flat = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::Bool(true) => {}
                Node::Bool(false) => return part,
                Node::And(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        match flat.len() {
            0 => self.bool(true),
            1 => flat[0],
            _ => self.intern(Node::And(flat)),
        }
    }

    pub fn or(&mut self, parts: Vec<Term>) -> Term {
        let mut flat = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::Bool(false) => {}
                Node::Bool(true) => return part,
                Node::Or(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        match flat.len() {
            0 => self.bool(false),
            1 => flat[0],
            _ => self.intern(Node::Or(flat)),
        }
    }

    pub fn implies(&mut self, a: Term, b: Term) -> Term {
        let not = self.not(a);
        self.or(vec![not, b])
    }

    pub fn ite(&mut self, condition: Term, then: Term, other: Term) -> Term {
        if then == other {
            return then;
        }
        match self.is_bool(condition) {
            Some(true) => then,
            Some(false) => other,
            None if self.sort(then) == Sort::Bool => {
                let not = self.not(condition);
                let (a, b) = (self.and(vec![condition, then]), self.and(vec![not, other]));
                self.or(vec![a, b])
            }
            None => self.intern(Node::Ite(condition, then, other)),
        }
    }

    /// The smaller of two integers, whose range is known better than that of any choice.
    pub fn min(&mut self, a: Term, b: Term) -> Term {
        let first = self.at_most(a, b);
        let term = self.ite(first, a, b);
        let tighter = [self.bounds(a).1, self.bounds(b).1].into_iter().flatten().min();
        if let Node::Ite(..) = self.node(term) {
            self.bounds[term.0 as usize].1 = tighter;
        }
        term
    }

    pub fn read(&mut self, array: Array, indices: Vec<Term>) -> Term {
        self.intern(Node::Read(array, indices))
    }

    pub fn apply(&mut self, function: Function, arguments: Vec<Term>) -> Term {
        self.intern(Node::Apply(function, arguments))
    }

    /// The terms a term is made of.
    #[must_use]
    pub fn children(&self, term: Term) -> Vec<Term> {
        match self.node(term) {
            Node::Sum(_, parts) => parts.iter().map(|(part, _)| *part).collect(),
            Node::Var(_) | Node::Bool(_) => Vec::new(),
            Node::Product(parts)
            | Node::Read(_, parts)
            | Node::Apply(_, parts)
            | Node::And(parts)
            | Node::Or(parts) => parts.clone(),
            Node::Div(a, b) | Node::Mod(a, b) | Node::Same(a, b) => vec![*a, *b],
            Node::Ite(a, b, c) => vec![*a, *b, *c],
            Node::AtMostZero(a) | Node::IsZero(a) | Node::Not(a) => vec![*a],
        }
    }

    /// Every term below the given ones, operands before what uses them.
    #[must_use]
    pub fn closure(&self, roots: &[Term]) -> Vec<Term> {
        let mut seen = std::collections::HashSet::new();
        let mut order = Vec::new();
        let mut stack: Vec<(Term, bool)> = roots.iter().rev().map(|root| (*root, false)).collect();
        while let Some((term, done)) = stack.pop() {
            if done {
                order.push(term);
            } else if seen.insert(term) {
                stack.push((term, true));
                stack.extend(self.children(term).into_iter().rev().map(|child| (child, false)));
            }
        }
        order
    }

    /// A term with unknowns replaced, simplified anew.
    pub fn substitute(&mut self, term: Term, values: &HashMap<Term, Term>) -> Term {
        let mut done: HashMap<Term, Term> = HashMap::new();
        for part in self.closure(&[term]) {
            if let Some(value) = values.get(&part) {
                done.insert(part, *value);
                continue;
            }
            if self.children(part).iter().all(|child| done[child] == *child) {
                done.insert(part, part);
                continue;
            }
            let all = |parts: &[Term], done: &HashMap<Term, Term>| {
                parts.iter().map(|p| done[p]).collect::<Vec<_>>()
            };
            let new = match self.node(part).clone() {
                Node::Sum(constant, parts) => {
                    let mut sum = self.int(constant);
                    for (inner, coefficient) in parts {
                        let scaled = self.scale(done[&inner], coefficient);
                        sum = self.add(sum, scaled);
                    }
                    sum
                }
                Node::Product(parts) => {
                    let mut product = self.int(1);
                    for inner in parts {
                        product = self.mul(product, done[&inner]);
                    }
                    product
                }
                Node::Div(a, b) => self.div(done[&a], done[&b]),
                Node::Mod(a, b) => self.rem(done[&a], done[&b]),
                Node::Read(array, indices) => self.read(array, all(&indices, &done)),
                Node::Apply(function, arguments) => self.apply(function, all(&arguments, &done)),
                Node::Ite(a, b, c) => self.ite(done[&a], done[&b], done[&c]),
                Node::AtMostZero(a) => {
                    let zero = self.int(0);
                    self.at_most(done[&a], zero)
                }
                Node::IsZero(a) => {
                    let zero = self.int(0);
                    self.equal(done[&a], zero)
                }
                Node::Same(a, b) => self.equal(done[&a], done[&b]),
                Node::Not(a) => self.not(done[&a]),
                Node::And(parts) => self.and(all(&parts, &done)),
                Node::Or(parts) => self.or(all(&parts, &done)),
                Node::Var(_) | Node::Bool(_) => part,
            };
            done.insert(part, new);
        }
        done[&term]
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
