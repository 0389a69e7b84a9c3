//! Code for one element (or a short vector of elements): HLO's elementwise operators with the meaning that the
//! reference evaluator gives them, memory access included. bf16 and f16 live in registers as the f32 of the same
//! value and are rounded after every operation; 4-bit integers live in bytes, extended as their type says. A NaN that arithmetic makes is the canonical one; denormals of f32
//! and f64 are flushed by the processor's mode. No fast-math flag is ever set.

use super::code::{Code, Value};
use super::externals::Externals;
use super::rounding::{narrow_f64, round_to};
use act_hlo::{Binary, Direction, ElemType, Unary};

/// The simulator has no code for this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op} of {elem} is not simulated")]
pub struct Unsupported {
    pub op: String,
    pub elem: ElemType,
}

pub(crate) type Result<T> = std::result::Result<T, Unsupported>;

pub(crate) fn unsupported<T>(op: impl Into<String>, elem: ElemType) -> Result<T> {
    Err(Unsupported { op: op.into(), elem })
}

/// MLIR type of an element in a register.
pub(crate) fn register_type(elem: ElemType) -> Result<&'static str> {
    use ElemType::*;
    Ok(match elem {
        Pred => "i1",
        S4 | U4 | S8 | U8 => "i8",
        S16 | U16 => "i16",
        S32 | U32 => "i32",
        S64 | U64 => "i64",
        F16 | BF16 | F32 => "f32",
        F64 => "f64",
        // Moved, never computed with.
        C64 => "i64",
        C128 => "i128",
    })
}

fn memory_type(elem: ElemType) -> Result<&'static str> {
    use ElemType::*;
    Ok(match elem {
        Pred => "i8",
        BF16 => "i16",
        F16 => "f16",
        other => register_type(other)?,
    })
}

/// `ty` or a vector of it.
pub(crate) fn lanes_of(ty: &str, lanes: u64) -> String {
    if lanes == 1 { ty.to_owned() } else { format!("vector<{lanes}x{ty}>") }
}

pub(crate) fn splat(code: &mut Code, literal: impl std::fmt::Display, ty: &str, lanes: u64) -> Value {
    if lanes == 1 {
        code.op(format_args!("arith.constant {literal} : {ty}"))
    } else {
        code.op(format_args!("arith.constant dense<{literal}> : vector<{lanes}x{ty}>"))
    }
}

/// The constant whose little-endian bytes are `bytes`.
pub(crate) fn constant(code: &mut Code, elem: ElemType, bytes: &[u8], lanes: u64) -> Result<Value> {
    let ty = register_type(elem)?;
    let bits = bytes.iter().rev().fold(0u128, |bits, &byte| bits << 8 | u128::from(byte));
    // LLVM takes x·1, x/1 and x-0 for x, which a denormal x is not here: such numbers are hidden from it.
    let neutral = match elem {
        ElemType::BF16 if matches!(bits & 0x7fff, 0 | 0x3f80) => Some(("i32", bits << 16)),
        ElemType::F32 if matches!(bits & 0x7fff_ffff, 0 | 0x3f80_0000) => Some(("i32", bits)),
        ElemType::F64 if matches!(bits << 1 & 0xffff_ffff_ffff_ffff, 0 | 0x7fe0_0000_0000_0000) => {
            Some(("i64", bits))
        }
        _ => None,
    };
    if let Some((int, bits)) = neutral.filter(|_| lanes == 1) {
        let bits = if int == "i32" { i64::from(bits as u32 as i32) } else { bits as i64 };
        let plain = splat(code, bits, int, 1);
        let hidden = code.op(format_args!("llvm.inline_asm \"\", \"=r,0\" {plain} : ({int}) -> {int}"));
        return Ok(code.op(format_args!("arith.bitcast {hidden} : {int} to {ty}")));
    }
    Ok(match elem {
        ElemType::Pred => splat(code, u8::from(bits != 0), ty, lanes),
        ElemType::BF16 => splat(code, format_args!("0x{:08X}", bits << 16), ty, lanes),
        ElemType::F16 => {
            let value = half::f16::from_bits(bits as u16).to_f32();
            splat(code, format_args!("0x{:08X}", value.to_bits()), ty, lanes)
        }
        ElemType::F32 => splat(code, format_args!("0x{bits:08X}"), ty, lanes),
        ElemType::F64 => splat(code, format_args!("0x{bits:016X}"), ty, lanes),
        // Signless integers are written as signed ones of their width.
        _ => {
            let shift = 128 - 8 * elem.bytes() as u32;
            splat(code, (bits << shift) as i128 >> shift, ty, lanes)
        }
    })
}

