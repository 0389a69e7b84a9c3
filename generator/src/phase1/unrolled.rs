//! Matrix products that an instruction's semantics write out as sums of products. A description that says in which order
//! an instruction adds (pairs of even and odd k, one fused step after the other) has no `dot`; where the policy lets sums
//! be taken in another order, such an instruction is a product all the same. The products must be exact in the type of
//! the sum, so that fusing them or not is no difference. Knows no e-graph and no accelerator.

use act_hlo::{Binary, DotDims, ElemType, Literal, OpKind, Shape};
use act_isa::{Computation, Expr, Instr, Stmt, SymConst, SymOp};

/// Element `.1` of statement `.0`.
type Leaf = (usize, i32);

/// One element of a value.
#[derive(Clone)]
enum Cell {
    Factor(Leaf),
    /// Sum of products; empty is zero.
    Sum(Vec<(Leaf, Leaf)>),
}

/// The instruction with a `dot` in place of the products that it writes out, if it does so: equal but for the order of
/// the sum.
pub(crate) fn as_product(instr: &Instr) -> Option<Instr> {
    let stmts = &instr.computation.stmts;
    let products =
        stmts.iter().filter(|s| matches!(s.op, OpKind::Fma | OpKind::Binary(Binary::Multiply))).count();
    if products < 2 {
        return None;
    }
    let shapes: Vec<Shape> = stmts.iter().map(fixed_shape).collect::<Option<_>>()?;
    let mut values: Vec<Option<Vec<Cell>>> = Vec::with_capacity(stmts.len());
    for at in 0..stmts.len() {
        let value = value(stmts, &shapes, &values, at);
        values.push(value);
    }
    // The last sum of products is the whole of it.
    let (at, sums) =
        values.iter().enumerate().rev().find_map(|(at, value)| Some((at, matrix(value.as_ref()?)?)))?;
    let [m, n] = shapes[at].dims[..] else { return None };
    let (lhs, rhs) = factors(&shapes, &sums, m, n)?;
    Some(Instr { computation: rewritten(&instr.computation, at, &lhs, &rhs), ..instr.clone() })
}

fn fixed_shape(stmt: &Stmt) -> Option<Shape> {
    let dims = stmt.dims.iter().map(|d| match d {
        Expr::Int(v) => u64::try_from(*v).ok(),
        _ => None,
    });
    Some(Shape::new(stmt.elem, dims.collect::<Option<Vec<_>>>()?))
}

/// Whether products of two values of `from` are exact in `to`, under- and overflow aside.
fn exact_products(from: ElemType, to: ElemType) -> bool {
    matches!((from, to), (ElemType::BF16 | ElemType::F16, ElemType::F32))
}

fn value(stmts: &[Stmt], shapes: &[Shape], values: &[Option<Vec<Cell>>], at: usize) -> Option<Vec<Cell>> {
    let stmt = &stmts[at];
    let operand = |k: usize| values[stmt.operands[k]].as_ref();
    match &stmt.op {
        OpKind::Convert if exact_products(shapes[stmt.operands[0]].elem, stmt.elem) => {
            let elements = i32::try_from(shapes[at].elements()).ok()?;
            Some((0..elements).map(|i| Cell::Factor((stmt.operands[0], i))).collect())
        }
        OpKind::Constant(constant) => {
            let zero = match constant {
                SymConst::Int(Expr::Int(0)) => true,
                SymConst::Literal(literal) => literal.bytes().iter().all(|&b| b == 0),
                _ => false,
            };
            zero.then(|| vec![Cell::Sum(Vec::new()); shapes[at].elements() as usize])
        }
        OpKind::Fma => {
            let (x, y, z) = (operand(0)?, operand(1)?, operand(2)?);
            x.iter().zip(y).zip(z).map(|((x, y), z)| sum(&product(x, y)?, z)).collect()
        }
        OpKind::Binary(Binary::Multiply) => {
            operand(0)?.iter().zip(operand(1)?).map(|(x, y)| product(x, y)).collect()
        }
        OpKind::Binary(Binary::Add) => operand(0)?.iter().zip(operand(1)?).map(|(x, y)| sum(x, y)).collect(),
        op => {
            let moved = moved(op, &shapes[*stmt.operands.first()?], &shapes[at])?;
            let cells = operand(0)?;
            moved.into_iter().map(|i| cells.get(i as usize).cloned()).collect()
        }
    }
}

