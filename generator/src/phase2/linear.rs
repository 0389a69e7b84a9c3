//! Expressions of a description as linear forms over the addressing attributes, where they are linear. Knows nothing
//! of graphs and slots.

use act_isa::expr::Relation;
use act_isa::{Cond, Env, Expr};
use std::collections::BTreeMap;

/// `constant + Σ coefficient · beta`; coefficients are not 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) constant: i64,
    pub(super) coefficients: BTreeMap<u16, i64>,
}

impl Linear {
    /// The linear form of `expr`, if it is linear and fits 64 bits. Betas are unknown whatever `env` says of them.
    pub(super) fn of(expr: &Expr, env: Env<'_>) -> Option<Linear> {
        let env = Env { beta: &[], ..env };
        if !expr.mentions_beta() {
            return Some(Linear { constant: expr.eval(env).ok()?, ..Linear::default() });
        }
        match expr {
            Expr::Beta(k) => Some(Linear { constant: 0, coefficients: BTreeMap::from([(*k, 1)]) }),
            Expr::Add(a, b) => Linear::of(a, env)?.plus(&Linear::of(b, env)?, 1),
            Expr::Sub(a, b) => Linear::of(a, env)?.plus(&Linear::of(b, env)?, -1),
            Expr::Mul(a, b) => {
                let (a, b) = (Linear::of(a, env)?, Linear::of(b, env)?);
                match (a.coefficients.is_empty(), b.coefficients.is_empty()) {
                    (true, _) => Linear::default().plus(&b, a.constant),
                    (_, true) => Linear::default().plus(&a, b.constant),
                    _ => None,
                }
            }
            Expr::Shl(a, b) => {
                let factor = Linear::of(b, env).filter(|b| b.coefficients.is_empty())?.constant;
                let factor = 1i64.checked_shl(u32::try_from(factor).ok()?).filter(|&f| f > 0)?;
                Linear::default().plus(&Linear::of(a, env)?, factor)
            }
            _ => None,
        }
    }

    /// `self + factor · other`.
    pub(super) fn plus(mut self, other: &Linear, factor: i64) -> Option<Linear> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for (&beta, &coefficient) in &other.coefficients {
            let sum = self.coefficients.entry(beta).or_insert(0);
            *sum = sum.checked_add(coefficient.checked_mul(factor)?)?;
        }
        self.coefficients.retain(|_, c| *c != 0);
        Some(self)
    }

    /// `beta + constant`, if that is all there is.
    pub(super) fn shifted_beta(&self) -> Option<(u16, i64)> {
        let mut terms = self.coefficients.iter();
        match (terms.next(), terms.next()) {
            (Some((&beta, &1)), None) => Some((beta, self.constant)),
            _ => None,
        }
    }
}

/// A condition taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// Has a value without any beta.
    Known(bool),
    /// `beta >= bound`.
    Least(u16, i64),
    /// `beta <= bound`.
    Most(u16, i64),
    /// `beta mod step == residue`, residue in `0..step`.
    Congruent {
        beta: u16,
        step: i64,
        residue: i64,
    },
    /// `left == right + offset`.
    Equal {
        left: u16,
        right: u16,
        offset: i64,
    },
    /// `left >= right + offset`.
    Ordered {
        left: u16,
        right: u16,
        offset: i64,
    },
    General(Cond),
}

/// The facts that together say the same as `cond`.
pub(super) fn facts(cond: &Cond, env: Env<'_>) -> Vec<Fact> {
    let env = Env { beta: &[], ..env };
    if !cond.mentions_beta() {
        return vec![Fact::Known(cond.eval(env).unwrap_or(false))];
    }
    match cond {
        Cond::And(a, b) => [facts(a, env), facts(b, env)].concat(),
        Cond::Cmp(relation, a, b) => {
            compared(*relation, a, b, env).unwrap_or_else(|| vec![Fact::General(cond.clone())])
        }
        _ => vec![Fact::General(cond.clone())],
    }
}

fn compared(relation: Relation, a: &Expr, b: &Expr, env: Env<'_>) -> Option<Vec<Fact>> {
    if relation == Relation::Eq
        && let (Expr::Mod(inner, step), false) = (a, b.mentions_beta())
    {
        let (step, rest) = (step.eval(env).ok().filter(|&s| s > 0)?, b.eval(env).ok()?);
        let (beta, offset) = Linear::of(inner, env)?.shifted_beta()?;
        if !(0..step).contains(&rest) {
            return Some(vec![Fact::Known(false)]);
        }
        return Some(vec![Fact::Congruent {
            beta,
            step,
            residue: rest.checked_sub(offset)?.rem_euclid(step),
        }]);
    }
    // From here on: difference (relation) 0.
    let difference = Linear::of(a, env)?.plus(&Linear::of(b, env)?, -1)?;
    let negated = Linear::default().plus(&difference, -1)?;
    let at_least =
        |form: &Linear, slack: i64| form.constant.checked_sub(slack).and_then(|c| non_negative(form, c));
    Some(match relation {
        Relation::Ge => vec![at_least(&difference, 0)?],
        Relation::Gt => vec![at_least(&difference, 1)?],
        Relation::Le => vec![at_least(&negated, 0)?],
        Relation::Lt => vec![at_least(&negated, 1)?],
        Relation::Eq => match at_least(&difference, 0)? {
            Fact::Ordered { left, right, offset } => vec![Fact::Equal { left, right, offset }],
            one_side => vec![one_side, at_least(&negated, 0)?],
        },
        Relation::Ne => return None,
    })
}

