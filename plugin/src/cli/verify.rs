//! `act verify`: judges a case in Hex, or the code that a kernel in HLO is compiled to. What a verdict means is the checker's
//! business.

use super::input;
use super::outcome::{CliError, Report};
use crate::compiler::{RegionFile, TargetCompiler, verification_json, z3_library};
use act_bolt::region::RegionReport;
use act_bolt::{Judgement, Options, Solver};
use act_generator::FloatPolicy;
use clap::Args;
use serde_json::json;
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

/// Judges every file. A success only if all are proved.
///
/// # Errors
/// A file is no case, or a dump cannot be written.
pub(super) fn verify(args: &VerifyArgs) -> Result<Report, CliError> {
    let (solver, missing) = match z3_library().map(|path| Solver::open(&path)) {
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
        if args.emit == Some(Emit::Hex) {
            let (compiler, kernel, stitched) = compiled(args, file)?;
            let hex = compiler.hex(&kernel.graph, &kernel.operands, &kernel.results, &stitched)?;
            text.push_str(&hex);
            cases.push(json!({ "file": file, "hex": hex }));
            continue;
        }
        if file.extension().is_some_and(|extension| extension != "hex") {
            let (report, seconds) = kernel(args, file)?;
            success &= report.verdict.is_proved();
            let _ = write!(text, "{}: {report}", file.display());
            let mut case = verification_json(&report, seconds);
            case["file"] = json!(file);
            cases.push(case);
            continue;
        }
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

/// A kernel, and its stitched text: the one that is given, or what it is compiled to now.
fn compiled(args: &VerifyArgs, file: &Path) -> Result<(TargetCompiler, RegionFile, String), CliError> {
    let target = args.target.as_deref().ok_or_else(|| CliError::NoTarget { file: file.to_owned() })?;
    let options = act_generator::Options {
        numerics: act_generator::Numerics { float: args.numerics },
        ..act_generator::Options::default()
    };
    let compiler = TargetCompiler::new(target, options, None)?;
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
    let report = compiler.verify(&kernel.graph, &kernel.operands, &kernel.results, &text);
    Ok((report, start.elapsed().as_secs_f64()))
}
