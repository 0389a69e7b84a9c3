//! Memories of terms that know which instruction wrote and read every element: what order, fences and parallel loops are
//! judged by. Knows no instruction's meaning.

use super::term::Term;
use act_isa::{FaultKind, LoopId};

/// Number of an executed instruction, from 1; 0 is before all.
pub(super) type Moment = u32;

/// Elements or bytes.
pub(super) struct Memory {
    pub(super) terms: Vec<Term>,
    written: Vec<Moment>,
    /// Last reading; only where stores of other iterations can be seen.
    read: Vec<Moment>,
    /// Last store by an instruction; it waits for a fence unless one came later.
    pending: Vec<Moment>,
    fenced: Moment,
    shared: bool,
}

/// Begin of a parallel loop and of its present iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parallel {
    pub(super) iv: LoopId,
    pub(super) begin: Moment,
    pub(super) iteration: Moment,
}

/// Iterations of parallel loops, running and done.
#[derive(Default)]
pub(super) struct Iterations {
    pub(super) running: Vec<Parallel>,
    /// First and last moment, ascending and disjoint.
    done: Vec<(Moment, Moment)>,
}

/// What the order of execution leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hazard {
    Fault { offset: u64, kind: Unordered },
}

/// Why an access depends on an order that nothing enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unordered {
    NeverWritten,
    Unfenced { store: Moment },
    OtherIteration { iv: LoopId, by: Moment },
    AfterParallel { by: Moment },
    WrittenTwice { iv: LoopId, by: Moment },
    ReadByOther { iv: LoopId, by: Moment },
    Overlap,
}

impl Iterations {
    /// The running loop another iteration of which a moment belongs to.
    fn other(&self, moment: Moment) -> Option<LoopId> {
        let inside = |l: &&Parallel| (l.begin..l.iteration).contains(&moment);
        if moment == 0 { None } else { self.running.iter().find(inside).map(|l| l.iv) }
    }

    fn is_done(&self, moment: Moment) -> bool {
        let at = self.done.partition_point(|&(begin, _)| begin <= moment);
        moment > 0 && at.checked_sub(1).is_some_and(|at| moment < self.done[at].1)
    }

    /// A parallel loop has ended at this moment.
    pub(super) fn finish(&mut self, end: Moment) {
        let Some(loop_) = self.running.pop() else { return };
        while self.done.last().is_some_and(|&(begin, _)| begin >= loop_.begin) {
            self.done.pop();
        }
        if loop_.begin < end {
            self.done.push((loop_.begin, end));
        }
    }
}

