//! Values that are shorter than the instructions that compute them: computed together with what nobody reads, which is
//! cut off again. On chip that is a slice of a slot, and slots side by side. Goal-directed: only up to the least size of
//! an instruction with the same operator, and never on a value that fits. Products have rules of their own
//! ([`super::dot_structure`]).

use super::reduce::parts;
use super::tile::{fits, only_multiplied, sizes};
use super::{Context, Rule, RuleClass};
use crate::phase1::language::{TensorNode, is_elementwise};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{Sizes, Vocabulary};
use act_hlo::{OpKind, Shape};
use act_isa::constant::int_scalar;
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule::new(
        RuleClass::Exact,
        "pad-to-instruction",
        "f(x, ..) => sl(f(w, ..)), f elementwise, a reduction, broadcast or transpose that is shorter than an \
         instruction takes, w a longer value that begins with x: the one x is a slice of, or x and zeros",
        has_least_sizes,
        pointwise,
    ),
    Rule::new(
        RuleClass::Exact,
        "slice-padded",
        "slice(cat_d(x, splat v)) => cat_d(slice(x), splat v), all of d: what is cut from a padded value is padded",
        super::always,
        slice,
    ),
    Rule::new(RuleClass::Exact, "cat-to-pad", "cat_d(x, splat v) => pad(x, v), behind it", has_pad, pad),
];

/// Longer values of one operand that are looked at, and ways to combine those of all operands.
const LONGER: usize = 2;
const COMBINED: usize = 8;

fn has_least_sizes(vocabulary: &Vocabulary) -> bool {
    vocabulary.has_least_sizes()
}

fn has_pad(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("pad")
}

/// The least sizes of an instruction that hold these, if they are larger in some dimension.
fn least(dims: &[u64], sizes: &[Sizes]) -> Option<Vec<u64>> {
    let holds = sizes.len() == dims.len() && sizes.iter().zip(dims).all(|(s, d)| (1..=s.max).contains(d));
    let wide: Vec<u64> = sizes.iter().zip(dims).map(|(s, &d)| d.max(s.min)).collect();
    (holds && wide != dims).then_some(wide)
}

/// `x` and zeros behind it.
fn with_zeros(x: Term, wide: &[u64]) -> Option<Term> {
    let zero = int_scalar(x.shape.elem, 0).ok()?;
    let mut whole = x;
    for (d, &len) in wide.iter().enumerate() {
        let mut rest = whole.shape.dims.clone();
        rest[d] = len.checked_sub(rest[d])?;
        if rest[d] > 0 {
            whole = Term::concatenate(d, vec![whole, Term::splat(zero.clone(), &rest)]);
        }
    }
    Some(whole)
}

/// Values of these dimensions that begin with `x`: longer ones that there are, then `x` and zeros.
pub(super) fn begun(cx: &Context<'_>, x: Id, wide: &[u64]) -> Vec<Term> {
    if cx.shape(x).dims == wide {
        return vec![cx.class(x)];
    }
    if let Some(scalar) = cx.splat(x) {
        return vec![Term::splat(scalar.clone(), wide)];
    }
    let longer = cx.nodes(x).iter().filter_map(|node| match node.op() {
        OpKind::Slice { start, stride, .. } => {
            let first = start.iter().all(|&s| s == 0) && stride.iter().all(|&s| s == 1);
            (first && cx.shape(node.operands[0]).dims == wide).then(|| cx.class(node.operands[0]))
        }
        _ => None,
    });
    let mut all: Vec<Term> = longer.take(LONGER).collect();
    all.extend(with_zeros(cx.class(x), wide));
    all
}

/// One of each, in order, but no more than [`COMBINED`] ways.
fn combined(each: &[Vec<Term>]) -> Vec<Vec<Term>> {
    let mut all: Vec<Vec<Term>> = vec![Vec::new()];
    for choices in each {
        all = all
            .iter()
            .flat_map(|before| {
                choices.iter().map(move |one| [before.as_slice(), std::slice::from_ref(one)].concat())
            })
            .take(COMBINED)
            .collect();
    }
    all
}

/// The first `dims` of every dimension.
fn beginning(mut whole: Term, dims: &[u64]) -> Term {
    for (d, &len) in dims.iter().enumerate() {
        whole = whole.slice(d, 0, len);
    }
    whole
}

