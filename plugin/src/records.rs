//! What happened, as data: the regions considered at compile time and the device's counters at run time, of the last
//! execution and of every executable. Kept for the Python side, as long as the programs that they are about and a
//! while longer; a process that makes and drops programs does not grow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use serde::Serialize;

use crate::object_table::lock;

/// How many regions of programs that are gone are kept; those whose programs went first are dropped first.
const MAX_GONE_REGIONS: usize = 256;

/// How many executables that are gone are kept; those that went first are dropped first.
const MAX_GONE_EXECUTABLES: usize = 64;

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
    /// Cycles of all instructions, one after the other.
    pub cycles: Option<u64>,
    /// Cycles by the model that the code was ranked by, which may know of queues and of units that work side by side.
    pub modelled_cycles: Option<u64>,
    /// `cycles` by the unit (queue, engine) that instructions occupy.
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
        for (sum, term) in
            [(&mut self.cycles, other.cycles), (&mut self.modelled_cycles, other.modelled_cycles)]
        {
            if let Some(cycles) = term {
                *sum = Some(sum.unwrap_or_default().saturating_add(cycles));
            }
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
    /// Executables that are no more, in the order in which they went.
    gone: VecDeque<ExecutableNumber>,
    /// Executables whose executions are under way, in the order in which they began.
    under_way: Vec<ExecutableNumber>,
}

static RECORDS: Mutex<Records> = Mutex::new(Records {
    last: None,
    executables: BTreeMap::new(),
    next: 0,
    gone: VecDeque::new(),
    under_way: Vec::new(),
});

/// A region of a program that was considered for the device.
pub type RegionRecord = serde_json::Value;

#[derive(Debug, Default)]
struct Regions {
    /// As text, which takes a fraction of the memory.
    records: BTreeMap<u64, Box<str>>,
    next: u64,
    /// Those whose programs are no more, in the order in which they went.
    gone: VecDeque<u64>,
}

static REGIONS: Mutex<Regions> =
    Mutex::new(Regions { records: BTreeMap::new(), next: 0, gone: VecDeque::new() });

/// The regions that were considered for one program, in the records for as long as this lives.
#[derive(Debug, Default)]
pub struct Considered(Vec<u64>);

impl Considered {
    /// Another region was considered.
    pub fn add(&mut self, region: &RegionRecord) {
        let text = region.to_string().into_boxed_str();
        let mut regions = lock(&REGIONS);
        let number = regions.next;
        regions.next += 1;
        regions.records.insert(number, text);
        self.0.push(number);
    }
}

impl Drop for Considered {
    fn drop(&mut self) {
        let mut regions = lock(&REGIONS);
        regions.gone.extend(self.0.iter());
        while regions.gone.len() > MAX_GONE_REGIONS {
            let oldest = regions.gone.pop_front();
            oldest.and_then(|number| regions.records.remove(&number));
        }
    }
}

/// A program that calls these kernels was compiled or loaded.
pub(crate) fn executable_made(module: &str, keys: BTreeSet<String>) -> ExecutableNumber {
    let mut records = lock(&RECORDS);
    let number = ExecutableNumber(records.next);
    records.next += 1;
    let record = ExecutableRecord {
        executable: number.0,
        module: module.to_owned(),
        keys,
        ..ExecutableRecord::default()
    };
    records.executables.insert(number, record);
    number
}

/// A program that was made is no more.
pub(crate) fn executable_gone(number: ExecutableNumber) {
    let mut records = lock(&RECORDS);
    records.gone.push_back(number);
    while records.gone.len() > MAX_GONE_EXECUTABLES {
        let oldest = records.gone.pop_front();
        oldest.and_then(|number| records.executables.remove(&number));
    }
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

/// All regions in the records, in the order in which they were considered, as a JSON list.
pub fn regions_json() -> String {
    let regions = lock(&REGIONS);
    let regions: Vec<&str> = regions.records.values().map(|region| &**region).collect();
    format!("[{}]", regions.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn numbers_with(mark: &str) -> Vec<u64> {
        let all: Vec<RegionRecord> = serde_json::from_str(&regions_json()).unwrap();
        all.iter().filter(|region| region["mark"] == mark).map(|r| r["n"].as_u64().unwrap()).collect()
    }

    #[test]
    fn regions_stay_with_their_program_and_a_while_longer() {
        let mut living = Considered::default();
        living.add(&json!({ "mark": "living", "n": 0 }));
        let gone = 3 * MAX_GONE_REGIONS as u64;
        for n in 0..gone {
            Considered::default().add(&json!({ "mark": "gone", "n": n }));
        }
        assert_eq!(numbers_with("living"), [0]);
        let kept = numbers_with("gone");
        assert!(kept.len() <= MAX_GONE_REGIONS);
        // Other tests of this process may have dropped regions since.
        assert!(kept.iter().rev().take(4).eq(&[gone - 1, gone - 2, gone - 3, gone - 4]));
        drop(living);
        assert_eq!(numbers_with("living"), [0]);
    }

    #[test]
    fn executables_stay_while_they_live_and_a_while_longer() {
        let living = executable_made("living", BTreeSet::new());
        for _ in 0..3 * MAX_GONE_EXECUTABLES {
            executable_gone(executable_made("gone", BTreeSet::new()));
        }
        let kept: Vec<serde_json::Value> = serde_json::from_str(&executables_json()).unwrap();
        let of = |module: &str| kept.iter().filter(|entry| entry["module"] == module).count();
        assert_eq!(of("living"), 1);
        assert!((1..=MAX_GONE_EXECUTABLES).contains(&of("gone")));
        executable_gone(living);
    }
}
