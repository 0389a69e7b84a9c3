//! Tests of phase 2: hand-built pii graphs with known answers, a cell-by-cell execution of the emitted code, and both
//! allocators against exhaustive search.

mod addresses;
mod attention;
mod banks;
mod candidates;
mod description;
mod graphs;
mod identities;
mod orders;
mod places;
mod random;
mod replay;
mod spills;
