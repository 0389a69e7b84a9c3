//! Inputs of a tiled kernel that are the same bytes of main memory become one parameter: the leaves of the normal form are
//! apart so that they can be cut apart, and an instruction that reads one operand twice wants them together again.

use super::rebuild::with_parameters;
use act_hlo::GraphError;
use act_isa::{Place, TiledKernel};

/// The kernel with one parameter per place.
///
/// # Errors
/// Shape inference refuses the graph, which it took before.
pub(super) fn with_shared_inputs(kernel: TiledKernel) -> Result<TiledKernel, GraphError> {
    let params = kernel.graph.params();
    let shape = |k: usize| kernel.graph.shape(params[k]);
    let same = |j: usize, k: usize| {
        matches!(kernel.ins[k], Place::Hbm(_)) && kernel.ins[j] == kernel.ins[k] && shape(j) == shape(k)
    };
    let first: Vec<usize> =
        (0..kernel.ins.len()).map(|k| (0..k).find(|&j| same(j, k)).unwrap_or(k)).collect();
    if first.iter().enumerate().all(|(k, &j)| j == k) {
        return Ok(kernel);
    }
    let graph = with_parameters(&kernel.graph, |graph, k, id, new| match first[k] == k {
        true => Ok(graph.parameter(kernel.graph.shape(id).clone())),
        false => Ok(new[params[first[k]].0 as usize]),
    })?;
    let kept = |k: usize| first[..k].iter().enumerate().filter(|&(at, &j)| at == j).count();
    let accumulators = kernel.accumulators.iter().map(|a| a.map(|k| kept(first[k]))).collect();
    let ins = kernel.ins.iter().enumerate().filter(|&(k, _)| first[k] == k).map(|(_, place)| place.clone());
    Ok(TiledKernel { ins: ins.collect(), graph, accumulators, ..kernel })
}
