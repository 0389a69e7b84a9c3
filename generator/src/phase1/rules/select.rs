//! Selections: those whose outcome is known, nested ones, and selections as other operators.

use super::compare::comparisons;
use super::known::{binary, float, limits, whole};
use super::unary::bits_of;
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::{TensorNode, is_elementwise};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, Direction, ElemType, OpKind, Shape, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Exact, "sel-same", "sel(p, x, x) => x", always, same_branches),
    Rule::new(RuleClass::Exact, "sel-const", "sel(true, x, y) => x, sel(false, x, y) => y", always, known),
    Rule::new(RuleClass::Exact, "sel-not", "sel(not p, x, y) => sel(p, y, x)", names_select, complemented),
    Rule::new(
        RuleClass::Exact,
        "sel-pred",
        "sel(p, true, false) => p, sel(p, false, true) => not p",
        always,
        truth_of,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-pred-logic",
        "sel(p, q, r) => (p and q) or (not p and r) of truth values, shorter when q or r is constant, \
         when no instruction selects them",
        |v| ["and", "or"].iter().any(|key| v.has(key, ElemType::Pred)),
        by_logic,
    ),
    Rule::new(
        RuleClass::Integer,
        "sel-max",
        "sel(x > y, x, y) => max(x, y), sel(x < y, x, y) => min(x, y), >= and <= alike, integers",
        |v| v.names("maximum") || v.names("minimum"),
        extremum,
    ),
    Rule::new(
        RuleClass::Integer,
        "max-by-sel",
        "max(x, y) => sel(x > y, x, y), min(x, y) => sel(x < y, x, y) when no instruction has them, integers",
        |v| v.names("select") && v.names("compare"),
        by_selection,
    ),
    Rule::new(
        RuleClass::Conditional,
        "sel-abs",
        "sel(x < 0, neg x, x) => |x|, sel(x > 0, x, neg x) => |x|, signed",
        |v| v.names("abs"),
        magnitude,
    ),
    Rule::new(
        RuleClass::Integer,
        "sel-arith",
        "sel(p, x, y) => y + cvt(p) * (x - y), x * cvt(p) for y = 0, when no instruction selects, integers",
        |v| v.names("multiply") && v.names("convert"),
        by_arithmetic,
    ),
    Rule::new(
        RuleClass::Integer,
        "sel-mask",
        "sel(p, x, y) => y xor ((x xor y) and neg cvt(p)) when no instruction selects, integers",
        |v| v.names("and") && v.names("xor") && v.names("negate") && v.names("convert"),
        by_mask,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-as-bits",
        "sel(p, x, y) => bcv(sel(p, bcv x, bcv y)) when instructions select another type of the width only",
        names_select,
        as_bits,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-sel-same",
        "sel(p, sel(p, x, y), z) => sel(p, x, z), sel(p, x, sel(p, y, z)) => sel(p, x, z)",
        names_select,
        nested_same,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-sel-and",
        "sel(p, sel(q, x, y), y) => sel(p and q, x, y), sel(p, x, sel(q, x, y)) => sel(p or q, x, y)",
        names_select,
        nested_joined,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-factor",
        "sel(p, f(x, z), f(y, z)) => f(sel(p, x, y), z), f elementwise",
        names_select,
        factor,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-push-const",
        "f(sel(p, x, c)) => sel(p, f(x), f(c)), f of one operand or a conversion, c a constant",
        names_select,
        push,
    ),
    Rule::new(
        RuleClass::Exact,
        "cvt-pred-sel",
        "cvt(p) => sel(p, 1, 0) when no instruction converts truth values so",
        names_select,
        converted_truth,
    ),
    Rule::new(
        RuleClass::Exact,
        "sel-cvt-pred",
        "sel(p, 1, 0) => cvt(p), sel(p, 0, 1) => cvt(not p)",
        |v| v.names("convert"),
        truth_as_number,
    ),
];

