//! Runs of the stitched code on numbers beside the reference evaluator: what a refutation is shown by. The oracle executes
//! the code instruction by instruction. Never proves anything.

use super::budget::{Budget, Spent};
use super::{Permitted, RegionSpec};
use act_hlo::compare::{PERMITTED_ROUNDINGS, compare, epsilon};
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{ElemType, Literal, Shape, eval};
use act_isa::{FaultKind, Isa, LoopProgram, Oracle, Space, View};

/// Inputs on which the code and the kernel differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub result: usize,
    pub index: Vec<u64>,
    pub expected: String,
    pub got: String,
    /// How the operands were drawn; the same words draw them again.
    pub operands: String,
    /// Elements of this result that differ.
    pub elements: u64,
    pub source: Option<String>,
}

/// What a run on numbers shows.
pub(super) enum Shown {
    Difference(Box<Difference>),
    Fault(String),
    Nothing,
    Spent(Spent),
}

/// What operands are drawn from, in the order in which they are tried.
const TRIALS: [(Values, &str); 6] = [
    (Values::Small, "small integers"),
    (Values::Unit, "numbers below 1"),
    (Values::Full, "numbers of all sizes"),
    (Values::Special, "edges of the types"),
    (Values::Small, "small integers"),
    (Values::Unit, "numbers below 1"),
];

/// Runs on random and special data until something shows.
pub(super) fn search(isa: &Isa, spec: &RegionSpec<'_>, program: &LoopProgram, budget: &Budget<'_>) -> Shown {
    let ends = || budget.look().is_err();
    let oracle = Oracle::new(isa).strict().until(&ends);
    let Ok(elems) = spec.operand_elems(program.operands.len()) else { return Shown::Nothing };
    let floats = spec.operands.iter().any(|view| view.elem.is_float());
    for (seed, (values, name)) in (1u64..).zip(TRIALS) {
        // Infinities and numbers near the limits differ by order alone, where another order is permitted.
        let extreme = matches!(values, Values::Full | Values::Special);
        if extreme && floats && spec.numerics != Permitted::Exact {
            continue;
        }
        if let Err(spent) = budget.look() {
            return Shown::Spent(spent);
        }
        let mut random = SplitMix64::new(seed);
        let segments: Vec<Vec<u8>> = program
            .operands
            .iter()
            .zip(&elems)
            .map(|(&bytes, elem)| {
                let shape = Shape::new(*elem, [bytes.div_ceil(elem.bytes())]);
                random_literal(&mut random, &shape, values).bytes()[..bytes as usize].to_vec()
            })
            .collect();
        let inputs = spec.operands.iter().map(|view| gather(view, &segments)).collect::<Option<Vec<_>>>();
        let Some(inputs) = inputs else { return Shown::Nothing };
        let Ok(expected) = eval(spec.graph, &inputs) else { return Shown::Nothing };
        let operands: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        let mut results: Vec<Vec<u8>> =
            program.results.iter().map(|&bytes| vec![0; bytes as usize]).collect();
        if let Err(fault) = oracle.run(program, &operands, &mut results) {
            return match budget.look() {
                Err(spent) if fault.what == FaultKind::Stopped => Shown::Spent(spent),
                _ => Shown::Fault(fault.to_string()),
            };
        }
        for (root, (view, want)) in spec.results.iter().zip(&expected).enumerate() {
            let Some(got) = gather_result(view, &results) else { return Shown::Nothing };
            let difference = compare(want, &got);
            let differs = match spec.numerics {
                Permitted::Exact => difference.elements > 0,
                Permitted::Xla | Permitted::Fast => beyond_roundings(spec, want, &got, difference.roundings),
            };
            if differs {
                let at = farthest(want, &got);
                return Shown::Difference(Box::new(Difference {
                    result: root,
                    index: index_of(want.shape(), at),
                    expected: shown(want, at),
                    got: shown(&got, at),
                    operands: format!("{name}, seed {seed}"),
                    elements: difference.elements,
                    source: spec.source_of(root),
                }));
            }
        }
    }
    Shown::Nothing
}

