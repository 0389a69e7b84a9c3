//! Comparisons: those whose outcome is known, the other directions, and comparisons of converted or computed values.

use super::convert::{exact_convert, preserves};
use super::known::{limits, unary, whole};
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::{Binary, Direction, ElemType, Literal, OpKind, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "cmp-strict-self",
        "x < x => false, x > x => false",
        always,
        strict_with_itself,
    ),
    Rule::new(
        RuleClass::Integer,
        "cmp-eq-self",
        "x = x, x <= x, x >= x => true, x != x => false, integers",
        always,
        loose_with_itself,
    ),
    Rule::new(
        RuleClass::Integer,
        "cmp-range",
        "a comparison of integers that the ranges of its operands decide => true or false",
        always,
        decided,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-flip",
        "x < y => y > x when no instruction compares so; all directions",
        |v| v.names("compare"),
        flip,
    ),
    Rule::new(
        RuleClass::Conditional,
        "cmp-not",
        "not(x < y) => x >= y, integers; not(x = y) => x != y; all directions",
        |v| v.names("compare"),
        complement,
    ),
    Rule::new(
        RuleClass::Conditional,
        "cmp-by-not",
        "x >= y => not(x < y) when no instruction compares so, integers; x != y => not(x = y)",
        |v| v.names("compare") && v.names("not"),
        by_complement,
    ),
    Rule::new(
        RuleClass::Integer,
        "cmp-const-step",
        "x < c => x <= c - 1 when no instruction compares so, all directions, integer constants within the type",
        |v| v.names("compare"),
        step,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-gt-max",
        "max(x, y) > y => x > y, min(x, y) < y => x < y",
        |v| v.names("compare"),
        beyond_extremum,
    ),
    Rule::new(
        RuleClass::Integer,
        "cmp-ge-max",
        "max(x, y) >= y => true, min(x, y) <= y => true, integers",
        always,
        reaches_extremum,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-by-max",
        "x >= y => max(x, y) = x, x <= y => min(x, y) = x when no instruction compares so",
        |v| v.names("compare") && (v.names("maximum") || v.names("minimum")),
        by_extremum,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-eq-by-order",
        "x = y => x <= y and x >= y when no instruction tests equality",
        |v| v.names("compare") && v.names("and"),
        equality_by_order,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-pred",
        "p = true => p, p != false => p, p = false => not p, p != true => not p",
        always,
        with_truth,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-xor",
        "p != q => p xor q, p = q => not(p xor q), truth values",
        |v| v.names("xor"),
        by_xor,
    ),
    Rule::new(
        RuleClass::Exact,
        "xor-ne",
        "p xor q => p != q, truth values",
        |v| v.names("compare"),
        xor_by_comparison,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-convert-pred",
        "cvt(p) != 0 => p, cvt(p) > 0 => p, cvt(p) = 0 => not p",
        always,
        converted_truth,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-narrow",
        "cvt x < cvt y => x < y, the conversion loses nothing; all directions; a constant y converts back exactly",
        |v| v.names("compare"),
        narrow,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-widen",
        "x < y => cvt x < cvt y when instructions compare a wider type and not this one; all directions",
        |v| v.names("compare") && v.names("convert"),
        widen,
    ),
    Rule::new(
        RuleClass::Exact,
        "cmp-neg",
        "neg x < neg y => y < x, neg x < c => x > -c, floats; all directions",
        |v| v.names("compare"),
        of_negated,
    ),
    Rule::new(
        RuleClass::Integer,
        "cmp-eq-difference",
        "x - y = 0 => x = y, x xor y = 0 => x = y, integers; != alike",
        |v| v.names("compare"),
        of_difference,
    ),
    Rule::new(
        RuleClass::Integer,
        "cmp-eq-add-const",
        "x + c1 = c2 => x = c2 - c1, x xor c1 = c2 => x = c2 xor c1, integer constants; != alike",
        |v| v.names("compare"),
        of_sum,
    ),
];

/// The direction with the operands exchanged.
pub(super) fn flipped(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
        symmetric => symmetric,
    }
}

/// The direction that holds where the other does not, among ordered values.
pub(super) fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Eq => Direction::Ne,
        Direction::Ne => Direction::Eq,
        Direction::Lt => Direction::Ge,
        Direction::Le => Direction::Gt,
        Direction::Gt => Direction::Le,
        Direction::Ge => Direction::Lt,
    }
}

