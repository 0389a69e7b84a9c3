//! Ctrl-C while native code works for seconds. A framework's handler only notes the signal until control is back, so while
//! somebody watches, a handler of ours notes it too and hands it on. Knows nothing of the work that is to end.

use libc::{SA_SIGINFO, SIG_DFL, SIG_IGN, SIGINT, c_int, c_void, sigaction, siginfo_t};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether the signal came while somebody watched.
static SEEN: AtomicBool = AtomicBool::new(false);
/// The framework's handler, and whether it takes three arguments.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
static BEFORE_TAKES_INFO: AtomicBool = AtomicBool::new(false);
static WATCHERS: Mutex<Watchers> = Mutex::new(Watchers { count: 0, before: None });

struct Watchers {
    count: usize,
    /// What is to be put back.
    before: Option<sigaction>,
}

/// Watches for the signal as long as it lives.
pub(crate) struct Interruption(());

impl Interruption {
    /// Begins to watch. What came before the first watcher of several does not count.
    pub(crate) fn watch() -> Interruption {
        let mut watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
        if watchers.count == 0 {
            SEEN.store(false, Ordering::Relaxed);
            watchers.before = install();
        }
        watchers.count += 1;
        Interruption(())
    }

    /// Set once the signal has come.
    pub(crate) fn seen(&self) -> &'static AtomicBool {
        &SEEN
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        let mut watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.count -= 1;
        if watchers.count == 0
            && let Some(before) = watchers.before.take()
            && current().is_some_and(|now| now.sa_sigaction == own())
        {
            // SAFETY: an action that was in force before.
            unsafe { sigaction(SIGINT, &raw const before, std::ptr::null_mut()) };
        }
    }
}

fn own() -> usize {
    note as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize
}

fn current() -> Option<sigaction> {
    let mut action = std::mem::MaybeUninit::<sigaction>::zeroed();
    // SAFETY: asks only; the action is written where it succeeds.
    (unsafe { sigaction(SIGINT, std::ptr::null(), action.as_mut_ptr()) } == 0)
        // SAFETY: written by the call above.
        .then(|| unsafe { action.assume_init() })
}

/// Puts our handler before the one there is. Without one the signal ends the process, or nobody wants it.
fn install() -> Option<sigaction> {
    let before = current().filter(|action| ![SIG_DFL, SIG_IGN, own()].contains(&action.sa_sigaction))?;
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    BEFORE_TAKES_INFO.store(before.sa_flags & SA_SIGINFO != 0, Ordering::Relaxed);
    let mut action = before;
    action.sa_sigaction = own();
    action.sa_flags |= SA_SIGINFO;
    // SAFETY: `note` may be called at any time from any thread: it touches atomics, and the handler before it was in force.
    (unsafe { sigaction(SIGINT, &raw const action, std::ptr::null_mut()) } == 0).then_some(before)
}

extern "C" fn note(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    SEEN.store(true, Ordering::Relaxed);
    let before = BEFORE.load(Ordering::Relaxed);
    if BEFORE_TAKES_INFO.load(Ordering::Relaxed) {
        type WithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: the address and the form of a handler that was in force, stored before ours was.
        let before: WithInfo = unsafe { std::mem::transmute::<usize, WithInfo>(before) };
        before(signal, info, context);
    } else {
        type Plain = extern "C" fn(c_int);
        // SAFETY: as above.
        let before: Plain = unsafe { std::mem::transmute::<usize, Plain>(before) };
        before(signal);
    }
}
