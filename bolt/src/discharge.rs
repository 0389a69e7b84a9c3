//! Conditions given to the solver, several at a time: each is asked whether its assumptions imply its goal and whether its
//! assumptions can be met at all.

use crate::case::Options;
use crate::hex::expand::Expanded;
use crate::hex::source::Source;
use crate::solver::{Solver, Verdict};
use crate::verify::Generated;
use crate::verify::instantiate::{flatten, instances};
use crate::verify::smtlib::script;
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the solver says of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Holds,
    /// A state meets the assumptions, as far as they were instantiated, and not the goal.
    Fails {
        model: String,
    },
    /// No state meets the assumptions.
    Vacuous,
    Undecided {
        reason: String,
    },
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Holds => f.write_str("holds"),
            Answer::Fails { .. } => f.write_str("a state contradicts it"),
            Answer::Vacuous => f.write_str("its assumptions contradict each other"),
            Answer::Undecided { reason } => write!(f, "undecided: {reason}"),
        }
    }
}

/// A condition with its answer.
#[derive(Clone, Debug)]
pub struct Proof {
    pub name: String,
    /// The source lines it is about.
    pub lines: Vec<String>,
    pub answer: Answer,
    /// The script that was unsatisfiable if it holds.
    pub script: String,
    pub instances: usize,
}

/// All instances are tried where there are no more than so many.
const FLATTEN: i128 = 3000;

/// Asks the solver about all conditions.
#[must_use]
pub fn discharge(
    case: &Expanded,
    generated: Generated,
    source: &Source,
    solver: &Solver,
    options: &Options,
) -> Vec<Proof> {
    let Generated { mut terms, conditions, .. } = generated;
    let mut jobs = Vec::new();
    let mut premises: Vec<String> = Vec::new();
    let mut premise_of: HashMap<String, usize> = HashMap::new();
    for condition in &conditions {
        let found = instances(&mut terms, condition);
        let mut assumptions = condition.assumptions.clone();
        assumptions.extend(&found);
        let premise = script(case, &mut terms, "can the assumptions be met?", &assumptions);
        let premise = *premise_of.entry(premise).or_insert_with_key(|text| {
            premises.push(text.clone());
            premises.len() - 1
        });
        let negated = terms.not(condition.goal);
        let lines: Vec<String> = condition.spans.iter().map(|span| source.line(*span)).collect();
        let comment = format!("{}: {}\nunsat: it holds\n{}", case.name, condition.name, lines.join("\n"));
        let mut all = assumptions;
        all.push(negated);
        let text = script(case, &mut terms, &comment, &all);
        let more = flatten(&mut terms, condition, FLATTEN).map(|flat| {
            all.extend(flat);
            script(case, &mut terms, &comment, &all)
        });
        jobs.push((condition.name.clone(), lines, text, more, premise, found.len()));
    }
    let met =
        parallel(options.threads, premises.len(), |index| solver.check(&premises[index], options.limit));
    parallel(options.threads, jobs.len(), |index| {
        let (name, lines, text, more, premise, count) = &jobs[index];
        let mut script = text;
        let mut verdict = solver.check(text, options.limit);
        if let (Ok(Verdict::Satisfiable { .. } | Verdict::Unknown { .. }), Some(more)) = (&verdict, more) {
            script = more;
            verdict = solver.check(more, options.limit);
        }
        let answer = match (verdict, &met[*premise]) {
            (Ok(Verdict::Unsatisfiable), Ok(Verdict::Satisfiable { .. })) => Answer::Holds,
            (Ok(Verdict::Unsatisfiable), Ok(Verdict::Unsatisfiable)) => Answer::Vacuous,
            (Ok(Verdict::Unsatisfiable), Ok(Verdict::Unknown { reason })) => {
                Answer::Undecided { reason: format!("whether the assumptions can be met: {reason}") }
            }
            (Ok(Verdict::Satisfiable { model }), _) => Answer::Fails { model },
            (Ok(Verdict::Unknown { reason }), _) => Answer::Undecided { reason },
            (Err(error), _) => Answer::Undecided { reason: error.to_string() },
            (_, Err(error)) => Answer::Undecided { reason: error.to_string() },
        };
        Proof { name: name.clone(), lines: lines.clone(), answer, script: script.clone(), instances: *count }
    })
}

/// Results of `work` for 0..count, in order, by some threads.
fn parallel<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let result = work(index);
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[index] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.into_iter().flatten().collect()
}
