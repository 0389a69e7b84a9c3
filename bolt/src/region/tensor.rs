//! Graphs of tensor operators on terms. Movement is found by letting the reference evaluator move numbered elements;
//! arithmetic is done term by term, sums with ascending indices. Knows no addresses.

use super::algebra::Algebra;
use super::budget::{Budget, Spent};
use super::term::Term;
use act_hlo::{Binary, DotDims, ElemType, EvalError, Graph, Literal, Node, NodeId, Op, Shape, eval_op};
use std::rc::Rc;

/// Why a graph has no terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TermError {
    #[error("{op} on {elem} has no terms")]
    Unsupported { op: &'static str, elem: ElemType },
    #[error("{op} at a position that depends on data")]
    DataDependent { op: &'static str },
    #[error(transparent)]
    Eval(#[from] EvalError),
    #[error(transparent)]
    Spent(#[from] Spent),
}

/// Where every element of a result comes from.
enum Plan {
    /// Element n of all operands' elements, one after the other.
    Gather(Vec<u32>),
    Known(Vec<Term>),
    Dot(DotPlan),
    /// The elements of each result, `run` of them.
    Reduce {
        order: Vec<u32>,
        run: usize,
    },
    Compute,
}

struct DotPlan {
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
    /// [batch, m, k] and [batch, n, k].
    lhs: Vec<u32>,
    rhs: Vec<u32>,
}

/// A graph made ready.
pub(super) struct TermGraph {
    graph: Graph,
    plans: Vec<Plan>,
    /// How often each node's value is taken.
    uses: Vec<u32>,
    pub(super) multiplications: u64,
}

impl TermGraph {
    /// Prepares a graph.
    ///
    /// # Errors
    /// An operator that terms are not made of.
    pub(super) fn new(graph: Graph) -> Result<TermGraph, TermError> {
        let plans = graph.nodes().iter().map(|node| plan(&graph, node)).collect::<Result<Vec<_>, _>>()?;
        let multiplications = plans
            .iter()
            .map(|plan| match plan {
                Plan::Dot(dot) => (dot.batch * dot.m * dot.n) as u64 * dot.k as u64,
                _ => 0,
            })
            .sum();
        let mut uses = vec![0u32; graph.nodes().len()];
        for id in graph.nodes().iter().flat_map(|n| &n.operands).chain(graph.roots()) {
            uses[id.0 as usize] += 1;
        }
        Ok(TermGraph { graph, plans, uses, multiplications })
    }

    /// The terms of the roots.
    ///
    /// # Errors
    /// A position that depends on data, or there is no time left.
    pub(super) fn eval(
        &self,
        algebra: &mut Algebra,
        budget: &mut Budget<'_>,
        inputs: Vec<Vec<Term>>,
    ) -> Result<Vec<Rc<Vec<Term>>>, TermError> {
        let mut inputs: Vec<Option<Rc<Vec<Term>>>> = inputs.into_iter().map(|v| Some(Rc::new(v))).collect();
        let mut uses = self.uses.clone();
        let mut values: Vec<Option<Rc<Vec<Term>>>> = vec![None; uses.len()];
        for (at, node) in self.graph.nodes().iter().enumerate() {
            if uses[at] == 0 {
                continue;
            }
            let value = match node.op {
                Op::Parameter(k) => inputs.get_mut(k as usize).and_then(Option::take).unwrap_or_default(),
                _ => {
                    let operands: Vec<Rc<Vec<Term>>> =
                        node.operands.iter().filter_map(|id| values[id.0 as usize].clone()).collect();
                    self.node(algebra, budget, node, &self.plans[at], &operands)?
                }
            };
            values[at] = Some(value);
            for id in &node.operands {
                let left = &mut uses[id.0 as usize];
                *left -= 1;
                if *left == 0 {
                    values[id.0 as usize] = None;
                }
            }
        }
        Ok(self.graph.roots().iter().filter_map(|id| values[id.0 as usize].clone()).collect())
    }

    fn elem(&self, id: NodeId) -> ElemType {
        self.graph.shape(id).elem
    }

    fn node(
        &self,
        algebra: &mut Algebra,
        budget: &mut Budget<'_>,
        node: &Node,
        plan: &Plan,
        operands: &[Rc<Vec<Term>>],
    ) -> Result<Rc<Vec<Term>>, TermError> {
        let count = node.shape.elements() as usize;
        let result = node.shape.elem;
        budget.take(count as u64)?;
        let unsupported = || TermError::Unsupported { op: node.op.name(), elem: result };
        let elem = |k: usize| node.operands.get(k).map_or(result, |&id| self.elem(id));
        match (plan, operands) {
            (Plan::Known(terms), _) => return Ok(Rc::new(terms.clone())),
            (Plan::Gather(map), [x]) => {
                return Ok(Rc::new(map.iter().map(|&at| x[at as usize]).collect()));
            }
            (Plan::Gather(map), _) => {
                let all: Vec<Term> = operands.iter().flat_map(|x| x.iter().copied()).collect();
                return Ok(Rc::new(map.iter().map(|&at| all[at as usize]).collect()));
            }
            (Plan::Dot(dot), [a, b]) => {
                return Ok(Rc::new(dot.eval(algebra, budget, [elem(0), elem(1), result], a, b)?));
            }
            (Plan::Reduce { order, run }, [x, init]) => {
                let Op::Reduce { combiner, .. } = node.op else { return Err(unsupported()) };
                let first = init.first().copied().unwrap_or(Term::POISON);
                budget.take(order.len() as u64)?;
                return Ok(Rc::new(reduce(algebra, combiner, result, (x, order, *run), first, count)));
            }
            _ => {}
        }
        let at = |x: &Rc<Vec<Term>>, k: usize| if x.len() == 1 { x[0] } else { x[k] };
        let each = 0..count;
        let terms = match (&node.op, operands) {
            (Op::Copy | Op::Reshape, [x]) => return Ok(Rc::clone(x)),
            (Op::Unary(op), [x]) => each.map(|k| algebra.unary(*op, elem(0), at(x, k), result)).collect(),
            (Op::Binary(op), [a, b]) => {
                each.map(|k| algebra.binary(*op, result, at(a, k), at(b, k))).collect()
            }
            (Op::Compare(direction), [a, b]) => {
                each.map(|k| algebra.compare(*direction, elem(0), at(a, k), at(b, k))).collect()
            }
            (Op::Select, [p, a, b]) => {
                each.map(|k| algebra.select(result, at(p, k), at(a, k), at(b, k))).collect()
            }
            (Op::Clamp, [low, x, high]) => {
                each.map(|k| algebra.clamp(result, at(low, k), at(x, k), at(high, k))).collect()
            }
            (Op::Fma, [a, b, c]) => each.map(|k| algebra.fma(result, at(a, k), at(b, k), at(c, k))).collect(),
            (Op::Convert, [x]) => each.map(|k| algebra.convert(elem(0), result, at(x, k))).collect(),
            (Op::ReducePrecision { exponent_bits, mantissa_bits }, [x]) => each
                .map(|k| algebra.reduce_precision(*exponent_bits, *mantissa_bits, result, at(x, k)))
                .collect(),
            (Op::BitcastConvert, [x]) => bitcast(algebra, elem(0), result, x),
            (Op::DynamicSlice { .. } | Op::DynamicUpdateSlice, _) => self.dynamic(node, operands)?,
            _ => return Err(unsupported()),
        };
        Ok(Rc::new(terms))
    }

    /// Slices at positions that are known by now.
    fn dynamic(&self, node: &Node, operands: &[Rc<Vec<Term>>]) -> Result<Vec<Term>, TermError> {
        let arrays = if node.op == Op::DynamicUpdateSlice { 2 } else { 1 };
        let mut literals = numbered(&self.graph, &node.operands[..arrays]);
        for (id, value) in node.operands.iter().zip(operands).skip(arrays) {
            let known = value.first().and_then(|v| v.as_constant());
            let bits = known.ok_or(TermError::DataDependent { op: node.op.name() })?;
            let shape = self.graph.shape(*id).clone();
            let bytes = bits.to_le_bytes()[..shape.bytes() as usize].to_vec();
            literals.push(Literal::from_bytes(shape, bytes).map_err(EvalError::from)?);
        }
        let map = moved(&node.op, &literals, &node.shape)?;
        let all: Vec<Term> = operands[..arrays].iter().flat_map(|x| x.iter().copied()).collect();
        Ok(map.into_iter().map(|at| all[at as usize]).collect())
    }
}

/// Operands whose elements are their numbers, counted on from operand to operand.
fn numbered(graph: &Graph, operands: &[NodeId]) -> Vec<Literal> {
    let mut next = 0u32;
    let mut number = |id: &NodeId| {
        let shape = Shape::new(ElemType::U32, graph.shape(*id).dims.clone());
        let count = shape.elements() as u32;
        let bytes: Vec<u8> = (next..next + count).flat_map(u32::to_le_bytes).collect();
        next += count;
        Literal::from_bytes(shape.clone(), bytes).unwrap_or_else(|_| Literal::zeros(shape))
    };
    operands.iter().map(&mut number).collect()
}

fn moved(op: &Op, operands: &[Literal], result: &Shape) -> Result<Vec<u32>, TermError> {
    let operands: Vec<&Literal> = operands.iter().collect();
    let value = eval_op(op, &operands, &Shape::new(ElemType::U32, result.dims.clone()))?;
    Ok(value.bytes().chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

fn known(value: &Literal) -> Vec<Term> {
    let width = value.elem().bytes();
    let count = value.shape().elements();
    let bits = |k| value.element_bytes(k).iter().rev().fold(0u64, |bits, &b| (bits << 8) | u64::from(b));
    debug_assert!(width <= 8);
    (0..count).map(|k| Term::constant(bits(k))).collect()
}

fn plan(graph: &Graph, node: &Node) -> Result<Plan, TermError> {
    let shape = |k: usize| graph.shape(node.operands[k]);
    let refused = |elem: ElemType| elem.is_complex() || elem.bits() == 4;
    if refused(node.shape.elem) {
        return Err(TermError::Unsupported { op: node.op.name(), elem: node.shape.elem });
    }
    Ok(match &node.op {
        Op::Constant(_) | Op::Iota { .. } | Op::Eye => {
            Plan::Known(known(&eval_op(&node.op, &[], &node.shape)?))
        }
        Op::Broadcast { .. }
        | Op::Transpose { .. }
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Reverse { .. }
        | Op::Concatenate { .. } => {
            Plan::Gather(moved(&node.op, &numbered(graph, &node.operands), &node.shape)?)
        }
        Op::Dot(dims) => Plan::Dot(DotPlan::new(dims, shape(0), shape(1))?),
        Op::Reduce { dims, .. } => {
            let x = shape(0);
            let kept = (0..x.rank()).filter(|d| !dims.contains(d));
            let perm: Vec<usize> = kept.chain((0..x.rank()).filter(|d| dims.contains(d))).collect();
            let run = dims.iter().map(|&d| x.dims[d] as usize).product();
            Plan::Reduce { order: transposed(x, &perm)?, run }
        }
        _ => Plan::Compute,
    })
}

/// Numbers of the elements with the dimensions in another order.
fn transposed(shape: &Shape, perm: &[usize]) -> Result<Vec<u32>, TermError> {
    let dims: Vec<u64> = perm.iter().map(|&d| shape.dims[d]).collect();
    let count = shape.elements() as u32;
    let bytes: Vec<u8> = (0..count).flat_map(u32::to_le_bytes).collect();
    let literal =
        Literal::from_bytes(Shape::new(ElemType::U32, shape.dims.clone()), bytes).map_err(EvalError::from)?;
    moved(&Op::Transpose { perm: perm.to_vec() }, &[literal], &Shape::new(ElemType::U32, dims))
}

impl DotPlan {
    fn new(dims: &DotDims, lhs: &Shape, rhs: &Shape) -> Result<DotPlan, TermError> {
        let free = |shape: &Shape, batch: &[usize], contracting: &[usize]| -> Vec<usize> {
            (0..shape.rank()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
        };
        let size = |shape: &Shape, dims: &[usize]| dims.iter().map(|&d| shape.dims[d] as usize).product();
        let lhs_free = free(lhs, &dims.lhs_batch, &dims.lhs_contracting);
        let rhs_free = free(rhs, &dims.rhs_batch, &dims.rhs_contracting);
        Ok(DotPlan {
            batch: size(lhs, &dims.lhs_batch),
            m: size(lhs, &lhs_free),
            k: size(lhs, &dims.lhs_contracting),
            n: size(rhs, &rhs_free),
            lhs: transposed(lhs, &[&dims.lhs_batch[..], &lhs_free, &dims.lhs_contracting].concat())?,
            rhs: transposed(rhs, &[&dims.rhs_batch[..], &rhs_free, &dims.rhs_contracting].concat())?,
        })
    }

    fn eval(
        &self,
        algebra: &mut Algebra,
        budget: &mut Budget<'_>,
        [a, b, result]: [ElemType; 3],
        lhs: &[Term],
        rhs: &[Term],
    ) -> Result<Vec<Term>, TermError> {
        let DotPlan { batch, m, k, n, .. } = *self;
        let float = result.is_float();
        let inner = if [a, b, result].contains(&ElemType::F64) {
            ElemType::F64
        } else if float {
            ElemType::F32
        } else {
            result
        };
        let mut arranged = |x: &[Term], order: &[u32], elem: ElemType| -> Vec<Term> {
            order.iter().map(|&at| algebra.convert(elem, inner, x[at as usize])).collect()
        };
        let (lhs, rhs) = (arranged(lhs, &self.lhs, a), arranged(rhs, &self.rhs, b));
        let mut sums = Vec::with_capacity(batch * m * n);
        match algebra.factors(inner, &lhs, &rhs) {
            Some([left, right]) => {
                for row in 0..batch * m {
                    budget.take((n * k) as u64)?;
                    let (left, right) = (&left[row * k..][..k], &right[row / m * n * k..][..n * k]);
                    algebra.row_of_products(inner, left, right, n, &mut sums);
                }
            }
            None => {
                for row in 0..batch * m {
                    budget.take((n * k) as u64)?;
                    let left = &lhs[row * k..][..k];
                    for column in 0..n {
                        let right = &rhs[(row / m * n + column) * k..][..k];
                        let mut sum = Term::constant(0);
                        for (&x, &y) in left.iter().zip(right) {
                            let product = algebra.arithmetic(Binary::Multiply, inner, x, y);
                            sum = algebra.arithmetic(Binary::Add, inner, sum, product);
                        }
                        sums.push(sum);
                    }
                }
            }
        }
        if float {
            sums.iter_mut().for_each(|sum| *sum = algebra.convert_result(inner, result, *sum));
        }
        Ok(sums)
    }
}

fn reduce(
    algebra: &mut Algebra,
    combiner: Binary,
    elem: ElemType,
    (x, order, run): (&[Term], &[u32], usize),
    init: Term,
    count: usize,
) -> Vec<Term> {
    let inner = match elem {
        ElemType::F16 | ElemType::BF16 => ElemType::F32,
        other => other,
    };
    let first = algebra.convert(elem, inner, init);
    let result = |at: usize| {
        let group = &order[at * run..][..run];
        let sum = group.iter().fold(first, |sum, &at| {
            let value = algebra.convert(elem, inner, x[at as usize]);
            algebra.arithmetic(combiner, inner, sum, value)
        });
        algebra.convert_result(inner, elem, sum)
    };
    (0..count).map(result).collect()
}

fn bitcast(algebra: &mut Algebra, from: ElemType, to: ElemType, x: &[Term]) -> Vec<Term> {
    if from == to {
        return x.to_vec();
    }
    let mut bytes = Vec::with_capacity(x.len() * from.bytes() as usize);
    x.iter().for_each(|&value| algebra.bytes(from, value, |byte| bytes.push(byte)));
    bytes.chunks_exact(to.bytes() as usize).map(|bytes| algebra.of_bytes(to, bytes)).collect()
}
