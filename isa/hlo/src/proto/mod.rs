//! HloModuleProto, read and written without loss: what XLA put in comes out byte for byte, known or not,
//! unless it was edited. Field numbers are those of XLA's hlo.proto and xla_data.proto.

pub mod convert;
pub mod instruction;
mod literal;
mod module;
mod shape;
mod wire;

pub use instruction::{Instruction, Metadata, PadDim, SliceDim};
pub use literal::{read_literal, write_literal};
pub use module::{BufferAlias, Computation, FreshNames, HloModule};
pub use shape::{ArrayShape, HloShape};
pub use wire::{Field, Message, Payload, ProtoError};
