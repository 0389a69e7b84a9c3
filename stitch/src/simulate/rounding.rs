//! Code for rounding: results to their type with canonical NaNs, f64 to 16-bit floats, reduce-precision. Works on bits
//! where the processor's mode would flush or LLVM would choose among NaNs.

use super::code::{Code, Value};
use super::scalar::{Result, from_bits, lanes_of, splat, to_bits, unsupported, wrap};
use act_hlo::ElemType;

/// The result of floating-point arithmetic as `elem` holds it: 16-bit types are rounded to nearest even, and every
/// NaN becomes the positive quiet one without payload. 4-bit integers wrap. Other types pass.
pub(crate) fn round_to(code: &mut Code, elem: ElemType, value: Value, lanes: u64) -> Value {
    let (float, int) = (lanes_of("f32", lanes), lanes_of("i32", lanes));
    let rounded = match elem {
        ElemType::F16 => {
            let half = lanes_of("f16", lanes);
            let narrow = code.op(format_args!("arith.truncf {value} : {float} to {half}"));
            code.op(format_args!("arith.extf {narrow} : {half} to {float}"))
        }
        ElemType::BF16 => {
            // Nearest even by integer addition: 0x7fff plus the lowest kept bit carries into it exactly when needed.
            let bits = code.op(format_args!("arith.bitcast {value} : {float} to {int}"));
            let (sixteen, one) = (splat(code, 16, "i32", lanes), splat(code, 1, "i32", lanes));
            let high = code.op(format_args!("arith.shrui {bits}, {sixteen} : {int}"));
            let odd = code.op(format_args!("arith.andi {high}, {one} : {int}"));
            let half = splat(code, 0x7fff, "i32", lanes);
            let carried = code.op(format_args!("arith.addi {bits}, {half} : {int}"));
            let carried = code.op(format_args!("arith.addi {carried}, {odd} : {int}"));
            let mask = splat(code, -0x1_0000, "i32", lanes);
            let kept = code.op(format_args!("arith.andi {carried}, {mask} : {int}"));
            code.op(format_args!("arith.bitcast {kept} : {int} to {float}"))
        }
        ElemType::F32 | ElemType::F64 => value,
        _ => return wrap(code, elem, value, lanes),
    };
    let (ty, bits, magnitude, infinity, quiet) = match elem {
        ElemType::F64 => ("f64", "i64", i64::MAX, 0x7ff0_0000_0000_0000i64, 0x7ff8_0000_0000_0000i64),
        _ => ("f32", "i32", 0x7fff_ffff, 0x7f80_0000, 0x7fc0_0000),
    };
    // On integers: to LLVM all NaNs are one, it would drop a choice between two of them.
    let (float, int) = (lanes_of(ty, lanes), lanes_of(bits, lanes));
    let unrounded = code.op(format_args!("arith.bitcast {value} : {float} to {int}"));
    let mask = splat(code, magnitude, bits, lanes);
    let infinity = splat(code, infinity, bits, lanes);
    let absolute = code.op(format_args!("arith.andi {unrounded}, {mask} : {int}"));
    let nan = code.op(format_args!("arith.cmpi ugt, {absolute}, {infinity} : {int}"));
    let quiet = splat(code, quiet, bits, lanes);
    let rounded = code.op(format_args!("arith.bitcast {rounded} : {float} to {int}"));
    let condition = if lanes == 1 { String::new() } else { format!("{}, ", lanes_of("i1", lanes)) };
    let chosen = code.op(format_args!("arith.select {nan}, {quiet}, {rounded} : {condition}{int}"));
    code.op(format_args!("arith.bitcast {chosen} : {int} to {float}"))
}

