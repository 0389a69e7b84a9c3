//! Conditions given to the solver, several at a time: each is asked whether its assumptions imply its goal and whether its
//! assumptions can be met at all.

use crate::case::Options;
use crate::hex::expand::Expanded;
use crate::hex::source::Source;
use crate::solver::{Solver, SolverError, Verdict};
use crate::verify::Generated;
use crate::verify::condition::Condition;
use crate::verify::instantiate::{Which, flatten, instances};
use crate::verify::smtlib::script;
use crate::verify::term::{Term, Terms};
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
    let mut asked =
        Asked { solver, options, premises: Vec::new(), premise_of: HashMap::new(), met: Vec::new() };
    let mut queries: Vec<Query> = Vec::new();
    for condition in &conditions {
        let found = instances(&mut terms, condition, Which::Simple);
        let lines: Vec<String> = condition.spans.iter().map(|span| source.line(*span)).collect();
        let comment = format!("{}: {}\nunsat: it holds\n{}", case.name, condition.name, lines.join("\n"));
        let mut query = Query { lines, comment, text: String::new(), premise: 0, instances: 0 };
        query.ask(case, &mut terms, condition, found, &mut asked);
        queries.push(query);
    }
    let mut verdicts = asked.answers(&queries);
    // More instances where these do not do, and in the end all there are.
    for last in [false, true] {
        let mut again = Vec::new();
        for index in 0..queries.len() {
            if verdicts[index] == Ok(Verdict::Unsatisfiable) {
                continue;
            }
            let condition = &conditions[index];
            let mut found = instances(&mut terms, condition, Which::All);
            if last {
                let flat = if thorough { flatten(&mut terms, condition, FLATTEN) } else { None };
                let Some(flat) = flat else { continue };
                found.extend(flat);
            } else if found.len() == queries[index].instances {
                continue;
            }
            queries[index].ask(case, &mut terms, condition, found, &mut asked);
            again.push(index);
        }
        let asked_again: Vec<Query> = again.iter().map(|index| queries[*index].clone()).collect();
        for (index, verdict) in again.into_iter().zip(asked.answers(&asked_again)) {
            verdicts[index] = verdict;
        }
    }
    let met = asked.met;
    let proof = |(index, verdict): (usize, Result<Verdict, SolverError>)| {
        let query = &queries[index];
        let answer = match verdict {
            Ok(Verdict::Unsatisfiable) => match &met[query.premise] {
                Some(Ok(Verdict::Satisfiable { .. })) => Answer::Holds,
                Some(Ok(Verdict::Unsatisfiable)) => Answer::Vacuous,
                Some(Ok(Verdict::Unknown { reason })) => {
                    Answer::Undecided { reason: format!("whether the assumptions can be met: {reason}") }
                }
                Some(Err(error)) => Answer::Undecided { reason: error.to_string() },
                None => {
                    Answer::Undecided { reason: "whether the assumptions can be met was not asked".into() }
                }
            },
            Ok(Verdict::Satisfiable { model }) => Answer::Fails { model },
            Ok(Verdict::Unknown { reason }) => Answer::Undecided { reason },
            Err(error) => Answer::Undecided { reason: error.to_string() },
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
#[derive(Clone)]
struct Query {
    lines: Vec<String>,
    comment: String,
    text: String,
    /// Which of the premises is its own.
    premise: usize,
    instances: usize,
}

impl Query {
    /// Asks with these instances of what is known.
    fn ask(
        &mut self,
        case: &Expanded,
        terms: &mut Terms,
        condition: &Condition,
        found: Vec<Term>,
        asked: &mut Asked<'_>,
    ) {
        self.instances = found.len();
        let mut assertions = condition.assumptions.clone();
        assertions.extend(found);
        self.premise = asked.premise(script(case, terms, "can the assumptions be met?", &assertions));
        assertions.push(terms.not(condition.goal));
        self.text = script(case, terms, &self.comment, &assertions);
    }
}

/// The solver with what it was asked.
struct Asked<'a> {
    solver: &'a Solver,
    options: &'a Options,
    premises: Vec<String>,
    premise_of: HashMap<String, usize>,
    /// Answers about the premises; None where nothing rests on one.
    met: Vec<Option<Result<Verdict, SolverError>>>,
}

impl Asked<'_> {
    /// The number of a premise.
    fn premise(&mut self, text: String) -> usize {
        let premises = &mut self.premises;
        *self.premise_of.entry(text).or_insert_with_key(|text| {
            premises.push(text.clone());
            premises.len() - 1
        })
    }

    /// What the solver says of queries; where one holds, also whether its premise can be met.
    fn answers(&mut self, queries: &[Query]) -> Vec<Result<Verdict, SolverError>> {
        let Options { limit, threads, .. } = *self.options;
        let verdicts = parallel(threads, queries.len(), |at| self.solver.check(&queries[at].text, limit));
        self.met.resize(self.premises.len(), None);
        let holding = queries.iter().zip(&verdicts).filter(|(_, v)| **v == Ok(Verdict::Unsatisfiable));
        let mut open: Vec<usize> = holding.map(|(query, _)| query.premise).collect();
        open.retain(|&premise| self.met[premise].is_none());
        open.sort_unstable();
        open.dedup();
        // A state that meets many assumptions takes longer to find than a contradiction.
        let patience = limit * 3;
        let met = parallel(threads, open.len(), |at| self.solver.check(&self.premises[open[at]], patience));
        for (premise, answer) in open.into_iter().zip(met) {
            self.met[premise] = Some(answer);
        }
        verdicts
    }
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
