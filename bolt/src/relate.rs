//! Relate: relations read off the data movement, where a case asks for that. A store of an input says where the input lies;
//! a load of an output says where the output lies; the loops of the aligned program say when it is made or used up. What is
//! inferred is claimed like anything else, so a wrong guess proves nothing.

use crate::hex::expand::{Expanded, constant, substitute};
use crate::hex::source::Span;
use crate::hex::syntax::*;
use crate::moments::Moments;
use std::collections::{HashMap, HashSet};

/// A copy of one place to another, in its loops.
struct Movement {
    to: (Sym, Vec<Expr>),
    from: (Sym, Vec<Expr>),
    vars: Vec<(Sym, Expr, Expr)>,
    /// The loops around it that run in order: counter and label.
    order: Vec<(Sym, Option<Sym>)>,
    span: Span,
}

/// Relations that the data movement suggests. Inputs that a run overwrites are taken to be used up when they are read.
/// `fuel` bounds the runs that guards are read off. With `ordered`, inputs are related as far as loops with labels have
/// stored them: where sizes are not known, addresses cannot be read backwards, and the loops need a claim.
#[must_use]
pub fn infer(case: &Expanded, ordered: bool, fuel: u64) -> Vec<Relation> {
    let mut movements = Vec::new();
    let params: Vec<Sym> = case.symbolic.iter().map(|param| param.name).collect();
    gather(&case.hardware, &params, &mut Vec::new(), &mut Vec::new(), &mut movements);
    let mut maps = Vec::new();
    parallel(&case.hardware, &mut maps);
    let mut relations = Vec::new();
    let outputs = movements
        .iter()
        .filter_map(|movement| ensured(case, movement.to.0).map(|tensor| [tensor, movement.from.0]));
    let watched: HashSet<Sym> = outputs.flatten().collect();
    let moments = Moments::of(case, &watched, &maps, fuel);
    let known = |left: Sym, right: Sym| {
        case.relations
            .iter()
            .any(|relation| root(&relation.left) == Some(left) && root(&relation.right) == Some(right))
    };
    for movement in &movements {
        let role = |name: Sym| case.decl(name).map(|decl| decl.role);
        let place = |(name, indices): &(Sym, Vec<Expr>)| Expr {
            kind: ExprKind::Access(*name, indices.clone()),
            span: movement.span,
        };
        let relation = |left: Expr, right: Expr, made: Position, used: Position| Relation {
            left,
            right,
            vars: movement.vars.clone(),
            made,
            used,
            at: Vec::new(),
            span: movement.span,
        };
        if role(movement.from.0) == Some(Role::Input) && !known(movement.to.0, movement.from.0) {
            let (to, from) = (place(&movement.to), place(&movement.from));
            let stays = moments.as_ref().is_none_or(|moments| moments.stays(&to, &from, &movement.vars));
            let used =
                if stays { Some(Vec::new()) } else { position(&case.aligned, &movement.from, false, &maps) };
            let stored: Position = movement
                .order
                .iter()
                .filter_map(|(counter, label)| {
                    Some((Expr { kind: ExprKind::Name(*counter), span: movement.span }, (*label)?))
                })
                .collect();
            let made = if ordered { stored } else { Vec::new() };
            if let Some(used) = used {
                relations.push(relation(to, from, made, used));
            }
        }
        if let Some(tensor) = ensured(case, movement.to.0)
            && !known(movement.from.0, tensor)
        {
            let output = (tensor, movement.to.1.clone());
            let (from, to) = (place(&movement.from), place(&output));
            let read_off = moments.as_ref().and_then(|moments| moments.made(&from, &to, &movement.vars));
            if let Some(made) = read_off.or_else(|| position(&case.aligned, &output, true, &maps)) {
                relations.push(relation(from, to, made, Vec::new()));
            }
        }
    }
    relations
}

/// Labels for the loops in which the driver stores inputs, where they have none.
#[must_use]
pub fn storing(case: &mut Expanded) -> HashMap<Span, Sym> {
    fn walk(body: &[Stmt], inputs: &HashSet<Sym>, found: &mut Vec<(Span, Sym)>) -> bool {
        let mut any = false;
        for stmt in body {
            match &stmt.kind {
                StmtKind::Loop(inner) => {
                    let stores = walk(&inner.body, inputs, found);
                    if stores && inner.label.is_none() && inner.kind != LoopKind::Parallel {
                        found.push((stmt.span, inner.counter));
                    }
                    any |= stores;
                }
                StmtKind::Assign(_, _, Expr { kind: ExprKind::Access(from, _), .. }) => {
                    any |= inputs.contains(from);
                }
                _ => {}
            }
        }
        any
    }
    let inputs = case.decls.iter().filter(|decl| decl.role == Role::Input).map(|decl| decl.name).collect();
    let mut found = Vec::new();
    walk(&case.hardware, &inputs, &mut found);
    let name = |(number, (span, counter)): (usize, (Span, Sym))| {
        let text = format!("{}.store.{number}", case.names.text(counter));
        (span, case.names.intern(&text))
    };
    found.into_iter().enumerate().map(name).collect()
}

