//! Examples of the rules that move operators between types.

use super::draw::Draw;
use super::formula::{Example, build as build_formula};

const EXAMPLES: &[Example] = &[
    (
        "add-narrow",
        &["s8", "u8", "s16"],
        &["add(x, y)", "multiply(x, y)", "negate(x)", "subtract(x, #3)", "xor(x, y)", "not(x)"],
    ),
    (
        "op-narrow-int",
        &["s8", "u8", "s16"],
        &[
            "cvt:s8(add(cvt:s32(x:s8), cvt:s32(y:s8)))",
            "cvt:u8(multiply(cvt:s32(x:u8), #300:s32))",
            "cvt:s8(negate(cvt:s16(x:s8)))",
            "cvt:u8(and(cvt:s32(x:u8), cvt:s32(y:u8)))",
        ],
    ),
    (
        "order-widen",
        &["s8", "u8", "bf16", "f16"],
        &["maximum(x, y)", "minimum(x, y)", "clamp(#1, x, #3)", "select(p:pred, x, y)"],
    ),
    (
        "op-other-sign",
        &["s8", "u8", "s32", "u16"],
        &["add(x, y)", "multiply(x, y)", "negate(x)", "shift-left(x, y)", "not(x)"],
    ),
    (
        "cvt-via",
        &["s8"],
        &["cvt:f32(x)", "cvt:s8(y:s32)", "cvt:s32(x)", "cvt:f32(z:bf16)", "cvt:s32(z:f16)", "cvt:u8(y:s32)"],
    ),
    ("cvt-s8u8", &["s8"], &["cvt:u8(x:s8)", "cvt:s32(x:u32)"]),
    ("cvt-pred-ne", &["s8", "u8", "s32", "f32", "f16"], &["cvt:pred(x)"]),
    ("ne-cvt-pred", &["s8", "u8", "s32", "f32", "f16"], &["ne(x, #0)", "ne(#0, x)"]),
    ("reduce-precision-id", &["f32", "bf16", "f16"], &["reduce-precision:8-23(x)"]),
    (
        "reduce-precision-twice",
        &["f32"],
        &["reduce-precision:8-7(reduce-precision:5-7(x))", "reduce-precision:5-10(reduce-precision:5-10(x))"],
    ),
];

pub(super) fn build(rule: &str, d: &mut Draw) -> bool {
    build_formula(EXAMPLES, rule, d)
}
