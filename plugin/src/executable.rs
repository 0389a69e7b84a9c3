//! `PJRT_Executable_*`: the kernels that an executable owns, its fingerprint, and its way to bytes and
//! back.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Arc, OnceLock};

use pjrt_abi::args::{
    Args, ExecutableDeserializeAndLoadArgs, ExecutableDestroyArgs, ExecutableFingerprintArgs,
    ExecutableSerializeArgs, LoadedExecutableGetExecutableArgs,
};
use pjrt_abi::{Client, Executable, LoadedExecutable, SerializedExecutable};

use crate::client::{self, ClientState};
use crate::cost_analysis::CostProperties;
use crate::envelope::Envelope;
use crate::error::Failure;
use crate::hook::{Call, Hook};
use crate::inner;
use crate::kernel::{self, RegisteredKernel};
use crate::loaded_executable;
use crate::object_table::ObjectTable;
use crate::records::{self, Considered, ExecutableNumber};

/// What we remember of an executable, loaded or not.
#[derive(Debug)]
pub(crate) struct ExecutableState {
    pub(crate) client: Arc<ClientState>,
    /// The kernels that it calls, by key; they live as long as an executable that calls them.
    pub(crate) kernels: BTreeMap<String, Arc<RegisteredKernel>>,
    /// Its place in the records; `None` when it calls no kernel.
    pub(crate) number: Option<ExecutableNumber>,
    /// The regions that were considered for it.
    considered: OnceLock<Considered>,
    fingerprint: OnceLock<String>,
    /// The module's name; empty where nothing asked for it.
    module: String,
    /// What the program costs, once known.
    pub(crate) costs: OnceLock<CostProperties>,
    /// The bytes that it was loaded from. XLA writes out a loaded executable without its code.
    loaded_from: Option<Vec<u8>>,
}

impl ExecutableState {
    pub(crate) fn new(
        client: Arc<ClientState>,
        kernels: BTreeMap<String, Arc<RegisteredKernel>>,
        module: String,
        costs: Option<BTreeMap<String, f64>>,
    ) -> ExecutableState {
        let number = (!kernels.is_empty())
            .then(|| records::executable_made(&module, kernels.keys().cloned().collect()));
        let costs = costs.map(|costs| OnceLock::from(CostProperties::new(costs))).unwrap_or_default();
        ExecutableState {
            client,
            kernels,
            number,
            considered: OnceLock::new(),
            fingerprint: OnceLock::new(),
            module,
            costs,
            loaded_from: None,
        }
    }

    /// Keeps what is recorded of the program's regions for as long as it lives; only the first call counts.
    pub(crate) fn keep_records(&self, considered: Considered) {
        let _ = self.considered.set(considered);
    }

    /// The fingerprint that the inner library gives the program, extended by all that decides what it was
    /// compiled to. It lives as long as the state.
    pub(crate) fn fingerprint(&self, inner: &str) -> &str {
        self.fingerprint.get_or_init(|| {
            let kernels: String = self.kernels.keys().flat_map(|key| [";", key]).collect();
            let text = format!("{inner};{}{kernels}", self.client.fingerprint());
            if let Some(number) = self.number {
                records::executable_fingerprint(number, &text);
            }
            text
        })
    }
}

impl Drop for ExecutableState {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            records::executable_gone(number);
        }
    }
}

static EXECUTABLES: ObjectTable<ExecutableState> = ObjectTable::new();

pub(crate) fn remember(executable: *const Executable, state: Arc<ExecutableState>) {
    EXECUTABLES.insert(executable, state);
}

pub(crate) fn state(executable: *const Executable) -> Option<Arc<ExecutableState>> {
    EXECUTABLES.get(executable)
}

/// A string that the inner library handed out.
///
/// # Safety
/// `data` must point to `size` readable bytes, or be null.
pub(crate) unsafe fn inner_text(data: *const c_char, size: usize) -> String {
    if data.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// `PJRT_Executable_Destroy`
pub(crate) struct Destroy;

impl Hook for Destroy {
    type Args = ExecutableDestroyArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        // Out of the table first: once destroyed, another object may have the address.
        let state = EXECUTABLES.remove(call.executable);
        let outcome = call.forward();
        drop(state);
        outcome
    }
}

