//! Nothing is special about a description: another one with other names, another order of instructions and another
//! size compiles the same kernels to the same code, and one made for this test alone compiles what it can do.

mod common;

use act_generator::{CompileError, Compiled, Options};
use act_hlo::random::Values;
use act_isa::{AttrVal, BetaVal, Isa, targets};
use common::{compile, names, run};

/// The shipped description with an array of `dim`.
fn gemmini(dim: u64) -> Isa {
    let (_, text) = targets().iter().find(|(name, _)| *name == "gemmini").unwrap();
    let sized = text.replace("const DIM = 16\n", &format!("const DIM = {dim}\n"));
    assert_eq!(sized == *text, dim == 16);
    Isa::parse(&sized, "gemmini.taidl").unwrap_or_else(|e| panic!("{e}"))
}

/// Every name changed into one that means nothing, instructions and attributes' declarations elsewhere: through the
/// text form, as a user would write it.
fn disguised(isa: &Isa) -> (Isa, Vec<String>) {
    let mut other = isa.clone();
    other.name = "nothing".into();
    other.hbm.name = "outside".into();
    for (k, buffer) in other.buffers.iter_mut().enumerate() {
        buffer.name = format!("b{k}");
    }
    for (k, unit) in other.units.iter_mut().enumerate() {
        *unit = format!("u{k}");
    }
    let mut old_names = Vec::new();
    for (k, instr) in other.instrs.iter_mut().enumerate() {
        old_names.push(instr.name.clone());
        instr.name = format!("op{k}");
        instr.asm = String::new();
        for (j, attr) in instr.alpha.iter_mut().enumerate() {
            attr.name = format!("p{j}");
        }
        for (j, attr) in instr.beta.iter_mut().enumerate() {
            attr.name = format!("q{j}");
        }
        for (j, stmt) in instr.computation.stmts.iter_mut().enumerate() {
            stmt.name = format!("t{j}");
        }
    }
    other.instrs.reverse();
    old_names.reverse();
    let again = Isa::parse(&other.print(), "nothing.taidl").unwrap_or_else(|e| panic!("{e}"));
    (again, old_names)
}

/// Instructions by their names in the shipped description, with integers as they are.
fn code(compiled: &Compiled, name_of: impl Fn(usize) -> String) -> Vec<(String, Vec<i64>)> {
    let instr = |instr: &act_isa::AsmInstr| {
        let alpha = instr.alpha.iter().filter_map(|a| match a {
            AttrVal::Int(v) => Some(*v),
            AttrVal::F32(_) => None,
        });
        let beta = instr.beta.iter().filter_map(|b| match b {
            BetaVal::Int(at) => Some(at.c0),
            BetaVal::Hbm(..) => None,
        });
        (name_of(usize::from(instr.op.0)), alpha.chain(beta).collect())
    };
    compiled.assembly.instrs.iter().map(instr).collect()
}

/// m, k, n in tiles.
fn kernels(dim: u64) -> Vec<String> {
    let rows = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let product = |m: u64, k: u64, n: u64| {
        format!(
            "ENTRY e {{ a = s8[{},{}] parameter(0)  b = s8[{},{}] parameter(1)  ROOT c = s32[{},{}] dot(a, b), {rows} }}",
            m * dim,
            k * dim,
            k * dim,
            n * dim,
            m * dim,
            n * dim
        )
    };
    let biased = format!(
        "ENTRY e {{ a = s8[{dim},{dim}] parameter(0)  b = s8[{dim},{dim}] parameter(1)  d = s32[{dim},{dim}] parameter(2)
  c = s32[{dim},{dim}] dot(a, b), {rows}
  ROOT r = s32[{dim},{dim}] add(c, d) }}"
    );
    vec![product(1, 1, 1), product(1, 2, 1), product(2, 1, 1), product(1, 1, 2), biased]
}

/// Rows of a bank of the description, whatever the size of its arrays.
const BANK: i64 = 4096;

#[test]
fn names_order_and_size_of_a_description_do_not_matter() {
    let known = gemmini(16);
    let (other, old_names) = disguised(&gemmini(8));
    for (large, small) in kernels(16).into_iter().zip(kernels(8)) {
        let options = Options::default();
        let ours = compile(&known, &large, &options).unwrap_or_else(|e| panic!("{large}: {e}"));
        let theirs = compile(&other, &small, &options).unwrap_or_else(|e| panic!("{small}: {e}"));
        assert_eq!(run(&other, &small, &theirs, Values::Full, 5).elements, 0);
        let ours = code(&ours, |op| known.instrs[op].name.clone());
        let theirs = code(&theirs, |op| old_names[op].clone());
        let instructions =
            |code: &[(String, Vec<i64>)]| code.iter().map(|i| i.0.clone()).collect::<Vec<String>>();
        assert_eq!(instructions(&ours), instructions(&theirs), "{large}");
        for ((name, ours), (_, theirs)) in ours.iter().zip(&theirs) {
            for (a, b) in ours.iter().zip(theirs) {
                // Sizes halve, and addresses from the start of their bank on; counts of blocks and banks stay.
                let same = a.div_euclid(BANK) == b.div_euclid(BANK);
                let halved = same && a.rem_euclid(BANK) == 2 * b.rem_euclid(BANK);
                assert!(*a == 2 * b || a == b || halved, "{name}: {ours:?} against {theirs:?}");
            }
        }
    }
}

