//! From an opcode and its attributes to an [`Op`].

use super::attributes::Attributes;
use super::{Computation, Instruction, Operands, ParseError, TextModule, TextShape, constant};
use crate::{Binary, Direction, DotDims, Op, Shape, Unary};

/// The operator of `instruction`, whose result is `shape`. Parameters and what only structures a module
/// (tuples, calls, fusions) are dealt with by the caller.
pub(super) fn operator(
    module: &TextModule,
    instruction: &Instruction,
    attributes: &Attributes,
    shape: &Shape,
) -> Result<Op, ParseError> {
    let opcode = instruction.opcode.as_str();
    if let Some(unary) = Unary::from_name(opcode) {
        return Ok(Op::Unary(unary));
    }
    if let Some(binary) = Binary::from_name(opcode) {
        return Ok(Op::Binary(binary));
    }
    Ok(match opcode {
        "constant" => match &instruction.operands {
            Operands::Payload(range) => {
                Op::Constant(constant::parse(&mut attributes.cursor(range.clone()), shape)?)
            }
            Operands::Values(_) => return Err(module.error(instruction.at, "this constant has no value")),
        },
        "iota" => {
            let dim = attributes.integer("iota_dimension")?;
            Op::Iota { dim }
        }
        "eye" => Op::Eye,
        "compare" => Op::Compare(direction(module, attributes, shape)?),
        "select" => Op::Select,
        "clamp" => Op::Clamp,
        "fma" => Op::Fma,
        "convert" => Op::Convert,
        "bitcast-convert" => Op::BitcastConvert,
        "copy" => Op::Copy,
        "reduce-precision" => Op::ReducePrecision {
            exponent_bits: attributes.integer("exponent_bits")?,
            mantissa_bits: attributes.integer("mantissa_bits")?,
        },
        "broadcast" => Op::Broadcast { dims: attributes.required_list("dimensions")? },
        "reshape" => Op::Reshape,
        "transpose" => Op::Transpose { perm: attributes.required_list("dimensions")? },
        "slice" => {
            let [start, limit, stride] = attributes.ranges("slice")?;
            Op::Slice { start, limit, stride }
        }
        "dynamic-slice" => Op::DynamicSlice { sizes: attributes.required_list("dynamic_slice_sizes")? },
        "dynamic-update-slice" => Op::DynamicUpdateSlice,
        "pad" => {
            let [low, high, interior] = attributes.padding("padding")?;
            Op::Pad { low, high, interior }
        }
        "reverse" => Op::Reverse { dims: attributes.required_list("dimensions")? },
        "concatenate" => match attributes.required_list("dimensions")?[..] {
            [dim] => Op::Concatenate { dim },
            _ => return Err(module.error(instruction.at, "`concatenate` takes one dimension")),
        },
        "reduce" => {
            let (callee, at) = attributes.word("to_apply")?.ok_or_else(|| attributes.missing("to_apply"))?;
            let computation = module
                .computation(callee)
                .ok_or_else(|| module.error(at, format!("there is no computation `{callee}`")))?;
            let combiner = combiner(computation, shape).ok_or_else(|| {
                let message = format!("`{callee}` is not one binary operator applied to its two parameters");
                module.error(at, message)
            })?;
            Op::Reduce { dims: attributes.required_list("dimensions")?, combiner }
        }
        "dot" => Op::Dot(DotDims {
            lhs_batch: attributes.list("lhs_batch_dims")?.unwrap_or_default(),
            rhs_batch: attributes.list("rhs_batch_dims")?.unwrap_or_default(),
            lhs_contracting: attributes.list("lhs_contracting_dims")?.unwrap_or_default(),
            rhs_contracting: attributes.list("rhs_contracting_dims")?.unwrap_or_default(),
        }),
        unknown => return Err(module.error(instruction.at, format!("unknown operator `{unknown}`"))),
    })
}

fn direction(module: &TextModule, attributes: &Attributes, shape: &Shape) -> Result<Direction, ParseError> {
    // The total order differs from the usual one on NaN and -0.
    if let Some(("TOTALORDER", at)) = attributes.word("type")? {
        return Err(module.error(at, format!("the total order is not supported in a compare to {shape}")));
    }
    let (name, at) = attributes.word("direction")?.ok_or_else(|| attributes.missing("direction"))?;
    Direction::from_name(name)
        .ok_or_else(|| module.error(at, format!("`{name}` is no direction of a comparison, such as LT")))
}

/// The binary operator that a computation applies to its two parameters, when that is all it does.
fn combiner(computation: &Computation, shape: &Shape) -> Option<Binary> {
    let root = &computation.instructions[computation.root];
    let scalar =
        |shape_: &TextShape| matches!(shape_, TextShape::Array(s, _) if *s == Shape::scalar(shape.elem));
    let mut parameters = Vec::new();
    for (i, instruction) in computation.instructions.iter().enumerate() {
        if !scalar(&instruction.shape) {
            return None;
        }
        if instruction.opcode == "parameter" {
            parameters.push(instruction.name.as_str());
        } else if i != computation.root {
            return None;
        }
    }
    let Operands::Values(operands) = &root.operands else { return None };
    let mut applied: Vec<&str> = operands.iter().map(|(name, _)| name.as_str()).collect();
    applied.sort_unstable();
    parameters.sort_unstable();
    // Inference admits only combiners for which the order of the two does not matter.
    if parameters.len() == 2 && applied == parameters { Binary::from_name(&root.opcode) } else { None }
}
