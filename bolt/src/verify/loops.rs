//! Loops of a product: seen as one write (maps), unrolled (short ones without invariants), or cut at the head.

use super::condition::Unsupported;
use super::expression::Bindings;
use super::generate::{Context, Generator, Status};
use super::inverse::Ranged;
use super::state::{State, Write};
use super::term::{Sort, Term};
use crate::hex::printer::print_expr;
use crate::hex::syntax::*;
use crate::product::{Head, Node, ProductLoop, labels, written};
use std::collections::{HashMap, HashSet};

/// Loops of at most so many iterations are unrolled if nothing better is known of them.
const UNROLL: i128 = 64;

impl Generator<'_> {
    pub(super) fn product_loop(
        &mut self,
        product: &ProductLoop,
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        // A counter of this name around the loop is there again after it.
        let around: Vec<(Sym, Term)> = Self::heads(product)
            .filter_map(|head| Some((head.counter, *state.scalars.get(&head.counter)?)))
            .collect();
        let result = self.a_loop(product, state, context);
        state.scalars.extend(around);
        result
    }

    fn a_loop(
        &mut self,
        product: &ProductLoop,
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        let none = Bindings::new();
        let head = product.head();
        let (lo, hi) = (self.eval(&head.lo, state, &none)?, self.eval(&head.hi, state, &none)?);
        self.same_bounds(product, lo, hi, state)?;
        let trips = self.terms.sub(hi, lo);
        let trips = self.terms.constant(trips);
        let annotated = product.label.is_some_and(|label| self.positioned.contains(&label))
            || product.hardware.as_ref().is_some_and(|head| !head.whereby.is_empty() && trips != Some(1));
        if !annotated {
            if trips != Some(1) && self.map(product, lo, hi, state, context)? {
                self.bulk += 1;
                return Ok(());
            }
            if let (Some(trips), Some(first)) = (trips, self.terms.constant(lo))
                && trips <= UNROLL
            {
                self.unrolled += 1;
                return self.unroll(product, first, trips, state, context);
            }
        }
        if self.guard.is_empty() {
            return self.cut(product, lo, hi, state, context);
        }
        Err(Unsupported {
            span: head.span,
            reason: "a loop that needs invariants inside of an `if` or a map".to_owned(),
        })
    }

    /// Both sides of an aligned loop run over the same range. A hardware loop says so by its exit test.
    fn same_bounds(
        &mut self,
        product: &ProductLoop,
        lo: Term,
        hi: Term,
        state: &State,
    ) -> Result<(), Unsupported> {
        if let (Some(hardware), Some(_)) = (&product.hardware, &product.ir) {
            let none = Bindings::new();
            let own_lo = self.eval(&hardware.lo, state, &none)?;
            let mut goal = vec![self.terms.equal(own_lo, lo)];
            if hardware.kind != LoopKind::Hardware {
                let own_hi = self.eval(&hardware.hi, state, &none)?;
                goal.push(self.terms.equal(own_hi, hi));
            }
            let goal = self.terms.and(goal);
            self.oblige(goal, hardware.span, "aligned loops have the same bounds");
        }
        Ok(())
    }

    fn heads(product: &ProductLoop) -> impl Iterator<Item = &Head> {
        product.hardware.iter().chain(&product.ir)
    }

    fn set_counters(product: &ProductLoop, value: Term, state: &mut State) {
        for head in Self::heads(product) {
            state.scalars.insert(head.counter, value);
        }
    }

    /// Tries to see a loop as writes for all values of its counter. Leaves everything as it was if that cannot be.
    fn map(
        &mut self,
        product: &ProductLoop,
        lo: Term,
        hi: Term,
        state: &mut State,
        context: &mut Context,
    ) -> Result<bool, Unsupported> {
        for (head, of_ir) in
            product.hardware.iter().map(|h| (h, false)).chain(product.ir.iter().map(|h| (h, true)))
        {
            let independent = match head.kind {
                LoopKind::Parallel => true,
                LoopKind::Counted => independent(&product.body, &|name| self.of_ir.contains(&name) == of_ir),
                LoopKind::Hardware => false,
            };
            if !independent {
                return Ok(false);
            }
        }
        let (mark, conditions) = (self.mark(), self.conditions.len());
        let counts = (self.bulk, self.unrolled, self.cut.len());
        let depth = self.guard.len();
        let mut inner = state.clone();
        let name = self.case.names.text(product.head().counter).to_owned();
        let (low, high) = (self.terms.bounds(lo).0, self.terms.bounds(hi).1.map(|hi| hi - 1));
        let var = self.terms.var(&name, Sort::Int, low, high);
        let ranged = Ranged { var, lo, hi };
        let range = self.in_range(&[ranged]);
        self.guard.push(range);
        Self::set_counters(product, var, &mut inner);
        let result = self.nodes(&product.body, &mut inner, context);
        self.guard.truncate(depth);
        let mut own = HashSet::new();
        lets(&product.body, &mut own);
        if result.is_ok() && self.gather(ranged, &own, state, &mut inner) {
            state.arrays = inner.arrays;
            return Ok(true);
        }
        self.forget(mark);
        self.conditions.truncate(conditions);
        (self.bulk, self.unrolled) = (counts.0, counts.1);
        self.cut.truncate(counts.2);
        Ok(false)
    }

    /// Turns one iteration's writes into those of all; false where iterations may meet.
    fn gather(&mut self, ranged: Ranged, own: &HashSet<Sym>, before: &State, after: &mut State) -> bool {
        // `own` locals are gone after an iteration.
        if before
            .scalars
            .iter()
            .any(|(name, value)| !own.contains(name) && after.scalars.get(name) != Some(value))
        {
            return false;
        }
        let mut names: Vec<Sym> = after.arrays.keys().copied().collect();
        names.sort_unstable();
        for name in names {
            let start = before.arrays[&name].writes.len();
            let writes = &mut after.arrays.get_mut(&name).expect("a name of it").writes;
            for write in &mut writes[start..] {
                write.vars.push(ranged);
            }
            let fresh = writes[start..].to_vec();
            for (at, write) in fresh.iter().enumerate() {
                if !write.is_injective(&mut self.terms)
                    || fresh[..at].iter().any(|other| self.may_meet(write, other))
                {
                    return false;
                }
            }
        }
        true
    }

    /// Whether two writes of one iteration could go to one place in different iterations.
    fn may_meet(&mut self, one: &Write, other: &Write) -> bool {
        if one.index == other.index {
            return false;
        }
        // The other iteration has counters of its own.
        let mut apart = HashMap::new();
        for ranged in &other.vars {
            let (lo, hi) = self.terms.bounds(ranged.var);
            let fresh = self.terms.var("other", Sort::Int, lo, hi);
            apart.insert(ranged.var, fresh);
        }
        let mut equal = Vec::new();
        for (&a, &b) in one.index.iter().zip(&other.index) {
            let b = self.terms.substitute(b, &apart);
            equal.push(self.terms.equal(a, b));
        }
        let equal = self.terms.and(equal);
        self.terms.is_bool(equal) != Some(false)
    }

    fn unroll(
        &mut self,
        product: &ProductLoop,
        first: i128,
        trips: i128,
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        let mut inside = Vec::new();
        labels(&product.body, &mut inside);
        for trip in 0..trips {
            let value = self.terms.int(first + trip);
            Self::set_counters(product, value, state);
            for label in &inside {
                context.status.remove(label);
            }
            if let Some(label) = product.label {
                context.status.insert(label, Status::At(value));
            }
            self.nodes(&product.body, state, context)?;
            if let Some((head, until)) =
                product.hardware.as_ref().and_then(|head| Some((head, head.until.as_ref()?)))
            {
                let stops = self.eval(until, state, &Bindings::new())?;
                let goal = if trip + 1 == trips { stops } else { self.terms.not(stops) };
                self.oblige(goal, head.span, EXIT);
            }
        }
        if trips < 1 && product.hardware.as_ref().is_some_and(|head| head.kind == LoopKind::Hardware) {
            let never = self.terms.bool(false);
            self.oblige(never, product.head().span, EXIT);
        }
        for head in Self::heads(product) {
            state.scalars.remove(&head.counter);
        }
        if let Some(label) = product.label {
            context.status.insert(label, Status::Done);
        }
        Ok(())
    }

    fn cut(
        &mut self,
        product: &ProductLoop,
        lo: Term,
        hi: Term,
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        let head = product.head().clone();
        if Self::heads(product).any(|head| head.kind == LoopKind::Parallel) {
            let reason = "a parfor that needs invariants; write `for` if its iterations are independent";
            return Err(Unsupported { span: head.span, reason: reason.to_owned() });
        }
        let place = match product.label {
            Some(label) => format!("@{}", self.case.names.text(label)),
            None => format!("loop {}", self.case.names.text(head.counter)),
        };
        self.cut.push(place.clone());
        let hardware = product.hardware.as_ref().filter(|head| head.kind == LoopKind::Hardware);
        // The counter takes every value of the range and ends at `hi`; a hardware loop runs at least once.
        let entered = if hardware.is_some() { self.terms.less(lo, hi) } else { self.terms.at_most(lo, hi) };
        self.oblige(entered, head.span, "loops end at their bound");
        self.flush(context, &format!("before {place}"));

        let mut changed = HashSet::new();
        written(&product.body, &mut changed);
        let claims = self.claims(product, &changed);
        self.prove_claims(&claims, product, "is entered", &place, lo, state, context)?;

        let mut body_state = state.clone();
        let mut body_context = context.clone();
        let (low, high) = (self.terms.bounds(lo).0, self.terms.bounds(hi).1.map(|hi| hi - 1));
        let name = self.case.names.text(head.counter).to_owned();
        let counter = self.terms.var(&name, Sort::Int, low, high);
        let (from, to) = (self.terms.at_most(lo, counter), self.terms.less(counter, hi));
        body_context.assumptions.extend([from, to]);
        self.arrive(&claims, product, &changed, counter, &mut body_state, &mut body_context)?;
        self.nodes(&product.body, &mut body_state, &mut body_context)?;
        self.flush(&body_context, &format!("in {place}"));

        let one = self.terms.int(1);
        let next = self.terms.add(counter, one);
        if let Some((head, until)) = hardware.and_then(|head| Some((head, head.until.as_ref()?))) {
            let stops = self.eval(until, &body_state, &Bindings::new())?;
            self.flush(&body_context, &format!("{place} exit test"));
            let last = self.terms.equal(next, hi);
            let goal = self.terms.equal(stops, last);
            self.require(format!("{place}: {EXIT}"), vec![head.span, until.span], &body_context, goal);
        }
        self.prove_claims(&claims, product, "goes on", &place, next, &mut body_state, &body_context)?;

        self.arrive(&claims, product, &changed, hi, state, context)?;
        for head in Self::heads(product) {
            state.scalars.remove(&head.counter);
        }
        if let Some(label) = product.label {
            context.status.insert(label, Status::Done);
        }
        Ok(())
    }

    /// What is claimed at the head of a loop, by index into the relations and invariants of the case.
    fn claims(&self, product: &ProductLoop, changed: &HashSet<Sym>) -> Claims {
        let label = product.label;
        let relations = self.case.relations.iter().enumerate().filter(|(_, relation)| {
            if relation.at.is_empty() {
                // Its variables are its own, whatever the program calls so.
                let mut changed = changed.clone();
                for (var, _, _) in &relation.vars {
                    changed.remove(var);
                }
                mentions_any(&relation.left, &changed) || mentions_any(&relation.right, &changed)
            } else {
                label.is_some_and(|label| relation.at.contains(&label))
            }
        });
        let invariants = self.case.invariants.iter().enumerate().filter(|(_, one)| label == Some(one.at));
        Claims {
            relations: relations.map(|(index, _)| index).collect(),
            invariants: invariants.map(|(index, _)| index).collect(),
        }
    }

    /// Status of labels when a loop's counter is at a value.
    fn status_at(product: &ProductLoop, counter: Term, context: &Context) -> HashMap<Sym, Status> {
        let mut status = context.status.clone();
        let mut inside = Vec::new();
        labels(&product.body, &mut inside);
        for label in inside {
            status.remove(&label);
        }
        if let Some(label) = product.label {
            status.insert(label, Status::At(counter));
        }
        status
    }

    #[expect(clippy::too_many_arguments, reason = "one condition per claim, all at one place")]
    fn prove_claims(
        &mut self,
        claims: &Claims,
        product: &ProductLoop,
        moment: &str,
        place: &str,
        counter: Term,
        state: &mut State,
        context: &Context,
    ) -> Result<(), Unsupported> {
        let status = Self::status_at(product, counter, context);
        Self::set_counters(product, counter, state);
        let none = Bindings::new();
        let case = self.case;
        let mark = self.mark();
        for fact in product.hardware.iter().flat_map(|head| &head.whereby) {
            let goal = self.eval(fact, state, &none)?;
            let name = format!("{place} {moment}: {}", print_expr(&case.names, fact));
            self.require(name, vec![fact.span], context, goal);
        }
        for &index in &claims.invariants {
            let invariant = &case.invariants[index];
            let goal = self.eval(&invariant.formula, state, &none)?;
            let name = format!("{place} {moment}: {}", print_expr(&case.names, &invariant.formula));
            self.require(name, vec![invariant.span], context, goal);
        }
        for &index in &claims.relations {
            let relation = &case.relations[index];
            let Some(fact) = self.fact(relation, state, &status)? else { continue };
            let goal = self.formula(&fact);
            let name = format!("{place} {moment}: {}", fact.name);
            self.require(name, vec![relation.span], context, goal);
        }
        self.forget(mark);
        Ok(())
    }

    /// A state of which only the claims are known, at a value of the counter.
    fn arrive(
        &mut self,
        claims: &Claims,
        product: &ProductLoop,
        changed: &HashSet<Sym>,
        counter: Term,
        state: &mut State,
        context: &mut Context,
    ) -> Result<(), Unsupported> {
        context.status = Self::status_at(product, counter, context);
        let mut names: Vec<Sym> = changed.iter().copied().collect();
        names.sort_unstable();
        for name in names {
            self.havoc(name, state);
        }
        Self::set_counters(product, counter, state);
        let none = Bindings::new();
        let case = self.case;
        let mark = self.mark();
        let mut bound = HashSet::new();
        for fact in product.hardware.iter().flat_map(|head| &head.whereby) {
            // A register that is equal to something is that: addresses made of it are then equal as they stand.
            if let ExprKind::Binary(Binary::Eq, left, right) = &fact.kind
                && let ExprKind::Name(name) | ExprKind::Access(name, _) = left.kind
                && changed.contains(&name)
                && bound.insert(name)
            {
                let value = self.eval(right, state, &none)?;
                if let ExprKind::Access(_, indices) = &left.kind {
                    // Unknown contents with one entry overwritten are the contents of which that entry is known.
                    let (index, condition) = (self.evals(indices, state, &none)?, self.terms.bool(true));
                    let contents = state.arrays.get_mut(&name).expect("it was forgotten just before");
                    contents.writes.push(Write { vars: Vec::new(), condition, index, value });
                } else {
                    state.scalars.insert(name, value);
                }
            } else {
                let assumption = self.eval(fact, state, &none)?;
                context.assumptions.push(assumption);
            }
        }
        for &index in &claims.invariants {
            let assumption = self.eval(&case.invariants[index].formula, state, &none)?;
            context.assumptions.push(assumption);
        }
        let status = context.status.clone();
        for &index in &claims.relations {
            if let Some(fact) = self.fact(&case.relations[index], state, &status)? {
                self.assume(fact, context);
            }
        }
        self.forget(mark);
        Ok(())
    }
}

