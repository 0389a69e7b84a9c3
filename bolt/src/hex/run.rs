//! The interpreter: runs a program of a case on the elements of a domain, statement by statement as the language says.
//! It is the judge of counterexamples, so it shares nothing with the prover.

use super::domain::{Domain, binary};
use super::expand::{Expanded, constant};
use super::source::Span;
use super::syntax::*;
use super::trace::Trace;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// Why a run does not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    #[error("the hardware never stops: its exit test was false after {0} steps")]
    NeverStops(u64),
    #[error("the run is not over after {0} steps")]
    TooLong(u64),
    #[error(
        "`{buffer}` and what else the program uses are more than {limit} elements, which no run is made of"
    )]
    TooLarge { buffer: String, limit: u64 },
    #[error("`{buffer}` has no place {indices:?}")]
    OutOfBounds { buffer: String, indices: Vec<i64> },
    #[error("two iterations of a parfor write one place of `{buffer}`")]
    Race { buffer: String },
    #[error("an integer is beyond 64 bits or divided by what is not positive")]
    Arithmetic,
    #[error("`{0}` has no value here")]
    Unbound(String),
    #[error("the program was not expanded")]
    NotExpanded,
}

/// Contents of the buffers that a program names, after a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub buffers: HashMap<Sym, Vec<i64>>,
    /// Statements that were executed.
    pub steps: u64,
}

/// Runs one program from its unknown first state to its end.
///
/// # Errors
/// It faults, or takes more than `fuel` statements.
pub fn run(case: &Expanded, body: &[Stmt], domain: &Domain, fuel: u64) -> Result<Outcome, Fault> {
    let mut names = HashSet::new();
    touched(body, &mut names);
    let mut machine = Machine::new(case, domain, fuel, &names)?;
    machine.body(body)?;
    Ok(machine.into_outcome())
}

/// Runs one program and notes what it did on the way.
///
/// # Errors
/// It faults, or takes more than `fuel` statements.
pub fn run_traced(
    case: &Expanded,
    body: &[Stmt],
    domain: &Domain,
    fuel: u64,
    notes: Trace,
) -> Result<(Outcome, Trace), Fault> {
    let mut names = HashSet::new();
    touched(body, &mut names);
    let mut machine = Machine::new(case, domain, fuel, &names)?;
    machine.trace = Some(RefCell::new(notes));
    machine.body(body)?;
    let trace = machine.trace.take().unwrap_or_default().into_inner();
    Ok((machine.into_outcome(), trace))
}

/// Names that statements mention.
pub fn touched(body: &[Stmt], names: &mut HashSet<Sym>) {
    visit_exprs(body, &mut |expr| {
        if let ExprKind::Name(name) | ExprKind::Access(name, _) = &expr.kind {
            names.insert(*name);
        }
    });
    for stmt in body {
        match &stmt.kind {
            StmtKind::Assign(name, ..) => {
                names.insert(*name);
            }
            StmtKind::If(_, then, other) => {
                touched(then, names);
                touched(other, names);
            }
            StmtKind::Loop(inner) => touched(&inner.body, names),
            StmtKind::Let(..) | StmtKind::Call(..) => {}
        }
    }
}

/// Elements that a run may have, of 8 bytes each.
const ELEMENTS: u64 = 1 << 27;

struct Store {
    dims: Vec<i64>,
    data: Vec<i64>,
    ty: Type,
}

/// The state of a run.
pub struct Machine<'a> {
    case: &'a Expanded,
    domain: &'a Domain,
    stores: Vec<Option<Store>>,
    locals: Vec<Option<i64>>,
    /// Whether a local holds an element.
    elements: Vec<bool>,
    /// What parfor iterations overwrote, innermost last.
    journal: Option<Vec<(Sym, usize, i64)>>,
    fuel: u64,
    steps: u64,
    trace: Option<RefCell<Trace>>,
}

