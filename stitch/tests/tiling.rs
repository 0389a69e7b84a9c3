//! Tile plans against the reference evaluator: a plan is executed by evaluating every tiled kernel's graph on the bytes
//! that its places name, and must reproduce the region evaluated whole, bit for bit on integers.

use act_hlo::{Binary, DotDims, ElemType, Graph, Literal, NodeId, Op, Shape, Unary, eval};
use act_isa::{
    Affine, AttrDecl, AttrKind, Buffer, BufferId, BufferSlice, Computation, Expr, Hbm, HbmWindow, Instr, Isa,
    LoopId, Place, Slice, Space, Stmt, SymOp, View,
};
use act_stitch::region::choice::choices;
use act_stitch::region::larger::larger_tiles;
use act_stitch::region::pack_order::{Packing, pack};
use act_stitch::tile::granularity::operand_groups;
use act_stitch::tile::{
    Axes, AxisTile, Joining, MOST_KERNELS, Nest, NestError, NormalRegion, Segments, TileChoice, TilePlan,
    build_nest, join_depths, normalize, reshaped_views,
};
use std::collections::BTreeMap;

/// An accelerator whose one instruction is an MxNxK matrix product in s32.
fn machine(m: i64, n: i64, k: i64) -> Isa {
    let attr = |name: &str, max| AttrDecl { name: name.to_owned(), kind: AttrKind::Int { min: 1, max } };
    let alpha = vec![attr("m", m), attr("n", n), attr("k", k)];
    let slice = |a: u16, b: u16| {
        Slice::OnChip(BufferSlice {
            buffer: BufferId(0),
            start: vec![Expr::Int(0), Expr::Int(0)],
            len: vec![Expr::Alpha(a), Expr::Alpha(b)],
        })
    };
    let stmt = |op: SymOp, operands: Vec<usize>, a: u16, b: u16| Stmt {
        name: String::new(),
        op,
        operands,
        elem: ElemType::S32,
        dims: vec![Expr::Alpha(a), Expr::Alpha(b)],
    };
    let stmts = vec![
        stmt(SymOp::Parameter(0), vec![], 0, 2),
        stmt(SymOp::Parameter(1), vec![], 2, 1),
        stmt(SymOp::Dot(DotDims::matmul()), vec![0, 1], 0, 1),
    ];
    Isa {
        name: "matrix".to_owned(),
        hbm: Hbm { name: "d0".to_owned(), size: 1 << 30, align: 1, ordered: false },
        buffers: vec![Buffer {
            name: "d1".to_owned(),
            access: vec![1 << 20, 1 << 20],
            unit: vec![],
            elem: ElemType::S32,
            align: vec![1, 1],
            ..Buffer::default()
        }],
        instrs: vec![Instr {
            name: "mm".to_owned(),
            alpha,
            inputs: vec![slice(0, 2), slice(2, 1)],
            outputs: vec![slice(0, 1)],
            cost: Expr::Int(1),
            computation: Computation { stmts, roots: vec![2] },
            ..Instr::default()
        }],
        ..Isa::default()
    }
}

/// The same with loads of `reach` elements in a row, and with so many columns in its buffer.
fn with_wide_loads(isa: Isa, reach: i64, columns: u64) -> Isa {
    let instr = |name: &str| Instr { name: name.to_owned(), cost: Expr::Int(1), ..Instr::default() };
    let window = HbmWindow {
        start: Expr::Beta(0),
        dims: vec![(Expr::Int(4), Expr::Int(64)), (Expr::Int(4 * reach), Expr::Int(1))],
    };
    let slot = BufferSlice {
        buffer: BufferId(0),
        start: vec![Expr::Int(0), Expr::Int(0)],
        len: vec![Expr::Int(4), Expr::Int(reach)],
    };
    let stmt = |op: SymOp, operands: Vec<usize>, elem: ElemType, dims: &[i64]| Stmt {
        name: String::new(),
        op,
        operands,
        elem,
        dims: dims.iter().map(|&d| Expr::Int(d)).collect(),
    };
    let stmts = vec![
        stmt(SymOp::Parameter(0), vec![], ElemType::U8, &[4, 4 * reach]),
        stmt(SymOp::Reshape, vec![0], ElemType::U8, &[4, reach, 4]),
        stmt(SymOp::BitcastConvert, vec![1], ElemType::S32, &[4, reach]),
    ];
    let load = Instr {
        inputs: vec![Slice::Hbm(window)],
        outputs: vec![Slice::OnChip(slot)],
        computation: Computation { stmts, roots: vec![2] },
        ..instr("load")
    };
    let mut buffers = isa.buffers.clone();
    buffers[0].access[1] = columns;
    let instrs = isa.instrs.iter().cloned().chain([load]).collect();
    Isa { instrs, buffers, ..isa }
}

