//! Lazy best-first enumeration of complete choices: one option per demand, acyclic, every demand counted once. The
//! search dives: a partial choice that comes off the queue is completed greedily, and what was passed by on the way is
//! queued with its bound, so that a first complete choice costs about as much as it has demands, and every further one
//! too. No dive ends in a circle: an option is taken only if its needs can still be met without its own demand. The order
//! is by exact cost, since the bound of a partial choice ([`super::cuts`]) never exceeds the cost of any completion. When
//! the limit is reached, what was completed so far is given, cheapest first.

use super::cuts::Cuts;
use super::cycles::Components;
use super::demand::DemandGraph;
use super::tree::Tree;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One option for every demand that is needed.
pub(crate) type Choices = BTreeMap<usize, usize>;

/// However small the limit is: decisions for so many dives are looked at.
const DIVES: usize = 12;
pub(super) const NONE: u32 = u32::MAX;

/// What the search may choose from: the options that can be met, of the demands that are within reach of the roots.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) graph: DemandGraph,
    /// Indices of options per demand.
    pub(super) open: Vec<Vec<OpenOption>>,
    pub(super) roots: Vec<usize>,
    pub(super) components: Components,
    pub(super) tree: Tree,
}

#[derive(Debug)]
pub(super) struct OpenOption {
    pub(super) option: usize,
    pub(super) cost: u64,
    /// Each once, in order.
    pub(super) needs: Vec<usize>,
    /// An option before it has the same cost and needs, so that only the roles of operands differ.
    pub(super) twin: bool,
}

/// A decision; its ancestors are the decisions before it.
#[derive(Clone, Copy, Debug)]
struct Step {
    parent: u32,
    demand: u32,
    /// Index into the demand's open options.
    open: u32,
}

/// Bound in cycles, twins chosen, fewer decisions later, age.
type Rank = (u64, u32, Reverse<u32>, u64);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    /// A decision (or [`NONE`] for none at all) from which to go on.
    Partial(u32),
    /// A decision that completes the choice.
    Complete(u32),
}

/// The search over one demand graph.
#[derive(Debug)]
pub(crate) struct Enumeration {
    space: Space,
    cuts: Cuts,
    steps: Vec<Step>,
    queue: BinaryHeap<Reverse<(Rank, Entry)>>,
    state: State,
    sequence: u64,
    expansions: usize,
    limit: usize,
    /// Most decisions of a choice.
    largest: usize,
    /// Whether some choice was left out since it takes more.
    left_larger: bool,
    first_cost: u64,
}

/// A partial choice, kept up to date decision by decision.
#[derive(Debug)]
struct State {
    /// Open option per demand.
    chosen: Vec<u32>,
    needed: Vec<bool>,
    decided: Vec<u32>,
    /// Needed and not decided; the last one is next.
    pending: Vec<u32>,
    /// In cycles.
    bound: u64,
    cost: u64,
    twins: u32,
    /// For searches within a component.
    seen: Vec<u32>,
    round: u32,
}

impl Enumeration {
    /// `roots` are indices of demands; `None` when one cannot be met. About `limit` decisions are looked at, or as many as
    /// [`DIVES`] take if that is more. Choices of more than `largest` decisions are left out, but for the first one.
    pub(crate) fn new(
        graph: DemandGraph,
        roots: &[usize],
        limit: usize,
        largest: usize,
    ) -> Option<Enumeration> {
        let space = Space::new(graph, roots)?;
        let cuts = Cuts::new(&space);
        let mut state = State::new(space.open.len());
        state.reset(&space, cuts.bound());
        if !state.dive(&space, &cuts) {
            return None;
        }
        // The better of two choices: the greedy one, and the shared one.
        let (shared, shared_cost) = space.shared();
        let first_cost = state.cost.min(shared_cost);
        let best = if shared_cost < state.cost { shared } else { state.chosen.clone() };
        let largest = largest.max(best.iter().filter(|&&k| k != NONE).count());
        let limit = limit.max(DIVES * state.decided.len());
        let mut enumeration = Enumeration {
            space,
            cuts,
            steps: Vec::new(),
            queue: BinaryHeap::new(),
            state,
            sequence: 0,
            expansions: 0,
            limit,
            largest,
            left_larger: false,
            first_cost,
        };
        let bound = enumeration.cuts.bound();
        enumeration.push(bound, 0, 0, Entry::Partial(NONE));
        enumeration.guide(&best);
        Some(enumeration)
    }

