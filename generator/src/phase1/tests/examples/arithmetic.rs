//! Examples of the rules on sums, differences, products and quotients.

use super::draw::Draw;
use super::formula::{Example, build as build_formula};

const INTS: &[&str] = &["s32", "s8", "u8", "u16", "s64"];
const REALS: &[&str] = &["f32", "bf16", "f16", "s32", "u8", "s8"];
const FLOATS: &[&str] = &["f32", "bf16", "f16"];
const SIGNED: &[&str] = &["f32", "bf16", "f16", "s32", "s8"];

const EXAMPLES: &[Example] = &[
    (
        "add-zero",
        REALS,
        &[
            "add(x, #0)",
            "add(#0, multiply(x, y))",
            "add(abs(subtract(x, y)), #0)",
            "add(subtract(x, y), #-0)",
        ],
    ),
    ("add-assoc-const", INTS, &["add(add(x, #3), #2)", "add(#100, add(#100, x))"]),
    ("add-two-const", INTS, &["add(add(x, #3), add(#2, y))"]),
    ("add-neg", REALS, &["add(x, negate(y))", "add(negate(y), x)"]),
    ("add-by-subtract", REALS, &["add(x, y)"]),
    ("add-const-sub", REALS, &["add(x, #3)", "add(#0, x)"]),
    ("add-factor", INTS, &["add(multiply(x, z), multiply(y, z))", "add(multiply(z, x), multiply(y, z))"]),
    ("add-dup", REALS, &["add(x, x)"]),
    ("add-sub-cancel", INTS, &["add(subtract(x, y), y)", "add(y, subtract(x, y))"]),
    ("add-by-fma", REALS, &["add(x, y)"]),
    ("mul-add-fma", INTS, &["add(multiply(x, y), z)", "add(z, multiply(x, y))"]),
    ("sub-zero", REALS, &["subtract(x, #0)", "subtract(multiply(x, y), #0)"]),
    ("sub-self", INTS, &["subtract(x, x)"]),
    ("sub-const", REALS, &["subtract(x, #3)", "subtract(x, #0)"]),
    ("sub-add-neg", REALS, &["subtract(x, y)"]),
    ("sub-from-zero", SIGNED, &["subtract(#0, x)", "subtract(#-0, multiply(x, y))"]),
    ("neg-by-subtract", REALS, &["negate(x)", "negate(add(x, y))"]),
    ("sub-neg", REALS, &["subtract(x, negate(y))"]),
    ("sub-flip", INTS, &["negate(subtract(x, y))"]),
    ("sub-add-cancel", INTS, &["subtract(add(x, y), y)", "subtract(add(x, y), x)"]),
    ("sub-sub-cancel", INTS, &["subtract(x, subtract(x, y))"]),
    ("sub-common", INTS, &["subtract(subtract(x, z), subtract(y, z))", "subtract(add(x, z), add(z, y))"]),
    ("sub-from-const", INTS, &["subtract(#5, add(x, #3))"]),
    ("neg-add-const", INTS, &["negate(add(x, #3))"]),
    ("sub-by-fma", SIGNED, &["subtract(x, y)"]),
    ("mul-one", REALS, &["multiply(x, #1)", "multiply(#1, add(x, y))"]),
    ("mul-zero", INTS, &["multiply(x, #0)"]),
    ("mul-const-assoc", INTS, &["multiply(multiply(x, #3), #2)", "multiply(#100, multiply(#3, x))"]),
    ("mul-two-const", INTS, &["multiply(multiply(x, #3), multiply(#2, y))"]),
    ("mul-neg-one", SIGNED, &["multiply(x, #-1)", "multiply(#-1, add(x, y))"]),
    ("neg-by-multiply", REALS, &["negate(x)", "negate(add(x, y))"]),
    ("mul-neg-neg", REALS, &["multiply(negate(x), negate(y))"]),
    ("mul-neg-const", REALS, &["multiply(negate(x), #3)"]),
    ("neg-mul-const", REALS, &["negate(multiply(x, #3))"]),
    ("mul-abs", REALS, &["multiply(abs(x), abs(x))"]),
    ("mul-pred", INTS, &["multiply(cvt:s32(p:pred), x:s32)", "multiply(x:u8, cvt:u8(p:pred))"]),
    ("mul-pow2-shift", INTS, &["multiply(x, #8)", "multiply(#2, x)"]),
    ("mul-two-add", REALS, &["multiply(x, #2)"]),
    ("mul-const-div", FLOATS, &["multiply(x, #8)", "multiply(x, #-0.25)", "multiply(x, #1024)"]),
    ("mul-distribute", INTS, &["multiply(add(x, #3), #5)"]),
    ("mul-by-fma", REALS, &["multiply(x, y)"]),
    ("div-one", REALS, &["divide(x, #1)", "divide(add(x, y), #1)"]),
    ("div-neg-one", SIGNED, &["divide(x, #-1)", "divide(add(x, y), #-1)"]),
    ("div-const", FLOATS, &["divide(x, #8)", "divide(x, #-0.25)", "divide(x, #1024)"]),
    ("div-pow2-int", &["u8", "u16", "u32"], &["divide(x, #8)", "divide(x, #2)"]),
    ("div-pow2-signed", &["s8", "s16", "s32"], &["divide(x, #8)", "divide(x, #2)", "divide(x, #64)"]),
    ("div-div-const", INTS, &["divide(divide(x, #3), #5)", "divide(divide(x, #4), #2)"]),
    ("div-neg-neg", FLOATS, &["divide(negate(x), negate(y))"]),
    ("rem-rem", REALS, &["remainder(remainder(x, y), y)"]),
    ("rem-pow2", &["u8", "u32"], &["remainder(x, #8)", "remainder(and(x, #100), #16)"]),
    ("rem-self", INTS, &["remainder(x, x)"]),
    ("rem-one", &["s32", "s8"], &["remainder(x, #1)", "remainder(x, #-1)"]),
    ("rem-by-div", INTS, &["remainder(x, y)", "remainder(x, #3)"]),
    ("rem-range", INTS, &["remainder(and(x, #7), #8)", "remainder(remainder(clamp(#0, x, #100), #5), #9)"]),
    ("div-range", INTS, &["divide(and(x, #7), #8)", "divide(clamp(#0, x, #11), #12)"]),
];

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    build_formula(EXAMPLES, rule, d)
}
