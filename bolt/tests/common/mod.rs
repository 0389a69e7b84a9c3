//! Cases of `bolt/cases`, as they are or with a fault put into their text.

#![allow(dead_code, reason = "each test binary uses its part")]

use act_bolt::hex::{Source, check, parse_with};
use act_bolt::{Options, Report, Solver, case::verify};
use std::path::{Path, PathBuf};

/// The folder of the cases.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Z3, as `ci/test` provides it.
pub(crate) fn solver() -> Solver {
    let path = std::env::var_os("ACT_Z3_LIB").expect("ACT_Z3_LIB names libz3.so, as ci/test sets it");
    Solver::open(Path::new(&path)).unwrap()
}

/// A replacement in one of the files; the text must stand there exactly once.
pub(crate) type Edit<'a> = (&'a str, &'a str, &'a str);

/// A case after edits.
pub(crate) fn load(name: &str, edits: &[Edit<'_>]) -> (act_bolt::hex::Case, Source) {
    let read = |file: &str| {
        let mut text = std::fs::read_to_string(folder().join(file)).map_err(|e| format!("{file}: {e}"))?;
        for (of, from, to) in edits.iter().filter(|edit| edit.0 == file) {
            assert_eq!(text.matches(from).count(), 1, "`{from}` stands once in {of}");
            text = text.replacen(from, to, 1);
        }
        Ok(text)
    };
    let text = read(name).unwrap();
    let (case, source) =
        parse_with(name, &text, &read).unwrap_or_else(|(error, source)| panic!("{}", error.render(&source)));
    check(&case).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    (case, source)
}

/// The verdict on a case after edits, with parameters set.
pub(crate) fn judge(
    name: &str,
    edits: &[Edit<'_>],
    settings: &[(&str, i64)],
    solver: Option<&Solver>,
) -> Report {
    let (case, source) = load(name, edits);
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    verify(&case, &source, solver, &Options { settings, ..Options::default() }).unwrap()
}
