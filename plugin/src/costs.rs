//! What a program costs, counted from its optimized module as XLA's own cost analysis counts: floating-point and
//! other elementwise operations, transcendental functions, bytes read and written. Loop bodies count once, since
//! their number of turns is not in the module. Knows no executable and no device.

use std::collections::BTreeMap;

use act_hlo::proto::{Computation, HloModule, HloShape, Instruction};

use crate::offload::convolution::{Along, Convolution};

/// Operators that XLA counts as transcendental functions.
const TRANSCENDENTAL: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "cbrt",
    "cosine",
    "cosh",
    "erf",
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "power",
    "rsqrt",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];

/// Operators of one operation per element of their result.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "add",
    "and",
    "bitcast-convert",
    "ceil",
    "clamp",
    "clz",
    "compare",
    "complex",
    "convert",
    "count-leading-zeros",
    "divide",
    "floor",
    "imag",
    "is-finite",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "real",
    "reduce-precision",
    "remainder",
    "round-nearest-afz",
    "round-nearest-even",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "stochastic-convert",
    "subtract",
    "xor",
];

/// Operators that touch nothing when the program runs: they name what is there.
const FREE: &[&str] =
    &["add-dependency", "after-all", "bitcast", "constant", "domain", "get-tuple-element", "parameter"];

/// The number of HloInstructionProto's field for the lengths of an FFT's dimensions.
const FFT_LENGTH: u32 = 32;

/// Bytes of a pointer in the table that a tuple is.
const POINTER: f64 = 8.0;

/// What is done with the operands of one place, the first ones or the second ones, summed up over instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Operand {
    bytes: f64,
    /// The part of each operand that is needed: of one that is read whole 1.
    utilization: f64,
}

/// Sums over a program, or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Costs {
    /// Additions, multiplications and the like, of every element type; a multiply-add counts two.
    flops: f64,
    transcendentals: f64,
    /// Bytes that operators, a fusion as a whole, read and write.
    bytes_accessed: f64,
    /// Those of them that are written, and by fusions of several results those of each result.
    written: f64,
    written_members: Vec<f64>,
    operands: Vec<Operand>,
}

/// Combines what stands at the same place; what one of them lacks counts as zero.
fn combine<T: Copy + Default>(a: &[T], b: &[T], with: impl Fn(T, T) -> T) -> Vec<T> {
    let at = |of: &[T], k: usize| of.get(k).copied().unwrap_or_default();
    (0..a.len().max(b.len())).map(|k| with(at(a, k), at(b, k))).collect()
}

impl Costs {
    fn with(&self, other: &Costs, combined: impl Fn(f64, f64) -> f64 + Copy) -> Costs {
        Costs {
            flops: combined(self.flops, other.flops),
            transcendentals: combined(self.transcendentals, other.transcendentals),
            bytes_accessed: combined(self.bytes_accessed, other.bytes_accessed),
            written: combined(self.written, other.written),
            written_members: combine(&self.written_members, &other.written_members, combined),
            operands: combine(&self.operands, &other.operands, |a, b| Operand {
                bytes: combined(a.bytes, b.bytes),
                utilization: combined(a.utilization, b.utilization),
            }),
        }
    }

    fn plus(self, other: &Costs) -> Costs {
        self.with(other, |a, b| a + b)
    }

    /// What an instruction costs that reads its operands and writes its result, and computes nothing.
    fn of_movement(result: f64, operands: &[f64]) -> Costs {
        let operand = |&bytes: &f64| Operand { bytes, utilization: 1.0 };
        Costs {
            bytes_accessed: result + operands.iter().sum::<f64>(),
            written: result,
            operands: operands.iter().map(operand).collect(),
            ..Costs::default()
        }
    }

    /// Adds the operations of a computation that runs `times` times on what is in registers.
    fn add_repeated(&mut self, of: &Costs, times: f64) {
        self.flops += of.flops * times;
        self.transcendentals += of.transcendentals * times;
    }

