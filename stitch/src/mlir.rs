//! MLIR as this crate uses it: a context with five dialects, parsing with messages kept, the lowering to the LLVM
//! dialect. Knows neither accelerators nor what the modules mean.

use melior::Context;
use melior::diagnostic::DiagnosticSeverity;
use melior::ir::Module;
use melior::ir::operation::{OperationLike, OperationRef, WalkOrder, WalkResult};
use melior::pass::{Pass, PassManager};
use std::cell::RefCell;
use std::rc::Rc;

// SAFETY: defined in dialects.cpp with this signature.
unsafe extern "C" {
    fn act_mlir_register_dialects(context: mlir_sys::MlirContext);
}

/// What MLIR said about a module that it refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage}: {messages}")]
pub struct MlirError {
    /// `parse`, `verify` or `lower`.
    pub stage: &'static str,
    /// MLIR's diagnostics, one a line.
    pub messages: String,
}

/// A context of its own, single-threaded: compilations on many threads share nothing.
pub(crate) struct Session {
    context: Context,
    messages: Rc<RefCell<Vec<String>>>,
}

impl Session {
    pub(crate) fn new() -> Session {
        let context = Context::new_with_threading(false);
        // SAFETY: the context is alive; the function registers dialects in it and keeps no reference.
        unsafe { act_mlir_register_dialects(context.to_raw()) };
        let messages = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&messages);
        context.attach_diagnostic_handler(move |diagnostic| {
            if matches!(diagnostic.severity(), DiagnosticSeverity::Error) {
                sink.borrow_mut().push(format!("{}: {}", diagnostic.location(), diagnostic));
            }
            true
        });
        Session { context, messages }
    }

    /// Parses and verifies.
    ///
    /// # Errors
    /// MLIR's messages.
    pub(crate) fn parse(&self, text: &str) -> Result<Module<'_>, MlirError> {
        // A NUL would end the text early on the C side.
        if text.contains('\0') {
            return Err(MlirError { stage: "parse", messages: "the text contains a NUL".to_owned() });
        }
        let module = Module::parse(&self.context, text).ok_or_else(|| self.error("parse"))?;
        self.verify(&module)?;
        Ok(module)
    }

    /// # Errors
    /// MLIR's messages.
    pub(crate) fn verify(&self, module: &Module<'_>) -> Result<(), MlirError> {
        if module.as_operation().verify() { Ok(()) } else { Err(self.error("verify")) }
    }

    /// Lowers arith, cf, func and scf to the LLVM dialect.
    ///
    /// # Errors
    /// MLIR's messages.
    pub(crate) fn lower_to_llvm(&self, module: &mut Module<'_>) -> Result<(), MlirError> {
        let passes = PassManager::new(&self.context);
        for create in [
            mlir_sys::mlirCreateConversionSCFToControlFlowPass
                as unsafe extern "C" fn() -> mlir_sys::MlirPass,
            mlir_sys::mlirCreateConversionArithToLLVMConversionPass,
            mlir_sys::mlirCreateConversionConvertControlFlowToLLVMPass,
            mlir_sys::mlirCreateConversionConvertFuncToLLVMPass,
            mlir_sys::mlirCreateConversionReconcileUnrealizedCastsPass,
        ] {
            // SAFETY: each function returns a fresh pass that nothing else owns.
            passes.add_pass(unsafe { Pass::from_raw(create()) });
        }
        passes.run(module).map_err(|_| self.error("lower"))
    }

    fn error(&self, stage: &'static str) -> MlirError {
        let messages = self.messages.borrow_mut().drain(..).collect::<Vec<_>>().join("\n");
        MlirError { stage, messages }
    }
}

/// All operations of a module in program order.
pub(crate) fn operations<'c, 'a>(module: &'a Module<'c>) -> Vec<OperationRef<'c, 'a>> {
    let mut all = Vec::new();
    module.as_operation().walk(WalkOrder::PreOrder, |operation| {
        all.push(operation.to_raw());
        WalkResult::Advance
    });
    // SAFETY: the operations belong to the module, which is borrowed for 'a.
    all.into_iter().map(|raw| unsafe { OperationRef::from_raw(raw) }).collect()
}

/// Compiled code, kept as long as its functions may run.
pub(crate) struct Jit(mlir_sys::MlirExecutionEngine);

// SAFETY: after `compile` and the lookups that follow it under one owner, the engine is only read: its code is
// immutable and its symbols are resolved. LLVM allows destruction on any thread.
unsafe impl Send for Jit {}
// SAFETY: as above; no method that takes a shared reference changes the engine.
unsafe impl Sync for Jit {}

impl Jit {
    /// Compiles a module in the LLVM dialect for this processor.
    ///
    /// # Errors
    /// When LLVM refuses the module.
    ///
    /// # Safety
    /// Each address must be that of a function with the signature under which the module declares its name.
    pub(crate) unsafe fn compile<'a>(
        session: &Session,
        module: &Module<'_>,
        level: i32,
        symbols: impl Iterator<Item = (&'a str, *mut ())>,
    ) -> Result<Jit, MlirError> {
        // SAFETY: the module is alive and in the LLVM dialect; no libraries are passed.
        let raw = unsafe {
            mlir_sys::mlirExecutionEngineCreate(module.to_raw(), level, 0, std::ptr::null(), false, false)
        };
        if raw.ptr.is_null() {
            return Err(session.error("compile"));
        }
        let jit = Jit(raw);
        for (name, address) in symbols {
            // SAFETY: the engine is alive; the caller vouches for the address.
            unsafe { mlir_sys::mlirExecutionEngineRegisterSymbol(raw, string_ref(name), address.cast()) };
        }
        Ok(jit)
    }

    /// Address of a function of the module.
    pub(crate) fn lookup(&self, name: &str) -> Option<std::ptr::NonNull<std::ffi::c_void>> {
        // SAFETY: the engine is alive.
        std::ptr::NonNull::new(unsafe { mlir_sys::mlirExecutionEngineLookup(self.0, string_ref(name)) })
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: created by `compile`, destroyed once.
        unsafe { mlir_sys::mlirExecutionEngineDestroy(self.0) };
    }
}

fn string_ref(text: &str) -> mlir_sys::MlirStringRef {
    mlir_sys::MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}
