//! A loop program as text for the device: its encodings inside its loop construct.

use super::print::print_instr;
use super::{AttrVal, BetaVal};
use crate::device::LoopConstruct;
use crate::encoding::{EncodeError, Encoding};
use crate::model::{InstrId, Isa};
use crate::program::{Affine, LoopId, LoopProgram, Program};

/// Why a program cannot be written for the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceTextError {
    #[error("a loop of {trip} rounds, but `{construct}` has at most {max}")]
    Trip { construct: String, trip: u64, max: u64 },
    #[error("loops nest {depth} deep, but `{construct}` at most {max}")]
    Depth { construct: String, depth: u64, max: u64 },
    #[error("a copy by the host stands inside the program; the device has none")]
    HostCopy,
    #[error("no such instruction")]
    NoSuchInstruction,
    #[error("{instr}: {error}")]
    Encode { instr: String, error: EncodeError },
}

/// The program's text: the prologue, then the loop nest. Instructions without an encoding print in their assembly
/// syntax.
///
/// # Errors
/// What the device cannot do.
pub fn print_device(isa: &Isa, program: &LoopProgram) -> Result<String, DeviceTextError> {
    let host = LoopConstruct {
        name: "host".to_owned(),
        max_trip: None,
        max_depth: None,
        cost_begin: 0,
        cost_iteration: 0,
        begin: "for {iv} in 0..{trip} {".to_owned(),
        end: "}".to_owned(),
        indent: "  ".to_owned(),
        variable: "i{n}".to_owned(),
    };
    let construct = isa.device.loops.as_ref().unwrap_or(&host);
    let mut writer =
        Writer { isa, construct, registers: isa.register_values(), depth: 0, out: String::new() };
    writer.plain("the prologue", &isa.device.prologue)?;
    writer.nest(&program.body)?;
    Ok(writer.out)
}

struct Writer<'a> {
    isa: &'a Isa,
    construct: &'a LoopConstruct,
    registers: Vec<i64>,
    depth: u64,
    out: String,
}

impl Writer<'_> {
    fn lines(&mut self, text: &str) {
        for line in text.lines() {
            (0..self.depth).for_each(|_| self.out.push_str(&self.construct.indent));
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    /// Encodings that mention no attribute.
    fn plain(&mut self, what: &str, encodings: &[Encoding]) -> Result<(), DeviceTextError> {
        for encoding in encodings {
            let text = encoding
                .render(&[], &[], &self.registers)
                .map_err(|error| DeviceTextError::Encode { instr: what.to_owned(), error })?;
            self.lines(&text);
        }
        Ok(())
    }

    fn nest(&mut self, program: &Program) -> Result<(), DeviceTextError> {
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.nest(part)),
            Program::For { iv, trip, body, .. } => {
                let construct = || self.construct.name.clone();
                if let Some(max) = self.construct.max_trip.filter(|max| trip > max) {
                    return Err(DeviceTextError::Trip { construct: construct(), trip: *trip, max });
                }
                if let Some(max) = self.construct.max_depth.filter(|&max| self.depth >= max) {
                    return Err(DeviceTextError::Depth {
                        construct: construct(),
                        depth: self.depth + 1,
                        max,
                    });
                }
                let name = self.variable(*iv);
                let fill = |text: &str| text.replace("{iv}", &name).replace("{trip}", &trip.to_string());
                let (begin, end) = (fill(&self.construct.begin), fill(&self.construct.end));
                self.lines(&begin);
                self.depth += 1;
                let done = self.nest(body);
                self.depth -= 1;
                self.lines(&end);
                done
            }
            Program::Instr { op, alpha, beta } => self.instr(*op, alpha, beta),
            Program::HostCopy { .. } => Err(DeviceTextError::HostCopy),
            Program::Fence => {
                let isa = self.isa;
                self.plain("the fence", &isa.device.fence)
            }
        }
    }

    fn instr(&mut self, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> Result<(), DeviceTextError> {
        let isa = self.isa;
        let instr = isa.instrs.get(usize::from(op.0)).ok_or(DeviceTextError::NoSuchInstruction)?;
        if instr.encodings.is_empty() {
            let text = print_instr(isa, op, alpha, beta);
            self.lines(&text);
            return Ok(());
        }
        let beta: Vec<String> = beta.iter().map(|b| self.beta(b)).collect();
        for encoding in &instr.encodings {
            let text = encoding
                .render(alpha, &beta, &self.registers)
                .map_err(|error| DeviceTextError::Encode { instr: instr.name.clone(), error })?;
            self.lines(&text);
        }
        Ok(())
    }

    fn variable(&self, iv: LoopId) -> String {
        self.construct.variable.replace("{n}", &iv.0.to_string())
    }

    /// `operand0 + i2*16 + 4`, in parentheses where it has more than one term.
    fn beta(&self, value: &BetaVal) -> String {
        let (mut terms, affine): (Vec<String>, &Affine) = match value {
            BetaVal::Int(affine) => (Vec::new(), affine),
            BetaVal::Hbm(space, offset) => (vec![space.to_string()], offset),
        };
        for &(iv, factor) in &affine.ivs {
            let name = self.variable(iv);
            terms.push(if factor == 1 { name } else { format!("{name}*{factor}") });
        }
        if affine.c0 != 0 || terms.is_empty() {
            terms.push(affine.c0.to_string());
        }
        if terms.len() == 1 { terms.concat() } else { format!("({})", terms.join(" + ")) }
    }
}
