//! The language: what is printed parses to the same, faults are shown at their place, programs do what they say.

mod common;

use act_bolt::hex::domain::Reading;
use act_bolt::hex::run::FaultKind;
use act_bolt::hex::{Domain, check, expand, parse, print_case, run};

fn error(text: &str) -> String {
    match parse("test.hex", text) {
        Err((error, source)) => error.render(&source),
        Ok((case, source)) => match check(&case) {
            Err(error) => error.render(&source),
            Ok(()) => panic!("no fault is found in {text}"),
        },
    }
}

#[test]
fn a_printed_case_is_the_same_case() {
    for entry in std::fs::read_dir(common::folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = std::fs::read_to_string(common::folder().join(&name)).unwrap();
        if !text.lines().any(|line| line.starts_with("case ")) {
            continue;
        }
        let (case, _) = common::load(&name, &[]);
        let printed = print_case(&case);
        let (again, source) =
            parse(&name, &printed).unwrap_or_else(|(error, source)| panic!("{}", error.render(&source)));
        check(&again).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        assert_eq!(print_case(&again), printed, "{name}");
        // Not only the texts: both say the same when they are run.
        let outcomes = [case, again].map(|case| {
            let case = expand(&case, &[]).unwrap();
            let domain = Domain::new(&case, Reading::Concrete, 3);
            run(&case, &case.hardware, &domain, 50_000_000).unwrap().steps
        });
        assert_eq!(outcomes[0], outcomes[1], "{name}");
    }
}

#[test]
fn faults_are_shown_with_a_caret() {
    let shown = error("param N = 4\nir {\n  output Y[N]: u8\n}\n");
    assert_eq!(shown, "test.hex:3:3: there is no type `u8`\n    output Y[N]: u8\n    ^^^^^^^^^^^^^^^");
    let shown = error("param N = 4 +\n");
    assert!(shown.contains("an expression is expected here, not the end of the file"), "{shown}");
    let shown = error("param N = $\n");
    assert_eq!(shown, "test.hex:1:11: `$` starts nothing in Hex\n  param N = $\n            ^");
}

#[test]
fn what_is_nested_without_end_is_refused() {
    for text in [
        format!("param N = {}1{}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("param N = {}1", "-".repeat(50_000)),
        format!("ir {{ {} {} }}", "if 1 == 1 {".repeat(50_000), "}".repeat(50_000)),
    ] {
        assert!(error(&text).contains("nested more than 100 deep"));
    }
    let shown = error(&format!("param N = 1{}", " + 1".repeat(50_000)));
    assert!(shown.contains("more than 1000 operands"), "{}", &shown[..80]);
}

#[test]
fn what_does_not_fit_into_memory_is_not_run() {
    let text = "case large\ntype u8 = unsigned 8\nparam N = 4000000000000\nir {\n output Y[N]: u8\n input X[N]: u8\n for i in 0..N { Y[i] := X[i] }\n}\n";
    let case = parse("test.hex", text).unwrap().0;
    let case = expand(&case, &[]).unwrap();
    let fault = run(&case, &case.ir, &Domain::new(&case, Reading::Hashed, 1), 1000).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::TooLarge { .. }), "{}", fault.kind);
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let program = |body: &str| {
        format!(
            "type u8 = unsigned 8\nfun f(a: u8): u8\nir {{\n input X[4]: u8\n output Y[4]: u8\n {body}\n}}\nmapping {{\n reg r: bv8\n}}"
        )
    };
    for (body, says) in [
        ("Y[0] := Z[0]", "`Z` is not declared"),
        ("Y[0] := X[0, 1]", "`X` takes 1, not 2"),
        ("Y[0] := 3", "an element of `u8` is expected here, not an integer"),
        ("Y[X[0]] := X[0]", "an integer is expected here, not an element of `u8`"),
        ("X[0] := Y[0]", "the input `X` is not written"),
        ("r := 1", "`r` belongs to the other program"),
        ("for i in 0..4 { i := 2 }", "the counter `i` is not assigned"),
        ("for X in 0..4 { }", "`X` is declared already"),
        ("if X[0] == X[1] { Y[0] := X[0] }", "an integer is expected here"),
        ("call start()", "there is no command `start`"),
        ("Y[0] := f(X[0], X[1])", "`f` takes 1, not 2"),
        ("loop i in 0..4 { Y[i] := X[i] }", "`until` is expected here"),
    ] {
        let shown = error(&program(body));
        assert!(shown.contains(says), "{body}: {shown}");
    }
    let shown = error("param N = 4\nparam N = 5\n");
    assert!(shown.contains("`N` is declared twice"), "{shown}");
    let shown = error(&(program("") + "relate { X[i] == Y[i] over i in 0..4 made (i @Q) }"));
    assert!(shown.contains("no loop is labelled `@Q`"), "{shown}");
}

/// Final contents of `Y` when `body` has run as hardware code on concrete data.
fn outcome(body: &str) -> Result<Vec<i64>, FaultKind> {
    let text = format!(
        "type i8 = signed 8\nfun zero(): i8 = 0\nfun inc(a: i8): i8 = a + 1\nmapping {{\n output Y[4]: i8\n buffer B[4]: i8\n reg r: bv3\n {body}\n}}"
    );
    let (case, source) =
        parse("test.hex", &text).unwrap_or_else(|(error, source)| panic!("{}", error.render(&source)));
    check(&case).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let case = expand(&case, &[]).unwrap();
    let domain = Domain::new(&case, Reading::Concrete, 5);
    let outcome = run(&case, &case.hardware, &domain, 1000).map_err(|fault| fault.kind)?;
    Ok(outcome.buffers[&case.names.find("Y").unwrap()].clone())
}

