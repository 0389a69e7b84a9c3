//! The fast allocator: a search over which of two boxes lies above the other, with every start kept as low as those
//! decisions allow. Exact when there are no conditions beyond bounds, congruences and orderings: the lowest starts
//! under a set of decisions are a least fixed point, and every answer agrees with some set of decisions. Knows only
//! the constraint problem.

use super::csp::{AtLeast, Csp, Outcome, Term};
use std::collections::VecDeque;

/// Solves `csp` within `budget` elementary steps (one bound raised, or one pair looked at).
pub(super) fn solve(csp: &Csp, budget: u64) -> Outcome {
    if let Some(buffer) = csp.overfull_buffer() {
        return Outcome::Unsat { buffer: Some(buffer) };
    }
    let pairs = csp.pairs();
    let mut touching = vec![Vec::new(); csp.vars.len()];
    for (number, &(a, b)) in pairs.iter().enumerate() {
        let terms = csp.boxes[a].start.iter().chain(&csp.boxes[b].start);
        terms.filter_map(|term| term.var).for_each(|var| touching[var].push(number));
    }
    let upper = csp.vars.iter().map(|v| v.max).collect();
    let suspects = Suspects { words: vec![0; pairs.len().div_ceil(64)], lowest: usize::MAX };
    let apart = Apart { touching, before: 0, suspects };
    let (sides, first_side) = sides(csp);
    Search { csp, pairs, sides, first_side, upper, steps: budget, apart, raised: Vec::new() }.run()
}

/// A box moved above another in one dimension: `start(above) >= start(below) + len(below)`.
#[derive(Clone, Copy)]
struct Alternative {
    above: usize,
    below: usize,
    dim: usize,
}

/// A pair that overlapped at the lowest starts, and the ways to part it that were not tried yet.
struct Frame {
    alternatives: Vec<Alternative>,
    next: usize,
    /// State to come back to.
    raised: usize,
    decisions: usize,
    buffer: usize,
}

/// A box in one dimension. Looked at very often, so all of them lie behind one another.
struct Side {
    start: Term,
    len: i64,
}

/// The sides of all boxes, and where those of a box begin.
fn sides(csp: &Csp) -> (Vec<Side>, Vec<usize>) {
    let mut sides = Vec::with_capacity(csp.boxes.len());
    let mut first = Vec::with_capacity(csp.boxes.len());
    for slot in &csp.boxes {
        first.push(sides.len());
        sides.extend(slot.start.iter().zip(&slot.len).map(|(&start, &len)| Side { start, len }));
    }
    first.push(sides.len());
    (sides, first)
}

struct Search<'a> {
    csp: &'a Csp,
    pairs: Vec<(usize, usize)>,
    sides: Vec<Side>,
    first_side: Vec<usize>,
    upper: Vec<i64>,
    steps: u64,
    apart: Apart,
    /// Variables that were raised, with the bounds they had before, in order.
    raised: Vec<(usize, i64)>,
}

/// Which pairs are known to be apart: those before a number, but for some that a raised start may have brought together.
struct Apart {
    /// Pairs by the variables of their starts.
    touching: Vec<Vec<usize>>,
    before: usize,
    suspects: Suspects,
}

impl Apart {
    fn raised(&mut self, var: usize) {
        // In the order of their numbers.
        for &pair in self.touching[var].iter().take_while(|&&pair| pair < self.before) {
            self.suspects.insert(pair);
        }
    }

    fn forget(&mut self) {
        self.before = 0;
        self.suspects.clear();
    }
}

/// A set of pairs as bits.
struct Suspects {
    words: Vec<u64>,
    /// No word before this one has a bit.
    lowest: usize,
}

impl Suspects {
    fn insert(&mut self, pair: usize) {
        self.words[pair / 64] |= 1 << (pair % 64);
        self.lowest = self.lowest.min(pair / 64);
    }

    fn remove(&mut self, pair: usize) {
        self.words[pair / 64] &= !(1 << (pair % 64));
    }

    fn first(&mut self) -> Option<usize> {
        while let Some(&word) = self.words.get(self.lowest) {
            if word != 0 {
                return Some(self.lowest * 64 + word.trailing_zeros() as usize);
            }
            self.lowest += 1;
        }
        None
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.lowest = usize::MAX;
    }
}

enum Raise {
    Done,
    Infeasible,
    OutOfBudget,
}

