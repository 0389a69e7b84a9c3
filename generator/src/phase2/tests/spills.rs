//! Spills: instructions found by their semantics, loads made again, and refusals where nothing restores a value.

use super::super::csp::Outcome;
use super::super::order::sethi_ullman;
use super::super::skeleton::Skeleton;
use super::super::{AllocError, AllocLimits, AllocOptions, Allocation, allocate, allocations, cpsat};
use super::attention::{TILE, product_of_products};
use super::description::{Builder, beta, buffer, in_hbm, instr, int, isa, slice, times, window};
use super::replay::replay;
use crate::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_hlo::ElemType;
use act_isa::{Affine, HbmWindow, Isa, Slice, Space, View, load_target};

/// The description with the semantics that phase 2 asks for.
fn h_qkv() -> Isa {
    load_target("h_qkv").unwrap_or_else(|e| panic!("{e}"))
}

fn names(isa: &Isa, allocation: &Allocation) -> Vec<String> {
    allocation.assembly.instrs.iter().map(|i| isa.instr(i.op).name.clone()).collect()
}

/// Instructions that store to scratch memory and that load from it.
fn through_scratch(isa: &Isa, allocation: &Allocation) -> Vec<String> {
    let graph = &allocation.graph;
    let scratch = |id: &PiiId| {
        let node = graph.node(*id);
        let loads = node
            .operands
            .iter()
            .any(|&o| matches!(&graph.node(o).op, PiiOp::HbmView(view) if view.space == Space::Scratch));
        loads || matches!(&node.op, PiiOp::Instr { store: Some(view), .. } if view.space == Space::Scratch)
    };
    let name = |id: &PiiId| match &graph.node(*id).op {
        PiiOp::Instr { op, .. } => isa.instr(*op).name.clone(),
        _ => String::new(),
    };
    allocation.order.iter().filter(|id| scratch(id)).map(name).collect()
}

#[test]
fn a_product_is_spilled_by_what_puts_it_back() {
    let isa = h_qkv();
    let graph = product_of_products(&isa);
    let allocation = allocate(&isa, &in_hbm(4), &graph, &AllocOptions::default()).unwrap();
    replay(&isa, &in_hbm(4), &allocation.graph, &allocation);
    assert_eq!(allocation.assembly.scratch_bytes, TILE);
    assert_eq!(through_scratch(&isa, &allocation), ["store_rm", "load_rm"]);
}

#[test]
fn two_transposing_moves_restore_each_other_and_one_does_not() {
    // The plain store made a transposing one: only the transposing load undoes it.
    let mut isa = h_qkv();
    let (rm, cm) = (isa.instr_named("store_rm").unwrap(), isa.instr_named("store_cm").unwrap());
    isa.instrs[usize::from(rm.0)].computation = isa.instr(cm).computation.clone();
    let graph = product_of_products(&isa);
    let allocation = allocate(&isa, &in_hbm(4), &graph, &AllocOptions::default()).unwrap();
    let moves = through_scratch(&isa, &allocation);
    assert!(moves[0].starts_with("store") && moves[1] == "load_cm", "{moves:?}");

    // Without it nothing restores a value.
    let (plain, transposing) = (isa.instr_named("load_rm").unwrap(), isa.instr_named("load_cm").unwrap());
    isa.instrs[usize::from(transposing.0)].computation = isa.instr(plain).computation.clone();
    let error = allocate(&isa, &in_hbm(4), &graph, &AllocOptions::default()).unwrap_err();
    assert!(matches!(error, AllocError::NoFit { .. }), "{error:?}");
}

/// (A·B)·A: A is wanted again after both tiles of d1 were needed, and loading it again is cheaper than a spill.
fn reused_operand(isa: &Isa) -> PiiGraph {
    let mut b = Builder::new(isa);
    let (x, y, z) = (b.bytes(0, 0, TILE), b.bytes(1, 0, TILE), b.bytes(2, 0, TILE));
    let (x, y, z) =
        (b.run("load_rm", &[64], &[x]), b.run("load_rm", &[64], &[y]), b.run("load_rm", &[64], &[z]));
    let xy = b.run("gemm", &[], &[x, y]);
    let xy = b.run("mov", &[64], &[xy]);
    let xyz = b.run("gemm", &[], &[xy, z]);
    let xyz = b.run("mov", &[64], &[xyz]);
    let product = b.run("gemm", &[], &[xyz, x]);
    let product = b.run("mov", &[64], &[product]);
    let stored = b.store("store_rm", &[64], product, 0, TILE);
    b.root(&[stored])
}

