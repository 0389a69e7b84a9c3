//! Maximum, minimum and clamp: neutral elements, absorption, known ranges, and one written by others. (`order.rs` has
//! their way through monotone functions.)

use super::known::{binary, either, float, limits, whole};
use super::order::{bound, full};
use super::{Context, Rule, RuleClass, always};
use crate::phase1::facts::evaluate;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, Direction, ElemType, Literal, OpKind, Shape, Unary};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Conditional,
        "max-neginf",
        "max(x, -inf) => x, min(x, inf) => x, floats without denormals",
        always,
        neutral,
    ),
    Rule::new(
        RuleClass::Conditional,
        "max-self",
        "max(x, x) => x, min(x, x) => x, floats without denormals",
        always,
        itself,
    ),
    Rule::new(
        RuleClass::Integer,
        "max-absorb",
        "max(x, min(x, y)) => x, min(x, max(x, y)) => x, integers",
        always,
        absorb,
    ),
    Rule::new(
        RuleClass::Integer,
        "max-range",
        "max(x, y) => x when the ranges of the operands tell that x >= y, the ends of the type among them, min alike, integers",
        always,
        decided,
    ),
    Rule::new(
        RuleClass::Integer,
        "clamp-trivial",
        "clamp(a, x, b) => x when the range of x lies within [a, b], integers",
        always,
        within_bounds,
    ),
    Rule::new(
        RuleClass::Exact,
        "clamp-clamp",
        "clamp(a, clamp(c, x, d), b) => clamp(clamp(a, c, b), x, clamp(a, d, b)), constants",
        names_clamp,
        nested_clamps,
    ),
    Rule::new(
        RuleClass::Exact,
        "clamp-of-max",
        "clamp(a, max(x, c), b) => clamp(clamp(a, c, b), x, b), clamp(a, min(x, c), b) => clamp(a, x, clamp(a, c, b)), \
         constants a <= b",
        names_clamp,
        clamp_of_extremum,
    ),
    Rule::new(
        RuleClass::Exact,
        "max-of-clamp",
        "max(clamp(a, x, b), c) => clamp(max(a, c), x, max(b, c)), min alike, constants",
        names_clamp,
        extremum_of_clamp,
    ),
    Rule::new(
        RuleClass::Exact,
        "clamp-one-sided",
        "clamp(least value, x, b) => min(x, b), clamp(a, x, greatest value) => max(x, a)",
        |v| v.names("maximum") || v.names("minimum"),
        one_sided,
    ),
    Rule::new(
        RuleClass::Exact,
        "max-by-clamp",
        "max(x, c) => clamp(c, x, greatest value), min(x, c) => clamp(least value, x, c), c a constant, when no \
         instruction has them",
        names_clamp,
        by_clamp,
    ),
    Rule::new(
        RuleClass::Exact,
        "max-neg",
        "max(neg x, neg y) => neg min(x, y), floats; max(not x, not y) => not min(x, y), integers; min alike",
        |v| v.names("maximum") || v.names("minimum"),
        of_mirrored,
    ),
    Rule::new(
        RuleClass::Exact,
        "max-by-min",
        "max(x, y) => neg min(neg x, neg y), floats, or not min(not x, not y), integers, when no instruction has it",
        |v| v.names("minimum"),
        maximum_by_minimum,
    ),
    Rule::new(
        RuleClass::Exact,
        "min-by-max",
        "min(x, y) => neg max(neg x, neg y), floats, or not max(not x, not y), integers, when no instruction has it",
        |v| v.names("maximum"),
        minimum_by_maximum,
    ),
    Rule::new(
        RuleClass::Conditional,
        "max-add-const",
        "max(x + c, y + c) => max(x, y) + c, min alike, floats, c a finite constant",
        |v| v.names("add") && (v.names("maximum") || v.names("minimum")),
        of_sums,
    ),
    Rule::new(
        RuleClass::Conditional,
        "max-mul-const",
        "max(x * c, y * c) => max(x, y) * c, min alike, floats, c a finite constant > 0",
        |v| v.names("multiply") && (v.names("maximum") || v.names("minimum")),
        of_products,
    ),
    Rule::new(
        RuleClass::Exact,
        "and-taut",
        "x < c and x < d => x < min(c, d), x > c and x > d => x > max(c, d), also <= and >=, constants and no NaN",
        |v| v.names("compare"),
        same_side,
    ),
    Rule::new(
        RuleClass::Exact,
        "and-lt-gt",
        "x < y and x < z => x < min(y, z), x > y and x > z => x > max(y, z), also <= and >=",
        |v| v.names("compare") && (v.names("maximum") || v.names("minimum")),
        below_both,
    ),
    Rule::new(
        RuleClass::Integer,
        "or-lt",
        "x < y or x < z => x < max(y, z), x > y or x > z => x > min(y, z), also <= and >=, integers",
        |v| v.names("compare"),
        below_either,
    ),
];

