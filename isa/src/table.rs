//! The table of targets, `isa/TARGETS.md`: what each description holds and how many tests look at it. Counts, so that
//! nobody has to keep them; knows where tests lie by their files' names alone.

use crate::model::Isa;
use crate::targets::{TargetError, load_target, targets};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("cannot count the tests in {folder}: {error}; give the folder with the tests of the targets")]
    Tests { folder: PathBuf, error: io::Error },
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// The table in Markdown. `tests` is the folder with the tests of the targets: a test of target T stands in a file or
/// folder called `T` or `T_..`, or names "T" itself.
///
/// # Errors
/// The folder cannot be read, or a description does not load.
pub fn targets_table(tests: &Path) -> Result<String, TableError> {
    let found =
        tests_below(tests, None).map_err(|error| TableError::Tests { folder: tests.to_owned(), error })?;
    let of = |name: &str| {
        let quoted = format!("\"{name}\"");
        found.iter().filter(|t| t.owner == Some(name) || t.text.contains(&quoted)).count()
    };
    let mut out = String::from(
        "# Targets\n\nWritten by `act isa table`. Lines of a description are counted without blank lines and \
         comments; tests are the functions\nmarked `#[test]` in `isa/tests/targets` that stand in a file or folder \
         of the target's name, or name it themselves: most go\nthrough every instruction of a group.\n\n\
         | target | buffers | element types | instructions | lines | tests |\n|---|---|---|---|---|---|\n",
    );
    for (name, text) in targets() {
        let isa = load_target(name)?;
        let buffers: Vec<&str> = isa.buffers.iter().map(|b| b.name.as_str()).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| [`{name}`](targets/{name}.taidl) | {} | {} | {} | {} | {} |",
            buffers.join(", "),
            element_types(&isa).join(", "),
            isa.instrs.len(),
            code_lines(text),
            of(name),
        );
    }
    let _ = writeln!(out, "\n{} tests stand there in all; the others go through every target.", found.len());
    Ok(out)
}

/// Types of buffers and of values inside semantics, but for the bytes of main memory and truth values.
fn element_types(isa: &Isa) -> Vec<&'static str> {
    let mut types: BTreeSet<act_hlo::ElemType> = isa.buffers.iter().map(|b| b.elem).collect();
    for instr in &isa.instrs {
        types.extend(instr.computation.stmts.iter().map(|s| s.elem));
        if let Some(structured) = &instr.structured {
            structured.for_each_stmt(&mut |s| {
                types.insert(s.elem);
            });
        }
    }
    let bytes = isa.buffers.iter().any(|b| b.elem == act_hlo::ElemType::U8);
    let shown =
        |e: &act_hlo::ElemType| *e != act_hlo::ElemType::Pred && (bytes || *e != act_hlo::ElemType::U8);
    types.into_iter().filter(shown).map(act_hlo::ElemType::name).collect()
}

fn code_lines(text: &str) -> usize {
    let code = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with('#')
    };
    text.lines().filter(code).count()
}

struct TestFunction {
    /// The target whose file it stands in.
    owner: Option<&'static str>,
    text: String,
}

/// The target in whose name a file or folder is called: `gemmini_plus_..` is not gemmini's.
fn owner(path: &Path) -> Option<&'static str> {
    let stem = path.file_stem()?.to_string_lossy();
    let owns =
        |name: &str| stem.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    targets().iter().map(|(name, _)| *name).filter(|name| owns(name)).max_by_key(|name| name.len())
}

fn tests_below(folder: &Path, of: Option<&'static str>) -> io::Result<Vec<TestFunction>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let owner = of.or_else(|| owner(&path));
        if path.is_dir() {
            found.append(&mut tests_below(&path, owner)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let functions = text.split("#[test]\n").skip(1);
            found.extend(functions.map(|text| TestFunction { owner, text: text.to_owned() }));
        }
    }
    Ok(found)
}