/// `PJRT_Executable_Fingerprint`
pub(crate) struct Fingerprint;

impl Hook for Fingerprint {
    type Args = ExecutableFingerprintArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        call.forward()?;
        let Some(state) = state(call.executable) else { return Ok(()) };
        // SAFETY: the inner library's answer.
        let inner = unsafe { inner_text(call.executable_fingerprint, call.executable_fingerprint_size) };
        let text = state.fingerprint(&inner);
        (call.executable_fingerprint, call.executable_fingerprint_size) = (text.as_ptr().cast(), text.len());
        Ok(())
    }
}

/// `PJRT_Executable_Serialize`: the inner library's bytes in our envelope.
pub(crate) struct Serialize;

impl Hook for Serialize {
    type Args = ExecutableSerializeArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(state) = state(call.executable) else { return call.forward() };
        let bytes = match &state.loaded_from {
            Some(bytes) => bytes.clone(),
            None => serialize(call, &state)?,
        };
        let bytes = Box::new(bytes);
        (call.serialized_bytes, call.serialized_bytes_size) = (bytes.as_ptr().cast(), bytes.len());
        call.serialized_executable = Box::into_raw(bytes).cast();
        call.serialized_executable_deleter = Some(delete_serialized);
        Ok(())
    }
}

/// The inner library's bytes, which are freed, in our envelope.
fn serialize(call: &mut Call<ExecutableSerializeArgs>, state: &ExecutableState) -> Result<Vec<u8>, Failure> {
    call.forward()?;
    // SAFETY: the inner library's answer, valid until its deleter is called.
    let inner =
        unsafe { std::slice::from_raw_parts(call.serialized_bytes.cast::<u8>(), call.serialized_bytes_size) };
    let bytes = envelope(inner, state);
    if let Some(deleter) = call.serialized_executable_deleter {
        // SAFETY: called once, and the bytes are not used any more.
        unsafe { deleter(call.serialized_executable) };
    }
    Ok(bytes)
}

/// The inner library's bytes in our envelope.
fn envelope(inner: &[u8], state: &ExecutableState) -> Vec<u8> {
    let kernels =
        state.kernels.iter().map(|(key, kernel)| (key.clone(), kernel.kernel().serialize())).collect();
    let envelope = Envelope {
        origin: state.client.fingerprint().to_owned(),
        module: state.module.clone(),
        // What else could be told of it is in XLA's bytes.
        costs: state
            .costs
            .get()
            .filter(|_| state.number.is_some())
            .map(CostProperties::to_map)
            .unwrap_or_default(),
        inner: inner.to_vec(),
        kernels,
    };
    envelope.to_bytes()
}

/// A program of ours that was just compiled, as bytes.
///
/// # Errors
/// The inner library's.
pub(crate) fn to_bytes(loaded: *mut LoadedExecutable, state: &ExecutableState) -> Result<Vec<u8>, Failure> {
    let mut executable = LoadedExecutableGetExecutableArgs::new();
    executable.loaded_executable = loaded;
    call_inner(&mut executable)?;
    let mut serialized = ExecutableSerializeArgs::new();
    serialized.executable = executable.executable;
    let outcome = call_inner(&mut serialized).map(|()| {
        // SAFETY: the inner library's answer, valid until its deleter is called, once.
        unsafe {
            let inner = std::slice::from_raw_parts(
                serialized.serialized_bytes.cast::<u8>(),
                serialized.serialized_bytes_size,
            );
            let bytes = envelope(inner, state);
            if let Some(deleter) = serialized.serialized_executable_deleter {
                deleter(serialized.serialized_executable);
            }
            bytes
        }
    });
    let mut destroy = ExecutableDestroyArgs::new();
    destroy.executable = executable.executable;
    call_inner(&mut destroy)?;
    outcome
}

