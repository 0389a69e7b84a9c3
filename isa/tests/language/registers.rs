//! Control registers: a queue of weights as in Google's first TPU (Jouppi 2017, section 2: weights pass through a queue
//! four tiles deep), and a mode register.

use crate::{faults, parse, run};
use act_isa::{FaultKind, NotSelectable, Oracle};

const FIFO: &str = r#"
isa fifo
hbm d0: 1 MiB
buffer queue: u8[4 | 2] nospill
buffer weights: u8[1 | 2] init 9
register push = 0
register pop = -1
register held = 0

instr read_weights beta(addr) {
  in d0[addr :+ 2]
  out queue[push :+ 1]
  require held < 4
  update push = (push + 1) % 4
  update held = held + 1
  computation { x = u8[2] parameter(0)  ROOT y = u8[1, 2] reshape(x) }
}
instr shift {
  in queue[(pop + 1) % 4 :+ 1]
  out weights[0 :+ 1]
  require held > 0
  update pop = (pop + 1) % 4
  update held = held - 1
  computation { x = u8[1, 2] parameter(0)  ROOT y = u8[1, 2] copy(x) }
}
// Both read the old values.
instr swap { update push = pop  update pop = push }
instr store beta(addr) {
  in weights[0 :+ 1]
  out d0[addr :+ 2]
  require held >= 0
  computation { x = u8[1, 2] parameter(0)  ROOT y = u8[2] reshape(x) }
}
"#;

