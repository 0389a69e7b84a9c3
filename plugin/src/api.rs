//! The function table that frameworks get: our hooks, and in all other slots functions that hand the call
//! on. Which functions are hooked can be read off here; what they do is in the files they come from.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pjrt_abi::layout::CStruct;
use pjrt_abi::{API_MAJOR, API_MINOR, Api, ApiVersion, RawFunction, Slot};

use crate::hook::{Hook, forward, hooked};
use crate::inner::Inner;
use crate::{
    client, compile, cost_analysis, device, error, executable, extensions, loaded_executable, topology,
};

/// The table's address, shared by all threads.
struct Table(*mut Api);

// SAFETY: after creation only the extension pointer changes, through an atomic.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

static TABLE: OnceLock<Table> = OnceLock::new();

/// The table; always the same.
pub(crate) fn table() -> *const Api {
    TABLE.get_or_init(|| Table(Box::into_raw(Box::new(new_table())))).0
}

/// Lets frameworks see the extensions of the inner library, now that it is loaded.
pub(crate) fn publish_extensions(inner: &Inner) {
    let chain = extensions::offered_chain(&inner.api);
    let table = table().cast_mut();
    // SAFETY: the field is a pointer, aligned, and lives for the rest of the process. A framework reads it
    // after a call that loaded the library has returned, or sees the old chain, which is as valid.
    let field = unsafe { AtomicPtr::from_ptr(&raw mut (*table).extension_start) };
    field.store(chain, Ordering::Release);
}

fn new_table() -> Api {
    let mut slots = [None; Slot::COUNT];
    forward_everything(&mut slots);

    slots[Slot::ErrorDestroy.index()] = Some(error::destroy as RawFunction);
    slots[Slot::ErrorMessage.index()] = Some(error::message as RawFunction);
    hook::<error::GetCode>(&mut slots);
    hook::<error::ForEachPayload>(&mut slots);

    hook::<client::PluginInitialize>(&mut slots);
    hook::<client::Create>(&mut slots);
    hook::<client::Destroy>(&mut slots);
    hook::<client::PlatformVersion>(&mut slots);
    hook::<topology::PlatformVersion>(&mut slots);
    hook::<device::Kind>(&mut slots);
    hook::<device::DebugString>(&mut slots);
    hook::<device::ToString>(&mut slots);

    hook::<compile::ClientCompile>(&mut slots);
    hook::<compile::Compile>(&mut slots);
    hook::<compile::ClientLoad>(&mut slots);

    hook::<executable::Destroy>(&mut slots);
    hook::<executable::Fingerprint>(&mut slots);
    hook::<cost_analysis::GetCostAnalysis>(&mut slots);
    hook::<executable::Serialize>(&mut slots);
    hook::<executable::DeserializeAndLoad>(&mut slots);

    hook::<loaded_executable::Destroy>(&mut slots);
    hook::<loaded_executable::GetExecutable>(&mut slots);
    hook::<loaded_executable::Fingerprint>(&mut slots);
    hook::<loaded_executable::Execute>(&mut slots);

    Api {
        struct_size: size_of::<Api>(),
        extension_start: extensions::own_chain(),
        version: ApiVersion {
            struct_size: ApiVersion::STRUCT_SIZE,
            major_version: API_MAJOR,
            minor_version: API_MINOR,
            ..ApiVersion::zeroed()
        },
        slots,
    }
}

/// Puts a hook where it belongs.
fn hook<H: Hook>(slots: &mut [Option<RawFunction>; Slot::COUNT]) {
    use pjrt_abi::args::Args;
    slots[H::Args::SLOT.index()] = Some(hooked::<H> as RawFunction);
}

macro_rules! forward_each {
    ($(($variant:ident, $name:literal, $size:literal),)*) => {
        /// Fills every slot with the function that hands its calls on.
        fn forward_everything(slots: &mut [Option<RawFunction>; Slot::COUNT]) {
            $(slots[Slot::$variant.index()] = Some(forward::<{ Slot::$variant.index() }> as RawFunction);)*
        }
    };
}

pjrt_abi::for_each_slot!(forward_each);