impl Search<'_> {
    fn run(&mut self) -> Outcome {
        let mut lower = Vec::with_capacity(self.csp.vars.len());
        for var in &self.csp.vars {
            match var.round_up(var.min) {
                Some(low) if low <= var.max => lower.push(low),
                _ => return Outcome::Unsat { buffer: None },
            }
        }
        let mut decisions = Decisions::new(self.csp.vars.len());
        for &ordering in &self.csp.orderings {
            decisions.push(ordering);
            match self.raise(&mut lower, &decisions) {
                Raise::Done => {}
                Raise::Infeasible => return Outcome::Unsat { buffer: None },
                Raise::OutOfBudget => return Outcome::GaveUp,
            }
        }
        let mut stack: Vec<Frame> = Vec::new();
        self.raised.clear();
        let mut culprit = None;
        loop {
            let Some(violated) = self.first_overlap(&lower) else {
                return if self.csp.admits(&lower) { Outcome::Sat(lower) } else { Outcome::GaveUp };
            };
            let buffer = self.csp.boxes[violated.0].buffer;
            stack.push(Frame {
                alternatives: self.alternatives(violated),
                next: 0,
                raised: self.raised.len(),
                decisions: decisions.made.len(),
                buffer,
            });
            // Take the next untried alternative, deepest first.
            let mut deepest = true;
            loop {
                // Conditions played no part so far, and they can only take answers away.
                let Some(frame) = stack.last_mut() else { return Outcome::Unsat { buffer: culprit } };
                if frame.next > 0 {
                    decisions.truncate(frame.decisions);
                    for (var, before) in self.raised.drain(frame.raised..).rev() {
                        lower[var] = before;
                    }
                    // What was apart when the deepest frame was made is so again, but for what is suspected.
                    if !deepest {
                        self.apart.forget();
                    }
                }
                let Some(&alternative) = frame.alternatives.get(frame.next) else {
                    culprit = culprit.or(Some(frame.buffer));
                    stack.pop();
                    deepest = false;
                    continue;
                };
                frame.next += 1;
                decisions.push(self.decision(alternative));
                match self.raise(&mut lower, &decisions) {
                    Raise::Done => break,
                    Raise::Infeasible => {}
                    Raise::OutOfBudget => return Outcome::GaveUp,
                }
            }
        }
    }

    fn first_overlap(&mut self, lower: &[i64]) -> Option<(usize, usize)> {
        let mut looked_at = 0;
        let sides = |of: usize| &self.sides[self.first_side[of]..self.first_side[of + 1]];
        let mut overlap = |pair: usize| {
            let (a, b) = self.pairs[pair];
            looked_at += 1;
            sides(a).iter().zip(sides(b)).all(|(a, b)| {
                let (x, y) = (a.start.value(lower), b.start.value(lower));
                x < y.saturating_add(b.len) && y < x.saturating_add(a.len)
            })
        };
        let Apart { before, suspects, .. } = &mut self.apart;
        let found = loop {
            let suspect = suspects.first();
            let pair = suspect.unwrap_or(*before);
            if pair == self.pairs.len() {
                break None;
            }
            if overlap(pair) {
                break Some(self.pairs[pair]);
            }
            match suspect {
                Some(pair) => suspects.remove(pair),
                None => *before += 1,
            }
        };
        self.steps = self.steps.saturating_sub(looked_at / 16);
        found
    }

    /// The ways to part a pair, outer dimensions first, the box that came later above the other first.
    fn alternatives(&self, (first, later): (usize, usize)) -> Vec<Alternative> {
        let (a, b) = (&self.csp.boxes[first], &self.csp.boxes[later]);
        let room = &self.csp.capacity[a.buffer];
        (0..a.len.len())
            .filter(|&d| a.len[d].saturating_add(b.len[d]) <= room[d])
            .flat_map(|dim| {
                [
                    Alternative { above: later, below: first, dim },
                    Alternative { above: first, below: later, dim },
                ]
            })
            .collect()
    }

    fn decision(&self, Alternative { above, below, dim }: Alternative) -> AtLeast {
        let (above, below) = (&self.csp.boxes[above], &self.csp.boxes[below]);
        let end = below.start[dim];
        AtLeast {
            left: above.start[dim],
            right: Term { var: end.var, offset: end.offset.saturating_add(below.len[dim]) },
        }
    }

    /// Raises the lower bounds to the least fixed point of `decisions`, of which all but the last hold.
    fn raise(&mut self, lower: &mut [i64], decisions: &Decisions) -> Raise {
        // First come, first served: the number of raises stays polynomial.
        let mut open: VecDeque<usize> = decisions.made.len().checked_sub(1).into_iter().collect();
        while let Some(number) = open.pop_front() {
            let decision = decisions.made[number];
            let need = decision.right.value(lower);
            if decision.left.value(lower) >= need {
                continue;
            }
            // Only raising the left side can help: the right one is as low as it can be.
            let Some(var) = decision.left.var else { return Raise::Infeasible };
            let Some(bound) = self.csp.vars[var].round_up(need.saturating_sub(decision.left.offset)) else {
                return Raise::Infeasible;
            };
            if bound > self.upper[var] || decision.right.var == Some(var) {
                return Raise::Infeasible;
            }
            if self.steps == 0 {
                return Raise::OutOfBudget;
            }
            self.steps -= 1;
            self.raised.push((var, std::mem::replace(&mut lower[var], bound)));
            self.apart.raised(var);
            open.extend(&decisions.above[var]);
        }
        Raise::Done
    }
}

/// Orderings that hold and decisions made so far, and those that a variable's value bears on.
struct Decisions {
    made: Vec<AtLeast>,
    /// By variable: numbers of those that have it on the right.
    above: Vec<Vec<usize>>,
}

impl Decisions {
    fn new(vars: usize) -> Decisions {
        Decisions { made: Vec::new(), above: vec![Vec::new(); vars] }
    }

    fn push(&mut self, decision: AtLeast) {
        if let Some(var) = decision.right.var {
            self.above[var].push(self.made.len());
        }
        self.made.push(decision);
    }

    /// Takes back all but the first `len`.
    fn truncate(&mut self, len: usize) {
        for decision in self.made.drain(len..).rev() {
            if let Some(var) = decision.right.var {
                self.above[var].pop();
            }
        }
    }
}
