//! How on-chip buffers lie in host memory: only the box that a kernel uses is there, row-major, with rows that do not
//! all fall into one cache set. Knows nothing of what is computed.

use act_hlo::ElemType;
use act_isa::Isa;

/// Rows of this many bytes and more get a pitch of an odd number of cache lines.
const LONG_ROW: u64 = 1024;
const LINE: u64 = 64;

/// One buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BufferLayout {
    pub(crate) elem: ElemType,
    /// The used box: access dimensions as far as a kernel reaches, unit dimensions whole. Empty when nothing is used.
    pub(crate) dims: Vec<u64>,
    /// Byte stride of every dimension of the box.
    pub(crate) strides: Vec<i64>,
    /// Sizes of the whole buffer.
    pub(crate) whole: Vec<u64>,
    pub(crate) bytes: u64,
    /// Bytes of the element that the buffer is full of before a run; poison when the description has none.
    pub(crate) init: Option<Vec<u8>>,
}

impl BufferLayout {
    fn new(elem: ElemType, whole: Vec<u64>, dims: Vec<u64>) -> BufferLayout {
        let mut strides = vec![0; dims.len()];
        let mut step = elem.bytes();
        for (d, stride) in strides.iter_mut().enumerate().rev() {
            *stride = step as i64;
            step *= dims[d].max(1);
            if d > 0 && step >= LONG_ROW {
                let lines = step.div_ceil(LINE);
                step = LINE * (lines + u64::from(lines.is_multiple_of(2)));
            }
        }
        let bytes = if dims.contains(&0) { 0 } else { step };
        BufferLayout { elem, dims, strides, whole, bytes, init: None }
    }

    /// Bytes of the values in the used box, without what lies between rows.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.dims.iter().fold(self.elem.bytes(), |n, &d| n.saturating_mul(d))
    }

    /// Visits every row of the box (its last dimension): byte offset in the layout, byte offset in the dense whole
    /// buffer, bytes.
    pub(crate) fn for_each_row(&self, mut visit: impl FnMut(usize, usize, usize)) {
        if self.bytes == 0 {
            return;
        }
        let width = self.elem.bytes();
        let Some((&last, outer)) = self.dims.split_last() else { return visit(0, 0, width as usize) };
        let whole = act_hlo::Shape::new(self.elem, self.whole.clone()).row_major_strides();
        let mut index = vec![0u64; outer.len()];
        loop {
            let own: u64 = index.iter().zip(&self.strides).map(|(&i, &s)| i * s as u64).sum();
            let dense: u64 = index.iter().zip(&whole).map(|(&i, &s)| i * s * width).sum();
            visit(own as usize, dense as usize, (last * width) as usize);
            let Some(d) = (0..outer.len()).rev().find(|&d| index[d] + 1 < outer[d]) else { return };
            index[d] += 1;
            index[d + 1..].fill(0);
        }
    }
}

/// Layouts of all buffers for the given reach per access dimension.
pub(crate) fn layouts(isa: &Isa, extents: &[Vec<u64>]) -> Vec<BufferLayout> {
    let layout = |(buffer, extents): (&act_isa::Buffer, &Vec<u64>)| {
        let whole: Vec<u64> = buffer.access.iter().chain(&buffer.unit).copied().collect();
        let dims = extents.iter().chain(&buffer.unit).copied().collect();
        let init = buffer.init.as_ref().map(|value| value.bytes().to_vec());
        BufferLayout { init, ..BufferLayout::new(buffer.elem, whole, dims) }
    };
    isa.buffers.iter().zip(extents).map(layout).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_are_dense_and_long_ones_avoid_one_cache_set() {
        let layout = BufferLayout::new(ElemType::S8, vec![1024, 16], vec![100, 16]);
        assert_eq!((layout.strides.as_slice(), layout.bytes), ([16, 1].as_slice(), 1600));
        let layout = BufferLayout::new(ElemType::F32, vec![128, 4096], vec![4, 1024]);
        assert_eq!(layout.strides, [4096 + 64, 4]);
        assert_eq!(layout.used_bytes(), 4 * 4096);
        let mut rows = Vec::new();
        layout.for_each_row(|own, dense, bytes| rows.push((own, dense, bytes)));
        assert_eq!(rows, [(0, 0, 4096), (4160, 16384, 4096), (8320, 32768, 4096), (12480, 49152, 4096)]);
    }

    #[test]
    fn an_unused_buffer_takes_nothing() {
        let layout = BufferLayout::new(ElemType::S8, vec![1024, 16], vec![0, 0]);
        assert_eq!(layout.bytes, 0);
        layout.for_each_row(|_, _, _| panic!("no row"));
    }
}
