//! Circles of demands: a value may be copied from one buffer to another and back, so demands may need each other. Circles
//! lie within strongly connected components, and an option that cannot be met without its own demand is dropped.

use super::enumerate::OpenOption;

/// Components up to this size are searched for options that can only close a circle.
const SEARCHED: usize = 128;

/// The strongly connected components of a demand graph.
#[derive(Debug)]
pub(super) struct Components {
    of: Vec<u32>,
    size: Vec<u32>,
}

impl Components {
    /// Tarjan's algorithm, without recursion.
    pub(super) fn of_demands(open: &[Vec<OpenOption>]) -> Components {
        let n = open.len();
        let needs: Vec<Vec<u32>> = open
            .iter()
            .map(|options| {
                let mut all: Vec<u32> =
                    options.iter().flat_map(|o| o.needs.iter().map(|&need| need as u32)).collect();
                all.sort_unstable();
                all.dedup();
                all
            })
            .collect();
        const UNSEEN: u32 = u32::MAX;
        let mut found = Components { of: vec![UNSEEN; n], size: Vec::new() };
        let (mut index, mut low) = (vec![UNSEEN; n], vec![0u32; n]);
        let (mut next, mut stack) = (0u32, Vec::new());
        for start in 0..n {
            if index[start] != UNSEEN {
                continue;
            }
            let mut calls: Vec<(usize, usize)> = vec![(start, 0)];
            while let Some((d, at)) = calls.pop() {
                if at == 0 {
                    index[d] = next;
                    low[d] = next;
                    next += 1;
                    stack.push(d);
                }
                if let Some(&need) = needs[d].get(at) {
                    let need = need as usize;
                    calls.push((d, at + 1));
                    if index[need] == UNSEEN {
                        calls.push((need, 0));
                    } else if found.of[need] == UNSEEN {
                        low[d] = low[d].min(index[need]);
                    }
                    continue;
                }
                if low[d] == index[d] {
                    let component = found.size.len() as u32;
                    let mut size = 0;
                    while let Some(member) = stack.pop() {
                        found.of[member] = component;
                        size += 1;
                        if member == d {
                            break;
                        }
                    }
                    found.size.push(size);
                }
                if let Some(&(parent, _)) = calls.last() {
                    low[parent] = low[parent].min(low[d]);
                }
            }
        }
        found
    }

    pub(super) fn of(&self, demand: usize) -> u32 {
        self.of[demand]
    }

    pub(super) fn has_circles(&self, demand: usize) -> bool {
        self.size[self.of[demand] as usize] > 1
    }

    /// The demands of each component, in order; needs before users.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members: Vec<Vec<usize>> =
            self.size.iter().map(|&size| Vec::with_capacity(size as usize)).collect();
        for (d, &component) in self.of.iter().enumerate() {
            members[component as usize].push(d);
        }
        members
    }

    /// Drops the options some need of which cannot be met without their own demand.
    pub(super) fn drop_circular(&self, open: &mut [Vec<OpenOption>]) {
        for members in self.members().iter().filter(|m| (2..=SEARCHED).contains(&m.len())) {
            for &d in members {
                let inside = |need: usize| self.of[need] == self.of[d];
                if !open[d].iter().any(|o| o.needs.iter().any(|&need| inside(need))) {
                    continue;
                }
                let met = self.met_without(d, members, open);
                let position = |need: usize| members.binary_search(&need).unwrap_or(usize::MAX);
                open[d].retain(|o| o.needs.iter().all(|&need| !inside(need) || met[position(need)]));
            }
        }
    }

    /// Which members of a component can be met when `without` cannot.
    fn met_without(&self, without: usize, members: &[usize], open: &[Vec<OpenOption>]) -> Vec<bool> {
        let mut met = vec![false; members.len()];
        let position = |d: usize| members.binary_search(&d).ok();
        loop {
            let mut changed = false;
            for (at, &d) in members.iter().enumerate().filter(|(_, d)| **d != without) {
                if met[at] {
                    continue;
                }
                let can = |o: &OpenOption| {
                    o.needs
                        .iter()
                        .all(|&need| self.of[need] != self.of[d] || position(need).is_some_and(|p| met[p]))
                };
                if open[d].iter().any(can) {
                    met[at] = true;
                    changed = true;
                }
            }
            if !changed {
                return met;
            }
        }
    }
}
