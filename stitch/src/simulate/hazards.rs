//! Strict mode: steps through a kernel once, without computing, and looks at every byte: reads of bytes that nothing
//! wrote, loads of bytes that an instruction stored since the last fence, results that stay unwritten. Addresses do not
//! depend on data, so one look holds for every run.

use super::address;
use super::fault::Check;
use super::kernel::{Item, Kernel, Kind};
use super::place::{Place, Placement, Region, Start};
use act_hlo::Shape;
use act_isa::{Isa, Position};

/// The first hazard in the order of execution (site and check), or the bytes of the results that nothing writes.
pub(crate) fn hazards(isa: &Isa, kernel: &Kernel, placement: &Placement) -> Result<u64, (usize, Check)> {
    let (operands, results) = (kernel.interface.operands.len(), kernel.interface.results.len());
    let segment = |k: usize| {
        let known = !kernel.is_writable(k);
        Bytes { known: vec![known; kernel.segment_bytes(k) as usize], stored: Vec::new(), fresh: Vec::new() }
    };
    let buffer = |b: &act_isa::Buffer| {
        let shape = Shape::new(b.elem, [b.access.as_slice(), b.unit.as_slice()].concat());
        Bytes { known: vec![b.init.is_some(); shape.bytes() as usize], ..Bytes::default() }
    };
    let mut shadow = Shadow {
        isa,
        kernel,
        placement,
        registers: isa.register_values(),
        segments: (0..operands + results + 2).map(segment).collect(),
        buffers: isa.buffers.iter().map(buffer).collect(),
    };
    shadow.items(&kernel.body, &mut vec![0; kernel.trips.len()])?;
    let results = &shadow.segments[operands..operands + results];
    Ok(results.iter().flat_map(|segment| &segment.known).filter(|known| !**known).count() as u64)
}

/// One memory.
#[derive(Default)]
struct Bytes {
    known: Vec<bool>,
    /// Stored by an instruction since the last fence; empty until one is.
    stored: Vec<bool>,
    /// Where `stored` is set.
    fresh: Vec<std::ops::Range<usize>>,
}

struct Shadow<'a> {
    isa: &'a Isa,
    kernel: &'a Kernel,
    placement: &'a Placement,
    registers: Vec<i64>,
    segments: Vec<Bytes>,
    buffers: Vec<Bytes>,
}

enum Hazard {
    Unwritten(usize),
    Unfenced(usize),
}

