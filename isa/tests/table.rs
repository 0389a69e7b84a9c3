//! The committed table of targets is what the sources say. ACT_BLESS=1 writes it.

use act_isa::{TableError, targets_table};
use std::path::Path;

#[test]
fn the_table_of_targets_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = targets_table(&root.join("tests/targets")).unwrap();
    let file = root.join("TARGETS.md");
    if std::env::var_os("ACT_BLESS").is_some() {
        std::fs::write(&file, &table).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(committed, table, "TARGETS.md is old: run `act isa table`, or this test with ACT_BLESS=1");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = targets_table(Path::new("no/such")).unwrap_err();
    assert!(matches!(error, TableError::Tests { .. }));
    assert!(error.to_string().contains("no/such"));
}

/// The layout of the shipped descriptions is the formatter's.
#[test]
fn the_targets_are_formatted() {
    for (name, text) in act_isa::targets() {
        let formatted = act_isa::syntax::format(text, name).unwrap();
        assert!(formatted == *text, "run `act isa fmt isa/targets/{name}.taidl`");
    }
}
