//! Lazy best-first enumeration of complete choices: one option per demand, acyclic, every demand counted once. The order
//! is by exact cost, since the estimate of a partial choice never exceeds the cost of any completion. When the limit ends
//! the search before anything was found, one choice by tree cost is given in its place.

use super::demand::DemandGraph;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One option for every demand that is needed.
pub(crate) type Choices = BTreeMap<usize, usize>;

/// Set of demands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Set(Vec<u64>);

impl Set {
    fn empty(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }
    fn full(n: usize) -> Set {
        let mut set = Set::empty(n);
        (0..n).for_each(|i| set.insert(i));
        set
    }
    fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }
    fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    fn union(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
    fn intersect(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(w, &bits)| (0..64).filter(move |b| bits >> b & 1 == 1).map(move |b| w * 64 + b))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    chosen: Choices,
    pending: Vec<usize>,
    cost: u64,
}

/// Estimate, number of demands met (more first), age, state.
type Ranked = (u64, Reverse<usize>, u64, State);

/// The search over one demand graph.
#[derive(Debug)]
pub(crate) struct Enumeration {
    graph: DemandGraph,
    /// Options per demand that can be met, cheapest first.
    open: Vec<Vec<usize>>,
    /// Cheapest own cost per demand.
    own: Vec<u64>,
    /// Demands that every way of meeting a demand includes.
    forced: Vec<Set>,
    bounds: Vec<u64>,
    queue: BinaryHeap<Reverse<Ranked>>,
    sequence: u64,
    expansions: usize,
    limit: usize,
    roots: Vec<usize>,
    /// Something was found, or the choice by tree cost was given.
    found: bool,
}

impl Enumeration {
    /// `roots` are indices of demands; `None` when one cannot be met. At most `limit` partial choices are looked at.
    pub(crate) fn new(graph: DemandGraph, roots: &[usize], limit: usize) -> Option<Enumeration> {
        let bounds = graph.lower_bounds();
        if roots.iter().any(|&r| bounds.get(r).copied().flatten().is_none()) {
            return None;
        }
        let n = graph.demands.len();
        let mut open: Vec<Vec<usize>> = (0..n)
            .map(|d| {
                let options = graph.options(d);
                let mut open: Vec<usize> = (0..options.len())
                    .filter(|&o| options[o].needs.iter().all(|&need| bounds[need].is_some()))
                    .collect();
                open.sort_by_key(|&o| (options[o].cost, o));
                open
            })
            .collect();
        let forced = prune(&graph, &mut open);
        let cheapest = |d: usize| open[d].first().map_or(0, |&o| graph.options(d)[o].cost);
        let own = (0..n).map(cheapest).collect();
        let bounds = bounds.into_iter().map(|b| b.unwrap_or(0)).collect();
        let mut enumeration = Enumeration {
            graph,
            open,
            own,
            forced,
            bounds,
            queue: BinaryHeap::new(),
            sequence: 0,
            expansions: 0,
            limit,
            roots: roots.to_vec(),
            found: false,
        };
        let mut pending = roots.to_vec();
        pending.sort_unstable();
        pending.dedup();
        enumeration.push(State { chosen: Choices::new(), pending, cost: 0 });
        Some(enumeration)
    }

    pub(crate) fn graph(&self) -> &DemandGraph {
        &self.graph
    }

    /// Whether the search gave up before it had seen every choice.
    pub(crate) fn exhausted_limit(&self) -> bool {
        self.expansions >= self.limit
    }

    /// The next cheapest complete choice and its cost.
    pub(crate) fn next_choice(&mut self) -> Option<(Choices, u64)> {
        while let Some(Reverse((_, _, _, mut state))) = self.queue.pop() {
            let Some(demand) = state.pending.pop() else {
                self.found = true;
                return Some((state.chosen, state.cost));
            };
            if self.expansions >= self.limit {
                self.queue.clear();
                return if std::mem::replace(&mut self.found, true) { None } else { self.by_tree_cost() };
            }
            self.expansions += 1;
            for &option in &self.open[demand].clone() {
                let alternative = &self.graph.options(demand)[option];
                if alternative.needs.iter().any(|&need| self.reaches(&state.chosen, need, demand)) {
                    continue;
                }
                let mut next = state.clone();
                next.chosen.insert(demand, option);
                next.cost = next.cost.saturating_add(alternative.cost);
                for &need in &alternative.needs {
                    if !next.chosen.contains_key(&need) && !next.pending.contains(&need) {
                        next.pending.push(need);
                    }
                }
                next.pending.sort_unstable_by(|a, b| b.cmp(a));
                self.push(next);
            }
        }
        None
    }

