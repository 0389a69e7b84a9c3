//! Device encodings and loop constructs as text.

use super::printer::{Printer, quoted};
use crate::device::{Device, LoopConstruct};
use crate::encoding::{Dialect, Encoding, Field, FieldValue, Piece, Template};
use crate::model::{Instr, Isa};
use std::fmt::Write;

/// The items of a description's device side.
pub(super) fn device(isa: &Isa, out: &mut String) {
    let Device { prologue, epilogue, fence, loops } = &isa.device;
    let nothing = Instr::default();
    let printer = Printer { isa, instr: &nothing, variables: Vec::new() };
    for (word, list) in [("prologue", prologue), ("epilogue", epilogue), ("fence", fence)] {
        for encoding in list {
            let _ = writeln!(out, "{word} {}", printer.encoding(encoding, ""));
        }
    }
    if let Some(construct) = loops {
        loop_construct(construct, out);
    }
}

fn loop_construct(construct: &LoopConstruct, out: &mut String) {
    let LoopConstruct { name, max_trip, max_depth, cost_begin, cost_iteration, begin, end, indent, variable } =
        construct;
    let _ = writeln!(out, "loop {name} {{");
    for (word, value) in [("max_trip", max_trip), ("max_depth", max_depth)] {
        if let Some(value) = value {
            let _ = writeln!(out, "  {word} {value}");
        }
    }
    for (word, value) in [("cost_begin", cost_begin), ("cost_iteration", cost_iteration)] {
        if *value != 0 {
            let _ = writeln!(out, "  {word} {value}");
        }
    }
    for (word, text) in [("begin", begin), ("end", end), ("indent", indent), ("variable", variable)] {
        let _ = writeln!(out, "  {word} {}", strings(text));
    }
    out.push_str("}\n");
}

/// One string per line.
fn strings(text: &str) -> String {
    text.split('\n').map(quoted).collect::<Vec<String>>().join(" ")
}

impl Printer<'_> {
    pub(super) fn encoding(&self, encoding: &Encoding, indent: &str) -> String {
        match encoding {
            Encoding::Insn(insn) => {
                let mut out = format!(
                    "encode riscv insn(opcode {:#x}, funct3 {}, funct7 {}) {{",
                    insn.opcode, insn.funct3, insn.funct7
                );
                for (word, fields) in [("rs1", &insn.rs1), ("rs2", &insn.rs2)] {
                    if !fields.is_empty() {
                        let fields: Vec<String> = fields.iter().map(|f| self.field(f)).collect();
                        let _ = write!(out, "\n{indent}  {word} {{ {} }}", fields.join(", "));
                    }
                }
                let _ = write!(out, "\n{indent}}}");
                out
            }
            Encoding::Text { dialect, text, clobbers } => {
                let word = match dialect {
                    Dialect::Riscv => "riscv",
                    Dialect::X86 => "x86",
                    Dialect::Call => "call",
                };
                let mut out = format!("encode {word} {}", strings(&self.template(text)));
                if !clobbers.is_empty() {
                    let names: Vec<String> = clobbers.iter().map(|c| quoted(c)).collect();
                    let _ = write!(out, " clobber {}", names.join(", "));
                }
                out
            }
        }
    }

    fn field(&self, field: &Field) -> String {
        let attr = |k: u16| self.instr.alpha.get(usize::from(k)).map_or("?", |a| a.name.as_str());
        let value = match &field.value {
            FieldValue::Int(e) => self.expr(e),
            FieldValue::F32(bits) => format!("bits({:?})", f32::from_bits(*bits)),
            FieldValue::F32Attr(k) => format!("bits({})", attr(*k)),
        };
        let signed = if field.signed { " signed" } else { "" };
        format!("{value} at {} width {}{signed}", field.at, field.width)
    }

    fn template(&self, template: &Template) -> String {
        let attr = |k: u16| self.instr.alpha.get(usize::from(k)).map_or("?", |a| a.name.as_str());
        let one = |piece: &Piece| match piece {
            Piece::Text(text) => text.replace('{', "{{").replace('}', "}}"),
            Piece::Value(e) => format!("{{{}}}", self.expr(e)),
            Piece::InRegister(e) => format!("{{{}:r}}", self.expr(e)),
            Piece::Segment(e) => format!("{{{}:segment}}", self.expr(e)),
            Piece::Offset(e) => format!("{{{}:offset}}", self.expr(e)),
            Piece::F32Attr(k) => format!("{{{}}}", attr(*k)),
        };
        template.0.iter().map(one).collect()
    }
}
