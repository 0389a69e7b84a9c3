//! Integer expressions and conditions over the attributes of an instruction, as they stand in a description.

use std::fmt;

/// An integer expression. Arithmetic is exact in i64; overflow and division by zero are errors, never wrapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    Int(i64),
    /// Computational attribute by position in [`crate::Instr::alpha`].
    Alpha(u16),
    /// Addressing attribute by position in [`crate::Instr::beta`].
    Beta(u16),
    /// Control register by position in [`crate::Isa::registers`].
    Register(u16),
    /// Variable of an enclosing `repeat`, numbered by nesting from outside; only in [`crate::Structured`] semantics.
    Variable(u16),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    /// Floor division.
    Div(Box<Expr>, Box<Expr>),
    /// Remainder of the floor division: the sign of the divisor.
    Mod(Box<Expr>, Box<Expr>),
    /// Division rounded up.
    CeilDiv(Box<Expr>, Box<Expr>),
    Shl(Box<Expr>, Box<Expr>),
    Shr(Box<Expr>, Box<Expr>),
    Min(Box<Expr>, Box<Expr>),
    Max(Box<Expr>, Box<Expr>),
}

/// Relations between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl Relation {
    /// What holds between two terms exactly when this does not.
    #[must_use]
    pub fn opposite(self) -> Relation {
        match self {
            Relation::Lt => Relation::Ge,
            Relation::Le => Relation::Gt,
            Relation::Gt => Relation::Le,
            Relation::Ge => Relation::Lt,
            Relation::Eq => Relation::Ne,
            Relation::Ne => Relation::Eq,
        }
    }
}

/// A validity condition `e` of an instruction (ACT paper, appendix A).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cond {
    Cmp(Relation, Expr, Expr),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
    In(Expr, Vec<i64>),
}

/// Values of the attributes. A missing (not yet solved) attribute is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Env<'a> {
    pub alpha: &'a [Option<i64>],
    pub beta: &'a [Option<i64>],
    pub registers: &'a [i64],
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalExprError {
    #[error("the attribute has no value yet")]
    Unsolved,
    #[error("division by zero")]
    DivisionByZero,
    #[error("the value does not fit 64 bits")]
    Overflow,
}

impl Default for Expr {
    fn default() -> Expr {
        Expr::Int(0)
    }
}

impl Expr {
    /// The value under `env`.
    ///
    /// # Errors
    /// An attribute without a value, division by zero, overflow.
    pub fn eval(&self, env: Env<'_>) -> Result<i64, EvalExprError> {
        use EvalExprError::{Overflow, Unsolved};
        let pair = |a: &Expr, b: &Expr| Ok::<_, EvalExprError>((a.eval(env)?, b.eval(env)?));
        match self {
            Expr::Int(v) => Ok(*v),
            Expr::Alpha(k) => env.alpha.get(usize::from(*k)).copied().flatten().ok_or(Unsolved),
            Expr::Beta(k) => env.beta.get(usize::from(*k)).copied().flatten().ok_or(Unsolved),
            Expr::Variable(_) => Err(Unsolved),
            Expr::Register(k) => env.registers.get(usize::from(*k)).copied().ok_or(Unsolved),
            Expr::Add(a, b) => pair(a, b).and_then(|(a, b)| a.checked_add(b).ok_or(Overflow)),
            Expr::Sub(a, b) => pair(a, b).and_then(|(a, b)| a.checked_sub(b).ok_or(Overflow)),
            Expr::Mul(a, b) => pair(a, b).and_then(|(a, b)| a.checked_mul(b).ok_or(Overflow)),
            Expr::Div(a, b) => pair(a, b).and_then(|(a, b)| floor_div(a, b)),
            Expr::Mod(a, b) => pair(a, b).and_then(|(a, b)| {
                let q = floor_div(a, b)?;
                q.checked_mul(b).and_then(|qb| a.checked_sub(qb)).ok_or(Overflow)
            }),
            Expr::CeilDiv(a, b) => pair(a, b).and_then(|(a, b)| {
                let q = floor_div(a, b)?;
                if q.checked_mul(b) == Some(a) { Ok(q) } else { q.checked_add(1).ok_or(Overflow) }
            }),
            Expr::Shl(a, b) => pair(a, b).and_then(|(a, b)| {
                let factor = u32::try_from(b).ok().and_then(|b| 1i64.checked_shl(b)).filter(|&f| f > 0);
                factor.and_then(|f| a.checked_mul(f)).ok_or(Overflow)
            }),
            Expr::Shr(a, b) => pair(a, b).and_then(|(a, b)| match u32::try_from(b) {
                Ok(b) => Ok(a >> b.min(63)),
                Err(_) => Err(Overflow),
            }),
            Expr::Min(a, b) => pair(a, b).map(|(a, b)| a.min(b)),
            Expr::Max(a, b) => pair(a, b).map(|(a, b)| a.max(b)),
        }
    }

