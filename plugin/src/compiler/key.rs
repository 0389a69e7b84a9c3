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
    strict: bool,
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
    part(&[u8::from(strict)]);
    part(cost_fingerprint);
    part(&act_hlo::canonical_bytes(graph));
    part(format!("{operands:?}").as_bytes());
    part(format!("{results:?}").as_bytes());
    hexadecimal(&hash.finalize())
}

/// Bytes of a description's hash that are enough to tell descriptions apart in messages and fingerprints.
const DESCRIPTION_HASH: usize = 8;

/// A short hash of a description's normal form.
pub(super) fn description_hash(isa: &Isa) -> String {
    hexadecimal(&Sha256::digest(isa.digest().as_bytes())[..DESCRIPTION_HASH])
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
