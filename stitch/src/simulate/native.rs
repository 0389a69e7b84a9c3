//! One native function per (instruction, alpha): its semantics over memory, given a pointer per slice. The function is a
//! template of the description's computation; no instruction is known by name, and no address is checked here.

use super::LowerError;
use super::code::{Code, Value};
use super::layout::BufferLayout;
use super::place::{Place, Region};
use super::scalar::Unsupported;
use super::tensor::{Memory, Scope, Shared, Tensors};
use act_hlo::{ElemType, Graph, NodeId, OpKind};
use act_isa::{AttrVal, Instr, Isa, Slice};
use std::collections::BTreeSet;

/// The scopes that memory accesses of a module fall into.
#[derive(Clone, Debug)]
pub(crate) struct Scopes {
    pub(crate) hbm: Scope,
    /// By buffer.
    pub(crate) buffers: Vec<Scope>,
}

/// Internal to the module and free to be inlined. Denormals are zeros, as the run sets the processor.
pub(crate) const INTERNAL: &str = "llvm.linkage = #llvm.linkage<internal>, \
     passthrough = [[\"denormal-fp-math\", \"preserve-sign,preserve-sign\"]]";
/// The same, inlined whatever it costs.
const INLINED: &str = "llvm.linkage = #llvm.linkage<internal>, \
     passthrough = [\"alwaysinline\", [\"denormal-fp-math\", \"preserve-sign,preserve-sign\"]]";

/// Lines of MLIR up to which a straight-line function is inlined, over all places that call it.
const MOST_INLINED_LINES: usize = 1 << 13;

/// The temporaries of an instruction, by two pointers of which LLVM does not know that they are equal. What is packed
/// only to be loaded again element by element goes through the second one: to take the elements out of the register that
/// was stored would need many shuffles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workspace {
    pub(crate) base: Value,
    pub(crate) packed: Value,
}

/// What a native function is made from.
pub(crate) struct Source<'a> {
    pub(crate) isa: &'a Isa,
    pub(crate) instr: &'a Instr,
    pub(crate) alpha: &'a [AttrVal],
    pub(crate) registers: &'a [i64],
    /// Slices of any site with this instruction, alpha and registers; their starts do not matter.
    pub(crate) places: &'a [Place],
    pub(crate) layouts: &'a [BufferLayout],
    pub(crate) scopes: &'a Scopes,
}

/// The text of `@name(workspace, the same again, pointer to every input, pointer to every output)`.
///
/// # Errors
/// An instruction without meaning at this alpha, or one that the simulator has no code for.
pub(crate) fn instruction(
    source: &Source<'_>,
    name: &str,
    shared: &mut Shared,
) -> Result<String, LowerError> {
    let Source { isa, instr, alpha, registers, places, layouts, scopes } = *source;
    let graph = instr
        .instantiate_with(isa, alpha, registers)
        .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
    let mut code = Code::default();
    let (workspace, pointers) = open_function(&mut code, name, places.len());
    let mut tensors = Tensors::new(code, shared, &graph, workspace);
    let memories: Vec<Memory> = places
        .iter()
        .zip(pointers)
        .map(|(place, base)| match &place.region {
            Region::OnChip { buffer, .. } => {
                let BufferLayout { elem, strides, .. } = &layouts[*buffer];
                Memory { base, elem: *elem, strides: strides.clone(), scope: scopes.buffers[*buffer] }
            }
            Region::Hbm { dims, .. } => {
                let strides = dims.iter().map(|d| d.1).collect();
                Memory { base, elem: ElemType::U8, strides, scope: scopes.hbm }
            }
        })
        .collect();
    let (inputs, outputs) = memories.split_at(instr.inputs.len());
    // Every access must know every scope, whichever comes first.
    memories.iter().for_each(|memory| tensors.note_scope(memory.scope));
    for (&param, memory) in graph.params().iter().zip(inputs) {
        tensors.place(param, memory.clone());
    }
    let done = body(&mut tensors, instr, outputs);
    done.map_err(|error| LowerError::Unsupported { instr: instr.name.clone(), error })?;
    Ok(close_function(tensors.code))
}

