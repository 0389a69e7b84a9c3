//! The state of a product program in terms: registers and locals as values, buffers as versions with the writes since.

use super::inverse::{Ranged, solve};
use super::term::{Array, Sort, Term, Terms};
use crate::hex::syntax::Sym;
use std::collections::HashMap;

/// Writes to one buffer, newest last.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    pub(super) base: Array,
    pub(super) writes: Vec<Write>,
}

/// One write, for every value of the variables: none for a single place.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) vars: Vec<Ranged>,
    pub(super) condition: Term,
    pub(super) index: Vec<Term>,
    pub(super) value: Term,
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) scalars: HashMap<Sym, Term>,
    pub(super) arrays: HashMap<Sym, Contents>,
}

/// A parfor that cannot be seen as one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotInvertible;

impl State {
    /// The element (or register) at a place of a buffer.
    pub(super) fn read(&self, terms: &mut Terms, buffer: Sym, index: &[Term]) -> Result<Term, NotInvertible> {
        let contents = &self.arrays[&buffer];
        let mut layers: Vec<(Term, Term)> = Vec::new();
        let mut bottom = None;
        for write in contents.writes.iter().rev() {
            let (hit, value) = write.at(terms, index)?;
            match terms.is_bool(hit) {
                Some(false) => {}
                Some(true) => {
                    bottom = Some(value);
                    break;
                }
                None => layers.push((hit, value)),
            }
        }
        let mut term = bottom.unwrap_or_else(|| terms.read(contents.base, index.to_vec()));
        for (hit, value) in layers.into_iter().rev() {
            term = terms.ite(hit, value, term);
        }
        Ok(term)
    }
}

impl Write {
    /// Whether a place is written, and with what.
    fn at(&self, terms: &mut Terms, index: &[Term]) -> Result<(Term, Term), NotInvertible> {
        let values = if self.vars.is_empty() {
            HashMap::new()
        } else {
            solve(terms, &self.vars, &self.index, index).ok_or(NotInvertible)?
        };
        let mut hit = vec![terms.substitute(self.condition, &values)];
        for ranged in &self.vars {
            let value = values[&ranged.var];
            let (lo, hi) = (terms.substitute(ranged.lo, &values), terms.substitute(ranged.hi, &values));
            hit.push(terms.at_most(lo, value));
            hit.push(terms.less(value, hi));
        }
        for (&own, &wanted) in self.index.iter().zip(index) {
            let own = terms.substitute(own, &values);
            hit.push(terms.equal(own, wanted));
        }
        let hit = terms.and(hit);
        Ok((hit, terms.substitute(self.value, &values)))
    }

    /// Whether every place is written by one iteration at most.
    pub(super) fn is_injective(&self, terms: &mut Terms) -> bool {
        let wanted: Vec<Term> =
            self.index.iter().map(|_| terms.var("place", Sort::Int, None, None)).collect();
        self.vars.is_empty() || solve(terms, &self.vars, &self.index, &wanted).is_some()
    }
}
