//! Which kernels every target takes: a table of kernels by targets. What is compiled is run on the oracle and compared
//! with the reference evaluator, at shapes of whole tiles and at ragged ones; what is refused names the operator that is
//! lacking.

#[path = "../common/mod.rs"]
mod common;
mod kernels;
mod table;

use act_generator::Options;
use act_hlo::random::Values;
use act_isa::{Isa, load_target};
use common::{compile, names, run};
use kernels::{Numbers, kernels};
use table::{Column, TABLE};

/// How many instructions, or why not. Panics where the code computes something else than the kernel.
fn outcome(isa: &Isa, hlo: &str, d: &Numbers) -> Result<usize, String> {
    let compiled = compile(isa, hlo, &Options::default()).map_err(|error| error.to_string())?;
    for seed in 0..2 {
        let values = if d.float() { Values::Unit } else { Values::Full };
        let difference = run(isa, hlo, &compiled, values, seed);
        assert!(difference.within_roundings(), "{}: {difference}\n{hlo}", isa.name);
    }
    Ok(names(isa, &compiled).len())
}

/// What is wrong with a column.
fn faults(column: &Column) -> Vec<String> {
    let isa = load_target(column.target).unwrap_or_else(|e| panic!("{e}"));
    let d = &column.numbers;
    let kernels = kernels(d);
    let text = |name: &str| {
        let found = kernels.iter().find(|(n, _)| *n == name).and_then(|(_, hlo)| hlo.as_deref());
        found.unwrap_or_else(|| panic!("{name} is no kernel for {}", d.elem))
    };
    let mut faults = Vec::new();
    let at = format!("{} {} {:?}", column.target, d.elem, (d.m, d.k, d.n));
    for name in column.compiled {
        if let Err(reason) = outcome(&isa, text(name), d) {
            faults.push(format!("{at}: {name} is refused: {reason}"));
        }
    }
    for (name, operator) in column.refused {
        match outcome(&isa, text(name), d) {
            Ok(count) => faults.push(format!("{at}: {name} is compiled to {count} instructions")),
            Err(reason) if !reason.contains(operator) => {
                faults.push(format!("{at}: {name} is refused for another reason than {operator}: {reason}"));
            }
            Err(_) => {}
        }
    }
    for name in column.open {
        // What is compiled is right, or `outcome` panics.
        let _ = outcome(&isa, text(name), d);
    }
    faults
}

/// Checks the columns of one target.
fn check(target: &str) {
    let columns: Vec<&Column> = TABLE.iter().filter(|column| column.target == target).collect();
    assert!(!columns.is_empty(), "no column for {target}");
    let faults: Vec<String> = columns.into_iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                check(stringify!($target));
            }
        )*

        #[test]
        fn every_column_has_a_test() {
            let tested = [$(stringify!($target)),*];
            assert!(TABLE.iter().all(|column| tested.contains(&column.target)));
        }
    };
}

targets! { h_qkv gemmini trainium tpu_v1 eva amx x86 feather }
