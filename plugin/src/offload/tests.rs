//! Selection and replacement on hand-made graphs and on modules that JAX compiled, with compilers that only
//! say yes or no. That the results are right is tested with JAX, in `plugin/tests/offload`.

use super::flow::{Flow, FlowId};
use super::grow::Ground;
use super::kernel_graph::KernelGraph;
use super::region::{Contracted, Region};
use super::*;
use act_hlo::proto::{Computation, HloShape, Instruction};
use act_hlo::{ElemType, Graph, Layout, Op, Shape};
use act_isa::View;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Takes regions of at most so many operators, without the operators named.
struct Picky {
    operators: usize,
    without: &'static [&'static str],
    offered: RefCell<Vec<usize>>,
}

fn picky(operators: usize, without: &'static [&'static str]) -> Picky {
    Picky { operators, without, offered: RefCell::new(Vec::new()) }
}

impl RegionCompiler for Picky {
    fn compile(
        &self,
        graph: &Graph,
        _: &[View],
        _: &[View],
        region: RegionId,
    ) -> Result<CompiledRegion, CompileRefusal> {
        let inputs = |op: &Op| matches!(op, Op::Parameter(_) | Op::Constant(_));
        let operators = graph.nodes().iter().filter(|n| !inputs(&n.op)).count();
        self.offered.borrow_mut().push(operators);
        if let Some(node) = graph.ids().find(|&id| self.without.contains(&graph.node(id).op.name())) {
            return Err(CompileRefusal { node: Some(node), reason: "not here".to_owned() });
        }
        if operators > self.operators {
            return Err(CompileRefusal { node: None, reason: format!("{operators} operators") });
        }
        Ok(CompiledRegion { key: format!("{:02x}", region.0), summary: serde_json::Value::Null })
    }
}

fn matrix() -> HloShape {
    HloShape::row_major(Shape::new(ElemType::F32, [4, 4]))
}

/// A computation of 4x4 matrices: every line is a name, an opcode and operands; the last is the root.
fn computation(lines: &[(&str, &str, &[&str])]) -> Computation {
    let id = |name: &str| 1 + lines.iter().position(|l| l.0 == name).unwrap() as i64;
    let mut instructions = Vec::new();
    for (number, (name, opcode, operands)) in lines.iter().enumerate() {
        let operands: Vec<i64> = operands.iter().map(|o| id(o)).collect();
        let mut instruction = Instruction::new(id(name), name, opcode, &matrix(), &operands);
        match *opcode {
            "parameter" => instruction.set_parameter_number(number as i64),
            "dot" => instruction.message_mut().set_bytes(30, &[0x0a, 1, 1, 0x12, 1, 0][..]),
            _ => {}
        }
        instructions.push(instruction);
    }
    Computation::new_fused(1, "test", lines.len() as i64, instructions).unwrap()
}

fn flow(lines: &[(&str, &str, &[&str])]) -> Flow {
    Flow::of(&HloModule::parse(&b""[..]).unwrap(), &computation(lines)).unwrap()
}

fn names(flow: &Flow, region: &Region) -> Vec<String> {
    region.members.iter().map(|&id| flow.node(id).instruction.name().to_owned()).collect()
}

/// The regions tried around the first dot, as names.
fn candidates(flow: &Flow, ruled_out: &[u32]) -> Vec<Vec<String>> {
    let contracted = Contracted::new(flow);
    let ruled_out: BTreeSet<FlowId> = ruled_out.iter().copied().map(FlowId).collect();
    let ground = Ground { flow, contracted: &contracted, ruled_out: &ruled_out, limits: Limits::default() };
    let seed = flow.ids().find(|&id| flow.node(id).instruction.opcode() == "dot").unwrap();
    let found = ground.candidates(seed);
    for region in &found {
        assert!(ground.is_convex(region));
        assert!(region.contains(seed));
    }
    found.iter().map(|r| names(flow, r)).collect()
}

#[test]
fn a_diamond_around_a_host_operation_is_not_closed() {
    // dot -> sort -> add and dot -> negate -> add: a region with dot and add would wait for itself.
    let flow = flow(&[
        ("a", "parameter", &[]),
        ("b", "parameter", &[]),
        ("dot", "dot", &["a", "b"]),
        ("sort", "sort", &["dot"]),
        ("negate", "negate", &["dot"]),
        ("add", "add", &["sort", "negate"]),
    ]);
    assert_eq!(candidates(&flow, &[])[0], ["dot", "negate"]);
    let open = Region::of([FlowId(2), FlowId(5)]);
    let contracted = Contracted::new(&flow);
    assert_eq!(contracted.between(&open.core(&flow)), BTreeSet::from([FlowId(3), FlowId(4)]));
}

