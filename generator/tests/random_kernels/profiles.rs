//! What random kernels of a target are made of: the types that its instructions compute with, and the operators of the
//! paper's table 6 in the form in which programs for such a target have them.

use act_hlo::random::Values;
use act_hlo::{Binary, ElemType, Unary};

/// One operator to add to a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// A product; `converts`: its operands are converted to the result's type first.
    Dot {
        from: ElemType,
        to: ElemType,
        converts: bool,
    },
    Binary(Binary, ElemType),
    /// `x:to - convert(y:from)`.
    SubtractWidened {
        from: ElemType,
        to: ElemType,
    },
    /// `-convert(x:from)`.
    NegateWidened {
        from: ElemType,
        to: ElemType,
    },
    Unary(Unary, ElemType),
    /// With one whole number out of a range, broadcast.
    WithConstant(Binary, ElemType, (i64, i64)),
    Clamp(ElemType, i64, i64),
    /// `convert(clamp(low, x, high))`.
    Narrow {
        from: ElemType,
        to: ElemType,
        low: i64,
        high: i64,
    },
    Reverse(ElemType),
    Broadcast(ElemType),
    /// The sum over one dimension, of `x` converted to `to`.
    Reduce {
        from: ElemType,
        to: ElemType,
    },
}

/// The kernels of one target.
pub(crate) struct Profile {
    pub(crate) target: &'static str,
    /// Lengths that dimensions may have; a kernel draws two.
    pub(crate) lens: &'static [u64],
    /// What may be drawn, with weights.
    pub(crate) draws: &'static [(Draw, u64)],
    /// Types in which results are added up.
    pub(crate) adds: &'static [ElemType],
    /// What parameters hold when kernels are run.
    pub(crate) values: Values,
}

use ElemType::{BF16, F32, S8, S16, S32};

const fn float_draws(elem: ElemType) -> [(Draw, u64); 9] {
    [
        (Draw::Binary(Binary::Add, elem), 4),
        (Draw::Binary(Binary::Subtract, elem), 2),
        (Draw::Binary(Binary::Minimum, elem), 1),
        (Draw::Binary(Binary::Maximum, elem), 1),
        (Draw::WithConstant(Binary::Minimum, elem, (-2, 4)), 1),
        (Draw::WithConstant(Binary::Maximum, elem, (-4, 2)), 1),
        (Draw::Unary(Unary::Negate, elem), 2),
        (Draw::Unary(Unary::Abs, elem), 1),
        (Draw::Clamp(elem, -3, 5), 1),
    ]
}

const TRAINIUM: &[(Draw, u64)] = &{
    let [a, b, c, d, e, f, g, h, i] = float_draws(F32);
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        (Draw::Dot { from: F32, to: F32, converts: false }, 4),
        (Draw::Dot { from: BF16, to: F32, converts: false }, 1),
        (Draw::Binary(Binary::Add, BF16), 1),
        (Draw::Broadcast(F32), 2),
        (Draw::Reduce { from: F32, to: F32 }, 1),
    ]
};

const VECTOR: &[(Draw, u64)] = &{
    let [a, b, c, d, e, f, g, h, i] = float_draws(F32);
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        (Draw::Dot { from: F32, to: F32, converts: false }, 3),
        (Draw::Broadcast(F32), 2),
    ]
};

/// Sums are s32, operands of products s8; values return to s8 through saturation, as quantized programs do.
const GEMMINI: &[(Draw, u64)] = &[
    (Draw::Dot { from: S8, to: S32, converts: false }, 3),
    (Draw::Dot { from: S8, to: S32, converts: true }, 3),
    (Draw::Binary(Binary::Add, S32), 4),
    (Draw::SubtractWidened { from: S8, to: S32 }, 1),
    (Draw::NegateWidened { from: S8, to: S32 }, 1),
    (Draw::WithConstant(Binary::Maximum, S8, (0, 0)), 1),
    (Draw::WithConstant(Binary::Maximum, S8, (-8, 8)), 1),
    (Draw::WithConstant(Binary::Minimum, S8, (-8, 8)), 1),
    (Draw::Narrow { from: S32, to: S8, low: -128, high: 127 }, 4),
    (Draw::Narrow { from: S32, to: S8, low: 0, high: 127 }, 1),
    (Draw::Reverse(S8), 1),
    (Draw::Broadcast(S8), 1),
    (Draw::Reduce { from: S8, to: S32 }, 1),
];

pub(crate) const PROFILES: &[Profile] = &[
    Profile {
        target: "gemmini",
        lens: &[16, 16, 16, 8, 4, 5, 13, 1],
        draws: GEMMINI,
        adds: &[S32],
        values: Values::Full,
    },
    Profile {
        target: "trainium",
        lens: &[16, 32, 64, 128, 8, 5],
        draws: TRAINIUM,
        adds: &[F32, BF16],
        values: Values::Unit,
    },
    Profile {
        target: "h_qkv",
        lens: &[64],
        draws: &[(Draw::Dot { from: BF16, to: BF16, converts: false }, 1)],
        adds: &[],
        values: Values::Unit,
    },
    Profile {
        target: "gemmini_plus",
        lens: &[16, 16, 16, 8, 4, 5, 13, 1],
        draws: GEMMINI,
        adds: &[S32],
        values: Values::Full,
    },
    Profile {
        target: "feather",
        lens: &[16, 32, 48],
        draws: &[
            (Draw::Dot { from: S8, to: S32, converts: false }, 3),
            (Draw::Dot { from: S8, to: S32, converts: true }, 1),
            (Draw::Binary(Binary::Add, S32), 2),
            (Draw::Narrow { from: S32, to: S8, low: -128, high: 127 }, 2),
            (Draw::WithConstant(Binary::Maximum, S8, (0, 0)), 1),
        ],
        adds: &[S32],
        values: Values::Full,
    },
    Profile {
        target: "eva",
        lens: &[16, 16, 8, 4],
        draws: &[
            (Draw::Dot { from: S16, to: S16, converts: false }, 2),
            (Draw::Binary(Binary::Add, S16), 3),
            (Draw::Binary(Binary::Subtract, S16), 2),
            (Draw::Binary(Binary::Multiply, S16), 1),
            (Draw::Binary(Binary::Maximum, S16), 1),
            (Draw::Binary(Binary::Minimum, S16), 1),
            (Draw::WithConstant(Binary::Minimum, S16, (-300, 300)), 1),
            (Draw::Unary(Unary::Negate, S16), 1),
            (Draw::Clamp(S16, -100, 200), 1),
        ],
        adds: &[S16],
        values: Values::Full,
    },
    Profile {
        target: "tpu_v1",
        lens: &[256, 256, 8],
        draws: &[
            (Draw::Dot { from: S8, to: S32, converts: false }, 3),
            (Draw::Binary(Binary::Add, S32), 1),
            (Draw::Narrow { from: S32, to: S8, low: -128, high: 127 }, 2),
            (Draw::Narrow { from: S32, to: S8, low: 0, high: 127 }, 1),
        ],
        adds: &[],
        values: Values::Full,
    },
    Profile { target: "amx", lens: &[16, 4], draws: VECTOR, adds: &[F32], values: Values::Unit },
    Profile { target: "x86", lens: &[8, 4], draws: VECTOR, adds: &[F32], values: Values::Unit },
];

/// The profile of a target.
pub(crate) fn profile(target: &str) -> &'static Profile {
    PROFILES.iter().find(|p| p.target == target).unwrap_or_else(|| panic!("no profile for {target}"))
}
