//! Which loops may run on several threads. The text permits it by an attribute; here it is proved: an iteration reads on
//! chip only what it wrote itself or what the loop leaves alone, writes on chip at places that do not depend on the
//! iteration, and in main memory touches nothing that another iteration writes. Then every thread can have a machine of
//! its own, and the thread that runs the last iteration ends with the state that one thread would have left.

use super::address;
use super::kernel::{Item, Kernel, Loop};
use super::place::{Place, Placement, Region, Start, reach};
use act_isa::{Affine, LoopId};

/// Bytes that a loop must move, over all iterations, to be worth waking threads for.
const MIN_BYTES: u64 = 1 << 18;

/// A loop that is shared out.
#[derive(Clone, Debug)]
pub(crate) struct Parallel {
    pub(crate) iv: LoopId,
    pub(crate) trip: u64,
    /// Loops around it, outermost first.
    pub(crate) around: Vec<LoopId>,
    /// What iterations read on chip from before the loop.
    pub(crate) live_in: Vec<LiveIn>,
}

/// Part of a buffer: first and end position per access dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveIn {
    pub(crate) buffer: usize,
    pub(crate) dims: Vec<(u64, u64)>,
}

/// The outermost loops that are permitted, proved and worth it.
pub(crate) fn parallel_loops(kernel: &Kernel, placement: &Placement) -> Vec<Parallel> {
    let mut found = Vec::new();
    let finder = Finder { kernel, placement, executions: kernel.executions() };
    finder.search(&kernel.body, &mut Vec::new(), &mut found);
    found
}

struct Finder<'a> {
    kernel: &'a Kernel,
    placement: &'a Placement,
    executions: Vec<u64>,
}

/// A box that was written in the current iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fact {
    buffer: usize,
    start: Vec<Affine>,
    len: Vec<i64>,
}

/// A box of a buffer as ranges over all iterations.
type Ranges = Vec<(i128, i128)>;

