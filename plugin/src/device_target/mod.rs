//! A target made of a description: offloading through its generated backend, kernels that run on its simulator.

mod kernel;

use crate::compile::CompileContext;
use crate::compiler::{CompiledRegion, CompilerError, DumpError, Dumper, TargetCompiler};
use crate::kernel::Kernel;
use crate::offload::{self, CompileRefusal, Limits, RegionCompiler, RegionId};
use crate::options::{self, Options as UserOptions};
use crate::target::{Offload, OffloadReport, Target};
use act_generator::{AllocatorChoice, FloatPolicy, Numerics, Options};
use act_hlo::Graph;
use act_hlo::proto::HloModule;
use act_isa::View;
use kernel::DeviceKernel;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Why the target that the user asked for cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Compiler(#[from] CompilerError),
    #[error(transparent)]
    Dump(#[from] DumpError),
}

/// The target that the user's options name; `None` when they name none.
///
/// # Errors
/// No such target, a bad description, a dump folder that cannot be written.
pub(crate) fn open(user: &UserOptions) -> Result<Option<Target>, OpenError> {
    let Some(name) = &user.target else { return Ok(None) };
    let float = match user.numerics {
        options::Numerics::Exact => FloatPolicy::Exact,
        options::Numerics::Xla => FloatPolicy::Xla,
        options::Numerics::Fast => FloatPolicy::Fast,
    };
    let alloc = match user.allocator {
        options::Allocator::Auto => AllocatorChoice::Auto,
        options::Allocator::CpSat => AllocatorChoice::CpSat,
    };
    let options = Options { numerics: Numerics { float }, alloc, ..Options::default() };
    let dumper = user.dump_dir.as_ref().map(Dumper::new).transpose()?;
    let compiler = TargetCompiler::new(name, options, dumper)?.strict(user.strict);
    Ok(Some(Target {
        name: compiler.isa().name.clone(),
        fingerprint: compiler.fingerprint(),
        offload: Arc::new(DeviceTarget { compiler }),
    }))
}

struct DeviceTarget {
    compiler: TargetCompiler,
}

impl Offload for DeviceTarget {
    fn offload(&self, module: &mut HloModule, _context: &CompileContext) -> OffloadReport {
        self.compiler.dump_module(module);
        let regions = Regions { compiler: &self.compiler, compiled: Mutex::new(BTreeMap::new()) };
        let done = offload::offload(module, &regions, Limits::default());
        let lines = done.json();
        for line in &lines {
            self.compiler.dump_line(&line.to_string());
        }
        let mut compiled = regions.compiled.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Regions that were compiled on the way but not taken are not needed.
        let kernels = done.regions.iter().filter_map(|taken| {
            let region = compiled.remove(&taken.compiled.key)?;
            let kernel: Box<dyn Kernel> = Box::new(DeviceKernel::new(self.compiler.isa(), region));
            Some((taken.compiled.key.clone(), kernel))
        });
        let kernels = kernels.collect();
        OffloadReport { changed: !done.regions.is_empty(), regions: lines, kernels }
    }

    fn load_kernel(&self, _key: &str, bytes: &[u8]) -> Result<Box<dyn Kernel>, String> {
        Ok(Box::new(DeviceKernel::load(self.compiler.isa(), self.compiler.simulator(), bytes)?))
    }
}

/// Compiles the regions of one module and keeps what was compiled.
struct Regions<'a> {
    compiler: &'a TargetCompiler,
    compiled: Mutex<BTreeMap<String, Arc<CompiledRegion>>>,
}

impl RegionCompiler for Regions<'_> {
    fn compile(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
        _region: RegionId,
    ) -> Result<offload::CompiledRegion, CompileRefusal> {
        let region = self
            .compiler
            .compile(graph, operands, results)
            .map_err(|error| CompileRefusal { node: None, reason: error.to_string() })?;
        let key = region.key.clone();
        let summary = serde_json::to_value(&region.summary).unwrap_or_default();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.insert(key.clone(), region);
        Ok(offload::CompiledRegion { key, summary })
    }
}
