//! Orders of the instructions of a pii graph (ACT paper, sections 6.1 and 6.4, appendix B.5): extended Sethi–Ullman
//! first, then the other topological orders, lazily, without those that are known to fail.

use super::skeleton::{Owner, Skeleton};
use std::collections::{BTreeMap, BTreeSet};

/// The depth-first order by extended Sethi–Ullman numbers; `None` when the instructions depend on each other in a
/// circle (one overwrites in place what another needs, and the other way round).
pub(super) fn sethi_ullman(skeleton: &Skeleton) -> Option<Vec<usize>> {
    let buffers = skeleton.capacity.len();
    let bytes = |step: usize, buffer: usize| -> u128 {
        skeleton
            .parts
            .iter()
            .filter(|p| matches!(p.owner, Owner::Output { step: s, .. } if s == step))
            .filter(|p| p.written && p.buffer == buffer)
            .map(|p| volume(&p.len) * u128::from(skeleton.position_bytes[buffer]))
            .sum()
    };
    let capacity: Vec<u128> = (0..buffers)
        .map(|b| (volume(&skeleton.capacity[b]) * u128::from(skeleton.position_bytes[b])).max(1))
        .collect();
    let memory: Vec<Vec<u128>> =
        (0..skeleton.steps.len()).map(|s| (0..buffers).map(|b| bytes(s, b)).collect()).collect();

    // esun_d(y) = max(mem_d(y), min_i tau_d(x_i)), tau_d(x_i) = esun_d(x_i) + sum of mem_d of the other operands.
    // Steps stand in the order of the graph, so operands come first.
    let mut number: Vec<Vec<u128>> = Vec::with_capacity(skeleton.steps.len());
    let peak = |number: &[Vec<u128>], operands: &[usize], i: usize, buffer: usize| -> u128 {
        let siblings =
            operands.iter().filter(|&&o| o != operands[i]).map(|&o| memory[o][buffer]).sum::<u128>();
        number[operands[i]][buffer] + siblings
    };
    for (step, own) in memory.iter().enumerate() {
        let operands = &skeleton.steps[step].producers;
        let esun = (0..buffers).map(|b| {
            let least = (0..operands.len()).map(|i| peak(&number, operands, i, b)).min();
            own[b].max(least.unwrap_or(0))
        });
        let esun = esun.collect();
        number.push(esun);
    }
    // Decreasing by the greatest share of a buffer; a stable sort keeps the operands' order among equals.
    let sorted = |operands: &[usize]| -> Vec<usize> {
        let share = |i: usize| {
            (0..buffers)
                .map(|b| (peak(&number, operands, i, b), capacity[b]))
                .max_by(|x, y| (x.0.saturating_mul(y.1)).cmp(&y.0.saturating_mul(x.1)))
                .unwrap_or((0, 1))
        };
        let mut order: Vec<usize> = (0..operands.len()).collect();
        order.sort_by(|&i, &j| {
            let (a, b) = (share(i), share(j));
            b.0.saturating_mul(a.1).cmp(&a.0.saturating_mul(b.1))
        });
        order.into_iter().map(|i| operands[i]).collect()
    };

    let mut visit = Visit { done: vec![false; skeleton.steps.len()], order: Vec::new() };
    // A spilled value is stored before what needs its room is made. What nobody reads, because of a slot that was joined
    // from several values only a part is used, comes last.
    let all = 0..skeleton.steps.len();
    for sink in skeleton.spills.iter().copied().chain(sorted(&skeleton.sinks)).chain(all) {
        visit.from(sink, &|step| {
            let mut before = sorted(&skeleton.steps[step].producers);
            before.extend(&skeleton.steps[step].hazards);
            before
        })?;
    }
    Some(visit.order)
}

/// Distances at which [`ahead`] is worth a try: the next instruction, a few, all.
pub(super) const DISTANCES: [usize; 3] = [1, 4, usize::MAX];

/// The order with every load up to `distance` instructions earlier than in `order`, so that it may run beside them. What
/// nothing has to precede counts as a load.
pub(super) fn ahead(skeleton: &Skeleton, order: &[usize], distance: usize) -> Vec<usize> {
    let is_load = |step: usize| {
        let step = &skeleton.steps[step];
        step.producers.is_empty() && step.hazards.is_empty()
    };
    let rest: Vec<usize> = order.iter().copied().filter(|&step| !is_load(step)).collect();
    // The loads that stand before number `at` of the rest, by the number that they move to.
    let mut loads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut at = 0usize;
    for &step in order {
        if is_load(step) {
            loads.entry(at.saturating_sub(distance)).or_default().push(step);
        } else {
            at += 1;
        }
    }
    let before = |at: usize| loads.get(&at).into_iter().flatten().copied();
    let moved = rest.iter().enumerate().flat_map(|(at, &step)| before(at).chain([step]));
    moved.chain(before(rest.len())).collect()
}

