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
        let address = match ty {
            "f32" => UNARY_F32.iter().find(|f| f.0 == op).map(|f| f.1 as *mut ()),
            _ => UNARY_F64.iter().find(|f| f.0 == op).map(|f| f.1 as *mut ()),
        }?;
        Some(self.note(op.name(), ty, &format!("({ty}) -> {ty}"), address))
    }

    /// As [`Externals::unary`] for two operands.
    pub(crate) fn binary(&mut self, op: Binary, ty: &str) -> Option<String> {
        let address = match ty {
            "f32" => BINARY_F32.iter().find(|f| f.0 == op).map(|f| f.1 as *mut ()),
            _ => BINARY_F64.iter().find(|f| f.0 == op).map(|f| f.1 as *mut ()),
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

macro_rules! unary_table {
    ($table:ident, $ty:ty, $($op:ident => $body:expr),* $(,)?) => {
        const $table: &[(Unary, extern "C" fn($ty) -> $ty)] = &[$((Unary::$op, {
            extern "C" fn call(x: $ty) -> $ty {
                let function: fn($ty) -> $ty = $body;
                function(x)
            }
            call
        })),*];
    };
}

macro_rules! binary_table {
    ($table:ident, $ty:ty, $($op:ident => $body:expr),* $(,)?) => {
        const $table: &[(Binary, extern "C" fn($ty, $ty) -> $ty)] = &[$((Binary::$op, {
            extern "C" fn call(a: $ty, b: $ty) -> $ty {
                let function: fn($ty, $ty) -> $ty = $body;
                function(a, b)
            }
            call
        })),*];
    };
}

unary_table! { UNARY_F32, f32,
    Exp => |x| f64::from(x).exp() as f32,
    Tanh => |x| f64::from(x).tanh() as f32,
}

unary_table! { UNARY_F64, f64,
    Exp => f64::exp,
    Tanh => f64::tanh,
}

binary_table! { BINARY_F32, f32, Remainder => |a, b| a % b }
binary_table! { BINARY_F64, f64, Remainder => |a, b| a % b }
