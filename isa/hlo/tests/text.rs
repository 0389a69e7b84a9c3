//! HLO text: what XLA prints is read, what is printed reads back, errors point at their place.

use act_hlo::ElemType::*;
use act_hlo::{Binary, Graph, Layout, Literal, Op, Shape, parse_graph, parse_module, print_graph};

fn ops(graph: &Graph) -> Vec<&str> {
    graph.nodes().iter().map(|n| n.op.name()).collect()
}

fn reprinted(text: &str) -> Graph {
    let graph = parse_graph(text).unwrap_or_else(|e| panic!("{e}\nin\n{text}"));
    let printed = print_graph(&graph);
    let again = parse_graph(&printed).unwrap_or_else(|e| panic!("{e}\nin\n{printed}"));
    assert_eq!(graph, again, "{printed}");
    graph
}

/// The message and the caret of the refusal.
fn refused(text: &str) -> String {
    parse_graph(text).expect_err("this text should be refused").to_string()
}

#[test]
fn modules_as_xla_prints_them() {
    let softmax = reprinted(include_str!("modules/softmax.txt"));
    assert!(ops(&softmax).contains(&"exponential") && ops(&softmax).contains(&"reduce"));
    // Its loop is no graph, but the fusions in the loop's body are.
    let mlp = parse_module(include_str!("modules/mlp.txt")).unwrap();
    assert!(mlp.graph().unwrap_err().message.contains("`while`"));
    let dot = mlp.graph_of("fused_computation.1").unwrap().unwrap();
    assert_eq!(ops(&dot), ["parameter", "parameter", "dot"]);
    let source = dot.node(dot.roots()[0]).source.as_ref().unwrap();
    assert_eq!((source.op_name.as_str(), source.file.as_str()), ("jit(mlp)/dot_general", "programs.py"));
    assert!(source.line > 0);
}

#[test]
fn every_operator() {
    let graph = reprinted(
        r#"
HloModule all, entry_computation_layout={(f32[4,6]{1,0})->f32[4]{0}}

sum { // a comment
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(b, a)
}

ENTRY %main (x: f32[4,6], n: s32[]) -> (f32[4], f32[4,6]) {
  %x = f32[4,6]{1,0:T(16,64)(2,1)} parameter(0), metadata={op_name="x\"\\" source_file="a b.py" source_line=7}
  %n = s32[] parameter(1)
  c = s8[2,3]{1,0} constant({ { 1, -2, 3 }, /*i=1*/ { 4, 5, -128 } })
  i = i32[2,3] iota(), iota_dimension=1
  e = bf16[4,4] eye()
  f = f32[4,6] fma(f32[4,6]{1,0} %x, f32[4,6] x, x)
  u = f32[4,6] exponential(f), result_accuracy={mode=default}
  cmp = pred[4,6] compare(x, u), direction=LT, type=FLOAT
  sel = f32[4,6] select(cmp, x, u)
  lo = f32[] constant(-inf)
  cl = f32[4,6] clamp(lo, sel, u)
  cv = s8[4,6] convert(cl)
  bc = s8[4,6,4] bitcast-convert(cl)
  cp = s8[4,6,4] copy(bc)
  rp = f32[4,6] reduce-precision(cl), exponent_bits=5, mantissa_bits=10
  br = f32[6,2,4] broadcast(rp), dimensions={2,0}
  re = f32[48] reshape(br)
  tr = f32[6,4] transpose(rp), dimensions={1,0}
  sl = f32[2,2] slice(tr), slice={[0:2], [0:4:2]}, metadata={}
  ds = f32[2,1] dynamic-slice(tr, n, n), dynamic_slice_sizes={2,1}
  du = f32[6,4] dynamic-update-slice(tr, ds, n, n)
  pd = f32[9,4] pad(tr, lo), padding=-1_4x0_0_0
  p2 = f32[16,3] pad(tr, lo), padding=0_0_2x1_-2
  rv = f32[6,4] reverse(tr), dimensions={0,1}
  cc = f32[12,4] concatenate(tr, rv), dimensions={0}
  rd = f32[4] reduce(tr, lo), dimensions={0}, to_apply=sum
  dt = f32[2,4,4] dot(br, br), lhs_batch_dims={1}, lhs_contracting_dims={0}, rhs_batch_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}
  ROOT t = (f32[4], f32[4,6]) tuple(rd, x)
}
"#,
    );
    assert_eq!(graph.name, "all");
    assert_eq!((graph.params().len(), graph.roots().len(), graph.nodes().len()), (2, 2, 27));
    let x = graph.node(graph.params()[0]);
    let tiled = Layout { minor_to_major: vec![1, 0], tiles: vec![vec![16, 64], vec![2, 1]] };
    assert_eq!(x.layout, Some(tiled));
    let source = x.source.as_ref().unwrap();
    assert_eq!((source.op_name.as_str(), source.file.as_str(), source.line), ("x\"\\", "a b.py", 7));
    let find = |name: &str| graph.nodes().iter().find(|n| n.name == name).unwrap();
    let Op::Constant(c) = &find("c").op else { panic!() };
    assert_eq!(c.bytes(), [1, 254, 3, 4, 5, 128]);
    assert_eq!(find("i").shape, Shape::new(S32, [2, 3]));
    assert_eq!(find("rd").op, Op::Reduce { dims: vec![0], combiner: Binary::Add });
    let pad = Op::Pad { low: vec![0, 1], high: vec![0, -2], interior: vec![2, 0] };
    assert_eq!(find("p2").op, pad);
}

