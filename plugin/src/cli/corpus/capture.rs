//! `act corpus capture`: offloading as the product does it, with a compiler that writes down what it is offered.

use crate::cli::outcome::{CliError, Report};
use crate::compiler::RegionFile;
use crate::compiler::TargetCompiler;
use crate::offload::{CompileRefusal, CompiledRegion, Limits, RegionCompiler, RegionId, Seeds, offload};
use act_generator::Options;
use act_hlo::Graph;
use act_hlo::proto::HloModule;
use act_isa::View;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Collects the regions of `modules` for all `targets` and writes those that are not there yet.
///
/// # Errors
/// Files that cannot be read or written, unknown targets.
pub(super) fn capture(modules: &[PathBuf], into: &Path, targets: &[String]) -> Result<Report, CliError> {
    let files = super::files(modules, "pb")?;
    let mut regions: BTreeMap<String, (String, RegionFile)> = BTreeMap::new();
    for target in targets {
        let compiler = TargetCompiler::new(target, Options::default(), None)?;
        for file in &files {
            let bytes = fs::read(file).map_err(|source| CliError::Read { file: file.clone(), source })?;
            let Ok(mut module) = HloModule::parse(bytes) else {
                return Err(CliError::NoModule { file: file.clone() });
            };
            let model = module.name().trim_start_matches("jit_").to_owned();
            let recorder = Recorder { compiler: &compiler, offered: RefCell::new(Vec::new()) };
            offload(&mut module, &recorder, Limits::default(), Seeds::Products);
            for region in kept(recorder.offered.into_inner()) {
                regions.entry(region.name()).or_insert_with(|| (model.clone(), region));
            }
        }
        eprintln!("{target}: {} distinct regions so far", regions.len());
    }
    for (name, (model, region)) in &regions {
        let folder = into.join(model);
        let file = folder.join(format!("{name}.hlo"));
        let write = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, region.text()));
        write.map_err(|source| CliError::Write { file: file.clone(), source })?;
    }
    let models: std::collections::BTreeSet<&String> = regions.values().map(|(model, _)| model).collect();
    let text = format!("{} regions of {} modules\n", regions.len(), models.len());
    Ok(Report { text, json: json!({ "regions": regions.len() }), success: true })
}

/// A region that the compiler was offered.
struct Offered {
    id: RegionId,
    region: RegionFile,
    taken: bool,
}

/// Of everything offered around one contraction: the region as it was grown, and the one that was taken or, where
/// none was, the last one tried, the contraction by itself. What lies in between is neither a program's nor the
/// device's.
fn kept(offered: Vec<Offered>) -> Vec<RegionFile> {
    let ids: Vec<RegionId> = offered.iter().map(|o| o.id).collect();
    let begins = |k: usize| k == 0 || ids[k - 1] != ids[k];
    let ends = |k: usize| k + 1 == ids.len() || ids[k + 1] != ids[k];
    let all = offered.into_iter().enumerate();
    all.filter(|(k, o)| o.taken || begins(*k) || ends(*k)).map(|(_, o)| o.region).collect()
}

struct Recorder<'a> {
    compiler: &'a TargetCompiler,
    offered: RefCell<Vec<Offered>>,
}

impl RegionCompiler for Recorder<'_> {
    fn compile(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
        id: RegionId,
    ) -> Result<CompiledRegion, CompileRefusal> {
        let compiled = self.compiler.runnable(graph, operands, results);
        let region = RegionFile::canonical(graph, operands, results);
        self.offered.borrow_mut().push(Offered { id, region, taken: compiled.is_ok() });
        match compiled {
            Ok(region) => Ok(CompiledRegion { key: region.key.clone(), summary: serde_json::Value::Null }),
            Err(error) => Err(CompileRefusal { node: None, reason: error.to_string() }),
        }
    }
}
