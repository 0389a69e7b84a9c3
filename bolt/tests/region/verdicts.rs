//! What is said of right code, of code for another kernel, and of text that lies about itself.

use super::fixture::Fixture;
use act_bolt::region::{Law, Permitted, Refutation, RegionOptions, RegionVerdict, verify_region};
use act_hlo::print_graph;
use act_hlo::text::parse_graph;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Small and quick.
pub(crate) const SMALL: [&str; 6] = [
    "product.gemmini",
    "convolution.gemmini",
    "requantized.gemmini",
    "relu.trainium",
    "reduced.trainium",
    "product.feather",
];

/// All of them.
pub(crate) const ALL: [&str; 17] = [
    "product.gemmini",
    "convolution.gemmini",
    "requantized.gemmini",
    "relu.trainium",
    "reduced.trainium",
    "product.feather",
    "relu.x86",
    "batched.x86",
    "attention.h_qkv",
    "attention.trainium",
    "relu.gemmini",
    "transposed.h_qkv",
    "relu.amx",
    "clamped.gemmini",
    "ragged.trainium",
    "convolution.trainium",
    "ragged.x86",
];

/// A product of bytes that the target computes in wider integers, on buffers too large for the interpreter.
const NARROW: &str = "narrow.tpu_v1";

#[test]
fn compiled_code_is_proved() {
    for name in ALL.into_iter().chain([NARROW]) {
        let fixture = Fixture::load(name);
        let report = fixture.judge(&fixture.text, Permitted::Xla);
        assert!(report.verdict.is_proved(), "{name}: {report}");
        assert!(report.elements > 0 && report.instructions > 0, "{name}: {report}");
    }
}

/// Where sums were re-associated, the policy `exact` does not let it pass.
#[test]
fn a_verdict_says_whether_sums_were_taken_in_another_order() {
    let fixture = Fixture::load("relu.x86");
    let report = fixture.judge(&fixture.text, Permitted::Xla);
    assert_eq!(report.verdict, RegionVerdict::ProvedUpToReassociation, "{report}");
    let exact = fixture.judge(&fixture.text, Permitted::Exact);
    assert!(!exact.verdict.is_proved(), "{exact}");
    let integers = Fixture::load("product.gemmini");
    assert_eq!(integers.judge(&integers.text, Permitted::Exact).verdict, RegionVerdict::Proved);
}

/// Bytes that pass through an accumulator and a scale of 1 are the bytes they were, whatever the policy.
#[test]
fn short_integers_that_become_floats_on_the_way_are_what_they_were() {
    let fixture = Fixture::load("relu.gemmini");
    let report = fixture.judge(&fixture.text, Permitted::Exact);
    assert_eq!(report.verdict, RegionVerdict::Proved, "{report}");
    assert!(report.laws.contains(&Law::WholeFloat), "{report}");
    let scaled =
        fixture.text.replace("17, 1.0, relu", "17, 1.5, relu").replace("0, 1.0, relu", "0, 1.5, relu");
    assert_ne!(scaled, fixture.text);
    let report = fixture.judge(&scaled, Permitted::Xla);
    assert!(matches!(report.verdict, RegionVerdict::Refuted(Refutation::Difference(_))), "{report}");
}

/// A sum that is bounded and made narrow is the same through the accumulator's float; other bounds are not.
#[test]
fn sums_that_are_bounded_as_floats_are_those_that_are_bounded_as_integers() {
    let mut fixture = Fixture::load("clamped.gemmini");
    let report = fixture.judge(&fixture.text, Permitted::Exact);
    assert_eq!(report.verdict, RegionVerdict::Proved, "{report}");
    assert!(report.laws.contains(&Law::BoundedFloat), "{report}");
    let text = print_graph(&fixture.graph);
    for (from, to) in [("constant(127)", "constant(126)"), ("constant(127)", "constant(200)")] {
        assert!(text.contains(from), "{text}");
        fixture.graph = parse_graph(&text.replace(from, to)).unwrap();
        let report = fixture.judge(&fixture.text, Permitted::Xla);
        assert!(
            matches!(report.verdict, RegionVerdict::Refuted(Refutation::Difference(_))),
            "{to}: {report}"
        );
    }
}

