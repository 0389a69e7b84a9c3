//! What a program did in a run: which values passed from one iteration of a loop to a later one, which branches were taken,
//! which integers functions were given. A help for guessing; nothing rests on it.

use super::source::Span;
use super::syntax::Sym;
use std::collections::{BTreeSet, HashMap, HashSet};

/// How iterations of a loop depend on each other through elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carried {
    /// Every iteration reads the same places that earlier ones wrote.
    Same,
    /// Iterations read different places of earlier ones.
    Different,
}

/// Iterations of labelled loops, outermost first.
pub type Moment = Vec<(Sym, i64)>;

#[derive(Debug)]
struct Frame {
    loop_at: Span,
    label: Option<Sym>,
    parallel: bool,
    start: u64,
    iteration: u64,
    /// Places that this iteration read and an earlier one wrote; and those of the iteration before.
    carried: BTreeSet<(Sym, usize)>,
    before: Option<BTreeSet<(Sym, usize)>>,
    iterations: u64,
}

/// The notes of one run.
#[derive(Debug, Default)]
pub struct Trace {
    time: u64,
    frames: Vec<Frame>,
    written: HashMap<(Sym, usize), u64>,
    /// Loops whose iterations depend on each other.
    pub carried: HashMap<Span, Carried>,
    /// Buffers and locals through which they do, by loop.
    pub accumulators: HashMap<Span, HashSet<Sym>>,
    /// Branches that were taken, by their condition.
    pub branches: HashSet<(Span, bool)>,
    /// Arguments of an application; None where one of them was not always the same.
    pub arguments: HashMap<Span, Vec<Option<i64>>>,
    /// Buffers of which the moments of writes are wanted; nothing else is noted then.
    watched: Option<HashSet<Sym>>,
    /// When a place was written first, and when last.
    pub moments: HashMap<(Sym, usize), (Moment, Moment)>,
}

impl Trace {
    /// Notes that only say when places of some buffers are written.
    #[must_use]
    pub fn of_writes(watched: HashSet<Sym>) -> Trace {
        Trace { watched: Some(watched), ..Trace::default() }
    }

    pub(super) fn enter(&mut self, loop_at: Span, label: Option<Sym>, parallel: bool) {
        self.time += 1;
        self.frames.push(Frame {
            loop_at,
            label,
            parallel,
            start: self.time,
            iteration: self.time,
            carried: BTreeSet::new(),
            before: None,
            iterations: 0,
        });
    }

    pub(super) fn iterate(&mut self) {
        self.time += 1;
        self.close();
        if let Some(frame) = self.frames.last_mut() {
            frame.iteration = self.time;
            frame.iterations += 1;
        }
    }

    /// Compares what the iteration that ends took over with what the one before it did.
    fn close(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        // The first iteration has none before it to read from.
        if frame.iterations >= 2 {
            let now = std::mem::take(&mut frame.carried);
            let same = frame.before.as_ref().is_none_or(|before| *before == now);
            if !now.is_empty() || !same {
                let kind = if same { Carried::Same } else { Carried::Different };
                let entry = self.carried.entry(frame.loop_at).or_insert(kind);
                *entry = (*entry).max(kind);
            }
            frame.before = Some(now);
        }
    }

    pub(super) fn leave(&mut self) {
        self.close();
        self.frames.pop();
        self.time += 1;
    }

    pub(super) fn write(&mut self, name: Sym, offset: usize) {
        self.time += 1;
        let Some(watched) = &self.watched else {
            self.written.insert((name, offset), self.time);
            return;
        };
        if watched.contains(&name) {
            let serial = self.frames.iter().filter(|frame| !frame.parallel);
            let moment: Moment = serial
                .filter_map(|frame| Some((frame.label?, i64::try_from(frame.iterations).unwrap_or(0) - 1)))
                .collect();
            match self.moments.get_mut(&(name, offset)) {
                Some((_, last)) => *last = moment,
                None => {
                    self.moments.insert((name, offset), (moment.clone(), moment));
                }
            }
        }
    }

    pub(super) fn read(&mut self, name: Sym, offset: usize) {
        let Some(&at) = self.written.get(&(name, offset)) else { return };
        for frame in self.frames.iter_mut().filter(|frame| !frame.parallel) {
            if frame.start <= at && at < frame.iteration {
                frame.carried.insert((name, offset));
                self.accumulators.entry(frame.loop_at).or_default().insert(name);
            }
        }
    }

    pub(super) fn branch(&mut self, condition: Span, holds: bool) {
        if self.watched.is_some() {
            return;
        }
        self.branches.insert((condition, holds));
    }

    pub(super) fn apply(&mut self, at: Span, values: &[i64]) {
        if self.watched.is_some() {
            return;
        }
        match self.arguments.get_mut(&at) {
            Some(known) => {
                for (known, value) in known.iter_mut().zip(values) {
                    *known = known.filter(|known| known == value);
                }
            }
            None => {
                self.arguments.insert(at, values.iter().copied().map(Some).collect());
            }
        }
    }
}
