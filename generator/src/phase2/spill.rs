//! Values moved out of a buffer that is too small: stored to scratch memory and loaded back before their later uses,
//! or made again where that is a mere load. Which instructions can do so is derived from their semantics: both only
//! move bytes, and together they put every byte back.

use super::skeleton::{Owner, Skeleton};
use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_hlo::{ElemType, Literal, OpKind, Shape};
use act_isa::{Affine, AttrKind, AttrVal, BufferId, Env, Expr, Instr, InstrId, Isa, Slice, Space, View};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Scratch values start at multiples of this many bytes (or of what the description demands of addresses).
const SCRATCH_ALIGN: u64 = 64;

/// The ways to spill values of a description, each found once: there are many values and few shapes.
pub(super) struct SpillPairs<'a> {
    isa: &'a Isa,
    known: RefCell<BTreeMap<SlotShape, Option<Rc<SpillPair>>>>,
}

/// A buffer and the lengths of a slot in it.
type SlotShape = (BufferId, Vec<u64>);

impl<'a> SpillPairs<'a> {
    pub(super) fn new(isa: &'a Isa) -> SpillPairs<'a> {
        SpillPairs { isa, known: RefCell::new(BTreeMap::new()) }
    }

    /// A way to store the value of `id` whole and to load it back.
    fn of(&self, graph: &PiiGraph, id: PiiId) -> Option<Rc<SpillPair>> {
        let node = graph.node(id);
        let buffer = node.buffer.filter(|&b| !self.isa.buffer(b).nospill)?;
        let mut known = self.known.borrow_mut();
        let entry = known.entry((buffer, node.lens.clone()));
        entry.or_insert_with(|| spill_pair(self.isa, buffer, &node.lens).map(Rc::new)).clone()
    }
}

/// A graph with one more value moved out of the way, to be made when it is tried: there may be many, and large ones.
pub(super) struct Relief {
    graph: Rc<PiiGraph>,
    victim: PiiId,
    replacement: Replacement,
    /// By node: it is computed after the value is moved.
    late: Rc<[bool]>,
}

impl Relief {
    pub(super) fn graph(&self, isa: &Isa) -> PiiGraph {
        rewritten(isa, &self.graph, self.victim, &self.replacement, &self.late)
    }
}

/// The ways to move one more value of buffer `buffer` out of the way, for the point of `order` where that buffer is
/// fullest; the best guesses first, at most `most`: values whose next use is furthest away.
pub(super) fn relieve(
    pairs: &SpillPairs<'_>,
    graph: PiiGraph,
    skeleton: &Skeleton,
    order: &[usize],
    buffer: usize,
    most: usize,
) -> Vec<Relief> {
    let mut time = vec![0usize; skeleton.steps.len()];
    for (at, &step) in order.iter().enumerate() {
        time[step] = at + 1;
    }
    let Some(gap) = fullest(skeleton, order, &time, buffer) else { return Vec::new() };
    // Values that wait across the gap: made before it, read again after it, idle in between.
    let mut waiting: Vec<(usize, PiiId)> = Vec::new();
    for part in skeleton.parts.iter().filter(|p| p.buffer == buffer && p.written) {
        let (id, born) = match part.owner {
            Owner::Input(id) => (id, 0),
            Owner::Output { step, number } => match skeleton.steps[step].outputs.get(number) {
                Some(Some(node)) => (*node, time[step]),
                _ => continue,
            },
        };
        let mine = || skeleton.parts.iter().filter(|p| p.owner == part.owner);
        let later = mine().flat_map(|p| &p.readers).map(|&r| time[r]).filter(|&t| t > gap);
        let kept = mine().any(|p| p.to_end);
        if let Some(next) = later.min()
            && born <= gap
            && !kept
            && graph.node(id).buffer.is_some_and(|b| usize::from(b.0) == buffer)
        {
            waiting.push((next, id));
        }
    }
    waiting.sort_by_key(|&(next, id)| (std::cmp::Reverse(next), id));
    let late: Rc<[bool]> = {
        let mut late = vec![false; graph.nodes.len()];
        for (step, &at) in time.iter().enumerate() {
            late[skeleton.steps[step].node.0 as usize] = at > gap;
        }
        late.into()
    };
    let graph = Rc::new(graph);
    waiting
        .iter()
        .flat_map(|&(_, id)| {
            let remade = remade(&graph, id).map(Replacement::Remade);
            let spilled = pairs.of(&graph, id).map(Replacement::Spilled);
            remade.into_iter().chain(spilled).map(move |r| (id, r))
        })
        .take(most)
        .map(|(victim, replacement)| {
            let (graph, late) = (Rc::clone(&graph), Rc::clone(&late));
            Relief { graph, victim, replacement, late }
        })
        .collect()
}

/// The time after which the buffer holds most; `None` if it never holds anything.
fn fullest(skeleton: &Skeleton, order: &[usize], time: &[usize], buffer: usize) -> Option<usize> {
    let load = |gap: usize| -> i64 {
        let mine = skeleton.parts.iter().filter(|p| p.buffer == buffer);
        let live = mine.filter(|p| {
            let born = match p.owner {
                Owner::Input(_) => 0,
                Owner::Output { step, .. } => time[step],
            };
            let read = p.readers.iter().any(|&r| time[r] > gap);
            born <= gap && (p.to_end || read || (p.written && born == gap))
        });
        live.fold(0i64, |sum, p| sum.saturating_add(p.len.iter().fold(1i64, |n, &l| n.saturating_mul(l))))
    };
    (0..=order.len())
        .map(|gap| (load(gap), gap))
        .filter(|&(load, _)| load > 0)
        .max_by_key(|&(load, gap)| (load, std::cmp::Reverse(gap)))
        .map(|(_, gap)| gap)
}

/// How a value is had once more.
pub(super) enum Replacement {
    Remade(PiiNode),
    Spilled(Rc<SpillPair>),
}

/// Instructions that store a value to d0 and load it back, with their computational attributes, and the window in
/// between.
pub(super) struct SpillPair {
    store: (InstrId, Vec<AttrVal>),
    load: (InstrId, Vec<AttrVal>),
    window: Vec<(u64, i64)>,
}

/// The node of `id` made once more, if all that it reads are bytes of the host or constants.
fn remade(graph: &PiiGraph, id: PiiId) -> Option<PiiNode> {
    let node = graph.node(id);
    let fixed = node.operands.iter().all(|&o| match &graph.node(o).op {
        PiiOp::HbmView(view) => matches!(view.space, Space::Operand(_) | Space::Consts),
        _ => false,
    });
    (fixed && matches!(node.op, PiiOp::Instr { .. })).then(|| node.clone())
}

fn rewritten(
    isa: &Isa,
    graph: &PiiGraph,
    victim: PiiId,
    replacement: &Replacement,
    late: &[bool],
) -> PiiGraph {
    let mut new = PiiGraph { nodes: Vec::new(), roots: Vec::new(), consts: graph.consts.clone() };
    // Every old node as its early users see it, and as those after the gap do.
    let mut early: Vec<PiiId> = Vec::with_capacity(graph.nodes.len());
    let mut after: Vec<PiiId> = Vec::with_capacity(graph.nodes.len());
    for (index, node) in graph.nodes.iter().enumerate() {
        let identity = matches!(node.op, PiiOp::SliceH { .. } | PiiOp::ConcatH { .. });
        let map = |ids: &[PiiId], of: &[PiiId]| ids.iter().map(|o| of[o.0 as usize]).collect::<Vec<PiiId>>();
        let mut push = |node: &PiiNode, operands: Vec<PiiId>| {
            new.nodes.push(PiiNode { operands, ..node.clone() });
            PiiId(new.nodes.len() as u32 - 1)
        };
        // A further output is of the instruction itself, wherever its first one went.
        let of = if matches!(node.op, PiiOp::Output { .. }) { &early } else { &after };
        let reads_after = map(&node.operands, of);
        let reads_early = map(&node.operands, &early);
        let differs = reads_after != reads_early;
        let of_early = push(node, if !identity && late[index] { reads_after.clone() } else { reads_early });
        early.push(of_early);
        let of_after = if identity && differs { push(node, reads_after) } else { of_early };
        after.push(of_after);
        if index == victim.0 as usize {
            let reads = match replacement {
                Replacement::Remade(node) => map(&node.operands, &early),
                Replacement::Spilled(_) => vec![of_early],
            };
            after[index] = appended(isa, &mut new, node, replacement, reads, scratch_bytes(graph));
        }
    }
    new.roots = graph.roots.iter().map(|root| root.iter().map(|o| after[o.0 as usize]).collect()).collect();
    new
}

/// The value of `id` once more: the cheaper way that there is.
pub(super) fn replacement(pairs: &SpillPairs<'_>, graph: &PiiGraph, id: PiiId) -> Option<Replacement> {
    let remade = remade(graph, id).map(Replacement::Remade);
    remade.or_else(|| pairs.of(graph, id).map(Replacement::Spilled))
}

/// Adds the nodes of a replacement for a value like `like`; gives the node that holds it. `reads` are the operands of
/// the node made once more, or the value that is spilled, to the first free byte from `scratch` on.
pub(super) fn appended(
    isa: &Isa,
    graph: &mut PiiGraph,
    like: &PiiNode,
    replacement: &Replacement,
    reads: Vec<PiiId>,
    scratch: u64,
) -> PiiId {
    let push = |graph: &mut PiiGraph, op, operands, buffer, lens| {
        graph.nodes.push(PiiNode { op, operands, buffer, lens });
        PiiId(graph.nodes.len() as u32 - 1)
    };
    let (buffer, lens) = (like.buffer, like.lens.clone());
    match replacement {
        Replacement::Remade(node) => push(graph, node.op.clone(), reads, buffer, lens),
        Replacement::Spilled(pair) => {
            let view = scratch_window(isa, scratch, pair);
            let (op, alpha) = pair.store.clone();
            push(graph, PiiOp::Instr { op, alpha, store: Some(view.clone()) }, reads, None, Vec::new());
            let bytes = push(graph, PiiOp::HbmView(view), Vec::new(), None, Vec::new());
            let (op, alpha) = pair.load.clone();
            push(graph, PiiOp::Instr { op, alpha, store: None }, vec![bytes], buffer, lens)
        }
    }
}

/// The window of the next free scratch bytes, when those before `scratch` are taken.
fn scratch_window(isa: &Isa, scratch: u64, pair: &SpillPair) -> View {
    let align = SCRATCH_ALIGN.max(isa.hbm.align);
    let start = scratch.next_multiple_of(align);
    let start = Affine::constant(i64::try_from(start).unwrap_or(i64::MAX));
    View { space: Space::Scratch, elem: ElemType::U8, dims: pair.window.clone(), start }
}

/// Bytes of scratch memory that a graph uses.
pub(super) fn scratch_bytes(graph: &PiiGraph) -> u64 {
    let ends = graph.nodes.iter().filter_map(|node| match &node.op {
        PiiOp::HbmView(view) | PiiOp::Instr { store: Some(view), .. } if view.space == Space::Scratch => {
            let span = view.dims.iter().fold(view.elem.bytes(), |end, &(len, stride)| {
                end.saturating_add(len.saturating_sub(1).saturating_mul(stride.unsigned_abs()))
            });
            Some(u64::try_from(view.start.c0).unwrap_or(0).saturating_add(span))
        }
        _ => None,
    });
    ends.max().unwrap_or(0)
}

/// A way to store a value of these lengths whole and to load it back, the cheapest in instructions' own costs.
fn spill_pair(isa: &Isa, buffer: BufferId, lens: &[u64]) -> Option<SpillPair> {
    let mut best: Option<(u64, SpillPair)> = None;
    for store in isa.instr_ids() {
        let Some(stored) = as_move(isa, store, buffer, lens, Direction::Store, None) else { continue };
        for load in isa.instr_ids() {
            let wanted = Some(stored.window.as_slice());
            let Some(loaded) = as_move(isa, load, buffer, lens, Direction::Load, wanted) else {
                continue;
            };
            let cost = crate::cost::instruction_cost(isa, store, &stored.alpha)
                .saturating_add(crate::cost::instruction_cost(isa, load, &loaded.alpha));
            let better = best.as_ref().is_none_or(|(least, _)| cost < *least);
            if better && loaded.window == stored.window && restores(&stored.graph, &loaded.graph) {
                let pair = SpillPair {
                    store: (store, stored.alpha.clone()),
                    load: (load, loaded.alpha),
                    window: stored.window.clone(),
                };
                best = Some((cost, pair));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// An instruction that only moves bytes between a slot and a window of d0.
struct Move {
    graph: act_hlo::Graph,
    alpha: Vec<AttrVal>,
    window: Vec<(u64, i64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Store,
    Load,
}

/// The semantics, attributes and window of an instruction that moves a slot of `lens` to d0 or back, if it does
/// nothing else. Attributes that only space the rows of the window are chosen to leave no gaps, or to fit `window`.
fn as_move(
    isa: &Isa,
    id: InstrId,
    buffer: BufferId,
    lens: &[u64],
    direction: Direction,
    window: Option<&[(u64, i64)]>,
) -> Option<Move> {
    let instr = isa.instr(id);
    // Moves with control flow are left to the host: what they do is known per path only.
    if isa.not_selectable(id).is_some() || instr.structured.is_some() {
        return None;
    }
    let ([input], [output]) = (instr.inputs.as_slice(), instr.outputs.as_slice()) else { return None };
    let (Slice::OnChip(slot), Slice::Hbm(bytes)) = (match direction {
        Direction::Store => (input, output),
        Direction::Load => (output, input),
    }) else {
        return None;
    };
    if slot.buffer != buffer {
        return None;
    }
    let only_moves = instr.computation.stmts.iter().all(|stmt| {
        matches!(
            stmt.op,
            OpKind::Parameter(_)
                | OpKind::Reshape
                | OpKind::BitcastConvert
                | OpKind::Transpose { .. }
                | OpKind::Copy
        )
    });
    if !only_moves {
        return None;
    }
    let mut alpha: Vec<Option<i64>> = vec![None; instr.alpha.len()];
    let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
    for (len, &want) in slot.len.iter().zip(lens) {
        solve(len, i64::try_from(want).ok()?, &mut alpha, &registers)?;
    }
    let eval =
        |expr: &Expr, alpha: &[Option<i64>]| expr.eval(Env { alpha, beta: &[], registers: &registers }).ok();
    let mut step = 1i64;
    for (d, (len, stride)) in bytes.dims.iter().enumerate().rev() {
        let len = eval(len, &alpha)?;
        let stride_wanted = window.and_then(|w| w.get(d)).map_or(step, |&(_, stride)| stride);
        if eval(stride, &alpha).is_none() {
            solve(stride, stride_wanted, &mut alpha, &registers)?;
        }
        step = step.checked_mul(len.max(1))?;
    }
    let dims = bytes
        .dims
        .iter()
        .map(|(len, stride)| Some((u64::try_from(eval(len, &alpha)?).ok()?, eval(stride, &alpha)?)));
    let dims: Vec<(u64, i64)> = dims.collect::<Option<_>>()?;
    // Bytes in between belong to nobody else, but bytes must not be written twice.
    let mut reach = 1;
    for &(len, stride) in dims.iter().rev() {
        if len > 1 && stride < reach {
            return None;
        }
        reach = stride.max(reach).checked_mul(i64::try_from(len).ok()?)?.max(reach);
    }
    let alpha = complete(instr, &alpha)?;
    // Instantiation checks the ranges and the conditions over alpha.
    let graph = instr.instantiate(isa, &alpha).ok()?;
    Some(Move { graph, alpha, window: dims })
}

/// Values of all attributes; one that nothing determines makes the instruction unfit.
fn complete(instr: &Instr, alpha: &[Option<i64>]) -> Option<Vec<AttrVal>> {
    instr
        .alpha
        .iter()
        .zip(alpha)
        .map(|(decl, value)| match (&decl.kind, value) {
            (AttrKind::Int { min, max }, Some(v)) if (*min..=*max).contains(v) => Some(AttrVal::Int(*v)),
            _ => None,
        })
        .collect()
}

/// Makes `expr == value` hold by choosing the one attribute that is still open in it, where `expr` depends on it as a
/// straight line.
fn solve(expr: &Expr, value: i64, alpha: &mut [Option<i64>], registers: &[i64]) -> Option<()> {
    let eval = |alpha: &[Option<i64>]| expr.eval(Env { alpha, beta: &[], registers }).ok();
    if let Some(known) = eval(alpha) {
        return (known == value).then_some(());
    }
    let open: Vec<usize> = (0..alpha.len()).filter(|&k| alpha[k].is_none()).collect();
    for k in open {
        let mut at = |v: i64| {
            alpha[k] = Some(v);
            let result = eval(alpha);
            alpha[k] = None;
            result
        };
        let (Some(zero), Some(one)) = (at(0), at(1)) else { continue };
        let slope = one.checked_sub(zero).filter(|&s| s != 0)?;
        let rise = value.checked_sub(zero)?;
        let x = rise / slope;
        if at(x) == Some(value) {
            alpha[k] = Some(x);
            return Some(());
        }
    }
    None
}

/// Whether `load` after `store` puts every byte back. Both only move bytes, so it is enough to see where each goes:
/// byte i carries the digits of i in base 256, one digit a run.
fn restores(store: &act_hlo::Graph, load: &act_hlo::Graph) -> bool {
    let Some(shape) = store.params().first().map(|&p| store.shape(p).clone()) else { return false };
    let bytes = shape.bytes();
    let digits = (1..=8).find(|&d| bytes <= 1u64.checked_shl(8 * d).unwrap_or(u64::MAX)).unwrap_or(8);
    (0..digits).all(|digit| {
        let data: Vec<u8> = (0..bytes).map(|i| (i >> (8 * digit)) as u8).collect();
        let there_and_back = |data: Vec<u8>| -> Option<bool> {
            let before = Literal::from_bytes(shape.clone(), data).ok()?;
            let stored =
                act_hlo::eval::eval(store, std::slice::from_ref(&before)).ok()?.into_iter().next()?;
            let taken = load.params().first().map(|&p| load.shape(p).clone())?;
            let stored = flat(&stored, &taken)?;
            let loaded = act_hlo::eval::eval(load, &[stored]).ok()?.into_iter().next()?;
            Some(loaded == before)
        };
        there_and_back(data).unwrap_or(false)
    })
}

/// The stored bytes as the load takes them: windows agree in lengths, so at most the spelling of the shape differs.
fn flat(stored: &Literal, taken: &Shape) -> Option<Literal> {
    Literal::from_bytes(taken.clone(), stored.bytes().to_vec()).ok()
}