const EXTREMA: [Binary; 2] = [Binary::Maximum, Binary::Minimum];

fn names_clamp(v: &Vocabulary) -> bool {
    v.names("clamp")
}

fn dual(op: Binary) -> Binary {
    if op == Binary::Maximum { Binary::Minimum } else { Binary::Maximum }
}

/// Least and greatest value of a type, infinities included.
fn ends(elem: ElemType) -> Option<[Literal; 2]> {
    if elem.is_float() {
        return Some([float(elem, f64::NEG_INFINITY)?, float(elem, f64::INFINITY)?]);
    }
    let (low, high) = limits(elem)?;
    Some([whole(elem, low)?, whole(elem, high)?])
}

fn neutral(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (op, end) in [(Binary::Maximum, f64::NEG_INFINITY), (Binary::Minimum, f64::INFINITY)] {
        for (x, c) in either(node, op) {
            if cx.number(c) == Some(end) && cx.flushed(x) && !cx.is_constant(class) {
                out.push(cx.class(x));
            }
        }
    }
}

fn itself(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for op in EXTREMA {
        let same = binary(node, op).filter(|&(x, y)| cx.same(x, y) && cx.flushed(x));
        out.extend(same.map(|(x, _)| cx.class(x)));
    }
}

fn absorb(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !node.shape().elem.is_int() {
        return;
    }
    for op in EXTREMA {
        for (x, other) in either(node, op) {
            if cx.eithers(other, dual(op)).any(|(y, _)| cx.same(x, y)) {
                out.push(cx.class(x));
            }
        }
    }
}

fn decided(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for op in EXTREMA {
        for (x, y) in either(node, op) {
            let (Some((a, b)), Some((c, d))) = (cx.range(x), cx.range(y)) else { continue };
            if if op == Binary::Maximum { a >= d } else { b <= c } {
                out.push(cx.class(x));
            }
        }
    }
}

/// The operands of a clamp, its value not being known.
fn clamp(cx: &Context<'_>, class: Id, node: &TensorNode) -> Option<(Id, Id, Id)> {
    match (node.op(), &node.operands[..]) {
        (OpKind::Clamp, &[a, x, b]) if !cx.is_constant(class) => Some((a, x, b)),
        _ => None,
    }
}

fn within_bounds(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, x, b)) = clamp(cx, class, node) else { return };
    if let (Some(a), Some((low, high)), Some(b)) = (cx.range(a), cx.range(x), cx.range(b))
        && a.1 <= low
        && high <= b.0
    {
        out.push(cx.class(x));
    }
}

/// An operator of scalars by the reference evaluator.
fn folded(op: OpKind<i64, Literal>, operands: &[&Literal]) -> Option<Literal> {
    let scalars: Vec<Literal> = operands.iter().map(|&l| l.clone()).collect();
    evaluate(&op, &scalars, &Shape::scalar(operands[0].elem()))
}

fn clamped(node: &TensorNode, low: Literal, x: Term, high: Literal) -> Term {
    Term::node(OpKind::Clamp, node.shape().clone(), vec![Term::splat(low, &[]), x, Term::splat(high, &[])])
}

/// Scalar bounds a <= b, both numbers.
fn proper_bounds<'a>(cx: &Context<'a>, a: Id, b: Id) -> Option<(&'a Literal, &'a Literal)> {
    let ordered = cx.number(a)? <= cx.number(b)?;
    cx.splat(a).zip(cx.splat(b)).filter(|_| ordered)
}