impl Finder<'_> {
    fn search(&self, items: &[Item], around: &mut Vec<LoopId>, found: &mut Vec<Parallel>) {
        for item in items {
            let Item::Loop(inner) = item else { continue };
            let trip = self.trip(inner.iv);
            let worth = || self.bytes(&inner.body) >= MIN_BYTES;
            if inner.parallel
                && trip > 1
                && worth()
                && let Some(live_in) = self.independent(inner)
            {
                found.push(Parallel { iv: inner.iv, trip, around: around.clone(), live_in });
            } else {
                around.push(inner.iv);
                self.search(&inner.body, around, found);
                around.pop();
            }
        }
    }

    fn trip(&self, iv: LoopId) -> u64 {
        address::trip(&self.kernel.trips, iv)
    }

    fn range(&self, affine: &Affine) -> (i128, i128) {
        address::range(affine, &self.kernel.trips)
    }

    fn bytes(&self, items: &[Item]) -> u64 {
        let mut sites = Vec::new();
        collect(items, &mut sites, &mut Vec::new());
        sites.iter().fold(0, |sum, &site| {
            let per_run = self.placement.sites[site].places.iter().map(|place| match &place.region {
                Region::OnChip { len, .. } => {
                    len.iter().fold(1u64, |n, &l| n.saturating_mul(l.max(0) as u64))
                }
                Region::Hbm { dims, width, .. } => {
                    dims.iter().fold(*width as u64, |n, &(l, _)| n.saturating_mul(l.max(0) as u64))
                }
            });
            sum.saturating_add(per_run.sum::<u64>().saturating_mul(self.executions[site]))
        })
    }

    /// What the iterations read from before the loop, if they are independent.
    fn independent(&self, outer: &Loop) -> Option<Vec<LiveIn>> {
        let (mut sites, mut inner) = (Vec::new(), Vec::new());
        collect(&outer.body, &mut sites, &mut inner);
        let places: Vec<&Place> = sites.iter().flat_map(|&s| &self.placement.sites[s].places).collect();
        let affine = |start: &[Start]| {
            let each = start.iter().map(|s| match s {
                Start::Affine(a) => Some(a.clone()),
                Start::Varying(_) => None,
            });
            each.collect::<Option<Vec<Affine>>>()
        };
        let (mut on_chip_writes, mut hbm_reads, mut hbm_writes) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            match &place.region {
                Region::OnChip { buffer, start, len } => {
                    let start = affine(start)?;
                    if place.write {
                        if start.iter().any(|s| coefficient(s, outer.iv) != 0) {
                            return None;
                        }
                        on_chip_writes.push((*buffer, self.ranges(&start, len)));
                    }
                }
                Region::Hbm { segment, start, dims, width } => {
                    let window = Window { segment: *segment, start, dims, width: *width };
                    if place.write { hbm_writes.push(window) } else { hbm_reads.push(window) }
                }
            }
        }
        for (k, write) in hbm_writes.iter().enumerate() {
            let others = hbm_writes[k..].iter();
            let apart = others.clone().all(|other| self.apart(write, other, outer.iv, &inner))
                && hbm_reads.iter().all(|read| self.never_meet(write, read));
            if !apart {
                return None;
            }
        }
        let mut uncovered = Vec::new();
        self.cover(&outer.body, &mut Vec::new(), &mut uncovered);
        let mut live_in = Vec::new();
        for fact in uncovered {
            let ranges = self.ranges(&fact.start, &fact.len);
            let untouched = on_chip_writes.iter().all(|(buffer, written)| {
                *buffer != fact.buffer || ranges.iter().zip(written).any(|(a, b)| a.1 <= b.0 || b.1 <= a.0)
            });
            if !untouched {
                return None;
            }
            let dims =
                ranges.iter().map(|&(low, high)| Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?)));
            let part = LiveIn { buffer: fact.buffer, dims: dims.collect::<Option<_>>()? };
            if !live_in.contains(&part) {
                live_in.push(part);
            }
        }
        Some(live_in)
    }

    fn ranges(&self, start: &[Affine], len: &[i64]) -> Ranges {
        let each = start.iter().zip(len).map(|(start, &len)| {
            let (low, high) = self.range(start);
            (low, high + i128::from(len))
        });
        each.collect()
    }

    /// Walks one iteration in order. `facts` grows by what is written, `uncovered` by what is read otherwise.
    fn cover(&self, items: &[Item], facts: &mut Vec<Fact>, uncovered: &mut Vec<Fact>) {
        for item in items {
            match item {
                Item::Fence => {}
                Item::Site(site) => {
                    let places = &self.placement.sites[*site].places;
                    for place in places.iter().filter(|p| !p.write) {
                        if let Some(read) = as_fact(place)
                            && !facts.iter().any(|fact| self.covers(fact, &read))
                        {
                            uncovered.push(read);
                        }
                    }
                    for fact in places.iter().filter(|p| p.write).filter_map(as_fact) {
                        if !facts.contains(&fact) {
                            facts.push(fact);
                        }
                    }
                }
                Item::Loop(inner) => {
                    let before = facts.len();
                    self.cover(&inner.body, facts, uncovered);
                    let trip = self.trip(inner.iv);
                    let new = facts.split_off(before);
                    if trip > 0 {
                        facts.extend(new.into_iter().filter_map(|fact| spread(fact, inner.iv, trip)));
                    }
                }
            }
        }
    }

    fn covers(&self, fact: &Fact, read: &Fact) -> bool {
        fact.buffer == read.buffer
            && fact.start.iter().zip(&fact.len).zip(read.start.iter().zip(&read.len)).all(
                |((start, &len), (at, &wanted))| {
                    let Some(difference) = address::difference(at, start) else { return false };
                    let (low, high) = self.range(&difference);
                    low >= 0 && high + i128::from(wanted) <= i128::from(len)
                },
            )
    }

    /// Whether the two windows share no byte, in whatever iterations of any loop.
    fn never_meet(&self, a: &Window<'_>, b: &Window<'_>) -> bool {
        let span = |w: &Window<'_>| {
            let (first, end) = reach(w.dims, w.width)?;
            let (low, high) = self.range(w.start);
            Some((low + first, high + end))
        };
        a.segment != b.segment
            || match (span(a), span(b)) {
                (Some(a), Some(b)) => a.1 <= b.0 || b.1 <= a.0,
                _ => true,
            }
    }

    /// Whether the two windows share no byte when `iv` differs and the loops around it do not.
    fn apart(&self, a: &Window<'_>, b: &Window<'_>, iv: LoopId, inner: &[LoopId]) -> bool {
        self.never_meet(a, b) || self.shifted_apart(a, b, iv, inner).unwrap_or(false)
    }

    /// Both windows move by the same step per iteration. Their small dimensions must fit within a step; the large ones
    /// must be multiples of one pitch that no number of steps reaches.
    fn shifted_apart(&self, a: &Window<'_>, b: &Window<'_>, iv: LoopId, inner: &[LoopId]) -> Option<bool> {
        let step = coefficient(a.start, iv);
        if step == 0 || step != coefficient(b.start, iv) {
            return None;
        }
        let step = i128::from(step.unsigned_abs());
        let travel = step.checked_mul(i128::from(self.trip(iv)))?;
        // What changes while `iv` stands still.
        let dims = |w: &Window<'_>| {
            let mut dims: Vec<(i128, i128)> =
                w.dims.iter().map(|&(len, stride)| (i128::from(len), i128::from(stride))).collect();
            for &loop_iv in inner {
                dims.push((i128::from(self.trip(loop_iv)), i128::from(coefficient(w.start, loop_iv))));
            }
            dims.retain(|&(len, stride)| len > 1 && stride != 0);
            dims
        };
        let (own, other) = (dims(a), dims(b));
        let pitch = own.iter().chain(&other).map(|d| d.1.abs()).filter(|&s| s >= travel).min();
        let small = |dims: &[(i128, i128)], width: i64| {
            let (mut low, mut high) = (0, i128::from(width));
            for &(len, stride) in dims {
                match pitch {
                    Some(pitch) if stride.abs() >= pitch => {
                        if stride % pitch != 0 {
                            return None;
                        }
                    }
                    _ => {
                        let far = (len - 1).checked_mul(stride)?;
                        low += far.min(0);
                        high += far.max(0);
                    }
                }
            }
            Some((low, high))
        };
        let (a_small, b_small) = (small(&own, a.width)?, small(&other, b.width)?);
        let constant = |w: &Window<'_>| {
            let mut rest = w.start.clone();
            rest.ivs.retain(|(v, _)| *v != iv && !inner.contains(v));
            rest
        };
        let between = address::difference(&constant(b), &constant(a))?;
        if !between.ivs.is_empty() {
            return None;
        }
        let mut between = i128::from(between.c0);
        if let Some(pitch) = pitch {
            between = between.rem_euclid(pitch);
            if between > pitch / 2 {
                between -= pitch;
            }
        }
        let low = a_small.0.min(b_small.0 + between);
        let high = a_small.1.max(b_small.1 + between);
        let fits = high - low <= step && pitch.is_none_or(|pitch| high - low + travel - step <= pitch);
        Some(fits)
    }
}