fn volume(len: &[i64]) -> u128 {
    len.iter().map(|&l| u128::try_from(l).unwrap_or(0)).product()
}

struct Visit {
    done: Vec<bool>,
    order: Vec<usize>,
}

impl Visit {
    /// Appends `root` after everything before it, without recursion. `None` on a circle.
    fn from(&mut self, root: usize, before: &dyn Fn(usize) -> Vec<usize>) -> Option<()> {
        let mut open = vec![false; self.done.len()];
        let mut stack = vec![(root, None::<std::vec::IntoIter<usize>>)];
        while let Some((step, rest)) = stack.last_mut() {
            let step = *step;
            if rest.is_none() {
                if self.done[step] {
                    stack.pop();
                    continue;
                }
                open[step] = true;
            }
            match rest.get_or_insert_with(|| before(step).into_iter()).next() {
                Some(next) if self.done[next] => {}
                Some(next) if open[next] => return None,
                Some(next) => stack.push((next, None)),
                None => {
                    self.done[step] = true;
                    self.order.push(step);
                    stack.pop();
                }
            }
        }
        Some(())
    }
}

/// Two parts that are live together, the smaller number first.
type Pair = (u32, u32);

/// All topological orders that a search by capacity does not exclude, first those close to the preferred one. An
/// order whose interference graph contains that of an order which failed is left out (section 6.4): it would fail too.
pub(super) struct Orders<'a> {
    /// Rank of every step in the preferred order.
    preferred: Vec<usize>,
    after: Vec<Vec<usize>>,
    first: Option<Vec<usize>>,
    stack: Vec<Level>,
    prefix: Prefix<'a>,
    /// Predecessors of every step that the prefix lacks.
    missing: Vec<usize>,
    ready: BTreeSet<(usize, usize)>,
    /// The pairs of the prefix, with the number of times that they were met.
    interference: BTreeMap<Pair, u32>,
    /// Which of the orders that failed have a pair, and how many pairs of each the prefix lacks.
    failed_with: BTreeMap<Pair, Vec<usize>>,
    lacking: Vec<usize>,
    /// Sets of steps from which no completion fits, whatever came before.
    hopeless: BTreeSet<Vec<u64>>,
    last: Option<Vec<usize>>,
    /// Extensions of prefixes that may still be tried.
    budget: u64,
}

/// A prefix of an order: its last step with what it changed, and the steps to try next.
struct Level {
    step: Option<(usize, Change)>,
    candidates: std::vec::IntoIter<usize>,
    fruitful: bool,
}

