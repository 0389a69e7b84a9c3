//! One instruction of each kind on several targets: time per execution on the compiled simulator, in a loop that moves
//! its addresses, and beside it, in the same run, on the oracle.
#![allow(clippy::print_stdout, reason = "ratios of one run are what the bench is for")]

use act_isa::oracle::Oracle;
use act_isa::{Affine, AttrVal, BetaVal, Expr, Isa, LoopId, LoopProgram, Program, Slice, Space};
use act_stitch::simulate::Executable;
use act_stitch::stitched::emit;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::time::{Duration, Instant};

/// Executions whose addresses differ.
const STEPS: u64 = 8;
const STEP: LoopId = LoopId(0);
const AGAIN: LoopId = LoopId(1);
const SEGMENT: u64 = 1 << 20;

/// An instruction to measure.
struct Kind {
    name: &'static str,
    alpha: &'static [i64],
    /// For a last attribute that is a float.
    scale: Option<f32>,
    /// Position at first and step, per addressing attribute.
    beta: &'static [(i64, i64)],
    /// How often the steps are repeated.
    again: u64,
}

const fn kind(name: &'static str, alpha: &'static [i64], beta: &'static [(i64, i64)]) -> Kind {
    Kind { name, alpha, scale: None, beta, again: 256 }
}

const fn long(name: &'static str, alpha: &'static [i64], beta: &'static [(i64, i64)]) -> Kind {
    Kind { name, alpha, scale: None, beta, again: 16 }
}

const GEMMINI: &[Kind] = &[
    kind("mvin", &[16, 16, 512], &[(0, 16), (0, 16)]),
    kind("mvin_blocks", &[16, 4, 512], &[(0, 64), (0, 64)]),
    kind("matmul", &[16, 16, 16], &[(0, 16), (256, 16), (0, 16)]),
    kind("matmul_acc", &[16, 16, 16], &[(0, 16), (256, 16), (0, 0)]),
    kind("matmul_acc", &[13, 16, 7], &[(0, 16), (256, 16), (0, 0)]),
    kind("mvout", &[16, 16, 512], &[(0, 16), (0, 16)]),
    kind("mvout_acc", &[16, 16, 2048], &[(0, 16), (0, 64)]),
    Kind { scale: Some(0.5), ..kind("mvout_acc_scaled_relu", &[16, 16, 512], &[(0, 16), (0, 16)]) },
];

const H_QKV: &[Kind] = &[
    kind("load_rm", &[64], &[(0, 128), (0, 8)]),
    kind("load_cm", &[64], &[(0, 128), (0, 8)]),
    kind("gemm", &[], &[(0, 8), (0, 8), (0, 0)]),
    kind("softmax", &[64], &[(0, 0)]),
    kind("mov", &[32], &[(0, 4), (0, 8)]),
    kind("store_rm", &[64], &[(0, 8), (0, 128)]),
];

const TRAINIUM: &[Kind] = &[
    long("dma_load_f32", &[128, 512, 4096], &[(0, 64), (0, 0), (0, 512)]),
    long("nc_matmul_bf16", &[128, 128, 512], &[(0, 0), (0, 128), (0, 0), (0, 512), (0, 0), (0, 512)]),
    long("nc_matmul_acc_f32", &[128, 128, 512], &[(0, 0), (0, 128), (0, 0), (0, 512), (0, 0), (0, 0)]),
    long("nc_transpose_f32", &[128, 128], &[(0, 0), (0, 128), (0, 0), (0, 128)]),
    long("tensor_tensor_add_f32", &[128, 512], &[(0, 0), (0, 512), (0, 0), (0, 512), (0, 0), (4096, 512)]),
    long("tensor_reduce_add", &[128, 512], &[(0, 0), (0, 512), (0, 0), (8192, 1)]),
    long("activation_exp", &[128, 512], &[(0, 0), (0, 512), (0, 0), (4096, 512)]),
];

const X86: &[Kind] = &[
    kind("vmovups_load", &[], &[(0, 32), (0, 1)]),
    kind("vfmadd231ps", &[], &[(0, 1), (1, 1), (14, 0)]),
    kind("vdivps", &[], &[(0, 1), (1, 1), (6, 1)]),
    kind("vpmaddwd", &[], &[(0, 1), (1, 1), (6, 1)]),
    kind("vmovups_store", &[], &[(0, 1), (0, 32)]),
];

const AMX: &[Kind] = &[
    kind("tileloadd", &[512], &[(0, 64), (0, 1)]),
    kind("tdpbusd", &[], &[(0, 0), (1, 0), (2, 0)]),
    kind("tdpbf16ps", &[], &[(0, 0), (1, 0), (2, 0)]),
    kind("tilestored", &[512], &[(0, 1), (0, 64)]),
];

