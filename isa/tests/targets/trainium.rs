//! trainium, from the AWS Neuron documentation: what nki.isa says of every instruction and where the architecture guide
//! lets tiles start. Expected values by plain loops over f32, i32 and bytes.

mod elementwise;
mod encodings;
mod movement;

use crate::stage::{LittleEndian, Stage, assert_all_ran, chip, f32s, i32s, int};
use act_hlo::random::SplitMix64;
use act_isa::{AttrVal, BetaVal, Isa, Oracle, load_target};

/// Partitions and free elements of the tiles that the tests use, and where tiles of 33 partitions may start.
const P: usize = 33;
const F: usize = 5;
const LENS: [u64; 2] = [P as u64, F as u64];

/// Starts (partition, column) for up to three operands and a result.
const PLACES: [[i64; 2]; 4] = [[0, 7], [64, 100], [0, 200], [64, 300]];

fn places(n: usize) -> Vec<BetaVal> {
    PLACES[..n].iter().flatten().map(|&at| chip(at)).collect()
}

/// Numbers with every kind of value among them. No denormal among their sums, products and quotients: the evaluator
/// flushes those as XLA does, and the documentation says nothing of them.
fn floats(rng: &mut SplitMix64, n: usize) -> Vec<f32> {
    const SPECIAL: [f32; 10] =
        [0.0, -0.0, 1.0, -1.0, 2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0e20, -1.5e-15];
    let mut one = |_| match rng.below(4) {
        0 => SPECIAL[rng.below(10) as usize],
        _ => (rng.below(4001) as f32 - 2000.0) / 64.0,
    };
    (0..n).map(&mut one).collect()
}

fn words(rng: &mut SplitMix64, n: usize) -> Vec<i32> {
    (0..n).map(|_| rng.next_u64() as i32 >> rng.below(31)).collect()
}

/// Equal bits, or both NaN.
fn assert_same(name: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    for (at, (g, e)) in got.iter().zip(expected).enumerate() {
        let same = g.to_bits() == e.to_bits() || (g.is_nan() && e.is_nan());
        assert!(same, "{name}, element {at}: {g:?}, expected {e:?}");
    }
}

/// Runs an instruction over whole tiles, buffers and contents of its operands given; the result's bytes.
fn over_tiles(
    isa: &Isa,
    oracle: &Oracle<'_>,
    name: &str,
    attributes: &[AttrVal],
    operands: &[(&str, [u64; 2], &[u8])],
    (buffer, lens): (&str, [u64; 2]),
) -> Vec<u8> {
    let mut stage = Stage::new(isa, oracle, &[], 0);
    for ((buffer, lens, bytes), start) in operands.iter().zip(&PLACES) {
        stage.set(buffer, start, lens, bytes);
    }
    let mut alpha = vec![int(P as i64), int(F as i64)];
    alpha.extend(attributes);
    stage.run(name, &alpha, &places(operands.len() + 1));
    stage.get(buffer, &PLACES[operands.len()], &lens)
}

#[test]
fn trainium_every_instruction() {
    let isa = load_target("trainium").unwrap();
    let oracle = Oracle::new(&isa);
    movement::dma(&isa, &oracle);
    movement::products(&isa, &oracle);
    movement::transpositions(&isa, &oracle);
    movement::copies(&isa, &oracle);
    movement::starts(&isa, &oracle);
    elementwise::floats_of_two(&isa, &oracle);
    elementwise::integers(&isa, &oracle);
    elementwise::scalars(&isa, &oracle);
    elementwise::reductions(&isa, &oracle);
    elementwise::activations(&isa, &oracle);
    elementwise::masks(&isa, &oracle);
    elementwise::constants(&isa, &oracle);
    assert_all_ran(&isa);
}
