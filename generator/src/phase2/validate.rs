//! Whether a pii graph fits the description and the kernel it was made for: everything later relies on it. A graph that
//! does not is refused, never repaired.

use super::AllocError;
use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_hlo::ElemType;
use act_isa::{AttrVal, Env, HbmWindow, Isa, Place, Slice, TiledKernel, View};

/// Values of computational attributes as expressions read them: an f32 has none.
pub(super) fn alpha_values(alpha: &[AttrVal]) -> Vec<Option<i64>> {
    alpha.iter().map(|v| v.as_int()).collect()
}

/// The graph with a node for every on-chip parameter of the kernel, also those that nothing reads: they occupy their
/// slots all the same.
pub(super) fn with_all_inputs(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
) -> Result<PiiGraph, AllocError> {
    let mut graph = graph.clone();
    for (k, place) in kernel.ins.iter().enumerate() {
        let Place::OnChip { buf, .. } = place else { continue };
        if graph.nodes.iter().any(|n| n.op == PiiOp::OnChipInput(k)) {
            continue;
        }
        let id = PiiId(graph.nodes.len() as u32);
        let access = isa.buffers.get(usize::from(buf.0)).map(|b| b.access.len());
        let shape = kernel.graph.params().get(k).map(|&p| kernel.graph.shape(p));
        let lens = access.zip(shape).and_then(|(rank, shape)| shape.dims.get(..rank));
        let Some(lens) = lens else {
            return Err(malformed(id, format!("parameter {k} has no slot in its buffer")));
        };
        graph.nodes.push(PiiNode {
            op: PiiOp::OnChipInput(k),
            operands: Vec::new(),
            buffer: Some(*buf),
            lens: lens.to_vec(),
        });
    }
    Ok(graph)
}

/// Checks every node and root.
///
/// # Errors
/// [`AllocError::Malformed`] names the first node that does not fit.
pub(super) fn check(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph) -> Result<(), AllocError> {
    for (index, node) in graph.nodes.iter().enumerate() {
        let id = PiiId(index as u32);
        check_node(isa, kernel, graph, id, node).map_err(|reason| malformed(id, reason))?;
    }
    if graph.roots.len() != kernel.outs.len() {
        return Err(malformed(
            PiiId(0),
            format!("{} roots for {} results", graph.roots.len(), kernel.outs.len()),
        ));
    }
    for (root, place) in graph.roots.iter().zip(&kernel.outs) {
        if let Some(&id) = root.iter().find(|id| id.0 as usize >= graph.nodes.len()) {
            return Err(malformed(id, "a root that does not exist".to_owned()));
        }
        let fits = match (place, root.as_slice()) {
            (Place::Hbm(_), stores) => stores.iter().all(|&s| graph.node(s).buffer.is_none()),
            (Place::OnChip { buf, slot, .. }, &[id]) => {
                let rank = graph.node(id).lens.len();
                graph.node(id).buffer == Some(*buf) && slot.as_ref().is_none_or(|s| s.len() == rank)
            }
            (Place::OnChip { .. }, _) => false,
        };
        if !fits {
            let id = root.first().copied().unwrap_or(PiiId(0));
            return Err(malformed(id, "a root that does not lie where the kernel wants it".to_owned()));
        }
    }
    Ok(())
}

fn malformed(node: PiiId, reason: String) -> AllocError {
    AllocError::Malformed { node, reason }
}

fn check_node(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    id: PiiId,
    node: &PiiNode,
) -> Result<(), String> {
    if node.operands.iter().any(|o| *o >= id) {
        return Err("an operand that does not stand before its user".to_owned());
    }
    if let Some(buffer) = node.buffer {
        let buffer = isa.buffers.get(usize::from(buffer.0)).ok_or("a buffer that does not exist")?;
        if node.lens.len() != buffer.access.len() {
            return Err(format!(
                "{} lengths in a buffer of {} dimensions",
                node.lens.len(),
                buffer.access.len()
            ));
        }
    }
    match &node.op {
        PiiOp::HbmView(view) => {
            if node.buffer.is_some() || !node.operands.is_empty() || view.elem != ElemType::U8 {
                return Err("a window of d0 that is no plain bytes".to_owned());
            }
            Ok(())
        }
        PiiOp::OnChipInput(k) => match kernel.ins.get(*k) {
            Some(Place::OnChip { buf, slot, .. }) if node.buffer == Some(*buf) => {
                let rank = node.lens.len();
                if slot.as_ref().is_some_and(|s| s.len() != rank) {
                    return Err(format!("a pinned slot that has not {rank} dimensions"));
                }
                Ok(())
            }
            _ => Err(format!("parameter {k} does not lie in this buffer")),
        },
        PiiOp::Instr { .. } => check_instruction(isa, graph, node),
        PiiOp::Output { number } => check_output(isa, graph, id, node, *number),
        PiiOp::SliceH { start } => {
            let &[operand] = node.operands.as_slice() else { return Err("a slice of several".to_owned()) };
            let operand = graph.node(operand);
            if operand.buffer != node.buffer || node.buffer.is_none() || start.len() != node.lens.len() {
                return Err("a slice that leaves its buffer".to_owned());
            }
            let inside = start
                .iter()
                .zip(&node.lens)
                .zip(&operand.lens)
                .all(|((&s, &l), &of)| s.checked_add(l).is_some_and(|end| end <= of));
            if inside { Ok(()) } else { Err("a slice beyond its operand".to_owned()) }
        }
        PiiOp::ConcatH { dim } => {
            let mut sum = 0u64;
            for &operand in &node.operands {
                let operand = graph.node(operand);
                let same = operand.buffer == node.buffer
                    && node.buffer.is_some()
                    && (0..node.lens.len()).all(|d| d == *dim || operand.lens.get(d) == node.lens.get(d));
                if !same {
                    return Err("a concatenation of values that do not fit together".to_owned());
                }
                sum = sum.saturating_add(operand.lens.get(*dim).copied().unwrap_or(0));
            }
            if node.lens.get(*dim) == Some(&sum) {
                Ok(())
            } else {
                Err("a concatenation whose length is not the sum".to_owned())
            }
        }
    }
}

