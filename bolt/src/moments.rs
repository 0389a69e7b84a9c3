//! Guards of relations, read off runs of both programs: when each side writes a place first and last. Where both do it in the
//! same iterations of aligned loops, these are put as expressions of the relation's variables. A guess like any other.

use crate::hex::domain::{Domain, Reading};
use crate::hex::expand::Expanded;
use crate::hex::run::{Machine, Outcome, run_traced};
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::hex::trace::{Moment, Trace};
use std::collections::{HashMap, HashSet};

/// Points at which a guess is tried.
const POINTS: usize = 5000;

/// Moments of both programs' writes.
pub(crate) struct Moments<'a> {
    case: &'a Expanded,
    domain: Domain,
    hardware: HashMap<(Sym, usize), (Moment, Moment)>,
    ir: HashMap<(Sym, usize), (Moment, Moment)>,
    /// What the hardware holds in the end.
    end: Outcome,
    /// Trip counts that indices may be taken apart by.
    sizes: Vec<Expr>,
}

impl<'a> Moments<'a> {
    /// Runs both programs and notes the writes to some buffers. `maps` are labels of loops that count as one moment.
    #[must_use]
    pub(crate) fn of(
        case: &'a Expanded,
        buffers: &HashSet<Sym>,
        maps: &[Sym],
        fuel: u64,
    ) -> Option<Moments<'a>> {
        let domain = Domain::new(case, Reading::Hashed, 1);
        let noted = |body: &[Stmt], fuel: u64| {
            let notes = Trace::of_writes(buffers.clone());
            let (end, notes) = run_traced(case, body, &domain, fuel, notes).ok()?;
            let mut moments = notes.moments;
            for (first, last) in moments.values_mut() {
                first.retain(|(label, _)| !maps.contains(label));
                last.retain(|(label, _)| !maps.contains(label));
            }
            Some((end, moments))
        };
        let of_ir = noted(&case.aligned, fuel)?;
        // Hardware moves data besides computing, but not for ever.
        let fuel = fuel.min(of_ir.0.steps.saturating_mul(100).saturating_add(1_000_000));
        let ((end, hardware), (_, ir)) = (noted(&case.hardware, fuel)?, of_ir);
        let mut sizes = Vec::new();
        trips(&case.hardware, &mut sizes);
        Some(Moments { case, domain, hardware, ir, end, sizes })
    }

    /// When a place of the hardware holds an element of the tensor program: a position of the relation's variables. None if
    /// the runs suggest none.
    #[must_use]
    pub(crate) fn made(&self, left: &Expr, right: &Expr, vars: &[(Sym, Expr, Expr)]) -> Option<Position> {
        let mut names = HashSet::new();
        for side in [left, right] {
            visit_expr(side, &mut |part| {
                if let ExprKind::Access(name, _) = &part.kind {
                    names.insert(*name);
                }
            });
        }
        let mut machine = Machine::new(self.case, &self.domain, u64::MAX, &names).ok()?;
        let mut points: Vec<Point> = Vec::new();
        self.gather(&mut machine, left, right, vars, &mut points)?;
        // First writes, if both sides do them together; else the last ones.
        for which in [0, 1] {
            let moment = |of: &(Moment, Moment)| if which == 0 { of.0.clone() } else { of.1.clone() };
            if points.iter().all(|point| moment(&point.hardware) == moment(&point.ir)) {
                let wanted: Vec<(&[i64], Moment)> =
                    points.iter().map(|point| (&point.values[..], moment(&point.ir))).collect();
                return self.fit(&machine, vars, &wanted);
            }
        }
        None
    }

    /// Whether places of the hardware still hold elements of an input when it has ended.
    #[must_use]
    pub(crate) fn stays(&self, left: &Expr, right: &Expr, vars: &[(Sym, Expr, Expr)]) -> bool {
        let mut names = HashSet::new();
        for side in [left, right] {
            visit_expr(side, &mut |part| {
                if let ExprKind::Access(name, _) = &part.kind {
                    names.insert(*name);
                }
            });
        }
        let Ok(mut machine) = Machine::new(self.case, &self.domain, u64::MAX, &names) else { return false };
        for name in names {
            if let Some(data) = self.end.buffers.get(&name) {
                machine.load(name, data);
            }
        }
        same(&mut machine, left, right, vars)
    }

    fn gather(
        &self,
        machine: &mut Machine<'_>,
        left: &Expr,
        right: &Expr,
        vars: &[(Sym, Expr, Expr)],
        points: &mut Vec<Point>,
    ) -> Option<()> {
        let Some(((name, lo, hi), rest)) = vars.split_first() else {
            if points.len() < POINTS {
                let (hardware, ir) = (machine.place(left)?, machine.place(right)?);
                points.push(Point {
                    values: Vec::new(),
                    hardware: self.hardware.get(&hardware)?.clone(),
                    ir: self.ir.get(&ir)?.clone(),
                });
            }
            return Some(());
        };
        let (lo, hi) = (machine.eval(lo).ok()?, machine.eval(hi).ok()?);
        for at in lo..hi {
            machine.set(*name, at);
            let from = points.len();
            self.gather(machine, left, right, rest, points)?;
            for point in &mut points[from..] {
                point.values.insert(0, at);
            }
        }
        Some(())
    }

    fn fit(
        &self,
        machine: &Machine<'_>,
        vars: &[(Sym, Expr, Expr)],
        points: &[(&[i64], Moment)],
    ) -> Option<Position> {
        let (_, moment) = points.first()?;
        let labels: Vec<Sym> = moment.iter().map(|(label, _)| *label).collect();
        if points.iter().any(|(_, moment)| !moment.iter().map(|(label, _)| label).eq(&labels)) {
            return None;
        }
        let sizes: Vec<(Expr, i64)> = self
            .sizes
            .iter()
            .filter_map(|size| Some((size.clone(), machine.eval(size).ok().filter(|size| *size > 1)?)))
            .collect();
        let mut position = Position::new();
        for (at, label) in labels.into_iter().enumerate() {
            let wanted: Vec<(&[i64], i64)> =
                points.iter().map(|(values, moment)| (*values, moment[at].1)).collect();
            position.push((component(vars, &sizes, &wanted)?, label));
        }
        Some(position)
    }
}