impl<'a> Orders<'a> {
    /// `preferred` comes first; at most `budget` prefixes are looked at after it.
    pub(super) fn new(skeleton: &'a Skeleton, preferred: Vec<usize>, budget: u64) -> Orders<'a> {
        let steps = skeleton.steps.len();
        let mut rank = vec![0; steps];
        for (at, &step) in preferred.iter().enumerate() {
            rank[step] = at;
        }
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); steps];
        let mut missing = vec![0; steps];
        for (step, missing) in missing.iter_mut().enumerate() {
            let before = skeleton.steps[step].producers.iter().chain(&skeleton.steps[step].hazards);
            let before: BTreeSet<usize> = before.copied().collect();
            *missing = before.len();
            before.iter().for_each(|&b| after[b].push(step));
        }
        let ready = (0..steps).filter(|&s| missing[s] == 0).map(|s| (rank[s], s)).collect();
        let (prefix, pairs) = Prefix::new(skeleton);
        let mut orders = Orders {
            preferred: rank,
            after,
            first: Some(preferred),
            stack: Vec::new(),
            prefix,
            missing,
            ready,
            interference: BTreeMap::new(),
            failed_with: BTreeMap::new(),
            lacking: Vec::new(),
            hopeless: BTreeSet::new(),
            last: None,
            budget,
        };
        pairs.into_iter().for_each(|pair| orders.meet(pair));
        let candidates = orders.candidates();
        orders.stack.push(Level { step: None, candidates, fruitful: false });
        orders
    }

    /// Whether all orders were looked at or excluded.
    pub(super) fn exhausted(&self) -> bool {
        self.first.is_none() && self.stack.is_empty()
    }

    /// Notes that the order given last has no allocation.
    pub(super) fn last_failed(&mut self) {
        let Some(order) = &self.last else { return };
        let (mut prefix, pairs) = Prefix::new(self.prefix.skeleton);
        let mut all: BTreeSet<Pair> = pairs.into_iter().collect();
        for &step in order {
            all.extend(prefix.extend(step).pairs);
        }
        let number = self.lacking.len();
        self.lacking.push(all.iter().filter(|pair| !self.interference.contains_key(pair)).count());
        for pair in all {
            self.failed_with.entry(pair).or_default().push(number);
        }
    }

    pub(super) fn next(&mut self) -> Option<Vec<usize>> {
        let order = match self.first.take() {
            Some(first) => Some(first),
            None => self.search(),
        };
        self.last.clone_from(&order);
        order
    }

    fn search(&mut self) -> Option<Vec<usize>> {
        loop {
            let level = self.stack.last_mut()?;
            let Some(step) = level.candidates.next() else {
                self.leave();
                continue;
            };
            if self.budget == 0 {
                return None;
            }
            self.budget -= 1;
            if self.hopeless.contains(&self.prefix.set_with(step)) {
                continue;
            }
            let change = self.extend(step);
            let fits = self.prefix.fits(&change);
            let excluded = self.lacking.contains(&0);
            let complete = self.stack.len() == self.preferred.len();
            if fits && (excluded || complete) {
                // Pruned by what failed, which depends on the way here: nothing is proven of the set.
                self.stack.iter_mut().for_each(|l| l.fruitful = true);
            }
            if fits && !excluded && !complete {
                let candidates = self.candidates();
                self.stack.push(Level { step: Some((step, change)), candidates, fruitful: false });
                continue;
            }
            self.undo(step, change);
            if fits && !excluded {
                let steps = self.stack.iter().filter_map(|l| l.step.as_ref().map(|(step, _)| *step));
                return Some(steps.chain([step]).collect());
            }
        }
    }

    fn leave(&mut self) {
        let Some(level) = self.stack.pop() else { return };
        if !level.fruitful {
            self.hopeless.insert(self.prefix.set.clone());
        }
        if let Some((step, change)) = level.step {
            self.undo(step, change);
        }
    }

    fn candidates(&self) -> std::vec::IntoIter<usize> {
        self.ready.iter().map(|&(_, step)| step).collect::<Vec<usize>>().into_iter()
    }

    fn extend(&mut self, step: usize) -> Change {
        self.ready.remove(&(self.preferred[step], step));
        for &next in &self.after[step] {
            self.missing[next] -= 1;
            if self.missing[next] == 0 {
                self.ready.insert((self.preferred[next], next));
            }
        }
        let change = self.prefix.extend(step);
        change.pairs.iter().for_each(|&pair| self.meet(pair));
        change
    }

    fn undo(&mut self, step: usize, change: Change) {
        for &next in &self.after[step] {
            if self.missing[next] == 0 {
                self.ready.remove(&(self.preferred[next], next));
            }
            self.missing[next] += 1;
        }
        self.ready.insert((self.preferred[step], step));
        for pair in &change.pairs {
            let Some(times) = self.interference.get_mut(pair) else { continue };
            *times -= 1;
            if *times == 0 {
                self.interference.remove(pair);
                for &failed in self.failed_with.get(pair).into_iter().flatten() {
                    self.lacking[failed] += 1;
                }
            }
        }
        self.prefix.undo(step, change);
    }

    fn meet(&mut self, pair: Pair) {
        let times = self.interference.entry(pair).or_insert(0);
        *times += 1;
        if *times == 1 {
            for &failed in self.failed_with.get(&pair).into_iter().flatten() {
                self.lacking[failed] -= 1;
            }
        }
    }
}

/// The parts that are live right after the steps of a prefix.
struct Prefix<'a> {
    skeleton: &'a Skeleton,
    /// Parts that a step writes, parts that it reads.
    writes: Vec<Vec<usize>>,
    reads: Vec<Vec<usize>>,
    /// Readers of every part that the prefix lacks.
    readers_left: Vec<usize>,
    /// Parts that are there and needed later.
    live: BTreeSet<usize>,
    /// The steps of the prefix, as bits.
    set: Vec<u64>,
}