fn product(x: &Cell, y: &Cell) -> Option<Cell> {
    match (x, y) {
        (Cell::Factor(x), Cell::Factor(y)) => Some(Cell::Sum(vec![(*x, *y)])),
        _ => None,
    }
}

fn sum(x: &Cell, y: &Cell) -> Option<Cell> {
    match (x, y) {
        (Cell::Sum(x), Cell::Sum(y)) => Some(Cell::Sum([x.as_slice(), y].concat())),
        _ => None,
    }
}

/// Which element of its operand every element of a movement operator's result is: the reference evaluator moves indices.
fn moved(op: &SymOp, from: &Shape, to: &Shape) -> Option<Vec<i32>> {
    if !super::language::is_movement(op) || matches!(op, OpKind::BitcastConvert) {
        return None;
    }
    let op: OpKind<i64, Literal> =
        op.try_map(|d| if let Expr::Int(v) = d { Ok(*v) } else { Err(()) }, |_| Err(())).ok()?;
    let count = i32::try_from(from.elements()).ok()?;
    let bytes: Vec<u8> = (0..count).flat_map(i32::to_le_bytes).collect();
    let indices = Literal::from_bytes(Shape::new(ElemType::S32, from.dims.clone()), bytes).ok()?;
    let moved = act_hlo::eval_op(&op, &[&indices], &Shape::new(ElemType::S32, to.dims.clone())).ok()?;
    Some(moved.bytes().chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

/// The products of every element, when all are sums of the same number of products, two or more.
fn matrix(cells: &[Cell]) -> Option<Vec<Vec<(Leaf, Leaf)>>> {
    let sums: Option<Vec<_>> = cells
        .iter()
        .map(|cell| match cell {
            Cell::Sum(products) => Some(products.clone()),
            Cell::Factor(_) => None,
        })
        .collect();
    let sums = sums?;
    let length = sums.first()?.len();
    (length >= 2 && sums.iter().all(|s| s.len() == length)).then_some(sums)
}

/// A statement, transposed and reshaped to two dimensions.
struct Factor {
    stmt: usize,
    perm: Vec<usize>,
    dims: [u64; 2],
}

/// The two matrices whose product the sums are.
fn factors(shapes: &[Shape], sums: &[Vec<(Leaf, Leaf)>], m: u64, n: u64) -> Option<(Factor, Factor)> {
    let k = sums[0].len() as u64;
    let (first, second) = (sums[0][0].0.0, sums[0][0].1.0);
    for (a, b) in [(first, second), (second, first)] {
        if a == b || shapes[a].elements() != m * k || shapes[b].elements() != k * n {
            continue;
        }
        // Every sum with its products as (element of a, element of b), in order.
        let ordered = |products: &Vec<(Leaf, Leaf)>| -> Option<Vec<(i32, i32)>> {
            let pairs = products.iter().map(|&(x, y)| match (x.0 == a, y.0 == a) {
                (true, false) if y.0 == b => Some((x.1, y.1)),
                (false, true) if x.0 == b => Some((y.1, x.1)),
                _ => None,
            });
            let mut pairs = pairs.collect::<Option<Vec<_>>>()?;
            pairs.sort_unstable();
            Some(pairs)
        };
        let Some(wanted) = sums.iter().map(ordered).collect::<Option<Vec<_>>>() else { continue };
        let arrangements = |stmt: usize, dims: [u64; 2]| {
            permutations(shapes[stmt].rank()).into_iter().filter_map(move |perm| {
                let turned = perm.iter().map(|&p| shapes[stmt].dims[p]).collect::<Vec<_>>();
                let op = OpKind::Transpose { perm: perm.clone() };
                let order = moved(&op, &shapes[stmt], &Shape::new(shapes[stmt].elem, turned))?;
                Some((Factor { stmt, perm, dims }, order))
            })
        };
        for (lhs, x) in arrangements(a, [m, k]) {
            for (rhs, y) in arrangements(b, [k, n]) {
                let (k, n) = (k as usize, n as usize);
                let agrees = wanted.iter().enumerate().all(|(at, wanted)| {
                    let (row, column) = (at / n, at % n);
                    let mut pairs: Vec<(i32, i32)> =
                        (0..k).map(|i| (x[row * k + i], y[i * n + column])).collect();
                    pairs.sort_unstable();
                    pairs == *wanted
                });
                if agrees {
                    return Some((lhs, rhs));
                }
            }
        }
    }
    None
}

/// All permutations of up to four dimensions, the identity first.
fn permutations(rank: usize) -> Vec<Vec<usize>> {
    if rank > 4 {
        return vec![(0..rank).collect()];
    }
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..rank {
        all = all
            .into_iter()
            .flat_map(|p| {
                let rest = (0..rank).filter(|d| !p.contains(d)).collect::<Vec<_>>();
                rest.into_iter().map(move |d| [p.clone(), vec![d]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

/// The computation with statement `at` as the product of two factors, without what only served to write it out.
fn rewritten(computation: &Computation, at: usize, lhs: &Factor, rhs: &Factor) -> Computation {
    let Computation { stmts, roots } = computation;
    let mut all: Vec<Stmt> = stmts[..at].to_vec();
    let elem = stmts[at].elem;
    let ints = |dims: &[u64]| dims.iter().map(|&d| Expr::Int(d as i64)).collect::<Vec<Expr>>();
    let mut push = |op: SymOp, operands: Vec<usize>, elem: ElemType, dims: Vec<Expr>| {
        all.push(Stmt { name: format!("p{}", all.len()), op, operands, elem, dims });
        all.len() - 1
    };
    let mut operands = Vec::with_capacity(2);
    for factor in [lhs, rhs] {
        let from = &stmts[factor.stmt];
        let mut x = factor.stmt;
        if !factor.perm.is_sorted() {
            let dims = factor.perm.iter().map(|&p| from.dims[p].clone()).collect();
            x = push(OpKind::Transpose { perm: factor.perm.clone() }, vec![x], from.elem, dims);
        }
        if from.dims != ints(&factor.dims) || x != factor.stmt {
            x = push(OpKind::Reshape, vec![x], from.elem, ints(&factor.dims));
        }
        operands.push(push(OpKind::Convert, vec![x], elem, ints(&factor.dims)));
    }
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
    let product = push(OpKind::Dot(dims), operands, elem, stmts[at].dims.clone());
    let shift = product - at;
    let place = |o: usize| if o >= at { o + shift } else { o };
    all.extend(
        stmts[at + 1..]
            .iter()
            .map(|stmt| Stmt { operands: stmt.operands.iter().map(|&o| place(o)).collect(), ..stmt.clone() }),
    );
    let roots = roots.iter().map(|&r| place(r)).collect();
    Computation { stmts: all, roots }.without_unused()
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::compare::compare;
    use act_hlo::random::{SplitMix64, Values, random_literal};
    use act_isa::load_target;

    #[test]
    fn pairs_of_even_and_odd_k_are_a_product() {
        let isa = load_target("amx").unwrap_or_else(|e| panic!("{e}"));
        let found: Vec<(usize, Instr)> =
            isa.instrs.iter().enumerate().filter_map(|(k, i)| as_product(i).map(|p| (k, p))).collect();
        let names: Vec<&str> = found.iter().map(|(_, i)| i.name.as_str()).collect();
        assert_eq!(names, ["tdpbf16ps"]);
        let product = &found[0].1;
        assert!(product.computation.stmts.iter().any(|s| matches!(s.op, OpKind::Dot(_))));
        assert!(product.computation.stmts.iter().all(|s| !matches!(s.op, OpKind::Fma)));
        // Both semantics on random tiles of numbers.
        let mut rng = SplitMix64::new(7);
        let numbers = |rng: &mut SplitMix64, elem, dims: &[u64]| {
            let literal = random_literal(rng, &Shape::new(elem, dims), Values::Unit);
            Literal::from_bytes(Shape::new(ElemType::S8, [1, 16, 64]), literal.bytes().to_vec()).unwrap()
        };
        let tiles = [
            numbers(&mut rng, ElemType::BF16, &[16, 32]),
            numbers(&mut rng, ElemType::BF16, &[16, 32]),
            numbers(&mut rng, ElemType::F32, &[16, 16]),
        ];
        let run = |instr: &Instr| {
            let graph = instr.instantiate(&isa, &[]).unwrap_or_else(|e| panic!("{e}"));
            let bytes = act_hlo::eval(&graph, &tiles).unwrap_or_else(|e| panic!("{e}")).remove(0);
            Literal::from_bytes(Shape::new(ElemType::F32, [16, 16]), bytes.bytes().to_vec()).unwrap()
        };
        let difference = compare(&run(&isa.instrs[found[0].0]), &run(product));
        assert!(difference.within_roundings(), "{difference}");
    }
}
