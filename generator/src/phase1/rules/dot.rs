//! Matrix products: any general dot as one of the two-dimensional forms that instructions have, and their element types.

use super::convert::{narrowed, preserves};
use super::ragged::is_padded;
use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use crate::phase1::vocabulary::{DotForm, ProductSizes, Vocabulary};
use act_hlo::{Binary, DotDims, ElemType, Literal, OpKind};
use egg::Id;

pub(crate) static RULES: &[Rule] = &[
    Rule {
        name: "dot-canonical",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "dot[B;C](a, b) => rs(dot[;(i),(j)](rs(T a), rs(T b))), batch dimensions of size 1, for the forms \
                    (i),(j) that instructions have",
        useful: has_dot,
        rewrite: canonical,
    },
    Rule {
        name: "T-dot",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "T[1,0](dot[;(i),(j)](a, b)) => dot[;(j),(i)](b, a)",
        useful: has_dot,
        rewrite: transposed,
    },
    Rule {
        name: "dot-operand-types",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "dot[o](a, b) <=> dot[o](cvt a, cvt b), converts without loss, for the operand types that \
                    instructions have",
        useful: has_dot,
        rewrite: operand_types,
    },
    Rule {
        name: "dot-narrow",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "cvt[n](dot[w](cvt a, cvt b)) => dot[n](a, b), narrow floats: summed in w, rounded once",
        useful: has_dot,
        rewrite: narrow,
    },
    Rule {
        name: "dot-convert-result",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "dot[n](a, b) => cvt[n](dot[f32](a, b)), n a narrow float, when instructions have no dot[n]",
        useful: has_dot,
        rewrite: convert_result,
    },
    Rule {
        name: "dot-wrapped",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "dot[n](a, b) => cvt[n](dot[w](a, b)), wrapping integers, n narrower than w, when instructions \
                    have no dot[n]",
        useful: has_integer_dot,
        rewrite: wrapped,
    },
    Rule {
        name: "dot-onto-zero",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "dot(a, b) => 0 + dot(a, b), when instructions only add a product of these sizes to a value. A \
                    sum that begins at 0 is never -0",
        useful: has_added_dot,
        rewrite: onto_zero,
    },
    Rule {
        name: "dot-outer",
        class: RuleClass::Integer,
        policy: FloatPolicy::Exact,
        statement: "dot(a, b) => bc(a) * bc(b), when what is contracted has length 1, is no step of a longer \
                    contraction or is padded, and instructions multiply; of floats the sign of a zero is lost",
        useful: multiplies,
        rewrite: outer,
    },
    Rule {
        name: "dot-outer-sum",
        class: RuleClass::Integer,
        policy: FloatPolicy::Exact,
        statement: "dot(a, b) => (bc(a_1) * bc(b_1) + bc(a_2) * bc(b_2)) + .., a_k the columns of a, b_k the rows of b, \
                    where instructions multiply and add, and their products, of operands in memory, are larger than \
                    this one in some dimension and shorter in none",
        useful: multiplies_and_adds,
        rewrite: outer_sum,
    },
    Rule {
        name: "dot-slice",
        class: RuleClass::Exact,
        policy: FloatPolicy::Exact,
        statement: "slice of free dimensions (dot(a, b)) => dot(slice a, slice b)",
        useful: always,
        rewrite: sliced,
    },
];

fn has_dot(vocabulary: &Vocabulary) -> bool {
    !vocabulary.dots.is_empty()
}

