//! `act verify`: judges a case in Hex, or the code that a kernel in HLO is compiled to. What a verdict means is the checker's
//! business.

use super::input;
use super::isa::write;
use super::outcome::{CliError, Report};
use crate::compiler::{RegionFile, TargetCompiler, VERIFY_TIMEOUT, verification_json, z3_library};
use act_bolt::region::RegionReport;
use act_bolt::{Judgement, Options, Solver, load};
use act_generator::FloatPolicy;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct VerifyArgs {
    /// Files with cases in Hex, or kernels in HLO text, which are compiled for `--target` first.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Name of a target or path of a .taidl file, for kernels in HLO.
    #[arg(long, env = "ACT_TARGET")]
    target: Option<String>,
    /// What may happen to floating-point results, for kernels in HLO.
    #[arg(long, env = "ACT_NUMERICS", default_value_t = FloatPolicy::Xla)]
    numerics: FloatPolicy,
    /// Judge this stitched text, as a dump has it, instead of compiling the kernel.
    #[arg(long)]
    stitched: Option<PathBuf>,
    /// Judge nothing; write the kernel with its stitched code as a case in Hex.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Give a parameter another value, such as `T=64`.
    #[arg(long = "set", value_parser = setting)]
    settings: Vec<(String, i64)>,
    /// Seconds for one condition.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Seconds for the check of one kernel's code.
    #[arg(long, env = "ACT_VERIFY_TIMEOUT", default_value_t = VERIFY_TIMEOUT.as_secs_f64(), value_parser = seconds)]
    timeout: f64,
    /// Write every condition's SMT-LIB script into this folder.
    #[arg(long)]
    dump: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What is written instead of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    Hex,
}

fn setting(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("a setting is NAME=INTEGER")?;
    Ok((name.to_owned(), value.parse().map_err(|e| format!("`{value}` is no integer: {e}"))?))
}

/// What is said of one file.
struct Outcome {
    name: String,
    verdict: &'static str,
    text: String,
    json: serde_json::Value,
    seconds: f64,
}

/// A time that is one.
fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from_secs_f64(value).map(|_| value).map_err(|error| error.to_string())
}

/// Judges every file. A success only if all are proved. Of several files, those that cannot be judged keep none of the others
/// from being, and those that only are parts of others are passed over.
///
/// # Errors
/// The only file is no case, or a dump cannot be written.
pub(super) fn verify(args: &VerifyArgs) -> Result<Report, CliError> {
    let (solver, missing) = match z3_library().map(|path| Solver::open(&path)) {
        Some(Ok(solver)) => (Some(solver), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    if args.emit == Some(Emit::Hex) {
        return emitted(args);
    }
    let parts = included(&args.files);
    let files: Vec<&PathBuf> = args.files.iter().filter(|file| !is_part(file, &parts)).collect();
    let mut text = missing.map(|error| format!("{error}\n")).unwrap_or_default();
    let mut outcomes = Vec::new();
    for file in files {
        let outcome = match judged(args, file, solver.as_ref()) {
            Err(error) if args.files.len() == 1 => return Err(error),
            Err(error) => failed(file, &error),
            Ok(outcome) => outcome,
        };
        text.push_str(&outcome.text);
        outcomes.push(outcome);
    }
    let success = outcomes.iter().all(|outcome| outcome.verdict.starts_with("proved"));
    if outcomes.len() > 1 {
        text.push_str(&table(&outcomes));
    }
    let cases: Vec<_> = outcomes.into_iter().map(|outcome| outcome.json).collect();
    Ok(Report { text, json: json!({ "cases": cases }), success })
}

/// Every file with its verdict and the time that it took.
fn table(outcomes: &[Outcome]) -> String {
    let names = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0);
    let verdicts = outcomes.iter().map(|outcome| outcome.verdict.len()).max().unwrap_or(0);
    let mut text = String::from("\n");
    for Outcome { name, verdict, seconds, .. } in outcomes {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:names$}  {verdict:verdicts$}  {seconds:8.3} s");
    }
    let all: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
    let proved = outcomes.iter().filter(|outcome| outcome.verdict.starts_with("proved")).count();
    let total = format!("{proved} of {} proved", outcomes.len());
    let _ = writeln!(text, "{total:width$}  {all:8.3} s", width = names + 2 + verdicts);
    text
}

/// The files that cases among these include.
fn included(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let loaded = files.iter().filter(|file| is_hex(file)).filter_map(|file| Some((file, load(file).ok()?.1)));
    let parts = loaded.flat_map(|(file, source)| {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        source.files.into_iter().skip(1).map(move |(name, _)| folder.join(name))
    });
    parts.collect()
}