    pub(crate) fn graph(&self) -> &DemandGraph {
        &self.space.graph
    }

    pub(crate) fn graph_mut(&mut self) -> &mut DemandGraph {
        &mut self.space.graph
    }

    /// Whether the search gave up before it had seen every choice.
    pub(crate) fn exhausted_limit(&self) -> bool {
        self.expansions >= self.limit
    }

    /// Whether choices were left out since they take too many decisions.
    pub(crate) fn left_larger(&self) -> bool {
        self.left_larger
    }

    /// Cost of the choice that was found before the search, which is close to the cheapest.
    pub(crate) fn first_cost(&self) -> u64 {
        self.first_cost
    }

    /// The next cheapest complete choice and its cost.
    pub(crate) fn next_choice(&mut self) -> Option<(Choices, u64)> {
        while let Some(Reverse((rank, entry))) = self.queue.pop() {
            match entry {
                Entry::Complete(step) => return Some((self.choices(step), rank.0)),
                // Beyond the limit only what is complete is given.
                Entry::Partial(_) if self.expansions >= self.limit => {
                    self.queue.retain(|Reverse((_, entry))| matches!(entry, Entry::Complete(_)));
                }
                Entry::Partial(step) => self.complete(step),
            }
        }
        None
    }

    fn push(&mut self, bound: u64, twins: u32, decisions: u32, entry: Entry) {
        self.sequence += 1;
        let rank = (bound, twins, Reverse(decisions), self.sequence);
        self.queue.push(Reverse((rank, entry)));
    }

    /// The decisions that lead to `step`, first ones first.
    fn path(&self, step: u32) -> Vec<Step> {
        let mut path = Vec::new();
        let mut at = step;
        while at != NONE {
            let step = self.steps[at as usize];
            path.push(step);
            at = step.parent;
        }
        path.reverse();
        path
    }

    fn choices(&self, step: u32) -> Choices {
        let option = |s: Step| self.space.open[s.demand as usize][s.open as usize].option;
        self.path(step).into_iter().map(|s| (s.demand as usize, option(s))).collect()
    }

    /// Descends to the best choice that was found before the search began: it is queued complete, and what it passes by
    /// with it.
    fn guide(&mut self, best: &[u32]) {
        let Some(Reverse((_, Entry::Partial(NONE)))) = self.queue.pop() else { return };
        self.descend(NONE, |demand| best[demand]);
    }

    /// Completes a partial choice, always by the option with the least bound, and queues the others.
    fn complete(&mut self, step: u32) {
        self.descend(step, |_| NONE);
    }

    /// Goes on from `step` until the choice is complete or has no way on; `wish` names the option to take, or
    /// [`NONE`].
    fn descend(&mut self, step: u32, wish: impl Fn(usize) -> u32) {
        let path = self.path(step);
        self.state.reset(&self.space, self.cuts.bound());
        for s in path {
            let bound = self.state.bound_with(&self.cuts, s.demand as usize, s.open as usize);
            // Decisions come in the order of the first descent.
            debug_assert_eq!(self.state.pending.last(), Some(&s.demand));
            self.state.decide(&self.space, s.demand as usize, s.open as usize, bound);
        }
        let mut at = step;
        while let Some(&demand) = self.state.pending.last() {
            let d = demand as usize;
            self.expansions += 1;
            if self.state.decided.len() + self.state.pending.len() > self.largest {
                self.left_larger = true;
                return;
            }
            let mut ranked = self.state.ranked(&self.space, &self.cuts, d);
            let wished = wish(d);
            if let Some(k) = ranked.iter().position(|&(_, _, o)| o == wished) {
                ranked[..=k].rotate_right(1);
            }
            let Some(&(bound, _, taken)) = ranked.first() else { return };
            let decisions = self.state.decided.len() as u32 + 1;
            let parent = at;
            for (k, &(bound, twin, open)) in ranked.iter().enumerate() {
                self.steps.push(Step { parent, demand, open });
                let step = self.steps.len() as u32 - 1;
                if k == 0 {
                    at = step;
                } else {
                    self.push(bound, self.state.twins + u32::from(twin), decisions, Entry::Partial(step));
                }
            }
            self.state.decide(&self.space, d, taken as usize, bound);
        }
        let (cost, twins) = (self.state.cost, self.state.twins);
        debug_assert!(self.state.bound <= cost, "a bound above the cost");
        self.push(cost, twins, u32::MAX, Entry::Complete(at));
    }
}