struct Window<'a> {
    segment: usize,
    start: &'a Affine,
    dims: &'a [(i64, i64)],
    width: i64,
}

fn as_fact(place: &Place) -> Option<Fact> {
    let Region::OnChip { buffer, start, len } = &place.region else { return None };
    let start = start.iter().map(|s| match s {
        Start::Affine(a) => Some(a.clone()),
        Start::Varying(_) => None,
    });
    Some(Fact { buffer: *buffer, start: start.collect::<Option<_>>()?, len: len.clone() })
}

/// What is written once the whole loop is done, where that is one box.
fn spread(mut fact: Fact, iv: LoopId, trip: u64) -> Option<Fact> {
    let mut moved = false;
    for (start, len) in fact.start.iter_mut().zip(&mut fact.len) {
        let step = coefficient(start, iv);
        if step == 0 {
            continue;
        }
        // Gaps, or a diagonal.
        if moved || i128::from(step.unsigned_abs()) > i128::from(*len) {
            return None;
        }
        moved = true;
        let far = step.checked_mul(i64::try_from(trip - 1).ok()?)?;
        start.ivs.retain(|(v, _)| *v != iv);
        start.c0 = start.c0.checked_add(far.min(0))?;
        *len = len.checked_add(i64::try_from(far.unsigned_abs()).ok()?)?;
    }
    Some(fact)
}

fn coefficient(affine: &Affine, iv: LoopId) -> i64 {
    affine.ivs.iter().find(|(v, _)| *v == iv).map_or(0, |t| t.1)
}

/// Sites and loops inside.
fn collect(items: &[Item], sites: &mut Vec<usize>, loops: &mut Vec<LoopId>) {
    for item in items {
        match item {
            Item::Site(site) => sites.push(*site),
            Item::Loop(inner) => {
                loops.push(inner.iv);
                collect(&inner.body, sites, loops);
            }
            Item::Fence => {}
        }
    }
}