    /// Calls `visit` for every number, attribute and register, left to right.
    pub fn for_each_leaf(&self, visit: &mut impl FnMut(&Expr)) {
        match self {
            Expr::Int(_) | Expr::Alpha(_) | Expr::Beta(_) | Expr::Register(_) | Expr::Variable(_) => {
                visit(self);
            }
            Expr::Add(a, b)
            | Expr::Sub(a, b)
            | Expr::Mul(a, b)
            | Expr::Div(a, b)
            | Expr::Mod(a, b)
            | Expr::CeilDiv(a, b)
            | Expr::Shl(a, b)
            | Expr::Shr(a, b)
            | Expr::Min(a, b)
            | Expr::Max(a, b) => {
                a.for_each_leaf(visit);
                b.for_each_leaf(visit);
            }
        }
    }

    /// The expression with every number, attribute and register replaced.
    pub fn map_leaves(&self, replace: &impl Fn(&Expr) -> Expr) -> Expr {
        let both = |make: fn(Box<Expr>, Box<Expr>) -> Expr, a: &Expr, b: &Expr| {
            make(a.map_leaves(replace).into(), b.map_leaves(replace).into())
        };
        match self {
            Expr::Int(_) | Expr::Alpha(_) | Expr::Beta(_) | Expr::Register(_) | Expr::Variable(_) => {
                replace(self)
            }
            Expr::Add(a, b) => both(Expr::Add, a, b),
            Expr::Sub(a, b) => both(Expr::Sub, a, b),
            Expr::Mul(a, b) => both(Expr::Mul, a, b),
            Expr::Div(a, b) => both(Expr::Div, a, b),
            Expr::Mod(a, b) => both(Expr::Mod, a, b),
            Expr::CeilDiv(a, b) => both(Expr::CeilDiv, a, b),
            Expr::Shl(a, b) => both(Expr::Shl, a, b),
            Expr::Shr(a, b) => both(Expr::Shr, a, b),
            Expr::Min(a, b) => both(Expr::Min, a, b),
            Expr::Max(a, b) => both(Expr::Max, a, b),
        }
    }

    /// Whether an addressing attribute occurs.
    pub fn mentions_beta(&self) -> bool {
        let mut found = false;
        self.for_each_leaf(&mut |leaf| found |= matches!(leaf, Expr::Beta(_)));
        found
    }
}

fn floor_div(a: i64, b: i64) -> Result<i64, EvalExprError> {
    if b == 0 {
        return Err(EvalExprError::DivisionByZero);
    }
    let q = a.checked_div(b).ok_or(EvalExprError::Overflow)?;
    Ok(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}

impl Cond {
    /// Whether the condition holds under `env`.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval(&self, env: Env<'_>) -> Result<bool, EvalExprError> {
        Ok(match self {
            Cond::Cmp(relation, a, b) => {
                let (a, b) = (a.eval(env)?, b.eval(env)?);
                match relation {
                    Relation::Lt => a < b,
                    Relation::Le => a <= b,
                    Relation::Gt => a > b,
                    Relation::Ge => a >= b,
                    Relation::Eq => a == b,
                    Relation::Ne => a != b,
                }
            }
            Cond::And(a, b) => a.eval(env)? && b.eval(env)?,
            Cond::Or(a, b) => a.eval(env)? || b.eval(env)?,
            Cond::Not(a) => !a.eval(env)?,
            Cond::In(a, set) => set.contains(&a.eval(env)?),
        })
    }

    /// The condition with every attribute and register replaced; members of sets stay.
    pub fn map_leaves(&self, replace: &impl Fn(&Expr) -> Expr) -> Cond {
        match self {
            Cond::Cmp(relation, a, b) => Cond::Cmp(*relation, a.map_leaves(replace), b.map_leaves(replace)),
            Cond::And(a, b) => Cond::And(a.map_leaves(replace).into(), b.map_leaves(replace).into()),
            Cond::Or(a, b) => Cond::Or(a.map_leaves(replace).into(), b.map_leaves(replace).into()),
            Cond::Not(a) => Cond::Not(a.map_leaves(replace).into()),
            Cond::In(a, set) => Cond::In(a.map_leaves(replace), set.clone()),
        }
    }

    /// Calls `visit` for every number, attribute and register, left to right; the members of a set are numbers.
    pub fn for_each_leaf(&self, visit: &mut impl FnMut(&Expr)) {
        match self {
            Cond::Cmp(_, a, b) => {
                a.for_each_leaf(visit);
                b.for_each_leaf(visit);
            }
            Cond::And(a, b) | Cond::Or(a, b) => {
                a.for_each_leaf(visit);
                b.for_each_leaf(visit);
            }
            Cond::Not(a) => a.for_each_leaf(visit),
            Cond::In(a, set) => {
                a.for_each_leaf(visit);
                set.iter().for_each(|&v| visit(&Expr::Int(v)));
            }
        }
    }

    /// Whether an addressing attribute occurs.
    pub fn mentions_beta(&self) -> bool {
        let mut found = false;
        self.for_each_leaf(&mut |leaf| found |= matches!(leaf, Expr::Beta(_)));
        found
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Gt => ">",
            Relation::Ge => ">=",
            Relation::Eq => "==",
            Relation::Ne => "!=",
        })
    }
}