/// Opens `@name(workspace, the same again, pointers..)`.
pub(crate) fn open_function(code: &mut Code, name: &str, pointers: usize) -> (Workspace, Vec<Value>) {
    let workspace = Workspace { base: code.name(), packed: code.name() };
    let pointers: Vec<Value> = (0..pointers).map(|_| code.name()).collect();
    let rest: String = pointers.iter().map(|p| format!(", {p}: !llvm.ptr")).collect();
    let Workspace { base, packed } = workspace;
    code.open(format_args!(
        "func.func @{name}({base}: !llvm.ptr, {packed}: !llvm.ptr{rest}) attributes {{{INTERNAL}}}"
    ));
    (workspace, pointers)
}

/// The function, to be inlined at its `sites` if it is straight-line code of moderate size: what an enclosing loop leaves
/// in place, an accumulator for one, then stays in registers.
pub(crate) fn inlined(function: String, sites: usize) -> String {
    let straight = !function.contains("scf.for") && !function.contains("scf.if");
    let small = function.lines().count().saturating_mul(sites) <= MOST_INLINED_LINES;
    if straight && small { function.replacen(INTERNAL, INLINED, 1) } else { function }
}

pub(crate) fn close_function(mut code: Code) -> String {
    code.line(format_args!("return"));
    code.close();
    code.into_text()
}

/// Computes what must be kept in memory, then stores the roots.
fn body(tensors: &mut Tensors<'_>, instr: &Instr, outputs: &[Memory]) -> Result<(), Unsupported> {
    let graph = tensors.graph;
    if let Some((dot, addend)) = accumulation(graph, instr)
        && tensors.accumulate(dot, addend, &outputs[0])?
    {
        return Ok(());
    }
    let early: BTreeSet<NodeId> = roots_to_finish_first(graph, instr)
        .into_iter()
        .map(|root| {
            // Whole elements, not every byte of them for itself.
            let computed =
                tensors.ending(root).last().copied().filter(|&node| tensors.memory(node).is_none());
            computed.unwrap_or(root)
        })
        .collect();
    for node in graph.ids().filter(|&n| is_needed(graph, n)) {
        let kept = match &graph.node(node).op {
            OpKind::Parameter(_) => false,
            OpKind::Dot(_)
            | OpKind::Reduce { .. }
            | OpKind::Concatenate { .. }
            | OpKind::Pad { .. }
            | OpKind::DynamicUpdateSlice => true,
            // With the quiet NaNs that it makes it is more work than a product.
            OpKind::Convert if graph.shape(node).elem.is_float() && is_spread(graph, node) => true,
            op => early.contains(&node) || (Tensors::is_costly(op) && is_recomputed(graph, node)),
        };
        if kept {
            tensors.materialise(node)?;
        }
    }
    for (&root, memory) in graph.roots().iter().zip(outputs) {
        tensors.store_root(root, memory)?;
    }
    Ok(())
}

/// For an instruction with one output that is a dot, or the sum of a dot and something else, the two, if nothing that
/// they read lies in the memory that is written; the something else may be the output's own slice.
fn accumulation(graph: &Graph, instr: &Instr) -> Option<(NodeId, Option<NodeId>)> {
    let ([root], [out]) = (graph.roots(), instr.outputs.as_slice()) else { return None };
    let is_dot = |node: NodeId| matches!(graph.node(node).op, OpKind::Dot(_));
    let operands = &graph.node(*root).operands;
    let (dot, addend) = match graph.node(*root).op {
        OpKind::Dot(_) => (*root, None),
        OpKind::Binary(act_hlo::Binary::Add) if is_dot(operands[1]) => (operands[1], Some(operands[0])),
        OpKind::Binary(act_hlo::Binary::Add) if is_dot(operands[0]) => (operands[0], Some(operands[1])),
        _ => return None,
    };
    let apart = |node: NodeId| {
        instr
            .inputs
            .iter()
            .zip(graph.params())
            .all(|(input, &param)| !reaches(graph, node, param) || !overlap(out, input))
    };
    let in_place = |node: NodeId| match graph.node(node).op {
        OpKind::Parameter(k) => matches!(out, Slice::OnChip(_)) && instr.inputs.get(k as usize) == Some(out),
        _ => false,
    };
    // Two reads of one dot cannot be: an addend that depends on it is no memory.
    let fits = apart(dot) && addend.is_none_or(|a| in_place(a) || apart(a));
    fits.then_some((dot, addend))
}