impl<'a> Machine<'a> {
    /// A state with unknown contents of the buffers that are named; there are no others.
    ///
    /// # Errors
    /// They are too large.
    pub fn new(
        case: &'a Expanded,
        domain: &'a Domain,
        fuel: u64,
        touched: &HashSet<Sym>,
    ) -> Result<Machine<'a>, Fault> {
        let samples: HashMap<Sym, Expr> = case
            .symbolic
            .iter()
            .map(|param| (param.name, Expr::int(param.sample, Span::default())))
            .collect();
        let mut taken = 0u64;
        let mut stores: Vec<Option<Store>> = (0..case.names.len()).map(|_| None).collect();
        for decl in case.decls.iter().filter(|decl| touched.contains(&decl.name)) {
            let dims: Vec<i64> = decl
                .dims
                .iter()
                .map(|dim| constant(&super::expand::substitute(dim, &samples)).unwrap_or(0).max(0))
                .collect();
            let size = dims.iter().fold(1u64, |size, &dim| size.saturating_mul(dim.unsigned_abs()));
            taken = taken.saturating_add(size);
            if taken > ELEMENTS {
                let buffer = case.names.text(decl.name).to_owned();
                let kind = FaultKind::TooLarge { buffer, limit: ELEMENTS };
                return Err(Fault { kind, span: decl.span });
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let data = (0..size).map(|offset| domain.initial(decl.name, decl.ty, offset)).collect();
            stores[decl.name.0 as usize] = Some(Store { dims, data, ty: decl.ty });
        }
        let mut locals = vec![None; case.names.len()];
        for param in &case.symbolic {
            locals[param.name.0 as usize] = Some(param.sample);
        }
        let elements = vec![false; case.names.len()];
        Ok(Machine { case, domain, stores, locals, elements, journal: None, fuel, steps: 0, trace: None })
    }

