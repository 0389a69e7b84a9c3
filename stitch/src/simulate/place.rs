//! Where every instruction of the text reads and writes, and whether it may: attribute ranges, requirements, bounds,
//! alignment and access rights, decided for all iterations before anything runs. Addresses do not depend on data, so
//! what cannot be decided from affine ranges is decided by stepping through the loops once.

use super::LowerError;
use super::address::{self, Address, Attributes, SegmentIndex};
use super::fault::Check;
use super::kernel::{Item, Kernel, Kind};
use act_isa::{Affine, AttrKind, BufferSlice, Expr, HbmWindow, Instr, Isa, Position, Slice};

/// Most instructions that are stepped through to decide what affine ranges leave open.
const MAX_STEPS: u64 = 1 << 24;
/// Most elements of a window that are looked at one by one to see whether they overlap.
const MAX_ELEMENTS: u64 = 1 << 20;

/// Start of a slice in one dimension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Start {
    Affine(Affine),
    /// An expression over the site's addressing attributes that is not affine.
    Varying(Expr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// Start and length per access dimension.
    OnChip { buffer: usize, start: Vec<Start>, len: Vec<i64> },
    /// Elements of `width` bytes at `start + Σ index·stride`; (length, byte stride) per dimension.
    Hbm { segment: SegmentIndex, start: Affine, dims: Vec<(i64, i64)>, width: i64 },
}

/// A slice of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) write: bool,
    pub(crate) region: Region,
}

/// A site with its slices: inputs, then outputs.
pub(crate) struct Located {
    /// Integer values of the computational attributes.
    pub(crate) alpha: Vec<Option<i64>>,
    pub(crate) places: Vec<Place>,
}

/// All sites of a kernel, checked.
pub(crate) struct Placement {
    pub(crate) sites: Vec<Located>,
    /// The first site that fails in the order of execution, and how.
    pub(crate) fault: Option<(usize, Check)>,
    /// Per buffer and access dimension: the end of what is accessed, in elements; 0 when nothing is.
    pub(crate) extents: Vec<Vec<u64>>,
}

/// Locates and checks everything.
///
/// # Errors
/// A slice whose shape depends on an address or that fits no buffer, and kernels too long to decide.
pub(crate) fn place(isa: &Isa, kernel: &Kernel) -> Result<Placement, LowerError> {
    let registers = isa.register_values();
    let sites: Vec<Located> =
        (0..kernel.sites.len()).map(|k| locate(isa, kernel, k, &registers)).collect::<Result<_, _>>()?;
    let checker = Checker { isa, kernel, registers, sites: &sites };
    let open: Vec<bool> = (0..sites.len()).map(|k| !checker.proves(k)).collect();
    let mut extents: Vec<Vec<u64>> = isa.buffers.iter().map(|b| vec![0; b.access.len()]).collect();
    for (located, count) in sites.iter().zip(kernel.executions()) {
        if count > 0 {
            located.places.iter().for_each(|place| extend(place, &kernel.trips, &mut extents));
        }
    }
    let mut fault = None;
    if open.contains(&true) {
        let mut walk = Walk { checker: &checker, open: &open, extents: &mut extents, steps: 0, fault: None };
        let mut variables = vec![0; kernel.trips.len()];
        walk.items(&kernel.body, &mut variables)?;
        fault = walk.fault;
    }
    Ok(Placement { sites, fault, extents })
}

fn extend(place: &Place, trips: &[u64], extents: &mut [Vec<u64>]) {
    let Region::OnChip { buffer, start, len } = &place.region else { return };
    for ((extent, start), len) in extents[*buffer].iter_mut().zip(start).zip(len) {
        if let Start::Affine(start) = start
            && *len > 0
        {
            let end = address::range(start, trips).1 + i128::from(*len);
            *extent = (*extent).max(u64::try_from(end).unwrap_or(0));
        }
    }
}

