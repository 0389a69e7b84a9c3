//! The plugin with one more target, `reference`: a device that runs every operator by the reference evaluator.
//! With it, offloading is tested by itself: real programs, chosen regions, real custom calls, and results that
//! must be those of the host. Which regions it takes can be narrowed by environment variables, to make
//! selection cut regions smaller:
//!
//! * `REFERENCE_MAX_OPERATORS`: the most operators in a region;
//! * `REFERENCE_RULED_OUT`: HLO names of operators it cannot have at all, separated by commas;
//! * `REFERENCE_REFUSED_PERMILLE`: how many of a thousand regions it refuses, chosen by their contents.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Mutex};

use act_hlo::eval::eval;
use act_hlo::proto::HloModule;
use act_hlo::{Graph, Literal, Op, Shape};
use act_isa::View;
use act_pjrt::compile::CompileContext;
use act_pjrt::kernel::{BufferRef, Kernel};
use act_pjrt::offload::{CompileRefusal, CompiledRegion, Limits, RegionCompiler, RegionId, Seeds, offload};
use act_pjrt::records::RunRecord;
use act_pjrt::target::{Offload, OffloadReport, Target, register};
use sha2::{Digest, Sha256};

/// Registers the target; called once, before a client is created.
#[unsafe(no_mangle)]
pub extern "C" fn reference_device_register() {
    register(Target {
        name: "reference".to_owned(),
        fingerprint: "reference".to_owned(),
        offload: Arc::new(Reference),
    });
}

struct Reference;

impl Offload for Reference {
    fn offload(&self, module: &mut HloModule, _: &CompileContext) -> OffloadReport {
        let compiler = Compiler::new();
        let done = offload(module, &compiler, Limits::default(), Seeds::Products);
        OffloadReport {
            changed: !done.regions.is_empty(),
            regions: done.json(),
            kernels: compiler.kernels.into_inner().unwrap_or_default().into_iter().collect(),
            ..OffloadReport::default()
        }
    }

    fn load_kernel(&self, _: &str, _: &[u8]) -> Result<Box<dyn Kernel>, String> {
        Err("reference kernels are not stored".to_owned())
    }
}

struct Compiler {
    max_operators: usize,
    ruled_out: Vec<String>,
    refused_permille: u64,
    kernels: Mutex<BTreeMap<String, Box<dyn Kernel>>>,
}

impl Compiler {
    fn new() -> Compiler {
        let text = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let number = |name: &str| text(name).and_then(|v| v.parse::<u64>().ok());
        let names = text("REFERENCE_RULED_OUT").unwrap_or_default();
        Compiler {
            max_operators: number("REFERENCE_MAX_OPERATORS").map_or(usize::MAX, |n| n as usize),
            ruled_out: names.split(',').map(str::to_owned).collect(),
            refused_permille: number("REFERENCE_REFUSED_PERMILLE").unwrap_or(0),
            kernels: Mutex::new(BTreeMap::new()),
        }
    }
}

impl RegionCompiler for Compiler {
    fn compile(
        &self,
        graph: &Graph,
        operands: &[View],
        results: &[View],
        _: RegionId,
    ) -> Result<CompiledRegion, CompileRefusal> {
        let refuse = |reason: String| CompileRefusal { node: None, reason };
        let operators =
            graph.nodes().iter().filter(|n| !matches!(n.op, Op::Parameter(_) | Op::Constant(_))).count();
        if operators > self.max_operators {
            return Err(refuse(format!("{operators} operators")));
        }
        let digest = Sha256::digest(format!("{graph:?}{operands:?}{results:?}"));
        let chance = u64::from(u16::from_le_bytes([digest[0], digest[1]]));
        if chance * 1000 < self.refused_permille * 0x1_0000 {
            return Err(refuse("by its contents".to_owned()));
        }
        let key: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        let kernel =
            Evaluated { graph: graph.clone(), operands: operands.to_vec(), results: results.to_vec() };
        let mut kernels = self.kernels.lock().map_err(|_| refuse("poisoned".to_owned()))?;
        kernels.insert(key.clone(), Box::new(kernel));
        Ok(CompiledRegion { key, summary: serde_json::json!({ "target": "reference" }) })
    }

