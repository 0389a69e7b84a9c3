//! Gemmini's queue model against cycles measured on RTL (ACT paper, appendix F): every shape is judged with constants that
//! were fitted on the other five. `cargo bench -p act-generator --bench gemmini_cycles` fits them anew.

#[allow(dead_code, reason = "the bench fits")]
mod fit;
mod nests;

use act_generator::{CostModel, QueueModel};
use act_hlo::random::SplitMix64;
use act_isa::{Oracle, load_target};
use fit::{Table, held_out, judge};
use nests::{Resident, Row, program, rows};

#[test]
fn held_out_shapes_are_ranked_and_picked_well() {
    let isa = load_target("gemmini").unwrap();
    let table = Table::new(&isa, rows());
    let shapes = table.shapes();
    assert_eq!((table.rows.len(), shapes.len()), (112, 6));
    let (mut spearman, mut regrets) = (0.0, Vec::new());
    for shape in &shapes {
        let judgement = judge(&table, &isa, shape, &held_out(shape));
        spearman += judgement.spearman / shapes.len() as f64;
        regrets.push(judgement.regret);
    }
    let mean = regrets.iter().sum::<f64>() / regrets.len() as f64;
    assert!(spearman >= 0.93, "mean rank correlation {spearman}");
    assert!(mean <= 1.03 && regrets.iter().all(|&r| r <= 1.10), "picks by the best: {regrets:?}");
}

/// The nests are products: what is costed is code that computes C = A B, saturated to s8.
#[test]
fn the_nests_compute_the_product() {
    let isa = load_target("gemmini").unwrap();
    for (io, i, jo, j, ko, resident) in
        [(2, 2, 2, 1, 2, Resident::Panel), (2, 1, 2, 2, 1, Resident::Whole), (1, 3, 1, 1, 2, Resident::Whole)]
    {
        let row = Row { shape: String::new(), io, i, jo, j, ko, resident, cycles: 0 };
        let nest = program(&isa, &row);
        let mut rng = SplitMix64::new(5);
        // Small enough for sums of which only some saturate.
        let operands: Vec<Vec<u8>> = nest
            .operands
            .iter()
            .map(|&bytes| (0..bytes).map(|_| ((rng.next_u64() % 9) as i8 - 4).cast_unsigned()).collect())
            .collect();
        let views: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
        let mut results = vec![Vec::new()];
        Oracle::new(&isa).run(&nest, &views, &mut results).unwrap_or_else(|fault| panic!("{fault}"));
        let (m, n, k) = ((io * i * 16) as usize, (jo * j * 64) as usize, (ko * 64) as usize);
        let at = |of: &[u8], index: usize| i32::from(of[index].cast_signed());
        for (r, c) in (0..m).flat_map(|r| (0..n).map(move |c| (r, c))) {
            let sum: i32 = (0..k).map(|x| at(&operands[0], r * k + x) * at(&operands[1], x * n + c)).sum();
            assert_eq!(at(&results[0], r * n + c), sum.clamp(-128, 127), "row {r}, column {c} of {row:?}");
        }
        assert!(QueueModel.cost(&isa, &nest.body) >= QueueModel.nest_bound(&isa, &nest.body));
    }
}
