//! Shifts: amounts known at compile time, chains of shifts, and shifts as other operators.

use super::known::{binary, whole, wrapped};
use super::{Context, Rule, RuleClass, always};
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, ElemType};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(RuleClass::Exact, "shift-zero", "a shift by 0 => x", always, by_nothing),
    Rule::new(
        RuleClass::Exact,
        "shift-out",
        "shl and shr_logical by at least the width => 0",
        always,
        by_everything,
    ),
    Rule::new(
        RuleClass::Exact,
        "shl-mul",
        "shl(x, k) => x * 2^k when no instruction shifts left",
        |v| v.names("multiply"),
        left_by_multiply,
    ),
    Rule::new(
        RuleClass::Exact,
        "shl-add",
        "shl(x, k) => shl(x, k - 1) + shl(x, k - 1), k at most 4, when no instruction shifts left or multiplies",
        |v| v.names("add"),
        left_by_add,
    ),
    Rule::new(
        RuleClass::Exact,
        "shr-div",
        "shr_logical(x, k) => x / 2^k when no instruction shifts right, unsigned",
        |v| v.names("divide"),
        right_by_divide,
    ),
    Rule::new(RuleClass::Exact, "shl-shl", "shl(shl(x, a), b) => shl(x, a + b)", names_shift, left_twice),
    Rule::new(
        RuleClass::Exact,
        "shr-shr",
        "shr(shr(x, a), b) => shr(x, a + b), both logical or both arithmetic",
        names_shift,
        right_twice,
    ),
    Rule::new(
        RuleClass::Exact,
        "shr-shl-mask",
        "shr_logical(shl(x, k), k) => x and the low bits, shl(shr(x, k), k) => x and the high bits",
        |v| v.names("and"),
        there_and_back,
    ),
    Rule::new(
        RuleClass::Conditional,
        "shr-kinds",
        "shr_logical(x, k) <=> shr_arithmetic(x, k) when x never has its top bit and no instruction has the one",
        names_shift,
        other_kind,
    ),
    Rule::new(
        RuleClass::Conditional,
        "shr-known-zero",
        "shr(x, k) => 0 when no bit from k on can be set",
        always,
        nothing_left,
    ),
    Rule::new(
        RuleClass::Exact,
        "shr-arithmetic-by-logical",
        "shr_arithmetic(x, k) => (shr_logical(x, k) xor m) - m, m = 2^(bits-1-k), when no instruction has it, signed",
        |v| v.names("shift-right-logical") && v.names("xor") && v.names("subtract"),
        extend_sign,
    ),
    Rule::new(
        RuleClass::Exact,
        "shr-logical-by-arithmetic",
        "shr_logical(x, k) => shr_arithmetic(x, k) and the low bits when no instruction has it",
        |v| v.names("shift-right-arithmetic") && v.names("and"),
        drop_sign,
    ),
];

fn names_shift(v: &Vocabulary) -> bool {
    ["shift-left", "shift-right-logical", "shift-right-arithmetic"].iter().any(|key| v.names(key))
}

const RIGHT: [Binary; 2] = [Binary::ShiftRightLogical, Binary::ShiftRightArithmetic];

/// The value shifted and the known amount, which is less than the width.
fn shifted(cx: &Context<'_>, class: Id, node: &TensorNode, op: Binary) -> Option<(Id, u32)> {
    let (x, amount) = binary(node, op)?;
    if cx.is_constant(class) {
        return None;
    }
    inner(cx, x, amount)
}

fn inner(cx: &Context<'_>, x: Id, amount: Id) -> Option<(Id, u32)> {
    let bits = i128::from(cx.elem(x).bits());
    let amount = cx.integer(amount).filter(|k| (0..bits).contains(k))?;
    Some((x, amount as u32))
}

/// A shift by an amount that the type can name.
fn shift(cx: &Context<'_>, op: Binary, x: Id, amount: u32) -> Option<Term> {
    let shape = cx.shape(x);
    let amount = whole(shape.elem, amount.into())?;
    Some(Term::binary(op, cx.class(x), Term::splat(amount, &shape.dims)))
}

fn by_nothing(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for op in [Binary::ShiftLeft, RIGHT[0], RIGHT[1]] {
        out.extend(shifted(cx, class, node, op).filter(|s| s.1 == 0).map(|(x, _)| cx.class(x)));
    }
}

fn by_everything(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for op in [Binary::ShiftLeft, Binary::ShiftRightLogical] {
        let Some((x, amount)) = binary(node, op) else { continue };
        let elem = cx.elem(x);
        // An amount counts as unsigned: a negative one is out of range.
        let beyond = cx.integer(amount).is_some_and(|k| k < 0 || k >= i128::from(elem.bits()));
        if beyond
            && !cx.is_constant(class)
            && let Some(zero) = whole(elem, 0)
        {
            out.push(Term::splat(zero, &node.shape().dims));
        }
    }
}

fn left_by_multiply(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if let Some((x, k)) = shifted(cx, class, node, Binary::ShiftLeft)
        && cx.vocabulary.wants("shift-left", &["multiply"], elem)
        && let Some(factor) = wrapped(elem, 1 << k)
    {
        out.push(Term::binary(Binary::Multiply, cx.class(x), Term::splat(factor, &node.shape().dims)));
    }
}

/// Most additions that take the place of a shift.
const DOUBLINGS: u32 = 4;

