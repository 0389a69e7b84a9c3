//! Orders: two register files where no depth-first order fits, and operands taken in the order of their needs.

use super::super::csp::Outcome;
use super::super::order::{Orders, sethi_ullman};
use super::super::precedence;
use super::super::skeleton::Skeleton;
use super::super::{AllocError, AllocLimits, AllocOptions, AllocatorChoice, allocate};
use super::description::{Builder, alpha, beta, buffer, in_hbm, instr, int, isa, slice, times, window};
use super::replay::replay;
use crate::pii::{PiiGraph, PiiId};
use act_isa::{Isa, Slice};

/// Two files of registers with loads and stores each, and an operation from every pair of files into each.
fn files(blue: u64, red: u64) -> Isa {
    let reg = |file: u16, k: u16| slice(file, &[beta(k)], &[int(1)]);
    let mut instrs = Vec::new();
    for (file, name) in ["b", "r"].into_iter().enumerate() {
        let file = file as u16;
        instrs.push(instr(&format!("load_{name}"), 0, 2, vec![window(beta(1), int(128))], reg(file, 0)));
        instrs.push(instr(&format!("store_{name}"), 0, 2, vec![reg(file, 0)], window(beta(1), int(128))));
        for (x, first) in ["b", "r"].into_iter().enumerate() {
            instrs.push(instr(&format!("{name}_{first}"), 0, 2, vec![reg(x as u16, 0)], reg(file, 1)));
            for (y, second) in ["b", "r"].into_iter().enumerate() {
                let inputs: Vec<Slice> = vec![reg(x as u16, 0), reg(y as u16, 1)];
                instrs.push(instr(&format!("{name}_{first}{second}"), 0, 3, inputs, reg(file, 2)));
            }
        }
    }
    isa(vec![buffer("blue", &[blue]), buffer("red", &[red])], instrs)
}

/// In the manner of Fig. 29: nine values in two files. Every depth-first order holds three blue values at some time,
/// interleaving the two branches holds two.
fn crossing(isa: &Isa) -> PiiGraph {
    let mut b = Builder::new(isa);
    let load = |b: &mut Builder<'_>, name: &str, k: u16| {
        let bytes = b.bytes(k, 0, 128);
        b.run(name, &[], &[bytes])
    };
    let v0 = load(&mut b, "load_b", 0);
    let v1 = load(&mut b, "load_b", 1);
    let v2 = load(&mut b, "load_r", 2);
    let v3 = load(&mut b, "load_b", 3);
    let v4 = b.run("r_b", &[], &[v0]);
    let v5 = b.run("b_br", &[], &[v1, v4]);
    let v6 = b.run("r_bb", &[], &[v1, v3]);
    let v7 = b.run("b_rr", &[], &[v2, v6]);
    let v8 = b.run("b_bb", &[], &[v5, v7]);
    let stored = b.store("store_b", &[], v8, 0, 128);
    b.root(&[stored])
}

/// Every order that finishes one operand before it starts the next, for every order of operands.
fn depth_first(skeleton: &Skeleton) -> Vec<Vec<usize>> {
    fn all_of(skeleton: &Skeleton, pending: &[usize], done: &[usize]) -> Vec<Vec<usize>> {
        let Some(&first) = pending.first() else { return vec![done.to_vec()] };
        let mut found = Vec::new();
        for (at, _) in pending.iter().enumerate() {
            let mut rest = pending.to_vec();
            let next = rest.remove(at);
            for mut so_far in one(skeleton, next, done) {
                if !so_far.contains(&next) {
                    so_far.push(next);
                }
                found.extend(all_of(skeleton, &rest, &so_far));
            }
        }
        assert!(!found.is_empty(), "{first}");
        found
    }
    fn one(skeleton: &Skeleton, step: usize, done: &[usize]) -> Vec<Vec<usize>> {
        if done.contains(&step) {
            return vec![done.to_vec()];
        }
        all_of(skeleton, &skeleton.steps[step].producers, done)
    }
    all_of(skeleton, &skeleton.sinks, &[])
}

