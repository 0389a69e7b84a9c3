//! Every rule is held against the reference evaluator: on random kernels that show its left side, each term it proposes
//! must have the value of the class it is proposed for, as the rule's class promises.

use super::examples::example;
use super::kernel;
use crate::numerics::FloatPolicy;
use crate::phase1::explore::{Saturation, initial, proposals};
use crate::phase1::facts::TensorGraph;
use crate::phase1::rules::{self, Rule, RuleClass};
use crate::phase1::term::{Kind, Term};
use crate::phase1::vocabulary::Vocabulary;
use act_hlo::compare::compare;
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{ElemType, Graph, Literal, NodeId, OpKind, eval};
use act_isa::Isa;
use egg::Id;
use std::collections::BTreeMap;

const CASES: u64 = 60;

/// A description that has every operator which a rule may aim at, at small sizes.
const EVERYTHING: &str = r#"
isa everything
hbm m: 1 MiB
buffer f: f32[64, 64 | ]
buffer i: s32[64, 64 | ]
buffer b: s8[64, 64 | ]
buffer t: s8[8 | 2, 8]
buffer h: bf16[64, 64 | ]
instr tile_product beta(p, q, r) {
  in t[p :+ 1]
  in t[q :+ 1]
  in t[r :+ 1]
  out t[r :+ 1]
  cost 1
  computation {
    x = s8[1, 2, 8] parameter(0)
    xr = s8[2, 8] reshape(x)
    xw = s32[2, 8] convert(xr)
    y = s8[1, 2, 8] parameter(1)
    yq = s8[2, 2, 4] reshape(y)
    yt = s8[2, 4, 2] transpose(yq), dimensions={0, 2, 1}
    yr = s8[8, 2] reshape(yt)
    yw = s32[8, 2] convert(yr)
    old = s8[1, 2, 8] parameter(2)
    oq = s8[2, 2, 4] reshape(old)
    z = s32[2, 2] bitcast-convert(oq)
    d = s32[2, 2] dot(xw, yw), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    s = s32[2, 2] add(z, d)
    b = s8[2, 2, 4] bitcast-convert(s)
    ROOT r = s8[1, 2, 8] reshape(b)
  }
}
instr product_f alpha(m: 1..2, n: 1..2, k: 1..2) beta(p, q, r) {
  in f[p :+ m, 0 :+ k]
  in f[q :+ k, 0 :+ n]
  in f[r :+ m, 0 :+ n]
  out f[r :+ m, 0 :+ n]
  cost 1
  computation {
    x = f32[m, k] parameter(0)
    y = f32[k, n] parameter(1)
    z = f32[m, n] parameter(2)
    d = f32[m, n] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT s = f32[m, n] add(d, z)
  }
}
instr fused_f alpha(m: 1..2) beta(p, q, r) {
  in f[p :+ m, 0 :+ 4]
  in f[q :+ m, 0 :+ 4]
  in f[r :+ m, 0 :+ 4]
  out f[r :+ m, 0 :+ 4]
  cost 1
  computation {
    x = f32[m, 4] parameter(0)
    y = f32[m, 4] parameter(1)
    z = f32[m, 4] parameter(2)
    ROOT s = f32[m, 4] fma(x, y, z)
  }
}
instr fused_h alpha(m: 1..2) beta(p, q, r) {
  in h[p :+ m, 0 :+ 4]
  in h[q :+ m, 0 :+ 4]
  in h[r :+ m, 0 :+ 4]
  out h[r :+ m, 0 :+ 4]
  cost 1
  computation {
    x = bf16[m, 4] parameter(0)
    y = bf16[m, 4] parameter(1)
    z = bf16[m, 4] parameter(2)
    ROOT s = bf16[m, 4] fma(x, y, z)
  }
}
instr product_t alpha(m: 1..2, n: 1..2, k: 1..2) beta(p, q, r) {
  in f[p :+ k, 0 :+ m]
  in f[q :+ k, 0 :+ n]
  out f[r :+ m, 0 :+ n]
  cost 1
  computation {
    x = f32[k, m] parameter(0)
    y = f32[k, n] parameter(1)
    ROOT d = f32[m, n] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  }
}
instr product_i alpha(m: 1..2, n: 1..2, k: 1..2) beta(p, q, r) {
  in b[p :+ m, 0 :+ k]
  in b[q :+ k, 0 :+ n]
  in i[r :+ m, 0 :+ n]
  out i[r :+ m, 0 :+ n]
  cost 1
  computation {
    x = s8[m, k] parameter(0)
    y = s8[k, n] parameter(1)
    z = s32[m, n] parameter(2)
    d = s32[m, n] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT s = s32[m, n] add(d, z)
  }
}
instr fill alpha() beta(r) {
  out b[r :+ 2, 0 :+ 2]
  cost 1
  computation {
    zero = s8[] constant(0)
    ROOT y = s8[2, 2] broadcast(zero), dimensions={}
  }
}
instr pointwise alpha(m: 1..2) beta(p, r) {
  in f[p :+ m, 0 :+ 4]
  out f[r :+ m, 0 :+ 4]
  cost 1
  computation {
    x = f32[m, 4] parameter(0)
    low = f32[] constant(-128)
    high = f32[] constant(127)
    c = f32[m, 4] clamp(low, x, high)
    e = f32[m, 4] exponential(c)
    zero = f32[] constant(0)
    s = f32[m] reduce(e, zero), dimensions={1}, to_apply=add
    t = f32[m] reduce(e, zero), dimensions={1}, to_apply=maximum
    st = f32[m] multiply(s, t)
    w = f32[m, 4] broadcast(st), dimensions={0}
    q = f32[m, 4] divide(e, w)
    u = f32[m, 4] maximum(q, x)
    v = f32[m, 4] minimum(u, x)
    k = s32[m, 4] convert(v)
    b = s8[m, 4] convert(k)
    l = s32[m, 4] convert(b)
    ROOT y = f32[m, 4] convert(l)
  }
}
"#;

