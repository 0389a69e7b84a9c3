//! Code for Gemmini against what experts write by hand, as counts of instructions and bytes . `cargo bench -p
//! act-generator --bench experts` prints the table.

#[allow(dead_code, reason = "the bench uses the rest")]
mod programs;

use act_isa::load_target;
use programs::{COMPOSITES, compile, counts, is_right, single_hlo};

const TILE: u64 = 256;

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

/// A product loads as the experts do, four tiles by a command, and computes as often. Their stores of four tiles are not
/// described: every store is of one.
#[test]
fn a_product_loads_as_experts_do() {
    let isa = load_target("gemmini").unwrap();
    let hlo = single_hlo("GEMM");
    let compiled = compile(&isa, &hlo).unwrap();
    assert!(is_right(&isa, &hlo, &compiled));
    let found = counts(&isa, &compiled);
    let products = found.by_name["matmul"] + found.by_name["matmul_acc"];
    assert_eq!((found.loads, found.stores, products, found.bytes), (8, 16, 64, 3 * 64 * 64), "{found:?}");
}
