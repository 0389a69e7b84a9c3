//! The stitched IR: one `func.func @kernel` of real MLIR per region, loops over `llvm.inline_asm`. This text is what
//! the dump shows and what every lowering starts from; edited text is as good as emitted text. Knows no lowering.

mod emit;
pub mod syntax;

use crate::mlir::{MlirError, Session, operations};
use melior::ir::attribute::{DenseI64ArrayAttribute, IntegerAttribute};
use melior::ir::operation::{OperationLike, OperationRef};
use melior::ir::{Attribute, Module};
use std::sync::Arc;

pub use emit::{EmitError, emit};

/// Name of the function that runs a region.
pub const KERNEL: &str = "kernel";
/// Name of the function that stands for [`act_isa::Program::HostCopy`].
pub const HOST_COPY: &str = "act_host_copy";

/// A stitched region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StitchedModule {
    text: Arc<str>,
}

/// What the caller of a kernel must know: byte sizes of the segments, contents of the constant segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub operands: Vec<u64>,
    pub results: Vec<u64>,
    pub scratch_bytes: u64,
    pub consts: Arc<[u8]>,
}

/// Why text is no stitched module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StitchedError {
    #[error(transparent)]
    Mlir(#[from] MlirError),
    #[error("the module has no function @kernel")]
    NoKernel,
    #[error("@kernel has no usable attribute `{0}`")]
    Attribute(&'static str),
    #[error("@kernel takes {got} arguments; its segments need {expected}")]
    ArgumentCount { expected: usize, got: usize },
}

impl StitchedModule {
    /// Takes text as it stands in a dump, possibly edited.
    ///
    /// # Errors
    /// MLIR's messages when it is not well-formed, or what `@kernel` lacks.
    pub fn parse(text: &str) -> Result<StitchedModule, StitchedError> {
        let session = Session::new();
        let module = session.parse(text)?;
        interface(&module)?;
        Ok(StitchedModule { text: text.into() })
    }

    /// MLIR text, parseable by mlir-opt.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The function `@kernel`.
pub(crate) fn kernel<'c, 'a>(module: &'a Module<'c>) -> Result<OperationRef<'c, 'a>, StitchedError> {
    let named = |operation: &OperationRef<'c, 'a>| {
        operation.name().as_string_ref().as_str() == Ok("func.func")
            && operation.attribute("sym_name").is_ok_and(|name| name.to_string() == format!("\"{KERNEL}\""))
    };
    operations(module).into_iter().find(named).ok_or(StitchedError::NoKernel)
}

/// Reads the attributes that [`emit`] writes on `@kernel`.
///
/// # Errors
/// A missing kernel or attribute, an argument list that does not match.
pub(crate) fn interface(module: &Module<'_>) -> Result<Interface, StitchedError> {
    let kernel = kernel(module)?;
    let sizes = |name: &'static str| {
        let bad = |_| StitchedError::Attribute(name);
        let array = kernel.attribute(name).and_then(DenseI64ArrayAttribute::try_from).map_err(bad)?;
        let size = |k: usize| {
            let size = array.element(k).ok().and_then(|v| u64::try_from(v).ok());
            size.ok_or(StitchedError::Attribute(name))
        };
        (0..array.len()).map(size).collect::<Result<Vec<u64>, _>>()
    };
    let (operands, results) = (sizes("act.operand_bytes")?, sizes("act.result_bytes")?);
    let scratch = kernel.attribute("act.scratch_bytes").and_then(IntegerAttribute::try_from);
    let scratch_bytes = scratch.ok().and_then(|s| u64::try_from(s.value()).ok());
    let consts = kernel.attribute("act.consts").ok().and_then(|attribute| bytes_of(&attribute));
    let interface = Interface {
        scratch_bytes: scratch_bytes.ok_or(StitchedError::Attribute("act.scratch_bytes"))?,
        consts: consts.ok_or(StitchedError::Attribute("act.consts"))?,
        operands,
        results,
    };
    // Scratch, constants and the machine follow the operands and results.
    let expected = interface.operands.len() + interface.results.len() + 3;
    let got = arguments(&kernel);
    if got == expected { Ok(interface) } else { Err(StitchedError::ArgumentCount { expected, got }) }
}

fn arguments(function: &OperationRef<'_, '_>) -> usize {
    use melior::ir::{BlockLike, RegionLike};
    let block = function.region(0).ok().and_then(|region| region.first_block());
    block.map_or(0, |block| block.argument_count())
}

/// Bytes of a `dense<..> : tensor<Nxi8>`.
fn bytes_of(attribute: &Attribute<'_>) -> Option<Arc<[u8]>> {
    use melior::ir::attribute::AttributeLike;
    let raw = attribute.to_raw();
    // SAFETY: the attribute is alive as long as its context, which the caller's module borrows; every accessor is
    // used only after the predicate that it requires.
    unsafe {
        if !mlir_sys::mlirAttributeIsADenseElements(raw) {
            return None;
        }
        let element = mlir_sys::mlirShapedTypeGetElementType(mlir_sys::mlirAttributeGetType(raw));
        if !mlir_sys::mlirTypeIsAInteger(element) || mlir_sys::mlirIntegerTypeGetWidth(element) != 8 {
            return None;
        }
        let len = usize::try_from(mlir_sys::mlirElementsAttrGetNumElements(raw)).ok()?;
        if len == 0 {
            return Some(Arc::from([]));
        }
        let data = mlir_sys::mlirDenseElementsAttrGetRawData(raw).cast::<u8>();
        if mlir_sys::mlirDenseElementsAttrIsSplat(raw) {
            return Some(vec![*data; len].into());
        }
        Some(std::slice::from_raw_parts(data, len).into())
    }
}
