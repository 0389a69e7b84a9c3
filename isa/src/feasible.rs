//! Whether an instruction can be executed with given computational attributes, and with which ones where some are free:
//! a decision over all its requirements, the sizes and alignments of memories, and the addresses, which some values must
//! exist for. Domains are narrowed, and split where that decides nothing.

use crate::domain::{Domain, OPEN};
use crate::expr::{Cond, Env, Expr, Relation};
use crate::model::{AttrKind, Instr, Isa, Slice};
use crate::narrowing::Domains;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Splits of one question, after which it is left open.
const MAX_SPLITS: usize = 20_000;
/// Largest modulus by whose residues an attribute is split.
const MAX_RESIDUES: i128 = 256;
/// Questions whose answers are kept.
const MAX_ANSWERS: usize = 1 << 14;

/// What is known of an instruction's executions.
#[derive(Clone, Debug)]
pub struct Feasibility {
    /// Requirements and slices.
    conditions: Vec<Cond>,
    start: Domains,
    /// Of integers.
    integers: Vec<bool>,
    registers: Vec<i64>,
    /// Kernels ask the same again and again.
    answers: Arc<Mutex<HashMap<Question, Feasible>>>,
}

/// Known attributes, and equations.
type Question = (Vec<Option<i64>>, Vec<Cond>);

/// The answer to the question for attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feasible {
    /// The least values of the integer attributes in order, the first one first; `None` for f32.
    With(Vec<Option<i64>>),
    Never,
    /// Not decided within the limit.
    Open,
}

impl Feasibility {
    /// Of an instruction of `isa`, with registers at their first values.
    pub fn of(isa: &Isa, instr: &Instr) -> Feasibility {
        let registers = isa.register_values();
        let mut conditions = within_memories(isa, instr);
        conditions.extend(instr.requires.iter().cloned());
        let integers = instr.alpha.iter().map(|a| matches!(a.kind, AttrKind::Int { .. })).collect();
        let start = Domains::new(instr, &registers, &BTreeSet::new());
        Feasibility { conditions, start, integers, registers, answers: Arc::default() }
    }

    /// Attributes for which the instruction can be executed at some addresses: those `known` as they are, the others such
    /// that `equations` hold too.
    pub fn choose(&self, known: &[Option<i64>], equations: &[Cond]) -> Feasible {
        let question = (known.to_vec(), equations.to_vec());
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answers().get(&question) {
            return answer.clone();
        }
        let answer = self.decide(known, equations);
        let mut answers = answers();
        if answers.len() < MAX_ANSWERS {
            answers.insert(question, answer.clone());
        }
        answer
    }

    fn decide(&self, known: &[Option<i64>], equations: &[Cond]) -> Feasible {
        let mut domains = self.start.clone();
        for (domain, value) in domains.alpha.iter_mut().zip(known) {
            if let Some(v) = value {
                *domain = domain.meet(Domain::only(i128::from(*v)));
            }
        }
        if domains.alpha.iter().any(|d| d.is_empty()) {
            return Feasible::Never;
        }
        let mut search = Search { of: self, equations, splits: 0, moduli: None };
        match search.solve(domains) {
            Some(values) => Feasible::With(values),
            None if search.splits > MAX_SPLITS => Feasible::Open,
            None => Feasible::Never,
        }
    }
}

struct Search<'a> {
    of: &'a Feasibility,
    equations: &'a [Cond],
    splits: usize,
    /// Per alpha, then per beta: a modulus whose residues decide the divisions in which it occurs.
    moduli: Option<Vec<i128>>,
}

/// An attribute, as its position among alphas and betas together.
type Attribute = usize;

