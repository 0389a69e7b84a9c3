//! Instructions with several outputs and operands that are updated in place.

use crate::{faults, parse, run};
use act_hlo::{ElemType, Literal, Shape};
use act_isa::{BufferId, FaultKind, Oracle};

/// Sum and difference of two rows; the sum goes over the first operand.
const BUTTERFLY: &str = r#"
isa butterfly
hbm d0: 4 KiB
buffer v: s8[8, 4 | ]
instr load beta(addr, row) {
  in d0[addr :+ 4]
  out v[row :+ 1, 0 :+ 4]
  computation { x = u8[4] parameter(0)  y = s8[4] bitcast-convert(x)  ROOT z = s8[1, 4] reshape(y) }
}
instr butterfly alpha(n: 1..4) beta(a, b, d) {
  in v[a :+ 1, 0 :+ n]
  in v[b :+ 1, 0 :+ n]
  out v[a :+ 1, 0 :+ n]
  out v[d :+ 1, 0 :+ n]
  computation {
    x = s8[1, n] parameter(0)
    y = s8[1, n] parameter(1)
    sum = s8[1, n] add(x, y)
    difference = s8[1, n] subtract(x, y)
    return sum, difference
  }
}
"#;

fn row(values: [i8; 4]) -> Literal {
    Literal::from_bytes(Shape::new(ElemType::S8, [1, 4]), values.map(|v| v as u8).to_vec()).unwrap()
}

#[test]
fn all_operands_are_read_before_anything_is_written() {
    let isa = parse(BUTTERFLY);
    assert_eq!(isa.instrs[1].updates_in_place(0), Some(0));
    assert_eq!(isa.instrs[1].updates_in_place(1), None);
    let oracle = Oracle::new(&isa);
    let data = [1, 2, 3, 4, 10, 20, 30, 40];
    let mut machine = oracle.machine(&[&data], &[], 0, &[]);
    run(&isa, &mut machine, "load addr=operand0 row=0\nload addr=operand0+4 row=1\n").unwrap();
    // The difference goes over the second operand.
    run(&isa, &mut machine, "butterfly n=4 a=0 b=1 d=1\n").unwrap();
    let shape = row([0; 4]).shape().clone();
    assert_eq!(machine.slot_value(BufferId(0), &[0, 0], &shape).unwrap(), row([11, 22, 33, 44]));
    assert_eq!(machine.slot_value(BufferId(0), &[1, 0], &shape).unwrap(), row([-9, -18, -27, -36]));
    // The operand that is updated in place does not count as moved; the other one does.
    assert_eq!(machine.finish().0.bytes_between("v", "v"), 4);
}

#[test]
fn outputs_that_meet_are_a_fault() {
    let isa = parse(BUTTERFLY);
    let oracle = Oracle::new(&isa);
    let mut machine = oracle.machine(&[&[1; 8]], &[], 0, &[]);
    run(&isa, &mut machine, "load addr=operand0 row=0\nload addr=operand0+4 row=1\n").unwrap();
    let fault = run(&isa, &mut machine, "butterfly n=2 a=0 b=1 d=0\n").unwrap_err();
    assert_eq!((fault.number, fault.instr.as_str(), fault.buffer.as_str()), (2, "butterfly", "v"));
    assert_eq!(fault.what, FaultKind::OverlappingOutputs { output: 1 });
    // Boxes that share a row only partly.
    let text = BUTTERFLY.replace("out v[d :+ 1, 0 :+ n]", "out v[d :+ 1, 2 :+ n]").replace("1..4", "1..2");
    let isa = parse(&text);
    let oracle = Oracle::new(&isa);
    for (n, fine) in [(1, true), (2, true)] {
        let mut machine = oracle.machine(&[&[1; 8]], &[], 0, &[]);
        run(&isa, &mut machine, "load addr=operand0 row=0\nload addr=operand0+4 row=1\n").unwrap();
        let done = run(&isa, &mut machine, &format!("butterfly n={n} a=0 b=1 d=0\n"));
        assert_eq!(done.is_ok(), fine);
    }
    let text = BUTTERFLY.replace("out v[d :+ 1, 0 :+ n]", "out v[d :+ 1, 1 :+ n]").replace("1..4", "1..2");
    let isa = parse(&text);
    let oracle = Oracle::new(&isa);
    for (n, fine) in [(1, true), (2, false)] {
        let mut machine = oracle.machine(&[&[1; 8]], &[], 0, &[]);
        run(&isa, &mut machine, "load addr=operand0 row=0\nload addr=operand0+4 row=1\n").unwrap();
        let done = run(&isa, &mut machine, &format!("butterfly n={n} a=0 b=1 d=0\n"));
        assert_eq!(done.is_ok(), fine);
    }
}

#[test]
fn faulty_outputs_are_shown() {
    faults(
        BUTTERFLY,
        &[
            ("return sum, difference", "return sum", "expected 2, got 1"),
            ("out v[d :+ 1", "out v[a :+ 1", "the same slice as an earlier output"),
            ("return sum, difference", "return sum, diff", "unknown value `diff`"),
            ("difference = s8[1, n] subtract", "difference = s16[1, n] subtract", "declared s16[1,1]"),
        ],
    );
}
