//! HloInstructionProto: typed reading and editing of the fields we know; the rest is carried along.

use super::literal::{read_literal, write_literal};
use super::shape::HloShape;
use super::wire::{Field, Message, ProtoError};
use crate::{DotDims, Literal};
use prost::bytes::Bytes;

const NAME: &str = "HloInstructionProto";

/// Field numbers of HloInstructionProto (xla/service/hlo.proto).
pub mod field {
    pub const NAME: u32 = 1;
    pub const OPCODE: u32 = 2;
    pub const SHAPE: u32 = 3;
    pub const METADATA: u32 = 7;
    pub const LITERAL: u32 = 8;
    pub const PARAMETER_NUMBER: u32 = 9;
    pub const FUSION_KIND: u32 = 11;
    pub const TUPLE_INDEX: u32 = 13;
    pub const DIMENSIONS: u32 = 14;
    pub const WINDOW: u32 = 15;
    pub const CONVOLUTION_DIMENSIONS: u32 = 16;
    pub const SLICE_DIMENSIONS: u32 = 17;
    pub const EXPONENT_BITS: u32 = 18;
    pub const MANTISSA_BITS: u32 = 19;
    pub const DYNAMIC_SLICE_SIZES: u32 = 20;
    pub const PADDING_CONFIG: u32 = 21;
    pub const CUSTOM_CALL_TARGET: u32 = 28;
    pub const DOT_DIMENSIONS: u32 = 30;
    pub const ID: u32 = 35;
    pub const OPERAND_IDS: u32 = 36;
    pub const CONTROL_PREDECESSOR_IDS: u32 = 37;
    pub const CALLED_COMPUTATION_IDS: u32 = 38;
    pub const SHARDING: u32 = 40;
    pub const BACKEND_CONFIG: u32 = 43;
    pub const PRECISION_CONFIG: u32 = 51;
    pub const CONSTRAIN_LAYOUT: u32 = 56;
    pub const OPERAND_SHAPES_WITH_LAYOUT: u32 = 57;
    pub const COMPARISON_DIRECTION: u32 = 63;
    pub const CUSTOM_CALL_HAS_SIDE_EFFECT: u32 = 65;
    pub const FRONTEND_ATTRIBUTES: u32 = 68;
    pub const COMPARISON_TYPE: u32 = 72;
    pub const OUTPUT_OPERAND_ALIASING: u32 = 74;
    pub const CUSTOM_CALL_API_VERSION: u32 = 77;
    pub const RESULT_ACCURACY: u32 = 91;
    pub const SPARSITY_CONFIG: u32 = 98;
    pub const BACKEND_CONFIG_PAYLOAD: u32 = 99;
    pub const BLOCK_SCALING_CONFIG: u32 = 101;
    pub const COMPARISON_ORDER: u32 = 102;
}

/// `CustomCallApiVersion::API_VERSION_TYPED_FFI`.
const API_VERSION_TYPED_FFI: i64 = 4;

/// One dimension of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDim {
    pub start: i64,
    pub limit: i64,
    pub stride: i64,
}

/// One dimension of a pad; low and high may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PadDim {
    pub low: i64,
    pub high: i64,
    pub interior: i64,
}

/// What an operator's metadata says of its origin. `file` and `line` are empty where they stand in the
/// module's stack frame index instead: see [`super::HloModule::source`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub op_name: String,
    pub file: String,
    pub line: i64,
    /// 1-based index into the module's stack frames; 0 for none.
    pub stack_frame_id: i64,
}

/// One HLO instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    message: Message,
}

impl Instruction {
    /// # Errors
    /// Malformed bytes, or a name or opcode that is no UTF-8.
    pub fn parse(bytes: &Bytes) -> Result<Instruction, ProtoError> {
        let message = Message::parse(bytes, NAME)?;
        message.string(field::NAME, NAME)?;
        message.string(field::OPCODE, NAME)?;
        Ok(Instruction { message })
    }

