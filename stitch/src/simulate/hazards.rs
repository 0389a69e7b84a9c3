//! Strict mode: steps through a kernel once, without computing, and looks at every byte: reads of bytes that nothing
//! wrote, loads of bytes that an instruction stored since the last fence, results that stay unwritten; and at every other
//! rule in the order of execution. Addresses do not depend on data, so one look holds for every run.

use super::address;
use super::check::{Checker, Violation};
use super::fault::Check;
use super::kernel::{Item, Kernel, Kind};
use super::place::{Place, Placement, Region};
use act_hlo::Shape;
use act_isa::Isa;

/// What fails first in the order of execution, or the bytes of the results that nothing writes.
pub(crate) fn hazards(isa: &Isa, kernel: &Kernel, placement: &Placement) -> Result<u64, Violation> {
    let (operands, results) = (kernel.interface.operands.len(), kernel.interface.results.len());
    let segment = |k: usize| {
        let known = !kernel.is_writable(k);
        Bytes { known: vec![known; kernel.segment_bytes(k) as usize], ..Bytes::default() }
    };
    let buffer = |b: &act_isa::Buffer| {
        let shape = Shape::new(b.elem, [b.access.as_slice(), b.unit.as_slice()].concat());
        Bytes { known: vec![b.init.is_some(); shape.bytes() as usize], ..Bytes::default() }
    };
    let checker = Checker { isa, kernel, sites: &placement.sites };
    let mut shadow = Shadow {
        checker,
        proved: (0..kernel.sites.len()).map(|site| checker.proves(site)).collect(),
        memories: Memories {
            segments: (0..operands + results + 2).map(segment).collect(),
            buffers: isa.buffers.iter().map(buffer).collect(),
        },
        executed: 0,
    };
    shadow.items(&kernel.body, &mut vec![0; kernel.trips.len()])?;
    let results = &shadow.memories.segments[operands..operands + results];
    Ok(results.iter().flat_map(|segment| &segment.known).filter(|known| !**known).count() as u64)
}

/// One memory.
#[derive(Default)]
struct Bytes {
    known: Vec<bool>,
    /// Stored by an instruction since the last fence; empty until one is.
    stored: Vec<bool>,
    /// Where `stored` is set, and by which instruction, in the order of execution.
    fresh: Vec<(std::ops::Range<usize>, u64)>,
}

impl Bytes {
    /// The instruction that stored the byte at `at`, which waits for a fence.
    fn stored_by(&self, at: usize) -> u64 {
        self.fresh.iter().rev().find(|(range, _)| range.contains(&at)).map_or(0, |(_, number)| *number)
    }
}

struct Memories {
    segments: Vec<Bytes>,
    buffers: Vec<Bytes>,
}

struct Shadow<'a> {
    checker: Checker<'a>,
    /// By site: its rules hold in every iteration, hazards aside.
    proved: Vec<bool>,
    memories: Memories,
    /// Instructions and host copies so far.
    executed: u64,
}

impl Shadow<'_> {
    fn items(&mut self, items: &[Item], variables: &mut [i64]) -> Result<(), Violation> {
        for item in items {
            match item {
                Item::Loop(inner) => {
                    let iv = inner.iv.0 as usize;
                    for step in 0..self.checker.kernel.trips[iv] {
                        variables[iv] = step as i64;
                        self.items(&inner.body, variables)?;
                    }
                }
                Item::Site(site) => {
                    let number = self.executed;
                    let done = self.site(*site, variables);
                    done.map_err(|check| Violation { site: *site, number, check })?;
                    self.executed += 1;
                }
                Item::Fence => {
                    for segment in &mut self.memories.segments {
                        for (range, _) in std::mem::take(&mut segment.fresh) {
                            segment.stored[range].fill(false);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn site(&mut self, site: usize, variables: &[i64]) -> Result<(), Check> {
        let Shadow { checker, ref proved, ref mut memories, executed } = *self;
        let places = &checker.sites[site].places;
        let violated = if proved[site] {
            let mut reads = places.iter().filter(|place| !place.write);
            reads.find_map(|place| memories.hazard(&checker, site, place, variables))
        } else {
            checker.violated(site, variables, &mut |place| memories.hazard(&checker, site, place, variables))
        };
        if let Some(check) = violated {
            return Err(check);
        }
        // What the host writes is complete before it goes on.
        let waits = !checker.isa.hbm.ordered && matches!(checker.kernel.sites[site].kind, Kind::Instr { .. });
        for place in places.iter().filter(|place| place.write) {
            memories.visit(&checker, site, place, variables, |bytes, range, main| {
                bytes.known[range.clone()].fill(true);
                if main && waits {
                    bytes.stored.resize(bytes.known.len(), false);
                    bytes.stored[range.clone()].fill(true);
                    bytes.fresh.push((range, executed));
                }
            });
        }
        Ok(())
    }
}

impl Memories {
    /// What is wrong with reading a slice that lies within its memory.
    fn hazard(
        &mut self,
        checker: &Checker<'_>,
        site: usize,
        place: &Place,
        variables: &[i64],
    ) -> Option<Check> {
        let slice = place.position;
        let mut unwritten = None;
        let mut unfenced = None;
        self.visit(checker, site, place, variables, |bytes, range, main| {
            if unwritten.is_none() {
                let at = bytes.known[range.clone()].iter().position(|known| !known);
                unwritten = at.map(|at| range.start + at);
            }
            if unfenced.is_none() && main && !bytes.stored.is_empty() {
                let at = bytes.stored[range.clone()].iter().position(|stored| *stored);
                unfenced = at.map(|at| (range.start + at, bytes.stored_by(range.start + at)));
            }
        });
        if let Some(offset) = unwritten {
            let memory = checker.memory_name(place);
            return Some(Check::Written { slice, memory, offset: offset as u64 });
        }
        let (offset, store) = unfenced?;
        let segment = checker.memory_name(place);
        Some(Check::Fenced { slice, segment, offset: offset as u64, store })
    }

    /// Visits every contiguous run of a slice that was checked to lie within its memory. The flag says main memory.
    fn visit(
        &mut self,
        checker: &Checker<'_>,
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
                let b = &checker.isa.buffers[*buffer];
                let shape = Shape::new(b.elem, [b.access.as_slice(), b.unit.as_slice()].concat());
                let width = b.elem.bytes() as i64;
                let strides: Vec<i64> = shape.row_major_strides().iter().map(|&s| s as i64 * width).collect();
                let mut at = 0;
                for (start, stride) in start.iter().zip(&strides) {
                    let Some(start) = checker.start_at(site, start, variables) else { return };
                    at += start * stride;
                }
                let lens = len.iter().copied().chain(b.unit.iter().map(|&u| u as i64));
                let dims: Vec<(i64, i64)> = lens.zip(strides).collect();
                let bytes = &mut self.buffers[*buffer];
                for_each_run(at, &dims, width, |range| visit(bytes, range, false));
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