pub(super) fn comparison(node: &TensorNode) -> Option<(Direction, Id, Id)> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Compare(direction), &[x, y]) => Some((*direction, x, y)),
        _ => None,
    }
}

/// All comparisons in a class, both ways round.
pub(super) fn comparisons<'a>(
    cx: &Context<'a>,
    id: Id,
) -> impl Iterator<Item = (Direction, Id, Id)> + use<'a> {
    let found = cx.nodes(id).iter().filter_map(comparison);
    found.flat_map(|(direction, x, y)| [(direction, x, y), (flipped(direction), y, x)])
}

/// A node that is a comparison, both ways round; nothing when its value is known.
fn ways(cx: &Context<'_>, class: Id, node: &TensorNode) -> Vec<(Direction, Id, Id)> {
    match comparison(node) {
        Some((direction, x, y)) if !cx.is_constant(class) => {
            vec![(direction, x, y), (flipped(direction), y, x)]
        }
        _ => Vec::new(),
    }
}

fn truth(node: &TensorNode, value: bool, out: &mut Vec<Term>) {
    if let Some(scalar) = whole(ElemType::Pred, value.into()) {
        out.push(Term::splat(scalar, &node.shape().dims));
    }
}

fn totally_ordered(elem: ElemType) -> bool {
    elem.is_int() || elem == ElemType::Pred
}

fn strict_with_itself(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if let Some((Direction::Lt | Direction::Gt, x, y)) = comparison(node)
        && cx.same(x, y)
        && !cx.is_constant(class)
    {
        truth(node, false, out);
    }
}

fn loose_with_itself(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if let Some((direction, x, y)) = comparison(node)
        && cx.same(x, y)
        && totally_ordered(cx.elem(x))
        && !cx.is_constant(class)
    {
        match direction {
            Direction::Eq | Direction::Le | Direction::Ge => truth(node, true, out),
            Direction::Ne => truth(node, false, out),
            Direction::Lt | Direction::Gt => {}
        }
    }
}

fn decided(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, x, y) in ways(cx, class, node) {
        let (Some((a, b)), Some((c, d))) = (cx.range(x), cx.range(y)) else { continue };
        let value = match direction {
            Direction::Lt if b < c => true,
            Direction::Le if b <= c => true,
            Direction::Lt if a >= d => false,
            Direction::Le if a > d => false,
            Direction::Eq if b < c => false,
            Direction::Ne if b < c => true,
            _ => continue,
        };
        truth(node, value, out);
    }
}

fn flip(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((direction, x, y)) = comparison(node) else { return };
    let (elem, other) = (cx.elem(x), flipped(direction));
    let wanted = other != direction
        && cx.vocabulary.compares(other, elem)
        && !cx.vocabulary.offers_compare(direction, elem);
    if wanted && !cx.is_constant(class) {
        out.push(Term::compare(other, cx.class(y), cx.class(x)));
    }
}

/// Whether "not d" is another direction for this type: NaN takes part in no order.
fn has_opposite(direction: Direction, elem: ElemType) -> bool {
    totally_ordered(elem) || matches!(direction, Direction::Eq | Direction::Ne)
}

fn complement(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some(inner) = unary(node, Unary::Not) else { return };
    if cx.is_constant(class) {
        return;
    }
    for (direction, x, y) in cx.nodes(inner).iter().filter_map(comparison) {
        let elem = cx.elem(x);
        let other = opposite(direction);
        let known = cx.vocabulary.compares(other, elem) || cx.vocabulary.compares(flipped(other), elem);
        if has_opposite(direction, elem) && known {
            out.push(Term::compare(other, cx.class(x), cx.class(y)));
        }
    }
}

fn by_complement(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((direction, x, y)) = comparison(node) else { return };
    let (elem, other) = (cx.elem(x), opposite(direction));
    let wanted = has_opposite(direction, elem)
        && cx.vocabulary.compares(other, elem)
        && !cx.vocabulary.offers_compare(direction, elem)
        && cx.vocabulary.has("not", ElemType::Pred);
    if wanted && !cx.is_constant(class) {
        let compared = Term::compare(other, cx.class(x), cx.class(y));
        out.push(Term::unary(Unary::Not, compared));
    }
}

