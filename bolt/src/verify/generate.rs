//! Walks a product program and makes its verification conditions: statements change a state in terms, loops are cut at
//! their heads.

use super::condition::{Condition, Fact, Generated, Unsupported};
use super::expression::{Bindings, sort_of};
use super::state::{Contents, State, Write};
use super::term::{Term, Terms};
use crate::hex::expand::Expanded;
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::product::Node;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Where a walk is with respect to a labelled loop; a label without status has not been met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// In it, or at its head: all iterations before this counter are done.
    At(Term),
    Done,
}

/// What is known where a walk is.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    pub(super) assumptions: Vec<Term>,
    pub(super) facts: Vec<Rc<Fact>>,
    pub(super) status: HashMap<Sym, Status>,
}

pub(super) struct Generator<'a> {
    pub(super) case: &'a Expanded,
    pub(super) terms: Terms,
    pub(super) params: HashMap<Sym, Term>,
    pub(super) extents: HashMap<Sym, Vec<Term>>,
    /// Conditions of the branches and maps around the place.
    pub(super) guard: Vec<Term>,
    /// Side conditions of the segment, by what they say.
    pending: Vec<(&'static str, Term, Span)>,
    pub(super) conditions: Vec<Condition>,
    /// Labels that a relation or invariant speaks of: loops with these are cut.
    pub(super) positioned: HashSet<Sym>,
    /// Buffers that the tensor program writes.
    pub(super) of_ir: HashSet<Sym>,
    pub(super) cut: Vec<String>,
    pub(super) bulk: usize,
    pub(super) unrolled: usize,
}

/// Makes the conditions of a case whose product program is given.
///
/// # Errors
/// A statement or loop is beyond what conditions can be made for.
pub fn generate(case: &Expanded, product: &[Node], of_ir: &HashSet<Sym>) -> Result<Generated, Unsupported> {
    let mut positioned = HashSet::new();
    for relation in &case.relations {
        positioned.extend(relation.made.iter().chain(&relation.used).map(|(_, label)| *label));
        positioned.extend(&relation.at);
    }
    positioned.extend(case.invariants.iter().map(|invariant| invariant.at));
    let mut generator = Generator {
        case,
        terms: Terms::default(),
        params: HashMap::new(),
        extents: HashMap::new(),
        guard: Vec::new(),
        pending: Vec::new(),
        conditions: Vec::new(),
        positioned,
        of_ir: of_ir.clone(),
        cut: Vec::new(),
        bulk: 0,
        unrolled: 0,
    };
    let (mut state, mut context) = generator.start()?;
    generator.nodes(product, &mut state, &mut context)?;
    generator.posts(&state, &context)?;
    generator.flush(&context, "the end");
    Ok(Generated {
        terms: generator.terms,
        conditions: generator.conditions,
        cut: generator.cut,
        bulk: generator.bulk,
        unrolled: generator.unrolled,
    })
}

