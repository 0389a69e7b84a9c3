//! Small cases made to lead a prover astray: none of them may be proved, and their sound neighbours are.

mod common;

use act_bolt::hex::{check, parse};
use act_bolt::{Judgement, Options, Report, case::verify};

/// A case of one copy loop: `Y[i] := f(X[i])` for i in 0..N, against hardware code and relations.
fn judge(hardware: &str, relations: &str) -> Report {
    judge_of(8, hardware, relations)
}

fn judge_of(length: i64, hardware: &str, relations: &str) -> Report {
    let text = format!(
        "case small
         param N = {length}
         type u8 = unsigned 8
         fun f(a: u8): u8 = a + 1 reads a
         ir {{
           input X[N]: u8
           output Y[N]: u8
           for i in 0..N {{ Y[i] := X[i] }}
         }}
         aligned {{ for i in 0..N @STEP {{ Y[i] := f(X[i]) }} }}
         mapping {{
           output R[N + 2]: u8
           buffer M[N + 2]: u8
           reg c: bv4
           reg narrow: bv3
           {hardware}
         }}
         relate {{ {relations} }}"
    );
    let (case, source) =
        parse("small.hex", &text).unwrap_or_else(|(error, source)| panic!("{}", error.render(&source)));
    check(&case).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    verify(&case, &source, Some(&common::solver()), &Options::default()).unwrap()
}

const ENSURE: &str = "ensure R[i] == Y[i] over i in 0..N";
const MADE: &str = "R[j] == Y[j] over j in 0..N made (j @STEP)";

#[track_caller]
fn is(report: &Report, expected: &str) {
    let found = match &report.judgement {
        Judgement::Proved => "proved",
        Judgement::Refuted(_) => "refuted",
        Judgement::Unknown { .. } => "unknown",
    };
    assert_eq!(found, expected, "{report}");
}

#[test]
fn the_plain_copy_is_proved() {
    let both = format!("{MADE} {ENSURE}");
    is(&judge("for i in 0..N @STEP { R[i] := f(X[i]) }", &both), "proved");
    is(&judge("parfor i in 0..N { R[i] := f(X[i]) }", ENSURE), "proved");
    is(
        &judge(
            "c := 0 loop i in 0..N @STEP whereby c == i { R[c] := f(X[c]) c := c + 1 } until c == N",
            &both,
        ),
        "proved",
    );
    is(&judge("parfor i in 0..N { M[i] := X[i] } parfor i in 0..N { R[i] := f(M[i]) }", ENSURE), "proved");
}

#[test]
fn a_case_that_asks_for_nothing_is_not_proved() {
    is(&judge("parfor i in 0..N { R[i] := f(X[i]) }", MADE), "unknown");
}

#[test]
fn iterations_that_see_each_other_are_no_map() {
    // In order, every place becomes a copy of the first; as a map, places would shift by one.
    let chain = "parfor i in 0..N { M[i + 1] := f(X[i]) }
                 M[0] := f(X[0]) for i in 0..N { M[i + 1] := M[i] } parfor i in 0..N { R[i] := M[i + 1] }";
    is(&judge(chain, ENSURE), "refuted");
    // A map that shifts is one: every iteration sees what was there before.
    let shift = "parfor i in 0..N { M[i] := f(X[i]) } parfor i in 0..N { M[i + 1] := M[i] }
                 parfor i in 0..N { R[i] := M[i + 1] }";
    is(&judge(shift, ENSURE), "proved");
    is(&judge("parfor i in 0..N { R[i / 2] := f(X[i]) }", ENSURE), "refuted");
}

#[test]
fn claims_hold_no_longer_than_the_loop() {
    // The relation claims two places more than the loop makes.
    let more = "R[j] == M[j] over j in 0..N + 2 made (j @STEP) ensure R[j] == M[j] over j in 0..N + 2";
    is(&judge("for i in 0..N @STEP { R[i] := f(X[i]) M[i] := f(X[i]) }", more), "refuted");
}

#[test]
fn contradictory_claims_prove_nothing() {
    let wrong = "for i in 0..N @STEP { R[i] := X[i] }";
    is(&judge(wrong, &format!("{MADE} {ENSURE} invariant at STEP: 0 == 1")), "refuted");
    let right = "for i in 0..N @STEP { R[i] := f(X[i]) }";
    is(&judge(right, &format!("{MADE} {ENSURE} invariant at STEP: i < 4")), "unknown");
    // The relation does not hold before the loop. Where it is not claimed at the loop, the loop is a map and needs none.
    is(&judge(right, &format!("R[j] == Y[j] over j in 0..N at STEP {ENSURE}")), "unknown");
    is(&judge(right, &format!("R[j] == Y[j] over j in 0..N {ENSURE}")), "proved");
}

#[test]
fn registers_that_wrap_are_not_integers() {
    // Three bits count to eight and are zero again: right, but not by integers, so it is not claimed.
    let wraps = "narrow := 0
        loop i in 0..N @STEP whereby narrow == i { R[narrow] := f(X[narrow]) narrow := narrow + 1 } until narrow == 0";
    is(&judge(wraps, &format!("{MADE} {ENSURE}")), "unknown");
    // As integers this stops after eight steps; with three bits it never does.
    let never = "narrow := 0
        loop i in 0..N @STEP whereby narrow == i { R[narrow] := f(X[narrow]) narrow := narrow + 1 } until narrow == 8";
    is(&judge(never, &format!("{MADE} {ENSURE}")), "refuted");
}

#[test]
fn a_shared_bound_does_not_hide_a_wrong_exit() {
    for last in ["N - 1", "N + 1"] {
        let hardware = format!(
            "c := 0 loop i in 0..N @STEP whereby c == i {{ R[c] := f(X[c % N]) c := c + 1 }} until c == {last}"
        );
        let report = judge(&hardware, &format!("{MADE} {ENSURE}"));
        assert!(!matches!(report.judgement, Judgement::Proved), "{last}: {report}");
        let exit = report.proofs.iter().find(|proof| proof.name.contains("leaves the loop exactly"));
        assert!(
            exit.is_some_and(|proof| proof.answer != act_bolt::discharge::Answer::Holds),
            "{last}: {report}"
        );
    }
}

#[test]
fn places_outside_of_buffers_are_not_proved() {
    let beyond = "for i in 0..N @STEP { R[i] := f(X[i]) M[i + 3] := X[i] }";
    is(&judge(beyond, &format!("{MADE} {ENSURE}")), "refuted");
}

#[test]
fn what_holds_for_want_of_a_state_is_no_proof() {
    // The loop never runs, so its body's conditions hold of nothing.
    let report = judge_of(0, "for i in 0..N @STEP { R[i] := X[i] }", &format!("{MADE} {ENSURE}"));
    is(&report, "unknown");
    assert!(
        report.proofs.iter().any(|proof| proof.answer == act_bolt::discharge::Answer::Vacuous),
        "{report}"
    );
}
