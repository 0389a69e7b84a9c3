//! The language beyond plain instructions, through the crate's public face: what is accepted, what is said about the
//! rest, and what the oracle makes of it.

mod control;
mod encodings;
mod hazards;
mod outputs;
mod registers;
mod requirements;

use act_isa::{Isa, Machine, Program, parse_assembly};

/// The description; a fault is shown as the user sees it.
fn parse(text: &str) -> Isa {
    let isa = Isa::parse(text, "t.taidl").unwrap_or_else(|e| panic!("{e}"));
    let printed = isa.print();
    let again = Isa::parse(&printed, "printed.taidl").unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(isa, again, "{printed}");
    assert_eq!(printed, again.print());
    isa
}

/// What is said about a description with a fault.
fn fault(text: &str) -> String {
    Isa::parse(text, "t.taidl").expect_err("the description has a fault").to_string()
}

/// Every edited description is refused with its message, and with a place.
fn faults(good: &str, cases: &[(&str, &str, &str)]) {
    parse(good);
    for (from, to, message) in cases {
        assert!(good.contains(from), "{from}");
        let shown = fault(&good.replacen(from, to, 1));
        assert!(shown.contains(message) && shown.contains("--> t.taidl:"), "{to}: {message}\n{shown}");
    }
}

/// Executes assembly text on a machine.
fn run(isa: &Isa, machine: &mut Machine<'_>, text: &str) -> Result<(), act_isa::Fault> {
    let assembly = parse_assembly(isa, text).unwrap_or_else(|e| panic!("{e}"));
    assembly.instrs.iter().try_for_each(|i| {
        machine.execute(&Program::Instr { op: i.op, alpha: i.alpha.clone(), beta: i.beta.clone() })
    })
}