/// Moves the contracting dimensions of an operand to one end and merges both groups: [free, contracting], or the
/// other way round when `first`.
fn flattened(x: Term, batch: &[usize], contracting: &[usize], first: bool) -> (Term, u64, Vec<u64>) {
    let free: Vec<usize> =
        (0..x.shape.rank()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
    let size = |dims: &[usize]| dims.iter().map(|&d| x.shape.dims[d]).product::<u64>();
    let (k, m) = (size(contracting), size(&free));
    let free_dims = free.iter().map(|&d| x.shape.dims[d]).collect();
    let order =
        if first { [batch, contracting, &free].concat() } else { [batch, &free, contracting].concat() };
    let matrix = x.transpose(&order).reshape(&if first { [k, m] } else { [m, k] });
    (matrix, k, free_dims)
}

fn canonical(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), [a, b]) = (node.op(), &node.operands[..]) else { return };
    if dims.lhs_batch.iter().any(|&d| cx.shape(*a).dims[d] != 1) || node.shape().elements() == 0 {
        return;
    }
    let mut forms: Vec<&DotDims> = cx.vocabulary.dots.iter().map(|f| &f.dims).collect();
    forms.dedup();
    for form in forms {
        let ([i], [j]) = (form.lhs_contracting.as_slice(), form.rhs_contracting.as_slice()) else { continue };
        if !form.lhs_batch.is_empty() || *i > 1 || *j > 1 || form == dims {
            continue;
        }
        let (lhs, _, m) = flattened(cx.class(*a), &dims.lhs_batch, &dims.lhs_contracting, *i == 0);
        let (rhs, _, n) = flattened(cx.class(*b), &dims.rhs_batch, &dims.rhs_contracting, *j == 0);
        let product = Term::dot(form.clone(), node.shape().elem, lhs, rhs);
        let shape = [vec![1; dims.lhs_batch.len()], m, n].concat();
        out.push(product.reshape(&shape));
    }
}

/// The matrix form of a dot: two dimensions each, one contracted.
fn matrix_form(dims: &DotDims, a: usize, b: usize) -> bool {
    a == 2
        && b == 2
        && dims.lhs_batch.is_empty()
        && dims.lhs_contracting.len() == 1
        && dims.rhs_contracting.len() == 1
}

fn transposed(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Transpose { perm }, [d]) = (node.op(), &node.operands[..]) else { return };
    if *perm != [1, 0] {
        return;
    }
    for n in cx.nodes(*d) {
        let (OpKind::Dot(dims), [a, b]) = (n.op(), &n.operands[..]) else { continue };
        if matrix_form(dims, cx.shape(*a).rank(), cx.shape(*b).rank()) {
            let swapped = DotDims {
                lhs_contracting: dims.rhs_contracting.clone(),
                rhs_contracting: dims.lhs_contracting.clone(),
                ..DotDims::default()
            };
            out.push(Term::dot(swapped, node.shape().elem, cx.class(*b), cx.class(*a)));
        }
    }
}

/// An operand in another type without loss, either way.
fn retyped(cx: &Context<'_>, x: Id, elem: ElemType) -> Option<Term> {
    let from = cx.shape(x).elem;
    if from == elem {
        return Some(cx.class(x));
    }
    if let Some(narrow) = narrowed(cx, x, elem) {
        return Some(narrow);
    }
    preserves(from, elem).then(|| cx.class(x).convert(elem))
}

fn operand_types(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), [a, b]) = (node.op(), &node.operands[..]) else { return };
    for form in &cx.vocabulary.dots {
        let types = (cx.shape(*a).elem, cx.shape(*b).elem);
        // Converting an operand beyond the result would change what the product means.
        let sound = preserves(form.lhs, form.out) && preserves(form.rhs, form.out);
        if form.out != node.shape().elem || form.dims != *dims || types == (form.lhs, form.rhs) || !sound {
            continue;
        }
        if !preserves(types.0, form.out) || !preserves(types.1, form.out) {
            continue;
        }
        if let (Some(lhs), Some(rhs)) = (retyped(cx, *a, form.lhs), retyped(cx, *b, form.rhs)) {
            out.push(Term::node(node.op().clone(), node.shape().clone(), vec![lhs, rhs]));
        }
    }
}