/// Loads `lanes` adjacent elements. `alias` is the attribute text that says what the access cannot alias.
pub(crate) fn load(
    code: &mut Code,
    elem: ElemType,
    pointer: Value,
    lanes: u64,
    alias: &str,
) -> Result<Value> {
    let memory = lanes_of(memory_type(elem)?, lanes);
    let raw =
        code.op(format_args!("llvm.load {pointer} {{alignment = 1 : i64{alias}}} : !llvm.ptr -> {memory}"));
    Ok(match elem {
        ElemType::Pred => {
            let zero = splat(code, 0, "i8", lanes);
            code.op(format_args!("arith.cmpi ne, {raw}, {zero} : {memory}"))
        }
        ElemType::BF16 => {
            let wide = lanes_of("i32", lanes);
            let extended = code.op(format_args!("arith.extui {raw} : {memory} to {wide}"));
            let sixteen = splat(code, 16, "i32", lanes);
            let shifted = code.op(format_args!("arith.shli {extended}, {sixteen} : {wide}"));
            code.op(format_args!("arith.bitcast {shifted} : {wide} to {}", lanes_of("f32", lanes)))
        }
        ElemType::F16 => code.op(format_args!("arith.extf {raw} : {memory} to {}", lanes_of("f32", lanes))),
        _ => wrap(code, elem, raw, lanes),
    })
}

/// The low bits of a 4-bit integer, extended to the byte that it lives in. Other types pass.
pub(crate) fn wrap(code: &mut Code, elem: ElemType, value: Value, lanes: u64) -> Value {
    let ty = lanes_of("i8", lanes);
    match elem {
        ElemType::S4 => {
            let four = splat(code, 4, "i8", lanes);
            let high = code.op(format_args!("arith.shli {value}, {four} : {ty}"));
            code.op(format_args!("arith.shrsi {high}, {four} : {ty}"))
        }
        ElemType::U4 => {
            let mask = splat(code, 15, "i8", lanes);
            code.op(format_args!("arith.andi {value}, {mask} : {ty}"))
        }
        _ => value,
    }
}

/// The memory form of a register value.
fn to_memory(code: &mut Code, elem: ElemType, value: Value, lanes: u64) -> Result<Value> {
    let memory = lanes_of(memory_type(elem)?, lanes);
    Ok(match elem {
        ElemType::Pred => {
            code.op(format_args!("arith.extui {value} : {} to {memory}", lanes_of("i1", lanes)))
        }
        ElemType::BF16 => {
            let wide = lanes_of("i32", lanes);
            let bits = code.op(format_args!("arith.bitcast {value} : {} to {wide}", lanes_of("f32", lanes)));
            let sixteen = splat(code, 16, "i32", lanes);
            let high = code.op(format_args!("arith.shrui {bits}, {sixteen} : {wide}"));
            code.op(format_args!("arith.trunci {high} : {wide} to {memory}"))
        }
        ElemType::F16 => {
            code.op(format_args!("arith.truncf {value} : {} to {memory}", lanes_of("f32", lanes)))
        }
        _ => value,
    })
}

/// Stores `lanes` adjacent elements.
pub(crate) fn store(
    code: &mut Code,
    elem: ElemType,
    value: Value,
    pointer: Value,
    lanes: u64,
    alias: &str,
) -> Result<()> {
    let memory = lanes_of(memory_type(elem)?, lanes);
    let raw = to_memory(code, elem, value, lanes)?;
    code.line(format_args!(
        "llvm.store {raw}, {pointer} {{alignment = 1 : i64{alias}}} : {memory}, !llvm.ptr"
    ));
    Ok(())
}

/// The bits of an element as an integer of its width.
pub(crate) fn to_bits(code: &mut Code, elem: ElemType, value: Value) -> Result<Value> {
    let memory = to_memory(code, elem, value, 1)?;
    Ok(match elem {
        ElemType::F16 => code.op(format_args!("arith.bitcast {memory} : f16 to i16")),
        ElemType::F32 => code.op(format_args!("arith.bitcast {memory} : f32 to i32")),
        ElemType::F64 => code.op(format_args!("arith.bitcast {memory} : f64 to i64")),
        ElemType::S4 | ElemType::U4 => code.op(format_args!("arith.trunci {memory} : i8 to i4")),
        _ => memory,
    })
}