#[test]
fn a_diamond_of_expressible_operations_is_closed_as_a_whole() {
    let flow = flow(&[
        ("a", "parameter", &[]),
        ("b", "parameter", &[]),
        ("dot", "dot", &["a", "b"]),
        ("exp", "exponential", &["dot"]),
        ("negate", "negate", &["dot"]),
        ("add", "add", &["exp", "negate"]),
    ]);
    let found = candidates(&flow, &[]);
    assert_eq!(found[0], ["dot", "exp", "negate", "add"]);
    // Without one side, the join is out too.
    assert_eq!(candidates(&flow, &[3])[0], ["dot", "negate"]);
    assert_eq!(found.last().unwrap(), &["dot"]);
}

#[test]
fn regions_that_are_each_convex_do_not_wait_for_each_other() {
    // Two chains that cross: {d1, n2} and {d2, n1} are convex, but not both at once.
    let lines: &[(&str, &str, &[&str])] = &[
        ("a", "parameter", &[]),
        ("d1", "dot", &["a", "a"]),
        ("d2", "dot", &["a", "a"]),
        ("n1", "add", &["d1", "a"]),
        ("n2", "add", &["d2", "a"]),
        ("sum", "sort", &["n1", "n2"]),
    ];
    let flow = flow(lines);
    let mut contracted = Contracted::new(&flow);
    let first = BTreeSet::from([FlowId(1), FlowId(4)]);
    let second = BTreeSet::from([FlowId(2), FlowId(3)]);
    assert!(contracted.between(&first).is_empty() && contracted.between(&second).is_empty());
    contracted.take(&first);
    assert_eq!(contracted.between(&second), first);
}

#[test]
fn a_conversion_that_others_need_is_made_on_both_sides() {
    let flow = flow(&[
        ("a", "parameter", &[]),
        ("copy", "copy", &["a"]),
        ("sort", "sort", &["copy"]),
        ("dot", "dot", &["copy", "sort"]),
    ]);
    // As a result of the region, the copy would make it wait for the sort of it.
    let region = Region::of([FlowId(1), FlowId(3)]);
    assert_eq!(region.core(&flow), BTreeSet::from([FlowId(3)]));
    assert_eq!(region.outputs(&flow), [FlowId(3)]);
    assert_eq!(candidates(&flow, &[])[0], ["copy", "dot"]);
}

#[test]
fn operands_have_the_strides_of_their_layout() {
    let mut column_major = matrix();
    if let HloShape::Array(array) = &mut column_major {
        array.layout = Some(Layout { minor_to_major: vec![0, 1], tiles: vec![] });
    }
    let computation = computation(&[("a", "parameter", &[]), ("dot", "dot", &["a", "a"])]);
    let mut instructions: Vec<Instruction> = computation.instructions().cloned().collect();
    instructions[0].set_shape(&column_major);
    let computation = Computation::new_fused(1, "test", 2, instructions).unwrap();
    let module = HloModule::parse(&b""[..]).unwrap();
    let flow = Flow::of(&module, &computation).unwrap();
    let kernel = KernelGraph::of(&module, &flow, &Region::of([FlowId(1)])).unwrap();
    assert_eq!(kernel.operands[0].dims, [(4, 4), (4, 16)]);
    assert_eq!(kernel.results[0].dims, [(4, 16), (4, 4)]);
}

fn real(name: &str) -> HloModule {
    let bytes: &[u8] = match name {
        "mlp" => include_bytes!("../../../isa/hlo/tests/modules/mlp.pb"),
        "attention" => include_bytes!("../../../isa/hlo/tests/modules/attention.pb"),
        "softmax" => include_bytes!("../../../isa/hlo/tests/modules/softmax.pb"),
        "convolution" => include_bytes!("../../../isa/hlo/tests/modules/convolution.pb"),
        _ => unreachable!("no such module"),
    };
    let mut module = HloModule::parse(bytes).unwrap();
    module.clear_schedule();
    module
}

fn offloaded(name: &str, compiler: &Picky) -> (HloModule, Offloaded) {
    let mut module = real(name);
    let done = offload(&mut module, compiler, Limits::default(), Seeds::Products);
    wellformed::check(&module).unwrap();
    (module, done)
}

fn opcodes(module: &HloModule, computation: &str) -> Vec<String> {
    let found = module.computations().find(|c| c.name() == computation).unwrap();
    found.instructions().map(|i| i.opcode().to_owned()).collect()
}

