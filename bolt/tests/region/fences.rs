//! Fences and the order of main memory: what execution instruction by instruction cannot see. Every fence of compiled code is
//! taken away and put everywhere else; a chain of stores and loads through a loop is fenced in every way.

use super::fixture::Fixture;
use act_bolt::region::{Permitted, Refutation, RegionReport, RegionVerdict, parse_stitched};
use act_hlo::Shape;
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::text::parse_graph;
use act_isa::targets::load_target;
use act_isa::{Oracle, Space, View};

/// Compiled code with fences.
const FENCED: [&str; 3] = ["attention.trainium", "product.feather", "transposed.h_qkv"];

fn is_fence(line: &str) -> bool {
    line.contains("\"fence\"")
}

/// Whether a statement begins on a line, so that a fence may stand before it.
fn begins_statement(line: &str) -> bool {
    let line = line.trim_start();
    ["llvm.inline_asm", "func.call", "scf.for", "return"].iter().any(|word| line.starts_with(word))
}

/// Whether the verdict is that a load may come before the store that it needs.
fn blames_a_fence(report: &RegionReport) -> bool {
    match &report.verdict {
        RegionVerdict::Refuted(Refutation::Trouble(trouble)) => trouble.what.contains("no fence follows"),
        _ => false,
    }
}

/// Whether the oracle, strict about fences, runs the text.
fn runs(fixture: &Fixture, text: &str) -> bool {
    let program = parse_stitched(&fixture.isa, text).unwrap();
    let mut rng = SplitMix64::new(5);
    let operands: Vec<Vec<u8>> = fixture
        .operands
        .iter()
        .zip(&program.operands)
        .map(|(view, &bytes)| {
            let shape = Shape::new(view.elem, [bytes / view.elem.bytes()]);
            random_literal(&mut rng, &shape, Values::Small).bytes().to_vec()
        })
        .collect();
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    let mut results = vec![Vec::new(); program.results.len()];
    Oracle::new(&fixture.isa).strict().run(&program, &operands, &mut results).is_ok()
}

#[test]
fn a_fence_that_is_gone_or_elsewhere_is_missed() {
    let (mut missed, mut idle) = (0, 0);
    for name in FENCED {
        let fixture = Fixture::load(name);
        let lines: Vec<&str> = fixture.text.lines().collect();
        let fences: Vec<usize> = (0..lines.len()).filter(|&at| is_fence(lines[at])).collect();
        assert!(!fences.is_empty(), "{name}");
        for &fence in &fences {
            let mut without = lines.clone();
            let taken = without.remove(fence);
            let places = (0..without.len()).filter(|&at| begins_statement(without[at])).map(Some);
            for place in places.chain([None]) {
                let mut moved = without.clone();
                if let Some(at) = place {
                    moved.insert(at, taken);
                }
                let text = moved.join("\n");
                let report = fixture.judge(&text, Permitted::Xla);
                if runs(&fixture, &text) {
                    assert!(report.verdict.is_proved(), "{name}, {fence} to {place:?}: {report}");
                    idle += 1;
                } else {
                    assert!(blames_a_fence(&report), "{name}, {fence} to {place:?}: {report}");
                    missed += 1;
                }
            }
        }
    }
    assert!(missed > 40 && idle > 3, "{missed} places where it is missed, {idle} where it does");
}