fn narrow(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Convert, [d]) = (node.op(), &node.operands[..]) else { return };
    let (elem, wide) = (node.shape().elem, cx.shape(*d).elem);
    if !matches!(elem, ElemType::BF16 | ElemType::F16) || wide != ElemType::F32 {
        return;
    }
    for n in cx.nodes(*d) {
        let (OpKind::Dot(_), [a, b]) = (n.op(), &n.operands[..]) else { continue };
        let operand = |x: Id| {
            if cx.shape(x).elem == elem { Some(cx.class(x)) } else { narrowed(cx, x, elem) }
        };
        if let (Some(a), Some(b)) = (operand(*a), operand(*b)) {
            out.push(Term::node(n.op().clone(), node.shape().clone(), vec![a, b]));
        }
    }
}

fn convert_result(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(_), elem) = (node.op(), node.shape().elem) else { return };
    let wanted = matches!(elem, ElemType::BF16 | ElemType::F16)
        && cx.vocabulary.dots.iter().all(|f| f.out != elem)
        && cx.vocabulary.dots.iter().any(|f| f.out == ElemType::F32);
    if wanted {
        let operands = node.operands.iter().map(|&x| cx.class(x)).collect();
        let shape = act_hlo::Shape::new(ElemType::F32, node.shape().dims.clone());
        out.push(Term::node(node.op().clone(), shape, operands).convert(elem));
    }
}

fn has_integer_dot(vocabulary: &Vocabulary) -> bool {
    vocabulary.dots.iter().any(|f| f.out.is_int())
}

fn wrapped(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(_), elem) = (node.op(), node.shape().elem) else { return };
    if !elem.is_int() || cx.is_constant(class) || cx.vocabulary.dots.iter().any(|f| f.out == elem) {
        return;
    }
    let wider = |e: &ElemType| e.is_int() && e.bits() > elem.bits();
    let wide: std::collections::BTreeSet<ElemType> =
        cx.vocabulary.dots.iter().map(|f| f.out).filter(wider).collect();
    for wide in wide {
        let operands = node.operands.iter().map(|&x| cx.class(x)).collect();
        let shape = act_hlo::Shape::new(wide, node.shape().dims.clone());
        out.push(Term::node(node.op().clone(), shape, operands).convert(elem));
    }
}

fn has_added_dot(vocabulary: &Vocabulary) -> bool {
    vocabulary.adds_products()
}

fn onto_zero(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let shape = node.shape();
    let (lhs, rhs) = (cx.shape(a).elem, cx.shape(b).elem);
    let form = DotForm { dims: dims.clone(), lhs, rhs, out: shape.elem };
    if cx.is_constant(class) || !cx.vocabulary.only_adds(&form, &shape.dims) {
        return;
    }
    if let Some(zero) = zero(shape.elem) {
        out.push(Term::binary(Binary::Add, Term::splat(zero, &shape.dims), cx.class(class)));
    }
}

fn zero(elem: ElemType) -> Option<Literal> {
    act_isa::constant::int_scalar(elem, 0).ok()
}

/// Whether the class is a slice of something longer along a dimension: a step of a longer contraction.
fn is_cut(cx: &Context<'_>, x: Id, dim: usize) -> bool {
    cx.nodes(x).iter().any(|n| {
        matches!(n.op(), OpKind::Slice { .. }) && cx.shape(n.operands[0]).dims[dim] != cx.shape(x).dims[dim]
    })
}

fn multiplies(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("multiply") || vocabulary.names("fma")
}

fn multiplies_and_adds(vocabulary: &Vocabulary) -> bool {
    vocabulary.names("multiply") && vocabulary.names("add") && !vocabulary.product_sizes.is_empty()
}

