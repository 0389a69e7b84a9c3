//! An instruction of a description, for given computational attributes and segments, as a command in Hex. Knows no program.

use super::Names;
use super::index::Index;
use super::scalar::Scalars;
use super::tensor::{Place, TensorCode};
use act_hlo::Graph;
use act_isa::{BufferId, Expr, Instr, Slice, Space};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The accelerator's names in Hex.
pub(super) struct Machine {
    pub(super) buffers: Vec<String>,
    pub(super) registers: Vec<String>,
    pub(super) segments: BTreeMap<Space, String>,
    /// Which buffers commands use.
    pub(super) used: BTreeSet<BufferId>,
}

/// One choice of what an instruction does.
pub(super) struct Choice<'a> {
    pub(super) instr: &'a Instr,
    pub(super) alpha: &'a [Option<i64>],
    pub(super) graph: &'a Graph,
    /// Segments of the addresses among its addressing attributes.
    pub(super) spaces: &'a [Option<Space>],
}

/// Tensors that a command needs, and the command.
pub(super) struct Command {
    pub(super) decls: String,
    pub(super) text: String,
}

struct Operands<'a> {
    alpha: &'a [Option<i64>],
    params: &'a [String],
    registers: &'a [String],
}

type Made<T> = Result<T, String>;

impl Operands<'_> {
    /// An integer of the description.
    fn index(&self, expr: &Expr) -> Made<Index> {
        let two = |a: &Expr, b: &Expr| Ok::<_, String>((self.index(a)?, self.index(b)?));
        let divisor = |b: &Index| match b.value() {
            Some(by) if by > 0 => Ok(by),
            _ => Err("a division by what is no positive constant has no form in Hex".to_owned()),
        };
        let power = |b: &Index| match b.value() {
            Some(by @ 0..62) => Ok(1i64 << by),
            _ => Err("a shift by what is no constant has no form in Hex".to_owned()),
        };
        Ok(match expr {
            Expr::Int(value) => Index::constant(*value),
            Expr::Alpha(k) => {
                let value = self.alpha.get(usize::from(*k)).copied().flatten();
                Index::constant(value.ok_or("an attribute that is no integer")?)
            }
            Expr::Beta(k) => {
                Index::text(self.params.get(usize::from(*k)).ok_or("no such attribute")?.clone())
            }
            Expr::Register(k) => {
                Index::text(self.registers.get(usize::from(*k)).ok_or("no such register")?.clone())
            }
            Expr::Variable(_) => return Err("a variable of control flow in an address".to_owned()),
            Expr::Add(a, b) => {
                let (a, b) = two(a, b)?;
                a.plus(&b)
            }
            Expr::Sub(a, b) => {
                let (a, b) = two(a, b)?;
                a.plus(&b.times(-1))
            }
            Expr::Mul(a, b) => {
                let (a, b) = two(a, b)?;
                match (a.value(), b.value()) {
                    (Some(a), _) => b.times(a),
                    (_, Some(b)) => a.times(b),
                    _ => Index::text(format!("({a}) * ({b})")),
                }
            }
            Expr::Div(a, b) => {
                let (a, b) = two(a, b)?;
                a.over(divisor(&b)?)
            }
            Expr::Mod(a, b) => {
                let (a, b) = two(a, b)?;
                a.modulo(divisor(&b)?)
            }
            Expr::CeilDiv(a, b) => {
                let (a, b) = two(a, b)?;
                let by = divisor(&b)?;
                a.plus(&Index::constant(by - 1)).over(by)
            }
            Expr::Shl(a, b) => {
                let (a, b) = two(a, b)?;
                a.times(power(&b)?)
            }
            Expr::Shr(a, b) => {
                let (a, b) = two(a, b)?;
                a.over(power(&b)?)
            }
            Expr::Min(a, b) | Expr::Max(a, b) => {
                let (a, b) = two(a, b)?;
                let least = matches!(expr, Expr::Min(..));
                match (a.value(), b.value()) {
                    (Some(a), Some(b)) => Index::constant(if least { a.min(b) } else { a.max(b) }),
                    _ => Index::text(format!("{}({a}, {b})", if least { "min" } else { "max" })),
                }
            }
        })
    }
}

impl Machine {
    fn place(&mut self, slice: &Slice, operands: &Operands<'_>, spaces: &[Option<Space>]) -> Made<Place> {
        Ok(match slice {
            Slice::OnChip(slice) => {
                self.used.insert(slice.buffer);
                let start = slice.start.iter().map(|expr| operands.index(expr)).collect::<Made<_>>()?;
                let name = self.buffers.get(usize::from(slice.buffer.0)).ok_or("no such buffer")?;
                Place::Box { name: name.clone(), start }
            }
            Slice::Hbm(window) => {
                let mut space = None;
                window.start.for_each_leaf(&mut |leaf| {
                    if let Expr::Beta(k) = leaf {
                        space = space.or(spaces.get(usize::from(*k)).copied().flatten());
                    }
                });
                let name =
                    space.and_then(|space| self.segments.get(&space)).ok_or("an address of no segment")?;
                let strides = window.dims.iter().map(|(_, stride)| operands.index(stride));
                Place::Row {
                    name: name.clone(),
                    start: operands.index(&window.start)?,
                    strides: strides.collect::<Made<_>>()?,
                }
            }
        })
    }

    /// The command `name`: all reads come before all writes, registers change last.
    ///
    /// # Errors
    /// Something in it has no form in Hex.
    pub(super) fn command(
        &mut self,
        (scalars, names): (&mut Scalars, &mut Names),
        name: &str,
        choice: &Choice<'_>,
    ) -> Made<Command> {
        let Choice { instr, alpha, graph, spaces } = choice;
        let mut inside = names.clone();
        let params: Vec<String> = instr.beta.iter().map(|decl| inside.fresh(&decl.name)).collect();
        let registers = self.registers.clone();
        let operands = Operands { alpha, params: &params, registers: &registers };
        let places = |machine: &mut Machine, slices: &[Slice]| -> Made<Vec<Place>> {
            slices.iter().map(|slice| machine.place(slice, &operands, spaces)).collect()
        };
        let inputs = places(self, &instr.inputs)?;
        let outputs = places(self, &instr.outputs)?;
        let mut code = TensorCode::new((scalars, names), graph, &inputs, name, 4)?;
        if let ([root], [place]) = (graph.roots(), outputs.as_slice()) {
            code.fill(*root, place)?;
        } else {
            let mut copies = Vec::new();
            for (k, &root) in graph.roots().iter().enumerate() {
                let copy = code.declare(&format!("{name}_out{k}"), graph.shape(root))?;
                code.fill(root, &Place::tensor(&copy))?;
                copies.push(copy);
            }
            for ((&root, copy), place) in graph.roots().iter().zip(copies).zip(&outputs) {
                code.copy(root, &Place::tensor(&copy), place);
            }
        }
        let TensorCode { decls, body, .. } = code;
        let mut text = format!("  command {name}({}) {{\n{body}", params.join(", "));
        let updates = instr.updates.iter().map(|(register, value)| Ok((*register, operands.index(value)?)));
        let updates: Vec<(u16, Index)> = updates.collect::<Made<_>>()?;
        for (register, value) in &updates {
            let register = registers.get(usize::from(*register)).ok_or("no such register")?;
            let _ = writeln!(text, "    let new_{register} := {value}");
        }
        for (register, _) in &updates {
            let register = &registers[usize::from(*register)];
            let _ = writeln!(text, "    {register} := new_{register}");
        }
        text += "  }\n";
        Ok(Command { decls, text })
    }
}
