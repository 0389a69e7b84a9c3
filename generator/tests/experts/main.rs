//! Code for Gemmini against what experts write by hand, as counts of instructions and bytes. `cargo bench -p
//! act-generator --bench experts` prints the table.

#[allow(dead_code, reason = "the bench uses the rest")]
mod programs;

use act_isa::load_target;
use programs::{COMPOSITES, SINGLE, TILE, UNSUPPORTED, compile, counts, is_right, single_hlo};

#[test]
fn composites_move_no_intermediate_result() {
    let isa = load_target("gemmini").unwrap();
    let mut savings = Vec::new();
    for composite in &COMPOSITES {
        let hlo = composite.hlo();
        let compiled = compile(&isa, &hlo).unwrap_or_else(|e| panic!("{}: {e}", composite.name));
        assert!(is_right(&isa, &hlo, &compiled), "{}", composite.name);
        let tiles = counts(&isa, &compiled).bytes.div_ceil(TILE);
        savings.push(1.0 - tiles as f64 / composite.separate() as f64);
        // Every operand once, and the result.
        assert_eq!(tiles, composite.inputs as u64 + 1, "{}", composite.name);
    }
    let mean = savings.iter().sum::<f64>() / savings.len() as f64;
    assert!(mean >= 0.393, "mean saving {mean}: {savings:?}");
}

/// No more loads, stores and products than the experts' code has, and no byte more than operands and results are. Of the
/// loop instructions of `gemmini_plus` none adds an addend of bytes, and they do not stand in the way.
#[test]
fn single_operations_take_what_the_experts_take() {
    let plus = ("gemmini_plus", SINGLE.into_iter().find(|single| single.0 == "MAC").unwrap());
    let cases = SINGLE.into_iter().map(|single| ("gemmini", single)).chain([plus]);
    for (target, (name, loads, stores, products)) in cases {
        let isa = load_target(target).unwrap();
        let hlo = single_hlo(name);
        let compiled = compile(&isa, &hlo).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(is_right(&isa, &hlo, &compiled), "{name}");
        let found = counts(&isa, &compiled);
        let least = (found.loads <= loads, found.stores <= stores, found.products <= products);
        assert_eq!(least, (true, true, true), "{name}: {found:?}");
        assert_eq!(found.bytes, (loads / 4 + 1) * 64 * 64, "{name}: {found:?}");
    }
}

#[test]
fn what_the_library_lacks_is_compiled() {
    let isa = load_target("gemmini").unwrap();
    for (name, hlo) in UNSUPPORTED {
        let compiled = compile(&isa, hlo).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(is_right(&isa, hlo, &compiled), "{name}");
    }
}

/// One loop instead of loads, products and stores, since the model says that it takes fewer cycles.
#[test]
fn gemmini_plus_loops_where_that_is_cheaper() {
    let [gemmini, plus] = ["gemmini", "gemmini_plus"].map(|name| load_target(name).unwrap());
    let hlo = single_hlo("GEMM");
    let (separate, looped) = (compile(&gemmini, &hlo).unwrap(), compile(&plus, &hlo).unwrap());
    assert!(is_right(&plus, &hlo, &looped));
    let found = counts(&plus, &looped);
    assert_eq!(found.by_name.keys().collect::<Vec<_>>(), ["loop_ws_scaled"], "{found:?}");
    assert!(looped.cost < separate.cost, "{} {}", looped.cost, separate.cost);
}
