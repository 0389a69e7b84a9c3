//! Lazy best-first enumeration of complete choices: one option per demand, acyclic, every demand counted once. The
//! search dives: a partial choice that comes off the queue is completed greedily, and what was passed by on the way is
//! queued with its bound, so that a first complete choice costs about as much as it has demands, and every further one
//! too. The order is by exact cost, since the bound of a partial choice ([`super::prices`]) never exceeds the cost of
//! any completion. When the limit is reached, what was completed so far is given, cheapest first.

use super::cycles::Components;
use super::demand::DemandGraph;
use super::prices::{Prices, SCALE};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One option for every demand that is needed.
pub(crate) type Choices = BTreeMap<usize, usize>;

/// Rounds of prices from the choice that the prices before led to.
const ROUNDS: usize = 8;
/// However small the limit is: so many dives are looked at.
const DIVES: usize = 48;
const NONE: u32 = u32::MAX;

/// What the search may choose from: the options that can be met, of the demands that are within reach of the roots.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) graph: DemandGraph,
    /// Indices of options per demand.
    pub(super) open: Vec<Vec<OpenOption>>,
    pub(super) roots: Vec<usize>,
    pub(super) components: Components,
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
    prices: Prices,
    steps: Vec<Step>,
    queue: BinaryHeap<Reverse<(Rank, Entry)>>,
    state: State,
    sequence: u64,
    expansions: usize,
    limit: usize,
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
    /// In units of 1 / [`SCALE`] cycles.
    bound: u64,
    cost: u64,
    twins: u32,
    /// For searches within a component.
    seen: Vec<u32>,
    round: u32,
}

impl Enumeration {
    /// `roots` are indices of demands; `None` when one cannot be met. About `limit` decisions are looked at, or
    /// [`DIVES`] times as many as there are demands if that is more.
    pub(crate) fn new(graph: DemandGraph, roots: &[usize], limit: usize) -> Option<Enumeration> {
        let space = Space::new(graph, roots)?;
        let n = space.open.len();
        let limit = limit.max(DIVES * n);
        let mut state = State::new(n);
        let mut best = space.cheapest_tree()?;
        let mut cost = space.cost(&best);
        let mut prices = Prices::new(&space, &best);
        // A choice leads to prices, and prices to a choice; both get better for some rounds.
        let mut candidate = best.clone();
        for _ in 0..ROUNDS {
            let next = Prices::new(&space, &candidate);
            if next.bound() > prices.bound() {
                prices = next.clone();
            }
            if prices.bound().div_ceil(SCALE) >= cost {
                break;
            }
            state.reset(&space, &next);
            if !state.dive(&space, &next) {
                break;
            }
            let found = state.chosen.clone();
            if state.cost < cost {
                (best, cost) = (found.clone(), state.cost);
            }
            if found == candidate {
                break;
            }
            candidate = found;
        }
        let mut enumeration = Enumeration {
            space,
            prices,
            steps: Vec::new(),
            queue: BinaryHeap::new(),
            state,
            sequence: 0,
            expansions: 0,
            limit,
        };
        let bound = enumeration.prices.bound();
        enumeration.push(bound, 0, 0, Entry::Partial(NONE));
        enumeration.guide(&best);
        Some(enumeration)
    }

    pub(crate) fn graph(&self) -> &DemandGraph {
        &self.space.graph
    }

    /// Whether the search gave up before it had seen every choice.
    pub(crate) fn exhausted_limit(&self) -> bool {
        self.expansions >= self.limit
    }

    /// The next cheapest complete choice and its cost.
    pub(crate) fn next_choice(&mut self) -> Option<(Choices, u64)> {
        while let Some(Reverse((rank, entry))) = self.queue.pop() {
            match entry {
                Entry::Complete(step) => return Some((self.choices(step), rank.0)),
                // Beyond the limit only what is complete is given.
                Entry::Partial(_) if self.expansions >= self.limit => {}
                Entry::Partial(step) => self.complete(step),
            }
        }
        None
    }

