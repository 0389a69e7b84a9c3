//! The numerics policy (`ACT_NUMERICS`): which rewrites may change floating-point results. Part of every kernel key,
//! dump and verdict.

use std::fmt;
use std::str::FromStr;

/// What may happen to floating-point results. Integers and data movement are bit-exact under every policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FloatPolicy {
    /// Exact and checked conditional rules only.
    Exact,
    /// Also the named list of what XLA's CPU backend itself does, usable both ways: re-association of sums, x/y as
    /// x·(1/y) under a broadcast, narrow-type operators computed in f32 and rounded once, and the removal of roundings
    /// between them (excess precision).
    #[default]
    Xla,
    /// Also float algebra, e.g. the shift inside softmax.
    Fast,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Numerics {
    pub float: FloatPolicy,
}

/// The text names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown numerics policy `{0}`: use exact, xla or fast")]
pub struct UnknownPolicy(pub String);

impl fmt::Display for FloatPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FloatPolicy::Exact => "exact",
            FloatPolicy::Xla => "xla",
            FloatPolicy::Fast => "fast",
        })
    }
}

impl FromStr for FloatPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "exact" => Ok(FloatPolicy::Exact),
            "xla" => Ok(FloatPolicy::Xla),
            "fast" => Ok(FloatPolicy::Fast),
            other => Err(UnknownPolicy(other.to_owned())),
        }
    }
}