/// What one step changed.
struct Change {
    /// Pairs of parts that the step made live together.
    pairs: Vec<Pair>,
    /// Parts whose last reader it was.
    died: Vec<usize>,
    /// Parts that it wrote and nobody needs: they lie there for a moment.
    passing: Vec<usize>,
}

impl<'a> Prefix<'a> {
    /// No step yet: parameters are live. Gives the pairs of these.
    fn new(skeleton: &'a Skeleton) -> (Prefix<'a>, Vec<Pair>) {
        let steps = skeleton.steps.len();
        let (mut writes, mut reads) = (vec![Vec::new(); steps], vec![Vec::new(); steps]);
        let mut inputs = Vec::new();
        let mut readers_left = Vec::with_capacity(skeleton.parts.len());
        for (number, part) in skeleton.parts.iter().enumerate() {
            let readers: BTreeSet<usize> = part.readers.iter().copied().collect();
            readers_left.push(readers.len());
            if volume(&part.len) == 0 {
                continue;
            }
            readers.iter().for_each(|&r| reads[r].push(number));
            match part.owner {
                Owner::Input(_) => inputs.push(number),
                Owner::Output { step, .. } => writes[step].push(number),
            }
        }
        let set = vec![0; steps.div_ceil(64)];
        let mut prefix = Prefix { skeleton, writes, reads, readers_left, live: BTreeSet::new(), set };
        let (pairs, _) = prefix.born(&inputs);
        (prefix, pairs)
    }

    fn extend(&mut self, step: usize) -> Change {
        self.set[step / 64] |= 1 << (step % 64);
        let mut died = Vec::new();
        for &part in &self.reads[step] {
            self.readers_left[part] -= 1;
            if self.readers_left[part] == 0 && !self.skeleton.parts[part].to_end && self.live.remove(&part) {
                died.push(part);
            }
        }
        let writes = std::mem::take(&mut self.writes[step]);
        let (pairs, passing) = self.born(&writes);
        self.writes[step] = writes;
        Change { pairs, died, passing }
    }

    fn undo(&mut self, step: usize, change: Change) {
        self.set[step / 64] &= !(1 << (step % 64));
        for part in &self.writes[step] {
            self.live.remove(part);
        }
        self.reads[step].iter().for_each(|&part| self.readers_left[part] += 1);
        self.live.extend(change.died);
    }

    /// Makes parts live; gives the pairs that come of it, and the parts that nobody needs.
    fn born(&mut self, parts: &[usize]) -> (Vec<Pair>, Vec<usize>) {
        let all = &self.skeleton.parts;
        let needed = |&p: &usize| all[p].to_end || self.readers_left[p] > 0;
        let (lasting, rest): (Vec<usize>, Vec<usize>) = parts.iter().copied().partition(needed);
        let passing: Vec<usize> = rest.into_iter().filter(|&p| all[p].written).collect();
        let mut pairs = Vec::new();
        let new: Vec<usize> = lasting.iter().chain(&passing).copied().collect();
        for (at, &a) in new.iter().enumerate() {
            for &b in self.live.iter().chain(&new[at + 1..]) {
                if all[a].buffer == all[b].buffer && all[a].owner != all[b].owner {
                    pairs.push((a.min(b) as u32, a.max(b) as u32));
                }
            }
        }
        self.live.extend(lasting);
        (pairs, passing)
    }

    /// Whether what is live after the step that made `change` fits the buffers by volume.
    fn fits(&self, change: &Change) -> bool {
        let mut load: BTreeMap<(usize, Owner), u128> = BTreeMap::new();
        for &part in self.live.iter().chain(&change.passing) {
            let part = &self.skeleton.parts[part];
            let most = load.entry((part.buffer, part.owner)).or_insert(0);
            *most = volume(&part.len).max(*most);
        }
        let mut sums = vec![0u128; self.skeleton.capacity.len()];
        for ((buffer, _), volume) in load {
            sums[buffer] = sums[buffer].saturating_add(volume);
        }
        sums.iter().zip(&self.skeleton.capacity).all(|(&sum, room)| sum <= volume(room))
    }

    fn set_with(&self, step: usize) -> Vec<u64> {
        let mut set = self.set.clone();
        set[step / 64] |= 1 << (step % 64);
        set
    }
}
