//! `ACT_VERIFY`: regions are judged once they are taken, whether their code was compiled now or came from a cache. What a
//! verdict means is the checker's business; what follows from it for the program is decided here.

use crate::compiler::{RunnableRegion, TargetCompiler, verification_json};
use crate::options::Verify;
use act_hlo::Graph;
use act_isa::View;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A compiled region with the question that it answers.
pub(super) struct Answer {
    pub(super) region: Arc<RunnableRegion>,
    pub(super) graph: Graph,
    pub(super) operands: Vec<View>,
    pub(super) results: Vec<View>,
}

/// A verdict as records show it, and why the program must not run.
#[derive(Clone)]
pub(super) struct Judged {
    pub(super) record: Value,
    pub(super) failure: Option<String>,
}

/// Verdicts so far, by kernel key; equal keys mean equal regions and equal code.
#[derive(Default)]
pub(super) struct Verdicts {
    known: Mutex<BTreeMap<String, Judged>>,
}

impl Verdicts {
    /// Judges a region's code; `origin` is what it stands for in the program.
    pub(super) fn of(
        &self,
        compiler: &TargetCompiler,
        mode: Verify,
        answer: &Answer,
        origin: &str,
        stopped: &AtomicBool,
    ) -> Judged {
        let key = &answer.region.key;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(judged) = known().get(key) {
            return judged.clone();
        }
        let start = Instant::now();
        let Answer { region, graph, operands, results } = answer;
        let report = compiler.verify(graph, operands, results, region.module.text(), Some(stopped));
        if !report.verdict.is_proved() && stopped.load(Ordering::Relaxed) {
            let failure = Some(format!("interrupted while the code for {origin} was checked"));
            return Judged { record: Value::Null, failure };
        }
        compiler.dump_verification(key, &report);
        let record = verification_json(&report, start.elapsed().as_secs_f64());
        let refuted = record.get("counterexample").is_some();
        let fails = refuted || (mode == Verify::Strict && !report.verdict.is_proved());
        let failure = fails.then(|| {
            let wanted = if refuted { "" } else { " (ACT_VERIFY=strict demands a proof)" };
            format!("{} code for {origin} is not verified{wanted}: {report}", compiler.isa().name)
        });
        let judged = Judged { record, failure };
        known().insert(key.clone(), judged.clone());
        judged
    }
}
