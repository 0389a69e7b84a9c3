//! The compiled simulator: a stitched module becomes native code that executes every instruction by the
//! description's semantics. Agrees with the oracle bit for bit. Knows no accelerator and no whole kernel.

mod address;
mod byte_dot;
mod check;
mod code;
mod contraction;
mod counters;
mod dot;
mod externals;
mod fault;
mod float_mode;
mod hazards;
mod host_copy;
mod independence;
mod index;
mod invocation;
mod kernel;
mod layout;
mod lower;
mod machine;
mod native;
mod pair_dot;
mod place;
mod pool;
mod registers;
mod roots;
mod rounding;
mod scalar;
mod tensor;
mod vectors;

use crate::mlir::{Jit, MlirError, Session};
use crate::stitched::syntax::AsmTextError;
use crate::stitched::{Interface, StitchedError, StitchedModule};
use act_isa::oracle::Counters;
use act_isa::{InstantiateError, Isa, Position};
use check::Violation;
use float_mode::FlushDenormals;
use invocation::{Invocation, MachinePlan};
use kernel::Kernel;
use lower::Lowered;

pub use fault::{Check, Fault};
pub use scalar::Unsupported;
pub use vectors::VectorLevel;

/// LLVM's optimisation level for simulators: vectorisation without the slowest passes.
const OPTIMISATION: i32 = 2;

/// Why a text is no kernel: it is more than counted loops around instructions with affine addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("`{text}` has no place among loops, affine addresses and instructions")]
    Operation { text: String },
    #[error("`{text}`: bounds and step must be constants, the step positive, and nothing carried")]
    Loop { text: String },
    #[error("`{text}` has a result; instructions have none")]
    AsmResult { text: String },
    #[error("`{text}`: operand {operand} is missing or no address")]
    AsmOperand { text: String, operand: usize },
    #[error("`{text}`: attribute `{attr}` is an address where a position is given, or the other way round")]
    BetaKind { text: String, attr: String },
    #[error("a host copy without usable shape")]
    HostCopy,
}