fn nested_clamps(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, inner, b)) = clamp(cx, class, node) else { return };
    let Some((a, b)) = proper_bounds(cx, a, b) else { return };
    for n in cx.nodes(inner) {
        let Some((c, x, d)) = clamp(cx, inner, n) else { continue };
        let Some((c, d)) = proper_bounds(cx, c, d) else { continue };
        if let (Some(low), Some(high)) =
            (folded(OpKind::Clamp, &[a, c, b]), folded(OpKind::Clamp, &[a, d, b]))
        {
            out.push(clamped(node, low, cx.class(x), high));
        }
    }
}

fn clamp_of_extremum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, inner, b)) = clamp(cx, class, node) else { return };
    let Some((a, b)) = proper_bounds(cx, a, b) else { return };
    for op in EXTREMA {
        for (x, c) in cx.eithers(inner, op) {
            let Some(c) = cx.splat(c).filter(|_| cx.number(c).is_some_and(|c| !c.is_nan())) else { continue };
            let Some(c) = folded(OpKind::Clamp, &[a, c, b]) else { continue };
            out.push(match op {
                Binary::Maximum => clamped(node, c, cx.class(x), b.clone()),
                _ => clamped(node, a.clone(), cx.class(x), c),
            });
        }
    }
}

fn extremum_of_clamp(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if cx.is_constant(class) {
        return;
    }
    for op in EXTREMA {
        for (inner, c) in either(node, op) {
            let Some(c) = cx.splat(c).filter(|_| cx.number(c).is_some_and(|c| !c.is_nan())) else { continue };
            for n in cx.nodes(inner) {
                let Some((a, x, b)) = clamp(cx, inner, n) else { continue };
                let Some((a, b)) = proper_bounds(cx, a, b) else { continue };
                if let (Some(low), Some(high)) =
                    (folded(OpKind::Binary(op), &[a, c]), folded(OpKind::Binary(op), &[b, c]))
                {
                    out.push(clamped(node, low, cx.class(x), high));
                }
            }
        }
    }
}

fn one_sided(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((a, x, b)) = clamp(cx, class, node) else { return };
    let elem = node.shape().elem;
    let Some([low, high]) = ends(elem) else { return };
    let dims = &node.shape().dims;
    if cx.splat(a) == Some(&low) && cx.vocabulary.has("minimum", elem) {
        out.push(Term::binary(Binary::Minimum, cx.class(x), full(cx, b, dims)));
    }
    if cx.splat(b) == Some(&high) && cx.vocabulary.has("maximum", elem) {
        out.push(Term::binary(Binary::Maximum, cx.class(x), full(cx, a, dims)));
    }
}

fn by_clamp(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    let Some([low, high]) = ends(elem).filter(|_| !cx.is_constant(class)) else { return };
    for op in EXTREMA {
        if !cx.vocabulary.wants(op.name(), &["clamp"], elem) {
            continue;
        }
        for (x, c) in either(node, op).filter(|p| cx.splat(p.1).is_some()) {
            let end = |scalar: &Literal| Term::splat(scalar.clone(), &[]);
            let operands = match op {
                Binary::Maximum => vec![bound(cx, c), cx.class(x), end(&high)],
                _ => vec![end(&low), cx.class(x), bound(cx, c)],
            };
            out.push(Term::node(OpKind::Clamp, node.shape().clone(), operands));
        }
    }
}

/// What reverses the order of a type exactly: the sign of floats, the complement of integers.
fn mirror(elem: ElemType) -> Unary {
    if elem.is_float() { Unary::Negate } else { Unary::Not }
}

fn of_mirrored(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    let mirror = mirror(elem);
    if cx.is_constant(class) {
        return;
    }
    for op in EXTREMA {
        let Some((a, b)) = binary(node, op).filter(|_| cx.vocabulary.has(dual(op).name(), elem)) else {
            continue;
        };
        for x in cx.unaries(a, mirror) {
            for y in cx.unaries(b, mirror) {
                let inner = Term::binary(dual(op), cx.class(x), cx.class(y));
                out.push(Term::unary(mirror, inner));
            }
        }
    }
}