impl Search<'_> {
    fn conditions(&self) -> impl Iterator<Item = &Cond> + Clone {
        self.of.conditions.iter().chain(self.equations)
    }

    /// The least attributes within the domains, or `None` where there are none or the limit is reached.
    fn solve(&mut self, mut domains: Domains) -> Option<Vec<Option<i64>>> {
        if self.splits > MAX_SPLITS {
            return None;
        }
        let settled = |this: &Search<'_>, d: &Domains| {
            this.integers().all(|k| d.alpha[k].value().is_some()) && this.holds_at(d)
        };
        // Most often the first addresses will do.
        if settled(self, &domains) {
            return Some(self.values(&domains));
        }
        if !domains.narrow_by(self.conditions()) {
            return None;
        }
        if settled(self, &domains) {
            return Some(self.values(&domains));
        }
        let free = self.next(&domains)?;
        self.splits += 1;
        let domain = *self.domain(&mut domains, free);
        let modulus = self.modulus(free);
        let chosen = free < self.of.integers.len();
        if modulus % domain.modulus == 0 && modulus > domain.modulus && domain.high - domain.low >= modulus {
            // By residue. The least values may have any.
            let mut best: Option<Vec<Option<i64>>> = None;
            for residue in (domain.residue..modulus).step_by(domain.modulus as usize) {
                let mut one = domains.clone();
                let wanted = Domain { modulus, residue, ..Domain::ALL };
                *self.domain(&mut one, free) = domain.meet(wanted);
                let found = self.solve(one);
                if found.is_some() && !chosen {
                    return found;
                }
                best = match (best, found) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            return best;
        }
        let middle = domain.low + (domain.high - domain.low) / 2;
        for (low, high) in [(domain.low, middle), (middle + 1, domain.high)] {
            let mut half = domains.clone();
            *self.domain(&mut half, free) = domain.meet(Domain::interval(low, high));
            if self.domain(&mut half, free).is_empty() {
                continue;
            }
            let found = self.solve(half);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn integers(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.of.integers.len()).filter(|&k| self.of.integers[k])
    }

    fn domain<'d>(&self, domains: &'d mut Domains, attribute: Attribute) -> &'d mut Domain {
        match attribute.checked_sub(domains.alpha.len()) {
            None => &mut domains.alpha[attribute],
            Some(beta) => &mut domains.beta[beta],
        }
    }

    /// The attribute to split next: computational ones in order, since the least are wanted, then the address with the
    /// fewest values.
    fn next(&self, domains: &Domains) -> Option<Attribute> {
        let width = |d: &Domain| (d.high - d.low) / d.modulus;
        let alpha = self.integers().find(|&k| width(&domains.alpha[k]) > 0);
        let addresses = (0..domains.beta.len()).filter(|&k| width(&domains.beta[k]) > 0);
        alpha.or(addresses.min_by_key(|&k| width(&domains.beta[k])).map(|k| domains.alpha.len() + k))
    }

    fn values(&self, domains: &Domains) -> Vec<Option<i64>> {
        let value = |(d, &integer): (&Domain, &bool)| {
            if integer { d.value().and_then(|v| i64::try_from(v).ok()) } else { None }
        };
        domains.alpha.iter().zip(&self.of.integers).map(value).collect()
    }

    /// Whether all conditions hold at some likely addresses: the first ones, the last ones, or different ones.
    fn holds_at(&self, domains: &Domains) -> bool {
        let alpha = self.values(domains);
        let first = |(_, d): (usize, &Domain)| d.low;
        let last = |(_, d): (usize, &Domain)| if d.high < OPEN { d.high } else { d.low };
        let different = |(k, d): (usize, &Domain)| (d.low + k as i128 * d.modulus).min(d.high);
        let holds = |at: &dyn Fn((usize, &Domain)) -> i128| {
            let beta: Vec<Option<i64>> =
                domains.beta.iter().enumerate().map(|d| i64::try_from(at(d)).ok()).collect();
            let env = Env { alpha: &alpha, beta: &beta, registers: &self.of.registers };
            self.conditions().all(|cond| cond.eval(env) == Ok(true))
        };
        holds(&first) || holds(&last) || holds(&different)
    }

    fn modulus(&mut self, attribute: Attribute) -> i128 {
        let of = self.of;
        let equations = self.equations;
        let alphas = of.integers.len();
        let moduli = self.moduli.get_or_insert_with(|| {
            let mut moduli = vec![1; alphas + of.start.beta.len()];
            for cond in of.conditions.iter().chain(equations) {
                divisions(cond, &mut |e, c| {
                    e.for_each_leaf(&mut |leaf| {
                        let at = match leaf {
                            Expr::Alpha(k) => usize::from(*k),
                            Expr::Beta(k) => alphas + usize::from(*k),
                            _ => return,
                        };
                        let all = least_common_multiple(moduli[at], c);
                        if all <= MAX_RESIDUES {
                            moduli[at] = all;
                        }
                    });
                });
            }
            moduli
        });
        moduli[attribute]
    }
}

