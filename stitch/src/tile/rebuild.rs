//! A graph built again with other parameters: the same operators over whatever stands in the parameters' places.

use act_hlo::{Graph, GraphError, NodeId, Op};

/// The graph with `parameter` in place of each parameter; it is given the new graph, the parameter's number, its node in
/// the old graph and the new nodes of all nodes before it. Names and sources stay, roots too.
///
/// # Errors
/// Those of `parameter`; shape inference refuses an operator over what it made.
pub(crate) fn with_parameters(
    old: &Graph,
    mut parameter: impl FnMut(&mut Graph, usize, NodeId, &[NodeId]) -> Result<NodeId, GraphError>,
) -> Result<Graph, GraphError> {
    let mut graph = Graph::new(old.name.clone());
    let mut new: Vec<NodeId> = Vec::with_capacity(old.nodes().len());
    for id in old.ids() {
        let node = old.node(id);
        let built = match &node.op {
            Op::Parameter(k) => parameter(&mut graph, *k as usize, id, &new)?,
            op => {
                let operands: Vec<NodeId> = node.operands.iter().map(|o| new[o.0 as usize]).collect();
                graph.add_declared(op.clone(), &operands, Some(&node.shape))?
            }
        };
        // What two nodes share is called as the first of them.
        if !new.contains(&built) {
            let noted = graph.annotate(built);
            noted.name.clone_from(&node.name);
            noted.source.clone_from(&node.source);
        }
        new.push(built);
    }
    for root in old.roots() {
        graph.add_root(new[root.0 as usize])?;
    }
    Ok(graph)
}