impl Memory {
    /// `shared`: main memory, which all iterations of a parallel loop and the host see.
    pub(super) fn new(size: usize, value: Term, shared: bool) -> Memory {
        let moments = || if shared { vec![0; size] } else { Vec::new() };
        Memory {
            terms: vec![value; size],
            written: vec![0; size],
            read: moments(),
            pending: moments(),
            fenced: 0,
            shared,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    /// Who wrote last.
    pub(super) fn writer(&self, at: usize) -> Moment {
        self.written[at]
    }

    /// Of all elements.
    pub(super) fn writers(&self) -> &[Moment] {
        &self.written
    }

    pub(super) fn load(
        &mut self,
        offsets: &[usize],
        now: Moment,
        iterations: &Iterations,
    ) -> Result<Vec<Term>, Hazard> {
        let mut terms = Vec::with_capacity(offsets.len());
        for &at in offsets {
            let fault = |kind| Err(Hazard::Fault { offset: at as u64, kind });
            let term = self.terms[at];
            if term == Term::POISON {
                return fault(Unordered::NeverWritten);
            }
            let by = self.written[at];
            if let Some(iv) = iterations.other(by) {
                return fault(Unordered::OtherIteration { iv, by });
            }
            if self.shared {
                if self.pending[at] > self.fenced {
                    return fault(Unordered::Unfenced { store: self.pending[at] });
                }
                self.read[at] = now;
            } else if iterations.is_done(by) {
                return fault(Unordered::AfterParallel { by });
            }
            terms.push(term);
        }
        Ok(terms)
    }

    /// `pending`: the store waits for a fence.
    pub(super) fn store(
        &mut self,
        offsets: &[usize],
        values: &[Term],
        now: Moment,
        iterations: &Iterations,
        pending: bool,
    ) -> Result<(), Hazard> {
        for (&at, &value) in offsets.iter().zip(values) {
            let fault = |kind| Err(Hazard::Fault { offset: at as u64, kind });
            if self.written[at] == now {
                return fault(Unordered::Overlap);
            }
            if self.shared {
                let by = self.written[at];
                if let Some(iv) = iterations.other(by) {
                    return fault(Unordered::WrittenTwice { iv, by });
                }
                let by = self.read[at];
                if let Some(iv) = iterations.other(by) {
                    return fault(Unordered::ReadByOther { iv, by });
                }
                if pending {
                    self.pending[at] = now;
                }
            }
            self.terms[at] = value;
            self.written[at] = now;
        }
        Ok(())
    }

    /// All stores so far are complete.
    pub(super) fn fence(&mut self, now: Moment) {
        self.fenced = now;
    }
}

impl std::fmt::Display for Unordered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unordered::NeverWritten => f.write_str("is read but was never written"),
            Unordered::Unfenced { store } => {
                write!(f, "is read, but no fence follows its store by instruction {store}")
            }
            Unordered::OtherIteration { iv, by } => {
                write!(
                    f,
                    "is read, but another iteration of the parallel loop {iv} wrote it (instruction {by})"
                )
            }
            Unordered::AfterParallel { by } => {
                write!(f, "is read behind the parallel loop that left it on chip (instruction {by})")
            }
            Unordered::WrittenTwice { iv, by } => {
                write!(
                    f,
                    "is written by two iterations of the parallel loop {iv} (first by instruction {by})"
                )
            }
            Unordered::ReadByOther { iv, by } => {
                write!(
                    f,
                    "is written, but another iteration of the parallel loop {iv} reads it (instruction {by})"
                )
            }
            Unordered::Overlap => f.write_str("is written twice by one instruction"),
        }
    }
}

/// Offsets of a strided window, row-major, each inside `size`.
///
/// # Errors
/// The window reaches outside.
pub(super) fn offsets(
    start: i64,
    dims: &[(u64, i64)],
    width: u64,
    size: u64,
) -> Result<Vec<usize>, FaultKind> {
    let count = dims.iter().fold(u128::from(width), |n, &(len, _)| n.saturating_mul(u128::from(len)));
    if count == 0 {
        return Ok(Vec::new());
    }
    let (mut low, mut high) = (i128::from(start), i128::from(start));
    for &(len, stride) in dims {
        let reach = i128::from(stride) * i128::from(len - 1);
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    let end = high.saturating_add(i128::from(width));
    if low < 0 || end > i128::from(size) {
        let clipped = |v: i128| i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX });
        return Err(FaultKind::OutOfBytes { start: clipped(low), end: clipped(end), size });
    }
    const MOST: u128 = 1 << 32;
    if count > MOST {
        return Err(FaultKind::TooLarge { limit: MOST as u64 });
    }
    let mut all = Vec::with_capacity(count as usize);
    walk(start, dims, width, &mut all);
    Ok(all)
}

fn walk(start: i64, dims: &[(u64, i64)], width: u64, out: &mut Vec<usize>) {
    match dims {
        [] => out.extend(start as usize..start as usize + width as usize),
        [(len, 1)] if width == 1 => out.extend(start as usize..start as usize + *len as usize),
        [(len, stride), rest @ ..] => {
            (0..*len as i64).for_each(|k| walk(start + k * stride, rest, width, out));
        }
    }
}