/// 16 rows that go from place to place in main memory, four times; what stands before the load, between load and store,
/// behind the store, and behind the loop.
fn chain(fences: [bool; 4], parallel: bool) -> Fixture {
    let [head, middle, tail, behind] = fences.map(|here| {
        if here { "llvm.inline_asm has_side_effects \"fence\", \"~{memory}\" : () -> ()\n" } else { "" }
    });
    let parallel = if parallel { " {act.parallel}" } else { "" };
    let copy = "{act.elem_bytes = 2 : i64, act.lengths = array<i64: 1024>, act.from_strides = array<i64: 2>, \
                act.to_strides = array<i64: 2>} : (i64, i64) -> ()";
    let text = format!(
        "module attributes {{act.target = \"h_qkv\"}} {{
func.func private @act_host_copy(i64, i64)
func.func @kernel(%operand0: !llvm.ptr, %result0: !llvm.ptr, %scratch: !llvm.ptr, %consts: !llvm.ptr, \
         %machine: !llvm.ptr) attributes {{act.operand_bytes = array<i64: 2048>, act.result_bytes = array<i64: 2048>, \
         act.scratch_bytes = 10240 : i64, act.consts = dense<> : tensor<0xi8>}} {{
%zero = arith.constant 0 : i64
%one = arith.constant 1 : i64
%four = arith.constant 4 : i64
%step = arith.constant 2048 : i64
%last = arith.constant 8192 : i64
%from = llvm.ptrtoint %operand0 : !llvm.ptr to i64
%to = llvm.ptrtoint %result0 : !llvm.ptr to i64
%base = llvm.ptrtoint %scratch : !llvm.ptr to i64
func.call @act_host_copy(%from, %base) {copy}
scf.for %i = %zero to %four step %one : i64 {{
%0 = arith.muli %i, %step : i64
%1 = arith.addi %base, %0 : i64
%2 = arith.addi %1, %step : i64
{head}llvm.inline_asm has_side_effects \"load_rm n=16 addr_in=$0 addr_out=$1\", \"r,r,~{{memory}}\" %1, %zero : (i64, i64) -> ()
{middle}llvm.inline_asm has_side_effects \"store_rm n=16 addr_in=$0 addr_out=$1\", \"r,r,~{{memory}}\" %zero, %2 : (i64, i64) -> ()
{tail}}}{parallel}
{behind}%3 = arith.addi %base, %last : i64
func.call @act_host_copy(%3, %to) {copy}
return
}}
}}
"
    );
    let graph = parse_graph(
        "HloModule m\nENTRY main {\n  x = bf16[16,64] parameter(0)\n  ROOT y = bf16[16,64] copy(x)\n}\n",
    );
    let graph = graph.unwrap();
    let view = |space| View::row_major(space, graph.shape(graph.params()[0]));
    let (operands, results) = (vec![view(Space::Operand(0))], vec![view(Space::Result(0))]);
    Fixture { name: "chain", isa: load_target("h_qkv").unwrap(), graph, operands, results, text }
}

#[test]
fn a_store_of_one_iteration_is_fenced_before_the_load_of_the_next() {
    for number in 0..16u32 {
        let fences = [0, 1, 2, 3].map(|k| number >> k & 1 == 1);
        let [head, _, tail, behind] = fences;
        // The load needs a fence behind the last iteration's store, the host's copy one behind all of them. A fence
        // between load and store comes too late for the one and too early for the other.
        let ordered = tail || (head && behind);
        let fixture = chain(fences, false);
        assert_eq!(runs(&fixture, &fixture.text), ordered, "{fences:?}: the strict oracle");
        let report = fixture.judge(&fixture.text, Permitted::Exact);
        if ordered {
            assert_eq!(report.verdict, RegionVerdict::Proved, "{fences:?}: {report}");
        } else {
            assert!(blames_a_fence(&report), "{fences:?}: {report}");
        }
        // Iterations that need each other are not parallel, fenced or not.
        let parallel = chain(fences, true);
        let report = parallel.judge(&parallel.text, Permitted::Exact);
        assert!(matches!(report.verdict, RegionVerdict::Refuted(_)), "{fences:?}: {report}");
        // Where main memory is ordered no fence is needed.
        let mut kept = chain(fences, false);
        kept.isa.hbm.ordered = true;
        assert_eq!(kept.judge(&kept.text, Permitted::Exact).verdict, RegionVerdict::Proved, "{fences:?}");
    }
}
