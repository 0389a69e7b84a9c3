//! Slices and concatenations of slots, in one and in two access dimensions, and operands updated in place.

use super::super::{AllocError, AllocOptions, AllocatorChoice, allocate};
use super::description::{
    Builder, alpha, beta, buffer, in_hbm, instr, int, isa, requires, slice, times, window,
};
use super::replay::replay;
use crate::pii::PiiGraph;
use act_isa::expr::Relation;
use act_isa::{BetaVal, Cond, Expr, Isa, TiledKernel};

/// sp of 32 rows, acc of 64; loads of any number of rows, products of 16-row tiles, one of them accumulating in
/// place.
fn systolic() -> Isa {
    let n = || alpha(0);
    isa(
        vec![buffer("sp", &[64]), buffer("acc", &[64])],
        vec![
            instr("mvin", 1, 2, vec![window(beta(0), times(n(), 128))], slice(0, &[beta(1)], &[n()])),
            instr("mvin_acc", 1, 2, vec![window(beta(0), times(n(), 128))], slice(1, &[beta(1)], &[n()])),
            instr("mvout", 1, 2, vec![slice(1, &[beta(0)], &[n()])], window(beta(1), times(n(), 128))),
            instr(
                "matmul",
                0,
                3,
                vec![slice(0, &[beta(0)], &[int(16)]), slice(0, &[beta(1)], &[int(16)])],
                slice(1, &[beta(2)], &[int(16)]),
            ),
            instr(
                "matmul_acc",
                0,
                3,
                vec![
                    slice(0, &[beta(0)], &[int(16)]),
                    slice(0, &[beta(1)], &[int(16)]),
                    slice(1, &[beta(2)], &[int(16)]),
                ],
                slice(1, &[beta(2)], &[int(16)]),
            ),
        ],
    )
}

fn both(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph) {
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let allocation = allocate(isa, kernel, graph, &options).unwrap();
        replay(isa, kernel, graph, &allocation);
    }
}

fn neither(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph) {
    for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
        let options = AllocOptions { allocator, ..AllocOptions::default() };
        let error = allocate(isa, kernel, graph, &options).unwrap_err();
        assert!(matches!(error, AllocError::NoFit { .. } | AllocError::NoOrder), "{error:?}");
    }
}

/// Fig. 28: operands of 32 rows split for two products, whose results are stored as one.
#[test]
fn halves_of_a_load_and_a_store_of_two_products() {
    let isa = systolic();
    let mut b = Builder::new(&isa);
    let (x, w) = (b.bytes(0, 0, 32 * 128), b.bytes(1, 0, 16 * 128));
    let (x, w) = (b.run("mvin", &[32], &[x]), b.run("mvin", &[16], &[w]));
    let low = b.cut(x, &[0], &[16]);
    let high = b.cut(x, &[16], &[16]);
    let low = b.run("matmul", &[], &[low, w]);
    let high = b.run("matmul", &[], &[high, w]);
    let both_halves = b.glue(0, &[low, high]);
    let stored = b.store("mvout", &[32], both_halves, 0, 32 * 128);
    let graph = b.root(&[stored]);
    both(&isa, &in_hbm(2), &graph);
}

/// A bias of 64 rows loaded at once fills the accumulator; every product updates its quarter in place while the other
/// quarters still wait.
#[test]
fn in_place_updates_of_the_parts_of_one_load() {
    let isa = systolic();
    let mut b = Builder::new(&isa);
    let (x, w, d) = (b.bytes(0, 0, 16 * 128), b.bytes(1, 0, 16 * 128), b.bytes(2, 0, 64 * 128));
    let (x, w) = (b.run("mvin", &[16], &[x]), b.run("mvin", &[16], &[w]));
    let bias = b.run("mvin_acc", &[64], &[d]);
    let mut quarters = Vec::new();
    for k in 0..4 {
        let quarter = b.cut(bias, &[16 * k], &[16]);
        quarters.push(b.run("matmul_acc", &[], &[x, w, quarter]));
    }
    let all = b.glue(0, &quarters);
    let stored = b.store("mvout", &[64], all, 0, 64 * 128);
    let graph = b.root(&[stored]);
    both(&isa, &in_hbm(3), &graph);
}

