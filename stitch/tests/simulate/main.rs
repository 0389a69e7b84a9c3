//! The compiled simulator against the oracle, and on hand-built programs.
#![cfg(feature = "mlir")]

mod differential;
mod elementwise;
mod matmul;
mod nests;
mod strict;
mod threads;
mod tile_machine;