    /// A fresh instruction without attributes.
    pub fn new(id: i64, name: &str, opcode: &str, shape: &HloShape, operands: &[i64]) -> Instruction {
        let mut out = Instruction { message: Message::default() };
        out.set_name(name);
        out.set_opcode(opcode);
        out.set_shape(shape);
        out.set_id(id);
        out.set_operand_ids(operands);
        out
    }

    pub fn parameter(id: i64, name: &str, shape: &HloShape, number: i64) -> Instruction {
        let mut out = Instruction::new(id, name, "parameter", shape, &[]);
        out.message.set_int(field::PARAMETER_NUMBER, number);
        out
    }

    pub fn get_tuple_element(id: i64, name: &str, shape: &HloShape, operand: i64, index: i64) -> Instruction {
        let mut out = Instruction::new(id, name, "get-tuple-element", shape, &[operand]);
        out.message.set_int(field::TUPLE_INDEX, index);
        out
    }

    /// A fusion that calls `computation`; `kind` is XLA's, such as `kLoop`.
    pub fn fusion(
        id: i64,
        name: &str,
        shape: &HloShape,
        operands: &[i64],
        kind: &str,
        computation: i64,
    ) -> Instruction {
        let mut out = Instruction::new(id, name, "fusion", shape, operands);
        out.message.set_bytes(field::FUSION_KIND, kind.as_bytes().to_vec());
        out.message.set_ints(field::CALLED_COMPUTATION_IDS, &[computation]);
        out
    }

    /// A constant in row-major order; `None` for 4-bit element types.
    pub fn constant(id: i64, name: &str, literal: &Literal) -> Option<Instruction> {
        let shape = HloShape::row_major(literal.shape().clone());
        let mut out = Instruction::new(id, name, "constant", &shape, &[]);
        out.message.set_message(field::LITERAL, &write_literal(literal)?);
        Some(out)
    }

    /// A call of a typed-FFI handler. The layouts of `shape` and `operand_shapes` are binding; `attributes` is
    /// the text of an MLIR dictionary.
    pub fn custom_call(
        id: i64,
        name: &str,
        shape: &HloShape,
        operands: &[i64],
        operand_shapes: &[HloShape],
        target: &str,
        attributes: &str,
    ) -> Instruction {
        let mut out = Instruction::new(id, name, "custom-call", shape, operands);
        out.message.set_bytes(field::CUSTOM_CALL_TARGET, target.as_bytes().to_vec());
        out.message.set_bytes(field::BACKEND_CONFIG, attributes.as_bytes().to_vec());
        out.message.set_int(field::CONSTRAIN_LAYOUT, 1);
        for shape in operand_shapes {
            let bytes = shape.to_message().to_bytes();
            out.message.push(Field::bytes(field::OPERAND_SHAPES_WITH_LAYOUT, bytes));
        }
        out.message.set_int(field::CUSTOM_CALL_API_VERSION, API_VERSION_TYPED_FFI);
        out
    }

    pub fn to_bytes(&self) -> Bytes {
        self.message.to_bytes()
    }

    /// The fields as they are; numbers in [`field`].
    pub fn message(&self) -> &Message {
        &self.message
    }

    pub fn message_mut(&mut self) -> &mut Message {
        &mut self.message
    }

    pub fn id(&self) -> i64 {
        self.message.int(field::ID)
    }

    pub fn name(&self) -> &str {
        self.message.string(field::NAME, NAME).unwrap_or_default()
    }

    pub fn opcode(&self) -> &str {
        self.message.string(field::OPCODE, NAME).unwrap_or_default()
    }

    /// # Errors
    /// A missing or malformed shape.
    pub fn shape(&self) -> Result<HloShape, ProtoError> {
        let shape = self.message.message(field::SHAPE, "ShapeProto")?;
        HloShape::from_message(&shape.ok_or(ProtoError::Missing { message: NAME, field: "shape" })?)
    }

    pub fn operand_ids(&self) -> Result<Vec<i64>, ProtoError> {
        self.message.ints(field::OPERAND_IDS, NAME)
    }

