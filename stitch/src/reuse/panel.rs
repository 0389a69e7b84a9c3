//! Slots for a panel: one per iteration of the loops that its load depends on, behind everything else in the buffer.

use super::access::Region;
use act_isa::{Affine, Isa, LoopId};

/// A row of slots along one access dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Panel {
    /// Access dimension along which the slots lie.
    pub(super) dim: usize,
    first: i64,
    /// Distance between the slots of successive iterations, per loop.
    pitches: Vec<(LoopId, i64)>,
    end: i64,
}

impl Panel {
    /// Slots for values of the shape of `region`, one per iteration of `loops`, along `dim` and from `ends` on; `None`
    /// when they do not fit the buffer. `own_banks`: from the next bank on, where the buffer has banks.
    pub(super) fn reserve(
        isa: &Isa,
        region: &Region,
        loops: &[(LoopId, u64)],
        dim: usize,
        ends: &[Vec<i64>],
        own_banks: bool,
    ) -> Option<Panel> {
        let buffer = isa.buffers.get(usize::from(region.buffer.0))?;
        let align = i64::try_from(buffer.align.get(dim).copied().unwrap_or(1).max(1)).ok()?;
        let aligned = |value: i64| value.checked_add(align - 1).map(|v| v / align * align);
        let bank = isa.timing.banks(region.buffer).filter(|b| own_banks && b.count.get(dim) > Some(&1));
        let bank = bank.map_or(1, |banks| banks.length(buffer, dim));
        let bank = i64::try_from(bank).ok()?;
        let end = *ends.get(usize::from(region.buffer.0))?.get(dim)?;
        let first = aligned(end.checked_add(bank - 1)? / bank * bank)?;
        let mut step = aligned(*region.len.get(dim)?)?;
        let mut pitches = Vec::with_capacity(loops.len());
        for &(iv, trip) in loops.iter().rev() {
            pitches.push((iv, step));
            step = step.checked_mul(i64::try_from(trip).ok()?)?;
        }
        let end = first.checked_add(step)?;
        (end <= i64::try_from(*buffer.access.get(dim)?).ok()?).then_some(Panel { dim, first, pitches, end })
    }

    /// Start of the slot along the panel's dimension.
    pub(super) fn slot(&self) -> Option<Affine> {
        let mut slot = Affine::constant(self.first);
        for &(iv, pitch) in &self.pitches {
            slot.add_term(iv, pitch)?;
        }
        Some(slot)
    }

    /// Marks the panel as used.
    pub(super) fn occupy(&self, region: &Region, ends: &mut [Vec<i64>]) {
        if let Some(end) = ends.get_mut(usize::from(region.buffer.0)).and_then(|e| e.get_mut(self.dim)) {
            *end = self.end;
        }
    }
}
