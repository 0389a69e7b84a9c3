//! The independent check of finished assembly against the pii graph it was made from: every instruction must find each
//! of its operands where the graph says it comes from, untouched since it was written. Uses no live range, no order
//! and no constraint of the allocators: only the assembly, the address maps h and the graph.

use super::byte_runs::{cover, share_bytes};
use super::validate::alpha_values;
use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_isa::{AsmInstr, BetaVal, Env, Isa, Place, Slice, Space, TiledKernel, View};

/// A box of cells of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cells {
    buffer: usize,
    start: Vec<i64>,
    len: Vec<i64>,
}

impl Cells {
    fn meets(&self, other: &Cells) -> bool {
        self.buffer == other.buffer
            && (0..self.len.len()).all(|d| {
                self.start[d] < other.start[d].saturating_add(other.len[d])
                    && other.start[d] < self.start[d].saturating_add(self.len[d])
            })
    }
}

/// Checks `code`, where `code[i]` was emitted for node `nodes[i]`; `inputs` are the slots of the on-chip parameters,
/// `outputs` those of the on-chip results.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn check(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    nodes: &[PiiId],
    code: &[AsmInstr],
    inputs: &[Option<Vec<i64>>],
    outputs: &[Option<Vec<i64>>],
) -> Result<(), String> {
    let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
    // What was written when: parameters at time 0, instruction i at time i + 1.
    let mut written: Vec<(usize, PiiId, Cells)> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if let (PiiOp::OnChipInput(k), Some(buffer)) = (&node.op, node.buffer) {
            let slot = inputs.get(*k).cloned().flatten().ok_or("a parameter without a slot")?;
            let len = lengths(&node.lens);
            written.push((0, PiiId(index as u32), Cells { buffer: usize::from(buffer.0), start: slot, len }));
        }
    }
    let own = written.clone();
    for (at, (_, _, a)) in own.iter().enumerate() {
        bounded(isa, a)?;
        if own[at + 1..].iter().any(|(_, _, b)| a.meets(b)) {
            return Err("two parameters share cells".to_owned());
        }
    }
    // All reads are collected first and looked at when every write is known.
    let mut reads: Vec<(usize, PiiId, Cells)> = Vec::new();
    for (at, (instr, &id)) in code.iter().zip(nodes).enumerate() {
        let time = at + 1;
        let decl = isa.instr(instr.op);
        let PiiOp::Instr { op, alpha, .. } = &graph.node(id).op else {
            return Err("no instruction".to_owned());
        };
        if *op != instr.op || *alpha != instr.alpha {
            return Err(format!("`{}` was emitted for another instruction", decl.name));
        }
        let alpha = alpha_values(&instr.alpha);
        let beta: Vec<Option<i64>> = instr
            .beta
            .iter()
            .map(|b| match b {
                BetaVal::Int(at) if at.ivs.is_empty() => Some(at.c0),
                _ => None,
            })
            .collect();
        let env = Env { alpha: &alpha, beta: &beta, registers: &registers };
        let cells = |slice: &Slice| -> Result<Option<Cells>, String> {
            let Slice::OnChip(slice) = slice else { return Ok(None) };
            let values = |of: &[act_isa::Expr]| {
                of.iter().map(|e| e.eval(env)).collect::<Result<Vec<i64>, _>>().map_err(|e| e.to_string())
            };
            let cells = Cells {
                buffer: usize::from(slice.buffer.0),
                start: values(&slice.start)?,
                len: values(&slice.len)?,
            };
            bounded(isa, &cells)?;
            Ok(Some(cells))
        };
        for (slice, &operand) in decl.inputs.iter().zip(&graph.node(id).operands) {
            if let Some(cells) = cells(slice)? {
                reads.push((time, operand, cells));
            }
        }
        for (number, slice) in decl.outputs.iter().enumerate() {
            if let Some(cells) = cells(slice)? {
                written.push((time, output(graph, id, number), cells));
            }
        }
        for cond in &decl.requires {
            // Conditions on byte addresses were decided before: their betas have no value here.
            if cond.eval(env) == Ok(false) {
                return Err(format!("a condition of `{}` does not hold", decl.name));
            }
        }
    }
    spills_are_restored(graph, nodes)?;
    let end = code.len() + 1;
    for ((root, place), slot) in graph.roots.iter().zip(&kernel.outs).zip(outputs) {
        if let (Place::OnChip { buf, .. }, &[id], Some(slot)) = (place, root.as_slice(), slot) {
            let len = lengths(&graph.node(id).lens);
            reads.push((end, id, Cells { buffer: usize::from(buf.0), start: slot.clone(), len }));
        }
    }
    for (k, place) in kernel.ins.iter().enumerate() {
        let carried = matches!(place, Place::OnChip { carried: Some(_), .. });
        if let (true, Some((_, id, cells))) = (
            carried && !kernel.accumulators.contains(&Some(k)),
            own.iter().find(|(_, id, _)| graph.node(*id).op == PiiOp::OnChipInput(k)),
        ) {
            reads.push((end, *id, cells.clone()));
        }
    }
    reads.iter().try_for_each(|(time, value, cells)| {
        let whole = vec![0; cells.len.len()];
        part(graph, &written, *time, *value, cells, &whole, &cells.len)
    })
}

