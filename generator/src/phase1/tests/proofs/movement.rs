//! Laws of data movement: the same elements in the same places, for every size.

use super::language::{T, cat, input, n, v};
use super::{Law, lens};
use act_hlo::{Binary, ElemType, Unary};

const MN: &[(&str, i64)] = &[("m", 3), ("n", 4)];
const MNP: &[(&str, i64)] = &[("m", 3), ("n", 4), ("p", 2)];

fn matrix() -> T {
    input("x", &lens(&["m", "n"]))
}

fn cube() -> T {
    input("x", &lens(&["m", "n", "p"]))
}

pub(super) fn laws() -> Vec<Law> {
    [compositions(), degenerate(), elementwise(), reductions(), cuts(), bits()]
        .into_iter()
        .flatten()
        .collect()
}

fn compositions() -> Vec<Law> {
    let box_of = |x: T, a: &'static str, k: &'static str, b: &'static str, l: &'static str| {
        x.slice(&[(v(a), v(k)), (v(b), v(l))])
    };
    let (first, second) =
        ([("a", 1), ("k", 5), ("b", 1), ("l", 4)], [("c", 2), ("i", 2), ("d", 1), ("j", 3)]);
    let sizes = [&[("m", 7), ("n", 6)][..], &first, &second].concat();
    let two = box_of(box_of(input("x", &lens(&["m", "n"])), "a", "k", "b", "l"), "c", "i", "d", "j");
    let one = matrix().slice(&[(v("a") + v("c"), v("i")), (v("b") + v("d"), v("j"))]);
    vec![
        Law::moves(
            "T-T",
            MNP,
            cube().transpose(&[2, 0, 1]).transpose(&[0, 2, 1]),
            cube().transpose(&[2, 1, 0]),
        ),
        Law::moves(
            "bc-bc",
            &[("m", 3), ("n", 4), ("p", 2), ("q", 5)],
            input("x", &[v("m")])
                .broadcast(&[1], &lens(&["n", "m"]))
                .broadcast(&[0, 2], &lens(&["n", "p", "m"])),
            input("x", &[v("m")]).broadcast(&[2], &lens(&["n", "p", "m"])),
        ),
        Law::moves("slice-slice", &sizes, two, one)
            .given("(and (<= (+ a k) m) (<= (+ b l) n) (<= (+ c i) k) (<= (+ d j) l))"),
        Law::moves(
            "bc-swap-T",
            MNP,
            input("x", &lens(&["m", "n"])).broadcast(&[0, 2], &lens(&["m", "p", "n"])).transpose(&[2, 0, 1]),
            input("x", &lens(&["m", "n"])).transpose(&[1, 0]).broadcast(&[0, 1], &lens(&["n", "m", "p"])),
        ),
        Law::moves(
            "slice-bcast",
            &[("m", 5), ("n", 6), ("a", 1), ("k", 3), ("b", 2), ("l", 2)],
            input("x", &[v("m")])
                .broadcast(&[0], &lens(&["m", "n"]))
                .slice(&[(v("a"), v("k")), (v("b"), v("l"))]),
            input("x", &[v("m")]).slice(&[(v("a"), v("k"))]).broadcast(&[0], &lens(&["k", "l"])),
        )
        .given("(and (<= (+ a k) m) (<= (+ b l) n))"),
        Law::moves(
            "slice-cat",
            &[("m", 3), ("q", 5), ("n", 4), ("a", 1), ("k", 3), ("b", 1), ("l", 2)],
            cat(0, &[matrix(), input("y", &lens(&["q", "n"]))])
                .slice(&[(v("m") + v("a"), v("k")), (v("b"), v("l"))]),
            input("y", &lens(&["q", "n"])).slice(&[(v("a"), v("k")), (v("b"), v("l"))]),
        )
        .given("(and (<= (+ a k) q) (<= (+ b l) n) (< 0 k))"),
        Law::moves(
            "cat-slices",
            &[("m", 9), ("n", 4), ("a", 1), ("k", 3), ("l", 2)],
            cat(
                0,
                &[
                    matrix().slice(&[(v("a"), v("k")), (n(0), v("n"))]),
                    matrix().slice(&[(v("a") + v("k"), v("l")), (n(0), v("n"))]),
                ],
            ),
            matrix().slice(&[(v("a"), v("k") + v("l")), (n(0), v("n"))]),
        )
        .given("(<= (+ a k l) m)"),
        Law::moves("movement-identity", MNP, cube().transpose(&[0, 1, 2]), cube()),
        Law::moves(
            "rs-rs",
            &[],
            input("x", &[n(3), n(4)]).reshape(&[n(6), n(2)]).reshape(&[n(2), n(2), n(3)]),
            input("x", &[n(3), n(4)]).reshape(&[n(2), n(2), n(3)]),
        )
        .concrete(),
    ]
}