    /// The names that XLA's cost analysis has for them; what is zero is left out, as there.
    pub(crate) fn properties(&self) -> BTreeMap<String, f64> {
        let numbered = self.operands.iter().enumerate();
        let members = self.written_members.iter().enumerate();
        [
            ("flops".to_owned(), self.flops),
            ("transcendentals".to_owned(), self.transcendentals),
            ("bytes accessed".to_owned(), self.bytes_accessed),
            ("bytes accessedout{}".to_owned(), self.written),
        ]
        .into_iter()
        .chain(numbered.clone().map(|(k, operand)| (format!("bytes accessed{k}{{}}"), operand.bytes)))
        .chain(numbered.map(|(k, operand)| (format!("utilization{k}{{}}"), operand.utilization)))
        .chain(members.map(|(k, &bytes)| (format!("bytes accessedout{{{k}}}"), bytes)))
        .filter(|&(_, value)| value != 0.0)
        .collect()
    }
}

/// The costs of one run of the module. What cannot be read of it counts nothing.
pub(crate) fn of_module(module: &HloModule) -> Costs {
    let mut counter = Counter { module, known: BTreeMap::new() };
    counter.computation(module.entry_id())
}

struct Counter<'a> {
    module: &'a HloModule,
    /// By computation; one under way counts nothing, so that a malformed module cannot recur forever.
    known: BTreeMap<i64, Costs>,
}

