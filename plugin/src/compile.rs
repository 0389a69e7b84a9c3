//! The functions that compile: `PJRT_Client_Compile`, `PJRT_Compile`, `PJRT_Client_Load`. Each compilation
//! carries a context, which the transform callback finds through the thread that compiles.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use pjrt_abi::args::{
    Args, ClientCompileArgs, ClientLoadArgs, CompileArgs, ExecutableDestroyArgs, LoadedExecutableDestroyArgs,
    Program,
};
use pjrt_abi::{Client, LoadedExecutable};

use crate::client::{self, ClientState};
use crate::cost_function;
use crate::custom_calls;
use crate::error::Failure;
use crate::executable::{self, ExecutableState};
use crate::framework_options;
use crate::hook::{Call, Hook};
use crate::kernel::RegisteredKernel;
use crate::passes::atan;
use crate::program_cache::{KeptProgram, Keys, ProgramCache};
use crate::records::{Considered, RegionRecord};
use crate::{inner, loaded_executable, topology};

/// One compilation under way.
#[derive(Debug)]
pub struct CompileContext {
    /// The client that compiles.
    pub client: Arc<ClientState>,
    /// Kernels that the program will call, by key.
    pub kernels: BTreeMap<String, Arc<RegisteredKernel>>,
    /// What became of the regions considered, in order.
    pub regions: Vec<RegionRecord>,
    /// The same in the records.
    pub considered: Considered,
    /// The module's name, once it has been seen.
    pub module: String,
    /// What the program costs, where regions of it were moved to the device: what is left of it does not tell.
    pub costs: Option<BTreeMap<String, f64>>,
    /// Why the program must not run.
    pub failure: Option<String>,
    /// The module as XLA hands it over, where it has custom calls: an error of theirs does not say where they stand.
    pub calling: Option<Vec<u8>>,
}

thread_local! {
    /// Compilations under way on this thread, the innermost last.
    static UNDER_WAY: RefCell<Vec<CompileContext>> = const { RefCell::new(Vec::new()) };
}

/// Takes the context out when a compilation ends, also by a panic.
struct UnderWay;

impl UnderWay {
    fn begin(client: Arc<ClientState>) -> UnderWay {
        let context = CompileContext {
            client,
            kernels: BTreeMap::new(),
            regions: Vec::new(),
            considered: Considered::default(),
            module: String::new(),
            costs: None,
            failure: None,
            calling: None,
        };
        UNDER_WAY.with_borrow_mut(|under_way| under_way.push(context));
        UnderWay
    }

    fn end(self) -> Option<CompileContext> {
        let context = UNDER_WAY.with_borrow_mut(Vec::pop);
        std::mem::forget(self);
        context
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.with_borrow_mut(Vec::pop);
    }
}

/// Gives `body` the context of the compilation under way on this thread; `None` when it is not one of ours.
pub(crate) fn with_context<R>(body: impl FnOnce(&mut CompileContext) -> R) -> Option<R> {
    // Taken out meanwhile, as what `body` calls may compile something itself.
    let mut context = UNDER_WAY.with_borrow_mut(Vec::pop)?;
    let result = body(&mut context);
    UNDER_WAY.with_borrow_mut(|under_way| under_way.push(context));
    Some(result)
}

/// Runs a compiling call of a client's and tells what the executable it makes needs to live, and what became of its
/// regions; `None` where these are not known.
fn compile(
    client: Arc<ClientState>,
    forward: impl FnOnce() -> Result<(), Failure>,
    withdraw: impl FnOnce(),
) -> Result<(Arc<ExecutableState>, Option<Vec<RegionRecord>>), Failure> {
    let under_way = UnderWay::begin(Arc::clone(&client));
    cost_function::take_failure();
    if let Err(failure) = forward() {
        let module = under_way.end().and_then(|context| context.calling);
        return Err(match module {
            Some(module) => failure.with_remark(|message| custom_calls::named_in(message, &module)),
            None => failure,
        });
    }
    if let Some(reason) = cost_function::take_failure() {
        withdraw();
        let message = format!("act: the cost model set by act_pjrt.set_cost_model failed: {reason}");
        return Err(Failure::invalid_argument(message));
    }
    // Gone where the offloader has panicked: then the module is untouched and calls no kernel.
    let Some(context) = under_way.end() else {
        return Ok((Arc::new(ExecutableState::new(client, BTreeMap::new(), String::new(), None)), None));
    };
    let CompileContext { kernels, regions, considered, module, costs, failure, .. } = context;
    // The transform callback cannot fail, so the program is there; it must not reach the framework.
    if let Some(failure) = failure {
        withdraw();
        return Err(Failure::internal(failure));
    }
    let state = ExecutableState::new(client, kernels, module, costs);
    state.keep_records(considered);
    Ok((Arc::new(state), Some(regions)))
}

/// Has the inner library destroy what it made.
fn destroy<A: Args>(mut args: A) {
    if let Some(inner) = inner::loaded() {
        // SAFETY: the struct is whole and names an object that nobody else has seen.
        let outcome = unsafe { inner.api.call(&mut args) };
        if let Some(Err(failure)) = outcome.map(Failure::check) {
            tracing::warn!("a program that failed is not destroyed: {}", failure.into_message());
        }
    }
}

