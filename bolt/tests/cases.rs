//! The case studies: every one is proved, every seeded fault is refuted by a run, and no relation can be left out.

mod common;

use act_bolt::case::{prepare, verify};
use act_bolt::discharge::Answer;
use act_bolt::{Judgement, Options};
use common::{Edit, judge, load, solver};
use std::time::Duration;

const CASES: &[&str] = &[
    "pooling_max.hex",
    "pooling_mean.hex",
    "pooling_any.hex",
    "c2d.hex",
    "c2d_plus.hex",
    "c2d_any.hex",
    "linear_256.hex",
    "linear_any.hex",
];

/// Convolutions with a stride; aligned by hand.
const STRIDED: &[&str] = &["c2d_strided.hex", "c2d_plus_strided.hex"];

/// Sizes for tests that judge a case many times.
const SMALL_CONVOLUTION: &[(&str, i64)] = &[("F", 2), ("R", 5), ("C", 6)];
const SMALL_LINEAR: &[(&str, i64)] = &[("PE", 2), ("NI", 2), ("NO", 2), ("T", 3)];

fn small(case: &str) -> &'static [(&'static str, i64)] {
    match case {
        "c2d.hex" | "c2d_plus.hex" => SMALL_CONVOLUTION,
        "linear_256.hex" => SMALL_LINEAR,
        _ => &[],
    }
}

#[test]
fn every_case_is_proved() {
    let solver = solver();
    for case in CASES.iter().chain(STRIDED) {
        let report = judge(case, &[], &[], Some(&solver));
        assert_eq!(report.judgement, Judgement::Proved, "{report}");
        assert!(report.proofs.iter().all(|proof| proof.answer == Answer::Holds), "{report}");
        assert!(!report.rests_on.is_empty(), "{report}");
    }
}

#[test]
fn sizes_do_not_matter() {
    let solver = solver();
    for settings in
        [&[("T", 4), ("NV", 2)][..], &[("T", 64), ("NV", 16)], &[("T", 256), ("NV", 64), ("BASE", 16)]]
    {
        let report = judge("pooling_max.hex", &[], settings, Some(&solver));
        assert_eq!(report.judgement, Judgement::Proved, "{settings:?}: {report}");
    }
    // Ragged bursts of columns, a larger kernel; and the activation unit with a third instruction.
    for (case, settings) in [
        ("c2d.hex", &[("F", 3), ("R", 6), ("C", 11), ("K", 5)][..]),
        ("linear_256.hex", &[("PE", 2), ("NI", 2), ("NO", 2), ("T", 18), ("RELU_ON", 1)]),
        // With strides: another one, and a larger kernel.
        ("c2d_strided.hex", &[("R", 8), ("C", 12), ("S", 3)]),
        ("c2d_plus_strided.hex", &[("F", 4), ("R", 11), ("C", 13), ("K", 5)]),
    ] {
        let report = judge(case, &[], settings, Some(&solver));
        assert_eq!(report.judgement, Judgement::Proved, "{case} {settings:?}: {report}");
    }
}

/// A fault with the values of parameters that show it.
type Fault<'a> = (&'a str, &'a str, Edit<'a>, &'a [(&'a str, i64)]);

