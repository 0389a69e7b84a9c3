//! Blocks of columns that lie stacked on chip and side by side in memory: one load fills several slots, one store empties
//! them. Goal-directed: only toward the types, rows and blocks of an instruction.

use super::{Context, Rule, RuleClass};
use crate::phase1::language::{TensorNode, is_elementwise};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::OpKind;
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "slice-of-stack",
        "x[r:r+m, c:c+w] => (rs T[1,0,2] rs x[r:r+m, ..])[km:km+m], x in memory, for instructions that stack blocks of w \
         columns: the k-th one",
        has_stacks,
        slice,
    ),
    Rule::new(
        RuleClass::Exact,
        "result-as-stack",
        "v => rs T[1,0,2] rs y, y = rs T[1,0,2] rs v, or cat_1 of such, v computed elementwise, of r rows and b \
         blocks of w columns, for instructions that store such blocks, stacked in y, beside each other",
        stores_stacks,
        result,
    ),
    Rule::new(
        RuleClass::Exact,
        "product-as-stack",
        "rs T[1,0,2] rs d => cat_0(d[.., 0:w], d[.., w:2w], ..), d a matrix product, where instructions store such blocks",
        stores_stacks,
        product,
    ),
];

fn has_stacks(vocabulary: &Vocabulary) -> bool {
    !vocabulary.stacks.is_empty()
}

fn stores_stacks(vocabulary: &Vocabulary) -> bool {
    !vocabulary.stored_stacks.is_empty()
}

/// The matrix x of `blocks` blocks of columns with these one below the other.
fn stacked(x: Term, blocks: u64) -> Term {
    let (rows, width) = (x.shape.dims[0], x.shape.dims[1] / blocks);
    x.reshape(&[rows, blocks, width]).transpose(&[1, 0, 2]).reshape(&[blocks * rows, width])
}

fn slice(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Slice { start, stride, .. }, &[x]) = (node.op(), &node.operands[..]) else { return };
    let given = |n: &TensorNode| matches!(n.op(), OpKind::Parameter(_) | OpKind::Constant(_));
    let (&[rows, width], &[_, columns]) = (&node.shape().dims[..], &cx.shape(x).dims[..]) else { return };
    if stride.iter().any(|&s| s != 1) || !cx.nodes(x).iter().any(given) {
        return;
    }
    let (row, column) = (start[0] as u64, start[1] as u64);
    for (elem, block, count) in &cx.vocabulary.stacks {
        if *elem != node.shape().elem || *block != width || !column.is_multiple_of(width) {
            continue;
        }
        let Some(first) = column.checked_div(width * count.max).map(|group| group * width * count.max) else {
            continue;
        };
        let blocks = count.max.min((columns - first) / width);
        // The block itself may lie in the columns behind the last whole one.
        if blocks < count.min || column >= first + blocks * width {
            continue;
        }
        let apart = cx.class(x).slice(0, row, rows).slice(1, first, blocks * width);
        out.push(stacked(apart, blocks).slice(0, (column - first) / width * rows, rows));
    }
}

fn result(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let &[rows, columns] = &node.shape().dims[..] else { return };
    if !is_elementwise(node.op()) || cx.is_constant(class) {
        return;
    }
    for stack in &cx.vocabulary.stored_stacks {
        let (width, most) = (stack.width, stack.blocks.max * stack.width);
        let stores = stack.elem == node.shape().elem && (stack.rows.min..=stack.rows.max).contains(&rows);
        if !stores || width == 0 || columns / width < stack.blocks.min {
            continue;
        }
        if columns.is_multiple_of(width) && columns <= most {
            let blocks = columns / width;
            let beside = stacked(cx.class(class), blocks).reshape(&[blocks, rows, width]);
            out.push(beside.transpose(&[1, 0, 2]).reshape(&[rows, columns]));
        } else {
            // Whole groups of blocks, and what is left.
            let step = if columns > most { most } else { columns / width * width };
            let starts = (0..columns).step_by(usize::try_from(step).unwrap_or(usize::MAX));
            let parts = starts.map(|start| cx.class(class).slice(1, start, step.min(columns - start)));
            out.push(Term::concatenate(1, parts.collect()));
        }
    }
}

fn product(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Reshape, &[turned], &[height, width]) =
        (node.op(), &node.operands[..], &node.shape().dims[..])
    else {
        return;
    };
    for transpose in cx.nodes(turned) {
        let (OpKind::Transpose { perm }, &[split], &[blocks, rows, inner]) =
            (transpose.op(), &transpose.operands[..], &transpose.shape().dims[..])
        else {
            continue;
        };
        if *perm != [1, 0, 2] || inner != width || blocks * rows != height {
            continue;
        }
        for reshape in cx.nodes(split).iter().filter(|n| *n.op() == OpKind::Reshape) {
            let x = reshape.operands[0];
            let is_product = cx.nodes(x).iter().any(|n| matches!(n.op(), OpKind::Dot(_)));
            if is_product && cx.shape(x).dims == [rows, blocks * width] {
                let parts = (0..blocks).map(|k| cx.class(x).slice(1, k * width, width));
                out.push(Term::concatenate(0, parts.collect()));
            }
        }
    }
}