    pub fn control_predecessor_ids(&self) -> Result<Vec<i64>, ProtoError> {
        self.message.ints(field::CONTROL_PREDECESSOR_IDS, NAME)
    }

    pub fn called_computation_ids(&self) -> Result<Vec<i64>, ProtoError> {
        self.message.ints(field::CALLED_COMPUTATION_IDS, NAME)
    }

    pub fn parameter_number(&self) -> i64 {
        self.message.int(field::PARAMETER_NUMBER)
    }

    pub fn tuple_index(&self) -> i64 {
        self.message.int(field::TUPLE_INDEX)
    }

    pub fn fusion_kind(&self) -> Result<&str, ProtoError> {
        self.message.string(field::FUSION_KIND, NAME)
    }

    pub fn custom_call_target(&self) -> Result<&str, ProtoError> {
        self.message.string(field::CUSTOM_CALL_TARGET, NAME)
    }

    /// The backend's own attributes, where they stand in the instruction itself.
    pub fn backend_config(&self) -> &[u8] {
        self.message.bytes(field::BACKEND_CONFIG).map_or(&[], |b| b)
    }

    pub fn comparison_direction(&self) -> Result<&str, ProtoError> {
        self.message.string(field::COMPARISON_DIRECTION, NAME)
    }

    pub fn comparison_type(&self) -> Result<&str, ProtoError> {
        self.message.string(field::COMPARISON_TYPE, NAME)
    }

    /// The meaning depends on the opcode: a broadcast's, transpose's, reduce's, concatenate's … dimensions.
    pub fn dimensions(&self) -> Result<Vec<i64>, ProtoError> {
        self.message.ints(field::DIMENSIONS, NAME)
    }

    pub fn dynamic_slice_sizes(&self) -> Result<Vec<i64>, ProtoError> {
        self.message.ints(field::DYNAMIC_SLICE_SIZES, NAME)
    }

    pub fn slice_dims(&self) -> Result<Vec<SliceDim>, ProtoError> {
        let dims = self.message.all_bytes(field::SLICE_DIMENSIONS).map(|bytes| {
            let m = Message::parse(bytes, "SliceDimensions")?;
            Ok(SliceDim { start: m.int(1), limit: m.int(2), stride: m.int(3) })
        });
        dims.collect()
    }

    pub fn padding(&self) -> Result<Vec<PadDim>, ProtoError> {
        let Some(config) = self.message.message(field::PADDING_CONFIG, "PaddingConfig")? else {
            return Ok(Vec::new());
        };
        let dims = config.all_bytes(1).map(|bytes| {
            let m = Message::parse(bytes, "PaddingConfigDimension")?;
            Ok(PadDim { low: m.int(1), high: m.int(2), interior: m.int(3) })
        });
        dims.collect()
    }

    /// # Errors
    /// Malformed bytes or a negative dimension number.
    pub fn dot_dims(&self) -> Result<DotDims, ProtoError> {
        const DOT: &str = "DotDimensionNumbers";
        let m = self.message.message(field::DOT_DIMENSIONS, DOT)?.unwrap_or_default();
        let read = |number| dimension_numbers(&m.ints(number, DOT)?, DOT);
        Ok(DotDims {
            lhs_contracting: read(1)?,
            rhs_contracting: read(2)?,
            lhs_batch: read(3)?,
            rhs_batch: read(4)?,
        })
    }

    /// Exponent and mantissa bits of a reduce-precision.
    pub fn reduced_precision(&self) -> (i64, i64) {
        (self.message.int(field::EXPONENT_BITS), self.message.int(field::MANTISSA_BITS))
    }

    /// A constant's value.
    ///
    /// # Errors
    /// As [`read_literal`], and when there is none.
    pub fn literal(&self) -> Result<Literal, ProtoError> {
        let literal = self.message.message(field::LITERAL, "LiteralProto")?;
        read_literal(&literal.ok_or(ProtoError::Missing { message: NAME, field: "literal" })?)
    }