    /// The choice that is cheapest when shared demands are counted every time (Knuth's generalisation of Dijkstra's
    /// algorithm). It has no cycle: an option settles after all that it needs.
    fn by_tree_cost(&self) -> Option<(Choices, u64)> {
        let n = self.graph.demands.len();
        let mut settled: Vec<Option<(u64, usize)>> = vec![None; n];
        loop {
            let mut next: Option<(u64, usize, usize)> = None;
            for d in (0..n).filter(|&d| settled[d].is_none()) {
                for &o in &self.open[d] {
                    let alternative = &self.graph.options(d)[o];
                    let mut needs = alternative.needs.iter().map(|&need| settled[need].map(|s| s.0));
                    let total = needs.try_fold(alternative.cost, |sum, need| Some(sum.saturating_add(need?)));
                    if let Some(total) = total.filter(|&t| next.is_none_or(|best| t < best.0)) {
                        next = Some((total, d, o));
                    }
                }
            }
            let Some((total, d, o)) = next else { break };
            settled[d] = Some((total, o));
        }
        let (mut chosen, mut cost) = (Choices::new(), 0u64);
        let mut todo = self.roots.clone();
        while let Some(d) = todo.pop() {
            let (_, o) = settled[d]?;
            if chosen.insert(d, o).is_none() {
                let alternative = &self.graph.options(d)[o];
                cost = cost.saturating_add(alternative.cost);
                todo.extend(&alternative.needs);
            }
        }
        Some((chosen, cost))
    }

    /// Whether `to` is `from` or needed by it under the choices made so far.
    fn reaches(&self, chosen: &Choices, from: usize, to: usize) -> bool {
        let mut seen = Set::empty(self.graph.demands.len());
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            if at == to {
                return true;
            }
            if seen.contains(at) {
                continue;
            }
            seen.insert(at);
            if let Some(&option) = chosen.get(&at) {
                todo.extend(&self.graph.options(at)[option].needs);
            }
        }
        false
    }

    fn push(&mut self, state: State) {
        let mut needed = Set::empty(self.graph.demands.len());
        for &p in &state.pending {
            needed.union(&self.forced[p]);
        }
        let sum: u64 = needed.iter().filter(|d| !state.chosen.contains_key(d)).map(|d| self.own[d]).sum();
        let deepest = state.pending.iter().map(|&p| self.bounds[p]).max().unwrap_or(0);
        // The dearest chain counts demands that may be chosen already, so it bounds only an empty choice.
        let rest = if state.chosen.is_empty() { sum.max(deepest) } else { sum };
        let estimate = state.cost.saturating_add(rest);
        self.sequence += 1;
        self.queue.push(Reverse((estimate, Reverse(state.chosen.len()), self.sequence, state)));
    }
}

/// Drops the options that need their own demand whatever else is chosen, and gives what every demand forces.
fn prune(graph: &DemandGraph, open: &mut [Vec<usize>]) -> Vec<Set> {
    loop {
        let forced = forced(graph, open);
        let mut pruned = false;
        for (d, options) in open.iter_mut().enumerate() {
            let before = options.len();
            options.retain(|&o| {
                let needs = &graph.options(d)[o].needs;
                !needs.iter().any(|&need| forced[need].contains(d))
            });
            pruned |= options.len() != before;
        }
        if !pruned {
            return forced;
        }
    }
}

/// Greatest fixpoint of: a demand, and whatever all of its options force.
fn forced(graph: &DemandGraph, open: &[Vec<usize>]) -> Vec<Set> {
    let n = open.len();
    let mut forced = vec![Set::full(n); n];
    loop {
        let mut changed = false;
        for d in 0..n {
            let mut common: Option<Set> = None;
            for &o in &open[d] {
                let mut needs = Set::empty(n);
                for &need in &graph.options(d)[o].needs {
                    needs.union(&forced[need]);
                }
                match &mut common {
                    None => common = Some(needs),
                    Some(all) => all.intersect(&needs),
                }
            }
            let mut set = common.unwrap_or_else(|| Set::empty(n));
            set.insert(d);
            if set != forced[d] {
                forced[d] = set;
                changed = true;
            }
        }
        if !changed {
            return forced;
        }
    }
}
