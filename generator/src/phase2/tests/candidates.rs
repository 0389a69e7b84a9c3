//! The choice among candidates: branch and bound, patience, and refusals in bounded time.

use super::super::{AllocOptions, allocations};
use super::attention::{attention, product_of_products};
use super::description::{Builder, h_qkv, in_hbm, kernel, on_chip};
use super::spills::{all_pairs, few_registers};
use crate::compile::{
    CandidateLimits, EnumerationEnd, NoAllocation, Options, Outcome, Report, compile_best, straight_line,
};
use crate::cost::{CostModel, QueueModel, SumOfCosts};
use crate::phase2::AllocLimits;
use crate::pii::PiiGraph;
use crate::{Backend, CompileError};
use act_hlo::{ElemType, Shape};
use act_isa::{Isa, Phase, Place, Program, Space, TiledKernel, View};
use std::sync::Arc;

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
    // Another order of the best costs the same.
    let rest =
        outcomes(&best.report).into_iter().skip_while(|outcome| *outcome != Outcome::Accepted { cost: 9 });
    assert_eq!(rest.skip(1).collect::<Vec<_>>(), [9, 12, 9].map(|cost| Outcome::Dearer { cost }));
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

    // Counted from the last that was accepted, here number 3.
    let cheaper = [2, 1].into_iter().map(|d| with_detours(&isa, d)).chain(endless());
    let best = compile_best(&isa, &in_hbm(3), cheaper, &options, &Unordered).unwrap();
    let pruned = best.report.candidates.iter().filter(|c| c.outcome == Outcome::Pruned).count();
    assert_eq!((best.report.end, pruned), (EnumerationEnd::Patience, 2 * 3 + 3 - 3));

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

/// Charges least for one program.
struct Prefers(Program);

impl CostModel for Prefers {
    fn lower_bound(&self, _: &Isa, _: &PiiGraph) -> u64 {
        0
    }

    fn cost(&self, _: &Isa, program: &Program) -> u64 {
        if *program == self.0 { 1 } else { 2 }
    }

    fn fingerprint(&self) -> [u8; 32] {
        [2; 32]
    }
}

/// Ways to spill are judged by the cost model one by one, as graphs are.
#[test]
fn the_cheapest_way_to_spill_wins() {
    let (isa, kernel) = (few_registers(3), in_hbm(3));
    let graph = all_pairs(&isa, 3);
    let ways = allocations(&isa, &kernel, &graph, &AllocOptions::default(), &mut 0).unwrap();
    assert!(ways.len() > 1);
    for way in &ways {
        let model = Prefers(straight_line(&way.assembly));
        let graphs = std::iter::once(graph.clone());
        let best = compile_best(&isa, &kernel, graphs, &Options::default(), &model).unwrap();
        assert_eq!((best.cost, &best.assembly), (1, &way.assembly));
        // Other orders of it besides.
        assert!(best.report.candidates.len() >= ways.len(), "{:?}", best.report.candidates);
    }
}

/// One unit loads, one adds with a queue of one: the processor waits with the second of two additions until the first is
/// complete, and with every load behind it.
const QUEUES: &str = "isa t
hbm d0: 64 KiB
buffer v: f32[64 | 16]
units load, add
queue load { issue 1 latency 5 }
queue add { depth 1 issue 1 }
instr load alpha(n: 1..16) beta(addr, row) {
  in  d0[addr :+ 64 * n]
  out v[row :+ n]
  cost 10
  unit load
  computation {
    x = u8[64 * n] parameter(0)
    y = u8[n, 16, 4] reshape(x)
    ROOT z = f32[n, 16] bitcast-convert(y)
  }
}
instr add alpha(n: 1..16) beta(a, b, c) {
  in  v[a :+ n]
  in  v[b :+ n]
  out v[c :+ n]
  cost 4
  unit add
  computation {
    x = f32[n, 16] parameter(0)
    y = f32[n, 16] parameter(1)
    ROOT z = f32[n, 16] add(x, y)
  }
}
";