impl Generator<'_> {
    /// The state before anything has run: nothing is known but inputs and bounds of parameters.
    fn start(&mut self) -> Result<(State, Context), Unsupported> {
        let mut state = State::default();
        let mut context = Context::default();
        for param in &self.case.symbolic {
            let (lo, hi) = (i128::from(param.lo), i128::from(param.hi) - 1);
            let name = self.case.names.text(param.name).to_owned();
            let var = self.terms.var(&name, super::term::Sort::Int, Some(lo), Some(hi));
            self.params.insert(param.name, var);
        }
        let none = Bindings::new();
        for expr in &self.case.requires {
            let assumption = self.eval(expr, &state, &none)?;
            context.assumptions.push(assumption);
        }
        for decl in &self.case.decls {
            let extents = self.evals(&decl.dims, &state, &none)?;
            self.extents.insert(decl.name, extents);
            self.havoc(decl.name, &mut state);
        }
        self.pending.clear();
        Ok((state, context))
    }

    /// Forgets what a buffer, register or local holds.
    pub(super) fn havoc(&mut self, name: Sym, state: &mut State) {
        let text = self.case.names.text(name).to_owned();
        match self.case.decl(name) {
            Some(decl) => {
                let bits = if let Type::Bits(bits) = decl.ty { Some(bits) } else { None };
                let sort = sort_of(decl.ty);
                if decl.dims.is_empty() {
                    let hi = bits.map(|bits| (1i128 << bits) - 1);
                    let value = self.terms.var(&text, sort, bits.map(|_| 0), hi);
                    state.scalars.insert(name, value);
                } else {
                    let base = self.terms.array(&text, decl.dims.len(), sort, bits);
                    state.arrays.insert(name, Contents { base, writes: Vec::new() });
                }
            }
            None => {
                if let Some(old) = state.scalars.get(&name) {
                    let sort = self.terms.sort(*old);
                    let value = self.terms.var(&text, sort, None, None);
                    state.scalars.insert(name, value);
                }
            }
        }
    }

    /// Notes a side condition of the segment.
    pub(super) fn oblige(&mut self, goal: Term, span: Span, what: &'static str) {
        if self.terms.is_bool(goal) == Some(true) {
            return;
        }
        let guard = self.terms.and(self.guard.clone());
        let goal = self.terms.implies(guard, goal);
        if self.terms.is_bool(goal) != Some(true) {
            self.pending.push((what, goal, span));
        }
    }

    /// How many side conditions there are; `forget` takes back those after.
    pub(super) fn mark(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn forget(&mut self, mark: usize) {
        self.pending.truncate(mark);
    }

    /// Makes conditions of the side conditions noted so far.
    pub(super) fn flush(&mut self, context: &Context, place: &str) {
        let mut groups: Vec<(&'static str, Vec<Term>, Vec<Span>)> = Vec::new();
        for (what, goal, span) in std::mem::take(&mut self.pending) {
            match groups.iter_mut().find(|group| group.0 == what) {
                Some(group) => {
                    group.1.push(goal);
                    if !group.2.contains(&span) {
                        group.2.push(span);
                    }
                }
                None => groups.push((what, vec![goal], vec![span])),
            }
        }
        for (what, goals, spans) in groups {
            let goal = self.terms.and(goals);
            self.require(format!("{place}: {what}"), spans, context, goal);
        }
    }

    /// Adds a condition.
    pub(super) fn require(&mut self, name: String, spans: Vec<Span>, context: &Context, goal: Term) {
        self.conditions.push(Condition {
            name,
            spans,
            assumptions: context.assumptions.clone(),
            facts: context.facts.clone(),
            goal,
        });
    }

    pub(super) fn nodes(
        &mut self,
        nodes: &[Node],
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        for node in nodes {
            match node {
                Node::Plain(stmt) => self.plain(stmt, state)?,
                Node::Loop(inner) => self.product_loop(inner, state, context)?,
                Node::Branch(condition, then, other, _) => {
                    self.branch(condition, then, other, state, context)?;
                }
            }
        }
        Ok(())
    }

    fn plain(&mut self, stmt: &Stmt, state: &mut State) -> Result<(), Unsupported> {
        let none = Bindings::new();
        match &stmt.kind {
            StmtKind::Let(name, value) => {
                let value = self.eval(value, state, &none)?;
                state.scalars.insert(*name, value);
            }
            StmtKind::Assign(name, indices, value) => {
                let value = self.eval(value, state, &none)?;
                if let Some(Decl { ty: Type::Bits(bits), .. }) = self.case.decl(*name) {
                    self.fits(value, *bits, stmt.span);
                }
                if state.arrays.contains_key(name) {
                    let index = self.index(*name, indices, state, &none, stmt.span)?;
                    let condition = self.terms.and(self.guard.clone());
                    let write = Write { vars: Vec::new(), condition, index, value };
                    state.arrays.get_mut(name).expect("looked up above").writes.push(write);
                } else {
                    state.scalars.insert(*name, value);
                }
            }
            StmtKind::Loop(_) | StmtKind::If(..) | StmtKind::Call(..) => {
                return Err(Unsupported {
                    span: stmt.span,
                    reason: "a statement that was not expanded".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn branch(
        &mut self,
        condition: &Expr,
        then: &[Node],
        other: &[Node],
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        let condition = self.eval(condition, state, &Bindings::new())?;
        match self.terms.is_bool(condition) {
            Some(true) => return self.nodes(then, state, context),
            Some(false) => return self.nodes(other, state, context),
            None => {}
        }
        let before = state.scalars.clone();
        self.guard.push(condition);
        let result = self.nodes(then, state, context);
        self.guard.pop();
        result?;
        let after_then = std::mem::replace(&mut state.scalars, before.clone());
        let not = self.terms.not(condition);
        self.guard.push(not);
        let result = self.nodes(other, state, context);
        self.guard.pop();
        result?;
        let mut names: Vec<Sym> = before.keys().copied().collect();
        names.sort_unstable();
        for name in names {
            let value = self.terms.ite(condition, after_then[&name], state.scalars[&name]);
            state.scalars.insert(name, value);
        }
        Ok(())
    }
}
