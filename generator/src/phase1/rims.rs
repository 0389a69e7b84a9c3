//! How the semantics of instructions see their slots: the movement operators between a slot and the value that is
//! computed with, on the side of the operands and on that of the result. A slot seen through them is the same bytes as
//! the value, so rules may put any value of the seen shape into such a slot. Knows no e-graph.

use super::polynomial::{Polynomial, Solution};
use super::vocabulary::key;
use act_hlo::{ElemType, OpKind, Shape};
use act_isa::{Env, Expr, Instr, Isa, Slice, Stmt, SymOp};
use std::sync::Arc;

/// A movement operator that loses nothing, with the sizes of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Reshape,
    Transpose(Vec<usize>),
    Bitcast,
}

impl Step {
    fn of(op: &SymOp) -> Option<Step> {
        match op {
            OpKind::Reshape => Some(Step::Reshape),
            OpKind::Transpose { perm } => Some(Step::Transpose(perm.clone())),
            OpKind::BitcastConvert => Some(Step::Bitcast),
            _ => None,
        }
    }
}

/// Which side of the semantics a rim is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The value is operand k of the computing operator.
    Operand(usize),
    /// The value is the computing operator's.
    Result,
}

type SymShape = (ElemType, Vec<Expr>);

/// The movement between a slot and a value that an instruction computes with.
#[derive(Clone, Debug)]
pub(crate) struct Rim {
    /// The operator that computes, and the element type of its result.
    pub(crate) op: String,
    pub(crate) elem: ElemType,
    pub(crate) side: Side,
    /// Attributes and conditions, without semantics.
    instr: Arc<Instr>,
    /// The slot's type, then the type after every step, up to the value's.
    shapes: Vec<SymShape>,
    /// From the slot to the value. On the side of the result the instruction does them in the other direction.
    pub(crate) steps: Vec<Step>,
}

/// A rim at fixed sizes: what a value is as a slot, and back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConcreteRim {
    /// The slot's shape, then the shape after every step, up to the value's.
    pub(crate) shapes: Vec<Shape>,
    /// From the slot to the value.
    pub(crate) steps: Vec<Step>,
}

impl Rim {
    /// The rim at the sizes at which the value has this shape, when these determine it.
    pub(crate) fn at(&self, value: &Shape) -> Option<ConcreteRim> {
        let (elem, dims) = self.shapes.last()?;
        if *elem != value.elem || dims.len() != value.rank() {
            return None;
        }
        let mut solution = Solution::new(&self.instr);
        for (expr, &len) in dims.iter().zip(&value.dims) {
            if !solution.equate(&Polynomial::of(expr), i64::try_from(len).ok()?) {
                return None;
            }
        }
        let env = Env { alpha: solution.ints(), ..Env::default() };
        let shapes = self.shapes.iter().map(|(elem, dims)| {
            let dims = dims.iter().map(|d| d.eval(env).ok().and_then(|v| u64::try_from(v).ok()));
            dims.collect::<Option<Vec<u64>>>().map(|dims| Shape::new(*elem, dims))
        });
        Some(ConcreteRim { shapes: shapes.collect::<Option<_>>()?, steps: self.steps.clone() })
    }
}

/// All rims of a description that move anything, each once.
pub(crate) fn rims(isa: &Isa) -> Vec<Rim> {
    let mut all: Vec<Rim> = Vec::new();
    for instr in &isa.instrs {
        let bare = Arc::new(Instr {
            alpha: instr.alpha.clone(),
            beta: instr.beta.clone(),
            requires: instr.requires.clone(),
            ..Instr::default()
        });
        let found = operand_rims(instr, &bare).into_iter().chain(result_rims(instr, &bare));
        for rim in found.chain(rims_of_move(isa, instr, &bare)) {
            let known = all.iter().any(|r| {
                (&r.op, r.elem, r.side, &r.shapes, &r.steps)
                    == (&rim.op, rim.elem, rim.side, &rim.shapes, &rim.steps)
                    && r.instr.alpha == rim.instr.alpha
            });
            if !known {
                all.push(rim);
            }
        }
    }
    all
}

fn type_of(stmt: &Stmt) -> SymShape {
    (stmt.elem, stmt.dims.clone())
}

/// Whether the steps do more than to read the same bits as another type, which the matcher does itself.
fn moves(shapes: &[SymShape], steps: &[Step]) -> bool {
    steps
        .iter()
        .zip(shapes.windows(2))
        .any(|(step, pair)| *step != Step::Bitcast || pair[0].0.bits() != pair[1].0.bits())
}

