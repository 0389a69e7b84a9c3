//! The product program: hardware code with the aligned tensor program woven in. Seen from either side it is that side's
//! program, statement by statement; only the order between the two, which share no state, is ours.

use crate::hex::source::Span;
use crate::hex::syntax::*;
use std::collections::{HashMap, HashSet};

/// A loop's head on one side; the body is in the product.
#[derive(Clone, Debug)]
pub struct Head {
    pub kind: LoopKind,
    pub counter: Sym,
    pub lo: Expr,
    pub hi: Expr,
    pub whereby: Vec<Expr>,
    pub until: Option<Expr>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct ProductLoop {
    pub label: Option<Sym>,
    pub hardware: Option<Head>,
    pub ir: Option<Head>,
    pub body: Vec<Node>,
}

impl ProductLoop {
    /// The head whose bounds count: the tensor program's where there is one.
    #[must_use]
    pub fn head(&self) -> &Head {
        self.ir.as_ref().or(self.hardware.as_ref()).expect("a loop is of one side at least")
    }
}

#[derive(Clone, Debug)]
pub enum Node {
    /// A statement without loops in it.
    Plain(Stmt),
    Branch(Expr, Vec<Node>, Vec<Node>, Span),
    Loop(Box<ProductLoop>),
}

/// Weaves two programs. Loops of one label become one where they stand in the same place of both.
#[must_use]
pub fn weave(hardware: &[Stmt], ir: &[Stmt]) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut next = 0;
    for stmt in hardware {
        let StmtKind::Loop(inner) = &stmt.kind else {
            nodes.push(plain(stmt, true));
            continue;
        };
        let partner = ir[next..].iter().position(|other| match &other.kind {
            StmtKind::Loop(loop_of_ir) => inner.label.is_some() && loop_of_ir.label == inner.label,
            _ => false,
        });
        let Some(offset) = partner else {
            nodes.push(plain(stmt, true));
            continue;
        };
        nodes.extend(ir[next..next + offset].iter().map(|stmt| plain(stmt, false)));
        let other = &ir[next + offset];
        next += offset + 1;
        let StmtKind::Loop(loop_of_ir) = &other.kind else { continue };
        nodes.push(Node::Loop(Box::new(ProductLoop {
            label: inner.label,
            hardware: Some(head(inner, stmt.span)),
            ir: Some(head(loop_of_ir, other.span)),
            body: weave(&inner.body, &loop_of_ir.body),
        })));
    }
    nodes.extend(ir[next..].iter().map(|stmt| plain(stmt, false)));
    nodes
}

fn head(inner: &Loop, span: Span) -> Head {
    Head {
        kind: inner.kind,
        counter: inner.counter,
        lo: inner.lo.clone(),
        hi: inner.hi.clone(),
        whereby: inner.whereby.clone(),
        until: inner.until.clone(),
        span,
    }
}

/// A statement of one side alone.
fn plain(stmt: &Stmt, hardware: bool) -> Node {
    match &stmt.kind {
        StmtKind::Loop(inner) => {
            let own = Some(head(inner, stmt.span));
            Node::Loop(Box::new(ProductLoop {
                label: inner.label,
                hardware: own.clone().filter(|_| hardware),
                ir: own.filter(|_| !hardware),
                body: inner.body.iter().map(|stmt| plain(stmt, hardware)).collect(),
            }))
        }
        StmtKind::If(condition, then, other) => {
            let side = |body: &[Stmt]| body.iter().map(|stmt| plain(stmt, hardware)).collect();
            Node::Branch(condition.clone(), side(then), side(other), stmt.span)
        }
        _ => Node::Plain(stmt.clone()),
    }
}

/// Renames counters and locals of the tensor program that the hardware code uses as well, so that the product can hold
/// both.
#[must_use]
pub fn apart(ir: &[Stmt], hardware: &[Stmt], names: &mut Names) -> Vec<Stmt> {
    let (mut own, mut other) = (HashSet::new(), HashSet::new());
    binders(ir, &mut own);
    binders(hardware, &mut other);
    let mut renamed: Vec<Sym> = own.intersection(&other).copied().collect();
    renamed.sort_unstable();
    let map: HashMap<Sym, Sym> =
        renamed.into_iter().map(|sym| (sym, names.intern(&format!("{}.ir", names.text(sym))))).collect();
    rename_body(ir, &map)
}

