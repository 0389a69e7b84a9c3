//! `act compile`: one kernel through tiling, the backend and stitching, and any stage of it printed.

use super::outcome::{CliError, Report};
use super::{Emit, KernelArgs, input};
use crate::compiler::CompiledRegion;
use act_hlo::print_graph;
use act_isa::{Isa, print_assembly, print_device, print_program};
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
    value
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