impl State {
    fn new(n: usize) -> State {
        State {
            chosen: vec![NONE; n],
            needed: vec![false; n],
            decided: Vec::new(),
            pending: Vec::new(),
            bound: 0,
            cost: 0,
            twins: 0,
            seen: vec![0; n],
            round: 0,
        }
    }

    /// Back to no decision.
    fn reset(&mut self, space: &Space, bound: u64) {
        for &d in self.decided.iter().chain(&self.pending) {
            self.chosen[d as usize] = NONE;
            self.needed[d as usize] = false;
        }
        self.decided.clear();
        self.pending.clear();
        for &root in space.roots.iter().rev() {
            self.needed[root] = true;
            self.pending.push(root as u32);
        }
        (self.bound, self.cost, self.twins) = (bound, 0, 0);
    }

    /// Completes the choice greedily; `false` where there is no way on.
    fn dive(&mut self, space: &Space, cuts: &Cuts) -> bool {
        while let Some(&demand) = self.pending.last() {
            let d = demand as usize;
            let ranked = self.ranked(space, cuts, d);
            let Some(&(bound, _, open)) = ranked.first() else { return false };
            self.decide(space, d, open as usize, bound);
        }
        true
    }

    /// The options of a demand that leave a way on, by bound, then by what they cost with what they alone need.
    fn ranked(&mut self, space: &Space, cuts: &Cuts, d: usize) -> Vec<(u64, bool, u32)> {
        let mut ranked = Vec::with_capacity(space.open[d].len());
        for (k, option) in space.open[d].iter().enumerate() {
            if self.leaves_a_way(space, d, k) {
                let new = option.needs.iter().filter(|&&need| !self.needed[need]);
                let estimate = new.fold(option.cost as f64, |sum, &need| sum + space.tree.cost[need]);
                let bound = self.bound_with(cuts, d, k);
                // Bits of floats that are not negative are in the order of the floats.
                ranked.push((bound, option.twin, estimate.to_bits(), k as u32));
            }
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(bound, twin, _, k)| (bound, twin, k)).collect()
    }

    /// The bound once demand `d` is met by its k-th open option.
    fn bound_with(&self, cuts: &Cuts, d: usize, k: usize) -> u64 {
        self.bound.saturating_add(cuts.left(d, k))
    }

    /// Meets `d`, the last of the pending ones, by its k-th open option.
    fn decide(&mut self, space: &Space, d: usize, k: usize, bound: u64) {
        self.pending.pop();
        let option = &space.open[d][k];
        self.chosen[d] = k as u32;
        self.decided.push(d as u32);
        self.bound = bound;
        self.cost = self.cost.saturating_add(option.cost);
        self.twins += u32::from(option.twin);
        for &need in option.needs.iter().rev() {
            if !std::mem::replace(&mut self.needed[need], true) {
                self.pending.push(need as u32);
            }
        }
    }

    /// Whether the needs of the k-th option of `d` can be met without `d`, under the decisions made so far. If so,
    /// whatever could be met before still can, and the choice can be completed. Circles do not leave their component.
    fn leaves_a_way(&mut self, space: &Space, d: usize, k: usize) -> bool {
        let component = space.components.of(d);
        if !space.components.has_circles(d) {
            return true;
        }
        let inside = |need: &usize| space.components.of(*need) == component;
        let needs: Vec<usize> = space.open[d][k].needs.iter().copied().filter(inside).collect();
        needs.is_empty()
            || self.tree_avoids(space, d, &needs, component)
            || self.met_without(space, d, &needs, component)
    }

