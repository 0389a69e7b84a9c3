//! `act isa`: descriptions checked, laid out, shown, tabulated and imported.

use super::import;
use super::outcome::{CliError, Report};
use act_isa::syntax::format;
use act_isa::{Isa, load_target, targets_table};
use clap::Subcommand;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(super) enum IsaCommand {
    /// Check descriptions: every fault with file, line and what to do.
    Check {
        /// .taidl files; `-` reads standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put the layout of descriptions right.
    Fmt {
        /// .taidl files; `-` reads standard input and implies --stdout.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Change nothing; fail when a file is not laid out as it should be.
        #[arg(long, conflicts_with = "stdout")]
        check: bool,
        /// Print instead of changing the files.
        #[arg(long)]
        stdout: bool,
    },
    /// Show a description as a page to read.
    Show {
        /// Name of a target (see `act targets`) or path of a .taidl file.
        target: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write the table of targets; runs in the root of the sources.
    Table {
        /// Folder with the tests of the targets.
        #[arg(long, default_value = "isa/tests/targets")]
        tests: PathBuf,
        /// The file to write; `-` prints.
        #[arg(short, long, default_value = "isa/TARGETS.md")]
        output: PathBuf,
    },
    /// Convert a description written in Python for the released TAIDL tools, or with act_pjrt.taidl.
    Import {
        /// The Python file; it is run as it is.
        file: PathBuf,
        /// The .taidl file to write, or a folder when the file describes several accelerators; printed without it.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
}

impl IsaCommand {
    pub(super) fn json(&self) -> bool {
        matches!(self, IsaCommand::Check { json: true, .. } | IsaCommand::Show { json: true, .. })
    }

    /// Does what the command says.
    ///
    /// # Errors
    /// Files that cannot be read or written, faulty descriptions.
    pub(super) fn run(&self) -> Result<Report, CliError> {
        match self {
            IsaCommand::Check { files, .. } => check(files),
            IsaCommand::Fmt { files, check, stdout } => fmt(files, *check, *stdout),
            IsaCommand::Show { target, .. } => show(target),
            IsaCommand::Table { tests, output } => {
                let table = targets_table(tests)?;
                let text = if output == Path::new("-") {
                    table
                } else {
                    write(output, &table)?;
                    format!("wrote {}\n", output.display())
                };
                Ok(Report { text, json: json!({}), success: true })
            }
            IsaCommand::Import { file, output } => import::import(file, output.as_deref()),
        }
    }
}

fn read(file: &Path) -> Result<String, CliError> {
    let read = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    read.map_err(|source| CliError::Read { file: file.to_owned(), source })
}

/// Writes a whole file or nothing: into a neighbour, which then takes the file's place.
pub(super) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let fail = |source| CliError::Write { file: file.to_owned(), source };
    // The file that a link leads to is replaced, not the link.
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let neighbour = file.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = fs::File::create(&neighbour).and_then(|mut out| {
        if let Ok(old) = fs::metadata(file) {
            out.set_permissions(old.permissions())?;
        }
        out.write_all(text.as_bytes())?;
        out.sync_all()
    });
    written.and_then(|()| fs::rename(&neighbour, file)).map_err(|source| {
        // Best effort: the failure to tell is the first one.
        let _ = fs::remove_file(&neighbour);
        fail(source)
    })
}

/// Unreadable files are told beside the faults of the others.
fn check(files: &[PathBuf]) -> Result<Report, CliError> {
    let (mut text, mut list, mut success) = (String::new(), Vec::new(), true);
    for file in files {
        let name = file.display().to_string();
        let (right, said) = match read(file) {
            Err(error) => (false, error.to_string()),
            Ok(source) => match Isa::parse_with_warnings(&source, &name) {
                Err(diagnostics) => (false, diagnostics.to_string()),
                Ok((_, warnings)) => (true, warnings.to_string()),
            },
        };
        success &= right;
        // Writing to a String cannot fail.
        let _ = match (right, said.is_empty()) {
            (true, true) => writeln!(text, "{name}: nothing is wrong"),
            (true, false) => writeln!(text, "{said}\n\n{name}: warnings, no errors"),
            (false, _) => writeln!(text, "{said}\n"),
        };
        list.push(json!({ "file": name, "right": right, "messages": said }));
    }
    Ok(Report { text, json: json!({ "files": list }), success })
}

fn fmt(files: &[PathBuf], check: bool, stdout: bool) -> Result<Report, CliError> {
    let (mut text, mut success) = (String::new(), true);
    for file in files {
        let source = read(file)?;
        let formatted = format(&source, &file.display().to_string()).map_err(Box::new)?;
        if !check && (stdout || file == Path::new("-")) {
            text.push_str(&formatted);
        } else if formatted != source {
            // Writing to a String cannot fail.
            let _ = if check {
                success = false;
                writeln!(text, "{}: `act isa fmt` would change the layout", file.display())
            } else {
                write(file, &formatted)?;
                writeln!(text, "{}: layout changed", file.display())
            };
        } else {
            let _ = writeln!(text, "{}: layout as it should be", file.display());
        }
    }
    Ok(Report { text, json: json!({}), success })
}

fn show(target: &str) -> Result<Report, CliError> {
    let page = load_target(target)?.page();
    let json = serde_json::to_value(&page).unwrap_or_default();
    Ok(Report { text: page.to_string(), json, success: true })
}