fn program(isa: &Isa, kind: &Kind, steps: u64, again: u64) -> LoopProgram {
    let op = isa.instr_named(kind.name).expect("an instruction of the target");
    let instr = isa.instr(op);
    let reads = |k: usize| {
        let mut found = false;
        for slice in &instr.inputs {
            if let Slice::Hbm(window) = slice {
                window.start.for_each_leaf(&mut |leaf| found |= *leaf == Expr::Beta(k as u16));
            }
        }
        found
    };
    let beta = kind.beta.iter().enumerate().map(|(k, &(c0, step))| {
        let mut affine = Affine::constant(c0);
        affine.add_term(STEP, step).expect("small numbers");
        match (instr.is_address(k), reads(k)) {
            (false, _) => BetaVal::Int(affine),
            (true, true) => BetaVal::Hbm(Space::Operand(0), affine),
            (true, false) => BetaVal::Hbm(Space::Result(0), affine),
        }
    });
    let alpha = kind.alpha.iter().map(|&v| AttrVal::Int(v));
    let alpha = alpha.chain(kind.scale.map(|scale| AttrVal::F32(scale.to_bits()))).collect();
    let body = Program::Instr { op, alpha, beta: beta.collect() };
    let nest = |iv, trip, body| Program::For { iv, trip, parallel: false, body: Box::new(body) };
    LoopProgram {
        body: nest(AGAIN, again, nest(STEP, steps, body)),
        operands: vec![SEGMENT],
        results: vec![SEGMENT],
        scratch_bytes: 0,
        consts: vec![],
    }
}

/// What `some` takes longer than `none`, which both set up the memories: the least of several measurements of each, taken
/// in turns.
fn beyond(mut some: impl FnMut() -> Duration, mut none: impl FnMut() -> Duration) -> Duration {
    let times: Vec<(Duration, Duration)> = (0..7).map(|_| (some(), none())).collect();
    let least =
        |side: fn(&(Duration, Duration)) -> Duration| times.iter().map(side).min().unwrap_or_default();
    least(|t| t.0).saturating_sub(least(|t| t.1))
}

fn target(c: &mut Criterion, name: &str, kinds: &[Kind]) {
    let mut isa = act_isa::load_target(name).expect("a target of the project");
    for buffer in &mut isa.buffers {
        // The oracle reads nothing that was not written.
        let zero = vec![0; buffer.elem.bytes() as usize];
        let zero = act_hlo::Literal::from_bytes(act_hlo::Shape::new(buffer.elem, []), zero);
        buffer.init = buffer.init.take().or_else(|| zero.ok());
    }
    let operand: Vec<u8> = (0..SEGMENT).map(|k| (k * 7 % 63) as u8).collect();
    let mut table = Vec::new();
    let mut group = c.benchmark_group(name);
    group.sample_size(10).measurement_time(Duration::from_millis(500));
    group.warm_up_time(Duration::from_millis(200));
    for kind in kinds {
        let title = format!("{} {:?}", kind.name, kind.alpha);
        let program = program(&isa, kind, STEPS, kind.again);
        let compile = |program: &LoopProgram| {
            let module = emit(&isa, program).expect("a well-formed program");
            Executable::compile(&isa, &module).expect("an instruction with a simulator")
        };
        let nothing = LoopProgram { body: Program::Fence, ..program.clone() };
        let (executable, idle) = (compile(&program), compile(&nothing));
        let mut result = vec![0; SEGMENT as usize];
        let mut run = |executable: &Executable| {
            let begin = Instant::now();
            executable.run(&[&operand], &mut [&mut result]).expect("no fault");
            begin.elapsed()
        };
        group.throughput(Throughput::Elements(STEPS * kind.again));
        group.bench_function(&title, |bench| bench.iter(|| run(&executable)));
        let run = std::cell::RefCell::new(run);
        let simulator = beyond(|| run.borrow_mut()(&executable), || run.borrow_mut()(&idle));
        let simulator = simulator / (STEPS * kind.again) as u32;
        let once = self::program(&isa, kind, STEPS, 1);
        let oracle = Oracle::new(&isa);
        let execute = |program: &LoopProgram| {
            let begin = Instant::now();
            oracle.run(program, &[&operand], &mut [Vec::new()]).expect("no fault");
            begin.elapsed()
        };
        let oracle = beyond(|| execute(&once), || execute(&nothing)) / STEPS as u32;
        table.push((title, simulator, oracle));
    }
    group.finish();
    println!("{name:<44}{:>12}{:>14}{:>10}", "simulator", "oracle", "ratio");
    for (title, simulator, oracle) in table {
        let ratio = oracle.as_secs_f64() / simulator.as_secs_f64().max(1e-9);
        println!(
            "  {title:<42}{:>12}{:>14}{ratio:>9.0}x",
            format!("{simulator:.0?}"),
            format!("{oracle:.1?}")
        );
    }
}

fn instructions(c: &mut Criterion) {
    let targets =
        [("gemmini", GEMMINI), ("h_qkv", H_QKV), ("trainium", TRAINIUM), ("x86", X86), ("amx", AMX)];
    for (name, kinds) in targets {
        target(c, name, kinds);
    }
}

criterion_group!(benches, instructions);
criterion_main!(benches);
