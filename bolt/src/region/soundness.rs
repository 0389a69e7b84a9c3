//! Equal terms, equal values: thousands of random scalar expressions are made terms of, and those that share a term are
//! computed by the reference evaluator on special and random data.

use super::algebra::{Algebra, Level};
use super::budget::Budget;
use super::tensor::TermGraph;
use super::term::Term;
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::text::parse_graph;
use act_hlo::{Binary, Direction, ElemType, Graph, Literal, NodeId, Op, Shape, Unary, eval};
use std::collections::BTreeMap;

const TYPES: [ElemType; 8] = [
    ElemType::F32,
    ElemType::BF16,
    ElemType::F16,
    ElemType::S32,
    ElemType::S16,
    ElemType::S8,
    ElemType::U8,
    ElemType::Pred,
];

fn unlimited() -> Budget<'static> {
    Budget::new(u64::MAX, None, None)
}

/// How an operator is written down, to tell expressions apart.
type Spelling = (Op, Vec<NodeId>, ElemType);

/// Expressions over two inputs of every type, each node of the given length.
struct Expressions {
    graph: Graph,
    shape: Vec<u64>,
    by_type: BTreeMap<ElemType, Vec<NodeId>>,
    spelled: BTreeMap<Spelling, NodeId>,
}

impl Expressions {
    fn new(length: u64) -> Expressions {
        let mut new = Expressions {
            graph: Graph::new("expressions"),
            shape: vec![length],
            by_type: BTreeMap::new(),
            spelled: BTreeMap::new(),
        };
        for elem in TYPES {
            for _ in 0..2 {
                let id = new.graph.parameter(Shape::new(elem, [length]));
                new.by_type.entry(elem).or_default().push(id);
            }
        }
        new
    }

    fn pick(&self, rng: &mut SplitMix64, elem: ElemType) -> NodeId {
        let all = &self.by_type[&elem];
        // Recent ones as often as any: expressions get deep.
        let recent = all.len().min(12);
        let from = if rng.below(2) == 0 { 0 } else { all.len() - recent };
        all[from + rng.below((all.len() - from) as u64) as usize]
    }

    fn add(&mut self, op: Op, operands: &[NodeId], elem: ElemType) {
        self.made(op, operands, elem);
    }

    fn made(&mut self, op: Op, operands: &[NodeId], elem: ElemType) -> NodeId {
        let spelling = (op, operands.to_vec(), elem);
        if let Some(&known) = self.spelled.get(&spelling) {
            return known;
        }
        let shape = Shape::new(elem, self.shape.clone());
        let id = self.graph.add_declared(spelling.0.clone(), operands, Some(&shape)).unwrap();
        self.spelled.insert(spelling, id);
        self.graph.add_root(id).unwrap();
        self.by_type.get_mut(&elem).unwrap().push(id);
        id
    }

    /// f of an extremum beside both extrema of f's: equal for some functions and constants and not for others.
    fn commute(&mut self, rng: &mut SplitMix64) {
        let elem = TYPES[rng.below(7) as usize];
        let to = TYPES[rng.below(7) as usize];
        let choice = rng.below(6);
        let factor = self.constant(rng, elem);
        let f = |made: &mut Expressions, x: NodeId| -> (NodeId, ElemType) {
            match choice {
                0..=2 => (made.made(Op::Convert, &[x], to), to),
                3 => (made.made(Op::Binary(Binary::Multiply), &[x, factor], elem), elem),
                4 if elem.is_float() => (made.made(Op::Unary(Unary::RoundNearestEven), &[x], elem), elem),
                4 => (made.made(Op::Unary(Unary::Negate), &[x], elem), elem),
                _ => (made.made(Op::Binary(Binary::Add), &[x, factor], elem), elem),
            }
        };
        if choice < 3 && elem == to {
            return;
        }
        let x = self.pick(rng, elem);
        let (low, high) = (self.constant(rng, elem), self.constant(rng, elem));
        let extrema = [Binary::Maximum, Binary::Minimum].map(Op::Binary);
        let mut inner = self.made(extrema[0].clone(), &[x, low], elem);
        if rng.below(2) == 0 {
            inner = self.made(extrema[1].clone(), &[inner, high], elem);
        }
        f(self, inner);
        let ((fx, result), (low, _), (high, _)) = (f(self, x), f(self, low), f(self, high));
        for order in [[0, 1], [1, 0]] {
            let once = self.made(extrema[order[0]].clone(), &[fx, low], result);
            self.made(extrema[order[1]].clone(), &[once, high], result);
            let [a, b] = order.map(|k| [low, high][k]);
            let once = self.made(extrema[0].clone(), &[fx, a], result);
            self.made(extrema[1].clone(), &[once, b], result);
        }
    }

