//! Both allocators against exhaustive search on random small problems.

use super::super::csp::{AtLeast, Condition, Csp, Outcome, SlotBox, Term, Variable};
use super::super::{cpsat, precedence};
use act_isa::expr::Relation;
use act_isa::{Cond, Expr};
use proptest::prelude::*;

/// Tries every assignment.
fn exhaustive(csp: &Csp) -> bool {
    fn go(csp: &Csp, assignment: &mut Vec<i64>) -> bool {
        if assignment.len() == csp.vars.len() {
            return holds(csp, assignment);
        }
        let var = &csp.vars[assignment.len()];
        for value in var.min..=var.max {
            assignment.push(value);
            if go(csp, assignment) {
                return true;
            }
            assignment.pop();
        }
        false
    }
    go(csp, &mut Vec::new())
}

/// The meaning of a problem, spelled out cell by cell.
fn holds(csp: &Csp, assignment: &[i64]) -> bool {
    let value = |t: Term| t.var.map_or(0, |v| assignment[v]) + t.offset;
    let mut cells = std::collections::BTreeMap::new();
    for b in &csp.boxes {
        for time in b.live.0..b.live.1 {
            let mut at = vec![Vec::new()];
            for (start, len) in b.start.iter().zip(&b.len) {
                at = at
                    .iter()
                    .flat_map(|p: &Vec<i64>| (0..*len).map(|k| [p.clone(), vec![value(*start) + k]].concat()))
                    .collect();
            }
            for cell in at {
                let owner = cells.entry((b.buffer, time, cell)).or_insert(b.owner);
                if *owner != b.owner {
                    return false;
                }
            }
        }
    }
    csp.vars
        .iter()
        .zip(assignment)
        .all(|(v, x)| (v.min..=v.max).contains(x) && x.rem_euclid(v.step) == v.residue)
        && csp.orderings.iter().all(|o| value(o.left) >= value(o.right))
        && csp.conditions.iter().all(|c| csp.holds(c, assignment))
}

fn problem(dims: usize, conditions: bool) -> impl Strategy<Value = Csp> {
    let capacity = prop::collection::vec(2i64..6, dims);
    (capacity, 1usize..4).prop_flat_map(move |(capacity, vars)| {
        let most = *capacity.iter().max().unwrap();
        let variable = (0i64..2, 0i64..=most, 1i64..4, 0i64..3)
            .prop_map(|(min, max, step, residue)| Variable { min, max, step, residue: residue % step });
        let term = move || {
            (prop::option::weighted(0.9, 0..vars), 0i64..3).prop_map(|(var, offset)| Term { var, offset })
        };
        let boxes = (
            0usize..6,
            prop::collection::vec(term(), dims),
            prop::collection::vec(0i64..4, dims),
            0u32..4,
            1u32..4,
        )
            .prop_map(|(owner, start, len, born, lasts)| SlotBox {
                owner,
                buffer: 0,
                start,
                len,
                live: (born, born + lasts),
            });
        let ordering = (term(), term()).prop_map(|(left, right)| AtLeast { left, right });
        let expr = (0u16..2, 1i64..4, 0usize..5).prop_map(|(beta, k, form)| {
            let (beta, k) = (Box::new(Expr::Beta(beta)), Box::new(Expr::Int(k)));
            match form {
                0 => Expr::Mul(beta, k),
                1 => Expr::Mod(beta, k),
                2 => Expr::Div(beta, k),
                3 => Expr::Max(beta, k),
                _ => Expr::Min(beta, k),
            }
        });
        let relation = prop::sample::select(vec![
            Relation::Lt,
            Relation::Le,
            Relation::Gt,
            Relation::Ge,
            Relation::Eq,
            Relation::Ne,
        ]);
        let cond = (relation, expr, 0i64..5, 0u8..4, prop::collection::vec(0i64..5, 0..3));
        let cond = cond.prop_map(|(relation, expr, bound, form, set)| {
            let simple = Cond::Cmp(relation, expr.clone(), Expr::Int(bound));
            match form {
                0 => simple,
                1 => Cond::Not(Box::new(simple)),
                2 => Cond::Or(Box::new(simple), Box::new(Cond::In(expr, set))),
                _ => Cond::Not(Box::new(Cond::And(Box::new(simple), Box::new(Cond::In(expr, set))))),
            }
        });
        let condition = (cond, term(), term()).prop_map(|(cond, a, b)| Condition {
            cond,
            alpha: Vec::new(),
            beta: vec![Some(a), Some(b)],
        });
        let conditions = prop::collection::vec(condition, 0..if conditions { 3 } else { 1 });
        (
            prop::collection::vec(variable, vars),
            prop::collection::vec(boxes, 0..6),
            prop::collection::vec(ordering, 0..2),
            conditions,
        )
            .prop_map(move |(vars, boxes, orderings, conditions)| {
                bounded(Csp {
                    vars,
                    boxes,
                    capacity: vec![capacity.clone()],
                    orderings,
                    conditions,
                    registers: Vec::new(),
                })
            })
    })
}

/// Keeps every box inside the buffer by the bounds of its variables, as the skeleton does; boxes that cannot are
/// dropped.
fn bounded(mut csp: Csp) -> Csp {
    let mut boxes = std::mem::take(&mut csp.boxes);
    boxes.retain(|b| {
        (0..b.len.len()).all(|d| {
            let room = csp.capacity[0][d] - b.len[d] - b.start[d].offset;
            match b.start[d].var {
                None => room >= 0,
                Some(v) => {
                    csp.vars[v].max = csp.vars[v].max.min(room.max(0));
                    room >= 0
                }
            }
        })
    });
    csp.boxes = boxes;
    csp
}

fn agree(csp: &Csp) -> Result<(), TestCaseError> {
    let possible = exhaustive(csp);
    let by_cpsat = cpsat::solve(csp, 60_000).expect("ACT_ORTOOLS_LIB names libortools");
    for (name, outcome) in [("precedence", precedence::solve(csp, 1_000_000)), ("cp-sat", by_cpsat)] {
        match outcome {
            Outcome::Sat(values) => {
                prop_assert!(holds(csp, &values), "{name}: {values:?}");
                prop_assert!(possible);
            }
            Outcome::Unsat { .. } => prop_assert!(!possible, "{name} finds nothing"),
            Outcome::GaveUp => {
                prop_assert!(name == "precedence" && !csp.conditions.is_empty(), "{name} gave up");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_dimension(csp in problem(1, false)) {
        agree(&csp)?;
    }

    #[test]
    fn two_dimensions(csp in problem(2, false)) {
        agree(&csp)?;
    }

    #[test]
    fn conditions(csp in problem(1, true)) {
        agree(&csp)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn three_dimensions(csp in problem(3, false)) {
        agree(&csp)?;
    }
}
