//! Judges cases given as files: `cargo run -p act-bolt --example verify -- bolt/cases/pooling_max.hex T=8`.

use act_bolt::{Options, Solver, verify_case};
use std::io::Write;
use std::path::Path;

fn main() {
    let solver = std::env::var_os("ACT_Z3_LIB").and_then(|path| Solver::open(Path::new(&path)).ok());
    let mut options = Options::default();
    let mut files = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some((name, value)) => options.settings.push((name.to_owned(), value.parse().unwrap_or(0))),
            None => files.push(argument),
        }
    }
    let mut out = std::io::stdout();
    for file in files {
        let result = verify_case(Path::new(&file), solver.as_ref(), &options);
        if let (Ok(report), Some(folder)) = (&result, std::env::var_os("ACT_DUMP")) {
            for (number, proof) in report.proofs.iter().enumerate() {
                let name = Path::new(&folder).join(format!("{}.{number:03}.smt2", report.name));
                if let Err(error) = std::fs::write(&name, format!("{}(check-sat)\n", proof.script)) {
                    writeln!(out, "cannot write {}: {error}", name.display()).ok();
                }
            }
        }
        let written = match result {
            Ok(report) => write!(out, "{report}"),
            Err(error) => writeln!(out, "{error}"),
        };
        if written.is_err() {
            return;
        }
    }
}