const EXIT: &str = "the hardware leaves the loop exactly at the bound";

struct Claims {
    relations: Vec<usize>,
    invariants: Vec<usize>,
}

fn mentions_any(expr: &Expr, names: &HashSet<Sym>) -> bool {
    let mut found = false;
    visit_expr(expr, &mut |part| {
        found |=
            matches!(&part.kind, ExprKind::Name(name) | ExprKind::Access(name, _) if names.contains(name));
    });
    found
}

/// Whether iterations of a counted loop do not see each other: a buffer that is written is read nowhere but at the very
/// place that is written. (Whether writes meet is asked of their addresses.) `of_side` tells the buffers that count.
fn independent(body: &[Node], of_side: &dyn Fn(Sym) -> bool) -> bool {
    fn accesses(expr: &Expr, found: &mut Vec<(Sym, Vec<Expr>)>) {
        visit_expr(expr, &mut |part| {
            if let ExprKind::Access(name, indices) = &part.kind {
                found.push((*name, indices.clone()));
            }
        });
    }
    fn gather(body: &[Node], writes: &mut Vec<(Sym, Vec<Expr>)>, reads: &mut Vec<(Sym, Vec<Expr>)>) {
        for node in body {
            match node {
                Node::Plain(stmt) => match &stmt.kind {
                    StmtKind::Let(_, value) => accesses(value, reads),
                    StmtKind::Assign(name, indices, value) => {
                        writes.push((*name, indices.clone()));
                        indices.iter().for_each(|index| accesses(index, reads));
                        accesses(value, reads);
                    }
                    _ => {}
                },
                Node::Branch(condition, then, other, _) => {
                    accesses(condition, reads);
                    gather(then, writes, reads);
                    gather(other, writes, reads);
                }
                Node::Loop(inner) => {
                    for head in inner.hardware.iter().chain(&inner.ir) {
                        accesses(&head.lo, reads);
                        accesses(&head.hi, reads);
                        head.until.iter().for_each(|until| accesses(until, reads));
                    }
                    gather(&inner.body, writes, reads);
                }
            }
        }
    }
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    gather(body, &mut writes, &mut reads);
    let (mut once, mut moving) = (HashSet::new(), HashSet::new());
    changing(body, &mut once, &mut moving);
    if writes.iter().any(|(_, indices)| indices.iter().any(|index| mentions_any(index, &moving))) {
        return false;
    }
    writes.iter().filter(|(name, indices)| of_side(*name) && !indices.is_empty()).all(|(name, indices)| {
        let same = |other: &[Expr]| {
            other.len() == indices.len() && other.iter().zip(indices).all(|(a, b)| same_expr(a, b))
        };
        reads.iter().filter(|(other, _)| other == name).all(|(_, other)| same(other))
    })
}

