//! What is done to each module that one of our clients compiles: repairs of XLA's own faults, then the
//! target's offloading. It knows nothing of how the module gets here.

pub(crate) mod atan;

use act_hlo::proto::HloModule;

use crate::compile::CompileContext;
use crate::{costs, custom_calls, kernel};

/// The module to go on with instead of `bytes`, a serialized HloModuleProto; `None` to leave it as it is.
pub(crate) fn run(bytes: &[u8], context: &mut CompileContext) -> Option<Vec<u8>> {
    if custom_calls::may_occur(bytes) {
        context.calling = Some(bytes.to_vec());
    }
    let repair_atan = atan::may_occur(bytes) && !atan::is_right_in_xla();
    let target = context.client.target.clone();
    if !repair_atan && target.is_none() {
        return None;
    }
    let mut module = match HloModule::parse(bytes.to_vec()) {
        Ok(module) => module,
        Err(error) => {
            tracing::warn!("module left as it is: {error}");
            return None;
        }
    };
    if module.has_schedule() {
        tracing::warn!(module = module.name(), "module left as it is: it is scheduled already");
        return None;
    }
    let mut changed = false;
    if repair_atan {
        match atan::rewrite(&mut module) {
            Ok(rewritten) => changed |= rewritten > 0,
            Err(error) => {
                tracing::warn!(module = module.name(), "module left as it is: {error}");
                return None;
            }
        }
    }
    if let Some(target) = target {
        context.module = module.name().to_owned();
        let costs = costs::of_module(&module);
        let report = target.offload.offload(&mut module, context);
        if report.changed {
            context.costs = Some(costs.properties().into_iter().chain(report.costs).collect());
        }
        changed |= report.changed;
        if let Some(failure) = report.failure {
            context.failure.get_or_insert(failure);
        }
        for region in report.regions {
            context.considered.add(&region);
            context.regions.push(region);
        }
        for (key, kernel) in report.kernels {
            let kernel = kernel::register(&key, kernel);
            context.kernels.insert(key, kernel);
        }
    }
    changed.then(|| module.to_bytes())
}
