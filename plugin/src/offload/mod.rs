//! Offloading: regions of a module are chosen, compiled, and replaced by custom calls. Which target they run on
//! and how they are compiled is behind [`RegionCompiler`].

mod buffers;
mod compiler;
mod flow;
mod grow;
mod kernel_graph;
mod leftover;
mod refusal;
mod region;
mod rewrite;
mod scope;
mod select;
mod topological;
mod wellformed;

#[cfg(test)]
mod tests;

pub use compiler::{CompileRefusal, CompiledRegion, RegionCompiler, RegionId};
pub use grow::Limits;
pub use refusal::{Attempt, Refusal, RefusalReason};
pub use select::OffloadedRegion;

use act_hlo::proto::{HloModule, ProtoError};
use buffers::{Obligations, OrderError};
use flow::Flow;
use rewrite::{Planned, RewriteError, Rewritten, rewrite};
use scope::Scope;
use select::{Selection, Selector};

/// What became of a module.
#[derive(Debug, Default)]
pub struct Offloaded {
    /// Regions that run on the device now; when there is none, the module is untouched.
    pub regions: Vec<OffloadedRegion>,
    /// Every contraction that stays on the host.
    pub refusals: Vec<Refusal>,
}

impl Offloaded {
    /// One line per region and per refusal, as the dump and Python show them, in the order of the regions.
    pub fn json(&self) -> Vec<serde_json::Value> {
        let mut lines: Vec<(RegionId, serde_json::Value)> = Vec::new();
        lines.extend(self.regions.iter().map(|r| (r.region, r.json())));
        lines.extend(self.refusals.iter().map(|r| (r.region, r.json())));
        lines.sort_by_key(|(region, _)| *region);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// Moves what the compiler takes from the host to the device. A module that cannot be handled, as a whole or
/// in part, stays as it is there, with the reason among the refusals.
pub fn offload(module: &mut HloModule, compiler: &dyn RegionCompiler, limits: Limits) -> Offloaded {
    let mut selector = Selector::new(compiler, limits);
    let outcome = run(module, &mut selector);
    let Selector { mut regions, mut refusals, .. } = selector;
    match outcome {
        Ok(rewritten) => *module = rewritten,
        Err(reason) => {
            let withdrawn = regions.drain(..).map(|r| r.refused(reason.clone()));
            refusals.extend(withdrawn.collect::<Vec<_>>());
        }
    }
    Offloaded { regions, refusals }
}

/// The module with all regions replaced.
fn run(module: &HloModule, selector: &mut Selector<'_>) -> Result<HloModule, RefusalReason> {
    if module.has_schedule() {
        return Err(RefusalReason::Malformed("the module is scheduled already".to_owned()));
    }
    let scope = Scope::of(module)?;
    let mut out = module.clone();
    let mut fresh = module.fresh();
    for (id, role) in &scope.roles {
        let computation = module.computation(*id).ok_or(ProtoError::NoSuchComputation(*id))?;
        let flow = Flow::of(module, computation)?;
        let Selection { mut planned } = selector.select(module, computation, &flow);
        let obligations = Obligations::of(module, *id, role)?;
        while !planned.is_empty() {
            match replace(&flow, &planned, &obligations, &mut fresh) {
                Ok(rewritten) => {
                    install(&mut out, *id, rewritten)?;
                    break;
                }
                // Fewer regions leave more freedom.
                Err(reason) => {
                    if let Some(last) = planned.pop() {
                        selector.withdraw(last.id, reason);
                    }
                }
            }
        }
    }
    selector.refuse_hidden(module, &scope);
    if selector.regions.is_empty() {
        return Ok(module.clone());
    }
    out.remove_unreachable_computations()?;
    wellformed::check(&out).map_err(RefusalReason::Malformed)?;
    Ok(out)
}

fn replace(
    flow: &Flow,
    planned: &[Planned],
    obligations: &Obligations,
    fresh: &mut act_hlo::proto::FreshNames,
) -> Result<Rewritten, RefusalReason> {
    let rewritten = rewrite(flow, planned, fresh).map_err(|e| match e {
        RewriteError::Proto(e) => RefusalReason::Proto(e),
        other => RefusalReason::Malformed(other.to_string()),
    })?;
    obligations.keep(flow.computation, rewritten, fresh).map_err(|e| match e {
        OrderError::Proto(e) => RefusalReason::Proto(e),
        OrderError::Conflict => RefusalReason::Ordering,
    })
}

fn install(out: &mut HloModule, id: i64, rewritten: Rewritten) -> Result<(), RefusalReason> {
    for fused in rewritten.fused {
        out.insert_computation(fused, id)?;
    }
    let computation = out.computation_mut(id).ok_or(ProtoError::NoSuchComputation(id))?;
    computation.set_instructions(rewritten.instructions);
    computation.set_root_id(rewritten.root);
    Ok(())
}