/// The old value is read after it was updated in place: every order fails, or the reader comes first.
#[test]
fn a_value_updated_in_place_is_read_before_the_update() {
    let isa = systolic();
    let mut b = Builder::new(&isa);
    let (x, w, d) = (b.bytes(0, 0, 16 * 128), b.bytes(1, 0, 16 * 128), b.bytes(2, 0, 16 * 128));
    let (x, w) = (b.run("mvin", &[16], &[x]), b.run("mvin", &[16], &[w]));
    let old = b.run("mvin_acc", &[16], &[d]);
    let new = b.run("matmul_acc", &[], &[x, w, old]);
    let stored_new = b.store("mvout", &[16], new, 0, 16 * 128);
    let stored_old = b.store("mvout", &[16], old, 16 * 128, 16 * 128);
    let graph = b.root(&[stored_new, stored_old]);
    both(&isa, &in_hbm(3), &graph);
    // The first order has the reader in front.
    let allocation = allocate(&isa, &in_hbm(3), &graph, &AllocOptions::default()).unwrap();
    assert_eq!(allocation.orders_tried, 1);

    // Two updates of one value: whichever comes first destroys what the other needs. A load is made once more.
    let mut b = Builder::new(&isa);
    let (x, w, d) = (b.bytes(0, 0, 16 * 128), b.bytes(1, 0, 16 * 128), b.bytes(2, 0, 16 * 128));
    let (x, w) = (b.run("mvin", &[16], &[x]), b.run("mvin", &[16], &[w]));
    let old = b.run("mvin_acc", &[16], &[d]);
    let (one, two) = (b.run("matmul_acc", &[], &[x, w, old]), b.run("matmul_acc", &[], &[w, x, old]));
    let all = b.glue(0, &[one, two]);
    let stored = b.store("mvout", &[32], all, 0, 32 * 128);
    let graph = b.root(&[stored]);
    let allocation = allocate(&isa, &in_hbm(3), &graph, &AllocOptions::default()).unwrap();
    assert_eq!(allocation.graph.instructions(), graph.instructions() + 1);
    replay(&isa, &in_hbm(3), &allocation.graph, &allocation);

    // What was computed is not, and here no instructions store and load it.
    let mut b = Builder::new(&isa);
    let (x, w) = (b.bytes(0, 0, 16 * 128), b.bytes(1, 0, 16 * 128));
    let (x, w) = (b.run("mvin", &[16], &[x]), b.run("mvin", &[16], &[w]));
    let old = b.run("matmul", &[], &[x, w]);
    let (one, two) = (b.run("matmul_acc", &[], &[x, w, old]), b.run("matmul_acc", &[], &[w, x, old]));
    let all = b.glue(0, &[one, two]);
    let stored = b.store("mvout", &[32], all, 0, 32 * 128);
    let graph = b.root(&[stored]);
    neither(&isa, &in_hbm(2), &graph);
}

/// A value cannot lie beside itself.
#[test]
fn a_concatenation_of_a_value_with_itself_has_no_slot() {
    let isa = systolic();
    let mut b = Builder::new(&isa);
    let (x, w) = (b.bytes(0, 0, 16 * 128), b.bytes(1, 0, 16 * 128));
    let (x, w) = (b.run("mvin", &[16], &[x]), b.run("mvin", &[16], &[w]));
    let product = b.run("matmul", &[], &[x, w]);
    let twice = b.glue(0, &[product, product]);
    let stored = b.store("mvout", &[32], twice, 0, 32 * 128);
    let graph = b.root(&[stored]);
    neither(&isa, &in_hbm(2), &graph);
}

/// Two access dimensions: 4 x 4 with tiles [h, w].
fn plane(rows: u64, columns: u64) -> Isa {
    let size = || [alpha(0), alpha(1)];
    let at = |k| [beta(k), beta(k + 1)];
    let bytes = || Expr::Mul(Box::new(alpha(0)), Box::new(times(alpha(1), 128)));
    isa(
        vec![buffer("plane", &[rows, columns])],
        vec![
            instr("load", 2, 3, vec![window(beta(2), bytes())], slice(0, &at(0), &size())),
            instr("store", 2, 3, vec![slice(0, &at(0), &size())], window(beta(2), bytes())),
            instr(
                "add",
                2,
                6,
                vec![slice(0, &at(0), &size()), slice(0, &at(2), &size())],
                slice(0, &at(4), &size()),
            ),
        ],
    )
}

