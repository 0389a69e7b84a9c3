//! Targets: the accelerators that a client can compile for, by name. It knows nothing of how a description
//! becomes a backend. Besides those that come from descriptions, a target may be registered here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use act_hlo::proto::HloModule;

use crate::compile::CompileContext;
use crate::kernel::Kernel;
use crate::records::RegionRecord;

/// What offloading did to a module.
#[derive(Default)]
pub struct OffloadReport {
    /// Whether the module was edited.
    pub changed: bool,
    /// Every region considered, offloaded or not.
    pub regions: Vec<RegionRecord>,
    /// The kernels that the module now calls, by key. Equal keys mean equal kernels.
    pub kernels: Vec<(String, Box<dyn Kernel>)>,
    /// What one run of all calls in the module costs on the device, each call counted once, by what is counted:
    /// instructions, bytes, cycles.
    pub costs: BTreeMap<String, f64>,
    /// Why the program must not run: a kernel was found to be wrong.
    pub failure: Option<String>,
}

/// Moves regions of a program to an accelerator.
pub trait Offload: Send + Sync {
    /// Replaces regions of `module` by custom calls of `act_kernel`, whose attributes are
    /// `{abi = 1 : i64, key = "<key>"}`. What it cannot do with certainty it leaves to the host. A panic
    /// leaves the whole module to the host.
    fn offload(&self, module: &mut HloModule, context: &CompileContext) -> OffloadReport;

    /// A kernel from what [`Kernel::serialize`] made of it, in this very build and for this very target.
    ///
    /// # Errors
    /// Why the bytes are not such a kernel.
    fn load_kernel(&self, key: &str, bytes: &[u8]) -> Result<Box<dyn Kernel>, String>;
}

/// A target, ready to compile for.
#[derive(Clone)]
pub struct Target {
    /// The description's name, which is what `device_kind` says.
    pub name: String,
    /// Identifies the description's contents: equal fingerprints, equal descriptions.
    pub fingerprint: String,
    /// Its backend.
    pub offload: Arc<dyn Offload>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { name, fingerprint, .. } = self;
        f.debug_struct("Target").field("name", name).field("fingerprint", fingerprint).finish_non_exhaustive()
    }
}

static TARGETS: RwLock<BTreeMap<String, Target>> = RwLock::new(BTreeMap::new());

/// Makes a target available to clients that are created from now on, in place of an earlier one of its name.
pub fn register(target: Target) {
    let mut targets = TARGETS.write().unwrap_or_else(PoisonError::into_inner);
    targets.insert(target.name.clone(), target);
}

/// The registered target of this name.
pub(crate) fn registered(name: &str) -> Option<Target> {
    let targets = TARGETS.read().unwrap_or_else(PoisonError::into_inner);
    targets.get(name).cloned()
}