/// The element with the given bits.
pub(crate) fn from_bits(code: &mut Code, elem: ElemType, bits: Value) -> Result<Value> {
    Ok(match elem {
        ElemType::F16 => {
            let half = code.op(format_args!("arith.bitcast {bits} : i16 to f16"));
            code.op(format_args!("arith.extf {half} : f16 to f32"))
        }
        ElemType::BF16 => {
            let wide = code.op(format_args!("arith.extui {bits} : i16 to i32"));
            let sixteen = splat(code, 16, "i32", 1);
            let shifted = code.op(format_args!("arith.shli {wide}, {sixteen} : i32"));
            code.op(format_args!("arith.bitcast {shifted} : i32 to f32"))
        }
        ElemType::F32 => code.op(format_args!("arith.bitcast {bits} : i32 to f32")),
        ElemType::F64 => code.op(format_args!("arith.bitcast {bits} : i64 to f64")),
        ElemType::Pred => return unsupported("bitcast-convert", elem),
        ElemType::S4 => code.op(format_args!("arith.extsi {bits} : i4 to i8")),
        ElemType::U4 => code.op(format_args!("arith.extui {bits} : i4 to i8")),
        other => {
            register_type(other)?;
            bits
        }
    })
}

pub(crate) fn unary(
    code: &mut Code,
    externals: &mut Externals,
    op: Unary,
    elem: ElemType,
    x: Value,
) -> Result<Value> {
    let ty = register_type(elem)?;
    if elem.is_float() {
        return float_unary(code, externals, op, elem, x);
    }
    // The count of 4 set bits does not fit in s4.
    if elem.is_complex() || (op == Unary::Popcnt && elem == ElemType::S4) {
        return unsupported(op.name(), elem);
    }
    let nibble = elem.bits() == 4;
    let zero = splat(code, 0, ty, 1);
    let value = match op {
        Unary::Not => {
            let ones = splat(code, if elem == ElemType::Pred { 1 } else { -1 }, ty, 1);
            code.op(format_args!("arith.xori {x}, {ones} : {ty}"))
        }
        _ if elem == ElemType::Pred => return unsupported(op.name(), elem),
        Unary::Abs if elem.is_unsigned_int() => x,
        Unary::Abs => {
            let negative = code.op(format_args!("arith.cmpi slt, {x}, {zero} : {ty}"));
            let negated = code.op(format_args!("arith.subi {zero}, {x} : {ty}"));
            code.op(format_args!("arith.select {negative}, {negated}, {x} : {ty}"))
        }
        Unary::Negate => code.op(format_args!("arith.subi {zero}, {x} : {ty}")),
        Unary::Sign => {
            let one = splat(code, 1, ty, 1);
            let nonzero = code.op(format_args!("arith.cmpi ne, {x}, {zero} : {ty}"));
            let positive = code.op(format_args!("arith.select {nonzero}, {one}, {zero} : {ty}"));
            // XLA takes the top bit for a sign in unsigned types too.
            let minus = splat(code, -1, ty, 1);
            let negative = code.op(format_args!("arith.cmpi slt, {x}, {zero} : {ty}"));
            code.op(format_args!("arith.select {negative}, {minus}, {positive} : {ty}"))
        }
        Unary::Clz => {
            let own = if nibble { wrap(code, ElemType::U4, x, 1) } else { x };
            let zeros = code
                .op(format_args!("\"llvm.intr.ctlz\"({own}) <{{is_zero_poison = false}}> : ({ty}) -> {ty}"));
            let spare = splat(code, if nibble { 4 } else { 0 }, ty, 1);
            code.op(format_args!("arith.subi {zeros}, {spare} : {ty}"))
        }
        Unary::Popcnt => code.op(format_args!("llvm.intr.ctpop({x}) : ({ty}) -> {ty}")),
        _ => return unsupported(op.name(), elem),
    };
    Ok(wrap(code, elem, value, 1))
}