#[test]
fn attention_is_one_region() {
    let (module, done) = offloaded("attention", &picky(1000, &[]));
    assert!(done.refusals.is_empty());
    let [region] = &done.regions[..] else { panic!("{:?}", done.regions) };
    assert_eq!(region.operators["dot"], 2);
    assert_eq!(region.operators["reduce"], 1);
    let bf16 = Shape::new(ElemType::BF16, [64, 64]);
    assert_eq!(region.operands, [bf16.clone(), bf16.clone(), bf16.clone()]);
    assert_eq!(region.results, [bf16]);
    assert_eq!(opcodes(&module, "main.2"), ["parameter", "parameter", "parameter", "custom-call"]);
    let call =
        module.computations().flat_map(Computation::instructions).find(|i| i.opcode() == "custom-call");
    let call = call.unwrap();
    assert_eq!(call.custom_call_target().unwrap(), "act_kernel");
    assert_eq!(call.backend_config(), b"{abi = 1 : i64, key = \"00\"}");
    assert_eq!(module.source(call).unwrap().unwrap().file, "programs.py");
}

#[test]
fn what_the_target_lacks_splits_the_softmax() {
    let (module, done) = offloaded("softmax", &picky(1000, &["reduce"]));
    assert_eq!(done.regions.len(), 2, "both products");
    assert!(done.regions.iter().all(|r| !r.operators.contains_key("reduce")));
    // The largest region failed because of the reduce, and says so.
    let first = done.regions[0].attempts[0].refused.as_deref();
    assert_eq!(first, Some("reduce: not here"));
    let opcodes = opcodes(&module, "main.3");
    assert_eq!(opcodes.iter().filter(|o| *o == "custom-call").count(), 2);
    // The two reductions and the exponential between them: the sum needs it before the product may begin.
    assert_eq!(opcodes.iter().filter(|o| *o == "fusion").count(), 3, "{opcodes:?}");
}

#[test]
fn a_loop_body_that_would_overwrite_its_operand_gets_a_copy() {
    let (module, done) = offloaded("mlp", &picky(1000, &[]));
    assert_eq!(done.regions.len(), 2);
    let body = module.computations().find(|c| c.name() == "wide.region_0.4.clone").unwrap();
    let root = body.root().unwrap();
    let state = body.instruction(root.operand_ids().unwrap()[1]).unwrap();
    assert_eq!(state.opcode(), "copy");
    let source = body.instruction(state.operand_ids().unwrap()[0]).unwrap();
    assert_eq!(source.opcode(), "custom-call");
    // The region ends at the product: what reads the state is then ordered before what overwrites it.
    let (module, _) = offloaded("mlp", &picky(1, &[]));
    assert!(!opcodes(&module, "wide.region_0.4.clone").contains(&"copy".to_owned()));
}

#[test]
fn a_convolution_is_a_product_over_windows() {
    let (module, done) = offloaded("convolution", &picky(1000, &[]));
    let [region] = &done.regions[..] else { panic!("{done:?}") };
    assert_eq!(region.operators["dot"], 1);
    assert!(done.refusals.is_empty());
    let all: Vec<&Instruction> = module.computations().flat_map(Computation::instructions).collect();
    assert!(all.iter().all(|i| i.opcode() != "convolution" && window::strides(i).is_none()));
    // The call reads the image itself, of which the region sees one patch per place and tap.
    let call = all.iter().find(|i| i.opcode() == "custom-call").unwrap();
    let image = all.iter().find(|i| i.id() == call.operand_ids().unwrap()[0]).unwrap().shape().unwrap();
    let image = image.array().unwrap();
    assert!(region.operands[0].elements() > image.shape.elements());
    assert!(region.operands[0].rank() > image.shape.rank());
}

#[test]
fn a_module_without_regions_is_left_alone() {
    for name in ["mlp", "convolution"] {
        let (module, done) = offloaded(name, &picky(0, &[]));
        assert!(done.regions.is_empty());
        assert_eq!(module.to_bytes(), real(name).to_bytes());
        let ops: Vec<&str> = done.refusals.iter().map(|r| r.op.as_str()).collect();
        assert_eq!(ops, if name == "mlp" { vec!["dot", "dot"] } else { vec!["convolution"] });
        for refusal in done.refusals.iter().filter(|r| r.op == "dot") {
            assert_eq!(refusal.source.as_ref().unwrap().file, "programs.py");
        }
    }
}

