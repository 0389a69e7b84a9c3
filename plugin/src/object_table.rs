//! Side tables: what we know of an object of the inner library, by its address. An entry must be taken out
//! before the object is destroyed, or a later object at the same address would inherit it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Locks a mutex whose data stay consistent even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of the objects of one kind.
pub(crate) struct ObjectTable<T> {
    entries: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> ObjectTable<T> {
    pub(crate) const fn new() -> ObjectTable<T> {
        ObjectTable { entries: RwLock::new(BTreeMap::new()) }
    }

    /// Remembers `entry` for the object at this address, in place of any earlier one.
    pub(crate) fn insert<O>(&self, object: *const O, entry: Arc<T>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(object as usize, entry);
    }

    pub(crate) fn get<O>(&self, object: *const O) -> Option<Arc<T>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&(object as usize)).cloned()
    }

    pub(crate) fn remove<O>(&self, object: *const O) -> Option<Arc<T>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&(object as usize))
    }

    /// Forgets every object for whose entry `dead` holds.
    pub(crate) fn remove_where(&self, dead: impl Fn(&T) -> bool) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| !dead(entry));
    }
}
