//! A table of what code for Gemmini executes and moves, against what experts write by hand: `cargo bench -p act-generator
//! --bench experts`. What the experts' code takes stands in parentheses: loads, stores and products of the library's single
//! operations at 64 by 64, and the bytes that its separate calls move for composites of one tile. Cycles are the queue
//! model's.

#[path = "../tests/experts/programs.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod programs;

use act_isa::{Isa, load_target};
use programs::{COMPOSITES, Counts, SINGLE, TILE, UNSUPPORTED, compile, counts, is_right, single_hlo};
use std::io::Write;

/// A line on standard output, where a bench reports.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($text)*);
    };
}

/// One line of the table. `experts`: what an expert's count of something is, if there is one.
fn row(isa: &Isa, kernel: &str, hlo: &str, experts: &dyn Fn(&Counts) -> [String; 5]) {
    let (target, compiled) = (&isa.name, compile(isa, hlo));
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            say!("{target:12} {kernel:16} none: {error}");
            return;
        }
    };
    let found = counts(isa, &compiled);
    let [loads, stores, products, bytes, saved] = experts(&found);
    let right = if is_right(isa, hlo, &compiled) { "right" } else { "WRONG" };
    let names: Vec<String> = found.by_name.iter().map(|(name, count)| format!("{count} {name}")).collect();
    say!(
        "{target:12} {kernel:16} {loads:>9} {stores:>9} {products:>9} {bytes:>13} {saved:>7} {:>7} {right}  {}",
        compiled.cost,
        names.join(", ")
    );
}

fn main() {
    let [gemmini, plus] =
        ["gemmini", "gemmini_plus"].map(|name| load_target(name).unwrap_or_else(|e| panic!("{e}")));
    say!(
        "{:12} {:16} {:>9} {:>9} {:>9} {:>13} {:>7} {:>7} {:5}  instructions",
        "target",
        "kernel",
        "loads",
        "stores",
        "products",
        "bytes",
        "saved",
        "cycles",
        ""
    );
    for (name, loads, stores, products) in SINGLE {
        for isa in [&gemmini, &plus] {
            row(isa, &format!("{name} 64^3"), &single_hlo(name), &|found| {
                [
                    format!("{} ({loads})", found.loads),
                    format!("{} ({stores})", found.stores),
                    format!("{} ({products})", found.products),
                    found.bytes.to_string(),
                    String::new(),
                ]
            });
        }
    }
    let mut saved = Vec::new();
    for composite in &COMPOSITES {
        let separate = composite.separate() * TILE;
        let hlo = composite.hlo();
        row(&gemmini, composite.name, &hlo, &|found| {
            [
                found.loads.to_string(),
                found.stores.to_string(),
                found.products.to_string(),
                format!("{} ({separate})", found.bytes),
                format!("{:.1} %", 100.0 * (1.0 - found.bytes as f64 / separate as f64)),
            ]
        });
        saved.extend(
            compile(&gemmini, &hlo).map(|c| 1.0 - counts(&gemmini, &c).bytes as f64 / separate as f64),
        );
    }
    for (name, hlo) in UNSUPPORTED {
        row(&gemmini, name, hlo, &|found| {
            let plain = [found.loads, found.stores, found.products, found.bytes].map(|n| n.to_string());
            let [loads, stores, products, bytes] = plain;
            [loads, stores, products, bytes, String::new()]
        });
    }
    let mean = 100.0 * saved.iter().sum::<f64>() / saved.len().max(1) as f64;
    say!(
        "mean saving of the {} composites: {mean:.1} % of the bytes (experts' separate calls: 0 %)",
        saved.len()
    );
}