/// Segments of d0 and the accumulators that live between kernels, while a plan is executed.
struct Memory {
    segments: BTreeMap<Space, Vec<u8>>,
    accumulators: BTreeMap<usize, Literal>,
    loops: BTreeMap<LoopId, i64>,
    kernels_run: usize,
}

impl Memory {
    fn addresses(&self, view: &View) -> Vec<usize> {
        let start = view.start.eval(|iv| self.loops.get(&iv).copied()).expect("loops around are bound");
        view.dims.iter().fold(vec![start as usize], |at, &(len, stride)| {
            at.into_iter()
                .flat_map(|a| (0..len as i64).map(move |i| (a as i64 + i * stride) as usize))
                .collect()
        })
    }

    fn read(&self, view: &View) -> Literal {
        let width = view.elem.bytes() as usize;
        let bytes = &self.segments[&view.space];
        let data: Vec<u8> = self.addresses(view).iter().flat_map(|&a| bytes[a..a + width].to_vec()).collect();
        let shape = Shape::new(view.elem, view.dims.iter().map(|d| d.0).collect::<Vec<_>>());
        Literal::from_bytes(shape, data).expect("one element per address")
    }

    fn write(&mut self, view: &View, value: &Literal) {
        assert!(view.dims.iter().map(|d| d.0).eq(value.shape().dims.iter().copied()), "{view:?} {value:?}");
        for (i, at) in self.addresses(view).into_iter().enumerate() {
            let element = value.element_bytes(i as u64);
            self.segments.get_mut(&view.space).expect("the segment exists")[at..at + element.len()]
                .copy_from_slice(element);
        }
    }

    fn run(&mut self, plan: &TilePlan, nest: &Nest) {
        match nest {
            Nest::Seq(parts) => parts.iter().for_each(|part| self.run(plan, part)),
            Nest::For { iv, trip, body, .. } => {
                for i in 0..*trip {
                    self.loops.insert(*iv, i as i64);
                    self.run(plan, body);
                }
                self.loops.remove(iv);
            }
            Nest::HostCopy { from, to } => {
                let value = self.read(from);
                self.write(to, &value);
            }
            Nest::Kernel(k) => {
                self.kernels_run += 1;
                let planned = &plan.kernels[*k];
                let group = planned.group.unwrap_or(usize::MAX);
                let ins: Vec<Literal> = planned
                    .kernel
                    .ins
                    .iter()
                    .map(|place| match place {
                        Place::Hbm(view) => self.read(view),
                        Place::OnChip { .. } => self.accumulators[&group].clone(),
                    })
                    .collect();
                let outs = eval(&planned.kernel.graph, &ins).expect("a tiled kernel evaluates");
                for (place, value) in planned.kernel.outs.iter().zip(&outs) {
                    match place {
                        Place::Hbm(view) => self.write(view, value),
                        Place::OnChip { .. } => {
                            self.accumulators.insert(group, value.clone());
                        }
                    }
                }
            }
        }
    }
}

fn execute(region: &NormalRegion, plan: &TilePlan, inputs: &[Literal]) -> (Vec<Literal>, usize) {
    let segments: Segments = region.segments;
    let mut memory = Memory {
        segments: BTreeMap::new(),
        accumulators: BTreeMap::new(),
        loops: BTreeMap::new(),
        kernels_run: 0,
    };
    for (k, input) in inputs.iter().enumerate() {
        memory.segments.insert(Space::Operand(k as u16), input.bytes().to_vec());
    }
    memory.segments.insert(segments.consts(), plan.consts.clone());
    // Poison: a byte that nobody writes shows.
    memory.segments.insert(segments.packed(), vec![0xA5; plan.packed_bytes as usize]);
    for view in &region.results {
        let bytes: u64 = view.dims.iter().map(|d| d.0).product::<u64>() * view.elem.bytes();
        memory.segments.insert(view.space, vec![0xA5; bytes as usize]);
    }
    memory.run(plan, &plan.nest);
    let results = region.results.iter().map(|view| memory.read(view)).collect();
    (results, memory.kernels_run)
}

