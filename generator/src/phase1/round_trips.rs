//! Values that reach another buffer through d0 only: stored to scratch memory by one instruction and loaded from there by
//! another. Offered where the direct ways do not cover a kernel; that a value is not stored and loaded back to where it
//! was follows from choices having no circles. Spills for want of room are phase 2's. Knows no accelerator.

use super::facts::{Source, SourceView, TensorGraph};
use super::view::Layout;
use crate::pii::{PiiGraph, PiiOp};
use act_isa::{Space, View};
use egg::Id;
use std::collections::BTreeMap;

/// Scratch values start at multiples of this many bytes.
const ALIGN: i64 = 64;
/// Movement operators through which a stored value may be loaded.
const SWEEPS: usize = 3;
/// Places per class from which it may be loaded.
const PLACES: usize = 4;

/// Gives every computed class a place of its own in scratch memory, and its re-views theirs within.
pub(super) fn offer(egraph: &mut TensorGraph) {
    let mut ids: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    ids.sort_unstable();
    let computed = |egraph: &TensorGraph, id: Id| {
        let facts = &egraph[id].data;
        facts.value.is_none() && facts.views.is_empty() && facts.shape.elements() > 0
    };
    ids.retain(|&id| computed(egraph, id));
    let mut base = 0i64;
    let mut places: BTreeMap<Id, Vec<SourceView>> = BTreeMap::new();
    for &id in &ids {
        let shape = &egraph[id].data.shape;
        let mut layout = Layout::row_major(Space::Scratch, shape);
        layout.start.c0 = base;
        let bytes = i64::try_from(shape.bytes()).unwrap_or(i64::MAX);
        let Some(next) = base.checked_add(bytes).and_then(|end| end.checked_add(ALIGN)) else { break };
        base = next - next.rem_euclid(ALIGN);
        places.insert(id, vec![SourceView { source: Source::Stored(id), layout }]);
    }
    for _ in 0..SWEEPS {
        for &id in &ids {
            for node in &egraph[id].nodes {
                let [x] = node.operands[..] else { continue };
                let from = places.get(&egraph.find(x)).cloned().unwrap_or_default();
                let through = from.into_iter().filter_map(|view| {
                    let layout = view.layout.through(node.op(), node.shape())?;
                    Some(SourceView { source: view.source, layout })
                });
                let mine = places.entry(id).or_default();
                for view in through {
                    if mine.len() < PLACES && !mine.contains(&view) {
                        mine.push(view);
                    }
                }
            }
        }
    }
    for (id, views) in places {
        egraph[id].data.views.extend(views);
    }
}

/// Takes back what [`offer`] gave, so that exploration can go on.
pub(super) fn withdraw(egraph: &mut TensorGraph) {
    let ids: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    for id in ids {
        egraph[id].data.views.retain(|view| !matches!(view.source, Source::Stored(_)));
    }
}

/// The place that was offered for a class.
pub(super) fn place(egraph: &TensorGraph, id: Id) -> Option<&Layout> {
    let own = |view: &&SourceView| view.source == Source::Stored(id);
    // Later places are views of others, or of this one through operators that bring it back.
    egraph[id].data.views.iter().filter(own).map(|view| &view.layout).min_by_key(|layout| layout.start.c0)
}

/// Moves the scratch values of a graph together.
pub(super) fn compact(graph: &mut PiiGraph) {
    fn scratch(op: &mut PiiOp) -> Option<&mut View> {
        match op {
            PiiOp::HbmView(view) | PiiOp::Instr { store: Some(view), .. } if view.space == Space::Scratch => {
                Some(view)
            }
            _ => None,
        }
    }
    // Intervals of bytes that overlap move together.
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for node in &mut graph.nodes {
        if let Some(view) = scratch(&mut node.op) {
            let reach = view.dims.iter().fold(1i64, |reach, &(len, stride)| {
                reach.saturating_add(
                    stride.saturating_mul(i64::try_from(len).unwrap_or(i64::MAX).saturating_sub(1)),
                )
            });
            spans.push((view.start.c0, view.start.c0.saturating_add(reach)));
        }
    }
    spans.sort_unstable();
    let mut moved: Vec<(i64, i64, i64)> = Vec::new();
    let mut free = 0i64;
    for (start, end) in spans {
        match moved.last_mut() {
            Some((_, last, _)) if start < *last => {
                free += (end - *last).max(0);
                *last = end.max(*last);
            }
            _ => {
                // Offsets within a line of ALIGN bytes are kept.
                let at = (free + ALIGN - 1).div_euclid(ALIGN) * ALIGN + start.rem_euclid(ALIGN);
                moved.push((start, end, at - start));
                free = at + (end - start);
            }
        }
    }
    for node in &mut graph.nodes {
        if let Some(view) = scratch(&mut node.op) {
            let within = moved.iter().rev().find(|(start, ..)| *start <= view.start.c0);
            view.start.c0 += within.map_or(0, |m| m.2);
        }
    }
}