/// Whether a file is included by another and no case by itself.
fn is_part(file: &Path, parts: &BTreeSet<PathBuf>) -> bool {
    parts.contains(file) && load(file).is_err()
}

fn is_hex(file: &Path) -> bool {
    file.extension().is_none_or(|extension| extension == "hex")
}

fn failed(file: &Path, error: &CliError) -> Outcome {
    let message = error.to_string();
    Outcome {
        name: file.display().to_string(),
        verdict: "error",
        text: format!("{}: error: {message}\n", file.display()),
        json: json!({ "file": file, "verdict": "error", "error": message }),
        seconds: 0.0,
    }
}

fn judged(args: &VerifyArgs, file: &Path, solver: Option<&Solver>) -> Result<Outcome, CliError> {
    if !is_hex(file) {
        let (report, seconds) = kernel(args, file)?;
        let mut json = verification_json(&report, seconds);
        json["file"] = json!(file);
        let name = file.display().to_string();
        let text = format!("{name}: {report}");
        return Ok(Outcome { name, verdict: report.verdict.name(), text, json, seconds });
    }
    let limit = Duration::from_secs(args.limit);
    let options = Options { limit, settings: args.settings.clone(), ..Options::default() };
    let start = Instant::now();
    let report = act_bolt::verify_case(file, solver, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let verdict = match report.judgement {
        Judgement::Proved => "proved",
        Judgement::Refuted(_) => "refuted",
        Judgement::Unknown { .. } => "unknown",
    };
    let conditions: Vec<_> = report
        .proofs
        .iter()
        .map(|proof| json!({ "name": proof.name, "answer": proof.answer.to_string(), "lines": proof.lines }))
        .collect();
    if let Some(folder) = &args.dump {
        fs::create_dir_all(folder).map_err(|source| CliError::Write { file: folder.clone(), source })?;
        for (number, proof) in report.proofs.iter().enumerate() {
            let path = folder.join(format!("{}.{number:03}.smt2", report.name));
            write(&path, &format!("{}(check-sat)\n", proof.script))?;
        }
    }
    let json = json!({
        "case": report.name,
        "file": file,
        "verdict": verdict,
        "seconds": seconds,
        "report": report.to_string(),
        "conditions": conditions,
        "rests_on": report.rests_on,
    });
    Ok(Outcome { name: report.name.clone(), verdict, text: report.to_string(), json, seconds })
}

/// Kernels with their stitched code as cases in Hex.
fn emitted(args: &VerifyArgs) -> Result<Report, CliError> {
    let mut text = String::new();
    let mut cases = Vec::new();
    for file in &args.files {
        let (compiler, kernel, stitched) = compiled(args, file)?;
        let hex = compiler.hex(&kernel.graph, &kernel.operands, &kernel.results, &stitched)?;
        text.push_str(&hex);
        cases.push(json!({ "file": file, "hex": hex }));
    }
    Ok(Report { text, json: json!({ "cases": cases }), success: true })
}

/// A kernel, and its stitched text: the one that is given, or what it is compiled to now.
fn compiled(args: &VerifyArgs, file: &Path) -> Result<(TargetCompiler, RegionFile, String), CliError> {
    let target = args.target.as_deref().ok_or_else(|| CliError::NoTarget { file: file.to_owned() })?;
    let options = act_generator::Options {
        numerics: act_generator::Numerics { float: args.numerics },
        ..act_generator::Options::default()
    };
    let timeout = Duration::from_secs_f64(args.timeout);
    let compiler = TargetCompiler::new(target, options, None)?.verify_timeout(Some(timeout));
    let kernel = input::read_region(file)?;
    let text = match &args.stitched {
        Some(path) => {
            fs::read_to_string(path).map_err(|source| CliError::Read { file: path.clone(), source })?
        }
        None => {
            let region = compiler.compile(&kernel.graph, &kernel.operands, &kernel.results)?;
            region.module.text().to_owned()
        }
    };
    Ok((compiler, kernel, text))
}

/// Judges the code of a kernel.
fn kernel(args: &VerifyArgs, file: &Path) -> Result<(RegionReport, f64), CliError> {
    let (compiler, kernel, text) = compiled(args, file)?;
    let start = Instant::now();
    let report = compiler.verify(&kernel.graph, &kernel.operands, &kernel.results, &text, None);
    Ok((report, start.elapsed().as_secs_f64()))
}
