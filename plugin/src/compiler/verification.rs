//! Judging a region's stitched text with the checker, which shares no code with what compiled it.

use act_bolt::Solver;
use act_bolt::region::{Permitted, RegionOptions, RegionReport, RegionSpec, RegionVerdict, verify_region};
use act_generator::FloatPolicy;
use act_hlo::Graph;
use act_isa::{Isa, View};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Several times what a product of 512 by 512 by 512 takes where instructions multiply vectors.
pub(crate) const VERIFY_TIMEOUT: Duration = Duration::from_secs(300);

/// Z3's library: where `ACT_Z3_LIB` says, or in the Python environment that this program was installed into.
pub fn z3_library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ACT_Z3_LIB") {
        return Some(path.into());
    }
    let library = std::env::current_exe().ok()?.parent()?.parent()?.join("lib");
    let versions = fs::read_dir(library).ok()?.flatten();
    let candidates = versions.map(|version| version.path().join("site-packages/z3/lib/libz3.so"));
    candidates.filter(|path| path.is_file()).min()
}

/// The process's Z3; opened once.
fn solver() -> Option<&'static Solver> {
    static SOLVER: OnceLock<Option<Solver>> = OnceLock::new();
    let open = || {
        let path = z3_library()?;
        Solver::open(&path).inspect_err(|error| tracing::warn!("{error}")).ok()
    };
    SOLVER.get_or_init(open).as_ref()
}

/// What a float policy lets the checker pass.
pub(super) fn permitted(float: FloatPolicy) -> Permitted {
    match float {
        FloatPolicy::Exact => Permitted::Exact,
        FloatPolicy::Xla => Permitted::Xla,
        FloatPolicy::Fast => Permitted::Fast,
    }
}

/// Judges stitched text against the graph that it was made for.
pub(super) fn verify(
    isa: &Isa,
    float: FloatPolicy,
    graph: &Graph,
    (operands, results): (&[View], &[View]),
    text: &str,
    timeout: Duration,
    stopped: Option<&AtomicBool>,
) -> RegionReport {
    let numerics = permitted(float);
    let spec = RegionSpec { graph, operands, results, numerics };
    let options =
        RegionOptions { solver: solver(), time: Some(timeout), stopped, ..RegionOptions::default() };
    verify_region(isa, &spec, text, &options)
}

/// A verdict as dumps, Python and `--json` show it.
pub fn verification_json(report: &RegionReport, seconds: f64) -> serde_json::Value {
    let mut value = json!({
        "verdict": report.verdict.name(),
        "numerics": report.numerics.to_string(),
        "rests_on": report.laws.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "instructions": report.instructions,
        "elements": report.elements,
        "report": report.to_string(),
        "seconds": seconds,
    });
    match &report.verdict {
        RegionVerdict::Refuted(refutation) => value["counterexample"] = json!(refutation.to_string()),
        RegionVerdict::Unknown { reason } => value["reason"] = json!(reason),
        RegionVerdict::Proved | RegionVerdict::ProvedUpToReassociation => {}
    }
    value
}
