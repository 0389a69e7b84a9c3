//! The command `act`.

use std::process::ExitCode;

fn main() -> ExitCode {
    act_pjrt::cli::main()
}