/// Locals that a body binds.
fn lets(body: &[Node], found: &mut HashSet<Sym>) {
    for node in body {
        match node {
            Node::Plain(Stmt { kind: StmtKind::Let(name, _), .. }) => {
                found.insert(*name);
            }
            Node::Plain(_) => {}
            Node::Branch(_, then, other, _) => {
                lets(then, found);
                lets(other, found);
            }
            Node::Loop(inner) => lets(&inner.body, found),
        }
    }
}

/// Names that mean different values at different places of a body: one text of an index is then not one place.
fn changing(body: &[Node], once: &mut HashSet<Sym>, moving: &mut HashSet<Sym>) {
    for node in body {
        match node {
            Node::Plain(stmt) => match &stmt.kind {
                StmtKind::Let(name, _) if once.insert(*name) => {}
                StmtKind::Let(name, _) | StmtKind::Assign(name, ..) => {
                    moving.insert(*name);
                }
                _ => {}
            },
            Node::Branch(_, then, other, _) => {
                changing(then, once, moving);
                changing(other, once, moving);
            }
            Node::Loop(inner) => {
                for head in inner.hardware.iter().chain(&inner.ir) {
                    if !once.insert(head.counter) {
                        moving.insert(head.counter);
                    }
                }
                changing(&inner.body, once, moving);
            }
        }
    }
}

/// The same text, wherever it stands.
fn same_expr(a: &Expr, b: &Expr) -> bool {
    let all = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_expr(a, b));
    match (&a.kind, &b.kind) {
        (ExprKind::Access(x, i), ExprKind::Access(y, j)) | (ExprKind::Apply(x, i), ExprKind::Apply(y, j)) => {
            x == y && all(i, j)
        }
        (ExprKind::Builtin(x, i), ExprKind::Builtin(y, j)) => x == y && all(i, j),
        (ExprKind::Wrap(m, x), ExprKind::Wrap(n, y)) => m == n && same_expr(x, y),
        (ExprKind::Negate(x), ExprKind::Negate(y)) | (ExprKind::Not(x), ExprKind::Not(y)) => same_expr(x, y),
        (ExprKind::Binary(m, x, y), ExprKind::Binary(n, u, v)) => {
            m == n && same_expr(x, u) && same_expr(y, v)
        }
        (ExprKind::Select(x, y, z), ExprKind::Select(u, v, w)) => {
            same_expr(x, u) && same_expr(y, v) && same_expr(z, w)
        }
        (x, y) => x == y,
    }
}
