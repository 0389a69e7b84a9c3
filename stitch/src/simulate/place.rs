//! Where every instruction of the text reads and writes, and whether it may: attribute ranges, requirements, bounds,
//! alignment and access rights, decided for all iterations before anything runs. Addresses do not depend on data, so
//! what cannot be decided from affine ranges is decided by stepping through the loops once.

use super::LowerError;
use super::address::{self, Address, Attributes, SegmentIndex};
use super::check::{Checker, Violation};
use super::kernel::{Item, Kernel, Kind};
use act_isa::{Affine, BufferSlice, Expr, HbmWindow, Instr, Isa, Position, Slice};

/// Most instructions that are stepped through to decide what affine ranges leave open.
const MAX_STEPS: u64 = 1 << 24;

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
    /// What fails first in the order of execution.
    pub(crate) violation: Option<Violation>,
    /// Per buffer and access dimension: the end of what is accessed, in elements; 0 when nothing is.
    pub(crate) extents: Vec<Vec<u64>>,
}

/// Locates and checks everything.
///
/// # Errors
/// A slice whose shape depends on an address or that fits no buffer, and kernels too long to decide.
pub(crate) fn place(isa: &Isa, kernel: &Kernel) -> Result<Placement, LowerError> {
    let sites: Vec<Located> =
        (0..kernel.sites.len()).map(|k| locate(isa, kernel, k)).collect::<Result<_, _>>()?;
    let checker = Checker { isa, kernel, sites: &sites };
    let open: Vec<bool> = (0..sites.len()).map(|k| !checker.proves(k)).collect();
    let mut extents: Vec<Vec<u64>> = isa.buffers.iter().map(|b| vec![0; b.access.len()]).collect();
    for (located, count) in sites.iter().zip(kernel.executions()) {
        if count > 0 {
            located.places.iter().for_each(|place| extend(place, &kernel.trips, &mut extents));
        }
    }
    let mut violation = None;
    if open.contains(&true) {
        let mut walk =
            Walk { checker: &checker, open: &open, extents: &mut extents, steps: 0, violation: None };
        let mut variables = vec![0; kernel.trips.len()];
        walk.items(&kernel.body, &mut variables)?;
        violation = walk.violation;
    }
    Ok(Placement { sites, violation, extents })
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

fn locate(isa: &Isa, kernel: &Kernel, site: usize) -> Result<Located, LowerError> {
    let site = &kernel.sites[site];
    match &site.kind {
        Kind::HostCopy { elem_bytes, lengths, from_strides, to_strides, .. } => {
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
            let alpha = instr
                .alpha_env(alpha)
                .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
            let attributes = Attributes { alpha: &alpha, registers: &site.registers, beta: &site.beta };
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

/// Steps through the loops that hold open sites.
struct Walk<'a> {
    checker: &'a Checker<'a>,
    open: &'a [bool],
    extents: &'a mut [Vec<u64>],
    steps: u64,
    violation: Option<Violation>,
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
                        if self.violation.is_some() {
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
                    let number = || self.checker.kernel.executed_before(*site, variables);
                    let check = self.checker.violated(*site, variables, &mut |_| None);
                    self.violation = check.map(|check| Violation { site: *site, number: number(), check });
                    if self.violation.is_some() {
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