/// Dimensions of every operand at which the result has these.
fn operand_dims(cx: &Context<'_>, node: &TensorNode, wide: &[u64]) -> Option<Vec<Vec<u64>>> {
    let of = |x: &Id| cx.shape(*x).dims.clone();
    Some(match (node.op(), &node.operands[..]) {
        (op, operands) if is_elementwise(op) => {
            let scalar = |x: &Id| cx.shape(*x).rank() == 0;
            operands.iter().map(|x| if scalar(x) { Vec::new() } else { wide.to_vec() }).collect()
        }
        (OpKind::Reduce { dims, .. }, [x, init]) => {
            parts(node)?;
            let (mut from, mut kept) = (of(x), wide.iter());
            for d in (0..from.len()).filter(|d| !dims.contains(d)) {
                from[d] = *kept.next()?;
            }
            vec![from, of(init)]
        }
        (OpKind::Broadcast { dims }, [_]) => vec![dims.iter().map(|&d| wide[d]).collect()],
        (OpKind::Transpose { perm }, [x]) => {
            let mut from = of(x);
            perm.iter().zip(wide).for_each(|(&p, &len)| from[p] = len);
            vec![from]
        }
        _ => return None,
    })
}

fn pointwise(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let dims = &node.shape().dims;
    let taken =
        !matches!(node.op(), OpKind::Reduce { .. } | OpKind::Broadcast { .. } | OpKind::Transpose { .. })
            && !is_elementwise(node.op());
    if taken || dims.is_empty() || cx.is_constant(class) || fits(cx, node) || only_multiplied(cx, class, node)
    {
        return;
    }
    let mut all: Vec<Vec<u64>> = sizes(cx, node).into_iter().filter_map(|s| least(dims, s)).collect();
    all.sort();
    all.dedup();
    for wide in all {
        let Some(from) = operand_dims(cx, node, &wide) else { continue };
        let each: Vec<Vec<Term>> =
            node.operands.iter().zip(&from).map(|(&x, dims)| begun(cx, x, dims)).collect();
        let shape = Shape::new(node.shape().elem, wide);
        for operands in combined(&each) {
            out.push(beginning(Term::node(node.op().clone(), shape.clone(), operands), dims));
        }
    }
}

/// The first operand and the splat of a padded value.
fn padded<'a>(cx: &'a Context<'_>, class: Id) -> impl Iterator<Item = (usize, Id, Id)> + use<'a> {
    cx.nodes(class).iter().filter_map(|n| match (n.op(), &n.operands[..]) {
        (OpKind::Concatenate { dim }, &[x, rest]) if cx.splat(rest).is_some() => Some((*dim, x, rest)),
        _ => None,
    })
}

/// Whether the class is a shorter value and a splat behind it.
pub(super) fn is_padded(cx: &Context<'_>, class: Id) -> bool {
    padded(cx, class).next().is_some()
}

fn slice(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Slice { start, limit, stride }, &[of]) = (node.op(), &node.operands[..]) else { return };
    if cx.is_constant(class) {
        return;
    }
    for (d, x, rest) in padded(cx, of) {
        if node.shape().dims[d] != cx.shape(of).dims[d] {
            continue;
        }
        let cut = |part: Id| {
            let (mut limit, mut shape) = (limit.clone(), node.shape().clone());
            shape.dims[d] = cx.shape(part).dims[d];
            limit[d] = shape.dims[d] as i64;
            let op = OpKind::Slice { start: start.clone(), limit, stride: stride.clone() };
            Term::node(op, shape, vec![cx.class(part)])
        };
        let Some(scalar) = cx.splat(rest) else { continue };
        let mut behind = node.shape().dims.clone();
        behind[d] = cx.shape(rest).dims[d];
        out.push(Term::concatenate(d, vec![cut(x), Term::splat(scalar.clone(), &behind)]));
    }
}

fn pad(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Concatenate { dim }, &[x, rest]) = (node.op(), &node.operands[..]) else { return };
    let Some(scalar) = cx.splat(rest).filter(|_| !cx.is_constant(class)) else { return };
    let zeros = vec![0i64; node.shape().rank()];
    let mut high = zeros.clone();
    let Ok(behind) = i64::try_from(cx.shape(rest).dims[*dim]) else { return };
    high[*dim] = behind;
    let op = OpKind::Pad { low: zeros.clone(), high, interior: zeros };
    let scalar = Term::splat(scalar.clone(), &[]);
    out.push(Term::node(op, node.shape().clone(), vec![cx.class(x), scalar]));
}
