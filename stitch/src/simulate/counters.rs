//! What a run does, known from the text: how often every site is executed, by the oracle's profiles, and how much of the
//! buffers it uses.

use super::LowerError;
use super::kernel::{Kernel, Kind};
use super::layout::BufferLayout;
use act_isa::Isa;
use act_isa::oracle::Counters;

/// The counters of every run without a fault. Bytes that nothing wrote are strict mode's to find; here they are 0.
pub(crate) fn total(isa: &Isa, kernel: &Kernel, layouts: &[BufferLayout]) -> Result<Counters, LowerError> {
    let mut total = Counters::default();
    for (site, count) in kernel.sites.iter().zip(kernel.executions()) {
        if count == 0 {
            continue;
        }
        match &site.kind {
            Kind::HostCopy { elem_bytes, lengths, .. } => {
                let bytes = lengths.iter().fold(*elem_bytes, |n, &len| n.saturating_mul(len));
                let bytes = u64::try_from(bytes).unwrap_or(0).saturating_mul(count);
                total.host_copy_bytes = total.host_copy_bytes.saturating_add(bytes);
            }
            Kind::Instr { op, alpha } => {
                let instr = isa.instr(*op);
                let profile = instr
                    .profile_with(isa, alpha, &site.registers)
                    .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
                total.count_times(&profile, count);
            }
        }
    }
    for (buffer, layout) in isa.buffers.iter().zip(layouts) {
        if layout.bytes > 0 {
            total.peak_bytes.insert(buffer.name.clone(), layout.used_bytes());
        }
    }
    Ok(total)
}
