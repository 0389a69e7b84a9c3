//! Inputs of a tiled kernel that are the same bytes of main memory become one parameter: the leaves of the normal form are
//! apart so that they can be cut apart, and an instruction that reads one operand twice wants them together again.

use act_hlo::{Graph, GraphError, NodeId, Op};
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
    let mut graph = Graph::new(kernel.graph.name.clone());
    let mut new: Vec<NodeId> = Vec::with_capacity(kernel.graph.nodes().len());
    for id in kernel.graph.ids() {
        let node = kernel.graph.node(id);
        new.push(match node.op {
            Op::Parameter(k) if first[k as usize] != k as usize => new[params[first[k as usize]].0 as usize],
            Op::Parameter(_) => graph.parameter(node.shape.clone()),
            ref op => {
                let operands: Vec<NodeId> = node.operands.iter().map(|o| new[o.0 as usize]).collect();
                graph.add_declared(op.clone(), &operands, Some(&node.shape))?
            }
        });
        let noted = graph.annotate(new[id.0 as usize]);
        if noted.name.is_empty() {
            noted.name.clone_from(&node.name);
            noted.source.clone_from(&node.source);
        }
    }
    for root in kernel.graph.roots() {
        graph.add_root(new[root.0 as usize])?;
    }
    let kept = |k: usize| first[..k].iter().enumerate().filter(|&(at, &j)| at == j).count();
    let accumulators = kernel.accumulators.iter().map(|a| a.map(|k| kept(first[k]))).collect();
    let ins = kernel.ins.iter().enumerate().filter(|&(k, _)| first[k] == k).map(|(_, place)| place.clone());
    Ok(TiledKernel { ins: ins.collect(), graph, accumulators, ..kernel })
}