/// The node of an output of the instruction `of`; one that is none where nobody wants the output.
fn output(graph: &PiiGraph, of: PiiId, number: usize) -> PiiId {
    let is = |node: &PiiNode| node.op == (PiiOp::Output { number }) && node.operands == [of];
    if number == 0 {
        return of;
    }
    graph.nodes.iter().position(is).map_or(PiiId(u32::MAX), |at| PiiId(at as u32))
}

/// Whether every load from scratch memory reads what earlier stores wrote there, and every byte is written once.
fn spills_are_restored(graph: &PiiGraph, nodes: &[PiiId]) -> Result<(), String> {
    let scratch = |view: &&View| view.space == Space::Scratch;
    let mut stored: Vec<&View> = Vec::new();
    for &id in nodes {
        let node = graph.node(id);
        for &operand in &node.operands {
            if let PiiOp::HbmView(view) = &graph.node(operand).op
                && view.space == Space::Scratch
                && !cover(&stored, view)
            {
                return Err("scratch memory is read before it is written".to_owned());
            }
        }
        if let PiiOp::Instr { store, .. } = &node.op
            && let Some(view) = store.as_ref().filter(scratch)
        {
            if stored.iter().any(|other| share_bytes(other, view)) {
                return Err("two values share scratch memory".to_owned());
            }
            stored.push(view);
        }
    }
    Ok(())
}

fn lengths(lens: &[u64]) -> Vec<i64> {
    lens.iter().map(|&l| i64::try_from(l).unwrap_or(i64::MAX)).collect()
}

fn bounded(isa: &Isa, cells: &Cells) -> Result<(), String> {
    let buffer = isa.buffers.get(cells.buffer).ok_or("no such buffer")?;
    let inside = cells.start.len() == buffer.access.len()
        && (0..cells.start.len()).all(|d| {
            let align = buffer.align.get(d).copied().unwrap_or(1).max(1);
            cells.start[d] >= 0
                && cells.start[d].saturating_add(cells.len[d])
                    <= i64::try_from(buffer.access[d]).unwrap_or(i64::MAX)
                && u64::try_from(cells.start[d]).is_ok_and(|s| s % align == 0)
        });
    if inside { Ok(()) } else { Err(format!("a slice outside `{}` or not aligned in it", buffer.name)) }
}

/// Whether, just before `time`, the part `offset :+ len` of node `value` lies at the same offset in `cells`, which is
/// where the whole value is said to lie. Identity instructions are looked through.
fn part(
    graph: &PiiGraph,
    written: &[(usize, PiiId, Cells)],
    time: usize,
    value: PiiId,
    cells: &Cells,
    offset: &[i64],
    len: &[i64],
) -> Result<(), String> {
    if len.iter().any(|&l| l <= 0) {
        return Ok(());
    }
    let node = graph.node(value);
    match &node.op {
        PiiOp::SliceH { start } => {
            let start = lengths(start);
            let operand = *node.operands.first().ok_or("a slice of nothing")?;
            let whole = Cells {
                buffer: cells.buffer,
                start: (0..start.len()).map(|d| cells.start[d] - start[d]).collect(),
                len: lengths(&graph.node(operand).lens),
            };
            let inside: Vec<i64> = (0..start.len()).map(|d| offset[d] + start[d]).collect();
            part(graph, written, time, operand, &whole, &inside, len)
        }
        PiiOp::ConcatH { dim } => {
            let mut along = 0;
            for &operand in &node.operands {
                let lens = lengths(&graph.node(operand).lens);
                let (lo, hi) = (offset[*dim].max(along), (offset[*dim] + len[*dim]).min(along + lens[*dim]));
                let (mut inner, mut inner_len) = (offset.to_vec(), len.to_vec());
                inner[*dim] = lo - along;
                inner_len[*dim] = hi - lo;
                let mut start = cells.start.clone();
                start[*dim] += along;
                along += lens[*dim];
                let slot = Cells { buffer: cells.buffer, start, len: lens };
                part(graph, written, time, operand, &slot, &inner, &inner_len)?;
            }
            Ok(())
        }
        PiiOp::HbmView(_) => Err("a window of d0 read from a buffer".to_owned()),
        PiiOp::Instr { .. } | PiiOp::Output { .. } | PiiOp::OnChipInput(_) => {
            let (born, _, slot) = written
                .iter()
                .filter(|(t, id, _)| *id == value && *t < time)
                .max_by_key(|(t, _, _)| *t)
                .ok_or_else(|| format!("%{} is read before it is written", value.0))?;
            if slot.start != cells.start || slot.buffer != cells.buffer {
                return Err(format!("%{} is read where it does not lie", value.0));
            }
            let read = Cells {
                buffer: cells.buffer,
                start: (0..len.len()).map(|d| cells.start[d] + offset[d]).collect(),
                len: len.to_vec(),
            };
            untouched(written, *born, time, value, &read)
        }
    }
}

fn untouched(
    written: &[(usize, PiiId, Cells)],
    born: usize,
    time: usize,
    value: PiiId,
    cells: &Cells,
) -> Result<(), String> {
    let spoilt = written.iter().any(|(t, id, other)| {
        let later = born < *t && *t < time;
        let beside = *t == born && *id != value && born > 0;
        (later || beside) && other.meets(cells)
    });
    if spoilt { Err(format!("%{} is overwritten before it is read", value.0)) } else { Ok(()) }
}
