//! Constant tensors: a shape and its elements, dense, row-major, little-endian.

use crate::{ElemType, Shape};
use std::sync::Arc;

/// A tensor value. `data.len() == shape.bytes()`; pred is 0 or 1 in one byte; a 4-bit integer sits
/// sign- or zero-extended in one byte. Equality is by bits: NaN equals the same NaN, 0.0 differs from -0.0.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal {
    shape: Shape,
    data: Arc<[u8]>,
}

/// The bytes given do not fill the shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{shape} needs {needed} bytes, got {got}")]
pub struct LiteralSizeError {
    pub shape: Shape,
    pub needed: u64,
    pub got: u64,
}

impl Literal {
    /// A literal from dense row-major bytes.
    pub fn from_bytes(shape: Shape, data: impl Into<Arc<[u8]>>) -> Result<Literal, LiteralSizeError> {
        let data = data.into();
        let (needed, got) = (shape.bytes(), data.len() as u64);
        if needed != got {
            return Err(LiteralSizeError { shape, needed, got });
        }
        Ok(Literal { shape, data })
    }

    /// All bits zero, which is the value 0 of every element type.
    pub fn zeros(shape: Shape) -> Literal {
        let data = vec![0u8; shape.bytes() as usize].into();
        Literal { shape, data }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn elem(&self) -> ElemType {
        self.shape.elem
    }

    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The same bytes, shared, under another shape.
    ///
    /// # Errors
    /// When the shape needs another number of bytes.
    pub fn with_shape(&self, shape: Shape) -> Result<Literal, LiteralSizeError> {
        Literal::from_bytes(shape, Arc::clone(&self.data))
    }

    /// The bytes of element `index` in row-major order. `index < shape.elements()`.
    pub fn element_bytes(&self, index: u64) -> &[u8] {
        let w = self.shape.elem.bytes() as usize;
        &self.data[index as usize * w..][..w]
    }

    /// The one value that every element has, as a scalar literal; `None` for an empty or mixed tensor.
    pub fn splat_value(&self) -> Option<Literal> {
        let w = self.shape.elem.bytes() as usize;
        let first = self.data.get(..w)?;
        self.data
            .chunks_exact(w)
            .all(|chunk| chunk == first)
            .then(|| Literal { shape: Shape::scalar(self.shape.elem), data: first.into() })
    }
}

impl std::fmt::Debug for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 32;
        write!(f, "Literal({}, {:02x?}", self.shape, &self.data[..self.data.len().min(SHOWN)])?;
        f.write_str(if self.data.len() > SHOWN { "...)" } else { ")" })
    }
}
