//! The command line: what it accepts, and how outcomes become output and exit codes. Knows no PJRT.

mod compile;
mod corpus;
mod import;
mod input;
mod isa;
mod outcome;
mod rules;
mod run;
mod targets;
mod verify;

use crate::compiler::{Dumper, TargetCompiler};
use act_generator::{AllocatorChoice, FloatPolicy, Numerics, Options};
use clap::{Args, Parser, Subcommand, ValueEnum};
use outcome::{CliError, Format};
use std::ffi::OsString;
use std::path::PathBuf;

/// Compile kernels for tensor accelerators described in TAIDL, and run them.
#[derive(Parser)]
#[command(name = "act", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the accelerators that come with act.
    Targets {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the rewrite rules and how each is tested, or the rules that are generated for a target.
    Rules {
        /// Show this rule alone, in full; with a target, the rule of this instruction.
        name: Option<String>,
        /// Show what is derived from this target (a name or the path of a .taidl file): a rule for every instruction,
        /// instructions without one, rewrites that are of no use to it.
        #[arg(long)]
        target: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Work on descriptions.
    #[command(subcommand)]
    Isa(isa::IsaCommand),
    /// Compile a kernel in HLO text.
    Compile {
        #[command(flatten)]
        kernel: KernelArgs,
        /// What to print.
        #[arg(long, value_enum, default_value_t = Emit::Asm)]
        emit: Emit,
    },
    /// Collect regions of real programs, and tell what every target makes of them.
    #[command(subcommand)]
    Corpus(corpus::CorpusCommand),
    /// Compile a kernel in HLO text, run it on the oracle and on the compiled simulator, and compare both with the
    /// reference evaluator.
    Run {
        #[command(flatten)]
        kernel: KernelArgs,
        /// Seed of the random inputs.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Check that a mapping in Hex computes what its tensor program does (bolt/HEX.md has the language).
    Verify(verify::VerifyArgs),
}

#[derive(Args)]
struct KernelArgs {
    /// File with an HLO module; `-` reads standard input.
    file: PathBuf,
    /// Name of a target (see `act targets`) or path of a .taidl file.
    #[arg(long, env = "ACT_TARGET")]
    target: String,
    /// What may happen to floating-point results.
    #[arg(long, env = "ACT_NUMERICS", default_value_t = FloatPolicy::Xla)]
    numerics: FloatPolicy,
    /// Which allocator places values on chip.
    #[arg(long, env = "ACT_ALLOC", value_enum, default_value_t = Alloc::Auto)]
    alloc: Alloc,
    /// The simulator takes hazards for faults: reads of bytes never written, loads of what an unfenced store wrote.
    #[arg(long)]
    strict: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Values of `--alloc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Alloc {
    /// Whichever solves the problem at hand soonest.
    Auto,
    /// Always CP-SAT.
    #[value(name = "cpsat")]
    CpSat,
}

/// Stages of compilation that can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The tiled kernels as HLO.
    Hlo,
    /// The selected instructions.
    Pii,
    /// Assembly of every kernel.
    Asm,
    /// The loop program.
    Program,
    /// The stitched MLIR.
    Mlir,
    /// The loop program in the language of the device: assembly, or calls of a kernel language.
    Device,
}

impl KernelArgs {
    fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    fn compiler(&self) -> Result<TargetCompiler, CliError> {
        let alloc = match self.alloc {
            Alloc::Auto => AllocatorChoice::Auto,
            Alloc::CpSat => AllocatorChoice::CpSat,
        };
        let numerics = Numerics { float: self.numerics };
        let options = Options { numerics, alloc, ..Options::default() };
        let dumper = match std::env::var("ACT_DUMP").as_deref() {
            Ok("1") => {
                let folder = std::env::var_os("ACT_DUMP_DIR").unwrap_or_else(|| "./act_dump".into());
                Some(Dumper::new(folder)?)
            }
            _ => None,
        };
        Ok(TargetCompiler::new(&self.target, options, dumper)?.strict(self.strict))
    }
}

/// Parses the command line and does what it says. The exit code is 0 only if all is right: 2 for a command line that
/// makes no sense, 1 for everything else.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output, errors to standard error; nothing can be done when neither works.
            let _ = error.print();
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    let (format, outcome) = match cli.command {
        Command::Targets { json } => {
            let format = if json { Format::Json } else { Format::Text };
            (format, targets::targets())
        }
        Command::Rules { name, target, json } => {
            let format = if json { Format::Json } else { Format::Text };
            let report = match target {
                None => rules::rules(name.as_deref()),
                Some(target) => rules::generated(&target, name.as_deref()),
            };
            (format, report)
        }
        Command::Isa(command) => {
            let format = if command.json() { Format::Json } else { Format::Text };
            (format, command.run())
        }
        Command::Corpus(command) => (Format::Text, command.run()),
        Command::Compile { kernel, emit } => (kernel.format(), compile::compile(&kernel, emit)),
        Command::Run { kernel, seed } => (kernel.format(), run::run(&kernel, seed)),
        Command::Verify(args) => {
            let format = if args.json { Format::Json } else { Format::Text };
            (format, verify::verify(&args))
        }
    };
    outcome::present(format, outcome)
}
