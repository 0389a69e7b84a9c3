//! The cost model that adds up the costs that the description states: a loop costs its trip count times its body.

use super::CostModel;
use crate::pii::{PiiGraph, PiiOp};
use act_isa::{AttrVal, Env, InstrId, Isa, Program, View};
use sha2::{Digest, Sha256};

/// The sum of the instructions' cost expressions, and [`HOST_COPY_CYCLES_PER_BYTE`] for what the host packs. Sums
/// saturate.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumOfCosts;

/// Cycles charged for every byte that the host copies: dearer than any load of the same bytes, so that packing is
/// chosen only where no instruction can stride.
pub const HOST_COPY_CYCLES_PER_BYTE: u64 = 1;

/// Cost of one instruction as its description states it; instructions whose expression has no value, or a negative
/// one, cost nothing.
pub fn instruction_cost(isa: &Isa, op: InstrId, alpha: &[AttrVal]) -> u64 {
    let Some(instr) = isa.instrs.get(usize::from(op.0)) else { return 0 };
    let alpha: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
    let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
    let env = Env { alpha: &alpha, beta: &[], registers: &registers };
    instr.cost.eval(env).ok().and_then(|c| u64::try_from(c).ok()).unwrap_or(0)
}

impl CostModel for SumOfCosts {
    fn adds_stated_costs(&self) -> bool {
        true
    }

    fn lower_bound(&self, isa: &Isa, graph: &PiiGraph) -> u64 {
        graph.nodes.iter().fold(0, |sum: u64, node| match &node.op {
            PiiOp::Instr { op, alpha, .. } => sum.saturating_add(instruction_cost(isa, *op, alpha)),
            _ => sum,
        })
    }

    fn cost(&self, isa: &Isa, program: &Program) -> u64 {
        match program {
            Program::Seq(parts) => parts.iter().fold(0, |sum, p| sum.saturating_add(self.cost(isa, p))),
            Program::For { trip, body, .. } => trip.saturating_mul(self.cost(isa, body)),
            Program::Instr { op, alpha, .. } => instruction_cost(isa, *op, alpha),
            Program::HostCopy { from, .. } => view_bytes(from).saturating_mul(HOST_COPY_CYCLES_PER_BYTE),
            Program::Fence => 0,
        }
    }

    fn nest_bound(&self, isa: &Isa, program: &Program) -> u64 {
        self.cost(isa, program)
    }

    fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"sum of costs");
        hash.update(HOST_COPY_CYCLES_PER_BYTE.to_le_bytes());
        hash.finalize().into()
    }
}

pub(super) fn view_bytes(view: &View) -> u64 {
    view.dims.iter().fold(view.elem.bytes(), |bytes, &(len, _)| bytes.saturating_mul(len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::{ElemType, Shape};
    use act_isa::expr::Expr;
    use act_isa::{AttrDecl, AttrKind, Hbm, Instr, LoopId, Space};

    fn one_instruction(cost: Expr) -> Isa {
        let n = AttrDecl { name: "n".into(), kind: AttrKind::Int { min: 0, max: 99 } };
        let instr = Instr { name: "i".into(), alpha: vec![n], cost, ..Instr::default() };
        let hbm = Hbm { name: "d0".into(), size: 0, align: 1, ordered: false };
        Isa { name: "t".into(), hbm, instrs: vec![instr], ..Isa::default() }
    }

    #[test]
    fn loops_multiply_and_copies_cost_their_bytes() {
        let isa = one_instruction(Expr::Add(Box::new(Expr::Alpha(0)), Box::new(Expr::Int(3))));
        let run = |n: i64| Program::Instr { op: InstrId(0), alpha: vec![AttrVal::Int(n)], beta: Vec::new() };
        let view = View::row_major(Space::Scratch, &Shape::new(ElemType::F32, vec![4, 5]));
        let inner = Program::For { iv: LoopId(1), trip: 7, parallel: false, body: Box::new(run(2)) };
        let copy = Program::HostCopy { from: view.clone(), to: view };
        let nest = Program::For {
            iv: LoopId(0),
            trip: 10,
            parallel: true,
            body: Box::new(Program::Seq(vec![inner, run(0), Program::Fence, copy])),
        };
        assert_eq!(SumOfCosts.cost(&isa, &nest), 10 * (7 * 5 + 3 + 80));
        let huge = Program::For { iv: LoopId(2), trip: u64::MAX, parallel: false, body: Box::new(nest) };
        assert_eq!(SumOfCosts.cost(&isa, &huge), u64::MAX);
    }
}