/// Relations between what both programs accumulate in one aligned loop, in buffers that are no outputs.
#[must_use]
pub fn accumulated(case: &Expanded) -> Vec<Relation> {
    let (mut hardware, mut ir) = (Vec::new(), Vec::new());
    updates(&case.hardware, &mut Vec::new(), &mut hardware);
    updates(&case.aligned, &mut Vec::new(), &mut ir);
    let mut relations = Vec::new();
    for own in &ir {
        let Some(at) = own.around.last().and_then(|inner| inner.label) else { continue };
        if case.decl(own.place.0).is_none_or(|decl| decl.role != Role::State) {
            continue;
        }
        let partner = hardware.iter().find(|other| {
            let label = other.around.iter().rev().find_map(|inner| inner.label);
            label == Some(at) && matches!(case.decl(other.place.0).map(|decl| decl.ty), Some(Type::Elem(_)))
        });
        let Some(partner) = partner else { continue };
        // The loop that goes on with it: the innermost around whose counter is in neither place.
        let mentions = |indices: &[Expr], name: Sym| {
            let mut found = false;
            for index in indices {
                visit_expr(index, &mut |part| {
                    found |= matches!(part.kind, ExprKind::Name(other) if other == name);
                });
            }
            found
        };
        let over = partner.around.iter().rposition(|inner| {
            inner.kind == LoopKind::Hardware
                && inner.label.is_some()
                && !mentions(&partner.place.1, inner.counter)
        });
        let Some(over) = over else { continue };
        let counters: HashMap<Sym, Expr> = own
            .around
            .iter()
            .filter_map(|inner| {
                let same = partner
                    .around
                    .iter()
                    .find(|other| inner.label.is_some() && other.label == inner.label)?;
                Some((inner.counter, Expr { kind: ExprKind::Name(same.counter), span: own.span }))
            })
            .collect();
        let vars = partner.around[over + 1..]
            .iter()
            .map(|inner| (inner.counter, inner.lo.clone(), inner.hi.clone()))
            .collect();
        let access =
            |name, indices: Vec<Expr>| Expr { kind: ExprKind::Access(name, indices), span: partner.span };
        let indices = own.place.1.iter().map(|index| substitute(index, &counters)).collect();
        relations.push(Relation {
            left: access(partner.place.0, partner.place.1.clone()),
            right: access(own.place.0, indices),
            vars,
            made: Vec::new(),
            used: Vec::new(),
            at: partner.around[over].label.into_iter().collect(),
            span: partner.span,
        });
    }
    relations
}

/// A write to a place that its value is read from.
struct Update {
    place: (Sym, Vec<Expr>),
    around: Vec<Loop>,
    span: Span,
}

fn updates(body: &[Stmt], around: &mut Vec<Loop>, found: &mut Vec<Update>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                around.push(Loop { body: Vec::new(), ..(**inner).clone() });
                updates(&inner.body, around, found);
                around.pop();
            }
            StmtKind::If(_, then, other) => {
                updates(then, around, found);
                updates(other, around, found);
            }
            StmtKind::Assign(name, indices, value) if !indices.is_empty() => {
                let mut reads = false;
                visit_expr(value, &mut |part| reads |= root(part) == Some(*name));
                if reads {
                    let place = (*name, indices.clone());
                    found.push(Update { place, around: around.clone(), span: stmt.span });
                }
            }
            _ => {}
        }
    }
}

fn root(expr: &Expr) -> Option<Sym> {
    match expr.kind {
        ExprKind::Access(name, _) | ExprKind::Name(name) => Some(name),
        _ => None,
    }
}

/// The tensor that an output of the hardware must equal, at the same indices.
fn ensured(case: &Expanded, output: Sym) -> Option<Sym> {
    case.posts.iter().find_map(|post| match (&post.left.kind, &post.right.kind) {
        (ExprKind::Access(left, a), ExprKind::Access(right, b))
            if *left == output && a.iter().zip(b).all(|(a, b)| a.kind == b.kind) =>
        {
            Some(*right)
        }
        _ => None,
    })
}

/// Copies whose indices are made of counters alone.
fn gather(
    body: &[Stmt],
    params: &[Sym],
    around: &mut Vec<(Sym, Expr, Expr)>,
    order: &mut Vec<(Sym, Option<Sym>)>,
    found: &mut Vec<Movement>,
) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                around.push((inner.counter, inner.lo.clone(), inner.hi.clone()));
                let serial = inner.kind != LoopKind::Parallel;
                if serial {
                    order.push((inner.counter, inner.label));
                }
                gather(&inner.body, params, around, order, found);
                order.truncate(order.len() - usize::from(serial));
                around.pop();
            }
            StmtKind::Assign(name, indices, Expr { kind: ExprKind::Access(from, from_indices), .. }) => {
                let mut plain = true;
                for index in indices.iter().chain(from_indices) {
                    visit_expr(index, &mut |expr| {
                        plain &= match &expr.kind {
                            ExprKind::Name(name) => {
                                params.contains(name) || around.iter().any(|(counter, _, _)| counter == name)
                            }
                            ExprKind::Access(..) => false,
                            _ => true,
                        };
                    });
                }
                if plain && !indices.is_empty() {
                    found.push(Movement {
                        to: (*name, indices.clone()),
                        from: (*from, from_indices.clone()),
                        vars: around.clone(),
                        order: order.clone(),
                        span: stmt.span,
                    });
                }
            }
            _ => {}
        }
    }
}

