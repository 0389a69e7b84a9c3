//! Throughput of the compiled simulator on a 512x512x512 int8 matmul of 16x16x16 tiles, the cost of one call, and the
//! time to compile.

use act_isa::{Affine, AttrVal, BetaVal, Isa, LoopId, LoopProgram, Program, Space};
use act_stitch::simulate::Executable;
use act_stitch::stitched::emit;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DIM: i64 = 16;
const I: LoopId = LoopId(0);
const J: LoopId = LoopId(1);
const K: LoopId = LoopId(2);
/// Half of the rows.
const H: LoopId = LoopId(3);

fn instr(isa: &Isa, name: &str, alpha: &[i64], beta: Vec<BetaVal>) -> Program {
    let op = isa.instr_named(name).expect("an instruction of gemmini");
    Program::Instr { op, alpha: alpha.iter().map(|&v| AttrVal::Int(v)).collect(), beta }
}

fn affine(c0: i64, ivs: &[(LoopId, i64)]) -> Affine {
    Affine { c0, ivs: ivs.to_vec() }
}

fn nest(iv: LoopId, trip: i64, body: Vec<Program>) -> Program {
    Program::For { iv, trip: trip as u64, parallel: false, body: Box::new(Program::Seq(body)) }
}

/// s32[n,n] = s8[n,n] · s8[n,n]. Half of the left operand stays in the scratchpad, a column of tiles of the right one
/// is loaded at a time.
fn matmul(isa: &Isa, n: i64) -> LoopProgram {
    let tiles = n / DIM;
    let half = tiles / 2;
    let hbm = |space, ivs: &[(LoopId, i64)]| BetaVal::Hbm(space, affine(0, ivs));
    let on_chip = |c0, ivs: &[(LoopId, i64)]| BetaVal::Int(affine(c0, ivs));
    // Tile (i, k) of the left operand lies at row (i·tiles + k)·16, tile k of the right one behind all of them.
    let behind = half * tiles * DIM;
    let left = [(I, tiles * DIM), (K, DIM)];
    let load_left = instr(
        isa,
        "mvin",
        &[DIM, DIM, n],
        vec![hbm(Space::Operand(0), &[(I, DIM * n), (K, DIM), (H, half * DIM * n)]), on_chip(0, &left)],
    );
    let load_right = instr(
        isa,
        "mvin",
        &[DIM, DIM, n],
        vec![hbm(Space::Operand(1), &[(J, DIM), (K, DIM * n)]), on_chip(behind, &[(K, DIM)])],
    );
    let first = instr(
        isa,
        "matmul",
        &[DIM, DIM, DIM],
        vec![on_chip(0, &left[..1]), on_chip(behind, &[]), on_chip(0, &[])],
    );
    let rest = instr(
        isa,
        "matmul_acc",
        &[DIM, DIM, DIM],
        vec![on_chip(DIM, &left), on_chip(behind + DIM, &[(K, DIM)]), on_chip(0, &[])],
    );
    let store = instr(
        isa,
        "mvout_acc",
        &[DIM, DIM, 4 * n],
        vec![
            on_chip(0, &[]),
            hbm(Space::Result(0), &[(I, 4 * DIM * n), (J, 4 * DIM), (H, 4 * half * DIM * n)]),
        ],
    );
    let rows = nest(I, half, vec![first, nest(K, tiles - 1, vec![rest]), store]);
    let columns = nest(J, tiles, vec![nest(K, tiles, vec![load_right]), rows]);
    let bytes = (n * n) as u64;
    LoopProgram {
        body: nest(H, 2, vec![nest(I, half, vec![nest(K, tiles, vec![load_left])]), columns]),
        operands: vec![bytes, bytes],
        results: vec![4 * bytes],
        scratch_bytes: 0,
        consts: vec![],
    }
}

fn simulator(c: &mut Criterion) {
    let isa = act_isa::load_target("gemmini").expect("a target of the project");
    for (name, n) in [("one call, 32x32x32", 32), ("512x512x512", 512)] {
        let module = emit(&isa, &matmul(&isa, n)).expect("a well-formed program");
        let executable = Executable::compile(&isa, &module).expect("instructions with simulators");
        let a: Vec<u8> = (0..n * n).map(|k| (k * 7 % 251) as u8).collect();
        let b: Vec<u8> = (0..n * n).map(|k| (k * 11 % 241) as u8).collect();
        let mut result = vec![0; (4 * n * n) as usize];
        let mut group = c.benchmark_group("run");
        group.sample_size(10).throughput(Throughput::Elements((n * n * n) as u64));
        group.bench_function(name, |bench| {
            bench.iter(|| executable.run(&[&a, &b], &mut [&mut result]).expect("no fault"));
        });
        group.finish();
    }
    let module = emit(&isa, &matmul(&isa, 64)).expect("a well-formed program");
    let mut group = c.benchmark_group("compile");
    group.sample_size(10);
    group.bench_function("four instructions", |bench| {
        bench.iter(|| Executable::compile(&isa, &module).expect("instructions with simulators"));
    });
    group.finish();
}

criterion_group!(benches, simulator);
criterion_main!(benches);