fn solvable(skeleton: &Skeleton, order: &[usize]) -> bool {
    matches!(precedence::solve(&skeleton.csp(order), 1_000_000), Outcome::Sat(_))
}

#[test]
fn an_order_that_interleaves_is_found_where_every_depth_first_one_fails() {
    let isa = files(2, 2);
    let (graph, kernel) = (crossing(&isa), in_hbm(4));
    let skeleton = Skeleton::new(&isa, &kernel, &graph).unwrap();
    let depth_first = depth_first(&skeleton);
    assert!(depth_first.len() >= 16, "{}", depth_first.len());
    assert!(!depth_first.iter().any(|order| solvable(&skeleton, order)));
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let allocation = allocate(&isa, &kernel, &graph, &options).unwrap();
        replay(&isa, &kernel, &graph, &allocation);
        assert_eq!(allocation.orders_tried, 2, "the second order is the one that fits");
    }
    // Nothing is proven where other orders were not looked at.
    let limits = AllocLimits { prefixes: 0, spills: 0, ..AllocLimits::default() };
    let options = AllocOptions { limits, ..AllocOptions::default() };
    let error = allocate(&isa, &kernel, &graph, &options).unwrap_err();
    assert!(matches!(error, AllocError::GaveUp { orders: 1, .. }), "{error:?}");
    // With one more blue register the first order does.
    let isa = files(3, 2);
    assert_eq!(allocate(&isa, &kernel, &crossing(&isa), &AllocOptions::default()).unwrap().orders_tried, 1);
}

/// Two chains that alternate between the files, start at one value and meet.
fn ladder(isa: &Isa) -> PiiGraph {
    let mut b = Builder::new(isa);
    let shared = b.bytes(0, 0, 128);
    let shared = b.run("load_b", &[], &[shared]);
    let x1 = b.run("r_b", &[], &[shared]);
    let y1 = b.run("b_b", &[], &[shared]);
    let x2 = b.run("b_r", &[], &[x1]);
    let y2 = b.run("r_b", &[], &[y1]);
    let cross = b.run("r_br", &[], &[x2, y2]);
    let x3 = b.run("b_r", &[], &[cross]);
    let stored = b.store("store_b", &[], x3, 0, 128);
    b.root(&[stored])
}

#[test]
fn every_order_is_enumerated_once_the_first_has_failed() {
    let isa = files(8, 8);
    let kernel = in_hbm(4);
    let graph = ladder(&isa);
    let skeleton = Skeleton::new(&isa, &kernel, &graph).unwrap();
    let first = sethi_ullman(&skeleton).unwrap();
    let mut orders = Orders::new(&skeleton, first, 1_000_000);
    let mut seen = std::collections::BTreeSet::new();
    while let Some(order) = orders.next() {
        for (at, &step) in order.iter().enumerate() {
            let before = &skeleton.steps[step];
            assert!(before.producers.iter().chain(&before.hazards).all(|p| order[..at].contains(p)));
        }
        seen.insert(order);
    }
    assert!(orders.exhausted());
    // load, then x1 x2 and y1 y2 interleaved in C(4,2) ways, then three more.
    assert_eq!(seen.len(), 6);

    // An order that failed excludes those that interfere at least as much.
    let mut orders = Orders::new(&skeleton, sethi_ullman(&skeleton).unwrap(), 1_000_000);
    let mut tried = 0;
    while orders.next().is_some() {
        tried += 1;
        orders.last_failed();
    }
    assert!(orders.exhausted() && tried < 6, "{tried}");
}

