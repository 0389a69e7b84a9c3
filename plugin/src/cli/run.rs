//! `act run`: the compiled kernel on random inputs, on the oracle and on the compiled simulator, against the reference
//! evaluator.

use super::outcome::{CliError, Report};
use super::{KernelArgs, compile, input};
use crate::compiler::counters_of;
use act_hlo::compare::{Difference, compare};
use act_hlo::random::{SplitMix64, Values, random_literal};
use act_hlo::{Literal, eval};
use act_isa::Oracle;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Instant;

/// Operands and results together that a run may hold, in bytes: they are made three times over, and the reference
/// evaluator is slow.
const MOST_BYTES: u64 = 1 << 30;

/// Compiles, executes three ways and compares.
///
/// # Errors
/// Bad input, or no code for the kernel on the target.
pub(super) fn run(args: &KernelArgs, seed: u64) -> Result<Report, CliError> {
    let compiler = args.compiler()?;
    let kernel = input::read(&args.file)?;
    let start = Instant::now();
    let region = compiler.compile(&kernel.graph, &kernel.operands, &kernel.results)?;
    let mut value = compile::describe(&region, start.elapsed().as_secs_f64());
    compiler.take_dump_failure().map_or(Ok(()), Err)?;

    let ids = kernel.graph.params().iter().chain(kernel.graph.roots());
    let bytes = ids.fold(0u64, |sum, &id| sum.saturating_add(kernel.graph.shape(id).bytes()));
    if bytes > MOST_BYTES {
        return Err(CliError::TooLarge { bytes, most: MOST_BYTES });
    }
    let mut rng = SplitMix64::new(seed);
    let inputs: Vec<Literal> = kernel
        .graph
        .params()
        .iter()
        .map(|&id| random_literal(&mut rng, kernel.graph.shape(id), Values::Unit))
        .collect();
    let expected = eval(&kernel.graph, &inputs).map_err(|error| CliError::Reference(error.to_string()))?;
    let operands: Vec<&[u8]> = inputs.iter().map(Literal::bytes).collect();
    let isa = compiler.isa();
    let mut text = String::new();
    let mut success = true;

    let mut by_oracle = poisoned(&expected);
    let oracle = Oracle::new(isa).run(&region.code.program, &operands, &mut by_oracle);
    let mut by_simulator = poisoned(&expected);
    let mut segments: Vec<&mut [u8]> = by_simulator.iter_mut().map(Vec::as_mut_slice).collect();
    let simulator = region.executable.run(&operands, &mut segments);
    for (name, outcome, results) in [
        ("oracle", oracle.map_err(|fault| fault.to_string()), &by_oracle),
        ("simulator", simulator.map_err(|fault| fault.to_string()), &by_simulator),
    ] {
        let verdict = match outcome {
            Err(fault) => Err(fault),
            Ok(counters) => {
                value[format!("{name}_instructions")] = json!(counters.instructions);
                value["bytes_moved"] = json!(counters.bytes);
                differences(&expected, results)
            }
        };
        // Writing to a String cannot fail.
        let _ = match &verdict {
            Ok(difference) => writeln!(text, "{name:<10} agrees with the reference: {difference}"),
            Err(reason) => writeln!(text, "{name:<10} WRONG: {reason}"),
        };
        success &= verdict.is_ok();
        value[name] = match verdict {
            Ok(difference) => json!({ "agrees": true, "difference": difference }),
            Err(reason) => json!({ "agrees": false, "reason": reason }),
        };
    }
    let agree = by_oracle == by_simulator;
    value["oracle_equals_simulator"] = Value::Bool(agree);
    if !agree {
        text.push_str("the oracle and the simulator disagree bit for bit\n");
        success = false;
    }
    for (name, count) in counters_of(isa, &region.code.program.body).instructions {
        let _ = writeln!(text, "{count:>10} {name}");
    }
    let _ = writeln!(text, "{:>10} modelled cycles", region.code.cost);
    Ok(Report { text, json: value, success })
}

/// Result segments full of a pattern, so that a byte that nobody writes shows.
fn poisoned(expected: &[Literal]) -> Vec<Vec<u8>> {
    expected.iter().map(|literal| vec![0xA5; literal.bytes().len()]).collect()
}

/// How far results are from the expected ones, in words; an error when they are too far. Integers must agree bit for
/// bit; floats may differ by what the numerics policy permits: roundings of their own type.
fn differences(expected: &[Literal], results: &[Vec<u8>]) -> Result<String, String> {
    let mut worst = Difference::default();
    for (k, (want, bytes)) in expected.iter().zip(results).enumerate() {
        let got = Literal::from_bytes(want.shape().clone(), bytes.clone()).map_err(|e| e.to_string())?;
        let difference = compare(want, &got);
        if !difference.within_roundings() {
            return Err(format!("result {k} differs: {difference}"));
        }
        worst = worst.max(difference);
    }
    Ok(worst.to_string())
}