    fn constant(&mut self, rng: &mut SplitMix64, elem: ElemType) -> NodeId {
        let draws = [Values::Small, Values::Special, Values::Unit];
        let drawn = draws[rng.below(3) as usize];
        let value = random_literal(rng, &Shape::scalar(elem), drawn);
        let bytes = value.bytes().repeat(self.shape[0] as usize);
        let literal = Literal::from_bytes(Shape::new(elem, self.shape.clone()), bytes).unwrap();
        let id = self.graph.add(Op::Constant(literal), &[]).unwrap();
        self.by_type.get_mut(&elem).unwrap().push(id);
        id
    }

    fn grow(&mut self, rng: &mut SplitMix64) {
        if rng.below(4) == 0 {
            return self.commute(rng);
        }
        let elem = TYPES[rng.below(TYPES.len() as u64) as usize];
        let [a, b, c] = [0; 3].map(|_| self.pick(rng, elem));
        if elem == ElemType::Pred {
            let of = TYPES[rng.below(7) as usize];
            let [x, y] = [0; 2].map(|_| self.pick(rng, of));
            let directions =
                [Direction::Eq, Direction::Ne, Direction::Lt, Direction::Le, Direction::Gt, Direction::Ge];
            match rng.below(3) {
                0 => self.add(Op::Binary(Binary::And), &[a, b], elem),
                1 => self.add(Op::Binary(Binary::Or), &[a, b], elem),
                _ => self.add(Op::Compare(directions[rng.below(6) as usize]), &[x, y], elem),
            }
            return;
        }
        let binary = |op| (Op::Binary(op), vec![a, b]);
        let (op, operands) = match rng.below(14) {
            0 => binary(Binary::Add),
            1 => binary(Binary::Subtract),
            2 => binary(Binary::Multiply),
            3 | 4 => binary(Binary::Maximum),
            5 | 6 => binary(Binary::Minimum),
            7 => (Op::Clamp, vec![a, b, c]),
            8 => (Op::Select, vec![self.pick(rng, ElemType::Pred), a, b]),
            9 => (Op::Unary(Unary::Negate), vec![a]),
            10 if elem.is_float() => {
                let ops = [Unary::RoundNearestEven, Unary::Floor, Unary::Abs, Unary::Exp];
                (Op::Unary(ops[rng.below(4) as usize]), vec![a])
            }
            10 => {
                let ops = [Binary::ShiftLeft, Binary::ShiftRightArithmetic, Binary::And, Binary::Xor];
                binary(ops[rng.below(4) as usize])
            }
            _ => {
                let from = TYPES[rng.below(7) as usize];
                if from == elem {
                    self.constant(rng, elem);
                    return;
                }
                let x = self.pick(rng, from);
                // By value, or by bits where the widths agree.
                let op = if from.bits() == elem.bits() && rng.below(4) == 0 {
                    Op::BitcastConvert
                } else {
                    Op::Convert
                };
                (op, vec![x])
            }
        };
        self.add(op, &operands, elem);
    }
}

fn is_nan(elem: ElemType, bytes: &[u8]) -> bool {
    match elem {
        ElemType::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        ElemType::BF16 => half::bf16::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        ElemType::F16 => half::f16::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    }
}

/// Grows the same expressions twice, of one element for terms and of many for values.
fn check(seed: u64, nodes: u32) -> usize {
    const LENGTH: u64 = 192;
    let grown = |length: u64| {
        let mut rng = SplitMix64::new(seed);
        let mut expressions = Expressions::new(length);
        (0..nodes).for_each(|_| expressions.grow(&mut rng));
        expressions.graph
    };
    let (single, many) = (grown(1), grown(LENGTH));
    let mut rng = SplitMix64::new(seed + 1);
    let inputs: Vec<Literal> = many
        .params()
        .iter()
        .map(|&id| {
            let half = Shape::new(many.shape(id).elem, [LENGTH / 2]);
            let bytes =
                [Values::Special, Values::Full].map(|v| random_literal(&mut rng, &half, v).bytes().to_vec());
            Literal::from_bytes(many.shape(id).clone(), bytes.concat()).unwrap()
        })
        .collect();
    let values = eval(&many, &inputs).unwrap();
    let mut algebra = Algebra::new(Level::Exact, seed);
    let leaves = (0..single.params().len() as u64).map(|k| vec![algebra.leaf(k, 0)]).collect();
    let terms = TermGraph::new(single.clone()).unwrap().eval(&mut algebra, &mut unlimited(), leaves).unwrap();
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (k, (&root, term)) in single.roots().iter().zip(&terms).enumerate() {
        groups.entry((single.shape(root).elem, term[0])).or_default().push(k);
    }
    let mut pairs = 0;
    for ((elem, _), group) in &groups {
        for &other in &group[1..] {
            pairs += 1;
            for at in 0..LENGTH {
                let [a, b] = [group[0], other].map(|k| values[k].element_bytes(at));
                let same = a == b || (is_nan(*elem, a) && is_nan(*elem, b));
                let node = |k: usize| {
                    let node = single.node(single.roots()[k]);
                    (node.op.clone(), node.operands.clone())
                };
                assert!(same, "seed {seed}: {:?} and {:?} are {a:?} and {b:?}", node(group[0]), node(other));
            }
        }
    }
    pairs
}

