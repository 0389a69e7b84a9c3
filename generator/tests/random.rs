//! Random kernels on every target that has a profile: what compiles computes what the reference evaluator computes, and
//! what is refused is refused for a reason that holds.
//!
//! A thousand kernels for each: `cargo test --release -p act-generator --test random -- --ignored --nocapture`;
//! `ACT_RANDOM_KERNELS` sets another number.

mod random_kernels;

use act_generator::phase1::{SelectError, StopReason};
use act_generator::phase2::{AllocError, Shortage, SpillSearch};
use act_generator::{Backend, CompileError, Compiled, Options, SumOfCosts};
use act_hlo::compare::{Difference, PERMITTED_ROUNDINGS, compare};
use act_hlo::random::{SplitMix64, random_literal};
use act_hlo::{Graph, Literal, Op, print_graph};
use act_isa::{Isa, Oracle, TiledKernel, load_target, parse_assembly, print_assembly};
use random_kernels::profiles::{Profile, profile};
use random_kernels::{dense, kernel, shrink};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

fn backend(profile: &Profile) -> Backend {
    let isa = load_target(profile.target).unwrap_or_else(|e| panic!("{e}"));
    Backend::generate(Arc::new(isa)).unwrap_or_else(|e| panic!("{e}"))
}

/// How far the compiled code is from the evaluator, or what the oracle says of it. What runs is read from its text.
fn run(
    backend: &Backend,
    kernel: &TiledKernel,
    compiled: &Compiled,
    profile: &Profile,
) -> Result<Difference, String> {
    let mut rng = SplitMix64::new(11);
    let params = kernel.graph.params().iter();
    let inputs: Vec<Literal> =
        params.map(|&p| random_literal(&mut rng, kernel.graph.shape(p), profile.values)).collect();
    let expected = act_hlo::eval(&kernel.graph, &inputs).map_err(|e| e.to_string())?;
    let operands: Vec<&[u8]> = inputs.iter().map(Literal::bytes).collect();
    let mut results: Vec<Vec<u8>> = expected.iter().map(|e| vec![0xa5; e.bytes().len()]).collect();
    let text = print_assembly(backend.isa(), &compiled.assembly);
    let assembly = parse_assembly(backend.isa(), &text).map_err(|error| error.to_string())?;
    if assembly != compiled.assembly {
        return Err("the assembly is another when it is read from its text".to_owned());
    }
    let oracle = Oracle::new(backend.isa());
    oracle.run_assembly(&assembly, &operands, &mut results).map_err(|fault| fault.to_string())?;
    let each = expected.iter().zip(results).map(|(expected, got)| {
        let got = Literal::from_bytes(expected.shape().clone(), got);
        got.map(|got| compare(expected, &got)).map_err(|e| e.to_string())
    });
    each.reduce(|a, b| Ok(a?.max(b?))).ok_or("no result")?
}

/// Whether the results are the kernel's: a sum of n terms in another order may differ by n roundings.
fn right(kernel: &TiledKernel, difference: &Difference) -> bool {
    let graph = &kernel.graph;
    let terms = graph.nodes().iter().map(|node| {
        let len = |dims: &[usize]| dims.iter().map(|&d| graph.shape(node.operands[0]).dims[d]).product();
        match &node.op {
            Op::Dot(dims) => len(&dims.lhs_contracting),
            Op::Reduce { dims, .. } => len(dims),
            _ => 1u64,
        }
    });
    let longest = terms.max().unwrap_or(1) as f64;
    difference.elements == 0 || difference.roundings <= longest.max(PERMITTED_ROUNDINGS)
}

/// What is wrong with the code of a kernel, if anything.
fn fault(backend: &Backend, kernel: &TiledKernel, profile: &Profile) -> Option<String> {
    let compiled = backend.compile(kernel, &Options::default(), &SumOfCosts).ok()?;
    match run(backend, kernel, &compiled, profile) {
        Err(fault) => Some(fault),
        Ok(difference) if right(kernel, &difference) => None,
        Ok(difference) => Some(difference.to_string()),
    }
}

/// Whether a refusal is as it should be, and why it is one. The reason must hold: the operator that it names is one that
/// the kernel has, or a limit that was set ended the search. A refusal is right where no instruction contains the
/// operator; all else is a gap, of selection or of allocation.
fn checked(isa: &Isa, kernel: &TiledKernel, error: &CompileError) -> (Refusal, String) {
    let operator = |op: &str| op.split(' ').next().unwrap_or_default().to_owned();
    let names = |op: &str| kernel.graph.nodes().iter().any(|n| n.op.name() == operator(op));
    let contains = |op: &str| {
        let mut stmts = isa.instrs.iter().flat_map(|instr| &instr.computation.stmts);
        stmts.any(|stmt| stmt.op.name() == operator(op))
    };
    let buffers = |shortage: Option<&Shortage>| {
        let names = shortage.into_iter().flat_map(|s| &s.buffers).map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    match error {
        CompileError::NoSelection(SelectError::NoInstruction { op, .. }) => {
            assert!(names(op), "{op} is not in the kernel");
            let refusal = if contains(op) { Refusal::Gap } else { Refusal::Right };
            (refusal, format!("no instruction has {op}"))
        }
        CompileError::NoSelection(SelectError::NoCover { op, .. }) => {
            assert!(names(op), "{op} is not in the kernel");
            (Refusal::Gap, format!("no instruction fits {op}"))
        }
        CompileError::NoSelection(SelectError::LimitReached { stop, .. }) => {
            assert!(!matches!(stop, StopReason::Saturated), "{error}");
            (Refusal::Gap, format!("limit of selection: {stop}"))
        }
        CompileError::NoSelection(SelectError::NoStore { .. }) => (Refusal::Gap, "no store".to_owned()),
        CompileError::NoAllocation { reason, .. } => {
            let reason = match reason {
                AllocError::NoFit { shortage, spills, .. } if *spills == SpillSearch::default() => {
                    format!("proven: no room in {}", buffers(Some(shortage)))
                }
                AllocError::NoFit { shortage, .. } => {
                    format!("no way to make room found in {}", buffers(Some(shortage)))
                }
                AllocError::GaveUp { shortage, .. } => {
                    format!("no room found in {}", buffers(shortage.as_ref()))
                }
                other => other.to_string(),
            };
            (Refusal::Gap, format!("allocation: {reason}"))
        }
        other => panic!("no kernel may end so: {other}"),
    }
}

/// What a refusal says of the compiler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    /// No compiler could do better.
    Right,
    Gap,
}

