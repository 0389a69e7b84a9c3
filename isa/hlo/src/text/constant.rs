//! Literals in HLO text: nested braces by rank, `nan(0x1)` for a NaN with payload, `(re, im)` for a complex
//! number.

use super::ParseError;
use super::lexer::TokenKind;
use super::parser::Cursor;
use crate::{ElemType, Literal, Shape};
use half::{bf16, f16};
use std::fmt::Write;

/// Reads the literal between the parentheses of `constant(...)`.
pub(super) fn parse(cursor: &mut Cursor, shape: &Shape) -> Result<Literal, ParseError> {
    let start = cursor.at;
    let mut bytes = Vec::new();
    // Members seen so far at each open brace.
    let mut open: Vec<u64> = Vec::new();
    let mut finished = false;
    while !cursor.is_done() {
        if finished {
            return Err(cursor.expected("`)`"));
        }
        let depth = open.len();
        if cursor.accept('{') {
            if depth == shape.rank() {
                cursor.at -= 1;
                return Err(cursor.expected(&format!("an element of {shape}")));
            }
            open.push(0);
            if !cursor.accept('}') {
                continue;
            }
        } else if matches!(cursor.peek(), Some(TokenKind::Word(word)) if word == "...") {
            return Err(cursor.error("the values of this constant were left out when it was printed"));
        } else if depth == shape.rank() {
            element(cursor, shape.elem, &mut bytes)?;
            if depth == 0 {
                finished = true;
                continue;
            }
            open[depth - 1] += 1;
            if cursor.accept(',') {
                continue;
            }
            cursor.expect('}')?;
        } else {
            return Err(cursor.expected(&format!("`{{`: {shape} has rank {}", shape.rank())));
        }
        // A brace was closed; so may be the ones around it.
        loop {
            let members = open.pop().unwrap_or_default();
            let depth = open.len();
            // An array without elements may be written as one empty brace.
            if members != shape.dims[depth] && (members != 0 || shape.elements() != 0) {
                cursor.at -= 1;
                let message = format!("dimension {depth} of {shape} has {members} members here");
                return Err(cursor.error(message));
            }
            let Some(outer) = open.last_mut() else {
                finished = true;
                break;
            };
            *outer += 1;
            if cursor.accept(',') {
                break;
            }
            cursor.expect('}')?;
        }
    }
    if !finished {
        return Err(cursor.expected(&format!("the values of {shape}")));
    }
    cursor.at = start;
    Literal::from_bytes(shape.clone(), bytes).map_err(|e| cursor.error(e.to_string()))
}

fn element(cursor: &mut Cursor, elem: ElemType, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut component = |cursor: &mut Cursor, elem| scalar(cursor, elem, bytes);
    let part = match elem {
        ElemType::C64 => ElemType::F32,
        ElemType::C128 => ElemType::F64,
        real => return component(cursor, real),
    };
    cursor.expect('(')?;
    component(cursor, part)?;
    cursor.expect(',')?;
    component(cursor, part)?;
    cursor.expect(')')
}

