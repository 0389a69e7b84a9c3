//! Shape inference: the result shape of an operator, or why its operands do not fit.
//! Follows XLA's operation semantics (openxla.org "Operation semantics"). Knows shapes and attributes only,
//! no values.

mod contraction;
mod elementwise;
mod movement;

use crate::{Op, Shape};

/// Operands, attributes and declared shape do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {message}")]
pub struct ShapeError {
    /// HLO name of the operator.
    pub op: &'static str,
    pub message: String,
}

/// Highest rank of a shape that takes part in an operator.
pub const MAX_RANK: usize = 64;

/// A rule's outcome before the operator's name is known.
type Rule<T> = Result<T, String>;

/// The result shape of `op` over `operands`. `declared` is needed where the result type is free (see
/// [`crate::OpKind`]) and is checked otherwise.
///
/// Every shape that takes part is bounded: the product of its sizes (a size of 0 counted as 1) and its bytes
/// fit in an `i64`, so that strides and offsets computed from it cannot overflow, and its rank is at most
/// [`MAX_RANK`].
///
/// # Errors
/// Wrong operand count, ranks, sizes, element types or attributes; a shape beyond the bound.
pub fn infer_shape(op: &Op, operands: &[&Shape], declared: Option<&Shape>) -> Result<Shape, ShapeError> {
    infer_checked(op, operands, declared).map_err(|message| ShapeError { op: op.name(), message })
}

fn infer_checked(op: &Op, operands: &[&Shape], declared: Option<&Shape>) -> Rule<Shape> {
    for shape in operands.iter().copied().chain(declared) {
        check_size(shape)?;
    }
    let inferred = infer_rule(op, operands, declared)?;
    check_size(&inferred)?;
    match declared {
        Some(shape) if *shape != inferred => {
            Err(format!("declared {shape}, but the operands give {inferred}"))
        }
        _ => Ok(inferred),
    }
}

fn infer_rule(op: &Op, operands: &[&Shape], declared: Option<&Shape>) -> Rule<Shape> {
    match op {
        Op::Parameter(_) => {
            let [] = exactly(operands)?;
            needed(declared).cloned()
        }
        Op::Constant(literal) => {
            let [] = exactly(operands)?;
            Ok(literal.shape().clone())
        }
        Op::Iota { dim } => {
            let [] = exactly(operands)?;
            movement::iota(*dim, needed(declared)?)
        }
        Op::Eye => {
            let [] = exactly(operands)?;
            movement::eye(needed(declared)?)
        }
        Op::Unary(unary) => {
            let [x] = exactly(operands)?;
            elementwise::unary(*unary, x)
        }
        Op::Binary(binary) => {
            let [a, b] = exactly(operands)?;
            elementwise::binary(*binary, a, b)
        }
        Op::Compare(direction) => {
            let [a, b] = exactly(operands)?;
            elementwise::compare(*direction, a, b)
        }
        Op::Select => {
            let [pred, on_true, on_false] = exactly(operands)?;
            elementwise::select(pred, on_true, on_false)
        }
        Op::Clamp => {
            let [lo, x, hi] = exactly(operands)?;
            elementwise::clamp(lo, x, hi)
        }
        Op::Fma => {
            let [a, b, c] = exactly(operands)?;
            elementwise::fma(a, b, c)
        }
        Op::Convert => {
            let [x] = exactly(operands)?;
            elementwise::convert(x, needed(declared)?)
        }
        Op::BitcastConvert => {
            let [x] = exactly(operands)?;
            elementwise::bitcast_convert(x, needed(declared)?)
        }
        Op::Copy => {
            let [x] = exactly(operands)?;
            Ok(x.clone())
        }
        Op::ReducePrecision { exponent_bits, mantissa_bits } => {
            let [x] = exactly(operands)?;
            elementwise::reduce_precision(*exponent_bits, *mantissa_bits, x)
        }
        Op::Broadcast { dims } => {
            let [x] = exactly(operands)?;
            movement::broadcast(dims, x, needed(declared)?)
        }
        Op::Reshape => {
            let [x] = exactly(operands)?;
            movement::reshape(x, needed(declared)?)
        }
        Op::Transpose { perm } => {
            let [x] = exactly(operands)?;
            movement::transpose(perm, x)
        }
        Op::Slice { start, limit, stride } => {
            let [x] = exactly(operands)?;
            movement::slice(start, limit, stride, x)
        }
        Op::DynamicSlice { sizes } => {
            let (x, starts) =
                operands.split_first().ok_or("takes an array and its start indices, got nothing")?;
            movement::dynamic_slice(sizes, x, starts)
        }
        Op::DynamicUpdateSlice => match operands {
            [x, update, starts @ ..] => movement::dynamic_update_slice(x, update, starts),
            _ => Err(format!("takes an array, an update and start indices, got {} operands", operands.len())),
        },
        Op::Pad { low, high, interior } => {
            let [x, value] = exactly(operands)?;
            movement::pad(low, high, interior, x, value)
        }
        Op::Reverse { dims } => {
            let [x] = exactly(operands)?;
            movement::reverse(dims, x)
        }
        Op::Concatenate { dim } => movement::concatenate(*dim, operands),
        Op::Reduce { dims, combiner } => {
            let [x, init] = exactly(operands)?;
            contraction::reduce(dims, *combiner, x, init)
        }
        Op::Dot(dims) => {
            let [lhs, rhs] = exactly(operands)?;
            contraction::dot(dims, lhs, rhs, declared.map(|shape| shape.elem))
        }
    }
}