fn degenerate() -> Vec<Law> {
    let column = || input("x", &[v("m"), n(1), v("n")]);
    vec![
        Law::moves(
            "rs-T-degenerate",
            MN,
            column().transpose(&[1, 0, 2]),
            column().reshape(&[n(1), v("m"), v("n")]),
        ),
        Law::moves(
            "rs-T-swap",
            MN,
            matrix().reshape(&[v("m"), n(1), v("n")]).transpose(&[2, 1, 0]),
            matrix().transpose(&[1, 0]).reshape(&[v("n"), n(1), v("m")]),
        ),
        Law::moves(
            "bc-reshape",
            MN,
            matrix().broadcast(&[1, 2], &[n(1), v("m"), v("n")]),
            matrix().reshape(&[n(1), v("m"), v("n")]),
        ),
        Law::moves(
            "bc-of-degenerate-rs",
            MNP,
            matrix().reshape(&[v("m"), n(1), v("n")]).broadcast(&[0, 1, 3], &[v("m"), n(1), v("p"), v("n")]),
            matrix().broadcast(&[0, 3], &[v("m"), n(1), v("p"), v("n")]),
        ),
        Law::moves(
            "rs-bcast",
            MN,
            input("x", &[v("m")]).broadcast(&[0], &[v("m"), n(1), v("n")]).reshape(&lens(&["m", "n"])),
            input("x", &[v("m")]).broadcast(&[0], &lens(&["m", "n"])),
        ),
    ]
}

fn elementwise() -> Vec<Law> {
    let y = || input("y", &lens(&["m", "n"]));
    vec![
        Law::moves(
            "elementwise-push",
            MN,
            matrix().binary(Binary::Subtract, y()).transpose(&[1, 0]),
            matrix().transpose(&[1, 0]).binary(Binary::Subtract, y().transpose(&[1, 0])),
        ),
        Law::moves(
            "elementwise-pull",
            MN,
            matrix().reverse(&[1]).binary(Binary::Subtract, y().reverse(&[1])),
            matrix().binary(Binary::Subtract, y()).reverse(&[1]),
        ),
        Law::moves(
            "elementwise-cat",
            &[("m", 3), ("n", 4), ("q", 2)],
            cat(0, &[matrix(), input("y", &lens(&["q", "n"]))]).unary(Unary::Negate),
            cat(0, &[matrix().unary(Unary::Negate), input("y", &lens(&["q", "n"])).unary(Unary::Negate)]),
        ),
    ]
}

/// The same terms in the same order.
fn reductions() -> Vec<Law> {
    vec![
        Law::moves("red-T", MNP, cube().transpose(&[2, 0, 1]).sum(&[1]), cube().sum(&[0]).transpose(&[1, 0])),
        Law::moves("T-red", MNP, cube().sum(&[1]).transpose(&[1, 0]), cube().transpose(&[2, 1, 0]).sum(&[1])),
        Law::moves(
            "slice-reduce",
            &[("m", 6), ("n", 4), ("a", 1), ("k", 3)],
            matrix().sum(&[1]).slice(&[(v("a"), v("k"))]),
            matrix().slice(&[(v("a"), v("k")), (n(0), v("n"))]).sum(&[1]),
        )
        .given("(<= (+ a k) m)"),
        Law::moves(
            "red-cat-other",
            &[("m", 3), ("n", 4), ("q", 2)],
            cat(0, &[matrix(), input("y", &lens(&["q", "n"]))]).sum(&[1]),
            cat(0, &[matrix().sum(&[1]), input("y", &lens(&["q", "n"])).sum(&[1])]),
        ),
        Law::moves(
            "red-bcast-order",
            MN,
            T::Reduce(
                Binary::Maximum,
                vec![0],
                Box::new(input("x", &[v("n")]).broadcast(&[1], &[n(3), v("n")])),
                Box::new(T::Splat(-128, Vec::new())),
            ),
            input("x", &[v("n")]),
        )
        .words(8)
        .in_type(ElemType::S8)
        .concrete(),
        Law::moves("red-none", MN, matrix().sum(&[]), matrix()).words(8),
        Law::moves(
            "red-1",
            MN,
            input("x", &[v("m"), n(1), v("n")]).sum(&[1]),
            input("x", &[v("m"), n(1), v("n")]).reshape(&lens(&["m", "n"])),
        )
        .words(8),
    ]
}

