//! Laws of products that keep every sum: the same terms in the same order, for every size.

use super::language::{T, cat, dot, input, n, v};
use super::{Law, lens};
use act_hlo::DotDims;

const MKN: &[(&str, i64)] = &[("m", 3), ("k", 4), ("n", 5)];
const MKNQ: &[(&str, i64)] = &[("m", 3), ("k", 4), ("n", 5), ("q", 2)];

fn a() -> T {
    input("a", &lens(&["m", "k"]))
}

fn b() -> T {
    input("b", &lens(&["k", "n"]))
}

/// A batch of products.
fn batched(a: T, b: T) -> T {
    let dims = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contracting: vec![2],
        rhs_contracting: vec![1],
    };
    T::Dot(dims, Box::new(a), Box::new(b))
}

pub(super) fn laws() -> Vec<Law> {
    let more_rows = || input("c", &lens(&["q", "k"]));
    let more_columns = || input("c", &lens(&["k", "q"]));
    let three = || (input("a", &lens(&["s", "m", "k"])), input("b", &lens(&["s", "k", "n"])));
    let sliced = |x: T, rows: &'static str, columns: &'static str| {
        x.slice(&[(v("o"), v("l")), (n(0), v(rows)), (n(0), v(columns))])
    };
    let (sa, sb) = three();
    let (ua, ub) = (input("a", &[n(2), v("m"), v("k")]), input("b", &[n(2), v("k"), v("n")]));
    let one = |i: i64| {
        batched(
            ua.clone().slice(&[(n(i), n(1)), (n(0), v("m")), (n(0), v("k"))]),
            ub.clone().slice(&[(n(i), n(1)), (n(0), v("k")), (n(0), v("n"))]),
        )
    };
    vec![
        Law::moves(
            "dot-cat-m",
            MKNQ,
            dot(cat(0, &[a(), more_rows()]), b()),
            cat(0, &[dot(a(), b()), dot(more_rows(), b())]),
        ),
        Law::moves(
            "dot-cat-n",
            MKNQ,
            dot(a(), cat(1, &[b(), more_columns()])),
            cat(1, &[dot(a(), b()), dot(a(), more_columns())]),
        ),
        Law::moves(
            "cat-dot-m",
            MKNQ,
            cat(0, &[dot(a(), b()), dot(more_rows(), b())]),
            dot(cat(0, &[a(), more_rows()]), b()),
        ),
        Law::moves(
            "cat-dot-n",
            MKNQ,
            cat(1, &[dot(a(), b()), dot(a(), more_columns())]),
            dot(a(), cat(1, &[b(), more_columns()])),
        ),
        Law::moves("rev-dot-free-l", MKN, dot(a(), b()).reverse(&[0]), dot(a().reverse(&[0]), b())),
        Law::moves("rev-dot-free-r", MKN, dot(a(), b()).reverse(&[1]), dot(a(), b().reverse(&[1]))),
        Law::moves(
            "dot-slice",
            &[("m", 6), ("k", 4), ("n", 5), ("o", 1), ("l", 3), ("p", 2), ("j", 2)],
            dot(a(), b()).slice(&[(v("o"), v("l")), (v("p"), v("j"))]),
            dot(
                a().slice(&[(v("o"), v("l")), (n(0), v("k"))]),
                b().slice(&[(n(0), v("k")), (v("p"), v("j"))]),
            ),
        )
        .given("(and (<= (+ o l) m) (<= (+ p j) n))"),
        Law::moves(
            "slice-dot-b",
            &[("s", 5), ("m", 3), ("k", 4), ("n", 2), ("o", 1), ("l", 2)],
            sliced(batched(sa.clone(), sb.clone()), "m", "n"),
            batched(sliced(sa, "m", "k"), sliced(sb, "k", "n")),
        )
        .given("(<= (+ o l) s)"),
        Law::moves("dot-batch-unroll", MKN, batched(ua.clone(), ub.clone()), cat(0, &[one(0), one(1)]))
            .concrete(),
    ]
}
