//! Cheap choices by dynamic programming over the demands. A demand's cost is divided among its users, so that an option
//! that meets many demands at once is seen to be worth it; no choice has a circle. None of this bounds a cost: bounds are
//! [`super::cuts`].

use super::cycles::Components;
use super::enumerate::{NONE, OpenOption, Space};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Trees made while costs are shared anew.
const SHARINGS: usize = 8;

/// A choice for every demand that is cheap when every user of a demand is charged the same part of its cost. It has no
/// circle.
#[derive(Debug)]
pub(super) struct Tree {
    /// Open option, or [`NONE`] for demands out of reach.
    pub(super) chosen: Vec<u32>,
    /// In cycles. A float, since counting every time may double a cost at each level.
    pub(super) cost: Vec<f64>,
}

impl Tree {
    /// Needs come before users; within circles by Knuth's generalisation of Dijkstra's algorithm, where an option settles
    /// after all that it needs. With one share for each demand the choice is the cheapest.
    pub(super) fn of(open: &[Vec<OpenOption>], components: &Components, shares: &[u32]) -> Tree {
        let n = open.len();
        let mut tree = Tree { chosen: vec![NONE; n], cost: vec![f64::INFINITY; n] };
        let mut users: Vec<Vec<(usize, usize, f64)>> = vec![Vec::new(); n];
        let mut missing: Vec<Vec<usize>> = vec![Vec::new(); n];
        for members in components.members() {
            // Bits of floats that are not negative are in the order of the floats.
            let mut queue = BinaryHeap::new();
            for &d in &members {
                for (k, option) in open[d].iter().enumerate() {
                    let inside = |need: usize| components.of(need) == components.of(d);
                    let outside = option.needs.iter().filter(|&&need| !inside(need));
                    let part = |need: usize| tree.cost[need] / f64::from(shares[need]);
                    let total = outside.fold(option.cost as f64, |sum, &need| sum + part(need));
                    let left = option.needs.iter().filter(|&&need| inside(need));
                    let left = left.inspect(|&&need| users[need].push((d, k, total))).count();
                    if left == 0 && total.is_finite() {
                        queue.push(Reverse((total.to_bits(), d, k)));
                    }
                    missing[d].push(left);
                }
            }
            while let Some(Reverse((bits, d, k))) = queue.pop() {
                if tree.chosen[d] != NONE {
                    continue;
                }
                tree.chosen[d] = k as u32;
                tree.cost[d] = f64::from_bits(bits);
                for (user, option, outside) in std::mem::take(&mut users[d]) {
                    missing[user][option] -= 1;
                    if missing[user][option] == 0 && tree.chosen[user] == NONE && outside.is_finite() {
                        let inside = open[user][option]
                            .needs
                            .iter()
                            .filter(|&&need| components.of(need) == components.of(d));
                        let total = inside
                            .fold(outside, |sum, &need| sum + tree.cost[need] / f64::from(shares[need]));
                        queue.push(Reverse((total.to_bits(), user, option)));
                    }
                }
            }
        }
        tree
    }
}

impl Space {
    /// A cheap choice for the roots, and its cost. What a demand costs is divided among those who use it, or may use
    /// it, in the cheapest choice so far, until that brings nothing cheaper: an option that meets many demands at once
    /// may be dearer for each than one that meets it alone.
    pub(super) fn shared(&self) -> (Vec<u32>, u64) {
        let mut best = self.needed_by(&self.tree);
        let mut cost = self.cost(&best);
        let may = self.shares(|_| true, &vec![NONE; self.open.len()]);
        let mut shares = may;
        for _ in 0..SHARINGS {
            let next = self.needed_by(&Tree::of(&self.open, &self.components, &shares));
            let next_cost = self.cost(&next);
            let better = next_cost < cost;
            if better {
                (best, cost) = (next, next_cost);
            }
            let shares_of_best = self.shares(|d| best[d] != NONE, &best);
            if !better && shares == shares_of_best {
                break;
            }
            shares = shares_of_best;
        }
        (best, cost)
    }

    /// In how many parts the cost of each demand is divided: as many as it has users in a choice, and where it is not
    /// in the choice as many as there are demands `among` which it may be used.
    fn shares(&self, among: impl Fn(usize) -> bool, choice: &[u32]) -> Vec<u32> {
        let (mut users, mut may) = (vec![0u32; self.open.len()], vec![0u32; self.open.len()]);
        let mut last = vec![NONE; self.open.len()];
        for (user, options) in self.open.iter().enumerate().filter(|(user, _)| among(*user)) {
            for (k, option) in options.iter().enumerate() {
                for &need in &option.needs {
                    users[need] += u32::from(choice[user] == k as u32);
                    may[need] += u32::from(std::mem::replace(&mut last[need], user as u32) != user as u32);
                }
            }
        }
        for &root in &self.roots {
            users[root] += 1;
            may[root] += 1;
        }
        users.into_iter().zip(may).map(|(users, may)| if users > 0 { users } else { may.max(1) }).collect()
    }

    /// A tree's choice for what the roots need.
    fn needed_by(&self, tree: &Tree) -> Vec<u32> {
        let mut chosen = vec![NONE; self.open.len()];
        let mut todo = self.roots.clone();
        while let Some(d) = todo.pop() {
            if chosen[d] == NONE
                && let Some(option) = self.open[d].get(tree.chosen[d] as usize)
            {
                chosen[d] = tree.chosen[d];
                todo.extend(&option.needs);
            }
        }
        chosen
    }
}
