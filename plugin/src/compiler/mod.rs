//! Compiling regions for one target: the generated backend, stitching and the simulator put together, results shared by
//! key. Knows neither PJRT nor how regions are found.

mod backend_kernel;
mod dump;
mod kernel_cache;
mod key;
mod recent;
mod region_file;
mod summary;
mod verification;

pub use backend_kernel::BackendKernels;
pub use dump::{DumpError, Dumper};
pub use kernel_cache::{KernelCache, kernel_cache_counts};
pub(crate) use key::hexadecimal;
pub(crate) use region_file::RegionFile;
pub use summary::{RegionSummary, counters_of, tile_sizes};
pub(crate) use verification::VERIFY_TIMEOUT;
pub use verification::{verification_json, z3_library};

use crate::cost_function::{self, CurrentModel};
use act_bolt::region::{RegionReport, RegionSpec, TranslateError, hex_of_region};
use act_generator::phase1::GenerateError;
use act_generator::{Backend, Options, model_of};
use act_hlo::Graph;
use act_hlo::proto::HloModule;
use act_isa::targets::{TargetError, load_target};
use act_isa::{Isa, View};
use act_stitch::region::{RegionCode, StitchError, stitch_region};
use act_stitch::simulate::{Executable, LowerError, Options as SimulatorOptions};
use act_stitch::stitched::{EmitError, StitchedModule, emit};
use backend_kernel::BoundedSearch;
use kernel_cache::Entry;
use recent::{Outcome, Recent};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A region that runs.
pub struct RunnableRegion {
    pub key: String,
    pub module: StitchedModule,
    pub executable: Executable,
    pub summary: RegionSummary,
}

/// A region that was compiled here, with the way to its code.
pub struct CompiledRegion {
    pub runnable: Arc<RunnableRegion>,
    pub code: RegionCode,
    /// Seconds by phase. For people; nothing depends on them.
    pub phase_seconds: BTreeMap<&'static str, f64>,
}

impl Deref for CompiledRegion {
    type Target = RunnableRegion;

    fn deref(&self) -> &RunnableRegion {
        &self.runnable
    }
}

/// Why a region has none.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegionError {
    #[error(transparent)]
    Stitch(#[from] StitchError),
    #[error("the stitched loops cannot be written as MLIR: {0}")]
    Emit(Arc<EmitError>),
    #[error("the simulator cannot run the code: {0}")]
    Lower(Arc<LowerError>),
    #[error("a segment of more than 2^63 bytes")]
    TooLarge,
    /// The reason is known from an earlier process.
    #[error("{0}")]
    Recorded(String),
}

/// Why there is no compiler for a target.
#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("no backend can be generated for {target}: {reason}")]
    Generate { target: String, reason: GenerateError },
}