#[test]
fn all_small_register_files_agree_with_exhaustive_search() {
    // Whatever the sizes of the files, an order is found exactly when some order of all has an allocation.
    for graph_of in [crossing, ladder] {
        for blue in 1..4 {
            for red in 1..4 {
                let isa = files(blue, red);
                let kernel = in_hbm(4);
                let graph = graph_of(&isa);
                let skeleton = Skeleton::new(&isa, &kernel, &graph).unwrap();
                let all = permutations(&skeleton);
                let possible = all.iter().any(|order| solvable(&skeleton, order));
                for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
                    let options = AllocOptions { allocator, ..AllocOptions::default() };
                    match allocate(&isa, &kernel, &graph, &options) {
                        Ok(allocation) => {
                            assert!(possible);
                            replay(&isa, &kernel, &graph, &allocation);
                        }
                        Err(AllocError::NoFit { .. }) => assert!(!possible, "blue {blue}, red {red}"),
                        Err(other) => panic!("{other:?}"),
                    }
                }
            }
        }
    }
}

/// All topological orders, by the plainest recursion.
fn permutations(skeleton: &Skeleton) -> Vec<Vec<usize>> {
    fn extend(skeleton: &Skeleton, prefix: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if prefix.len() == skeleton.steps.len() {
            all.push(prefix.clone());
        }
        for step in 0..skeleton.steps.len() {
            let s = &skeleton.steps[step];
            if !prefix.contains(&step) && s.producers.iter().chain(&s.hazards).all(|p| prefix.contains(p)) {
                prefix.push(step);
                extend(skeleton, prefix, all);
                prefix.pop();
            }
        }
    }
    let mut all = Vec::new();
    extend(skeleton, &mut Vec::new(), &mut all);
    all
}

#[test]
fn the_needier_operand_comes_first() {
    // A narrow load and a wide tree: depth-first by operand order would keep the load waiting.
    let n = || alpha(0);
    let isa = isa(
        vec![buffer("d", &[8])],
        vec![
            instr("load", 1, 2, vec![window(beta(1), times(n(), 128))], slice(0, &[beta(0)], &[n()])),
            instr(
                "sum",
                0,
                3,
                vec![slice(0, &[beta(0)], &[int(4)]), slice(0, &[beta(1)], &[int(4)])],
                slice(0, &[beta(2)], &[int(2)]),
            ),
            instr(
                "mix",
                0,
                3,
                vec![slice(0, &[beta(0)], &[int(2)]), slice(0, &[beta(1)], &[int(2)])],
                slice(0, &[beta(2)], &[int(2)]),
            ),
            instr("store", 1, 2, vec![slice(0, &[beta(0)], &[n()])], window(beta(1), times(n(), 128))),
        ],
    );
    let mut b = Builder::new(&isa);
    let (x, y, z) = (b.bytes(0, 0, 256), b.bytes(1, 0, 512), b.bytes(2, 0, 512));
    let x = b.run("load", &[2], &[x]);
    let (y, z) = (b.run("load", &[4], &[y]), b.run("load", &[4], &[z]));
    let sum = b.run("sum", &[], &[y, z]);
    let mixed = b.run("mix", &[], &[x, sum]);
    let stored = b.store("store", &[2], mixed, 0, 256);
    let graph = b.root(&[stored]);
    let allocation = allocate(&isa, &in_hbm(3), &graph, &AllocOptions::default()).unwrap();
    assert_eq!(allocation.orders_tried, 1);
    assert_eq!(allocation.order, [y, z, sum, x, mixed, stored]);
}

/// Two buffers of these sizes; loads, and operations of two operands of any lengths, in each.
fn sized(blue: u64, red: u64) -> Isa {
    let at = |file: u16, k: u16, len: u16| slice(file, &[beta(k)], &[alpha(len)]);
    let mut instrs = Vec::new();
    for (file, name) in [(0, "b"), (1, "r")] {
        let bytes = window(beta(1), times(alpha(0), 128));
        instrs.push(instr(&format!("load_{name}"), 1, 2, vec![bytes], at(file, 0, 0)));
        let operands = vec![at(file, 0, 0), at(file, 1, 1)];
        instrs.push(instr(&format!("op_{name}"), 3, 3, operands, at(file, 2, 2)));
    }
    instrs.push(instr("join", 3, 3, vec![at(0, 0, 0), at(1, 1, 1)], at(0, 2, 2)));
    instrs.push(instr("store", 1, 2, vec![at(0, 0, 0)], window(beta(1), times(alpha(0), 128))));
    isa(vec![buffer("blue", &[blue]), buffer("red", &[red])], instrs)
}

