//! Parameters and results that lie on chip: pinned, carried, accumulated in place, or merely in the way.

use super::super::{AllocError, AllocOptions, AllocatorChoice, allocate};
use super::description::{Builder, beta, buffer, in_hbm, instr, int, isa, kernel, on_chip, slice, window};
use super::replay::replay;
use act_hlo::{ElemType, Shape};
use act_isa::{Isa, Place};

/// A file of `n` registers with load, store, a sum into a third and an update in place.
fn registers(n: u64) -> Isa {
    let reg = |k: u16| slice(0, &[beta(k)], &[int(1)]);
    isa(
        vec![buffer("r", &[n])],
        vec![
            instr("load", 0, 2, vec![window(beta(1), int(128))], reg(0)),
            instr("store", 0, 2, vec![reg(0)], window(beta(1), int(128))),
            instr("add", 0, 3, vec![reg(0), reg(1)], reg(2)),
            instr("acc", 0, 2, vec![reg(0), reg(1)], reg(0)),
        ],
    )
}

const CHOICES: [AllocatorChoice; 2] = [AllocatorChoice::Auto, AllocatorChoice::CpSat];

#[test]
fn an_accumulator_stays_at_its_slot() {
    let isa = registers(4);
    for (instr, slot) in [("acc", None), ("acc", Some([2].as_slice())), ("add", Some([3].as_slice()))] {
        let kernel = kernel(
            vec![on_chip(0, slot, true), in_hbm(1).ins[0].clone()],
            vec![on_chip(0, slot, true)],
            vec![Some(0)],
        );
        let mut b = Builder::new(&isa);
        let sum = b.input(0, 0, &[1]);
        let bytes = b.bytes(1, 0, 128);
        let term = b.run("load", &[], &[bytes]);
        let sum = b.run(instr, &[], &[sum, term]);
        let graph = b.root(&[sum]);
        for allocator in CHOICES {
            let options = AllocOptions { allocator, ..AllocOptions::default() };
            let allocation = allocate(&isa, &kernel, &graph, &options).unwrap();
            replay(&isa, &kernel, &graph, &allocation);
            assert_eq!(allocation.in_slots[0], allocation.out_slots[0]);
            assert!(slot.is_none_or(|s| allocation.out_slots[0].as_deref() == Some(s)));
        }
    }
}

#[test]
fn a_carried_parameter_survives_unless_it_is_accumulated() {
    // One register for the parameter, one for whatever else: an in-place update of a carried value cannot be.
    let isa = registers(2);
    let hbm = in_hbm(1);
    let mut b = Builder::new(&isa);
    let x = b.input(0, 0, &[1]);
    let bytes = b.bytes(1, 0, 128);
    let y = b.run("load", &[], &[bytes]);
    let sum = b.run("acc", &[], &[x, y]);
    let stored = b.store("store", &[], sum, 0, 128);
    let graph = b.root(&[stored]);
    for allocator in CHOICES {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let free = kernel(vec![on_chip(0, None, false), hbm.ins[0].clone()], hbm.outs.clone(), vec![None]);
        let allocation = allocate(&isa, &free, &graph, &options).unwrap();
        replay(&isa, &free, &graph, &allocation);
        let carried = kernel(vec![on_chip(0, None, true), hbm.ins[0].clone()], hbm.outs.clone(), vec![None]);
        let error = allocate(&isa, &carried, &graph, &options).unwrap_err();
        assert!(matches!(error, AllocError::NoFit { .. }), "{error:?}");
    }
}

#[test]
fn a_parameter_that_nothing_reads_is_in_the_way() {
    let hbm = in_hbm(1);
    for (registers_there, possible) in [(2, false), (3, true)] {
        let isa = registers(registers_there);
        let mut kernel = kernel(
            vec![on_chip(0, Some(&[1]), true), hbm.ins[0].clone(), hbm.ins[0].clone()],
            hbm.outs.clone(),
            vec![None],
        );
        for dims in [[1, 64], [64, 64], [64, 64]] {
            kernel.graph.parameter(Shape::new(ElemType::BF16, dims.to_vec()));
        }
        let mut b = Builder::new(&isa);
        let (x, y) = (b.bytes(1, 0, 128), b.bytes(2, 0, 128));
        let (x, y) = (b.run("load", &[], &[x]), b.run("load", &[], &[y]));
        let sum = b.run("acc", &[], &[x, y]);
        let stored = b.store("store", &[], sum, 0, 128);
        let graph = b.root(&[stored]);
        match allocate(&isa, &kernel, &graph, &AllocOptions::default()) {
            Ok(allocation) => {
                assert!(possible);
                assert_eq!(allocation.in_slots[0], Some(vec![1]));
                let touched = |slot: &Option<Vec<i64>>| slot.as_ref().is_some_and(|s| s == &[1]);
                assert!(!allocation.slots[..graph.nodes.len()].iter().any(touched));
            }
            Err(error) => assert!(!possible && matches!(error, AllocError::NoFit { .. }), "{error:?}"),
        }
    }
}