const FAULTS: &[Fault<'_>] = &[
    (
        "vectors 8 banks apart in the driver's stores",
        "pooling_max.hex",
        ("pooling.hex", "GB[G(BASE, ts, NV, v) + l] := X", "GB[G(BASE, ts, NV, v) - v * 8 * L + l] := X"),
        &[],
    ),
    (
        "timestep and vector swapped",
        "pooling_max.hex",
        ("pooling.hex", "GB[G(BASE, ts, NV, v) + l] := X", "GB[G(BASE, v, NV, ts) + l] := X"),
        &[],
    ),
    (
        "the base is not given to the hardware",
        "pooling_max.hex",
        ("pooling.hex", "memory_manager(0, BASE, NV)", "memory_manager(0, 0, NV)"),
        &[("BASE", 16)],
    ),
    (
        "two timesteps too few",
        "pooling_max.hex",
        ("pooling.hex", "layer_reduce_config(MODE, 0, NV, T)", "layer_reduce_config(MODE, 0, NV, T - 2)"),
        &[],
    ),
    (
        "mean instead of maximum",
        "pooling_max.hex",
        ("pooling.hex", "layer_reduce_config(MODE, 0, NV, T)", "layer_reduce_config(1, 0, NV, T)"),
        &[],
    ),
    (
        "maximum instead of mean",
        "pooling_mean.hex",
        ("pooling.hex", "layer_reduce_config(MODE, 0, NV, T)", "layer_reduce_config(0, 0, NV, T)"),
        &[],
    ),
    (
        "the output's timestep is not halved",
        "pooling_max.hex",
        (
            "flexasr.hex",
            "bo := G(mm_base[lr_memory], ct / 2, mm_num_vector[lr_memory], 0)",
            "bo := G(mm_base[lr_memory], ct, mm_num_vector[lr_memory], 0)",
        ),
        &[],
    ),
    (
        "one vector too few",
        "pooling_max.hex",
        ("pooling.hex", "layer_reduce_config(MODE, 0, NV, T)", "layer_reduce_config(MODE, 0, NV - 1, T)"),
        &[],
    ),
    (
        "the row pitch of the activations is C - 1",
        "c2d.hex",
        (
            "convolution.hex",
            "VM[ActAddr(0, R, C, cb, r, c) + l] := A",
            "VM[ActAddr(0, R, C - 1, cb, r, c) + l] := A",
        ),
        SMALL_CONVOLUTION,
    ),
    (
        "rows and columns of the kernel swapped",
        "c2d.hex",
        ("convolution.hex", "f, cb, kr, kc) + l] := W", "f, cb, kc, kr) + l] := W"),
        SMALL_CONVOLUTION,
    ),
    (
        "the column after the output's is read",
        "c2d.hex",
        ("convolution.hex", "j + (K - 1) / 2), (F", "j + (K - 1) / 2 + 1), (F"),
        SMALL_CONVOLUTION,
    ),
    (
        "no bias",
        "c2d.hex",
        ("convolution.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, 0, RELU_ON, ACCUM)"),
        SMALL_CONVOLUTION,
    ),
    (
        "no activation",
        "c2d.hex",
        ("convolution.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, BIAS_ON, 0, ACCUM)"),
        SMALL_CONVOLUTION,
    ),
    (
        "accumulation without a tensor to add to",
        "c2d.hex",
        ("convolution.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, BIAS_ON, RELU_ON, 1)"),
        SMALL_CONVOLUTION,
    ),
    (
        "no accumulation",
        "c2d_plus.hex",
        ("convolution.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, BIAS_ON, RELU_ON, 0)"),
        SMALL_CONVOLUTION,
    ),
    (
        "a kernel of one column less",
        "c2d.hex",
        ("convolution.hex", "CB * V, K, K, 1", "CB * V, K - 1, K, 1"),
        SMALL_CONVOLUTION,
    ),
    (
        "one vector of weights is not loaded",
        "c2d.hex",
        ("convolution.hex", "load_weights(F * CB * K * K)", "load_weights(F * CB * K * K - 1)"),
        SMALL_CONVOLUTION,
    ),
    (
        "timesteps one after the other instead of in banks",
        "linear_256.hex",
        ("linear.hex", "GB[G(0, t, NI, v) + l] := X", "GB[(t * NI + v) * L + l] := X"),
        SMALL_LINEAR,
    ),
    (
        "tiles column by column",
        "linear_256.hex",
        ("linear.hex", "((o * NI + i) * L + r) * L + c] := W", "((i * NO + o) * L + r) * L + c] := W"),
        SMALL_LINEAR,
    ),
    (
        "the biases one vector too far",
        "linear_256.hex",
        ("linear.hex", "IB[p, (NI + o) * L + l] := B", "IB[p, (NI + o + 1) * L + l] := B"),
        SMALL_LINEAR,
    ),
    (
        "no bias in the linear layer",
        "linear_256.hex",
        ("linear.hex", "pe_sizing(p, 1, 1, NO)", "pe_sizing(p, 0, 1, NO)"),
        SMALL_LINEAR,
    ),
    (
        "the accumulator is not reset",
        "linear_256.hex",
        ("flexasr_linear.hex", "parfor l in 0..L { ACC[p, l] := Zero32() }", ""),
        SMALL_LINEAR,
    ),
    (
        "one input vector too few",
        "linear_256.hex",
        ("linear.hex", "ADP_I, NI, 0, NI, 0)", "ADP_I, NI - 1, 0, NI, 0)"),
        SMALL_LINEAR,
    ),
    (
        "outputs over inputs of later timesteps",
        "linear_256.hex",
        ("linear.hex", "param OUT_BASE = (T / 16 + 2) * 16 * NI", "param OUT_BASE = 1"),
        SMALL_LINEAR,
    ),
    (
        "outputs of all elements one vector apart",
        "linear_256.hex",
        ("linear.hex", "NO, p * NO)", "NO, p)"),
        SMALL_LINEAR,
    ),
    (
        "the weights one tile too far",
        "linear_256.hex",
        ("linear.hex", "ADP_I, NI, 0, NI, 0)", "ADP_I, NI, 16, NI, 0)"),
        SMALL_LINEAR,
    ),
    (
        "two elements write their outputs to one place",
        "linear_256.hex",
        ("linear.hex", "NO, p * NO)", "NO, p / 2 * NO)"),
        SMALL_LINEAR,
    ),
    (
        "the copy of the weights runs over the scratchpad's end",
        "c2d.hex",
        ("convolution.hex", "load_weights(F * CB * K * K)", "load_weights(SP0 / V + 1)"),
        SMALL_CONVOLUTION,
    ),
    (
        "the exponent bias of the outputs is one less",
        "linear_256.hex",
        ("linear.hex", "act_manager(p, ADP_O,", "act_manager(p, ADP_O - 1,"),
        SMALL_LINEAR,
    ),
    (
        "the exponent biases of weights and biases swapped",
        "linear_256.hex",
        ("linear.hex", "pe_manager(p, ADP_W, ADP_B", "pe_manager(p, ADP_B, ADP_W"),
        SMALL_LINEAR,
    ),
    (
        "the activation unit sends before it receives",
        "linear_256.hex",
        ("linear.hex", "act_instruction(p, 0, 0x30)", "act_instruction(p, 0, 0x40)"),
        SMALL_LINEAR,
    ),
];

