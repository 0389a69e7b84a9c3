//! What became of regions, kept in a folder from one process to the next: their stitched code, or the reason why there
//! is none. An entry is named by the region's key, which holds everything that decides it, this very build included.
//!
//! The same key means the same contents. What is damaged, missing or cannot be read is compiled anew; a cache never fails
//! a program.

use super::summary::RegionSummary;
use crate::cache_folder::CacheFolder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

const DIGEST_HEX: usize = 64;

/// What is known of a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    Code {
        /// The stitched module.
        mlir: String,
        summary: RegionSummary,
    },
    /// Why it stays on the host.
    Refused(String),
}

/// An entry as it is written, below its digest.
#[derive(Serialize, Deserialize)]
struct Stored {
    key: String,
    entry: Entry,
}

/// A folder of entries.
#[derive(Debug)]
pub struct KernelCache {
    folder: CacheFolder,
}

/// Entries of this process's caches that were found, that were not there, that were of no use.
static FOUND: AtomicU64 = AtomicU64::new(0);
static MISSING: AtomicU64 = AtomicU64::new(0);
static DAMAGED: AtomicU64 = AtomicU64::new(0);

/// What all caches of this process were asked for so far, by what became of it.
pub fn kernel_cache_counts() -> serde_json::Value {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    serde_json::json!({ "found": read(&FOUND), "missing": read(&MISSING), "damaged": read(&DAMAGED) })
}

impl KernelCache {
    /// A cache in a folder that may take up to `limit` bytes, where one is given.
    pub fn new(folder: PathBuf, limit: Option<u64>) -> KernelCache {
        KernelCache { folder: CacheFolder::new(folder, limit) }
    }

    /// The entry of a region, if there is a whole one.
    pub(super) fn load(&self, key: &str) -> Option<Entry> {
        let Some(bytes) = self.folder.read(key) else {
            MISSING.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let Some(entry) = decode(&bytes, key) else {
            self.damaged(key);
            return None;
        };
        FOUND.fetch_add(1, Ordering::Relaxed);
        Some(entry)
    }

    /// An entry turned out to be of no use.
    pub(super) fn damaged(&self, key: &str) {
        tracing::warn!("a damaged kernel in the cache is compiled anew: {}", self.folder.path(key).display());
        DAMAGED.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps an entry.
    pub(super) fn store(&self, key: &str, entry: &Entry) {
        self.folder.write(key, &encode(key, entry));
    }
}

fn encode(key: &str, entry: &Entry) -> Vec<u8> {
    let stored = Stored { key: key.to_owned(), entry: entry.clone() };
    // Strings and numbers always serialize; empty bytes would be taken for damage.
    let body = serde_json::to_vec(&stored).unwrap_or_default();
    let mut bytes = super::hexadecimal(&Sha256::digest(&body)).into_bytes();
    bytes.extend(body);
    bytes
}

fn decode(bytes: &[u8], key: &str) -> Option<Entry> {
    let (digest, body) = bytes.split_at_checked(DIGEST_HEX)?;
    if super::hexadecimal(&Sha256::digest(body)).as_bytes() != digest {
        return None;
    }
    let stored: Stored = serde_json::from_slice(body).ok()?;
    (stored.key == key).then_some(stored.entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    fn cache(name: &str, limit: u64) -> KernelCache {
        let folder = std::env::temp_dir().join(format!("act-kernel-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        KernelCache::new(folder, Some(limit))
    }

    fn refused(text: &str) -> Entry {
        Entry::Refused(text.to_owned())
    }

    #[test]
    fn what_is_stored_is_found_by_its_key() {
        let cache = cache("found", 1 << 30);
        cache.store("abcd", &refused("why"));
        assert_eq!(cache.load("abcd"), Some(refused("why")));
        assert_eq!(cache.load("abce"), None);
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let cache = cache("damage", 1 << 30);
        cache.store("abcd", &refused("why"));
        let whole = fs::read(cache.folder.path("abcd")).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(cache.folder.path("abcd"), &damaged).unwrap();
            assert_eq!(cache.load("abcd"), None, "byte {at}");
            fs::write(cache.folder.path("abcd"), &whole[..at]).unwrap();
            assert_eq!(cache.load("abcd"), None, "{at} bytes");
        }
        // Under the name of another region it is damage too.
        fs::write(cache.folder.path("abce"), &whole).unwrap();
        assert_eq!(cache.load("abce"), None);
        cache.store("abcd", &refused("why"));
        assert_eq!(cache.load("abcd"), Some(refused("why")));
    }

    #[test]
    fn the_size_is_bounded_and_what_was_used_last_stays() {
        let cache = cache("bounded", 4_000);
        for n in 0..40 {
            cache.store(&format!("{n:04}"), &refused(&"x".repeat(200)));
            // Files of one instant have no order.
            std::thread::sleep(Duration::from_millis(3));
            assert!(cache.load("0000").is_some(), "used all the time, gone after {n}");
        }
        let total = cache.folder.size();
        assert!(total <= 8_000, "{total} bytes");
        assert_eq!(cache.load("0001"), None);
        assert!(cache.load("0039").is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_failure() {
        let cache = KernelCache::new(PathBuf::from("/proc/nowhere"), None);
        cache.store("abcd", &refused("why"));
        assert_eq!(cache.load("abcd"), None);
    }

    #[test]
    fn writers_at_once_leave_whole_entries() {
        let cache = cache("writers", 1 << 30);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..50 {
                        cache.store("abcd", &refused("why"));
                        let found = cache.load("abcd");
                        assert_eq!(found, Some(refused("why")), "round {n}");
                    }
                });
            }
        });
    }
}