fn locate(isa: &Isa, kernel: &Kernel, site: usize, registers: &[i64]) -> Result<Located, LowerError> {
    let site = &kernel.sites[site];
    match &site.kind {
        Kind::HostCopy { elem_bytes, lengths, from_strides, to_strides } => {
            let side = |k: usize, strides: &[i64]| {
                let Address { segment: Some(segment), offset } = &site.beta[k] else {
                    return Err(super::TextError::HostCopy);
                };
                let dims = lengths.iter().copied().zip(strides.iter().copied()).collect();
                let position = if k == 0 { Position::Input(0) } else { Position::Output(0) };
                let region =
                    Region::Hbm { segment: *segment, start: offset.clone(), dims, width: *elem_bytes };
                Ok(Place { position, write: k == 1, region })
            };
            Ok(Located { alpha: Vec::new(), places: vec![side(0, from_strides)?, side(1, to_strides)?] })
        }
        Kind::Instr { op, alpha } => {
            let instr = isa.instr(*op);
            if !instr.updates.is_empty() || !instr.registers_mentioned().is_disjoint(&isa.mutable_registers())
            {
                return Err(LowerError::ChangingRegisters { instr: instr.name.clone() });
            }
            let alpha = instr
                .alpha_env(alpha)
                .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
            let attributes = Attributes { alpha: &alpha, registers, beta: &site.beta };
            let inputs = instr.inputs.iter().enumerate().map(|(k, s)| (s, Position::Input(k), false));
            let outputs = instr.outputs.iter().enumerate().map(|(k, s)| (s, Position::Output(k), true));
            let mut places = Vec::new();
            for (slice, position, write) in inputs.chain(outputs) {
                let region = match slice {
                    Slice::OnChip(slice) => on_chip(isa, instr, &attributes, slice, position)?,
                    Slice::Hbm(window) => hbm(instr, &attributes, window, position)?,
                };
                places.push(Place { position, write, region });
            }
            Ok(Located { alpha, places })
        }
    }
}

/// A length or stride, which alpha alone decides.
fn fixed(instr: &Instr, attributes: &Attributes<'_>, e: &Expr, slice: Position) -> Result<i64, LowerError> {
    let fixed = if e.mentions_beta() { None } else { attributes.address(e) };
    let value = fixed.and_then(|a| a.as_constant());
    value.ok_or_else(|| LowerError::VariableShape { instr: instr.name.clone(), slice })
}

fn on_chip(
    isa: &Isa,
    instr: &Instr,
    attributes: &Attributes<'_>,
    slice: &BufferSlice,
    position: Position,
) -> Result<Region, LowerError> {
    let buffer = usize::from(slice.buffer.0);
    let malformed = || LowerError::MalformedSlice { instr: instr.name.clone(), slice: position };
    let access = isa.buffers.get(buffer).ok_or_else(malformed)?.access.len();
    if slice.start.len() != access || slice.len.len() != access {
        return Err(malformed());
    }
    let start = slice.start.iter().map(|e| match attributes.address(e) {
        Some(Address { offset, .. }) => Start::Affine(offset),
        None => Start::Varying(e.clone()),
    });
    let len = slice.len.iter().map(|e| fixed(instr, attributes, e, position));
    Ok(Region::OnChip { buffer, start: start.collect(), len: len.collect::<Result<_, _>>()? })
}

fn hbm(
    instr: &Instr,
    attributes: &Attributes<'_>,
    window: &HbmWindow,
    position: Position,
) -> Result<Region, LowerError> {
    let Some(Address { segment: Some(segment), offset }) = attributes.address(&window.start) else {
        return Err(LowerError::VariableShape { instr: instr.name.clone(), slice: position });
    };
    let mut dims = Vec::with_capacity(window.dims.len());
    for (len, stride) in &window.dims {
        dims.push((fixed(instr, attributes, len, position)?, fixed(instr, attributes, stride, position)?));
    }
    Ok(Region::Hbm { segment, start: offset, dims, width: 1 })
}

/// Lowest and highest byte offset of a window from its start, the latter exclusive; `None` when it is empty.
pub(crate) fn reach(dims: &[(i64, i64)], width: i64) -> Option<(i128, i128)> {
    let (mut low, mut high) = (0i128, i128::from(width));
    for &(len, stride) in dims {
        if len <= 0 {
            return None;
        }
        let far = (i128::from(len) - 1) * i128::from(stride);
        low += far.min(0);
        high += far.max(0);
    }
    Some((low, high))
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

struct Checker<'a> {
    isa: &'a Isa,
    kernel: &'a Kernel,
    registers: Vec<i64>,
    sites: &'a [Located],
}

