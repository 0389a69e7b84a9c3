//! A lower bound of what completes a partial choice, by cuts. A cut is a set of demands with a root in it. Every complete
//! choice has no circles, so somewhere it leaves the set: it chooses for a demand in the set an option with no need in
//! it, an entry. A cut charges all of its entries by the same amount, and no option is charged more than it costs:
//!
//! own cost of a choice = charges of the cuts it enters, each as often as it is entered
//!                      + what is left of the costs of its options,
//!
//! and every cut is entered at least once. So the sum of the charges bounds every choice from below, and what is left of
//! the options decided so far comes on top. Circles of demands and shared demands are both accounted for. The charges are
//! found by dual ascent, as for Steiner trees (Wong, 1984), root after root.

use super::enumerate::Space;

/// Demands visited while cuts are sought, for every open option. What ends the search makes the bound smaller only.
const VISITS: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Cuts {
    bound: u64,
    /// Per demand and open option what no cut has charged of its cost.
    left: Vec<Vec<u64>>,
}

/// To which of its needs a cut goes on, where an option has several that are not free.
#[derive(Clone, Copy, Debug)]
enum Preference {
    /// What the tree makes of the least cost.
    Cheapest,
    Dearest,
    /// What was found last when the demands were expanded.
    Last,
}

impl Cuts {
    /// The best of several ascents: none is the best on all graphs.
    pub(super) fn new(space: &Space) -> Cuts {
        let each = [Preference::Cheapest, Preference::Dearest, Preference::Last];
        let cuts = each.into_iter().map(|preference| Ascent::new(space, preference).run());
        cuts.reduce(|a, b| if b.bound > a.bound { b } else { a }).unwrap_or_default()
    }

    /// Of every complete choice, in cycles.
    pub(super) fn bound(&self) -> u64 {
        self.bound
    }

    /// What choosing the k-th open option of a demand adds to the bound.
    pub(super) fn left(&self, demand: usize, k: usize) -> u64 {
        self.left[demand][k]
    }
}

struct Ascent<'a> {
    space: &'a Space,
    preference: Preference,
    cuts: Cuts,
    /// Demands that options with nothing left meet.
    free: Vec<bool>,
    /// Per open option how many of its needs are not free.
    missing: Vec<Vec<u32>>,
    /// Per demand the open options that need it.
    users: Vec<Vec<(u32, u32)>>,
    /// The round in which a demand was last put into a cut.
    within: Vec<u32>,
    round: u32,
    visits: usize,
}

impl<'a> Ascent<'a> {
    fn new(space: &'a Space, preference: Preference) -> Ascent<'a> {
        let n = space.open.len();
        let mut users: Vec<Vec<(u32, u32)>> = vec![Vec::new(); n];
        for (d, options) in space.open.iter().enumerate() {
            for (k, option) in options.iter().enumerate() {
                option.needs.iter().for_each(|&need| users[need].push((d as u32, k as u32)));
            }
        }
        let left: Vec<Vec<u64>> = space.open.iter().map(|o| o.iter().map(|o| o.cost).collect()).collect();
        let missing = space.open.iter().map(|o| o.iter().map(|o| o.needs.len() as u32).collect()).collect();
        let visits = VISITS * left.iter().map(Vec::len).sum::<usize>();
        let mut ascent = Ascent {
            space,
            preference,
            cuts: Cuts { bound: 0, left },
            free: vec![false; n],
            missing,
            users,
            within: vec![0; n],
            round: 0,
            visits,
        };
        for d in 0..n {
            for k in 0..space.open[d].len() {
                ascent.settle(d, k);
            }
        }
        ascent
    }

    fn run(mut self) -> Cuts {
        for &root in &self.space.roots {
            while !self.free[root] && self.visits > 0 {
                if !self.cut(root) {
                    break;
                }
            }
        }
        self.cuts
    }

    /// Notes that an option may have nothing left, and which demands are free for that.
    fn settle(&mut self, demand: usize, k: usize) {
        let mut todo = vec![(demand as u32, k as u32)];
        while let Some((d, k)) = todo.pop() {
            let (d, k) = (d as usize, k as usize);
            if self.cuts.left[d][k] > 0
                || self.missing[d][k] > 0
                || std::mem::replace(&mut self.free[d], true)
            {
                continue;
            }
            for &(user, option) in &self.users[d] {
                let missing = &mut self.missing[user as usize][option as usize];
                *missing -= 1;
                if *missing == 0 {
                    todo.push((user, option));
                }
            }
        }
    }

    /// Charges the entries of one cut; `false` when it has none that can be charged.
    fn cut(&mut self, root: usize) -> bool {
        self.round += 1;
        let round = self.round;
        self.within[root] = round;
        let mut cut = vec![root];
        let mut next = 0;
        while next < cut.len() {
            let d = cut[next];
            next += 1;
            self.visits = self.visits.saturating_sub(1);
            for (k, option) in self.space.open[d].iter().enumerate() {
                // What has nothing left must not be an entry: the cut goes on to one of its needs.
                if self.cuts.left[d][k] > 0 || option.needs.iter().any(|&need| self.within[need] == round) {
                    continue;
                }
                let mut needs = option.needs.iter().copied().filter(|&need| !self.free[need]);
                let by_cost =
                    |a: &usize, b: &usize| self.space.tree.cost[*a].total_cmp(&self.space.tree.cost[*b]);
                let need = match self.preference {
                    Preference::Cheapest => needs.min_by(by_cost),
                    Preference::Dearest => needs.max_by(by_cost),
                    Preference::Last => needs.next_back(),
                };
                if let Some(need) = need {
                    self.within[need] = round;
                    cut.push(need);
                }
            }
        }
        let mut entries = Vec::new();
        for &d in &cut {
            for (k, option) in self.space.open[d].iter().enumerate() {
                if option.needs.iter().all(|&need| self.within[need] != round) {
                    entries.push((d, k));
                }
            }
        }
        let charge = entries.iter().map(|&(d, k)| self.cuts.left[d][k]).min().unwrap_or(0);
        if charge == 0 {
            return false;
        }
        self.cuts.bound = self.cuts.bound.saturating_add(charge);
        for (d, k) in entries {
            self.cuts.left[d][k] -= charge;
            if self.cuts.left[d][k] == 0 {
                self.settle(d, k);
            }
        }
        true
    }
}
