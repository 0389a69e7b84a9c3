//! One HLO instruction as operators of ours, or why it has no such form.

use super::instruction::{Instruction, dimension_numbers, field};
use super::module::HloModule;
use super::shape::{ArrayShape, HloShape};
use super::wire::{Message, ProtoError};
use crate::{Binary, Direction, Layout, Op, OpKind, Shape, Unary};

/// Why an instruction has no form in our operator set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("no such operator here")]
    Operator,
    #[error("its element type is none of ours")]
    ElementType,
    #[error("its value is a tuple")]
    Tuple,
    #[error("its value is not a plain dense array")]
    NotDense,
    #[error("it has {got} operands")]
    OperandCount { got: usize },
    #[error("attribute {0} is not supported")]
    Attribute(String),
    #[error("the computation it applies is not a single commutative operator")]
    Combiner,
    #[error("it reinterprets the element type or a layout that is unknown")]
    Bitcast,
    #[error(transparent)]
    Proto(#[from] ProtoError),
}

/// An instruction that our operators do not express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{opcode}: {why}")]
pub struct Inexpressible {
    pub opcode: String,
    pub why: Why,
}

/// An instruction as a chain of operators: the first takes the instruction's operands, each further one the
/// result before it. All but `bitcast` are a chain of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    pub steps: Vec<(Op, Shape)>,
    /// Physical layout of the result.
    pub layout: Option<Layout>,
}

/// The operators of `instruction`, whose operands have the types `operands`.
///
/// # Errors
/// When our operator set does not express it exactly; doubtful attributes count as inexpressible.
pub fn convert(
    module: &HloModule,
    instruction: &Instruction,
    operands: &[&ArrayShape],
) -> Result<Converted, Inexpressible> {
    let fail = |why| Inexpressible { opcode: instruction.opcode().to_owned(), why };
    let result = dense(instruction.shape().map_err(|e| fail(e.into()))?).map_err(fail)?;
    if operands.iter().any(|o| o.exotic) {
        return Err(fail(Why::NotDense));
    }
    let steps = if instruction.opcode() == "bitcast" {
        bitcast(operands, &result)
    } else {
        operator(module, instruction, operands).map(|op| vec![(op, result.shape)])
    };
    Ok(Converted { steps: steps.map_err(fail)?, layout: result.layout })
}

/// The type of a value that is a plain dense array.
///
/// # Errors
/// Tuples, foreign element types and everything that is not dense.
pub fn dense(shape: HloShape) -> Result<ArrayShape, Why> {
    match shape {
        HloShape::Array(array) if array.exotic => Err(Why::NotDense),
        HloShape::Array(array) => Ok(array),
        HloShape::Tuple(_) => Err(Why::Tuple),
        HloShape::Other(_) => Err(Why::ElementType),
    }
}

fn operator(module: &HloModule, i: &Instruction, operands: &[&ArrayShape]) -> Result<Op, Why> {
    let opcode = i.opcode();
    let dims = || Ok::<_, Why>(dimension_numbers(&i.dimensions()?, "HloInstructionProto")?);
    if let Some(unary) = Unary::from_name(opcode) {
        // An accuracy that the user asked for (Mode::HIGHEST, a tolerance) is a promise that we do not make.
        let accuracy = i.message().message(field::RESULT_ACCURACY, "ResultAccuracy")?.unwrap_or_default();
        if accuracy.int(1) != 0 || accuracy.has(2) {
            return Err(Why::Attribute("result_accuracy".to_owned()));
        }
        return Ok(OpKind::Unary(unary));
    }
    if let Some(binary) = Binary::from_name(opcode) {
        return Ok(OpKind::Binary(binary));
    }
    Ok(match opcode {
        "parameter" => OpKind::Parameter(
            u32::try_from(i.parameter_number()).map_err(|_| Why::Attribute("parameter_number".to_owned()))?,
        ),
        "constant" => OpKind::Constant(i.literal()?),
        "iota" => match dims()?[..] {
            [dim] => OpKind::Iota { dim },
            _ => return Err(Why::Attribute("iota_dimension".to_owned())),
        },
        "compare" => OpKind::Compare(comparison(i)?),
        "select" => OpKind::Select,
        "clamp" => OpKind::Clamp,
        "convert" => OpKind::Convert,
        "bitcast-convert" => OpKind::BitcastConvert,
        "copy" => OpKind::Copy,
        "reduce-precision" => {
            let (exponent, mantissa) = i.reduced_precision();
            let bits = |v: i64| u32::try_from(v).map_err(|_| Why::Attribute("reduced precision".to_owned()));
            OpKind::ReducePrecision { exponent_bits: bits(exponent)?, mantissa_bits: bits(mantissa)? }
        }
        "broadcast" => OpKind::Broadcast { dims: dims()? },
        "reshape" => OpKind::Reshape,
        "transpose" => OpKind::Transpose { perm: dims()? },
        "slice" => {
            let dims = i.slice_dims()?;
            OpKind::Slice {
                start: dims.iter().map(|d| d.start).collect(),
                limit: dims.iter().map(|d| d.limit).collect(),
                stride: dims.iter().map(|d| d.stride).collect(),
            }
        }
        "dynamic-slice" => OpKind::DynamicSlice { sizes: i.dynamic_slice_sizes()? },
        "dynamic-update-slice" => OpKind::DynamicUpdateSlice,
        "pad" => {
            let dims = i.padding()?;
            OpKind::Pad {
                low: dims.iter().map(|d| d.low).collect(),
                high: dims.iter().map(|d| d.high).collect(),
                interior: dims.iter().map(|d| d.interior).collect(),
            }
        }
        "reverse" => OpKind::Reverse { dims: dims()? },
        "concatenate" => match dims()?[..] {
            [dim] => OpKind::Concatenate { dim },
            _ => return Err(Why::Attribute("concatenate dimension".to_owned())),
        },
        "reduce" => match operands {
            [array, _] => OpKind::Reduce { dims: dims()?, combiner: combiner(module, i, array)? },
            _ => return Err(Why::OperandCount { got: operands.len() }),
        },
        "dot" => {
            check_dot(i, operands.len())?;
            OpKind::Dot(i.dot_dims()?)
        }
        _ => return Err(Why::Operator),
    })
}

