//! Reuse of loaded panels (design, decision 6): parallel loops are reordered and blocked, and a load whose address does
//! not depend on a loop is done once before it, into a panel of slots of its own. Works on the loop program and the
//! description alone; knows neither kernels nor how instructions were chosen.

mod access;
mod hoist;
mod nest;
mod order;
mod panel;

use act_isa::{Isa, LoopProgram, Program};

/// Loop programs that were compared for one nest: orders and blockings are few, and each costs one pass over the nest.
const MOST_ORDERS: usize = 256;

/// The cost of a nest if that is below a limit; anything from the limit on otherwise.
pub type Cost<'a> = dyn Fn(&Program, u64) -> u64 + 'a;

/// The cheapest way, by `cost`, to run `program` with panels kept on chip. The result computes the same: every
/// instruction that remains sees the same operands, in the same order per element of every result.
pub fn reuse_panels(isa: &Isa, program: LoopProgram, cost: &Cost<'_>) -> LoopProgram {
    let body = nest::flattened(program.body.clone());
    let Some(layout) = access::Layout::of(isa, &body) else { return program };
    let mut names = nest::FreshLoops::after(&body);
    let Program::Seq(parts) = body else { return program };
    let parts = parts
        .into_iter()
        .flat_map(|part| match part {
            Program::For { .. } => cheapest(isa, part, &layout, &mut names, cost),
            other => vec![other],
        })
        .collect();
    LoopProgram { body: Program::Seq(parts), ..program }
}

/// The cheapest of the orders of one nest, each with the loads hoisted that can be.
fn cheapest(
    isa: &Isa,
    nest: Program,
    layout: &access::Layout,
    names: &mut nest::FreshLoops,
    cost: &Cost<'_>,
) -> Vec<Program> {
    let mut best = (cost(&nest, u64::MAX), vec![nest.clone()]);
    let banked = isa.timing.banks.iter().any(|banks| banks.count.iter().any(|&count| count > 1));
    // At the same cost panels lie in banks of their own.
    let placements: &[bool] = if banked { &[true, false] } else { &[false] };
    for order in order::orders(&nest).into_iter().take(MOST_ORDERS) {
        let ordered = order.apply(&nest, names);
        for &own_banks in placements {
            let mut hoister = hoist::Hoister::new(isa, layout, names, own_banks);
            let parts = ordered.iter().flat_map(|part| hoister.nest(part.clone())).collect();
            let whole = Program::Seq(parts);
            let value = cost(&whole, best.0);
            if value < best.0
                && let Program::Seq(parts) = whole
            {
                best = (value, parts);
            }
        }
    }
    best.1
}