/// Calls `visit` with every dividend and its divisor, where that is a number greater than 1.
fn divisions(cond: &Cond, visit: &mut impl FnMut(&Expr, i128)) {
    match cond {
        Cond::Cmp(_, a, b) => {
            divisions_in(a, visit);
            divisions_in(b, visit);
        }
        Cond::And(a, b) | Cond::Or(a, b) => {
            divisions(a, visit);
            divisions(b, visit);
        }
        Cond::Not(a) => divisions(a, visit),
        Cond::In(a, _) => divisions_in(a, visit),
    }
}

fn divisions_in(e: &Expr, visit: &mut impl FnMut(&Expr, i128)) {
    match e {
        Expr::Int(_) | Expr::Alpha(_) | Expr::Beta(_) | Expr::Register(_) | Expr::Variable(_) => {}
        Expr::Div(a, b) | Expr::Mod(a, b) | Expr::CeilDiv(a, b) => {
            divisions_in(a, visit);
            if let Expr::Int(c @ 2..) = **b {
                visit(a, i128::from(c));
            }
        }
        Expr::Shr(a, b) => {
            divisions_in(a, visit);
            if let Expr::Int(by @ 1..=62) = **b {
                visit(a, 1 << by);
            }
        }
        Expr::Add(a, b)
        | Expr::Sub(a, b)
        | Expr::Mul(a, b)
        | Expr::Shl(a, b)
        | Expr::Min(a, b)
        | Expr::Max(a, b) => {
            divisions_in(a, visit);
            divisions_in(b, visit);
        }
    }
}

fn least_common_multiple(a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// What holds of every execution: slices lie within their memories and start where these allow it. Of main memory an
/// address stands for its offset in a segment, which is no longer than the memory and begins aligned.
pub(crate) fn within_memories(isa: &Isa, instr: &Instr) -> Vec<Cond> {
    let number = |v: u64| Expr::Int(i64::try_from(v).unwrap_or(i64::MAX));
    let mut out = Vec::new();
    let aligned = |start: &Expr, align: u64| {
        let rest = Expr::Mod(start.clone().into(), number(align).into());
        (align > 1).then_some(Cond::Cmp(Relation::Eq, rest, Expr::Int(0)))
    };
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        match slice {
            Slice::Hbm(window) => {
                out.extend(aligned(&window.start, isa.hbm.align));
                // The first element, or all where they are one run of bytes.
                let bytes = match window.dims.as_slice() {
                    [(len, Expr::Int(1))] => len.clone(),
                    _ => Expr::Int(1),
                };
                let end = Expr::Add(window.start.clone().into(), bytes.into());
                let lens = window.dims.iter().map(|(len, _)| len);
                out.push(unless_empty(lens, Cond::Cmp(Relation::Le, end, number(isa.hbm.size))));
            }
            Slice::OnChip(slice) => {
                let Some(buffer) = isa.buffers.get(usize::from(slice.buffer.0)) else { continue };
                for (k, (start, len)) in slice.start.iter().zip(&slice.len).enumerate() {
                    let (Some(&size), Some(&align)) = (buffer.access.get(k), buffer.align.get(k)) else {
                        continue;
                    };
                    out.push(Cond::Cmp(Relation::Ge, start.clone(), Expr::Int(0)));
                    let end = Expr::Add(start.clone().into(), len.clone().into());
                    out.push(unless_empty(slice.len.iter(), Cond::Cmp(Relation::Le, end, number(size))));
                    out.extend(aligned(start, align));
                }
            }
        }
    }
    out
}