#[test]
fn without_a_solver_nothing_is_proved() {
    let fixture = Fixture::load("product.gemmini");
    let options = RegionOptions::default();
    let report = verify_region(&fixture.isa, &fixture.spec(Permitted::Xla), &fixture.text, &options);
    let RegionVerdict::Unknown { reason } = &report.verdict else { panic!("{report}") };
    assert!(reason.contains("pip install act-pjrt[verify]"), "{reason}");
}

/// However long the code would run: its loops may count to any number.
#[test]
fn a_check_ends_when_its_time_is_over_or_when_it_is_told_to() {
    let fixture = Fixture::load("product.gemmini");
    let judged = |text: &str, options: RegionOptions<'_>| match verify_region(
        &fixture.isa,
        &fixture.spec(Permitted::Xla),
        text,
        &options,
    )
    .verdict
    {
        RegionVerdict::Unknown { reason } => reason,
        other => panic!("{other:?}"),
    };
    let time = |time: Duration| RegionOptions { time: Some(time), ..RegionOptions::default() };
    let reason = judged(&fixture.text, time(Duration::ZERO));
    assert!(reason.contains("time limit"), "{reason}");
    // Every iteration does the same, so that no fault ends the loop.
    let load = fixture.text.lines().find(|line| line.contains("llvm.inline_asm")).unwrap();
    let endless = format!(
        "    %many = arith.constant 1000000000000 : i64\n    scf.for %i99 = %zero to %many step %one : i64 {{\n{load}\n    }}"
    );
    let longer = fixture.text.replacen(load, &endless, 1);
    let reason = judged(&longer, time(Duration::from_millis(200)));
    assert!(reason.contains("time limit"), "{reason}");
    let stopped = AtomicBool::new(true);
    let reason = judged(&fixture.text, RegionOptions { stopped: Some(&stopped), ..RegionOptions::default() });
    assert!(reason.contains("interrupted"), "{reason}");
}

#[test]
fn code_for_another_kernel_is_refuted_with_indices_and_values() {
    let mut fixture = Fixture::load("requantized.gemmini");
    let other = print_graph(&fixture.graph).replace("constant(127.0)", "constant(120.0)");
    assert_ne!(other, print_graph(&fixture.graph));
    fixture.graph = parse_graph(&other).unwrap();
    let report = fixture.judge(&fixture.text, Permitted::Xla);
    let RegionVerdict::Refuted(Refutation::Difference(difference)) = &report.verdict else {
        panic!("{report}")
    };
    assert_eq!((difference.expected.as_str(), difference.got.as_str()), ("120", "127"));
    assert_eq!(difference.index.len(), 2);
    assert!(difference.operands.contains("seed"), "{}", difference.operands);
}

/// The text takes no part in its own judgement: names, comments and the target's name may say anything, and a loop that
/// is called parallel has to be.
#[test]
fn no_hint_in_the_text_is_believed() {
    for name in SMALL {
        let fixture = Fixture::load(name);
        let target = format!("act.target = \"{}\"", fixture.isa.name);
        assert!(fixture.text.contains(&target), "{name}");
        let renamed =
            fixture.text.replace(&target, "act.target = \"another\"").replace("{memory}", "{nothing}");
        assert!(fixture.judge(&renamed, Permitted::Xla).verdict.is_proved(), "{name}: they say nothing");
        // A result is its operand's bytes, says the text.
        let lie = fixture.text.replace("act.result_bytes = array<i64: ", "act.result_bytes = array<i64: 1");
        assert!(!fixture.judge(&lie, Permitted::Xla).verdict.is_proved(), "{name}: a lie about sizes");
    }
    let fixture = Fixture::load("product.gemmini");
    let lines: Vec<&str> = fixture.text.lines().collect();
    let ends = (0..lines.len()).filter(|&at| lines[at].trim() == "}" && lines[at].starts_with("      "));
    let mut wrong = 0;
    for at in ends {
        let mut text = lines.clone();
        let marked = format!("{} {{act.parallel}}", lines[at]);
        text[at] = &marked;
        let report = fixture.judge(&text.join("\n"), Permitted::Xla);
        if let RegionVerdict::Refuted(Refutation::Trouble(trouble)) = &report.verdict {
            assert!(!trouble.sequential && trouble.what.contains("parallel"), "{trouble}");
            wrong += 1;
        }
    }
    assert!(wrong > 0, "a sum over iterations is not independent");
}
