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
    "ceil",
    "clamp",
    "clz",
    "compare",
    "complex",
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

/// Operators that move nothing when the program runs.
const FREE: &[&str] = &[
    "add-dependency",
    "after-all",
    "bitcast",
    "constant",
    "domain",
    "get-tuple-element",
    "opt-barrier",
    "parameter",
    "partition-id",
    "replica-id",
    "tuple",
];

/// Sums over a program, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Costs {
    /// Additions, multiplications and the like, of every element type; a multiply-add counts two.
    pub(crate) flops: f64,
    pub(crate) transcendentals: f64,
    /// Bytes that operators, a fusion as a whole, read and write.
    pub(crate) bytes_accessed: f64,
}

impl Costs {
    fn plus(self, other: Costs) -> Costs {
        Costs {
            flops: self.flops + other.flops,
            transcendentals: self.transcendentals + other.transcendentals,
            bytes_accessed: self.bytes_accessed + other.bytes_accessed,
        }
    }

    /// Operations of a computation that runs `times` times on what is in registers.
    fn repeated(self, times: f64) -> Costs {
        Costs {
            flops: self.flops * times,
            transcendentals: self.transcendentals * times,
            bytes_accessed: 0.0,
        }
    }

    /// The names that XLA's cost analysis has for them; what is zero is left out, as there.
    pub(crate) fn properties(&self) -> BTreeMap<String, f64> {
        [
            ("flops", self.flops),
            ("transcendentals", self.transcendentals),
            ("bytes accessed", self.bytes_accessed),
        ]
        .into_iter()
        .filter(|&(_, value)| value != 0.0)
        .map(|(name, value)| (name.to_owned(), value))
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
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        self.known.insert(id, Costs::default());
        let Some(computation) = self.module.computation(id) else { return Costs::default() };
        let costs = computation
            .instructions()
            .map(|instruction| self.instruction(computation, instruction))
            .fold(Costs::default(), Costs::plus);
        self.known.insert(id, costs);
        costs
    }

    fn called(&mut self, instruction: &Instruction) -> Vec<Costs> {
        let ids = instruction.called_computation_ids().unwrap_or_default();
        ids.into_iter().map(|id| self.computation(id)).collect()
    }

    fn instruction(&mut self, computation: &Computation, instruction: &Instruction) -> Costs {
        let opcode = instruction.opcode();
        if FREE.contains(&opcode) {
            return Costs::default();
        }
        let result = shape_of(instruction).as_ref().map_or(0.0, elements);
        let operand = |k: usize| operand_shape(computation, instruction, k);
        let operand_elements = |k: usize| operand(k).as_ref().map_or(0.0, elements);
        let inner = |counter: &mut Self| counter.called(instruction).first().copied().unwrap_or_default();
        let mut costs = match opcode {
            // They hand on to other computations, whose bytes are theirs too.
            "call" | "while" | "async-start" => {
                return self.called(instruction).into_iter().fold(Costs::default(), Costs::plus);
            }
            "conditional" => {
                let branches = self.called(instruction).into_iter();
                return branches.max_by(|a, b| a.flops.total_cmp(&b.flops)).unwrap_or_default();
            }
            "fusion" => {
                let costs = inner(self);
                Costs { bytes_accessed: self.fusion_bytes(computation, instruction), ..costs }
            }
            "dot" => flops(2.0 * result * contracted(computation, instruction)),
            "convolution" => flops(convolution_flops(computation, instruction)),
            "reduce" => inner(self).repeated((operand_elements(0) - result).max(0.0)),
            "reduce-window" => {
                let window = window_sizes(instruction).iter().product::<f64>();
                inner(self).repeated(result * (window - 1.0).max(0.0))
            }
            "map" | "scatter" | "select-and-scatter" => {
                let times = if opcode == "scatter" { operand_elements(2) } else { result };
                self.called(instruction).last().copied().unwrap_or_default().repeated(times)
            }
            "all-reduce" | "reduce-scatter" => inner(self).repeated(operand_elements(0)),
            "sort" => {
                let elements = operand_elements(0);
                flops(elements * elements.max(1.0).log2().ceil())
            }
            "rng" | "rng-bit-generator" => Costs { transcendentals: result, ..Costs::default() },
            _ if TRANSCENDENTAL.contains(&opcode) => Costs { transcendentals: result, ..Costs::default() },
            _ if ELEMENTWISE.contains(&opcode) => flops(result),
            _ => Costs::default(),
        };
        if opcode != "fusion" {
            costs.bytes_accessed = bytes_accessed(computation, instruction);
        }
        costs
    }

    /// Bytes of a fusion's operands and result. Of an operand that is only cut from, what is cut; of a result that
    /// is an operand updated in place, the update.
    fn fusion_bytes(&self, computation: &Computation, fusion: &Instruction) -> f64 {
        let result = shape_of(fusion).as_ref().map_or(0.0, bytes);
        let body = fusion.called_computation_ids().unwrap_or_default();
        let Some(body) = body.first().and_then(|&id| self.module.computation(id)) else { return result };
        let root = body.root().ok();
        let update = root.filter(|root| root.opcode() == "dynamic-update-slice");
        let update_bytes = update.map(|root| operand_shape(body, root, 1).as_ref().map_or(0.0, bytes));
        let mut total = update_bytes.unwrap_or(result);
        for parameter in body.instructions().filter(|i| i.opcode() == "parameter") {
            let number = usize::try_from(parameter.parameter_number()).unwrap_or(usize::MAX);
            let whole = operand_shape(computation, fusion, number).as_ref().map_or(0.0, bytes);
            let readers = body
                .instructions()
                .filter(|i| i.operand_ids().is_ok_and(|ids| ids.contains(&parameter.id())));
            let read = readers.map(|reader| match reader.opcode() {
                "slice" | "dynamic-slice" | "gather"
                    if reader.operand_ids().is_ok_and(|ids| ids.first() == Some(&parameter.id())) =>
                {
                    shape_of(reader).as_ref().map_or(0.0, bytes)
                }
                "dynamic-update-slice"
                    if reader.operand_ids().is_ok_and(|ids| ids.first() == Some(&parameter.id())) =>
                {
                    update_bytes.unwrap_or(whole)
                }
                _ => whole,
            });
            total += read.sum::<f64>().min(whole);
        }
        total
    }
}

fn flops(flops: f64) -> Costs {
    Costs { flops, ..Costs::default() }
}

/// Bytes that an instruction that stands alone reads and writes.
fn bytes_accessed(computation: &Computation, instruction: &Instruction) -> f64 {
    let result = shape_of(instruction).as_ref().map_or(0.0, bytes);
    let operand = |k: usize| operand_shape(computation, instruction, k).as_ref().map_or(0.0, bytes);
    match instruction.opcode() {
        // Both ends of what is moved.
        "slice" | "dynamic-slice" => 2.0 * result,
        "gather" => 2.0 * result + operand(1),
        "dynamic-update-slice" => 2.0 * operand(1),
        "scatter" => 2.0 * operand(2) + operand(1),
        "iota" => result,
        _ => {
            let operands = instruction.operand_ids().map_or(0, |ids| ids.len());
            result + (0..operands).map(operand).sum::<f64>()
        }
    }
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

/// Bytes of an array, of all members of a tuple.
fn bytes(shape: &HloShape) -> f64 {
    match shape {
        HloShape::Array(array) => array.shape.bytes() as f64,
        HloShape::Tuple(members) => members.iter().map(bytes).sum(),
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
