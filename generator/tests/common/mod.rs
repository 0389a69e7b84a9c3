//! Kernels from HLO text, compiled by a backend, run by the oracle and compared with the reference evaluator.

use act_generator::{Backend, CompileError, Compiled, Options, SumOfCosts};
use act_hlo::compare::{Difference, compare};
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{Literal, parse_graph};
use act_isa::{Isa, Oracle, Phase, Place, Space, TiledKernel, View, parse_assembly, print_assembly};
use std::sync::Arc;

/// A kernel whose parameters and results are dense row-major tensors, each a segment of its own.
pub(crate) fn kernel(hlo: &str) -> TiledKernel {
    let graph = parse_graph(hlo).unwrap_or_else(|e| panic!("{e}"));
    let place = |space, id: &act_hlo::NodeId| Place::Hbm(View::row_major(space, graph.shape(*id)));
    let ins = graph.params().iter().zip(0..).map(|(id, k)| place(Space::Operand(k), id)).collect();
    let outs: Vec<Place> = graph.roots().iter().zip(0..).map(|(id, k)| place(Space::Result(k), id)).collect();
    let accumulators = vec![None; outs.len()];
    TiledKernel { ins, outs, accumulators, phase: Phase::Whole, graph }
}

/// Compiles; whatever comes out is the same when it is read from its text.
pub(crate) fn compile(isa: &Isa, hlo: &str, options: &Options) -> Result<Compiled, CompileError> {
    let backend = Backend::generate(Arc::new(isa.clone())).unwrap_or_else(|e| panic!("{e}"));
    let compiled = backend.compile(&kernel(hlo), options, &SumOfCosts)?;
    let text = print_assembly(isa, &compiled.assembly);
    let read = parse_assembly(isa, &text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", isa.name));
    assert_eq!(read, compiled.assembly, "{text}");
    Ok(compiled)
}

/// Names of the instructions, in order.
pub(crate) fn names<'a>(isa: &'a Isa, compiled: &Compiled) -> Vec<&'a str> {
    compiled.assembly.instrs.iter().map(|i| isa.instr(i.op).name.as_str()).collect()
}

/// Runs compiled code on random operands; how far its results are from the evaluator's.
pub(crate) fn run(isa: &Isa, hlo: &str, compiled: &Compiled, values: Values, seed: u64) -> Difference {
    let graph = parse_graph(hlo).unwrap();
    let mut rng = SplitMix64::new(seed);
    let inputs: Vec<Literal> =
        graph.params().iter().map(|&p| random_literal(&mut rng, graph.shape(p), values)).collect();
    let expected = act_hlo::eval(&graph, &inputs).unwrap();
    let operands: Vec<&[u8]> = inputs.iter().map(Literal::bytes).collect();
    let mut results: Vec<Vec<u8>> = expected.iter().map(|e| vec![0xa5; e.bytes().len()]).collect();
    Oracle::new(isa)
        .run_assembly(&compiled.assembly, &operands, &mut results)
        .unwrap_or_else(|fault| panic!("{fault}"));
    expected
        .iter()
        .zip(results)
        .map(|(expected, got)| {
            compare(expected, &Literal::from_bytes(expected.shape().clone(), got).unwrap())
        })
        .reduce(Difference::max)
        .unwrap()
}