#[test]
fn a_load_is_made_again_rather_than_spilled() {
    let isa = h_qkv();
    let graph = reused_operand(&isa);
    let allocation = allocate(&isa, &in_hbm(3), &graph, &AllocOptions::default()).unwrap();
    replay(&isa, &in_hbm(3), &allocation.graph, &allocation);
    assert_eq!(allocation.assembly.scratch_bytes, 0);
    let loads = names(&isa, &allocation).iter().filter(|n| *n == "load_rm").count();
    assert_eq!((loads, allocation.assembly.instrs.len()), (4, graph.instructions() + 1));
}

/// Two values side by side in scratch memory, row by row, loaded as one.
#[test]
fn rows_of_two_values_may_alternate_in_scratch_memory() {
    let register = |k: u16| slice(0, &[beta(k)], &[int(1)]);
    let rows = HbmWindow { start: beta(1), dims: vec![(int(4), int(8)), (int(4), int(1))] };
    let isa = isa(
        vec![buffer("r", &[2])],
        vec![
            instr("load", 0, 2, vec![window(beta(1), int(32))], register(0)),
            instr("store", 0, 2, vec![register(0)], window(beta(1), int(32))),
            instr("store_rows", 0, 2, vec![register(0)], Slice::Hbm(rows)),
        ],
    );
    let at = |start: i64, dims: &[(u64, i64)]| View {
        space: Space::Scratch,
        elem: ElemType::U8,
        dims: dims.to_vec(),
        start: Affine::constant(start),
    };
    for (second, fits) in [(4, true), (3, false)] {
        let mut b = Builder::new(&isa);
        for k in 0..2 {
            let bytes = b.bytes(k, 0, 32);
            let value = b.run("load", &[], &[bytes]);
            let place = at(i64::from(k) * second, &[(4, 8), (4, 1)]);
            b.store("store_rows", &[], value, 0, 0);
            let Some(PiiNode { op: PiiOp::Instr { store, .. }, .. }) = b.graph.nodes.last_mut() else {
                panic!()
            };
            *store = Some(place);
        }
        b.graph.nodes.push(PiiNode {
            op: PiiOp::HbmView(at(0, &[(32, 1)])),
            operands: Vec::new(),
            buffer: None,
            lens: Vec::new(),
        });
        let both = PiiId(b.graph.nodes.len() as u32 - 1);
        let both = b.run("load", &[], &[both]);
        let stored = b.store("store", &[], both, 0, 32);
        let graph = b.root(&[stored]);
        let result = allocate(&isa, &in_hbm(2), &graph, &AllocOptions::default());
        assert_eq!(result.is_ok(), fits, "{result:?}");
    }
}