/// A slice with a length of 0 lies anywhere.
fn unless_empty<'a>(lens: impl Iterator<Item = &'a Expr>, cond: Cond) -> Cond {
    lens.fold(cond, |cond, len| {
        let empty = Cond::Cmp(Relation::Eq, len.clone(), Expr::Int(0));
        Cond::Or(empty.into(), cond.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random conditions over small ranges: the answer against looking through all executions.
    #[test]
    fn answers_are_those_of_looking_everything_through() {
        let mut seed = 11u64;
        let mut next = move |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let (mut possible, mut never) = (0, 0);
        for _ in 0..400 {
            let mut term = || {
                let leaf = |k: usize| ["a", "b", "n", "k", "3", "7", "11"][k];
                let (x, y) = (leaf(next(7)), leaf(next(7)));
                match next(12) {
                    0 => format!("({x} + {y})"),
                    1 => format!("({x} - {y})"),
                    2 => format!("{x} * {y}"),
                    3 => format!("{x} % 5"),
                    4 => format!("({x} + {y}) % 4"),
                    5 => format!("{x} / 3"),
                    6 => format!("max({x}, {y})"),
                    7 => format!("(2 * {x} - {y}) % 6"),
                    8 => format!("ceildiv({x}, 4)"),
                    9 => format!("min({x} << 1, {y} >> 1)"),
                    _ => x.to_owned(),
                }
            };
            let (a, b, c, d) = (term(), term(), term(), term());
            let relation = |k: usize| ["<", "<=", ">", ">=", "==", "==", "!="][k];
            let join = ["and", "and", "or", "and not"][next(4)];
            let text = format!(
                "isa t\nhbm d0: 64 align 4\nbuffer v: u8[12 | ] align(3) init 0\n\
                 instr f alpha(n: 1..4, k: 0..9) beta(a, b: 0..30) {{\nin v[a :+ n]\nin d0[b :+ n * 2]\nout v[a :+ n]\n\
                 require {a} {} {b} {join} {c} {} {d}\n\
                 computation {{\nx = u8[n] parameter(0)\ny = u8[n * 2] parameter(1)\n\
                 z = u8[n] slice(y), slice={{[0:n]}}\nROOT w = u8[n] add(x, z)\n}}\n}}\n",
                relation(next(7)),
                relation(next(7))
            );
            let isa = crate::syntax::parse_unchecked(&text, "t").unwrap_or_else(|e| panic!("{e}"));
            let instr = &isa.instrs[0];
            let feasibility = Feasibility::of(&isa, instr);
            let fits = |n: i64, k: i64| {
                let at = |a: i64, b: i64| {
                    let env = Env { alpha: &[Some(n), Some(k)], beta: &[Some(a), Some(b)], registers: &[] };
                    a % 3 == 0
                        && a + n <= 12
                        && b % 4 == 0
                        && b + 2 * n <= 64
                        && instr.requires.iter().all(|r| r.eval(env) == Ok(true))
                };
                (0..12).any(|a| (0..=30).any(|b| at(a, b)))
            };
            for n in 1..=4 {
                let least = (0..=9).find(|&k| fits(n, k));
                let expected = match least {
                    Some(k) => Feasible::With(vec![Some(n), Some(k)]),
                    None => Feasible::Never,
                };
                assert_eq!(feasibility.choose(&[Some(n), None], &[]), expected, "n = {n}: {text}");
                possible += usize::from(least.is_some());
                never += usize::from(least.is_none());
            }
            let least = (1..=4).flat_map(|n| (0..=9).map(move |k| (n, k))).find(|&(n, k)| fits(n, k));
            let expected = least.map_or(Feasible::Never, |(n, k)| Feasible::With(vec![Some(n), Some(k)]));
            assert_eq!(feasibility.choose(&[None, None], &[]), expected, "{text}");
        }
        assert!(possible > 100 && never > 100, "{possible} {never}");
    }
}