fn left_by_add(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    let Some((x, k @ 1..=DOUBLINGS)) = shifted(cx, class, node, Binary::ShiftLeft) else { return };
    let wanted = cx.vocabulary.wants("shift-left", &["add"], elem);
    if wanted && (k == 1 || !cx.vocabulary.has("multiply", elem)) {
        let half = match whole(elem, i128::from(k - 1)).filter(|_| k > 1) {
            Some(less) => {
                let amount = Term::splat(less, &node.shape().dims);
                Term::binary(Binary::ShiftLeft, cx.class(x), amount)
            }
            None => cx.class(x),
        };
        out.push(Term::binary(Binary::Add, half.clone(), half));
    }
}

fn right_by_divide(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if let Some((x, k)) = shifted(cx, class, node, Binary::ShiftRightLogical)
        && elem.is_unsigned_int()
        && cx.vocabulary.wants("shift-right-logical", &["divide"], elem)
        && let Some(divisor) = whole(elem, 1 << k)
    {
        out.push(Term::binary(Binary::Divide, cx.class(x), Term::splat(divisor, &node.shape().dims)));
    }
}

fn twice(cx: &Context<'_>, class: Id, node: &TensorNode, op: Binary, out: &mut Vec<Term>) {
    let Some((x, b)) = shifted(cx, class, node, op) else { return };
    for (y, a) in cx.binaries(x, op).filter_map(|(y, a)| inner(cx, y, a)) {
        // Beyond the width only zeros, or copies of the sign, are left.
        let last = cx.elem(x).bits() - 1;
        let amount = if op == Binary::ShiftRightArithmetic { (a + b).min(last) } else { a + b };
        if amount <= last {
            out.extend(shift(cx, op, y, amount));
        }
    }
}

fn left_twice(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    twice(cx, class, node, Binary::ShiftLeft, out);
}

fn right_twice(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    RIGHT.iter().for_each(|&op| twice(cx, class, node, op, out));
}

fn masked(cx: &Context<'_>, x: Id, mask: i128, out: &mut Vec<Term>) {
    let shape = cx.shape(x);
    if let Some(mask) = wrapped(shape.elem, mask) {
        out.push(Term::binary(Binary::And, cx.class(x), Term::splat(mask, &shape.dims)));
    }
}

fn there_and_back(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let elem = node.shape().elem;
    if !cx.vocabulary.has("and", elem) {
        return;
    }
    if let Some((x, k)) = shifted(cx, class, node, Binary::ShiftRightLogical) {
        let same = cx.binaries(x, Binary::ShiftLeft).filter_map(|(y, a)| inner(cx, y, a));
        for (y, _) in same.filter(|s| s.1 == k) {
            masked(cx, y, (1 << (elem.bits() - k)) - 1, out);
        }
    }
    if let Some((x, k)) = shifted(cx, class, node, Binary::ShiftLeft) {
        for op in RIGHT {
            let same = cx.binaries(x, op).filter_map(|(y, a)| inner(cx, y, a));
            for (y, _) in same.filter(|s| s.1 == k) {
                masked(cx, y, -(1 << k), out);
            }
        }
    }
}

/// Whether the top bit of no element is set.
fn top_is_clear(cx: &Context<'_>, x: Id) -> bool {
    let top = 1i128 << (cx.elem(x).bits() - 1);
    cx.possible_bits(x).is_some_and(|bits| bits & top == 0)
}

fn other_kind(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for (own, other) in [(RIGHT[0], RIGHT[1]), (RIGHT[1], RIGHT[0])] {
        if let Some((x, k)) = shifted(cx, class, node, own)
            && cx.vocabulary.wants(own.name(), &[other.name()], cx.elem(x))
            && top_is_clear(cx, x)
        {
            out.extend(shift(cx, other, x, k));
        }
    }
}

fn nothing_left(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    for op in RIGHT {
        let Some((x, k)) = shifted(cx, class, node, op) else { continue };
        let gone = cx.possible_bits(x).is_some_and(|bits| bits >> k == 0);
        if gone
            && (op == Binary::ShiftRightLogical || top_is_clear(cx, x))
            && let Some(zero) = whole(cx.elem(x), 0)
        {
            out.push(Term::splat(zero, &node.shape().dims));
        }
    }
}

fn extend_sign(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let own = Binary::ShiftRightArithmetic;
    let elem = node.shape().elem;
    let others = ["shift-right-logical", "xor", "subtract"];
    if let Some((x, k)) = shifted(cx, class, node, own)
        && elem.is_signed_int()
        && cx.vocabulary.wants(own.name(), &others, elem)
        && let Some(sign) = wrapped(elem, 1 << (elem.bits() - 1 - k))
        && let Some(low) = shift(cx, Binary::ShiftRightLogical, x, k)
    {
        let sign = Term::splat(sign, &node.shape().dims);
        let flipped = Term::binary(Binary::Xor, low, sign.clone());
        out.push(Term::binary(Binary::Subtract, flipped, sign));
    }
}

fn drop_sign(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let own = Binary::ShiftRightLogical;
    let elem: ElemType = node.shape().elem;
    if let Some((x, k)) = shifted(cx, class, node, own)
        && cx.vocabulary.wants(own.name(), &["shift-right-arithmetic", "and"], elem)
        && let Some(mask) = wrapped(elem, (1 << (elem.bits() - k)) - 1)
        && let Some(shifted) = shift(cx, Binary::ShiftRightArithmetic, x, k)
    {
        out.push(Term::binary(Binary::And, shifted, Term::splat(mask, &node.shape().dims)));
    }
}
