//! The oracle's strict mode: loads of main memory that overtake a store.

use act_isa::{Fault, FaultKind, Isa, Oracle, load_target, parse_program, targets};

/// Runs a program on gemmini with a zeroed operand of 64 bytes, a result of 64 and scratch of 64.
fn run(isa: &Isa, strict: bool, body: &str) -> Result<(), Fault> {
    let text = format!("operands 64\nresults 64\nscratch 64\n{body}");
    let program = parse_program(isa, &text).unwrap_or_else(|e| panic!("{e}"));
    let oracle = if strict { Oracle::new(isa).strict() } else { Oracle::new(isa) };
    oracle.run(&program, &[&[0; 64]], &mut [vec![]]).map(|_| ())
}

const LOAD: &str = "config_ld 16, 1.0\nmvin operand0, sp[0], 4, 16\n";
const SPILL: &str = "config_st 16\nmvout scratch, sp[0], 2, 16\n";
const RELOAD: &str = "config_ld 16, 1.0\nmvin scratch, sp[8], 2, 16\n";

#[test]
fn a_load_may_not_overtake_the_store_of_its_bytes() {
    let isa = load_target("gemmini").unwrap();
    let program = format!("{LOAD}{SPILL}{RELOAD}");
    assert_eq!(run(&isa, false, &program), Ok(()));
    let fault = run(&isa, true, &program).unwrap_err();
    assert_eq!((fault.number, fault.instr.as_str(), fault.buffer.as_str()), (2, "mvin", "scratch"));
    assert_eq!(fault.what, FaultKind::Unfenced { offset: 0, store: 1 });
    assert!(fault.to_string().contains("no fence follows its store by instruction 1"), "{fault}");
    assert_eq!(run(&isa, true, &format!("{LOAD}{SPILL}fence\n{RELOAD}")), Ok(()));
    // A fence before the store orders nothing behind it.
    assert!(run(&isa, true, &format!("{LOAD}fence\n{SPILL}{RELOAD}")).is_err());
}

#[test]
fn only_bytes_that_were_stored_wait() {
    let isa = load_target("gemmini").unwrap();
    // Both rows are stored 32 bytes apart; the gap between them was stored and fenced before.
    let gap = "config_st 16\nmvout scratch+16, sp[0], 1, 16\nfence\n";
    let apart = "config_st 32\nmvout scratch, sp[0], 2, 16\n";
    let load = |at: u64| format!("config_ld 16, 1.0\nmvin scratch+{at}, sp[8], 1, 16\n");
    assert_eq!(run(&isa, true, &format!("{LOAD}{gap}{apart}{}", load(16))), Ok(()));
    let fault = run(&isa, true, &format!("{LOAD}{gap}{apart}{}", load(17))).unwrap_err();
    assert_eq!(fault.what, FaultKind::Unfenced { offset: 32, store: 2 });
    // Another segment, the scratchpad, and a store over a store are no loads.
    assert_eq!(run(&isa, true, &format!("{LOAD}{SPILL}{SPILL}{LOAD}")), Ok(()));
}

#[test]
fn loops_and_the_host_are_no_fences() {
    let isa = load_target("gemmini").unwrap();
    let round = |fence: &str| format!("{LOAD}{SPILL}fence\nfor %i0 in 0..2 {{\n{RELOAD}{SPILL}{fence}}}\n");
    let fault = run(&isa, true, &round("")).unwrap_err();
    // The second round loads what the first stored.
    assert_eq!((fault.number, fault.what), (4, FaultKind::Unfenced { offset: 0, store: 3 }));
    assert_eq!(run(&isa, true, &round("fence\n")), Ok(()));
    let copy = "host_copy s8 scratch[16 by 1] -> s8 result0[16 by 1]\n";
    let fault = run(&isa, true, &format!("{LOAD}{SPILL}{copy}")).unwrap_err();
    assert_eq!(
        (fault.instr.as_str(), fault.what),
        ("host_copy", FaultKind::Unfenced { offset: 0, store: 1 })
    );
    assert_eq!(run(&isa, true, &format!("{LOAD}{SPILL}fence\n{copy}")), Ok(()));
}

#[test]
fn ordered_memory_needs_no_fence() {
    let mut isa = load_target("gemmini").unwrap();
    let program = format!("{LOAD}{SPILL}{RELOAD}");
    assert!(run(&isa, true, &program).is_err());
    isa.hbm.ordered = true;
    assert_eq!(run(&isa, true, &program), Ok(()));
    // Bytes that nothing wrote stay a fault.
    let fault = run(&isa, true, &format!("{LOAD}{RELOAD}")).unwrap_err();
    assert_eq!(fault.what, FaultKind::Uninitialised { offset: 0 });
    // Of the targets, those whose instructions an x86 processor executes.
    let ordered = targets().iter().filter(|(name, _)| load_target(name).unwrap().hbm.ordered);
    assert_eq!(ordered.map(|(name, _)| *name).collect::<Vec<_>>(), ["amx", "x86"]);
}
