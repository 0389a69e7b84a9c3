//! Vector units with one register file for every type: integers lie in f32 registers as their bits, and code for them is
//! found as for floats.

mod common;

use act_generator::{Backend, Options};
use act_hlo::random::Values;
use act_isa::{Isa, load_target};
use common::{compile, names, run};
use std::sync::Arc;

/// Compiles, runs on the oracle, compares; the instructions used.
fn exact(isa: &Isa, hlo: &str, values: Values) -> Vec<String> {
    let compiled = compile(isa, hlo, &Options::default()).unwrap_or_else(|e| panic!("{hlo}: {e}"));
    let difference = run(isa, hlo, &compiled, values, 11);
    assert_eq!(difference.elements, 0, "{hlo}: {difference}");
    names(isa, &compiled).into_iter().map(str::to_owned).collect()
}

/// A kernel of two operands of one type.
fn of_two(elem: &str, dims: &str, body: &str) -> String {
    format!("ENTRY kernel {{ a = {elem}[{dims}] parameter(0) b = {elem}[{dims}] parameter(1) {body} }}")
}

#[test]
fn every_instruction_has_a_rule() {
    for name in ["amx", "x86"] {
        let backend = Backend::generate(Arc::new(load_target(name).unwrap())).unwrap();
        let text = backend.describe(&Options::default());
        let refused: Vec<&str> = text.lines().filter(|line| line.starts_with("no rule for")).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

#[test]
fn floats_and_integers_share_the_registers() {
    for (name, lanes) in [("x86", 8), ("amx", 16)] {
        let isa = load_target(name).unwrap();
        let dims = format!("1,{lanes}");
        let unary = |from: &str, op: &str, to: &str| {
            format!("ENTRY kernel {{ a = {from}[{dims}] parameter(0) ROOT r = {to}[{dims}] {op}(a) }}")
        };
        for op in ["add", "subtract", "multiply", "minimum", "maximum", "and", "or", "xor"] {
            let body = format!("ROOT r = s32[{dims}] {op}(a, b)");
            exact(&isa, &of_two("s32", &dims, &body), Values::Special);
        }
        for op in ["add", "subtract", "multiply", "divide"] {
            let body = format!("ROOT r = f32[{dims}] {op}(a, b)");
            exact(&isa, &of_two("f32", &dims, &body), Values::Special);
        }
        exact(&isa, &unary("f32", "sqrt", "f32"), Values::Special);
        exact(&isa, &unary("s32", "convert", "f32"), Values::Special);
        exact(&isa, &unary("f32", "convert", "s32"), Values::Special);
        exact(&isa, &unary("f32", "bitcast-convert", "s32"), Values::Special);
        // The comparison is of integers, the values selected are floats.
        let mixed = format!(
            "ENTRY kernel {{ a = s32[{dims}] parameter(0) b = s32[{dims}] parameter(1)
               x = f32[{dims}] parameter(2) y = f32[{dims}] parameter(3)
               c = pred[{dims}] compare(a, b), direction=GE ROOT r = f32[{dims}] select(c, x, y) }}"
        );
        assert!(exact(&isa, &mixed, Values::Special).contains(&"select_ged".to_owned()));
    }
}

/// One parameter read as its bits and as its value: two values, of which a register holds one.
#[test]
fn bits_and_value_of_an_operand_are_not_confused() {
    let isa = load_target("x86").unwrap();
    let hlo =
        "ENTRY kernel { a = f32[1,8] parameter(0) b = s32[1,8] convert(a) c = s32[1,8] bitcast-convert(a)
        ROOT r = s32[1,8] xor(b, c) }";
    assert!(exact(&isa, hlo, Values::Full).contains(&"convert_f32_s32".to_owned()));
}

#[test]
fn products_of_floats_and_of_bytes() {
    let isa = load_target("x86").unwrap();
    let product = |elem: &str, sum: &str, k: u64| {
        format!(
            "ENTRY kernel {{ a = {elem}[3,{k}] parameter(0) b = {elem}[{k},16] parameter(1)
               ROOT c = {sum}[3,16] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"
        )
    };
    for k in [1, 2, 4] {
        let used = exact(&isa, &product("s8", "s32", k), Values::Full);
        assert!(used.iter().any(|name| name.starts_with("row_times_matrix_s8")), "{used:?}");
    }
    for k in [1, 4] {
        let used = exact(&isa, &product("f32", "f32", k), Values::Full);
        assert!(used.iter().any(|name| name.starts_with("row_times_matrix_")), "{used:?}");
    }
}
