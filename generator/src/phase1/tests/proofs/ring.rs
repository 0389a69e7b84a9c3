//! Laws of sums and products over the integers. Wrapping words of any width are a homomorphic image of these, so the
//! laws hold for them. Sums have a fixed length; the other sizes are symbolic.

use super::language::{Size, T, cat, dot, input, n, scalar, v};
use super::smt::Elements;
use super::{Law, lens};
use act_hlo::{Binary, DotDims, Unary};

const MN: &[(&str, i64)] = &[("m", 3), ("n", 4)];

fn law(rule: &'static str, left: T, right: T) -> Law {
    Law { elements: Elements::Integers, ..Law::moves(rule, MN, left, right) }.concrete()
}

fn a() -> T {
    input("a", &[v("m"), n(2)])
}

fn b() -> T {
    input("b", &[n(2), v("n")])
}

fn other(name: &'static str, like: &T) -> T {
    input(name, &like.dims())
}

fn out() -> Vec<Size> {
    lens(&["m", "n"])
}

fn add(x: T, y: T) -> T {
    x.binary(Binary::Add, y)
}

fn mul(x: T, y: T) -> T {
    x.binary(Binary::Multiply, y)
}

fn neg(x: T) -> T {
    x.unary(Unary::Negate)
}

/// A scalar in every place of a tensor like this.
fn all(like: &T) -> T {
    scalar("c").broadcast(&[], &like.dims())
}

fn sum_from(x: T, over: &[usize], first: T) -> T {
    T::Reduce(Binary::Add, over.to_vec(), Box::new(x), Box::new(first))
}

pub(super) fn laws() -> Vec<Law> {
    [products(), sums(), sums_of_products(), constants()].into_iter().flatten().collect()
}

fn products() -> Vec<Law> {
    let square = || input("s", &[n(2), n(2)]);
    let (rows, columns) = (|| input("v", &[v("m")]), || input("w", &[v("n")]));
    let scaled_rows = || rows().broadcast(&[0], &a().dims());
    let scaled_columns = || columns().broadcast(&[1], &b().dims());
    vec![
        law("dot-assoc-l", dot(a(), dot(square(), b())), dot(dot(a(), square()), b())),
        law("dot-assoc-r", dot(dot(a(), square()), b()), dot(a(), dot(square(), b()))),
        law(
            "dot-distr-l",
            dot(add(a(), other("y", &a())), b()),
            add(dot(a(), b()), dot(other("y", &a()), b())),
        ),
        law(
            "dot-distr-r",
            dot(a(), add(b(), other("y", &b()))),
            add(dot(a(), b()), dot(a(), other("y", &b()))),
        ),
        law(
            "dot-factor-l",
            add(dot(a(), b()), dot(other("y", &a()), b())),
            dot(add(a(), other("y", &a())), b()),
        ),
        law(
            "dot-factor-r",
            add(dot(a(), b()), dot(a(), other("y", &b()))),
            dot(a(), add(b(), other("y", &b()))),
        ),
        law(
            "dot-scale-l",
            dot(mul(all(&a()), a()), b()),
            mul(scalar("c").broadcast(&[], &out()), dot(a(), b())),
        ),
        law(
            "dot-scale-r",
            dot(a(), mul(all(&b()), b())),
            mul(scalar("c").broadcast(&[], &out()), dot(a(), b())),
        ),
        law(
            "scale-dot-l",
            mul(scalar("c").broadcast(&[], &out()), dot(a(), b())),
            dot(mul(all(&a()), a()), b()),
        ),
        law(
            "scale-dot-r",
            mul(scalar("c").broadcast(&[], &out()), dot(a(), b())),
            dot(a(), mul(all(&b()), b())),
        ),
        law(
            "dot-scale-row",
            dot(mul(scaled_rows(), a()), b()),
            mul(rows().broadcast(&[0], &out()), dot(a(), b())),
        ),
        law(
            "dot-scale-col",
            dot(a(), mul(scaled_columns(), b())),
            mul(columns().broadcast(&[1], &out()), dot(a(), b())),
        ),
        law("dot-neg-l", dot(neg(a()), b()), neg(dot(a(), b()))),
        law("dot-neg-r", dot(a(), neg(b())), neg(dot(a(), b()))),
        law("neg-dot-l", neg(dot(a(), b())), dot(neg(a()), b())),
        law("neg-dot-r", neg(dot(a(), b())), dot(a(), neg(b()))),
        law("rev-dot-contract", dot(a().reverse(&[1]), b().reverse(&[0])), dot(a(), b())),
        law(
            "T-dot",
            dot(a(), b()).transpose(&[1, 0]),
            T::Dot(
                DotDims { lhs_contracting: vec![0], rhs_contracting: vec![1], ..DotDims::default() },
                Box::new(b()),
                Box::new(a()),
            ),
        ),
        law(
            "dot-cat-k",
            dot(cat(1, &[a(), other("y", &a())]), input("b", &[n(4), v("n")])),
            add(
                dot(a(), input("b", &[n(4), v("n")]).slice(&[(n(0), n(2)), (n(0), v("n"))])),
                dot(other("y", &a()), input("b", &[n(4), v("n")]).slice(&[(n(2), n(2)), (n(0), v("n"))])),
            ),
        ),
    ]
}

