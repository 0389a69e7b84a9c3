//! Banks as a preference of the allocators: operands that are read together lie apart where that goes, and the plain
//! problem decides where it does not.

use super::super::{AllocOptions, AllocatorChoice, allocate};
use super::description::{Builder, beta, buffer, in_hbm, instr, int, isa, slice, window};
use super::replay::replay;
use crate::pii::PiiGraph;
use act_isa::{Banks, BetaVal, BufferId, Isa};

/// A buffer of 32 rows in so many banks; products of two tiles of 4 rows, and a result elsewhere.
fn banked(count: u64) -> Isa {
    let tile = |k| slice(0, &[beta(k)], &[int(4)]);
    let mut isa = isa(
        vec![buffer("v", &[32]), buffer("w", &[64])],
        vec![
            instr("load", 0, 2, vec![window(beta(0), int(512))], tile(1)),
            instr("product", 0, 3, vec![tile(0), tile(1)], slice(1, &[beta(2)], &[int(4)])),
            instr("store", 0, 2, vec![slice(1, &[beta(0)], &[int(4)])], window(beta(1), int(512))),
        ],
    );
    isa.timing.banks.push(Banks { buffer: BufferId(0), count: vec![count], port: 1 });
    isa
}

/// Products of pairs of loaded tiles.
fn products(isa: &Isa, tiles: u16, pairs: &[(usize, usize)]) -> PiiGraph {
    let mut b = Builder::new(isa);
    let loaded: Vec<_> = (0..tiles)
        .map(|k| {
            let bytes = b.bytes(k, 0, 512);
            b.run("load", &[], &[bytes])
        })
        .collect();
    let mut stored = Vec::new();
    for (k, &(x, y)) in pairs.iter().enumerate() {
        let product = b.run("product", &[], &[loaded[x], loaded[y]]);
        stored.push(b.store("store", &[], product, 512 * k as i64, 512));
    }
    b.root(&stored)
}

/// The rows that every product reads its operands from.
fn rows(isa: &Isa, tiles: u16, pairs: &[(usize, usize)], allocator: AllocatorChoice) -> Vec<(i64, i64)> {
    let graph = products(isa, tiles, pairs);
    let kernel = in_hbm(tiles);
    let options = AllocOptions { allocator, ..AllocOptions::default() };
    let allocation = allocate(isa, &kernel, &graph, &options).unwrap();
    replay(isa, &kernel, &graph, &allocation);
    let row = |beta: &BetaVal| match beta {
        BetaVal::Int(at) => at.c0,
        BetaVal::Hbm(..) => panic!("an address"),
    };
    let product = |op| isa.instr(op).name == "product";
    let products = allocation.assembly.instrs.iter().filter(|i| product(i.op));
    products.map(|i| (row(&i.beta[0]), row(&i.beta[1]))).collect()
}

#[test]
fn operands_read_together_lie_in_different_banks() {
    // A tile that meets several others, and a ring of four.
    let cases: [(u16, &[(usize, usize)]); 3] =
        [(2, &[(0, 1)]), (4, &[(0, 1), (0, 2), (3, 0)]), (4, &[(0, 1), (1, 2), (2, 3), (3, 0)])];
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        for banks in [2, 4] {
            for (tiles, pairs) in cases {
                for (a, b) in rows(&banked(banks), tiles, pairs, allocator) {
                    let bank = 32 / banks as i64;
                    assert_ne!(a / bank, b / bank, "{banks} banks, {pairs:?}, {a} {b}");
                }
            }
        }
    }
}

/// Eight tiles fill the buffer: all that meet each other cannot lie apart, and the code is as right as without banks.
#[test]
fn what_cannot_lie_apart_lies_as_it_can() {
    let everything: Vec<(usize, usize)> = (0..8).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        assert_eq!(rows(&banked(2), 8, &everything, allocator).len(), everything.len());
        // One tile read twice is in one place.
        let twice = rows(&banked(2), 1, &[(0, 0)], allocator);
        assert_eq!(twice[0].0, twice[0].1);
    }
}
