//! Text of addresses: `%i2*16+4` on chip, `operand0+%i2*1024+128` in main memory.

use crate::program::{Affine, LoopId, Space};
use std::fmt;

impl fmt::Display for LoopId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%i{}", self.0)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Space::Operand(k) => write!(f, "operand{k}"),
            Space::Result(k) => write!(f, "result{k}"),
            Space::Scratch => f.write_str("scratch"),
            Space::Consts => f.write_str("consts"),
        }
    }
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, (iv, factor)) in self.ivs.iter().enumerate() {
            let plus = if k == 0 { "" } else { "+" };
            match factor {
                1 => write!(f, "{plus}{iv}")?,
                _ => write!(f, "{plus}{iv}*{factor}")?,
            }
        }
        match (self.ivs.is_empty(), self.c0) {
            (true, c0) => write!(f, "{c0}"),
            (false, 0) => Ok(()),
            (false, c0) => write!(f, "{c0:+}"),
        }
    }
}

/// `space+offset`, without an offset of 0.
pub(crate) fn address_text(space: Space, offset: &Affine) -> String {
    let text = offset.to_string();
    match text.as_str() {
        "0" => space.to_string(),
        text if text.starts_with('-') => format!("{space}{text}"),
        text => format!("{space}+{text}"),
    }
}

/// Reads what [`Affine`] displays; any order of terms and repeated terms are taken too.
pub(crate) fn parse_affine(text: &str) -> Option<Affine> {
    if text.is_empty() {
        return None;
    }
    let mut sum = Affine::default();
    let mut rest = text;
    let mut first = true;
    while !rest.is_empty() {
        let (negative, after) = match (rest.strip_prefix('+'), rest.strip_prefix('-')) {
            (Some(after), _) if !first => (false, after),
            (_, Some(after)) => (true, after),
            _ if first => (false, rest),
            _ => return None,
        };
        first = false;
        if let Some(after) = after.strip_prefix("%i") {
            let (id, after) = number(after)?;
            let (mut factor, after) = match after.strip_prefix("*-") {
                Some(after) => number(after).map(|(v, after)| (-v, after))?,
                None => match after.strip_prefix('*') {
                    Some(after) => number(after)?,
                    None => (1, after),
                },
            };
            if negative {
                factor = -factor;
            }
            sum.add_term(LoopId(u32::try_from(id).ok()?), i64::try_from(factor).ok()?)?;
            rest = after;
        } else {
            let (value, after) = number(after)?;
            let value = i64::try_from(if negative { -value } else { value }).ok()?;
            sum.c0 = sum.c0.checked_add(value)?;
            rest = after;
        }
    }
    Some(sum)
}

/// Reads what [`address_text`] prints.
pub(crate) fn parse_address(text: &str) -> Option<(Space, Affine)> {
    let numbered = |rest: &str| number(rest).and_then(|(k, rest)| Some((u16::try_from(k).ok()?, rest.len())));
    let (space, left) = if let Some(rest) = text.strip_prefix("operand") {
        let (k, left) = numbered(rest)?;
        (Space::Operand(k), left)
    } else if let Some(rest) = text.strip_prefix("result") {
        let (k, left) = numbered(rest)?;
        (Space::Result(k), left)
    } else if let Some(rest) = text.strip_prefix("scratch") {
        (Space::Scratch, rest.len())
    } else {
        (Space::Consts, text.strip_prefix("consts")?.len())
    };
    let rest = &text[text.len() - left..];
    match rest.strip_prefix('+') {
        Some(offset) => Some((space, parse_affine(offset)?)),
        None if rest.is_empty() => Some((space, Affine::default())),
        None if rest.starts_with('-') => Some((space, parse_affine(rest)?)),
        None => None,
    }
}

/// Digits at the start, and what follows them.
fn number(text: &str) -> Option<(i128, &str)> {
    let len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..len].parse().ok()?, &text[len..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(c0: i64, ivs: &[(u32, i64)]) -> Affine {
        Affine { c0, ivs: ivs.iter().map(|&(i, k)| (LoopId(i), k)).collect() }
    }

    #[test]
    fn addresses_read_back() {
        for (affine, text) in [
            (affine(0, &[]), "0"),
            (affine(-7, &[]), "-7"),
            (affine(0, &[(2, 1024)]), "%i2*1024"),
            (affine(4, &[(0, 1), (3, -2)]), "%i0+%i3*-2+4"),
            (affine(-4, &[(1, 16)]), "%i1*16-4"),
            (affine(i64::MIN, &[]), "-9223372036854775808"),
        ] {
            assert_eq!(affine.to_string(), text);
            assert_eq!(parse_affine(text), Some(affine.clone()));
            for space in [Space::Operand(0), Space::Result(12), Space::Scratch, Space::Consts] {
                let text = address_text(space, &affine);
                assert_eq!(parse_address(&text), Some((space, affine.clone())), "{text}");
            }
        }
        assert_eq!(address_text(Space::Operand(0), &affine(128, &[])), "operand0+128");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "+", "1+", "%i", "%i0*", "%i0**2", "1 2", "x", "9223372036854775808", "--1", "+1"] {
            assert_eq!(parse_affine(text), None, "{text}");
        }
        for text in ["operand", "operand0+", "operand0x", "result99999", "scratch1", "4"] {
            assert_eq!(parse_address(text), None, "{text}");
        }
    }
}
