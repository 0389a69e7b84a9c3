//! Array shapes and physical layouts.

use crate::ElemType;
use std::fmt;

/// The logical type of an array: element type and dimension sizes. A scalar has no dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    pub elem: ElemType,
    pub dims: Vec<u64>,
}

impl Shape {
    pub fn new(elem: ElemType, dims: impl Into<Vec<u64>>) -> Shape {
        Shape { elem, dims: dims.into() }
    }

    pub fn scalar(elem: ElemType) -> Shape {
        Shape { elem, dims: Vec::new() }
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements; 0 when any dimension is 0. Saturates instead of overflowing.
    pub fn elements(&self) -> u64 {
        self.dims.iter().fold(1u64, |n, &d| n.saturating_mul(d))
    }

    /// Bytes of a dense row-major array of this shape.
    pub fn bytes(&self) -> u64 {
        self.elements().saturating_mul(self.elem.bytes())
    }

    /// Row-major strides in elements.
    pub fn row_major_strides(&self) -> Vec<u64> {
        let mut strides = vec![1; self.rank()];
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i] * self.dims[i];
        }
        strides
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.elem)?;
        for (i, d) in self.dims.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

/// Physical order of an array: dimension numbers from the fastest to the slowest varying, and XLA's
/// tiles (`T(16,64)`), outermost tiling first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    pub minor_to_major: Vec<usize>,
    pub tiles: Vec<Vec<i64>>,
}

impl Layout {
    pub fn row_major(rank: usize) -> Layout {
        Layout { minor_to_major: (0..rank).rev().collect(), tiles: Vec::new() }
    }

    pub fn is_row_major(&self) -> bool {
        self.tiles.is_empty() && self.minor_to_major.iter().rev().copied().eq(0..self.minor_to_major.len())
    }

    /// Byte stride of every dimension of a dense untiled array with this layout.
    pub fn byte_strides(&self, shape: &Shape) -> Vec<i64> {
        let mut strides = vec![0i64; shape.rank()];
        let mut step = shape.elem.bytes() as i64;
        for &d in &self.minor_to_major {
            strides[d] = step;
            step = step.saturating_mul(shape.dims[d].max(1) as i64);
        }
        strides
    }
}
