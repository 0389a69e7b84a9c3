//! Where products and sums meet: a reduction as a product with ones, a product as a reduction of products, and sums over
//! the dimensions of a product.

use super::convert::narrowed;
use super::reduce::parts;
use super::{Context, Rule, RuleClass, one, summed_in};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, DotDims, ElemType, OpKind, Shape};
use egg::Id;

const fn integer(
    name: &'static str,
    statement: &'static str,
    useful: fn(&Vocabulary) -> bool,
    rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
) -> Rule {
    Rule { name, class: RuleClass::Integer, policy: FloatPolicy::Exact, statement, useful, rewrite }
}

pub(crate) static RULES: &[Rule] = &[
    integer(
        "red-ones-dot",
        "red+[D](x; 0) => rs(dot[;D,all](x, ones[S_D, 1])), toward a product where no instruction adds up",
        has_dot,
        ones_right,
    ),
    integer(
        "ones-red-dot",
        "red+[D](x; 0) => rs(dot[;all,D](ones[1, S_D], x)), toward a product where no instruction adds up",
        has_dot,
        ones_left,
    ),
    integer(
        "red-mul-dot",
        "red+[D](bc[E](a) * bc[F](b); 0) => T(dot(a, b)), D in E and F, no other dimension in both",
        has_dot,
        product_sum,
    ),
    integer(
        "dot-to-mulred",
        "dot[B;C](a, b) => red+[C](bc a * bc b), where instructions multiply and add up but have no product",
        has_multiply_and_sum,
        as_sum,
    ),
    integer(
        "dot-nocontract",
        "dot[B;](a, b) => bc a * bc b, nothing contracted",
        has_multiply,
        without_contraction,
    ),
    integer(
        "mul-outer-dot",
        "bc[E](a) * bc[F](b) => T(dot[;1,0](rs a, rs b)), E and F disjoint, where no instruction multiplies",
        has_dot,
        outer,
    ),
    integer(
        "red-dot-batch",
        "red+[D](dot[B;C](a, b); 0) => dot[B-D;C+D](a, b), D batch dimensions",
        has_dot,
        sum_of_batch,
    ),
    integer(
        "red-dot-free-l",
        "red+[D](dot(a, b); 0) => dot(red+ a, b), D free dimensions of a",
        has_dot_and_sum,
        sum_of_free_left,
    ),
    integer(
        "red-dot-free-r",
        "red+[D](dot(a, b); 0) => dot(a, red+ b), D free dimensions of b",
        has_dot_and_sum,
        sum_of_free_right,
    ),
];

fn has_dot(vocabulary: &Vocabulary) -> bool {
    !vocabulary.dots.is_empty()
}

fn has_multiply(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("multiply")
}

fn has_multiply_and_sum(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("multiply") && vocabulary.names("reduce add")
}

fn has_dot_and_sum(vocabulary: &Vocabulary) -> bool {
    has_dot(vocabulary) && vocabulary.names("reduce add")
}

fn sums_products_in(cx: &Context<'_>, elem: ElemType) -> bool {
    cx.vocabulary.dots.iter().any(|form| form.out == elem)
}

/// Dimensions and operand of a sum from zero that may be taken in any order.
fn plain_sum<'a>(cx: &Context<'_>, node: &'a TensorNode) -> Option<(&'a [usize], Id)> {
    let (dims, combiner, x, init) = parts(node)?;
    let plain = combiner == Binary::Add && cx.number(init) == Some(0.0) && !cx.is_constant(x);
    (plain && cx.may_reassociate(summed_in(node.shape().elem))).then_some((dims, x))
}