fn exactly<'a, const N: usize>(operands: &[&'a Shape]) -> Rule<[&'a Shape; N]> {
    operands.try_into().map_err(|_| format!("takes {N} operands, got {}", operands.len()))
}

fn needed(declared: Option<&Shape>) -> Rule<&Shape> {
    declared.ok_or_else(|| "needs a declared result shape".to_owned())
}

/// Refuses a shape whose strides or byte offsets would not fit in an `i64`, or of excessive rank.
fn check_size(shape: &Shape) -> Rule<()> {
    if shape.rank() > MAX_RANK {
        return Err(format!("a shape of rank {} has more than {MAX_RANK} dimensions", shape.rank()));
    }
    shape
        .dims
        .iter()
        .try_fold(shape.elem.bytes(), |bytes, &d| bytes.checked_mul(d.max(1)))
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .map(|_| ())
        .ok_or_else(|| format!("{shape} is too large: its bytes do not fit in 63 bits"))
}

fn same_elem(what: &str, got: &Shape, expected: &Shape) -> Rule<()> {
    if got.elem == expected.elem {
        Ok(())
    } else {
        Err(format!("{what} has element type {}, expected {}", got.elem, expected.elem))
    }
}

fn same_shape(a: &Shape, b: &Shape) -> Rule<()> {
    if a == b { Ok(()) } else { Err(format!("operand shapes differ: {a} and {b}")) }
}

fn in_rank(what: &str, dim: usize, shape: &Shape) -> Rule<()> {
    if dim < shape.rank() {
        Ok(())
    } else {
        Err(format!("{what} {dim} is outside {shape} of rank {}", shape.rank()))
    }
}

/// Dimension numbers that all exist in `shape` and do not repeat.
fn distinct_dims<'a>(what: &str, dims: impl IntoIterator<Item = &'a usize>, shape: &Shape) -> Rule<()> {
    let mut seen = vec![false; shape.rank()];
    for &dim in dims {
        match seen.get_mut(dim) {
            None => return in_rank(what, dim, shape),
            Some(true) => return Err(format!("{what} {dim} is named twice")),
            Some(slot) => *slot = true,
        }
    }
    Ok(())
}

/// One attribute value per dimension.
fn one_per_dim<T>(what: &str, values: &[T], shape: &Shape) -> Rule<()> {
    if values.len() == shape.rank() {
        Ok(())
    } else {
        Err(format!("{what} has {} entries, but {shape} has rank {}", values.len(), shape.rank()))
    }
}
