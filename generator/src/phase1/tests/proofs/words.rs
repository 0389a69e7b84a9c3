//! Laws of wrapping words: order, bits and conversions.

use super::language::{T, input, v};
use super::smt::Elements;
use super::{Law, lens};
use act_hlo::{Binary, ElemType, Unary};

const N: &[(&str, i64)] = &[("m", 3), ("n", 4)];

fn x() -> T {
    input("x", &lens(&["m", "n"]))
}

fn splat(value: i64) -> T {
    T::Splat(value, lens(&["m", "n"]))
}

fn clamped() -> T {
    T::Clamp(Box::new(T::Splat(-7, Vec::new())), Box::new(x()), Box::new(T::Splat(9, Vec::new())))
}

pub(super) fn laws() -> Vec<Law> {
    let bounded = || x().binary(Binary::Maximum, splat(-7)).binary(Binary::Minimum, splat(9));
    let fixed = || input("x", &[v("m"), super::language::n(3)]);
    let wide = |law: Law| Law { elements: Elements::Words(32), ..law };
    vec![
        Law::bytes("xor-zero", N, x().binary(Binary::Xor, splat(0)), x()),
        Law::bytes("clamp-min-max", N, clamped(), bounded()),
        Law::bytes("min-max-clamp", N, bounded(), clamped()),
        Law::bytes(
            "max-min-clamp",
            N,
            x().binary(Binary::Minimum, splat(9)).binary(Binary::Maximum, splat(-7)),
            clamped(),
        ),
        Law::bytes(
            "max-const-fold",
            N,
            x().binary(Binary::Maximum, splat(-7)).binary(Binary::Maximum, splat(9)),
            x().binary(Binary::Maximum, splat(9)),
        ),
        wide(Law::bytes(
            "cvt-narrow-int",
            N,
            x().convert(ElemType::S16).convert(ElemType::S8),
            x().convert(ElemType::S8),
        )),
        wide(Law::bytes(
            "cvt-cvt-wide",
            N,
            x().convert(ElemType::S8).convert(ElemType::S16).convert(ElemType::S32),
            x().convert(ElemType::S8).convert(ElemType::S32),
        )),
        wide(Law::bytes(
            "red-max-not",
            &[("m", 2)],
            T::Reduce(Binary::Maximum, vec![1], Box::new(fixed()), Box::new(T::Splat(-5, Vec::new()))),
            T::Reduce(
                Binary::Minimum,
                vec![1],
                Box::new(fixed().unary(Unary::Not)),
                Box::new(T::Splat(-5, Vec::new()).unary(Unary::Not)),
            )
            .unary(Unary::Not),
        ))
        .concrete(),
    ]
}