/// A machine of so many registers, all of whose instructions take registers.
pub(super) fn few_registers(count: u64) -> Isa {
    let moved = |there: &str, name: &str| {
        let (from, to) = ("d0[addr :+ 32]", "v[r :+ 1]");
        if there == "load" {
            format!(
                "instr {name} beta(addr, r) {{ in {from} out {to} computation {{ x = u8[32] parameter(0) \
                 y = u8[8, 4] reshape(x) z = f32[8] bitcast-convert(y) ROOT w = f32[1, 8] reshape(z) }} }}\n"
            )
        } else {
            format!(
                "instr {name} beta(r, addr) {{ in {to} out {from} computation {{ x = f32[1, 8] parameter(0) \
                 y = f32[8] reshape(x) z = u8[8, 4] bitcast-convert(y) ROOT w = u8[32] reshape(z) }} }}\n"
            )
        }
    };
    let product = "instr mul beta(a, b, c) { in v[a :+ 1] in v[b :+ 1] out v[c :+ 1] computation { \
                   x = f32[1, 8] parameter(0) y = f32[1, 8] parameter(1) ROOT z = f32[1, 8] multiply(x, y) } }\n\
                   instr exp beta(a, b) { in v[a :+ 1] out v[b :+ 1] computation { \
                   x = f32[1, 8] parameter(0) ROOT z = f32[1, 8] exponential(x) } }\n";
    let text = format!(
        "isa few\nhbm d0: 1 MiB\nbuffer v: f32[{count} | 8]\n{}{}{product}",
        moved("load", "load"),
        moved("store", "store")
    );
    Isa::parse(&text, "few.taidl").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// All products of pairs of `n` computed values, multiplied up: every value is wanted until the end.
pub(super) fn all_pairs(isa: &Isa, n: u16) -> PiiGraph {
    let mut b = Builder::new(isa);
    let values: Vec<PiiId> = (0..n)
        .map(|k| {
            let bytes = b.bytes(k, 0, 32);
            let loaded = b.run("load", &[], &[bytes]);
            b.run("exp", &[], &[loaded])
        })
        .collect();
    let mut total = None;
    for (k, &x) in values.iter().enumerate() {
        for &y in &values[..k] {
            let product = b.run("mul", &[], &[x, y]);
            total = Some(match total {
                None => product,
                Some(before) => b.run("mul", &[], &[before, product]),
            });
        }
    }
    let stored = b.store("store", &[], total.unwrap(), 0, 32);
    b.root(&[stored])
}

/// Two registers are enough for any program of products, with everything else in main memory.
#[test]
fn many_values_are_spilled_where_few_registers_are() {
    for n in [3, 4, 6] {
        for registers in [2, 3, 4] {
            let isa = few_registers(registers);
            let graph = all_pairs(&isa, n);
            let kernel = in_hbm(n);
            let all = allocations(&isa, &kernel, &graph, &AllocOptions::default(), &mut 0)
                .unwrap_or_else(|e| panic!("{n} values, {registers} registers: {e}"));
            for allocation in &all {
                replay(&isa, &kernel, &allocation.graph, allocation);
            }
        }
    }
    let isa = few_registers(1);
    let error = allocate(&isa, &in_hbm(3), &all_pairs(&isa, 3), &AllocOptions::default()).unwrap_err();
    let AllocError::NoFit { spills, .. } = error else { panic!("{error:?}") };
    assert!(spills.ways > 0 && spills.limited, "{spills:?}");
    let text = error.to_string();
    assert!(text.starts_with("no allocation found: ") && text.contains(" gave up after "), "{text}");
    // What was not tried is told as that.
    let limits = AllocLimits { spills: 0, spilled_graphs: 0, ..AllocLimits::default() };
    let options = AllocOptions { limits, ..AllocOptions::default() };
    let error = allocate(&isa, &in_hbm(3), &all_pairs(&isa, 3), &options).unwrap_err();
    assert!(error.to_string().ends_with("was not tried"), "{error}");
}

/// More registers need fewer moves, and what can stay on chip stays there.
#[test]
fn no_more_is_spilled_than_needed() {
    let moves = |registers: u64| {
        let isa = few_registers(registers);
        let allocation = allocate(&isa, &in_hbm(4), &all_pairs(&isa, 4), &AllocOptions::default()).unwrap();
        let moved = ["load", "store"];
        names(&isa, &allocation).iter().filter(|n| moved.contains(&n.as_str())).count()
    };
    let counts: Vec<usize> = (2..=7).map(moves).collect();
    assert!(counts.is_sorted_by(|more, fewer| more >= fewer), "{counts:?}");
    // Four loads and a store at the least.
    assert_eq!(counts.last(), Some(&5), "{counts:?}");
}

/// Ways to spill that need equally many spills compete by cost.
#[test]
fn several_ways_to_spill_are_offered() {
    let isa = few_registers(3);
    let all = allocations(&isa, &in_hbm(3), &all_pairs(&isa, 3), &AllocOptions::default(), &mut 0).unwrap();
    assert!(all.len() > 1, "{}", all.len());
    let distinct: std::collections::BTreeSet<String> =
        all.iter().map(|allocation| format!("{:?}", allocation.graph)).collect();
    assert_eq!(distinct.len(), all.len());
}

/// What a description says must not be moved to main memory stays where it is, though there are instructions for it.
#[test]
fn nothing_is_spilled_out_of_a_buffer_without_a_spill_path() {
    for (nospill, fits) in [(false, true), (true, false)] {
        let mut isa = few_registers(2);
        isa.buffers[0].nospill = nospill;
        let found = allocate(&isa, &in_hbm(3), &all_pairs(&isa, 3), &AllocOptions::default());
        match found {
            Ok(allocation) => assert!(fits && allocation.assembly.scratch_bytes > 0),
            Err(error) => assert!(!fits && error.to_string().contains("`v` [2] has no room"), "{error}"),
        }
    }
}

/// Nodes of the graph that was given whose values are stored to scratch memory.
fn spilled(allocation: &Allocation) -> Vec<PiiId> {
    let stored = allocation.graph.nodes.iter().filter_map(|node| match &node.op {
        PiiOp::Instr { store: Some(view), .. } if view.space == Space::Scratch => Some(node.operands[0]),
        _ => None,
    });
    stored.collect()
}

/// Section 6.4: what is used furthest in the future is moved out of the way first, and nothing more where one is enough.
#[test]
fn the_value_used_furthest_ahead_is_spilled_first() {
    // One order only. Four values wait behind the last exponential, two of them for the product that is next.
    let isa = few_registers(3);
    let mut b = Builder::new(&isa);
    let bytes = b.bytes(0, 0, 32);
    let loaded = b.run("load", &[], &[bytes]);
    let near = b.run("exp", &[], &[loaded]);
    let far = b.run("exp", &[], &[near]);
    let x = b.run("exp", &[], &[far]);
    let y = b.run("exp", &[], &[x]);
    let xy = b.run("mul", &[], &[x, y]);
    let product = b.run("mul", &[], &[xy, near]);
    let product = b.run("mul", &[], &[product, far]);
    let stored = b.store("store", &[], product, 0, 32);
    let graph = b.root(&[stored]);
    let all = allocations(&isa, &in_hbm(1), &graph, &AllocOptions::default(), &mut 0).unwrap();
    all.iter().for_each(|allocation| replay(&isa, &in_hbm(1), &allocation.graph, allocation));
    assert_eq!(all.iter().map(spilled).collect::<Vec<_>>(), [vec![far], vec![near]]);
}

/// CP-SAT proves that the first order fails and does not say where; a later one fails in the buffer that can be relieved.
#[test]
fn the_buffer_that_a_later_order_fails_in_is_relieved() {
    // `marks` has two places, at 0 and 4; of the tiles, one of 3 × 3 and one of 2 × 2 do not fit beside each other.
    let place = |k: u16| slice(0, &[times(beta(k), 4)], &[int(1)]);
    let tile =
        |k: u16, rows: i64, columns: i64| slice(1, &[beta(k), beta(k + 1)], &[int(rows), int(columns)]);
    let value = |k: u16| slice(2, &[beta(k)], &[int(1)]);
    let load = |name: &str, rows, columns| {
        instr(name, 0, 3, vec![window(beta(2), int(128))], tile(0, rows, columns))
    };
    let isa = isa(
        vec![buffer("marks", &[6]), buffer("tiles", &[4, 4]), buffer("values", &[8])],
        vec![
            load("load_large", 3, 3),
            load("load_small", 2, 2),
            load("load_row", 1, 4),
            instr("mark_large", 0, 3, vec![tile(0, 3, 3)], place(2)),
            instr("mark_small", 0, 3, vec![tile(0, 2, 2)], place(2)),
            instr("mark_row", 0, 3, vec![tile(0, 1, 4)], place(2)),
            instr("meet", 0, 3, vec![place(0), place(1)], value(2)),
            instr("end", 0, 5, vec![place(0), value(1), tile(2, 3, 3)], value(4)),
            instr("store", 0, 2, vec![value(0)], window(beta(1), int(128))),
        ],
    );
    let mut b = Builder::new(&isa);
    let load = |b: &mut Builder<'_>, name: &str, k| {
        let bytes = b.bytes(k, 0, 128);
        b.run(name, &[], &[bytes])
    };
    let small = load(&mut b, "load_small", 0);
    let third = b.run("mark_small", &[], &[small]);
    let large = load(&mut b, "load_large", 1);
    let first = b.run("mark_large", &[], &[large]);
    let row = load(&mut b, "load_row", 2);
    let second = b.run("mark_row", &[], &[row]);
    let met = b.run("meet", &[], &[first, second]);
    let end = b.run("end", &[], &[third, met, large]);
    let stored = b.store("store", &[], end, 0, 128);
    let graph = b.root(&[stored]);
    let kernel = in_hbm(3);
    let skeleton = Skeleton::new(&isa, &kernel, &graph).unwrap();
    let csp = skeleton.csp(&sethi_ullman(&skeleton).unwrap());
    assert_eq!(cpsat::solve(&csp, 2_000).unwrap(), Outcome::Unsat { buffer: None });
    // Nothing in `marks` can be had again; the large tile can, behind what the small one is wanted for.
    let allocation = allocate(&isa, &kernel, &graph, &AllocOptions::default()).unwrap();
    replay(&isa, &kernel, &allocation.graph, &allocation);
    let names = names(&isa, &allocation);
    assert_eq!(names.len(), graph.instructions() + 1);
    assert_eq!(names.iter().filter(|name| *name == "load_large").count(), 2);
}
