//! Symbolic positions: `c0 + Σ coefficient · variable` over loop variables of known extent, with exact division.
//! Reshapes and byte reinterpretations become affine addresses this way, which LLVM vectorises; a division that
//! is not exact becomes an instruction.

use super::code::{Code, Value};

/// A variable of an index, `0 <= v < extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VarId(u32);

#[derive(Clone, Copy, Debug)]
struct Var {
    extent: i64,
    /// Absent for a variable that exists in the algebra only and must vanish before code is made.
    value: Option<Value>,
}

/// The variables of one function.
#[derive(Debug, Default)]
pub(crate) struct Vars(Vec<Var>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Index {
    pub(crate) c0: i64,
    /// Sorted by variable, no zero coefficient.
    terms: Vec<(VarId, i64)>,
}

impl Vars {
    pub(crate) fn bound(&mut self, value: Value, extent: i64) -> Index {
        self.push(Var { extent, value: Some(value) })
    }

    pub(crate) fn free(&mut self, extent: i64) -> (VarId, Index) {
        let index = self.push(Var { extent, value: None });
        (VarId(self.0.len() as u32 - 1), index)
    }

    fn push(&mut self, var: Var) -> Index {
        let id = VarId(self.0.len() as u32);
        self.0.push(var);
        if var.extent == 1 { Index::constant(0) } else { Index { c0: 0, terms: vec![(id, 1)] } }
    }

    fn extent(&self, id: VarId) -> i64 {
        self.0[id.0 as usize].extent
    }

    /// Smallest and largest value.
    pub(crate) fn range(&self, index: &Index) -> (i64, i64) {
        index.terms.iter().fold((index.c0, index.c0), |(lo, hi), &(var, k)| {
            let far = k.saturating_mul(self.extent(var).max(1) - 1);
            (lo.saturating_add(far.min(0)), hi.saturating_add(far.max(0)))
        })
    }

    /// Code for the value; `None` when a free variable occurs.
    pub(crate) fn emit(&self, code: &mut Code, index: &Index) -> Option<Value> {
        let mut sum: Option<Value> = None;
        for &(var, k) in &index.terms {
            let value = self.0[var.0 as usize].value?;
            let term = if k == 1 { value } else { code.mul_i64(value, k) };
            sum = Some(match sum {
                None => term,
                Some(sum) => code.op(format_args!("arith.addi {sum}, {term} overflow<nsw> : i64")),
            });
        }
        Some(match sum {
            None => code.const_i64(index.c0),
            Some(sum) if index.c0 == 0 => sum,
            Some(sum) => code.add_i64(sum, index.c0),
        })
    }

    /// Quotient and remainder of the division by `divisor > 0` when both are affine.
    pub(crate) fn split_exact(&self, index: &Index, divisor: i64) -> Option<(Index, Index)> {
        let mut quotient = Index::constant(index.c0.div_euclid(divisor));
        let mut remainder = Index::constant(index.c0.rem_euclid(divisor));
        for &(var, k) in &index.terms {
            quotient.add_term(var, k.div_euclid(divisor));
            remainder.add_term(var, k.rem_euclid(divisor));
        }
        let (lo, hi) = self.range(&remainder);
        (lo >= 0 && hi < divisor).then_some((quotient, remainder))
    }

    /// Quotient and remainder of a non-negative index, as code where they are not affine; `None` when a free
    /// variable stands in the way.
    pub(crate) fn split(&mut self, code: &mut Code, index: &Index, divisor: i64) -> Option<(Index, Index)> {
        if let Some(exact) = self.split_exact(index, divisor) {
            return Some(exact);
        }
        let (lo, hi) = self.range(index);
        debug_assert!(lo >= 0, "positions are not negative");
        let value = self.emit(code, index)?;
        let divisor_value = code.const_i64(divisor);
        let quotient = code.op(format_args!("arith.divui {value}, {divisor_value} : i64"));
        let remainder = code.op(format_args!("arith.remui {value}, {divisor_value} : i64"));
        Some((self.bound(quotient, hi / divisor + 1), self.bound(remainder, divisor)))
    }
}

impl Index {
    pub(crate) fn constant(c0: i64) -> Index {
        Index { c0, terms: Vec::new() }
    }

    fn add_term(&mut self, var: VarId, k: i64) {
        match self.terms.binary_search_by_key(&var, |t| t.0) {
            Ok(at) => {
                self.terms[at].1 += k;
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) if k != 0 => self.terms.insert(at, (var, k)),
            Err(_) => {}
        }
    }

    /// `self + k · other`.
    pub(crate) fn plus(&self, k: i64, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.c0 += k * other.c0;
        for &(var, factor) in &other.terms {
            sum.add_term(var, k * factor);
        }
        sum
    }

    /// Coefficient of a variable.
    pub(crate) fn coefficient(&self, var: VarId) -> i64 {
        self.terms.binary_search_by_key(&var, |t| t.0).map_or(0, |at| self.terms[at].1)
    }

    /// The same at `var = 0`.
    pub(crate) fn without(&self, var: VarId) -> Index {
        let mut rest = self.clone();
        rest.terms.retain(|t| t.0 != var);
        rest
    }
}

/// Row-major position of `index` in an array of `dims`.
pub(crate) fn linear(index: &[Index], dims: &[u64]) -> Index {
    let mut position = Index::constant(0);
    for (i, &d) in index.iter().zip(dims) {
        position = Index::constant(0).plus(d as i64, &position).plus(1, i);
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_is_exact_where_the_ranges_allow() {
        let mut vars = Vars::default();
        let (i, row) = vars.free(4);
        let (j, column) = vars.free(64);
        let (b, byte) = vars.free(2);
        // ((i·64 + j)·2 + b) over [4,64,2], split again: the parts come back.
        let position = linear(&[row.clone(), column.clone(), byte.clone()], &[4, 64, 2]);
        assert_eq!((position.coefficient(i), position.coefficient(j), position.coefficient(b)), (128, 2, 1));
        let (rest, last) = vars.split_exact(&position, 2).unwrap();
        assert_eq!(last, byte);
        assert_eq!(vars.split_exact(&rest, 64).unwrap(), (row, column));
        // 48 does not divide the row pitch: no affine form.
        assert!(vars.split_exact(&position, 48).is_none());
    }

    #[test]
    fn ranges_follow_negative_coefficients() {
        let mut vars = Vars::default();
        let (_, i) = vars.free(10);
        let reversed = Index::constant(9).plus(-1, &i);
        assert_eq!(vars.range(&reversed), (0, 9));
        assert!(vars.split_exact(&reversed, 10).is_none() || vars.range(&reversed).0 >= 0);
    }
}
