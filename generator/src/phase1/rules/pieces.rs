//! Movement that no instruction does, put together from pieces that lie in another order or several times. Goal-directed:
//! only where no instruction has the operator, and only of few pieces.

use super::{Context, Rule, RuleClass};
use crate::phase1::language::{TensorNode, is_elementwise};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::OpKind;
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "bc-pieces",
        "bc[D](x) => cat_d(y, y, ..), d the first long dimension, outside D, y the broadcast with d of size 1, where no \
         instruction has this broadcast and no product with ones does it, and any broadcasts the type only if nothing \
         computes with the value",
        super::always,
        broadcast,
    ),
    Rule::new(
        RuleClass::Exact,
        "rev-pieces",
        "rev[D](x) => cat_d(rev[D-d](x[n-1:n]), .., rev[D-d](x[0:1])), d the first of D, where no instruction reverses \
         and no product does it",
        does_not_reverse,
        reverse,
    ),
];

/// Most pieces that one value is put together from.
const PIECES: u64 = 64;

fn does_not_reverse(vocabulary: &Vocabulary) -> bool {
    !vocabulary.names("reverse")
}

/// Whether what is moved is computed elementwise: the movement goes on toward the inputs, and pieces are made there.
fn goes_on(cx: &Context<'_>, x: Id) -> bool {
    cx.nodes(x).iter().any(|n| is_elementwise(n.op()))
}

fn broadcast(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Broadcast { dims }, &[x]) = (node.op(), &node.operands[..]) else { return };
    let (elem, lens) = (node.shape().elem, &node.shape().dims);
    // What computes with the value reads it as an instruction's own broadcast, where one has any.
    let computed_with = |user: &TensorNode| is_elementwise(user.op()) || matches!(user.op(), OpKind::Dot(_));
    if cx.is_constant(class)
        || goes_on(cx, x)
        || cx.vocabulary.has_broadcast(elem, dims, lens.len())
        || super::product_of_constant::moves(cx, class, 1)
        || cx.vocabulary.spreads.contains(&elem) && cx.users(class).any(computed_with)
    {
        return;
    }
    // Layers of an inner dimension would be single elements.
    let Some(d) = (0..lens.len()).find(|&d| lens[d] > 1) else { return };
    if dims.contains(&d) || lens[d] > PIECES {
        return;
    }
    let mut piece = lens.clone();
    piece.remove(d);
    let to: Vec<usize> = dims.iter().map(|&e| if e > d { e - 1 } else { e }).collect();
    let mut layer = lens.clone();
    layer[d] = 1;
    let layer = cx.class(x).broadcast(&to, &piece).reshape(&layer);
    out.push(Term::concatenate(d, vec![layer; lens[d] as usize]));
}

fn reverse(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Reverse { dims }, &[x]) = (node.op(), &node.operands[..]) else { return };
    let lens = &node.shape().dims;
    let Some(&d) = dims.iter().find(|&&d| lens[d] > 1) else { return };
    let taken = cx.is_constant(class) || goes_on(cx, x) || lens[d] > PIECES;
    if taken || super::product_of_constant::moves(cx, class, lens[d]) {
        return;
    }
    let others: Vec<usize> = dims.iter().copied().filter(|&e| e != d && lens[e] > 1).collect();
    let pieces = (0..lens[d]).rev().map(|at| {
        let piece = cx.class(x).slice(d, at, 1);
        let shape = piece.shape.clone();
        if others.is_empty() {
            piece
        } else {
            Term::node(OpKind::Reverse { dims: others.clone() }, shape, vec![piece])
        }
    });
    out.push(Term::concatenate(d, pieces.collect()));
}
