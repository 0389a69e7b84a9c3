mod attention;
mod enumeration;
mod examples;
mod execute;
mod gemmini;
mod generated;
mod generic;
mod miniature;
mod proofs;
mod rewrites;
mod saturation;
mod stages;
mod whole;
mod witnesses;

use super::{Limits, SelectError, Selected, Selector};
use crate::numerics::{FloatPolicy, Numerics};
use crate::pii::{PiiGraph, PiiOp};
use act_hlo::parse_graph;
use act_isa::{Isa, Phase, Place, Space, TiledKernel, View, load_target};

fn numerics(float: FloatPolicy) -> Numerics {
    Numerics { float }
}

/// A kernel whose operands and results lie dense and row-major in d0.
fn kernel(text: &str) -> TiledKernel {
    tiled(parse_graph(text).unwrap_or_else(|e| panic!("{e}")))
}

fn tiled(graph: act_hlo::Graph) -> TiledKernel {
    let dense = |space, id| Place::Hbm(View::row_major(space, graph.shape(id)));
    let ins = (0..).zip(graph.params()).map(|(k, &id)| dense(Space::Operand(k), id)).collect();
    let outs: Vec<Place> = (0..).zip(graph.roots()).map(|(k, &id)| dense(Space::Result(k), id)).collect();
    TiledKernel { accumulators: vec![None; outs.len()], ins, outs, phase: Phase::Whole, graph }
}

fn selector(target: &str) -> (Isa, Selector) {
    let isa = load_target(target).unwrap_or_else(|e| panic!("{e}"));
    let selector = Selector::generate(&isa).unwrap_or_else(|e| panic!("{e}"));
    (isa, selector)
}

/// The first graphs for a kernel, cheapest first.
fn select(
    selector: &Selector,
    kernel: &TiledKernel,
    float: FloatPolicy,
    count: usize,
) -> Result<Vec<Selected>, SelectError> {
    let mut selection = selector.select(kernel, numerics(float), &Limits::default())?;
    let found: Vec<Selected> = selection.by_ref().take(count).collect();
    assert!(
        !found.is_empty(),
        "{:?}, at its limit: {}",
        selection.exploration(),
        selection.stopped_at_limit()
    );
    assert!(found.iter().map(|s| s.cost).is_sorted(), "graphs must come cheapest first");
    Ok(found)
}

/// Names of the instructions in a graph, sorted.
fn names(isa: &Isa, graph: &PiiGraph) -> Vec<String> {
    let mut names: Vec<String> = graph
        .nodes
        .iter()
        .filter_map(|n| match &n.op {
            PiiOp::Instr { op, .. } => Some(isa.instr(*op).name.clone()),
            _ => None,
        })
        .collect();
    names.sort();
    names
}