const STRIDED_FAULTS: &[Fault<'_>] = &[
    (
        "a strided convolution whose activations are packed with a row pitch of C - 1",
        "c2d_strided.hex",
        (
            "convolution_strided.hex",
            "VM[ActAddr(0, R, C, cb, r, c) + l] := A",
            "VM[ActAddr(0, R, C - 1, cb, r, c) + l] := A",
        ),
        &[],
    ),
    (
        "rows and columns of a strided kernel swapped",
        "c2d_strided.hex",
        ("convolution_strided.hex", "f, cb, kr, kc) + l] := W", "f, cb, kc, kr) + l] := W"),
        &[],
    ),
    (
        "the column after a strided output's is read",
        "c2d_strided.hex",
        ("convolution_strided.hex", "S * j + (K - 1) / 2), (F", "S * j + (K - 1) / 2 + 1), (F"),
        &[],
    ),
    (
        "outputs of a strided convolution read as if the stride were 1",
        "c2d_strided.hex",
        ("convolution_strided.hex", "S * i + (K - 1) / 2, S * j", "i + (K - 1) / 2, S * j"),
        &[],
    ),
    (
        "a stride of 3 for the columns",
        "c2d_strided.hex",
        ("convolution_strided.hex", "K, K, S, S, F", "K, K, 3, S, F"),
        &[],
    ),
    (
        "a stride of 3 for the rows",
        "c2d_plus_strided.hex",
        ("convolution_strided.hex", "K, K, S, S, F", "K, K, S, 3, F"),
        &[],
    ),
    (
        "no bias in a strided convolution",
        "c2d_strided.hex",
        ("convolution_strided.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, 0, RELU_ON, ACCUM)"),
        &[],
    ),
    (
        "strided accumulation without a tensor to add to",
        "c2d_strided.hex",
        ("convolution_strided.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, BIAS_ON, RELU_ON, 1)"),
        &[],
    ),
    (
        "no accumulation in a strided convolution",
        "c2d_plus_strided.hex",
        ("convolution_strided.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, BIAS_ON, RELU_ON, 0)"),
        &[],
    ),
    (
        "a strided kernel of one column less",
        "c2d_strided.hex",
        ("convolution_strided.hex", "CB * V, K, K, S, S", "CB * V, K - 1, K, S, S"),
        &[],
    ),
    (
        "one vector of a strided convolution's weights is not loaded",
        "c2d_plus_strided.hex",
        ("convolution_strided.hex", "load_weights(F * CB * K * K)", "load_weights(F * CB * K * K - 1)"),
        &[],
    ),
];

