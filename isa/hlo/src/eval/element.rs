//! Native values of the element types: how one is read from and written to a literal's bytes.

use crate::{Literal, Shape};
use half::{bf16, f16};

/// The native form of one element type.
pub(super) trait Element: Copy {
    /// Reads one element; the slice has the element's width.
    fn load(bytes: &[u8]) -> Self;
    /// Appends the element's bytes.
    fn store(self, out: &mut Vec<u8>);
}

macro_rules! little_endian {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            fn load(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$ty>()];
                own.copy_from_slice(bytes);
                <$ty>::from_le_bytes(own)
            }

            fn store(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

little_endian!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);

/// A truth value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bool(pub(super) bool);

impl Element for Bool {
    fn load(bytes: &[u8]) -> Self {
        Bool(u8::load(bytes) != 0)
    }

    fn store(self, out: &mut Vec<u8>) {
        out.push(u8::from(self.0));
    }
}

/// A signed 4-bit integer, kept sign-extended: -8 to 7.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Int4(i8);

impl Int4 {
    pub(super) fn low_bits(value: i8) -> Int4 {
        Int4((value << 4) >> 4)
    }

    pub(super) fn get(self) -> i8 {
        self.0
    }
}

impl Element for Int4 {
    fn load(bytes: &[u8]) -> Self {
        Int4::low_bits(i8::load(bytes))
    }

    fn store(self, out: &mut Vec<u8>) {
        self.0.store(out);
    }
}

/// An unsigned 4-bit integer: 0 to 15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Uint4(u8);

impl Uint4 {
    pub(super) fn low_bits(value: u8) -> Uint4 {
        Uint4(value & 15)
    }

    pub(super) fn get(self) -> u8 {
        self.0
    }
}

impl Element for Uint4 {
    fn load(bytes: &[u8]) -> Self {
        Uint4::low_bits(u8::load(bytes))
    }

    fn store(self, out: &mut Vec<u8>) {
        self.0.store(out);
    }
}

/// The elements in row-major order. `T` is the native form of the literal's element type.
pub(super) fn load<T: Element>(literal: &Literal) -> impl ExactSizeIterator<Item = T> + Clone {
    literal.bytes().chunks_exact(literal.elem().bytes() as usize).map(T::load)
}

/// A literal of `shape` from its elements in row-major order, as many as the shape has.
pub(super) fn store<T: Element>(shape: &Shape, values: impl Iterator<Item = T>) -> Literal {
    let mut bytes = Vec::with_capacity(shape.bytes() as usize);
    values.for_each(|value| value.store(&mut bytes));
    dense(shape, bytes)
}

/// A literal from bytes that were made to fill `shape`.
pub(super) fn dense(shape: &Shape, bytes: Vec<u8>) -> Literal {
    Literal::from_bytes(shape.clone(), bytes).expect("an operator writes each element of its result once")
}

/// Runs the expression with `$native` standing for the native type of an element type, by kind; the kinds
/// that are left out go to the last arm.
macro_rules! with_native {
    (@int $elem:expr, $native:ident => $body:expr, $otherwise:expr) => {
        match $elem {
            $crate::ElemType::S4 => { type $native = $crate::eval::element::Int4; $body }
            $crate::ElemType::S8 => { type $native = i8; $body }
            $crate::ElemType::S16 => { type $native = i16; $body }
            $crate::ElemType::S32 => { type $native = i32; $body }
            $crate::ElemType::S64 => { type $native = i64; $body }
            $crate::ElemType::U4 => { type $native = $crate::eval::element::Uint4; $body }
            $crate::ElemType::U8 => { type $native = u8; $body }
            $crate::ElemType::U16 => { type $native = u16; $body }
            $crate::ElemType::U32 => { type $native = u32; $body }
            $crate::ElemType::U64 => { type $native = u64; $body }
            _ => $otherwise,
        }
    };
    (@float $elem:expr, $native:ident => $body:expr, $otherwise:expr) => {
        match $elem {
            $crate::ElemType::F16 => { type $native = half::f16; $body }
            $crate::ElemType::BF16 => { type $native = half::bf16; $body }
            $crate::ElemType::F32 => { type $native = f32; $body }
            $crate::ElemType::F64 => { type $native = f64; $body }
            _ => $otherwise,
        }
    };
    (@real $elem:expr, $native:ident => $body:expr, $otherwise:expr) => {
        with_native!(@int $elem, $native => $body, with_native!(@float $elem, $native => $body,
            match $elem {
                $crate::ElemType::Pred => { type $native = $crate::eval::element::Bool; $body }
                _ => $otherwise,
            }
        ))
    };
}

pub(super) use with_native;
