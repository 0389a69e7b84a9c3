//! Examples of the rules on comparisons, selections and extrema.

use super::draw::Draw;
use super::formula::{Example, build as build_formula};

const INTS: &[&str] = &["s32", "s8", "u8", "u16"];
const FLOATS: &[&str] = &["f32", "bf16", "f16"];
const REALS: &[&str] = &["f32", "bf16", "f16", "s32", "u8", "s8"];
const PRED: &[&str] = &["pred"];

const EXAMPLES: &[Example] = &[
    ("cmp-strict-self", REALS, &["lt(x, x)", "gt(x, x)"]),
    ("cmp-eq-self", INTS, &["eq(x, x)", "ne(x, x)", "le(x, x)", "ge(x, x)"]),
    (
        "cmp-range",
        &["u8", "u16"],
        &[
            "lt(x, #0)",
            "ge(x, #0)",
            "gt(#0, x)",
            "eq(and(x, #7), #9)",
            "le(cvt:s32(x), #65535:s32)",
            "ne(cvt:s32(x), #-1:s32)",
        ],
    ),
    ("cmp-flip", REALS, &["lt(x, y)", "le(x, y)", "gt(x, y)", "ge(x, y)"]),
    ("cmp-not", REALS, &["not(eq(x, y))", "not(ne(x, y))", "not(lt(x:s32, y:s32))", "not(ge(x:u8, y:u8))"]),
    ("cmp-by-not", REALS, &["eq(x, y)", "ne(x, y)", "le(x:s32, y:s32)", "gt(x:u8, y:u8)"]),
    ("cmp-const-step", INTS, &["lt(x, #3)", "le(x, #0)", "gt(x, #127)", "ge(x, #3)", "lt(x, #0)"]),
    ("cmp-gt-max", REALS, &["gt(maximum(x, y), y)", "lt(y, maximum(x, y))", "lt(minimum(x, y), x)"]),
    ("cmp-ge-max", INTS, &["ge(maximum(x, y), y)", "le(minimum(x, y), x)", "le(x, maximum(x, y))"]),
    ("cmp-by-max", REALS, &["ge(x, y)", "le(x, y)"]),
    ("cmp-eq-by-order", REALS, &["eq(x, y)"]),
    ("cmp-pred", PRED, &["eq(p, #1)", "eq(p, #0)", "ne(#1, p)", "ne(p, #0)"]),
    ("cmp-xor", PRED, &["eq(p, q)", "ne(p, q)"]),
    ("xor-ne", PRED, &["xor(p, q)"]),
    (
        "cmp-convert-pred",
        REALS,
        &[
            "ne(cvt:s32(p:pred), #0:s32)",
            "eq(cvt:f32(p:pred), #0:f32)",
            "gt(cvt:u8(p:pred), #0:u8)",
            "lt(#0:s32, cvt:s32(p:pred))",
        ],
    ),
    (
        "cmp-narrow",
        INTS,
        &[
            "lt(cvt:s32(x:s8), cvt:s32(y:s8))",
            "ge(cvt:f32(x:bf16), #3:f32)",
            "eq(#7:s32, cvt:s32(x:u8))",
            "lt(cvt:f32(x:f16), cvt:f32(y:f16))",
        ],
    ),
    ("cmp-widen", REALS, &["lt(x, y)", "eq(x, y)", "ge(x, y)"]),
    ("cmp-neg", FLOATS, &["lt(negate(x), negate(y))", "ge(negate(x), #3)", "eq(#0, negate(x))"]),
    ("cmp-eq-difference", INTS, &["eq(subtract(x, y), #0)", "ne(#0, xor(x, y))"]),
    ("cmp-eq-add-const", INTS, &["eq(add(x, #3), #1)", "ne(xor(#3, x), #6)"]),
    ("sel-same", REALS, &["select(p:pred, x, x)"]),
    ("sel-const", REALS, &["select(#1:pred, x, y)", "select(#0:pred, x, y)"]),
    ("sel-not", REALS, &["select(not(p:pred), x, y)"]),
    ("sel-pred", PRED, &["select(p, #1, #0)", "select(p, #0, #1)"]),
    (
        "sel-pred-logic",
        PRED,
        &["select(p, q, r)", "select(p, q, #0)", "select(p, #0, q)", "select(p, #1, q)", "select(p, q, #1)"],
    ),
    (
        "sel-max",
        INTS,
        &[
            "select(gt(x, y), x, y)",
            "select(le(y, x), x, y)",
            "select(lt(x, y), x, y)",
            "select(lt(x, #0), #0, x)",
        ],
    ),
    ("max-by-sel", INTS, &["maximum(x, y)", "minimum(x, y)"]),
    ("sel-abs", &["s32", "s8"], &["select(lt(x, #0), negate(x), x)", "select(le(#0, x), x, negate(x))"]),
    ("sel-arith", INTS, &["select(p:pred, x, y)", "select(p:pred, x, #0)"]),
    ("sel-mask", INTS, &["select(p:pred, x, y)"]),
    ("sel-as-bits", REALS, &["select(p:pred, x, y)"]),
    (
        "sel-sel-same",
        REALS,
        &["select(p:pred, select(p:pred, x, y), z)", "select(p:pred, x, select(p:pred, y, z))"],
    ),
    (
        "sel-sel-and",
        REALS,
        &["select(p:pred, select(q:pred, x, y), y)", "select(p:pred, x, select(q:pred, x, y))"],
    ),
    (
        "sel-factor",
        REALS,
        &[
            "select(p:pred, add(x, z), add(y, z))",
            "select(p:pred, negate(x), negate(y))",
            "select(p:pred, multiply(x, #3), multiply(x, #2))",
        ],
    ),
    ("sel-push-const", REALS, &["negate(select(p:pred, x, #3))", "cvt:s32(select(p:pred, #0, x))"]),
    ("cvt-pred-sel", REALS, &["cvt:f32(p:pred)", "cvt:s32(p:pred)", "cvt:bf16(p:pred)"]),
    ("sel-cvt-pred", REALS, &["select(p:pred, #1, #0)", "select(p:pred, #0, #1)"]),
    ("max-neginf", FLOATS, &["maximum(x, #-inf)", "minimum(#inf, add(x, y))", "maximum(add(x, y), #-inf)"]),
    ("max-self", REALS, &["maximum(x, x)", "minimum(add(x, y), add(x, y))"]),
    ("max-absorb", INTS, &["maximum(x, minimum(x, y))", "minimum(maximum(y, x), x)"]),
    (
        "max-range",
        INTS,
        &[
            "maximum(cvt:s32(x:u8), #-3:s32)",
            "minimum(and(x, #7), #9)",
            "maximum(and(x, #7), #7)",
            "maximum(x:u8, #255:u8)",
            "minimum(x:s8, #127:s8)",
        ],
    ),
    (
        "clamp-trivial",
        INTS,
        &["clamp(#-5:s32, and(x:s32, #7:s32), #7:s32)", "clamp(#-128:s32, cvt:s32(x:s8), #127:s32)"],
    ),
    (
        "clamp-clamp",
        REALS,
        &[
            "clamp(#1, clamp(#0, x, #5), #7)",
            "clamp(#6, clamp(#0, x, #5), #7)",
            "clamp(#0, clamp(#1, x, #5), #2)",
        ],
    ),
    (
        "clamp-of-max",
        REALS,
        &["clamp(#1, maximum(x, #3), #7)", "clamp(#1, minimum(#0, x), #7)", "clamp(#1, maximum(x, #9), #7)"],
    ),
    (
        "max-of-clamp",
        REALS,
        &["maximum(clamp(#1, x, #7), #3)", "minimum(#0, clamp(#1, x, #7))", "maximum(clamp(#1, x, #7), #9)"],
    ),
    ("clamp-one-sided", FLOATS, &["clamp(#-inf, x, #3)", "clamp(#3, x, #inf)", "clamp(#0:u8, x:u8, #9:u8)"]),
    ("max-by-clamp", REALS, &["maximum(x, #3)", "minimum(#3, x)"]),
    (
        "max-neg",
        FLOATS,
        &["maximum(negate(x), negate(y))", "minimum(negate(x), negate(y))", "maximum(not(x:s8), not(y:s8))"],
    ),
    ("max-by-min", REALS, &["maximum(x, y)"]),
    ("min-by-max", REALS, &["minimum(x, y)"]),
    (
        "max-add-const",
        FLOATS,
        &[
            "maximum(add(x, #3), add(y, #3))",
            "minimum(add(#0.3, x), add(y, #0.3))",
            "maximum(add(x, #0), add(y, #0))",
        ],
    ),
    (
        "max-mul-const",
        FLOATS,
        &["maximum(multiply(x, #3), multiply(y, #3))", "minimum(multiply(#0.3, x), multiply(y, #0.3))"],
    ),
    (
        "and-taut",
        REALS,
        &["and(lt(x, #3), lt(x, #5))", "and(ge(x, #3), le(#5, x))", "and(gt(#3, x), lt(x, #1))"],
    ),
    ("and-lt-gt", REALS, &["and(lt(x, y), lt(x, z))", "and(ge(x, y), le(z, x))", "and(lt(x, y), gt(z, x))"]),
    ("or-lt", INTS, &["or(lt(x, y), lt(x, z))", "or(ge(x, y), le(z, x))", "or(lt(x, #3), gt(#5, x))"]),
];

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    build_formula(EXAMPLES, rule, d)
}