struct Tree<'a>(Builder<'a>);

impl Tree<'_> {
    fn load(&mut self, file: &str, len: i64) -> PiiId {
        let bytes = self.0.bytes(0, 0, 128 * len.unsigned_abs());
        self.0.run(&format!("load_{file}"), &[len], &[bytes])
    }

    fn run(&mut self, name: &str, lens: [i64; 3], operands: [PiiId; 2]) -> PiiId {
        self.0.run(name, &lens, &operands)
    }

    fn order(mut self, len: i64, root: PiiId) -> Vec<PiiId> {
        let stored = self.0.store("store", &[len], root, 0, 128 * len.unsigned_abs());
        let (isa, graph) = (self.0.isa, self.0.root(&[stored]));
        let kernel = in_hbm(1);
        let skeleton = Skeleton::new(isa, &kernel, &graph).unwrap();
        sethi_ullman(&skeleton).unwrap().into_iter().map(|step| skeleton.steps[step].node).collect()
    }
}

/// Appendix B.5 by hand: a node needs the least, over its operands, of what the operand needs with the others in place.
#[test]
fn extended_numbers_are_those_of_the_paper() {
    let isa = sized(64, 64);
    let mut tree = Tree(Builder::new(&isa));
    // p needs 4; q needs 3 + 3 and holds 1. y: p last takes 4 + 1, q last 6 + 4; it needs 5 and holds 1.
    let p = tree.load("b", 4);
    let (q1, q2) = (tree.load("b", 3), tree.load("b", 3));
    let q = tree.run("op_b", [3, 3, 1], [q1, q2]);
    let y = tree.run("op_b", [4, 1, 1], [p, q]);
    // z needs 3 + 4 and holds 1: more than the 5 of y, less than its 10.
    let (z1, z2) = (tree.load("b", 3), tree.load("b", 4));
    let z = tree.run("op_b", [3, 4, 1], [z1, z2]);
    let root = tree.run("op_b", [1, 1, 1], [y, z]);
    let order = tree.order(1, root);
    // Of the operands of y, q (6 + 4) comes before p (4 + 1).
    assert_eq!(order[..order.len() - 1], [z1, z2, z, q1, q2, q, p, y, root]);
}

/// What counts is the share of a buffer: 4 of 4 before 16 of 64.
#[test]
fn needs_are_compared_as_shares_of_their_buffers() {
    for (red, red_first) in [(4, true), (64, false)] {
        let isa = sized(64, red);
        let mut tree = Tree(Builder::new(&isa));
        let (x1, x2) = (tree.load("b", 8), tree.load("b", 8));
        let x = tree.run("op_b", [8, 8, 8], [x1, x2]);
        let (y1, y2) = (tree.load("r", 2), tree.load("r", 2));
        let y = tree.run("op_r", [2, 2, 2], [y1, y2]);
        let root = tree.run("join", [8, 2, 1], [x, y]);
        let order = tree.order(1, root);
        let wanted = if red_first { [y1, y2, y, x1, x2, x] } else { [x1, x2, x, y1, y2, y] };
        assert_eq!(order[..6], wanted);
    }
}

/// Further orders are looked for when they are asked for: without any budget the first one is there all the same.
#[test]
fn further_orders_are_found_lazily() {
    let isa = files(2, 2);
    let (graph, kernel) = (crossing(&isa), in_hbm(4));
    let skeleton = Skeleton::new(&isa, &kernel, &graph).unwrap();
    let first = sethi_ullman(&skeleton).unwrap();
    for (budget, further) in [(0, false), (1_000, true)] {
        let mut orders = Orders::new(&skeleton, first.clone(), budget);
        assert_eq!(orders.next().as_ref(), Some(&first));
        assert_eq!(orders.next().is_some(), further);
        assert!(!orders.exhausted());
    }
}
