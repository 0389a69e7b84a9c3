//! Conjunction, disjunction, exclusive or and complement, of truth values and of the bits of integers.

use super::known::{binary, either, whole, wrapped};
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, ElemType, Literal, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Exact, "and-true", "x and -1 => x, p and true => p", always, and_ones),
    Rule::new(RuleClass::Exact, "and-false", "x and 0 => 0, p and false => false", always, and_zero),
    Rule::new(RuleClass::Exact, "and-self", "x and x => x", always, and_itself),
    Rule::new(RuleClass::Exact, "or-true", "x or -1 => -1, p or true => true", always, or_ones),
    Rule::new(RuleClass::Exact, "or-false", "x or 0 => x, p or false => p", always, or_zero),
    Rule::new(RuleClass::Exact, "or-self", "x or x => x", always, or_itself),
    Rule::new(RuleClass::Exact, "xor-self", "x xor x => 0", always, xor_itself),
    Rule::new(RuleClass::Exact, "xor-zero", "x xor 0 => x, p xor false => p", always, xor_zero),
    Rule::new(
        RuleClass::Exact,
        "xor-not",
        "x xor -1 => not x, p xor true => not p",
        |v| v.names("not"),
        xor_ones,
    ),
    Rule::new(RuleClass::Exact, "and-not-self", "x and not x => 0", always, and_complement),
    Rule::new(RuleClass::Exact, "or-not-self", "x or not x => -1 (true)", always, or_complement),
    Rule::new(RuleClass::Exact, "and-absorb", "x and (x or y) => x, x or (x and y) => x", always, absorb),
    Rule::new(
        RuleClass::Exact,
        "logical-const-fold",
        "(x op c1) op c2 => x op (c1 op c2), constants, op in and, or, xor",
        names_logical,
        fold_constants,
    ),
    Rule::new(
        RuleClass::Exact,
        "and-or-factor",
        "(x and z) or (y and z) => (x or y) and z, and with and, or exchanged",
        |v| v.names("and") && v.names("or"),
        factor,
    ),
    Rule::new(
        RuleClass::Exact,
        "demorgan",
        "not x and not y => not(x or y), not x or not y => not(x and y)",
        |v| v.names("not"),
        collect_complements,
    ),
    Rule::new(
        RuleClass::Exact,
        "and-by-or",
        "x and y => not(not x or not y) when no instruction has the conjunction",
        |v| v.names("or") && v.names("not"),
        and_by_or,
    ),
    Rule::new(
        RuleClass::Exact,
        "or-by-and",
        "x or y => not(not x and not y) when no instruction has the disjunction",
        |v| v.names("and") && v.names("not"),
        or_by_and,
    ),
    Rule::new(
        RuleClass::Integer,
        "xor-by-sub",
        "x xor y => (x or y) - (x and y) when no instruction has the exclusive or, integers",
        |v| v.names("and") && v.names("or") && v.names("subtract"),
        xor_by_subtract,
    ),
    Rule::new(
        RuleClass::Exact,
        "xor-by-and",
        "p xor q => (p or q) and not(p and q) when no instruction has the exclusive or",
        |v| v.names("and") && v.names("or") && v.names("not"),
        xor_by_and,
    ),
    Rule::new(
        RuleClass::Integer,
        "or-by-add",
        "x or y => (x + y) - (x and y) when no instruction has the disjunction, integers",
        |v| v.names("and") && v.names("add") && v.names("subtract"),
        or_by_add,
    ),
    Rule::new(
        RuleClass::Integer,
        "and-by-or-sub",
        "x and y => (x + y) - (x or y) when no instruction has the conjunction, integers",
        |v| v.names("or") && v.names("add") && v.names("subtract"),
        and_by_subtract,
    ),
    Rule::new(
        RuleClass::Exact,
        "pred-and-forms",
        "p and q, p * q, min(p, q) are one another, truth values",
        names_logical_or_arithmetic,
        conjunctions,
    ),
    Rule::new(
        RuleClass::Exact,
        "pred-or-forms",
        "p or q, p + q, max(p, q) are one another, truth values",
        names_logical_or_arithmetic,
        disjunctions,
    ),
    Rule::new(
        RuleClass::Conditional,
        "and-mask-known",
        "x and c => x when no bit outside c can be set in x, integers",
        always,
        needless_mask,
    ),
    Rule::new(
        RuleClass::Conditional,
        "or-disjoint-add",
        "x or y => x + y when no bit can be set in both and no instruction has the disjunction, integers",
        |v| v.names("add"),
        disjoint_or,
    ),
];

