//! `PJRT_TopologyDescription_*`: a topology of one of our clients has that client's version.

use std::sync::Arc;

use pjrt_abi::args::{
    ClientTopologyDescriptionArgs, TopologyDescriptionGetDeviceDescriptionsArgs,
    TopologyDescriptionPlatformVersionArgs,
};
use pjrt_abi::{Client, TopologyDescription};

use crate::client::ClientState;
use crate::device;
use crate::error::Failure;
use crate::hook::{Call, Hook};
use crate::inner;
use crate::object_table::ObjectTable;

/// The client that a topology belongs to.
static TOPOLOGIES: ObjectTable<ClientState> = ObjectTable::new();

/// The client that a topology belongs to.
pub(crate) fn client_of(topology: *const TopologyDescription) -> Option<Arc<ClientState>> {
    TOPOLOGIES.get(topology)
}

/// Remembers whose the client's topology and its device descriptions are. A library without topologies
/// never gets asked about one.
pub(crate) fn remember(client: *mut Client, state: &Arc<ClientState>) {
    let Some(inner) = inner::loaded() else { return };
    let mut topology = ClientTopologyDescriptionArgs::new();
    topology.client = client;
    // SAFETY: the client was just created by the inner library.
    match unsafe { inner.api.call(&mut topology) }.map(Failure::check) {
        Some(Ok(())) => {}
        Some(Err(failure)) => return tracing::debug!("no topology: {}", failure.into_message()),
        None => return,
    }
    TOPOLOGIES.insert(topology.topology, Arc::clone(state));
    let mut descriptions = TopologyDescriptionGetDeviceDescriptionsArgs::new();
    descriptions.topology = topology.topology;
    // SAFETY: the topology was just handed out by the inner library.
    match unsafe { inner.api.call(&mut descriptions) }.map(Failure::check) {
        Some(Ok(())) if !descriptions.descriptions.is_null() => {
            // SAFETY: the library says where the descriptions are and how many.
            let descriptions = unsafe {
                std::slice::from_raw_parts(descriptions.descriptions, descriptions.num_descriptions)
            };
            for &description in descriptions {
                device::remember_description(description, state);
            }
        }
        Some(Err(failure)) => tracing::debug!("no device descriptions: {}", failure.into_message()),
        _ => {}
    }
}

/// Forgets the topology of a client that is about to be destroyed.
pub(crate) fn forget(client: &Arc<ClientState>) {
    TOPOLOGIES.remove_where(|owner| std::ptr::eq(owner, &**client));
}

/// `PJRT_TopologyDescription_PlatformVersion`
pub(crate) struct PlatformVersion;

impl Hook for PlatformVersion {
    type Args = TopologyDescriptionPlatformVersionArgs;

    fn run(call: &mut Call<Self::Args>) -> Result<(), Failure> {
        let Some(client) = client_of(call.topology) else { return call.forward() };
        // The client lives as long as its topology, and its state as long as the client.
        let text = client.platform_version();
        (call.platform_version, call.platform_version_size) = (text.as_ptr().cast(), text.len());
        Ok(())
    }
}