    /// Whether the needs can be met as the tree meets them, without `d`.
    fn tree_avoids(&mut self, space: &Space, d: usize, needs: &[usize], component: u32) -> bool {
        self.round += 1;
        let mut todo = needs.to_vec();
        while let Some(at) = todo.pop() {
            let k = space.tree.chosen[at];
            // Along other decisions than the tree's there may be circles.
            if at == d || k == NONE || (self.chosen[at] != NONE && self.chosen[at] != k) {
                return false;
            }
            if std::mem::replace(&mut self.seen[at], self.round) != self.round {
                let needs = space.open[at][k as usize].needs.iter().copied();
                todo.extend(needs.filter(|&need| space.components.of(need) == component));
            }
        }
        true
    }

    /// Whether the needs can be met without `d` at all.
    fn met_without(&mut self, space: &Space, d: usize, needs: &[usize], component: u32) -> bool {
        self.round += 2;
        let (seen, met) = (self.round - 1, self.round);
        let mut region = Vec::new();
        let mut todo = needs.to_vec();
        while let Some(at) = todo.pop() {
            if at == d || self.seen[at] == seen {
                continue;
            }
            self.seen[at] = seen;
            region.push(at);
            for option in self.options(space, at) {
                todo.extend(option.needs.iter().copied().filter(|&n| space.components.of(n) == component));
            }
        }
        loop {
            let before = region.len();
            // What is needed was found later, mostly.
            for at in (0..region.len()).rev() {
                let can = |option: &OpenOption| {
                    let mut inside = option.needs.iter().filter(|&&n| space.components.of(n) == component);
                    inside.all(|&need| self.seen[need] == met)
                };
                if self.options(space, region[at]).iter().any(can) {
                    self.seen[region[at]] = met;
                    region.remove(at);
                }
            }
            if needs.iter().all(|&need| self.seen[need] == met) {
                return true;
            }
            if region.len() == before {
                return false;
            }
        }
    }

    /// The options of a demand that the decisions leave.
    fn options<'a>(&self, space: &'a Space, demand: usize) -> &'a [OpenOption] {
        match self.chosen[demand] {
            NONE => &space.open[demand],
            k => std::slice::from_ref(&space.open[demand][k as usize]),
        }
    }
}

impl Space {
    pub(super) fn new(graph: DemandGraph, roots: &[usize]) -> Option<Space> {
        let meetable = graph.meetable();
        if roots.iter().any(|&r| !meetable.get(r).copied().unwrap_or(false)) {
            return None;
        }
        let n = graph.demands.len();
        let mut open: Vec<Vec<OpenOption>> = (0..n).map(|_| Vec::new()).collect();
        let mut within = vec![false; n];
        let mut todo: Vec<usize> = roots.to_vec();
        while let Some(d) = todo.pop() {
            if std::mem::replace(&mut within[d], true) {
                continue;
            }
            for (option, alternative) in graph.options(d).iter().enumerate() {
                let mut needs = alternative.needs.clone();
                needs.sort_unstable();
                needs.dedup();
                if !needs.iter().all(|&need| meetable[need]) || needs.contains(&d) {
                    continue;
                }
                todo.extend(&needs);
                open[d].push(OpenOption { option, cost: alternative.cost, needs, twin: false });
            }
            // By cost, so that ties do not depend on the order of the description.
            open[d].sort_by_key(|o| o.cost);
            for k in 1..open[d].len() {
                let (before, this) = open[d].split_at(k);
                let twin = before
                    .iter()
                    .rev()
                    .take_while(|o| o.cost == this[0].cost)
                    .any(|o| o.needs == this[0].needs);
                open[d][k].twin = twin;
            }
        }
        let mut distinct: Vec<usize> = Vec::with_capacity(roots.len());
        for &root in roots {
            if !distinct.contains(&root) {
                distinct.push(root);
            }
        }
        let components = Components::of_demands(&open);
        components.drop_circular(&mut open);
        let components = Components::of_demands(&open);
        let tree = Tree::of(&open, &components, &vec![1; n]);
        Some(Space { graph, open, roots: distinct, components, tree })
    }

    /// Of a choice that names options of exactly the demands it needs.
    pub(super) fn cost(&self, chosen: &[u32]) -> u64 {
        let options = chosen.iter().enumerate().filter(|(_, k)| **k != NONE);
        options.fold(0u64, |sum, (d, &k)| sum.saturating_add(self.open[d][k as usize].cost))
    }
}
