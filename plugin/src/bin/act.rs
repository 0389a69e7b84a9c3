//! The command `act`.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let written = writeln!(std::io::stdout(), "act {}", env!("CARGO_PKG_VERSION"));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
