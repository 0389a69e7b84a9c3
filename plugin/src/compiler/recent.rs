//! What became of regions, kept in memory: the code of those that were asked for last, and of all that programs still
//! hold. A process that compiles new programs forever does not grow by the code of those that are gone.

use super::{RegionError, RunnableRegion};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// How many regions' code is kept for programs to come. Code takes up to a megabyte or so.
const MOST_CODE: usize = 32;

/// How many refusals are kept. They are short, and took as long to find.
const MOST_REFUSALS: usize = 4_096;

pub(super) type Outcome = Result<Arc<RunnableRegion>, RegionError>;

/// Outcomes by the region's key.
#[derive(Default)]
pub(super) struct Recent {
    code: Latest<Arc<RunnableRegion>>,
    refusals: Latest<RegionError>,
    /// Code that may be held elsewhere.
    held: BTreeMap<String, Weak<RunnableRegion>>,
}

impl Recent {
    pub(super) fn get(&mut self, key: &str) -> Option<Outcome> {
        if let Some(code) = self.code.get(key) {
            return Some(Ok(code));
        }
        if let Some(code) = self.held.get(key).and_then(Weak::upgrade) {
            self.code.insert(key, Arc::clone(&code), MOST_CODE);
            return Some(Ok(code));
        }
        self.refusals.get(key).map(Err)
    }

    /// Keeps an outcome, unless there is one already; gives the one that is kept.
    pub(super) fn insert(&mut self, key: &str, outcome: Outcome) -> Outcome {
        if let Some(known) = self.get(key) {
            return known;
        }
        match &outcome {
            Ok(code) => {
                self.held.retain(|_, code| code.strong_count() > 0);
                self.held.insert(key.to_owned(), Arc::downgrade(code));
                self.code.insert(key, Arc::clone(code), MOST_CODE);
            }
            Err(reason) => self.refusals.insert(key, reason.clone(), MOST_REFUSALS),
        }
        outcome
    }
}

/// A bounded map that loses what was asked for longest ago.
struct Latest<T> {
    /// With the time of the last use.
    entries: BTreeMap<String, (u64, T)>,
    now: u64,
}

impl<T> Default for Latest<T> {
    fn default() -> Latest<T> {
        Latest { entries: BTreeMap::new(), now: 0 }
    }
}

impl<T: Clone> Latest<T> {
    fn get(&mut self, key: &str) -> Option<T> {
        let (used, value) = self.entries.get_mut(key)?;
        self.now += 1;
        *used = self.now;
        Some(value.clone())
    }

    fn insert(&mut self, key: &str, value: T, most: usize) {
        self.now += 1;
        self.entries.insert(key.to_owned(), (self.now, value));
        if self.entries.len() > most {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_last_stays() {
        let mut latest = Latest::default();
        for n in 0..10 {
            latest.insert(&n.to_string(), n, 3);
            assert_eq!(latest.get("0"), Some(0), "asked for all the time, gone after {n}");
        }
        assert_eq!(latest.entries.keys().collect::<Vec<_>>(), ["0", "8", "9"]);
    }

    #[test]
    fn refusals_are_bounded_and_the_first_outcome_stays() {
        let mut recent = Recent::default();
        let refused = |text: &str| Err(RegionError::Recorded(text.to_owned()));
        for n in 0..=MOST_REFUSALS {
            assert!(recent.insert(&n.to_string(), refused("why")).is_err());
        }
        assert_eq!(recent.refusals.entries.len(), MOST_REFUSALS);
        assert!(recent.get("0").is_none());
        let again = recent.insert("7", refused("another")).map(|_| ()).unwrap_err();
        assert_eq!(again.to_string(), "why");
    }
}
