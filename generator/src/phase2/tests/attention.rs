//! The paper's running example: attention on H_QKV, and chains of products that fit or do not fit its buffers.

use super::super::{AllocError, AllocOptions, AllocatorChoice, AllocatorUsed, allocate};
use super::description::{Builder, h_qkv, in_hbm};
use super::replay::replay;
use crate::pii::PiiGraph;
use act_isa::{Affine, BetaVal, Isa, Space};

pub(super) const TILE: u64 = 8192;

/// softmax(Q·Kᵀ)·V.
pub(super) fn attention(isa: &Isa) -> PiiGraph {
    let mut b = Builder::new(isa);
    let q = b.bytes(0, 0, TILE);
    let q = b.run("load_rm", &[64], &[q]);
    let k = b.bytes(1, 0, TILE);
    let k = b.run("load_cm", &[64], &[k]);
    let s = b.run("gemm", &[], &[q, k]);
    let s = b.run("softmax", &[64], &[s]);
    let s = b.run("mov", &[64], &[s]);
    let v = b.bytes(2, 0, TILE);
    let v = b.run("load_rm", &[64], &[v]);
    let o = b.run("gemm", &[], &[s, v]);
    let o = b.run("mov", &[64], &[o]);
    let o = b.store("store_rm", &[64], o, 0, TILE);
    b.root(&[o])
}

#[test]
fn attention_is_the_papers_nine_instructions() {
    let isa = h_qkv();
    let graph = attention(&isa);
    let kernel = in_hbm(3);
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let allocation = allocate(&isa, &kernel, &graph, &options).unwrap();
        replay(&isa, &kernel, &graph, &allocation);
        let names: Vec<&str> =
            allocation.assembly.instrs.iter().map(|i| isa.instr(i.op).name.as_str()).collect();
        assert_eq!(
            names,
            ["load_rm", "load_cm", "gemm", "softmax", "mov", "load_rm", "gemm", "mov", "store_rm"]
        );
        let used = match allocator {
            AllocatorChoice::Auto => AllocatorUsed::Precedence,
            AllocatorChoice::CpSat => AllocatorUsed::CpSat,
        };
        assert_eq!(allocation.allocator, used);
        assert_eq!(allocation.orders_tried, 1);
    }
}

#[test]
fn addresses_are_the_papers() {
    let isa = h_qkv();
    let allocation = allocate(&isa, &in_hbm(3), &attention(&isa), &AllocOptions::default()).unwrap();
    let slot = |v| BetaVal::Int(Affine::constant(v));
    let address = |space| BetaVal::Hbm(space, Affine::constant(0));
    let betas: Vec<Vec<BetaVal>> = allocation.assembly.instrs.iter().map(|i| i.beta.clone()).collect();
    // Fig. 13 (b), with the segments of d0 in place of its flat addresses.
    assert_eq!(
        betas,
        [
            vec![address(Space::Operand(0)), slot(0)],
            vec![address(Space::Operand(1)), slot(64)],
            vec![slot(0), slot(64), slot(0)],
            vec![slot(0)],
            vec![slot(0), slot(0)],
            vec![address(Space::Operand(2)), slot(64)],
            vec![slot(0), slot(64), slot(0)],
            vec![slot(0), slot(0)],
            vec![slot(0), address(Space::Result(0))],
        ]
    );
}

#[test]
fn a_chain_of_products_fits() {
    let isa = h_qkv();
    let mut b = Builder::new(&isa);
    let mut product = b.bytes(0, 0, TILE);
    product = b.run("load_rm", &[64], &[product]);
    for k in 1..4 {
        let next = b.bytes(k, 0, TILE);
        let next = b.run("load_rm", &[64], &[next]);
        product = b.run("gemm", &[], &[product, next]);
        product = b.run("mov", &[64], &[product]);
    }
    let stored = b.store("store_rm", &[64], product, 0, TILE);
    let graph = b.root(&[stored]);
    let kernel = in_hbm(4);
    let allocation = allocate(&isa, &kernel, &graph, &AllocOptions::default()).unwrap();
    assert_eq!(allocation.assembly.instrs.len(), 11);
    replay(&isa, &kernel, &graph, &allocation);
}

/// (A·B)·(C·D) without a spill: three tiles would have to be live in a buffer of two.
pub(super) fn product_of_products(isa: &Isa) -> PiiGraph {
    let mut b = Builder::new(isa);
    let mut halves = Vec::new();
    for k in [0, 2] {
        let (x, y) = (b.bytes(k, 0, TILE), b.bytes(k + 1, 0, TILE));
        let (x, y) = (b.run("load_rm", &[64], &[x]), b.run("load_rm", &[64], &[y]));
        let product = b.run("gemm", &[], &[x, y]);
        halves.push(b.run("mov", &[64], &[product]));
    }
    let product = b.run("gemm", &[], &halves);
    let product = b.run("mov", &[64], &[product]);
    let stored = b.store("store_rm", &[64], product, 0, TILE);
    b.root(&[stored])
}

#[test]
fn what_does_not_fit_names_the_buffer() {
    let isa = h_qkv();
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let error = allocate(&isa, &in_hbm(4), &product_of_products(&isa), &options).unwrap_err();
        let AllocError::NoFit { shortage, .. } = &error else { panic!("{error:?}") };
        // Four tiles of 64 rows would have to lie in 128 or, moved on, two in 64: the least that says so is named.
        let room: u64 = shortage.buffers.iter().map(|(_, room)| room[0]).sum();
        let needed: u64 = shortage.values.iter().map(|(_, lens)| lens[0]).sum();
        assert!(needed > room && needed - 64 <= room, "{error}");
        assert!(error.to_string().contains(" has no room for "), "{error}");
    }
}