fn sums() -> Vec<Law> {
    let x = || input("x", &[v("m"), n(3)]);
    let y = || other("y", &x());
    let scaled = |t: T, dims: Vec<Size>| mul(T::Splat(-5, dims), t);
    let part = |start: i64, len: i64| x().slice(&[(n(0), v("m")), (n(start), n(len))]);
    let even = || input("x", &[v("m"), n(4)]);
    let half = |start: i64| even().slice(&[(n(0), v("m")), (n(start), n(2))]);
    let cube = || input("x", &[n(2), v("m"), n(3)]);
    vec![
        law("red-const-in", scaled(x().sum(&[1]), vec![v("m")]), scaled(x(), x().dims()).sum(&[1])),
        law("red-const-out", scaled(x(), x().dims()).sum(&[1]), scaled(x().sum(&[1]), vec![v("m")])),
        law("red-neg", neg(x().sum(&[1])), neg(x()).sum(&[1])),
        law("neg-red", neg(x()).sum(&[1]), neg(x().sum(&[1]))),
        law("red-add", add(x().sum(&[1]), y().sum(&[1])), add(x(), y()).sum(&[1])),
        law("red-add-out", add(x(), y()).sum(&[1]), add(x().sum(&[1]), y().sum(&[1]))),
        law("red-red", cube().sum(&[2]).sum(&[0]), cube().sum(&[0, 2])),
        law("red-split-dims", cube().sum(&[0, 2]), cube().sum(&[2]).sum(&[0])),
        law(
            "red-init",
            sum_from(x(), &[1], scalar("c")),
            add(x().sum(&[1]), scalar("c").broadcast(&[], &[v("m")])),
        ),
        law("red-cat", cat(1, &[x(), y()]).sum(&[1]), add(x().sum(&[1]), y().sum(&[1]))),
        law("red-halve", even().sum(&[1]), add(half(0), half(2)).sum(&[1])),
        law("red-peel", x().sum(&[1]), add(part(0, 2).sum(&[1]), part(2, 1).reshape(&[v("m")]))),
        law(
            "red-bcast-add",
            input("x", &[v("n")]).broadcast(&[1], &[n(3), v("n")]).sum(&[0]),
            mul(input("x", &[v("n")]), T::Splat(3, vec![v("n")])),
        ),
    ]
}

fn sums_of_products() -> Vec<Law> {
    let full = [v("m"), n(2), v("n")];
    let batch = |contracting: usize| DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contracting: vec![contracting],
        rhs_contracting: vec![contracting],
    };
    let (sa, sb) = (|| input("a", &[n(2), n(2), v("m")]), || input("b", &[n(2), n(2), v("n")]));
    let tall = || input("a", &[v("m"), n(2), n(3)]);
    let inner = DotDims { lhs_contracting: vec![2], rhs_contracting: vec![0], ..DotDims::default() };
    let right = || input("b", &[n(3), v("n")]);
    vec![
        law(
            "red-mul-dot",
            mul(a().broadcast(&[0, 1], &full), b().broadcast(&[1, 2], &full)).sum(&[1]),
            dot(a(), b()),
        ),
        law(
            "red-dot-batch",
            T::Dot(batch(1), Box::new(sa()), Box::new(sb())).sum(&[0]),
            T::Dot(
                DotDims { lhs_contracting: vec![1, 0], rhs_contracting: vec![1, 0], ..DotDims::default() },
                Box::new(sa()),
                Box::new(sb()),
            ),
        ),
        law(
            "red-dot-free-l",
            T::Dot(inner.clone(), Box::new(tall()), Box::new(right())).sum(&[1]),
            T::Dot(
                DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() },
                Box::new(tall().sum(&[1])),
                Box::new(right()),
            ),
        ),
        law(
            "dot-to-mulred",
            T::Dot(DotDims::matmul(), Box::new(a()), Box::new(input("b", &[n(2)]))),
            mul(a(), input("b", &[n(2)]).broadcast(&[1], &a().dims())).sum(&[1]),
        ),
        law(
            "dot-nocontract",
            T::Dot(DotDims::default(), Box::new(input("a", &[v("m")])), Box::new(input("b", &[v("n")]))),
            mul(input("a", &[v("m")]).broadcast(&[0], &out()), input("b", &[v("n")]).broadcast(&[1], &out())),
        ),
        law(
            "mul-outer-dot",
            mul(input("a", &[v("m")]).broadcast(&[0], &out()), input("b", &[v("n")]).broadcast(&[1], &out())),
            dot(
                input("a", &[v("m")]).reshape(&[v("m"), n(1)]),
                input("b", &[v("n")]).reshape(&[n(1), v("n")]),
            ),
        ),
    ]
}

fn constants() -> Vec<Law> {
    let x = || input("x", &[v("m"), n(3)]);
    vec![
        law("red-ones-dot", x().sum(&[1]), dot(x(), T::Splat(1, vec![n(3), n(1)])).reshape(&[v("m")])),
        law(
            "ones-red-dot",
            input("x", &[n(3), v("n")]).sum(&[0]),
            dot(T::Splat(1, vec![n(1), n(3)]), input("x", &[n(3), v("n")])).reshape(&[v("n")]),
        ),
        law(
            "bc-dot-rows",
            input("x", &[v("n")]).broadcast(&[1], &out()),
            dot(T::Splat(1, vec![v("m"), n(1)]), input("x", &[v("n")]).reshape(&[n(1), v("n")])),
        ),
        law(
            "bc-dot-columns",
            input("x", &[v("m")]).broadcast(&[0], &out()),
            dot(input("x", &[v("m")]).reshape(&[v("m"), n(1)]), T::Splat(1, vec![n(1), v("n")])),
        ),
    ]
}
