//! Bytes that know whether they were written, and strided windows into them.

use super::fault::FaultKind;

/// Value of bytes never written: not 0, so that a missed check shows in results too.
const POISON: u8 = 0xa5;

/// Largest slice or view that the oracle reads or writes at once.
const MAX_BYTES: u64 = 1 << 32;

/// A memory with one validity flag per byte.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    data: Vec<u8>,
    written: Vec<bool>,
    /// For every byte, 1 plus the number of the instruction that stored it since the last fence, else 0; empty until
    /// one is noted.
    stored: Vec<u64>,
}

impl Memory {
    pub(super) fn poisoned(bytes: u64) -> Memory {
        let bytes = bytes as usize;
        Memory { data: vec![POISON; bytes], written: vec![false; bytes], stored: Vec::new() }
    }

    /// Every element holds `value`.
    pub(super) fn filled(bytes: u64, value: &[u8]) -> Memory {
        let data: Vec<u8> = value.iter().copied().cycle().take(bytes as usize).collect();
        let written = vec![true; data.len()];
        Memory { data, written, stored: Vec::new() }
    }

    pub(super) fn known(data: &[u8]) -> Memory {
        Memory { data: data.to_vec(), written: vec![true; data.len()], stored: Vec::new() }
    }

    pub(super) fn size(&self) -> u64 {
        self.data.len() as u64
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.written.iter().filter(|w| !**w).count() as u64
    }

    pub(super) fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// Whether the window lies inside.
    pub(super) fn check(&self, window: &Window) -> Result<(), FaultKind> {
        window.check(self.size())
    }

    /// The window's elements, dense and row-major.
    pub(super) fn read(&self, window: &Window) -> Result<Vec<u8>, FaultKind> {
        window.check(self.size())?;
        let width = window.width as usize;
        let mut out = Vec::with_capacity(window.bytes() as usize);
        let mut missing = None;
        window.for_each_start(|at| {
            for byte in at as usize..at as usize + width {
                if !self.written[byte] && missing.is_none() {
                    missing = Some(byte as u64);
                }
                out.push(self.data[byte]);
            }
        });
        match missing {
            Some(offset) => Err(FaultKind::Uninitialised { offset }),
            None => Ok(out),
        }
    }

    /// Notes that instruction `number` stored the window, which lies inside.
    pub(super) fn note_store(&mut self, window: &Window, number: u64) {
        self.stored.resize(self.data.len(), 0);
        let stored = &mut self.stored;
        window.for_each_start(|at| {
            let bytes = at as usize..at as usize + window.width as usize;
            if let Some(bytes) = stored.get_mut(bytes) {
                bytes.fill(number.saturating_add(1));
            }
        });
    }

    /// All stores so far are complete.
    pub(super) fn fence(&mut self) {
        self.stored.clear();
    }

    /// A byte of the window that waits for a fence, and the instruction that stored it. The window lies inside.
    pub(super) fn waiting(&self, window: &Window) -> Option<(u64, u64)> {
        let mut found = None;
        if !self.stored.is_empty() {
            window.for_each_start(|at| {
                for byte in at as usize..at as usize + window.width as usize {
                    let number = self.stored.get(byte).and_then(|n| n.checked_sub(1));
                    found = found.or(number.map(|number| (byte as u64, number)));
                }
            });
        }
        found
    }

    /// Writes dense row-major elements; `values` fills the window.
    pub(super) fn write(&mut self, window: &Window, values: &[u8]) -> Result<(), FaultKind> {
        window.check(self.size())?;
        if window.overlaps_itself() {
            return Err(FaultKind::OverlappingStore);
        }
        if values.len() as u128 != window.bytes() {
            return Err(FaultKind::Type);
        }
        let width = window.width as usize;
        let mut elements = values.chunks_exact(width.max(1));
        window.for_each_start(|at| {
            if let Some(element) = elements.next() {
                let range = at as usize..at as usize + width;
                self.data[range.clone()].copy_from_slice(element);
                self.written[range].fill(true);
            }
        });
        Ok(())
    }
}

/// Elements of `width` bytes at `start + Σ index·stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub start: i64,
    /// (length, byte stride), outermost first.
    pub dims: Vec<(u64, i64)>,
    pub width: u64,
}

impl Window {
    /// Bytes of the value; elements met twice count twice.
    pub(super) fn bytes(&self) -> u128 {
        self.dims.iter().fold(u128::from(self.width), |n, &(len, _)| n.saturating_mul(u128::from(len)))
    }

    /// Whether every byte lies in `0..size`.
    fn check(&self, size: u64) -> Result<(), FaultKind> {
        if self.bytes() > u128::from(MAX_BYTES) {
            return Err(FaultKind::TooLarge { limit: MAX_BYTES });
        }
        if self.bytes() == 0 {
            return Ok(());
        }
        let (mut low, mut high) = (i128::from(self.start), i128::from(self.start));
        for &(len, stride) in &self.dims {
            let reach = i128::from(stride) * i128::from(len - 1);
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        let end = high.saturating_add(i128::from(self.width));
        if low < 0 || end > i128::from(size) {
            return Err(FaultKind::OutOfBytes { start: saturate(low), end: saturate(end), size });
        }
        Ok(())
    }

    /// Visits the offset of every element in row-major order. Only after [`Window::check`], which bounds the sums.
    fn for_each_start(&self, mut visit: impl FnMut(i64)) {
        if self.bytes() == 0 {
            return;
        }
        let mut index = vec![0u64; self.dims.len()];
        let mut at = self.start;
        loop {
            visit(at);
            let mut dim = self.dims.len();
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                let (len, stride) = self.dims[dim];
                index[dim] += 1;
                if index[dim] < len {
                    at += stride;
                    break;
                }
                at -= stride * (len as i64 - 1);
                index[dim] = 0;
            }
        }
    }