    fn push(&mut self, bound: u64, twins: u32, decisions: u32, entry: Entry) {
        self.sequence += 1;
        let rank = (bound.div_ceil(SCALE), twins, Reverse(decisions), self.sequence);
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
        self.state.reset(&self.space, &self.prices);
        for s in path {
            let bound = self.state.bound_with(&self.space, &self.prices, s.demand as usize, s.open as usize);
            // Decisions come in the order of the first descent.
            debug_assert_eq!(self.state.pending.last(), Some(&s.demand));
            self.state.decide(&self.space, s.demand as usize, s.open as usize, bound);
        }
        let mut at = step;
        while let Some(&demand) = self.state.pending.last() {
            let d = demand as usize;
            self.expansions += 1;
            let mut ranked = self.state.ranked(&self.space, &self.prices, d);
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
        debug_assert!(self.state.bound.div_ceil(SCALE) <= cost, "a bound above the cost");
        self.push(cost.saturating_mul(SCALE), twins, u32::MAX, Entry::Complete(at));
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
    fn reset(&mut self, space: &Space, prices: &Prices) {
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
        (self.bound, self.cost, self.twins) = (prices.bound(), 0, 0);
    }

    /// Completes the choice greedily; `false` where it ends in a circle.
    fn dive(&mut self, space: &Space, prices: &Prices) -> bool {
        while let Some(&demand) = self.pending.last() {
            let d = demand as usize;
            let ranked = self.ranked(space, prices, d);
            let Some(&(bound, _, open)) = ranked.first() else { return false };
            self.decide(space, d, open as usize, bound);
        }
        true
    }

    /// The options of a demand that close no circle, by bound.
    fn ranked(&mut self, space: &Space, prices: &Prices, d: usize) -> Vec<(u64, bool, u32)> {
        let mut ranked = Vec::with_capacity(space.open[d].len());
        for (k, option) in space.open[d].iter().enumerate() {
            if !option.needs.iter().any(|&need| self.reaches(space, need, d)) {
                ranked.push((self.bound_with(space, prices, d, k), option.twin, k as u32));
            }
        }
        ranked.sort_unstable_by_key(|&(bound, twin, k)| (bound.div_ceil(SCALE), twin, k));
        ranked
    }

    /// The bound once demand `d` is met by its k-th open option.
    fn bound_with(&self, space: &Space, prices: &Prices, d: usize, k: usize) -> u64 {
        let option = &space.open[d][k];
        // What the option costs beyond what its users pay for.
        let mut bound = self.bound.saturating_add(option.cost.saturating_mul(SCALE));
        let mut paid = prices.income(d);
        for &(need, price) in prices.paid_by(d) {
            // What is decided and not used was to be paid for by a demand that does not use it.
            if option.needs.binary_search(&need).is_ok() || self.chosen[need] != NONE {
                bound = bound.saturating_add(price);
            }
        }
        for &(user, price) in prices.payers(d) {
            let chosen = self.chosen[user];
            if chosen != NONE && space.open[user][chosen as usize].needs.binary_search(&d).is_err() {
                paid -= price;
            }
        }
        bound.saturating_sub(paid)
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

    /// Whether `to` is `from` or needed by it under the decisions made so far. Circles do not leave their component.
    fn reaches(&mut self, space: &Space, from: usize, to: usize) -> bool {
        let component = space.components.of(to);
        if space.components.of(from) != component || !space.components.has_circles(to) {
            return false;
        }
        self.round += 1;
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            if at == to {
                return true;
            }
            if std::mem::replace(&mut self.seen[at], self.round) == self.round {
                continue;
            }
            let chosen = self.chosen[at];
            if chosen != NONE {
                let needs = &space.open[at][chosen as usize].needs;
                todo.extend(needs.iter().copied().filter(|&n| space.components.of(n) == component));
            }
        }
        false
    }
}

impl Space {
    fn new(graph: DemandGraph, roots: &[usize]) -> Option<Space> {
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
        Some(Space { graph, open, roots: distinct, components })
    }

    /// The choice that is cheapest when shared demands are counted every time (Knuth's generalisation of Dijkstra's
    /// algorithm). It has no circle: an option settles after all that it needs. Costs are floats, since counting every
    /// time may double a cost at each level.
    fn cheapest_tree(&self) -> Option<Vec<u32>> {
        let n = self.open.len();
        let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n];
        let mut missing: Vec<Vec<usize>> = Vec::with_capacity(n);
        let mut total: Vec<Vec<f64>> = Vec::with_capacity(n);
        let mut queue = BinaryHeap::new();
        for (d, options) in self.open.iter().enumerate() {
            for (k, option) in options.iter().enumerate() {
                option.needs.iter().for_each(|&need| users[need].push((d, k)));
                if option.needs.is_empty() {
                    queue.push(Reverse(((option.cost as f64).to_bits(), d, k)));
                }
            }
            missing.push(options.iter().map(|o| o.needs.len()).collect());
            total.push(options.iter().map(|o| o.cost as f64).collect());
        }
        let mut chosen = vec![NONE; n];
        // Bits of floats that are not negative are in the order of the floats.
        while let Some(Reverse((bits, d, k))) = queue.pop() {
            if chosen[d] != NONE {
                continue;
            }
            chosen[d] = k as u32;
            for &(user, option) in &users[d] {
                total[user][option] += f64::from_bits(bits);
                missing[user][option] -= 1;
                if missing[user][option] == 0 && chosen[user] == NONE {
                    queue.push(Reverse((total[user][option].to_bits(), user, option)));
                }
            }
        }
        let mut needed = vec![false; n];
        let mut todo = self.roots.clone();
        while let Some(d) = todo.pop() {
            if std::mem::replace(&mut needed[d], true) {
                continue;
            }
            let option = self.open[d].get(chosen[d] as usize)?;
            todo.extend(&option.needs);
        }
        let kept = chosen.into_iter().zip(needed).map(|(k, needed)| if needed { k } else { NONE });
        Some(kept.collect())
    }

    /// Of a choice that names options of exactly the demands it needs.
    fn cost(&self, chosen: &[u32]) -> u64 {
        let options = chosen.iter().enumerate().filter(|(_, k)| **k != NONE);
        options.fold(0u64, |sum, (d, &k)| sum.saturating_add(self.open[d][k as usize].cost))
    }
}