/// A sum that a product with ones takes the place of: its dimensions and its operand, where no instruction reduces its
/// type and some product takes the operand and has the sum.
pub(super) fn sum_by_product<'a>(cx: &Context<'_>, node: &'a TensorNode) -> Option<(&'a [usize], Id)> {
    let elem = node.shape().elem;
    let wanted = !cx.vocabulary.has("reduce add", elem) && sums_products_in(cx, elem);
    // Where instructions convert what they multiply, only converted values can be multiplied.
    let multiplied = |x: Id| {
        let mut types = cx.vocabulary.operand_types(elem).into_iter();
        types.any(|from| from == elem || narrowed(cx, x, from).is_some())
    };
    plain_sum(cx, node).filter(|(dims, x)| wanted && !dims.is_empty() && multiplied(*x))
}

fn ones_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, x)) = sum_by_product(cx, node) else { return };
    let Some(one) = one(node.shape().elem) else { return };
    let mut lens: Vec<u64> = dims.iter().map(|&d| cx.shape(x).dims[d]).collect();
    lens.push(1);
    let form = DotDims {
        lhs_contracting: dims.to_vec(),
        rhs_contracting: (0..dims.len()).collect(),
        ..DotDims::default()
    };
    let product = Term::dot(form, node.shape().elem, cx.class(x), Term::splat(one, &lens));
    out.push(product.reshape(&node.shape().dims));
}

fn ones_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, x)) = sum_by_product(cx, node) else { return };
    let Some(one) = one(node.shape().elem) else { return };
    let mut lens = vec![1];
    lens.extend(dims.iter().map(|&d| cx.shape(x).dims[d]));
    let form = DotDims {
        lhs_contracting: (1..=dims.len()).collect(),
        rhs_contracting: dims.to_vec(),
        ..DotDims::default()
    };
    let product = Term::dot(form, node.shape().elem, Term::splat(one, &lens), cx.class(x));
    out.push(product.reshape(&node.shape().dims));
}

/// The class as a broadcast of something, itself included: what is spread, and where its dimensions go.
fn spreads(cx: &Context<'_>, id: Id) -> Vec<(Id, Vec<usize>)> {
    let itself = (id, (0..cx.shape(id).rank()).collect());
    let of = cx.nodes(id).iter().filter_map(|n| match n.op() {
        OpKind::Broadcast { dims } if !dims.is_empty() => Some((n.operands[0], dims.clone())),
        _ => None,
    });
    std::iter::once(itself).chain(of).collect()
}

/// The product that contracts `reduced` of all dimensions, transposed so that the kept ones ascend; `None` when a kept
/// dimension belongs to both operands or to none.
fn product_over(
    cx: &Context<'_>,
    rank: usize,
    reduced: &[usize],
    elem: ElemType,
    (a, da): (Id, &[usize]),
    (b, db): (Id, &[usize]),
) -> Option<Term> {
    let at = |dims: &[usize]| -> Option<Vec<usize>> {
        reduced.iter().map(|d| dims.iter().position(|e| e == d)).collect()
    };
    let form = DotDims { lhs_contracting: at(da)?, rhs_contracting: at(db)?, ..DotDims::default() };
    let free = |dims: &[usize]| dims.iter().copied().filter(|d| !reduced.contains(d)).collect::<Vec<_>>();
    let order = [free(da), free(db)].concat();
    let kept = (0..rank).filter(|d| !reduced.contains(d));
    let perm: Option<Vec<usize>> = kept.map(|d| order.iter().position(|&o| o == d)).collect();
    let perm = perm.filter(|p| p.len() == order.len())?;
    Some(Term::dot(form, elem, cx.class(a), cx.class(b)).transpose(&perm))
}

fn product_sum(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((dims, p)) = plain_sum(cx, node) else { return };
    let elem = node.shape().elem;
    if dims.is_empty() || !sums_products_in(cx, elem) || summed_in(elem) != elem {
        return;
    }
    for factors in cx.operands_of(p, &OpKind::Binary(Binary::Multiply)) {
        let [u, v] = *factors else { continue };
        if cx.splat(u).is_some() || cx.splat(v).is_some() {
            continue;
        }
        for (a, da) in spreads(cx, u) {
            for (b, db) in spreads(cx, v) {
                let rank = cx.shape(p).rank();
                out.extend(product_over(cx, rank, dims, elem, (a, &da), (b, &db)));
            }
        }
    }
}

