//! The rules that every execution of an instruction keeps: attribute ranges, requirements, bounds, alignment and access
//! rights. Decides them for all iterations at once where addresses are affine, else for one. Knows no data.

use super::address::{self, Attributes};
use super::fault::Check;
use super::kernel::{Kernel, Kind, Site};
use super::place::{Located, Place, Region, Start, reach};
use act_isa::{AttrKind, Isa};

/// Most elements of a window that are looked at one by one to see whether they overlap.
const MAX_ELEMENTS: u64 = 1 << 20;

/// An execution that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) site: usize,
    /// Instructions and host copies executed before it.
    pub(crate) number: u64,
    pub(crate) check: Check,
}

/// Whether two elements share a byte.
fn overlaps_itself(dims: &[(i64, i64)], width: i64) -> bool {
    let mut long: Vec<(u64, i64)> =
        dims.iter().filter(|(len, _)| *len > 1).map(|&(len, s)| (s.unsigned_abs(), len)).collect();
    if dims.iter().any(|&(len, _)| len <= 0) {
        return false;
    }
    long.sort_unstable();
    // Disjoint for sure when each stride steps over all that the smaller ones reach.
    let mut reach = width as u128;
    let nested = long.iter().all(|&(stride, len)| {
        let over = u128::from(stride) >= reach;
        reach += u128::from(stride) * (len - 1) as u128;
        over
    });
    if nested {
        return false;
    }
    let Some(starts) = element_starts(0, dims) else { return true };
    starts.windows(2).any(|pair| pair[1] - pair[0] < i128::from(width))
}

/// Offsets of all elements of a window, sorted; `None` when they are too many to look at.
fn element_starts(start: i64, dims: &[(i64, i64)]) -> Option<Vec<i128>> {
    let elements = dims.iter().fold(1u64, |n, &(len, _)| n.saturating_mul(len.max(0) as u64));
    if elements > MAX_ELEMENTS {
        return None;
    }
    let mut starts = vec![i128::from(start)];
    for &(len, stride) in dims {
        let steps: Vec<i128> = (0..i128::from(len)).map(|k| k * i128::from(stride)).collect();
        starts = steps.iter().flat_map(|step| starts.iter().map(move |s| s + step)).collect();
    }
    starts.sort_unstable();
    Some(starts)
}

/// The rules of a kernel whose slices have been located.
#[derive(Clone, Copy)]
pub(crate) struct Checker<'a> {
    pub(crate) isa: &'a Isa,
    pub(crate) kernel: &'a Kernel,
    pub(crate) sites: &'a [Located],
}