fn noise(shape: &Shape, seed: u64) -> Literal {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as u8
    };
    let data: Vec<u8> = match shape.elem {
        ElemType::F32 => (0..shape.elements())
            .flat_map(|_| ((i32::from(next()) - 128) as f32 / 64.0).to_le_bytes())
            .collect(),
        _ => (0..shape.bytes()).map(|_| next()).collect(),
    };
    Literal::from_bytes(shape.clone(), data).expect("sized by the shape")
}

/// Runs every choice of every packing level and compares; returns how many plans were run.
fn check(graph: &Graph, granularity: (i64, i64, i64)) -> usize {
    check_on(&machine(granularity.0, granularity.1, granularity.2), graph)
}

fn check_on(isa: &Isa, graph: &Graph) -> usize {
    let view = |space, id: NodeId| View::row_major(space, graph.shape(id));
    let operands: Vec<View> =
        graph.params().iter().enumerate().map(|(k, &id)| view(Space::Operand(k as u16), id)).collect();
    let results: Vec<View> =
        graph.roots().iter().enumerate().map(|(k, &id)| view(Space::Result(k as u16), id)).collect();
    let inputs: Vec<Literal> =
        graph.params().iter().enumerate().map(|(k, &id)| noise(graph.shape(id), k as u64 + 1)).collect();
    let expected = eval(graph, &inputs).expect("the region evaluates");
    let region = normalize(graph, &operands, &results).expect("views fit");
    let reshaped = reshaped_views(&region).expect("infers");
    let plans = run_all(&region, isa, &inputs, &expected);
    plans + reshaped.map_or(0, |region| run_all(&region, isa, &inputs, &expected))
}

/// Runs every choice of every packing level of a region and compares; returns how many plans were run.
fn run_all(region: &NormalRegion, isa: &Isa, inputs: &[Literal], expected: &[Literal]) -> usize {
    let axes = Axes::of_graph(&region.graph);
    let mut plans = 0;
    for level in Packing::LEVELS {
        let Some((region, packed)) = pack(region, &axes, level).expect("permutes") else { continue };
        let axes = Axes::of_graph(&region.graph);
        let plain = choices(&region, &axes, isa, true, level);
        let larger = plain.iter().filter(|_| level == Packing::None);
        let larger: Vec<TileChoice> =
            larger.flat_map(|choice| larger_tiles(&region, &axes, isa, choice)).collect();
        for mut choice in plain.into_iter().chain(larger) {
            choice.packed_leaves.clone_from(&packed);
            choice.packed_results = vec![level.is_total(); region.results.len()];
            let plan = build_nest(&region, &axes, &choice, MOST_KERNELS).expect("a nest");
            let (got, _) = execute(&region, &plan, inputs);
            // A result may be written in another shape than the program's, in the same order.
            let bytes = |of: &[Literal]| of.iter().map(|l| l.bytes().to_vec()).collect::<Vec<_>>();
            assert_eq!(bytes(&got), bytes(expected), "{choice:?}\n{plan:#?}");
            plans += 1;
        }
    }
    plans
}

fn matmul(m: u64, k: u64, n: u64) -> (Graph, NodeId) {
    let mut graph = Graph::new("matmul");
    let a = graph.parameter(Shape::new(ElemType::S8, [m, k]));
    let b = graph.parameter(Shape::new(ElemType::S8, [k, n]));
    let product = Shape::new(ElemType::S32, [m, n]);
    let dot = graph.add_declared(Op::Dot(DotDims::matmul()), &[a, b], Some(&product)).unwrap();
    (graph, dot)
}

#[test]
fn ragged_products_with_bias_and_relu() {
    for (m, k, n) in [(1, 1, 1), (4, 4, 4), (8, 8, 8), (5, 9, 7), (3, 13, 4), (17, 2, 3), (4, 12, 5)] {
        let (mut graph, dot) = matmul(m, k, n);
        let bias = graph.parameter(Shape::new(ElemType::S32, [n]));
        let shape = Shape::new(ElemType::S32, [m, n]);
        let spread = graph.add_declared(Op::Broadcast { dims: vec![1] }, &[bias], Some(&shape)).unwrap();
        let sum = graph.add(Op::Binary(Binary::Add), &[dot, spread]).unwrap();
        let zero = Literal::zeros(Shape::scalar(ElemType::S32));
        let zero = graph.add_declared(Op::Constant(zero), &[], Some(&Shape::scalar(ElemType::S32))).unwrap();
        let zeros = graph.add_declared(Op::Broadcast { dims: vec![] }, &[zero], Some(&shape)).unwrap();
        let relu = graph.add(Op::Binary(Binary::Maximum), &[sum, zeros]).unwrap();
        graph.add_root(relu).unwrap();
        assert!(check(&graph, (4, 4, 4)) > 0);
        assert!(check(&graph, (3, 5, 2)) > 0);
    }
}