#[test]
fn programs_do_what_they_say() {
    let clear = "for i in 0..4 { Y[i] := zero() }";
    // A chain through the buffer in a counted loop; in a parfor every iteration sees the state before it.
    let chain = "Y[i + 1] := inc(Y[i])";
    assert_eq!(outcome(&format!("{clear} for i in 0..3 {{ {chain} }}")), Ok(vec![0, 1, 2, 3]));
    assert_eq!(outcome(&format!("{clear} parfor i in 0..3 {{ {chain} }}")), Ok(vec![0, 1, 1, 1]));
    // An iteration sees its own writes.
    assert_eq!(
        outcome(&format!("{clear} parfor i in 0..4 {{ B[i] := inc(Y[i]) Y[i] := inc(B[i]) }}")),
        Ok(vec![2, 2, 2, 2])
    );
    // The exit test comes after the body, and registers wrap: 6, 7, 0.
    let wraps = "r := 6 loop t in 0..3 { Y[t] := inc(Y[t]) r := r + 1 } until r == 0";
    assert_eq!(outcome(&format!("{clear} {wraps}")), Ok(vec![1, 1, 0, 0]));
    // Functions wrap to their types: 127 + 1.
    assert_eq!(outcome(&format!("{clear} for i in 0..128 {{ Y[0] := inc(Y[0]) }}")), Ok(vec![-128, 0, 0, 0]));
    assert_eq!(
        outcome(&format!("{clear} if bv2(7) == 3 and not 7 / 2 % 2 == 0 {{ Y[3] := inc(Y[3]) }}")),
        Ok(vec![0, 0, 0, 1])
    );
    assert_eq!(outcome(&format!("{clear} Y[max(1, -5 / 2 + 5)] := inc(Y[0])")), Ok(vec![0, 0, 1, 0]));
}

#[test]
fn runs_that_fail_say_how() {
    assert_eq!(
        outcome("Y[4] := zero()"),
        Err(FaultKind::OutOfBounds { buffer: "Y".to_owned(), indices: vec![4] })
    );
    assert_eq!(
        outcome("parfor i in 0..4 { Y[i / 2] := zero() }"),
        Err(FaultKind::Race { buffer: "Y".to_owned() })
    );
    assert_eq!(outcome("loop t in 0..3 { r := r } until r > 7"), Err(FaultKind::NeverStops(1000)));
    assert_eq!(outcome("for t in 0..3000 { r := 0 }"), Err(FaultKind::TooLong(1000)));
    // Slow is not endless: the loop inside has a longer way to go.
    assert_eq!(
        outcome("loop t in 0..3 { for u in 0..3000 { r := 0 } } until r > 7"),
        Err(FaultKind::TooLong(1000))
    );
    assert_eq!(outcome("r := 0 Y[1 / r] := zero()"), Err(FaultKind::Arithmetic));
}

#[test]
fn the_reference_says_what_is_so() {
    let text = include_str!("../HEX.md");
    let solver = common::solver();
    let mut judged = 0;
    for (index, part) in text.split("```hex\n").enumerate().skip(1) {
        let code = part.split("```").next().unwrap();
        let before = text.split("```hex\n").nth(index - 1).unwrap();
        let expected = before.rsplit("Expected: ").next().unwrap().split('.').next().unwrap();
        let (case, source) =
            parse("HEX.md", code).unwrap_or_else(|(error, source)| panic!("{}", error.render(&source)));
        check(&case).unwrap_or_else(|error| panic!("{}", error.render(&source)));
        let report =
            act_bolt::case::verify(&case, &source, Some(&solver), &act_bolt::Options::default()).unwrap();
        assert!(
            report.to_string().starts_with(&format!("{}: {expected}", case.name)),
            "{expected}: {report}"
        );
        judged += 1;
    }
    assert_eq!(judged, 3);
}

#[test]
fn operators_of_hlo_take_the_parameters_of_their_function() {
    let case = |function: &str| {
        let text =
            format!("case c type f32 = float 8 23 type u7 = unsigned 7 type pred = unsigned 1 {function}");
        let (case, _) =
            parse("c", &text).unwrap_or_else(|(error, source)| panic!("{}", error.render(&source)));
        check(&case).map_err(|error| error.message)
    };
    for right in [
        "fun f(a: f32): f32 = hlo \"exponential(a)\"",
        "fun f(a: f32, b: f32): pred = hlo \"compare(a, b), direction=LT\" reads sub(a, b)",
        "fun f(p: pred, a: f32, b: f32): f32 = hlo \"select(p, a, b)\"",
    ] {
        assert_eq!(case(right), Ok(()), "{right}");
    }
    for (wrong, why) in [
        ("fun f(a: f32): f32 = hlo \"nonsense(a)\"", "no operator of HLO"),
        ("fun f(a: f32, b: f32): f32 = hlo \"subtract(b, a)\"", "in their order"),
        ("fun f(a: f32, b: f32): f32 = hlo \"negate(a)\"", "in their order"),
        ("fun f(a: u7): u7 = hlo \"negate(a)\"", "`u7` is no type of HLO"),
        ("fun f(a: f32, k: int): f32 = hlo \"negate(a)\"", "takes elements"),
        ("fun f(a: f32): pred = hlo \"negate(a)\"", "no operator of HLO"),
    ] {
        let error = case(wrong).unwrap_err();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}