fn float_unary(
    code: &mut Code,
    externals: &mut Externals,
    op: Unary,
    elem: ElemType,
    x: Value,
) -> Result<Value> {
    let ty = register_type(elem)?;
    let intrinsic =
        |code: &mut Code, name: &str| code.op(format_args!("llvm.intr.{name}({x}) : ({ty}) -> {ty}"));
    let value = match op {
        // These move bits; a NaN keeps its payload.
        Unary::Abs => return Ok(intrinsic(code, "fabs")),
        Unary::Negate => return Ok(code.op(format_args!("arith.negf {x} : {ty}"))),
        Unary::Ceil => intrinsic(code, "ceil"),
        Unary::Floor => intrinsic(code, "floor"),
        Unary::RoundNearestEven => intrinsic(code, "roundeven"),
        Unary::RoundNearestAfz => intrinsic(code, "round"),
        Unary::Sqrt => intrinsic(code, "sqrt"),
        Unary::Sign => {
            // ±1 by sign; the product makes zeros of denormals and keeps zeros and NaN.
            let zero = splat(code, "0.0", ty, 1);
            let one = splat(code, "1.0", ty, 1);
            let signed = code.op(format_args!("llvm.intr.copysign({one}, {x}) : ({ty}, {ty}) -> {ty}"));
            let nonzero = code.op(format_args!("arith.cmpf one, {x}, {zero} : {ty}"));
            let rest = code.op(format_args!("arith.mulf {x}, {zero} : {ty}"));
            code.op(format_args!("arith.select {nonzero}, {signed}, {rest} : {ty}"))
        }
        Unary::IsFinite => {
            let magnitude = intrinsic(code, "fabs");
            let infinity = match ty {
                "f64" => splat(code, "0x7FF0000000000000", ty, 1),
                _ => splat(code, "0x7F800000", ty, 1),
            };
            return Ok(code.op(format_args!("arith.cmpf olt, {magnitude}, {infinity} : {ty}")));
        }
        Unary::Not | Unary::Clz | Unary::Popcnt => return unsupported(op.name(), elem),
        _ => {
            let name = externals.unary(op, ty).ok_or_else(|| Unsupported { op: op.name().into(), elem })?;
            code.op(format_args!("func.call @{name}({x}) : ({ty}) -> {ty}"))
        }
    };
    Ok(round_to(code, elem, value, 1))
}

pub(crate) fn binary(
    code: &mut Code,
    externals: &mut Externals,
    op: Binary,
    elem: ElemType,
    a: Value,
    b: Value,
) -> Result<Value> {
    let ty = register_type(elem)?;
    let plain = |code: &mut Code, name: &str| code.op(format_args!("arith.{name} {a}, {b} : {ty}"));
    if elem.is_float() {
        let value = match op {
            Binary::Add => plain(code, "addf"),
            Binary::Subtract => plain(code, "subf"),
            Binary::Multiply => plain(code, "mulf"),
            Binary::Divide => plain(code, "divf"),
            Binary::Maximum => plain(code, "maximumf"),
            Binary::Minimum => plain(code, "minimumf"),
            Binary::Remainder | Binary::Power | Binary::Atan2 => {
                let name =
                    externals.binary(op, ty).ok_or_else(|| Unsupported { op: op.name().into(), elem })?;
                code.op(format_args!("func.call @{name}({a}, {b}) : ({ty}, {ty}) -> {ty}"))
            }
            _ => return unsupported(op.name(), elem),
        };
        return Ok(round_to(code, elem, value, 1));
    }
    if elem.is_complex() {
        return unsupported(op.name(), elem);
    }
    let signed = elem.is_signed_int();
    let value = match op {
        Binary::Add if elem == ElemType::Pred => plain(code, "ori"),
        Binary::Multiply if elem == ElemType::Pred => plain(code, "andi"),
        Binary::And => plain(code, "andi"),
        Binary::Or => plain(code, "ori"),
        Binary::Xor => plain(code, "xori"),
        Binary::Maximum => plain(code, if signed { "maxsi" } else { "maxui" }),
        Binary::Minimum => plain(code, if signed { "minsi" } else { "minui" }),
        _ if elem == ElemType::Pred => return unsupported(op.name(), elem),
        Binary::Add => plain(code, "addi"),
        Binary::Subtract => plain(code, "subi"),
        Binary::Multiply => plain(code, "muli"),
        Binary::Divide | Binary::Remainder => divide(code, op, elem, ty, a, b),
        Binary::ShiftLeft | Binary::ShiftRightLogical | Binary::ShiftRightArithmetic => {
            shift(code, op, elem, ty, a, b)
        }
        Binary::Power | Binary::Atan2 => return unsupported(op.name(), elem),
    };
    Ok(wrap(code, elem, value, 1))
}