/// A product with an addend and a bound, so that all phases of a sum do something.
fn bounded_sum(m: u64, k: u64, n: u64) -> Graph {
    let (mut graph, dot) = matmul(m, k, n);
    let shape = Shape::new(ElemType::S32, [m, n]);
    let addend = graph.parameter(Shape::new(ElemType::S8, [m, n]));
    let wide = graph.add_declared(Op::Convert, &[addend], Some(&shape)).unwrap();
    let sum = graph.add(Op::Binary(Binary::Add), &[dot, wide]).unwrap();
    let other = graph.parameter(shape);
    let least = graph.add(Op::Binary(Binary::Minimum), &[sum, other]).unwrap();
    graph.add_root(least).unwrap();
    graph
}

#[test]
fn tiles_of_several_blocks_have_the_same_results() {
    let blocked = |isa: &Isa, graph: &Graph| {
        let view = |space, id: NodeId| View::row_major(space, graph.shape(id));
        let operands: Vec<View> =
            graph.params().iter().zip(0..).map(|(&id, k)| view(Space::Operand(k), id)).collect();
        let region = normalize(graph, &operands, &[view(Space::Result(0), graph.roots()[0])]).unwrap();
        let axes = Axes::of_graph(&region.graph);
        let plain = choices(&region, &axes, isa, true, Packing::None);
        let larger = plain.iter().flat_map(|choice| larger_tiles(&region, &axes, isa, choice));
        larger.filter_map(|choice| choice.contraction?.blocks).collect::<Vec<_>>()
    };
    for (columns, stacked) in [(4, true), (1 << 20, false)] {
        let isa = with_wide_loads(machine(4, 4, 4), 16, columns);
        let (mut in_blocks, mut plans) = (0, 0);
        for (m, k, n) in [
            (16, 16, 16),
            (16, 64, 32),
            (5, 17, 23),
            (4, 40, 44),
            (9, 33, 6),
            (1, 50, 13),
            (7, 3, 70),
            (16, 19, 4),
        ] {
            let (mut plain, dot) = matmul(m, k, n);
            plain.add_root(dot).unwrap();
            for graph in [plain, bounded_sum(m, k, n)] {
                let found = blocked(&isa, &graph);
                assert!(
                    found.iter().all(|blocks| blocks.stacked == stacked && blocks.width == 4),
                    "{found:?}"
                );
                in_blocks += found.len();
                plans += check_on(&isa, &graph);
            }
        }
        assert!(in_blocks > 20 && plans > 100, "{in_blocks} {plans}");
    }
}

#[test]
fn kernels_run_once_per_tile_of_the_product() {
    for (m, k, n) in [(16u64, 16, 16), (17, 33, 15), (64, 130, 1)] {
        let (mut graph, dot) = matmul(m, k, n);
        graph.add_root(dot).unwrap();
        let isa = machine(16, 16, 16);
        let views = |space: Space, id| View::row_major(space, graph.shape(id));
        let operands =
            [views(Space::Operand(0), graph.params()[0]), views(Space::Operand(1), graph.params()[1])];
        let results = [views(Space::Result(0), dot)];
        let region = normalize(&graph, &operands, &results).unwrap();
        let axes = Axes::of_graph(&region.graph);
        let choice = choices(&region, &axes, &isa, true, Packing::None).remove(0);
        let plan = build_nest(&region, &axes, &choice, MOST_KERNELS).unwrap();
        let inputs: Vec<Literal> = graph.params().iter().map(|&p| noise(graph.shape(p), 3)).collect();
        let (_, kernels) = execute(&region, &plan, &inputs);
        let tiles = m.div_ceil(16) * n.div_ceil(16);
        let steps = k.div_ceil(16);
        // One more kernel per tile, the epilogue, where the contraction is split.
        assert_eq!(kernels as u64, tiles * (steps + u64::from(steps > 1)));
    }
}

#[test]
fn contractions_over_either_dimension_and_transposed_results() {
    for (lc, rc) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (m, k, n) = (6, 7, 9);
        let mut graph = Graph::new("dot");
        let side = |c: usize, free| if c == 0 { [k, free] } else { [free, k] };
        let a = graph.parameter(Shape::new(ElemType::S8, side(lc, m)));
        let b = graph.parameter(Shape::new(ElemType::S8, side(rc, n)));
        let dims = DotDims { lhs_contracting: vec![lc], rhs_contracting: vec![rc], ..DotDims::default() };
        let shape = Shape::new(ElemType::S32, [m, n]);
        let dot = graph.add_declared(Op::Dot(dims), &[a, b], Some(&shape)).unwrap();
        let turned = graph.add(Op::Transpose { perm: vec![1, 0] }, &[dot]).unwrap();
        graph.add_root(turned).unwrap();
        assert!(check(&graph, (4, 4, 4)) > 0);
    }
}

