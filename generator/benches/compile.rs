//! Compile time of one kernel by phase: deriving the backend, selecting instructions, allocating with either
//! allocator, and all of it.

use act_generator::phase1::Selector;
use act_generator::phase2::{AllocOptions, AllocatorChoice, allocate};
use act_generator::{Backend, Options, SumOfCosts};
use act_hlo::parse_graph;
use act_isa::{Isa, Phase, Place, Space, TiledKernel, View, load_target};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

const ATTENTION: &str = "
add { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT s = bf16[] add(a, b) }
ENTRY attention {
  q = bf16[64,64] parameter(0)
  k = bf16[64,64] parameter(1)
  v = bf16[64,64] parameter(2)
  s = bf16[64,64] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  e = bf16[64,64] exponential(s)
  zero = bf16[] constant(0)
  r = bf16[64] reduce(e, zero), dimensions={1}, to_apply=add
  b = bf16[64,64] broadcast(r), dimensions={0}
  p = bf16[64,64] divide(e, b)
  ROOT o = bf16[64,64] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}";

const MATMUL: &str = "
ENTRY matmul {
  a = s8[32,32] parameter(0)
  b = s8[32,32] parameter(1)
  ROOT c = s32[32,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}";

fn kernel(hlo: &str) -> TiledKernel {
    let graph = parse_graph(hlo).unwrap_or_else(|e| panic!("{e}"));
    let place = |space, id: &act_hlo::NodeId| Place::Hbm(View::row_major(space, graph.shape(*id)));
    let ins = graph.params().iter().zip(0..).map(|(id, k)| place(Space::Operand(k), id)).collect();
    let outs: Vec<Place> = graph.roots().iter().zip(0..).map(|(id, k)| place(Space::Result(k), id)).collect();
    let accumulators = vec![None; outs.len()];
    TiledKernel { ins, outs, accumulators, phase: Phase::Whole, graph }
}

fn bench(c: &mut Criterion) {
    for (target, name, hlo) in [("h_qkv", "attention", ATTENTION), ("gemmini", "matmul32", MATMUL)] {
        let isa: Isa = load_target(target).unwrap_or_else(|e| panic!("{e}"));
        let kernel = kernel(hlo);
        let options = Options::default();
        let mut group = c.benchmark_group(format!("{target}/{name}"));
        group.sample_size(20);
        group.bench_function("generate", |b| b.iter(|| Selector::generate(black_box(&isa)).is_ok()));
        let selector = Selector::generate(&isa).unwrap_or_else(|e| panic!("{e}"));
        let select = || selector.select(&kernel, options.numerics, &options.selection).ok()?.next();
        group.bench_function("phase 1", |b| b.iter(|| black_box(select()).is_some()));
        let Some(graph) = select().map(|s| s.graph) else { continue };
        for (label, allocator) in
            [("phase 2", AllocatorChoice::Auto), ("phase 2 by cp-sat", AllocatorChoice::CpSat)]
        {
            let alloc = AllocOptions { allocator, ..AllocOptions::default() };
            if allocate(&isa, &kernel, &graph, &alloc).is_ok() {
                group
                    .bench_function(label, |b| b.iter(|| allocate(&isa, &kernel, black_box(&graph), &alloc)));
            }
        }
        let backend = Backend::generate(Arc::new(isa.clone())).unwrap_or_else(|e| panic!("{e}"));
        group.bench_function("whole", |b| {
            b.iter(|| backend.compile(black_box(&kernel), &options, &SumOfCosts).is_ok());
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