#[test]
fn the_search_is_bounded_and_repeats_nothing() {
    let limits = Limits { attempts: 7, ..Limits::default() };
    let compiler = picky(0, &[]);
    let done = offload(&mut real("softmax"), &compiler, limits, Seeds::Products);
    assert_eq!(done.refusals.len(), 2);
    assert!(done.refusals.iter().all(|r| (2..=7).contains(&r.attempts.len())));
    assert_eq!(done.refusals[0].attempts.last().unwrap().operators, 1, "the product by itself comes last");
    assert!(compiler.offered.borrow().len() < 14, "equal kernels are compiled once");
}

#[test]
fn what_re_types_operands_is_offered_with_the_product_alone_however_much_there_is_before_it() {
    // thirty operators, and then: convert -> dot <- convert
    let chain: Vec<String> = (0..30).map(|k| format!("tanh{k}")).collect();
    let mut lines: Vec<(&str, &str, Vec<&str>)> =
        vec![("a", "parameter", vec![]), ("b", "parameter", vec![])];
    for (k, name) in chain.iter().enumerate() {
        lines.push((name, "tanh", vec![if k == 0 { "a" } else { &chain[k - 1] }]));
    }
    lines.push(("left", "convert", vec![&chain[29]]));
    lines.push(("right", "convert", vec!["b"]));
    lines.push(("dot", "dot", vec!["left", "right"]));
    lines.push(("negate", "negate", vec!["dot"]));
    let lines: Vec<_> = lines.iter().map(|(name, opcode, of)| (*name, *opcode, &of[..])).collect();
    let flow = flow(&lines);
    let found = candidates(&flow, &[]);
    assert_eq!(found.len(), Limits::default().attempts);
    assert_eq!(found[21..], [vec!["dot", "negate"], vec!["left", "right", "dot"], vec!["dot"]]);
}

#[test]
fn selection_is_deterministic() {
    let once = |n| offloaded("softmax", &picky(n, &[])).0.to_bytes();
    for operators in [1, 3, 9, 1000] {
        assert_eq!(once(operators), once(operators));
    }
}

#[test]
fn what_computes_without_a_product_is_taken_where_that_is_wanted() {
    let everything = |name: &str, compiler: &Picky| {
        let mut module = real(name);
        let done = offload(&mut module, compiler, Limits::default(), Seeds::All);
        wellformed::check(&module).unwrap();
        (module, done)
    };
    // What the products' regions leave: the exponential between the reductions, which need it, and these.
    let (module, done) = everything("softmax", &picky(1000, &["reduce"]));
    let grown_from: Vec<&str> = done.regions.iter().map(|r| r.op.as_str()).collect();
    assert_eq!(grown_from, ["dot", "dot", "subtract"]);
    assert!(done.regions[2].operators.contains_key("exponential"));
    let refused: Vec<&str> = done.refusals.iter().map(|r| r.op.as_str()).collect();
    assert_eq!(refused, ["reduce", "reduce"]);
    let entry = opcodes(&module, "main.3");
    assert_eq!(entry.iter().filter(|o| *o == "custom-call").count(), 3);
    // Nothing but products by default.
    let (_, products) = offloaded("softmax", &picky(1000, &["reduce"]));
    assert_eq!(products.regions.len(), 2);
    // The loop of this module counts its rounds with scalars, which stay.
    let (_, done) = everything("mlp", &picky(1000, &[]));
    let scalar = |r: &OffloadedRegion| r.operands.iter().chain(&r.results).all(|s| s.elements() == 1);
    assert!(!done.regions.iter().any(scalar));
}

#[test]
fn a_region_without_a_product_is_what_compiles_of_its_surroundings() {
    let lines: &[(&str, &str, &[&str])] = &[
        ("a", "parameter", &[]),
        ("negate", "negate", &["a"]),
        ("exp", "exponential", &["negate"]),
        ("double", "add", &["exp", "exp"]),
        ("abs", "abs", &["double"]),
    ];
    let flow = flow(lines);
    let contracted = Contracted::new(&flow);
    let none = BTreeSet::new();
    let limits = Limits::default();
    let ground = Ground { flow: &flow, contracted: &contracted, ruled_out: &none, limits };
    let seed = FlowId(3);
    assert_eq!(names(&flow, &ground.without_contraction(seed)), ["negate", "exp", "double", "abs"]);
    let kept = BTreeSet::from([FlowId(1), seed, FlowId(4)]);
    let halves: Vec<Vec<String>> = ground.halves(seed, &kept).iter().map(|r| names(&flow, r)).collect();
    assert_eq!(halves, [vec!["double", "abs"], vec!["double"]]);
}