/// Why a stitched module cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    #[error(transparent)]
    Mlir(#[from] MlirError),
    #[error(transparent)]
    Stitched(#[from] StitchedError),
    #[error(transparent)]
    AsmText(#[from] AsmTextError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("{instr}: {error}")]
    Instantiate { instr: String, error: InstantiateError },
    #[error("{instr}: {error}")]
    Unsupported { instr: String, error: Unsupported },
    /// They are followed through so many executions only.
    #[error(
        "{instr}: the code changes control registers in more executions than are simulated, or to no value"
    )]
    ChangingRegisters { instr: String },
    #[error("{instr}: {slice} has a shape that depends on an address, or no affine address in main memory")]
    VariableShape { instr: String, slice: Position },
    #[error("{instr}: {slice} does not fit its buffer's dimensions")]
    MalformedSlice { instr: String, slice: Position },
    #[error("`{text}`: its addresses are not affine and it is executed more than {limit} times")]
    Undecided { text: String, limit: u64 },
}

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error("the kernel has {expected} {what}, got {got}")]
    Count { what: &'static str, expected: usize, got: usize },
    #[error("{what} {index} has {expected} bytes, got {got}")]
    Size { what: &'static str, index: usize, expected: u64, got: u64 },
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// How to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Hazards are faults: a read of bytes never written, a load of bytes that an instruction stored since the last
    /// fence. Result bytes that nothing writes are counted.
    pub strict: bool,
    /// Vector instructions that may be asked for by name; at most what the processor has.
    pub vectors: VectorLevel,
}

impl Default for Options {
    fn default() -> Options {
        Options { strict: false, vectors: VectorLevel::detect() }
    }
}

/// A compiled region. Runs concurrently: every run has a machine of its own.
pub struct Executable {
    interface: Interface,
    /// What every run does that has no fault.
    counters: Counters,
    /// Bytes of every whole on-chip buffer that some instruction touches, 0 for the others.
    buffers: Vec<u64>,
    code: Result<Native, Fault>,
}

/// A region that can run.
struct Native {
    plan: MachinePlan,
    entry: unsafe extern "C" fn(*mut u64),
    /// Keeps `entry` and the bodies of parallel loops alive.
    _jit: Jit,
}

impl Executable {
    /// Compiles `module` for this processor, without hazard checks.
    ///
    /// # Errors
    /// What in the module, or in the description, cannot be simulated. A fault is none: it comes at every run.
    pub fn compile(isa: &Isa, module: &StitchedModule) -> Result<Executable, LowerError> {
        Executable::compile_with(isa, module, Options::default())
    }

    /// As [`Executable::compile`], with options.
    ///
    /// # Errors
    /// As [`Executable::compile`].
    pub fn compile_with(
        isa: &Isa,
        module: &StitchedModule,
        options: Options,
    ) -> Result<Executable, LowerError> {
        let session = Session::new();
        let kernel = registers::resolved(isa, Kernel::read(isa, &session.parse(module.text())?)?)?;
        let placement = place::place(isa, &kernel)?;
        let mut violation = placement.violation.clone();
        let mut unwritten = 0;
        if options.strict {
            match hazards::hazards(isa, &kernel, &placement) {
                Ok(bytes) => unwritten = bytes,
                Err(first) => violation = Some(first),
            }
        }
        let buffers = isa.buffers.iter().zip(&placement.extents).map(|(buffer, extents)| {
            let dims: Vec<u64> = buffer.access.iter().chain(&buffer.unit).copied().collect();
            let used = extents.iter().all(|&e| e > 0);
            if used { act_hlo::Shape::new(buffer.elem, dims).bytes() } else { 0 }
        });
        let buffers = buffers.collect();
        if let Some(Violation { site, number, check }) = violation {
            let text = kernel.sites[site].text.clone();
            let (interface, counters) = (kernel.interface, Counters::default());
            return Ok(Executable {
                interface,
                counters,
                buffers,
                code: Err(Fault { instr: kernel.sites[site].position, number, text, check }),
            });
        }
        let layouts = layout::layouts(isa, &placement.extents);
        let mut counters = counters::total(isa, &kernel, &layouts)?;
        counters.unwritten_result_bytes = unwritten;
        let parallel = independence::parallel_loops(&kernel, &placement);
        let shared = tensor::Shared::new(options.vectors.min(VectorLevel::detect()));
        let Lowered { text, shared } = lower::lower(isa, &kernel, &placement, &layouts, &parallel, shared)?;
        let mut lowered = session.parse(&text)?;
        session.lower_to_llvm(&mut lowered)?;
        let runtime = (lower::PARALLEL, invocation::parallel as *mut ());
        let symbols = shared.externals.used().map(|(name, _, address)| (name, address.0)).chain([runtime]);
        // SAFETY: `Externals` gives each function's address together with the signature it was declared with; `lower`
        // declares the runtime's function with its own.
        let jit = unsafe { Jit::compile(&session, &lowered, OPTIMISATION, symbols)? };
        let missing = |name: &str| MlirError { stage: "compile", messages: format!("no symbol {name}") };
        let entry = jit.lookup(lower::ENTRY).ok_or_else(|| missing(lower::ENTRY))?;
        // SAFETY: `lower` defines the entry as a function of one pointer without result.
        let entry: unsafe extern "C" fn(*mut u64) = unsafe { std::mem::transmute(entry.as_ptr()) };
        let mut regions = Vec::with_capacity(parallel.len());
        for (number, region) in parallel.into_iter().enumerate() {
            let name = lower::body_name(number);
            let body = jit.lookup(&name).ok_or_else(|| missing(&name))?;
            // SAFETY: `lower` defines the body with this signature.
            let body: invocation::Body = unsafe { std::mem::transmute(body.as_ptr()) };
            regions.push(invocation::Region { body, trip: region.trip, live_in: region.live_in });
        }
        let segments = kernel.interface.operands.len() + kernel.interface.results.len() + 2;
        let plan = MachinePlan::new(layouts, shared.workspace, segments, regions);
        let code = Ok(Native { plan, entry, _jit: jit });
        Ok(Executable { interface: kernel.interface, counters, buffers, code })
    }

    /// Segment sizes and constants.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Number of loops whose iterations may run on several threads.
    pub fn parallel_loops(&self) -> usize {
        self.code.as_ref().map_or(0, |native| native.plan.regions.len())
    }

    /// Runs the region once: reads `operands`, writes `results`.
    ///
    /// # Errors
    /// Buffers of the wrong number or size; the first fault, after which the results are undefined.
    pub fn run(&self, operands: &[&[u8]], results: &mut [&mut [u8]]) -> Result<Counters, RunError> {
        let (operands, results) = self.pointers(operands, results)?;
        // SAFETY: the slices have the sizes that `run_raw` asks for, results are exclusive.
        unsafe { self.run_raw(&operands, &results) }
    }

    /// Addresses of buffers of the right number and sizes.
    fn pointers(
        &self,
        operands: &[&[u8]],
        results: &mut [&mut [u8]],
    ) -> Result<(Vec<*const u8>, Vec<*mut u8>), RunError> {
        let Interface { operands: operand_bytes, results: result_bytes, .. } = &self.interface;
        check_count("operands", operand_bytes.len(), operands.len())?;
        check_count("results", result_bytes.len(), results.len())?;
        for (index, (&expected, operand)) in operand_bytes.iter().zip(operands).enumerate() {
            check_size("operand", index, expected, operand.len())?;
        }
        for (index, (&expected, result)) in result_bytes.iter().zip(results.iter()).enumerate() {
            check_size("result", index, expected, result.len())?;
        }
        let operands = operands.iter().map(|o| o.as_ptr()).collect();
        Ok((operands, results.iter_mut().map(|r| r.as_mut_ptr()).collect()))
    }

    /// As [`Executable::run`] on memory that the caller vouches for.
    ///
    /// # Errors
    /// A wrong number of buffers; the first fault.
    ///
    /// # Safety
    /// Operand k must be readable and result k writable for the bytes that [`Executable::interface`] gives, and no
    /// result may overlap another buffer or be accessed elsewhere during the run.
    pub unsafe fn run_raw(&self, operands: &[*const u8], results: &[*mut u8]) -> Result<Counters, RunError> {
        // SAFETY: passed on.
        unsafe { self.execute(operands, results, None) }
    }

    /// As [`Executable::run`] on buffers that hold the given bytes at the start and are given back as the run leaves
    /// them: for tests and for looking at single instructions.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn run_on_chip(
        &self,
        operands: &[&[u8]],
        results: &mut [&mut [u8]],
        buffers: &mut [Vec<u8>],
    ) -> Result<Counters, RunError> {
        check_count("buffers", self.buffers.len(), buffers.len())?;
        for (index, (&expected, buffer)) in self.buffers.iter().zip(buffers.iter()).enumerate() {
            if expected > 0 {
                check_size("buffer", index, expected, buffer.len())?;
            }
        }
        let (operands, results) = self.pointers(operands, results)?;
        // SAFETY: as in `run`.
        unsafe { self.execute(&operands, &results, Some(buffers)) }
    }

    /// # Safety
    /// As [`Executable::run_raw`].
    unsafe fn execute(
        &self,
        operands: &[*const u8],
        results: &[*mut u8],
        on_chip: Option<&mut [Vec<u8>]>,
    ) -> Result<Counters, RunError> {
        let interface = &self.interface;
        check_count("operands", interface.operands.len(), operands.len())?;
        check_count("results", interface.results.len(), results.len())?;
        let Native { plan, entry, .. } = self.code.as_ref().map_err(Fault::clone)?;
        let mut scratch = machine::Block::poisoned(interface.scratch_bytes);
        let mut segments: Vec<u64> = operands.iter().map(|&operand| operand as u64).collect();
        segments.extend(results.iter().map(|&result| result as u64));
        segments.extend([scratch.pointer() as u64, interface.consts.as_ptr() as u64]);
        let invocation = Invocation { plan, segments: &segments };
        let mut machine = plan.machine();
        match &on_chip {
            Some(contents) => machine.set_buffers(&plan.layouts, contents),
            None => machine.reset(&plan.layouts),
        }
        machine.attach(std::ptr::from_ref(&invocation) as u64, &segments);
        {
            let _mode = FlushDenormals::enter();
            // SAFETY: the entry takes a machine of this plan, attached to a living invocation. Generated code touches
            // nothing but the machine and the segments, within bounds and rights that `place` checked for the sizes
            // which the caller vouches for.
            unsafe { entry(machine.pointer()) };
        }
        if let Some(buffers) = on_chip {
            machine.get_buffers(&plan.layouts, buffers);
        }
        plan.put_back(machine);
        Ok(self.counters.clone())
    }
}

fn check_count(what: &'static str, expected: usize, got: usize) -> Result<(), RunError> {
    if expected == got { Ok(()) } else { Err(RunError::Count { what, expected, got }) }
}

fn check_size(what: &'static str, index: usize, expected: u64, got: usize) -> Result<(), RunError> {
    if expected == got as u64 {
        Ok(())
    } else {
        Err(RunError::Size { what, index, expected, got: got as u64 })
    }
}
