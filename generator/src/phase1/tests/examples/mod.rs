//! Random kernels that show the left side of each rule, one file per theme.

mod arithmetic;
mod bits;
mod bytes;
mod choice;
mod contraction;
mod convert;
mod cut;
mod dot;
mod dot_algebra;
mod dot_structure;
mod draw;
mod elementwise;
mod formula;
mod mask;
mod movement;
mod order;
mod product_of_constant;
mod quotient;
mod ragged;
mod reduce;
mod reduce_algebra;
mod saturate;
mod slot;
mod width;

use draw::Draw;

/// Writes a kernel on which the rule of this name should fire; whether the theme has this rule.
type Theme = fn(&str, &mut Draw) -> bool;

const THEMES: &[Theme] = &[
    movement::build,
    elementwise::build,
    convert::build,
    dot::build,
    reduce::build,
    order::build,
    quotient::build,
    slot::build,
    arithmetic::build,
    bits::build,
    choice::build,
    width::build,
    contraction::build,
    dot_algebra::build,
    dot_structure::build,
    product_of_constant::build,
    reduce_algebra::build,
    cut::build,
    ragged::build,
    bytes::build,
    saturate::build,
    mask::build,
];

/// A kernel on which the rule of this name should fire.
pub(super) fn example(rule: &str, seed: u64) -> String {
    let drawn = THEMES.iter().find_map(|build| {
        let mut draw = Draw::new(seed);
        build(rule, &mut draw).then(|| draw.done())
    });
    drawn.unwrap_or_else(|| panic!("{rule} has no example"))
}
