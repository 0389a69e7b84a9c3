//! The sync-skeleton of hardware code: its labelled loops that compute tensors. Loops that only move data are left out, and
//! so are statements.

use crate::hex::syntax::*;

/// A loop of the skeleton.
#[derive(Clone, Debug, PartialEq)]
pub struct SkeletonLoop {
    pub label: Sym,
    /// How often it runs, as claimed: for a hardware loop only a hint, since its exit test is proved elsewhere.
    pub trips: Expr,
    pub inner: Vec<SkeletonLoop>,
}

/// The skeleton of statements, in their order.
#[must_use]
pub fn skeleton(body: &[Stmt]) -> Vec<SkeletonLoop> {
    let mut found = Vec::new();
    for stmt in body {
        match &stmt.kind {
            StmtKind::Loop(inner) => {
                let nested = skeleton(&inner.body);
                match inner.label {
                    Some(label) if computes(&inner.body) && inner.lo.kind == ExprKind::Int(0) => {
                        found.push(SkeletonLoop { label, trips: inner.hi.clone(), inner: nested });
                    }
                    _ => found.extend(nested),
                }
            }
            StmtKind::If(_, then, other) => {
                found.extend(skeleton(then));
                found.extend(skeleton(other));
            }
            _ => {}
        }
    }
    found
}

/// Whether statements make elements from elements, rather than move or clear them.
fn computes(body: &[Stmt]) -> bool {
    let mut found = false;
    visit_exprs(body, &mut |expr| {
        found |= matches!(&expr.kind, ExprKind::Apply(_, arguments) if !arguments.is_empty());
    });
    found
}