    pub fn metadata(&self) -> Result<Metadata, ProtoError> {
        const META: &str = "OpMetadata";
        let m = self.message.message(field::METADATA, META)?.unwrap_or_default();
        Ok(Metadata {
            op_name: m.string(2, META)?.to_owned(),
            file: m.string(3, META)?.to_owned(),
            line: m.int(4),
            stack_frame_id: m.int(15),
        })
    }

    /// A frontend attribute's value; `None` when it is not there or unreadable.
    pub fn frontend_attribute(&self, key: &str) -> Option<String> {
        const ATTRIBUTES: &str = "FrontendAttributes";
        let attributes = self.message.message(field::FRONTEND_ATTRIBUTES, ATTRIBUTES).ok()??;
        attributes.all_bytes(1).find_map(|entry| {
            let entry = Message::parse(entry, ATTRIBUTES).ok()?;
            let found = entry.string(1, ATTRIBUTES).ok()? == key;
            found.then(|| entry.string(2, ATTRIBUTES).ok().map(str::to_owned)).flatten()
        })
    }

    /// Whether a sharding that says anything is attached.
    pub fn has_sharding(&self) -> bool {
        self.message.bytes(field::SHARDING).is_some_and(|b| !b.is_empty())
    }

    /// Whether a custom call's result may share memory with an operand.
    pub fn has_output_operand_aliasing(&self) -> bool {
        self.message.has(field::OUTPUT_OPERAND_ALIASING)
    }

    pub fn has_side_effect(&self) -> bool {
        self.message.flag(field::CUSTOM_CALL_HAS_SIDE_EFFECT)
    }

    pub fn set_id(&mut self, id: i64) {
        self.message.set_int(field::ID, id);
    }

    pub fn set_name(&mut self, name: &str) {
        self.message.set_bytes(field::NAME, name.as_bytes().to_vec());
    }

    pub fn set_opcode(&mut self, opcode: &str) {
        self.message.set_bytes(field::OPCODE, opcode.as_bytes().to_vec());
    }

    pub fn set_shape(&mut self, shape: &HloShape) {
        self.message.set_message(field::SHAPE, &shape.to_message());
    }

    /// Takes over another instruction's type, to the byte.
    pub fn copy_shape(&mut self, from: &Instruction) {
        self.message.clear(field::SHAPE);
        if let Some(bytes) = from.message.bytes(field::SHAPE) {
            self.message.push(Field::bytes(field::SHAPE, bytes.clone()));
        }
    }

    pub fn set_operand_ids(&mut self, ids: &[i64]) {
        self.message.set_ints(field::OPERAND_IDS, ids);
    }

    pub fn set_control_predecessor_ids(&mut self, ids: &[i64]) {
        self.message.set_ints(field::CONTROL_PREDECESSOR_IDS, ids);
    }

    pub fn set_called_computation_ids(&mut self, ids: &[i64]) {
        self.message.set_ints(field::CALLED_COMPUTATION_IDS, ids);
    }

    pub fn set_parameter_number(&mut self, number: i64) {
        self.message.set_int(field::PARAMETER_NUMBER, number);
    }

    /// Takes over another instruction's op_name, source position and frontend attributes.
    pub fn copy_provenance(&mut self, from: &Instruction) {
        for number in [field::METADATA, field::FRONTEND_ATTRIBUTES] {
            self.message.clear(number);
            if let Some(bytes) = from.message.bytes(number) {
                self.message.push(Field::bytes(number, bytes.clone()));
            }
        }
    }
}

/// Dimension numbers as indices.
pub(super) fn dimension_numbers(numbers: &[i64], message: &'static str) -> Result<Vec<usize>, ProtoError> {
    let index = |&d: &i64| {
        usize::try_from(d).map_err(|_| ProtoError::OutOfRange {
            message,
            field: "dimension",
            value: d.to_string(),
        })
    };
    numbers.iter().map(index).collect()
}
