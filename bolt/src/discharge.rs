//! Conditions given to the solver, several at a time: each is asked whether its assumptions imply its goal and whether its
//! assumptions can be met at all.

use crate::case::Options;
use crate::hex::expand::Expanded;
use crate::hex::source::Source;
use crate::solver::{Solver, SolverError, Verdict};
use crate::verify::Generated;
use crate::verify::instantiate::{flatten, instances};
use crate::verify::smtlib::script;
use crate::verify::term::Term;
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

/// Asks the solver about all conditions. With `thorough`, those that fail are asked again with all instances.
#[must_use]
pub fn discharge(
    case: &Expanded,
    generated: Generated,
    source: &Source,
    solver: &Solver,
    options: &Options,
    thorough: bool,
) -> Vec<Proof> {
    let Generated { mut terms, conditions, .. } = generated;
    let mut queries: Vec<Query> = Vec::new();
    let mut premises: Vec<String> = Vec::new();
    let mut premise_of: HashMap<String, usize> = HashMap::new();
    for condition in &conditions {
        let found = instances(&mut terms, condition);
        let mut assertions = condition.assumptions.clone();
        assertions.extend(&found);
        let premise = script(case, &mut terms, "can the assumptions be met?", &assertions);
        let premise = *premise_of.entry(premise).or_insert_with_key(|text| {
            premises.push(text.clone());
            premises.len() - 1
        });
        let lines: Vec<String> = condition.spans.iter().map(|span| source.line(*span)).collect();
        let comment = format!("{}: {}\nunsat: it holds\n{}", case.name, condition.name, lines.join("\n"));
        assertions.push(terms.not(condition.goal));
        let text = script(case, &mut terms, &comment, &assertions);
        queries.push(Query { lines, comment, assertions, text, premise, instances: found.len() });
    }
    // A state that meets many assumptions takes longer to find than a contradiction.
    let patience = options.limit * 3;
    let mut met = parallel(options.threads, premises.len(), |index| solver.check(&premises[index], patience));
    let mut verdicts =
        parallel(options.threads, queries.len(), |index| solver.check(&queries[index].text, options.limit));
    if thorough {
        let mut again = Vec::new();
        for (index, query) in queries.iter_mut().enumerate() {
            if verdicts[index] == Ok(Verdict::Unsatisfiable) {
                continue;
            }
            if let Some(flat) = flatten(&mut terms, &conditions[index], FLATTEN) {
                query.instances += flat.len();
                let goal = query.assertions.pop();
                query.assertions.extend(flat);
                let premise = script(case, &mut terms, "can the assumptions be met?", &query.assertions);
                query.assertions.extend(goal);
                query.text = script(case, &mut terms, &query.comment, &query.assertions);
                again.push((index, premise));
            }
        }
        let answers = parallel(options.threads, again.len(), |at| {
            let (index, premise) = &again[at];
            let verdict = solver.check(&queries[*index].text, options.limit);
            // More was assumed, so more must be possible together.
            let met = (verdict == Ok(Verdict::Unsatisfiable)).then(|| solver.check(premise, patience));
            (verdict, met)
        });
        for ((index, _), (verdict, more)) in again.into_iter().zip(answers) {
            verdicts[index] = verdict;
            if let Some(more) = more {
                queries[index].premise = met.len();
                met.push(more);
            }
        }
    }
    let proof = |(index, verdict): (usize, Result<Verdict, SolverError>)| {
        let query = &queries[index];
        let answer = match (verdict, &met[query.premise]) {
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
        Proof {
            name: conditions[index].name.clone(),
            lines: query.lines.clone(),
            answer,
            script: query.text.clone(),
            instances: query.instances,
        }
    };
    verdicts.into_iter().enumerate().map(proof).collect()
}

/// A condition as it is asked.
struct Query {
    lines: Vec<String>,
    comment: String,
    assertions: Vec<Term>,
    text: String,
    /// Which of the premises is its own.
    premise: usize,
    instances: usize,
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
