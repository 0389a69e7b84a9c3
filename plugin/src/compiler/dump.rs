//! `ACT_DUMP=1`: one folder per region with everything that compilation made of it, and one line per region in
//! `regions.txt`; and every module as XLA hands it over. The first file that cannot be written, on a full disk for one,
//! ends the dump: the program that it belongs to is told, and what follows is compiled without.

use super::key::hexadecimal;
use super::{CompiledRegion, RegionFile};
use act_bolt::region::RegionReport;
use act_hlo::{Graph, print_graph};
use act_isa::{Isa, View, has_encodings, print_assembly, print_device, print_program};
use act_stitch::region::Attempt;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The dump folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the dump to {folder}: {source}; set ACT_DUMP_DIR to a folder that can be written")]
pub struct DumpError {
    pub folder: PathBuf,
    #[source]
    pub source: io::Error,
}

/// Writes dumps below one folder.
pub struct Dumper {
    folder: PathBuf,
    state: Mutex<State>,
}

/// How far a dump has come.
enum State {
    Going,
    /// It has ended, and nobody was told.
    Failed(DumpError),
    Ended,
}

/// Bytes of the hash that tells modules of one name apart.
const MODULE_HASH: usize = 8;

/// Characters of a key that name a region's folder.
const SHORT_KEY: usize = 16;

impl Dumper {
    /// Makes the folder if it is missing.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Dumper, DumpError> {
        let folder = folder.into();
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Dumper { folder, state: Mutex::new(State::Going) }),
            Err(source) => Err(DumpError { folder, source }),
        }
    }

    /// Writes all of a compiled region.
    pub fn region(
        &self,
        isa: &Isa,
        graph: &Graph,
        (operands, results): (&[View], &[View]),
        region: &CompiledRegion,
    ) {
        self.reporting(|| {
            let folder = self.folder.join(&region.key[..SHORT_KEY.min(region.key.len())]);
            fs::create_dir_all(&folder)?;
            let (operands, results) = (operands.to_vec(), results.to_vec());
            let file = RegionFile { graph: graph.clone(), operands, results };
            write_whole(&folder, "region.hlo", &file.text())?;
            for (k, record) in region.code.kernels.iter().enumerate() {
                let phase = format!("{:?}", record.kernel.phase).to_lowercase();
                let name = |suffix: &str| format!("kernel{k}_{phase}.{suffix}");
                write_whole(&folder, &name("hlo"), &print_graph(&record.kernel.graph))?;
                write_whole(&folder, &name("pii"), &record.code.pii)?;
                write_whole(&folder, &name("s"), &print_assembly(isa, &record.code.assembly))?;
                write_whole(&folder, &name("search.txt"), &record.code.search.to_string())?;
            }
            write_whole(&folder, "program.txt", &print_program(isa, &region.code.program))?;
            write_whole(&folder, "stitched.mlir", region.module.text())?;
            if has_encodings(isa) {
                let text = print_device(isa, &region.code.program)
                    .unwrap_or_else(|error| format!("no text for the device: {error}\n"));
                write_whole(&folder, "device.txt", &text)?;
            }
            write_whole(&folder, "attempts.txt", &listed(&region.code.attempts))
        });
    }

    /// Writes what was tried for a region that stays on the host.
    pub fn refused(&self, key: &str, graph: &Graph, attempts: &[Attempt]) {
        self.reporting(|| {
            let folder = self.folder.join(&key[..SHORT_KEY.min(key.len())]);
            fs::create_dir_all(&folder)?;
            write_whole(&folder, "region.hlo", &print_graph(graph))?;
            write_whole(&folder, "attempts.txt", &listed(attempts))
        });
    }

    /// Writes what the checker says of a region, and the scripts of the laws that it rests on.
    pub fn verification(&self, key: &str, report: &RegionReport) {
        self.reporting(|| {
            let folder = self.folder.join(&key[..SHORT_KEY.min(key.len())]);
            fs::create_dir_all(&folder)?;
            for law in &report.laws {
                if let Some(script) = law.script() {
                    let name = format!("law_{law:?}.smt2").to_lowercase();
                    write_whole(&folder, &name, &format!("{script}(check-sat)\n"))?;
                }
            }
            write_whole(&folder, "verification.txt", &report.to_string())
        });
    }

    /// Writes a module as XLA hands it over, a serialized HloModuleProto, into `modules/`.
    pub fn module(&self, name: &str, bytes: &[u8]) {
        self.reporting(|| {
            let folder = self.folder.join("modules");
            fs::create_dir_all(&folder)?;
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            let name: String = name.chars().map(plain).collect();
            let digest = hexadecimal(&Sha256::digest(bytes)[..MODULE_HASH]);
            write_whole(&folder, &format!("{name}.{digest}.pb"), bytes)
        });
    }

    /// Appends a region's line to `regions.txt`.
    pub fn line(&self, line: &str) {
        self.reporting(|| {
            let mut file =
                OpenOptions::new().create(true).append(true).open(self.folder.join("regions.txt"))?;
            // One write, so that lines of concurrent processes do not mix.
            file.write_all(format!("{line}\n").as_bytes())
        });
    }

    /// Why the dump has ended; told once.
    pub fn take_failure(&self) -> Option<DumpError> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Ended) {
            State::Failed(error) => Some(error),
            other => {
                *state = other;
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reporting(&self, write: impl FnOnce() -> io::Result<()>) {
        if !matches!(*self.state(), State::Going) {
            return;
        }
        if let Err(source) = write() {
            let mut state = self.state();
            // Threads that compile at once may all have failed.
            if matches!(*state, State::Going) {
                *state = State::Failed(DumpError { folder: self.folder.clone(), source });
            }
        }
    }
}

/// One line for every choice of tiles.
fn listed(attempts: &[Attempt]) -> String {
    let mut lines = String::new();
    for attempt in attempts {
        let outcome = match &attempt.outcome {
            Ok(cycles) => format!("{cycles} cycles"),
            Err(reason) => reason.clone(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{:?} {:?}: {outcome}", attempt.packing, attempt.choice);
    }
    lines
}

/// Writes a file so that a reader sees the old or the new contents, never a part.
fn write_whole(folder: &Path, name: &str, contents: &(impl AsRef<[u8]> + ?Sized)) -> io::Result<()> {
    let partial = folder.join(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&partial, contents).and_then(|()| fs::rename(&partial, folder.join(name)));
    if written.is_err() {
        // What is left of it is of no use; the first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}