fn step(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((direction, x, c)) = comparison(node) else { return };
    let elem = cx.elem(x);
    let (Some(value), false) = (cx.integer(c).filter(|_| elem.is_int()), cx.is_constant(class)) else {
        return;
    };
    let (other, next) = match direction {
        Direction::Lt => (Direction::Le, value - 1),
        Direction::Ge => (Direction::Gt, value - 1),
        Direction::Le => (Direction::Lt, value + 1),
        Direction::Gt => (Direction::Ge, value + 1),
        Direction::Eq | Direction::Ne => return,
    };
    let wanted = cx.vocabulary.compares(other, elem) && !cx.vocabulary.offers_compare(direction, elem);
    if let Some(next) = whole(elem, next).filter(|_| wanted) {
        out.push(Term::compare(other, cx.class(x), Term::splat(next, &cx.shape(x).dims)));
    }
}

/// For a comparison with an extremum of the same value: the direction, the other operand of the extremum, the value.
fn with_extremum(cx: &Context<'_>, class: Id, node: &TensorNode) -> Vec<(Direction, Binary, Id, Id)> {
    let mut found = Vec::new();
    for (direction, m, y) in ways(cx, class, node) {
        for op in [Binary::Maximum, Binary::Minimum] {
            let others = cx.eithers(m, op).filter(|p| cx.same(p.1, y));
            found.extend(others.map(|(x, _)| (direction, op, x, y)));
        }
    }
    found
}

fn beyond_extremum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, op, x, y) in with_extremum(cx, class, node) {
        if let (Direction::Gt, Binary::Maximum) | (Direction::Lt, Binary::Minimum) = (direction, op) {
            out.push(Term::compare(direction, cx.class(x), cx.class(y)));
        }
    }
}

fn reaches_extremum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, op, x, _) in with_extremum(cx, class, node) {
        let reached =
            matches!((direction, op), (Direction::Ge, Binary::Maximum) | (Direction::Le, Binary::Minimum));
        if reached && totally_ordered(cx.elem(x)) {
            truth(node, true, out);
        }
    }
}

fn by_extremum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((direction, x, y)) = comparison(node) else { return };
    let elem = cx.elem(x);
    let op = match direction {
        Direction::Ge => Binary::Maximum,
        Direction::Le => Binary::Minimum,
        _ => return,
    };
    let wanted = cx.vocabulary.compares(Direction::Eq, elem)
        && cx.vocabulary.has(op.name(), elem)
        && !cx.vocabulary.offers_compare(direction, elem);
    if wanted && !cx.is_constant(class) {
        let extremum = Term::binary(op, cx.class(x), cx.class(y));
        out.push(Term::compare(Direction::Eq, extremum, cx.class(x)));
    }
}

fn equality_by_order(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((Direction::Eq, x, y)) = comparison(node) else { return };
    let elem = cx.elem(x);
    let wanted = cx.vocabulary.compares(Direction::Le, elem)
        && cx.vocabulary.has("and", ElemType::Pred)
        && !cx.vocabulary.offers_compare(Direction::Eq, elem);
    if wanted && !cx.is_constant(class) {
        let least = Term::compare(Direction::Le, cx.class(x), cx.class(y));
        let most = Term::compare(Direction::Le, cx.class(y), cx.class(x));
        out.push(Term::binary(Binary::And, least, most));
    }
}

/// p or its complement for a comparison that keeps or inverts it.
fn keep_or_invert(cx: &Context<'_>, p: Id, keep: bool, out: &mut Vec<Term>) {
    if keep {
        out.push(cx.class(p));
    } else if cx.vocabulary.has("not", ElemType::Pred) {
        out.push(Term::unary(Unary::Not, cx.class(p)));
    }
}

fn with_truth(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, p, c) in ways(cx, class, node) {
        if cx.elem(p) != ElemType::Pred {
            continue;
        }
        match (direction, cx.integer(c)) {
            (Direction::Eq, Some(c)) => keep_or_invert(cx, p, c == 1, out),
            (Direction::Ne, Some(c)) => keep_or_invert(cx, p, c == 0, out),
            _ => {}
        }
    }
}

fn by_xor(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((direction, p, q)) = comparison(node) else { return };
    let wanted = cx.elem(p) == ElemType::Pred && cx.vocabulary.has("xor", ElemType::Pred);
    if !wanted || cx.vocabulary.offers_compare(direction, ElemType::Pred) || cx.is_constant(class) {
        return;
    }
    let differ = Term::binary(Binary::Xor, cx.class(p), cx.class(q));
    match direction {
        Direction::Ne => out.push(differ),
        Direction::Eq => out.push(Term::unary(Unary::Not, differ)),
        _ => {}
    }
}

