//! The operator set: HLO's tensor operators with their attributes as plain, comparable data, plus `eye` and
//! `fma`, which descriptions need and HLO lacks.

use crate::Literal;

/// An operator over concrete sizes, as it stands in a [`crate::Graph`].
pub type Op = OpKind<i64, Literal>;

/// One tensor operator. `D` is the type of sizes and positions, `C` that of constants: integers and literals in
/// a kernel, expressions over attributes in an instruction's semantics. Dimension numbers are always plain.
///
/// Operators whose result type does not follow from their operands (`Constant` aside: `Parameter`, `Iota`,
/// `Eye`, `Convert`, `BitcastConvert`, `Broadcast`, `Reshape`, and the element type of `Dot`) take it from the
/// shape declared at the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind<D, C> {
    /// The k-th input of the graph.
    Parameter(u32),
    Constant(C),
    /// Counts along `dim`.
    Iota {
        dim: usize,
    },
    /// Ones on the diagonal of a matrix (extension).
    Eye,
    Unary(Unary),
    Binary(Binary),
    Compare(Direction),
    /// `select(pred, on_true, on_false)`; the predicate has the shape of the others or is a scalar.
    Select,
    /// `clamp(lo, x, hi) = min(max(x, lo), hi)`; the bounds have the shape of x or are scalars.
    Clamp,
    /// `a * b + c` with a single rounding (extension).
    Fma,
    Convert,
    /// Reinterprets bits; between widths the last dimension appears or vanishes.
    BitcastConvert,
    Copy,
    ReducePrecision {
        exponent_bits: u32,
        mantissa_bits: u32,
    },
    /// Operand dimension i becomes result dimension `dims[i]`.
    Broadcast {
        dims: Vec<usize>,
    },
    Reshape,
    /// Result dimension i is operand dimension `perm[i]`.
    Transpose {
        perm: Vec<usize>,
    },
    Slice {
        start: Vec<D>,
        limit: Vec<D>,
        stride: Vec<D>,
    },
    /// Operands: the array, then one scalar start per dimension, clamped into range.
    DynamicSlice {
        sizes: Vec<D>,
    },
    /// Operands: the array, the update, then one scalar start per dimension, clamped into range.
    DynamicUpdateSlice,
    /// Operands: the array, the scalar padding value. Low and high may be negative.
    Pad {
        low: Vec<D>,
        high: Vec<D>,
        interior: Vec<D>,
    },
    Reverse {
        dims: Vec<usize>,
    },
    Concatenate {
        dim: usize,
    },
    /// Operands: the array, the scalar initial value.
    Reduce {
        dims: Vec<usize>,
        combiner: Binary,
    },
    Dot(DotDims),
}

/// Dimension numbers of a general dot. Result dimensions: batch, free of lhs, free of rhs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DotDims {
    pub lhs_batch: Vec<usize>,
    pub rhs_batch: Vec<usize>,
    pub lhs_contracting: Vec<usize>,
    pub rhs_contracting: Vec<usize>,
}

impl DotDims {
    /// The matrix product [M,K] x [K,N].
    pub fn matmul() -> DotDims {
        DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() }
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $ty:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $ty { $($variant),* }

        impl $ty {
            pub const ALL: &'static [$ty] = &[$($ty::$variant),*];

            /// The name in HLO text.
            pub fn name(self) -> &'static str {
                match self { $($ty::$variant => $name),* }
            }

            pub fn from_name(name: &str) -> Option<$ty> {
                match name { $($name => Some($ty::$variant),)* _ => None }
            }
        }
    };
}

named! {
    /// Elementwise operators of one operand.
    Unary {
        Abs = "abs", Negate = "negate", Sign = "sign", Not = "not", Ceil = "ceil", Floor = "floor",
        RoundNearestAfz = "round-nearest-afz", RoundNearestEven = "round-nearest-even",
        Exp = "exponential", Expm1 = "exponential-minus-one", Log = "log", Log1p = "log-plus-one",
        Logistic = "logistic", Sqrt = "sqrt", Rsqrt = "rsqrt", Cbrt = "cbrt",
        Sin = "sine", Cos = "cosine", Tan = "tan", Tanh = "tanh", Erf = "erf",
        IsFinite = "is-finite", Clz = "count-leading-zeros", Popcnt = "popcnt",
    }
}

