//! What a region was compiled to, in numbers: instructions by kind, bytes, modelled cycles.

use act_isa::{Counters, Isa, Program};
use act_stitch::region::{Packing, RegionCode};
use act_stitch::tile::TileChoice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The line that a dump and `act_pjrt.regions()` show for a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionSummary {
    pub target: String,
    /// Tile sizes of the cut axes, in loop order, then those of the split contraction.
    pub tile: Vec<u64>,
    /// Instructions that one execution runs, by name.
    pub instructions: BTreeMap<String, u64>,
    /// Bytes that instructions move between memories, by source and then destination.
    pub bytes_moved: BTreeMap<String, BTreeMap<String, u64>>,
    /// Bytes that the host copies to pack and unpack.
    pub host_copy_bytes: u64,
    pub modelled_cycles: u64,
    /// Allocators that placed the kernels.
    pub allocators: Vec<String>,
    pub kernels: usize,
    pub packing: String,
}

impl RegionSummary {
    pub fn new(isa: &Isa, code: &RegionCode) -> RegionSummary {
        let mut allocators: Vec<String> = code.kernels.iter().map(|k| k.code.allocator.clone()).collect();
        allocators.sort();
        allocators.dedup();
        let counters = counters_of(isa, &code.program.body);
        RegionSummary {
            target: isa.name.clone(),
            tile: tile_sizes(&code.choice),
            instructions: counters.instructions,
            bytes_moved: counters.bytes,
            host_copy_bytes: counters.host_copy_bytes,
            modelled_cycles: code.cost,
            allocators,
            kernels: code.kernels.len(),
            packing: match code.packing {
                Packing::None => "none",
                Packing::Unnatural => "operands in an unnatural order",
                Packing::All => "all operands and results",
                Packing::Padded => "all operands and results, padded to whole tiles",
                Packing::Grouped => {
                    "all operands and results, padded to whole tiles, right operands in groups"
                }
            }
            .to_owned(),
        }
    }
}

/// Tile sizes of the cut axes, in loop order, then those of the split contraction.
pub fn tile_sizes(choice: &TileChoice) -> Vec<u64> {
    let cut = choice.tiles.values().map(|tile| tile.len);
    let split = choice.contraction.iter().flat_map(|split| &split.axes).map(|(_, tile)| tile.len);
    cut.chain(split).collect()
}

impl RegionSummary {
    /// Adds what one execution costs to sums by name.
    pub(crate) fn add_costs(&self, sums: &mut BTreeMap<String, f64>) {
        let mut add = |name: String, value: u64| *sums.entry(name).or_default() += value as f64;
        add("act kernels".to_owned(), 1);
        add("act modelled cycles".to_owned(), self.modelled_cycles);
        add("act host copy bytes".to_owned(), self.host_copy_bytes);
        let moved = self.bytes_moved.values().flat_map(BTreeMap::values).sum();
        add("act bytes moved".to_owned(), moved);
        add("act instructions".to_owned(), self.instructions.values().sum());
        for (instruction, &count) in &self.instructions {
            add(format!("act instructions {instruction}"), count);
        }
    }
}

/// What one execution of a nest counts, by the same profiles that oracle and simulator count by.
pub fn counters_of(isa: &Isa, program: &Program) -> Counters {
    let mut counters = Counters::default();
    count(isa, program, 1, &mut counters);
    counters
}

fn count(isa: &Isa, program: &Program, times: u64, into: &mut Counters) {
    match program {
        Program::Seq(parts) => parts.iter().for_each(|part| count(isa, part, times, into)),
        Program::For { trip, body, .. } => count(isa, body, times.saturating_mul(*trip), into),
        Program::Instr { op, alpha, .. } => {
            // An instruction without a profile has been refused by the simulator before.
            if let Ok(profile) = isa.instr(*op).profile(isa, alpha) {
                into.count_times(&profile, times);
            }
        }
        Program::HostCopy { from, .. } => {
            let elements = from.dims.iter().fold(1u64, |n, d| n.saturating_mul(d.0));
            let bytes = times.saturating_mul(elements).saturating_mul(from.elem.bytes());
            into.host_copy_bytes = into.host_copy_bytes.saturating_add(bytes);
        }
        Program::Fence => {}
    }
}