fn same(machine: &mut Machine<'_>, left: &Expr, right: &Expr, vars: &[(Sym, Expr, Expr)]) -> bool {
    let Some(((name, lo, hi), rest)) = vars.split_first() else {
        return machine.eval(left).is_ok_and(|left| machine.eval(right) == Ok(left));
    };
    let (Ok(lo), Ok(hi)) = (machine.eval(lo), machine.eval(hi)) else { return false };
    (lo..hi).all(|at| {
        machine.set(*name, at);
        same(machine, left, right, rest)
    })
}

struct Point {
    values: Vec<i64>,
    hardware: (Moment, Moment),
    ir: (Moment, Moment),
}

/// An expression of the variables that has the wanted value at every point.
fn component(vars: &[(Sym, Expr, Expr)], sizes: &[(Expr, i64)], points: &[(&[i64], i64)]) -> Option<Expr> {
    let span = Span::default();
    let binary = |operator, a: Expr, b: &Expr| Expr {
        kind: ExprKind::Binary(operator, Box::new(a), Box::new(b.clone())),
        span,
    };
    let (first, value) = points.first()?;
    if points.iter().all(|(_, other)| other == value) {
        return Some(Expr::int(*value, span));
    }
    for (index, (name, _, _)) in vars.iter().enumerate() {
        let var = Expr { kind: ExprKind::Name(*name), span };
        let all =
            |of: &dyn Fn(i64) -> i64| points.iter().all(|(values, wanted)| of(values[index]) == *wanted);
        let shift = value - first[index];
        if all(&|at| at + shift) {
            return Some(match shift {
                0 => var,
                _ => binary(Binary::Add, var, &Expr::int(shift, span)),
            });
        }
        for (size, by) in sizes {
            if all(&|at| at / by) {
                return Some(binary(Binary::Div, var, size));
            }
            if all(&|at| at % by) {
                return Some(binary(Binary::Mod, var, size));
            }
        }
        for (size, by) in sizes {
            for (other, modulus) in sizes {
                if all(&|at| at / by % modulus) {
                    return Some(binary(Binary::Mod, binary(Binary::Div, var, size), other));
                }
            }
        }
    }
    None
}

/// Trip counts of labelled loops; of ragged ones the size of a part.
fn trips(body: &[Stmt], found: &mut Vec<Expr>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                let size = match &inner.hi.kind {
                    ExprKind::Builtin(Builtin::Min, parts) => &parts[0],
                    _ => &inner.hi,
                };
                if inner.label.is_some() && !found.iter().any(|other| other.kind == size.kind) {
                    found.push(size.clone());
                }
                trips(&inner.body, found);
            }
            StmtKind::If(_, then, other) => {
                trips(then, found);
                trips(other, found);
            }
            _ => {}
        }
    }
}
