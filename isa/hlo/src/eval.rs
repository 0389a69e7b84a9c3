//! The reference evaluator: what XLA's CPU backend computes, operator by operator, in the plainest way.
//! Everything else in the project that computes is measured against it.
//!
//! Integers wrap and never trap (division by zero gives all ones, the remainder is the dividend; a shift by
//! the width or more gives 0 or the sign). `float.rs` states the floating-point rules, `contraction.rs` the
//! order of sums. Complex numbers are moved but not computed with: an operator on them is refused.

mod contraction;
mod convert;
mod element;
mod elementwise;
mod float;
mod integer;
mod movement;
mod strided;

pub(crate) use convert::f16_from_f64;

use crate::{Binary, ElemType, Graph, Literal, Op, Shape, ShapeError, Unary, infer_shape};
use float::Wide;

/// Why a graph was not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    #[error("the graph has {expected} parameters, got {got} inputs")]
    InputCount { expected: usize, got: usize },
    #[error("input {index} is {got}, expected {expected}")]
    InputShape { index: usize, expected: Shape, got: Shape },
    #[error("a parameter has no value of its own")]
    Parameter,
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    Size(#[from] crate::literal::LiteralSizeError),
    #[error("{op} on {elem} is not evaluated")]
    Unsupported { op: &'static str, elem: ElemType },
    #[error("{op}: a result {shape} of more than {limit} bytes is not evaluated")]
    TooLarge { op: &'static str, shape: Shape, limit: u64 },
}

/// Largest result that is materialised, in bytes.
pub const MAX_RESULT_BYTES: u64 = 1 << 34;

/// The evaluator's function of one f32 for an operator, denormals flushed, for compiled code that must agree with
/// it bit for bit; `None` where the operator is not arithmetic on floats.
pub fn unary_f32(op: Unary) -> Option<fn(f32) -> f32> {
    <f32 as Wide>::unary(op)
}

/// As [`unary_f32`].
pub fn unary_f64(op: Unary) -> Option<fn(f64) -> f64> {
    <f64 as Wide>::unary(op)
}

/// As [`unary_f32`], for two operands.
pub fn binary_f32(op: Binary) -> Option<fn(f32, f32) -> f32> {
    <f32 as Wide>::binary(op)
}

/// As [`binary_f32`].
pub fn binary_f64(op: Binary) -> Option<fn(f64, f64) -> f64> {
    <f64 as Wide>::binary(op)
}

fn unsupported(op: &Op, elem: ElemType) -> EvalError {
    EvalError::Unsupported { op: op.name(), elem }
}

/// The values of the roots of `graph` for one literal per parameter.
///
/// # Errors
/// Inputs that do not match the parameters; an operator on a type that is not evaluated; a result that is
/// too large.
pub fn eval(graph: &Graph, inputs: &[Literal]) -> Result<Vec<Literal>, EvalError> {
    let expected = graph.params().len();
    if inputs.len() != expected {
        return Err(EvalError::InputCount { expected, got: inputs.len() });
    }
    for (index, (input, &param)) in inputs.iter().zip(graph.params()).enumerate() {
        if input.shape() != graph.shape(param) {
            return Err(EvalError::InputShape {
                index,
                expected: graph.shape(param).clone(),
                got: input.shape().clone(),
            });
        }
    }
    let mut pending_uses = vec![0u32; graph.nodes().len()];
    for id in graph.nodes().iter().flat_map(|n| &n.operands).chain(graph.roots()) {
        pending_uses[id.0 as usize] += 1;
    }
    // Values are dropped after their last use, so that a long graph does not hold all of them.
    let mut values: Vec<Option<Literal>> = vec![None; graph.nodes().len()];
    for (at, node) in graph.nodes().iter().enumerate() {
        if pending_uses[at] == 0 {
            continue;
        }
        let value = match node.op {
            Op::Parameter(k) => inputs[k as usize].clone(),
            _ => {
                let operands: Vec<&Literal> =
                    node.operands.iter().filter_map(|id| values[id.0 as usize].as_ref()).collect();
                eval_op(&node.op, &operands, &node.shape)?
            }
        };
        values[at] = Some(value);
        for id in &node.operands {
            let uses = &mut pending_uses[id.0 as usize];
            *uses -= 1;
            if *uses == 0 {
                values[id.0 as usize] = None;
            }
        }
    }
    Ok(graph.roots().iter().filter_map(|id| values[id.0 as usize].clone()).collect())
}

/// The value of one operator; `result` is the shape declared at its node.
///
/// # Errors
/// Shapes that do not fit together, and as [`eval`].
pub fn eval_op(op: &Op, operands: &[&Literal], result: &Shape) -> Result<Literal, EvalError> {
    let shapes: Vec<&Shape> = operands.iter().map(|x| x.shape()).collect();
    infer_shape(op, &shapes, Some(result))?;
    if result.bytes() > MAX_RESULT_BYTES {
        return Err(EvalError::TooLarge { op: op.name(), shape: result.clone(), limit: MAX_RESULT_BYTES });
    }
    // Inference has fixed the number of operands, their ranks and the attributes.
    match (op, operands) {
        (Op::Parameter(_), _) => Err(EvalError::Parameter),
        (Op::Constant(literal), _) => Ok(literal.clone()),
        (Op::Iota { dim }, _) => movement::iota(*dim, result),
        (Op::Eye, _) => movement::eye(result),
        (Op::Unary(unary), [x]) => elementwise::unary(*unary, x, result),
        (Op::Binary(binary), [a, b]) => elementwise::binary(*binary, a, b, result),
        (Op::Compare(direction), [a, b]) => elementwise::compare(*direction, a, b, result),
        (Op::Select, [pred, on_true, on_false]) => Ok(elementwise::select(pred, on_true, on_false, result)),
        (Op::Clamp, [lo, x, hi]) => elementwise::clamp(lo, x, hi, result),
        (Op::Fma, [a, b, c]) => elementwise::fma(a, b, c, result),
        (Op::Convert, [x]) => convert::convert(x, result),
        (Op::BitcastConvert, [x]) => convert::bitcast_convert(x, result),
        (Op::Copy | Op::Reshape, [x]) => Ok(x.with_shape(result.clone())?),
        (Op::ReducePrecision { exponent_bits, mantissa_bits }, [x]) => {
            convert::reduce_precision(*exponent_bits, *mantissa_bits, x, result)
        }
        (Op::Broadcast { dims }, [x]) => Ok(movement::broadcast(dims, x, result)),
        (Op::Transpose { perm }, [x]) => Ok(movement::transpose(perm, x, result)),
        (Op::Slice { start, stride, .. }, [x]) => Ok(movement::slice(start, stride, x, result)),
        (Op::DynamicSlice { .. }, [x, starts @ ..]) => Ok(movement::dynamic_slice(x, starts, result)),
        (Op::DynamicUpdateSlice, [x, update, starts @ ..]) => {
            Ok(movement::dynamic_update_slice(x, update, starts, result))
        }
        (Op::Pad { low, interior, .. }, [x, value]) => Ok(movement::pad(low, interior, x, value, result)),
        (Op::Reverse { dims }, [x]) => Ok(movement::reverse(dims, x, result)),
        (Op::Concatenate { dim }, _) => Ok(movement::concatenate(*dim, operands, result)),
        (Op::Reduce { dims, combiner }, [x, init]) => contraction::reduce(dims, *combiner, x, init, result),
        (Op::Dot(dims), [lhs, rhs]) => contraction::dot(dims, lhs, rhs, result),
        _ => Err(unsupported(op, result.elem)),
    }
}
