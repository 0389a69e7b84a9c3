//! How instructions overlap in time: the queues in front of the units, and the banks of buffers. Data only; what a
//! program takes by it, a cost model computes.

use crate::model::{Buffer, BufferId, Isa};

/// What a description says of time beyond the costs of single instructions. Without queues nothing overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// At most one per unit.
    pub queues: Vec<Queue>,
    /// At most one per buffer.
    pub banks: Vec<Banks>,
}

/// The instructions of one unit wait in a queue and start in their order. Units work at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Index into [`Isa::units`].
    pub unit: u16,
    /// Instructions that were issued and are not complete, at most; any number if absent.
    pub depth: Option<u64>,
    /// Cycles in which the issuing processor does nothing but hand one instruction over.
    pub issue: u64,
    /// Cycles that an instruction occupies the unit beside its own cost.
    pub start: u64,
    /// Cycles from the end of that occupation until the instruction is complete.
    pub latency: u64,
    /// An instruction starts only when the one before it is complete.
    pub serial: bool,
    /// The unit gives way at the ports of banks: what other units read and write there makes it wait.
    pub yields: bool,
}

/// A buffer in blocks with one port each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banks {
    pub buffer: BufferId,
    /// Equal blocks per access dimension; their number divides the dimension.
    pub count: Vec<u64>,
    /// Cycles for which every position that is read or written occupies the bank's port. Positions count along the
    /// divided dimensions, along the first one where none is. What one instruction reads in a bank, it reads one after
    /// the other: it takes longer where that is more than its cost.
    pub port: u64,
}

impl Banks {
    /// Positions of a bank along an access dimension.
    pub fn length(&self, buffer: &Buffer, dim: usize) -> u64 {
        let count = self.count.get(dim).copied().unwrap_or(1).max(1);
        (buffer.access.get(dim).copied().unwrap_or(1) / count).max(1)
    }
}

impl Timing {
    /// Whether there is anything that a sum of costs cannot express.
    pub fn is_stated(&self) -> bool {
        !self.queues.is_empty() || !self.banks.is_empty()
    }

    pub fn queue(&self, unit: u16) -> Option<&Queue> {
        self.queues.iter().find(|q| q.unit == unit)
    }

    pub fn banks(&self, buffer: BufferId) -> Option<&Banks> {
        self.banks.iter().find(|b| b.buffer == buffer)
    }
}

impl Isa {
    /// The unit of that name.
    pub fn unit_named(&self, name: &str) -> Option<u16> {
        self.units.iter().position(|u| u == name).and_then(|at| u16::try_from(at).ok())
    }
}
