//! Strict mode: hazards are faults with instruction and memory, and a program without them runs as ever.

use crate::matmul::program;
use crate::tile_machine::{DIM, isa};
use act_isa::*;
use act_stitch::simulate::{Check, Executable, Fault, Options, RunError};
use act_stitch::stitched::emit;

fn compile(program: &LoopProgram, strict: bool) -> Executable {
    let isa = isa();
    let options = Options { strict, ..Options::default() };
    Executable::compile_with(&isa, &emit(&isa, program).unwrap(), options).unwrap()
}

fn run(executable: &Executable) -> Result<Counters, RunError> {
    let interface = executable.interface();
    let operands: Vec<Vec<u8>> = interface.operands.iter().map(|&n| vec![3; n as usize]).collect();
    let mut results: Vec<Vec<u8>> = interface.results.iter().map(|&n| vec![0; n as usize]).collect();
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    let mut results: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    executable.run(&operands, &mut results)
}

fn fault(program: &LoopProgram) -> Fault {
    run(&compile(program, false)).unwrap();
    match run(&compile(program, true)) {
        Err(RunError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn instr(name: &str, alpha: &[i64], beta: Vec<BetaVal>) -> Program {
    let op = isa().instr_named(name).unwrap();
    Program::Instr { op, alpha: alpha.iter().map(|&v| AttrVal::Int(v)).collect(), beta }
}

fn on_chip(c0: i64) -> BetaVal {
    BetaVal::Int(Affine::constant(c0))
}

fn at(space: Space, c0: i64) -> BetaVal {
    BetaVal::Hbm(space, Affine::constant(c0))
}

fn load(space: Space, c0: i64) -> Program {
    instr("load", &[DIM, 1, DIM], vec![at(space, c0), on_chip(0)])
}

fn store(space: Space) -> Program {
    instr("store", &[DIM, DIM, 64], vec![on_chip(0), at(space, 0)])
}

fn whole(body: Vec<Program>) -> LoopProgram {
    LoopProgram {
        body: Program::Seq(body),
        operands: vec![256],
        results: vec![1024],
        scratch_bytes: 1024,
        consts: vec![],
    }
}

fn matmul() -> Program {
    instr("matmul", &[], vec![on_chip(0), on_chip(0), on_chip(0)])
}

#[test]
fn a_whole_product_has_no_hazard() {
    let program = program(&isa(), 48, 32, 64);
    let counters = run(&compile(&program, true)).unwrap();
    assert_eq!(counters.unwritten_result_bytes, 0);
    assert_eq!(counters, run(&compile(&program, false)).unwrap());
    // Rows of the accumulator: one tile; of the scratchpad: two.
    assert_eq!(counters.peak_bytes["acc"], 1024);
    assert_eq!(counters.peak_bytes["spad"], 512);
}

#[test]
fn results_that_stay_unwritten_are_counted() {
    let mut program = program(&isa(), 48, 32, 64);
    program.results[0] += 100;
    assert_eq!(run(&compile(&program, true)).unwrap().unwritten_result_bytes, 100);
}

#[test]
fn a_read_of_what_nothing_wrote_is_a_fault() {
    let fault = fault(&whole(vec![load(Space::Operand(0), 0), store(Space::Result(0)), matmul()]));
    assert_eq!(fault.instr, 1);
    let unwritten = Check::Written { slice: Position::Input(0), memory: "acc".into(), offset: 0 };
    assert_eq!(fault.check, unwritten, "{fault}");
}

#[test]
fn scratch_is_unwritten_at_first() {
    let fault = fault(&whole(vec![load(Space::Scratch, 16)]));
    let unwritten = Check::Written { slice: Position::Input(0), memory: "scratch".into(), offset: 16 };
    assert_eq!((fault.instr, &fault.check), (0, &unwritten), "{fault}");
}

#[test]
fn a_load_of_what_was_stored_needs_a_fence() {
    let body = |fence: bool| {
        let mut parts = vec![load(Space::Operand(0), 0), matmul(), store(Space::Scratch)];
        parts.extend(fence.then_some(Program::Fence));
        parts.push(load(Space::Scratch, 768));
        whole(parts)
    };
    let fault = fault(&body(false));
    assert_eq!(fault.instr, 3);
    let unfenced =
        Check::Fenced { slice: Position::Input(0), segment: "scratch".into(), offset: 768, store: 2 };
    assert_eq!(fault.check, unfenced, "{fault}");
    run(&compile(&body(true), true)).unwrap();
}

/// A row that is beyond the scratchpad in the last iteration alone, after two rounds of three executions and two more.
#[test]
fn executions_before_a_fault_are_counted() {
    let (outer, inner) = (LoopId(0), LoopId(1));
    let isa = isa();
    let rows = isa.buffers[0].access[0] as i64;
    let mut row = Affine::constant(rows - DIM - 4);
    row.add_term(outer, 2).unwrap();
    row.add_term(inner, 1).unwrap();
    let last = instr("load", &[DIM, 1, DIM], vec![at(Space::Operand(0), 0), BetaVal::Int(row)]);
    let nest = |iv, trip, body| Program::For { iv, trip, parallel: false, body: Box::new(body) };
    let body = Program::Seq(vec![load(Space::Operand(0), 0), nest(inner, 2, last)]);
    let program = whole(vec![nest(outer, 3, body)]);
    let Err(RunError::Fault(fault)) = run(&compile(&program, false)) else { panic!("no fault") };
    assert_eq!((fault.instr, fault.number), (1, 8), "{fault}");
}

/// Every second byte moved by two within one segment: all are read before any is written.
#[test]
fn copies_within_a_segment_read_first() {
    let view = |space, start, length, step| View {
        space,
        elem: act_hlo::ElemType::U8,
        dims: vec![(length, step)],
        start: Affine::constant(start),
    };
    let copy = |from, to| Program::HostCopy { from, to };
    let program = LoopProgram {
        body: Program::Seq(vec![
            copy(view(Space::Operand(0), 0, 8, 1), view(Space::Scratch, 0, 8, 1)),
            copy(view(Space::Scratch, 0, 3, 2), view(Space::Scratch, 2, 3, 2)),
            copy(view(Space::Scratch, 0, 8, 1), view(Space::Result(0), 0, 8, 1)),
        ]),
        operands: vec![8],
        results: vec![8],
        scratch_bytes: 8,
        consts: vec![],
    };
    let mut result = [0; 8];
    let executable = compile(&program, false);
    executable.run(&[&[1, 2, 3, 4, 5, 6, 7, 8]], &mut [&mut result]).unwrap();
    assert_eq!(result, [1, 2, 1, 4, 3, 6, 5, 8]);
}
