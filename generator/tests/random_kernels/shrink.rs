//! Smaller kernels with the same property, for the reader of a failing test.

use act_hlo::{Graph, NodeId, Op};

/// The graph without nodes that no result needs. Parameters that are not needed vanish too.
pub(crate) fn cleaned(graph: &Graph) -> Graph {
    rebuilt(graph, |_| Keep::AsIs, graph.roots())
}

enum Keep {
    AsIs,
    /// A parameter in its place.
    Parameter,
    /// This operand in its place.
    Operand(usize),
}

/// The part of the graph that `roots` need, with some nodes replaced.
fn rebuilt(graph: &Graph, keep: impl Fn(NodeId) -> Keep, roots: &[NodeId]) -> Graph {
    let mut needed = vec![false; graph.nodes().len()];
    for &root in roots {
        needed[root.0 as usize] = true;
    }
    for id in graph.ids().rev() {
        if !needed[id.0 as usize] {
            continue;
        }
        let operands = &graph.node(id).operands;
        match keep(id) {
            Keep::AsIs => operands.iter().for_each(|o| needed[o.0 as usize] = true),
            Keep::Operand(k) => needed[operands[k].0 as usize] = true,
            Keep::Parameter => {}
        }
    }
    let mut new = Graph::new(graph.name.clone());
    let mut map: Vec<Option<NodeId>> = vec![None; needed.len()];
    for id in graph.ids().filter(|id| needed[id.0 as usize]) {
        let node = graph.node(id);
        let operand = |k: usize| map[node.operands[k].0 as usize].expect("operands stand before users");
        let built = match (keep(id), &node.op) {
            (Keep::Operand(k), _) => operand(k),
            (Keep::Parameter, _) | (_, Op::Parameter(_)) => new.parameter(node.shape.clone()),
            (Keep::AsIs, op) => {
                let operands: Vec<NodeId> = (0..node.operands.len()).map(operand).collect();
                new.add_declared(op.clone(), &operands, Some(&node.shape)).unwrap_or_else(|e| panic!("{e}"))
            }
        };
        map[id.0 as usize] = Some(built);
    }
    for root in roots {
        let root = map[root.0 as usize].expect("roots are needed");
        new.add_root(root).unwrap_or_else(|e| panic!("{e}"));
    }
    new
}

/// The smallest graph that single steps lead to while `still` holds: one result, one node cut off, one node left out.
pub(crate) fn smallest(graph: Graph, still: impl Fn(&Graph) -> bool) -> Graph {
    let mut best = graph;
    'again: loop {
        for candidate in smaller(&best) {
            if candidate.nodes().len() < best.nodes().len() && still(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

fn smaller(graph: &Graph) -> Vec<Graph> {
    let mut all = Vec::new();
    if graph.roots().len() > 1 {
        all.extend(graph.roots().iter().map(|&root| rebuilt(graph, |_| Keep::AsIs, &[root])));
    }
    // The inner half first: it cuts most.
    for id in graph.ids().rev() {
        if matches!(graph.node(id).op, Op::Parameter(_) | Op::Constant(_)) || graph.roots().contains(&id) {
            continue;
        }
        all.push(rebuilt(graph, |at| if at == id { Keep::Parameter } else { Keep::AsIs }, graph.roots()));
    }
    for id in graph.ids() {
        let node = graph.node(id);
        for (k, operand) in node.operands.iter().enumerate() {
            if graph.shape(*operand) == &node.shape {
                all.push(rebuilt(
                    graph,
                    |at| if at == id { Keep::Operand(k) } else { Keep::AsIs },
                    graph.roots(),
                ));
            }
        }
        if graph.roots().contains(&id) && graph.roots().len() == 1 {
            let inner: Vec<NodeId> = node.operands.clone();
            all.extend(
                inner
                    .into_iter()
                    .filter(|o| {
                        graph.shape(*o).rank() > 0
                            && !matches!(graph.node(*o).op, Op::Parameter(_) | Op::Constant(_))
                    })
                    .map(|o| rebuilt(graph, |_| Keep::AsIs, &[o])),
            );
        }
    }
    all
}
