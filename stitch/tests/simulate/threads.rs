//! Loops on several threads: the same results, buffers and counters as on one, and loops that only look independent.

use crate::matmul::{bytes, program};
use crate::tile_machine::isa;
use act_isa::*;
use act_stitch::simulate::Executable;
use act_stitch::stitched::emit;

/// The program with the attribute set on loops that `permitted` names.
fn permit(program: &Program, permitted: &dyn Fn(LoopId) -> bool) -> Program {
    match program {
        Program::Seq(parts) => Program::Seq(parts.iter().map(|p| permit(p, permitted)).collect()),
        Program::For { iv, trip, body, .. } => {
            let body = Box::new(permit(body, permitted));
            Program::For { iv: *iv, trip: *trip, parallel: permitted(*iv), body }
        }
        other => other.clone(),
    }
}

struct Outcome {
    result: Vec<u8>,
    buffers: Vec<Vec<u8>>,
    counters: Counters,
    parallel: usize,
}

fn run(isa: &Isa, program: &LoopProgram, operands: &[&[u8]]) -> Outcome {
    let executable = Executable::compile(isa, &emit(isa, program).unwrap()).unwrap();
    let mut buffers: Vec<Vec<u8>> = isa
        .buffers
        .iter()
        .map(|b| {
            let dims = [b.access.as_slice(), b.unit.as_slice()].concat();
            bytes(act_hlo::Shape::new(b.elem, dims).bytes() as i64, 77)
        })
        .collect();
    let mut result = vec![0; program.results[0] as usize];
    let counters = executable.run_on_chip(operands, &mut [&mut result], &mut buffers).unwrap();
    Outcome { result, buffers, counters, parallel: executable.parallel_loops() }
}

/// Runs with and without permission; gives how many loops were shared out.
fn compare(program: &LoopProgram, permitted: &dyn Fn(LoopId) -> bool) -> usize {
    let isa = isa();
    let operands: Vec<Vec<u8>> =
        program.operands.iter().enumerate().map(|(k, &n)| bytes(n as i64, k as u64)).collect();
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    let alone =
        run(&isa, &LoopProgram { body: permit(&program.body, &|_| false), ..program.clone() }, &operands);
    let shared = LoopProgram { body: permit(&program.body, permitted), ..program.clone() };
    let mut parallel = 0;
    for _ in 0..20 {
        let outcome = run(&isa, &shared, &operands);
        assert!(outcome.result == alone.result, "the results differ");
        assert!(outcome.buffers == alone.buffers, "the buffers differ");
        assert_eq!(outcome.counters, alone.counters);
        parallel = outcome.parallel;
    }
    assert_eq!(alone.parallel, 0);
    parallel
}

#[test]
fn tiles_run_on_several_threads() {
    let program = program(&isa(), 128, 144, 128);
    // Rows, columns (strided windows that interleave), and both: the outer one is taken.
    assert_eq!(compare(&program, &|iv| iv == LoopId(0)), 1);
    assert_eq!(compare(&program, &|iv| iv == LoopId(1)), 1);
    assert_eq!(compare(&program, &|iv| iv.0 < 2), 1);
}

#[test]
fn a_sum_over_iterations_stays_on_one_thread() {
    let program = program(&isa(), 128, 128, 128);
    assert_eq!(compare(&program, &|iv| iv == LoopId(2)), 0);
}

fn instr(name: &str, alpha: &[i64], beta: Vec<BetaVal>) -> Program {
    let op = isa().instr_named(name).unwrap();
    Program::Instr { op, alpha: alpha.iter().map(|&v| AttrVal::Int(v)).collect(), beta }
}

fn on_chip(c0: i64, ivs: &[(LoopId, i64)]) -> BetaVal {
    BetaVal::Int(Affine { c0, ivs: ivs.to_vec() })
}