#[test]
fn pins_that_contradict_are_refused() {
    let isa = registers(4);
    let place = |slot: i64| on_chip(0, Some(&[slot]), false);
    let mut b = Builder::new(&isa);
    let x = b.input(0, 0, &[1]);
    let graph = b.root(&[x]);
    for (input, output, fits) in [(1, 1, true), (1, 2, false), (4, 4, false), (-1, -1, false)] {
        let kernel = kernel(vec![place(input)], vec![place(output)], vec![None]);
        assert_eq!(
            allocate(&isa, &kernel, &graph, &AllocOptions::default()).is_ok(),
            fits,
            "{input} {output}"
        );
    }
}

#[test]
fn a_graph_that_does_not_fit_its_kernel_is_refused() {
    let isa = registers(4);
    let hbm = in_hbm(1);
    let build = |bytes: u64, lens: &[u64]| {
        let mut b = Builder::new(&isa);
        let x = b.bytes(0, 0, bytes);
        let x = b.run("load", &[], &[x]);
        b.graph.nodes[x.0 as usize].lens = lens.to_vec();
        let stored = b.store("store", &[], x, 0, 128);
        b.root(&[stored])
    };
    let is_malformed = |graph: &crate::PiiGraph, outs: Vec<Place>| {
        let kernel = kernel(hbm.ins.clone(), outs, vec![None]);
        match allocate(&isa, &kernel, graph, &AllocOptions::default()) {
            Ok(_) => false,
            Err(AllocError::Malformed { .. }) => true,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(!is_malformed(&build(128, &[1]), hbm.outs.clone()));
    assert!(is_malformed(&build(64, &[1]), hbm.outs.clone()), "a window of the wrong length");
    assert!(is_malformed(&build(128, &[2]), hbm.outs.clone()), "a slot of the wrong length");
    assert!(is_malformed(&build(128, &[1, 1]), hbm.outs.clone()), "a slot of the wrong rank");
    assert!(is_malformed(&build(128, &[1]), vec![on_chip(0, None, false)]), "a root in the wrong place");
    assert!(is_malformed(&build(128, &[1]), Vec::new()), "a root too many");
    let mut bad = build(128, &[1]);
    bad.nodes[1].operands = vec![crate::PiiId(7)];
    assert!(is_malformed(&bad, hbm.outs.clone()), "an operand that does not exist");
}

/// The result of an addition that is no update in place lies where the parameter was that it takes over from.
#[test]
fn a_result_takes_over_its_parameter() {
    let isa = registers(4);
    let kernel = kernel(
        vec![on_chip(0, Some(&[2]), true), in_hbm(1).ins[0].clone()],
        vec![on_chip(0, None, true), in_hbm(1).outs[0].clone()],
        vec![Some(0), None],
    );
    let mut b = Builder::new(&isa);
    let before = b.input(0, 0, &[1]);
    let bytes = b.bytes(1, 0, 128);
    let term = b.run("load", &[], &[bytes]);
    let sum = b.run("add", &[], &[before, term]);
    b.graph.roots.push(vec![sum]);
    let stored = b.store("store", &[], before, 0, 128);
    let graph = b.root(&[stored]);
    for allocator in CHOICES {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let allocation = allocate(&isa, &kernel, &graph, &options).unwrap();
        replay(&isa, &kernel, &graph, &allocation);
        assert_eq!(allocation.out_slots[0], Some(vec![2]));
        // The parameter is stored before the sum replaces it, in the first order already.
        assert_eq!(allocation.orders_tried, 1);
    }
}
