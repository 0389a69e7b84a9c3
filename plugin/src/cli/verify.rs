//! `act verify`: judges a case in Hex. What a verdict means is the checker's business.

use super::outcome::{CliError, Report};
use act_bolt::{Judgement, Options, Solver};
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(super) struct VerifyArgs {
    /// Files with cases in Hex.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Give a parameter another value, such as `T=64`.
    #[arg(long = "set", value_parser = setting)]
    settings: Vec<(String, i64)>,
    /// Seconds for one condition.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Write every condition's SMT-LIB script into this folder.
    #[arg(long)]
    dump: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn setting(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("a setting is NAME=INTEGER")?;
    Ok((name.to_owned(), value.parse().map_err(|e| format!("`{value}` is no integer: {e}"))?))
}

/// Z3's library: where `ACT_Z3_LIB` says, or in the Python environment that this command was installed into.
fn z3() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ACT_Z3_LIB") {
        return Some(path.into());
    }
    let library = std::env::current_exe().ok()?.parent()?.parent()?.join("lib");
    let versions = fs::read_dir(library).ok()?.flatten();
    let candidates = versions.map(|version| version.path().join("site-packages/z3/lib/libz3.so"));
    candidates.filter(|path| path.is_file()).min()
}

/// Judges every file. A success only if all are proved.
///
/// # Errors
/// A file is no case, or a dump cannot be written.
pub(super) fn verify(args: &VerifyArgs) -> Result<Report, CliError> {
    let (solver, missing) = match z3().map(|path| Solver::open(&path)) {
        Some(Ok(solver)) => (Some(solver), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let limit = Duration::from_secs(args.limit);
    let options = Options { limit, settings: args.settings.clone(), ..Options::default() };
    let mut text = missing.map(|error| format!("{error}\n")).unwrap_or_default();
    let mut cases = Vec::new();
    let mut success = true;
    for file in &args.files {
        let report = act_bolt::verify_case(file, solver.as_ref(), &options)?;
        success &= report.judgement == Judgement::Proved;
        let verdict = match report.judgement {
            Judgement::Proved => "proved",
            Judgement::Refuted(_) => "refuted",
            Judgement::Unknown { .. } => "unknown",
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{report}");
        let conditions: Vec<_> = report
            .proofs
            .iter()
            .map(|proof| json!({ "name": proof.name, "answer": proof.answer.to_string(), "lines": proof.lines }))
            .collect();
        if let Some(folder) = &args.dump {
            for (number, proof) in report.proofs.iter().enumerate() {
                let path = folder.join(format!("{}.{number:03}.smt2", report.name));
                let script = format!("{}(check-sat)\n", proof.script);
                let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, script));
                written.map_err(|source| CliError::Write { file: path, source })?;
            }
        }
        cases.push(json!({
            "case": report.name,
            "file": file,
            "verdict": verdict,
            "report": report.to_string(),
            "conditions": conditions,
            "rests_on": report.rests_on,
        }));
    }
    Ok(Report { text, json: json!({ "cases": cases }), success })
}
