//! A folder of files named by keys, shared by processes without locks: a file appears as a whole or not at all, what was
//! used longest ago goes first where there are too many, and what cannot be read or written is no failure. It knows
//! nothing of what is in the files; who reads them must notice damage.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Bytes that a folder may take, unless another limit is given.
const DEFAULT_LIMIT: u64 = 1 << 30;

/// After this many bytes written the folder is measured: other processes write into it too.
const MEASURE_EVERY: u64 = 16 << 20;

/// To what part of its limit a folder that is too large is cut.
const CUT_TO: (u64, u64) = (3, 4);

/// A folder of files.
#[derive(Debug)]
pub(crate) struct CacheFolder {
    folder: PathBuf,
    /// Bytes.
    limit: u64,
    /// Bytes written since the folder was last measured.
    unmeasured: AtomicU64,
}

impl CacheFolder {
    /// One that may take up to `limit` bytes, where one is given.
    pub(crate) fn new(folder: PathBuf, limit: Option<u64>) -> CacheFolder {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        // Measured at the first file written.
        let unmeasured = AtomicU64::new(MEASURE_EVERY);
        CacheFolder { folder, limit, unmeasured }
    }

    /// Where a key's file is. Two letters of the key make a folder, so that none gets too many files.
    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.folder.join(&key[..2.min(key.len())]).join(key)
    }

    /// A key's file, if there is one.
    pub(crate) fn read(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        // What was used last goes last; where that cannot be noted, age alone decides.
        let used = fs::File::options().append(true).open(&path);
        let _ = used.and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps a file, and removes those that were used longest ago where there are too many.
    pub(crate) fn write(&self, key: &str, bytes: &[u8]) {
        if let Err(error) = write_whole(&self.path(key), bytes) {
            tracing::info!("not kept in {}: {error}", self.folder.display());
            return;
        }
        let unmeasured = self.unmeasured.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if unmeasured >= MEASURE_EVERY.min(self.limit) {
            self.unmeasured.store(0, Ordering::Relaxed);
            self.cut();
        }
    }

    /// Bytes of all files.
    #[cfg(test)]
    pub(crate) fn size(&self) -> u64 {
        files_below(&self.folder).iter().map(|(_, size, _)| size).sum()
    }

    fn cut(&self) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = files_below(&self.folder);
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        if total <= self.limit {
            return;
        }
        entries.sort();
        let wanted = self.limit / CUT_TO.1 * CUT_TO.0;
        for (_, size, path) in entries {
            if total <= wanted {
                break;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(path);
            total -= size;
        }
    }
}

/// Files two levels down, with the time of their last use and their size; what cannot be looked at is left out.
fn files_below(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let list = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    list(folder)
        .flat_map(|below| list(&below.path()).collect::<Vec<_>>())
        .filter_map(|file| {
            let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((metadata.modified().ok()?, metadata.len(), file.path()))
        })
        .collect()
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    // A name that no other writer has; threads of one process may store the same key at once.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let partial = folder.join(format!(".{}.{number}", std::process::id()));
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}