/// A program from what [`to_bytes`] or [`Serialize`] made of it, loaded into a client.
///
/// # Errors
/// The bytes are not whole, not from such a client, or the inner library does not take them.
pub(crate) fn from_bytes(
    client: &Arc<ClientState>,
    handle: *mut Client,
    bytes: &[u8],
) -> Result<*mut LoadedExecutable, Failure> {
    load(client, bytes, |inner| {
        let mut args = ExecutableDeserializeAndLoadArgs::new();
        args.client = handle;
        (args.serialized_executable, args.serialized_executable_size) = (inner.as_ptr().cast(), inner.len());
        call_inner(&mut args).map(|()| args.loaded_executable)
    })
}

/// Calls a function of the inner library, whose arguments are filled in.
fn call_inner<A: Args>(args: &mut A) -> Result<(), Failure> {
    let function = inner::get()?.function(A::SLOT)?;
    // SAFETY: the callers above fill in what each function wants, with live objects of the inner library's.
    Failure::check(unsafe { function((&raw mut *args).cast()) })
}

/// Loads an executable in its envelope; `load_inner` does the inner library's part.
fn load(
    client: &Arc<ClientState>,
    bytes: &[u8],
    load_inner: impl FnOnce(&[u8]) -> Result<*mut LoadedExecutable, Failure>,
) -> Result<*mut LoadedExecutable, Failure> {
    let envelope = Envelope::from_bytes(bytes, client.fingerprint())
        .map_err(|error| Failure::invalid_argument(format!("act: {error}")))?;
    let kernels = load_kernels(client, &envelope.kernels)?;
    let loaded = load_inner(&envelope.inner)?;
    let costs = (!kernels.is_empty()).then_some(envelope.costs);
    let mut state = ExecutableState::new(Arc::clone(client), kernels, envelope.module, costs);
    state.loaded_from = Some(bytes.to_vec());
    loaded_executable::remember(loaded, Arc::new(state));
    Ok(loaded)
}

/// Frees what [`Serialize`] handed out.
unsafe extern "C" fn delete_serialized(serialized: *mut SerializedExecutable) {
    // SAFETY: `Serialize` made it from such a box, and the framework calls this once.
    drop(unsafe { Box::from_raw(serialized.cast::<Vec<u8>>()) });
}

/// `PJRT_Executable_DeserializeAndLoad`
pub(crate) struct DeserializeAndLoad;

impl Hook for DeserializeAndLoad {
    type Args = ExecutableDeserializeAndLoadArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(client) = client::state(call.client) else { return call.forward() };
        let given = (call.serialized_executable, call.serialized_executable_size);
        if given.0.is_null() {
            return Err(Failure::invalid_argument("act: no serialized executable given"));
        }
        // SAFETY: the framework says where its bytes are and how many.
        let bytes = unsafe { std::slice::from_raw_parts(given.0.cast::<u8>(), given.1) };
        load(&client, bytes, |inner| {
            call.serialized_executable = inner.as_ptr().cast();
            call.serialized_executable_size = inner.len();
            let outcome = call.forward();
            (call.serialized_executable, call.serialized_executable_size) = given;
            outcome.map(|()| call.loaded_executable)
        })?;
        Ok(())
    }
}

/// The kernels of a serialized executable, ready to run.
fn load_kernels(
    client: &ClientState,
    kernels: &BTreeMap<String, Vec<u8>>,
) -> Result<BTreeMap<String, Arc<RegisteredKernel>>, Failure> {
    let load = |(key, bytes): (&String, &Vec<u8>)| {
        let target = client.target.as_ref().ok_or("the client has no target")?;
        let kernel = target.offload.load_kernel(key, bytes)?;
        Ok((key.clone(), kernel::register(key, kernel)))
    };
    kernels
        .iter()
        .map(load)
        .collect::<Result<_, String>>()
        .map_err(|error| Failure::invalid_argument(format!("act: a kernel of the executable: {error}")))
}