fn xor_by_comparison(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, q)) = super::known::binary(node, Binary::Xor) else { return };
    let wanted = node.shape().elem == ElemType::Pred
        && cx.vocabulary.compares(Direction::Ne, ElemType::Pred)
        && !cx.vocabulary.computes("xor", ElemType::Pred);
    if wanted && !cx.is_constant(class) {
        out.push(Term::compare(Direction::Ne, cx.class(p), cx.class(q)));
    }
}

fn converted_truth(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, x, c) in ways(cx, class, node) {
        if cx.number(c) != Some(0.0) {
            continue;
        }
        for p in cx.converted(x).filter(|&p| cx.elem(p) == ElemType::Pred) {
            match direction {
                Direction::Ne | Direction::Gt => out.push(cx.class(p)),
                Direction::Eq | Direction::Le => keep_or_invert(cx, p, false, out),
                Direction::Lt | Direction::Ge => {}
            }
        }
    }
}

/// Types between which a comparison may move: the conversion loses nothing, and both sides flush the same denormals.
fn comparable(narrow: ElemType, wide: ElemType) -> bool {
    narrow != wide && preserves(narrow, wide) && wide != ElemType::F64
}

fn narrow(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, a, b) in ways(cx, class, node) {
        for x in cx.converted(a).filter(|&x| comparable(cx.elem(x), cx.elem(a))) {
            let elem = cx.elem(x);
            let known =
                cx.vocabulary.compares(direction, elem) || cx.vocabulary.compares(flipped(direction), elem);
            if !known {
                continue;
            }
            let back: Option<Literal> = cx.splat(b).and_then(|c| exact_convert(c, elem));
            if let Some(c) = back {
                out.push(Term::compare(direction, cx.class(x), Term::splat(c, &cx.shape(x).dims)));
            }
            for y in cx.converted(b).filter(|&y| cx.elem(y) == elem) {
                out.push(Term::compare(direction, cx.class(x), cx.class(y)));
            }
        }
    }
}

fn widen(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((direction, x, y)) = comparison(node) else { return };
    let elem = cx.elem(x);
    if cx.is_constant(class) || cx.vocabulary.offers_compare(direction, elem) {
        return;
    }
    let wider = cx.vocabulary.types("convert").into_iter().find(|&wide| {
        comparable(elem, wide)
            && cx.vocabulary.compares(direction, wide)
            && cx.vocabulary.converts(elem, wide)
    });
    if let Some(wide) = wider {
        out.push(Term::compare(direction, cx.class(x).convert(wide), cx.class(y).convert(wide)));
    }
}

fn of_negated(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, a, b) in ways(cx, class, node) {
        if !cx.elem(a).is_float() {
            return;
        }
        for x in cx.unaries(a, Unary::Negate).filter(|&x| !cx.is_constant(x)) {
            if cx.is_constant(b) {
                let negated = Term::unary(Unary::Negate, cx.class(b));
                out.push(Term::compare(flipped(direction), cx.class(x), negated));
            }
            for y in cx.unaries(b, Unary::Negate).filter(|&y| !cx.is_constant(y)) {
                out.push(Term::compare(direction, cx.class(y), cx.class(x)));
            }
        }
    }
}

/// A test for equality or its opposite against a constant.
fn equality(cx: &Context<'_>, class: Id, node: &TensorNode) -> Vec<(Direction, Id, Id)> {
    let test = |&(direction, x, c): &(Direction, Id, Id)| {
        matches!(direction, Direction::Eq | Direction::Ne)
            && cx.is_constant(c)
            && limits(cx.elem(x)).is_some()
    };
    ways(cx, class, node).into_iter().filter(test).collect()
}

fn of_difference(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, difference, zero) in equality(cx, class, node) {
        if cx.integer(zero) != Some(0) {
            continue;
        }
        for op in [Binary::Subtract, Binary::Xor] {
            let pairs = cx.binaries(difference, op);
            out.extend(pairs.map(|(x, y)| Term::compare(direction, cx.class(x), cx.class(y))));
        }
    }
}

fn of_sum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, sum, c2) in equality(cx, class, node) {
        for (op, inverse) in [(Binary::Add, Binary::Subtract), (Binary::Xor, Binary::Xor)] {
            for (x, c1) in cx.eithers(sum, op).filter(|p| cx.is_constant(p.1)) {
                let constant = Term::binary(inverse, cx.class(c2), cx.class(c1));
                out.push(Term::compare(direction, cx.class(x), constant));
            }
        }
    }
}