#[test]
fn expressions_with_one_term_have_one_value() {
    let pairs: usize = (1..=30).map(|seed| check(seed, 1500)).sum();
    assert!(pairs > 1000, "{pairs} pairs");
}

/// Terms of the roots of a program.
fn terms_of(body: &str) -> Vec<Term> {
    let graph = parse_graph(&format!("HloModule m\nENTRY main {{\n{body}}}\n")).unwrap();
    let mut algebra = Algebra::new(Level::Exact, 11);
    let inputs = graph.params().iter().zip(0..).map(|(&id, k)| {
        let shape = graph.shape(id).clone();
        let leaves = (0..shape.elements()).map(|at| algebra.leaf(k, at)).collect::<Vec<Term>>();
        leaves.into_iter().map(|leaf| algebra.declare(shape.elem, leaf)).collect()
    });
    let inputs: Vec<Vec<Term>> = inputs.collect();
    let roots = TermGraph::new(graph).unwrap().eval(&mut algebra, &mut unlimited(), inputs).unwrap();
    roots.iter().map(|root| root[0]).collect()
}

/// Both of a tuple.
fn same(body: &str) -> bool {
    let terms = terms_of(body);
    terms[0] == terms[1]
}

#[test]
fn what_passes_through_wider_integers_is_what_it_was() {
    for body in [
        "a = s8[4,8] parameter(0)\n b = s8[8,4] parameter(1)\n
         x = s8[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         c = s32[4,8] convert(a)\n d = s32[8,4] convert(b)\n
         w = s32[4,4] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         y = s8[4,4] convert(w)\n ROOT r = (s8[4,4], s8[4,4]) tuple(x, y)\n",
        "a = u8[] parameter(0)\n b = s8[] parameter(1)\n c = s32[] convert(a)\n d = s32[] convert(b)\n
         p = s32[] multiply(c, d)\n x = s16[] convert(p)\n e = s16[] convert(a)\n f = s16[] convert(b)\n
         y = s16[] multiply(e, f)\n ROOT r = (s16[], s16[]) tuple(x, y)\n",
        "a = s8[] parameter(0)\n z = s8[] constant(0)\n x = s8[] maximum(a, z)\n c = s32[] convert(a)\n
         o = s32[] constant(0)\n m = s32[] maximum(c, o)\n y = s8[] convert(m)\n
         ROOT r = (s8[], s8[]) tuple(x, y)\n",
        "a = s8[] parameter(0)\n b = s8[] parameter(1)\n x = s8[] minimum(a, b)\n c = s32[] convert(a)\n
         d = s32[] convert(b)\n m = s32[] minimum(d, c)\n y = s8[] convert(m)\n
         ROOT r = (s8[], s8[]) tuple(x, y)\n",
        "a = s8[] parameter(0)\n b = s8[] parameter(1)\n p = pred[] compare(a, b), direction=LT\n
         x = s8[] select(p, a, b)\n c = s32[] convert(a)\n d = s32[] convert(b)\n
         q = pred[] compare(d, c), direction=GT\n s = s32[] select(q, c, d)\n y = s8[] convert(s)\n
         ROOT r = (s8[], s8[]) tuple(x, y)\n",
        "a = s32[] parameter(0)\n l = s32[] constant(-128)\n h = s32[] constant(127)\n x = s32[] clamp(l, a, h)\n
         n = s8[] convert(x)\n y = s32[] convert(n)\n ROOT r = (s32[], s32[]) tuple(x, y)\n",
        "a = s8[] parameter(0)\n z = s8[] constant(0)\n m = s8[] maximum(a, z)\n u = u8[] convert(m)\n
         x = s32[] convert(u)\n y = s32[] convert(m)\n ROOT r = (s32[], s32[]) tuple(x, y)\n",
        // A sum that is bounded and made narrow as an integer and as a float.
        "a = s32[] parameter(0)\n b = s32[] parameter(1)\n p = s32[] add(a, b)\n l = s32[] constant(-128)\n
         h = s32[] constant(127)\n c = s32[] clamp(l, p, h)\n x = s8[] convert(c)\n f = f32[] convert(p)\n
         o = f32[] constant(1)\n s = f32[] multiply(f, o)\n t = f32[] round-nearest-even(s)\n
         u = f32[] constant(-128)\n v = f32[] constant(127)\n g = f32[] clamp(u, t, v)\n y = s8[] convert(g)\n
         ROOT r = (s8[], s8[]) tuple(x, y)\n",
        "a = s32[] parameter(0)\n z = s32[] constant(0)\n m = s32[] maximum(a, z)\n h = s32[] constant(127)\n
         c = s32[] minimum(m, h)\n x = s8[] convert(c)\n f = f32[] convert(a)\n y = s8[] convert(f)\n
         o = s8[] constant(0)\n n = s8[] maximum(y, o)\n ROOT r = (s8[], s8[]) tuple(x, n)\n",
        "a = s16[] parameter(0)\n b = u16[] bitcast-convert(a)\n x = s8[] convert(a)\n y = s8[] convert(b)\n
         ROOT r = (s8[], s8[]) tuple(x, y)\n",
    ] {
        assert!(same(body), "{body}");
    }
}

#[test]
fn what_a_narrow_type_loses_is_not_there() {
    for body in [
        // Sums and products of bytes, made wider after and before.
        "a = s8[] parameter(0)\n s = s8[] add(a, a)\n x = s32[] convert(s)\n b = s32[] convert(a)\n
         y = s32[] add(b, b)\n ROOT r = (s32[], s32[]) tuple(x, y)\n",
        "a = s32[] parameter(0)\n n = s8[] convert(a)\n y = s32[] convert(n)\n x = s32[] copy(a)\n
         ROOT r = (s32[], s32[]) tuple(x, y)\n",
        // The same bits with and without a sign.
        "a = s8[] parameter(0)\n b = u8[] bitcast-convert(a)\n x = s32[] convert(a)\n y = s32[] convert(b)\n
         ROOT r = (s32[], s32[]) tuple(x, y)\n",
        // What is between the limits of a type without sign is not between the same bits of one with a sign.
        "a = s16[] parameter(0)\n l = s16[] constant(-128)\n h = s16[] constant(127)\n c = s16[] clamp(l, a, h)\n
         n = s8[] convert(c)\n z = s8[] constant(0)\n m = s8[] maximum(n, z)\n u = u8[] convert(m)\n
         x = s32[] convert(u)\n d = s32[] convert(a)\n o = s32[] constant(-1)\n y = s32[] clamp(o, d, o)\n
         ROOT r = (s32[], s32[]) tuple(x, y)\n",
        // Floats do not have all integers, and integers meet no bounds beyond their type.
        "a = s32[] parameter(0)\n f = f32[] convert(a)\n x = s32[] convert(f)\n y = s32[] copy(a)\n
         ROOT r = (s32[], s32[]) tuple(x, y)\n",
        "a = s8[] parameter(0)\n c = s16[] convert(a)\n f = f32[] convert(a)\n v = f32[] constant(300)\n
         g = f32[] maximum(f, v)\n y = s16[] convert(g)\n ROOT r = (s16[], s16[]) tuple(c, y)\n",
        "a = u16[] parameter(0)\n z = u16[] constant(200)\n m = u16[] minimum(a, z)\n x = s8[] convert(m)\n
         n = s8[] convert(a)\n c = s8[] constant(-56)\n y = s8[] minimum(n, c)\n
         ROOT r = (s8[], s8[]) tuple(x, y)\n",
    ] {
        assert!(!same(body), "{body}");
    }
    // 2^61 is 1 modulo a prime that one could have taken.
    let doubled = (1..62).map(|k| format!("x{k} = s32[] add(x{}, x{})\n", k - 1, k - 1)).collect::<String>();
    assert!(!same(&format!("x0 = s32[] parameter(0)\n{doubled}ROOT r = (s32[], s32[]) tuple(x0, x61)\n")));
}
