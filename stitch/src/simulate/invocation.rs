//! One run of a kernel: its machines, and the function by which generated code shares a loop out to threads.

use super::float_mode::FlushDenormals;
use super::independence::LiveIn;
use super::layout::BufferLayout;
use super::machine::{Machine, word};
use super::pool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Blocks of iterations per thread: more than one, so that a thread that is late leaves less to wait for.
const BLOCKS_PER_THREAD: u64 = 4;

/// `act_body_k(machine, variables, first, end)`.
pub(crate) type Body = unsafe extern "C" fn(*mut u64, *const i64, i64, i64);

/// A parallel loop of a compiled kernel.
pub(crate) struct Region {
    pub(crate) body: Body,
    pub(crate) trip: u64,
    pub(crate) live_in: Vec<LiveIn>,
}

/// What the machines of a kernel need.
pub(crate) struct MachinePlan {
    pub(crate) layouts: Vec<BufferLayout>,
    pub(crate) workspace: u64,
    pub(crate) segments: usize,
    pub(crate) regions: Vec<Region>,
    /// Machines of earlier runs.
    spare: Mutex<Vec<Machine>>,
}

impl MachinePlan {
    pub(crate) fn new(
        layouts: Vec<BufferLayout>,
        workspace: u64,
        segments: usize,
        regions: Vec<Region>,
    ) -> MachinePlan {
        MachinePlan { layouts, workspace, segments, regions, spare: Mutex::default() }
    }

    /// A machine, its buffers in any state.
    pub(crate) fn machine(&self) -> Machine {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Machine::new(&self.layouts, self.workspace, self.segments))
    }

    /// Keeps the memory of a machine for later runs.
    pub(crate) fn put_back(&self, machine: Machine) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(machine);
    }
}

/// What generated code hands back to [`parallel`].
pub(crate) struct Invocation<'a> {
    pub(crate) plan: &'a MachinePlan,
    /// Addresses of the segments.
    pub(crate) segments: &'a [u64],
}

/// A pointer that threads of one loop share.
#[derive(Clone, Copy)]
struct Shared<T>(*const T);

// SAFETY: what it points to is read only, by `parallel`'s helpers, while the caller of `parallel` keeps it alive.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *const T {
        self.0
    }
}

/// Runs all iterations of parallel loop `number` for the thread that owns the machine at `words`.
///
/// # Safety
/// Called by generated code only: `words` is a machine attached to an [`Invocation`] that lives, `variables` points to
/// the variables of the loops around.
pub(crate) unsafe extern "C" fn parallel(words: *mut u64, number: u64, variables: *const i64) {
    // SAFETY: `Machine::attach` stored the address of the invocation, which outlives the run.
    let invocation = unsafe { &*(*words.add(word::INVOCATION) as *const Invocation<'_>) };
    let Some(region) = invocation.plan.regions.get(number as usize) else { return };
    let threads = pool::threads() as u64;
    let blocks = (threads * BLOCKS_PER_THREAD).min(region.trip);
    let bound = |block: u64| (u128::from(region.trip) * u128::from(block) / u128::from(blocks.max(1))) as i64;
    let next = AtomicU64::new(0);
    // The last block is the owner's, after its other ones: what it leaves on chip is what one thread would leave.
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|block| block + 1 < blocks);
    let variables = Shared(variables);
    let owner = Shared(words.cast_const());
    let help = || {
        let Some(mut block) = take() else { return };
        let mut machine = invocation.plan.machine();
        machine.attach(std::ptr::from_ref(invocation) as u64, invocation.segments);
        for part in &region.live_in {
            // SAFETY: the owner's buffers have the same layout and live on; no iteration writes this part.
            unsafe { copy_part(part, invocation.plan, owner.get(), &mut machine) };
        }
        {
            let _mode = FlushDenormals::enter();
            loop {
                // SAFETY: as for the kernel's entry, see `Executable::execute`; iterations were proved independent.
                unsafe { (region.body)(machine.pointer(), variables.get(), bound(block), bound(block + 1)) };
                match take() {
                    Some(other) => block = other,
                    None => break,
                }
            }
        }
        invocation.plan.put_back(machine);
    };
    pool::with_help(blocks.saturating_sub(1) as usize, &help, || {
        while let Some(block) = take() {
            // SAFETY: as above, on the owner's machine.
            unsafe { (region.body)(words, variables.get(), bound(block), bound(block + 1)) };
        }
        if blocks > 0 {
            // SAFETY: as above.
            unsafe { (region.body)(words, variables.get(), bound(blocks - 1), bound(blocks)) };
        }
    });
}

/// Copies part of a buffer of the machine at `owner`.
///
/// # Safety
/// `owner` is a machine of this plan, and nothing writes the part meanwhile.
unsafe fn copy_part(part: &LiveIn, plan: &MachinePlan, owner: *const u64, machine: &mut Machine) {
    let layout = &plan.layouts[part.buffer];
    // SAFETY: the words of the buffers follow those of the segments.
    let from = unsafe { *owner.add(word::BEFORE + plan.segments + part.buffer) } as *const u8;
    let to = machine.buffer(part.buffer);
    let unit = layout.dims[part.dims.len()..].iter().map(|&d| (0, d));
    let dims: Vec<(u64, u64)> = part.dims.iter().copied().chain(unit).collect();
    if dims.iter().any(|(low, high)| low >= high) {
        return;
    }
    let width = layout.elem.bytes();
    let Some((&(first, end), outer)) = dims.split_last() else { return };
    let mut index: Vec<u64> = outer.iter().map(|d| d.0).collect();
    loop {
        let row: u64 = index.iter().zip(&layout.strides).map(|(&i, &s)| i * s as u64).sum();
        let (at, bytes) = ((row + first * width) as usize, ((end - first) * width) as usize);
        // SAFETY: the part lies within the used box of the layout, which both blocks have; they are two allocations.
        unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), bytes) };
        let Some(d) = (0..outer.len()).rev().find(|&d| index[d] + 1 < outer[d].1) else { return };
        index[d] += 1;
        for (i, dim) in index[d + 1..].iter_mut().zip(&outer[d + 1..]) {
            *i = dim.0;
        }
    }
}
