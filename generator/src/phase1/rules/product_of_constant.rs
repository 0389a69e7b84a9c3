//! Data movement and scaling by products with constant matrices: the identity, the exchange matrix, selections, ones.
//! Goal-directed: only where no instruction has the operator itself and some instruction multiplies matrices.

use super::{Context, Rule, RuleClass, one};
use crate::numerics::FloatPolicy;
use crate::phase1::facts::{evaluate, real_value};
use crate::phase1::language::{TensorNode, is_movement};
use crate::phase1::term::Term;
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::{Binary, DotDims, ElemType, Literal, OpKind, Shape, Unary};
use egg::Id;

const fn conditional(
    name: &'static str,
    statement: &'static str,
    rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
) -> Rule {
    Rule {
        name,
        class: RuleClass::Conditional,
        policy: FloatPolicy::Exact,
        statement,
        useful: has_dot,
        rewrite,
    }
}

/// Zeros of a matrix times an infinity are no zeros, so floats ask for the policy `fast`, but for products with ones over
/// a dimension of size 1.
pub(crate) static RULES: &[Rule] = &[
    conditional("dot-eye-r", "dot(x, eye) => x or T(x); integers", drop_right),
    conditional("dot-eye-l", "dot(eye, x) => x or T(x); integers", drop_left),
    conditional(
        "dot-const-convert",
        "dot(x, c) => dot(x, cvt(cvt[n](c))), c a constant that n holds exactly, where instructions convert n",
        converted_constant,
    ),
    conditional(
        "add-eye",
        "x + y => dot(x, eye) + y, matrices that are no products, where instructions add products alone; integers",
        add,
    ),
    conditional(
        "sub-eye",
        "y - x => dot(x, neg eye) + y, where instructions add products and none subtracts; integers",
        subtract,
    ),
    conditional("neg-eye", "neg x => dot(x, neg eye), where no instruction negates; integers", negate),
    conditional(
        "scale-eye",
        "splat c * x => dot(x, splat c * eye), where no instruction multiplies; integers",
        scale,
    ),
    conditional(
        "mul-diag-l",
        "bc[0](c) * x => dot(bc[0](c) * eye, x), c constant, where no instruction multiplies; integers",
        scale_rows,
    ),
    conditional(
        "mul-diag-r",
        "bc[1](c) * x => dot(x, bc[1](c) * eye), c constant, where no instruction multiplies; integers",
        scale_columns,
    ),
    conditional(
        "T-eye-l",
        "T[1,0](x) => dot[;(0),(j)](x, eye), for a product that contracts rows of the left, where no instruction \
         transposes; integers",
        transpose_left,
    ),
    conditional(
        "T-eye-r",
        "T[1,0](x) => dot[;(i),(1)](eye, x), for a product that contracts columns of the right, where no instruction \
         transposes; integers",
        transpose_right,
    ),
    conditional(
        "bc-dot-rows",
        "bc[1](v) => dot(ones[m,1], rs[1,n](v)), where no instruction broadcasts; integers, floats but for -0",
        repeat_row,
    ),
    conditional(
        "bc-dot-columns",
        "bc[0](v) => dot(rs[m,1](v), ones[1,n]), where no instruction broadcasts; integers, floats but for -0",
        repeat_column,
    ),
    conditional(
        "rev-dot-l",
        "rev[0](x) => dot(rev[0](eye), x), where no instruction reverses; integers",
        reverse_rows,
    ),
    conditional(
        "rev-dot-r",
        "rev[1](x) => dot(x, rev[1](eye)), where no instruction reverses; integers",
        reverse_columns,
    ),
    conditional("slice-select-l", "slice_0(x), strided => dot(slice_0(eye), x); integers", select_rows),
    conditional("slice-select-r", "slice_1(x), strided => dot(x, slice_1(eye)); integers", select_columns),
    conditional(
        "pad-select-l",
        "pad_0(x; 0) => dot(pad_0(eye; 0), x), where no instruction pads; integers",
        pad_rows,
    ),
    conditional(
        "pad-select-r",
        "pad_1(x; 0) => dot(x, pad_1(eye; 0)), where no instruction pads; integers",
        pad_columns,
    ),
];

