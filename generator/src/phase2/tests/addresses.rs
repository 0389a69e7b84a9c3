//! Addresses of d0 and conditions on attributes: what an instruction demands of them holds in the code, or there is none.

use super::super::order::{Orders, sethi_ullman};
use super::super::skeleton::Skeleton;
use super::super::{AllocError, AllocOptions, Allocation, AllocatorChoice, allocate};
use super::description::{
    Builder, alpha, beta, buffer, in_hbm, instr, int, isa, requires, slice, times, window,
};
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::expr::Relation;
use act_isa::{BetaVal, Cond, Expr, Isa, LoopId, Space, View};

/// A file of eight registers; `map` has the condition given.
fn registers(cond: Cond) -> Isa {
    let reg = |k: u16| slice(0, &[beta(k)], &[int(1)]);
    isa(
        vec![buffer("r", &[8])],
        vec![
            instr("load", 0, 2, vec![window(beta(1), int(128))], reg(0)),
            instr("store", 0, 2, vec![reg(0)], window(beta(1), int(128))),
            requires(instr("map", 1, 2, vec![reg(0)], reg(1)), cond),
        ],
    )
}

fn mapped(isa: &Isa) -> PiiGraph {
    let mut b = Builder::new(isa);
    let bytes = b.bytes(0, 0, 128);
    let x = b.run("load", &[], &[bytes]);
    let y = b.run("map", &[4], &[x]);
    let stored = b.store("store", &[], y, 0, 128);
    b.root(&[stored])
}

fn compare(relation: Relation, a: Expr, b: i64) -> Cond {
    Cond::Cmp(relation, a, int(b))
}

#[test]
fn conditions_of_instructions_hold_or_there_is_no_code() {
    use Relation::{Eq, Ge, Gt, Le, Lt, Ne};
    // Slots that the result may have.
    let cases: [(Cond, &[i64]); 9] = [
        (compare(Ge, beta(1), 5), &[5, 6, 7]),
        (compare(Gt, beta(1), 6), &[7]),
        (compare(Ge, beta(1), 8), &[]),
        (compare(Lt, beta(0), 0), &[]),
        (Cond::And(Box::new(compare(Le, beta(0), 2)), Box::new(compare(Eq, beta(1), 3))), &[3]),
        (compare(Ne, beta(1), 0), &[1, 2, 3, 4, 5, 6, 7]),
        (Cond::In(beta(1), vec![4, 6]), &[4, 6]),
        (compare(Eq, alpha(0), 4), &[0, 1, 2, 3, 4, 5, 6, 7]),
        // Of a computational attribute alone.
        (compare(Eq, alpha(0), 3), &[]),
    ];
    for (cond, allowed) in cases {
        let isa = registers(cond.clone());
        for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
            let options = AllocOptions { allocator, ..AllocOptions::default() };
            match allocate(&isa, &in_hbm(1), &mapped(&isa), &options) {
                Ok(Allocation { assembly, .. }) => {
                    let BetaVal::Int(at) = &assembly.instrs[1].beta[1] else { panic!("an address") };
                    assert!(allowed.contains(&at.c0), "{cond:?}: {}", at.c0);
                }
                Err(AllocError::NoFit { .. }) => assert!(allowed.is_empty(), "{cond:?}"),
                Err(other) => panic!("{cond:?}: {other}"),
            }
        }
    }
}

/// Loads from 64 bytes behind its attribute, and a sum of two windows with one attribute.
fn windows(align: u64) -> Isa {
    let reg = |k: u16| slice(0, &[beta(k)], &[int(1)]);
    let behind = || window(Expr::Add(Box::new(beta(1)), Box::new(int(64))), int(128));
    let mut isa = isa(
        vec![buffer("r", &[8])],
        vec![
            instr("load", 0, 2, vec![behind()], reg(0)),
            instr("both", 0, 2, vec![window(beta(1), int(128)), window(beta(1), int(128))], reg(0)),
            instr("store", 0, 2, vec![reg(0)], window(beta(1), int(128))),
        ],
    );
    isa.hbm.align = align;
    isa
}

fn loaded(isa: &Isa, start: i64, step: i64) -> Result<Allocation, AllocError> {
    let mut b = Builder::new(isa);
    let bytes = b.bytes(0, start, 128);
    if step != 0
        && let PiiOp::HbmView(view) = &mut b.graph.nodes[bytes.0 as usize].op
    {
        view.start.ivs.push((LoopId(0), step));
    }
    let x = b.run("load", &[], &[bytes]);
    let stored = b.store("store", &[], x, 0, 128);
    let graph = b.root(&[stored]);
    allocate(isa, &in_hbm(1), &graph, &AllocOptions::default())
}