/// XLA: x/0 = -1 and x%0 = x; INT_MIN/-1 = INT_MIN and INT_MIN%-1 = 0.
fn divide(code: &mut Code, op: Binary, elem: ElemType, ty: &str, a: Value, b: Value) -> Value {
    let signed = elem.is_signed_int();
    let (zero, one) = (splat(code, 0, ty, 1), splat(code, 1, ty, 1));
    let minus_one = splat(code, -1, ty, 1);
    let by_zero = code.op(format_args!("arith.cmpi eq, {b}, {zero} : {ty}"));
    let by_minus_one = code.op(format_args!("arith.cmpi eq, {b}, {minus_one} : {ty}"));
    let unsafe_divisor =
        if signed { code.op(format_args!("arith.ori {by_zero}, {by_minus_one} : i1")) } else { by_zero };
    let divisor = code.op(format_args!("arith.select {unsafe_divisor}, {one}, {b} : {ty}"));
    let sign = if signed { "s" } else { "u" };
    if op == Binary::Divide {
        let mut value = code.op(format_args!("arith.div{sign}i {a}, {divisor} : {ty}"));
        if signed {
            let negated = code.op(format_args!("arith.subi {zero}, {a} : {ty}"));
            value = code.op(format_args!("arith.select {by_minus_one}, {negated}, {value} : {ty}"));
        }
        code.op(format_args!("arith.select {by_zero}, {minus_one}, {value} : {ty}"))
    } else {
        let value = code.op(format_args!("arith.rem{sign}i {a}, {divisor} : {ty}"));
        code.op(format_args!("arith.select {by_zero}, {a}, {value} : {ty}"))
    }
}

/// Shifts by the width or more (the amount counts as unsigned) leave nothing, or only signs.
fn shift(code: &mut Code, op: Binary, elem: ElemType, ty: &str, a: Value, b: Value) -> Value {
    let width = splat(code, elem.bits(), ty, 1);
    let last = splat(code, elem.bits() - 1, ty, 1);
    let within = code.op(format_args!("arith.cmpi ult, {b}, {width} : {ty}"));
    let amount = code.op(format_args!("arith.select {within}, {b}, {last} : {ty}"));
    match op {
        // The top bit is taken for a sign in unsigned types too.
        Binary::ShiftRightArithmetic => {
            let a = if elem.bits() == 4 { wrap(code, ElemType::S4, a, 1) } else { a };
            code.op(format_args!("arith.shrsi {a}, {amount} : {ty}"))
        }
        _ => {
            let a = if elem.bits() == 4 { wrap(code, ElemType::U4, a, 1) } else { a };
            let name = if op == Binary::ShiftLeft { "shli" } else { "shrui" };
            let zero = splat(code, 0, ty, 1);
            let shifted = code.op(format_args!("arith.{name} {a}, {amount} : {ty}"));
            code.op(format_args!("arith.select {within}, {shifted}, {zero} : {ty}"))
        }
    }
}

pub(crate) fn compare(
    code: &mut Code,
    direction: Direction,
    elem: ElemType,
    a: Value,
    b: Value,
) -> Result<Value> {
    let ty = register_type(elem)?;
    if elem.is_complex() {
        return unsupported("compare", elem);
    }
    if elem.is_float() {
        // Every comparison with NaN is false but `!=`.
        let predicate = match direction {
            Direction::Eq => "oeq",
            Direction::Ne => "une",
            Direction::Lt => "olt",
            Direction::Le => "ole",
            Direction::Gt => "ogt",
            Direction::Ge => "oge",
        };
        return Ok(code.op(format_args!("arith.cmpf {predicate}, {a}, {b} : {ty}")));
    }
    let sign = if elem.is_signed_int() { "s" } else { "u" };
    let predicate = match direction {
        Direction::Eq => "eq".to_owned(),
        Direction::Ne => "ne".to_owned(),
        Direction::Lt => format!("{sign}lt"),
        Direction::Le => format!("{sign}le"),
        Direction::Gt => format!("{sign}gt"),
        Direction::Ge => format!("{sign}ge"),
    };
    Ok(code.op(format_args!("arith.cmpi {predicate}, {a}, {b} : {ty}")))
}

pub(crate) fn select(code: &mut Code, elem: ElemType, p: Value, a: Value, b: Value) -> Result<Value> {
    Ok(code.op(format_args!("arith.select {p}, {a}, {b} : {}", register_type(elem)?)))
}