fn binders(body: &[Stmt], found: &mut HashSet<Sym>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Let(name, _) => {
                found.insert(*name);
            }
            StmtKind::Loop(inner) => {
                found.insert(inner.counter);
                binders(&inner.body, found);
            }
            StmtKind::If(_, then, other) => {
                binders(then, found);
                binders(other, found);
            }
            _ => {}
        }
    }
}

fn rename_body(body: &[Stmt], map: &HashMap<Sym, Sym>) -> Vec<Stmt> {
    let name = |sym: &Sym| map.get(sym).copied().unwrap_or(*sym);
    let expr = |expr: &Expr| rename(expr, map);
    let kind = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Let(sym, value) => StmtKind::Let(name(sym), expr(value)),
        StmtKind::Assign(sym, indices, value) => {
            StmtKind::Assign(name(sym), indices.iter().map(expr).collect(), expr(value))
        }
        StmtKind::If(condition, then, other) => {
            StmtKind::If(expr(condition), rename_body(then, map), rename_body(other, map))
        }
        StmtKind::Call(sym, arguments) => StmtKind::Call(*sym, arguments.iter().map(expr).collect()),
        StmtKind::Loop(inner) => StmtKind::Loop(Box::new(Loop {
            kind: inner.kind,
            label: inner.label,
            counter: name(&inner.counter),
            lo: expr(&inner.lo),
            hi: expr(&inner.hi),
            whereby: inner.whereby.iter().map(expr).collect(),
            until: inner.until.as_ref().map(expr),
            body: rename_body(&inner.body, map),
        })),
    };
    body.iter().map(|stmt| Stmt { kind: kind(stmt), span: stmt.span }).collect()
}

fn rename(expr: &Expr, map: &HashMap<Sym, Sym>) -> Expr {
    let all = |exprs: &[Expr]| exprs.iter().map(|expr| rename(expr, map)).collect();
    let boxed = |expr: &Expr| Box::new(rename(expr, map));
    let name = |sym: &Sym| map.get(sym).copied().unwrap_or(*sym);
    let kind = match &expr.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) => expr.kind.clone(),
        ExprKind::Name(sym) => ExprKind::Name(name(sym)),
        ExprKind::Access(sym, indices) => ExprKind::Access(*sym, all(indices)),
        ExprKind::Apply(sym, arguments) => ExprKind::Apply(*sym, all(arguments)),
        ExprKind::Builtin(builtin, arguments) => ExprKind::Builtin(*builtin, all(arguments)),
        ExprKind::Wrap(bits, inner) => ExprKind::Wrap(*bits, boxed(inner)),
        ExprKind::Negate(inner) => ExprKind::Negate(boxed(inner)),
        ExprKind::Not(inner) => ExprKind::Not(boxed(inner)),
        ExprKind::Binary(operator, left, right) => ExprKind::Binary(*operator, boxed(left), boxed(right)),
        ExprKind::Select(condition, then, other) => {
            ExprKind::Select(boxed(condition), boxed(then), boxed(other))
        }
    };
    Expr { kind, span: expr.span }
}

/// What statements of a product write: buffers, registers and locals.
pub fn written(nodes: &[Node], found: &mut HashSet<Sym>) {
    for node in nodes {
        match node {
            Node::Plain(stmt) => match &stmt.kind {
                StmtKind::Let(name, _) | StmtKind::Assign(name, ..) => {
                    found.insert(*name);
                }
                _ => {}
            },
            Node::Branch(_, then, other, _) => {
                written(then, found);
                written(other, found);
            }
            Node::Loop(inner) => written(&inner.body, found),
        }
    }
}

/// Labels of the loops in a part of a product, outermost first.
pub fn labels(nodes: &[Node], found: &mut Vec<Sym>) {
    for node in nodes {
        match node {
            Node::Plain(_) => {}
            Node::Branch(_, then, other, _) => {
                labels(then, found);
                labels(other, found);
            }
            Node::Loop(inner) => {
                found.extend(inner.label);
                labels(&inner.body, found);
            }
        }
    }
}