fn names_logical(v: &Vocabulary) -> bool {
    ["and", "or", "xor"].iter().any(|key| v.names(key))
}

fn names_logical_or_arithmetic(v: &Vocabulary) -> bool {
    v.types("and").contains(&ElemType::Pred)
        || ["or", "multiply", "add", "minimum", "maximum"].iter().any(|key| v.has(key, ElemType::Pred))
}

/// All bits set.
fn ones(elem: ElemType) -> Option<Literal> {
    if elem == ElemType::Pred { whole(elem, 1) } else { wrapped(elem, -1) }
}

fn is_ones(cx: &Context<'_>, x: Id) -> bool {
    cx.splat(x).is_some() && cx.splat(x) == ones(cx.elem(x)).as_ref()
}

fn is_zero(cx: &Context<'_>, x: Id) -> bool {
    cx.integer(x) == Some(0)
}

/// The operand beside one that passes the test.
fn beside(
    cx: &Context<'_>,
    node: &TensorNode,
    op: Binary,
    test: fn(&Context<'_>, Id) -> bool,
) -> Option<(Id, Id)> {
    either(node, op).find(|&(_, c)| test(cx, c))
}

fn and_ones(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(beside(cx, node, Binary::And, is_ones).map(|(x, _)| cx.class(x)));
}

fn and_zero(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(beside(cx, node, Binary::And, is_zero).map(|(_, zero)| cx.class(zero)));
}

fn and_itself(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(binary(node, Binary::And).filter(|&(x, y)| cx.same(x, y)).map(|(x, _)| cx.class(x)));
}

fn or_ones(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(beside(cx, node, Binary::Or, is_ones).map(|(_, ones)| cx.class(ones)));
}

fn or_zero(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(beside(cx, node, Binary::Or, is_zero).map(|(x, _)| cx.class(x)));
}

fn or_itself(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(binary(node, Binary::Or).filter(|&(x, y)| cx.same(x, y)).map(|(x, _)| cx.class(x)));
}

fn xor_itself(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let itself = binary(node, Binary::Xor).is_some_and(|(x, y)| cx.same(x, y));
    if itself
        && !cx.is_constant(class)
        && let Some(zero) = whole(node.shape().elem, 0)
    {
        out.push(Term::splat(zero, &node.shape().dims));
    }
}

fn xor_zero(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    out.extend(beside(cx, node, Binary::Xor, is_zero).map(|(x, _)| cx.class(x)));
}

fn xor_ones(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.is_constant(class) && cx.vocabulary.has("not", node.shape().elem) {
        let found = beside(cx, node, Binary::Xor, is_ones);
        out.extend(found.map(|(x, _)| Term::unary(Unary::Not, cx.class(x))));
    }
}

fn complementary(
    cx: &Context<'_>,
    class: Id,
    node: &TensorNode,
    op: Binary,
    value: Option<Literal>,
    out: &mut Vec<Term>,
) {
    let opposite = binary(node, op).is_some_and(|(x, y)| cx.complements(x, y));
    if let Some(value) = value.filter(|_| opposite && !cx.is_constant(class)) {
        out.push(Term::splat(value, &node.shape().dims));
    }
}

fn and_complement(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    complementary(cx, class, node, Binary::And, whole(node.shape().elem, 0), out);
}

fn or_complement(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    complementary(cx, class, node, Binary::Or, ones(node.shape().elem), out);
}

/// Conjunction and disjunction with each other.
const DUAL: [(Binary, Binary); 2] = [(Binary::And, Binary::Or), (Binary::Or, Binary::And)];

fn absorb(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (outer, inner) in DUAL {
        for (x, other) in either(node, outer) {
            if cx.eithers(other, inner).any(|(y, _)| cx.same(x, y)) {
                out.push(cx.class(x));
            }
        }
    }
}

fn fold_constants(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for op in [Binary::And, Binary::Or, Binary::Xor] {
        for (inner, c2) in either(node, op).filter(|p| cx.is_constant(p.1)) {
            for (x, c1) in cx.eithers(inner, op).filter(|p| cx.is_constant(p.1)) {
                let constant = Term::binary(op, cx.class(c1), cx.class(c2));
                out.push(Term::binary(op, cx.class(x), constant));
            }
        }
    }
}

fn factor(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for (outer, inner) in DUAL {
        let Some((a, b)) = binary(node, outer) else { continue };
        for (x, z) in cx.eithers(a, inner) {
            for (y, _) in cx.eithers(b, inner).filter(|p| cx.same(p.1, z) && !cx.same(p.0, x)) {
                let joined = Term::binary(outer, cx.class(x), cx.class(y));
                out.push(Term::binary(inner, joined, cx.class(z)));
            }
        }
    }
}

fn collect_complements(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for (outer, dual) in DUAL {
        let Some((a, b)) = binary(node, outer) else { continue };
        if !cx.vocabulary.has(dual.name(), node.shape().elem) {
            continue;
        }
        for x in cx.unaries(a, Unary::Not) {
            for y in cx.unaries(b, Unary::Not) {
                let joined = Term::binary(dual, cx.class(x), cx.class(y));
                out.push(Term::unary(Unary::Not, joined));
            }
        }
    }
}

fn by_complements(
    cx: &Context<'_>,
    class: Id,
    node: &TensorNode,
    own: Binary,
    dual: Binary,
    out: &mut Vec<Term>,
) {
    let Some((x, y)) = binary(node, own) else { return };
    let wanted = cx.vocabulary.wants(own.name(), &[dual.name(), "not"], node.shape().elem);
    if wanted && !cx.is_constant(class) {
        let complement = |id| Term::unary(Unary::Not, cx.class(id));
        out.push(Term::unary(Unary::Not, Term::binary(dual, complement(x), complement(y))));
    }
}

fn and_by_or(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    by_complements(cx, class, node, Binary::And, Binary::Or, out);
}

fn or_by_and(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    by_complements(cx, class, node, Binary::Or, Binary::And, out);
}

fn xor_by_subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Xor) else { return };
    let elem = node.shape().elem;
    if elem.is_int() && !cx.is_constant(class) && cx.vocabulary.wants("xor", &["and", "or", "subtract"], elem)
    {
        let of = |op| Term::binary(op, cx.class(x), cx.class(y));
        out.push(Term::binary(Binary::Subtract, of(Binary::Or), of(Binary::And)));
    }
}