impl Checker<'_> {
    fn attributes(&self, site: usize) -> Attributes<'_> {
        let (alpha, beta) = (&self.sites[site].alpha, &self.kernel.sites[site].beta);
        Attributes { alpha, registers: &self.registers, beta }
    }

    /// Whether every check of the site holds in every iteration, as far as affine ranges tell.
    fn proves(&self, site: usize) -> bool {
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

    /// The first check that the site fails in one iteration.
    fn violated(&self, site: usize, variables: &[i64]) -> Option<Check> {
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
        let violated = places.iter().find_map(|place| self.violated_place(site, place, variables));
        violated.or_else(|| {
            let outputs: Vec<&Place> = places.iter().filter(|p| p.write).collect();
            let meets =
                |k: usize| outputs[..k].iter().any(|other| self.meet(site, other, outputs[k], variables));
            let output = (0..outputs.len()).find(|&k| meets(k))?;
            Some(Check::OverlappingOutputs { output })
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

    fn violated_place(&self, site: usize, place: &Place, variables: &[i64]) -> Option<Check> {
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
            Region::Hbm { segment, start, dims, width } => {
                let name = || self.kernel.segment_name(*segment);
                let start = address::at(start, variables);
                let size = i128::from(self.kernel.segment_bytes(*segment));
                let inside = start.is_some_and(|start| {
                    reach(dims, *width).is_none_or(|(low, high)| {
                        i128::from(start) + low >= 0 && i128::from(start) + high <= size
                    })
                });
                let align = self.hbm_align(site).max(1);
                if start.is_none_or(|s| !s.unsigned_abs().is_multiple_of(align)) {
                    Some(Check::HbmAlign { slice, segment: name() })
                } else if !inside || (place.write && !self.kernel.is_writable(*segment)) {
                    Some(Check::Segment { slice, segment: name() })
                } else if place.write && overlaps_itself(dims, *width) {
                    Some(Check::OverlappingStore { slice })
                } else {
                    None
                }
            }
        }
    }

    fn start_at(&self, site: usize, start: &Start, variables: &[i64]) -> Option<i64> {
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

/// Steps through the loops that hold open sites.
struct Walk<'a> {
    checker: &'a Checker<'a>,
    open: &'a [bool],
    extents: &'a mut [Vec<u64>],
    steps: u64,
    fault: Option<(usize, Check)>,
}

impl Walk<'_> {
    fn has_open(&self, items: &[Item]) -> bool {
        items.iter().any(|item| match item {
            Item::Loop(inner) => self.has_open(&inner.body),
            Item::Site(site) => self.open[*site],
            Item::Fence => false,
        })
    }

    fn items(&mut self, items: &[Item], variables: &mut [i64]) -> Result<(), LowerError> {
        for item in items {
            match item {
                Item::Loop(inner) if self.has_open(&inner.body) => {
                    let iv = inner.iv.0 as usize;
                    for step in 0..self.checker.kernel.trips[iv] {
                        variables[iv] = step as i64;
                        self.items(&inner.body, variables)?;
                        if self.fault.is_some() {
                            return Ok(());
                        }
                    }
                }
                Item::Site(site) if self.open[*site] => {
                    self.steps += 1;
                    if self.steps > MAX_STEPS {
                        let text = self.checker.kernel.sites[*site].text.clone();
                        return Err(LowerError::Undecided { text, limit: MAX_STEPS });
                    }
                    self.fault = self.checker.violated(*site, variables).map(|check| (*site, check));
                    if self.fault.is_some() {
                        return Ok(());
                    }
                    self.extend(*site, variables);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What varying starts reach.
    fn extend(&mut self, site: usize, variables: &[i64]) {
        for place in &self.checker.sites[site].places {
            let Region::OnChip { buffer, start, len } = &place.region else { continue };
            for (dim, (start, &len)) in start.iter().zip(len).enumerate() {
                if let Start::Varying(_) = start
                    && len > 0
                    && let Some(start) = self.checker.start_at(site, start, variables)
                {
                    let extent = &mut self.extents[*buffer][dim];
                    *extent = (*extent).max(u64::try_from(start + len).unwrap_or(0));
                }
            }
        }
    }
}