/// A comparison under IEEE's partial order, or of integers.
fn comparison(i: &Instruction) -> Result<Direction, Why> {
    let kind = i.comparison_type()?;
    let order = i.message().string(field::COMPARISON_ORDER, "HloInstructionProto")?;
    if kind == "TOTALORDER" || (kind == "FLOAT" && order.starts_with("TOTAL")) {
        return Err(Why::Attribute("total order".to_owned()));
    }
    Direction::from_name(i.comparison_direction()?)
        .ok_or_else(|| Why::Attribute("comparison_direction".to_owned()))
}

fn check_dot(i: &Instruction, operands: usize) -> Result<(), Why> {
    if operands != 2 {
        return Err(Why::OperandCount { got: operands });
    }
    for (number, name) in
        [(field::SPARSITY_CONFIG, "sparsity_config"), (field::BLOCK_SCALING_CONFIG, "block_scaling_config")]
    {
        if i.message().bytes(number).is_some_and(|b| !b.is_empty()) {
            return Err(Why::Attribute(name.to_owned()));
        }
    }
    // PrecisionConfig.algorithm: unset, DOT_F32_F32_F32 and DOT_F64_F64_F64 compute in the operands' own type;
    // the others name a type of their own.
    let precision: Message =
        i.message().message(field::PRECISION_CONFIG, "PrecisionConfig")?.unwrap_or_default();
    match precision.int(2) {
        0 | 11 | 12 => Ok(()),
        other => Err(Why::Attribute(format!("algorithm {other}"))),
    }
}

/// The operator that a reduce applies: its computation has to be exactly that operator of its two parameters.
fn combiner(module: &HloModule, i: &Instruction, array: &ArrayShape) -> Result<Binary, Why> {
    let [callee] = i.called_computation_ids()?[..] else { return Err(Why::Combiner) };
    let computation = module.computation(callee).ok_or(ProtoError::NoSuchComputation(callee))?;
    let root = computation.root()?;
    let mut parameters = Vec::new();
    for instruction in computation.instructions() {
        if instruction.opcode() == "parameter" {
            parameters.push(instruction.id());
        } else if instruction.id() != root.id() {
            return Err(Why::Combiner);
        }
        let of_elem =
            instruction.shape()?.array().is_some_and(|a| a.shape == Shape::scalar(array.shape.elem));
        if !of_elem {
            return Err(Why::Combiner);
        }
    }
    let mut applied = root.operand_ids()?;
    applied.sort_unstable();
    parameters.sort_unstable();
    if parameters.len() != 2 || applied != parameters {
        return Err(Why::Combiner);
    }
    // Only a commutative and associative operator leaves XLA's result independent of how the elements are
    // paired (up to float rounding).
    Binary::from_name(root.opcode())
        .filter(|b| {
            matches!(
                b,
                Binary::Add
                    | Binary::Multiply
                    | Binary::Maximum
                    | Binary::Minimum
                    | Binary::And
                    | Binary::Or
                    | Binary::Xor
            )
        })
        .ok_or(Why::Combiner)
}

/// A bitcast keeps the bytes and renames them: the operand's dimensions are put in physical order, regrouped,
/// and put back from physical order into the result's.
fn bitcast(operands: &[&ArrayShape], result: &ArrayShape) -> Result<Vec<(Op, Shape)>, Why> {
    let [operand] = operands else { return Err(Why::OperandCount { got: operands.len() }) };
    let (Some(from), Some(to)) = (&operand.layout, &result.layout) else { return Err(Why::Bitcast) };
    let elem = result.shape.elem;
    if operand.shape.elem != elem || operand.shape.elements() != result.shape.elements() {
        return Err(Why::Bitcast);
    }
    let major_to_minor =
        |layout: &Layout| layout.minor_to_major.iter().rev().copied().collect::<Vec<usize>>();
    let (from, to) = (major_to_minor(from), major_to_minor(to));
    let physical = |shape: &Shape, order: &[usize]| {
        Shape::new(elem, order.iter().map(|&d| shape.dims[d]).collect::<Vec<u64>>())
    };
    let (source, target) = (physical(&operand.shape, &from), physical(&result.shape, &to));
    let mut position = vec![0; to.len()];
    to.iter().enumerate().for_each(|(p, &d)| position[d] = p);

    let mut steps = Vec::new();
    if source == target {
        // One transpose does: result dimension d lies where the operand's dimension from[position[d]] lies.
        let perm: Vec<usize> = position.iter().map(|&p| from[p]).collect();
        if is_identity(&perm) {
            return Ok(vec![(OpKind::Copy, result.shape.clone())]);
        }
        return Ok(vec![(OpKind::Transpose { perm }, result.shape.clone())]);
    }
    if !is_identity(&from) {
        steps.push((OpKind::Transpose { perm: from }, source));
    }
    steps.push((OpKind::Reshape, target));
    if !is_identity(&position) {
        steps.push((OpKind::Transpose { perm: position }, result.shape.clone()));
    }
    Ok(steps)
}

fn is_identity(perm: &[usize]) -> bool {
    perm.iter().copied().eq(0..perm.len())
}
