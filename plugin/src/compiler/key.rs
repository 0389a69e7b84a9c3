//! The key of a stitched region: everything that decides what runs for it. Equal keys, equal code.

use act_generator::Options;
use act_hlo::Graph;
use act_isa::{Isa, View};
use sha2::{Digest, Sha256};

/// Hexadecimal sha256 over the region, the views of its operands and results, the description, the options, the cost
/// model and this build.
pub(super) fn region_key(
    isa: &Isa,
    options: &Options,
    cost_fingerprint: &[u8; 32],
    graph: &Graph,
    operands: &[View],
    results: &[View],
) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(crate::build_id::build_id().as_bytes());
    part(isa.digest().as_bytes());
    part(format!("{options:?}").as_bytes());
    part(cost_fingerprint);
    part(&act_hlo::canonical_bytes(graph));
    part(format!("{operands:?}").as_bytes());
    part(format!("{results:?}").as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
