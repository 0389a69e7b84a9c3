//! Throughput of the compiled simulator beside a plain loop nest on the host, in one run: a 512x512x512 int8 matmul on
//! gemmini, 1024x1024x1024 f32 and bf16 matmuls on trainium; the cost of one call; the time to compile.
#![allow(clippy::print_stdout, reason = "ratios of one run are what the bench is for")]

use act_isa::{Affine, AttrVal, BetaVal, Isa, LoopId, LoopProgram, Program, Space};
use act_stitch::simulate::Executable;
use act_stitch::stitched::emit;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::time::Instant;

const I: LoopId = LoopId(0);
const J: LoopId = LoopId(1);
const K: LoopId = LoopId(2);
/// Half of the rows.
const H: LoopId = LoopId(3);

fn instr(isa: &Isa, name: &str, alpha: &[i64], beta: Vec<BetaVal>) -> Program {
    let op = isa.instr_named(name).expect("an instruction of the target");
    Program::Instr { op, alpha: alpha.iter().map(|&v| AttrVal::Int(v)).collect(), beta }
}

fn affine(c0: i64, ivs: &[(LoopId, i64)]) -> Affine {
    Affine { c0, ivs: ivs.to_vec() }
}

fn on_chip(c0: i64, ivs: &[(LoopId, i64)]) -> BetaVal {
    BetaVal::Int(affine(c0, ivs))
}

fn hbm(space: Space, ivs: &[(LoopId, i64)]) -> BetaVal {
    BetaVal::Hbm(space, affine(0, ivs))
}

fn nest(iv: LoopId, trip: i64, parallel: bool, body: Vec<Program>) -> Program {
    Program::For { iv, trip: trip as u64, parallel, body: Box::new(Program::Seq(body)) }
}

fn whole(body: Program, operand: i64, result: i64) -> LoopProgram {
    let (operand, result) = (operand as u64, result as u64);
    LoopProgram {
        body,
        operands: vec![operand, operand],
        results: vec![result],
        scratch_bytes: 0,
        consts: vec![],
    }
}

/// s32[n,n] = s8[n,n] · s8[n,n] in tiles of 16. Half of the left operand stays in the scratchpad, a column of tiles of
/// the right one is loaded at a time.
fn gemmini(isa: &Isa, n: i64) -> LoopProgram {
    const DIM: i64 = 16;
    let (tiles, half) = (n / DIM, n / DIM / 2);
    // Tile (i, k) of the left operand lies at row (i·tiles + k)·16, tile k of the right one behind all of them.
    let behind = half * tiles * DIM;
    let left = [(I, tiles * DIM), (K, DIM)];
    let from = hbm(Space::Operand(0), &[(I, DIM * n), (K, DIM), (H, half * DIM * n)]);
    let load_left = instr(isa, "mvin", &[DIM, DIM, n], vec![from, on_chip(0, &left)]);
    let from = hbm(Space::Operand(1), &[(J, DIM), (K, DIM * n)]);
    let load_right = instr(isa, "mvin", &[DIM, DIM, n], vec![from, on_chip(behind, &[(K, DIM)])]);
    let slices = vec![on_chip(0, &left[..1]), on_chip(behind, &[]), on_chip(0, &[])];
    let first = instr(isa, "matmul", &[DIM; 3], slices);
    let slices = vec![on_chip(DIM, &left), on_chip(behind + DIM, &[(K, DIM)]), on_chip(0, &[])];
    let rest = instr(isa, "matmul_acc", &[DIM; 3], slices);
    let to = hbm(Space::Result(0), &[(I, 4 * DIM * n), (J, 4 * DIM), (H, 4 * half * DIM * n)]);
    let store = instr(isa, "mvout_acc", &[DIM, DIM, 4 * n], vec![on_chip(0, &[]), to]);
    let rows = nest(I, half, false, vec![first, nest(K, tiles - 1, false, vec![rest]), store]);
    let columns = nest(J, tiles, true, vec![nest(K, tiles, false, vec![load_right]), rows]);
    let panel = nest(I, half, false, vec![nest(K, tiles, false, vec![load_left])]);
    whole(nest(H, 2, false, vec![panel, columns]), n * n, 4 * n * n)
}