/// Gives what a search for code has left free back to the system. It takes megabytes for a moment; what is allocated
/// next above them would keep glibc from giving them back by itself.
fn give_memory_back() {
    // SAFETY: it touches free memory only, and may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Compiles regions for one description under fixed options. Safe to share between threads.
pub struct TargetCompiler {
    kernels: BackendKernels,
    simulator: SimulatorOptions,
    dumper: Option<Dumper>,
    /// The most time that the search for one region's code may take.
    timeout: Option<Duration>,
    /// The most time that the check of one region's code may take.
    verify_timeout: Duration,
    recent: Mutex<Recent>,
    /// What earlier processes know.
    on_disk: Option<KernelCache>,
}

impl TargetCompiler {
    /// A compiler for a known target's name or the path of a description.
    ///
    /// # Errors
    /// No such target, a bad description, or one that no backend can be made from.
    pub fn new(
        target: &str,
        options: Options,
        dumper: Option<Dumper>,
    ) -> Result<TargetCompiler, CompilerError> {
        Self::of_isa(Arc::new(load_target(target)?), options, dumper)
    }

    /// A compiler for a description.
    ///
    /// # Errors
    /// No backend can be made from it.
    pub fn of_isa(
        isa: Arc<Isa>,
        options: Options,
        dumper: Option<Dumper>,
    ) -> Result<TargetCompiler, CompilerError> {
        let backend = Backend::generate(Arc::clone(&isa))
            .map_err(|reason| CompilerError::Generate { target: isa.name.clone(), reason })?;
        let cost = Arc::new(CurrentModel { described: model_of(&isa) });
        let kernels = BackendKernels { backend: Arc::new(backend), options, cost };
        let simulator = SimulatorOptions::default();
        let recent = Mutex::new(Recent::default());
        let verify_timeout = VERIFY_TIMEOUT;
        Ok(TargetCompiler {
            kernels,
            simulator,
            dumper,
            timeout: None,
            verify_timeout,
            recent,
            on_disk: None,
        })
    }

    /// Bounds the check of a region's code; `None`: as is usual.
    #[must_use]
    pub fn verify_timeout(self, timeout: Option<Duration>) -> TargetCompiler {
        TargetCompiler { verify_timeout: timeout.unwrap_or(VERIFY_TIMEOUT), ..self }
    }

    /// Bounds the search for a region's code.
    #[must_use]
    pub fn timeout(self, timeout: Option<Duration>) -> TargetCompiler {
        TargetCompiler { timeout, ..self }
    }

    /// Keeps what [`Self::runnable`] finds for other processes. With a dump nothing is taken from there: it shows
    /// every step.
    #[must_use]
    pub fn on_disk(self, on_disk: Option<KernelCache>) -> TargetCompiler {
        TargetCompiler { on_disk, ..self }
    }

    /// Whether hazards are faults where the code runs; they are not unless this says so.
    #[must_use]
    pub fn strict(self, strict: bool) -> TargetCompiler {
        TargetCompiler { simulator: SimulatorOptions { strict, ..self.simulator }, ..self }
    }

    /// How code is made to run.
    pub fn simulator(&self) -> SimulatorOptions {
        self.simulator
    }

    pub fn isa(&self) -> &Isa {
        self.kernels.backend.isa()
    }

    pub fn backend(&self) -> &Backend {
        &self.kernels.backend
    }

    /// Identifies the description and the options: equal fingerprints, equal code.
    pub fn fingerprint(&self) -> String {
        let float = self.kernels.options.numerics.float;
        let strict = if self.simulator.strict { " strict" } else { "" };
        format!("{} {float}{strict}", key::description_hash(self.isa()))
    }

    /// Appends a line to the dump's list of regions, if there is a dump.
    pub fn dump_line(&self, line: &str) {
        if let Some(dumper) = &self.dumper {
            dumper.line(line);
        }
    }

    /// Why the dump has ended before its time, if it has and this was not told yet.
    pub fn take_dump_failure(&self) -> Option<DumpError> {
        self.dumper.as_ref()?.take_failure()
    }

    /// Writes a verdict to the dump, if there is one.
    pub fn dump_verification(&self, key: &str, report: &RegionReport) {
        if let Some(dumper) = &self.dumper {
            dumper.verification(key, report);
        }
    }

    /// Writes a module to the dump, if there is one.
    pub fn dump_module(&self, module: &HloModule) {
        if let Some(dumper) = &self.dumper {
            dumper.module(&module.name(), &module.to_bytes());
        }
    }

    /// Judges stitched text against the graph that it was made for: `operands` and `results` are where its parameters
    /// and roots lie. Ends without a verdict once `stopped` is set.
    pub fn verify(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
        text: &str,
        stopped: Option<&AtomicBool>,
    ) -> RegionReport {
        let float = self.kernels.options.numerics.float;
        let timeout = self.verify_timeout;
        verification::verify(self.isa(), float, graph, (operands, results), text, timeout, stopped)
    }

    /// The region with its stitched text as a case in Hex.
    ///
    /// # Errors
    /// The text is not understood, or something in it has no form in Hex.
    pub fn hex(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
        text: &str,
    ) -> Result<String, TranslateError> {
        let numerics = verification::permitted(self.kernels.options.numerics.float);
        hex_of_region(self.isa(), &RegionSpec { graph, operands, results, numerics }, text)
    }

    fn key(&self, graph: &Graph, operands: &[View], results: &[View]) -> String {
        let options = &self.kernels.options;
        let fingerprint = self.kernels.cost.fingerprint();
        key::region_key(self.isa(), options, self.simulator.strict, &fingerprint, graph, operands, results)
    }

    /// The region's code, compiled now or found under its key.
    ///
    /// # Errors
    /// Why the region must stay on the host.
    pub fn runnable(&self, graph: &Graph, operands: &[View], results: &[View]) -> Outcome {
        let key = self.key(graph, operands, results);
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(done) = recent().get(&key) {
            return done;
        }
        // Found or compiled without the lock: two threads may do the same work, which is harmless; the first result
        // stays.
        let found = self.known_on_disk(&key).unwrap_or_else(|| {
            let search = BoundedSearch::new(&self.kernels, self.timeout);
            let compiled = self.compile_anew(&search, &key, graph, operands, results);
            self.dump(&key, graph, (operands, results), &compiled);
            let compiled = compiled.map(|region| region.runnable);
            give_memory_back();
            if let (Some(on_disk), false) = (&self.on_disk, search.passing() || cost_function::failed()) {
                on_disk.store(&key, &entry_of(&compiled));
            }
            compiled
        });
        // What a fault of the user's cost function led to is no result.
        if cost_function::failed() {
            return found;
        }
        recent().insert(&key, found)
    }

    /// What an earlier process found out of a region.
    fn known_on_disk(&self, key: &str) -> Option<Outcome> {
        let on_disk = self.on_disk.as_ref().filter(|_| self.dumper.is_none())?;
        let (mlir, summary) = match on_disk.load(key)? {
            Entry::Refused(reason) => return Some(Err(RegionError::Recorded(reason))),
            Entry::Code { mlir, summary } => (mlir, summary),
        };
        let module = StitchedModule::parse(&mlir).ok();
        let runnable = module.and_then(|module| {
            let executable = Executable::compile_with(self.isa(), &module, self.simulator).ok()?;
            Some(RunnableRegion { key: key.to_owned(), module, executable, summary })
        });
        if runnable.is_none() {
            on_disk.damaged(key);
        }
        runnable.map(|runnable| Ok(Arc::new(runnable)))
    }

    /// Compiles a region, whether or not it was compiled before.
    ///
    /// # Errors
    /// Why the region must stay on the host.
    pub fn compile(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
    ) -> Result<CompiledRegion, RegionError> {
        let search = BoundedSearch::new(&self.kernels, self.timeout);
        let key = self.key(graph, operands, results);
        let compiled = self.compile_anew(&search, &key, graph, operands, results);
        self.dump(&key, graph, (operands, results), &compiled);
        compiled
    }

    fn dump(
        &self,
        key: &str,
        graph: &Graph,
        views: (&[View], &[View]),
        compiled: &Result<CompiledRegion, RegionError>,
    ) {
        match (&self.dumper, compiled) {
            (Some(dumper), Ok(region)) => dumper.region(self.isa(), graph, views, region),
            (Some(dumper), Err(RegionError::Stitch(StitchError::NoCode { attempts, .. }))) => {
                dumper.refused(key, graph, attempts);
            }
            _ => {}
        }
    }

    fn compile_anew(
        &self,
        search: &BoundedSearch<'_>,
        key: &str,
        graph: &Graph,
        operands: &[View],
        results: &[View],
    ) -> Result<CompiledRegion, RegionError> {
        let sizes = |views: &[View]| views.iter().map(segment_bytes).collect::<Option<Vec<u64>>>();
        let operand_bytes = sizes(operands).ok_or(RegionError::TooLarge)?;
        let result_bytes = sizes(results).ok_or(RegionError::TooLarge)?;
        let mut phase_seconds = BTreeMap::new();
        let mut clock = Instant::now();
        let mut phase = |name| {
            phase_seconds.insert(name, clock.elapsed().as_secs_f64());
            clock = Instant::now();
        };
        let code = stitch_region(search, graph, operands, results, (&operand_bytes, &result_bytes))?;
        phase("select_allocate_stitch");
        let module = emit(self.isa(), &code.program).map_err(|e| RegionError::Emit(Arc::new(e)))?;
        phase("emit");
        let executable = Executable::compile_with(self.isa(), &module, self.simulator)
            .map_err(|e| RegionError::Lower(Arc::new(e)))?;
        phase("jit");
        let summary = RegionSummary::new(self.isa(), &code);
        let runnable = Arc::new(RunnableRegion { key: key.to_owned(), module, executable, summary });
        Ok(CompiledRegion { runnable, code, phase_seconds })
    }
}

fn entry_of(outcome: &Outcome) -> Entry {
    match outcome {
        Ok(region) => Entry::Code { mlir: region.module.text().to_owned(), summary: region.summary.clone() },
        Err(reason) => Entry::Refused(reason.to_string()),
    }
}

/// Bytes of the segment whose whole contents a view shows: up to the end of its last element.
fn segment_bytes(view: &View) -> Option<u64> {
    let mut end = i64::try_from(view.elem.bytes()).ok()?.checked_add(view.start.c0)?;
    for &(len, stride) in &view.dims {
        let Some(steps) = len.checked_sub(1) else { return Some(0) };
        end = end.checked_add(stride.checked_mul(i64::try_from(steps).ok()?)?)?;
    }
    u64::try_from(end).ok()
}