/// `constant + Σ terms >= 0` of one beta with coefficient ±1, or of the difference of two.
fn non_negative(form: &Linear, constant: i64) -> Option<Fact> {
    let terms: Vec<(u16, i64)> = form.coefficients.iter().map(|(&b, &c)| (b, c)).collect();
    match terms[..] {
        [] => Some(Fact::Known(constant >= 0)),
        [(beta, 1)] => Some(Fact::Least(beta, constant.checked_neg()?)),
        [(beta, -1)] => Some(Fact::Most(beta, constant)),
        [(left, 1), (right, -1)] | [(right, -1), (left, 1)] => {
            Some(Fact::Ordered { left, right, offset: constant.checked_neg()? })
        }
        _ => None,
    }
}

/// Every segment of d0 starts at a multiple of this many bytes, and at no more that a condition could rely on.
pub(super) const SEGMENT_ALIGN: i64 = 16;

/// `cond` with what is known of byte addresses put in: remainders by divisors of the segment alignment, and signs.
/// `address(k)` describes beta k when that is a byte address: the constant part of its offset within the segment, and
/// the greatest common divisor of the steps by which loops move it. `None` when the condition depends on where a segment lies.
pub(super) fn without_addresses(
    cond: &Cond,
    env: Env<'_>,
    address: &dyn Fn(u16) -> Option<(i64, i64)>,
) -> Option<Cond> {
    let is_address = |e: &Expr| matches!(e, Expr::Beta(k) if address(*k).is_some());
    Some(match cond {
        Cond::Cmp(Relation::Ge, a, b) if is_address(a) && b.eval(env).is_ok_and(|b| b <= 0) => truth(),
        Cond::Cmp(Relation::Gt, a, b) if is_address(a) && b.eval(env).is_ok_and(|b| b < 0) => truth(),
        Cond::Cmp(relation, a, b) => {
            Cond::Cmp(*relation, remainder(a, env, address)?, remainder(b, env, address)?)
        }
        Cond::And(a, b) => Cond::And(
            Box::new(without_addresses(a, env, address)?),
            Box::new(without_addresses(b, env, address)?),
        ),
        Cond::Or(a, b) => Cond::Or(
            Box::new(without_addresses(a, env, address)?),
            Box::new(without_addresses(b, env, address)?),
        ),
        Cond::Not(a) => Cond::Not(Box::new(without_addresses(a, env, address)?)),
        Cond::In(a, set) => Cond::In(remainder(a, env, address)?, set.clone()),
    })
}

fn truth() -> Cond {
    Cond::Cmp(Relation::Eq, Expr::Int(0), Expr::Int(0))
}

fn remainder(expr: &Expr, env: Env<'_>, address: &dyn Fn(u16) -> Option<(i64, i64)>) -> Option<Expr> {
    if let Expr::Mod(a, step) = expr
        && let Expr::Beta(k) = **a
        && let Some((offset, varies)) = address(k)
    {
        let step = step.eval(env).ok().filter(|&s| s > 0)?;
        let known = SEGMENT_ALIGN % step == 0 && varies % step == 0;
        return known.then(|| Expr::Int(offset.rem_euclid(step)));
    }
    let mut reads = false;
    visit_betas(expr, &mut |k| reads |= address(k).is_some());
    (!reads).then(|| expr.clone())
}

/// Calls `found` for every occurrence of a beta.
fn visit_betas(expr: &Expr, found: &mut dyn FnMut(u16)) {
    match expr {
        Expr::Beta(k) => found(*k),
        Expr::Int(_) | Expr::Alpha(_) | Expr::Register(_) | Expr::Variable(_) => {}
        Expr::Add(a, b)
        | Expr::Sub(a, b)
        | Expr::Mul(a, b)
        | Expr::Div(a, b)
        | Expr::Mod(a, b)
        | Expr::CeilDiv(a, b)
        | Expr::Shl(a, b)
        | Expr::Shr(a, b)
        | Expr::Min(a, b)
        | Expr::Max(a, b) => {
            visit_betas(a, found);
            visit_betas(b, found);
        }
    }
}
