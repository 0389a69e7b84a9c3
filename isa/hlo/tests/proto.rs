//! HloModuleProto on real modules: what JAX and XLA wrote comes out byte for byte, is read as XLA prints it,
//! and hostile bytes are errors.

use act_hlo::proto::convert::convert;
use act_hlo::proto::{Computation, HloModule, HloShape, Instruction};
use act_hlo::{Binary, DotDims, ElemType, Layout, Literal, Op, Shape};
use proptest::prelude::*;
use std::collections::BTreeMap;

const DUMPS: [(&str, &[u8]); 11] = [
    ("mlp", include_bytes!("modules/mlp.pb")),
    ("attention", include_bytes!("modules/attention.pb")),
    ("softmax", include_bytes!("modules/softmax.pb")),
    ("batched", include_bytes!("modules/batched.pb")),
    ("grad", include_bytes!("modules/grad.pb")),
    ("scan", include_bytes!("modules/scan.pb")),
    ("cond", include_bytes!("modules/cond.pb")),
    ("convolution", include_bytes!("modules/convolution.pb")),
    ("linalg", include_bytes!("modules/linalg.pb")),
    ("scatter", include_bytes!("modules/scatter.pb")),
    ("constants", include_bytes!("modules/constants.pb")),
];

fn dump(name: &str) -> &'static [u8] {
    DUMPS.into_iter().find(|(n, _)| *n == name).unwrap().1
}

fn module(name: &str) -> HloModule {
    HloModule::parse(dump(name)).unwrap()
}

#[test]
fn real_dumps_round_trip_byte_for_byte() {
    for (name, bytes) in DUMPS {
        assert!(HloModule::parse(bytes).unwrap().to_bytes() == bytes, "{name}");
    }
}

#[test]
fn touched_but_unchanged_computations_round_trip_too() {
    for (name, bytes) in DUMPS {
        let mut module = HloModule::parse(bytes).unwrap();
        let ids: Vec<i64> = module.computations().map(Computation::id).collect();
        for id in ids {
            module.computation_mut(id).unwrap().instructions_mut().for_each(|i| i.set_id(i.id()));
        }
        assert!(module.to_bytes() == bytes, "{name}");
    }
}

/// `%name = type opcode(...)` of XLA's text, by instruction name.
fn printed(text: &str) -> BTreeMap<String, (String, String, Option<i64>)> {
    let mut out = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("ROOT ");
        let Some((name, rest)) = line.strip_prefix('%').and_then(|l| l.split_once(" = ")) else { continue };
        let shape_end =
            if rest.starts_with('(') { rest.find(") ").unwrap() + 1 } else { rest.find(' ').unwrap() };
        let (shape, call) = rest.split_at(shape_end);
        let opcode = call.trim_start().split('(').next().unwrap();
        let frame = line
            .split("stack_frame_id=")
            .nth(1)
            .map(|t| t.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap());
        out.insert(name.to_owned(), (shape.to_owned(), opcode.to_owned(), frame));
    }
    out
}

/// A type as XLA prints it.
fn shape_text(shape: &HloShape) -> String {
    match shape {
        HloShape::Array(a) => {
            let order = a.layout.as_ref().unwrap().minor_to_major.iter().map(ToString::to_string);
            let layout = if a.shape.rank() == 0 {
                String::new()
            } else {
                format!("{{{}}}", order.collect::<Vec<_>>().join(","))
            };
            format!("{}{layout}", a.shape)
        }
        HloShape::Tuple(members) => {
            format!("({})", members.iter().map(shape_text).collect::<Vec<_>>().join(", "))
        }
        HloShape::Other(number) => format!("type {number}"),
    }
}

#[test]
fn instructions_read_as_xla_prints_them() {
    for (name, text) in
        [("mlp", include_str!("modules/mlp.txt")), ("softmax", include_str!("modules/softmax.txt"))]
    {
        let module = module(name);
        let printed = printed(text);
        let all: Vec<&Instruction> = module.computations().flat_map(Computation::instructions).collect();
        assert_eq!(all.len(), printed.len());
        for i in all {
            let (shape, opcode, frame) = &printed[i.name()];
            assert_eq!(&shape_text(&i.shape().unwrap()), shape, "{}", i.name());
            assert_eq!(i.opcode(), opcode);
            assert_eq!(i.metadata().unwrap().stack_frame_id, frame.unwrap_or(0));
        }
    }
}

fn find<'m>(module: &'m HloModule, opcode: &str) -> Vec<&'m Instruction> {
    module.computations().flat_map(Computation::instructions).filter(|i| i.opcode() == opcode).collect()
}