named! {
    /// Elementwise operators of two operands of one shape; those that are also the combiners of reduce.
    Binary {
        Add = "add", Subtract = "subtract", Multiply = "multiply", Divide = "divide",
        Remainder = "remainder", Maximum = "maximum", Minimum = "minimum", Power = "power",
        Atan2 = "atan2", And = "and", Or = "or", Xor = "xor", ShiftLeft = "shift-left",
        ShiftRightArithmetic = "shift-right-arithmetic", ShiftRightLogical = "shift-right-logical",
    }
}

named! {
    /// Comparison direction.
    Direction { Eq = "EQ", Ne = "NE", Lt = "LT", Le = "LE", Gt = "GT", Ge = "GE" }
}

impl<D, C> OpKind<D, C> {
    /// The operator's name in HLO text.
    pub fn name(&self) -> &'static str {
        match self {
            OpKind::Parameter(_) => "parameter",
            OpKind::Constant(_) => "constant",
            OpKind::Iota { .. } => "iota",
            OpKind::Eye => "eye",
            OpKind::Unary(u) => u.name(),
            OpKind::Binary(b) => b.name(),
            OpKind::Compare(_) => "compare",
            OpKind::Select => "select",
            OpKind::Clamp => "clamp",
            OpKind::Fma => "fma",
            OpKind::Convert => "convert",
            OpKind::BitcastConvert => "bitcast-convert",
            OpKind::Copy => "copy",
            OpKind::ReducePrecision { .. } => "reduce-precision",
            OpKind::Broadcast { .. } => "broadcast",
            OpKind::Reshape => "reshape",
            OpKind::Transpose { .. } => "transpose",
            OpKind::Slice { .. } => "slice",
            OpKind::DynamicSlice { .. } => "dynamic-slice",
            OpKind::DynamicUpdateSlice => "dynamic-update-slice",
            OpKind::Pad { .. } => "pad",
            OpKind::Reverse { .. } => "reverse",
            OpKind::Concatenate { .. } => "concatenate",
            OpKind::Reduce { .. } => "reduce",
            OpKind::Dot(_) => "dot",
        }
    }

    /// The same operator with sizes and constants translated.
    pub fn try_map<D2, C2, E>(
        &self,
        mut size: impl FnMut(&D) -> Result<D2, E>,
        constant: impl FnOnce(&C) -> Result<C2, E>,
    ) -> Result<OpKind<D2, C2>, E> {
        let mut sizes = |v: &[D]| v.iter().map(&mut size).collect::<Result<Vec<D2>, E>>();
        Ok(match self {
            OpKind::Constant(c) => OpKind::Constant(constant(c)?),
            OpKind::Slice { start, limit, stride } => {
                OpKind::Slice { start: sizes(start)?, limit: sizes(limit)?, stride: sizes(stride)? }
            }
            OpKind::DynamicSlice { sizes: s } => OpKind::DynamicSlice { sizes: sizes(s)? },
            OpKind::Pad { low, high, interior } => {
                OpKind::Pad { low: sizes(low)?, high: sizes(high)?, interior: sizes(interior)? }
            }
            OpKind::Parameter(k) => OpKind::Parameter(*k),
            OpKind::Iota { dim } => OpKind::Iota { dim: *dim },
            OpKind::Eye => OpKind::Eye,
            OpKind::Unary(u) => OpKind::Unary(*u),
            OpKind::Binary(b) => OpKind::Binary(*b),
            OpKind::Compare(d) => OpKind::Compare(*d),
            OpKind::Select => OpKind::Select,
            OpKind::Clamp => OpKind::Clamp,
            OpKind::Fma => OpKind::Fma,
            OpKind::Convert => OpKind::Convert,
            OpKind::BitcastConvert => OpKind::BitcastConvert,
            OpKind::Copy => OpKind::Copy,
            OpKind::ReducePrecision { exponent_bits, mantissa_bits } => {
                OpKind::ReducePrecision { exponent_bits: *exponent_bits, mantissa_bits: *mantissa_bits }
            }
            OpKind::Broadcast { dims } => OpKind::Broadcast { dims: dims.clone() },
            OpKind::Reshape => OpKind::Reshape,
            OpKind::Transpose { perm } => OpKind::Transpose { perm: perm.clone() },
            OpKind::DynamicUpdateSlice => OpKind::DynamicUpdateSlice,
            OpKind::Reverse { dims } => OpKind::Reverse { dims: dims.clone() },
            OpKind::Concatenate { dim } => OpKind::Concatenate { dim: *dim },
            OpKind::Reduce { dims, combiner } => OpKind::Reduce { dims: dims.clone(), combiner: *combiner },
            OpKind::Dot(dims) => OpKind::Dot(dims.clone()),
        })
    }
}
