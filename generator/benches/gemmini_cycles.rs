//! Gemmini's queue model against the cycles of the ACT paper's appendix F. `cargo bench -p act-generator --bench
//! gemmini_cycles` prints the rows as the description's constants model them, then fits the constants on all shapes but
//! one for every shape, and on all, and prints what it found; `-- --rows` prints the rows alone.

#[path = "../tests/gemmini_cycles/fit.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod fit;
#[path = "../tests/gemmini_cycles/nests.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod nests;

use act_isa::{Isa, load_target};
use fit::{NAMES, Table, judge, stated};
use std::io::Write;
use std::time::Instant;

/// A line on standard output, where a bench reports.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($text)*);
    };
}

fn rows(isa: &Isa, table: &Table) {
    let started = Instant::now();
    let modelled = table.modelled(isa, &stated(isa));
    let elapsed = started.elapsed();
    say!("shape: io i jo j ko, measured, modelled, modelled / measured");
    for (row, cycles) in table.rows.iter().zip(&modelled) {
        let nest = format!("{} {} {} {} {}", row.io, row.i, row.jo, row.j, row.ko);
        let ratio = *cycles as f64 / row.cycles as f64;
        say!("{:14} {nest:16} {:>8} {cycles:>8} {ratio:.3}", row.shape, row.cycles);
    }
    say!("{} nests costed in {elapsed:?}", modelled.len());
}

fn main() {
    let isa = load_target("gemmini").unwrap_or_else(|e| panic!("{e}"));
    let table = Table::new(&isa, nests::rows());
    rows(&isa, &table);
    if std::env::args().any(|arg| arg == "--rows") {
        return;
    }
    say!("\nfitted on the shapes other than: {}", NAMES.join(", "));
    let shapes = table.shapes();
    for held in shapes.iter().map(Some).chain([None]) {
        let used: Vec<usize> =
            (0..table.rows.len()).filter(|&k| Some(&table.rows[k].shape) != held).collect();
        let (constants, error) = table.fit(&isa, &used);
        let name = held.map_or("(none)", String::as_str);
        say!("{name:14} {constants:?}, error of the fit {:.1} %", error * 100.0);
        if let Some(shape) = held {
            let fit::Judgement { spearman, regret } = judge(&table, &isa, shape, &constants);
            say!("{:14} rank correlation {spearman:.3}, the pick's cycles by the best's {regret:.3}", "");
        }
    }
}
