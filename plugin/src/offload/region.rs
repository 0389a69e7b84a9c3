//! Regions of a flow graph: which of their values are taken from the host, what they read and give, and
//! whether nothing leads out of them and back.

use super::flow::{Flow, FlowId, is_movement};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A set of values to compute on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Region {
    pub(crate) members: BTreeSet<FlowId>,
}

impl Region {
    pub(crate) fn of(members: impl IntoIterator<Item = FlowId>) -> Region {
        Region { members: members.into_iter().collect() }
    }

    pub(crate) fn contains(&self, id: FlowId) -> bool {
        self.members.contains(&id)
    }

    /// Members that the host no longer computes. The others only move or re-type what the region reads and are
    /// needed outside too: both sides make them, which is cheaper than handing them over.
    pub(crate) fn core(&self, flow: &Flow) -> BTreeSet<FlowId> {
        let mut remade: BTreeSet<FlowId> = BTreeSet::new();
        for &id in &self.members {
            let node = flow.node(id);
            let moves = flow.op(id).is_some_and(is_movement);
            let from_outside = |&o: &FlowId| {
                flow.node(o).duplicable || remade.contains(&o) || (!self.contains(o) && flow.is_exported(o))
            };
            if moves && self.used_outside(flow, id) && node.operands.iter().all(from_outside) {
                remade.insert(id);
            }
        }
        self.members.iter().copied().filter(|id| !remade.contains(id)).collect()
    }

    fn used_outside(&self, flow: &Flow, id: FlowId) -> bool {
        id == flow.root || flow.node(id).users.iter().any(|&u| !self.contains(u))
    }

    /// Values that others need from it, in ascending order.
    pub(crate) fn outputs(&self, flow: &Flow) -> Vec<FlowId> {
        self.core(flow).into_iter().filter(|&id| self.used_outside(flow, id)).collect()
    }
}

/// The flow graph with every region taken so far drawn together into one node: regions that are each convex
/// could still wait for each other in a circle.
#[derive(Debug)]
pub(crate) struct Contracted<'f> {
    flow: &'f Flow,
    /// Number of the taken region that holds a value.
    group: Vec<Option<u32>>,
    groups: Vec<Vec<FlowId>>,
    /// Topological position of every value; a taken region's values share one.
    position: Vec<u32>,
}

impl<'f> Contracted<'f> {
    pub(crate) fn new(flow: &'f Flow) -> Contracted<'f> {
        Contracted {
            flow,
            group: vec![None; flow.nodes.len()],
            groups: Vec::new(),
            position: (0..flow.nodes.len() as u32).collect(),
        }
    }

    pub(crate) fn is_taken(&self, id: FlowId) -> bool {
        self.group[id.index()].is_some()
    }

    /// Draws a convex set together.
    pub(crate) fn take(&mut self, core: &BTreeSet<FlowId>) {
        let number = self.groups.len() as u32;
        for id in core {
            self.group[id.index()] = Some(number);
        }
        self.groups.push(core.iter().copied().collect());
        self.sort();
    }

    /// Values on paths that leave `core` and come back to it, without itself; a taken region on such a path
    /// counts as a whole.
    pub(crate) fn between(&self, core: &BTreeSet<FlowId>) -> BTreeSet<FlowId> {
        let positions = core.iter().map(|id| self.position[id.index()]);
        let (Some(low), Some(high)) = (positions.clone().min(), positions.max()) else {
            return BTreeSet::new();
        };
        let after = self.reach(core, |id| &self.flow.node(id).users, |p| p <= high);
        let before = self.reach(core, |id| &self.flow.node(id).operands, |p| p >= low);
        after.intersection(&before).copied().filter(|id| !core.contains(id)).collect()
    }

    /// What `next` leads to from `core`, within the positions that `inside` allows.
    fn reach<'a>(
        &'a self,
        core: &BTreeSet<FlowId>,
        next: impl Fn(FlowId) -> &'a [FlowId],
        inside: impl Fn(u32) -> bool,
    ) -> BTreeSet<FlowId> {
        let mut seen = BTreeSet::new();
        let mut pending: Vec<FlowId> = core.iter().flat_map(|&id| next(id).iter().copied()).collect();
        while let Some(id) = pending.pop() {
            if !self.flow.node(id).live || !inside(self.position[id.index()]) || !seen.insert(id) {
                continue;
            }
            match self.group[id.index()] {
                Some(group) => {
                    for &member in &self.groups[group as usize] {
                        seen.insert(member);
                        pending.extend_from_slice(next(member));
                    }
                }
                None => pending.extend_from_slice(next(id)),
            }
        }
        seen
    }

    /// Topological order of the contracted graph, the original order where it is free.
    fn sort(&mut self) {
        let flow = self.flow;
        // A region is represented by its first value.
        let head = |id: FlowId| self.group[id.index()].map_or(id, |g| self.groups[g as usize][0]);
        let mut waiting = vec![0usize; flow.nodes.len()];
        for id in flow.ids() {
            for &operand in &flow.node(id).operands {
                if head(operand) != head(id) {
                    waiting[head(id).index()] += 1;
                }
            }
        }
        let mut ready: BinaryHeap<Reverse<FlowId>> =
            flow.ids().filter(|&id| head(id) == id && waiting[id.index()] == 0).map(Reverse).collect();
        // Dead values have no users noted, so positions are handed out along operands of all values.
        let mut users: Vec<Vec<FlowId>> = vec![Vec::new(); flow.nodes.len()];
        for id in flow.ids() {
            for &operand in &flow.node(id).operands {
                if head(operand) != head(id) {
                    users[head(operand).index()].push(head(id));
                }
            }
        }
        let mut position = vec![u32::MAX; flow.nodes.len()];
        let mut next = 0;
        while let Some(Reverse(id)) = ready.pop() {
            position[id.index()] = next;
            next += 1;
            for &user in &users[id.index()] {
                waiting[user.index()] -= 1;
                if waiting[user.index()] == 0 {
                    ready.push(Reverse(user));
                }
            }
        }
        for id in flow.ids() {
            self.position[id.index()] = position[head(id).index()];
        }
    }
}