/// Labels of the hardware's maps: these are one write each, and no position.
fn parallel(body: &[Stmt], found: &mut Vec<Sym>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                if inner.kind == LoopKind::Parallel {
                    found.extend(inner.label);
                }
                parallel(&inner.body, found);
            }
            StmtKind::If(_, then, other) => {
                parallel(then, found);
                parallel(other, found);
            }
            _ => {}
        }
    }
}

/// In which iterations of labelled loops the aligned program writes (or reads) a place.
fn position(body: &[Stmt], place: &(Sym, Vec<Expr>), written: bool, maps: &[Sym]) -> Option<Position> {
    fn walk(
        body: &[Stmt],
        place: &(Sym, Vec<Expr>),
        written: bool,
        maps: &[Sym],
        around: &mut Vec<(Sym, Option<Sym>, i64)>,
    ) -> Option<Position> {
        for stmt in body {
            let mut accesses = Vec::new();
            let mut see = |expr: &Expr| {
                if let ExprKind::Access(name, indices) = &expr.kind
                    && *name == place.0
                {
                    accesses.push(indices.clone());
                }
            };
            match &stmt.kind {
                StmtKind::Loop(inner) => {
                    around.push((inner.counter, inner.label, constant(&inner.hi).unwrap_or(0)));
                    let found = walk(&inner.body, place, written, maps, around);
                    around.pop();
                    if found.is_some() {
                        return found;
                    }
                }
                StmtKind::Assign(name, indices, _) if written && *name == place.0 => {
                    accesses.push(indices.clone());
                }
                StmtKind::Assign(_, _, value) | StmtKind::Let(_, value) if !written => {
                    visit_expr(value, &mut see);
                }
                _ => {}
            }
            for indices in accesses {
                let mut values = HashMap::new();
                for (pattern, wanted) in indices.iter().zip(&place.1) {
                    invert(pattern, wanted, around, &mut values);
                }
                let labelled =
                    around.iter().filter_map(|(counter, label, _)| Some((values.get(counter), (*label)?)));
                let labelled = labelled.take_while(|(_, label)| !maps.contains(label));
                let found: Position =
                    labelled.map_while(|(value, label)| Some((value?.clone(), label))).collect();
                if !found.is_empty() {
                    return Some(found);
                }
            }
        }
        None
    }
    walk(body, place, written, maps, &mut Vec::new())
}

/// Values of counters for which an index is what is wanted: the index is taken apart as multiples and digits.
fn invert(
    pattern: &Expr,
    wanted: &Expr,
    around: &[(Sym, Option<Sym>, i64)],
    values: &mut HashMap<Sym, Expr>,
) {
    let span = wanted.span;
    let binary = |operator, a: Expr, b: Expr| Expr {
        kind: ExprKind::Binary(operator, Box::new(a), Box::new(b)),
        span,
    };
    match (&pattern.kind, &wanted.kind) {
        (ExprKind::Name(name), _) => {
            values.entry(*name).or_insert_with(|| wanted.clone());
        }
        (ExprKind::Binary(Binary::Add, a, b), ExprKind::Binary(Binary::Add, c, d)) => {
            invert(a, c, around, values);
            invert(b, d, around, values);
        }
        (ExprKind::Binary(Binary::Mul, a, b), ExprKind::Binary(Binary::Mul, c, d)) if b.kind == d.kind => {
            invert(a, c, around, values);
        }
        (ExprKind::Binary(Binary::Mul, a, b), _) => {
            let (factor, inner) = if constant(a).is_some() { (a, b) } else { (b, a) };
            if constant(factor).is_some() {
                invert(inner, &binary(Binary::Div, wanted.clone(), (**factor).clone()), around, values);
            }
        }
        // `a * k + b` with b below k: quotient and remainder.
        (ExprKind::Binary(Binary::Add, a, b), _) => {
            if let ExprKind::Binary(Binary::Mul, _, factor) = &a.kind
                && let Some(size) = constant(factor)
            {
                invert(a, wanted, around, values);
                if let ExprKind::Name(name) = b.kind
                    && around.iter().any(|(counter, _, hi)| *counter == name && *hi <= size)
                {
                    invert(b, &binary(Binary::Mod, wanted.clone(), (**factor).clone()), around, values);
                }
            }
        }
        _ => {}
    }
}