/// Largest constant matrix, in bytes: larger ones are not known as constants.
const MATRIX_BYTES: u64 = 1 << 18;

fn has_dot(vocabulary: &Vocabulary) -> bool {
    !vocabulary.dots.is_empty() && vocabulary.slots_keep_their_type()
}

fn eye(elem: ElemType, n: u64) -> Option<Term> {
    let shape = Shape::new(elem, [n, n]);
    (shape.bytes() <= MATRIX_BYTES).then(|| Term::node(OpKind::Eye, shape, Vec::new()))
}

/// Whether the class is the identity matrix.
fn is_eye(cx: &Context<'_>, id: Id) -> bool {
    let shape = cx.shape(id);
    let [n, m] = shape.dims[..] else { return false };
    if n != m {
        return false;
    }
    cx.dense(id).is_some_and(|value| evaluate(&OpKind::Eye, &[], shape).as_ref() == Some(value))
}

fn converted_constant(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(_), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    for (k, c) in [a, b].into_iter().enumerate() {
        let (shape, Some(value)) = (cx.shape(c), cx.splat(c).or_else(|| cx.dense(c))) else { continue };
        for elem in cx.vocabulary.converted_to(shape.elem) {
            let fits = elem.bits() < shape.elem.bits();
            if fits && super::convert::preserves(elem, shape.elem) && held(value, elem) {
                let constant = cx.class(c).convert(elem).convert(shape.elem);
                let mut operands = vec![cx.class(a), cx.class(b)];
                operands[k] = constant;
                out.push(Term::node(node.op().clone(), node.shape().clone(), operands));
            }
        }
    }
}

/// Whether another type has every element of a constant.
fn held(value: &Literal, elem: ElemType) -> bool {
    let there = Shape::new(elem, value.shape().dims.clone());
    let convert = |from: &Literal, to: &Shape| evaluate(&OpKind::Convert, std::slice::from_ref(from), to);
    convert(value, &there).and_then(|there| convert(&there, value.shape())).as_ref() == Some(value)
}

fn drop(cx: &Context<'_>, node: &TensorNode, right: bool, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let ([i], [j]) = (dims.lhs_contracting.as_slice(), dims.rhs_contracting.as_slice()) else { return };
    let (x, c) = if right { (a, b) } else { (b, a) };
    let elem = node.shape().elem;
    let fits = cx.shape(x).rank() == 2
        && dims.lhs_batch.is_empty()
        && is_eye(cx, c)
        && cx.may_distribute(elem)
        && (cx.shape(x).elem == elem || super::convert::preserves(cx.shape(x).elem, elem));
    if fits {
        // The free dimension of x comes first beside an identity on the right, second beside one on the left.
        let plain = if right { *i == 1 } else { *j == 0 };
        let x = if plain { cx.class(x) } else { cx.class(x).transpose(&[1, 0]) };
        out.push(x.convert(elem));
    }
}

fn drop_right(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    drop(cx, node, true, out);
}

fn drop_left(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    drop(cx, node, false, out);
}

/// The product of two matrices of one type, summed as instructions sum it and brought back to that type: by a convert,
/// and by a clamp before it where an instruction clamps to a range that holds all values of the type.
fn product(cx: &Context<'_>, form: &DotDims, a: &Term, b: &Term, unchanged: bool, out: &mut Vec<Term>) {
    let elem = a.shape.elem;
    // Operands as they are, or converted as instructions convert theirs.
    let takes = |from: ElemType| {
        from == elem || super::convert::preserves(elem, from) && cx.vocabulary.converts(elem, from)
    };
    let forms = cx.vocabulary.dots.iter().filter(|f| f.lhs == f.rhs && takes(f.lhs));
    let mut types: Vec<(ElemType, ElemType)> = forms.map(|f| (f.lhs, f.out)).collect();
    types.sort_unstable();
    types.dedup();
    for (from, sum) in types {
        let wide = Term::dot(form.clone(), sum, a.clone().convert(from), b.clone().convert(from));
        if sum == elem {
            out.push(wide);
            continue;
        }
        if !super::convert::preserves(elem, sum) {
            continue;
        }
        if unchanged {
            for (low, high) in cx.vocabulary.clamps.iter().filter(|c| c.0.elem() == sum) {
                let (Some(l), Some(h), Some((least, most))) =
                    (real_value(low), real_value(high), range(elem))
                else {
                    continue;
                };
                if l <= least && most <= h {
                    let bounds =
                        vec![Term::splat(low.clone(), &[]), wide.clone(), Term::splat(high.clone(), &[])];
                    out.push(Term::node(OpKind::Clamp, wide.shape.clone(), bounds).convert(elem));
                }
            }
        }
        out.push(wide.convert(elem));
    }
}