impl Counter<'_> {
    fn computation(&mut self, id: i64) -> Costs {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        self.known.insert(id, Costs::default());
        let Some(computation) = self.module.computation(id) else { return Costs::default() };
        let costs = computation
            .instructions()
            .map(|instruction| self.instruction(computation, instruction))
            .fold(Costs::default(), |sum, costs| sum.plus(&costs));
        self.known.insert(id, costs.clone());
        costs
    }

    fn called(&mut self, instruction: &Instruction) -> Vec<Costs> {
        let ids = instruction.called_computation_ids().unwrap_or_default();
        ids.into_iter().map(|id| self.computation(id)).collect()
    }

    fn instruction(&mut self, computation: &Computation, instruction: &Instruction) -> Costs {
        let opcode = instruction.opcode();
        let result = shape_of(instruction).as_ref().map_or(0.0, elements);
        let operand_elements =
            |k: usize| operand_shape(computation, instruction, k).as_ref().map_or(0.0, elements);
        let mut costs = movement(computation, instruction);
        match opcode {
            // They hand on to other computations, whose bytes are theirs too.
            "call" | "while" | "async-start" => {
                let called = self.called(instruction);
                return called.iter().fold(Costs::default(), Costs::plus);
            }
            "conditional" => {
                let branches = self.called(instruction);
                return branches.iter().fold(Costs::default(), |a, b| a.with(b, f64::max));
            }
            "fusion" => return self.fusion(computation, instruction),
            "dot" => costs.flops = 2.0 * result * contracted(computation, instruction),
            "convolution" => costs.flops = convolution_flops(computation, instruction),
            "reduce" => {
                let called = self.called(instruction);
                // One of several results has as many elements as the others.
                let one = shape_of(instruction).map_or(0.0, |shape| match &shape {
                    HloShape::Tuple(members) => members.first().map_or(0.0, elements),
                    _ => elements(&shape),
                });
                let times = (operand_elements(0) - one).max(0.0);
                called.iter().for_each(|of| costs.add_repeated(of, times));
            }
            "reduce-window" => {
                let window = window_sizes(instruction).iter().product::<f64>();
                let called = self.called(instruction);
                called.iter().for_each(|of| costs.add_repeated(of, result * (window - 1.0).max(0.0)));
            }
            "map" | "scatter" => {
                let times = if opcode == "scatter" { operand_elements(2) } else { result };
                let called = self.called(instruction);
                called.iter().for_each(|of| costs.add_repeated(of, times));
            }
            "select-and-scatter" => {
                let window = window_sizes(instruction).iter().product::<f64>();
                let source = operand_elements(1);
                let times = [source * (window - 1.0).max(0.0), source];
                let called = self.called(instruction);
                called.iter().zip(times).for_each(|(of, times)| costs.add_repeated(of, times));
            }
            // As of two replicas: their number is not in the module.
            "all-reduce" | "all-reduce-start" => costs.flops = result,
            "sort" => {
                let elements = operand_elements(0);
                costs.flops = elements * elements.max(1.0).log2().ceil();
            }
            "fft" => {
                // A butterfly per level and element, of four multiply-adds.
                let lengths = instruction.message().ints(FFT_LENGTH, "HloInstructionProto");
                let levels: f64 =
                    lengths.unwrap_or_default().iter().map(|&n| (n.max(1) as f64).log2().floor()).product();
                costs.flops = 8.0 * levels * operand_elements(0);
            }
            "rng" | "rng-bit-generator" => costs.transcendentals = result,
            _ if TRANSCENDENTAL.contains(&opcode) => costs.transcendentals = result,
            _ if ELEMENTWISE.contains(&opcode) => costs.flops = result,
            _ => {}
        }
        costs
    }

    /// A fusion computes what its body does, and moves its operands and results only. Of an operand that is only
    /// cut from, what is cut is read; of a result that is an operand updated in place, the update is written.
    fn fusion(&mut self, computation: &Computation, fusion: &Instruction) -> Costs {
        let mut costs = self.called(fusion).first().cloned().unwrap_or_default();
        costs.bytes_accessed = 0.0;
        let ids = fusion.called_computation_ids().unwrap_or_default();
        let Some(body) = ids.first().and_then(|&id| self.module.computation(id)) else { return costs };
        let Ok(root) = body.root() else { return costs };
        let written = |value: &Instruction| match value.opcode() {
            "dynamic-update-slice" => operand_shape(body, value, 1).as_ref().map_or(0.0, bytes),
            _ => shape_of(value).as_ref().map_or(0.0, bytes),
        };
        if let Some(HloShape::Tuple(members)) = shape_of(fusion) {
            // A body may compute all members by one operator, or gather them in a tuple.
            let gathered =
                if root.opcode() == "tuple" { root.operand_ids().unwrap_or_default() } else { vec![] };
            let of_member = |(k, shape): (usize, &HloShape)| {
                gathered.get(k).and_then(|&id| body.instruction(id)).map_or_else(|| bytes(shape), written)
            };
            costs.written_members = members.iter().enumerate().map(of_member).collect();
            costs.written = costs.written_members.iter().sum();
        } else {
            costs.written = written(root);
        }
        let large = |i: &&Instruction| {
            i.opcode() == "constant" && shape_of(i).is_some_and(|shape| elements(&shape) > 1.0)
        };
        let constants: f64 =
            body.instructions().filter(large).filter_map(shape_of).map(|shape| bytes(&shape)).sum();
        costs.bytes_accessed = costs.written + constants;
        for (k, _) in fusion.operand_ids().unwrap_or_default().iter().enumerate() {
            let whole = operand_shape(computation, fusion, k).as_ref().map_or(0.0, bytes);
            let parameter =
                body.instructions().find(|i| i.opcode() == "parameter" && i.parameter_number() == k as i64);
            let bytes = parameter.map_or(0.0, |parameter| self.read_bytes(body, parameter, whole, 0));
            costs.bytes_accessed += bytes;
            if costs.operands.len() <= k {
                costs.operands.resize(k + 1, Operand::default());
            }
            costs.operands[k] = Operand { bytes, utilization: 1.0 };
        }
        costs
    }

    /// Bytes that a fusion reads of a parameter, `whole` of which are there. Its readers share one reading, except
    /// for those that take parts of it or spread it out.
    fn read_bytes(&self, body: &Computation, parameter: &Instruction, whole: f64, depth: usize) -> f64 {
        let mut shared = 0.0;
        let mut own = 0.0;
        for reader in body.instructions() {
            let places = reader.operand_ids().unwrap_or_default();
            if !places.contains(&parameter.id()) {
                continue;
            }
            let is_first = places.first() == Some(&parameter.id());
            match reader.opcode() {
                "fusion" if depth < MAX_FUSION_DEPTH => {
                    let ids = reader.called_computation_ids().unwrap_or_default();
                    let Some(inner) = ids.first().and_then(|&id| self.module.computation(id)) else {
                        continue;
                    };
                    for (k, _) in places.iter().enumerate().filter(|&(_, &id)| id == parameter.id()) {
                        let number = k as i64;
                        let same =
                            |i: &&Instruction| i.opcode() == "parameter" && i.parameter_number() == number;
                        let found = inner.instructions().find(same);
                        own += found.map_or(0.0, |found| self.read_bytes(inner, found, whole, depth + 1));
                    }
                }
                "slice" => own += shape_of(reader).as_ref().map_or(0.0, bytes),
                "dynamic-slice" if is_first => own += shape_of(reader).as_ref().map_or(0.0, bytes),
                // Updated in place.
                "dynamic-update-slice" if is_first => {}
                "broadcast" | "reshape" => own += whole,
                _ => shared = whole,
            }
        }
        shared + own
    }
}

