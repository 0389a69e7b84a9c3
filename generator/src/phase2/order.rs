//! Orders of the instructions of a pii graph (ACT paper, sections 6.1 and 6.4, appendix B.5): extended Sethi–Ullman
//! first, then the other topological orders, lazily, without those that are known to fail.

use super::skeleton::{Owner, Skeleton};
use std::collections::BTreeSet;

/// The depth-first order by extended Sethi–Ullman numbers; `None` when the instructions depend on each other in a
/// circle (one overwrites in place what another needs, and the other way round).
pub(super) fn sethi_ullman(skeleton: &Skeleton) -> Option<Vec<usize>> {
    let buffers = skeleton.capacity.len();
    let bytes = |step: usize, buffer: usize| -> u128 {
        skeleton
            .parts
            .iter()
            .filter(|p| p.owner == Owner::Step(step) && p.written && p.buffer == buffer)
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

/// The pairs of parts that are live together under some order, as a bit set: the interference graph φ.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interference {
    bits: Vec<u64>,
    parts: usize,
}

impl Interference {
    fn new(parts: usize) -> Interference {
        Interference { bits: vec![0; (parts * parts).div_ceil(64)], parts }
    }

    fn add(&mut self, a: usize, b: usize) {
        let at = a.min(b) * self.parts + a.max(b);
        self.bits[at / 64] |= 1 << (at % 64);
    }

    fn contains(&self, other: &Interference) -> bool {
        self.bits.iter().zip(&other.bits).all(|(own, other)| own & other == *other)
    }
}

/// All topological orders that a search by capacity does not exclude, first those close to the preferred one. An
/// order whose interference graph contains that of an order which failed is left out (section 6.4): it would fail too.
pub(super) struct Orders<'a> {
    skeleton: &'a Skeleton,
    /// Rank of every step in the preferred order.
    preferred: Vec<usize>,
    before: Vec<BTreeSet<usize>>,
    first: Option<Vec<usize>>,
    stack: Vec<Level>,
    failed: Vec<Interference>,
    /// Sets of steps from which no completion fits, whatever came before.
    hopeless: BTreeSet<Vec<u64>>,
    last: Option<Vec<usize>>,
    /// Extensions of prefixes that may still be tried.
    budget: u64,
}

/// A prefix of an order: its last step, what interferes so far, and the steps to try next.
struct Level {
    step: Option<usize>,
    interference: Interference,
    candidates: std::vec::IntoIter<usize>,
    fruitful: bool,
}

impl<'a> Orders<'a> {
    /// `preferred` comes first; at most `budget` prefixes are looked at after it.
    pub(super) fn new(skeleton: &'a Skeleton, preferred: Vec<usize>, budget: u64) -> Orders<'a> {
        let mut rank = vec![0; preferred.len()];
        for (at, &step) in preferred.iter().enumerate() {
            rank[step] = at;
        }
        let before = skeleton.steps.iter().map(|s| s.producers.iter().chain(&s.hazards).copied().collect());
        let mut orders = Orders {
            skeleton,
            preferred: rank,
            before: before.collect(),
            first: Some(preferred),
            stack: Vec::new(),
            failed: Vec::new(),
            hopeless: BTreeSet::new(),
            last: None,
            budget,
        };
        let root = orders.level(None, Interference::new(skeleton.parts.len()), &[]);
        orders.stack.push(root);
        orders
    }

    /// Whether all orders were looked at or excluded.
    pub(super) fn exhausted(&self) -> bool {
        self.first.is_none() && self.stack.is_empty()
    }

    /// Notes that the order given last has no allocation.
    pub(super) fn last_failed(&mut self) {
        if let Some(order) = &self.last {
            let mut interference = Interference::new(self.skeleton.parts.len());
            for at in 0..=order.len() {
                self.note_live(&order[..at], &mut interference);
            }
            self.failed.push(interference);
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
            let mut interference = level.interference.clone();
            let mut prefix: Vec<usize> = self.stack.iter().filter_map(|l| l.step).collect();
            prefix.push(step);
            if self.hopeless.contains(&set_of(&prefix, self.before.len())) {
                continue;
            }
            let fits = self.note_live(&prefix, &mut interference);
            if !fits || self.failed.iter().any(|f| interference.contains(f)) {
                if fits {
                    // Pruned by what failed, which depends on the way here: nothing is proven of the set.
                    self.stack.iter_mut().for_each(|l| l.fruitful = true);
                }
                continue;
            }
            if prefix.len() == self.before.len() {
                self.stack.iter_mut().for_each(|l| l.fruitful = true);
                return Some(prefix);
            }
            let level = self.level(Some(step), interference, &prefix);
            self.stack.push(level);
        }
    }

    fn leave(&mut self) {
        let prefix: Vec<usize> = self.stack.iter().filter_map(|l| l.step).collect();
        if let Some(level) = self.stack.pop()
            && !level.fruitful
        {
            self.hopeless.insert(set_of(&prefix, self.before.len()));
        }
    }

    fn level(&self, step: Option<usize>, interference: Interference, prefix: &[usize]) -> Level {
        let mut ready: Vec<usize> = (0..self.before.len())
            .filter(|s| !prefix.contains(s) && self.before[*s].iter().all(|b| prefix.contains(b)))
            .collect();
        ready.sort_by_key(|&s| self.preferred[s]);
        Level { step, interference, candidates: ready.into_iter(), fruitful: false }
    }

    /// Notes which parts are live together right after `prefix`; whether they fit their buffers by volume.
    fn note_live(&self, prefix: &[usize], interference: &mut Interference) -> bool {
        let mut scheduled = vec![false; self.before.len()];
        prefix.iter().for_each(|&s| scheduled[s] = true);
        let live: Vec<usize> = (0..self.skeleton.parts.len())
            .filter(|&p| {
                let part = &self.skeleton.parts[p];
                let (born, just_written) = match part.owner {
                    Owner::Input(_) => (true, prefix.is_empty()),
                    Owner::Step(s) => (scheduled[s], prefix.last() == Some(&s)),
                };
                let needed = part.to_end || part.readers.iter().any(|&r| !scheduled[r]);
                born && volume(&part.len) > 0 && (needed || (part.written && just_written))
            })
            .collect();
        let mut load: std::collections::BTreeMap<(usize, Owner), u128> = std::collections::BTreeMap::new();
        for (at, &a) in live.iter().enumerate() {
            let part = &self.skeleton.parts[a];
            let most = load.entry((part.buffer, part.owner)).or_insert(0);
            *most = volume(&part.len).max(*most);
            for &b in &live[at + 1..] {
                let other = &self.skeleton.parts[b];
                if part.buffer == other.buffer && part.owner != other.owner {
                    interference.add(a, b);
                }
            }
        }
        (0..self.skeleton.capacity.len()).all(|buffer| {
            let sum: u128 = load
                .range((buffer, Owner::Input(crate::pii::PiiId(0)))..)
                .take_while(|((b, _), _)| *b == buffer)
                .map(|(_, v)| v)
                .sum();
            sum <= volume(&self.skeleton.capacity[buffer])
        })
    }
}

fn set_of(prefix: &[usize], steps: usize) -> Vec<u64> {
    let mut bits = vec![0u64; steps.div_ceil(64)];
    for &step in prefix {
        bits[step / 64] |= 1 << (step % 64);
    }
    bits
}