/// Whether a product with a constant, over `k` elements each, moves a matrix of this type: the matrix is an operand of
/// such products as it is, or something else than the movement computes it as well.
pub(super) fn moves(cx: &Context<'_>, class: Id, k: u64) -> bool {
    let shape = cx.shape(class);
    let [m, n] = shape.dims[..] else { return false };
    let operand = cx.vocabulary.product_sizes.iter().filter(|p| p.form.lhs == p.form.rhs).any(|p| {
        let from = cx.vocabulary.converted_to(p.form.lhs);
        let taken = if from.is_empty() { p.form.lhs == shape.elem } else { from.contains(&shape.elem) };
        taken && p.m.min <= m && p.k.min <= k && p.n.min <= n
    });
    let moved = |n: &TensorNode| is_movement(n.op()) || matches!(n.op(), OpKind::Concatenate { .. });
    let computed = || cx.nodes(class).iter().any(|n| !moved(n));
    has_dot(cx.vocabulary) && cx.may_distribute(shape.elem) && (operand || computed())
}

/// The range of an integer type of at most 32 bits.
fn range(elem: ElemType) -> Option<(f64, f64)> {
    if !elem.is_int() || elem.bits() > 32 {
        return None;
    }
    let all = 2f64.powi(elem.bits() as i32);
    Some(if elem.is_signed_int() { (-all / 2.0, all / 2.0 - 1.0) } else { (0.0, all - 1.0) })
}

/// A matrix that is moved, where no instruction has the operator.
fn matrix(cx: &Context<'_>, class: Id, node: &TensorNode, x: Id, operator: &str) -> Option<Term> {
    let shape = cx.shape(x);
    let wanted = shape.rank() == 2
        && node.shape().rank() == 2
        && node.shape().elements() > 0
        && !cx.is_constant(class)
        && !cx.vocabulary.has(operator, shape.elem)
        && cx.may_distribute(shape.elem);
    wanted.then(|| cx.class(x))
}

fn negative_eye(elem: ElemType, n: u64) -> Option<Term> {
    let eye = eye(elem, n)?;
    Some(Term::node(OpKind::Unary(Unary::Negate), eye.shape.clone(), vec![eye]))
}

/// `dot(x, eye) + y`, in the operand type of an instruction that adds such a product to the sum's type.
fn added(cx: &Context<'_>, x: Id, y: Id, negative: bool, out: &mut Vec<Term>) {
    let elem = cx.shape(y).elem;
    let mut types: Vec<(ElemType, ElemType)> = Vec::new();
    for (form, ..) in cx.vocabulary.contractions.iter().filter(|(f, ..)| f.out == elem) {
        if types.contains(&(form.lhs, form.rhs)) {
            continue;
        }
        types.push((form.lhs, form.rhs));
        let operand =
            if form.lhs == elem { Some(cx.class(x)) } else { super::convert::narrowed(cx, x, form.lhs) };
        let n = cx.shape(x).dims[1];
        let matrix = if negative { negative_eye(form.rhs, n) } else { eye(form.rhs, n) };
        let signed = !negative || form.rhs.is_signed_int() || form.rhs.is_float() || form.rhs == elem;
        if let (Some(operand), Some(matrix), true) = (operand, matrix, signed) {
            let moved = Term::dot(DotDims::matmul(), elem, operand, matrix);
            out.push(Term::binary(Binary::Add, moved, cx.class(y)));
        }
    }
}

fn is_product(cx: &Context<'_>, id: Id) -> bool {
    cx.nodes(id).iter().any(|n| matches!(n.op(), OpKind::Dot(_)))
}

