//! The compiled simulator: a stitched module becomes native code that executes every instruction by the
//! description's semantics. Agrees with the oracle bit for bit. Knows no accelerator and no whole kernel.

mod code;
mod contraction;
mod counters;
mod externals;
mod fault;
mod float_mode;
mod index;
mod lower;
mod machine;
mod native;
mod scalar;
mod tensor;

use crate::mlir::{Jit, MlirError, Session};
use crate::stitched::syntax::AsmTextError;
use crate::stitched::{Interface, StitchedError, StitchedModule};
use act_isa::oracle::Counters;
use act_isa::{InstantiateError, Isa, Position};
use float_mode::FlushDenormals;
use lower::{Kind, Lowered, Site};
use machine::{Machine, Segment};

pub use fault::{Check, Fault};
pub use scalar::Unsupported;

/// LLVM's optimisation level for simulators: vectorisation without the slowest passes.
const OPTIMISATION: i32 = 2;

/// Why a stitched module cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    #[error(transparent)]
    Mlir(#[from] MlirError),
    #[error(transparent)]
    Stitched(#[from] StitchedError),
    #[error(transparent)]
    AsmText(#[from] AsmTextError),
    #[error("`{text}` has a result; instructions have none")]
    AsmResult { text: String },
    #[error("`{text}`: operand {operand} is missing or no i64")]
    AsmOperand { text: String, operand: usize },
    #[error("a host copy without usable shape")]
    HostCopy,
    #[error("{instr}: {error}")]
    Instantiate { instr: String, error: InstantiateError },
    #[error("{instr}: {error}")]
    Unsupported { instr: String, error: Unsupported },
    #[error("{instr} depends on control registers that change, which only the oracle executes")]
    ChangingRegisters { instr: String },
    #[error("{instr} uses buffer {buffer}, whose initial value only the oracle knows")]
    InitialValue { instr: String, buffer: String },
    #[error("{instr}: {slice} has a shape that depends on an address")]
    VariableShape { instr: String, slice: Position },
    #[error("{instr}: {slice} can leave 64 bits")]
    Overflow { instr: String, slice: Position },
    #[error("{instr}: the window that {slice} writes overlaps itself")]
    OverlappingStore { instr: String, slice: Position },
    #[error("{instr}: {slice} does not fit its buffer's dimensions")]
    MalformedSlice { instr: String, slice: Position },
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

/// A compiled region. Runs concurrently: every run has a machine of its own.
pub struct Executable {
    /// Keeps `entry` alive.
    _jit: Jit,
    entry: unsafe extern "C" fn(*mut *mut u8),
    interface: Interface,
    natives: Vec<counters::Executed>,
    checks: Vec<Vec<Check>>,
    sites: Vec<Site>,
    /// Bytes of every on-chip buffer that some instruction touches, 0 for the others.
    buffers: Vec<u64>,
    workspace: u64,
}

impl Executable {
    /// Compiles `module` for this processor.
    ///
    /// # Errors
    /// What in the module, or in the description, cannot be simulated.
    pub fn compile(isa: &Isa, module: &StitchedModule) -> Result<Executable, LowerError> {
        let session = Session::new();
        let mut mlir = session.parse(module.text())?;
        let Lowered { interface, natives, sites, shared } = lower::lower(&session, isa, &mut mlir)?;
        let symbols = shared.externals.used().map(|(name, _, address)| (name, address.0));
        // SAFETY: `Externals` gives each function's address together with the signature it was declared with.
        let jit = unsafe { Jit::compile(&session, &mlir, OPTIMISATION, symbols)? };
        let missing = || MlirError { stage: "compile", messages: format!("no symbol {}", lower::ENTRY) };
        let entry = jit.lookup(lower::ENTRY).ok_or_else(missing)?;
        // SAFETY: `lower` defines the entry as a function of one pointer without result.
        let entry: unsafe extern "C" fn(*mut *mut u8) = unsafe { std::mem::transmute(entry.as_ptr()) };
        let mut buffers = vec![0; isa.buffers.len()];
        for (kind, _) in &natives {
            let Kind::Instr { op, .. } = kind else { continue };
            for slice in isa.instr(*op).inputs.iter().chain(&isa.instr(*op).outputs) {
                if let act_isa::Slice::OnChip(slice) = slice {
                    let buffer = isa.buffer(slice.buffer);
                    let dims: Vec<u64> = buffer.access.iter().chain(&buffer.unit).copied().collect();
                    buffers[usize::from(slice.buffer.0)] = act_hlo::Shape::new(buffer.elem, dims).bytes();
                }
            }
        }
        let executed =
            natives.iter().map(|(kind, _)| counters::Executed::of(isa, kind)).collect::<Result<_, _>>()?;
        Ok(Executable {
            _jit: jit,
            entry,
            interface,
            natives: executed,
            checks: natives.into_iter().map(|n| n.1).collect(),
            sites,
            buffers,
            workspace: shared.workspace,
        })
    }

    /// Segment sizes and constants.
    pub fn interface(&self) -> &Interface {
        &self.interface
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
        let mut scratch = machine::Block::poisoned(interface.scratch_bytes);
        let segment = |start: u64, bytes: u64, writable: bool| Segment { start, bytes, writable };
        let consts = interface.consts.as_ptr();
        let mut segments = Vec::new();
        for (&operand, &bytes) in operands.iter().zip(&interface.operands) {
            segments.push(segment(operand as u64, bytes, false));
        }
        for (&result, &bytes) in results.iter().zip(&interface.results) {
            segments.push(segment(result as u64, bytes, true));
        }
        segments.push(segment(scratch.address(), interface.scratch_bytes, true));
        segments.push(segment(consts as u64, interface.consts.len() as u64, false));
        let contents = on_chip.as_deref();
        let mut machine =
            Machine::new(&self.buffers, self.workspace, self.natives.len(), &segments, contents);

        let mut arguments: Vec<*mut u8> = segments.iter().map(|s| s.start as *mut u8).collect();
        arguments.push(machine.pointer().cast());
        {
            let _mode = FlushDenormals::enter();
            // SAFETY: the entry takes an array with one pointer per segment in this order, then the machine. Generated
            // code touches nothing but the machine, whose parts are owned above, and segments within the bounds given
            // to it, writing only to writable ones.
            unsafe { (self.entry)(arguments.as_mut_ptr()) };
        }
        if let Some(buffers) = on_chip {
            machine.get_buffers(buffers);
        }
        if let Some(raw) = machine.fault() {
            return Err(self.fault(raw).into());
        }
        Ok(counters::total(&self.natives, machine.counts()))
    }

    fn fault(&self, raw: fault::RawFault) -> Fault {
        let site = self.sites.get(raw.site);
        let check = site.and_then(|site| self.checks.get(site.native)?.get(raw.check));
        Fault {
            instr: raw.site,
            text: site.map(|s| s.text.clone()).unwrap_or_default(),
            check: check.cloned().unwrap_or(Check::Requirement { index: raw.check }),
        }
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
