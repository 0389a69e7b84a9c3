//! Golden kernels: every file of `filetests/` is compiled for the targets that its header names, run on the oracle and
//! on the compiled simulator, and compared with the reference evaluator, once per allocator. The header also says which
//! targets must refuse it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a header expects of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Ok,
    Refused,
    /// A refusal is as good as right numbers: what is tested is that there are no wrong ones.
    Either,
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let entries = std::fs::read_dir(folder).expect("the folder is part of the crate");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "hlo"));
    files.sort();
    files
}

/// Pairs of target and expectation from lines such as `// gemmini: ok`.
fn header(text: &str) -> Vec<(String, Expected)> {
    let comments = text.lines().map_while(|line| line.strip_prefix("// "));
    comments
        .filter_map(|line| {
            let (target, expected) = line.split_once(": ")?;
            let expected = match expected {
                "ok" => Expected::Ok,
                "refused" => Expected::Refused,
                "refused or ok" => Expected::Either,
                _ => return None,
            };
            Some((target.to_owned(), expected))
        })
        .collect()
}

/// Runs all files with one allocator and returns what is wrong.
fn failures(allocator: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut cases = 0;
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let expectations = header(&text);
        assert!(!expectations.is_empty(), "{} names no target", file.display());
        for (target, expected) in expectations {
            cases += 1;
            let output = Command::new(env!("CARGO_BIN_EXE_act"))
                .arg("run")
                .arg(&file)
                .args(["--target", &target, "--alloc", allocator, "--json"])
                .output()
                .expect("the command runs");
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let status = json["status"].as_str().unwrap_or("no answer");
            let right = match expected {
                Expected::Ok => status == "ok",
                Expected::Refused => status == "refused",
                Expected::Either => status == "ok" || status == "refused",
            };
            let forced = allocator == "auto" || status != "ok" || json["allocators"][0] == "cp-sat";
            if !right || !forced || output.status.success() != (status == "ok") {
                wrong.push(format!("{} on {target} with {allocator}: {json:#}", file.display()));
            }
        }
    }
    assert!(cases >= 18, "only {cases} cases were found");
    wrong
}

#[test]
fn kernels_are_right_or_refused() {
    let wrong = failures("auto");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn kernels_are_right_or_refused_with_the_constraint_solver() {
    let wrong = failures("cpsat");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