fn scalar(cursor: &mut Cursor, elem: ElemType, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
    let at = cursor.at;
    // Where in the text an error stands is found by reading it from the start: for errors alone.
    let refused = |cursor: &mut Cursor| {
        cursor.at = at;
        cursor.expected(&format!("a value of type {elem}"))
    };
    let Some(TokenKind::Word(word)) = cursor.peek() else { return Err(refused(cursor)) };
    cursor.at += 1;
    if elem == ElemType::Pred {
        bytes.push(match word.as_str() {
            "true" | "1" => 1,
            "false" | "0" => 0,
            _ => return Err(refused(cursor)),
        });
        return Ok(());
    }
    if elem.is_int() {
        let value: i128 = word.parse().map_err(|_| refused(cursor))?;
        let (low, high) = int_range(elem);
        if value < low || value > high {
            let message = format!("{word} does not fit in {elem}");
            return Err(ParseError { message, ..refused(cursor) });
        }
        bytes.extend_from_slice(&value.to_le_bytes()[..elem.bytes() as usize]);
        return Ok(());
    }
    let (negative, magnitude) = word.strip_prefix('-').map_or((false, word.as_str()), |rest| (true, rest));
    if magnitude == "nan" {
        let format = FloatBits::of(elem);
        let payload = if cursor.accept('(') {
            let error = cursor.expected("the payload of a NaN, such as 0x1");
            let digits = cursor.word("the payload of a NaN")?;
            let digits = digits.strip_prefix("0x").ok_or_else(|| error.clone())?;
            let payload = u64::from_str_radix(digits, 16).map_err(|_| error.clone())?;
            if payload == 0 || payload > format.mantissa_mask() {
                return Err(error);
            }
            cursor.expect(')')?;
            payload
        } else {
            format.quiet()
        };
        let bits = format.infinity() | payload | if negative { format.sign() } else { 0 };
        bytes.extend_from_slice(&bits.to_le_bytes()[..elem.bytes() as usize]);
        return Ok(());
    }
    match elem {
        ElemType::F32 => {
            let value: f32 = word.parse().map_err(|_| refused(cursor))?;
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        ElemType::F64 => {
            let value: f64 = word.parse().map_err(|_| refused(cursor))?;
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        narrow => {
            let value: f64 = word.parse().map_err(|_| refused(cursor))?;
            let half = narrow == ElemType::F16;
            bytes.extend_from_slice(&if half {
                crate::eval::f16_from_f64(value).to_le_bytes()
            } else {
                bf16::from_f64(value).to_le_bytes()
            });
        }
    }
    Ok(())
}

fn int_range(elem: ElemType) -> (i128, i128) {
    let bits = elem.bits();
    if elem.is_signed_int() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

/// Where sign, exponent and mantissa stand in a float.
struct FloatBits {
    bits: u32,
    mantissa: u32,
}

impl FloatBits {
    fn of(elem: ElemType) -> FloatBits {
        let mantissa = match elem {
            ElemType::F16 => 10,
            ElemType::BF16 => 7,
            ElemType::F32 => 23,
            _ => 52,
        };
        FloatBits { bits: elem.bits(), mantissa }
    }

    fn sign(&self) -> u64 {
        1 << (self.bits - 1)
    }

    fn mantissa_mask(&self) -> u64 {
        (1 << self.mantissa) - 1
    }

    fn infinity(&self) -> u64 {
        (self.sign() - 1) & !self.mantissa_mask()
    }

    fn quiet(&self) -> u64 {
        1 << (self.mantissa - 1)
    }
}

/// Writes what [`parse`] reads.
pub(super) fn print(literal: &Literal, out: &mut String) {
    if literal.shape().rank() > 0 && literal.shape().elements() == 0 {
        out.push_str("{}");
        return;
    }
    let mut elements = literal.bytes().chunks_exact(literal.elem().bytes() as usize);
    print_dims(literal.elem(), &literal.shape().dims, &mut elements, out);
}

fn print_dims<'a>(
    elem: ElemType,
    dims: &[u64],
    elements: &mut impl Iterator<Item = &'a [u8]>,
    out: &mut String,
) {
    match dims {
        [] => {
            if let Some(bytes) = elements.next() {
                print_element(elem, bytes, out);
            }
        }
        [size, inner @ ..] => {
            out.push('{');
            for i in 0..*size {
                out.push_str(if i == 0 { "" } else { ", " });
                print_dims(elem, inner, elements, out);
            }
            out.push('}');
        }
    }
}

fn print_element(elem: ElemType, bytes: &[u8], out: &mut String) {
    let part = match elem {
        ElemType::C64 => ElemType::F32,
        ElemType::C128 => ElemType::F64,
        real => return print_scalar(real, bytes, out),
    };
    let (re, im) = bytes.split_at(bytes.len() / 2);
    out.push('(');
    print_scalar(part, re, out);
    out.push_str(", ");
    print_scalar(part, im, out);
    out.push(')');
}

fn print_scalar(elem: ElemType, bytes: &[u8], out: &mut String) {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    if elem == ElemType::Pred {
        out.push_str(if bits == 0 { "false" } else { "true" });
        return;
    }
    // Writing to a String does not fail.
    if elem.is_int() {
        let shift = 64 - elem.bytes() as u32 * 8;
        let _ = if elem.is_signed_int() {
            write!(out, "{}", (bits << shift) as i64 >> shift)
        } else {
            write!(out, "{bits}")
        };
        return;
    }
    let format = FloatBits::of(elem);
    let sign = if bits & format.sign() == 0 { "" } else { "-" };
    let magnitude = bits & (format.sign() - 1);
    let payload = magnitude & format.mantissa_mask();
    if magnitude == format.infinity() {
        let _ = write!(out, "{sign}inf");
    } else if magnitude > format.infinity() && payload == format.quiet() {
        let _ = write!(out, "{sign}nan");
    } else if magnitude > format.infinity() {
        let _ = write!(out, "{sign}nan(0x{payload:x})");
    } else {
        // The shortest decimal that reads back as the same f32 is nearer to a 16-bit float than to its
        // neighbours, so it serves for those as well.
        let _ = match elem {
            ElemType::F16 => write!(out, "{:?}", f16::from_bits(bits as u16).to_f32()),
            ElemType::BF16 => write!(out, "{:?}", bf16::from_bits(bits as u16).to_f32()),
            ElemType::F32 => write!(out, "{:?}", f32::from_bits(bits as u32)),
            _ => write!(out, "{:?}", f64::from_bits(bits)),
        };
    }
}