fn names_select(v: &Vocabulary) -> bool {
    v.names("select")
}

fn selection(node: &TensorNode) -> Option<(Id, Id, Id)> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Select, &[p, x, y]) => Some((p, x, y)),
        _ => None,
    }
}

/// A selection whose predicate has the shape of the result and whose value is not known.
fn full(cx: &Context<'_>, class: Id, node: &TensorNode) -> Option<(Id, Id, Id)> {
    selection(node).filter(|&(p, ..)| cx.shape(p).dims == node.shape().dims && !cx.is_constant(class))
}

fn selections<'a>(cx: &Context<'a>, id: Id) -> impl Iterator<Item = (Id, Id, Id)> + use<'a> {
    cx.nodes(id).iter().filter_map(selection)
}

fn same_branches(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(selection(node).filter(|&(_, x, y)| cx.same(x, y)).map(|(_, x, _)| cx.class(x)));
}

fn known(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if let Some((p, x, y)) = selection(node)
        && let Some(p) = cx.integer(p)
    {
        out.push(cx.class(if p == 0 { y } else { x }));
    }
}

fn complemented(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = selection(node).filter(|_| !cx.is_constant(class)) else { return };
    for q in cx.unaries(p, Unary::Not) {
        out.push(Term::node(
            OpKind::Select,
            node.shape().clone(),
            vec![cx.class(q), cx.class(y), cx.class(x)],
        ));
    }
}

fn truth_of(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    if node.shape().elem != ElemType::Pred {
        return;
    }
    match (cx.integer(x), cx.integer(y)) {
        (Some(1), Some(0)) => out.push(cx.class(p)),
        (Some(0), Some(1)) if cx.vocabulary.has("not", ElemType::Pred) => {
            out.push(Term::unary(Unary::Not, cx.class(p)));
        }
        _ => {}
    }
}

fn by_logic(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, q, r)) = full(cx, class, node) else { return };
    if node.shape().elem != ElemType::Pred || cx.vocabulary.computes("select", ElemType::Pred) {
        return;
    }
    let and = |a, b| Term::binary(Binary::And, a, b);
    let or = |a, b| Term::binary(Binary::Or, a, b);
    let not_p = || Term::unary(Unary::Not, cx.class(p));
    out.push(match (cx.integer(q), cx.integer(r)) {
        (_, Some(0)) => and(cx.class(p), cx.class(q)),
        (Some(0), _) => and(not_p(), cx.class(r)),
        (Some(1), _) => or(cx.class(p), cx.class(r)),
        (_, Some(1)) => or(not_p(), cx.class(q)),
        _ => or(and(cx.class(p), cx.class(q)), and(not_p(), cx.class(r))),
    });
}

/// The extremum that a selection by this comparison of its own branches is.
fn extremum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    let elem = node.shape().elem;
    if !elem.is_int() {
        return;
    }
    for (direction, a, b) in comparisons(cx, p) {
        if !(cx.same(a, x) && cx.same(b, y)) {
            continue;
        }
        let op = match direction {
            Direction::Gt | Direction::Ge => Binary::Maximum,
            Direction::Lt | Direction::Le => Binary::Minimum,
            Direction::Eq | Direction::Ne => continue,
        };
        if cx.vocabulary.has(op.name(), elem) {
            out.push(Term::binary(op, cx.class(x), cx.class(y)));
        }
    }
}

fn by_selection(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !elem.is_int() || cx.is_constant(class) {
        return;
    }
    for (op, direction) in [(Binary::Maximum, Direction::Gt), (Binary::Minimum, Direction::Lt)] {
        let Some((x, y)) = binary(node, op) else { continue };
        if cx.vocabulary.wants(op.name(), &["select"], elem) {
            let chosen = Term::compare(direction, cx.class(x), cx.class(y));
            out.push(Term::select(chosen, cx.class(x), cx.class(y)));
        }
    }
}

