//! Phase 2 (ACT paper, section 6): from a pii graph to assembly. Orders the instructions, solves where every value
//! lies, emits, and checks what it emitted. Knows descriptions only through the types of act-isa.

mod check;
mod cpsat;
mod csp;
mod emit;
mod linear;
mod order;
mod ortools;
mod pieces;
mod precedence;
mod skeleton;
mod unknowns;
mod validate;

#[cfg(test)]
mod tests;

pub use ortools::{LIBRARY_VARIABLE, SolverMissing};

use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{Assembly, Isa, TiledKernel};
use csp::{Csp, Outcome};
use std::fmt;

/// Which allocator decides (`ACT_ALLOC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AllocatorChoice {
    /// The precedence search, and CP-SAT where that gives up.
    #[default]
    Auto,
    /// CP-SAT always.
    CpSat,
}

/// Which allocator found an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocatorUsed {
    Precedence,
    CpSat,
}

impl fmt::Display for AllocatorUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AllocatorUsed::Precedence => "precedence",
            AllocatorUsed::CpSat => "cp-sat",
        })
    }
}

/// The allocator and its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllocOptions {
    pub allocator: AllocatorChoice,
    pub limits: AllocLimits,
}

/// Limits of phase 2. None is a wall time: the same input gives the same output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocLimits {
    /// Orders of one graph that are handed to an allocator.
    pub orders: u32,
    /// Prefixes looked at in the search for further orders.
    pub prefixes: u64,
    /// Elementary steps of the precedence search, per order.
    pub search_steps: u64,
    /// Thousandths of CP-SAT's deterministic time, per order.
    pub cpsat_time_milli: u32,
}

impl Default for AllocLimits {
    fn default() -> AllocLimits {
        AllocLimits { orders: 64, prefixes: 20_000, search_steps: 2_000_000, cpsat_time_milli: 5_000 }
    }
}

/// A pii graph turned into code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub assembly: Assembly,
    /// The node that every instruction of the assembly was made from.
    pub order: Vec<PiiId>,
    /// Start of the slot of every node of the graph, per access dimension; `None` in d0.
    pub slots: Vec<Option<Vec<i64>>>,
    /// Slots of the kernel's on-chip parameters and results.
    pub in_slots: Vec<Option<Vec<i64>>>,
    pub out_slots: Vec<Option<Vec<i64>>>,
    pub allocator: AllocatorUsed,
    /// Orders that were handed to an allocator, the last of which it could place.
    pub orders_tried: u32,
}

/// Why a pii graph has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// The graph is not one for this description and kernel.
    #[error("the pii graph does not fit its description at %{}: {reason}", node.0)]
    Malformed { node: PiiId, reason: String },
    /// Proven: no order has an allocation.
    #[error("no allocation exists{}", in_buffer(buffer))]
    NoFit { buffer: Option<String>, orders: u32 },
    /// Neither found nor excluded within the limits.
    #[error("no allocation found in {orders} orders{}", in_buffer(buffer))]
    GaveUp { buffer: Option<String>, orders: u32 },
    /// Instructions overwrite in place what others still need, in a circle.
    #[error("instructions overwrite each other's operands in every order")]
    NoOrder,
    /// An address is used in a way that its value cannot be derived from.
    #[error("`{instr}` computes with a byte address")]
    UnsupportedAddress { instr: String },
    #[error("a byte address of `{instr}` is not a multiple of {align}")]
    UnalignedAddress { instr: String, align: u64 },
    /// A condition on where a segment of d0 lies, which is known only at run time.
    #[error("a condition of `{instr}` depends on where a buffer of the host lies")]
    UnsupportedCondition { instr: String },
    #[error(transparent)]
    SolverMissing(#[from] SolverMissing),
    #[error("the solver failed: {0}")]
    Solver(String),
    /// The check of the finished code failed: a mistake of this crate, answered by a refusal.
    #[error("the allocation failed its check: {0}")]
    Unverified(String),
}

fn in_buffer(buffer: &Option<String>) -> String {
    buffer.as_ref().map(|b| format!(": `{b}` is too small")).unwrap_or_default()
}

/// Orders and allocates `graph`.
///
/// # Errors
/// See [`AllocError`].
pub fn allocate(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    options: &AllocOptions,
) -> Result<Allocation, AllocError> {
    let graph = &validate::with_all_inputs(isa, kernel, graph)?;
    validate::check(isa, kernel, graph)?;
    let skeleton = skeleton::Skeleton::new(isa, kernel, graph)?;
    let preferred = order::sethi_ullman(&skeleton).ok_or(AllocError::NoOrder)?;
    let mut orders = order::Orders::new(&skeleton, preferred, options.limits.prefixes);
    let (mut tried, mut proven, mut culprit) = (0, true, None);
    while tried < options.limits.orders {
        let Some(order) = orders.next() else { break };
        tried += 1;
        match solve(&skeleton.csp(&order), options)? {
            (Outcome::Sat(values), allocator) => {
                return finish(isa, kernel, graph, &skeleton, &order, &values, allocator, tried);
            }
            (Outcome::Unsat { buffer }, _) => culprit = culprit.or(buffer),
            (Outcome::GaveUp, _) => proven = false,
        }
        orders.last_failed();
    }
    let buffer = culprit.and_then(|b| isa.buffers.get(b)).map(|b| b.name.clone());
    if proven && orders.exhausted() {
        Err(AllocError::NoFit { buffer, orders: tried })
    } else {
        Err(AllocError::GaveUp { buffer, orders: tried })
    }
}

fn solve(csp: &Csp, options: &AllocOptions) -> Result<(Outcome, AllocatorUsed), AllocError> {
    if options.allocator == AllocatorChoice::Auto {
        let outcome = precedence::solve(csp, options.limits.search_steps);
        if outcome != Outcome::GaveUp {
            return Ok((outcome, AllocatorUsed::Precedence));
        }
    }
    match cpsat::solve(csp, options.limits.cpsat_time_milli) {
        Ok(outcome) => Ok((outcome, AllocatorUsed::CpSat)),
        Err(cpsat::CpSatError::Missing(missing)) => Err(missing.into()),
        Err(error @ cpsat::CpSatError::ModelInvalid) => Err(AllocError::Solver(error.to_string())),
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of one allocation, put together in one place")]
fn finish(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    skeleton: &skeleton::Skeleton,
    order: &[usize],
    values: &[i64],
    allocator: AllocatorUsed,
    orders_tried: u32,
) -> Result<Allocation, AllocError> {
    let slots = emit::slots(skeleton, values);
    let instrs = emit::instructions(skeleton, order, values);
    let nodes: Vec<PiiId> = order.iter().map(|&step| skeleton.steps[step].node).collect();
    let slot_of = |id: PiiId| slots.get(id.0 as usize).cloned().flatten();
    let in_slots: Vec<Option<Vec<i64>>> = (0..kernel.ins.len())
        .map(|k| {
            let at = graph.nodes.iter().position(|n| n.op == PiiOp::OnChipInput(k));
            at.and_then(|at| slot_of(PiiId(at as u32)))
        })
        .collect();
    let out_slots: Vec<Option<Vec<i64>>> =
        graph.roots.iter().map(|root| root.first().and_then(|&id| slot_of(id))).collect();
    check::check(isa, kernel, graph, &nodes, &instrs, &in_slots, &out_slots)
        .map_err(AllocError::Unverified)?;
    Ok(Allocation {
        assembly: Assembly { instrs, consts: graph.consts.clone(), scratch_bytes: 0 },
        order: nodes,
        slots,
        in_slots,
        out_slots,
        allocator,
        orders_tried,
    })
}
