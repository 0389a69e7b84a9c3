//! Relations as formulas in a state: guards from positions, facts to assume and goals to prove.

use super::condition::{Fact, Unsupported};
use super::expression::Bindings;
use super::generate::{Context, Generator, Status};
use super::inverse::Ranged;
use super::state::State;
use super::term::{Sort, Term};
use crate::hex::printer::print_expr;
use crate::hex::syntax::*;
use std::collections::HashMap;
use std::rc::Rc;

impl Generator<'_> {
    /// Whether the iterations that a position names are over.
    fn before(
        &mut self,
        position: &[(Expr, Sym)],
        state: &State,
        bindings: &Bindings,
        status: &HashMap<Sym, Status>,
    ) -> Result<Term, Unsupported> {
        let Some(((value, label), rest)) = position.split_first() else { return Ok(self.terms.bool(false)) };
        match status.get(label) {
            None => Ok(self.terms.bool(false)),
            Some(Status::Done) => Ok(self.terms.bool(true)),
            Some(Status::At(counter)) => {
                let value = self.eval(value, state, bindings)?;
                let inner = self.before(rest, state, bindings, status)?;
                let (less, equal) = (self.terms.less(value, *counter), self.terms.equal(value, *counter));
                let inner = self.terms.and(vec![equal, inner]);
                Ok(self.terms.or(vec![less, inner]))
            }
        }
    }

    /// When a relation holds.
    fn guard_of(
        &mut self,
        relation: &Relation,
        state: &State,
        bindings: &Bindings,
        status: &HashMap<Sym, Status>,
    ) -> Result<Term, Unsupported> {
        let made = if relation.made.is_empty() {
            self.terms.bool(true)
        } else {
            self.before(&relation.made, state, bindings, status)?
        };
        let used = if relation.used.is_empty() {
            self.terms.bool(false)
        } else {
            self.before(&relation.used, state, bindings, status)?
        };
        let kept = self.terms.not(used);
        Ok(self.terms.and(vec![made, kept]))
    }

    /// Fresh unknowns for the variables of a relation.
    fn variables(
        &mut self,
        vars: &[(Sym, Expr, Expr)],
        state: &State,
    ) -> Result<(Vec<Ranged>, Bindings), Unsupported> {
        let mut ranged = Vec::new();
        let mut bindings = Bindings::new();
        for (name, lo, hi) in vars {
            let (lo, hi) = (self.eval(lo, state, &bindings)?, self.eval(hi, state, &bindings)?);
            let (low, high) = (self.terms.bounds(lo).0, self.terms.bounds(hi).1.map(|hi| hi - 1));
            let text = self.case.names.text(*name).to_owned();
            let var = self.terms.var(&text, Sort::Int, low, high);
            bindings.insert(*name, var);
            ranged.push(Ranged { var, lo, hi });
        }
        Ok((ranged, bindings))
    }

    pub(super) fn in_range(&mut self, ranged: &[Ranged]) -> Term {
        let mut parts = Vec::new();
        for one in ranged {
            parts.push(self.terms.at_most(one.lo, one.var));
            parts.push(self.terms.less(one.var, one.hi));
        }
        self.terms.and(parts)
    }

    /// A relation with fresh variables in a state; None where its guard never holds. Its own accesses oblige nothing: it
    /// speaks only of places in its range.
    pub(super) fn fact(
        &mut self,
        relation: &Relation,
        state: &State,
        status: &HashMap<Sym, Status>,
    ) -> Result<Option<Fact>, Unsupported> {
        let mark = self.mark();
        let (vars, bindings) = self.variables(&relation.vars, state)?;
        let guard = self.guard_of(relation, state, &bindings, status)?;
        let range = self.in_range(&vars);
        let guard = self.terms.and(vec![range, guard]);
        let fact = if self.terms.is_bool(guard) == Some(false) {
            None
        } else {
            let left = self.eval(&relation.left, state, &bindings)?;
            let right = self.eval(&relation.right, state, &bindings)?;
            Some(Fact { name: self.relation_name(&relation.left, &relation.right), vars, guard, left, right })
        };
        self.forget(mark);
        Ok(fact)
    }

    pub(super) fn relation_name(&self, left: &Expr, right: &Expr) -> String {
        let names = &self.case.names;
        format!("{} == {}", print_expr(names, left), print_expr(names, right))
    }

    /// The formula of a fact at its own variables.
    pub(super) fn formula(&mut self, fact: &Fact) -> Term {
        let equal = self.terms.equal(fact.left, fact.right);
        self.terms.implies(fact.guard, equal)
    }

    /// What is asked of the outputs at the end.
    pub(super) fn posts(&mut self, state: &State, context: &Context) -> Result<(), Unsupported> {
        let case = self.case;
        for post in &case.posts {
            let mark = self.mark();
            let (vars, bindings) = self.variables(&post.vars, state)?;
            let range = self.in_range(&vars);
            let left = self.eval(&post.left, state, &bindings)?;
            let right = self.eval(&post.right, state, &bindings)?;
            self.forget(mark);
            let equal = self.terms.equal(left, right);
            let goal = self.terms.implies(range, equal);
            let name = format!("the end: ensure {}", self.relation_name(&post.left, &post.right));
            self.require(name, vec![post.span], context, goal);
        }
        Ok(())
    }

    /// Adds a fact to what is known.
    pub(super) fn assume(&mut self, fact: Fact, context: &mut Context) {
        if fact.vars.is_empty() {
            let formula = self.formula(&fact);
            context.assumptions.push(formula);
        } else {
            context.facts.push(Rc::new(fact));
        }
    }
}
