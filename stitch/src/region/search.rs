//! The search over tile choices for one region.

use super::choice::choices;
use super::compile::{CompiledPlan, compile_plan};
use super::fence::with_fences;
use super::kernel::{KernelCompiler, KernelRecord, Soon};
use super::larger::larger_tiles;
use super::pack_order::{Packing, leaf_groups, pack};
use crate::reuse::reuse_panels;
use crate::tile::{
    Axes, Joining, MOST_KERNELS, NestError, NormalRegion, NormalizeError, TileChoice, build_nest,
    join_depths, normalize, reshaped_views, widened,
};
use act_hlo::Graph;
use act_isa::{LoopProgram, View};

/// A stitched region.
pub struct RegionCode {
    pub program: LoopProgram,
    pub kernels: Vec<KernelRecord>,
    pub choice: TileChoice,
    pub packing: Packing,
    /// Modelled cycles of the nest.
    pub cost: u64,
    pub attempts: Vec<Attempt>,
}

/// One tile choice that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub choice: TileChoice,
    pub packing: Packing,
    /// Modelled cycles, or why not.
    pub outcome: Result<u64, String>,
}

/// Why a region stays on the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StitchError {
    #[error(transparent)]
    Normalize(#[from] NormalizeError),
    #[error(transparent)]
    Nest(#[from] NestError),
    /// No tile choice compiled; the reason is that of the first, the least rearranged one.
    #[error("{reason}")]
    NoCode { reason: String, attempts: Vec<Attempt> },
}

/// Finds code for a region whose operands and results lie at the given views, of segments of the given byte sizes.
///
/// # Errors
/// The region cannot be tiled, or no choice of tiles compiles.
pub fn stitch_region(
    compiler: &dyn KernelCompiler,
    graph: &Graph,
    operands: &[View],
    results: &[View],
    segment_bytes: (&[u64], &[u64]),
) -> Result<RegionCode, StitchError> {
    let wide = widened(graph).map_err(NestError::from)?;
    let mut forms: Vec<NormalRegion> = Vec::new();
    for graph in std::iter::once(graph).chain(&wide) {
        let plain = normalize(graph, operands, results)?;
        let plain = reshaped_views(&plain).map_err(NestError::from)?.unwrap_or(plain);
        let joined = |joining| join_depths(&plain, joining).map_err(NestError::from);
        // What memory joins costs nothing; what the host has to gather for it competes by cost.
        let (adjacent, gathered) = (joined(Joining::Adjacent)?, joined(Joining::Gathered)?);
        let again = gathered.filter(|form| !form.gathers.is_empty());
        forms.push(adjacent.unwrap_or(plain));
        forms.extend(again);
    }
    let mut search = Search { compiler, segment_bytes, attempts: Vec::new(), reason: None, best: None };
    for level in Packing::LEVELS {
        for region in &forms {
            if search.level(region, level)? == Further::Hopeless {
                return search.finish();
            }
        }
        if search.best.is_some() {
            break;
        }
    }
    search.finish()
}

/// Kernels of a nest with larger tiles: they take longer to compile, and a nest with code is there already.
const MOST_LARGER_KERNELS: usize = 24;

/// How many times cheaper code is expected to get by larger tiles, at most: what costs more than this times the best is
/// not made larger.
const MOST_GAINED: u64 = 2;

/// Whether more tile choices are worth trying.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Further {
    Worthwhile,
    Hopeless,
}

struct Search<'a> {
    compiler: &'a dyn KernelCompiler,
    segment_bytes: (&'a [u64], &'a [u64]),
    attempts: Vec<Attempt>,
    /// Of the first attempt that was refused for what its kernels are.
    reason: Option<String>,
    best: Option<(u64, CompiledPlan, TileChoice, Packing)>,
}

