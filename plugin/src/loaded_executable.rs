//! `PJRT_LoadedExecutable_*`: execution, and what is remembered of a loaded executable.

use std::ffi::c_void;
use std::sync::Arc;

use pjrt_abi::args::{
    EventAwaitArgs, EventDestroyArgs, EventOnReadyArgs, ExecuteOptions, LoadedExecutableDestroyArgs,
    LoadedExecutableExecuteArgs, LoadedExecutableFingerprintArgs, LoadedExecutableGetExecutableArgs,
};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{Error, Event, LoadedExecutable};

use crate::error::Failure;
use crate::executable::{self, ExecutableState, inner_text};
use crate::hook::{Call, Hook, guard};
use crate::object_table::ObjectTable;
use crate::{inner, records};

static LOADED: ObjectTable<ExecutableState> = ObjectTable::new();

pub(crate) fn remember(executable: *const LoadedExecutable, state: Arc<ExecutableState>) {
    LOADED.insert(executable, state);
}

pub(crate) fn state(executable: *const LoadedExecutable) -> Option<Arc<ExecutableState>> {
    LOADED.get(executable)
}

/// `PJRT_LoadedExecutable_Destroy`
pub(crate) struct Destroy;

impl Hook for Destroy {
    type Args = LoadedExecutableDestroyArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        // Out of the table first: once destroyed, another object may have the address.
        let state = LOADED.remove(call.executable);
        let outcome = call.forward();
        drop(state);
        outcome
    }
}

/// `PJRT_LoadedExecutable_GetExecutable`: the executable shares the state.
pub(crate) struct GetExecutable;

impl Hook for GetExecutable {
    type Args = LoadedExecutableGetExecutableArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let state = LOADED.get(call.loaded_executable);
        call.forward()?;
        if let Some(state) = state {
            executable::remember(call.executable, state);
        }
        Ok(())
    }
}

/// `PJRT_LoadedExecutable_Fingerprint`
pub(crate) struct Fingerprint;

impl Hook for Fingerprint {
    type Args = LoadedExecutableFingerprintArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        call.forward()?;
        let Some(state) = LOADED.get(call.executable) else { return Ok(()) };
        // SAFETY: the inner library's answer.
        let inner = unsafe { inner_text(call.executable_fingerprint, call.executable_fingerprint_size) };
        let text = state.fingerprint(&inner);
        (call.executable_fingerprint, call.executable_fingerprint_size) = (text.as_ptr().cast(), text.len());
        Ok(())
    }
}

/// `PJRT_LoadedExecutable_Execute`
pub(crate) struct Execute;

impl Hook for Execute {
    type Args = LoadedExecutableExecuteArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let given = call.options;
        let mut whole = ExecuteOptions::new();
        if let Some(short) = short_options(given) {
            // SAFETY: both are plain data, and the caller's has fewer bytes.
            unsafe {
                let to = (&raw mut whole).cast::<u8>();
                std::ptr::copy_nonoverlapping(given.cast::<u8>(), to, short);
            }
            whole.struct_size = ExecuteOptions::STRUCT_SIZE;
            call.options = &raw mut whole;
        }
        let outcome = match LOADED.get(call.executable) {
            Some(state) if !state.kernels.is_empty() => execute_with_kernels(call, &state),
            _ => call.forward(),
        };
        call.options = given;
        outcome
    }
}

/// The size of options that an older caller made; `None` for whole ones.
fn short_options(options: *const ExecuteOptions) -> Option<usize> {
    if options.is_null() {
        return None;
    }
    // SAFETY: every struct of the interface begins with its size.
    let size = unsafe { options.cast::<usize>().read() };
    (size < ExecuteOptions::STRUCT_SIZE).then_some(size)
}

/// Executes, and keeps the kernels until the devices have finished: the framework may destroy the
/// executable while it runs.
fn execute_with_kernels(
    call: &mut Call<LoadedExecutableExecuteArgs>,
    state: &Arc<ExecutableState>,
) -> Result<(), Failure> {
    let execution = state.number.map(|number| Arc::new(records::begin_execution(number)));
    if !call.device_complete_events.is_null() {
        call.forward()?;
        // SAFETY: the framework made room for this many events, which the call has filled in.
        let events = unsafe { std::slice::from_raw_parts(call.device_complete_events, call.num_devices) };
        for &event in events {
            keep_until_ready(event, state, execution.clone(), false);
        }
        return Ok(());
    }
    let mut events = vec![std::ptr::null_mut(); call.num_devices];
    call.device_complete_events = events.as_mut_ptr();
    let outcome = call.forward();
    call.device_complete_events = std::ptr::null_mut();
    outcome?;
    for event in events {
        keep_until_ready(event, state, execution.clone(), true);
    }
    Ok(())
}

/// What is kept until an event is ready.
struct Kept {
    state: Arc<ExecutableState>,
    /// Over when the last device has finished.
    execution: Option<Arc<records::Execution>>,
    /// To be destroyed when it is ready, if it is ours.
    own_event: Option<*mut Event>,
}

/// Keeps `state` until `event` is ready, and if the event is ours, destroys it then.
fn keep_until_ready(
    event: *mut Event,
    state: &Arc<ExecutableState>,
    execution: Option<Arc<records::Execution>>,
    own: bool,
) {
    let Some(inner) = inner::loaded() else { return };
    let kept = Box::new(Kept { state: Arc::clone(state), execution, own_event: own.then_some(event) });
    let mut args = EventOnReadyArgs::new();
    args.event = event;
    args.callback = Some(ready);
    args.user_arg = Box::into_raw(kept).cast();
    // SAFETY: the event was just made; the callback takes the box over.
    let outcome = unsafe { inner.api.call(&mut args) };
    if let Some(Ok(())) = outcome.map(Failure::check) {
        return;
    }
    // The callback will not come: wait here.
    let mut wait = EventAwaitArgs::new();
    wait.event = event;
    // SAFETY: the event is live.
    if let Some(Err(failure)) = unsafe { inner.api.call(&mut wait) }.map(Failure::check) {
        tracing::debug!("execution failed: {}", failure.into_message());
    }
    // SAFETY: not handed over, so ours still.
    unsafe { ready(std::ptr::null_mut(), args.user_arg) };
}

/// The devices have finished.
unsafe extern "C" fn ready(error: *mut Error, user_arg: *mut c_void) {
    guard("PJRT_Event_OnReady", || {
        // SAFETY: `keep_until_ready` made it from such a box, and an event is ready once.
        let kept = unsafe { Box::from_raw(user_arg.cast::<Kept>()) };
        if let Err(failure) = Failure::check(error) {
            tracing::debug!("execution failed: {}", failure.into_message());
        }
        if let (Some(event), Some(inner)) = (kept.own_event, inner::loaded()) {
            let mut args = EventDestroyArgs::new();
            args.event = event;
            // SAFETY: ours, and ready.
            unsafe { inner.api.call(&mut args) };
        }
        drop(kept.execution);
        drop(kept.state);
        Ok(())
    });
}