fn operand_rims(instr: &Instr, bare: &Arc<Instr>) -> Vec<Rim> {
    let stmts = &instr.computation.stmts;
    // For every statement that is a re-view of an on-chip operand: the types and steps up to it.
    let mut seen: Vec<Option<(Vec<SymShape>, Vec<Step>)>> = Vec::with_capacity(stmts.len());
    let mut found = Vec::new();
    for stmt in stmts {
        let view = match (&stmt.op, stmt.operands.as_slice()) {
            (OpKind::Parameter(k), _) => match instr.inputs.get(*k as usize) {
                Some(Slice::OnChip(_)) => Some((vec![type_of(stmt)], Vec::new())),
                _ => None,
            },
            (OpKind::Copy, [x]) => seen[*x].clone(),
            (op, [x]) => Step::of(op).zip(seen[*x].clone()).map(|(step, (mut shapes, mut steps))| {
                shapes.push(type_of(stmt));
                steps.push(step);
                (shapes, steps)
            }),
            _ => None,
        };
        if view.is_none() {
            for (k, &x) in stmt.operands.iter().enumerate() {
                if let Some((shapes, steps)) = seen[x].clone().filter(|(shapes, steps)| moves(shapes, steps))
                {
                    let (op, side) = (key(&stmt.op), Side::Operand(k));
                    found.push(Rim { op, elem: stmt.elem, side, instr: Arc::clone(bare), shapes, steps });
                }
            }
        }
        seen.push(view);
    }
    found
}

/// For an instruction that only reshapes a slot of one buffer into a slot of another: the rims of those that compute
/// beyond it, with their slots as they are.
fn rims_of_move(isa: &Isa, instr: &Instr, bare: &Arc<Instr>) -> Vec<Rim> {
    let stmts = &instr.computation.stmts;
    let ([Slice::OnChip(from)], [Slice::OnChip(to)], [root]) =
        (instr.inputs.as_slice(), instr.outputs.as_slice(), instr.computation.roots.as_slice())
    else {
        return Vec::new();
    };
    let (mut at, mut shapes) = (&stmts[*root], vec![type_of(&stmts[*root])]);
    while let (OpKind::Reshape | OpKind::Copy, &[x]) = (&at.op, at.operands.as_slice()) {
        if matches!(at.op, OpKind::Reshape) {
            shapes.push(type_of(&stmts[x]));
        }
        at = &stmts[x];
    }
    if from.buffer == to.buffer || !matches!(at.op, OpKind::Parameter(_)) || shapes.len() < 2 {
        return Vec::new();
    }
    let steps = vec![Step::Reshape; shapes.len() - 1];
    let rim = |op: &SymOp, elem, side, shapes| Rim {
        op: key(op),
        elem,
        side,
        instr: Arc::clone(bare),
        shapes,
        steps: steps.clone(),
    };
    let inward: Vec<SymShape> = shapes.iter().rev().cloned().collect();
    let mut found = Vec::new();
    for user in &isa.instrs {
        let stmts = &user.computation.stmts;
        for stmt in stmts {
            for (k, &x) in stmt.operands.iter().enumerate() {
                if let OpKind::Parameter(input) = stmts[x].op
                    && let Some(Slice::OnChip(slot)) = user.inputs.get(input as usize)
                    && slot.buffer == to.buffer
                    && !super::language::is_movement(&stmt.op)
                {
                    found.push(rim(&stmt.op, stmt.elem, Side::Operand(k), inward.clone()));
                }
            }
        }
        for (&root, output) in user.computation.roots.iter().zip(&user.outputs) {
            if let Slice::OnChip(slot) = output
                && slot.buffer == from.buffer
                && !super::language::is_movement(&stmts[root].op)
            {
                found.push(rim(&stmts[root].op, stmts[root].elem, Side::Result, shapes.clone()));
            }
        }
    }
    found
}

fn result_rims(instr: &Instr, bare: &Arc<Instr>) -> Vec<Rim> {
    let results = instr.computation.roots.iter().zip(&instr.outputs);
    let on_chip = results.filter(|(_, output)| matches!(output, Slice::OnChip(_)));
    on_chip.filter_map(|(&root, _)| result_rim(instr, bare, root)).collect()
}

fn result_rim(instr: &Instr, bare: &Arc<Instr>, root: usize) -> Option<Rim> {
    let stmts = &instr.computation.stmts;
    let (mut at, mut shapes, mut steps) = (&stmts[root], vec![type_of(&stmts[root])], Vec::new());
    while let [x] = at.operands[..] {
        let step = match (&at.op, Step::of(&at.op)) {
            (OpKind::Copy, _) => None,
            // Undone, a permutation is its inverse.
            (_, Some(Step::Transpose(perm))) => {
                let inverse = (0..perm.len()).map(|d| perm.iter().position(|&p| p == d));
                Some(Step::Transpose(inverse.collect::<Option<_>>()?))
            }
            (_, Some(step)) => Some(step),
            _ => break,
        };
        at = &stmts[x];
        if let Some(step) = step {
            shapes.push(type_of(at));
            steps.push(step);
        }
    }
    let computes = !matches!(at.op, OpKind::Parameter(_) | OpKind::Constant(_));
    (computes && moves(&shapes, &steps)).then(|| Rim {
        op: key(&at.op),
        elem: at.elem,
        side: Side::Result,
        instr: Arc::clone(bare),
        shapes,
        steps,
    })
}