fn check_instruction(isa: &Isa, graph: &PiiGraph, node: &PiiNode) -> Result<(), String> {
    let PiiOp::Instr { op, alpha, store } = &node.op else { return Ok(()) };
    let instr = isa.instrs.get(usize::from(op.0)).ok_or("an instruction that does not exist")?;
    if alpha.len() != instr.alpha.len() || node.operands.len() != instr.inputs.len() {
        return Err(format!("`{}` with the wrong number of attributes or operands", instr.name));
    }
    let alpha = alpha_values(alpha);
    let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
    let env = Env { alpha: &alpha, beta: &[], registers: &registers };
    for (slice, &operand) in instr.inputs.iter().zip(&node.operands) {
        let operand = graph.node(operand);
        match slice {
            Slice::OnChip(slice) => {
                let fits =
                    operand.buffer == Some(slice.buffer) && lengths_are(&slice.len, &operand.lens, env);
                if !fits {
                    return Err(format!("an operand of `{}` that is not the slice it reads", instr.name));
                }
            }
            Slice::Hbm(window) => {
                let PiiOp::HbmView(view) = &operand.op else {
                    return Err(format!("an operand of `{}` that is not in d0", instr.name));
                };
                check_window(window, view, env)?;
            }
        }
    }
    for slice in &instr.outputs {
        if let Slice::Hbm(window) = slice {
            check_window(window, store.as_ref().ok_or("a store without its window")?, env)?;
        }
    }
    if instr.outputs.iter().filter(|slice| matches!(slice, Slice::Hbm(_))).count() > 1 {
        return Err(format!("`{}` stores more than one value", instr.name));
    }
    match instr.outputs.first() {
        Some(slice) => check_value(slice, node, env, &instr.name),
        None => Err(format!("`{}` has no result", instr.name)),
    }
}

/// Whether a node lies where an output of its instruction goes.
fn check_value(output: &Slice, node: &PiiNode, env: Env<'_>, instr: &str) -> Result<(), String> {
    let fits = match output {
        Slice::OnChip(slice) => node.buffer == Some(slice.buffer) && lengths_are(&slice.len, &node.lens, env),
        Slice::Hbm(_) => node.buffer.is_none(),
    };
    if fits { Ok(()) } else { Err(format!("the value of `{instr}` is not the slice it writes")) }
}

fn check_output(isa: &Isa, graph: &PiiGraph, id: PiiId, node: &PiiNode, number: usize) -> Result<(), String> {
    let &[of] = node.operands.as_slice() else { return Err("an output of several".to_owned()) };
    let PiiOp::Instr { op, alpha, .. } = &graph.node(of).op else {
        return Err("an output of no instruction".to_owned());
    };
    let instr = isa.instrs.get(usize::from(op.0)).ok_or("an instruction that does not exist")?;
    let Some(slice) = instr.outputs.get(number).filter(|_| number > 0) else {
        return Err(format!("`{}` has no further output {number}", instr.name));
    };
    let before = &graph.nodes[..id.0 as usize];
    if before.iter().any(|n| n.op == node.op && n.operands == node.operands) {
        return Err(format!("output {number} of `{}` twice", instr.name));
    }
    let alpha = alpha_values(alpha);
    let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
    check_value(slice, node, Env { alpha: &alpha, beta: &[], registers: &registers }, &instr.name)
}

fn lengths_are(len: &[act_isa::Expr], lens: &[u64], env: Env<'_>) -> bool {
    len.len() == lens.len()
        && len.iter().zip(lens).all(|(l, &n)| l.eval(env).is_ok_and(|l| u64::try_from(l) == Ok(n)))
}

/// Whether a view of d0 is what the window of an instruction touches. The stride of a dimension of length 1 does not
/// matter.
fn check_window(window: &HbmWindow, view: &View, env: Env<'_>) -> Result<(), String> {
    let same = window.dims.len() == view.dims.len()
        && view.elem == ElemType::U8
        && window.dims.iter().zip(&view.dims).all(|((len, stride), &(n, step))| {
            len.eval(env).is_ok_and(|l| u64::try_from(l) == Ok(n))
                && (n <= 1 || stride.eval(env).is_ok_and(|s| s == step))
        });
    if same { Ok(()) } else { Err("a view of d0 that is not the window of its instruction".to_owned()) }
}
