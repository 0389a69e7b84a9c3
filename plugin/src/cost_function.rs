//! The cost model that a user gives as a function of the loop program, through Python. It stands in for the
//! description's own model in every compiler of the process while it is set. Knows what a program looks like as data;
//! knows nothing of what the function does with it.

use crate::python_abi::CostCallback;
use act_generator::{CostModel, PiiGraph, cost::instruction_cost};
use act_isa::{Affine, AttrVal, BetaVal, Env, InstrId, Isa, Program, Slice, Space};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::{Arc, PoisonError, RwLock};

/// Room for an error text, its final null included.
const ERROR_CAPACITY: usize = 1 << 14;

/// Costs above this are taken to be this.
const MOST: f64 = 1e18;

#[derive(Clone, Debug)]
struct CostFunction {
    callback: CostCallback,
    /// What tells this function from others.
    name: String,
}

static FUNCTION: RwLock<Option<CostFunction>> = RwLock::new(None);

thread_local! {
    /// Why the function gave no cost, during the compilation under way on this thread.
    static FAILURE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Sets the function, or with `None` goes back to the models of the descriptions.
pub(crate) fn set(function: Option<(CostCallback, String)>) {
    let function = function.map(|(callback, name)| CostFunction { callback, name });
    *FUNCTION.write().unwrap_or_else(PoisonError::into_inner) = function;
}

fn function() -> Option<CostFunction> {
    FUNCTION.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What tells the function from others, while there is one.
pub(crate) fn fingerprint() -> Option<String> {
    function().map(|function| function.name)
}

/// Why the function failed on this thread since this was last asked.
pub(crate) fn take_failure() -> Option<String> {
    FAILURE.with_borrow_mut(Option::take)
}

/// Whether it has failed.
pub(crate) fn failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// The user's function while there is one, the description's model otherwise.
pub(crate) struct CurrentModel {
    pub(crate) described: Arc<dyn CostModel>,
}

impl CostModel for CurrentModel {
    fn lower_bound(&self, isa: &Isa, graph: &PiiGraph) -> u64 {
        // Of a function nothing is known but that costs are not negative.
        if function().is_some() { 0 } else { self.described.lower_bound(isa, graph) }
    }

    fn cost(&self, isa: &Isa, program: &Program) -> u64 {
        match function() {
            None => self.described.cost(isa, program),
            Some(_) if failed() => u64::MAX,
            Some(function) => function.cost(isa, program).unwrap_or_else(|reason| {
                FAILURE.with_borrow_mut(|failure| *failure = Some(reason));
                u64::MAX
            }),
        }
    }

    fn nest_bound(&self, isa: &Isa, program: &Program) -> u64 {
        if function().is_some() { 0 } else { self.described.nest_bound(isa, program) }
    }

    fn fingerprint(&self) -> [u8; 32] {
        match function() {
            None => self.described.fingerprint(),
            Some(function) => {
                let mut hash = Sha256::new();
                hash.update(b"function of the user");
                hash.update(function.name.as_bytes());
                hash.finalize().into()
            }
        }
    }
}

impl CostFunction {
    fn cost(&self, isa: &Isa, program: &Program) -> Result<u64, String> {
        let text = json!({ "isa": isa.name, "program": parts(isa, program) }).to_string();
        let mut cost = f64::NAN;
        let mut error = vec![0_u8; ERROR_CAPACITY];
        // SAFETY: the function takes exactly this text, a place for the cost, and this room.
        let status = unsafe {
            (self.callback)(
                text.as_ptr().cast(),
                text.len(),
                &raw mut cost,
                error.as_mut_ptr().cast(),
                error.len(),
            )
        };
        if status != 0 {
            let text = CStr::from_bytes_until_nul(&error).map(CStr::to_string_lossy).unwrap_or_default();
            return Err(text.into_owned());
        }
        // Thousandths count: functions may tell close candidates apart.
        if cost.is_nan() || cost < 0.0 {
            return Err(format!("it returned {cost}; a number from 0 on is expected"));
        }
        Ok((cost * 1000.0).round().min(MOST) as u64)
    }
}

/// A program as a list of its parts.
fn parts(isa: &Isa, program: &Program) -> Vec<Value> {
    match program {
        Program::Seq(inner) => inner.iter().flat_map(|part| parts(isa, part)).collect(),
        Program::For { iv, trip, parallel, body } => {
            vec![json!({ "loop": iv.0, "trip": trip, "parallel": parallel, "body": parts(isa, body) })]
        }
        Program::Instr { op, alpha, beta } => vec![instruction(isa, *op, alpha, beta)],
        Program::HostCopy { from, .. } => {
            let bytes = from.dims.iter().fold(from.elem.bytes(), |n, d| n.saturating_mul(d.0));
            vec![json!({ "host_copy": bytes })]
        }
        Program::Fence => vec![json!({ "fence": true })],
    }
}

fn instruction(isa: &Isa, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> Value {
    let Some(instr) = isa.instrs.get(usize::from(op.0)) else { return Value::Null };
    let attributes: Map<String, Value> = instr
        .alpha
        .iter()
        .zip(alpha)
        .map(|(decl, value)| {
            let value = match value {
                AttrVal::Int(value) => json!(value),
                AttrVal::F32(bits) => json!(f32::from_bits(*bits)),
            };
            (decl.name.clone(), value)
        })
        .collect();
    let addresses: Map<String, Value> = instr
        .beta
        .iter()
        .zip(beta)
        .map(|(decl, value)| {
            let value = match value {
                BetaVal::Int(at) => address(None, at),
                BetaVal::Hbm(space, at) => address(Some(*space), at),
            };
            (decl.name.clone(), value)
        })
        .collect();
    let ints: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
    let registers = isa.register_values();
    let bytes = |slices: &[Slice]| -> i64 {
        let env = Env { alpha: &ints, beta: &[], registers: &registers };
        slices
            .iter()
            .filter_map(|slice| match slice {
                Slice::Hbm(window) => {
                    window.dims.iter().try_fold(1_i64, |n, (len, _)| n.checked_mul(len.eval(env).ok()?))
                }
                Slice::OnChip(_) => None,
            })
            .sum()
    };
    json!({
        "instr": instr.name,
        "unit": instr.unit.and_then(|u| isa.units.get(usize::from(u))),
        "cost": instruction_cost(isa, op, alpha),
        "attributes": attributes,
        "addresses": addresses,
        "bytes_loaded": bytes(&instr.inputs),
        "bytes_stored": bytes(&instr.outputs),
    })
}

/// A position on chip, or an offset into a segment of main memory: `at` and what every round of a loop adds.
fn address(space: Option<Space>, at: &Affine) -> Value {
    let steps: Map<String, Value> = at.ivs.iter().map(|(iv, k)| (iv.0.to_string(), json!(k))).collect();
    let mut address = json!({ "at": at.c0, "steps": steps });
    if let Some(space) = space {
        address["segment"] = match space {
            Space::Operand(k) => json!(format!("operand{k}")),
            Space::Result(k) => json!(format!("result{k}")),
            Space::Scratch => json!("scratch"),
            Space::Consts => json!("consts"),
        };
    }
    address
}