fn lanes() -> Isa {
    Isa::parse(include_str!("lanes.taidl"), "lanes.taidl").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_description_of_this_test_compiles_elementwise_kernels() {
    let isa = lanes();
    let one = "ENTRY e { a = f32[1,8] parameter(0)  b = f32[1,8] parameter(1)  c = f32[1,8] parameter(2)
  p = f32[1,8] multiply(a, b)  ROOT s = f32[1,8] add(p, c) }";
    let compiled = compile(&isa, one, &Options::default()).unwrap();
    let mut counts = std::collections::BTreeMap::new();
    names(&isa, &compiled).into_iter().for_each(|n| *counts.entry(n).or_insert(0) += 1);
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [("vadd", 1), ("vld", 3), ("vmul", 1), ("vst", 1)]);
    assert_eq!(run(&isa, one, &compiled, Values::Full, 1).elements, 0);

    // Other shapes: one dimension, several registers at a time, a value used twice.
    for hlo in [
        "ENTRY e { a = f32[8] parameter(0)  b = f32[8] parameter(1)  s = f32[8] add(a, b)  ROOT q = f32[8] multiply(s, s) }",
        "ENTRY e { a = f32[3,8] parameter(0)  b = f32[3,8] parameter(1)  ROOT s = f32[3,8] add(a, b) }",
        "ENTRY e { a = f32[24] parameter(0)  b = f32[24] parameter(1)  s = f32[24] multiply(a, b)  ROOT t = f32[24] add(s, a) }",
    ] {
        let compiled = compile(&isa, hlo, &Options::default()).unwrap_or_else(|e| panic!("{hlo}: {e}"));
        assert_eq!(run(&isa, hlo, &compiled, Values::Full, 2).elements, 0, "{hlo}");
    }
}

#[test]
fn what_the_description_of_this_test_lacks_is_refused() {
    let isa = lanes();
    let divide = "ENTRY e { a = f32[8] parameter(0)  b = f32[8] parameter(1)  ROOT q = f32[8] divide(a, b) }";
    let error = compile(&isa, divide, &Options::default()).unwrap_err();
    assert!(matches!(error, CompileError::NoSelection(_)), "{error}");
}

/// The lanes with one arithmetic unit that adds or multiplies by an attribute, and a mode register beside it.
fn one_unit() -> Isa {
    let text = include_str!("lanes.taidl");
    let (memory, _) = text.split_once("instr vadd").unwrap();
    let text = format!(
        "{memory}
register mode = 0
instr set_mode alpha(value: 0..1) {{ update mode = value }}
instr alu alpha(op: {{0, 2}}) beta(x, y, dst) {{
  in  v[x :+ 1]
  in  v[y :+ 1]
  out v[dst :+ 1]
  computation {{
    a = f32[1, 8] parameter(0)
    b = f32[1, 8] parameter(1)
    if op == 0 {{ c = f32[1, 8] add(a, b) }} else {{ c = f32[1, 8] multiply(a, b) }}
    return c
  }}
}}
instr by_mode beta(x, dst) {{
  in  v[x :+ 1]
  out v[dst :+ 1]
  computation {{
    a = f32[1, 8] parameter(0)
    if mode == 0 {{ c = f32[1, 8] negate(a) }} else {{ c = f32[1, 8] abs(a) }}
    return c
  }}
}}
"
    );
    Isa::parse(&text, "one_unit.taidl").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_path_of_an_instruction_is_chosen_with_its_attributes() {
    let isa = one_unit();
    let hlo = "ENTRY e { a = f32[1,8] parameter(0)  b = f32[1,8] parameter(1)
  s = f32[1,8] add(a, b)  ROOT p = f32[1,8] multiply(s, b) }";
    let compiled = compile(&isa, hlo, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let alu = compiled.assembly.instrs.iter().filter(|i| isa.instr(i.op).name == "alu");
    let chosen: Vec<_> = alu.map(|i| i.alpha.clone()).collect();
    assert_eq!(chosen, [vec![AttrVal::Int(0)], vec![AttrVal::Int(2)]]);
    assert_eq!(run(&isa, hlo, &compiled, Values::Full, 3).elements, 0);
}

#[test]
fn what_depends_on_a_changing_register_is_never_chosen() {
    let isa = one_unit();
    let hlo = "ENTRY e { a = f32[1,8] parameter(0)  ROOT p = f32[1,8] abs(a) }";
    let error = compile(&isa, hlo, &Options::default()).unwrap_err();
    assert!(matches!(error, CompileError::NoSelection(_)), "{error}");
    let backend = act_generator::Backend::generate(std::sync::Arc::new(isa)).unwrap();
    let text = backend.describe(&Options::default());
    assert!(text.contains("no rule for set_mode: it changes register `mode`"), "{text}");
    assert!(
        text.contains(
            "no rule for by_mode: its slices or semantics depend on register `mode`, which `set_mode` changes"
        ),
        "{text}"
    );
}
