//! The nest of an e-graph that leaves the fewest loops of a skeleton unaligned: of every class, for every run of loops that
//! are next to each other in the skeleton, the best term is found from the best ones of its parts.

use super::nest::{Head, Nest, Order};
use super::skeleton::{Item, LoopClass, Skeleton};
use crate::hex::syntax::Sym;
use egg::{EGraph, Id, RecExpr};
use std::collections::HashMap;

/// Loops inside of one of the skeleton (or the outermost ones), from one to another.
type Run = (Option<usize>, usize, usize);

/// Loops of the skeleton that stay unaligned, then formulas of it that no statement stands in the place of, then loops of
/// the program that stay unaligned, deeper ones being worse.
type Cost = (usize, usize, usize);

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
pub(super) fn extract(
    graph: &EGraph<Nest, ()>,
    skeleton: &Skeleton,
    partial: &dyn Fn(Sym) -> bool,
    root: Id,
) -> Option<Extraction> {
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
                    let Some((cost, choice)) = cost(graph, skeleton, partial, node, run, &best) else {
                        continue;
                    };
                    let entry = best.entry((class.id, run)).or_insert(((usize::MAX, 0, 0), at, choice));
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
    let ((unaligned, ..), _, _) = *best.get(&(root, whole))?;
    let mut extraction = Extraction { term: RecExpr::default(), labels: Vec::new(), unaligned };
    build(graph, skeleton, root, whole, &best, &mut extraction);
    Some(extraction)
}

fn inner(skeleton: &Skeleton, parent: Option<usize>) -> &[Item] {
    parent.map_or(&skeleton.outermost, |parent| &skeleton.loops[parent].items)
}

/// The cost of parts of the skeleton that nothing is brought to.
fn missed(skeleton: &Skeleton, items: &[Item]) -> Cost {
    let mut cost = (0, 0, 0);
    for item in items {
        match item {
            Item::Formula(_) => cost.1 += 1,
            Item::Loop(at) => {
                let inner = missed(skeleton, &skeleton.loops[*at].items);
                cost = (cost.0 + inner.0 + 1, cost.1 + inner.1, 0);
            }
        }
    }
    cost
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
    partial: &dyn Fn(Sym) -> bool,
    node: &Nest,
    run: Run,
    best: &Best,
) -> Option<(Cost, Choice)> {
    let of = |id: Id, run: Run| best.get(&(graph.find(id), run)).map(|best| best.0);
    let (parent, from, to) = run;
    match node {
        Nest::Set(_, [inner_value]) | Nest::Store(_, [inner_value]) => {
            let items = &inner(skeleton, parent)[from..to];
            // A scalar that is only stored can be kept where it is stored.
            let kept =
                matches!(node, Nest::Store(_, [inner]) if matches!(graph[*inner].nodes[..], [Nest::Var(_)]));
            let cost = match items {
                [Item::Formula(_)] if !kept => (0, 0, 0),
                _ => {
                    let (loops, formulas, _) = missed(skeleton, items);
                    // What computes something that the hardware computes nowhere is worst.
                    let computes = graph[*inner_value]
                        .nodes
                        .iter()
                        .all(|node| matches!(node, Nest::Apply(..) | Nest::Builtin(..)));
                    (loops, formulas, usize::from(!kept) + usize::from(computes))
                }
            };
            Some((cost, Choice::Leaf))
        }
        Nest::Loop(head, [body]) => {
            let pass = of(*body, run)
                .map(|cost| ((cost.0, cost.1, cost.2 + 1 + depth(skeleton, parent)), Choice::Pass));
            let align = match inner(skeleton, parent)[from..to] {
                [Item::Loop(target)] if alike(skeleton, head, target) => {
                    let count = skeleton.loops[target].items.len();
                    // Sums are taken apart where the hardware takes them apart, and nowhere else.
                    let parts = graph[*body]
                        .nodes
                        .iter()
                        .any(|node| matches!(node, Nest::Set(name, _) if partial(*name)));
                    let wrong = usize::from(parts != skeleton.loops[target].partial);
                    of(*body, (Some(target), 0, count))
                        .map(|cost| ((cost.0, cost.1 + wrong, cost.2), Choice::Align(target)))
                }
                _ => None,
            };
            [align, pass].into_iter().flatten().min_by_key(|(cost, _)| *cost)
        }
        Nest::Seq([first, second]) => (from..=to)
            .filter_map(|at| {
                let (a, b) = (of(*first, (parent, from, at))?, of(*second, (parent, at, to))?);
                Some(((a.0 + b.0, a.1 + b.1, a.2 + b.2), Choice::Divide(at)))
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
                    let count = skeleton.loops[*target].items.len();
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
