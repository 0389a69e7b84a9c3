//! Products of floats, and sums of many products at once: what dots are made of.

use super::{Algebra, Level, kind, tag};
use crate::region::laws::Law;
use crate::region::term::Term;
use act_hlo::ElemType;

impl Algebra {
    /// What stands for a float in a product: products of two are told apart by their pairs of factors, whatever the order.
    pub(super) fn factor(&self, elem: ElemType, x: Term) -> Term {
        self.digests.mix(tag(kind::FACTOR, 0, elem, elem), &[x])
    }

    /// A sum of two floats where order counts. The sum of the digests tells pairs of summands apart: no summand is a sum.
    pub(super) fn ordered_sum(&mut self, elem: ElemType, a: Term, b: Term) -> Term {
        self.laws.insert(Law::Commutes);
        self.digests.mix(tag(kind::SUM, 0, elem, elem), &[self.digests.plus(a, b)])
    }

    /// Both operands of a dot as factors, unless some of them are known values that products may depend on.
    pub(in super::super) fn factors(
        &self,
        elem: ElemType,
        lhs: &[Term],
        rhs: &[Term],
    ) -> Option<[Vec<Term>; 2]> {
        let general = |x: &Term| x.is_plain() || (elem.is_int() && x.as_constant() == Some(0));
        if elem == ElemType::Pred || !lhs.iter().chain(rhs).all(general) {
            return None;
        }
        let factor = |&x: &Term| match x.as_constant() {
            Some(_) => Term::ZERO,
            None if elem.is_int() || self.level == Level::Real => x,
            None => self.factor(elem, x),
        };
        Some([lhs, rhs].map(|side| side.iter().map(factor).collect()))
    }

    /// One row of a dot: the sums of products of `left` with each of the `count` rows of `right`, from 0 on and with
    /// ascending indices.
    pub(in super::super) fn row_of_products(
        &mut self,
        elem: ElemType,
        left: &[Term],
        right: &[Term],
        count: usize,
        sums: &mut Vec<Term>,
    ) {
        let zero = Term::constant(0);
        let length = left.len();
        if length == 0 {
            sums.extend(std::iter::repeat_n(zero, count));
            return;
        }
        if elem.is_int() || self.level >= Level::Reassociated {
            let laws: &[Law] = match self.level {
                _ if elem.is_int() => &[Law::Ring],
                Level::Real => &[Law::RealAlgebra],
                _ => &[Law::Commutes, Law::FloatIdentity, Law::Reassociation],
            };
            laws.iter().for_each(|&law| self.laws.insert(law));
            for row in right.chunks_exact(length) {
                let sum = self.digests.inner_product(left, row);
                sums.push(if elem.is_int() && sum == Term::ZERO { zero } else { sum });
            }
        } else {
            // Sums of all columns side by side: each of them waits for its own last step only.
            let from = sums.len();
            sums.extend(std::iter::repeat_n(self.summand(elem, zero), count));
            for (k, &x) in left.iter().enumerate() {
                for (column, sum) in sums[from..].iter_mut().enumerate() {
                    let product = self.digests.times(x, right[column * length + k]);
                    *sum = self.ordered_sum(elem, *sum, product);
                }
            }
        }
        self.floats |= elem.is_float();
    }
}
