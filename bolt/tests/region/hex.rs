//! Stitched code as programs in Hex: the interpreter computes with them what the oracle computes with the code.

use super::fixture::Fixture;
use super::verdicts::ALL;
use act_bolt::case::{Options, load_text, verify};
use act_bolt::hex::domain::{Domain, Reading};
use act_bolt::hex::expand::Expanded;
use act_bolt::hex::syntax::{Role, Type};
use act_bolt::hex::{Case, expand, print_case, run};
use act_bolt::region::{Permitted, hex_of_region, parse_stitched};
use act_bolt::{Judgement, Report};
use act_hlo::ElemType;
use act_hlo::text::parse_graph;
use act_isa::{Oracle, Space};
use std::path::Path;

const FUEL: u64 = 200_000_000;

fn case(text: &str) -> Case {
    load_text("translated", text, Path::new(".")).unwrap_or_else(|error| panic!("{error}\n{text}")).0
}

/// The bytes of a buffer whose elements are given.
fn bytes(case: &Expanded, ty: Type, values: &[i64]) -> Vec<u8> {
    let Type::Elem(name) = ty else { panic!("a buffer of elements") };
    let name = case.names.text(name);
    let elem = ElemType::ALL.into_iter().find(|elem| elem.name() == name).unwrap();
    values.iter().flat_map(|value| value.to_le_bytes()[..elem.bytes() as usize].to_vec()).collect()
}

/// Runs both on the same random operands. Returns whether all results agree.
fn agree(fixture: &Fixture, text: &str) -> bool {
    let case = expand(&case(text), &[]).unwrap();
    let domain = Domain::new(&case, Reading::Concrete, 7);
    let outcome = run(&case, &case.hardware, &domain, FUEL).unwrap();
    let operands: Vec<Vec<u8>> = case
        .decls
        .iter()
        .filter(|decl| decl.role == Role::Input)
        .map(|decl| bytes(&case, decl.ty, &outcome.buffers[&decl.name]))
        .collect();
    let program = parse_stitched(&fixture.isa, &fixture.text).unwrap();
    let mut results = vec![Vec::new(); program.results.len()];
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    Oracle::new(&fixture.isa).run(&program, &operands, &mut results).unwrap();
    let mut equal = true;
    for (k, view) in fixture.results.iter().enumerate() {
        let name = case.names.find(&format!("got{k}")).unwrap();
        let decl = case.decls.iter().find(|decl| decl.name == name).unwrap();
        let Space::Result(segment) = view.space else { panic!("a result") };
        equal &= bytes(&case, decl.ty, &outcome.buffers[&name]) == results[usize::from(segment)];
    }
    equal
}

#[test]
fn the_interpreter_computes_what_the_oracle_does() {
    for name in ALL {
        let fixture = Fixture::load(name);
        let text = hex_of_region(&fixture.isa, &fixture.spec(Permitted::Xla), &fixture.text).unwrap();
        assert!(agree(&fixture, &text), "{name}:\n{text}");
        // Loops stay loops, and every instruction is a command that is called.
        let loops = text.lines().filter(|line| line.trim_start().starts_with("for i")).count();
        assert_eq!(loops, fixture.text.matches("scf.for").count(), "{name}");
        let (calls, fences) = (text.matches("call ").count(), text.matches("# a fence").count());
        assert!(calls + fences >= fixture.text.matches("llvm.inline_asm").count(), "{name}");
        // The printer's text is the same program.
        let printed = print_case(&case(&text));
        assert_eq!(print_case(&case(&printed)), printed, "{name}");
    }
}

/// What is said of a translated case.
fn judged(text: &str) -> Report {
    let (case, source) = load_text("translated", text, Path::new(".")).unwrap();
    verify(&case, &source, None, &Options::default()).unwrap()
}

#[test]
fn a_fault_in_the_code_is_one_in_the_program() {
    let right = Fixture::load("convolution.gemmini");
    let text = hex_of_region(&right.isa, &right.spec(Permitted::Xla), &right.text).unwrap();
    let report = judged(&text);
    assert!(
        matches!(&report.judgement, Judgement::Unknown { reason } if reason.contains("on concrete data they agree")),
        "{report}"
    );
    for (from, to) in [
        // Partial sums overwritten, rows 100 bytes apart, the last row left out.
        ("acc.accumulate[$2]", "acc[$2]"),
        ("arith.constant 128 : i64\n      %37", "arith.constant 100 : i64\n      %37"),
        ("%11 = arith.constant 4 : i64", "%11 = arith.constant 3 : i64"),
    ] {
        let mut wrong = Fixture::load("convolution.gemmini");
        assert!(wrong.text.contains(from), "{from}");
        wrong.text = wrong.text.replace(from, to);
        let text = hex_of_region(&wrong.isa, &wrong.spec(Permitted::Xla), &wrong.text).unwrap();
        let report = judged(&text);
        let Judgement::Refuted(example) = &report.judgement else { panic!("{from}: {report}") };
        assert!(example.what.contains("Concrete data"), "{from}: {report}");
    }
}

#[test]
fn what_hex_has_no_form_for_is_refused() {
    let mut fixture = Fixture::load("product.gemmini");
    fixture.graph = parse_graph(
        "HloModule m\nENTRY main {\n  a = s8[33,70] parameter(0)\n  b = s8[70,17] parameter(1)\n\
         \x20 i = s32[] constant(0)\n  c = s32[33,70] convert(a)\n\
         \x20 ROOT r = s32[33,17] dynamic-slice(c, i, i), dynamic_slice_sizes={33,17}\n}\n",
    )
    .unwrap();
    let error = hex_of_region(&fixture.isa, &fixture.spec(Permitted::Xla), &fixture.text).unwrap_err();
    assert_eq!(error.to_string(), "the region: dynamic-slice has no form in Hex");
    let error = hex_of_region(&fixture.isa, &fixture.spec(Permitted::Xla), "module {").unwrap_err();
    assert!(error.to_string().starts_with("the stitched text is not understood: line 1"), "{error}");
}
