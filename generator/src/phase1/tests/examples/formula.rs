//! Kernels of elementwise operators from formulas such as `subtract(x, negate(y))`. Knows no rule.

use super::draw::Draw;
use std::collections::BTreeMap;

/// A rule with the element types to draw from and the formulas that show its left side.
///
/// In a formula, `x` is a parameter of the drawn type and `p:pred` one of another; `#3` is a splat; `lt(x, y)` compares;
/// `cvt:s8(x)`, `bcv:u8(x)` and `reduce-precision:5-10(x)` carry their attribute; everything else is HLO's name.
pub(super) type Example = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The kernel of the rule's example, when the list has it.
pub(super) fn build(list: &[Example], rule: &str, d: &mut Draw) -> bool {
    let Some((_, elems, formulas)) = list.iter().find(|e| e.0 == rule) else { return false };
    let elem = d.pick(elems);
    let formula = d.pick(formulas);
    let rank = d.rank();
    let dims = d.dims(rank);
    let mut writer = Writer { d, elem, dims, known: BTreeMap::new() };
    let mut rest = formula;
    let (value, elem) = writer.value(&mut rest);
    assert!(rest.is_empty(), "{formula}: `{rest}` is left");
    // The result is the last value written, a parameter included.
    if !formula.contains('(') {
        writer.d.op(&elem, &writer.dims.clone(), &format!("copy({value})"));
    }
    true
}

struct Writer<'a> {
    d: &'a mut Draw,
    elem: &'static str,
    dims: Vec<usize>,
    known: BTreeMap<String, (String, String)>,
}

impl Writer<'_> {
    /// Writes the value at the head of `rest`; gives its name and element type.
    fn value(&mut self, rest: &mut &str) -> (String, String) {
        let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        *rest = tail;
        let (name, attribute) = head.trim().split_once(':').unwrap_or((head.trim(), ""));
        if !rest.starts_with('(') {
            return self.leaf(name, attribute);
        }
        let mut operands = Vec::new();
        while rest.starts_with(['(', ',']) {
            *rest = &rest[1..];
            // Bounds of a clamp are scalars.
            let scalar = name == "clamp" && operands.len() != 1;
            let dims = std::mem::take(&mut self.dims);
            self.dims = if scalar { Vec::new() } else { dims.clone() };
            operands.push(self.value(rest));
            self.dims = dims;
        }
        *rest = rest.strip_prefix(')').unwrap_or_else(|| panic!("`{rest}`: a bracket is missing"));
        self.operator(name, attribute, &operands)
    }

    fn leaf(&mut self, name: &str, attribute: &str) -> (String, String) {
        let elem = if attribute.is_empty() { self.elem } else { attribute }.to_owned();
        let dims = self.dims.clone();
        if let Some(value) = name.strip_prefix('#') {
            let scalar = self.d.op(&elem, &[], &format!("constant({value})"));
            if dims.is_empty() {
                return (scalar, elem);
            }
            let splat = self.d.op(&elem, &dims, &format!("broadcast({scalar}), dimensions={{}}"));
            return (splat, elem);
        }
        if !self.known.contains_key(name) {
            let parameter = (self.d.parameter(&elem, &dims), elem);
            self.known.insert(name.to_owned(), parameter);
        }
        self.known[name].clone()
    }

    fn operator(&mut self, name: &str, attribute: &str, operands: &[(String, String)]) -> (String, String) {
        let names = operands.iter().map(|o| o.0.as_str()).collect::<Vec<_>>().join(", ");
        let last = operands.last().map_or("", |o| o.1.as_str());
        let (elem, text) = match name {
            "lt" | "le" | "gt" | "ge" | "eq" | "ne" => {
                ("pred", format!("compare({names}), direction={}", name.to_uppercase()))
            }
            "cvt" => (attribute, format!("convert({names})")),
            "bcv" => (attribute, format!("bitcast-convert({names})")),
            "is-finite" => ("pred", format!("is-finite({names})")),
            "reduce-precision" => {
                let (e, m) = attribute.split_once('-').unwrap_or_else(|| panic!("`{attribute}`: e-m"));
                (last, format!("reduce-precision({names}), exponent_bits={e}, mantissa_bits={m}"))
            }
            _ => (last, format!("{name}({names})")),
        };
        let dims = self.dims.clone();
        (self.d.op(elem, &dims, &text), elem.to_owned())
    }
}