fn add(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Add), &[p, q]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    let wanted = node.shape().rank() == 2
        && !cx.is_constant(class)
        && !cx.vocabulary.plain_sums.contains(&elem)
        && cx.may_distribute(elem)
        && !is_product(cx, p)
        && !is_product(cx, q);
    if wanted {
        for (x, y) in [(p, q), (q, p)] {
            if !cx.is_constant(x) {
                added(cx, x, y, false, out);
            }
        }
    }
}

fn subtract(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Subtract), &[y, x]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    let wanted = node.shape().rank() == 2
        && !cx.is_constant(class)
        && !cx.vocabulary.has("subtract", elem)
        && cx.may_distribute(elem);
    if wanted {
        added(cx, x, y, true, out);
    }
}

fn negate(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Unary(Unary::Negate), &[x]) = (node.op(), &node.operands[..]) else { return };
    let Some(x) = matrix(cx, class, node, x, "negate") else { return };
    if let Some(matrix) = negative_eye(x.shape.elem, x.shape.dims[1]) {
        product(cx, &DotDims::matmul(), &x, &matrix, false, out);
    }
}

fn scale(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Multiply), &[p, q]) = (node.op(), &node.operands[..]) else { return };
    for (c, x) in [(p, q), (q, p)] {
        let (Some(scalar), Some(x)) = (cx.splat(c), matrix(cx, class, node, x, "multiply")) else { continue };
        let Some(eye) = eye(x.shape.elem, x.shape.dims[1]) else { continue };
        let scaled = Term::binary(Binary::Multiply, Term::splat(scalar.clone(), &eye.shape.dims), eye);
        product(cx, &DotDims::matmul(), &x, &scaled, false, out);
    }
}

/// Products with a constant that varies along dimension `along` alone.
fn scale_along(cx: &Context<'_>, class: Id, node: &TensorNode, along: usize, out: &mut Vec<Term>) {
    let (OpKind::Binary(Binary::Multiply), &[p, q]) = (node.op(), &node.operands[..]) else { return };
    for (c, x) in [(p, q), (q, p)] {
        if !cx.is_constant(c) || cx.splat(c).is_some() {
            continue;
        }
        let Some(x) = matrix(cx, class, node, x, "multiply") else { continue };
        let vector = cx.nodes(c).iter().find_map(|n| match n.op() {
            OpKind::Broadcast { dims } if *dims == [along] => Some(n.operands[0]),
            _ => None,
        });
        let (Some(vector), Some(eye)) = (vector, eye(x.shape.elem, x.shape.dims[along])) else { continue };
        let spread = cx.class(vector).broadcast(&[along], &eye.shape.dims);
        let diagonal = Term::binary(Binary::Multiply, spread, eye);
        let (a, b) = if along == 0 { (diagonal, x) } else { (x, diagonal) };
        product(cx, &DotDims::matmul(), &a, &b, false, out);
    }
}

fn scale_rows(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_along(cx, class, node, 0, out);
}

fn scale_columns(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    scale_along(cx, class, node, 1, out);
}

fn transpose(cx: &Context<'_>, class: Id, node: &TensorNode, right: bool, out: &mut Vec<Term>) {
    let (OpKind::Transpose { perm }, &[x]) = (node.op(), &node.operands[..]) else { return };
    if *perm != [1, 0] {
        return;
    }
    let Some(x) = matrix(cx, class, node, x, "transpose") else { return };
    // A product whose operand is a transposed one would give itself.
    let form = cx.vocabulary.dots.iter().map(|f| &f.dims).find(|dims| {
        dims.lhs_batch.is_empty()
            && if right { dims.rhs_contracting == [1] } else { dims.lhs_contracting == [0] }
            && dims.rhs_contracting.len() == 1
    });
    let Some(eye) = eye(x.shape.elem, x.shape.dims[usize::from(right)]) else { return };
    if let Some(form) = form {
        let (a, b) = if right { (&eye, &x) } else { (&x, &eye) };
        product(cx, form, a, b, true, out);
    }
}

fn transpose_left(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    transpose(cx, class, node, false, out);
}

fn transpose_right(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    transpose(cx, class, node, true, out);
}

