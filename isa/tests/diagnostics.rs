//! What is said about faulty descriptions, word for word: `diagnostics/NAME.taidl` beside `NAME.expected`, which
//! ACT_BLESS=1 writes.

use act_isa::Isa;
use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "taidl"))
        .collect();
    files.sort();
    files
}

#[test]
fn faults_are_told_as_expected() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 20, "{}", cases.len());
    for path in cases {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let said = match Isa::parse_with_warnings(&text, &name) {
            Ok((_, warnings)) => format!("{warnings}\n"),
            Err(diagnostics) => format!("{diagnostics}\n"),
        };
        let file = path.with_extension("expected");
        if std::env::var_os("ACT_BLESS").is_some() {
            std::fs::write(&file, &said).unwrap();
        }
        if std::fs::read_to_string(&file).unwrap_or_default() != said {
            wrong.push(format!("{name}:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "ACT_BLESS=1 accepts what is said now:\n\n{}", wrong.join("\n"));
}
