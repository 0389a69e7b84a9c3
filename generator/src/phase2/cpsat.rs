//! The constraint problem as a CP-SAT model, and its answer. Complete within its deterministic limit. Knows only the
//! constraint problem.

use super::csp::{Condition, Csp, Outcome, Term};
use super::linear::Linear;
use super::ortools::{self, SolverMissing};
use act_isa::expr::Relation;
use act_isa::{Cond, Env, Expr};
use cp_sat::proto::constraint_proto::Constraint as Kind;
use cp_sat::proto::{
    BoolArgumentProto, ConstraintProto, CpModelProto, CpSolverStatus, IntegerVariableProto,
    IntervalConstraintProto, LinearArgumentProto, LinearConstraintProto, LinearExpressionProto,
    NoOverlap2DConstraintProto, SatParameters,
};
use std::collections::BTreeMap;

/// Greatest magnitude of a value in a model: sums of a few stay far inside i64, as CP-SAT demands.
const BOUND: i64 = 1 << 50;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CpSatError {
    #[error(transparent)]
    Missing(#[from] SolverMissing),
    #[error("CP-SAT refused the model")]
    ModelInvalid,
}

/// Solves `csp` with one worker, a fixed seed and a limit in CP-SAT's deterministic time, in thousandths.
pub(super) fn solve(csp: &Csp, deterministic_time_milli: u32) -> Result<Outcome, CpSatError> {
    ortools::load()?;
    // CP-SAT takes a variable without a value for a mistake in the model.
    if csp.vars.iter().any(|v| v.round_up(v.min).is_none_or(|least| least > v.max)) {
        return Ok(Outcome::Unsat { buffer: None });
    }
    let mut model = Model::default();
    if !model.add(csp) {
        return Ok(Outcome::GaveUp);
    }
    let parameters = SatParameters {
        num_workers: Some(1),
        random_seed: Some(1),
        max_deterministic_time: Some(f64::from(deterministic_time_milli) / 1000.0),
        ..SatParameters::default()
    };
    let response = cp_sat::ffi::solve_with_parameters(&model.proto, &parameters);
    match response.status() {
        CpSolverStatus::Optimal | CpSolverStatus::Feasible => {
            let steps = response.solution.iter().zip(&csp.vars);
            let values = steps.map(|(&k, var)| k.saturating_mul(var.step).saturating_add(var.residue));
            let values: Vec<i64> = values.collect();
            Ok(if csp.admits(&values) { Outcome::Sat(values) } else { Outcome::GaveUp })
        }
        CpSolverStatus::Infeasible => Ok(Outcome::Unsat { buffer: csp.overfull_buffer() }),
        CpSolverStatus::Unknown => Ok(Outcome::GaveUp),
        CpSolverStatus::ModelInvalid => Err(CpSatError::ModelInvalid),
    }
}

/// A linear expression over the model's variables with bounds on its value.
#[derive(Clone, Debug, Default)]
struct Sum {
    terms: Vec<(i32, i64)>,
    offset: i64,
}

/// A model under construction. The first variables are those of the problem: variable v stands for k in
/// `step · k + residue`.
#[derive(Default)]
struct Model {
    proto: CpModelProto,
}

impl Model {
    /// Adds the whole problem; whether it could be expressed. A condition that CP-SAT has no form for is left out:
    /// answers are checked, and what has no answer without it has none with it.
    fn add(&mut self, csp: &Csp) -> bool {
        for var in &csp.vars {
            let lowest = i128::from(var.min) - i128::from(var.residue);
            let (least, most) = (
                -(-lowest).div_euclid(i128::from(var.step)),
                (i128::from(var.max) - i128::from(var.residue)).div_euclid(i128::from(var.step)),
            );
            let widest = i128::from(BOUND) / i128::from(var.step).max(1);
            if least < -widest || most > widest || i128::from(var.step) > i128::from(BOUND) {
                return false;
            }
            self.variable(least as i64, most as i64);
        }
        for ordering in &csp.orderings {
            let difference = self.difference(csp, ordering.left, ordering.right);
            self.at_least(&difference, 0, &[]);
        }
        self.add_interference(csp);
        for condition in &csp.conditions {
            if let Some(literal) = self.condition(csp, condition, &condition.cond, true) {
                self.constrain(Kind::BoolOr(BoolArgumentProto { literals: vec![literal] }), &[]);
            }
        }
        true
    }

    /// Boxes of one buffer that are live together must be apart in some dimension. Where the buffer has one dimension
    /// and every owner one box, that is a packing of rectangles in time and space.
    fn add_interference(&mut self, csp: &Csp) {
        let pairs = csp.pairs();
        for buffer in 0..csp.capacity.len() {
            let mut boxes: Vec<usize> =
                pairs.iter().flat_map(|&(a, b)| [a, b]).filter(|&b| csp.boxes[b].buffer == buffer).collect();
            boxes.sort_unstable();
            boxes.dedup();
            let mut owners: Vec<usize> = boxes.iter().map(|&b| csp.boxes[b].owner).collect();
            owners.sort_unstable();
            let single = owners.windows(2).all(|w| w[0] != w[1]);
            if csp.capacity[buffer].len() == 1 && single {
                let (mut time, mut space) = (Vec::new(), Vec::new());
                for &b in &boxes {
                    let b = &csp.boxes[b];
                    let (born, dies) = (i64::from(b.live.0), i64::from(b.live.1));
                    time.push(self.interval(&Sum { terms: Vec::new(), offset: born }, dies - born));
                    let start = self.term(csp, b.start[0]);
                    space.push(self.interval(&start, b.len[0]));
                }
                let packing = NoOverlap2DConstraintProto { x_intervals: time, y_intervals: space };
                self.constrain(Kind::NoOverlap2d(packing), &[]);
                continue;
            }
            for &(a, b) in pairs.iter().filter(|&&(a, _)| csp.boxes[a].buffer == buffer) {
                let (x, y) = (&csp.boxes[a], &csp.boxes[b]);
                let mut literals = Vec::new();
                for d in 0..x.len.len() {
                    for (above, below) in [(y, x), (x, y)] {
                        let literal = self.variable(0, 1);
                        let difference = self.difference(csp, above.start[d], below.start[d]);
                        self.at_least(&difference, below.len[d], &[literal]);
                        literals.push(literal);
                    }
                }
                self.constrain(Kind::BoolOr(BoolArgumentProto { literals }), &[]);
            }
        }
    }

    fn variable(&mut self, min: i64, max: i64) -> i32 {
        self.proto.variables.push(IntegerVariableProto { name: String::new(), domain: vec![min, max] });
        self.proto.variables.len() as i32 - 1
    }

    fn constrain(&mut self, kind: Kind, enforcement: &[i32]) -> i32 {
        self.proto.constraints.push(ConstraintProto {
            name: String::new(),
            enforcement_literal: enforcement.to_vec(),
            constraint: Some(kind),
        });
        self.proto.constraints.len() as i32 - 1
    }

    fn interval(&mut self, start: &Sum, size: i64) -> i32 {
        let end = Sum { offset: start.offset.saturating_add(size), ..start.clone() };
        let size = Sum { terms: Vec::new(), offset: size };
        let interval = IntervalConstraintProto {
            start: Some(expression(start)),
            end: Some(expression(&end)),
            size: Some(expression(&size)),
        };
        self.constrain(Kind::Interval(interval), &[])
    }

    fn term(&self, csp: &Csp, term: Term) -> Sum {
        match term.var {
            None => Sum { terms: Vec::new(), offset: term.offset },
            Some(v) => {
                let var = &csp.vars[v];
                Sum { terms: vec![(v as i32, var.step)], offset: term.offset.saturating_add(var.residue) }
            }
        }
    }

    fn difference(&self, csp: &Csp, a: Term, b: Term) -> Sum {
        let (a, b) = (self.term(csp, a), self.term(csp, b));
        add(&a, &b, -1)
    }

    /// `sum >= bound` wherever the literals hold.
    fn at_least(&mut self, sum: &Sum, bound: i64, enforcement: &[i32]) {
        let (vars, coeffs) = sum.terms.iter().copied().unzip();
        let domain = vec![bound.saturating_sub(sum.offset).clamp(-4 * BOUND, 4 * BOUND), 4 * BOUND];
        self.constrain(Kind::Linear(LinearConstraintProto { vars, coeffs, domain }), enforcement);
    }

    /// A literal that implies `cond` (or its negation, where `positive` is false).
    fn condition(&mut self, csp: &Csp, of: &Condition, cond: &Cond, positive: bool) -> Option<i32> {
        match (cond, positive) {
            (Cond::Not(a), _) => self.condition(csp, of, a, !positive),
            (Cond::And(a, b), true) | (Cond::Or(a, b), false) => {
                let (a, b) = (self.condition(csp, of, a, positive)?, self.condition(csp, of, b, positive)?);
                let both = self.variable(0, 1);
                self.constrain(Kind::BoolAnd(BoolArgumentProto { literals: vec![a, b] }), &[both]);
                Some(both)
            }
            (Cond::Or(a, b), true) | (Cond::And(a, b), false) => {
                let (a, b) = (self.condition(csp, of, a, positive)?, self.condition(csp, of, b, positive)?);
                let either = self.variable(0, 1);
                self.constrain(Kind::BoolOr(BoolArgumentProto { literals: vec![a, b] }), &[either]);
                Some(either)
            }
            (Cond::In(a, set), _) => {
                let value = self.expression(csp, of, a)?;
                let relation = if positive { Relation::Eq } else { Relation::Ne };
                let mut literals = Vec::new();
                for &element in set {
                    let difference = Sum { offset: value.offset.checked_sub(element)?, ..value.clone() };
                    literals.push(self.compared(relation, &difference));
                }
                let result = self.variable(0, 1);
                let all = BoolArgumentProto { literals };
                self.constrain(if positive { Kind::BoolOr(all) } else { Kind::BoolAnd(all) }, &[result]);
                Some(result)
            }
            (Cond::Cmp(relation, a, b), _) => {
                let (a, b) = (self.expression(csp, of, a)?, self.expression(csp, of, b)?);
                let relation = if positive { *relation } else { relation.opposite() };
                Some(self.compared(relation, &add(&a, &b, -1)))
            }
        }
    }

    /// A literal that implies `difference (relation) 0`.
    fn compared(&mut self, relation: Relation, difference: &Sum) -> i32 {
        let literal = self.variable(0, 1);
        let negated = add(&Sum::default(), difference, -1);
        match relation {
            Relation::Ge => self.at_least(difference, 0, &[literal]),
            Relation::Gt => self.at_least(difference, 1, &[literal]),
            Relation::Le => self.at_least(&negated, 0, &[literal]),
            Relation::Lt => self.at_least(&negated, 1, &[literal]),
            Relation::Eq => {
                self.at_least(difference, 0, &[literal]);
                self.at_least(&negated, 0, &[literal]);
            }
            Relation::Ne => {
                let (above, below) = (self.variable(0, 1), self.variable(0, 1));
                self.at_least(difference, 1, &[above]);
                self.at_least(&negated, 1, &[below]);
                self.constrain(Kind::BoolOr(BoolArgumentProto { literals: vec![above, below] }), &[literal]);
            }
        }
        literal
    }

    /// The value of an expression; `None` where CP-SAT's operators do not mean the same.
    fn expression(&mut self, csp: &Csp, of: &Condition, expr: &Expr) -> Option<Sum> {
        let env = Env { alpha: &of.alpha, beta: &[], registers: &csp.registers };
        if let Some(linear) = Linear::of(expr, env) {
            let mut sum = Sum { terms: Vec::new(), offset: linear.constant };
            for (&beta, &coefficient) in &linear.coefficients {
                let term = of.beta.get(usize::from(beta)).copied().flatten()?;
                sum = add(&sum, &self.term(csp, term), coefficient);
            }
            return Some(sum);
        }
        match expr {
            Expr::Add(a, b) => Some(add(&self.expression(csp, of, a)?, &self.expression(csp, of, b)?, 1)),
            Expr::Sub(a, b) => Some(add(&self.expression(csp, of, a)?, &self.expression(csp, of, b)?, -1)),
            Expr::Mod(a, b) | Expr::Div(a, b) => {
                // Floor and truncation agree where neither side is negative.
                let divisor = b.eval(env).ok().filter(|&d| d > 0)?;
                let dividend = self.expression(csp, of, a)?;
                let (least, most) = self.bounds(&dividend)?;
                if least < 0 {
                    return None;
                }
                let modulo = matches!(expr, Expr::Mod(..));
                let result = self.variable(0, if modulo { divisor - 1 } else { most / divisor });
                let result = Sum { terms: vec![(result, 1)], offset: 0 };
                let divisor = Sum { terms: Vec::new(), offset: divisor };
                let argument = LinearArgumentProto {
                    target: Some(expression(&result)),
                    exprs: vec![expression(&dividend), expression(&divisor)],
                };
                self.constrain(if modulo { Kind::IntMod(argument) } else { Kind::IntDiv(argument) }, &[]);
                Some(result)
            }
            Expr::Max(a, b) | Expr::Min(a, b) => {
                let sign = if matches!(expr, Expr::Max(..)) { 1 } else { -1 };
                let zero = Sum::default();
                let a = add(&zero, &self.expression(csp, of, a)?, sign);
                let b = add(&zero, &self.expression(csp, of, b)?, sign);
                let ((a_least, a_most), (b_least, b_most)) = (self.bounds(&a)?, self.bounds(&b)?);
                let result = self.variable(a_least.max(b_least), a_most.max(b_most));
                let result = Sum { terms: vec![(result, 1)], offset: 0 };
                let argument = LinearArgumentProto {
                    target: Some(expression(&result)),
                    exprs: vec![expression(&a), expression(&b)],
                };
                self.constrain(Kind::LinMax(argument), &[]);
                Some(add(&zero, &result, sign))
            }
            _ => None,
        }
    }

    /// Least and greatest value of a sum, if they are within reason.
    fn bounds(&self, sum: &Sum) -> Option<(i64, i64)> {
        let mut bounds = (i128::from(sum.offset), i128::from(sum.offset));
        for &(var, coefficient) in &sum.terms {
            let domain = &self.proto.variables.get(var as usize)?.domain;
            let (&least, &most) = (domain.first()?, domain.last()?);
            let ends =
                [i128::from(least) * i128::from(coefficient), i128::from(most) * i128::from(coefficient)];
            bounds = (bounds.0 + ends[0].min(ends[1]), bounds.1 + ends[0].max(ends[1]));
        }
        let within = |v: i128| i64::try_from(v).ok().filter(|v| v.abs() <= BOUND);
        Some((within(bounds.0)?, within(bounds.1)?))
    }
}

/// `a + factor · b`, every variable once.
fn add(a: &Sum, b: &Sum, factor: i64) -> Sum {
    let mut terms: BTreeMap<i32, i64> = a.terms.iter().copied().collect();
    for &(var, coefficient) in &b.terms {
        let sum = terms.entry(var).or_insert(0);
        *sum = sum.saturating_add(coefficient.saturating_mul(factor));
    }
    terms.retain(|_, c| *c != 0);
    Sum {
        terms: terms.into_iter().collect(),
        offset: a.offset.saturating_add(b.offset.saturating_mul(factor)),
    }
}

fn expression(sum: &Sum) -> LinearExpressionProto {
    let (vars, coeffs) = sum.terms.iter().copied().unzip();
    LinearExpressionProto { vars, coeffs, offset: sum.offset }
}
