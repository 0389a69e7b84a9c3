//! Element types of XLA tensors, their HLO text names, widths and `PrimitiveType` numbers.

use std::fmt;
use std::str::FromStr;

/// An XLA element type that the project computes with. The fp8, 2-bit and token types of XLA are not
/// here: an instruction that uses one stays on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElemType {
    Pred,
    S4,
    S8,
    S16,
    S32,
    S64,
    U4,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

use ElemType::*;

impl ElemType {
    pub const ALL: [ElemType; 17] =
        [Pred, S4, S8, S16, S32, S64, U4, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128];

    /// The name used by HLO text and by TAIDL.
    pub fn name(self) -> &'static str {
        match self {
            Pred => "pred",
            S4 => "s4",
            S8 => "s8",
            S16 => "s16",
            S32 => "s32",
            S64 => "s64",
            U4 => "u4",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
            C128 => "c128",
        }
    }

    /// Bytes of one element in a literal and in host memory. XLA keeps a 4-bit integer in a byte of its
    /// own in host buffers and literals.
    pub fn bytes(self) -> u64 {
        match self {
            Pred | S4 | U4 | S8 | U8 => 1,
            S16 | U16 | F16 | BF16 => 2,
            S32 | U32 | F32 => 4,
            S64 | U64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// Value bits of one element (1 for pred).
    pub fn bits(self) -> u32 {
        match self {
            Pred => 1,
            S4 | U4 => 4,
            other => other.bytes() as u32 * 8,
        }
    }

    pub fn is_signed_int(self) -> bool {
        matches!(self, S4 | S8 | S16 | S32 | S64)
    }

    pub fn is_unsigned_int(self) -> bool {
        matches!(self, U4 | U8 | U16 | U32 | U64)
    }

    pub fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// Real floating point.
    pub fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }

    pub fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }

    /// The number of this type in XLA's `PrimitiveType` enumeration (xla_data.proto).
    pub fn primitive_type(self) -> i32 {
        match self {
            Pred => 1,
            S8 => 2,
            S16 => 3,
            S32 => 4,
            S64 => 5,
            U8 => 6,
            U16 => 7,
            U32 => 8,
            U64 => 9,
            F16 => 10,
            F32 => 11,
            F64 => 12,
            C64 => 15,
            BF16 => 16,
            C128 => 18,
            S4 => 21,
            U4 => 22,
        }
    }

    pub fn from_primitive_type(number: i32) -> Option<ElemType> {
        Self::ALL.into_iter().find(|e| e.primitive_type() == number)
    }
}

impl fmt::Display for ElemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is no element type of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown element type `{0}`")]
pub struct UnknownElemType(pub String);

impl FromStr for ElemType {
    type Err = UnknownElemType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The paper writes i8 and i32 where HLO says s8 and s32.
        let canonical = match text.strip_prefix('i') {
            Some(width) if width.parse::<u32>().is_ok() => format!("s{width}"),
            _ => text.to_owned(),
        };
        Self::ALL.into_iter().find(|e| e.name() == canonical).ok_or_else(|| UnknownElemType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_inverse() {
        for elem in ElemType::ALL {
            assert_eq!(elem.name().parse::<ElemType>().unwrap(), elem);
            assert_eq!(ElemType::from_primitive_type(elem.primitive_type()), Some(elem));
        }
        assert_eq!("i8".parse::<ElemType>().unwrap(), S8);
        assert!("q8".parse::<ElemType>().is_err());
    }
}