#[test]
fn every_seeded_fault_is_refuted_by_a_run() {
    refute(FAULTS, Options::default().limit);
}

#[test]
fn every_seeded_fault_of_a_strided_convolution_is_refuted_by_a_run() {
    // The conditions that hold do so within a second; those that do not are not to be waited for.
    refute(STRIDED_FAULTS, Duration::from_secs(2));
}

fn refute(faults: &[Fault<'_>], limit: Duration) {
    let solver = solver();
    for (what, case, edit, settings) in faults {
        // The same parameters prove without the fault: it is the fault that is found.
        if !settings.is_empty() {
            let report = judge(case, &[], settings, Some(&solver));
            assert_eq!(report.judgement, Judgement::Proved, "{what}: {report}");
        }
        let (text, source) = load(case, &[*edit]);
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let options = Options { settings, limit, ..Options::default() };
        let report = verify(&text, &source, Some(&solver), &options).unwrap();
        let Judgement::Refuted(example) = &report.judgement else { panic!("{what}: {report}") };
        assert!(!example.lines.is_empty(), "{what}: {report}");
        assert!(
            report.proofs.iter().any(|proof| proof.answer != Answer::Holds),
            "a proof of {what}: {report}"
        );
    }
}

#[test]
fn hardware_that_never_stops_fails_its_exit_obligation() {
    let solver = solver();
    let report = judge("pooling_max.hex", &[], &[("T", 1)], Some(&solver));
    let Judgement::Refuted(example) = &report.judgement else { panic!("{report}") };
    assert!(example.what.contains("never stops"), "{report}");
    assert!(example.lines[0].contains("until ct >"), "the outer loop is to blame: {report}");
    let exit = report.proofs.iter().find(|proof| proof.name.contains("@H1: the hardware leaves the loop"));
    assert!(exit.is_some_and(|proof| proof.answer != Answer::Holds), "{report}");
}

#[test]
fn no_relation_and_no_register_claim_can_be_left_out() {
    let solver = solver();
    for name in CASES.iter().chain(STRIDED) {
        let (case, source) = load(name, &[]);
        let settings: Vec<(String, i64)> =
            small(name).iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let mut options = Options { settings, ..Options::default() };
        if STRIDED.contains(name) {
            options.limit = Duration::from_secs(2);
        }
        // What is left out changes nothing about the alignment.
        let prepared = prepare(&case, &source, &options).unwrap();
        for dropped in 0..prepared.case.relations.len() {
            let mut less = prepared.clone();
            less.case.relations.remove(dropped);
            let report = less.judge(&source, Some(&solver), &options);
            assert!(
                matches!(report.judgement, Judgement::Unknown { .. }),
                "{name} without relation {dropped}: {report}"
            );
        }
        if !case.infer {
            continue;
        }
        // Those that are inferred, one after the other.
        let all = prepared.judge(&source, Some(&solver), &options);
        assert_eq!(all.judgement, Judgement::Proved, "{all}");
        for dropped in &all.inferred {
            let options = Options { leave_out: Some(dropped.clone()), ..options.clone() };
            let report = prepared.judge(&source, Some(&solver), &options);
            assert!(
                matches!(report.judgement, Judgement::Unknown { .. }),
                "{name} without {dropped}: {report}"
            );
        }
    }
    for (case, file, claim) in [
        ("pooling_max.hex", "flexasr.hex", " whereby ct == 2 * t"),
        ("pooling_max.hex", "flexasr.hex", " whereby cv == v"),
        ("linear_256.hex", "flexasr_linear.hex", " whereby cntr_timestep == ts"),
        ("linear_256.hex", "flexasr_linear.hex", " whereby cntr_vector == v"),
        ("linear_256.hex", "flexasr_linear.hex", " whereby input_cntr[p] == i"),
        ("linear_256.hex", "flexasr_linear.hex", ", act_output[p] == o"),
        ("c2d.hex", "hlscnn.hex", " whereby kr_idx == Tap(r, kr, stride)"),
    ] {
        let report = judge(case, &[(file, claim, "")], small(case), Some(&solver));
        assert!(matches!(report.judgement, Judgement::Unknown { .. }), "without{claim}: {report}");
    }
}

#[test]
fn every_condition_can_be_replayed_from_its_script() {
    let solver = solver();
    let limit = Duration::from_secs(60);
    for (name, least) in [
        ("pooling_mean.hex", 10),
        ("pooling_any.hex", 10),
        ("c2d.hex", 20),
        ("c2d_plus.hex", 20),
        ("c2d_any.hex", 20),
        ("c2d_strided.hex", 20),
        ("linear_256.hex", 30),
    ] {
        let report = judge(name, &[], small(name), Some(&solver));
        assert!(report.proofs.len() >= least, "{report}");
        for proof in &report.proofs {
            // A proof needs its assumptions to be possible, which its own script says too.
            let answer = solver.check(&proof.script, limit).unwrap();
            assert_eq!(answer, act_bolt::Verdict::Unsatisfiable, "{name}: {}", proof.name);
            assert!(
                proof.script.starts_with(&format!("; {}: {}", report.name, proof.name)),
                "{}",
                proof.script
            );
        }
    }
}

#[test]
fn a_condition_that_takes_too_long_proves_nothing() {
    let solver = solver();
    let (case, source) = load("linear_256.hex", &[]);
    let settings = SMALL_LINEAR.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let options = Options { settings, limit: Duration::from_millis(1), ..Options::default() };
    let report = verify(&case, &source, Some(&solver), &options).unwrap();
    let Judgement::Unknown { reason } = &report.judgement else { panic!("{report}") };
    assert!(reason.contains("did not decide"), "{reason}");
    let undecided = |proof: &act_bolt::discharge::Proof| matches!(&proof.answer, Answer::Undecided { reason } if reason.contains("timeout") || reason.contains("canceled"));
    assert!(report.proofs.iter().any(undecided), "{report}");
}

#[test]
fn a_contradiction_among_the_assumptions_proves_nothing() {
    // With a claim that no state meets everything behind the loop's head would follow.
    let edit = ("flexasr.hex", "whereby ct == 2 * t {", "whereby ct == 2 * t, ct == 2 * t + 1 {");
    let report = judge("pooling_max.hex", &[edit], &[], Some(&solver()));
    assert!(matches!(report.judgement, Judgement::Unknown { .. }), "{report}");
    assert!(report.proofs.iter().any(|proof| proof.answer == Answer::Vacuous), "{report}");
}

#[test]
fn a_function_that_is_called_commutative_and_is_not_proves_nothing() {
    let edit = ("flexasr.hex", "if Rank(a) < Rank(b) then b else a reads", "b reads");
    let report = judge("pooling_max.hex", &[edit], &[], Some(&solver()));
    let Judgement::Unknown { reason } = &report.judgement else { panic!("{report}") };
    assert!(reason.contains("called commutative") && reason.contains("Max8"), "{reason}");
}

#[test]
fn a_case_that_is_cut_off_or_garbled_is_an_error_with_its_line() {
    let folder = common::folder();
    let whole = std::fs::read_to_string(folder.join("flexasr.hex")).unwrap()
        + &std::fs::read_to_string(folder.join("pooling.hex"))
            .unwrap()
            .replace("include \"flexasr.hex\"", "");
    let head = "case broken param MODE = 0 param T = 4 param NV = 2 param BASE = 0\n";
    let options = Options { fuel: 100_000, ..Options::default() };
    let mut errors = 0;
    for at in (0..whole.len()).step_by(97) {
        let text = head.to_owned() + &whole[..at];
        // Between two items a shorter text is a case as well, though one that asks for nothing.
        match act_bolt::load_text("broken.hex", &text, &folder) {
            Err(error) => {
                errors += 1;
                assert!(error.to_string().contains("broken.hex:"), "{error}");
            }
            Ok((case, source)) => {
                let judgement = verify(&case, &source, None, &options).map(|report| report.judgement);
                assert!(!matches!(judgement, Ok(Judgement::Proved)), "{text}");
            }
        }
        // One character that stands for another.
        let mut garbled: Vec<char> = (head.to_owned() + &whole).chars().collect();
        garbled[at] = ['(', '9', 'x', '}', '\u{e9}'][at % 5];
        let garbled: String = garbled.into_iter().collect();
        if let Err(error) = act_bolt::load_text("broken.hex", &garbled, &folder) {
            assert!(error.to_string().contains("broken.hex:"), "{error}");
        }
    }
    assert!(errors > 20, "{errors}");
}

#[test]
fn a_wrong_alignment_proves_nothing() {
    let solver = solver();
    // Hardware and aligned program both leave out the bias; the tensor program adds it.
    let edits = [
        ("convolution.hex", "F, BIAS_ON, RELU_ON, ACCUM)", "F, 0, RELU_ON, ACCUM)"),
        ("convolution_aligned.hex", "if BIAS_ON == 1 { y := AddBias(y, B[0]) }", ""),
    ];
    let report = judge("c2d_any.hex", &edits, &[], Some(&solver));
    let Judgement::Unknown { reason } = &report.judgement else { panic!("{report}") };
    assert!(reason.contains("ideal arithmetic"), "{reason}");
}

#[test]
fn tensor_programs_are_aligned_by_the_search() {
    for (case, loops, last) in [
        ("pooling_max.hex", 3, "Max8("),
        ("pooling_mean.hex", 3, "Mean8("),
        ("pooling_any.hex", 3, "Max8("),
        ("c2d.hex", 8, "Psum2Act("),
        ("c2d_plus.hex", 8, "Psum2Act("),
        ("linear_256.hex", 10, "Fix2Adp("),
        ("linear_any.hex", 10, "Fix2Adp("),
    ] {
        let report = judge(case, &[], &[], None);
        assert_eq!(report.aligned, Some((loops, loops)), "{case}: {report}");
        assert!(report.steps.iter().any(|step| step.starts_with(last)), "{case}: {report}");
    }
    // An activation is an eleventh loop.
    let report = judge("linear_256.hex", &[], &[("RELU_ON", 1)], None);
    assert_eq!(report.aligned, Some((11, 11)), "{report}");
}

#[test]
fn loops_that_nothing_is_brought_to_stay_as_they_are() {
    // Without a function that stands for what the program computes there is no alignment of values, and nothing is proved.
    let edit = ("flexasr.hex", "reads max(a, b)", "reads min(a, b)");
    let report = judge("pooling_max.hex", &[edit], &[], Some(&solver()));
    assert_eq!(report.steps.len(), 1, "{report}");
    assert!(!matches!(report.judgement, Judgement::Proved), "{report}");
    // A loop of the hardware that takes another share of the outputs has no partner; the others have.
    let edits = [(
        "linear.hex",
        "call gb_control_start(T, NI, NO, 2 + RELU_ON)",
        "call gb_control_start(T, NI, 3, 2 + RELU_ON)",
    )];
    let report = judge("linear_256.hex", &edits, SMALL_LINEAR, None);
    assert!(report.aligned.is_some_and(|(aligned, of)| aligned < of && of == 10), "{report}");
    assert!(!matches!(report.judgement, Judgement::Proved), "{report}");
}

#[test]
fn integers_that_the_hardware_is_given_are_those_of_the_program() {
    // Every exponent bias reads as the same ideal arithmetic, but only one is that of the tensor.
    for (from, to) in [
        ("act_manager(p, ADP_O,", "act_manager(p, ADP_O - 1,"),
        ("pe_manager(p, ADP_W, ADP_B", "pe_manager(p, ADP_B, ADP_W"),
    ] {
        let report = judge("linear_256.hex", &[("linear.hex", from, to)], SMALL_LINEAR, Some(&solver()));
        assert!(
            !report.steps.iter().any(|step| step.starts_with(if from.contains("act") {
                "Fix2Adp"
            } else {
                "Acc2Act"
            })),
            "{report}"
        );
        assert!(!matches!(report.judgement, Judgement::Proved), "{report}");
    }
}

#[test]
fn what_is_read_off_a_wrong_movement_proves_nothing() {
    let solver = solver();
    for (what, case, edit, settings) in FAULTS.iter().filter(|fault| fault.3.is_empty()) {
        let (mut case, source) = load(case, &[*edit]);
        case.relations.clear();
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let options = Options { settings, ..Options::default() };
        let report = verify(&case, &source, Some(&solver), &options).unwrap();
        assert!(matches!(report.judgement, Judgement::Refuted(_)), "{what}: {report}");
    }
}

#[test]
fn without_a_solver_nothing_is_proved_but_faults_are_found() {
    let report = judge("pooling_max.hex", &[], &[], None);
    let Judgement::Unknown { reason } = &report.judgement else { panic!("{report}") };
    assert!(reason.contains("pip install act-pjrt[verify]"), "{reason}");
    let (_, case, edit, settings) = FAULTS[0];
    assert!(matches!(judge(case, &[edit], settings, None).judgement, Judgement::Refuted(_)));
}