/// Orders of one graph compete as graphs do (Fig. 18) where the model's costs depend on them.
#[test]
fn a_load_comes_earlier_where_that_is_cheaper() {
    let isa = Isa::parse(QUEUES, "t.taidl").unwrap();
    let hbm = in_hbm(2).ins;
    let kernel = kernel(hbm, vec![on_chip(0, None, false)], vec![None]);
    let mut b = Builder::new(&isa);
    let (x, z) = (b.bytes(0, 0, 64), b.bytes(1, 0, 64));
    let x = b.run("load", &[1], &[x]);
    let mut sum = x;
    for _ in 0..3 {
        sum = b.run("add", &[1], &[sum, sum]);
    }
    let z = b.run("load", &[1], &[z]);
    let sum = b.run("add", &[1], &[sum, z]);
    let graph = b.root(&[sum]);
    let graph = || std::iter::once(graph.clone());
    let best = |model: &dyn CostModel| {
        let best = compile_best(&isa, &kernel, graph(), &Options::default(), model).unwrap();
        let names = best.assembly.instrs.iter().map(|i| isa.instr(i.op).name.clone());
        (names.collect::<Vec<_>>(), best.cost, outcomes(&best.report))
    };
    // Additions end at 20, 25 and 30; the second load is issued at 27 and complete at 42; the last addition ends at 46.
    // One instruction earlier, it is issued at 22 and complete at 37: 41. Right behind the first, it is complete at 26,
    // and the last addition is issued at 31: 35.
    let (names, cost, tried) = best(&QueueModel);
    assert_eq!((names, cost), (["load", "load", "add", "add", "add", "add"].map(str::to_owned).to_vec(), 35));
    let accepted = [46, 41, 35].map(|cost| Outcome::Accepted { cost });
    assert_eq!(tried, accepted);
    // Costs that are added up do not depend on the order: there is nothing to try.
    let (names, cost, tried) = best(&SumOfCosts);
    assert_eq!((names, cost), (["load", "add", "add", "add", "load", "add"].map(str::to_owned).to_vec(), 36));
    assert_eq!(tried.len(), 1);
}

/// Without room for two values beside the sum, the order that fits is the one that was found first.
#[test]
fn an_order_without_room_is_no_candidate() {
    let isa = Isa::parse(&QUEUES.replace("f32[64 | 16]", "f32[2 | 16]").replace("1..16", "1..2"), "t.taidl")
        .unwrap();
    let kernel = kernel(in_hbm(3).ins, vec![on_chip(0, None, false)], vec![None]);
    let mut b = Builder::new(&isa);
    let loads: Vec<_> = (0..3).map(|k| b.bytes(k, 0, 64)).collect();
    let loads: Vec<_> = loads.into_iter().map(|bytes| b.run("load", &[1], &[bytes])).collect();
    let sum = b.run("add", &[1], &[loads[0], loads[1]]);
    let sum = b.run("add", &[1], &[sum, loads[2]]);
    let graph = b.root(&[sum]);
    let best = compile_best(&isa, &kernel, std::iter::once(graph), &Options::default(), &QueueModel).unwrap();
    assert_eq!(best.report.candidates.len(), 1, "{:?}", best.report.candidates);
}

/// Instructions of a machine with register files of rows of eight floats.
fn load(name: &str, cost: u64, file: &str) -> String {
    format!(
        "instr {name} beta(a, b) {{ in d0[a :+ 32] out {file}[b :+ 1] cost {cost} computation {{ \
         x = u8[32] parameter(0) y = u8[8, 4] reshape(x) z = f32[8] bitcast-convert(y) \
         ROOT w = f32[1, 8] reshape(z) }} }}\n"
    )
}

fn store(name: &str, cost: u64, file: &str) -> String {
    format!(
        "instr {name} beta(a, b) {{ in {file}[a :+ 1] out d0[b :+ 32] cost {cost} computation {{ \
         x = f32[1, 8] parameter(0) y = f32[8] reshape(x) z = u8[8, 4] bitcast-convert(y) \
         ROOT w = u8[32] reshape(z) }} }}\n"
    )
}