/// The types of which goal-directed rules are shown every operator.
const GOALS: [ElemType; 12] = [
    ElemType::Pred,
    ElemType::S8,
    ElemType::S16,
    ElemType::S32,
    ElemType::S64,
    ElemType::U8,
    ElemType::U16,
    ElemType::U32,
    ElemType::U64,
    ElemType::F16,
    ElemType::BF16,
    ElemType::F32,
];

/// Where every rule shows itself: the description of all operators, and the wishes of one that has none of them alone.
fn common_vocabularies() -> [Vocabulary; 2] {
    let everything = Isa::parse(EVERYTHING, "everything.taidl").unwrap_or_else(|e| panic!("{e}"));
    let real = Vocabulary::of(&everything);
    [real.clone(), real.with_every_operator(&GOALS)]
}

/// What a rule is tested against: what every rule is, and the descriptions of its witness, which have what it aims for.
pub(super) fn vocabularies(rule: &Rule) -> Vec<Vocabulary> {
    let own = super::witnesses::descriptions(rule);
    common_vocabularies().into_iter().chain(own.iter().map(Vocabulary::of)).collect()
}

/// A class or term of the initial e-graph as a graph node.
pub(super) struct Rebuild<'a> {
    pub(super) egraph: &'a TensorGraph,
    pub(super) graph: Graph,
    /// The node of every class that has one.
    pub(super) known: BTreeMap<Id, NodeId>,
}

impl Rebuild<'_> {
    fn class(&mut self, id: Id) -> NodeId {
        let id = self.egraph.find(id);
        if let Some(&node) = self.known.get(&id) {
            return node;
        }
        // Constants may have a node that refers to itself through an equal one; leaves come first.
        let mut nodes: Vec<_> = self.egraph[id].nodes.iter().collect();
        nodes.sort_by_key(|n| n.operands.len());
        let node = nodes[0];
        let operands: Vec<NodeId> = node.operands.iter().map(|&o| self.class(o)).collect();
        let op = self.egraph.analysis.concrete(node.op());
        let built = self.graph.add_declared(op, &operands, Some(node.shape()));
        let built = built.unwrap_or_else(|e| panic!("{e}"));
        self.known.insert(id, built);
        built
    }

    pub(super) fn term(&mut self, term: &Term) -> NodeId {
        let built = match &term.kind {
            Kind::Class(id) => {
                let node = self.class(*id);
                assert_eq!(*self.graph.shape(node), term.shape);
                return node;
            }
            Kind::Respelled(_, term) | Kind::SlotForm(term) => return self.term(term),
            Kind::Splat(scalar) => {
                let scalar = self.graph.add(OpKind::Constant(scalar.clone()), &[]);
                let scalar = scalar.unwrap_or_else(|e| panic!("{e}"));
                let op = OpKind::Broadcast { dims: Vec::new() };
                self.graph.add_declared(op, &[scalar], Some(&term.shape))
            }
            Kind::Node(op, operands) => {
                let operands: Vec<NodeId> = operands.iter().map(|t| self.term(t)).collect();
                let op = self.egraph.analysis.concrete(op);
                self.graph.add_declared(op, &operands, Some(&term.shape))
            }
        };
        built.unwrap_or_else(|e| panic!("{term:?}: {e}"))
    }
}

fn same_bits(a: &Literal, b: &Literal) -> bool {
    a.shape() == b.shape()
        && (0..a.shape().elements()).all(|i| {
            let nan = |bytes| act_isa::constant::float_value(a.elem(), bytes).is_some_and(f64::is_nan);
            let (x, y) = (a.element_bytes(i), b.element_bytes(i));
            x == y || (nan(x) && nan(y))
        })
}

