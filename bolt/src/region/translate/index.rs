//! Integers of a Hex program as they are made while tensors are moved around: sums of counters with factors, so that what
//! a reshape splits and the next one merges does not pile up. Knows no tensors.

use std::fmt;

/// `c0 + Σ factor · atom`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    c0: i64,
    terms: Vec<(i64, Atom)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Atom {
    /// A counter of 0..bound, or any expression that is never negative, of no known bound.
    Name {
        text: String,
        bound: Option<i64>,
    },
    Quotient(Box<Index>, i64),
    Remainder(Box<Index>, i64),
}

impl Atom {
    /// The largest value.
    fn most(&self) -> Option<i64> {
        match self {
            Atom::Name { bound, .. } => bound.map(|bound| bound - 1),
            Atom::Quotient(of, by) => of.most().map(|most| most / by),
            Atom::Remainder(of, by) => Some(of.most().unwrap_or(i64::MAX).min(by - 1)),
        }
    }
}

impl Index {
    pub(super) fn constant(c0: i64) -> Index {
        Index { c0, terms: Vec::new() }
    }

    /// A counter that stays below `bound`.
    pub(super) fn counter(text: &str, bound: u64) -> Index {
        let bound = i64::try_from(bound).ok();
        if bound == Some(1) {
            return Index::constant(0);
        }
        Index { c0: 0, terms: vec![(1, Atom::Name { text: text.to_owned(), bound })] }
    }

    /// Any expression of Hex that is never negative.
    pub(super) fn text(text: String) -> Index {
        Index { c0: 0, terms: vec![(1, Atom::Name { text, bound: None })] }
    }

    pub(super) fn value(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.c0)
    }

    pub(super) fn plus(&self, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.c0 += other.c0;
        for (factor, atom) in &other.terms {
            match sum.terms.iter_mut().find(|(_, known)| known == atom) {
                Some((known, _)) => *known += factor,
                None => sum.terms.push((*factor, atom.clone())),
            }
        }
        sum.terms.retain(|(factor, _)| *factor != 0);
        sum
    }

    pub(super) fn times(&self, by: i64) -> Index {
        if by == 0 {
            return Index::constant(0);
        }
        let terms = self.terms.iter().map(|(factor, atom)| (factor * by, atom.clone())).collect();
        Index { c0: self.c0 * by, terms }
    }

    /// The largest value, where every part has one.
    fn most(&self) -> Option<i64> {
        self.terms.iter().try_fold(self.c0, |sum, (factor, atom)| {
            Some(sum + if *factor > 0 { factor * atom.most()? } else { 0 })
        })
    }

    /// The smallest value, where every part has one.
    fn least(&self) -> Option<i64> {
        self.terms.iter().try_fold(self.c0, |sum, (factor, atom)| {
            Some(sum + if *factor < 0 { factor * atom.most()? } else { 0 })
        })
    }

    /// Multiples of `by` and the rest.
    fn split(&self, by: i64) -> (Index, Index) {
        let (whole, rest): (Vec<_>, Vec<_>) = self.terms.iter().cloned().partition(|(f, _)| f % by == 0);
        let rest = Index { c0: self.c0.rem_euclid(by), terms: rest };
        let whole = whole.into_iter().map(|(factor, atom)| (factor / by, atom)).collect();
        (Index { c0: self.c0.div_euclid(by), terms: whole }, rest)
    }

    /// Whether all values lie in 0..by.
    pub(super) fn within(&self, by: i64) -> bool {
        self.least().is_some_and(|least| least >= 0) && self.most().is_some_and(|most| most < by)
    }

    /// Rounded down; `by` is positive.
    pub(super) fn over(&self, by: i64) -> Index {
        let (whole, rest) = self.split(by);
        if rest.within(by) {
            return whole;
        }
        whole.plus(&Index { c0: 0, terms: vec![(1, Atom::Quotient(Box::new(rest), by))] })
    }

    /// What `over` leaves.
    pub(super) fn modulo(&self, by: i64) -> Index {
        let (_, rest) = self.split(by);
        if rest.within(by) {
            return rest;
        }
        Index { c0: 0, terms: vec![(1, Atom::Remainder(Box::new(rest), by))] }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Name { text, .. } => f.write_str(text),
            Atom::Quotient(of, by) => write!(f, "({of}) / {by}"),
            Atom::Remainder(of, by) => write!(f, "({of}) % {by}"),
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (factor, atom) in &self.terms {
            match (first, *factor) {
                (true, 1) => write!(f, "{atom}")?,
                (true, factor) => write!(f, "{factor} * ({atom})")?,
                (false, 1) => write!(f, " + {atom}")?,
                (false, factor) if factor < 0 => write!(f, " - {} * ({atom})", -factor)?,
                (false, factor) => write!(f, " + {factor} * ({atom})")?,
            }
            first = false;
        }
        match self.c0 {
            c0 if first => write!(f, "{c0}"),
            0 => Ok(()),
            c0 if c0 < 0 => write!(f, " - {}", -c0),
            c0 => write!(f, " + {c0}"),
        }
    }
}

/// The row-major place of an element.
pub(super) fn flat(dims: &[u64], indices: &[Index]) -> Index {
    let place = |sum: Index, (&dim, index): (&u64, &Index)| sum.times(dim as i64).plus(index);
    dims.iter().zip(indices).fold(Index::constant(0), place)
}

/// The indices of the element at a row-major place.
pub(super) fn unflat(dims: &[u64], place: &Index) -> Vec<Index> {
    let mut rest = place.clone();
    let mut indices: Vec<Index> = dims
        .iter()
        .rev()
        .map(|&dim| {
            let dim = dim.max(1) as i64;
            let index = rest.modulo(dim);
            rest = rest.over(dim);
            index
        })
        .collect();
    indices.reverse();
    indices
}
