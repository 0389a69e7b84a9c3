//! Compiling regions for one target: the generated backend, stitching and the simulator put together, results shared by
//! key. Knows neither PJRT nor how regions are found.

mod backend_kernel;
mod dump;
mod key;
mod summary;

pub use backend_kernel::BackendKernels;
pub use dump::{DumpError, Dumper};
pub(crate) use key::hexadecimal;
pub use summary::{RegionSummary, counters_of};

use act_generator::phase1::GenerateError;
use act_generator::{Backend, Options, SumOfCosts};
use act_hlo::Graph;
use act_hlo::proto::HloModule;
use act_isa::targets::{TargetError, load_target};
use act_isa::{Isa, View};
use act_stitch::region::{RegionCode, StitchError, stitch_region};
use act_stitch::simulate::{Executable, LowerError, Options as SimulatorOptions};
use act_stitch::stitched::{EmitError, StitchedModule, emit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A region that has code.
pub struct CompiledRegion {
    pub key: String,
    pub code: RegionCode,
    pub module: StitchedModule,
    pub executable: Executable,
    pub summary: RegionSummary,
    /// Seconds by phase. For people; nothing depends on them.
    pub phase_seconds: BTreeMap<&'static str, f64>,
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
}

/// Why there is no compiler for a target.
#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("no backend can be generated for {target}: {reason}")]
    Generate { target: String, reason: GenerateError },
}

type Cached = Result<Arc<CompiledRegion>, RegionError>;

/// Compiles regions for one description under fixed options. Safe to share between threads.
pub struct TargetCompiler {
    kernels: BackendKernels,
    simulator: SimulatorOptions,
    dumper: Option<Dumper>,
    cache: Mutex<BTreeMap<String, Cached>>,
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
        let kernels = BackendKernels { backend: Arc::new(backend), options, cost: Arc::new(SumOfCosts) };
        let simulator = SimulatorOptions::default();
        Ok(TargetCompiler { kernels, simulator, dumper, cache: Mutex::new(BTreeMap::new()) })
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

    /// Writes a module to the dump, if there is one.
    pub fn dump_module(&self, module: &HloModule) {
        if let Some(dumper) = &self.dumper {
            dumper.module(&module.name(), &module.to_bytes());
        }
    }

    /// The region's code, compiled now or found under its key.
    ///
    /// # Errors
    /// Why the region must stay on the host.
    pub fn compile(&self, graph: &Graph, operands: &[View], results: &[View]) -> Cached {
        let options = &self.kernels.options;
        let fingerprint = self.kernels.cost.fingerprint();
        let key = key::region_key(
            self.isa(),
            options,
            self.simulator.strict,
            &fingerprint,
            graph,
            operands,
            results,
        );
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(done) = cache().get(&key) {
            return done.clone();
        }
        // Compiled without the lock: two threads may do the same work, which is harmless; the first result stays.
        let compiled = self.compile_anew(&key, graph, operands, results).map(Arc::new);
        if let (Some(dumper), Ok(region)) = (&self.dumper, &compiled) {
            dumper.region(self.isa(), graph, region);
        }
        cache().entry(key).or_insert(compiled).clone()
    }

    fn compile_anew(
        &self,
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
        let code = stitch_region(&self.kernels, graph, operands, results, (&operand_bytes, &result_bytes))?;
        phase("select_allocate_stitch");
        let module = emit(self.isa(), &code.program).map_err(|e| RegionError::Emit(Arc::new(e)))?;
        phase("emit");
        let executable = Executable::compile_with(self.isa(), &module, self.simulator)
            .map_err(|e| RegionError::Lower(Arc::new(e)))?;
        phase("jit");
        let summary = RegionSummary::new(self.isa(), &code);
        Ok(CompiledRegion { key: key.to_owned(), code, module, executable, summary, phase_seconds })
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
