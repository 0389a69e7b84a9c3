//! Laws over random graphs: inference and evaluation agree on shapes, text reads back as it was printed, equal
//! graphs have equal canonical bytes.

use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{
    Binary, Direction, DotDims, ElemType, EvalError, Graph, Literal, NodeId, Op, Shape, SourceLoc, Unary,
    canonical_bytes, eval, eval_op, infer_shape, parse_graph, parse_module, print_graph,
};
use proptest::prelude::*;

/// Picks one of `items`.
fn pick<T: Clone>(rng: &mut SplitMix64, items: &[T]) -> T {
    items[rng.below(items.len() as u64) as usize].clone()
}

fn sizes(rng: &mut SplitMix64, most: u64) -> Vec<u64> {
    (0..rng.below(4)).map(|_| rng.below(most + 1)).collect()
}

fn permutation(rng: &mut SplitMix64, rank: usize) -> Vec<usize> {
    let mut perm: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        perm.swap(i, rng.below(i as u64 + 1) as usize);
    }
    perm
}

/// Some of the dimensions, in random order.
fn some_dims(rng: &mut SplitMix64, rank: usize) -> Vec<usize> {
    let mut dims = permutation(rng, rank);
    dims.truncate(rng.below(rank as u64 + 1) as usize);
    dims
}

/// An operator that may or may not fit its operands and declared shape.
fn random_op(rng: &mut SplitMix64, graph: &Graph) -> (Op, Vec<NodeId>, Option<Shape>) {
    let any = |rng: &mut SplitMix64| NodeId(rng.below(graph.nodes().len() as u64) as u32);
    let x = any(rng);
    let shape = graph.shape(x).clone();
    let rank = shape.rank();
    let like = |rng: &mut SplitMix64, wanted: &Shape| {
        let same: Vec<NodeId> = graph.ids().filter(|&id| graph.shape(id) == wanted).collect();
        if same.is_empty() { NodeId(0) } else { pick(rng, &same) }
    };
    let scalar = Shape::scalar(shape.elem);
    let to = |elem: ElemType| Some(Shape::new(elem, shape.dims.clone()));
    let mut per_dim =
        |low: i64, high: u64| -> Vec<i64> { (0..rank).map(|_| rng.below(high) as i64 + low).collect() };
    let (start, limit, stride) = (per_dim(0, 2), per_dim(1, 4), per_dim(1, 3));
    let (low, high, interior) = (per_dim(-1, 4), per_dim(-1, 4), per_dim(0, 3));
    match rng.below(24) {
        0 => (Op::Unary(pick(rng, Unary::ALL)), vec![x], None),
        1 => (Op::Binary(pick(rng, Binary::ALL)), vec![x, like(rng, &shape)], None),
        2 => (Op::Compare(pick(rng, Direction::ALL)), vec![x, like(rng, &shape)], None),
        3 => {
            let pred = if rng.below(2) == 0 { Vec::new() } else { shape.dims.clone() };
            let pred = like(rng, &Shape::new(ElemType::Pred, pred));
            (Op::Select, vec![pred, x, like(rng, &shape)], None)
        }
        4 => (Op::Clamp, vec![like(rng, &scalar), x, like(rng, &shape)], None),
        5 => (Op::Fma, vec![x, like(rng, &shape), like(rng, &shape)], None),
        6 => (Op::Convert, vec![x], to(pick(rng, &ElemType::ALL))),
        7 => (Op::BitcastConvert, vec![x], to(pick(rng, &ElemType::ALL))),
        8 => (Op::Copy, vec![x], None),
        9 => {
            let (exponent_bits, mantissa_bits) = (rng.below(9) as u32, rng.below(60) as u32);
            (Op::ReducePrecision { exponent_bits, mantissa_bits }, vec![x], None)
        }
        10 => {
            let mut dims: Vec<u64> = shape.dims.clone();
            let extra = rng.below(3);
            dims.insert(rng.below(rank as u64 + 1) as usize, extra);
            let perm = permutation(rng, rank + 1);
            let dims_of = perm[..rank].to_vec();
            let mut target = vec![extra; rank + 1];
            dims_of.iter().zip(&shape.dims).for_each(|(&d, &size)| target[d] = size);
            (Op::Broadcast { dims: dims_of }, vec![x], Some(Shape::new(shape.elem, target)))
        }
        11 => (Op::Reshape, vec![x], Some(Shape::new(shape.elem, [shape.elements()]))),
        12 => (Op::Transpose { perm: permutation(rng, rank) }, vec![x], None),
        13 => (Op::Slice { start, limit, stride }, vec![x], None),
        14 | 15 => {
            let index = like(rng, &Shape::scalar(ElemType::S32));
            let starts = std::iter::repeat_n(index, rank);
            if rng.below(2) == 0 {
                (Op::DynamicSlice { sizes: start }, std::iter::once(x).chain(starts).collect(), None)
            } else {
                (Op::DynamicUpdateSlice, [x, like(rng, &shape)].into_iter().chain(starts).collect(), None)
            }
        }
        16 | 17 => (Op::Pad { low, high, interior }, vec![x, like(rng, &scalar)], None),
        18 => (Op::Reverse { dims: some_dims(rng, rank) }, vec![x], None),
        19 => (Op::Concatenate { dim: rng.below(3) as usize }, vec![x, any(rng), like(rng, &shape)], None),
        20 => {
            let combiner = pick(rng, Binary::ALL);
            (Op::Reduce { dims: some_dims(rng, rank), combiner }, vec![x, like(rng, &scalar)], None)
        }
        21 => {
            let contracted = some_dims(rng, rank);
            let (batch, contracting) = contracted.split_at(contracted.len() / 2);
            let dims = DotDims {
                lhs_batch: batch.to_vec(),
                rhs_batch: batch.to_vec(),
                lhs_contracting: contracting.to_vec(),
                rhs_contracting: contracting.to_vec(),
            };
            (Op::Dot(dims), vec![x, like(rng, &shape)], None)
        }
        22 => (Op::Iota { dim: rng.below(3) as usize }, Vec::new(), Some(shape)),
        _ => (Op::Eye, Vec::new(), Some(Shape::new(shape.elem, [rng.below(4), rng.below(4)]))),
    }
}

