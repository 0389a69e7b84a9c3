//! Execution of emitted code cell by cell: every cell of a value is a token (who made it, which cell of it), identity
//! instructions move tokens as arrays, instructions read and write whole slices. Written apart from the checker.

use super::super::Allocation;
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{BetaVal, Env, Expr, Isa, Place, Slice, TiledKernel};
use std::collections::BTreeMap;

pub(super) type Token = (u32, usize);
type Memory = BTreeMap<(u16, Vec<i64>), Token>;

/// All positions of a box in row-major order.
pub(super) fn positions(start: &[i64], len: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for (&s, &l) in start.iter().zip(len) {
        all = all
            .into_iter()
            .flat_map(|p: Vec<i64>| (s..s + l).map(move |x| [p.clone(), vec![x]].concat()))
            .collect();
    }
    all
}

pub(super) fn signed(lens: &[u64]) -> Vec<i64> {
    lens.iter().map(|&l| l as i64).collect()
}

/// The tokens of a node's value in row-major order.
pub(super) fn tokens(graph: &PiiGraph, id: PiiId) -> Vec<Token> {
    let node = graph.node(id);
    let len = signed(&node.lens);
    match &node.op {
        PiiOp::SliceH { start } => {
            let operand = node.operands[0];
            let of = positions(&vec![0; len.len()], &signed(&graph.node(operand).lens));
            let all = tokens(graph, operand);
            let wanted = positions(&signed(start), &len);
            of.into_iter().zip(all).filter(|(p, _)| wanted.contains(p)).map(|(_, t)| t).collect()
        }
        PiiOp::ConcatH { dim } => {
            let mut at = BTreeMap::new();
            let mut along = 0;
            for &operand in &node.operands {
                let lens = signed(&graph.node(operand).lens);
                for (mut p, t) in
                    positions(&vec![0; lens.len()], &lens).into_iter().zip(tokens(graph, operand))
                {
                    p[*dim] += along;
                    at.insert(p, t);
                }
                along += lens[*dim];
            }
            at.into_values().collect()
        }
        _ => (0..len.iter().product::<i64>() as usize).map(|cell| (id.0, cell)).collect(),
    }
}

/// Runs the code; panics where a value is not what the graph says.
pub(super) fn replay(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph, allocation: &Allocation) {
    let mut memory = Memory::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if let (PiiOp::OnChipInput(k), Some(buffer)) = (&node.op, node.buffer) {
            let slot = allocation.in_slots[*k].clone().unwrap();
            let id = PiiId(index as u32);
            for (p, t) in positions(&slot, &signed(&node.lens)).into_iter().zip(tokens(graph, id)) {
                assert_eq!(memory.insert((buffer.0, p), t), None, "two parameters share a cell");
            }
        }
    }
    let real = graph.nodes.iter().filter(|n| matches!(n.op, PiiOp::Instr { .. })).count();
    assert_eq!(allocation.assembly.instrs.len(), real);
    for (instr, &id) in allocation.assembly.instrs.iter().zip(&allocation.order) {
        let decl = isa.instr(instr.op);
        let alpha: Vec<Option<i64>> = instr.alpha.iter().map(|a| a.as_int()).collect();
        let beta: Vec<Option<i64>> = instr
            .beta
            .iter()
            .map(|b| match b {
                BetaVal::Int(a) => Some(a.c0),
                BetaVal::Hbm(..) => None,
            })
            .collect();
        let env = Env { alpha: &alpha, beta: &beta, registers: &[] };
        let values = |of: &[Expr]| -> Vec<i64> { of.iter().map(|e| e.eval(env).unwrap()).collect() };
        for (slice, &operand) in decl.inputs.iter().zip(&graph.node(id).operands) {
            if let Slice::OnChip(s) = slice {
                let read: Vec<Option<Token>> = positions(&values(&s.start), &values(&s.len))
                    .into_iter()
                    .map(|p| memory.get(&(s.buffer.0, p)).copied())
                    .collect();
                let want: Vec<Option<Token>> = tokens(graph, operand).into_iter().map(Some).collect();
                assert_eq!(read, want, "operand %{} of {}", operand.0, decl.name);
            }
        }
        for (number, slice) in decl.outputs.iter().enumerate() {
            let Slice::OnChip(s) = slice else { continue };
            let value =
                graph.nodes.iter().position(|n| n.op == (PiiOp::Output { number }) && n.operands == [id]);
            let made = if number == 0 { Some(id) } else { value.map(|at| PiiId(at as u32)) };
            let (start, len) = (values(&s.start), values(&s.len));
            for (d, (&at, &l)) in start.iter().zip(&len).enumerate() {
                assert!(at >= 0 && at + l <= isa.buffer(s.buffer).access[d] as i64, "out of bounds");
            }
            for (cell, p) in positions(&start, &len).into_iter().enumerate() {
                memory.insert((s.buffer.0, p), (made.map_or(u32::MAX, |made| made.0), cell));
            }
        }
    }
    for ((root, place), slot) in graph.roots.iter().zip(&kernel.outs).zip(&allocation.out_slots) {
        if let Place::OnChip { buf, .. } = place {
            let slot = slot.clone().unwrap();
            let len = signed(&graph.node(root[0]).lens);
            for (p, t) in positions(&slot, &len).into_iter().zip(tokens(graph, root[0])) {
                assert_eq!(memory.get(&(buf.0, p)), Some(&t), "result");
            }
        }
    }
}
