//! Loop nests as trees to be rewritten: flat sequences, fresh loops, substitution of loop variables.

use act_isa::{Affine, BetaVal, LoopId, Program, View};

/// Hands out loops that the program does not have yet: a loop variable names one loop.
pub(super) struct FreshLoops(u32);

impl FreshLoops {
    pub(super) fn after(program: &Program) -> FreshLoops {
        let mut last = None;
        for_each_loop(program, &mut |iv, _| last = last.max(Some(iv.0)));
        FreshLoops(last.map_or(0, |last| last + 1))
    }

    pub(super) fn fresh(&mut self) -> LoopId {
        self.0 += 1;
        LoopId(self.0 - 1)
    }
}

pub(super) fn for_each_loop(program: &Program, visit: &mut impl FnMut(LoopId, u64)) {
    match program {
        Program::Seq(parts) => parts.iter().for_each(|part| for_each_loop(part, visit)),
        Program::For { iv, trip, body, .. } => {
            visit(*iv, *trip);
            for_each_loop(body, visit);
        }
        Program::Instr { .. } | Program::HostCopy { .. } | Program::Fence => {}
    }
}

/// The same program without sequences inside sequences; the body of every loop is a sequence.
pub(super) fn flattened(program: Program) -> Program {
    let mut parts = Vec::new();
    flatten_into(program, &mut parts);
    Program::Seq(parts)
}

fn flatten_into(program: Program, parts: &mut Vec<Program>) {
    match program {
        Program::Seq(inner) => inner.into_iter().for_each(|part| flatten_into(part, parts)),
        Program::For { iv, trip, parallel, body } => {
            parts.push(Program::For { iv, trip, parallel, body: Box::new(flattened(*body)) });
        }
        other => parts.push(other),
    }
}

/// `affine` with `iv` replaced; `None` on overflow.
pub(super) fn substitute(affine: &Affine, iv: LoopId, by: &Affine) -> Option<Affine> {
    let Some(&(_, factor)) = affine.ivs.iter().find(|term| term.0 == iv) else { return Some(affine.clone()) };
    let mut rest = affine.clone();
    rest.ivs.retain(|term| term.0 != iv);
    rest.checked_add(&by.checked_scale(factor)?)
}

/// The program with every use of `iv` replaced, and every loop inside it renamed to a fresh one. `None` when an address
/// overflows.
pub(super) fn instance(
    program: &Program,
    replaced: &mut Vec<(LoopId, Affine)>,
    loops: &mut FreshLoops,
) -> Option<Program> {
    let affine = |value: &Affine, replaced: &[(LoopId, Affine)]| {
        replaced.iter().try_fold(value.clone(), |value, (iv, by)| substitute(&value, *iv, by))
    };
    let view = |view: &View, replaced: &[(LoopId, Affine)]| {
        Some(View { start: affine(&view.start, replaced)?, ..view.clone() })
    };
    Some(match program {
        Program::Seq(parts) => {
            Program::Seq(parts.iter().map(|part| instance(part, replaced, loops)).collect::<Option<_>>()?)
        }
        Program::For { iv, trip, parallel, body } => {
            let fresh = loops.fresh();
            replaced.push((*iv, Affine { c0: 0, ivs: vec![(fresh, 1)] }));
            let body = instance(body, replaced, loops);
            replaced.pop();
            Program::For { iv: fresh, trip: *trip, parallel: *parallel, body: Box::new(body?) }
        }
        Program::Instr { op, alpha, beta } => {
            let beta = beta.iter().map(|value| match value {
                BetaVal::Int(value) => affine(value, replaced).map(BetaVal::Int),
                BetaVal::Hbm(space, value) => affine(value, replaced).map(|v| BetaVal::Hbm(*space, v)),
            });
            Program::Instr { op: *op, alpha: alpha.clone(), beta: beta.collect::<Option<_>>()? }
        }
        Program::HostCopy { from, to } => {
            Program::HostCopy { from: view(from, replaced)?, to: view(to, replaced)? }
        }
        Program::Fence => Program::Fence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(c0: i64, ivs: &[(u32, i64)]) -> Affine {
        Affine { c0, ivs: ivs.iter().map(|&(iv, k)| (LoopId(iv), k)).collect() }
    }

    #[test]
    fn a_loop_variable_is_replaced_by_an_affine_value() {
        let value = affine(5, &[(0, 16), (1, 3)]);
        let by = affine(2, &[(1, 4), (7, 1)]);
        assert_eq!(substitute(&value, LoopId(0), &by), Some(affine(37, &[(1, 67), (7, 16)])));
        assert_eq!(substitute(&value, LoopId(9), &by), Some(value.clone()));
        assert_eq!(substitute(&affine(0, &[(0, i64::MAX)]), LoopId(0), &affine(2, &[])), None);
    }

    #[test]
    fn sequences_inside_sequences_vanish() {
        let inner = Program::Seq(vec![Program::Fence, Program::Seq(vec![Program::Fence])]);
        let nest = Program::For { iv: LoopId(3), trip: 2, parallel: true, body: Box::new(inner) };
        let flat = flattened(Program::Seq(vec![nest, Program::Seq(vec![])]));
        let Program::Seq(parts) = &flat else { panic!("a sequence") };
        let [Program::For { body, .. }] = &parts[..] else { panic!("one loop") };
        assert_eq!(**body, Program::Seq(vec![Program::Fence, Program::Fence]));
        assert_eq!(FreshLoops::after(&flat).fresh(), LoopId(4));
    }
}