/// `a · b + c`, rounded once (16-bit floats: fused in f32, then rounded to the type). Integers wrap.
pub(crate) fn fma(code: &mut Code, elem: ElemType, a: Value, b: Value, c: Value) -> Result<Value> {
    let ty = register_type(elem)?;
    if elem == ElemType::Pred || elem.is_complex() {
        return unsupported("fma", elem);
    }
    if elem.is_int() {
        let product = code.op(format_args!("arith.muli {a}, {b} : {ty}"));
        let sum = code.op(format_args!("arith.addi {product}, {c} : {ty}"));
        return Ok(wrap(code, elem, sum, 1));
    }
    let value = code.op(format_args!("llvm.intr.fma({a}, {b}, {c}) : ({ty}, {ty}, {ty}) -> {ty}"));
    Ok(round_to(code, elem, value, 1))
}

/// Converts as XLA does: integers wrap, floats to integers truncate and saturate with NaN going to 0.
pub(crate) fn convert(code: &mut Code, from: ElemType, to: ElemType, x: Value, lanes: u64) -> Result<Value> {
    let (source, target) = (lanes_of(register_type(from)?, lanes), lanes_of(register_type(to)?, lanes));
    if from == to {
        return Ok(x);
    }
    if from.is_complex() || to.is_complex() {
        return unsupported(format!("convert to {to}"), from);
    }
    let to_float = to.is_float();
    if from.is_float() && to_float {
        let value = match (from, to) {
            (ElemType::F64, ElemType::F32) => {
                code.op(format_args!("arith.truncf {x} : {source} to {target}"))
            }
            (ElemType::F64, _) => return narrow_f64(code, to, x, lanes),
            (_, ElemType::F64) => code.op(format_args!("arith.extf {x} : {source} to {target}")),
            _ => x,
        };
        return Ok(round_to(code, to, value, lanes));
    }
    if from.is_float() {
        if to == ElemType::Pred && from == ElemType::BF16 {
            // By bits: a denormal bf16 is true, though it would be flushed as an f32.
            let int = lanes_of("i32", lanes);
            let bits = code.op(format_args!("arith.bitcast {x} : {source} to {int}"));
            let (one, zero) = (splat(code, 1, "i32", lanes), splat(code, 0, "i32", lanes));
            let magnitude = code.op(format_args!("arith.shli {bits}, {one} : {int}"));
            return Ok(code.op(format_args!("arith.cmpi ne, {magnitude}, {zero} : {int}")));
        }
        if to == ElemType::Pred {
            let zero = splat(code, "0.0", register_type(from)?, lanes);
            return Ok(code.op(format_args!("arith.cmpf une, {x}, {zero} : {source}")));
        }
        let sign = if to.is_signed_int() { "s" } else { "u" };
        let suffix = |ty: &str| if lanes == 1 { ty.to_owned() } else { format!("v{lanes}{ty}") };
        let own = format!("i{}", to.bits());
        let (wide, narrow, exact) = (suffix(&own), suffix(register_type(from)?), lanes_of(&own, lanes));
        let value = code.op(format_args!(
            "llvm.call_intrinsic \"llvm.fpto{sign}i.sat.{wide}.{narrow}\"({x}) : ({source}) -> {exact}"
        ));
        return Ok(match to.bits() {
            4 => code.op(format_args!("arith.ext{sign}i {value} : {exact} to {target}")),
            _ => value,
        });
    }
    if to == ElemType::Pred {
        let zero = splat(code, 0, register_type(from)?, lanes);
        return Ok(code.op(format_args!("arith.cmpi ne, {x}, {zero} : {source}")));
    }
    let sign = if from.is_signed_int() { "s" } else { "u" };
    if to_float {
        // To 16-bit floats by way of f32, rounding twice, as XLA does.
        let value = code.op(format_args!("arith.{sign}itofp {x} : {source} to {target}"));
        return Ok(round_to(code, to, value, lanes));
    }
    let width = |elem: ElemType| if elem == ElemType::Pred { 1 } else { 8 * elem.bytes() };
    let value = match width(to).cmp(&width(from)) {
        std::cmp::Ordering::Equal => x,
        std::cmp::Ordering::Less => code.op(format_args!("arith.trunci {x} : {source} to {target}")),
        std::cmp::Ordering::Greater => code.op(format_args!("arith.ext{sign}i {x} : {source} to {target}")),
    };
    Ok(wrap(code, to, value, lanes))
}
