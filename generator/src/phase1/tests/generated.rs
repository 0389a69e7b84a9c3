//! Generated files of this crate: what a test finds out about the rules. ACT_BLESS=1 writes them.

use std::path::Path;

/// The committed file of `generator/rules/` is what was found.
pub(super) fn compare(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules").join(file);
    if std::env::var_os("ACT_BLESS").is_some() {
        std::fs::write(&path, found).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<&str> = found.lines().filter(|line| !committed.lines().any(|c| c == *line)).collect();
    assert!(committed == found, "generator/rules/{file} is old: run this test with ACT_BLESS=1\n{changed:?}");
}