#[test]
fn a_value_times_its_own_transpose() {
    let mut graph = Graph::new("gram");
    let x = graph.parameter(Shape::new(ElemType::S8, [9, 6]));
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    let shape = Shape::new(ElemType::S32, [9, 9]);
    let dot = graph.add_declared(Op::Dot(dims), &[x, x], Some(&shape)).unwrap();
    graph.add_root(dot).unwrap();
    let isa = machine(4, 4, 4);
    assert!(check(&graph, (4, 4, 4)) > 0);
    let views = [View::row_major(Space::Operand(0), graph.shape(x))];
    let results = [View::row_major(Space::Result(0), &shape)];
    let region = normalize(&graph, &views, &results).unwrap();
    let axes = Axes::of_graph(&region.graph);
    // Both uses are cut by themselves, so rows and columns are.
    assert_eq!(choices(&region, &axes, &isa, true, Packing::None)[0].tiles.len(), 2);
}

/// A sum and a product have the same addend and factor, which instructions may want in one place.
#[test]
fn a_value_read_twice_is_one_input() {
    let (mut graph, dot) = matmul(9, 6, 7);
    let bias = graph.parameter(Shape::new(ElemType::S32, [9, 7]));
    let sum = graph.add(Op::Binary(Binary::Add), &[bias, dot]).unwrap();
    let scaled = graph.add(Op::Binary(Binary::Multiply), &[sum, bias]).unwrap();
    graph.add_root(scaled).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 2);
    let view = |space, id: NodeId| View::row_major(space, graph.shape(id));
    let operands: Vec<View> = (0..).zip(graph.params()).map(|(k, &id)| view(Space::Operand(k), id)).collect();
    let region = normalize(&graph, &operands, &[view(Space::Result(0), scaled)]).unwrap();
    let plain = Axes::of_graph(&region.graph);
    for level in Packing::LEVELS {
        let Some((region, packed)) = pack(&region, &plain, level).unwrap() else { continue };
        let axes = Axes::of_graph(&region.graph);
        for mut choice in choices(&region, &axes, &machine(4, 4, 4), true, level) {
            choice.packed_leaves.clone_from(&packed);
            let plan = build_nest(&region, &axes, &choice, MOST_KERNELS).unwrap();
            for kernel in plan.kernels.iter().map(|planned| &planned.kernel) {
                let has = |op: &str| kernel.graph.nodes().iter().any(|n| n.op.name() == op);
                // Both factors of the product, or what was accumulated, and the bias.
                let inputs = if has("dot") { 3 } else { 2 };
                assert!(!has("multiply") || kernel.ins.len() == inputs, "{level:?} {kernel:#?}");
            }
        }
    }
}

/// Each ragged axis doubles the kernels; one nest has so many at most.
#[test]
fn ragged_edges_stay_within_a_budget() {
    for (rank, most) in [(7u32, Some(128)), (8, None)] {
        let shape = Shape::new(ElemType::S32, vec![3; rank as usize]);
        let mut graph = Graph::new("sum");
        let (x, y) = (graph.parameter(shape.clone()), graph.parameter(shape));
        let sum = graph.add(Op::Binary(Binary::Add), &[x, y]).unwrap();
        graph.add_root(sum).unwrap();
        let view = |space, id: NodeId| View::row_major(space, graph.shape(id));
        let operands = [view(Space::Operand(0), x), view(Space::Operand(1), y)];
        let region = normalize(&graph, &operands, &[view(Space::Result(0), sum)]).unwrap();
        let axes = Axes::of_graph(&region.graph);
        let tile = AxisTile::of(2);
        let root = region.graph.roots()[0];
        let tiles = axes.of(root).iter().map(|&axis| (axis, tile)).collect();
        let choice = TileChoice { tiles, ..TileChoice::default() };
        match build_nest(&region, &axes, &choice, MOST_KERNELS) {
            Ok(plan) => assert_eq!(Some(plan.kernels.len()), most),
            Err(error) => assert_eq!((error, most), (NestError::TooManyKernels { most: MOST_KERNELS }, None)),
        }
    }
}

