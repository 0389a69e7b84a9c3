//! Truth values that are known, and comparisons of integers as comparisons of floats: masks brought to the forms in which
//! instructions read them. Goal-directed by the comparisons that the description offers.

use super::known::{integer, whole};
use super::{Context, Rule, RuleClass};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, Direction, ElemType, Literal, OpKind, Shape};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "mask-affine",
        "sel(p, x, y) => sel(a * iota_0 + b * iota_1 + c >= 0, x, y), p a constant matrix that is true on one side of a \
         row, a column or a diagonal, a and b in -1..1",
        counts_and_compares,
        half_plane,
    ),
    Rule::new(
        RuleClass::Exact,
        "mask-read",
        "sel(p, x, y) => sel(cvt(p) != 0, x, y), p constant, for the types that instructions compare",
        compares_and_selects,
        as_numbers,
    ),
    Rule::new(
        RuleClass::Conditional,
        "cmp-int-by-float",
        "x < y => cvt[f32](x) < cvt[f32](y), integers, x or y within 2^24 - 1 of 0, when instructions convert so and \
         compare f32 and not integers so; all directions",
        compares_floats,
        by_float,
    ),
];

/// Integers up to this one are exact in f32, and what is rounded stays beyond it.
const EXACT: i128 = 1 << 24;

fn offers(vocabulary: &Vocabulary, elem: ElemType) -> bool {
    Direction::ALL.iter().any(|&d| vocabulary.offers_compare(d, elem))
}

fn counts_and_compares(vocabulary: &Vocabulary) -> bool {
    vocabulary.has("iota", ElemType::S32) && vocabulary.compares(Direction::Ge, ElemType::S32)
}

fn compares_and_selects(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("compare") && vocabulary.names("select")
}

fn compares_floats(vocabulary: &Vocabulary) -> bool {
    Direction::ALL.iter().any(|&d| vocabulary.compares(d, ElemType::F32))
}

/// The constant by which a node selects, where its elements differ.
fn mask<'a>(cx: &Context<'a>, node: &TensorNode) -> Option<(Id, &'a Literal)> {
    let (OpKind::Select, &[p, _, _]) = (node.op(), &node.operands[..]) else { return None };
    cx.dense(p).map(|mask| (p, mask))
}

/// The selection with its mask as this term.
fn selected(cx: &Context<'_>, node: &TensorNode, mask: Term) -> Term {
    Term::select(mask, cx.class(node.operands[1]), cx.class(node.operands[2]))
}

fn half_plane(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((_, mask)) = mask(cx, node) else { return };
    let [_, columns] = mask.shape().dims[..] else { return };
    for (a, b) in [(1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)] {
        // The least value where the mask is true, and the greatest where it is not.
        let (mut least, mut greatest) = (i128::MAX, i128::MIN);
        for at in 0..mask.shape().elements() {
            let value = a * i128::from(at / columns) + b * i128::from(at % columns);
            if mask.element_bytes(at)[0] != 0 {
                least = least.min(value);
            } else {
                greatest = greatest.max(value);
            }
        }
        if least > greatest {
            let compared = at_least(&mask.shape().dims, (a, b), -least);
            out.extend(compared.map(|compared| selected(cx, node, compared)));
            return;
        }
    }
}

/// `a * iota_0 + b * iota_1 + c >= 0`, every factor written out, as a description that has attributes for them does.
fn at_least(dims: &[u64], (a, b): (i128, i128), c: i128) -> Option<Term> {
    let elem = ElemType::S32;
    let splat = |value| whole(elem, value).map(|v| Term::splat(v, dims));
    let count = |dim| Term::node(OpKind::Iota { dim }, Shape::new(elem, dims), Vec::new());
    let rows = Term::binary(Binary::Multiply, count(0), splat(a)?);
    let columns = Term::binary(Binary::Multiply, count(1), splat(b)?);
    let sum = Term::binary(Binary::Add, Term::binary(Binary::Add, rows, columns), splat(c)?);
    Some(Term::compare(Direction::Ge, sum, splat(0)?))
}

fn as_numbers(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, _)) = mask(cx, node) else { return };
    for elem in cx.vocabulary.types("select") {
        if let Some(zero) = zero(elem).filter(|_| offers(cx.vocabulary, elem)) {
            let zeros = Term::splat(zero, &cx.shape(p).dims);
            let compared = Term::compare(Direction::Ne, cx.class(p).convert(elem), zeros);
            out.push(selected(cx, node, compared));
        }
    }
}

fn zero(elem: ElemType) -> Option<Literal> {
    if elem.is_int() || elem.is_float() { act_isa::constant::int_scalar(elem, 0).ok() } else { None }
}

/// Whether every element is so near 0 that its order among all integers survives rounding to f32.
fn near_zero(cx: &Context<'_>, id: Id) -> bool {
    let near = |value: i128| value.abs() < EXACT;
    if cx.range(id).is_some_and(|(low, high)| near(low) && near(high)) {
        return true;
    }
    cx.dense(id).is_some_and(|literal| {
        (0..literal.shape().elements()).all(|at| {
            let element =
                Literal::from_bytes(Shape::scalar(literal.elem()), literal.element_bytes(at).to_vec());
            element.ok().and_then(|e| integer(&e)).is_some_and(near)
        })
    })
}

fn by_float(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Compare(direction), &[x, y]) = (node.op(), &node.operands[..]) else { return };
    let elem = cx.elem(x);
    let wanted = elem.is_int()
        && !cx.is_constant(class)
        && !cx.vocabulary.offers_compare(*direction, elem)
        && cx.vocabulary.compares(*direction, ElemType::F32)
        && cx.vocabulary.converts(elem, ElemType::F32);
    if wanted && (near_zero(cx, x) || near_zero(cx, y)) {
        let float = |id| cx.class(id).convert(ElemType::F32);
        out.push(Term::compare(*direction, float(x), float(y)));
    }
}