    /// Whether an element of one shares a byte with an element of the other. Only after [`Window::check`] of both.
    pub(super) fn meets(&self, other: &Window) -> bool {
        let starts = |window: &Window| {
            let mut starts = Vec::new();
            window.for_each_start(|at| starts.push(at));
            starts.sort_unstable();
            starts
        };
        let (mine, theirs) = (starts(self), starts(other));
        let (width, other_width) = (self.width as i64, other.width as i64);
        let mut next = 0;
        mine.iter().any(|&start| {
            while theirs.get(next).is_some_and(|&t| t + other_width <= start) {
                next += 1;
            }
            theirs.get(next).is_some_and(|&t| t < start + width)
        })
    }

    /// Whether two elements share a byte.
    fn overlaps_itself(&self) -> bool {
        let mut long: Vec<(u64, u64)> = self
            .dims
            .iter()
            .filter(|(len, _)| *len > 1)
            .map(|&(len, stride)| (stride.unsigned_abs(), len))
            .collect();
        long.sort_unstable();
        // Disjoint for sure when every stride steps over all that the smaller ones reach.
        let mut reach = u128::from(self.width);
        let nested = long.iter().all(|&(stride, len)| {
            let over = u128::from(stride) >= reach;
            reach += u128::from(stride) * u128::from(len - 1);
            over
        });
        if nested || self.bytes() == 0 {
            return false;
        }
        let mut starts = Vec::new();
        self.for_each_start(|at| starts.push(at));
        starts.sort_unstable();
        starts.windows(2).any(|pair| (pair[1] - pair[0]) < self.width as i64)
    }
}

/// For messages about addresses that no memory has.
pub(super) fn saturate(v: i128) -> i64 {
    i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: i64, dims: &[(u64, i64)], width: u64) -> Window {
        Window { start, dims: dims.to_vec(), width }
    }

    #[test]
    fn windows_gather_and_scatter_row_major() {
        let memory = Memory::known(&(0..32).collect::<Vec<u8>>());
        assert_eq!(memory.read(&window(2, &[(2, 8), (3, 1)], 1)).unwrap(), [2, 3, 4, 10, 11, 12]);
        assert_eq!(memory.read(&window(2, &[(2, 0), (2, 1)], 1)).unwrap(), [2, 3, 2, 3]);
        assert_eq!(memory.read(&window(30, &[(2, -8)], 2)).unwrap(), [30, 31, 22, 23]);
        let mut memory = Memory::poisoned(8);
        memory.write(&window(1, &[(2, 4), (2, 1)], 1), &[1, 2, 3, 4]).unwrap();
        assert_eq!(memory.clone().into_data(), [0xa5, 1, 2, 0xa5, 0xa5, 3, 4, 0xa5]);
        assert_eq!(memory.unwritten(), 4);
        assert_eq!(memory.read(&window(1, &[(3, 1)], 1)), Err(FaultKind::Uninitialised { offset: 3 }));
    }

    #[test]
    fn windows_stay_inside() {
        let memory = Memory::known(&[0; 16]);
        assert!(memory.read(&window(0, &[(4, 4)], 4)).is_ok());
        for bad in [window(1, &[(4, 4)], 4), window(-1, &[(1, 1)], 1), window(0, &[(2, -1)], 1)] {
            assert!(matches!(memory.read(&bad), Err(FaultKind::OutOfBytes { .. })), "{bad:?}");
        }
        let huge = window(0, &[(u64::MAX, i64::MAX)], 1);
        assert!(matches!(memory.read(&huge), Err(FaultKind::TooLarge { .. })));
        assert_eq!(memory.read(&window(99, &[(0, 1)], 1)), Ok(vec![]));
    }

    #[test]
    fn overlapping_stores_are_seen() {
        for (dims, overlaps) in [
            (vec![(4, 16), (16, 1)], false),
            (vec![(4, 15), (16, 1)], true),
            (vec![(2, 0)], true),
            (vec![(1, 0), (4, 1)], false),
            (vec![(2, 3), (3, 2)], false),
            (vec![(2, 2), (3, 2)], true),
            (vec![(2, 3), (2, 2)], false),
        ] {
            let window = window(0, &dims, 1);
            assert_eq!(window.overlaps_itself(), overlaps, "{dims:?}");
            let values = vec![0; window.bytes() as usize];
            let expected = if overlaps { Err(FaultKind::OverlappingStore) } else { Ok(()) };
            assert_eq!(Memory::poisoned(64).write(&window, &values), expected, "{dims:?}");
        }
    }
}
