//! Offloading: regions of a module are chosen, compiled, and replaced by custom calls. Which target they run on
//! and how they are compiled is behind [`RegionCompiler`].

mod buffers;
mod compiler;
pub(crate) mod convolution;
mod flow;
mod grow;
mod kernel_graph;
mod leftover;
mod refusal;
mod region;
mod rewrite;
mod scope;
mod seeds;
mod select;
mod topological;
mod unfold;
mod wellformed;
mod window;

#[cfg(test)]
mod tests;

pub use compiler::{CompileRefusal, CompiledRegion, RegionCompiler, RegionId};
pub use grow::Limits;
pub use refusal::{Attempt, Refusal, RefusalReason};
pub use seeds::Seeds;
pub use select::OffloadedRegion;

use act_hlo::proto::{HloModule, ProtoError};
use buffers::{Obligations, OrderError};
use flow::Flow;
use rewrite::{Planned, RewriteError, Rewritten, rewrite};
use scope::Scope;
use select::{Answers, Selection, Selector};
use std::collections::BTreeMap;
use unfold::Form;

/// What became of a module.
#[derive(Debug, Default)]
pub struct Offloaded {
    /// Regions that run on the device now; when there is none, the module is untouched.
    pub regions: Vec<OffloadedRegion>,
    /// Every contraction that stays on the host, and every other seed.
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
///
/// Convolutions are offered as products over windows. No window can be left to XLA, so those whose product is not
/// taken are put back, one form after the other, and everything is selected anew; the compiler's answers are kept.
pub fn offload(
    module: &mut HloModule,
    compiler: &dyn RegionCompiler,
    limits: Limits,
    seeds: Seeds,
) -> Offloaded {
    let mut forms = unfold::convolutions(module);
    // What stands against a convolution; against those that are still tried, in the form tried before.
    let mut against: BTreeMap<i64, RefusalReason> = BTreeMap::new();
    let mut answers = Answers::new();
    loop {
        let unfolded = unfold::unfold(module, &mut forms, &mut against);
        let known = against.iter().filter(|(site, _)| !forms.contains_key(site));
        let known = known.map(|(&site, reason)| (site, reason.clone())).collect();
        let mut selector = Selector::new(compiler, limits, seeds, known, answers);
        let outcome = unfolded.as_ref().map_err(Clone::clone).and_then(|u| run(&u.module, &mut selector));
        let Selector { mut regions, mut refusals, answers: given, reasons, .. } = selector;
        answers = given;
        let left = match (&unfolded, &outcome) {
            (Ok(unfolded), Ok(rewritten)) => unfolded.left(rewritten),
            // Without any of them, once more.
            _ => forms.keys().copied().collect(),
        };
        if left.is_empty() {
            match outcome {
                Ok(rewritten) if !regions.is_empty() => *module = rewritten,
                Ok(_) => {}
                Err(reason) => {
                    let withdrawn = regions.drain(..).map(|r| r.refused(reason.clone()));
                    refusals.extend(withdrawn.collect::<Vec<_>>());
                }
            }
            return Offloaded { regions, refusals };
        }
        for site in left {
            let dot = unfolded.as_ref().ok().and_then(|u| u.dots.get(&site));
            let reason = dot.and_then(|dot| reasons.get(dot)).cloned();
            against.entry(site).or_insert(reason.unwrap_or(RefusalReason::BehindWindow));
            match forms.get_mut(&site) {
                Some(form @ Form::Narrow) if outcome.is_ok() => *form = Form::Plain,
                _ => {
                    forms.remove(&site);
                }
            }
        }
    }
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
