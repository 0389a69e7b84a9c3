//! What a command ends with: a report, or an error that says what, where and what to do.

use crate::compiler::{CompilerError, DumpError, RegionError};
use act_hlo::text::ParseError;
use act_stitch::region::StitchError;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// How a command's result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

/// What a command found.
pub(super) struct Report {
    /// For people.
    pub text: String,
    /// For programs: an object; `status` is added.
    pub json: Value,
    /// Whether all is right.
    pub success: bool,
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("cannot read {file}: {source}")]
    Read {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{file}: {error}")]
    Parse { file: PathBuf, error: Box<ParseError> },
    #[error("cannot write {file}: {source}")]
    Write {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Description(#[from] Box<act_isa::syntax::Diagnostics>),
    #[error(transparent)]
    Target(#[from] act_isa::targets::TargetError),
    #[error(transparent)]
    Table(#[from] act_isa::TableError),
    #[error("cannot run {python}: {source}; importing needs Python 3 with act-pjrt installed")]
    Python {
        python: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("running {file} failed:\n{said}")]
    Script { file: PathBuf, said: String },
    #[error("{file} makes no Accelerator")]
    NothingDescribed { file: PathBuf },
    #[error("{file} describes {count} accelerators; give the folder to write them into with -o")]
    SeveralDescribed { file: PathBuf, count: usize },
    #[error("{file} is no HloModuleProto; give it modules that ACT_DUMP=1 has written")]
    NoModule { file: PathBuf },
    #[error("{file} is a kernel; say with --target what it is to be compiled for")]
    NoTarget { file: PathBuf },
    #[error("{file}: the module has no result")]
    NoResult { file: PathBuf },
    #[error("no text for the device: {0}")]
    Device(#[from] act_isa::DeviceTextError),
    #[error("no rule is named `{name}`; `act rules` lists them")]
    NoRule { name: String },
    #[error("{isa} has no rule for an instruction `{name}`; `act rules --target {isa}` lists them")]
    NoInstructionRule { isa: String, name: String },
    #[error(transparent)]
    Generate(#[from] act_generator::GenerateError),
    #[error(transparent)]
    Case(#[from] act_bolt::CaseError),
    #[error("no program in Hex: {0}")]
    Hex(#[from] act_bolt::region::TranslateError),
    #[error(transparent)]
    Compiler(#[from] CompilerError),
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The kernel has no code for this target: the one outcome that is no fault of the input.
    #[error("refused: {0}")]
    Refused(#[from] RegionError),
    #[error(
        "the kernel's operands and results have {bytes} bytes; a run takes {most} at most, use a smaller shape"
    )]
    TooLarge { bytes: u64, most: u64 },
    #[error("the reference evaluator cannot compute the kernel: {0}")]
    Reference(String),
}

/// The exit code of everything that is wrong but the command line.
const FAILURE: u8 = 1;

/// Prints and gives the exit code.
pub(super) fn present(format: Format, outcome: Result<Report, CliError>) -> u8 {
    let (text, mut value, success) = match outcome {
        Ok(report) => (report.text, report.json, report.success),
        Err(error) => {
            let refusal = matches!(error, CliError::Refused(_));
            let status = if refusal { "refused" } else { "error" };
            let message = error.to_string();
            let key = if refusal { "refusal" } else { "error" };
            let mut value = json!({ "status": status, key: message });
            if let CliError::Refused(RegionError::Stitch(StitchError::NoCode { attempts, .. })) = &error {
                value["search"] = json!({ "attempts": super::compile::attempts(attempts) });
            }
            if format == Format::Text {
                // Nothing is left to do when standard error is closed.
                let _ = writeln!(io::stderr(), "act: {message}");
                return FAILURE;
            }
            (String::new(), value, false)
        }
    };
    let printed = match format {
        Format::Text => text,
        Format::Json => {
            if let Some(object) = value.as_object_mut() {
                object.entry("status").or_insert_with(|| if success { "ok" } else { "wrong" }.into());
            }
            format!("{value:#}\n")
        }
    };
    match io::stdout().write_all(printed.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) if success => 0,
        _ => FAILURE,
    }
}
