//! From a region to running code: tiling, the stitched loop nest, its lowerings and how each one executes. Does not know PJRT,
//! nor how candidates are found.

pub mod tile;

pub mod region;
pub mod reuse;

#[cfg(feature = "mlir")]
pub(crate) mod mlir;
#[cfg(feature = "mlir")]
pub mod simulate;
#[cfg(feature = "mlir")]
pub mod stitched;
