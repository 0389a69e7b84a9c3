//! `act isa import`: a description in Python, run with the package's modules in place of the released tools', to text.

use super::isa::write;
use super::outcome::{CliError, Report};
use act_isa::Isa;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One accelerator as the Python package states it.
#[derive(Deserialize)]
struct Described {
    name: String,
    text: String,
}

/// Converts and checks; writes only if every accelerator of the file is right.
///
/// # Errors
/// Python cannot run the file, the description is faulty, or the output cannot be written.
pub(super) fn import(file: &Path, output: Option<&Path>) -> Result<Report, CliError> {
    let described = describe(file)?;
    if described.is_empty() {
        return Err(CliError::NothingDescribed { file: file.to_owned() });
    }
    let into_folder = output.is_some_and(Path::is_dir);
    if described.len() > 1 && output.is_some() && !into_folder {
        return Err(CliError::SeveralDescribed { file: file.to_owned(), count: described.len() });
    }
    let (mut text, mut warned) = (String::new(), String::new());
    let mut completed = Vec::new();
    for one in &described {
        let source = format!("{} ({})", file.display(), one.name);
        let (isa, warnings) = Isa::parse_and_complete(&one.text, &source).map_err(Box::new)?;
        if !warnings.list.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(warned, "{warnings}\n");
        }
        completed.push(isa);
    }
    for isa in completed {
        let printed = isa.print();
        match output {
            None => text.push_str(&printed),
            Some(output) => {
                let target =
                    if into_folder { output.join(format!("{}.taidl", isa.name)) } else { output.to_owned() };
                write(&target, &printed)?;
                let _ = writeln!(text, "wrote {}: {} instructions", target.display(), isa.instrs.len());
            }
        }
    }
    eprint!("{warned}");
    Ok(Report { text, json: json!({}), success: true })
}

/// The interpreter beside this program, where a wheel installs both; otherwise the first on the path.
fn interpreter() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("python3")));
    beside.filter(|python| python.exists()).unwrap_or_else(|| PathBuf::from("python3"))
}

fn describe(file: &Path) -> Result<Vec<Described>, CliError> {
    // Python's own message for a missing file names the wrong thing.
    std::fs::metadata(file).map_err(|source| CliError::Read { file: file.to_owned(), source })?;
    let python = interpreter();
    let run = Command::new(&python)
        .args(["-m", "act_pjrt._taidl_import"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| CliError::Python { python: python.clone(), source })?;
    let said = String::from_utf8_lossy(&run.stderr).trim().to_owned();
    if !run.status.success() {
        return Err(CliError::Script { file: file.to_owned(), said });
    }
    if !said.is_empty() {
        eprintln!("{said}");
    }
    serde_json::from_slice(&run.stdout)
        .map_err(|error| CliError::Script { file: file.to_owned(), said: error.to_string() })
}