fn outer(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let (lhs, rhs, shape) = (cx.shape(a), cx.shape(b), node.shape());
    let elem = shape.elem;
    if cx.is_constant(class)
        || !cx.may_reassociate(super::summed_in(elem))
        || !(cx.vocabulary.has("multiply", elem) || cx.vocabulary.has("fma", elem))
        || !matrix_form(dims, lhs.rank(), rhs.rank())
        || lhs.dims[dims.lhs_contracting[0]] != 1
        || (lhs.elem, rhs.elem) != (elem, elem)
        || is_cut(cx, a, dims.lhs_contracting[0]) && !is_padded(cx, b)
        || is_cut(cx, b, dims.rhs_contracting[0]) && !is_padded(cx, b)
    {
        return;
    }
    let [m, n] = [shape.dims[0], shape.dims[1]];
    let column = cx.class(a).reshape(&[m]).broadcast(&[0], &[m, n]);
    let row = cx.class(b).reshape(&[n]).broadcast(&[1], &[m, n]);
    out.push(Term::binary(Binary::Multiply, column, row));
}

/// Longest contraction that is written as a sum of products of vectors.
const OUTERS: u64 = 16;

fn outer_sum(cx: &Context<'_>, class: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Dot(dims), &[a, b]) = (node.op(), &node.operands[..]) else { return };
    let (lhs, rhs, shape) = (cx.shape(a), cx.shape(b), node.shape());
    let elem = shape.elem;
    if cx.is_constant(class)
        || !cx.may_reassociate(super::summed_in(elem))
        || !["multiply", "add"].iter().all(|op| cx.vocabulary.has(op, elem))
        || !matrix_form(dims, lhs.rank(), rhs.rank())
        || (lhs.elem, rhs.elem) != (elem, elem)
    {
        return;
    }
    let (i, j) = (dims.lhs_contracting[0], dims.rhs_contracting[0]);
    let ([m, n], k) = ([shape.dims[0], shape.dims[1]], lhs.dims[i]);
    let of_type = |p: &&ProductSizes| p.form.out == elem && p.types == [elem, elem];
    let products = || cx.vocabulary.product_sizes.iter().filter(of_type);
    // What is longer is cut first, what is shorter on chip is padded there.
    let cut = |p: &&ProductSizes| m <= p.m.max && n <= p.n.max && k <= p.k.max;
    let too_short = |p: &ProductSizes| {
        let [left, right] = p.in_memory;
        m < p.m.min && left || n < p.n.min && right || k < p.k.min && (left || right)
    };
    let short = products().any(|p| cut(&p)) && products().filter(cut).all(too_short);
    let taken = products().any(|p| m >= p.m.min && n >= p.n.min && k >= p.k.min);
    if !(2..=OUTERS).contains(&k) || !short || taken {
        return;
    }
    let mut sum: Option<Term> = None;
    for at in 0..k {
        let column = cx.class(a).slice(i, at, 1).reshape(&[m]).broadcast(&[0], &[m, n]);
        let row = cx.class(b).slice(j, at, 1).reshape(&[n]).broadcast(&[1], &[m, n]);
        let product = Term::binary(Binary::Multiply, column, row);
        sum = Some(match sum {
            None => product,
            Some(before) => Term::binary(Binary::Add, before, product),
        });
    }
    out.extend(sum);
}

fn sliced(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let (OpKind::Slice { start, stride, .. }, [d]) = (node.op(), &node.operands[..]) else { return };
    if stride.iter().any(|&s| s != 1) {
        return;
    }
    for n in cx.nodes(*d) {
        let (OpKind::Dot(dims), [a, b]) = (n.op(), &n.operands[..]) else { continue };
        if !matrix_form(dims, cx.shape(*a).rank(), cx.shape(*b).rank()) {
            continue;
        }
        let (m, n_dim) = (1 - dims.lhs_contracting[0], 1 - dims.rhs_contracting[0]);
        let lens = &node.shape().dims;
        let lhs = cx.class(*a).slice(m, start[0] as u64, lens[0]);
        let rhs = cx.class(*b).slice(n_dim, start[1] as u64, lens[1]);
        out.push(Term::dot(dims.clone(), node.shape().elem, lhs, rhs));
    }
}