fn magnitude(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    let elem = node.shape().elem;
    if !elem.is_signed_int() || !cx.vocabulary.has("abs", elem) {
        return;
    }
    let negated = |a: Id, b: Id| cx.unaries(a, Unary::Negate).any(|v| cx.same(v, b));
    for (direction, a, b) in comparisons(cx, p) {
        if cx.integer(b) != Some(0) {
            continue;
        }
        let value = match direction {
            Direction::Lt | Direction::Le if negated(x, y) => y,
            Direction::Gt | Direction::Ge if negated(y, x) => x,
            _ => continue,
        };
        if cx.same(a, value) {
            out.push(Term::unary(Unary::Abs, cx.class(value)));
        }
    }
}

fn by_arithmetic(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    let elem = node.shape().elem;
    let wanted = cx.vocabulary.wants("select", &["multiply", "convert"], elem);
    if !elem.is_int() || !wanted {
        return;
    }
    let scaled = |x| Term::binary(Binary::Multiply, cx.class(p).convert(elem), x);
    if cx.integer(y) == Some(0) {
        out.push(scaled(cx.class(x)));
    } else if cx.vocabulary.has("add", elem) && cx.vocabulary.has("subtract", elem) {
        let difference = Term::binary(Binary::Subtract, cx.class(x), cx.class(y));
        out.push(Term::binary(Binary::Add, cx.class(y), scaled(difference)));
    }
}

fn by_mask(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    let elem = node.shape().elem;
    if limits(elem).is_some() && cx.vocabulary.wants("select", &["and", "xor", "negate", "convert"], elem) {
        let mask = Term::unary(Unary::Negate, cx.class(p).convert(elem));
        let differ = Term::binary(Binary::Xor, cx.class(x), cx.class(y));
        let kept = Term::binary(Binary::And, differ, mask);
        out.push(Term::binary(Binary::Xor, cx.class(y), kept));
    }
}

/// Types that a value's bits may be read as without a change of shape.
fn same_width(elem: ElemType) -> Vec<ElemType> {
    let integers = match elem.bits() {
        8 => vec![ElemType::U8, ElemType::S8],
        16 | 32 | 64 if elem.is_float() || elem.is_int() => bits_of_width(elem),
        _ => Vec::new(),
    };
    integers.into_iter().filter(|&other| other != elem).collect()
}

fn bits_of_width(elem: ElemType) -> Vec<ElemType> {
    let (float, others) = match elem.bits() {
        64 => (ElemType::F64, Vec::new()),
        32 => (ElemType::F32, Vec::new()),
        _ => (ElemType::F16, vec![ElemType::BF16]),
    };
    [bits_of(float).to_vec(), vec![float], others].concat()
}

fn as_bits(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = selection(node).filter(|_| !cx.is_constant(class)) else { return };
    let elem = node.shape().elem;
    if cx.vocabulary.computes("select", elem) {
        return;
    }
    if let Some(bits) = same_width(elem).into_iter().find(|&bits| cx.vocabulary.has("select", bits)) {
        let chosen = Term::select(cx.class(p), cx.class(x).bitcast(bits), cx.class(y).bitcast(bits));
        out.push(chosen.bitcast(elem));
    }
}

fn nested_same(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = selection(node).filter(|_| !cx.is_constant(class)) else { return };
    let select =
        |x, y| Term::node(OpKind::Select, node.shape().clone(), vec![cx.class(p), cx.class(x), cx.class(y)]);
    for (_, first, _) in selections(cx, x).filter(|s| cx.same(s.0, p)) {
        out.push(select(first, y));
    }
    for (_, _, second) in selections(cx, y).filter(|s| cx.same(s.0, p)) {
        out.push(select(x, second));
    }
}

