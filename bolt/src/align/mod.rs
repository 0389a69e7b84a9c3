//! Align: the tensor program rewritten so that its loops are the hardware's. How it was found is not trusted: what was found
//! is run against the original.

mod extract;
mod lift;
mod lower;
pub mod nest;
mod numeric;
pub mod rules;
pub mod search;
pub mod sizes;
pub mod skeleton;

pub use search::{Alignment, align, labelled};

use crate::hex::domain::{Domain, Reading};
use crate::hex::expand::Expanded;
use crate::hex::run::{Fault, run};
use crate::hex::source::Source;
use crate::hex::syntax::{Role, Stmt};

/// Compares a rewritten program with the original in ideal arithmetic, on random inputs, at the case's parameters.
///
/// # Errors
/// They differ, or one of them fails; the reason.
pub fn check_rewriting(
    case: &Expanded,
    rewritten: &[Stmt],
    source: &Source,
    fuel: u64,
) -> Result<(), String> {
    let domain = Domain::new(case, Reading::Ideal, 1);
    let fail = |fault: Fault| format!("{} ({})", fault.kind, source.line(fault.span));
    let original = run(case, &case.ir, &domain, fuel).map_err(fail)?;
    let rewritten = run(case, rewritten, &domain, fuel).map_err(fail)?;
    for decl in case.decls.iter().filter(|decl| decl.role == Role::Output) {
        let (a, b) = match (original.buffers.get(&decl.name), rewritten.buffers.get(&decl.name)) {
            (Some(a), Some(b)) => (a, b),
            (None, None) => continue,
            _ => return Err(format!("only one of both programs has `{}`", case.names.text(decl.name))),
        };
        if let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) {
            return Err(format!(
                "the aligned program is not the tensor program in ideal arithmetic: `{}` differs at element {at}",
                case.names.text(decl.name)
            ));
        }
    }
    Ok(())
}
