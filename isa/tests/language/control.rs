//! `if` and `repeat` in semantics: what they mean, which names are known where, what a compiler is offered.

use crate::{fault, faults, parse, run};
use act_hlo::{ElemType, Shape};
use act_isa::{AttrVal, BufferId, Cond, Expr, NotSelectable, Oracle};

/// A unit that stores a row as it is, doubled or clipped, by an attribute and a register; and powers by repetition.
const MODES: &str = r#"
isa modes
hbm d0: 4 KiB
buffer v: s32[16, 4 | ]
register clip = 0
register scale = 3

instr load beta(addr, row) {
  in d0[addr :+ 16]
  out v[row :+ 1, 0 :+ 4]
  computation { x = u8[16] parameter(0)  y = u8[4, 4] reshape(x)  z = s32[4] bitcast-convert(y)  ROOT r = s32[1, 4] reshape(z) }
}
instr set alpha(value: 0..1) { update clip = value }
instr apply alpha(mode: {0, 1, 4}, n: 1..4) beta(a, b) {
  in v[a :+ 1, 0 :+ n]
  out v[b :+ 1, 0 :+ n]
  computation {
    x = s32[1, n] parameter(0)
    y = s32[1, n] copy(x)
    if mode == 1 {
      y = s32[1, n] add(x, x)
    } else if mode == 4 {
      k = s32[1, n] constant(scale)
      y = s32[1, n] multiply(x, k)
    }
    ROOT y2 = s32[1, n] copy(y)
  }
}
instr clipped beta(a, b) {
  in v[a :+ 1, 0 :+ 4]
  out v[b :+ 1, 0 :+ 4]
  computation {
    x = s32[1, 4] parameter(0)
    if clip == 1 and scale > 0 {
      zero = s32[1, 4] constant(0)
      y = s32[1, 4] maximum(x, zero)
    } else {
      y = s32[1, 4] negate(x)
    }
    return y
  }
}
instr power alpha(e: 0..3) beta(a, b) {
  in v[a :+ 1, 0 :+ 4]
  out v[b :+ 1, 0 :+ 4]
  computation {
    x = s32[1, 4] parameter(0)
    p = s32[1, 4] constant(1)
    repeat round in e {
      i = s32[1, 4] constant(round)
      repeat inner in 1 {
        p = s32[1, 4] multiply(p, x)
      }
      p2 = s32[1, 4] add(p, i)
      p = s32[1, 4] copy(p2)
    }
    return p
  }
}
"#;

fn row(values: [i32; 4]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Row 1 after loading `x` into row 0 and executing `text`.
fn after(text: &str, x: [i32; 4]) -> Vec<u8> {
    let isa = parse(MODES);
    let oracle = Oracle::new(&isa);
    let operand = row(x);
    let mut machine = oracle.machine(&[&operand], &[], 0, &[]);
    run(&isa, &mut machine, &format!("load addr=operand0 row=0\n{text}")).unwrap_or_else(|e| panic!("{e}"));
    let shape = Shape::new(ElemType::S32, [1, 4]);
    machine.slot_value(BufferId(0), &[1, 0], &shape).unwrap().bytes().to_vec()
}

#[test]
fn branches_follow_attributes_and_registers() {
    let x = [1, -2, 3, -4];
    assert_eq!(after("apply mode=0 n=4 a=0 b=1\n", x), row(x));
    assert_eq!(after("apply mode=1 n=4 a=0 b=1\n", x), row([2, -4, 6, -8]));
    assert_eq!(after("apply mode=4 n=4 a=0 b=1\n", x), row([3, -6, 9, -12]));
    assert_eq!(after("clipped a=0 b=1\n", x), row([-1, 2, -3, 4]));
    assert_eq!(after("set value=1\nclipped a=0 b=1\n", x), row([1, 0, 3, 0]));
    assert_eq!(after("set value=1\nset value=0\nclipped a=0 b=1\n", x), row([-1, 2, -3, 4]));
}

#[test]
fn rounds_take_the_value_of_the_round_before() {
    let x = [2, 3, -1, 0];
    assert_eq!(after("power e=0 a=0 b=1\n", x), row([1, 1, 1, 1]));
    assert_eq!(after("power e=1 a=0 b=1\n", x), row([2, 3, -1, 0]));
    // p1 = x; p2 = x·x + 1; p3 = p2·x + 2.
    assert_eq!(after("power e=2 a=0 b=1\n", x), row([5, 10, 2, 1]));
    assert_eq!(after("power e=3 a=0 b=1\n", x), row([12, 32, 0, 2]));
}

#[test]
fn a_compiler_is_offered_one_flat_computation_per_path() {
    let isa = parse(MODES);
    let id = |name: &str| isa.instr_named(name).unwrap();
    let variants = isa.variants(id("apply")).unwrap();
    let ops = |k: usize| {
        let stmts = &variants[k].computation.stmts;
        stmts.iter().map(|s| s.op.name()).filter(|op| *op != "copy").collect::<Vec<_>>()
    };
    assert_eq!(variants.len(), 3);
    let mode = |v| Cond::Cmp(act_isa::expr::Relation::Eq, Expr::Alpha(0), Expr::Int(v));
    assert_eq!(variants[0].conditions, [mode(1)]);
    assert_eq!(ops(0), ["parameter", "add"]);
    assert_eq!(variants[1].conditions, [Cond::Not(mode(1).into()), mode(4)]);
    assert_eq!(ops(1), ["parameter", "constant", "broadcast", "multiply"]);
    assert_eq!(variants[2].conditions, [Cond::Not(mode(1).into()), Cond::Not(mode(4).into())]);
    assert_eq!(ops(2), ["parameter"]);

    let powers = isa.variants(id("power")).unwrap();
    assert_eq!(powers.len(), 4);
    for (e, variant) in powers.iter().enumerate() {
        let products = variant.computation.stmts.iter().filter(|s| s.op.name() == "multiply").count();
        assert_eq!(products, e);
        let names: std::collections::BTreeSet<&str> =
            variant.computation.stmts.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names.len(), variant.computation.stmts.len(), "names are told apart");
    }
    let reason = isa.variants(id("clipped")).unwrap_err();
    assert!(matches!(reason, NotSelectable::DependsOnRegister { .. }));
    assert!(isa.variants(id("set")).is_err());

    // Every variant is the instruction wherever its conditions hold.
    let selectable = isa.selectable();
    assert_eq!(selectable.excluded.len(), 2);
    for (instr, &origin) in selectable.isa.instrs.iter().zip(&selectable.origin) {
        let whole = isa.instr(origin);
        let alphas: Vec<Vec<AttrVal>> = match whole.name.as_str() {
            "apply" => [0, 1, 4].iter().map(|&m| vec![AttrVal::Int(m), AttrVal::Int(2)]).collect(),
            "power" => (0..4).map(|e| vec![AttrVal::Int(e)]).collect(),
            _ => vec![vec![]],
        };
        let fitting = alphas.iter().filter(|alpha| instr.instantiate(&selectable.isa, alpha).is_ok()).count();
        assert_eq!(fitting, 1, "{}", whole.name);
    }
}

