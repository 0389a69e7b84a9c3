//! A target made of a description: offloading through its generated backend, kernels that run on its simulator.

mod kernel;
mod verify;

use crate::compile::CompileContext;
use crate::compiler::{CompilerError, DumpError, Dumper, KernelCache, TargetCompiler};
use crate::custom_calls;
use crate::interruption::Interruption;
use crate::kernel::Kernel;
use crate::offload::{self, CompileRefusal, Limits, OffloadedRegion, RegionCompiler, RegionId, Seeds};
use crate::options::{self, Options as UserOptions, Verify};
use crate::target::{Offload, OffloadReport, Target};
use act_generator::{AllocatorChoice, FloatPolicy, Numerics, Options};
use act_hlo::proto::HloModule;
use act_hlo::{Graph, Op, OpKind, Shape};
use act_isa::{Isa, View};
use kernel::DeviceKernel;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use verify::{Answer, Verdicts};

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
    let compiler = TargetCompiler::new(name, options, dumper)?
        .strict(user.strict)
        .timeout(user.compile_timeout)
        .verify_timeout(user.verify_timeout)
        .on_disk(user.cache_dir.clone().map(|folder| KernelCache::new(folder, user.cache_size)));
    let seeds = match user.offload {
        options::Offered::Products => Seeds::Products,
        options::Offered::All => Seeds::All,
        options::Offered::Auto if multiplies_matrices(compiler.backend().selectable_isa()) => Seeds::Products,
        options::Offered::Auto => Seeds::All,
    };
    let compilation = match seeds {
        Seeds::Products => compiler.fingerprint(),
        Seeds::All => format!("{} all", compiler.fingerprint()),
    };
    Ok(Some(Target {
        name: compiler.isa().name.clone(),
        // A program that some cache keeps was verified only if its compilation was asked to.
        fingerprint: match user.verify {
            Verify::Off => compilation,
            Verify::On => format!("{compilation} verified"),
            Verify::Strict => format!("{compilation} proved"),
        },
        offload: Arc::new(DeviceTarget {
            compiler,
            seeds,
            verify: user.verify,
            verdicts: Verdicts::default(),
        }),
    }))
}

/// Whether some instruction computes a matrix product.
fn multiplies_matrices(isa: &Isa) -> bool {
    let mut statements = isa.instrs.iter().flat_map(|instr| &instr.computation.stmts);
    statements.any(|stmt| matches!(stmt.op, OpKind::Dot(_)))
}

struct DeviceTarget {
    compiler: TargetCompiler,
    seeds: Seeds,
    verify: Verify,
    verdicts: Verdicts,
}

impl Offload for DeviceTarget {
    fn offload(&self, module: &mut HloModule, _context: &CompileContext) -> OffloadReport {
        self.compiler.dump_module(module);
        let regions = Regions { compiler: &self.compiler, compiled: Mutex::new(BTreeMap::new()) };
        let done = offload::offload(module, &regions, Limits::default(), self.seeds);
        let mut compiled = regions.compiled.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut lines = done.json();
        let mut failure = self.judge(&done.regions, &compiled, &mut lines);
        for line in &lines {
            self.compiler.dump_line(&line.to_string());
        }
        failure = failure.or_else(|| self.dump_failure(&done.regions, module));
        let mut costs = BTreeMap::new();
        for taken in &done.regions {
            if let Some(answer) = compiled.get(&taken.compiled.key) {
                answer.region.summary.add_costs(&mut costs);
            }
        }
        // Regions that were compiled on the way but not taken are not needed.
        let kernels = done.regions.iter().filter_map(|taken| {
            let answer = compiled.remove(&taken.compiled.key)?;
            let kernel = DeviceKernel::new(self.compiler.isa(), answer.region, origin(taken));
            let kernel: Box<dyn Kernel> = Box::new(kernel);
            Some((taken.compiled.key.clone(), kernel))
        });
        let kernels = kernels.collect();
        OffloadReport { changed: !done.regions.is_empty(), regions: lines, kernels, costs, failure }
    }

    fn load_kernel(&self, _key: &str, bytes: &[u8]) -> Result<Box<dyn Kernel>, String> {
        Ok(Box::new(DeviceKernel::load(self.compiler.isa(), self.compiler.simulator(), bytes)?))
    }
}

impl DeviceTarget {
    /// Judges the code that is taken, if that was asked for, and notes the verdicts. Why the program must not run.
    fn judge(
        &self,
        regions: &[OffloadedRegion],
        compiled: &BTreeMap<String, Answer>,
        lines: &mut [serde_json::Value],
    ) -> Option<String> {
        if self.verify == Verify::Off {
            return None;
        }
        let interruption = Interruption::watch();
        let mut failure = None;
        for taken in regions {
            let Some(answer) = compiled.get(&taken.compiled.key) else { continue };
            let stopped = interruption.seen();
            let judged = self.verdicts.of(&self.compiler, self.verify, answer, &origin(taken), stopped);
            let key = Some(taken.compiled.key.as_str());
            for line in lines.iter_mut().filter(|line| line["key"].as_str() == key) {
                line["verification"] = judged.record.clone();
            }
            failure = failure.or(judged.failure);
        }
        failure
    }

    /// What a program is told whose dump could not be written.
    fn dump_failure(&self, regions: &[OffloadedRegion], module: &HloModule) -> Option<String> {
        let error = self.compiler.take_dump_failure()?;
        let entry = module.computation(module.entry_id());
        let any = || entry?.instructions().filter_map(|i| custom_calls::place(module, i)).last();
        let what = regions.first().map(origin).or_else(any);
        let what = what.unwrap_or_else(|| format!("the module {}", module.name()));
        Some(format!("{what}: {error}. There is no dump from here on; the same call again works without"))
    }
}

/// What a region stands for in the program: the name that JAX gave the operator it was grown from, and the line that this
/// comes from.
fn origin(region: &OffloadedRegion) -> String {
    match &region.source {
        Some(source) if !source.file.is_empty() => {
            format!("{} ({}:{})", source.op_name, source.file, source.line)
        }
        Some(source) if !source.op_name.is_empty() => source.op_name.clone(),
        _ => format!("{} in {}", region.op, region.computation),
    }
}

/// Compiles the regions of one module and keeps what was compiled.
struct Regions<'a> {
    compiler: &'a TargetCompiler,
    compiled: Mutex<BTreeMap<String, Answer>>,
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
            .runnable(graph, operands, results)
            .map_err(|error| CompileRefusal { node: None, reason: error.to_string() })?;
        let key = region.key.clone();
        let summary = serde_json::to_value(&region.summary).unwrap_or_default();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let (operands, results) = (operands.to_vec(), results.to_vec());
        compiled.insert(key.clone(), Answer { region, graph: graph.clone(), operands, results });
        Ok(offload::CompiledRegion { key, summary })
    }

    fn rules_out(&self, op: &Op, _: &[&Shape], result: &Shape) -> Option<String> {
        let isa = &self.compiler.isa().name;
        let never = matches!(op, Op::Dot(_)) && !self.compiler.backend().may_contract(result.elem);
        never.then(|| format!("no instruction of {isa} computes dot ({result})"))
    }
}
