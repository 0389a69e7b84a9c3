//! `PJRT_Plugin_Initialize` and `PJRT_Client_*`: options, device count, version, and what is remembered of
//! each client.

use std::sync::Arc;

use pjrt_abi::args::{ClientCreateArgs, ClientDestroyArgs, ClientPlatformVersionArgs, PluginInitializeArgs};
use pjrt_abi::layout::CStruct;
use pjrt_abi::{Client, NamedValue, NamedValueUnion, named_value_type};

use crate::build_id::build_id;
use crate::error::Failure;
use crate::hook::{Call, Hook};
use crate::inner;
use crate::object_table::ObjectTable;
use crate::options::{CreateOptions, Options, environment_variable};
use crate::program_cache::ProgramCache;
use crate::target::{self, Target};
use crate::{device, device_target, topology};

/// The inner library's option that says how many devices there are.
const DEVICE_COUNT: &str = "cpu_device_count";

/// What we remember of a client.
#[derive(Debug)]
pub struct ClientState {
    /// Its settings.
    pub options: Options,
    /// The accelerator; `None`: everything runs on the host.
    pub target: Option<Target>,
    /// Where whole programs are kept.
    pub(crate) programs: Option<ProgramCache>,
    /// What `PJRT_Client_PlatformVersion` answers.
    platform_version: String,
}

impl ClientState {
    /// Everything that decides what this client's programs are compiled to: part of fingerprints and of
    /// serialized executables.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.platform_version
    }

    /// The platform version, which lives as long as the client.
    pub(crate) fn platform_version(&self) -> &str {
        &self.platform_version
    }
}

static CLIENTS: ObjectTable<ClientState> = ObjectTable::new();

/// The state of a client of ours.
pub(crate) fn state(client: *const Client) -> Option<Arc<ClientState>> {
    CLIENTS.get(client)
}

/// `PJRT_Plugin_Initialize`: nothing yet, as the library to run on may still be named by an option.
pub(crate) struct PluginInitialize;

impl Hook for PluginInitialize {
    type Args = PluginInitializeArgs;

    fn run(_call: &mut Call<Self::Args>) -> Result<(), Failure> {
        Ok(())
    }
}

/// `PJRT_Client_Create`
pub(crate) struct Create;

impl Hook for Create {
    type Args = ClientCreateArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let given: &[NamedValue] = if call.create_options.is_null() {
            &[]
        } else {
            // SAFETY: the framework says where its options are and how many.
            unsafe { std::slice::from_raw_parts(call.create_options, call.num_options) }
        };
        // SAFETY: the framework's options are as the C header demands.
        let options = unsafe { CreateOptions::read(given, environment_variable) }
            .map_err(|error| Failure::invalid_argument(format!("act: {error}")))?;
        let registered = options.own.target.as_deref().and_then(target::registered);
        let target = match registered {
            Some(target) => Some(target),
            None => device_target::open(&options.own)
                .map_err(|error| Failure::invalid_argument(format!("act: {error}")))?,
        };
        inner::get_for(&options.own)?;
        create_inner(call, &options)?;
        let client = call.client;
        let state = Arc::new(new_state(client, options.own, target));
        device::remember(client, &state);
        topology::remember(client, &state);
        CLIENTS.insert(client, state);
        Ok(())
    }
}

/// Creates the inner library's client, with one device unless the caller wants another number.
fn create_inner(call: &mut Call<ClientCreateArgs>, options: &CreateOptions) -> Result<(), Failure> {
    if options.forwards(DEVICE_COUNT) {
        return forward_with(call, &options.forwarded);
    }
    let one_device = NamedValue {
        struct_size: NamedValue::STRUCT_SIZE,
        name: DEVICE_COUNT.as_ptr().cast(),
        name_size: DEVICE_COUNT.len(),
        r#type: named_value_type::INT64,
        value: NamedValueUnion { int64_value: 1 },
        value_size: 1,
        ..NamedValue::zeroed()
    };
    let with_count: Vec<NamedValue> = options.forwarded.iter().copied().chain([one_device]).collect();
    match forward_with(call, &with_count) {
        Ok(()) => Ok(()),
        // Another backend of XLA may not know this option; then its own default stands.
        Err(failure) => match forward_with(call, &options.forwarded) {
            Ok(()) => {
                tracing::debug!("{DEVICE_COUNT} not set: {}", failure.into_message());
                Ok(())
            }
            Err(second) => {
                drop(failure.into_message());
                Err(second)
            }
        },
    }
}

/// Forwards the call with other options.
fn forward_with(call: &mut Call<ClientCreateArgs>, options: &[NamedValue]) -> Result<(), Failure> {
    let original = (call.create_options, call.num_options);
    (call.create_options, call.num_options) = (options.as_ptr(), options.len());
    let outcome = call.forward();
    (call.create_options, call.num_options) = original;
    outcome
}

fn new_state(client: *mut Client, options: Options, target: Option<Target>) -> ClientState {
    let described = target.as_ref().map_or_else(
        || "host only".to_owned(),
        |target| format!("target {} {}", target.name, target.fingerprint),
    );
    let platform_version = format!(
        "act-pjrt {} build {}; {described}; numerics {:?}; allocator {:?}; on {} {}",
        env!("CARGO_PKG_VERSION"),
        build_id(),
        options.numerics,
        options.allocator,
        inner_platform_version(client),
        inner::loaded().map_or("", |inner| &inner.identity),
    );
    let programs = ProgramCache::of(&options);
    ClientState { options, target, programs, platform_version }
}

/// What the inner library says of its version.
fn inner_platform_version(client: *mut Client) -> String {
    let mut args = ClientPlatformVersionArgs::new();
    args.client = client;
    // SAFETY: the client was just created by the inner library.
    let outcome = inner::get().ok().and_then(|inner| unsafe { inner.api.call(&mut args) });
    match outcome.map(Failure::check) {
        Some(Ok(())) if !args.platform_version.is_null() => {
            // SAFETY: the library says how long its answer is, which lives as long as the client.
            let bytes = unsafe {
                std::slice::from_raw_parts(args.platform_version.cast::<u8>(), args.platform_version_size)
            };
            String::from_utf8_lossy(bytes).into_owned()
        }
        Some(Err(failure)) => failure.into_message(),
        _ => "unknown".to_owned(),
    }
}

/// `PJRT_Client_Destroy`
pub(crate) struct Destroy;

impl Hook for Destroy {
    type Args = ClientDestroyArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let state = CLIENTS.remove(call.client);
        if let Some(state) = &state {
            device::forget(state);
            topology::forget(state);
        }
        // Strings of the state are valid until the client is gone.
        let outcome = call.forward();
        drop(state);
        outcome
    }
}

/// `PJRT_Client_PlatformVersion`
pub(crate) struct PlatformVersion;

impl Hook for PlatformVersion {
    type Args = ClientPlatformVersionArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(state) = state(call.client) else { return call.forward() };
        let text = state.platform_version();
        (call.platform_version, call.platform_version_size) = (text.as_ptr().cast(), text.len());
        Ok(())
    }
}
