//! What happened, as data: the regions considered at compile time and the device's counters at run time.
//! Kept for the Python side; bounded, so that a long-lived process does not grow.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use serde::Serialize;

use crate::object_table::lock;

/// How many regions are kept; older ones are dropped first.
const MAX_REGIONS: usize = 10_000;

/// What one run of a kernel did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Executed instructions by name.
    pub instructions: BTreeMap<String, u64>,
    /// Bytes that went to and from the device.
    pub bytes_moved: u64,
    /// Modelled cycles, where the target has a cost model.
    pub cycles: Option<u64>,
}

impl RunRecord {
    fn add(&mut self, other: &RunRecord) {
        for (instruction, count) in &other.instructions {
            *self.instructions.entry(instruction.clone()).or_default() += count;
        }
        self.bytes_moved += other.bytes_moved;
        if let Some(cycles) = other.cycles {
            *self.cycles.get_or_insert_default() += cycles;
        }
    }
}

/// What the last execution did on the device, summed up by kernel.
#[derive(Clone, Debug, Default, Serialize)]
struct ExecutionRecord {
    /// By kernel key.
    kernels: BTreeMap<String, KernelRuns>,
    /// All kernels together.
    total: RunRecord,
}

#[derive(Clone, Debug, Default, Serialize)]
struct KernelRuns {
    runs: u64,
    #[serde(flatten)]
    sum: RunRecord,
}

/// The execution that most recently began; `None` before the first one that calls a kernel.
static LAST_EXECUTION: Mutex<Option<ExecutionRecord>> = Mutex::new(None);

/// A region of a program that was considered for the device.
pub type RegionRecord = serde_json::Value;

static REGIONS: Mutex<VecDeque<RegionRecord>> = Mutex::new(VecDeque::new());

/// An execution that calls kernels begins: counting starts anew. Executions at the same time are counted
/// together.
pub(crate) fn begin_execution() {
    *lock(&LAST_EXECUTION) = Some(ExecutionRecord::default());
}

/// A kernel has run.
pub(crate) fn kernel_ran(key: &str, run: &RunRecord) {
    let mut last = lock(&LAST_EXECUTION);
    let execution = last.get_or_insert_default();
    execution.total.add(run);
    let kernel = execution.kernels.entry(key.to_owned()).or_default();
    kernel.runs += 1;
    kernel.sum.add(run);
}

/// The counters of the last execution as JSON.
pub fn last_execution_json() -> Option<String> {
    let last = lock(&LAST_EXECUTION);
    serde_json::to_string(last.as_ref()?).ok()
}

/// A region was considered.
pub fn region_considered(region: RegionRecord) {
    let mut regions = lock(&REGIONS);
    if regions.len() == MAX_REGIONS {
        regions.pop_front();
    }
    regions.push_back(region);
}

/// All regions considered so far, in order, as a JSON list.
pub fn regions_json() -> String {
    let regions = lock(&REGIONS);
    serde_json::to_string(&*regions).unwrap_or_else(|_| "[]".to_owned())
}
