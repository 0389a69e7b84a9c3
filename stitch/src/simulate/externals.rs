//! Functions that generated code calls back: the transcendental functions of the reference evaluator, so that both
//! give the same bits.

use act_hlo::{Binary, Unary};
use std::collections::BTreeMap;

/// Address of a function that is registered with the JIT under its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(pub(crate) *mut ());

/// The functions that one module calls.
#[derive(Debug, Default)]
pub(crate) struct Externals {
    used: BTreeMap<String, (String, Address)>,
}

impl Externals {
    /// Name of the function for an operator on `ty` (f32 or f64), if there is one.
    pub(crate) fn unary(&mut self, op: Unary, ty: &str) -> Option<String> {
        let at = Unary::ALL.iter().position(|&u| u == op)?;
        let address = match ty {
            "f32" => act_hlo::unary_f32(op).and(UNARY_F32.get(at)).map(|&f| f as *mut ()),
            _ => act_hlo::unary_f64(op).and(UNARY_F64.get(at)).map(|&f| f as *mut ()),
        }?;
        Some(self.note(op.name(), ty, &format!("({ty}) -> {ty}"), address))
    }

    /// As [`Externals::unary`] for two operands.
    pub(crate) fn binary(&mut self, op: Binary, ty: &str) -> Option<String> {
        let at = Binary::ALL.iter().position(|&b| b == op)?;
        let address = match ty {
            "f32" => act_hlo::binary_f32(op).and(BINARY_F32.get(at)).map(|&f| f as *mut ()),
            _ => act_hlo::binary_f64(op).and(BINARY_F64.get(at)).map(|&f| f as *mut ()),
        }?;
        Some(self.note(op.name(), ty, &format!("({ty}, {ty}) -> {ty}"), address))
    }

    fn note(&mut self, op: &str, ty: &str, signature: &str, address: *mut ()) -> String {
        let name = format!("act_{}_{ty}", op.replace('-', "_"));
        self.used.insert(name.clone(), (signature.to_owned(), Address(address)));
        name
    }

    /// Name, MLIR signature and address of every function in use, sorted by name.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&str, &str, Address)> {
        self.used.iter().map(|(name, (signature, address))| (name.as_str(), signature.as_str(), *address))
    }
}

// C functions cannot carry the operator along, so there is one for each position in `Unary::ALL` and `Binary::ALL`.
// An operator without a function is never asked for; its entry gives NaN.
extern "C" fn unary_f32<const AT: usize>(x: f32) -> f32 {
    Unary::ALL.get(AT).and_then(|&op| act_hlo::unary_f32(op)).map_or(f32::NAN, |f| f(x))
}

extern "C" fn unary_f64<const AT: usize>(x: f64) -> f64 {
    Unary::ALL.get(AT).and_then(|&op| act_hlo::unary_f64(op)).map_or(f64::NAN, |f| f(x))
}

extern "C" fn binary_f32<const AT: usize>(a: f32, b: f32) -> f32 {
    Binary::ALL.get(AT).and_then(|&op| act_hlo::binary_f32(op)).map_or(f32::NAN, |f| f(a, b))
}

extern "C" fn binary_f64<const AT: usize>(a: f64, b: f64) -> f64 {
    Binary::ALL.get(AT).and_then(|&op| act_hlo::binary_f64(op)).map_or(f64::NAN, |f| f(a, b))
}

macro_rules! table {
    ($name:ident: $ty:ty = $function:ident of $all:expr; $($at:literal)*) => {
        const $name: &[$ty] = &[$($function::<$at>),*];
        const _: () = assert!($name.len() == $all.len(), "one entry per operator");
    };
}

table! { UNARY_F32: extern "C" fn(f32) -> f32 = unary_f32 of Unary::ALL;
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 }
table! { UNARY_F64: extern "C" fn(f64) -> f64 = unary_f64 of Unary::ALL;
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 }
table! { BINARY_F32: extern "C" fn(f32, f32) -> f32 = binary_f32 of Binary::ALL;
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 }
table! { BINARY_F64: extern "C" fn(f64, f64) -> f64 = binary_f64 of Binary::ALL;
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 }