fn at(space: Space, c0: i64, ivs: &[(LoopId, i64)]) -> BetaVal {
    BetaVal::Hbm(space, Affine { c0, ivs: ivs.to_vec() })
}

fn nest(iv: LoopId, trip: u64, body: Vec<Program>) -> Program {
    Program::For { iv, trip, parallel: true, body: Box::new(Program::Seq(body)) }
}

const I: LoopId = LoopId(0);
const J: LoopId = LoopId(1);
const TRIP: u64 = 256;

fn whole(body: Vec<Program>, result: u64) -> LoopProgram {
    LoopProgram {
        body: Program::Seq(body),
        operands: vec![1 << 16],
        results: vec![result],
        scratch_bytes: 0,
        consts: vec![],
    }
}

/// What was loaded before the loop is read by all threads.
#[test]
fn panels_from_before_the_loop_are_seen() {
    let panel = nest(
        J,
        4,
        vec![instr(
            "load",
            &[16, 1, 16],
            vec![at(Space::Operand(0), 0, &[(J, 256)]), on_chip(0, &[(J, 16)])],
        )],
    );
    let tile = vec![
        instr("load", &[16, 1, 16], vec![at(Space::Operand(0), 1024, &[(I, 16)]), on_chip(64, &[])]),
        instr("matmul", &[], vec![on_chip(16, &[]), on_chip(64, &[]), on_chip(0, &[])]),
        instr("store", &[16, 16, 64], vec![on_chip(0, &[]), at(Space::Result(0), 0, &[(I, 1024)])]),
    ];
    let program = whole(vec![panel, nest(I, TRIP, tile)], TRIP * 1024);
    assert_eq!(compare(&program, &|_| true), 1);
}

/// The accumulator goes from one iteration to the next.
#[test]
fn state_carried_on_chip_keeps_the_loop_on_one_thread() {
    let tile = vec![
        instr("load", &[16, 1, 16], vec![at(Space::Operand(0), 0, &[(I, 16)]), on_chip(0, &[])]),
        instr("matmul_acc", &[], vec![on_chip(0, &[]), on_chip(0, &[]), on_chip(0, &[])]),
        instr("store", &[16, 16, 64], vec![on_chip(0, &[]), at(Space::Result(0), 0, &[(I, 1024)])]),
    ];
    let program = whole(vec![nest(I, TRIP, tile)], TRIP * 1024);
    assert_eq!(compare(&program, &|_| true), 0);
}

/// Every iteration writes another place, and all of them are looked at afterwards.
#[test]
fn places_on_chip_that_move_with_the_loop_keep_it_on_one_thread() {
    let load = instr("load", &[16, 1, 16], vec![at(Space::Operand(0), 0, &[(I, 16)]), on_chip(0, &[(I, 1)])]);
    let after = vec![
        nest(I, 1000, vec![load]),
        instr("matmul", &[], vec![on_chip(3, &[]), on_chip(980, &[]), on_chip(0, &[])]),
        instr("store", &[16, 16, 64], vec![on_chip(0, &[]), at(Space::Result(0), 0, &[])]),
    ];
    assert_eq!(compare(&whole(after, 1024), &|_| true), 0);
}

/// Every iteration stores where the last one did.
#[test]
fn stores_that_overlap_keep_the_loop_on_one_thread() {
    for step in [0, 512] {
        let tile = vec![
            instr("load", &[16, 1, 16], vec![at(Space::Operand(0), 0, &[(I, 16)]), on_chip(0, &[])]),
            instr("matmul", &[], vec![on_chip(0, &[]), on_chip(0, &[]), on_chip(0, &[])]),
            instr("store", &[16, 16, 64], vec![on_chip(0, &[]), at(Space::Result(0), 0, &[(I, step)])]),
        ];
        let program = whole(vec![nest(I, TRIP, tile)], TRIP * 1024);
        assert_eq!(compare(&program, &|_| true), 0, "step {step}");
    }
}