#[test]
fn counts_that_the_attributes_leave_open_are_not_selectable() {
    let text =
        MODES.replace("alpha(e: 0..3)", "alpha(e: 0..5000)").replace("round in e {", "round in min(e, 3) {");
    let isa = parse(&text);
    assert_eq!(isa.variants(isa.instr_named("power").unwrap()), Err(NotSelectable::OpenCount));
    let text = MODES.replace("alpha(e: 0..3)", "alpha(e: 0..100)");
    let isa = parse(&text);
    let many = isa.variants(isa.instr_named("power").unwrap());
    assert!(matches!(many, Err(NotSelectable::TooManyPaths { .. })));
}

#[test]
fn endless_repetition_is_refused_not_tried() {
    let text = MODES.replace("repeat inner in 1 {", "repeat inner in 1000000000000 {");
    assert!(fault(&text).contains("statements or rounds"));
    let text = MODES.replace("repeat inner in 1 {", "repeat inner in round - 1 {");
    assert!(fault(&text).contains("the count is -1"));
    let text = format!("isa t instr x {{ computation {{ {} }} }}", "if 1 < 2 { ".repeat(5000));
    assert!(!fault(&text).is_empty());
}

#[test]
fn faulty_control_flow_is_shown() {
    faults(
        MODES,
        &[
            ("if mode == 1 {", "if mode {", "expected a condition, found a number"),
            ("if mode == 1 {", "if mood == 1 {", "unknown attribute `mood`; the nearest known one is `mode`"),
            (
                "      y = s32[1, 4] maximum(x, zero)",
                "      z = s32[1, 4] maximum(x, zero)",
                "unknown value `y`",
            ),
            ("return y", "return zero", "unknown value `zero`"),
            ("return p\n", "return i\n", "unknown value `i`"),
            ("repeat round in e", "repeat e in 3", "name `e` is declared twice"),
            ("repeat round in e", "repeat round of e", "expected `in` and how often"),
            ("constant(round)", "constant(inner)", "unknown attribute `inner`"),
            (
                "      y = s32[1, n] add(x, x)",
                "      ROOT y = s32[1, n] add(x, x)",
                "an output is named at the end",
            ),
            ("      y = s32[1, n] add(x, x)", "      y = s32[1, n] parameter(0)", "parameters stand outside"),
            (
                "      y = s32[1, n] add(x, x)",
                "      y = s32[1, n] add(x, x) y = s32[1, n] copy(x)",
                "value `y` is declared twice",
            ),
            ("      y = s32[1, n] add(x, x)", "      y = s32[2, n] copy(x)", "for mode = 1"),
            ("      y = s32[1, 4] negate(x)", "      y = s32[1, 4] negate(x) }", "expected"),
            ("      y = s32[1, 4] maximum(x, zero)", "      y = s8[1, 4] convert(x)", "s8[1,4]"),
        ],
    );
}
