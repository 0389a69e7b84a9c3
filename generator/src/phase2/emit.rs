//! Assembly from an order and the solved unknowns (ACT paper, section 6.3). Identity instructions vanish: what they
//! said is in the addresses of their neighbours.

use super::skeleton::{BetaTerm, Skeleton};
use act_isa::{Affine, AsmInstr, BetaVal};

/// The instructions in order.
pub(super) fn instructions(skeleton: &Skeleton, order: &[usize], values: &[i64]) -> Vec<AsmInstr> {
    order
        .iter()
        .map(|&step| {
            let step = &skeleton.steps[step];
            let beta = step.beta.iter().map(|beta| match beta {
                BetaTerm::Slot(term) => BetaVal::Int(Affine::constant(term.value(values))),
                BetaTerm::Address(space, at) => BetaVal::Hbm(*space, at.clone()),
            });
            AsmInstr { op: step.op, alpha: step.alpha.clone(), beta: beta.collect() }
        })
        .collect()
}

/// The slot of every node of the graph that lies on chip.
pub(super) fn slots(skeleton: &Skeleton, values: &[i64]) -> Vec<Option<Vec<i64>>> {
    let value = |slot: &Vec<super::csp::Term>| slot.iter().map(|t| t.value(values)).collect();
    skeleton.slots.iter().map(|slot| slot.as_ref().map(value)).collect()
}