fn cuts() -> Vec<Law> {
    // The witnesses' instructions take 4 rows.
    let rows = |x: T, start: i64, len: super::Size, whole: &'static str| {
        x.slice(&[(n(start), len), (n(0), v(whole))])
    };
    let tall = || input("x", &[n(4) + v("r"), v("n")]);
    let wide = || input("x", &[v("n"), n(4) + v("r")]);
    let given = "(< 0 r)";
    let sizes: &[(&str, i64)] = &[("r", 3), ("n", 3)];
    vec![
        Law::moves(
            "split-red",
            sizes,
            tall().sum(&[1]),
            cat(0, &[rows(tall(), 0, n(4), "n").sum(&[1]), rows(tall(), 4, v("r"), "n").sum(&[1])]),
        )
        .given(given),
        Law::moves(
            "split-T",
            sizes,
            wide().transpose(&[1, 0]),
            cat(
                0,
                &[
                    wide().slice(&[(n(0), v("n")), (n(0), n(4))]).transpose(&[1, 0]),
                    wide().slice(&[(n(0), v("n")), (n(4), v("r"))]).transpose(&[1, 0]),
                ],
            ),
        )
        .given(given),
        Law::moves(
            "split-rev",
            sizes,
            tall().reverse(&[0]),
            cat(
                0,
                &[
                    tall().slice(&[(v("r"), n(4)), (n(0), v("n"))]).reverse(&[0]),
                    rows(tall(), 0, v("r"), "n").reverse(&[0]),
                ],
            ),
        )
        .given(given),
        Law::moves(
            "split-bc",
            sizes,
            input("x", &[v("n")]).broadcast(&[0], &[v("n"), n(4) + v("r")]),
            cat(
                1,
                &[
                    input("x", &[v("n")]).broadcast(&[0], &[v("n"), n(4)]),
                    input("x", &[v("n")]).broadcast(&[0], &[v("n"), v("r")]),
                ],
            ),
        )
        .given(given),
        // The witness's instruction takes 3 rows and columns or more.
        Law::moves(
            "pad-to-instruction",
            &[("r", 2), ("n", 3)],
            input("x", &[v("r"), v("n")]).transpose(&[1, 0]),
            cat(0, &[input("x", &[v("r"), v("n")]), T::Splat(0, vec![n(3) - v("r"), v("n")])])
                .transpose(&[1, 0])
                .slice(&[(n(0), v("n")), (n(0), v("r"))]),
        )
        .given("(< r 3)"),
        Law::moves(
            "slice-padded",
            &[("m", 5), ("n", 3), ("p", 2), ("a", 1), ("k", 3)],
            cat(1, &[input("x", &[v("m"), v("n")]), T::Splat(7, vec![v("m"), v("p")])])
                .slice(&[(v("a"), v("k")), (n(0), v("n") + v("p"))]),
            cat(
                1,
                &[
                    input("x", &[v("m"), v("n")]).slice(&[(v("a"), v("k")), (n(0), v("n"))]),
                    T::Splat(7, vec![v("k"), v("p")]),
                ],
            ),
        )
        .given("(<= (+ a k) m)"),
        Law::moves(
            "red-to-instruction",
            &[],
            input("x", &[n(2), n(3), n(4)]).sum(&[2]),
            input("x", &[n(2), n(3), n(4)]).reshape(&[n(6), n(4)]).sum(&[1]).reshape(&[n(2), n(3)]),
        )
        .concrete(),
    ]
}

/// The bytes of an element are functions of it, one per place.
fn bits() -> Vec<Law> {
    let bytes = |x: T| T::Bits(ElemType::U8, Some(4), Box::new(x));
    let whole = |x: T| x.slice(&[(v("a"), v("k")), (v("b"), v("l"))]);
    let y = || input("y", &lens(&["q", "n"]));
    vec![
        Law::moves("bcv-T", MN, bytes(matrix().transpose(&[1, 0])), bytes(matrix()).transpose(&[1, 0, 2])),
        Law::moves("bcv-rev", MN, bytes(matrix().reverse(&[0])), bytes(matrix()).reverse(&[0])),
        Law::moves(
            "bcv-slice",
            &[("m", 6), ("n", 5), ("a", 1), ("k", 3), ("b", 2), ("l", 2)],
            bytes(whole(matrix())),
            bytes(matrix()).slice(&[(v("a"), v("k")), (v("b"), v("l")), (n(0), n(4))]),
        )
        .given("(and (<= (+ a k) m) (<= (+ b l) n))"),
        Law::moves(
            "bcv-cat",
            &[("m", 3), ("n", 4), ("q", 2)],
            bytes(cat(0, &[matrix(), y()])),
            cat(0, &[bytes(matrix()), bytes(y())]),
        ),
        Law::moves(
            "bcv-bc",
            MNP,
            bytes(matrix().broadcast(&[0, 2], &lens(&["m", "p", "n"]))),
            bytes(matrix()).broadcast(&[0, 2, 3], &[v("m"), v("p"), v("n"), n(4)]),
        ),
        Law::moves(
            "bcv-rs",
            &[],
            bytes(input("x", &[n(3), n(4)]).reshape(&[n(2), n(6)])),
            bytes(input("x", &[n(3), n(4)])).reshape(&[n(2), n(6), n(4)]),
        )
        .concrete(),
    ]
}
