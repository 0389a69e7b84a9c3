//! Cost models: what a candidate, or a whole nest, is worth. Knows no search.

mod nest;
mod queues;
mod steady;
mod sum;
#[cfg(test)]
mod tests;

pub use queues::QueueModel;
pub use sum::{HOST_COPY_CYCLES_PER_BYTE, SumOfCosts, instruction_cost};

use crate::pii::PiiGraph;
use act_isa::{Isa, Program};
use std::sync::Arc;

/// Ranks candidates; lower is better. Units are the model's own (cycles, where the description states cycles).
pub trait CostModel: Send + Sync {
    /// No program made from `graph` costs less.
    fn lower_bound(&self, isa: &Isa, graph: &PiiGraph) -> u64;

    /// Whether the lower bound is the sum of the costs that the description states: candidates come in the order of that
    /// sum, so behind one whose bound is too high there is none that is better.
    fn adds_stated_costs(&self) -> bool {
        false
    }

    /// Cost of a whole nest.
    fn cost(&self, isa: &Isa, program: &Program) -> u64;

    /// No more than [`CostModel::cost`] of the same nest, and quick to compute; 0 where nothing is known.
    fn nest_bound(&self, _isa: &Isa, _program: &Program) -> u64 {
        0
    }

    /// Tells this model, with its parameters, from every other: part of kernel keys.
    fn fingerprint(&self) -> [u8; 32];
}

/// The model that a description asks for: queues where it states any, the sum of costs otherwise.
pub fn model_of(isa: &Isa) -> Arc<dyn CostModel> {
    if isa.timing.is_stated() { Arc::new(QueueModel) } else { Arc::new(SumOfCosts) }
}