/// Fusions in fusions that are looked into; XLA nests two.
const MAX_FUSION_DEPTH: usize = 8;

/// What an instruction that stands alone reads and writes.
fn movement(computation: &Computation, instruction: &Instruction) -> Costs {
    let shapes: Vec<Option<HloShape>> = (0..instruction.operand_ids().map_or(0, |ids| ids.len()))
        .map(|k| operand_shape(computation, instruction, k))
        .collect();
    let of = |k: usize, size: fn(&HloShape) -> f64| shapes.get(k).and_then(Option::as_ref).map_or(0.0, size);
    let operands: Vec<f64> = (0..shapes.len()).map(|k| of(k, bytes)).collect();
    let shape = shape_of(instruction);
    let result = shape.as_ref().map_or(0.0, bytes);
    // The part that one operand's elements are of another's.
    let part = |some: f64, all: f64| if all > 0.0 { some / all } else { 0.0 };
    let result_elements = shape.as_ref().map_or(0.0, elements);
    let mut costs = Costs::of_movement(result, &operands);
    let mut touched = operands;
    let mut uncounted = 0.0;
    match instruction.opcode() {
        opcode if FREE.contains(&opcode) => {
            costs = Costs::of_movement(0.0, &vec![0.0; shapes.len()]);
            return costs;
        }
        // Pointers only.
        "tuple" => {
            costs = Costs::of_movement(POINTER * shapes.len() as f64, &vec![0.0; shapes.len()]);
            return costs;
        }
        "slice" | "dynamic-slice" if !touched.is_empty() => {
            touched[0] = result;
            // Of the indices XLA adds the first one only.
            uncounted = touched.iter().skip(2).sum();
            costs.operands[0].utilization = part(result_elements, of(0, elements));
        }
        "gather" if !touched.is_empty() => {
            touched[0] = result;
            costs.operands[0].utilization = part(result_elements, of(0, elements));
        }
        "dynamic-update-slice" if touched.len() > 1 => {
            costs.written = touched[1];
            touched[0] = 0.0;
            uncounted = touched.iter().skip(3).sum();
            costs.operands[0].utilization = part(result_elements - of(1, elements), result_elements);
        }
        "scatter" if shapes.len() % 2 == 1 => {
            // As many updates as operands, with the indices between them.
            let half = shapes.len() / 2;
            for k in 0..half {
                touched[k] = touched[half + 1 + k];
            }
            costs.written = touched[..half].iter().sum();
        }
        _ => {}
    }
    costs.bytes_accessed = costs.written + touched.iter().sum::<f64>() - uncounted;
    for (operand, bytes) in costs.operands.iter_mut().zip(touched) {
        operand.bytes = bytes;
    }
    costs
}