/// Both operands spread over [batch, free of a, free of b, contracted] in the type of the sum, and their product.
fn multiplied(cx: &Context<'_>, dims: &DotDims, node: &TensorNode) -> Option<Term> {
    let [a, b] = node.operands[..] else { return None };
    let elem = summed_in(node.shape().elem);
    let batch = dims.lhs_batch.len();
    let free = |x: Id, batch: &[usize], contracting: &[usize]| -> Vec<usize> {
        (0..cx.shape(x).rank()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
    };
    let (fa, fb) =
        (free(a, &dims.lhs_batch, &dims.lhs_contracting), free(b, &dims.rhs_batch, &dims.rhs_contracting));
    let rank = node.shape().rank();
    let mut full = node.shape().dims.clone();
    full.extend(dims.lhs_contracting.iter().map(|&d| cx.shape(a).dims[d]));
    let spread = |x: Id, batches: &[usize], contracting: &[usize], free: &[usize], first: usize| {
        let to = |d: usize| {
            let at = |dims: &[usize]| dims.iter().position(|&e| e == d);
            at(batches).or(at(contracting).map(|k| rank + k)).or(at(free).map(|k| first + k))
        };
        let to: Option<Vec<usize>> = (0..cx.shape(x).rank()).map(to).collect();
        let to = to?;
        let mut order: Vec<usize> = (0..to.len()).collect();
        order.sort_by_key(|&d| to[d]);
        let sorted: Vec<usize> = order.iter().map(|&d| to[d]).collect();
        Some(cx.class(x).convert(elem).transpose(&order).broadcast(&sorted, &full))
    };
    let lhs = spread(a, &dims.lhs_batch, &dims.lhs_contracting, &fa, batch)?;
    let rhs = spread(b, &dims.rhs_batch, &dims.rhs_contracting, &fb, batch + fa.len())?;
    Some(Term::binary(Binary::Multiply, lhs, rhs))
}

fn as_sum(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), elem) = (node.op(), node.shape().elem) else { return };
    let sum = summed_in(elem);
    let wanted = !sums_products_in(cx, elem)
        && !sums_products_in(cx, sum)
        && cx.vocabulary.has("multiply", sum)
        && cx.vocabulary.has("reduce add", sum);
    if dims.lhs_contracting.is_empty() || !wanted || !cx.may_reassociate(sum) {
        return;
    }
    let (Some(product), Ok(zero)) = (multiplied(cx, dims, node), act_isa::constant::int_scalar(sum, 0))
    else {
        return;
    };
    let rank = node.shape().rank();
    let contracted: Vec<usize> = (rank..product.shape.rank()).collect();
    out.push(product.reduce(Binary::Add, &contracted, Term::splat(zero, &[])).convert(elem));
}

fn without_contraction(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), elem) = (node.op(), node.shape().elem) else { return };
    if !dims.lhs_contracting.is_empty() || !cx.vocabulary.has("multiply", elem) || !cx.may_reassociate(elem) {
        return;
    }
    out.extend(multiplied(cx, dims, node).map(|product| product.convert(elem)));
}

/// Positions among the dimensions that are left when `dropped` are gone.
fn shifted(dims: &[usize], dropped: &[usize]) -> Vec<usize> {
    dims.iter()
        .filter(|d| !dropped.contains(d))
        .map(|&d| d - dropped.iter().filter(|&&e| e < d).count())
        .collect()
}

