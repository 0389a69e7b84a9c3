//! Executes a pii graph by the semantics of its instructions, for comparison with the kernel it was selected for.

use crate::pii::{PiiGraph, PiiOp};
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{ElemType, Literal, OpKind, Shape, eval, eval_op};
use act_isa::{Isa, Place, Space, TiledKernel, View};
use std::collections::BTreeMap;

/// Offsets of all elements of a view, in row-major order.
fn offsets(view: &View) -> Vec<i64> {
    let mut all = vec![view.start.c0];
    for &(len, stride) in &view.dims {
        all = all.iter().flat_map(|&o| (0..len as i64).map(move |i| o + i * stride)).collect();
    }
    all
}

fn read(memory: &[u8], view: &View) -> Literal {
    let width = view.elem.bytes() as usize;
    let bytes: Vec<u8> =
        offsets(view).into_iter().flat_map(|o| memory[o as usize..][..width].to_vec()).collect();
    let dims: Vec<u64> = view.dims.iter().map(|d| d.0).collect();
    Literal::from_bytes(Shape::new(view.elem, dims), bytes).expect("as many bytes as the view has")
}

fn write(memory: &mut Vec<u8>, view: &View, value: &Literal) {
    let width = view.elem.bytes() as usize;
    for (o, chunk) in offsets(view).into_iter().zip(value.bytes().chunks(width)) {
        let at = o as usize;
        if memory.len() < at + width {
            memory.resize(at + width, 0xA5);
        }
        memory[at..at + width].copy_from_slice(chunk);
    }
}

/// The results of the kernel as the graph computes them.
pub(super) fn run(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph, inputs: &[Literal]) -> Vec<Literal> {
    let mut memory: BTreeMap<Space, Vec<u8>> = BTreeMap::new();
    memory.insert(Space::Consts, graph.consts.clone());
    for (place, input) in kernel.ins.iter().zip(inputs) {
        if let Place::Hbm(view) = place {
            write(memory.entry(view.space).or_default(), view, input);
        }
    }
    let mut values: Vec<Option<Literal>> = Vec::new();
    // All outputs of every instruction.
    let mut outputs: BTreeMap<usize, Vec<Literal>> = BTreeMap::new();
    for node in &graph.nodes {
        let operands: Vec<Literal> = node
            .operands
            .iter()
            .map(|o| values[o.0 as usize].clone().expect("operands before users"))
            .collect();
        let value = match &node.op {
            PiiOp::HbmView(view) => read(&memory[&view.space], view),
            PiiOp::OnChipInput(k) => inputs[*k].clone(),
            PiiOp::SliceH { start } => {
                let x = &operands[0];
                let mut shape = x.shape().clone();
                let mut from = vec![0i64; shape.rank()];
                for (d, (&s, &len)) in start.iter().zip(&node.lens).enumerate() {
                    from[d] = s as i64;
                    shape.dims[d] = len;
                }
                let limit = from.iter().zip(&shape.dims).map(|(s, &n)| s + n as i64).collect();
                let stride = vec![1; shape.rank()];
                let op = OpKind::Slice { start: from, limit, stride };
                eval_op(&op, &[x], &shape).expect("a box within the slot")
            }
            PiiOp::ConcatH { dim } => {
                let refs: Vec<&Literal> = operands.iter().collect();
                let mut shape = operands[0].shape().clone();
                shape.dims[*dim] = operands.iter().map(|o| o.shape().dims[*dim]).sum();
                eval_op(&OpKind::Concatenate { dim: *dim }, &refs, &shape).expect("adjacent slots")
            }
            PiiOp::Instr { op, alpha, store } => {
                let g = isa.instr(*op).instantiate(isa, alpha).unwrap_or_else(|e| panic!("{e}"));
                let results = eval(&g, &operands).unwrap_or_else(|e| panic!("{e}"));
                for (slice, result) in isa.instr(*op).outputs.iter().zip(&results) {
                    if let (act_isa::Slice::Hbm(_), Some(view)) = (slice, store) {
                        assert_eq!(view.elem, ElemType::U8);
                        write(memory.entry(view.space).or_default(), view, result);
                    }
                }
                let first = results[0].clone();
                outputs.insert(values.len(), results);
                first
            }
            PiiOp::Output { number } => outputs[&(node.operands[0].0 as usize)][*number].clone(),
        };
        if let Some(buffer) = node.buffer {
            let declared = isa.buffer(buffer);
            assert_eq!(value.shape().dims, [node.lens.clone(), declared.unit.clone()].concat());
            assert_eq!(value.elem(), declared.elem);
        }
        values.push(Some(value));
    }
    let results = kernel.outs.iter().zip(&graph.roots).map(|(place, ids)| match place {
        Place::Hbm(view) => read(&memory[&view.space], view),
        Place::OnChip { .. } => values[ids[0].0 as usize].clone().expect("computed"),
    });
    results.collect()
}

/// Random inputs, what the kernel makes of them, and what the graph does.
pub(super) fn both(
    isa: &Isa,
    kernel: &TiledKernel,
    graph: &PiiGraph,
    seed: u64,
) -> (Vec<Literal>, Vec<Literal>) {
    let mut rng = SplitMix64::new(seed);
    let inputs: Vec<Literal> = kernel
        .graph
        .params()
        .iter()
        .map(|&p| random_literal(&mut rng, kernel.graph.shape(p), Values::Small))
        .collect();
    let expected = eval(&kernel.graph, &inputs).unwrap_or_else(|e| panic!("{e}"));
    (expected, run(isa, kernel, graph, &inputs))
}

/// The graph computes the kernel bit for bit.
pub(super) fn assert_exact(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph) {
    for seed in 0..3 {
        let (expected, got) = both(isa, kernel, graph, seed);
        assert_eq!(expected, got);
    }
}

/// The largest difference between expected and computed bf16 or f32 results, relative to the largest expected value.
pub(super) fn error(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph, seed: u64) -> f64 {
    let (expected, got) = both(isa, kernel, graph, seed);
    let numbers = |l: &Literal| -> Vec<f64> {
        let width = l.elem().bytes() as usize;
        let value = |b| act_isa::constant::float_value(l.elem(), b).expect("a float");
        l.bytes().chunks(width).map(value).collect()
    };
    let mut worst = 0f64;
    for (e, g) in expected.iter().zip(&got) {
        let (e, g) = (numbers(e), numbers(g));
        let scale = e.iter().fold(0f64, |m, v| m.max(v.abs()));
        let difference =
            e.iter().zip(&g).fold(0f64, |m, (a, b)| if (a - b).abs() <= m { m } else { (a - b).abs() });
        worst = worst.max(difference / scale);
    }
    worst
}
