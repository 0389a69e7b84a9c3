//! `act compile`: one kernel through tiling, the backend and stitching, and any stage of it printed.

use super::outcome::{CliError, Report};
use super::{Emit, KernelArgs, input};
use crate::compiler::{CompiledRegion, tile_sizes};
use act_hlo::print_graph;
use act_isa::{Isa, print_assembly, print_device, print_program};
use act_stitch::region::{Attempt, CandidateOutcome, TriedCandidate};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Instant;

/// Compiles and prints.
///
/// # Errors
/// Bad input, no code for the kernel on the target, or no text for the device.
pub(super) fn compile(args: &KernelArgs, emit: Emit) -> Result<Report, CliError> {
    let compiler = args.compiler()?;
    let kernel = input::read(&args.file)?;
    let start = Instant::now();
    let region = compiler.compile(&kernel.graph, &kernel.operands, &kernel.results)?;
    let seconds = start.elapsed().as_secs_f64();
    compiler.take_dump_failure().map_or(Ok(()), Err)?;
    let text = print(compiler.isa(), &region, emit)?;
    let mut value = describe(&region, seconds);
    value["emit"] = json!(text);
    Ok(Report { text, json: value, success: true })
}

/// A compiled region for `--json`.
pub(super) fn describe(region: &CompiledRegion, seconds: f64) -> Value {
    let mut value = json!({ "key": region.key, "compile_seconds": seconds });
    if let (Some(object), Ok(Value::Object(summary))) =
        (value.as_object_mut(), serde_json::to_value(&region.summary))
    {
        object.extend(summary);
    }
    value["phase_seconds"] = json!(region.phase_seconds);
    value["search"] = search(region);
    value
}

/// What was tried: the choices of tiles, and of the one that was taken, for every kernel the candidates.
fn search(region: &CompiledRegion) -> Value {
    let candidate = |tried: &TriedCandidate| {
        let mut value = json!({ "lower_bound": tried.lower_bound, "instructions": tried.instructions });
        let (outcome, key, detail) = match &tried.outcome {
            CandidateOutcome::Accepted { cost } => ("accepted", "cost", json!(cost)),
            CandidateOutcome::Dearer { cost } => ("dearer", "cost", json!(cost)),
            CandidateOutcome::Pruned => ("pruned", "cost", Value::Null),
            CandidateOutcome::Failed { reason } => ("failed", "reason", json!(reason)),
        };
        value["outcome"] = json!(outcome);
        if !detail.is_null() {
            value[key] = detail;
        }
        value
    };
    let kernels = region.code.kernels.iter().map(|record| {
        json!({
            "phase": format!("{:?}", record.kernel.phase).to_lowercase(),
            "allocator": record.code.allocator,
            "candidates": record.code.search.candidates.iter().map(candidate).collect::<Vec<Value>>(),
            "end": record.code.search.end,
        })
    });
    json!({ "attempts": attempts(&region.code.attempts), "kernels": kernels.collect::<Vec<Value>>() })
}

/// Choices of tiles for `--json`: modelled cycles, or why there is no code.
pub(super) fn attempts(attempts: &[Attempt]) -> Value {
    let each = attempts.iter().map(|attempt| match &attempt.outcome {
        Ok(cycles) => json!({ "tile": tile_sizes(&attempt.choice), "modelled_cycles": cycles }),
        Err(reason) => json!({ "tile": tile_sizes(&attempt.choice), "refusal": reason }),
    });
    each.collect()
}

fn print(isa: &Isa, region: &CompiledRegion, emit: Emit) -> Result<String, CliError> {
    let mut out = String::new();
    let kernels = |out: &mut String, comment: &str, body: &dyn Fn(usize) -> String| {
        for (k, record) in region.code.kernels.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{comment} kernel {k}: {:?}", record.kernel.phase);
            let _ = writeln!(out, "{}", body(k).trim_end());
        }
    };
    match emit {
        Emit::Hlo => kernels(&mut out, "//", &|k| print_graph(&region.code.kernels[k].kernel.graph)),
        Emit::Pii => kernels(&mut out, "//", &|k| region.code.kernels[k].code.pii.clone()),
        Emit::Asm => {
            kernels(&mut out, "#", &|k| print_assembly(isa, &region.code.kernels[k].code.assembly));
        }
        Emit::Program => out = print_program(isa, &region.code.program),
        Emit::Mlir => region.module.text().clone_into(&mut out),
        Emit::Device => out = print_device(isa, &region.code.program)?,
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(out)
}