fn repeat(cx: &Context<'_>, class: Id, node: &TensorNode, along: usize, out: &mut Vec<Term>) {
    let (OpKind::Broadcast { dims }, &[v]) = (node.op(), &node.operands[..]) else { return };
    let elem = node.shape().elem;
    let wanted = *dims == [along]
        && node.shape().rank() == 2
        && !cx.is_constant(class)
        && !cx.vocabulary.spreads.contains(&elem)
        && cx.may_reassociate(elem);
    let Some(one) = one(elem).filter(|_| wanted) else { return };
    let [m, n] = node.shape().dims[..] else { return };
    let (a, b) = if along == 1 {
        (Term::splat(one, &[m, 1]), cx.class(v).reshape(&[1, n]))
    } else {
        (cx.class(v).reshape(&[m, 1]), Term::splat(one, &[1, n]))
    };
    product(cx, &DotDims::matmul(), &a, &b, true, out);
}

fn repeat_row(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    repeat(cx, class, node, 1, out);
}

fn repeat_column(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    repeat(cx, class, node, 0, out);
}

fn reverse(cx: &Context<'_>, class: Id, node: &TensorNode, along: usize, out: &mut Vec<Term>) {
    let (OpKind::Reverse { dims }, &[x]) = (node.op(), &node.operands[..]) else { return };
    let Some(x) = matrix(cx, class, node, x, "reverse").filter(|_| *dims == [along]) else { return };
    let Some(eye) = eye(x.shape.elem, x.shape.dims[along]) else { return };
    let exchange = Term::node(node.op().clone(), eye.shape.clone(), vec![eye]);
    let (a, b) = if along == 0 { (exchange, x) } else { (x, exchange) };
    product(cx, &DotDims::matmul(), &a, &b, true, out);
}

fn reverse_rows(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    reverse(cx, class, node, 0, out);
}

fn reverse_columns(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    reverse(cx, class, node, 1, out);
}

/// A strided slice of one dimension, the other one whole.
fn select(cx: &Context<'_>, class: Id, node: &TensorNode, along: usize, out: &mut Vec<Term>) {
    let (OpKind::Slice { start, limit, stride }, &[x]) = (node.op(), &node.operands[..]) else { return };
    let Some(x) = matrix(cx, class, node, x, "slice") else { return };
    let (other, n) = (1 - along, x.shape.dims[along]);
    if stride[along] == 1 || stride[other] != 1 || node.shape().dims[other] != x.shape.dims[other] {
        return;
    }
    let Some(eye) = eye(x.shape.elem, n) else { return };
    let at = |v: &[i64], whole: i64| if along == 0 { vec![v[0], whole] } else { vec![whole, v[1]] };
    let op = OpKind::Slice { start: at(start, 0), limit: at(limit, n as i64), stride: at(stride, 1) };
    let mut shape = eye.shape.clone();
    shape.dims[along] = node.shape().dims[along];
    let selection = Term::node(op, shape, vec![eye]);
    let (a, b) = if along == 0 { (selection, x) } else { (x, selection) };
    product(cx, &DotDims::matmul(), &a, &b, true, out);
}

fn select_rows(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    select(cx, class, node, 0, out);
}

fn select_columns(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    select(cx, class, node, 1, out);
}

/// Zeros put around and between the elements of one dimension.
fn pad(cx: &Context<'_>, class: Id, node: &TensorNode, along: usize, out: &mut Vec<Term>) {
    let (OpKind::Pad { low, high, interior }, &[x, v]) = (node.op(), &node.operands[..]) else { return };
    let Some(x) = matrix(cx, class, node, x, "pad") else { return };
    let zero = cx.splat(v).filter(|z| z.bytes().iter().all(|&b| b == 0));
    let other = 1 - along;
    let untouched = low[other] == 0 && high[other] == 0 && interior[other] == 0;
    let (Some(zero), Some(eye), true) = (zero, eye(x.shape.elem, x.shape.dims[along]), untouched) else {
        return;
    };
    let mut shape = eye.shape.clone();
    shape.dims[along] = node.shape().dims[along];
    let selection = Term::node(node.op().clone(), shape, vec![eye, Term::splat(zero.clone(), &[])]);
    let (a, b) = if along == 0 { (selection, x) } else { (x, selection) };
    product(cx, &DotDims::matmul(), &a, &b, true, out);
}

fn pad_rows(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    pad(cx, class, node, 0, out);
}

fn pad_columns(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    pad(cx, class, node, 1, out);
}
