//! A table of what code for Gemmini executes and moves, against what experts write by hand: `cargo bench -p act-generator
//! --bench experts`.

#[path = "../tests/experts/programs.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod programs;

use act_isa::load_target;
use programs::{COMPOSITES, SINGLE, compile, counts, is_right, single_hlo};
use std::io::Write;

/// A line on standard output, where a bench reports.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($text)*);
    };
}

fn main() {
    let isa = load_target("gemmini").unwrap_or_else(|e| panic!("{e}"));
    say!("64 x 64: loads and stores (experts), instructions, right");
    for (name, _, loads, stores) in SINGLE {
        let hlo = single_hlo(name);
        match compile(&isa, &hlo) {
            Ok(compiled) => {
                let found = counts(&isa, &compiled);
                let right = is_right(&isa, &hlo, &compiled);
                let (own_loads, own_stores) = (found.loads, found.stores);
                say!(
                    "{name:12} {own_loads} ({loads}), {own_stores} ({stores}), {:?}, {right}",
                    found.by_name
                );
            }
            Err(error) => {
                say!("{name:12} none: {error}");
            }
        }
    }
    say!("one tile: bytes moved, tiles (separate calls), saving, right");
    for composite in &COMPOSITES {
        let hlo = composite.hlo();
        match compile(&isa, &hlo) {
            Ok(compiled) => {
                let found = counts(&isa, &compiled);
                let tiles = found.bytes as f64 / 256.0;
                let saving = 100.0 * (1.0 - tiles / composite.separate() as f64);
                let right = is_right(&isa, &hlo, &compiled);
                let separate = composite.separate();
                say!(
                    "{:12} {} {tiles} ({separate}) {saving:.1} % {right} {:?}",
                    composite.name,
                    found.bytes,
                    found.by_name
                );
            }
            Err(error) => {
                say!("{:12} none: {error}", composite.name);
            }
        }
    }
}