#[test]
fn tiles_leave_the_queue_in_the_order_they_came() {
    let isa = parse(FIFO);
    let oracle = Oracle::new(&isa);
    let data: Vec<u8> = (0..12).collect();
    let mut machine = oracle.machine(&[&data], &[14], 0, &[]);
    run(&isa, &mut machine, "store addr=result0\n").unwrap();
    let reads: String = (0..4).map(|k| format!("read_weights addr=operand0+{}\n", 2 * k)).collect();
    run(&isa, &mut machine, &reads).unwrap();
    assert_eq!((machine.register("push"), machine.register("held")), (Some(0), Some(4)));
    // A fifth tile does not fit, and the refused instruction changes nothing.
    let fault = run(&isa, &mut machine, "read_weights addr=operand0+8\n").unwrap_err();
    assert!(fault.to_string().contains("instruction 5 (read_weights)"), "{fault}");
    assert_eq!(machine.register("push"), Some(0));
    run(&isa, &mut machine, "shift\nstore addr=result0+2\nread_weights addr=operand0+8\n").unwrap();
    for k in 2..6 {
        run(&isa, &mut machine, &format!("shift\nstore addr=result0+{}\n", 2 * k)).unwrap();
    }
    let fault = run(&isa, &mut machine, "shift\n").unwrap_err();
    assert!(matches!(fault.what, FaultKind::Semantics(_) | FaultKind::Requirement { .. }), "{fault}");
    let (counters, results) = machine.finish();
    // The buffer's initial value, then tiles 0, 1, 2, 3, 4 though the fifth lies in slot 0 again.
    assert_eq!(results[0][..12], [9, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(counters.instructions["shift"], 5);
}

#[test]
fn updates_of_one_instruction_read_the_old_values() {
    let isa = parse(FIFO);
    let oracle = Oracle::new(&isa);
    let mut machine = oracle.machine(&[], &[], 0, &[]);
    run(&isa, &mut machine, "swap\n").unwrap();
    assert_eq!((machine.register("push"), machine.register("pop")), (Some(-1), Some(0)));
    // A run starts with the declared values.
    assert_eq!(oracle.machine(&[], &[], 0, &[]).register("push"), Some(0));
    // The slot -1 does not exist.
    let mut machine = oracle.machine(&[&[1, 2]], &[], 0, &[]);
    let fault = run(&isa, &mut machine, "swap\nread_weights addr=operand0\n").unwrap_err();
    assert_eq!((fault.number, fault.instr.as_str(), fault.buffer.as_str()), (1, "read_weights", "queue"));
    assert!(matches!(fault.what, FaultKind::OutOfSlots { start: -1, .. }));
}

#[test]
fn costs_and_semantics_follow_the_registers() {
    let isa = parse(
        "isa t hbm d0: 64 buffer r: s8[2 | ] register level = 1 register fixed = 5
         instr raise alpha(step: {1, 4}) { update level = level + step * fixed cost level }
         instr put beta(at) { out r[at :+ 1] computation { ROOT y = s8[1] constant(level) } }",
    );
    let oracle = Oracle::new(&isa);
    let mut machine = oracle.machine(&[], &[], 0, &[]);
    run(&isa, &mut machine, "put at=0\nraise step=4\nput at=1\nraise step=1\n").unwrap();
    let shape = act_hlo::Shape::new(act_hlo::ElemType::S8, [2]);
    let value = machine.slot_value(act_isa::BufferId(0), &[0], &shape).unwrap();
    assert_eq!(value.bytes(), [1, 21]);
    // put, raise at level 1, put, raise at level 21.
    assert_eq!(machine.finish().0.cycles, 1 + 1 + 1 + 21);
    // 2 lies between the values of the set.
    assert!(act_isa::parse_assembly(&isa, "raise step=2\n").is_ok());
    let mut machine = oracle.machine(&[], &[], 0, &[]);
    assert!(run(&isa, &mut machine, "raise step=2\n").is_err());
    let mut machine = oracle.machine(&[], &[], 0, &[]);
    let fault = run(
        &isa,
        &mut machine,
        "raise step=4\nraise step=4\nraise step=4\nraise step=4\nraise step=4\nraise step=4\nraise step=4\nput at=0\n",
    );
    // 141 is no s8.
    assert!(fault.unwrap_err().to_string().contains("141 is no s8"));
}

#[test]
fn the_compiler_is_told_what_it_may_not_select() {
    let isa = parse(FIFO);
    let reason = |name: &str| isa.not_selectable(isa.instr_named(name).unwrap());
    assert_eq!(reason("read_weights"), Some(NotSelectable::ChangesRegister { register: "push".to_owned() }));
    assert_eq!(reason("swap"), Some(NotSelectable::ChangesRegister { register: "push".to_owned() }));
    // A requirement over a register that changes is judged by its initial value.
    assert_eq!(reason("store"), None);
    let isa = parse(&FIFO.replace("update pop = (pop + 1) % 4\n  update held = held - 1\n", ""));
    let shift = isa.not_selectable(isa.instr_named("shift").unwrap()).unwrap();
    assert_eq!(shift.to_string(), "its slices or semantics depend on register `pop`, which `swap` changes");
    let fixed = isa.print().replace("update push = pop", "").replace("update pop = push", "update held = 0");
    let isa = parse(&fixed);
    assert_eq!(isa.not_selectable(isa.instr_named("shift").unwrap()), None);
    assert!(!isa.mutable_registers().contains(&1));
}

#[test]
fn faulty_updates_are_shown() {
    faults(
        FIFO,
        &[
            (
                "update push = pop",
                "update psh = pop",
                "unknown register `psh`; the nearest known one is `push`",
            ),
            ("update pop = push", "update push = 1", "has a second update of the register"),
            ("update pop = push", "update pop = push and 1 < 2", "expected an integer, found a condition"),
            ("update pop = push", "update pop = pushh", "unknown attribute `pushh`"),
            ("(push + 1) % 4", "(push + 1) % 0", "the new value: division by zero"),
            (
                "instr swap { update push = pop  update pop = push }",
                "instr swap { }",
                "has no `out` slice and no `update`",
            ),
            ("u8[1 | 2] init 9", "u8[1 | 2] init 256", "256 is no u8"),
            ("u8[1 | 2] init 9", "u8[1 | 2] init 9 init 8", "buffer `weights` has a second initial value"),
            ("nospill", "nospill nospill", "buffer `queue` has a second `nospill`"),
            ("read_weights beta", "read_weights alpha(k: {}) beta", "expected a value, found `{}`"),
        ],
    );
}
