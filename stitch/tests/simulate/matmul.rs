//! Matrix products as loop programs, against a plain triple loop.

use crate::tile_machine::{DIM, isa};
use act_isa::*;
use act_stitch::simulate::{Check, Executable, LowerError, RunError};
use act_stitch::stitched::{StitchedModule, emit};

const I: LoopId = LoopId(0);
const J: LoopId = LoopId(1);
const K: LoopId = LoopId(2);

pub(crate) fn affine(c0: i64, ivs: &[(LoopId, i64)]) -> Affine {
    Affine { c0, ivs: ivs.to_vec() }
}

fn instr(isa: &Isa, name: &str, alpha: &[i64], beta: Vec<BetaVal>) -> Program {
    let alpha = alpha.iter().map(|&v| AttrVal::Int(v)).collect();
    Program::Instr { op: isa.instr_named(name).unwrap(), alpha, beta }
}

fn at(c0: i64) -> BetaVal {
    BetaVal::Int(Affine::constant(c0))
}

fn nest(iv: LoopId, trip: i64, body: Vec<Program>) -> Program {
    Program::For { iv, trip: trip as u64, parallel: false, body: Box::new(Program::Seq(body)) }
}

/// s32[m,n] = s8[m,k] · s8[k,n], tiles of 16, one accumulator tile per result tile.
pub(crate) fn program(isa: &Isa, m: i64, n: i64, k: i64) -> LoopProgram {
    let a = |k0: i64| BetaVal::Hbm(Space::Operand(0), affine(k0 * DIM, &[(I, DIM * k), (K, DIM)]));
    let b = |k0: i64| BetaVal::Hbm(Space::Operand(1), affine(k0 * DIM * n, &[(J, DIM), (K, DIM * n)]));
    let first = |space| {
        BetaVal::Hbm(
            space,
            if space == Space::Operand(0) { affine(0, &[(I, DIM * k)]) } else { affine(0, &[(J, DIM)]) },
        )
    };
    let body = vec![
        instr(isa, "load", &[DIM, 1, k], vec![first(Space::Operand(0)), at(0)]),
        instr(isa, "load", &[DIM, 1, n], vec![first(Space::Operand(1)), at(DIM)]),
        instr(isa, "matmul", &[], vec![at(0), at(DIM), at(0)]),
        nest(
            K,
            k / DIM - 1,
            vec![
                instr(isa, "load", &[DIM, 1, k], vec![a(1), at(0)]),
                instr(isa, "load", &[DIM, 1, n], vec![b(1), at(DIM)]),
                instr(isa, "matmul_acc", &[], vec![at(0), at(DIM), at(0)]),
            ],
        ),
        instr(
            isa,
            "store",
            &[DIM, DIM, 4 * n],
            vec![at(0), BetaVal::Hbm(Space::Result(0), affine(0, &[(I, 4 * DIM * n), (J, 4 * DIM)]))],
        ),
    ];
    LoopProgram {
        body: nest(I, m / DIM, vec![nest(J, n / DIM, body)]),
        operands: vec![(m * k) as u64, (k * n) as u64],
        results: vec![(4 * m * n) as u64],
        scratch_bytes: 0,
        consts: vec![],
    }
}

/// Bytes of both signs without a pattern that a permutation keeps.
pub(crate) fn bytes(len: i64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

fn reference(a: &[u8], b: &[u8], m: usize, n: usize, k: usize) -> Vec<u8> {
    let mut c = vec![0i32; m * n];
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                c[i * n + j] += i32::from(a[i * k + p] as i8) * i32::from(b[p * n + j] as i8);
            }
        }
    }
    c.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn product_of_several_tiles() {
    let isa = isa();
    let (m, n, k) = (48, 32, 64);
    let module = emit(&isa, &program(&isa, m, n, k)).unwrap();
    let executable = Executable::compile(&isa, &module).unwrap();
    let (a, b) = (bytes(m * k, 1), bytes(k * n, 2));
    let mut c = vec![0; (4 * m * n) as usize];
    let counters = executable.run(&[&a, &b], &mut [&mut c]).unwrap();
    assert_eq!(c, reference(&a, &b, m as usize, n as usize, k as usize));
    let tiles = 3 * 2;
    assert_eq!(counters.instructions["matmul"], tiles);
    assert_eq!(counters.instructions["matmul_acc"], tiles * 3);
    assert_eq!(counters.instructions["load"], tiles * 4 * 2);
    assert_eq!(counters.bytes_between("d0", "spad"), tiles * 4 * 2 * 256);
    assert_eq!(counters.bytes_between("acc", "d0"), tiles * 1024);
    assert_eq!(counters.cycles, 3 * tiles * (1 + 3 + 8 + 1));
}