impl Shadow<'_> {
    fn items(&mut self, items: &[Item], variables: &mut [i64]) -> Result<(), (usize, Check)> {
        for item in items {
            match item {
                Item::Loop(inner) => {
                    let iv = inner.iv.0 as usize;
                    for step in 0..self.kernel.trips[iv] {
                        variables[iv] = step as i64;
                        self.items(&inner.body, variables)?;
                    }
                }
                Item::Site(site) => self.site(*site, variables).map_err(|check| (*site, check))?,
                Item::Fence => {
                    for segment in &mut self.segments {
                        for range in std::mem::take(&mut segment.fresh) {
                            segment.stored[range].fill(false);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn site(&mut self, site: usize, variables: &[i64]) -> Result<(), Check> {
        let placement = self.placement;
        // The host reads what instructions stored only after they are done, and instructions begin after its copies.
        let instr = matches!(self.kernel.sites[site].kind, Kind::Instr { .. });
        for place in placement.sites[site].places.iter().filter(|place| !place.write) {
            let mut hazard = None;
            self.visit(site, place, variables, |bytes, range, main| {
                if hazard.is_none() {
                    let unwritten = bytes.known[range.clone()].iter().position(|known| !known);
                    hazard = unwritten.map(|at| Hazard::Unwritten(range.start + at));
                }
                if hazard.is_none() && main && instr && !bytes.stored.is_empty() {
                    let unfenced = bytes.stored[range.clone()].iter().position(|stored| *stored);
                    hazard = unfenced.map(|at| Hazard::Unfenced(range.start + at));
                }
            });
            if let Some(hazard) = hazard {
                return Err(self.check(place, &hazard));
            }
        }
        for place in placement.sites[site].places.iter().filter(|place| place.write) {
            self.visit(site, place, variables, |bytes, range, main| {
                bytes.known[range.clone()].fill(true);
                if main && instr {
                    if bytes.stored.is_empty() {
                        bytes.stored = vec![false; bytes.known.len()];
                    }
                    bytes.stored[range.clone()].fill(true);
                    bytes.fresh.push(range);
                }
            });
        }
        Ok(())
    }

    fn check(&self, place: &Place, hazard: &Hazard) -> Check {
        let slice: Position = place.position;
        let memory = match &place.region {
            Region::OnChip { buffer, .. } => self.isa.buffers[*buffer].name.clone(),
            Region::Hbm { segment, .. } => self.kernel.segment_name(*segment),
        };
        match *hazard {
            Hazard::Unwritten(at) => Check::Written { slice, memory, offset: at as u64 },
            Hazard::Unfenced(at) => Check::Fenced { slice, segment: memory, offset: at as u64 },
        }
    }

    /// Visits every contiguous run of a slice that was checked to lie within its memory. The flag says main memory.
    fn visit(
        &mut self,
        site: usize,
        place: &Place,
        variables: &[i64],
        mut visit: impl FnMut(&mut Bytes, std::ops::Range<usize>, bool),
    ) {
        match &place.region {
            Region::Hbm { segment, start, dims, width } => {
                let Some(start) = address::at(start, variables) else { return };
                let bytes = &mut self.segments[*segment];
                for_each_run(start, dims, *width, |range| visit(bytes, range, true));
            }
            Region::OnChip { buffer, start, len } => {
                let b = &self.isa.buffers[*buffer];
                let shape = Shape::new(b.elem, [b.access.as_slice(), b.unit.as_slice()].concat());
                let width = b.elem.bytes() as i64;
                let strides: Vec<i64> = shape.row_major_strides().iter().map(|&s| s as i64 * width).collect();
                let mut at = 0;
                for (start, stride) in start.iter().zip(&strides) {
                    let Some(start) = self.start(site, start, variables) else { return };
                    at += start * stride;
                }
                let lens = len.iter().copied().chain(b.unit.iter().map(|&u| u as i64));
                let dims: Vec<(i64, i64)> = lens.zip(strides).collect();
                let bytes = &mut self.buffers[*buffer];
                for_each_run(at, &dims, width, |range| visit(bytes, range, false));
            }
        }
    }

    fn start(&self, site: usize, start: &Start, variables: &[i64]) -> Option<i64> {
        match start {
            Start::Affine(start) => address::at(start, variables),
            Start::Varying(e) => {
                let (alpha, beta) = (&self.placement.sites[site].alpha, &self.kernel.sites[site].beta);
                let attributes = address::Attributes { alpha, registers: &self.registers, beta };
                let values = attributes.beta_at(variables);
                e.eval(attributes.env(&values)).ok()
            }
        }
    }
}

/// Calls `visit` for the bytes of a window, as long runs as its innermost dimensions allow.
fn for_each_run(start: i64, dims: &[(i64, i64)], width: i64, mut visit: impl FnMut(std::ops::Range<usize>)) {
    if dims.iter().any(|&(len, _)| len <= 0) {
        return;
    }
    let (mut outer, mut run) = (dims, width);
    while let Some((&(len, stride), rest)) = outer.split_last()
        && (stride == run || len == 1)
    {
        run *= len;
        outer = rest;
    }
    let mut index = vec![0i64; outer.len()];
    loop {
        let at: i64 = start + index.iter().zip(outer).map(|(i, (_, stride))| i * stride).sum::<i64>();
        visit(at as usize..(at + run) as usize);
        let Some(d) = (0..outer.len()).rev().find(|&d| index[d] + 1 < outer[d].0) else { return };
        index[d] += 1;
        index[d + 1..].fill(0);
    }
}
