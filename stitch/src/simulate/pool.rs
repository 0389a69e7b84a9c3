//! Threads of our own that help with parallel loops. Never XLA's: the caller does its share and waits only for helpers
//! that have begun, so that concurrent invocations cannot block each other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// Work that any number of threads may join. The pointer is valid until `close` has returned.
struct Offer {
    work: *const (dyn Fn() + Sync),
    state: Mutex<State>,
    left: Condvar,
}

// SAFETY: the work is `Sync`, and the pointer to it is used only by threads that have entered before the offer is closed;
// closing waits for them.
unsafe impl Send for Offer {}
// SAFETY: as above; everything else is behind a mutex.
unsafe impl Sync for Offer {}

#[derive(Default)]
struct State {
    closed: bool,
    inside: usize,
}

struct Pool {
    queue: Mutex<VecDeque<Arc<Offer>>>,
    filled: Condvar,
    helpers: usize,
}

static POOL: OnceLock<Arc<Pool>> = OnceLock::new();

fn pool() -> &'static Arc<Pool> {
    POOL.get_or_init(|| {
        let helpers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) - 1;
        let pool = Arc::new(Pool { queue: Mutex::default(), filled: Condvar::new(), helpers });
        for k in 0..helpers {
            let shared = Arc::clone(&pool);
            let thread = std::thread::Builder::new().name(format!("act-simulator-{k}"));
            // Where no thread can be had, callers do all of the work.
            let _ = thread.spawn(move || shared.serve());
        }
        pool
    })
}

/// Threads that work on one loop at most, the caller among them.
pub(crate) fn threads() -> usize {
    pool().helpers + 1
}

impl Pool {
    fn serve(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let offer = loop {
                match queue.pop_front() {
                    Some(offer) => break offer,
                    None => queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            offer.join();
        }
    }
}

impl Offer {
    fn join(&self) {
        {
            let mut state = lock(&self.state);
            if state.closed {
                return;
            }
            state.inside += 1;
        }
        // SAFETY: this thread is inside, so `close` has not returned and the work is alive.
        (unsafe { &*self.work })();
        lock(&self.state).inside -= 1;
        self.left.notify_all();
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        while state.inside > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Closes the offer also when the caller's own work unwinds.
struct Closing<'a>(&'a Offer);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock(&pool().queue).retain(|offer| !std::ptr::eq(offer.as_ref(), self.0));
        self.0.close();
    }
}

/// Runs `own` here while up to `helpers` idle threads run `help`, which must end once there is nothing left to do.
pub(crate) fn with_help(helpers: usize, help: &(dyn Fn() + Sync), own: impl FnOnce()) {
    let pool = pool();
    // SAFETY: only the lifetime changes; `Closing` waits for all threads inside before it ends.
    let work =
        unsafe { std::mem::transmute::<*const (dyn Fn() + Sync), *const (dyn Fn() + Sync + 'static)>(help) };
    let offer = Arc::new(Offer { work, state: Mutex::default(), left: Condvar::new() });
    let closing = Closing(&offer);
    let count = helpers.min(pool.helpers);
    lock(&pool.queue).extend((0..count).map(|_| Arc::clone(&offer)));
    (0..count).for_each(|_| pool.filled.notify_one());
    own();
    drop(closing);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_work_is_done_once_from_many_callers() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
                        let work = || {
                            while let at @ ..100 = next.fetch_add(1, Ordering::Relaxed) {
                                sum.fetch_add(at, Ordering::Relaxed);
                            }
                        };
                        with_help(3, &work, work);
                        assert_eq!(sum.into_inner(), 4950);
                    }
                });
            }
        });
    }
}