fn nested_joined(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    let joined = |op: Binary, q: Id| {
        let both = cx.shape(q) == cx.shape(p) && cx.vocabulary.has(op.name(), ElemType::Pred);
        both.then(|| Term::binary(op, cx.class(p), cx.class(q)))
    };
    for (q, first, _) in selections(cx, x).filter(|s| cx.same(s.2, y)) {
        out.extend(joined(Binary::And, q).map(|both| Term::select(both, cx.class(first), cx.class(y))));
    }
    for (q, _, second) in selections(cx, y).filter(|s| cx.same(s.1, x)) {
        out.extend(joined(Binary::Or, q).map(|any| Term::select(any, cx.class(x), cx.class(second))));
    }
}

fn factor(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    for f in cx.nodes(x) {
        let plain = is_elementwise(f.op()) && !matches!(f.op(), OpKind::Select);
        if !plain || f.operands.iter().any(|&o| cx.shape(o).dims != node.shape().dims) {
            continue;
        }
        for g in cx.nodes(y).iter().filter(|g| g.op() == f.op() && g.operands.len() == f.operands.len()) {
            let differ: Vec<usize> =
                (0..f.operands.len()).filter(|&k| !cx.same(f.operands[k], g.operands[k])).collect();
            let [at] = differ[..] else { continue };
            let (a, b) = (f.operands[at], g.operands[at]);
            if cx.shape(a) != cx.shape(b) || !cx.vocabulary.has("select", cx.elem(a)) {
                continue;
            }
            let operands = f.operands.iter().enumerate().map(|(k, &o)| {
                if k == at { Term::select(cx.class(p), cx.class(a), cx.class(b)) } else { cx.class(o) }
            });
            out.push(Term::node(f.op().clone(), node.shape().clone(), operands.collect()));
        }
    }
}

fn push(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let single = matches!(node.op(), OpKind::Unary(_) | OpKind::Convert);
    if !single || cx.is_constant(class) || !cx.vocabulary.has("select", node.shape().elem) {
        return;
    }
    for (p, x, y) in selections(cx, node.operands[0]).filter(|s| cx.is_constant(s.1) || cx.is_constant(s.2)) {
        let f = |id| Term::node(node.op().clone(), node.shape().clone(), vec![cx.class(id)]);
        out.push(Term::select(cx.class(p), f(x), f(y)));
    }
}

fn number(elem: ElemType, value: bool, dims: &[u64]) -> Option<Term> {
    let scalar = if elem.is_float() {
        float(elem, f64::from(u8::from(value)))
    } else {
        whole(elem, value.into()).filter(|_| elem.is_int())
    };
    scalar.map(|scalar| Term::splat(scalar, dims))
}

fn converted_truth(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, &[p]) = (node.op(), &node.operands[..]) else { return };
    let Shape { elem, dims, .. } = node.shape();
    let wanted = cx.elem(p) == ElemType::Pred
        && cx.vocabulary.has("select", *elem)
        && !cx.vocabulary.offers_convert(ElemType::Pred, *elem);
    if wanted
        && !cx.is_constant(class)
        && let (Some(one), Some(zero)) = (number(*elem, true, dims), number(*elem, false, dims))
    {
        out.push(Term::select(cx.class(p), one, zero));
    }
}

fn truth_as_number(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((p, x, y)) = full(cx, class, node) else { return };
    let elem = node.shape().elem;
    if elem == ElemType::Pred || !cx.vocabulary.converts(ElemType::Pred, elem) {
        return;
    }
    // -0 is no converted truth value.
    let plain = |id: Id| cx.splat(id).is_some_and(|l| l.bytes().iter().all(|&b| b == 0));
    if cx.number(x) == Some(1.0) && plain(y) {
        out.push(cx.class(p).convert(elem));
    } else if cx.number(y) == Some(1.0) && plain(x) && cx.vocabulary.has("not", ElemType::Pred) {
        out.push(Term::unary(Unary::Not, cx.class(p)).convert(elem));
    }
}