/// f64 to a 16-bit float as XLA does it: f16 rounds once, bf16 goes by way of f32. Neither flushes, whatever the
/// processor's mode, so the work is done on bits.
pub(crate) fn narrow_f64(code: &mut Code, to: ElemType, x: Value, lanes: u64) -> Result<Value> {
    let (float, long) = (lanes_of("f64", lanes), lanes_of("i64", lanes));
    let bits = code.op(format_args!("arith.bitcast {x} : {float} to {long}"));
    let bits = match to {
        ElemType::F16 => round_narrower(code, bits, lanes, Narrow { exponent: 5, mantissa: 10 }),
        _ => {
            let single = round_narrower(code, bits, lanes, Narrow { exponent: 8, mantissa: 23 });
            let (int, float) = (lanes_of("i32", lanes), lanes_of("f32", lanes));
            let short = code.op(format_args!("arith.trunci {single} : {long} to {int}"));
            let value = code.op(format_args!("arith.bitcast {short} : {int} to {float}"));
            return Ok(round_to(code, to, value, lanes));
        }
    };
    let (short, half, float) = (lanes_of("i16", lanes), lanes_of("f16", lanes), lanes_of("f32", lanes));
    let short_bits = code.op(format_args!("arith.trunci {bits} : {long} to {short}"));
    let value = code.op(format_args!("arith.bitcast {short_bits} : {short} to {half}"));
    let value = code.op(format_args!("arith.extf {value} : {half} to {float}"));
    Ok(round_to(code, to, value, lanes))
}

/// A binary interchange format narrower than f64.
#[derive(Clone, Copy)]
struct Narrow {
    exponent: u32,
    mantissa: u32,
}

/// The bits, in an i64, of an f64 rounded to nearest even in `format`, denormals included. A NaN stays one.
fn round_narrower(code: &mut Code, bits: Value, lanes: u64, format: Narrow) -> Value {
    let long = lanes_of("i64", lanes);
    let condition = if lanes == 1 { String::new() } else { format!("{}, ", lanes_of("i1", lanes)) };
    let number = |code: &mut Code, v: i64| splat(code, v, "i64", lanes);
    let Narrow { exponent, mantissa } = format;
    let dropped = i64::from(52 - mantissa);
    let bias = (1i64 << (exponent - 1)) - 1;
    let infinity = ((1i64 << exponent) - 1) << mantissa;
    let op = |code: &mut Code, name: &str, a: Value, b: Value| {
        code.op(format_args!("arith.{name} {a}, {b} : {long}"))
    };
    let magnitude_mask = number(code, i64::MAX);
    let magnitude = op(code, "andi", bits, magnitude_mask);
    // Normal results: re-bias, then round with the carry running into the exponent.
    let offset = number(code, (1023 - bias) << 52);
    let rebiased = op(code, "subi", magnitude, offset);
    let normal = round_shift(code, lanes, rebiased, dropped);
    // Denormal results: the significand with its hidden bit, shifted to the fixed exponent.
    let fifty_two = number(code, 52);
    let biased = op(code, "shrui", magnitude, fifty_two);
    let fraction_mask = number(code, (1 << 52) - 1);
    let fraction = op(code, "andi", magnitude, fraction_mask);
    let hidden = number(code, 1 << 52);
    let significand = op(code, "ori", fraction, hidden);
    let lowest = number(code, dropped + 1024 - bias);
    let shift = op(code, "subi", lowest, biased);
    // Beyond 54 places nothing is left but a value below every tie.
    let most = number(code, 54);
    let shift = op(code, "minsi", shift, most);
    let least = number(code, 1);
    let shift = op(code, "maxsi", shift, least);
    let denormal = round_shift_by(code, lanes, significand, shift);
    let first_normal = number(code, (1024 - bias) << 52);
    let is_normal = code.op(format_args!("arith.cmpi uge, {magnitude}, {first_normal} : {long}"));
    let finite = code.op(format_args!("arith.select {is_normal}, {normal}, {denormal} : {condition}{long}"));
    let infinite = number(code, infinity);
    let finite = op(code, "minui", finite, infinite);
    let f64_infinity = number(code, 0x7ff << 52);
    let is_nan = code.op(format_args!("arith.cmpi ugt, {magnitude}, {f64_infinity} : {long}"));
    let nan = number(code, infinity | 1 << (mantissa - 1));
    let rounded = code.op(format_args!("arith.select {is_nan}, {nan}, {finite} : {condition}{long}"));
    let sixty_three = number(code, 63);
    let sign = op(code, "shrui", bits, sixty_three);
    let place = number(code, i64::from(exponent + mantissa));
    let sign = op(code, "shli", sign, place);
    op(code, "ori", rounded, sign)
}