#[test]
fn byte_addresses_are_those_of_the_kernel() {
    let address = |allocation: &Allocation| match &allocation.assembly.instrs[0].beta[1] {
        BetaVal::Hbm(space, at) => (*space, at.c0, at.ivs.clone()),
        BetaVal::Int(_) => panic!("a slot"),
    };
    let found = loaded(&windows(1), 256, 0).unwrap();
    assert_eq!(address(&found), (Space::Operand(0), 192, vec![]));
    // Far beyond 32 bits, in a loop.
    let found = loaded(&windows(64), 1 << 40, 1 << 33).unwrap();
    assert_eq!(address(&found), (Space::Operand(0), (1 << 40) - 64, vec![(LoopId(0), 1 << 33)]));
    for (start, step) in [(32, 0), (64, 32)] {
        let error = loaded(&windows(64), start, step).unwrap_err();
        assert!(matches!(error, AllocError::UnalignedAddress { align: 64, .. }), "{error:?}");
    }
}

#[test]
fn one_attribute_is_one_address() {
    let isa = windows(1);
    for (second, fits) in [(0, true), (128, false)] {
        let mut b = Builder::new(&isa);
        let (x, y) = (b.bytes(0, 0, 128), b.bytes(0, second, 128));
        let sum = b.run("both", &[], &[x, y]);
        let stored = b.store("store", &[], sum, 0, 128);
        let graph = b.root(&[stored]);
        let found = allocate(&isa, &in_hbm(1), &graph, &AllocOptions::default());
        assert_eq!(found.is_ok(), fits, "{found:?}");
    }
}

fn view(space: Space, start: i64) -> View {
    super::description::byte_view(space, start, 128)
}

/// Whether in every order, the first one among them, one node comes before another.
fn always_before(isa: &Isa, graph: &PiiGraph, first: PiiId, second: PiiId) -> bool {
    let kernel = in_hbm(2);
    let skeleton = Skeleton::new(isa, &kernel, graph).unwrap();
    let step = |node: PiiId| skeleton.steps.iter().position(|step| step.node == node).unwrap();
    let (first, second) = (step(first), step(second));
    let mut orders = Orders::new(&skeleton, sethi_ullman(&skeleton).unwrap(), 100_000);
    let mut all = 0;
    while let Some(order) = orders.next() {
        all += 1;
        let at = |step: usize| order.iter().position(|&s| s == step).unwrap();
        if at(first) > at(second) {
            return false;
        }
    }
    assert!(orders.exhausted() && all > 1);
    true
}

/// Bytes of a result are loaded before they are overwritten; scratch bytes are loaded after they were written.
#[test]
fn loads_and_stores_of_the_same_bytes_keep_their_order() {
    let isa = registers(compare(Relation::Ge, times(beta(0), 1), 0));
    for (start, same) in [(0, true), (64, true), (128, false)] {
        let mut b = Builder::new(&isa);
        let bytes = b.bytes(0, 0, 128);
        let new = b.run("load", &[], &[bytes]);
        let overwrites = b.store("store", &[], new, 0, 128);
        let bytes = b.bytes(0, 0, 128);
        b.graph.nodes[bytes.0 as usize].op = PiiOp::HbmView(view(Space::Result(0), start));
        let old = b.run("load", &[], &[bytes]);
        let kept = b.store("store", &[], old, 512, 128);
        let graph = b.root(&[overwrites, kept]);
        assert_eq!(always_before(&isa, &graph, old, overwrites), same, "{start}");
    }

    let mut b = Builder::new(&isa);
    let bytes = b.bytes(0, 0, 128);
    let value = b.run("load", &[], &[bytes]);
    let spill = b.store("store", &[], value, 0, 128);
    if let PiiOp::Instr { store, .. } = &mut b.graph.nodes[spill.0 as usize].op {
        *store = Some(view(Space::Scratch, 0));
    }
    let bytes = b.bytes(0, 0, 128);
    b.graph.nodes[bytes.0 as usize].op = PiiOp::HbmView(view(Space::Scratch, 0));
    let again = b.run("load", &[], &[bytes]);
    let other = b.bytes(1, 0, 128);
    let other = b.run("load", &[], &[other]);
    let stored = [b.store("store", &[], again, 0, 128), b.store("store", &[], other, 128, 128)];
    let graph = b.root(&stored);
    assert!(always_before(&isa, &graph, spill, again));
}
