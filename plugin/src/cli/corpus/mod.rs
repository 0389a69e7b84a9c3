//! `act corpus`: regions of real programs as files, and what every target makes of them.

mod capture;
mod table;

use super::outcome::{CliError, Report};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub(super) enum CorpusCommand {
    /// Collect the distinct regions that offloading finds in dumped modules, for all targets together.
    Capture {
        /// Modules of a dump (`modules/*.pb`), or folders of them.
        #[arg(required = true)]
        modules: Vec<PathBuf>,
        /// Folder that the regions are written into, one folder per model.
        #[arg(long)]
        into: PathBuf,
        /// Targets to select for; all that come with act unless given.
        #[arg(long)]
        target: Vec<String>,
    },
    /// Compile every region for every target and write a table of what became of them.
    Table {
        /// Folder of a corpus.
        #[arg(default_value = "plugin/filetests/corpus")]
        corpus: PathBuf,
        /// The file to write; `-` prints.
        #[arg(short, long, default_value = "plugin/filetests/CORPUS.md")]
        output: PathBuf,
        /// Targets to compile for; all that come with act unless given.
        #[arg(long)]
        target: Vec<String>,
        /// Regions that are compiled at the same time.
        #[arg(short, long, default_value_t = 2)]
        jobs: usize,
    },
}

impl CorpusCommand {
    /// # Errors
    /// Files that cannot be read or written, unknown targets.
    pub(super) fn run(self) -> Result<Report, CliError> {
        match self {
            CorpusCommand::Capture { modules, into, target } => {
                capture::capture(&modules, &into, &or_all(target))
            }
            CorpusCommand::Table { corpus, output, target, jobs } => {
                table::table(&corpus, &output, &or_all(target), jobs)
            }
        }
    }
}

fn or_all(targets: Vec<String>) -> Vec<String> {
    match targets.is_empty() {
        true => act_isa::targets::targets().iter().map(|(name, _)| (*name).to_owned()).collect(),
        false => targets,
    }
}

/// Files below folders and files themselves, in order.
fn files(roots: &[PathBuf], extension: &str) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    let mut pending = roots.to_vec();
    while let Some(path) = pending.pop() {
        let fail = |source| CliError::Read { file: path.clone(), source };
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).map_err(fail)? {
                pending.push(entry.map_err(fail)?.path());
            }
        } else if path.extension().is_some_and(|e| e == extension) || roots.contains(&path) {
            found.push(path);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