fn round_shift(code: &mut Code, lanes: u64, value: Value, shift: i64) -> Value {
    let shift = splat(code, shift, "i64", lanes);
    round_shift_by(code, lanes, value, shift)
}

/// `value >> shift`, to nearest even; `1 <= shift`.
fn round_shift_by(code: &mut Code, lanes: u64, value: Value, shift: Value) -> Value {
    let long = lanes_of("i64", lanes);
    let op = |code: &mut Code, name: &str, a: Value, b: Value| {
        code.op(format_args!("arith.{name} {a}, {b} : {long}"))
    };
    let one = splat(code, 1, "i64", lanes);
    let kept = op(code, "shrui", value, shift);
    let odd = op(code, "andi", kept, one);
    let below = op(code, "subi", shift, one);
    let half = op(code, "shli", one, below);
    let carry = op(code, "subi", half, one);
    let carried = op(code, "addi", value, carry);
    let carried = op(code, "addi", carried, odd);
    op(code, "shrui", carried, shift)
}

/// Rounds to a float of `exponent_bits` and `mantissa_bits` and back, on bits: only what the narrower exponent cannot
/// reach is flushed, and a NaN keeps its payload.
pub(crate) fn reduce_precision(
    code: &mut Code,
    elem: ElemType,
    x: Value,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> Result<Value> {
    let (own_exponent, own_mantissa) = match elem {
        ElemType::F16 => (5, 10),
        ElemType::BF16 => (8, 7),
        ElemType::F32 => (8, 23),
        ElemType::F64 => (11, 52),
        _ => return unsupported("reduce-precision", elem),
    };
    let (exponent, mantissa) = (exponent_bits.min(own_exponent), mantissa_bits.min(own_mantissa));
    let ty = format!("i{}", elem.bits());
    let bits = to_bits(code, elem, x)?;
    let number = |code: &mut Code, v: i64| code.op(format_args!("arith.constant {v} : {ty}"));
    let op = |code: &mut Code, name: &str, a: Value, b: Value| {
        code.op(format_args!("arith.{name} {a}, {b} : {ty}"))
    };
    let infinity = ((1i64 << own_exponent) - 1) << own_mantissa;
    let mask = number(code, infinity | ((1 << own_mantissa) - 1));
    let magnitude = op(code, "andi", bits, mask);
    let sign = op(code, "xori", bits, magnitude);
    let dropped = own_mantissa - mantissa;
    let mut rounded = magnitude;
    if dropped > 0 {
        let (shift, one) = (number(code, i64::from(dropped)), number(code, 1));
        let last = op(code, "shrui", magnitude, shift);
        let last = op(code, "andi", last, one);
        let half = number(code, (1i64 << (dropped - 1)) - 1);
        let carried = op(code, "addi", magnitude, half);
        let carried = op(code, "addi", carried, last);
        let kept = op(code, "shrui", carried, shift);
        rounded = op(code, "shli", kept, shift);
    }
    if exponent < own_exponent {
        let (own_bias, bias) = ((1i64 << (own_exponent - 1)) - 1, (1i64 << (exponent - 1)) - 1);
        let place = number(code, i64::from(own_mantissa));
        let reached = op(code, "shrui", rounded, place);
        let (high, low) = (number(code, own_bias + bias), number(code, own_bias - bias));
        let over = code.op(format_args!("arith.cmpi ugt, {reached}, {high} : {ty}"));
        let under = code.op(format_args!("arith.cmpi ule, {reached}, {low} : {ty}"));
        let (infinite, zero) = (number(code, infinity), number(code, 0));
        let bounded = code.op(format_args!("arith.select {over}, {infinite}, {rounded} : {ty}"));
        rounded = code.op(format_args!("arith.select {under}, {zero}, {bounded} : {ty}"));
    }
    let rounded = op(code, "ori", rounded, sign);
    let infinite = number(code, infinity);
    let nan = code.op(format_args!("arith.cmpi ugt, {magnitude}, {infinite} : {ty}"));
    let chosen = code.op(format_args!("arith.select {nan}, {bits}, {rounded} : {ty}"));
    from_bits(code, elem, chosen)
}