impl Search<'_> {
    /// Tries the tile choices of one form of the region at one level of packing.
    fn level(&mut self, region: &NormalRegion, level: Packing) -> Result<Further, StitchError> {
        let compiler = self.compiler;
        let plain_axes = Axes::of_graph(&region.graph);
        let packed = pack(region, &plain_axes, level).map_err(NestError::from)?;
        let Some((region, packed_leaves)) = packed else { return Ok(Further::Worthwhile) };
        let axes = Axes::of_graph(&region.graph);
        let packed_results = vec![level.is_total(); region.results.len()];
        let reassociate = compiler.may_reassociate_floats();
        let groups = match level {
            Packing::Grouped => leaf_groups(&region, &axes, compiler.selectable_isa()),
            _ => vec![vec![None; region.leaves.len()]],
        };
        let choices = choices(&region, &axes, compiler.selectable_isa(), reassociate, level);
        let combined = groups.iter().flat_map(|groups| choices.iter().map(move |choice| (groups, choice)));
        let first = self.attempts.len();
        for (groups, choice) in combined {
            let mut choice = TileChoice { leaf_groups: groups.clone(), ..choice.clone() };
            choice.packed_leaves.clone_from(&packed_leaves);
            choice.packed_results.clone_from(&packed_results);
            if self.attempt(&region, &axes, level, choice, self.compiler, MOST_KERNELS)? == Further::Hopeless
            {
                return Ok(Further::Hopeless);
            }
        }
        if level == Packing::None {
            self.larger(&region, &axes, first)?;
        }
        Ok(Further::Worthwhile)
    }

    /// Tries larger tiles than those of the cheapest attempt from number `first` on that can be made larger.
    fn larger(&mut self, region: &NormalRegion, axes: &Axes, first: usize) -> Result<(), StitchError> {
        let Some(best) = self.best.as_ref().map(|best| best.0) else { return Ok(()) };
        let mut done: Vec<(u64, &TileChoice)> = self.attempts[first..]
            .iter()
            .filter_map(|attempt| Some((*attempt.outcome.as_ref().ok()?, &attempt.choice)))
            .filter(|(cost, _)| *cost / MOST_GAINED <= best)
            .collect();
        done.sort_by_key(|(cost, _)| *cost);
        let isa = self.compiler.selectable_isa();
        let soon = Soon(self.compiler);
        let mut larger = done.into_iter().map(|(_, choice)| larger_tiles(region, axes, isa, choice));
        for choice in larger.find(|choices| !choices.is_empty()).unwrap_or_default() {
            if self.attempt(region, axes, Packing::None, choice, &soon, MOST_LARGER_KERNELS)?
                == Further::Hopeless
            {
                break;
            }
        }
        Ok(())
    }

    /// Compiles one choice; it is the best if it costs less than all before.
    fn attempt(
        &mut self,
        region: &NormalRegion,
        axes: &Axes,
        level: Packing,
        choice: TileChoice,
        compiler: &dyn KernelCompiler,
        most_kernels: usize,
    ) -> Result<Further, StitchError> {
        let plan = match build_nest(region, axes, &choice, most_kernels) {
            Ok(plan) => plan,
            // Other tiles, or padded ones, need fewer.
            Err(error @ NestError::TooManyKernels { .. }) => {
                let outcome = Err(error.to_string());
                self.attempts.push(Attempt { choice, packing: level, outcome });
                return Ok(Further::Worthwhile);
            }
            Err(error) => return Err(error.into()),
        };
        let (operands, results) = self.segment_bytes;
        let compiled = compile_plan(compiler, &plan, region.segments, operands, results);
        let compiled = compiled.map(|plan| CompiledPlan {
            program: reuse_panels(compiler.isa(), plan.program, &|body, limit| {
                compiler.cost_below(body, limit)
            }),
            ..plan
        });
        let outcome = match &compiled {
            Ok(compiled) => Ok(compiler.cost(&compiled.program.body)),
            Err(refusal) => Err(refusal.reason.clone()),
        };
        if let Some(refusal) = compiled.as_ref().err().filter(|refusal| !refusal.misplaced) {
            self.reason.get_or_insert_with(|| refusal.reason.clone());
        }
        self.attempts.push(Attempt { choice: choice.clone(), packing: level, outcome: outcome.clone() });
        match (compiled, outcome) {
            (Ok(compiled), Ok(cost)) if self.best.as_ref().is_none_or(|b| cost < b.0) => {
                self.best = Some((cost, compiled, choice, level));
            }
            (Err(refusal), _) if refusal.hopeless => return Ok(Further::Hopeless),
            _ => {}
        }
        Ok(Further::Worthwhile)
    }

    fn finish(self) -> Result<RegionCode, StitchError> {
        let attempts = self.attempts;
        match self.best {
            Some((cost, CompiledPlan { program, kernels }, choice, packing)) => {
                let program = with_fences(self.compiler.isa(), program);
                Ok(RegionCode { program, kernels, choice, packing, cost, attempts })
            }
            None => {
                let first = attempts.iter().find_map(|a| a.outcome.as_ref().err().cloned());
                let reason = self.reason.or(first);
                let reason =
                    reason.unwrap_or_else(|| "the description has no instruction to tile for".to_owned());
                Err(StitchError::NoCode { reason, attempts })
            }
        }
    }
}