    fn rules_out(&self, op: &Op, _: &[&Shape], _: &Shape) -> Option<String> {
        self.ruled_out.iter().any(|name| name == op.name()).then(|| "the user said so".to_owned())
    }
}

/// A region that is evaluated.
struct Evaluated {
    graph: Graph,
    operands: Vec<View>,
    results: Vec<View>,
}

impl Kernel for Evaluated {
    fn run(&self, args: &[BufferRef<'_>], results: &[BufferRef<'_>]) -> Result<RunRecord, String> {
        let range = |b: &BufferRef<'_>| (b.data.as_ptr() as usize, b.data.as_ptr() as usize + b.size);
        for (r, result) in results.iter().enumerate() {
            let (begin, end) = range(result);
            let others = args.iter().chain(&results[..r]).map(range);
            if others.clone().any(|(b, e)| begin < e && b < end) {
                return Err(format!("result {r} overlaps another buffer"));
            }
        }
        let mut inputs = Vec::new();
        for (view, buffer) in self.operands.iter().zip(args) {
            inputs.push(read(view, buffer)?);
        }
        let outputs = eval(&self.graph, &inputs).map_err(|e| e.to_string())?;
        for ((view, buffer), value) in self.results.iter().zip(results).zip(&outputs) {
            write(view, buffer, value)?;
        }
        let instructions = BTreeMap::from([("evaluate".to_owned(), 1)]);
        let bytes_moved = args.iter().chain(results).map(|b| b.size as u64).sum();
        Ok(RunRecord { instructions, bytes_moved, ..RunRecord::default() })
    }

    fn serialize(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Whether a view is something else than a dense array in some order of its dimensions.
fn is_window(view: &View) -> bool {
    let mut dims: Vec<(u64, i64)> = view.dims.iter().copied().filter(|d| d.0 != 1).collect();
    dims.sort_by_key(|d| std::cmp::Reverse(d.1));
    let mut step = view.elem.bytes() as i64;
    let dense =
        dims.iter().rev().all(|&(len, stride)| std::mem::replace(&mut step, stride * len as i64) == stride);
    !dense || view.dims.len() > 4
}

/// Byte offset of every element of a view, in row-major order.
fn offsets(view: &View, buffer: &BufferRef<'_>) -> Result<Vec<usize>, String> {
    let width = view.elem.bytes();
    let dims: Vec<i64> = view.dims.iter().map(|d| d.0 as i64).collect();
    // Only a window has other dimensions than its buffer.
    if dims != buffer.dims && !is_window(view) {
        return Err(format!("a buffer of {} bytes, {:?}, for {view:?}", buffer.size, buffer.dims));
    }
    if view.elem.primitive_type() != buffer.element_type {
        return Err(format!("a buffer of type {} for {view:?}", buffer.element_type));
    }
    let mut out = vec![0i64];
    for &(len, stride) in &view.dims {
        out = out.iter().flat_map(|&at| (0..len as i64).map(move |i| at + i * stride)).collect();
    }
    let offset = |at: i64| usize::try_from(at).ok().filter(|at| at + width as usize <= buffer.size);
    let checked: Option<Vec<usize>> = out.into_iter().map(offset).collect();
    checked.ok_or_else(|| format!("{view:?} leads out of its buffer"))
}

fn read(view: &View, buffer: &BufferRef<'_>) -> Result<Literal, String> {
    let width = view.elem.bytes() as usize;
    let mut bytes = Vec::with_capacity(buffer.size);
    for at in offsets(view, buffer)? {
        // SAFETY: `offsets` stay within the buffer, which XLA keeps alive during the call.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(buffer.data.as_ptr().add(at), width) });
    }
    let shape = Shape::new(view.elem, view.dims.iter().map(|d| d.0).collect::<Vec<_>>());
    Literal::from_bytes(shape, bytes).map_err(|e| e.to_string())
}

fn write(view: &View, buffer: &BufferRef<'_>, value: &Literal) -> Result<(), String> {
    let width = view.elem.bytes() as usize;
    for (at, element) in offsets(view, buffer)?.into_iter().zip(value.bytes().chunks_exact(width)) {
        // SAFETY: as in `read`; the buffer is a result, which may be written.
        unsafe { ptr::copy_nonoverlapping(element.as_ptr(), buffer.data.as_ptr().add(at), width) };
    }
    Ok(())
}
