//! What a check may take: steps, wall time, and no more once its caller has lost interest. Knows nothing of what is checked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why a check ended before it came to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Spent {
    #[error("more than {limit} steps")]
    Steps { limit: u64 },
    #[error("time limit: no verdict within {} s", limit.as_secs_f64())]
    Time { limit: Duration },
    #[error("interrupted")]
    Stopped,
}

/// Steps between two looks at the clock: some microseconds of work.
const LOOK: u64 = 1 << 14;

/// Steps are products, elements and iterations; a copy counts them by itself and ends at the same time.
#[derive(Clone)]
pub(super) struct Budget<'a> {
    taken: u64,
    limit: u64,
    looked: u64,
    time: Option<(Instant, Duration)>,
    stopped: Option<&'a AtomicBool>,
}

impl<'a> Budget<'a> {
    /// Time runs from now on.
    pub(super) fn new(limit: u64, time: Option<Duration>, stopped: Option<&'a AtomicBool>) -> Budget<'a> {
        // A limit beyond what clocks count is none.
        let time = time.and_then(|time| Some((Instant::now().checked_add(time)?, time)));
        Budget { taken: 0, limit, looked: 0, time, stopped }
    }

    /// Takes steps.
    ///
    /// # Errors
    /// There are no more, or it is time to end.
    #[inline]
    pub(super) fn take(&mut self, steps: u64) -> Result<(), Spent> {
        self.taken = self.taken.saturating_add(steps);
        if self.taken > self.limit {
            return Err(Spent::Steps { limit: self.limit });
        }
        if self.taken - self.looked < LOOK {
            return Ok(());
        }
        self.looked = self.taken;
        self.look()
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// It is time to end.
    pub(super) fn look(&self) -> Result<(), Spent> {
        if self.stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
            return Err(Spent::Stopped);
        }
        match self.time {
            Some((end, limit)) if Instant::now() >= end => Err(Spent::Time { limit }),
            _ => Ok(()),
        }
    }
}