/// Whether more differs than roundings explain that the policy lets come and go: those of the narrowest float in the
/// kernel, whatever the result's type, and one unit of an integer that was rounded from floats.
fn beyond_roundings(spec: &RegionSpec<'_>, want: &Literal, got: &Literal, roundings: f64) -> bool {
    let floats = || spec.graph.nodes().iter().map(|node| node.shape.elem).filter(|elem| elem.is_float());
    let coarsest = floats().map(epsilon).fold(0.0, f64::max);
    if want.elem().is_float() {
        return roundings * epsilon(want.elem()) / coarsest > PERMITTED_ROUNDINGS;
    }
    let unit = i128::from(coarsest > 0.0);
    (0..want.shape().elements()).any(|at| integer(want, at).abs_diff(integer(got, at)) > unit.unsigned_abs())
}

/// Byte offsets of a view's elements, row-major.
pub(super) fn element_offsets(view: &View) -> Vec<i64> {
    let mut all = vec![view.start.c0];
    for &(len, stride) in &view.dims {
        all = all.iter().flat_map(|&at| (0..len as i64).map(move |k| at + k * stride)).collect();
    }
    all
}

fn view_shape(view: &View) -> Shape {
    Shape::new(view.elem, view.dims.iter().map(|d| d.0).collect::<Vec<u64>>())
}

fn gather_from(view: &View, bytes: &[u8]) -> Option<Literal> {
    let width = view.elem.bytes() as usize;
    let mut out = Vec::new();
    for at in element_offsets(view) {
        let at = usize::try_from(at).ok()?;
        out.extend_from_slice(bytes.get(at..at + width)?);
    }
    Literal::from_bytes(view_shape(view), out).ok()
}

fn gather(view: &View, segments: &[Vec<u8>]) -> Option<Literal> {
    let Space::Operand(k) = view.space else { return None };
    gather_from(view, segments.get(usize::from(k))?)
}

fn gather_result(view: &View, segments: &[Vec<u8>]) -> Option<Literal> {
    let Space::Result(k) = view.space else { return None };
    gather_from(view, segments.get(usize::from(k))?)
}

/// The element that is furthest off; the first for integers.
fn farthest(want: &Literal, got: &Literal) -> u64 {
    let differing = (0..want.shape().elements()).filter(|&k| want.element_bytes(k) != got.element_bytes(k));
    let off = |k: u64| match (float(want, k), float(got, k)) {
        (Some(a), Some(b)) if (a - b).is_nan() => f64::INFINITY,
        (Some(a), Some(b)) => (a - b).abs(),
        _ => 1.0,
    };
    let larger = |best: Option<(u64, f64)>, k: u64| match best {
        Some((_, distance)) if distance >= off(k) => best,
        _ => Some((k, off(k))),
    };
    differing.fold(None, larger).map_or(0, |(k, _)| k)
}

pub(super) fn index_of(shape: &Shape, at: u64) -> Vec<u64> {
    shape
        .row_major_strides()
        .iter()
        .zip(&shape.dims)
        .map(|(&stride, &len)| at / stride.max(1) % len.max(1))
        .collect()
}

fn float(value: &Literal, at: u64) -> Option<f64> {
    let bytes = value.element_bytes(at);
    Some(match value.elem() {
        ElemType::F16 => half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ElemType::BF16 => half::bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        ElemType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        ElemType::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

/// A number as one reads it.
fn shown(value: &Literal, at: u64) -> String {
    if let Some(value) = float(value, at) {
        return value.to_string();
    }
    integer(value, at).to_string()
}

fn integer(value: &Literal, at: u64) -> i128 {
    let bytes = value.element_bytes(at);
    let bits = bytes.iter().take(8).rev().fold(0u64, |bits, &b| (bits << 8) | u64::from(b));
    if value.elem().is_signed_int() {
        let spare = 64 - 8 * bytes.len().min(8) as u32;
        return i128::from((bits << spare) as i64 >> spare);
    }
    i128::from(bits)
}