fn shape_of(instruction: &Instruction) -> Option<HloShape> {
    instruction.shape().ok()
}

fn operand_shape(computation: &Computation, instruction: &Instruction, k: usize) -> Option<HloShape> {
    let id = *instruction.operand_ids().ok()?.get(k)?;
    shape_of(computation.instruction(id)?)
}

/// Elements of an array, of all members of a tuple.
fn elements(shape: &HloShape) -> f64 {
    match shape {
        HloShape::Array(array) => array.shape.elements() as f64,
        HloShape::Tuple(members) => members.iter().map(elements).sum(),
        HloShape::Other(_) => 0.0,
    }
}

/// Bytes of an array; of a tuple, those of its table of pointers.
fn bytes(shape: &HloShape) -> f64 {
    match shape {
        HloShape::Array(array) => array.shape.bytes() as f64,
        HloShape::Tuple(members) => POINTER * members.len() as f64,
        HloShape::Other(_) => 0.0,
    }
}

/// Terms of each sum of a dot.
fn contracted(computation: &Computation, dot: &Instruction) -> f64 {
    let (Ok(dims), Some(HloShape::Array(left))) = (dot.dot_dims(), operand_shape(computation, dot, 0)) else {
        return 0.0;
    };
    dims.lhs_contracting.iter().map(|&axis| left.shape.dims.get(axis).map_or(1.0, |&d| d as f64)).product()
}

fn window_sizes(instruction: &Instruction) -> Vec<f64> {
    Along::read(instruction).unwrap_or_default().iter().map(|along| along.size as f64).collect()
}

/// Multiply-adds of a convolution, twice; those with padding do not count.
fn convolution_flops(computation: &Computation, instruction: &Instruction) -> f64 {
    let shapes = [
        shape_of(instruction),
        operand_shape(computation, instruction, 0),
        operand_shape(computation, instruction, 1),
    ];
    let (
        Ok(convolution),
        [Some(HloShape::Array(result)), Some(HloShape::Array(image)), Some(HloShape::Array(kernel))],
    ) = (Convolution::read(instruction), shapes)
    else {
        return 0.0;
    };
    let dim = |shape: &act_hlo::Shape, axis: usize| shape.dims.get(axis).copied().unwrap_or(1);
    let spatial: f64 = convolution
        .window
        .iter()
        .enumerate()
        .map(|(k, along)| {
            let base = dim(&image.shape, convolution.image.spatial[k]);
            let out = dim(&result.shape, convolution.result.spatial[k]);
            products_along(along, base, out) as f64
        })
        .product();
    let features = dim(&kernel.shape, convolution.kernel.feature) as f64;
    let channels = dim(&result.shape, convolution.result.feature) as f64;
    let batch = dim(&result.shape, convolution.result.batch) as f64;
    2.0 * batch * channels * features * spatial
}

/// Pairs of a result's and a window's element, along one dimension, that meet an element of the image.
fn products_along(along: &Along, base: u64, out: u64) -> u64 {
    let base = i64::try_from(base).unwrap_or(i64::MAX);
    // Where all is inside, which holds for windows of one element: no need to look.
    if along.size == 1 && along.low == 0 && along.high == 0 && along.spread == 1 {
        return out;
    }
    let meets = |from: u64, at: i64| {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let place =
            from.saturating_mul(along.stride).saturating_add(at * along.dilation).saturating_sub(along.low);
        place >= 0 && place % along.spread == 0 && place / along.spread < base
    };
    (0..along.size).map(|at| (0..out).filter(|&from| meets(from, at)).count() as u64).sum()
}