#[test]
fn fusions_calls_and_tuples_are_taken_apart() {
    let graph = reprinted(
        "HloModule m
         f { p1 = s32[2] parameter(1)  p0 = s32[2] parameter(0)  d = s32[2] subtract(p0, p1)
             ROOT t = (s32[2], s32[2]) tuple(d, p1) }
         g { p = s32[2] parameter(0)  ROOT n = s32[2] negate(p) }
         ENTRY e { b = s32[2] parameter(1)  a = s32[2] parameter(0)
             fu = (s32[2], s32[2]) fusion(a, b), kind=kLoop, calls=f
             first = s32[2] get-tuple-element(fu), index=0
             n = s32[2] call(first), to_apply=g
             ROOT nn = s32[2] call(n), to_apply=g }",
    );
    assert_eq!(ops(&graph), ["parameter", "parameter", "subtract", "negate", "negate"]);
    assert_eq!(graph.node(graph.params()[0]).name, "a");
    let names: Vec<&str> = graph.nodes().iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "d", "n", ""], "a name is given once");
    let module = parse_module("ENTRY main { ROOT p = f32[] parameter(0) }").unwrap();
    assert_eq!(module.graph().unwrap().name, "main");
    assert_eq!(ops(&module.graph_of("main").unwrap().unwrap()), ["parameter"]);
    assert!(module.graph_of("other").is_none());
}

#[test]
fn constants_of_every_kind() {
    let value = |text: &str| {
        let graph = reprinted(&format!("ENTRY e {{ ROOT c = {text} }}"));
        let Op::Constant(literal) = &graph.nodes()[0].op else { panic!() };
        literal.clone()
    };
    let f32s = |dims: &[u64], values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Literal::from_bytes(Shape::new(F32, dims), bytes).unwrap()
    };
    assert_eq!(value("f32[] constant(-1.5e-3)"), f32s(&[], &[-0.0015]));
    assert_eq!(
        value("f32[3] constant({inf, -inf, 1e+10})"),
        f32s(&[3], &[f32::INFINITY, -f32::INFINITY, 1e10])
    );
    assert_eq!(value("f32[2] constant({nan, -0})").bytes(), [0, 0, 0xc0, 0x7f, 0, 0, 0, 0x80]);
    assert_eq!(value("f32[1] constant({-nan(0x1)})").bytes(), [1, 0, 0x80, 0xff]);
    assert_eq!(value("f32[2,0] constant({})").bytes().len(), 0);
    assert_eq!(value("f32[2,0] constant({{}, {}})").bytes().len(), 0);
    assert_eq!(value("pred[2] constant({true, 0})").bytes(), [1, 0]);
    assert_eq!(value("s4[2] constant({-8, 7})").bytes(), [0xf8, 7]);
    assert_eq!(value("u64[] constant(18446744073709551615)").bytes(), [0xff; 8]);
    assert_eq!(value("c64[1] constant({(1, -1)})").bytes(), [0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf]);
    assert_eq!(value("s32[1,2,2] constant({{{1,2},{3,4}}})").bytes()[12], 4);
}

