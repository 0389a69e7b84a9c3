//! Both phases together: what is selected can be allocated, and the oracle computes the kernel with it.

use super::{attention, gemmini, kernel, numerics, selector};
use crate::compile::{Options, compile_best};
use crate::cost::SumOfCosts;
use crate::numerics::FloatPolicy;
use crate::phase1::Limits;
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{Literal, eval};
use act_isa::Oracle;

#[test]
fn selected_kernels_run_on_the_oracle() {
    for (target, text) in [
        ("h_qkv", attention::PLAIN.to_owned()),
        ("gemmini", gemmini::product(16, 16, 16)),
        ("gemmini", gemmini::product(5, 40, 17)),
        ("gemmini", gemmini::requantized(16, 16, 16)),
        ("gemmini", gemmini::requantized(7, 3, 9)),
    ] {
        let (isa, selector) = selector(target);
        let kernel = kernel(&text);
        let selection = selector.select(&kernel, numerics(FloatPolicy::Exact), &Limits::default());
        let selection = selection.unwrap_or_else(|e| panic!("{target}: {e}"));
        let graphs = selection.map(|selected| selected.graph);
        let compiled = compile_best(&isa, &kernel, graphs, &Options::default(), &SumOfCosts);
        let compiled = compiled.unwrap_or_else(|e| panic!("{target}: {e}"));

        let mut rng = SplitMix64::new(7);
        let params = kernel.graph.params().iter();
        let inputs: Vec<Literal> =
            params.map(|&p| random_literal(&mut rng, kernel.graph.shape(p), Values::Small)).collect();
        let expected = eval(&kernel.graph, &inputs).unwrap_or_else(|e| panic!("{e}"));
        let operands: Vec<&[u8]> = inputs.iter().map(Literal::bytes).collect();
        let mut results: Vec<Vec<u8>> = expected.iter().map(|l| vec![0xA5; l.bytes().len()]).collect();
        let run = Oracle::new(&isa).run_assembly(&compiled.assembly, &operands, &mut results);
        run.unwrap_or_else(|e| panic!("{target}: {e}"));
        let got: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
        assert_eq!(got, expected.iter().map(Literal::bytes).collect::<Vec<_>>());
    }
}

/// What the target computes it is not said never to compute, and floats are no sums of an integer accelerator.
#[test]
fn contractions_are_ruled_out_by_type_only_where_no_instruction_gives_it() {
    use act_hlo::ElemType::{BF16, F32, S8, S32};
    let may = |target: &str, elem| selector(target).1.may_contract(elem);
    for target in ["gemmini", "gemmini_plus", "tpu_v1", "feather"] {
        assert!(may(target, S32) && may(target, S8), "{target}");
        assert!(!may(target, F32) && !may(target, BF16), "{target}");
    }
    for target in ["trainium", "x86", "amx", "h_qkv"] {
        assert!(may(target, F32) && may(target, BF16), "{target}");
    }
}