fn by_dual(cx: &Context<'_>, class: Id, node: &TensorNode, own: Binary, out: &mut Vec<Term>) {
    let Some((x, y)) = binary(node, own) else { return };
    let elem = node.shape().elem;
    let mirror = mirror(elem);
    let wanted = cx.vocabulary.wants(own.name(), &[dual(own).name(), mirror.name()], elem);
    if wanted && !cx.is_constant(class) {
        let mirrored = |id| Term::unary(mirror, cx.class(id));
        out.push(Term::unary(mirror, Term::binary(dual(own), mirrored(x), mirrored(y))));
    }
}

fn maximum_by_minimum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    by_dual(cx, class, node, Binary::Maximum, out);
}

fn minimum_by_maximum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    by_dual(cx, class, node, Binary::Minimum, out);
}

fn common(cx: &Context<'_>, node: &TensorNode, by: Binary, test: fn(f64) -> bool, out: &mut Vec<Term>) {
    if !node.shape().elem.is_float() {
        return;
    }
    for op in EXTREMA {
        let Some((a, b)) = binary(node, op) else { continue };
        for (x, c) in cx.eithers(a, by).filter(|p| cx.number(p.1).is_some_and(test)) {
            for (y, _) in cx.eithers(b, by).filter(|p| cx.same(p.1, c)) {
                let extremum = Term::binary(op, cx.class(x), cx.class(y));
                out.push(Term::binary(by, extremum, cx.class(c)));
            }
        }
    }
}

fn of_sums(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.is_constant(class) {
        common(cx, node, Binary::Add, f64::is_finite, out);
    }
}

fn of_products(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    if !cx.is_constant(class) {
        common(cx, node, Binary::Multiply, |c| c.is_finite() && c >= f64::from(f32::MIN_POSITIVE), out);
    }
}

/// For two comparisons of one value on the same side: direction, the value, and what it is compared with.
fn twice_compared(
    cx: &Context<'_>,
    class: Id,
    node: &TensorNode,
    op: Binary,
) -> Vec<(Direction, Id, Id, Id)> {
    let mut found = Vec::new();
    if let Some((p, q)) = binary(node, op).filter(|_| !cx.is_constant(class)) {
        for (direction, x, y) in super::compare::comparisons(cx, p) {
            let same = super::compare::comparisons(cx, q).filter(|c| c.0 == direction && cx.same(c.1, x));
            let ordered = !matches!(direction, Direction::Eq | Direction::Ne);
            found.extend(same.filter(|_| ordered).map(|(_, _, z)| (direction, x, y, z)));
        }
    }
    found
}

/// The bound that is the stricter of two for this direction.
fn stricter(direction: Direction) -> Binary {
    if matches!(direction, Direction::Lt | Direction::Le) { Binary::Minimum } else { Binary::Maximum }
}

fn same_side(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, x, c, d) in twice_compared(cx, class, node, Binary::And) {
        let number = |id: Id| cx.number(id).is_some_and(|v| !v.is_nan());
        if number(c) && number(d) {
            let strict = Term::binary(stricter(direction), cx.class(c), cx.class(d));
            out.push(Term::compare(direction, cx.class(x), strict));
        }
    }
}

fn below_both(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, x, y, z) in twice_compared(cx, class, node, Binary::And) {
        let op = stricter(direction);
        let constant = cx.is_constant(y) && cx.is_constant(z);
        if !constant && cx.vocabulary.has(op.name(), cx.elem(x)) {
            let strict = Term::binary(op, cx.class(y), cx.class(z));
            out.push(Term::compare(direction, cx.class(x), strict));
        }
    }
}

fn below_either(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (direction, x, y, z) in twice_compared(cx, class, node, Binary::Or) {
        let op = dual(stricter(direction));
        let constant = cx.is_constant(y) && cx.is_constant(z);
        if cx.elem(x).is_int() && (constant || cx.vocabulary.has(op.name(), cx.elem(x))) {
            let loose = Term::binary(op, cx.class(y), cx.class(z));
            out.push(Term::compare(direction, cx.class(x), loose));
        }
    }
}
