//! Growing a region from a seed, and the smaller regions to try when the compiler refuses it.

use super::flow::{Flow, FlowId, is_movement};
use super::region::{Contracted, Region};
use act_hlo::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operators in a region.
    pub operators: usize,
    /// Contractions in a region.
    pub contractions: usize,
    /// Regions offered to the compiler for one contraction.
    pub attempts: usize,
    /// Regions offered for one seed that is none, beside the seed by itself.
    pub halvings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Room for one attention block or two layers; a compiler's search grows much faster than the region.
        Limits { operators: 96, contractions: 4, attempts: 24, halvings: 4 }
    }
}

/// What regions may grow over.
pub(crate) struct Ground<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) contracted: &'a Contracted<'a>,
    /// Values that no region may hold although they are expressible.
    pub(crate) ruled_out: &'a BTreeSet<FlowId>,
    pub(crate) limits: Limits,
}

impl Ground<'_> {
    pub(crate) fn allows(&self, id: FlowId) -> bool {
        let node = self.flow.node(id);
        node.live
            && node.takable.is_ok()
            && !node.duplicable
            && !self.contracted.is_taken(id)
            && !self.ruled_out.contains(&id)
    }

    fn is_contraction(&self, id: FlowId) -> bool {
        matches!(self.flow.op(id), Some(Op::Dot(_)))
    }

    /// The largest region around `seed` within `allowed`: neighbours join, nearest first, as long as the region
    /// stays convex and within the limits.
    fn grow(&self, seed: FlowId, contractions: usize, allowed: &dyn Fn(FlowId) -> bool) -> Region {
        let mut region = Region::of([seed]);
        let mut distance = BTreeMap::from([(seed, 0u32)]);
        loop {
            let mut border: BTreeSet<(u32, FlowId)> = BTreeSet::new();
            for &id in &region.members {
                let node = self.flow.node(id);
                let next = distance.get(&id).map_or(0, |d| d + 1);
                for &n in node.operands.iter().chain(&node.users) {
                    if !region.contains(n) && allowed(n) && self.allows(n) {
                        let d = *distance.entry(n).or_insert(next);
                        border.insert((d, n));
                    }
                }
            }
            let mut grown = false;
            for (d, id) in border {
                if let Some(larger) = self.join(&region, id, contractions, allowed) {
                    larger.members.iter().for_each(|&m| {
                        distance.entry(m).or_insert(d);
                    });
                    region = larger;
                    grown = true;
                }
            }
            if !grown {
                return self.trim(region, seed);
            }
        }
    }

    /// The region with `id` and all that has to come along; `None` when that is not possible.
    fn join(
        &self,
        region: &Region,
        id: FlowId,
        contractions: usize,
        allowed: &dyn Fn(FlowId) -> bool,
    ) -> Option<Region> {
        if region.contains(id) {
            return None;
        }
        let mut larger = region.clone();
        larger.members.insert(id);
        self.close(&mut larger, contractions, allowed).then_some(larger)
    }

    /// Makes a region convex by taking in what lies between its members; false when that is not possible.
    fn close(&self, region: &mut Region, contractions: usize, allowed: &dyn Fn(FlowId) -> bool) -> bool {
        loop {
            let dots = region.members.iter().filter(|&&m| self.is_contraction(m)).count();
            if region.members.len() > self.limits.operators || dots > contractions {
                return false;
            }
            let between = self.contracted.between(&region.core(self.flow));
            let missing: Vec<FlowId> = between
                .into_iter()
                .filter(|&id| !region.contains(id) && !self.flow.node(id).duplicable)
                .collect();
            if missing.is_empty() {
                // What is left between is remade by the host from values that the region gives: a path that
                // leaves and comes back.
                return self.is_convex(region);
            }
            if !missing.iter().all(|&id| allowed(id) && self.allows(id)) {
                return false;
            }
            region.members.extend(missing);
        }
    }

    /// Whether no path leaves what the region takes and comes back to it.
    pub(crate) fn is_convex(&self, region: &Region) -> bool {
        self.contracted.between(&region.core(self.flow)).is_empty()
    }

    /// Drops results that only repeat or move what the region would give otherwise: the host makes them from
    /// less.
    fn trim(&self, mut region: Region, seed: FlowId) -> Region {
        loop {
            let expands = |&id: &FlowId| {
                id != seed
                    && self.flow.op(id).is_some_and(|op| is_movement(op) && !matches!(op, Op::Convert))
                    && !self.flow.node(id).users.iter().any(|&u| region.contains(u))
            };
            let Some(id) = region.members.iter().copied().rev().find(expands) else { return region };
            region.members.remove(&id);
        }
    }

    /// Regions around `seed` to offer one after another, the largest first. All are convex and hold the seed.
    pub(crate) fn candidates(&self, seed: FlowId) -> Vec<Region> {
        let mut found: Vec<Region> = Vec::new();
        let limit = self.limits.attempts;
        let mut offer = |region: Region| {
            if found.len() < limit && self.is_convex(&region) && !found.contains(&region) {
                found.push(region);
            }
        };
        for contractions in (1..=self.limits.contractions).rev() {
            offer(self.grow(seed, contractions, &|_| true));
        }
        let alone = self.grow(seed, 1, &|_| true);
        // What the seed needs and what needs the seed; the rest hangs on one of the two.
        let upstream = self.related(seed, &alone, |id| &self.flow.node(id).operands);
        let downstream = self.related(seed, &alone, |id| &self.flow.node(id).users);
        let up: Vec<FlowId> = upstream.iter().rev().copied().collect();
        let down: Vec<FlowId> = downstream.iter().copied().collect();
        // Cut values take along what lies beyond them.
        let cut = |kept_up: usize, kept_down: usize| {
            let excluded: BTreeSet<FlowId> = up[kept_up.min(up.len())..]
                .iter()
                .chain(&down[kept_down.min(down.len())..])
                .copied()
                .collect();
            self.grow(seed, 1, &|id| alone.contains(id) && !excluded.contains(&id))
        };
        for kept in (0..down.len()).rev() {
            offer(cut(up.len(), kept));
        }
        for kept in (0..up.len()).rev() {
            offer(cut(kept, down.len()));
        }
        for kept in (0..up.len()).rev() {
            offer(cut(kept, 0));
        }
        // Whatever else is cut off for want of attempts, the smallest are always tried: with what is made of the seed,
        // with what only moves and re-types its operands and its result, with the operands' alone, and by itself. XLA
        // widens operands for its own code, and to many a target only the narrow product is known.
        let moves = |&id: &FlowId| self.flow.op(id).is_some_and(is_movement);
        let smallest = [
            cut(0, down.len()),
            self.grow(seed, 1, &|id| alone.contains(id) && moves(&id)),
            self.grow(seed, 1, &|id| upstream.contains(&id) && moves(&id)),
            Region::of([seed]),
        ];
        let mut smallest: Vec<Region> =
            smallest.into_iter().filter(|region| self.is_convex(region)).collect();
        smallest.dedup();
        found.truncate(limit.saturating_sub(smallest.len()));
        smallest.retain(|region| !found.contains(region));
        found.extend(smallest);
        found
    }

    /// The largest region without a contraction around `seed`.
    pub(crate) fn without_contraction(&self, seed: FlowId) -> Region {
        self.grow(seed, 0, &|_| true)
    }

    /// Regions without a contraction around `seed` that hold nothing else but `kept` values: as many as there are, then
    /// half as many each time, the seed by itself last. All are convex.
    pub(crate) fn halves(&self, seed: FlowId, kept: &BTreeSet<FlowId>) -> Vec<Region> {
        let mut found: Vec<Region> = Vec::new();
        let operators =
            (0..self.limits.halvings).map(|k| (kept.len() >> k).min(self.limits.operators).max(1));
        for operators in operators.chain([1]) {
            let fewer = Ground { limits: Limits { operators, ..self.limits }, ..*self };
            let region = fewer.grow(seed, 0, &|id| kept.contains(&id));
            if !found.contains(&region) {
                found.push(region);
            }
        }
        found
    }

    /// Members of `region` that `next` leads to from `seed`, in ascending order.
    fn related<'b>(
        &'b self,
        seed: FlowId,
        region: &Region,
        next: impl Fn(FlowId) -> &'b [FlowId],
    ) -> BTreeSet<FlowId> {
        let mut found = BTreeSet::new();
        let mut pending = next(seed).to_vec();
        while let Some(id) = pending.pop() {
            if region.contains(id) && found.insert(id) {
                pending.extend_from_slice(next(id));
            }
        }
        found
    }
}
