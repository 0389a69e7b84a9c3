//! What a run did, from how often each native function was executed. Counts by the oracle's profiles.

use super::LowerError;
use super::lower::Kind;
use act_isa::Isa;
use act_isa::oracle::{Counters, Profile};

/// What one execution of a native function adds.
#[derive(Clone, Debug)]
pub(crate) enum Executed {
    Instr(Profile),
    /// Bytes copied.
    HostCopy(u64),
}

impl Executed {
    pub(crate) fn of(isa: &Isa, kind: &Kind) -> Result<Executed, LowerError> {
        match kind {
            Kind::HostCopy { elem_bytes, lengths, .. } => {
                let bytes = lengths.iter().fold(*elem_bytes, |n, &len| n.saturating_mul(len));
                Ok(Executed::HostCopy(u64::try_from(bytes).unwrap_or(0)))
            }
            Kind::Instr { op, alpha } => {
                let instr = isa.instr(*op);
                let profile = instr.profile(isa, alpha);
                let fail = |error| LowerError::Instantiate { instr: instr.name.clone(), error };
                profile.map(Executed::Instr).map_err(fail)
            }
        }
    }
}

/// The counters of one run. Bytes that nothing wrote are the oracle's to find: here they are always 0.
pub(crate) fn total(natives: &[Executed], counts: &[u64]) -> Counters {
    let mut total = Counters::default();
    for (executed, &count) in natives.iter().zip(counts).filter(|(_, count)| **count > 0) {
        match executed {
            Executed::Instr(profile) => total.count_times(profile, count),
            Executed::HostCopy(bytes) => {
                total.host_copy_bytes = total.host_copy_bytes.saturating_add(bytes.saturating_mul(count));
            }
        }
    }
    total
}
