//! The nest of an e-graph that leaves the fewest loops of a skeleton unaligned: of every class, for every run of loops that
//! are next to each other in the skeleton, the best term is found from the best ones of its parts.

use super::nest::{Head, Nest, Order};
use super::skeleton::{LoopClass, Skeleton};
use crate::hex::syntax::Sym;
use egg::{EGraph, Id, RecExpr};
use std::collections::HashMap;

/// Loops inside of one of the skeleton (or the outermost ones), from one to another.
type Run = (Option<usize>, usize, usize);

/// Loops of the skeleton that stay unaligned, then loops of the program that do, deeper ones being worse.
type Cost = (usize, usize);

#[derive(Clone, Copy, Debug)]
enum Choice {
    Leaf,
    /// The loop is this one of the skeleton.
    Align(usize),
    /// The loop is none of them.
    Pass,
    /// The first part has the loops up to here.
    Divide(usize),
}

type Best = HashMap<(Id, Run), (Cost, usize, Choice)>;

pub(super) struct Extraction {
    pub term: RecExpr<Nest>,
    /// Labels of the loops in the order in which `tree` meets them.
    pub labels: Vec<Option<Sym>>,
    pub unaligned: usize,
}

/// The best term of a class.
#[must_use]
pub(super) fn extract(graph: &EGraph<Nest, ()>, skeleton: &Skeleton, root: Id) -> Option<Extraction> {
    let mut runs: Vec<Run> = Vec::new();
    for parent in std::iter::once(None).chain((0..skeleton.loops.len()).map(Some)) {
        let count = inner(skeleton, parent).len();
        for from in 0..=count {
            runs.extend((from..=count).map(|to| (parent, from, to)));
        }
    }
    let mut best: Best = HashMap::new();
    loop {
        let mut changed = false;
        for class in graph.classes() {
            for (at, node) in class.nodes.iter().enumerate() {
                for &run in &runs {
                    let Some((cost, choice)) = cost(graph, skeleton, node, run, &best) else { continue };
                    let entry = best.entry((class.id, run)).or_insert(((usize::MAX, 0), at, choice));
                    if cost < entry.0 {
                        *entry = (cost, at, choice);
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    let root = graph.find(root);
    let whole: Run = (None, 0, skeleton.outermost.len());
    let ((unaligned, _), _, _) = *best.get(&(root, whole))?;
    let mut extraction = Extraction { term: RecExpr::default(), labels: Vec::new(), unaligned };
    build(graph, skeleton, root, whole, &best, &mut extraction);
    Some(extraction)
}

fn inner(skeleton: &Skeleton, parent: Option<usize>) -> &[usize] {
    parent.map_or(&skeleton.outermost, |parent| &skeleton.loops[parent].inner)
}

fn size(skeleton: &Skeleton, at: usize) -> usize {
    1 + skeleton.below(at).len()
}

fn depth(skeleton: &Skeleton, parent: Option<usize>) -> usize {
    let Some(parent) = parent else { return 0 };
    let around = (0..skeleton.loops.len()).find(|at| skeleton.loops[*at].inner.contains(&parent));
    1 + depth(skeleton, around)
}

/// Whether a loop of the program can be one of the skeleton.
fn alike(skeleton: &Skeleton, head: &Head, target: usize) -> bool {
    let target = &skeleton.loops[target];
    head.trips == target.trips && (target.class != LoopClass::Reduce || head.order != Order::Map)
}

fn cost(
    graph: &EGraph<Nest, ()>,
    skeleton: &Skeleton,
    node: &Nest,
    run: Run,
    best: &Best,
) -> Option<(Cost, Choice)> {
    let of = |id: Id, run: Run| best.get(&(graph.find(id), run)).map(|best| best.0);
    let (parent, from, to) = run;
    match node {
        Nest::Set(..) | Nest::Store(..) => {
            let left: usize =
                inner(skeleton, parent)[from..to].iter().map(|target| size(skeleton, *target)).sum();
            Some(((left, 0), Choice::Leaf))
        }
        Nest::Loop(head, [body]) => {
            let pass = of(*body, run)
                .map(|cost| ((cost.0, cost.1 + 1 + depth(skeleton, parent)), Choice::Pass));
            let align = match inner(skeleton, parent)[from..to] {
                [target] if alike(skeleton, head, target) => {
                    let count = skeleton.loops[target].inner.len();
                    of(*body, (Some(target), 0, count)).map(|cost| (cost, Choice::Align(target)))
                }
                _ => None,
            };
            [align, pass].into_iter().flatten().min_by_key(|(cost, _)| *cost)
        }
        Nest::Seq([first, second]) => (from..=to)
            .filter_map(|at| {
                let (a, b) = (of(*first, (parent, from, at))?, of(*second, (parent, at, to))?);
                Some(((a.0 + b.0, a.1 + b.1), Choice::Divide(at)))
            })
            .min_by_key(|(cost, _)| *cost),
        _ => None,
    }
}

fn build(
    graph: &EGraph<Nest, ()>,
    skeleton: &Skeleton,
    class: Id,
    run: Run,
    best: &Best,
    into: &mut Extraction,
) -> Id {
    let class = graph.find(class);
    let (parent, from, to) = run;
    let node = match best.get(&(class, run)) {
        None => graph[class].nodes[0].clone(),
        Some((_, at, choice)) => {
            let node = graph[class].nodes[*at].clone();
            match (&node, choice) {
                (Nest::Loop(head, [body]), Choice::Align(target)) => {
                    into.labels.push(Some(skeleton.loops[*target].label));
                    let count = skeleton.loops[*target].inner.len();
                    let body = build(graph, skeleton, *body, (Some(*target), 0, count), best, into);
                    return into.term.add(Nest::Loop(*head, [body]));
                }
                (Nest::Loop(head, [body]), _) => {
                    into.labels.push(None);
                    let body = build(graph, skeleton, *body, run, best, into);
                    return into.term.add(Nest::Loop(*head, [body]));
                }
                (Nest::Seq([first, second]), Choice::Divide(at)) => {
                    let first = build(graph, skeleton, *first, (parent, from, *at), best, into);
                    let second = build(graph, skeleton, *second, (parent, *at, to), best, into);
                    return into.term.add(Nest::Seq([first, second]));
                }
                _ => node,
            }
        }
    };
    // An element's value: its classes hold what the program has.
    let mut own = node;
    for child in own.clone().children().iter().enumerate() {
        let built = build(graph, skeleton, *child.1, run, best, into);
        own.children_mut()[child.0] = built;
    }
    into.term.add(own)
}

use egg::Language;
