//! Examples of the rules on operators of one operand, on logic and on shifts.

use super::draw::Draw;
use super::formula::{Example, build as build_formula};

const BITS: &[&str] = &["pred", "s32", "u8", "s8", "u16"];
const INTS: &[&str] = &["s32", "s8", "u8", "u16"];
const FLOATS: &[&str] = &["f32", "bf16", "f16"];
const SIGNED: &[&str] = &["f32", "bf16", "f16", "s32", "s8"];
const PRED: &[&str] = &["pred"];

const EXAMPLES: &[Example] = &[
    ("neg-neg", SIGNED, &["negate(negate(x))"]),
    ("not-not", BITS, &["not(not(x))"]),
    ("abs-abs", SIGNED, &["abs(abs(x))"]),
    (
        "abs-nonneg",
        &["s32"],
        &["abs(x:u8)", "abs(exponential(x:f32))", "abs(and(x, #7))", "abs(cvt:s32(x:u8))"],
    ),
    ("abs-neg", SIGNED, &["abs(negate(x))"]),
    ("abs-max", SIGNED, &["abs(x)", "abs(add(x, y))"]),
    ("max-abs", SIGNED, &["maximum(x, negate(x))", "maximum(negate(add(x, y)), add(x, y))"]),
    ("abs-sel", &["s32", "s8"], &["abs(x)"]),
    ("sign-clamp", &["s32", "s8"], &["sign(x)"]),
    ("ceil-floor", FLOATS, &["ceil(x)"]),
    ("floor-ceil", FLOATS, &["floor(x)"]),
    ("round-round", FLOATS, &["ceil(floor(x))", "round-nearest-even(round-nearest-afz(x))"]),
    ("not-xor", BITS, &["not(x)"]),
    ("not-sub", INTS, &["not(x)"]),
    ("neg-not", INTS, &["negate(x)"]),
    ("neg-sign-bit", FLOATS, &["negate(x)"]),
    ("abs-sign-bit", FLOATS, &["abs(x)"]),
    ("is-finite-abs", FLOATS, &["is-finite(x)"]),
    ("pow-0", FLOATS, &["power(x, #0)"]),
    ("pow-1", FLOATS, &["power(x, #1)", "power(add(x, y), #1)"]),
    ("pow-2", FLOATS, &["power(x, #2)"]),
    ("and-true", INTS, &["and(x:s8, #-1:s8)", "and(#1:pred, x:pred)", "and(x:u8, #255:u8)"]),
    ("and-false", BITS, &["and(x, #0)"]),
    ("and-self", BITS, &["and(x, x)"]),
    ("or-true", INTS, &["or(x:s8, #-1:s8)", "or(#1:pred, x:pred)", "or(x:u8, #255:u8)"]),
    ("or-false", BITS, &["or(x, #0)"]),
    ("or-self", BITS, &["or(x, x)"]),
    ("xor-self", BITS, &["xor(x, x)"]),
    ("xor-zero", BITS, &["xor(x, #0)"]),
    ("xor-not", INTS, &["xor(x:s8, #-1:s8)", "xor(#1:pred, x:pred)", "xor(x:u8, #255:u8)"]),
    ("and-not-self", BITS, &["and(x, not(x))", "and(not(x), x)"]),
    ("or-not-self", BITS, &["or(x, not(x))"]),
    ("and-absorb", BITS, &["and(x, or(x, y))", "or(and(y, x), x)"]),
    ("logical-const-fold", INTS, &["and(and(x, #6), #3)", "or(#4, or(x, #3))", "xor(xor(x, #5), #3)"]),
    ("and-or-factor", BITS, &["or(and(x, z), and(y, z))", "and(or(z, x), or(y, z))"]),
    ("demorgan", BITS, &["and(not(x), not(y))", "or(not(x), not(y))"]),
    ("and-by-or", BITS, &["and(x, y)"]),
    ("or-by-and", BITS, &["or(x, y)"]),
    ("xor-by-sub", INTS, &["xor(x, y)"]),
    ("xor-by-and", BITS, &["xor(x, y)"]),
    ("or-by-add", INTS, &["or(x, y)"]),
    ("and-by-or-sub", INTS, &["and(x, y)"]),
    ("pred-and-forms", PRED, &["and(x, y)", "minimum(x, y)", "multiply(x, y)"]),
    ("pred-or-forms", PRED, &["or(x, y)", "maximum(x, y)", "add(x, y)"]),
    (
        "and-mask-known",
        INTS,
        &[
            "and(and(x, #5), #7)",
            "and(#1:s32, cvt:s32(p:pred))",
            "and(shift-right-logical(x:u8, #4:u8), #15:u8)",
        ],
    ),
    ("or-disjoint-add", INTS, &["or(shift-left(x, #4), and(y, #15))", "or(and(x, #8), and(y, #7))"]),
    (
        "shift-zero",
        INTS,
        &["shift-left(x, #0)", "shift-right-logical(x, #0)", "shift-right-arithmetic(x, #0)"],
    ),
    ("shift-out", INTS, &["shift-left(x, #32)", "shift-right-logical(x, #40)", "shift-left(x:s8, #-1:s8)"]),
    ("shl-mul", INTS, &["shift-left(x, #3)", "shift-left(x, #7)", "shift-left(x:s32, #31:s32)"]),
    ("shl-add", INTS, &["shift-left(x, #1)", "shift-left(x, #3)"]),
    ("shr-div", &["u8", "u16", "u32"], &["shift-right-logical(x, #3)", "shift-right-logical(x, #7)"]),
    ("shl-shl", INTS, &["shift-left(shift-left(x, #3), #2)"]),
    (
        "shr-shr",
        INTS,
        &[
            "shift-right-logical(shift-right-logical(x, #3), #2)",
            "shift-right-arithmetic(shift-right-arithmetic(x, #5), #6)",
        ],
    ),
    (
        "shr-shl-mask",
        INTS,
        &[
            "shift-right-logical(shift-left(x, #3), #3)",
            "shift-left(shift-right-logical(x, #3), #3)",
            "shift-left(shift-right-arithmetic(x, #3), #3)",
        ],
    ),
    (
        "shr-kinds",
        INTS,
        &["shift-right-logical(and(x, #100), #3)", "shift-right-arithmetic(and(x, #100), #3)"],
    ),
    (
        "shr-known-zero",
        INTS,
        &["shift-right-logical(and(x, #7), #3)", "shift-right-arithmetic(and(x, #7), #4)"],
    ),
    (
        "shr-arithmetic-by-logical",
        &["s8", "s16", "s32"],
        &["shift-right-arithmetic(x, #3)", "shift-right-arithmetic(x, #7)"],
    ),
    ("shr-logical-by-arithmetic", INTS, &["shift-right-logical(x, #3)", "shift-right-logical(x, #7)"]),
];

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    build_formula(EXAMPLES, rule, d)
}