fn outer(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Multiply), &[u, v]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    let wanted = !cx.vocabulary.has("multiply", elem)
        && sums_products_in(cx, elem)
        && cx.may_reassociate(elem)
        && !cx.is_constant(class)
        && cx.splat(u).is_none()
        && cx.splat(v).is_none();
    if !wanted {
        return;
    }
    for (a, da) in spreads(cx, u) {
        for (b, db) in spreads(cx, v) {
            // A contracted dimension of size 1 makes the matrix form of it.
            let (a, b) = (cx.class(a), cx.class(b));
            let order = [da.clone(), db.clone()].concat();
            let perm: Option<Vec<usize>> =
                (0..node.shape().rank()).map(|d| order.iter().position(|&o| o == d)).collect();
            let Some(perm) = perm.filter(|p| p.len() == order.len()) else { continue };
            let (left, right) = ([&a.shape.dims[..], &[1]].concat(), [&[1], &b.shape.dims[..]].concat());
            let form =
                DotDims { lhs_contracting: vec![da.len()], rhs_contracting: vec![0], ..DotDims::default() };
            let product = Term::dot(form, elem, a.reshape(&left), b.reshape(&right));
            out.push(product.transpose(&perm));
        }
    }
}

fn sum_of_batch(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let Some((reduced, product)) = plain_sum(cx, node) else { return };
    for n in cx.nodes(product) {
        let (OpKind::Dot(dims), &[a, b]) = (n.op(), &n.operands[..]) else { continue };
        if reduced.is_empty() || reduced.iter().any(|&d| d >= dims.lhs_batch.len()) {
            continue;
        }
        let side = |batch: &[usize], contracting: &[usize]| -> (Vec<usize>, Vec<usize>) {
            let pick = |on: bool| {
                let chosen = batch.iter().enumerate().filter(move |(k, _)| reduced.contains(k) == on);
                chosen.map(|(_, &d)| d).collect::<Vec<_>>()
            };
            (pick(false), [contracting, &pick(true)].concat())
        };
        let (lhs_batch, lhs_contracting) = side(&dims.lhs_batch, &dims.lhs_contracting);
        let (rhs_batch, rhs_contracting) = side(&dims.rhs_batch, &dims.rhs_contracting);
        let form = DotDims { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting };
        let operands = vec![cx.class(a), cx.class(b)];
        out.push(Term::node(OpKind::Dot(form), node.shape().clone(), operands));
    }
}

/// The sum over free dimensions of one operand, taken before the product.
fn sum_of_free(cx: &Context<'_>, node: &TensorNode, right: bool, out: &mut Vec<Term>) {
    let Some((reduced, product)) = plain_sum(cx, node) else { return };
    let elem = node.shape().elem;
    if reduced.is_empty() || !cx.may_distribute(elem) || !cx.vocabulary.has("reduce add", elem) {
        return;
    }
    for n in cx.nodes(product) {
        let (OpKind::Dot(dims), &[a, b]) = (n.op(), &n.operands[..]) else { continue };
        let (x, batch, contracting) = if right {
            (b, &dims.rhs_batch, &dims.rhs_contracting)
        } else {
            (a, &dims.lhs_batch, &dims.lhs_contracting)
        };
        let shape: &Shape = cx.shape(x);
        let free: Vec<usize> =
            (0..shape.rank()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
        let first = if right { n.shape().rank() - free.len() } else { batch.len() };
        let within = |d: &usize| *d >= first && *d < first + free.len();
        if shape.elem != elem || !reduced.iter().all(within) {
            continue;
        }
        let gone: Vec<usize> = reduced.iter().map(|&d| free[d - first]).collect();
        let Ok(zero) = act_isa::constant::int_scalar(elem, 0) else { continue };
        let summed = cx.class(x).reduce(Binary::Add, &gone, Term::splat(zero, &[]));
        let (new_batch, new_contracting) = (shifted(batch, &gone), shifted(contracting, &gone));
        let (form, operands) = if right {
            let form = DotDims { rhs_batch: new_batch, rhs_contracting: new_contracting, ..dims.clone() };
            (form, vec![cx.class(a), summed])
        } else {
            let form = DotDims { lhs_batch: new_batch, lhs_contracting: new_contracting, ..dims.clone() };
            (form, vec![summed, cx.class(b)])
        };
        out.push(Term::node(OpKind::Dot(form), node.shape().clone(), operands));
    }
}

fn sum_of_free_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    sum_of_free(cx, node, false, out);
}

fn sum_of_free_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    sum_of_free(cx, node, true, out);
}