/// The text is what runs: another address in it, another result.
#[test]
fn an_edited_address_changes_the_result() {
    let isa = isa();
    let (m, n, k) = (16, 16, 16);
    let text = emit(&isa, &program(&isa, m, n, k)).unwrap().text().to_owned();
    let (a, b) = (bytes(m * k, 1), bytes(k * n, 2));
    let run = |text: &str| {
        let executable = Executable::compile(&isa, &StitchedModule::parse(text).unwrap()).unwrap();
        let mut c = vec![0; (4 * m * n) as usize];
        executable.run(&[&a, &b], &mut [&mut c]).map(|_| c)
    };
    let right = run(&text).unwrap();
    assert_eq!(right, reference(&a, &b, 16, 16, 16));
    // The second operand is read from the address of the first.
    let edited = text.replace("%operand1 : !llvm.ptr to i64", "%operand0 : !llvm.ptr to i64");
    assert_ne!(edited, text);
    assert_eq!(run(&edited).unwrap(), reference(&a, &a, 16, 16, 16));
    // A store into an operand is refused.
    let edited = text.replace("%result0 : !llvm.ptr to i64", "%operand0 : !llvm.ptr to i64");
    let Err(RunError::Fault(fault)) = run(&edited) else { panic!("no fault") };
    assert_eq!(fault.check, Check::ReadOnly { slice: Position::Output(0), segment: "operand0".into() });
    assert!(fault.text.starts_with("store"), "{fault}");
}

/// Every run has a machine of its own.
#[test]
fn runs_are_independent() {
    let isa = isa();
    let (m, n, k) = (32, 32, 48);
    let executable = Executable::compile(&isa, &emit(&isa, &program(&isa, m, n, k)).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let executable = &executable;
            scope.spawn(move || {
                for round in 0..50 {
                    let (a, b) = (bytes(m * k, seed * 100 + round), bytes(k * n, seed));
                    let mut c = vec![0; (4 * m * n) as usize];
                    executable.run(&[&a, &b], &mut [&mut c]).unwrap();
                    assert_eq!(c, reference(&a, &b, m as usize, n as usize, k as usize));
                }
            });
        }
    });
}

#[test]
fn bad_text_and_bad_buffers_are_errors() {
    let isa = isa();
    let text = emit(&isa, &program(&isa, 16, 16, 16)).unwrap().text().to_owned();
    let compile = |text: &str| Executable::compile(&isa, &StitchedModule::parse(text).unwrap());
    assert!(StitchedModule::parse(&text.replace("return", "retrun")).is_err());
    assert!(StitchedModule::parse(&text.replace("@kernel", "@other")).is_err());
    assert!(matches!(compile(&text.replace("matmul a", "matmil a")), Err(LowerError::AsmText(_))));
    assert!(matches!(compile(&text.replace("rows=16", "rows=17")), Err(LowerError::Instantiate { .. })));
    let executable = compile(&text).unwrap();
    let (a, b, mut c) = (bytes(256, 1), bytes(256, 2), vec![0; 1024]);
    assert!(matches!(executable.run(&[&a], &mut [&mut c]), Err(RunError::Count { .. })));
    assert!(matches!(executable.run(&[&a, &b[1..]], &mut [&mut c]), Err(RunError::Size { .. })));
    // Row 1020 of 1024 has no 16 rows behind it.
    let fault = compile(&text.replace("constant 16 : i64", "constant 1020 : i64")).unwrap();
    let Err(RunError::Fault(fault)) = fault.run(&[&a, &b], &mut [&mut c]) else { panic!("no fault") };
    assert!(matches!(&fault.check, Check::BufferBounds { buffer, .. } if buffer == "spad"), "{fault}");
}