/// Four tiles [2,2] joined in both dimensions fill the plane; a row of it is then added to another.
#[test]
fn slots_are_adjacent_in_every_dimension() {
    let isa = plane(4, 5);
    let mut b = Builder::new(&isa);
    let mut tiles = Vec::new();
    for k in 0..4 {
        let bytes = b.bytes(k, 0, 512);
        tiles.push(b.run("load", &[2, 2], &[bytes]));
    }
    let upper = b.glue(1, &tiles[..2]);
    let lower = b.glue(1, &tiles[2..]);
    let whole = b.glue(0, &[upper, lower]);
    let (first, last) = (b.cut(whole, &[0, 3], &[4, 1]), b.cut(whole, &[0, 0], &[4, 1]));
    let sum = b.run("add", &[4, 1], &[first, last]);
    let stored_sum = b.store("store", &[4, 1], sum, 0, 512);
    let middle = b.cut(whole, &[1, 1], &[2, 2]);
    let stored_middle = b.store("store", &[2, 2], middle, 512, 512);
    let graph = b.root(&[stored_sum, stored_middle]);
    both(&isa, &in_hbm(4), &graph);
    // Without the spare column the sum still finds room in a column that nothing needs any more.
    both(&plane(4, 4), &in_hbm(4), &graph);
}

/// Boxes that fit by volume but not by shape.
#[test]
fn volume_is_not_shape() {
    let isa = plane(3, 3);
    let mut b = Builder::new(&isa);
    let mut sum = None;
    let mut loaded = Vec::new();
    for (k, [h, w]) in [[2, 2], [2, 2]].into_iter().enumerate() {
        let bytes = b.bytes(k as u16, 0, h * w * 128);
        loaded.push(b.run("load", &[h as i64, w as i64], &[bytes]));
    }
    for &tile in &loaded {
        sum = Some(sum.map_or(tile, |s| b.run("add", &[2, 2], &[s, tile])));
    }
    let stored = b.store("store", &[2, 2], sum.unwrap(), 0, 512);
    let graph = b.root(&[stored]);
    neither(&isa, &in_hbm(2), &graph);
    both(&plane(2, 4), &in_hbm(2), &graph);
}

/// Alignment, fixed offsets and conditions between attributes of one instruction.
#[test]
fn conditions_and_alignment_are_kept() {
    let mut isa = isa(
        vec![buffer("r", &[32])],
        vec![
            instr(
                "load",
                1,
                2,
                vec![window(beta(0), times(alpha(0), 128))],
                slice(0, &[beta(1)], &[alpha(0)]),
            ),
            requires(
                instr(
                    "pair",
                    0,
                    4,
                    vec![
                        slice(0, &[beta(0)], &[int(4)]),
                        slice(0, &[Expr::Add(Box::new(beta(1)), Box::new(int(3)))], &[int(4)]),
                    ],
                    slice(0, &[beta(2)], &[int(4)]),
                ),
                Cond::And(
                    Box::new(Cond::Cmp(Relation::Eq, Expr::Mod(Box::new(beta(2)), Box::new(int(8))), int(4))),
                    Box::new(Cond::Or(
                        Box::new(Cond::Cmp(
                            Relation::Ge,
                            beta(0),
                            Expr::Add(Box::new(beta(1)), Box::new(int(12))),
                        )),
                        Box::new(Cond::Cmp(Relation::Gt, times(beta(3), 3), int(1 << 19))),
                    )),
                ),
            ),
            instr(
                "store",
                1,
                2,
                vec![slice(0, &[beta(0)], &[alpha(0)])],
                window(beta(1), times(alpha(0), 128)),
            ),
        ],
    );
    isa.instrs[1].beta[3].kind = act_isa::AttrKind::Int { min: 0, max: 7 };
    let mut b = Builder::new(&isa);
    let (x, y) = (b.bytes(0, 0, 512), b.bytes(1, 0, 512));
    let (x, y) = (b.run("load", &[4], &[x]), b.run("load", &[4], &[y]));
    let z = b.run("pair", &[], &[x, y]);
    let stored = b.store("store", &[4], z, 0, 512);
    let graph = b.root(&[stored]);
    both(&isa, &in_hbm(2), &graph);
    let allocation = allocate(&isa, &in_hbm(2), &graph, &AllocOptions::default()).unwrap();
    let pair = &allocation.assembly.instrs[2].beta;
    let values: Vec<i64> = pair
        .iter()
        .map(|b| match b {
            BetaVal::Int(a) => a.c0,
            BetaVal::Hbm(..) => panic!("an address"),
        })
        .collect();
    assert!(values[2] % 8 == 4 && values[0] >= values[1] + 12, "{values:?}");

    isa.buffers[0].align = vec![16];
    neither(&isa, &in_hbm(2), &graph);
}