fn add(name: &str, cost: u64, file: &str) -> String {
    format!(
        "instr {name} beta(a, b, c) {{ in {file}[a :+ 1] in {file}[b :+ 1] out {file}[c :+ 1] cost {cost} \
         computation {{ x = f32[1, 8] parameter(0) y = f32[1, 8] parameter(1) \
         ROOT z = f32[1, 8] add(x, y) }} }}\n"
    )
}

fn machine(files: &[(&str, u64)], instrs: &[String]) -> Isa {
    let buffers = files.iter().map(|(name, rows)| format!("buffer {name}: f32[{rows} | 8]\n"));
    let text = format!("isa t\nhbm d0: 64 KiB\n{}{}", buffers.collect::<String>(), instrs.concat());
    Isa::parse(&text, "t.taidl").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A sum of two rows, compiled for the machine; names of the instructions.
fn sum(isa: &Isa) -> Result<Vec<String>, CompileError> {
    let text =
        "ENTRY kernel { x = f32[1,8] parameter(0) y = f32[1,8] parameter(1) ROOT z = f32[1,8] add(x, y) }";
    let place = |space| Place::Hbm(View::row_major(space, &Shape::new(ElemType::F32, vec![1, 8])));
    let kernel = TiledKernel {
        graph: act_hlo::parse_graph(text).unwrap(),
        ins: (0..2).map(|k| place(Space::Operand(k))).collect(),
        outs: vec![place(Space::Result(0))],
        accumulators: vec![None],
        phase: Phase::Whole,
    };
    let backend = Backend::generate(Arc::new(isa.clone())).unwrap_or_else(|e| panic!("{e}"));
    let code = backend.compile(&kernel, &Options::default(), &SumOfCosts)?;
    Ok(code.assembly.instrs.iter().map(|i| isa.instr(i.op).name.clone()).collect())
}

/// All that is cheap needs two values in a file of one register, in more ways than may fail: after some of them, what does
/// without the file comes first.
#[test]
fn what_failed_in_allocation_is_avoided() {
    let cheap =
        (0..3).flat_map(|k| [load(&format!("load_{k}"), 16, "fast"), add(&format!("add_{k}"), 16, "fast")]);
    let mut instrs: Vec<String> = cheap.chain([store("store_fast", 16, "fast")]).collect();
    instrs.extend([load("load", 17, "slow"), add("add", 17, "slow"), store("store", 17, "slow")]);
    let isa = machine(&[("fast", 1), ("slow", 8)], &instrs);
    let names = sum(&isa).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(names, ["load", "load", "add", "store"]);
}

/// Graphs of the first stage have at most so many nodes that none of them goes the long way through the files; the short
/// way leads through a file of one register.
#[test]
fn where_allocation_fails_larger_graphs_have_their_turn() {
    const FILES: usize = 150;
    let names: Vec<String> = (0..FILES).map(|k| format!("f{k}")).collect();
    let moved = |pair: &[String]| {
        let (from, to) = (&pair[0], &pair[1]);
        format!(
            "instr to_{to} beta(a, b) {{ in {from}[a :+ 1] out {to}[b :+ 1] cost 1 computation {{ \
             x = f32[1, 8] parameter(0) ROOT y = f32[1, 8] copy(x) }} }}\n"
        )
    };
    let last = &names[FILES - 1];
    let mut instrs = vec![load("load_short", 1, "short"), add("add_short", 1, "short")];
    instrs.extend([store("store_short", 1, "short"), load("load", 1, &names[0])]);
    instrs.extend(names.windows(2).map(moved));
    instrs.extend([add("add", 1, last), store("store", 1, last)]);
    for (short, fits) in [(1, false), (2, true)] {
        let mut files: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 2)).collect();
        files.push(("short", short));
        let code = sum(&machine(&files, &instrs)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(code.len(), if fits { 4 } else { 2 * FILES + 2 });
    }
}
