//! Types and functions of elements that a translated program uses. Each function stands for one operator of HLO on
//! scalars; the common ones of integers are given as integers, the rest by the operator's text.

use super::Names;
use act_hlo::{Binary, ElemType, Literal, Op};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What has been used so far, in the order of the names.
#[derive(Default)]
pub(super) struct Scalars {
    types: BTreeMap<&'static str, ElemType>,
    /// Definitions by name.
    functions: BTreeMap<String, String>,
}

impl Scalars {
    /// A type's name; types without elements of their own have none.
    pub(super) fn elem(&mut self, elem: ElemType) -> Result<&'static str, String> {
        if elem.is_complex() || elem.bits() == 4 {
            return Err(format!("elements of type {elem} have no form in Hex"));
        }
        self.types.insert(elem.name(), elem);
        Ok(elem.name())
    }

    fn define(
        &mut self,
        name: &str,
        params: &[ElemType],
        result: ElemType,
        meaning: &str,
    ) -> Result<(), String> {
        let mut list = Vec::new();
        for (k, &param) in params.iter().enumerate() {
            list.push(format!("{}: {}", letter(k), self.elem(param)?));
        }
        let result = self.elem(result)?;
        let text = format!("fun {name}({}): {result}{meaning}", list.join(", "));
        self.functions.insert(name.to_owned(), text);
        Ok(())
    }

    /// Applies an elementwise operator.
    pub(super) fn apply(
        &mut self,
        op: &Op,
        params: &[ElemType],
        result: ElemType,
        arguments: &[String],
    ) -> Result<String, String> {
        let (base, attributes) = operator(op)?;
        let mut name = base.replace('-', "_");
        if let Some((_, value)) = attributes.split_once('=') {
            let _ = write!(name, "_{}", value.to_lowercase().replace(", mantissa_bits=", "_"));
        }
        let differs = params.iter().any(|param| *param != result);
        for param in if differs { params } else { &params[..1] } {
            let _ = write!(name, "_{param}");
        }
        if differs {
            let _ = write!(name, "_{result}");
        }
        let letters: Vec<String> = (0..params.len()).map(letter).collect();
        let hlo = format!("{base}({}){attributes}", letters.join(", "));
        let commutative = matches!(op, Op::Binary(Binary::Add | Binary::Multiply)) && !differs;
        let small =
            result.is_int() && result.bits() <= 32 && params.iter().all(|p| p.is_int() && p.bits() <= 32);
        let meaning = match op {
            Op::Binary(Binary::Add) if small => "a + b".to_owned(),
            Op::Binary(Binary::Subtract) if small => "a - b".to_owned(),
            Op::Binary(Binary::Multiply) if small && result.bits() < 32 => "a * b".to_owned(),
            Op::Binary(Binary::Multiply) if small && result.is_signed_int() => "a * b".to_owned(),
            Op::Binary(Binary::Maximum) if small => "max(a, b)".to_owned(),
            Op::Binary(Binary::Minimum) if small => "min(a, b)".to_owned(),
            Op::Convert if small => "a".to_owned(),
            _ => format!("hlo \"{hlo}\""),
        };
        let meaning = format!("{} = {meaning}", if commutative { " commutative" } else { "" });
        self.define(&name, params, result, &meaning)?;
        Ok(format!("{name}({})", arguments.join(", ")))
    }

    /// A scalar constant, as its bits are kept.
    pub(super) fn constant(&mut self, value: &Literal) -> Result<String, String> {
        let elem = value.elem();
        let bits = bits(value.element_bytes(0), elem);
        // Written so that the smallest integer fits as well.
        let (name, meaning) = match bits {
            i64::MIN => (format!("least_{elem}"), format!("-{} - 1", i64::MAX)),
            bits if bits < 0 => (format!("minus_{}_{elem}", -bits), format!("-{}", -bits)),
            bits if elem.is_float() => (format!("bits_{bits:x}_{elem}"), bits.to_string()),
            bits => (format!("number_{bits}_{elem}"), bits.to_string()),
        };
        self.define(&name, &[], elem, &format!(" = {meaning}"))?;
        Ok(format!("{name}()"))
    }

    /// The byte of an element that comes `at`-th in memory; `at` is a Hex integer.
    pub(super) fn byte(&mut self, elem: ElemType, value: &str, at: &str) -> Result<String, String> {
        if elem == ElemType::U8 {
            return Ok(value.to_owned());
        }
        let ty = self.elem(elem)?;
        let byte = self.elem(ElemType::U8)?;
        let name = format!("byte_of_{elem}");
        let shifted = (1..elem.bytes())
            .rev()
            .fold("a".to_owned(), |rest, k| format!("if k == {k} then a / {} else {rest}", 1i64 << (8 * k)));
        self.functions.insert(name.clone(), format!("fun {name}(a: {ty}, k: int): {byte} = {shifted}"));
        Ok(format!("{name}({value}, {at})"))
    }

    /// The element that bytes are.
    pub(super) fn of_bytes(&mut self, elem: ElemType, bytes: &[String]) -> Result<String, String> {
        if elem == ElemType::U8 {
            return Ok(bytes[0].clone());
        }
        let name = format!("{elem}_of_bytes");
        // The highest byte of eight is signed: 64 bits are kept as a signed integer has them.
        let part = |k: usize| match k {
            0 => letter(0),
            7 => format!("(if {0} > 127 then {0} - 256 else {0}) * {1}", letter(7), 1i64 << 56),
            _ => format!("{} * {}", letter(k), 1i64 << (8 * k)),
        };
        let sum: Vec<String> = (0..bytes.len()).map(part).collect();
        let params = vec![ElemType::U8; bytes.len()];
        self.define(&name, &params, elem, &format!(" = {}", sum.join(" + ")))?;
        Ok(format!("{name}({})", bytes.join(", ")))
    }

    /// An element of another type with the same bits.
    pub(super) fn same_bits(&mut self, from: ElemType, to: ElemType, value: &str) -> Result<String, String> {
        if from == to {
            return Ok(value.to_owned());
        }
        let name = format!("bits_of_{from}_as_{to}");
        self.define(&name, &[from], to, " = a")?;
        Ok(format!("{name}({value})"))
    }

    /// Takes the names of everything that was defined.
    pub(super) fn reserve(names: &mut Names) {
        for elem in ElemType::ALL {
            names.take(elem.name());
        }
    }

    /// The items that define what was used.
    pub(super) fn items(&self) -> String {
        let mut text = String::new();
        for (name, elem) in &self.types {
            let kind = match elem {
                ElemType::F16 => "float 5 10".to_owned(),
                ElemType::BF16 => "float 8 7".to_owned(),
                ElemType::F32 => "float 8 23".to_owned(),
                ElemType::F64 => "float 11 52".to_owned(),
                elem if elem.is_signed_int() || elem.bits() == 64 => format!("signed {}", elem.bits()),
                elem => format!("unsigned {}", elem.bits()),
            };
            let _ = writeln!(text, "type {name} = {kind}");
        }
        self.functions.values().for_each(|function| {
            let _ = writeln!(text, "{function}");
        });
        text
    }
}

/// Names of a function's parameters.
fn letter(k: usize) -> String {
    char::from(b'a' + k as u8).to_string()
}

/// An elementwise operator's name in HLO text, and what comes behind its operands.
fn operator(op: &Op) -> Result<(&'static str, String), String> {
    Ok(match op {
        Op::Compare(direction) => ("compare", format!(", direction={}", direction.name())),
        Op::ReducePrecision { exponent_bits, mantissa_bits } => {
            (op.name(), format!(", exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}"))
        }
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Clamp | Op::Fma | Op::Convert => {
            (op.name(), String::new())
        }
        other => return Err(format!("{} has no form in Hex", other.name())),
    })
}

/// An element's bits as the interpreter keeps them.
pub(super) fn bits(bytes: &[u8], elem: ElemType) -> i64 {
    let mut all =
        [if elem.is_signed_int() && bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 }; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(all)
}