#[test]
fn source_lines_come_from_the_stack_frames() {
    let module = module("mlp");
    let dots = find(&module, "dot");
    assert_eq!(dots.len(), 2);
    for dot in dots {
        let source = module.source(dot).unwrap().unwrap();
        // The line of `product = jax.lax.dot_general(…)` in programs.py.
        let line =
            include_str!("modules/programs.py").lines().position(|l| l.contains("product = ")).unwrap();
        assert_eq!((source.file.as_str(), source.line as usize), ("programs.py", line + 1));
        assert!(source.op_name.ends_with("dot_general"), "{}", source.op_name);
    }
}

/// Operators of every instruction, or why not, by name.
fn converted(module: &HloModule) -> BTreeMap<String, Result<Vec<(Op, Shape)>, String>> {
    let mut out = BTreeMap::new();
    for computation in module.computations() {
        let shapes: BTreeMap<i64, HloShape> =
            computation.instructions().map(|i| (i.id(), i.shape().unwrap())).collect();
        for i in computation.instructions() {
            let operands: Option<Vec<_>> =
                i.operand_ids().unwrap().iter().map(|id| shapes[id].array()).collect();
            let result = match operands {
                Some(operands) => convert(module, i, &operands).map(|c| c.steps).map_err(|e| e.to_string()),
                None => Err(format!("{}: takes a tuple", i.opcode())),
            };
            out.insert(i.name().to_owned(), result);
        }
    }
    out
}

#[test]
fn the_quickstart_kernels_are_expressible() {
    for name in ["mlp", "attention", "softmax"] {
        let control = ["tuple", "get-tuple-element", "while", "fusion", "parameter"];
        for (instruction, result) in converted(&module(name)) {
            if let Err(why) = result {
                assert!(control.iter().any(|c| why.starts_with(c)), "{name} {instruction}: {why}");
            }
        }
    }
}

#[test]
fn attributes_are_read() {
    let softmax = converted(&module("softmax"));
    let rhs_transposed = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    let ops: Vec<&Op> = softmax.values().flatten().flatten().map(|(op, _)| op).collect();
    assert!(ops.contains(&&Op::Dot(rhs_transposed)));
    assert!(ops.contains(&&Op::Reduce { dims: vec![1], combiner: Binary::Maximum }));
    let minus_infinity = Literal::from_bytes(Shape::scalar(ElemType::BF16), [0x80, 0xff]).unwrap();
    assert!(ops.contains(&&Op::Constant(minus_infinity)));

    let constants = converted(&module("constants"));
    let table: Vec<u8> = (0..12).flat_map(|v| (v as f32).to_le_bytes()).collect();
    let table = Literal::from_bytes(Shape::new(ElemType::F32, [4, 3]), table).unwrap();
    assert!(constants.values().flatten().flatten().any(|(op, _)| *op == Op::Constant(table.clone())));

    let batched = converted(&module("batched"));
    let dims = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contracting: vec![2],
        rhs_contracting: vec![2],
    };
    assert!(batched.values().flatten().flatten().any(|(op, _)| *op == Op::Dot(dims.clone())));
}

/// A module with one computation `(parameter) -> instruction(parameter)`.
fn bitcast_of(from: (&[u64], &[usize]), to: (&[u64], &[usize])) -> Vec<(Op, Shape)> {
    let array = |(dims, order): (&[u64], &[usize])| {
        let mut shape = HloShape::row_major(Shape::new(ElemType::F32, dims));
        if let HloShape::Array(a) = &mut shape {
            a.layout = Some(Layout { minor_to_major: order.to_vec(), tiles: vec![] });
        }
        shape
    };
    let (from, to) = (array(from), array(to));
    let bitcast = Instruction::new(1, "bitcast", "bitcast", &to, &[0]);
    let empty = HloModule::parse(&b""[..]).unwrap();
    convert(&empty, &bitcast, &[from.array().unwrap()]).unwrap().steps
}