/// Two elements of the contracted dimension side by side, as instructions on pairs have their right operand.
#[test]
fn right_operands_in_groups() {
    for (m, k, n) in [(4, 4, 4), (5, 9, 7), (3, 13, 4), (2, 6, 9)] {
        let (mut graph, dot) = matmul(m, k, n);
        graph.add_root(dot).unwrap();
        let inputs: Vec<Literal> =
            (1..).zip(graph.params()).map(|(seed, &id)| noise(graph.shape(id), seed)).collect();
        let expected = eval(&graph, &inputs).unwrap();
        let view = |space, id: NodeId| View::row_major(space, graph.shape(id));
        let operands: Vec<View> =
            (0..).zip(graph.params()).map(|(k, &id)| view(Space::Operand(k), id)).collect();
        let region = normalize(&graph, &operands, &[view(Space::Result(0), dot)]).unwrap();
        let axes = Axes::of_graph(&region.graph);
        let (region, packed) = pack(&region, &axes, Packing::Grouped).unwrap().unwrap();
        let axes = Axes::of_graph(&region.graph);
        let right = region.graph.params()[1];
        let mut grouped = 0;
        for mut choice in choices(&region, &axes, &machine(4, 4, 4), true, Packing::Grouped) {
            choice.packed_leaves.clone_from(&packed);
            choice.packed_results = vec![true];
            choice.leaf_groups = vec![None, Some((axes.of(right)[0], 2))];
            let plan = build_nest(&region, &axes, &choice, MOST_KERNELS).unwrap();
            let (got, _) = execute(&region, &plan, &inputs);
            assert_eq!(got, expected, "{choice:?}\n{plan:#?}");
            let pairs =
                |place: &Place| matches!(place, Place::Hbm(v) if v.dims.len() == 3 && v.dims[2] == (2, 1));
            let kernels = plan.kernels.iter().map(|planned| &planned.kernel);
            grouped += usize::from(kernels.flat_map(|kernel| &kernel.ins).any(pairs));
        }
        assert!(grouped > 0, "{m} {k} {n}");
    }
}

#[test]
fn groups_are_read_off_the_description() {
    let isa = act_isa::load_target("amx").unwrap();
    assert_eq!(operand_groups(&isa, ElemType::S8), [4].into());
    assert_eq!(operand_groups(&isa, ElemType::BF16), [2].into());
    assert!(operand_groups(&act_isa::load_target("gemmini").unwrap(), ElemType::S8).is_empty());
}

/// XLA widens the operand once for both sides of the product.
#[test]
fn a_converted_value_times_its_own_transpose() {
    let mut graph = Graph::new("gram");
    let x = graph.parameter(Shape::new(ElemType::S8, [9, 6]));
    let wide = graph.add_declared(Op::Convert, &[x], Some(&Shape::new(ElemType::S32, [9, 6]))).unwrap();
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    let shape = Shape::new(ElemType::S32, [9, 9]);
    let dot = graph.add_declared(Op::Dot(dims), &[wide, wide], Some(&shape)).unwrap();
    graph.add_root(dot).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 0);
    let views = [View::row_major(Space::Operand(0), graph.shape(x))];
    let results = [View::row_major(Space::Result(0), &shape)];
    let region = normalize(&graph, &views, &results).unwrap();
    let axes = Axes::of_graph(&region.graph);
    assert_eq!(choices(&region, &axes, &machine(4, 4, 4), true, Packing::None)[0].tiles.len(), 2);
}

#[test]
fn batched_products_run_one_batch_at_a_time() {
    let mut graph = Graph::new("batched");
    let a = graph.parameter(Shape::new(ElemType::S8, [3, 5, 7]));
    let b = graph.parameter(Shape::new(ElemType::S8, [3, 7, 6]));
    let dims = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contracting: vec![2],
        rhs_contracting: vec![1],
    };
    let shape = Shape::new(ElemType::S32, [3, 5, 6]);
    let dot = graph.add_declared(Op::Dot(dims), &[a, b], Some(&shape)).unwrap();
    graph.add_root(dot).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 0);
}

#[test]
fn a_vector_times_a_matrix_and_a_constant_operand() {
    let mut graph = Graph::new("vector");
    let v = graph.parameter(Shape::new(ElemType::S8, [7]));
    let weights = noise(&Shape::new(ElemType::S8, [7, 5]), 11);
    let shape = weights.shape().clone();
    let w = graph.add_declared(Op::Constant(weights), &[], Some(&shape)).unwrap();
    let dims = DotDims { lhs_contracting: vec![0], rhs_contracting: vec![0], ..DotDims::default() };
    let shape = Shape::new(ElemType::S32, [5]);
    let dot = graph.add_declared(Op::Dot(dims), &[v, w], Some(&shape)).unwrap();
    graph.add_root(dot).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 0);
}