/// A graph of about `size` nodes with values of many types; names, sources and roots vary.
fn random_graph(rng: &mut SplitMix64, size: usize) -> Graph {
    let mut graph = Graph::new(pick(rng, &["g", "", "kernel.1"]));
    for _ in 0..3 {
        let dims = sizes(rng, 4);
        graph.parameter(Shape::new(pick(rng, &ElemType::ALL), dims));
    }
    graph.parameter(Shape::scalar(ElemType::S32));
    graph.parameter(Shape::scalar(ElemType::Pred));
    for i in 0..size * 6 {
        if graph.nodes().len() >= size {
            break;
        }
        let added = if rng.below(5) == 0 {
            let of = graph.nodes()[rng.below(graph.nodes().len() as u64) as usize].shape.clone();
            let shape = if rng.below(2) == 0 { Shape::scalar(of.elem) } else { of };
            let values = pick(rng, &[Values::Small, Values::Unit, Values::Full, Values::Special]);
            graph.add(Op::Constant(random_literal(rng, &shape, values)), &[])
        } else {
            let (op, operands, declared) = random_op(rng, &graph);
            // Products of products would grow without bound.
            let refs: Vec<&Shape> = operands.iter().map(|&id| graph.shape(id)).collect();
            match infer_shape(&op, &refs, declared.as_ref()) {
                Ok(shape) if shape.elements() <= 256 && shape.rank() < 7 => {
                    graph.add_declared(op, &operands, declared.as_ref())
                }
                _ => continue,
            }
        };
        let id = added.expect("inference has accepted it");
        if rng.below(2) == 0 {
            graph.annotate(id).name = format!("value-{i}.x");
        }
        if rng.below(4) == 0 {
            let op_name = "jit(f)/\"quoted\\\"\n".to_owned();
            let (file, line) = (pick(rng, &["", "a b.py"]).to_owned(), rng.below(3) as u32);
            graph.annotate(id).source = Some(SourceLoc { op_name, file, line });
        }
    }
    for _ in 0..rng.below(4) {
        let root = NodeId(rng.below(graph.nodes().len() as u64) as u32);
        graph.add_root(root).unwrap();
    }
    graph
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn printed_graphs_read_back(seed: u64) {
        let graph = random_graph(&mut SplitMix64::new(seed), 25);
        let text = print_graph(&graph);
        let again = parse_graph(&text).unwrap_or_else(|e| panic!("{e}\nin\n{text}"));
        prop_assert_eq!(&graph, &again, "{}", text);
        prop_assert_eq!(canonical_bytes(&graph), canonical_bytes(&again));
    }

    /// Every node evaluates to its inferred shape, or to a refusal of its type.
    #[test]
    fn evaluation_gives_the_inferred_shape(seed: u64) {
        let rng = &mut SplitMix64::new(seed);
        let graph = random_graph(rng, 30);
        let mut values: Vec<Literal> = Vec::new();
        for node in graph.nodes() {
            let value = if let Op::Parameter(_) = node.op {
                random_literal(rng, &node.shape, Values::Special)
            } else {
                let operands: Vec<&Literal> = node.operands.iter().map(|id| &values[id.0 as usize]).collect();
                match eval_op(&node.op, &operands, &node.shape) {
                    Ok(value) => value,
                    Err(EvalError::Unsupported { elem, .. }) => {
                        let power = node.op == Op::Binary(Binary::Power);
                        let popcnt = node.op == Op::Unary(Unary::Popcnt) && elem == ElemType::S4;
                        let known = elem.is_complex() || (power && elem.is_int()) || popcnt;
                        prop_assert!(known, "{:?} on {}", node.op, elem);
                        random_literal(rng, &node.shape, Values::Small)
                    }
                    Err(other) => panic!("{other}"),
                }
            };
            prop_assert_eq!(value.shape(), &node.shape);
            // Values stay in their type's form: pred is 0 or 1, 4-bit integers are extended.
            let formed = match node.shape.elem {
                ElemType::Pred => value.bytes().iter().all(|&b| b < 2),
                ElemType::S4 => value.bytes().iter().all(|&b| (-8..8).contains(&(b as i8))),
                ElemType::U4 => value.bytes().iter().all(|&b| b < 16),
                _ => true,
            };
            prop_assert!(formed, "{:?} gave {:?}", node.op, value);
            values.push(value);
        }
        let inputs: Vec<Literal> = graph.params().iter().map(|id| values[id.0 as usize].clone()).collect();
        if let Ok(results) = eval(&graph, &inputs) {
            let expected: Vec<Literal> = graph.roots().iter().map(|id| values[id.0 as usize].clone()).collect();
            prop_assert_eq!(results, expected);
        }
    }

    /// Damaged text is an error or another graph, never a panic.
    #[test]
    fn damaged_text_does_not_panic(seed: u64) {
        let rng = &mut SplitMix64::new(seed);
        let mut text: Vec<char> = print_graph(&random_graph(rng, 12)).chars().collect();
        for _ in 0..=rng.below(3) {
            let at = rng.below(text.len() as u64) as usize;
            match rng.below(3) {
                0 => text[at] = pick(rng, &['{', '}', '(', ')', ',', '=', '-', '9', '"', 'ß', '\n', '[', ':']),
                1 => text.truncate(at + 1),
                _ => { text.remove(at); }
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = parse_graph(&text) {
            prop_assert!(error.to_string().ends_with('^'));
        }
        let _ = parse_module(&text);
    }
}