    /// Ends the run.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        let buffers = self
            .case
            .decls
            .iter()
            .filter_map(|decl| Some((decl.name, self.stores[decl.name.0 as usize].as_ref()?.data.clone())))
            .collect();
        Outcome { buffers, steps: self.steps }
    }

    /// Gives a counter or variable its value.
    pub fn set(&mut self, name: Sym, value: i64) {
        self.locals[name.0 as usize] = Some(value);
    }

    /// The value of a counter or variable.
    #[must_use]
    pub fn value(&self, name: Sym) -> Option<i64> {
        self.locals[name.0 as usize]
    }

    /// Puts contents into a buffer.
    pub fn load(&mut self, name: Sym, data: &[i64]) {
        if let Some(store) = &mut self.stores[name.0 as usize] {
            store.data.copy_from_slice(data);
        }
    }

    /// Executes statements of a block.
    ///
    /// # Errors
    /// One of them faults.
    pub fn body(&mut self, body: &[Stmt]) -> Result<(), Fault> {
        for stmt in body {
            self.stmt(stmt)?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        self.steps += 1;
        if self.steps > self.fuel {
            return Err(Fault { kind: FaultKind::TooLong(self.fuel), span: stmt.span });
        }
        match &stmt.kind {
            StmtKind::Let(name, value) => {
                self.elements[name.0 as usize] = !self.is_integer(value);
                let value = self.eval(value)?;
                self.note(|trace| trace.write(*name, 0));
                self.locals[name.0 as usize] = Some(value);
            }
            StmtKind::Assign(name, indices, value) => {
                let value = self.eval(value)?;
                if self.stores[name.0 as usize].is_none() {
                    self.note(|trace| trace.write(*name, 0));
                    self.locals[name.0 as usize] = Some(value);
                } else {
                    let offset = self.offset(*name, indices, stmt.span)?;
                    self.note(|trace| trace.write(*name, offset));
                    self.write(*name, offset, value);
                }
            }
            StmtKind::If(condition, then, other) => {
                let holds = self.eval(condition)? != 0;
                self.note(|trace| trace.branch(condition.span, holds));
                self.body(if holds { then } else { other })?;
            }
            StmtKind::Call(..) => return Err(Fault { kind: FaultKind::NotExpanded, span: stmt.span }),
            StmtKind::Loop(inner) => {
                let outer = self.locals[inner.counter.0 as usize];
                self.note(|trace| trace.enter(stmt.span, inner.label, inner.kind == LoopKind::Parallel));
                self.run_loop(inner, stmt.span)?;
                self.note(Trace::leave);
                self.locals[inner.counter.0 as usize] = outer;
            }
        }
        Ok(())
    }

    /// Which place an access is to.
    #[must_use]
    pub fn place(&self, access: &Expr) -> Option<(Sym, usize)> {
        match &access.kind {
            ExprKind::Access(name, indices) => Some((*name, self.offset(*name, indices, access.span).ok()?)),
            _ => None,
        }
    }

    fn note(&self, what: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &self.trace {
            what(&mut trace.borrow_mut());
        }
    }

    fn run_loop(&mut self, inner: &Loop, span: Span) -> Result<(), Fault> {
        let lo = self.eval(&inner.lo)?;
        match inner.kind {
            LoopKind::Counted => {
                for at in lo..self.eval(&inner.hi)? {
                    self.set(inner.counter, at);
                    self.note(Trace::iterate);
                    self.body(&inner.body)?;
                }
            }
            LoopKind::Hardware => {
                let mut at = lo;
                let claimed = self.eval(&inner.hi)?;
                let until = inner.until.as_ref().ok_or(Fault { kind: FaultKind::NotExpanded, span })?;
                loop {
                    self.set(inner.counter, at);
                    self.note(Trace::iterate);
                    self.body(&inner.body).map_err(|fault| match fault.kind {
                        // The outermost loop that is past its claim is the one to blame.
                        FaultKind::TooLong(fuel) | FaultKind::NeverStops(fuel) if at >= claimed => {
                            Fault { kind: FaultKind::NeverStops(fuel), span: until.span }
                        }
                        _ => fault,
                    })?;
                    if self.eval(until)? != 0 {
                        break;
                    }
                    at += 1;
                    self.steps += 1;
                    if self.steps > self.fuel {
                        let kind = if at > claimed { FaultKind::NeverStops } else { FaultKind::TooLong };
                        return Err(Fault { kind: kind(self.fuel), span: until.span });
                    }
                }
            }
            LoopKind::Parallel => {
                let around = self.journal.take();
                let mut pending: Vec<(Sym, usize, i64)> = Vec::new();
                for at in lo..self.eval(&inner.hi)? {
                    self.set(inner.counter, at);
                    self.note(Trace::iterate);
                    self.journal = Some(Vec::new());
                    self.body(&inner.body)?;
                    self.take_back(&mut pending);
                }
                self.journal = around;
                self.commit(pending, span)?;
            }
        }
        Ok(())
    }

    /// Undoes an iteration's writes, keeping what it wrote last to each place.
    fn take_back(&mut self, pending: &mut Vec<(Sym, usize, i64)>) {
        let mut journal = self.journal.take().unwrap_or_default();
        // The oldest entry of a place holds what was there before; a stable sort keeps it first.
        journal.sort_by_key(|&(name, offset, _)| (name, offset));
        journal.dedup_by_key(|entry| (entry.0, entry.1));
        for (name, offset, old) in journal {
            let store = self.stores[name.0 as usize].as_mut().expect("only stores are journalled");
            pending.push((name, offset, store.data[offset]));
            store.data[offset] = old;
        }
    }

    fn commit(&mut self, mut pending: Vec<(Sym, usize, i64)>, span: Span) -> Result<(), Fault> {
        pending.sort_by_key(|&(name, offset, _)| (name, offset));
        for pair in pending.windows(2) {
            if (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1) {
                let buffer = self.case.names.text(pair[0].0).to_owned();
                return Err(Fault { kind: FaultKind::Race { buffer }, span });
            }
        }
        for (name, offset, value) in pending {
            self.write(name, offset, value);
        }
        Ok(())
    }

    fn write(&mut self, name: Sym, offset: usize, value: i64) {
        let store = self.stores[name.0 as usize].as_mut().expect("the caller has found it");
        if let Some(journal) = &mut self.journal {
            journal.push((name, offset, store.data[offset]));
        }
        store.data[offset] = match store.ty {
            Type::Bits(bits) => value.rem_euclid(1 << bits),
            _ => value,
        };
    }

    fn offset(&self, name: Sym, indices: &[Expr], span: Span) -> Result<usize, Fault> {
        let store = self.stores[name.0 as usize]
            .as_ref()
            .ok_or_else(|| Fault { kind: FaultKind::Unbound(self.case.names.text(name).to_owned()), span })?;
        let mut offset = 0;
        let mut inside = true;
        for (index, &dim) in indices.iter().zip(&store.dims) {
            let at = self.eval(index)?;
            inside &= (0..dim).contains(&at);
            offset = offset * dim + at;
        }
        match usize::try_from(offset) {
            Ok(offset) if inside && offset < store.data.len() => Ok(offset),
            _ => {
                let indices = indices.iter().map(|index| self.eval(index)).collect::<Result<_, _>>()?;
                let buffer = self.case.names.text(name).to_owned();
                Err(Fault { kind: FaultKind::OutOfBounds { buffer, indices }, span })
            }
        }
    }

    /// The value of an expression; conditions are 0 and 1.
    ///
    /// # Errors
    /// It reads outside of a buffer, or integers overflow.
    pub fn eval(&self, expr: &Expr) -> Result<i64, Fault> {
        match &expr.kind {
            ExprKind::Int(value) => Ok(*value),
            ExprKind::Bool(value) => Ok(i64::from(*value)),
            ExprKind::Name(name) => match self.locals[name.0 as usize] {
                Some(value) => {
                    if self.elements[name.0 as usize] {
                        self.note(|trace| trace.read(*name, 0));
                    }
                    Ok(value)
                }
                None => self.read(*name, &[], expr.span),
            },
            ExprKind::Access(name, indices) => self.read(*name, indices, expr.span),
            ExprKind::Apply(name, arguments) => {
                let mut values = [0; 8];
                let count = arguments.len().min(values.len());
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = self.eval(argument)?;
                }
                self.note(|trace| trace.apply(expr.span, &values[..count]));
                Ok(self.domain.apply(*name, &values[..count]))
            }
            ExprKind::Builtin(builtin, arguments) => {
                let (a, b) = (self.eval(&arguments[0])?, self.eval(&arguments[1])?);
                if self.is_integer(&arguments[0]) {
                    return Ok(if *builtin == Builtin::Min { a.min(b) } else { a.max(b) });
                }
                Ok(self.domain.builtin(*builtin, a, b))
            }
            ExprKind::Wrap(bits, inner) => Ok(self.eval(inner)?.rem_euclid(1 << bits)),
            ExprKind::Negate(inner) => Ok(self.eval(inner)?.wrapping_neg()),
            ExprKind::Not(inner) => Ok(i64::from(self.eval(inner)? == 0)),
            ExprKind::Select(condition, then, other) => {
                let holds = self.eval(condition)? != 0;
                self.note(|trace| trace.branch(condition.span, holds));
                self.eval(if holds { then } else { other })
            }
            ExprKind::Binary(Binary::And, left, right) => {
                Ok(i64::from(self.eval(left)? != 0 && self.eval(right)? != 0))
            }
            ExprKind::Binary(Binary::Or, left, right) => {
                Ok(i64::from(self.eval(left)? != 0 || self.eval(right)? != 0))
            }
            ExprKind::Binary(operator, left, right) => {
                let value = binary(*operator, self.eval(left)?, self.eval(right)?);
                value.ok_or(Fault { kind: FaultKind::Arithmetic, span: expr.span })
            }
        }
    }

    /// Whether `min` and `max` of this operand are those of integers.
    fn is_integer(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Access(name, _) | ExprKind::Name(name) => match &self.stores[name.0 as usize] {
                Some(store) => matches!(store.ty, Type::Bits(_)),
                None => !self.elements[name.0 as usize],
            },
            ExprKind::Apply(..) => false,
            ExprKind::Builtin(_, arguments) => self.is_integer(&arguments[0]),
            ExprKind::Select(_, then, _) => self.is_integer(then),
            _ => true,
        }
    }

    fn read(&self, name: Sym, indices: &[Expr], span: Span) -> Result<i64, Fault> {
        let offset = self.offset(name, indices, span)?;
        let store = self.stores[name.0 as usize].as_ref().expect("the offset was found in it");
        if matches!(store.ty, Type::Elem(_)) {
            self.note(|trace| trace.read(name, offset));
        }
        Ok(store.data[offset])
    }
}
