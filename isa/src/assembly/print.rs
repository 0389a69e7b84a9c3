//! Assembly and loop programs as text.

use super::address::address_text;
use super::template::{Attr, Part, parts};
use super::{AsmInstr, Assembly, AttrVal, BetaVal};
use crate::model::{InstrId, Isa};
use crate::program::{LoopProgram, Program, View};
use std::fmt::Write;

impl std::fmt::Display for AttrVal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AttrVal::Int(v) => write!(f, "{v}"),
            // The shortest text that reads back to the same f32.
            AttrVal::F32(bits) => write!(f, "{:?}", f32::from_bits(*bits)),
        }
    }
}

impl std::fmt::Display for BetaVal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BetaVal::Int(affine) => write!(f, "{affine}"),
            BetaVal::Hbm(space, offset) => f.write_str(&address_text(*space, offset)),
        }
    }
}

/// One instruction in the syntax of its description; lines are joined by `\n`. Values that are absent and instructions
/// that the description lacks print as `?`.
pub fn print_instr(isa: &Isa, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> String {
    print_operand_form(isa, op, alpha, beta)
}

/// The same with anything in place of the addressing attributes, such as the names of operands.
pub fn print_operand_form<B: std::fmt::Display>(
    isa: &Isa,
    op: InstrId,
    alpha: &[AttrVal],
    beta: &[B],
) -> String {
    let Some(instr) = isa.instrs.get(usize::from(op.0)) else { return format!("?{}", op.0) };
    let Ok(parts) = parts(instr) else { return format!("?{}", instr.name) };
    let mut out = String::new();
    for part in parts {
        let value = match part {
            Part::Text(text) => text,
            Part::Attr(Attr::Alpha(k)) => alpha.get(k).map_or_else(|| "?".to_owned(), AttrVal::to_string),
            Part::Attr(Attr::Beta(k)) => beta.get(k).map_or_else(|| "?".to_owned(), B::to_string),
        };
        out.push_str(&value);
    }
    out
}

/// `scratch BYTES`, `consts 0x..`, then the instructions, one or more lines each.
pub fn print_assembly(isa: &Isa, assembly: &Assembly) -> String {
    let mut out = String::new();
    data(&mut out, assembly.scratch_bytes, &assembly.consts);
    for AsmInstr { op, alpha, beta } in &assembly.instrs {
        out.push_str(&print_instr(isa, *op, alpha, beta));
        out.push('\n');
    }
    out
}

/// `operands BYTES, ..`, `results BYTES, ..`, scratch and constants as in assembly, then the loop nest.
pub fn print_program(isa: &Isa, program: &LoopProgram) -> String {
    let mut out = String::new();
    for (word, sizes) in [("operands", &program.operands), ("results", &program.results)] {
        if !sizes.is_empty() {
            let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
            let _ = writeln!(out, "{word} {}", sizes.join(", "));
        }
    }
    data(&mut out, program.scratch_bytes, &program.consts);
    nest(isa, &program.body, 0, &mut out);
    out
}

fn data(out: &mut String, scratch: u64, consts: &[u8]) {
    if scratch > 0 {
        let _ = writeln!(out, "scratch {scratch}");
    }
    if !consts.is_empty() {
        out.push_str("consts 0x");
        for byte in consts {
            let _ = write!(out, "{byte:02x}");
        }
        out.push('\n');
    }
}

/// `s8 operand0+%i0*64[16 by 64, 16 by 1]`
fn view(view: &View) -> String {
    let dims: Vec<String> = view.dims.iter().map(|(len, stride)| format!("{len} by {stride}")).collect();
    format!("{} {}[{}]", view.elem, address_text(view.space, &view.start), dims.join(", "))
}

fn nest(isa: &Isa, program: &Program, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match program {
        Program::Seq(parts) => parts.iter().for_each(|part| nest(isa, part, depth, out)),
        Program::For { iv, trip, parallel, body } => {
            let parallel = if *parallel { " parallel" } else { "" };
            let _ = writeln!(out, "{indent}for {iv} in 0..{trip}{parallel} {{");
            nest(isa, body, depth + 1, out);
            let _ = writeln!(out, "{indent}}}");
        }
        Program::Instr { op, alpha, beta } => {
            for line in print_instr(isa, *op, alpha, beta).lines() {
                let _ = writeln!(out, "{indent}{line}");
            }
        }
        Program::HostCopy { from, to } => {
            let _ = writeln!(out, "{indent}host_copy {} -> {}", view(from), view(to));
        }
        Program::Fence => {
            let _ = writeln!(out, "{indent}fence");
        }
    }
}
