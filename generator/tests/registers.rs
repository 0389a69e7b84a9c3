//! Vector units with one register file for every type: integers lie in f32 registers as their bits, and code for them is
//! found as for floats.

mod common;

use act_generator::{Backend, FloatPolicy, Numerics, Options};
use act_hlo::random::Values;
use act_isa::{Isa, load_target};
use common::{compile, names, run};
use std::sync::Arc;

/// Compiles, runs on the oracle, compares; the instructions used.
fn exact(isa: &Isa, hlo: &str, values: Values) -> Vec<String> {
    exact_under(isa, hlo, values, FloatPolicy::Xla)
}

fn exact_under(isa: &Isa, hlo: &str, values: Values, float: FloatPolicy) -> Vec<String> {
    let options = Options { numerics: Numerics { float }, ..Options::default() };
    let compiled = compile(isa, hlo, &options).unwrap_or_else(|e| panic!("{hlo}: {e}"));
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
        // As it stands or with operands exchanged: all of them cost the same.
        let names = exact(&isa, &mixed, Values::Special);
        assert!(names.iter().any(|name| name.starts_with("select_")), "{names:?}");
    }
}

/// An instruction that takes the bits and the value of one operand: it does not fit where they come from two.
#[test]
fn bits_and_value_of_an_operand_are_not_confused() {
    let text = "isa bits hbm memory: 1 MiB buffer v: f32[4 | 8]
instr load beta(addr, dst) { in memory[addr :+ 32] out v[dst :+ 1] computation {
  x = u8[32] parameter(0) a = u8[1, 8, 4] reshape(x) ROOT y = f32[1, 8] bitcast-convert(a) } }
instr store beta(src, addr) { in v[src :+ 1] out memory[addr :+ 32] computation {
  x = f32[1, 8] parameter(0) i = s32[1, 8] bitcast-convert(x) a = u8[1, 8, 4] bitcast-convert(i)
  ROOT y = u8[32] reshape(a) } }
instr load_s32 beta(addr, dst) { in memory[addr :+ 32] out v[dst :+ 1] computation {
  x = u8[32] parameter(0) a = u8[1, 8, 4] reshape(x) i = s32[1, 8] bitcast-convert(a)
  ROOT y = f32[1, 8] bitcast-convert(i) } }
instr mix beta(src, dst) { in v[src :+ 1] out v[dst :+ 1] computation {
  x = f32[1, 8] parameter(0) i = s32[1, 8] bitcast-convert(x) c = s32[1, 8] convert(x)
  m = s32[1, 8] xor(i, c) ROOT y = f32[1, 8] bitcast-convert(m) } }";
    let isa = Isa::parse(text, "bits").unwrap_or_else(|e| panic!("{e}"));
    let kernel = |bits_of: &str| {
        format!(
            "ENTRY kernel {{ a = f32[1,8] parameter(0) b = f32[1,8] parameter(1)
               i = s32[1,8] bitcast-convert({bits_of}) c = s32[1,8] convert(a) r = s32[1,8] xor(i, c)
               ROOT s = s32[1,8] bitcast-convert(r) }}"
        )
    };
    assert_eq!(exact(&isa, &kernel("a"), Values::Full), ["load", "mix", "store"]);
    assert!(compile(&isa, &kernel("b"), &Options::default()).is_err());
    let integers = kernel("b").replace("b = f32", "b = s32").replace("bitcast-convert(b)", "copy(b)");
    assert!(compile(&isa, &integers, &Options::default()).is_err());
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
        // The policy `xla` takes the product of a column and a row for one of elements, where a sum that begins at 0
        // loses the sign of a zero.
        let used = exact_under(&isa, &product("f32", "f32", k), Values::Full, FloatPolicy::Exact);
        assert!(used.iter().any(|name| name.starts_with("row_times_matrix_")), "{used:?}");
    }
}