#[test]
fn a_bitcast_is_read_with_its_layouts() {
    let shape = |dims: &[u64]| Shape::new(ElemType::F32, dims);
    let same = bitcast_of((&[2, 3], &[1, 0]), (&[6], &[0]));
    assert_eq!(same, [(Op::Reshape, shape(&[6]))]);
    // The same bytes read with the dimensions exchanged are the transpose.
    let turned = bitcast_of((&[2, 3], &[1, 0]), (&[3, 2], &[0, 1]));
    assert_eq!(turned, [(Op::Transpose { perm: vec![1, 0] }, shape(&[3, 2]))]);
    // f32[2,3]{0,1} holds its columns one after another: a flat view of it is the transpose, flattened.
    let flat = bitcast_of((&[2, 3], &[0, 1]), (&[6], &[0]));
    assert_eq!(flat, [(Op::Transpose { perm: vec![1, 0] }, shape(&[3, 2])), (Op::Reshape, shape(&[6]))]);
    let three = bitcast_of((&[2, 3, 5], &[1, 2, 0]), (&[5, 6], &[1, 0]));
    assert_eq!(
        three,
        [(Op::Transpose { perm: vec![0, 2, 1] }, shape(&[2, 5, 3])), (Op::Reshape, shape(&[5, 6]))]
    );
    // Three-cycles tell a permutation from its inverse.
    let cycled = bitcast_of((&[2, 3, 5], &[2, 1, 0]), (&[3, 5, 2], &[1, 0, 2]));
    assert_eq!(cycled, [(Op::Transpose { perm: vec![1, 2, 0] }, shape(&[3, 5, 2]))]);
    let uncycled = bitcast_of((&[2, 3, 5], &[1, 0, 2]), (&[5, 2, 3], &[2, 1, 0]));
    assert_eq!(uncycled, [(Op::Transpose { perm: vec![2, 0, 1] }, shape(&[5, 2, 3]))]);
    let unflattened = bitcast_of((&[30], &[0]), (&[2, 3, 5], &[1, 0, 2]));
    assert_eq!(
        unflattened,
        [(Op::Reshape, shape(&[5, 2, 3])), (Op::Transpose { perm: vec![1, 2, 0] }, shape(&[2, 3, 5]))]
    );
    let back = bitcast_of((&[6], &[0]), (&[2, 3], &[0, 1]));
    assert_eq!(back, [(Op::Reshape, shape(&[3, 2])), (Op::Transpose { perm: vec![1, 0] }, shape(&[2, 3]))]);
}

#[test]
fn edits_are_read_back_and_leave_the_rest_alone() {
    let mut module = module("mlp");
    let entry = module.entry_id();
    let mut fresh = module.fresh();
    let computation = module.computation(entry).unwrap();
    let mut instructions: Vec<Instruction> = computation.instructions().cloned().collect();
    let fusion = instructions.iter().position(|i| i.opcode() == "fusion").unwrap();
    let (old, operands) = (instructions[fusion].clone(), instructions[fusion].operand_ids().unwrap());
    let shapes: Vec<HloShape> =
        operands.iter().map(|&o| computation.instruction(o).unwrap().shape().unwrap()).collect();
    let (id, name) = (fresh.instruction_id(entry), fresh.name("kernel"));
    assert!(computation.instruction(id).is_none());
    assert_eq!(id >> 32, entry, "the numbering of this module is kept");
    let attributes = "{abi = 1 : i64, key = \"00\"}";
    let mut call = Instruction::custom_call(
        id,
        &name,
        &old.shape().unwrap(),
        &operands,
        &shapes,
        "act_kernel",
        attributes,
    );
    call.copy_provenance(&old);
    instructions[fusion] = call.clone();
    for i in &mut instructions {
        let mapped: Vec<i64> =
            i.operand_ids().unwrap().iter().map(|&o| if o == old.id() { id } else { o }).collect();
        i.set_operand_ids(&mapped);
    }
    let before = module.computations().count();
    module.computation_mut(entry).unwrap().set_instructions(instructions);
    module.remove_unreachable_computations().unwrap();
    assert_eq!(module.computations().count(), before - 1, "the fused computation is gone");

    let again = HloModule::parse(module.to_bytes()).unwrap();
    assert_eq!(again.computation(entry).unwrap().instruction(id), Some(&call));
    assert_eq!(call.custom_call_target().unwrap(), "act_kernel");
    assert_eq!(call.backend_config(), attributes.as_bytes());
    assert_eq!(again.source(&call).unwrap(), self::module("mlp").source(&old).unwrap());
    for computation in again.computations().filter(|c| c.id() != entry) {
        assert_eq!(Some(computation), self::module("mlp").computation(computation.id()));
    }
}

/// Reads everything there is to read.
fn visit(module: &HloModule) {
    module.fresh();
    for computation in module.computations() {
        let mut shapes = BTreeMap::new();
        for i in computation.instructions() {
            if let Ok(shape) = i.shape() {
                shapes.insert(i.id(), shape);
            }
            let operands: Vec<_> = i
                .operand_ids()
                .unwrap_or_default()
                .iter()
                .filter_map(|o| shapes.get(o).and_then(HloShape::array))
                .collect();
            let _ =
                (convert(module, i, &operands), module.source(i), i.literal(), i.padding(), i.slice_dims());
        }
    }
    let mut edited = module.clone();
    let _ = edited.remove_unreachable_computations();
    edited.to_bytes();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A mutated dump is either an error or a module that can be read, edited and written; and what is read
    /// is written back unchanged.
    #[test]
    fn hostile_bytes_never_panic(
        which in 0..DUMPS.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = DUMPS[which].1.to_vec();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(module) = HloModule::parse(bytes.clone()) {
            prop_assert!(module.to_bytes() == bytes);
            visit(&module);
        }
    }
}
