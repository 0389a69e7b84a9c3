//! `PJRT_DeviceDescription_*`: devices of ours print as `ActDevice` and are of the target's kind.

use std::sync::Arc;

use pjrt_abi::args::{
    ClientDevicesArgs, DeviceDescriptionDebugStringArgs, DeviceDescriptionIdArgs, DeviceDescriptionKindArgs,
    DeviceDescriptionToStringArgs, DeviceGetDescriptionArgs,
};
use pjrt_abi::{Client, Device, DeviceDescription};

use crate::client::ClientState;
use crate::error::Failure;
use crate::hook::{Call, Hook};
use crate::inner;
use crate::object_table::ObjectTable;

/// The kind of a device that has no accelerator.
const HOST_KIND: &str = "act host";

/// What is said of a device.
struct Description {
    /// For instance `ActDevice(id=0)`.
    name: String,
    /// The target's name.
    kind: String,
    client: Arc<ClientState>,
}

static DESCRIPTIONS: ObjectTable<Description> = ObjectTable::new();

/// Remembers the devices of a new client.
pub(crate) fn remember(client: *mut Client, state: &Arc<ClientState>) {
    let Some(inner) = inner::loaded() else { return };
    let mut devices = ClientDevicesArgs::new();
    devices.client = client;
    // SAFETY: the client was just created by the inner library.
    match unsafe { inner.api.call(&mut devices) }.map(Failure::check) {
        Some(Ok(())) if !devices.devices.is_null() => {}
        Some(Err(failure)) => return tracing::warn!("no devices: {}", failure.into_message()),
        _ => return,
    }
    // SAFETY: the library says where the devices are and how many.
    let devices = unsafe { std::slice::from_raw_parts(devices.devices, devices.num_devices) };
    for &device in devices {
        if let Some(description) = description_of(device) {
            remember_description(description, state);
        }
    }
}

fn description_of(device: *mut Device) -> Option<*mut DeviceDescription> {
    let mut args = DeviceGetDescriptionArgs::new();
    args.device = device;
    // SAFETY: the device was just handed out by the inner library.
    let outcome = unsafe { inner::loaded()?.api.call(&mut args) }?;
    match Failure::check(outcome) {
        Ok(()) => Some(args.device_description),
        Err(failure) => {
            tracing::warn!("device without description: {}", failure.into_message());
            None
        }
    }
}

/// Remembers that a description belongs to this client.
pub(crate) fn remember_description(description: *mut DeviceDescription, client: &Arc<ClientState>) {
    let mut args = DeviceDescriptionIdArgs::new();
    args.device_description = description;
    let Some(inner) = inner::loaded() else { return };
    // SAFETY: the description was just handed out by the inner library.
    match unsafe { inner.api.call(&mut args) }.map(Failure::check) {
        Some(Ok(())) => {}
        Some(Err(failure)) => return tracing::warn!("device without id: {}", failure.into_message()),
        None => return,
    }
    let kind = client.target.as_ref().map_or(HOST_KIND, |target| &target.name).to_owned();
    let name = format!("ActDevice(id={})", args.id);
    DESCRIPTIONS.insert(description, Arc::new(Description { name, kind, client: Arc::clone(client) }));
}

/// Forgets the devices of a client that is about to be destroyed.
pub(crate) fn forget(client: &Arc<ClientState>) {
    DESCRIPTIONS.remove_where(|description| Arc::ptr_eq(&description.client, client));
}

// The strings below belong to the table's entry, which stays until the client, and with it the device, is
// destroyed.

/// `PJRT_DeviceDescription_Kind`
pub(crate) struct Kind;

impl Hook for Kind {
    type Args = DeviceDescriptionKindArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(known) = DESCRIPTIONS.get(call.device_description) else { return call.forward() };
        (call.device_kind, call.device_kind_size) = (known.kind.as_ptr().cast(), known.kind.len());
        Ok(())
    }
}

/// `PJRT_DeviceDescription_DebugString`
pub(crate) struct DebugString;

impl Hook for DebugString {
    type Args = DeviceDescriptionDebugStringArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(known) = DESCRIPTIONS.get(call.device_description) else { return call.forward() };
        (call.debug_string, call.debug_string_size) = (known.name.as_ptr().cast(), known.name.len());
        Ok(())
    }
}

/// `PJRT_DeviceDescription_ToString`
pub(crate) struct ToString;

impl Hook for ToString {
    type Args = DeviceDescriptionToStringArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(known) = DESCRIPTIONS.get(call.device_description) else { return call.forward() };
        (call.to_string, call.to_string_size) = (known.name.as_ptr().cast(), known.name.len());
        Ok(())
    }
}