/// Runs one rule on one kernel under a policy; gives how many terms were compared.
fn check(rule: &'static Rule, text: &str, seed: u64, vocabulary: &Vocabulary, policy: FloatPolicy) -> usize {
    let kernel = kernel(text);
    let (egraph, classes) = initial(&kernel, policy);
    let proposed = proposals(&egraph, &[rule], vocabulary, policy);
    let mut known = BTreeMap::new();
    for (id, class) in kernel.graph.ids().zip(&classes) {
        known.entry(egraph.find(*class)).or_insert(id);
    }
    let mut rebuild = Rebuild { egraph: &egraph, graph: kernel.graph.clone(), known };
    let first = rebuild.graph.roots().len();
    for (_, class, term) in &proposed {
        let (left, right) = (rebuild.class(*class), rebuild.term(term));
        rebuild.graph.add_root(left).unwrap_or_else(|e| panic!("{e}"));
        rebuild.graph.add_root(right).unwrap_or_else(|e| panic!("{e}"));
    }
    // What is on under `exact` keeps the bits of every value; the other policies keep the value of a number.
    let exact = policy == FloatPolicy::Exact || rule.class == RuleClass::Exact;
    for values in [Values::Small, Values::Full, Values::Special] {
        // Float algebra is no law of NaN, infinities and cancellation.
        if values != Values::Small && !exact {
            continue;
        }
        let mut rng = SplitMix64::new(seed);
        let params: Vec<_> = rebuild.graph.params().to_vec();
        let inputs: Vec<Literal> =
            params.iter().map(|&p| random_literal(&mut rng, rebuild.graph.shape(p), values)).collect();
        let results = eval(&rebuild.graph, &inputs).unwrap_or_else(|e| panic!("{}\n{text}\n{e}", rule.name));
        for (pair, (_, _, term)) in results[first..].chunks(2).zip(&proposed) {
            let equal = if exact || !pair[0].elem().is_float() {
                same_bits(&pair[0], &pair[1])
            } else {
                compare(&pair[0], &pair[1]).within_roundings()
            };
            assert!(
                equal,
                "{} under {policy}\n{text}\n{inputs:?}\n{term:?}\n{:?}\n{:?}",
                rule.name, pair[0], pair[1]
            );
        }
    }
    proposed.len()
}

/// Holds one rule against the evaluator on all its examples; gives how many terms were compared.
fn hold(rule: &'static Rule) -> usize {
    let vocabularies = vocabularies(rule);
    let mut compared = 0;
    for seed in 0..CASES {
        let text = example(rule.name, seed);
        for policy in [FloatPolicy::Exact, FloatPolicy::Xla, FloatPolicy::Fast] {
            // Beyond `xla` only what is not on before it has something to add.
            if rule.policy <= policy && (policy < FloatPolicy::Fast || rule.policy == policy) {
                let fired = vocabularies.iter().map(|v| check(rule, &text, seed, v, policy));
                compared += fired.sum::<usize>();
            }
        }
    }
    compared
}

#[test]
fn every_rule_is_sound_on_random_kernels() {
    // One wrong rule does not hide the others; what is wrong with each has been printed by its panic.
    let (mut status, mut wrong) = (String::new(), Vec::new());
    for rule in rules::all() {
        match std::panic::catch_unwind(|| hold(rule)) {
            Ok(count) if count >= 10 => status += &format!("{}\t{CASES}\t{count}\n", rule.name),
            Ok(count) => wrong.push(format!("{}: fired {count} times on its examples", rule.name)),
            Err(_) => wrong.push(format!("{}: panicked", rule.name)),
        }
    }
    assert!(wrong.is_empty(), "{} rules:\n{}", wrong.len(), wrong.join("\n"));
    super::generated::compare("property.tsv", &status);
}

/// All rules together on all examples: whatever they make equal, the analysis sees no contradiction.
#[test]
fn saturation_never_contradicts_itself() {
    for rule in rules::all() {
        let vocabularies = vocabularies(rule);
        // The last one is that of the witness, where there is one.
        let cases = [
            (FloatPolicy::Exact, &vocabularies[0], 400),
            (FloatPolicy::Fast, &vocabularies[0], 400),
            (FloatPolicy::Exact, &vocabularies[1], 200),
            (FloatPolicy::Xla, &vocabularies[vocabularies.len() - 1], 200),
        ];
        for (seed, (policy, vocabulary, nodes)) in (0..).zip(cases) {
            let kernel = kernel(&example(rule.name, seed));
            let on: Vec<&'static Rule> = rules::all().into_iter().filter(|r| r.policy <= policy).collect();
            let mut done = Saturation::new(initial(&kernel, policy), &on, vocabulary, policy, 6, nodes);
            done.run(usize::MAX);
            assert_eq!(done.explored.egraph.analysis.clash(), None, "{}", rule.name);
        }
    }
}

#[test]
fn rule_names_are_distinct_and_integer_rules_leave_floats_alone_by_default() {
    let all = rules::all();
    for (k, rule) in all.iter().enumerate() {
        assert!(all[..k].iter().all(|other| other.name != rule.name), "{}", rule.name);
        assert!(rule.class != RuleClass::FloatAlgebra || rule.policy > FloatPolicy::Exact, "{}", rule.name);
    }
}