impl Checker<'_> {
    pub(crate) fn attributes(&self, site: usize) -> Attributes<'_> {
        let Site { registers, beta, .. } = &self.kernel.sites[site];
        Attributes { alpha: &self.sites[site].alpha, registers, beta }
    }

    /// Whether every check of the site holds in every iteration, as far as affine ranges tell.
    pub(crate) fn proves(&self, site: usize) -> bool {
        let trips = &self.kernel.trips;
        let attributes = self.attributes(site);
        if let Kind::Instr { op, .. } = &self.kernel.sites[site].kind {
            let instr = self.isa.instr(*op);
            let in_range = instr.beta.iter().zip(attributes.beta).all(|(decl, value)| match decl.kind {
                AttrKind::Int { min, max } => {
                    let (low, high) = address::range(&value.offset, trips);
                    i128::from(min) <= low && high <= i128::from(max)
                }
                AttrKind::F32 => true,
            });
            let required = instr.requires.iter().all(|r| attributes.proves(r, trips));
            if !in_range || !required {
                return false;
            }
        }
        let places = &self.sites[site].places;
        let memory = |place: &Place| match &place.region {
            Region::OnChip { buffer, .. } => (true, *buffer),
            Region::Hbm { segment, .. } => (false, *segment),
        };
        let mut outputs: Vec<_> = places.iter().filter(|p| p.write).map(memory).collect();
        let count = outputs.len();
        outputs.sort_unstable();
        outputs.dedup();
        outputs.len() == count && places.iter().all(|place| self.proves_place(site, place))
    }

    fn proves_place(&self, site: usize, place: &Place) -> bool {
        let trips = &self.kernel.trips;
        match &place.region {
            Region::OnChip { buffer, start, len } => {
                let buffer = &self.isa.buffers[*buffer];
                start.iter().zip(len).zip(&buffer.access).enumerate().all(|(dim, ((start, &len), &size))| {
                    let Start::Affine(start) = start else { return false };
                    let (low, high) = address::range(start, trips);
                    let align = buffer.align.get(dim).copied().unwrap_or(1).max(1);
                    let aligned = i64::try_from(align).is_ok_and(|a| address::is_multiple(start, a));
                    aligned && low >= 0 && high + i128::from(len) <= i128::from(size)
                })
            }
            Region::Hbm { segment, start, dims, width } => {
                let aligned = self.hbm_align(site) <= 1
                    || i64::try_from(self.hbm_align(site)).is_ok_and(|a| address::is_multiple(start, a));
                let (low, high) = address::range(start, trips);
                let inside = reach(dims, *width).is_none_or(|(first, end)| {
                    low + first >= 0 && high + end <= i128::from(self.kernel.segment_bytes(*segment))
                });
                let allowed =
                    !place.write || (self.kernel.is_writable(*segment) && !overlaps_itself(dims, *width));
                aligned && inside && allowed
            }
        }
    }

    /// The host copies to and from any address.
    fn hbm_align(&self, site: usize) -> u64 {
        match self.kernel.sites[site].kind {
            Kind::Instr { .. } => self.isa.hbm.align,
            Kind::HostCopy { .. } => 1,
        }
    }

    /// The first check that the site fails in one iteration, in the oracle's order: attributes, then operand by operand,
    /// then results. `read` may object to an operand that lies within its memory.
    pub(crate) fn violated(
        &self,
        site: usize,
        variables: &[i64],
        read: &mut dyn FnMut(&Place) -> Option<Check>,
    ) -> Option<Check> {
        let attributes = self.attributes(site);
        let beta = attributes.beta_at(variables);
        let env = attributes.env(&beta);
        if let Kind::Instr { op, .. } = &self.kernel.sites[site].kind {
            let instr = self.isa.instr(*op);
            for (decl, value) in instr.beta.iter().zip(&beta) {
                let fine = match decl.kind {
                    AttrKind::Int { min, max } => value.is_some_and(|v| (min..=max).contains(&v)),
                    AttrKind::F32 => value.is_some(),
                };
                if !fine {
                    return Some(Check::BetaRange { attr: decl.name.clone() });
                }
            }
            if let Some(index) = instr.requires.iter().position(|r| r.eval(env) != Ok(true)) {
                return Some(Check::Requirement { index });
            }
        }
        let places = &self.sites[site].places;
        for place in places.iter().filter(|place| !place.write) {
            let misplaced = self.misplaced(site, place, variables);
            let violated = misplaced.or_else(|| self.leaves(place, variables)).or_else(|| read(place));
            if violated.is_some() {
                return violated;
            }
        }
        let outputs: Vec<&Place> = places.iter().filter(|place| place.write).collect();
        if let Some(check) = outputs.iter().find_map(|place| self.misplaced(site, place, variables)) {
            return Some(check);
        }
        for (output, place) in outputs.iter().enumerate().skip_while(|_| outputs.len() < 2) {
            if let Some(check) = self.leaves(place, variables) {
                return Some(check);
            }
            if outputs[..output].iter().any(|other| self.meet(site, other, place, variables)) {
                return Some(Check::OverlappingOutputs { output, memory: self.memory_name(place) });
            }
        }
        outputs.iter().find_map(|place| {
            let read_only = || self.read_only(place);
            read_only().or_else(|| self.leaves(place, variables)).or_else(|| self.stores_twice(place))
        })
    }

    /// Whether two slices that lie within their memories share a byte.
    fn meet(&self, site: usize, a: &Place, b: &Place, variables: &[i64]) -> bool {
        match (&a.region, &b.region) {
            (
                Region::OnChip { buffer, start, len },
                Region::OnChip { buffer: other, start: other_start, len: other_len },
            ) if buffer == other => {
                let sides = start.iter().zip(len).zip(other_start.iter().zip(other_len));
                sides.into_iter().all(|((start, &len), (other, &other_len))| {
                    let at = |start| self.start_at(site, start, variables).unwrap_or(0);
                    let (start, other) = (at(start), at(other));
                    start < other + other_len && other < start + len
                })
            }
            (
                Region::Hbm { segment, start, dims, width },
                Region::Hbm { segment: other, start: other_start, dims: other_dims, width: other_width },
            ) if segment == other => {
                let starts = |start, dims| element_starts(address::at(start, variables).unwrap_or(0), dims);
                let (mine, theirs) = (starts(start, dims), starts(other_start, other_dims));
                let (Some(mine), Some(theirs)) = (mine, theirs) else { return true };
                mine.iter().any(|&m| {
                    let next = theirs.partition_point(|&t| t + i128::from(*other_width) <= m);
                    theirs.get(next).is_some_and(|&t| t < m + i128::from(*width))
                })
            }
            _ => false,
        }
    }

    pub(crate) fn memory_name(&self, place: &Place) -> String {
        match &place.region {
            Region::OnChip { buffer, .. } => self.isa.buffers[*buffer].name.clone(),
            Region::Hbm { segment, .. } => self.kernel.segment_name(*segment),
        }
    }

    /// A slice on chip that leaves its buffer, or any slice with a start that is misaligned.
    fn misplaced(&self, site: usize, place: &Place, variables: &[i64]) -> Option<Check> {
        let slice = place.position;
        match &place.region {
            Region::OnChip { buffer, start, len } => {
                let buffer = &self.isa.buffers[*buffer];
                for (dim, (start, &len)) in start.iter().zip(len).enumerate() {
                    let start = self.start_at(site, start, variables);
                    let size = i128::from(buffer.access[dim]);
                    let inside = start.is_some_and(|s| s >= 0 && i128::from(s) + i128::from(len) <= size);
                    if !inside {
                        return Some(Check::BufferBounds { slice, buffer: buffer.name.clone(), dim });
                    }
                    let align = buffer.align.get(dim).copied().unwrap_or(1).max(1);
                    if start.is_none_or(|s| !s.unsigned_abs().is_multiple_of(align)) {
                        return Some(Check::BufferAlign { slice, buffer: buffer.name.clone(), dim });
                    }
                }
                None
            }
            Region::Hbm { start, .. } => {
                let align = self.hbm_align(site).max(1);
                let start = address::at(start, variables);
                let misaligned = start.is_none_or(|s| !s.unsigned_abs().is_multiple_of(align));
                misaligned.then(|| Check::HbmAlign { slice, segment: self.memory_name(place) })
            }
        }
    }

    /// A window that leaves its segment.
    fn leaves(&self, place: &Place, variables: &[i64]) -> Option<Check> {
        let Region::Hbm { segment, start, dims, width } = &place.region else { return None };
        let size = i128::from(self.kernel.segment_bytes(*segment));
        let inside = address::at(start, variables).is_some_and(|start| {
            reach(dims, *width)
                .is_none_or(|(low, high)| i128::from(start) + low >= 0 && i128::from(start) + high <= size)
        });
        (!inside).then(|| Check::Segment { slice: place.position, segment: self.memory_name(place) })
    }

    fn read_only(&self, place: &Place) -> Option<Check> {
        let Region::Hbm { segment, .. } = place.region else { return None };
        let allowed = self.kernel.is_writable(segment);
        (!allowed).then(|| Check::ReadOnly { slice: place.position, segment: self.memory_name(place) })
    }

    fn stores_twice(&self, place: &Place) -> Option<Check> {
        let Region::Hbm { dims, width, .. } = &place.region else { return None };
        let overlaps = overlaps_itself(dims, *width);
        overlaps.then(|| Check::OverlappingStore { slice: place.position, memory: self.memory_name(place) })
    }

    pub(crate) fn start_at(&self, site: usize, start: &Start, variables: &[i64]) -> Option<i64> {
        match start {
            Start::Affine(affine) => address::at(affine, variables),
            Start::Varying(e) => {
                let attributes = self.attributes(site);
                let beta = attributes.beta_at(variables);
                e.eval(attributes.env(&beta)).ok()
            }
        }
    }
}
