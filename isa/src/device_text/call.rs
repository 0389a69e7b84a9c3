//! Programs in a kernel language: calls inside the loops of the description. The language's syntax is all in the
//! description's texts; expressions over loop variables are written with the operators that C and Python share, `//` for
//! the floor division and min and max as functions.

use super::value::{Addresses, Linear, Operator, Value};
use super::{Context, DeviceTextError, Use, f32_text};
use crate::device::LoopConstruct;
use crate::encoding::{EncodeError, Encoding, Piece, Template};
use crate::expr::Expr;
use crate::model::Instr;
use crate::program::{LoopProgram, Program};

pub(super) fn print(context: Context<'_>, program: &LoopProgram) -> Result<String, DeviceTextError> {
    let device = &context.isa.device;
    let nothing = Instr::default();
    let mut writer = Writer { context, out: String::new() };
    let prologue = writer.context.plain(&nothing, &device.prologue);
    writer.encodings(&prologue)?;
    writer.nest(&program.body)?;
    let epilogue = writer.context.plain(&nothing, &device.epilogue);
    writer.encodings(&epilogue)?;
    Ok(writer.out)
}

struct Writer<'a> {
    context: Context<'a>,
    out: String,
}

impl<'a> Writer<'a> {
    fn lines(&mut self, text: &str) {
        let indent = self.context.isa.device.loops.as_ref().map_or("", |l| l.indent.as_str());
        for line in text.lines() {
            self.context.loops.iter().for_each(|_| self.out.push_str(indent));
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    fn nest(&mut self, program: &'a Program) -> Result<(), DeviceTextError> {
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.nest(part)),
            Program::For { iv, trip, body, .. } => {
                let isa = self.context.isa;
                let construct = isa
                    .device
                    .loops
                    .as_ref()
                    .ok_or_else(|| DeviceTextError::NoLoop { target: isa.name.clone() })?;
                self.context.check_loop(construct, *trip)?;
                let name = construct.variable_of(*iv);
                self.lines(&LoopConstruct::filled(&construct.begin, &name, *trip));
                self.context.loops.push((*iv, *trip));
                let done = self.nest(body);
                self.context.loops.pop();
                self.lines(&LoopConstruct::filled(&construct.end, &name, *trip));
                done
            }
            Program::Instr { op, alpha, beta } => {
                let used = self.context.instr(*op, alpha, beta)?;
                self.encodings(&used)
            }
            Program::HostCopy { .. } => Err(DeviceTextError::HostCopy),
            Program::Fence => {
                let nothing = Instr::default();
                let isa = self.context.isa;
                let fence = self.context.plain(&nothing, &isa.device.fence);
                self.encodings(&fence)
            }
        }
    }

    fn encodings(&mut self, used: &Use<'_>) -> Result<(), DeviceTextError> {
        for encoding in &used.encodings {
            if let Encoding::Text { text, .. } = encoding {
                let text = self.template(used, text)?;
                self.lines(&text);
            }
        }
        Ok(())
    }

    fn template(&self, used: &Use<'_>, template: &Template) -> Result<String, DeviceTextError> {
        let value = |e: &Expr, addresses| {
            let value = Value::of(e, used.env(&self.context.registers), &used.beta, addresses);
            value.map_err(|error| used.fault(error))
        };
        let mut out = String::new();
        for piece in &template.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::F32Attr(k) => out.push_str(&f32_text(used, *k)?),
                Piece::Value(e) | Piece::InRegister(e) => {
                    out.push_str(&self.text(&value(e, Addresses::Absolute)?));
                }
                Piece::Offset(e) => out.push_str(&self.text(&value(e, Addresses::Offsets)?)),
                Piece::Segment(e) => match value(e, Addresses::Absolute)? {
                    Value::Linear(Linear { segment: Some(segment), .. }) => {
                        out.push_str(&segment.to_string());
                    }
                    _ => return Err(used.fault(EncodeError::NoSegment)),
                },
            }
        }
        Ok(out)
    }

    fn text(&self, value: &Value) -> String {
        match value {
            Value::Linear(linear) => self.linear(linear),
            Value::Operation(operator, a, b) => {
                let (a, b) = (self.text(a), self.text(b));
                let infix = |op: &str| format!("({a} {op} {b})");
                match operator {
                    Operator::Add => infix("+"),
                    Operator::Sub => infix("-"),
                    Operator::Mul => infix("*"),
                    Operator::Div => infix("//"),
                    Operator::Mod => infix("%"),
                    Operator::Shl => infix("<<"),
                    Operator::Shr => infix(">>"),
                    Operator::CeilDiv => format!("-(-{a} // {b})"),
                    Operator::Min => format!("min({a}, {b})"),
                    Operator::Max => format!("max({a}, {b})"),
                }
            }
        }
    }

    /// `(operand0 + i2*16 + 4)`; a lone term without the parentheses.
    fn linear(&self, linear: &Linear) -> String {
        let mut terms: Vec<String> = linear.segment.iter().map(ToString::to_string).collect();
        for &(iv, factor) in &linear.affine.ivs {
            let construct = self.context.isa.device.loops.as_ref();
            let name = construct.map_or_else(|| iv.to_string(), |c| c.variable_of(iv));
            terms.push(if factor == 1 { name } else { format!("{name}*{factor}") });
        }
        if linear.affine.c0 != 0 || terms.is_empty() {
            terms.push(linear.affine.c0.to_string());
        }
        if terms.len() == 1 { terms.concat() } else { format!("({})", terms.join(" + ")) }
    }
}