fn xor_by_and(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Xor) else { return };
    let wanted = cx.vocabulary.wants("xor", &["and", "or", "not"], node.shape().elem);
    if wanted && !cx.is_constant(class) {
        let of = |op| Term::binary(op, cx.class(x), cx.class(y));
        let both = Term::unary(Unary::Not, of(Binary::And));
        out.push(Term::binary(Binary::And, of(Binary::Or), both));
    }
}

fn by_sum(cx: &Context<'_>, class: Id, node: &TensorNode, own: Binary, dual: Binary, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, own) else { return };
    let elem = node.shape().elem;
    let wanted = cx.vocabulary.wants(own.name(), &[dual.name(), "add", "subtract"], elem);
    if elem.is_int() && wanted && !cx.is_constant(class) {
        let of = |op| Term::binary(op, cx.class(x), cx.class(y));
        out.push(Term::binary(Binary::Subtract, of(Binary::Add), of(dual)));
    }
}

fn or_by_add(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    by_sum(cx, class, node, Binary::Or, Binary::And, out);
}

fn and_by_subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    by_sum(cx, class, node, Binary::And, Binary::Or, out);
}

/// Operators that are one and the same on truth values.
fn alike(cx: &Context<'_>, class: Id, node: &TensorNode, forms: [Binary; 3], out: &mut Vec<Term>) {
    if node.shape().elem != ElemType::Pred || cx.is_constant(class) {
        return;
    }
    for own in forms {
        let Some((p, q)) = binary(node, own) else { continue };
        for other in forms {
            if other != own && cx.vocabulary.wants(own.name(), &[other.name()], ElemType::Pred) {
                out.push(Term::binary(other, cx.class(p), cx.class(q)));
            }
        }
    }
}

fn conjunctions(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    alike(cx, class, node, [Binary::And, Binary::Multiply, Binary::Minimum], out);
}

fn disjunctions(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    alike(cx, class, node, [Binary::Or, Binary::Add, Binary::Maximum], out);
}

fn needless_mask(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for (x, c) in either(node, Binary::And) {
        let (Some(mask), Some(bits), false) = (cx.integer(c), cx.possible_bits(x), is_ones(cx, c)) else {
            continue;
        };
        if bits & !mask == 0 {
            out.push(cx.class(x));
        }
    }
}

fn disjoint_or(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, Binary::Or) else { return };
    if cx.is_constant(class) || !cx.vocabulary.wants("or", &["add"], node.shape().elem) {
        return;
    }
    if let (Some(a), Some(b)) = (cx.possible_bits(x), cx.possible_bits(y))
        && a & b == 0
    {
        out.push(Term::binary(Binary::Add, cx.class(x), cx.class(y)));
    }
}