/// Whether the two slices can share bytes.
fn overlap(a: &Slice, b: &Slice) -> bool {
    match (a, b) {
        (Slice::Hbm(_), Slice::Hbm(_)) => true,
        (Slice::OnChip(a), Slice::OnChip(b)) => a.buffer == b.buffer,
        _ => false,
    }
}

/// Whether a root depends on `node`.
fn is_needed(graph: &Graph, node: NodeId) -> bool {
    graph.roots().iter().any(|&root| reaches(graph, root, node))
}

fn reaches(graph: &Graph, from: NodeId, to: NodeId) -> bool {
    let mut seen = vec![false; graph.nodes().len()];
    let mut stack = vec![from];
    while let Some(node) = stack.pop() {
        if node == to {
            return true;
        }
        // Operands stand before their users.
        if node > to && !std::mem::replace(&mut seen[node.0 as usize], true) {
            stack.extend(&graph.node(node).operands);
        }
    }
    false
}

/// Whether elements of `node` would be computed more than once.
fn is_recomputed(graph: &Graph, node: NodeId) -> bool {
    let mut uses = 0;
    for user in graph.ids() {
        let of_user = graph.node(user).operands.iter().filter(|&&o| o == node).count();
        if of_user > 0 && matches!(graph.node(user).op, OpKind::Broadcast { .. }) {
            return true;
        }
        uses += of_user;
    }
    uses > 1
}

/// Whether movement of data alone leads from `node` to a broadcast.
fn is_spread(graph: &Graph, node: NodeId) -> bool {
    graph.ids().filter(|&user| graph.node(user).operands.contains(&node)).any(|user| {
        match graph.node(user).op {
            OpKind::Broadcast { .. } => true,
            OpKind::Slice { .. } | OpKind::Reshape | OpKind::Transpose { .. } | OpKind::Copy => {
                is_spread(graph, user)
            }
            _ => false,
        }
    })
}

/// Roots that must be complete before any output is written, because their computation reads what a store
/// overwrites. Slice, compute, upslice: an instruction reads all of its inputs before it writes (appendix A).
fn roots_to_finish_first(graph: &Graph, instr: &Instr) -> Vec<NodeId> {
    let mut finish = Vec::new();
    for (k, &root) in graph.roots().iter().enumerate() {
        for (param, in_place) in reads(graph, root) {
            let input = &instr.inputs[param];
            let clash = instr.outputs[..=k].iter().enumerate().any(|(j, out)| {
                // Updating an element from the same element alone is safe.
                let same = j == k && in_place && out == input && matches!(out, Slice::OnChip(_));
                overlap(out, input) && !same
            });
            if clash && !finish.contains(&root) {
                finish.push(root);
            }
        }
    }
    finish
}

/// Parameters that a root's final loops read, and whether each is read at the stored position only.
fn reads(graph: &Graph, root: NodeId) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    let mut stack = vec![(root, true)];
    let mut seen = BTreeSet::new();
    while let Some((node, in_place)) = stack.pop() {
        if !seen.insert((node, in_place)) {
            continue;
        }
        let n = graph.node(node);
        match &n.op {
            OpKind::Parameter(k) => found.push((*k as usize, in_place)),
            // Complete before the first store.
            OpKind::Dot(_)
            | OpKind::Reduce { .. }
            | OpKind::Concatenate { .. }
            | OpKind::Pad { .. }
            | OpKind::DynamicUpdateSlice => {}
            OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Compare(_)
            | OpKind::Select
            | OpKind::Clamp
            | OpKind::Fma
            | OpKind::Convert
            | OpKind::Copy => {
                let shape = |id: NodeId| &graph.shape(id).dims;
                stack.extend(n.operands.iter().map(|&o| (o, in_place && shape(o) == shape(node))));
            }
            _ => stack.extend(n.operands.iter().map(|&o| (o, false))),
        }
    }
    found
}
