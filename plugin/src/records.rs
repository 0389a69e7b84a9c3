//! What happened, as data: the regions considered at compile time and the device's counters at run time, of the last
//! execution and of every executable. Kept for the Python side; bounded, so that a long-lived process does not grow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use serde::Serialize;

use crate::object_table::lock;

/// How many regions are kept; older ones are dropped first.
const MAX_REGIONS: usize = 10_000;

/// How many executables are kept; those made first are dropped first.
const MAX_EXECUTABLES: usize = 1_000;

/// What one run of a kernel did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunRecord {
    /// Executed instructions by name.
    pub instructions: BTreeMap<String, u64>,
    /// Bytes that instructions moved, by source and then destination memory.
    pub bytes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Bytes that the host copied for the device (packing).
    pub host_copy_bytes: u64,
    /// All bytes moved, the host's copies among them.
    pub bytes_moved: u64,
    /// Modelled cycles, where the target has a cost model.
    pub cycles: Option<u64>,
    /// The same by the unit (queue, engine) that instructions occupy.
    pub unit_cycles: BTreeMap<String, u64>,
    /// The most bytes of each buffer in use, over all runs.
    pub peak_bytes: BTreeMap<String, u64>,
}

impl RunRecord {
    fn add(&mut self, other: &RunRecord) {
        let add = |sums: &mut BTreeMap<String, u64>, terms: &BTreeMap<String, u64>| {
            for (name, term) in terms {
                let sum = sums.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*term);
            }
        };
        add(&mut self.instructions, &other.instructions);
        add(&mut self.unit_cycles, &other.unit_cycles);
        for (from, to) in &other.bytes {
            add(self.bytes.entry(from.clone()).or_default(), to);
        }
        self.host_copy_bytes = self.host_copy_bytes.saturating_add(other.host_copy_bytes);
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        if let Some(cycles) = other.cycles {
            let sum = self.cycles.get_or_insert_default();
            *sum = sum.saturating_add(cycles);
        }
        for (buffer, bytes) in &other.peak_bytes {
            let peak = self.peak_bytes.entry(buffer.clone()).or_default();
            *peak = (*peak).max(*bytes);
        }
    }
}

/// What happened on the device, summed up by kernel.
#[derive(Clone, Debug, Default, Serialize)]
struct Runs {
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

impl Runs {
    fn add(&mut self, key: &str, run: &RunRecord) {
        self.total.add(run);
        let kernel = self.kernels.entry(key.to_owned()).or_default();
        kernel.runs += 1;
        kernel.sum.add(run);
    }
}

/// A compiled program that calls kernels.
#[derive(Clone, Debug, Default, Serialize)]
struct ExecutableRecord {
    /// The number that the program has in this process.
    executable: u64,
    /// The module's name; empty for programs loaded from bytes.
    module: String,
    /// As `fingerprint` of the executable in JAX tells it; absent until it was asked for.
    fingerprint: Option<String>,
    executions: u64,
    #[serde(flatten)]
    runs: Runs,
    #[serde(skip)]
    keys: BTreeSet<String>,
}

/// Names an executable in these records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExecutableNumber(u64);

#[derive(Debug, Default)]
struct Records {
    /// The execution that most recently began; `None` before the first one that calls a kernel.
    last: Option<Runs>,
    executables: BTreeMap<ExecutableNumber, ExecutableRecord>,
    next: u64,
    /// Executables whose executions are under way, in the order in which they began.
    under_way: Vec<ExecutableNumber>,
}

static RECORDS: Mutex<Records> =
    Mutex::new(Records { last: None, executables: BTreeMap::new(), next: 0, under_way: Vec::new() });

/// A region of a program that was considered for the device.
pub type RegionRecord = serde_json::Value;

/// As text, which takes a fraction of the memory.
static REGIONS: Mutex<VecDeque<Box<str>>> = Mutex::new(VecDeque::new());

/// A program that calls these kernels was compiled or loaded.
pub(crate) fn executable_made(module: &str, keys: BTreeSet<String>) -> ExecutableNumber {
    let mut records = lock(&RECORDS);
    let number = ExecutableNumber(records.next);
    records.next += 1;
    if records.executables.len() == MAX_EXECUTABLES {
        records.executables.pop_first();
    }
    let record = ExecutableRecord {
        executable: number.0,
        module: module.to_owned(),
        keys,
        ..ExecutableRecord::default()
    };
    records.executables.insert(number, record);
    number
}

/// The fingerprint that the framework was told.
pub(crate) fn executable_fingerprint(number: ExecutableNumber, fingerprint: &str) {
    if let Some(record) = lock(&RECORDS).executables.get_mut(&number) {
        record.fingerprint.get_or_insert_with(|| fingerprint.to_owned());
    }
}

/// An execution under way; dropped when the devices have finished.
#[derive(Debug)]
pub(crate) struct Execution(ExecutableNumber);

impl Drop for Execution {
    fn drop(&mut self) {
        let mut records = lock(&RECORDS);
        if let Some(at) = records.under_way.iter().position(|&number| number == self.0) {
            records.under_way.remove(at);
        }
    }
}

/// An execution that calls kernels begins: the counters of the last execution start anew. Executions at the same time
/// are counted together there.
pub(crate) fn begin_execution(number: ExecutableNumber) -> Execution {
    let mut records = lock(&RECORDS);
    records.last = Some(Runs::default());
    records.under_way.push(number);
    if let Some(record) = records.executables.get_mut(&number) {
        record.executions += 1;
    }
    Execution(number)
}

/// A kernel has run. It counts for the executable under way that calls it; when several do, for the one that began
/// last.
pub(crate) fn kernel_ran(key: &str, run: &RunRecord) {
    let mut records = lock(&RECORDS);
    records.last.get_or_insert_default().add(key, run);
    let Records { executables, under_way, .. } = &mut *records;
    let calls = |number: &&ExecutableNumber| executables.get(number).is_some_and(|e| e.keys.contains(key));
    let caller = under_way.iter().rev().find(calls).copied();
    if let Some(executable) = caller.and_then(|number| executables.get_mut(&number)) {
        executable.runs.add(key, run);
    }
}

/// The counters of the last execution as JSON.
pub fn last_execution_json() -> Option<String> {
    let records = lock(&RECORDS);
    serde_json::to_string(records.last.as_ref()?).ok()
}

/// The executables that call kernels, with the counters of all their executions, as a JSON list.
pub fn executables_json() -> String {
    let records = lock(&RECORDS);
    let list: Vec<&ExecutableRecord> = records.executables.values().collect();
    serde_json::to_string(&list).unwrap_or_else(|_| "[]".to_owned())
}

/// A region was considered.
pub fn region_considered(region: RegionRecord) {
    let text = region.to_string().into_boxed_str();
    let mut regions = lock(&REGIONS);
    if regions.len() == MAX_REGIONS {
        regions.pop_front();
    }
    regions.push_back(text);
}

/// All regions considered so far, in order, as a JSON list.
pub fn regions_json() -> String {
    let regions = lock(&REGIONS);
    let regions: Vec<&str> = regions.iter().map(|region| &**region).collect();
    format!("[{}]", regions.join(","))
}