#[test]
fn errors_point_at_their_place() {
    assert_eq!(
        refused("ENTRY e {\n\tx = f32[2] parameter(0)\n\ty = f32[2] frobnicate(x)\n}"),
        "3:13: unknown operator `frobnicate`\n3 | \ty = f32[2] frobnicate(x)\n  | \t           ^"
    );
    for (text, expected) in [
        ("", "expected an `ENTRY` computation, found the end of the text"),
        ("ENTRY e { x f32[2] parameter(0) }", "1:13: expected `=`, found `f32`"),
        ("ENTRY e { x = q9[2] parameter(0) }", "1:15: unknown element type `q9`"),
        ("ENTRY e { x = f32[2,<=4] parameter(0) }", "expected a dimension size, found `<`"),
        ("ENTRY e { x = f32[2]{1} parameter(0) }", "1:21: this layout does not order"),
        ("ENTRY e { x = f32[2] parameter(1) }", "parameter 1 of a computation with 1 parameters"),
        ("ENTRY e { x = f32[2] add(a, b) }", "1:26: `a` is not defined before its use"),
        ("ENTRY e { x = f32[] constant({1}) }", "expected an element of f32[], found `{`"),
        ("ENTRY e { x = f32[2] constant({1}) }", "dimension 0 of f32[2] has 1 members here"),
        ("ENTRY e { x = f32[2] constant({...}) }", "were left out"),
        ("ENTRY e { x = f32[2,2] constant({1,2,3,4}) }", "f32[2,2] has rank 2"),
        ("ENTRY e { x = s8[] constant(128) }", "1:29: 128 does not fit in s8"),
        ("ENTRY e { x = s8[] constant(1.5) }", "expected a value of type s8, found `1.5`"),
        ("ENTRY e { x = s8[] constant(1 2) }", "expected `)`, found `2`"),
        ("ENTRY e { x = s8[] constant() }", "expected the values of s8[], found `)`"),
        ("ENTRY e { x = s8[] parameter(0) x = s8[] copy(x) }", "1:33: `x` is defined twice"),
        ("ENTRY e { x = s8[4] iota() }", "`iota` needs the attribute `iota_dimension`"),
        ("ENTRY e { x = s8[4] iota(), iota_dimension=1 }", "iota: dimension 1 is outside s8[4]"),
        ("ENTRY e { x = s8[4] iota(), iota_dimension=0, foo={1} }", "the attribute `foo` is not supported"),
        ("ENTRY e { x = s8[4] iota(), iota_dimension=0, foo={1", "this bracket is not closed"),
        ("ENTRY e { /* x }", "1:11: this comment is not closed"),
        ("ENTRY e { x = s8[] parameter(0), metadata={op_name=\"a} }", "this string is not closed"),
        ("ENTRY e { ROOT x = s8[] call(), to_apply=e }", "calls nest deeper"),
        ("ENTRY e { } ", "computation `e` is empty"),
        (
            "ENTRY e { x = f32[] parameter(0) ROOT r = f32[] reduce(x, x), dimensions={}, to_apply=e }",
            "not one binary",
        ),
        (
            "ENTRY e { x = f32[] parameter(0) c = pred[] compare(x, x), direction=LT, type=TOTALORDER }",
            "total order",
        ),
    ] {
        let message = refused(text);
        assert!(message.contains(expected), "{text}\ngave\n{message}\nwithout `{expected}`");
    }
    // Inlining cannot be made to run away.
    let mut bomb = String::from("c0 { ROOT p = s8[] parameter(0) }\n");
    for i in 1..64 {
        let last = i - 1;
        bomb += &format!(
            "c{i} {{ p = s8[] parameter(0) n = s8[] negate(p) a = s8[] call(n), to_apply=c{last} \
             ROOT b = s8[] call(a), to_apply=c{last} }}\n"
        );
    }
    bomb += "ENTRY e { p = s8[] parameter(0) ROOT r = s8[] call(p), to_apply=c63 }";
    assert!(refused(&bomb).contains("grows beyond"));
}

#[test]
fn unnamed_and_unprintable_names_read_back_as_none() {
    let mut graph = Graph::new("two words");
    let x = graph.parameter(Shape::new(S32, [2]));
    let y = graph.add(Op::Copy, &[x]).unwrap();
    let z = graph.add(Op::Copy, &[y]).unwrap();
    graph.annotate(y).name = "%odd".to_owned();
    graph.annotate(z).name = "fine.1".to_owned();
    graph.add_root(z).unwrap();
    graph.add_root(z).unwrap();
    let again = parse_graph(&print_graph(&graph)).unwrap();
    let names: Vec<&str> = again.nodes().iter().map(|n| n.name.as_str()).collect();
    assert_eq!((again.name.as_str(), names), ("", vec!["", "", "fine.1"]));
    assert_eq!(again.roots(), graph.roots());
}