/// What a program reshapes before and after a product is no dimension that has to stay whole.
#[test]
fn reshaped_operands_and_results_are_views() {
    let mut graph = Graph::new("reshaped");
    let image = graph.parameter(Shape::new(ElemType::S8, [7, 2, 3, 5]));
    let rows = graph.add(Op::Transpose { perm: vec![2, 3, 0, 1] }, &[image]).unwrap();
    let wide = |dims: &[u64]| Shape::new(ElemType::S32, dims.to_vec());
    let rows = graph.add_declared(Op::Convert, &[rows], Some(&wide(&[3, 5, 7, 2]))).unwrap();
    let rows = graph.add_declared(Op::Reshape, &[rows], Some(&wide(&[15, 14]))).unwrap();
    let weights = graph.parameter(wide(&[2, 7, 6]));
    let weights = graph.add_declared(Op::Reshape, &[weights], Some(&wide(&[14, 6]))).unwrap();
    let dot =
        graph.add_declared(Op::Dot(DotDims::matmul()), &[rows, weights], Some(&wide(&[15, 6]))).unwrap();
    let out = graph.add_declared(Op::Reshape, &[dot], Some(&wide(&[3, 5, 2, 3]))).unwrap();
    graph.add_root(out).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 0);

    let views = |of: &[NodeId], space: fn(u16) -> Space| -> Vec<View> {
        of.iter().enumerate().map(|(k, &id)| View::row_major(space(k as u16), graph.shape(id))).collect()
    };
    let operands = views(graph.params(), Space::Operand);
    let region = normalize(&graph, &operands, &views(graph.roots(), Space::Result)).expect("views fit");
    let region = reshaped_views(&region).expect("infers").expect("reshapes");
    assert!(!region.graph.nodes().iter().any(|node| matches!(node.op, Op::Reshape)), "{:?}", region.graph);
    let axes = Axes::of_graph(&region.graph);
    assert!(axes.axes.iter().all(|axis| !axis.blocked), "{axes:?}");
}

/// A dimension that a reshape makes of a computed value is not padded.
#[test]
fn a_row_made_of_a_computed_vector() {
    let mut graph = Graph::new("row");
    let wide = |dims: &[u64]| Shape::new(ElemType::S32, dims.to_vec());
    let vector = graph.parameter(wide(&[6]));
    let vector = graph.add(Op::Unary(Unary::Abs), &[vector]).unwrap();
    let row = graph.add_declared(Op::Reshape, &[vector], Some(&wide(&[1, 6]))).unwrap();
    let weights = graph.parameter(wide(&[6, 5]));
    let dot = graph.add_declared(Op::Dot(DotDims::matmul()), &[row, weights], Some(&wide(&[1, 5]))).unwrap();
    graph.add_root(dot).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 0);
}

#[test]
fn attention_keeps_the_reduced_axis_whole() {
    let mut graph = Graph::new("attention");
    let f32s = |dims: [u64; 2]| Shape::new(ElemType::F32, dims);
    let q = graph.parameter(f32s([10, 4]));
    let k = graph.parameter(f32s([6, 4]));
    let v = graph.parameter(f32s([6, 8]));
    let qk = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    let s = graph.add_declared(Op::Dot(qk), &[q, k], Some(&f32s([10, 6]))).unwrap();
    let e = graph.add(Op::Unary(Unary::Exp), &[s]).unwrap();
    let zero = Literal::zeros(Shape::scalar(ElemType::F32));
    let zero = graph.add_declared(Op::Constant(zero), &[], Some(&Shape::scalar(ElemType::F32))).unwrap();
    let sum = graph.add(Op::Reduce { dims: vec![1], combiner: Binary::Add }, &[e, zero]).unwrap();
    let spread = graph.add_declared(Op::Broadcast { dims: vec![0] }, &[sum], Some(&f32s([10, 6]))).unwrap();
    let p = graph.add(Op::Binary(Binary::Divide), &[e, spread]).unwrap();
    let out = graph.add_declared(Op::Dot(DotDims::matmul()), &[p, v], Some(&f32s([10, 8]))).unwrap();
    graph.add_root(out).unwrap();
    assert!(check(&graph, (4, 4, 4)) > 0);
}