/// The bytes of a program.
///
/// # Safety
/// `program` must be null or a program of the framework's, which lives as long as the result is used.
unsafe fn program_bytes<'a>(program: *const Program) -> &'a [u8] {
    if program.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise; the program says how many bytes it has.
    unsafe { bytes((*program).code, (*program).code_size) }
}

/// Bytes of the framework's.
///
/// # Safety
/// `data` must be null or point to `size` bytes, which live as long as the result is used.
unsafe fn bytes<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }
}

/// Hands a compiling call on, with its options completed; `place` tells where they are in its struct.
fn forward_completed<A: Args>(
    call: &mut Call<A>,
    place: impl Fn(&mut A) -> (&mut *const c_char, &mut usize),
) -> Result<(), Failure> {
    let (data, size) = place(call);
    let own = (*data, *size);
    // SAFETY: the framework's options, valid during the call.
    let completed = framework_options::completed(unsafe { bytes(own.0, own.1) });
    if let Some(completed) = &completed {
        (*data, *size) = (completed.as_ptr().cast(), completed.len());
    }
    let outcome = call.forward();
    let (data, size) = place(call);
    (*data, *size) = own;
    outcome
}

/// The keys under which the program of a call is kept.
fn program_keys(client: &ClientState, call: &Call<ClientCompileArgs>) -> Keys {
    // SAFETY: the framework's program and options, valid during the call.
    unsafe {
        let format = match call.program.as_ref() {
            Some(program) => bytes(program.format, program.format_size),
            None => &[],
        };
        let options = bytes(call.compile_options, call.compile_options_size);
        Keys::of(client, format, program_bytes(call.program), options)
    }
}

/// The program that an earlier compilation kept, loaded.
fn load_kept(
    client: &Arc<ClientState>,
    handle: *mut Client,
    cache: &ProgramCache,
    keys: &Keys,
) -> Option<*mut LoadedExecutable> {
    let kept = cache.load(keys)?;
    match executable::from_bytes(client, handle, &kept.executable) {
        Ok(executable) => {
            let mut considered = Considered::default();
            kept.regions.iter().for_each(|region| considered.add(region));
            if let Some(state) = loaded_executable::state(executable) {
                state.keep_records(considered);
            }
            Some(executable)
        }
        Err(failure) => {
            tracing::warn!("a program in the cache is compiled anew: {}", failure.into_message());
            None
        }
    }
}

/// `PJRT_Client_Compile`
pub(crate) struct ClientCompile;

impl Hook for ClientCompile {
    type Args = ClientCompileArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(client) = client::state(call.client) else { return call.forward() };
        let keys = client.programs.as_ref().map(|_| program_keys(&client, call));
        if let (Some(cache), Some(keys)) = (&client.programs, &keys)
            && let Some(executable) = load_kept(&client, call.client, cache, keys)
        {
            call.executable = executable;
            return Ok(());
        }
        // SAFETY: the framework's program, valid during the call.
        atan::probe_if_needed(unsafe { program_bytes(call.program) }, call.client);
        let made = RefCell::new(call);
        let (state, regions) = compile(
            Arc::clone(&client),
            || {
                forward_completed(&mut made.borrow_mut(), |args| {
                    (&mut args.compile_options, &mut args.compile_options_size)
                })
            },
            || {
                let mut args = LoadedExecutableDestroyArgs::new();
                args.executable = std::mem::replace(&mut made.borrow_mut().executable, ptr::null_mut());
                destroy(args);
            },
        )?;
        let executable = made.borrow().executable;
        if let (Some(cache), Some(keys), Some(regions)) = (&client.programs, keys, regions) {
            match executable::to_bytes(executable, &state) {
                Ok(executable) => cache.store(&keys, &KeptProgram { regions, executable }),
                Err(failure) => tracing::debug!("program not kept: {}", failure.into_message()),
            }
        }
        loaded_executable::remember(executable, state);
        Ok(())
    }
}

/// `PJRT_Compile`
pub(crate) struct Compile;

impl Hook for Compile {
    type Args = CompileArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let client = client::state(call.client).or_else(|| topology::client_of(call.topology));
        let Some(client) = client else { return call.forward() };
        let made = RefCell::new(call);
        let (state, _) = compile(
            client,
            || {
                forward_completed(&mut made.borrow_mut(), |args| {
                    (&mut args.compile_options, &mut args.compile_options_size)
                })
            },
            || {
                let mut args = ExecutableDestroyArgs::new();
                args.executable = std::mem::replace(&mut made.borrow_mut().executable, ptr::null_mut());
                destroy(args);
            },
        )?;
        executable::remember(made.borrow().executable, state);
        Ok(())
    }
}

/// `PJRT_Client_Load`
pub(crate) struct ClientLoad;

impl Hook for ClientLoad {
    type Args = ClientLoadArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let state = executable::state(call.executable);
        call.forward()?;
        if let Some(state) = state {
            loaded_executable::remember(call.loaded_executable, state);
        }
        Ok(())
    }
}
