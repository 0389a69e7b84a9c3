//! The choice among candidates: branch and bound, patience, and refusals in bounded time.

use super::attention::{attention, product_of_products};
use super::description::{Builder, h_qkv, in_hbm};
use crate::compile::{CandidateLimits, EnumerationEnd, NoAllocation, Options, Outcome, Report, compile_best};
use crate::cost::{CostModel, SumOfCosts};
use crate::phase2::AllocLimits;
use crate::pii::PiiGraph;
use act_isa::{Isa, Program};

/// Attention whose result goes to d0 and back `detours` times.
fn with_detours(isa: &Isa, detours: u64) -> PiiGraph {
    let mut b = Builder::new(isa);
    b.graph = attention(isa);
    b.graph.roots.clear();
    let last = b.graph.nodes.pop().and_then(|store| store.operands.first().copied()).unwrap();
    let mut value = last;
    for _ in 0..detours {
        // gemm with itself: meaningless, but three more instructions of cost 1.
        let squared = b.run("gemm", &[], &[value, value]);
        let activated = b.run("softmax", &[64], &[squared]);
        value = b.run("mov", &[64], &[activated]);
    }
    let stored = b.store("store_rm", &[64], value, 0, 8192);
    b.root(&[stored])
}

fn outcomes(report: &Report) -> Vec<Outcome> {
    report.candidates.iter().map(|c| c.outcome.clone()).collect()
}

/// Costs added up, of candidates that come in any order.
struct Unordered;

impl CostModel for Unordered {
    fn lower_bound(&self, isa: &Isa, graph: &PiiGraph) -> u64 {
        SumOfCosts.lower_bound(isa, graph)
    }

    fn cost(&self, isa: &Isa, program: &Program) -> u64 {
        SumOfCosts.cost(isa, program)
    }

    fn fingerprint(&self) -> [u8; 32] {
        [1; 32]
    }
}

/// Knows no bound, so that every candidate must be allocated to be judged.
struct Boundless;

impl CostModel for Boundless {
    fn lower_bound(&self, _: &Isa, _: &PiiGraph) -> u64 {
        0
    }

    fn cost(&self, isa: &Isa, program: &Program) -> u64 {
        SumOfCosts.cost(isa, program)
    }

    fn fingerprint(&self) -> [u8; 32] {
        [0; 32]
    }
}

#[test]
fn the_cheapest_wins_and_what_cannot_win_is_not_allocated() {
    let isa = h_qkv();
    let graphs = || [2, 0, 1, 0].into_iter().map(|d| with_detours(&isa, d));
    let options = Options::default();
    let best = compile_best(&isa, &in_hbm(3), graphs(), &options, &Unordered).unwrap();
    assert_eq!((best.cost, best.assembly.instrs.len()), (9, 9));
    assert_eq!(
        outcomes(&best.report),
        [Outcome::Accepted { cost: 15 }, Outcome::Accepted { cost: 9 }, Outcome::Pruned, Outcome::Pruned]
    );
    assert_eq!(best.report.end, EnumerationEnd::Exhausted);

    let best = compile_best(&isa, &in_hbm(3), graphs(), &options, &Boundless).unwrap();
    assert_eq!(best.cost, 9);
    assert_eq!(outcomes(&best.report)[2..], [Outcome::Dearer { cost: 12 }, Outcome::Dearer { cost: 9 }]);
}

#[test]
fn enumeration_ends() {
    let isa = h_qkv();
    let endless = || std::iter::repeat_with(|| attention(&isa));
    // In the order of the costs that are added up, one that costs no more than it must is the best.
    let best = compile_best(&isa, &in_hbm(3), endless(), &Options::default(), &SumOfCosts).unwrap();
    assert_eq!((best.report.end, best.report.candidates.len()), (EnumerationEnd::Proven, 1));

    let limits = CandidateLimits { most: 100, failures: 5, patience: 3 };
    let options = Options { candidates: limits, ..Options::default() };
    let best = compile_best(&isa, &in_hbm(3), endless(), &options, &Unordered).unwrap();
    assert_eq!((best.report.end, best.report.candidates.len()), (EnumerationEnd::Patience, 2 + 3));

    let limits = CandidateLimits { most: 4, ..limits };
    let options = Options { candidates: limits, ..Options::default() };
    let best = compile_best(&isa, &in_hbm(3), endless(), &options, &Unordered).unwrap();
    assert_eq!((best.report.end, best.report.candidates.len()), (EnumerationEnd::Limit, 4));

    let limits = CandidateLimits { most: 100, ..limits };
    let options = Options { candidates: limits, ..Options::default() };
    let hopeless = std::iter::repeat_with(|| product_of_products(&isa));
    let error = compile_best(&isa, &in_hbm(4), hopeless, &options, &SumOfCosts).unwrap_err();
    assert!(matches!(error, NoAllocation::Failed { tried: 5, .. }), "{error:?}");

    let error = compile_best(&isa, &in_hbm(4), std::iter::empty(), &options, &SumOfCosts).unwrap_err();
    assert_eq!(error, NoAllocation::NoCandidate);
}

/// Allocators that decide nothing end the search for a kernel's code, however many graphs there are.
#[test]
fn a_kernel_is_given_up_after_so_many_orders() {
    let isa = h_qkv();
    let endless = || std::iter::repeat_with(|| with_detours(&isa, 1));
    let allocation =
        AllocLimits { search_steps: 0, cpsat_time_milli: 0, given_up: 3, ..AllocLimits::default() };
    let options = Options { allocation, ..Options::default() };
    let error = compile_best(&isa, &in_hbm(3), endless(), &options, &SumOfCosts).unwrap_err();
    let NoAllocation::Failed { tried, given_up, .. } = error else { panic!("{error}") };
    assert!((3..=4).contains(&given_up) && tried <= 3, "{given_up} of {tried}");
}
