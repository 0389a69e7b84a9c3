//! Fits the constants of gemmini's queue model to measured cycles, and judges picks made by the model.

use crate::nests::{Row, program};
use act_generator::{CostModel, QueueModel};
use act_isa::{Isa, Program, Timing};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The constants that are fitted: those of [`NAMES`]. The others are facts of the hardware (depths of the queues, stores
/// one after the other, a row a cycle by a bank's port) or of no influence here.
pub(crate) type Constants = [u64; 4];

pub(crate) const NAMES: [&str; 4] = ["load issue", "execute issue", "execute start", "store latency"];

/// The values that a fit chooses from.
const GRID: [&[u64]; 4] = [&[10, 20, 30], &[3, 7], &[1, 2, 3], &[38, 44, 50]];

/// What the fit finds on the shapes other than each.
const HELD_OUT: [(&str, Constants); 6] = [
    ("512x512x512", [30, 3, 3, 50]),
    ("784x1024x256", [30, 7, 3, 50]),
    ("12544x256x64", [30, 7, 2, 50]),
    ("12544x64x256", [30, 3, 2, 44]),
    ("3136x512x128", [30, 7, 2, 50]),
    ("3136x128x512", [30, 3, 2, 50]),
];

/// The constants that were fitted without a shape.
pub(crate) fn held_out(shape: &str) -> Constants {
    HELD_OUT.iter().find(|(name, _)| *name == shape).map(|(_, constants)| *constants).expect("a known shape")
}

/// Of the schedules whose modelled cycles are within so many percent of the least, the pick is the one with the most
/// accumulator rows (room for the stores to overlap), the first of several.
pub(crate) const TIE_PERCENT: u64 = 2;

/// Where the constants stand.
fn places(timing: &mut Timing) -> Option<[&mut u64; 4]> {
    let [load, execute, store] = &mut timing.queues[..] else { return None };
    Some([&mut load.issue, &mut execute.issue, &mut execute.start, &mut store.latency])
}

/// The description with other constants.
pub(crate) fn with_constants(isa: &Isa, constants: &Constants) -> Isa {
    let mut isa = isa.clone();
    let places = places(&mut isa.timing).expect("three queues");
    places.into_iter().zip(constants).for_each(|(place, value)| *place = *value);
    isa
}

/// What the description itself states.
pub(crate) fn stated(isa: &Isa) -> Constants {
    places(&mut isa.timing.clone()).expect("three queues").map(|place| *place)
}

/// Rows with their programs.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    programs: Vec<Program>,
    /// Modelled cycles of every row under constants that were tried.
    known: RefCell<BTreeMap<Constants, Vec<u64>>>,
}

impl Table {
    pub(crate) fn new(isa: &Isa, rows: Vec<Row>) -> Table {
        let programs = rows.iter().map(|row| program(isa, row).body).collect();
        Table { rows, programs, known: RefCell::default() }
    }

    /// Shapes in the order of the tables.
    pub(crate) fn shapes(&self) -> Vec<String> {
        let mut shapes: Vec<String> = self.rows.iter().map(|row| row.shape.clone()).collect();
        shapes.dedup();
        shapes
    }

    /// Modelled cycles of every row.
    pub(crate) fn modelled(&self, isa: &Isa, constants: &Constants) -> Vec<u64> {
        if let Some(known) = self.known.borrow().get(constants) {
            return known.clone();
        }
        let isa = with_constants(isa, constants);
        let modelled: Vec<u64> = self.programs.iter().map(|p| QueueModel.cost(&isa, p)).collect();
        self.known.borrow_mut().insert(*constants, modelled.clone());
        modelled
    }

    /// Mean over the shapes of the mean squared logarithm of modelled by measured cycles.
    fn error(&self, isa: &Isa, constants: &Constants, rows: &[usize]) -> f64 {
        let modelled = self.modelled(isa, constants);
        let mut of_shape: Vec<(&str, f64, f64)> = Vec::new();
        for &k in rows {
            let row = &self.rows[k];
            let off = (modelled[k] as f64 / row.cycles as f64).ln().powi(2);
            match of_shape.iter_mut().find(|s| s.0 == row.shape) {
                Some(shape) => (shape.1, shape.2) = (shape.1 + off, shape.2 + 1.0),
                None => of_shape.push((&row.shape, off, 1.0)),
            }
        }
        of_shape.iter().map(|s| s.1 / s.2).sum::<f64>() / of_shape.len() as f64
    }

    /// The constants of the grid with the least error on `rows`, the first of several, and the root of that error.
    pub(crate) fn fit(&self, isa: &Isa, rows: &[usize]) -> (Constants, f64) {
        let mut best = (stated(isa), f64::INFINITY);
        for constants in grid() {
            let error = self.error(isa, &constants, rows);
            if error < best.1 {
                best = (constants, error);
            }
        }
        (best.0, best.1.sqrt())
    }
}

fn grid() -> Vec<Constants> {
    let mut grid = vec![Constants::default()];
    for (k, values) in GRID.iter().enumerate() {
        let with = |constants: &Constants, value: u64| {
            let mut constants = *constants;
            constants[k] = value;
            constants
        };
        grid = grid.iter().flat_map(|constants| values.iter().map(move |&v| with(constants, v))).collect();
    }
    grid
}

/// How well a model orders the schedules of one shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judgement {
    /// Spearman's rank correlation of modelled and measured cycles.
    pub(crate) spearman: f64,
    /// Measured cycles of the pick by those of the best.
    pub(crate) regret: f64,
}

/// Judges the constants on the rows of one shape.
pub(crate) fn judge(table: &Table, isa: &Isa, shape: &str, constants: &Constants) -> Judgement {
    let isa = with_constants(isa, constants);
    let of_shape = table.rows.iter().zip(&table.programs).filter(|(row, _)| row.shape == shape);
    let (rows, modelled): (Vec<&Row>, Vec<u64>) =
        of_shape.map(|(row, program)| (row, QueueModel.cost(&isa, program))).unzip();
    let measured: Vec<u64> = rows.iter().map(|row| row.cycles).collect();
    let best = measured.iter().min().copied().expect("a row");
    let pick = pick(&rows, &modelled);
    Judgement { spearman: spearman(&modelled, &measured), regret: measured[pick] as f64 / best as f64 }
}

/// The schedule that the model and the tie rule choose.
fn pick(rows: &[&Row], modelled: &[u64]) -> usize {
    let least = modelled.iter().min().copied().expect("a row");
    let near = (0..rows.len()).filter(|&k| modelled[k] * 100 <= least * (100 + TIE_PERCENT));
    near.min_by_key(|&k| (-rows[k].accumulator_rows(), k)).expect("the least itself")
}

fn ranks(values: &[u64]) -> Vec<f64> {
    let rank = |v: &u64| {
        let below = values.iter().filter(|o| *o < v).count() as f64;
        let same = values.iter().filter(|o| *o == v).count() as f64;
        below + (same - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

fn spearman(a: &[u64], b: &[u64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}