/// Compiles and checks `count` kernels of seven to `largest` nodes; gives the share that compiled.
#[expect(clippy::print_stdout, reason = "the report of the command above")]
fn campaign(profile: &Profile, count: u64, largest: u64) -> f64 {
    let backend = backend(profile);
    let (mut compiled, mut refusals) = (0u64, BTreeMap::<(Refusal, String), u64>::new());
    for seed in 0..count {
        let mut rng = SplitMix64::new(seed ^ 0x5eed);
        let kernel = kernel(profile, seed, 7 + rng.below(largest - 6) as usize);
        match backend.compile(&kernel, &Options::default(), &SumOfCosts) {
            Ok(code) => {
                compiled += 1;
                let is_right = match run(&backend, &kernel, &code, profile) {
                    Ok(difference) => right(&kernel, &difference),
                    Err(_) => false,
                };
                if !is_right {
                    let wrong = |graph: &Graph| fault(&backend, &dense(graph.clone()), profile).is_some();
                    let small = dense(shrink::smallest(kernel.graph.clone(), wrong));
                    let why = fault(&backend, &small, profile).unwrap_or_default();
                    panic!("{} seed {seed}: {why}\n{}", profile.target, print_graph(&small.graph));
                }
            }
            Err(error) => *refusals.entry(checked(backend.isa(), &kernel, &error)).or_default() += 1,
        }
    }
    let share = compiled as f64 / count as f64;
    println!("{}: {compiled} of {count} kernels compiled ({:.1} %)", profile.target, 100.0 * share);
    let mut refusals: Vec<_> = refusals.into_iter().collect();
    refusals.sort_by_key(|((refusal, _), times)| (*refusal, Reverse(*times)));
    for ((refusal, reason), times) in refusals {
        let refusal = if refusal == Refusal::Right { "right" } else { "gap" };
        println!("  {times:4} {refusal:5} {reason}");
    }
    share
}

/// Kernels for vector units become hundreds of instructions: those targets are left to the nightly run.
#[test]
fn fifty_kernels_of_a_target_are_right_or_refused_with_a_reason() {
    for target in ["gemmini", "trainium", "h_qkv"] {
        campaign(profile(target), 50, 25);
    }
}

/// Kernels of a nightly run.
fn thousand() -> u64 {
    std::env::var("ACT_RANDOM_KERNELS").ok().and_then(|count| count.parse().ok()).unwrap_or(1000)
}

#[test]
#[ignore = "nightly: minutes"]
fn four_of_five_of_a_thousand_kernels_compile_on_gemmini() {
    let share = campaign(profile("gemmini"), thousand(), 400);
    assert!(share >= 0.80, "{share}");
}

#[test]
#[ignore = "nightly: minutes"]
fn nineteen_of_twenty_of_a_thousand_kernels_compile_on_trainium() {
    let share = campaign(profile("trainium"), thousand(), 400);
    assert!(share >= 0.95, "{share}");
}

macro_rules! right_or_refused {
    ($($target:ident)*) => {
        /// What is compiled is right, what is refused is refused with a reason.
        mod a_thousand_kernels_are_right_or_refused_with_a_reason {
            use super::{campaign, profile, thousand};

            $(#[test]
            #[ignore = "nightly: minutes"]
            fn $target() {
                campaign(profile(stringify!($target)), thousand(), 90);
            })*

            #[test]
            fn every_target_has_its_run() {
                let own = ["gemmini", "trainium"].into_iter();
                let mut run: Vec<&str> = own.chain([$(stringify!($target)),*]).collect();
                run.sort_unstable();
                let mut targets: Vec<&str> = act_isa::targets().iter().map(|target| target.0).collect();
                targets.sort_unstable();
                assert_eq!(run, targets);
            }
        }
    };
}

right_or_refused!(amx eva feather gemmini_plus h_qkv tpu_v1 x86);

#[test]
fn the_same_seed_gives_the_same_kernel() {
    for name in ["gemmini", "trainium"] {
        let draw = || kernel(profile(name), 5, 60).graph;
        assert_eq!(draw(), draw());
        assert!((50..=75).contains(&draw().nodes().len()), "{}", draw().nodes().len());
        assert_ne!(draw(), kernel(profile(name), 6, 60).graph);
    }
}

#[test]
fn shrinking_leaves_what_matters() {
    let graph = kernel(profile("trainium"), 3, 60).graph;
    let products = |g: &Graph| g.nodes().iter().filter(|n| matches!(n.op, Op::Dot(_))).count();
    assert!(products(&graph) > 1);
    let small = shrink::smallest(graph, |g| products(g) >= 1);
    assert_eq!((products(&small), small.nodes().len()), (1, 3), "{}", print_graph(&small));
}
