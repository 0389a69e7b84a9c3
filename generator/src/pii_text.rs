//! Pii graphs as text, for dumps: one line per node with the names of the description. Stable: equal graphs print
//! equally.

use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{Isa, View};
use std::fmt::{self, Display, Formatter};

/// A graph with the description that names its instructions and buffers. A graph that does not belong to the
/// description prints numbers in place of names.
pub struct PiiText<'a> {
    graph: &'a PiiGraph,
    isa: &'a Isa,
}

impl PiiGraph {
    /// The graph as text.
    pub fn text<'a>(&'a self, isa: &'a Isa) -> PiiText<'a> {
        PiiText { graph: self, isa }
    }
}

impl Display for PiiText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "pii {} {{", self.isa.name)?;
        for (index, node) in self.graph.nodes.iter().enumerate() {
            write!(f, "  %{index} = ")?;
            match &node.op {
                PiiOp::HbmView(view) => write!(f, "hbm {}", Window(view))?,
                PiiOp::OnChipInput(k) => write!(f, "parameter{k}")?,
                PiiOp::SliceH { start } => {
                    let ranges = start.iter().zip(&node.lens).map(|(s, l)| format!("{s} :+ {l}"));
                    write!(f, "slice[{}]", ranges.collect::<Vec<String>>().join(", "))?;
                }
                PiiOp::ConcatH { dim } => write!(f, "concat[{dim}]")?,
                PiiOp::Output { number } => write!(f, "output{number}")?,
                PiiOp::Instr { op, alpha, .. } => {
                    let instr = self.isa.instrs.get(usize::from(op.0));
                    match instr {
                        Some(instr) => f.write_str(&instr.name)?,
                        None => write!(f, "instr{}", op.0)?,
                    }
                    f.write_str("(")?;
                    for (k, value) in alpha.iter().enumerate() {
                        let comma = if k == 0 { "" } else { ", " };
                        let name = instr.and_then(|i| i.alpha.get(k)).map_or("?", |a| a.name.as_str());
                        write!(f, "{comma}{name}={value}")?;
                    }
                    f.write_str(")")?;
                }
            }
            operands(f, &node.operands)?;
            if let Some(buffer) = node.buffer {
                match self.isa.buffers.get(usize::from(buffer.0)) {
                    Some(buffer) => write!(f, " -> {}", buffer.name)?,
                    None => write!(f, " -> buffer{}", buffer.0)?,
                }
                write!(f, "[{}]", joined(&node.lens))?;
            }
            if let PiiOp::Instr { store: Some(view), .. } = &node.op {
                write!(f, " -> {}", Window(view))?;
            }
            writeln!(f)?;
        }
        for (k, root) in self.graph.roots.iter().enumerate() {
            write!(f, "  root{k} =")?;
            operands(f, root)?;
            writeln!(f)?;
        }
        if !self.graph.consts.is_empty() {
            writeln!(f, "  consts {} bytes", self.graph.consts.len())?;
        }
        f.write_str("}\n")
    }
}

fn operands(f: &mut Formatter<'_>, ids: &[PiiId]) -> fmt::Result {
    for (k, id) in ids.iter().enumerate() {
        write!(f, "{} %{}", if k == 0 { "" } else { "," }, id.0)?;
    }
    Ok(())
}

fn joined(values: &[u64]) -> String {
    values.iter().map(u64::to_string).collect::<Vec<String>>().join(", ")
}

/// `operand0[1024; 16 by 256, 64]`: the first byte, then length and stride of every dimension, where a stride of 1 is
/// left out.
struct Window<'a>(&'a View);

impl Display for Window<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{};", self.0.space, self.0.start)?;
        for (k, (len, stride)) in self.0.dims.iter().enumerate() {
            write!(f, "{} {len}", if k == 0 { "" } else { "," })?;
            if *stride != 1 {
                write!(f, " by {stride}")?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pii::PiiNode;
    use act_hlo::ElemType;
    use act_isa::{Affine, AttrVal, LoopId, Space};

    #[test]
    fn every_kind_of_node_prints() {
        let isa = act_isa::load_target("gemmini").unwrap();
        let view = |space, len, stride| View {
            space,
            elem: ElemType::U8,
            dims: vec![(len, stride), (16, 1)],
            start: Affine { c0: 32, ivs: vec![(LoopId(0), 1024)] },
        };
        let sp = isa.buffer_ids().find(|&b| isa.buffer(b).name == "sp");
        let node = |op, operands: &[u32], buffer, lens: &[u64]| PiiNode {
            op,
            operands: operands.iter().map(|&o| PiiId(o)).collect(),
            buffer,
            lens: lens.to_vec(),
        };
        let alpha = |values: &[i64]| values.iter().map(|&v| AttrVal::Int(v)).collect::<Vec<AttrVal>>();
        let instr = |name: &str, values: &[i64], store| PiiOp::Instr {
            op: isa.instr_named(name).unwrap(),
            alpha: alpha(values),
            store,
        };
        let graph = PiiGraph {
            nodes: vec![
                node(PiiOp::HbmView(view(Space::Operand(1), 16, 64)), &[], None, &[]),
                node(instr("mvin", &[16, 16, 64], None), &[0], sp, &[16, 16]),
                node(PiiOp::OnChipInput(0), &[], sp, &[8, 16]),
                node(PiiOp::SliceH { start: vec![8, 0] }, &[1], sp, &[8, 16]),
                node(PiiOp::ConcatH { dim: 0 }, &[2, 3], sp, &[16, 16]),
                node(instr("mvout", &[16, 16, 16], Some(view(Space::Result(0), 16, 16))), &[4], None, &[]),
            ],
            roots: vec![vec![PiiId(5)], vec![PiiId(2)]],
            consts: vec![0; 3],
        };
        let text = "\
pii gemmini {
  %0 = hbm operand1[%i0*1024+32; 16 by 64, 16]
  %1 = mvin(rows=16, cols=16, stride=64) %0 -> sp[16, 16]
  %2 = parameter0 -> sp[8, 16]
  %3 = slice[8 :+ 8, 0 :+ 16] %1 -> sp[8, 16]
  %4 = concat[0] %2, %3 -> sp[16, 16]
  %5 = mvout(rows=16, cols=16, stride=16) %4 -> result0[%i0*1024+32; 16 by 16, 16]
  root0 = %5
  root1 = %2
  consts 3 bytes
}
";
        assert_eq!(graph.text(&isa).to_string(), text);
    }
}
