//! The compiled simulator on hand-built descriptions and loop programs.
#![cfg(feature = "mlir")]

mod matmul;
mod tile_machine;
