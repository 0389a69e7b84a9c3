//! Tiling: which loops a region can be cut into, the tiled kernels of every part of the nest (ragged edges, prologue,
//! body and epilogue of a split contraction), and where their tiles lie. Knows no accelerator and no MLIR; how a
//! kernel is compiled is behind a trait.

pub mod axes;
pub mod cut;
pub mod depth;
pub mod granularity;
pub mod grouped;
pub mod nest;
pub mod normalize;
pub mod pack;
pub mod plan;
pub(crate) mod rebuild;
mod reshaped;
pub mod segment;
pub mod segments;
mod shared;
pub mod slots;
mod steps;
pub mod widen;

pub use axes::{Axes, AxisId};
pub use depth::{Joining, join_depths};
pub use granularity::{DotGranularity, dot_granularities};
pub use nest::{AxisTile, ContractionSplit, MOST_KERNELS, NestError, TileChoice, build_nest};
pub use normalize::{Leaf, LeafSource, NormalRegion, NormalizeError, normalize};
pub use plan::{Nest, PlannedKernel, TilePlan};
pub use reshaped::reshaped_views;
pub use segments::Segments;
pub use slots::Blocks;
pub use widen::widened;