/// f32[n,n] = x[n,n]ᵀ · x[n,n] in tiles of 128x512; a row of tiles of the left operand stays while its products are made.
fn trainium(isa: &Isa, elem: &str, bytes: i64, n: i64) -> LoopProgram {
    const P: i64 = 128;
    const N: i64 = 512;
    let steps = n / P;
    let load = |width, from, to| {
        instr(isa, &format!("dma_load_{elem}"), &[P, width, bytes * n], vec![from, on_chip(0, &[]), to])
    };
    // Tile k of the left operand at column k·128, the right one behind.
    let behind = n;
    let left = hbm(Space::Operand(0), &[(K, bytes * P * n), (I, bytes * P)]);
    let load_left = load(P, left, on_chip(0, &[(K, P)]));
    let right = hbm(Space::Operand(1), &[(K, bytes * P * n), (J, bytes * N)]);
    let load_right = load(N, right, on_chip(behind, &[(K, N)]));
    let product = |name: &str, from: i64, ivs: bool| {
        let (a, b) = if ivs { (vec![(K, P)], vec![(K, N)]) } else { (vec![], vec![]) };
        let zero = || on_chip(0, &[]);
        let (a, b) = (on_chip(from * P, &a), on_chip(behind + from * N, &b));
        instr(isa, &format!("{name}_{elem}"), &[P, P, N], vec![zero(), a, zero(), b, zero(), zero()])
    };
    let zero = || on_chip(0, &[]);
    // The finished tile goes through SBUF.
    let result = behind + steps * N;
    let copy =
        instr(isa, "tensor_copy_psum_f32", &[P, N], vec![zero(), zero(), zero(), on_chip(result, &[])]);
    let to = hbm(Space::Result(0), &[(I, 4 * P * n), (J, 4 * N)]);
    let store = instr(isa, "dma_store_f32", &[P, N, 4 * n], vec![zero(), on_chip(result, &[]), to]);
    let tile = vec![
        nest(K, steps, false, vec![load_left]),
        product("nc_matmul", 0, false),
        nest(K, steps - 1, false, vec![product("nc_matmul_acc", 1, true)]),
        copy,
        store,
    ];
    let columns = vec![nest(K, steps, false, vec![load_right]), nest(I, steps, true, tile)];
    whole(nest(J, n / N, false, columns), bytes * n * n, 4 * n * n)
}

fn plain_int8(a: &[u8], b: &[u8], c: &mut [i32], n: usize) {
    c.fill(0);
    for (a, c) in a.chunks_exact(n).zip(c.chunks_exact_mut(n)) {
        for (&a, b) in a.iter().zip(b.chunks_exact(n)) {
            c.iter_mut().zip(b).for_each(|(c, &b)| *c += i32::from(a as i8) * i32::from(b as i8));
        }
    }
}

fn plain_f32(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    c.fill(0.0);
    for k in 0..n {
        for (i, c) in c.chunks_exact_mut(n).enumerate() {
            let a = a[k * n + i];
            c.iter_mut().zip(&b[k * n..][..n]).for_each(|(c, &b)| *c += a * b);
        }
    }
}

/// Both operands are `operand`.
fn run(
    c: &mut Criterion,
    name: &str,
    isa: &Isa,
    program: &LoopProgram,
    operand: &[u8],
    products: i64,
    plain: impl FnMut(),
) {
    let module = emit(isa, program).expect("a well-formed program");
    let executable = Executable::compile(isa, &module).expect("instructions with simulators");
    let mut result = vec![0; program.results[0] as usize];
    let mut group = c.benchmark_group(name);
    group.sample_size(10).throughput(Throughput::Elements(products as u64));
    group.bench_function("simulator", |bench| {
        bench.iter(|| executable.run(&[operand, operand], &mut [&mut result]).expect("no fault"));
    });
    let mut plain = plain;
    group.bench_function("plain loop", |bench| bench.iter(&mut plain));
    group.finish();
    // In turns, so that what else the machine does meets both.
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..11 {
        let begin = Instant::now();
        executable.run(&[operand, operand], &mut [&mut result]).expect("no fault");
        times[0].push(begin.elapsed());
        let begin = Instant::now();
        plain();
        times[1].push(begin.elapsed());
    }
    let [simulator, host] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let ratio = simulator.as_secs_f64() / host.as_secs_f64();
    println!("{name}: simulator {simulator:.2?}, plain loop {host:.2?}, ratio {ratio:.3}");
}

fn simulator(c: &mut Criterion) {
    let isa = act_isa::load_target("gemmini").expect("a target of the project");
    for n in [32, 512] {
        let (a, mut sums) = (vec![3u8; (n * n) as usize], vec![0; (n * n) as usize]);
        let name = format!("int8 {n}x{n}x{n} on gemmini");
        let operand: Vec<u8> = (0..n * n).map(|k| (k * 7 % 63) as u8).collect();
        run(c, &name, &isa, &gemmini(&isa, n), &operand, n * n * n, || {
            plain_int8(&a, &a, &mut sums, n as usize);
        });
    }
    let module = emit(&isa, &gemmini(&isa, 64)).expect("a well-formed program");
    let mut group = c.benchmark_group("compile");
    group.sample_size(10);
    group.bench_function("four instructions", |bench| {
        bench.iter(|| Executable::compile(&isa, &module).expect("instructions with simulators"));
    });
    group.finish();
    let isa = act_isa::load_target("trainium").expect("a target of the project");
    let n = 1024;
    for (elem, bytes) in [("f32", 4), ("bf16", 2)] {
        let (a, mut sums) = (vec![0.5f32; (n * n) as usize], vec![0.0; (n * n) as usize]);
        let name = format!("{elem} {n}x{n}x{n} on trainium");
        let program = trainium(&isa, elem, bytes, n);
        // Numbers that both types have; the upper half of an f32 is the bfloat16.
        let number = |k: i64| ((k * 7 % 63) as f32 / 8.0).to_le_bytes();
        let operand: Vec<u8> = (0..n * n).flat_map(|k| number(k)[4 - bytes as usize..].to_vec()).collect();
        run(c, &name, &isa, &program, &operand, n * n * n, || plain_f32(&a, &a, &mut sums, n as usize));
    }
}

criterion_group!(benches, simulator);
criterion_main!(benches);
