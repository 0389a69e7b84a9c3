//! The case studies: every one is proved, every seeded fault is refuted by a run, and no relation can be left out.

mod common;

use act_bolt::Judgement;
use act_bolt::case::verify;
use act_bolt::discharge::Answer;
use common::{Edit, judge, load, solver};

const CASES: &[&str] = &["pooling_max.hex", "pooling_mean.hex", "pooling_any.hex"];

#[test]
fn every_case_is_proved() {
    let solver = solver();
    for case in CASES {
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
        ("pooling.hex", "memory_manager(BASE, NV)", "memory_manager(0, NV)"),
        &[("BASE", 16)],
    ),
    (
        "two timesteps too few",
        "pooling_max.hex",
        ("pooling.hex", "layer_reduce_config(MODE, NV, T)", "layer_reduce_config(MODE, NV, T - 2)"),
        &[],
    ),
    (
        "mean instead of maximum",
        "pooling_max.hex",
        ("pooling.hex", "layer_reduce_config(MODE, NV, T)", "layer_reduce_config(1, NV, T)"),
        &[],
    ),
    (
        "maximum instead of mean",
        "pooling_mean.hex",
        ("pooling.hex", "layer_reduce_config(MODE, NV, T)", "layer_reduce_config(0, NV, T)"),
        &[],
    ),
    (
        "the output's timestep is not halved",
        "pooling_max.hex",
        (
            "flexasr.hex",
            "bo := G(mm_base, ct / 2, mm_num_vector, 0)",
            "bo := G(mm_base, ct, mm_num_vector, 0)",
        ),
        &[],
    ),
    (
        "one vector too few",
        "pooling_max.hex",
        ("pooling.hex", "layer_reduce_config(MODE, NV, T)", "layer_reduce_config(MODE, NV - 1, T)"),
        &[],
    ),
];

#[test]
fn every_seeded_fault_is_refuted_by_a_run() {
    let solver = solver();
    for (what, case, edit, settings) in FAULTS {
        // The same parameters prove without the fault: it is the fault that is found.
        if !settings.is_empty() {
            let report = judge(case, &[], settings, Some(&solver));
            assert_eq!(report.judgement, Judgement::Proved, "{what}: {report}");
        }
        let report = judge(case, &[*edit], settings, Some(&solver));
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
    for name in CASES {
        let (case, source) = load(name, &[]);
        for dropped in 0..case.relations.len() {
            let mut case = case.clone();
            case.relations.remove(dropped);
            let report = verify(&case, &source, Some(&solver), &act_bolt::Options::default()).unwrap();
            assert!(
                matches!(report.judgement, Judgement::Unknown { .. }),
                "without relation {dropped}: {report}"
            );
        }
    }
    for claim in [" whereby ct == 2 * t", " whereby cv == v"] {
        let report = judge("pooling_max.hex", &[("flexasr.hex", claim, "")], &[], Some(&solver));
        assert!(matches!(report.judgement, Judgement::Unknown { .. }), "without{claim}: {report}");
    }
}

#[test]
fn every_condition_can_be_replayed_from_its_script() {
    let solver = solver();
    let report = judge("pooling_max.hex", &[], &[], Some(&solver));
    assert!(report.proofs.len() >= 15, "{report}");
    for proof in &report.proofs {
        let answer = solver.check(&proof.script, std::time::Duration::from_secs(20)).unwrap();
        assert_eq!(answer, act_bolt::Verdict::Unsatisfiable, "{}", proof.name);
    }
}

#[test]
fn a_wrong_alignment_proves_nothing() {
    let solver = solver();
    // Hardware and aligned program both take the mean; the tensor program takes the maximum.
    let edits = [
        ("pooling.hex", "layer_reduce_config(MODE, NV, T)", "layer_reduce_config(1, NV, T)"),
        ("pooling.hex", "OUT[t, v * L + l] := Max8(", "OUT[t, v * L + l] := Mean8("),
    ];
    let report = judge("pooling_max.hex", &edits, &[], Some(&solver));
    let Judgement::Unknown { reason } = &report.judgement else { panic!("{report}") };
    assert!(reason.contains("ideal arithmetic"), "{reason}");
}

#[test]
fn without_a_solver_nothing_is_proved_but_faults_are_found() {
    let report = judge("pooling_max.hex", &[], &[], None);
    let Judgement::Unknown { reason } = &report.judgement else { panic!("{report}") };
    assert!(reason.contains("pip install z3-solver"), "{reason}");
    let (_, case, edit, settings) = FAULTS[0];
    assert!(matches!(judge(case, &[edit], settings, None).judgement, Judgement::Refuted(_)));
}
