//! The rules that are generated from descriptions: small descriptions with one instruction that computes, kernels that it
//! must compute and neighbours that it must not. What is compiled is run on the oracle and compared with the reference
//! evaluator.

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod attributes;
mod constants;
mod sizes;
mod slots;

use act_generator::{Compiled, Options};
use act_hlo::random::Values;
use act_isa::Isa;
use common::{compile, names, run};
use std::fmt::Write;

/// What becomes of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// So many executions of the instruction that is looked at.
    Uses(usize),
    Refused,
}
use Outcome::{Refused, Uses};

/// The names of sizes that transfers use, outermost first.
const SIZES: [&str; 4] = ["m", "n", "p", "q"];

/// A buffer named by its element type and rank, with dense loads and stores of any sizes up to `extent`.
fn memory(elem: &str, rank: usize, extent: u64) -> String {
    let width = elem.parse::<act_hlo::ElemType>().unwrap_or_else(|e| panic!("{elem}: {e}")).bytes();
    let lens = &SIZES[..rank];
    let sizes = lens.join(", ");
    let alpha = lens.iter().map(|s| format!("{s}: 1..{extent}")).collect::<Vec<_>>().join(", ");
    let betas = (0..rank).map(|d| format!("r{d}")).collect::<Vec<_>>().join(", ");
    let slot = lens.iter().enumerate().map(|(d, s)| format!("r{d} :+ {s}")).collect::<Vec<_>>().join(", ");
    let bytes = format!("{} * {width}", lens.join(" * "));
    let wide = if width == 1 { sizes.clone() } else { format!("{sizes}, {width}") };
    let name = format!("{elem}_{rank}");
    let extents = vec![extent.to_string(); rank].join(", ");
    let mut text = String::new();
    let _ = write!(
        text,
        "buffer {name}: {elem}[{extents} | ]
instr load_{name} alpha({alpha}) beta(addr, {betas}) {{
  in  d0[addr :+ {bytes}]
  out {name}[{slot}]
  cost 10
  computation {{
    x = u8[{bytes}] parameter(0)
    r = u8[{wide}] reshape(x)
    ROOT y = {elem}[{sizes}] bitcast-convert(r)
  }}
}}
instr store_{name} alpha({alpha}) beta({betas}, addr) {{
  in  {name}[{slot}]
  out d0[addr :+ {bytes}]
  cost 10
  computation {{
    x = {elem}[{sizes}] parameter(0)
    r = u8[{wide}] bitcast-convert(x)
    ROOT y = u8[{bytes}] reshape(r)
  }}
}}
"
    );
    text
}

/// A description with these buffers, each an element type and a rank, and these instructions.
fn description(buffers: &[(&str, usize)], instrs: &str) -> Isa {
    let memories: String = buffers.iter().map(|(elem, rank)| memory(elem, *rank, 64)).collect();
    parse(&format!("{memories}{instrs}"))
}

fn parse(items: &str) -> Isa {
    let text = format!("isa small\nhbm d0: 1 GiB\n{items}");
    Isa::parse(&text, "small.taidl").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Compiles, and runs what came out on values that are exact in every type.
fn outcome(isa: &Isa, hlo: &str) -> Result<Compiled, String> {
    let compiled = compile(isa, hlo, &Options::default()).map_err(|error| error.to_string())?;
    for (seed, values) in [(1, Values::Small), (2, Values::Full)] {
        let difference = run(isa, hlo, &compiled, values, seed);
        assert!(difference.within_roundings(), "{difference}\n{hlo}\n{:?}", names(isa, &compiled));
    }
    Ok(compiled)
}

/// What is otherwise than expected: kernels as the text between the braces, with what becomes of them, counting the
/// executions of instruction `of`.
fn faults(isa: &Isa, of: &str, kernels: &[(&str, Outcome)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (body, expected) in kernels {
        let hlo = format!("{COMBINERS}ENTRY kernel {{ {body} }}");
        let got = match outcome(isa, &hlo) {
            Ok(compiled) => Uses(names(isa, &compiled).iter().filter(|n| **n == of).count()),
            Err(reason) if *expected == Refused => {
                assert!(reason.contains("no instruction"), "{reason}\n{body}");
                Refused
            }
            Err(reason) => {
                faults.push(format!("{of}: {body}\n  is refused: {reason}"));
                continue;
            }
        };
        if got != *expected {
            faults.push(format!("{of}: {body}\n  {got:?} instead of {expected:?}"));
        }
    }
    faults
}

/// A description, the instruction that is looked at, and kernels.
type Case<'a> = (&'a Isa, &'a str, &'a [(&'a str, Outcome)]);

fn check(cases: &[Case<'_>]) {
    let faults: Vec<String> = cases.iter().flat_map(|(isa, of, kernels)| faults(isa, of, kernels)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

const COMBINERS: &str = "plus { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
most { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] maximum(a, b) }
";