/// A convolution of x [height, width, c] with w [kh, kw, c, o] by its definition, in s32.
fn convolved(x: &Literal, w: &Literal, (stride, dilation): (usize, usize)) -> Literal {
    let size = |l: &Literal, d: usize| l.shape().dims[d] as usize;
    let (height, width, c) = (size(x, 0), size(x, 1), size(x, 2));
    let (kh, kw, o) = (size(w, 0), size(w, 1), size(w, 3));
    let out = |size: usize, k: usize| (size - (k - 1) * dilation - 1) / stride + 1;
    let at = |l: &Literal, i: usize| i32::from(l.bytes()[i] as i8);
    let mut bytes = Vec::new();
    for i in 0..out(height, kh) {
        for j in 0..out(width, kw) {
            for f in 0..o {
                let mut sum = 0i32;
                for a in 0..kh {
                    for b in 0..kw {
                        for k in 0..c {
                            let (row, column) = (i * stride + a * dilation, j * stride + b * dilation);
                            sum +=
                                at(x, (row * width + column) * c + k) * at(w, ((a * kw + b) * c + k) * o + f);
                        }
                    }
                }
                bytes.extend(sum.to_le_bytes());
            }
        }
    }
    let shape = Shape::new(ElemType::S32, [out(height, kh) as u64, out(width, kw) as u64, o as u64]);
    Literal::from_bytes(shape, bytes).unwrap()
}

#[test]
fn convolutions_as_products_over_overlapping_windows() {
    // (height, width, c), (kh, kw), o, stride, dilation
    for ((height, width, c), (kh, kw), o, stride, dilation) in [
        ((6u64, 7u64, 5u64), (3u64, 3u64), 6u64, 1usize, 1usize),
        ((9, 11, 3), (3, 2), 5, 2, 1),
        ((8, 9, 4), (2, 3), 3, 1, 2),
        ((5, 5, 1), (1, 4), 4, 1, 1),
        ((9, 9, 9), (3, 3), 9, 3, 3),
        ((4, 4, 2), (4, 4), 1, 1, 1),
    ] {
        let (x, w) = (Shape::new(ElemType::S8, [height, width, c]), Shape::new(ElemType::S8, [kh, kw, c, o]));
        let inputs = [noise(&x, 1), noise(&w, 2)];
        let expected = convolved(&inputs[0], &inputs[1], (stride, dilation));
        let [oh, ow, _] = expected.shape().dims[..] else { panic!("three dimensions") };
        let mut graph = Graph::new("convolution");
        let windows = graph.parameter(Shape::new(ElemType::S8, [oh, ow, kh, kw, c]));
        let weights = graph.parameter(w.clone());
        let dims =
            DotDims { lhs_contracting: vec![2, 3, 4], rhs_contracting: vec![0, 1, 2], ..DotDims::default() };
        let dot = graph.add_declared(Op::Dot(dims), &[windows, weights], Some(expected.shape())).unwrap();
        graph.add_root(dot).unwrap();
        let (row, column) = ((width * c) as i64, c as i64);
        let (s, d) = (stride as i64, dilation as i64);
        let view = View {
            space: Space::Operand(0),
            elem: ElemType::S8,
            dims: vec![(oh, s * row), (ow, s * column), (kh, d * row), (kw, d * column), (c, 1)],
            start: Affine::default(),
        };
        let operands = [view, View::row_major(Space::Operand(1), &w)];
        let results = [View::row_major(Space::Result(0), expected.shape())];
        let region = normalize(&graph, &operands, &results).unwrap();
        let expected = [expected];
        for isa in [machine(4, 4, 4), machine(3, 5, 2), machine(16, 16, 16)] {
            let mut plans = run_all(&region, &isa, &inputs, &expected);
            for joining in [Joining::Adjacent, Joining::Gathered] {
                if let Some(joined) = join_depths(&region, joining).unwrap() {
                    let depths = joined.graph.nodes().iter().find_map(|n| match &n.op {
                        Op::Dot(dims) => Some(dims.lhs_contracting.len()),
                        _ => None,
                    });
                    if joining == Joining::Gathered {
                        assert_eq!(depths, Some(1));
                    }
                    plans += run_all(&joined, &isa, &inputs, &expected);
                }
            }
            assert!(plans > 3);
        }
    }
}

#[test]
fn affine_addresses_add_up() {
    let mut sum = Affine { c0: 1, ivs: vec![(LoopId(0), 2)] };
    sum = sum.checked_add(&Affine { c0: 3, ivs: vec![(LoopId(0), -2), (LoopId(1), 5)] }).unwrap();
    assert_eq!(sum, Affine { c0: 4, ivs: vec![(LoopId(1), 5)] });
}
