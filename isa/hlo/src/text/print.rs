//! Graphs as HLO text that reads back to an equal graph.

use super::constant;
use super::lexer::quoted;
use crate::{Binary, ElemType, Graph, Layout, Node, NodeId, Op, Shape};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Whether a name in the text stands for no name: `_` and digits.
pub(super) fn is_anonymous(name: &str) -> bool {
    name.strip_prefix('_').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether HLO text can say the name as it is.
fn is_printable(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let rest = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    first && rest && !is_anonymous(name) && name != "ROOT" && name != "ENTRY"
}

/// The whole graph as a module: an entry computation, preceded by one computation per combiner of its
/// reduces. Several roots become a tuple. Names that are missing, taken or no HLO names are replaced by
/// `_` and the index of the node, which reads back as no name.
pub fn print_graph(graph: &Graph) -> String {
    let mut out = String::new();
    let names = names(graph);
    let module = if is_printable(&graph.name) { &graph.name } else { "_0" };
    let _ = writeln!(out, "HloModule {module}\n");
    for (combiner, elem) in combiners(graph) {
        let name = combiner_name(combiner, elem);
        let opcode = combiner.name();
        let _ = writeln!(
            out,
            "{name} {{\n  a = {elem}[] parameter(0)\n  b = {elem}[] parameter(1)\n  \
             ROOT c = {elem}[] {opcode}(a, b)\n}}\n"
        );
    }
    out.push_str("ENTRY main {\n");
    let single_root = match graph.roots() {
        [root] => Some(*root),
        _ => None,
    };
    for (id, node) in graph.ids().zip(graph.nodes()) {
        let root = if single_root == Some(id) { "ROOT " } else { "" };
        let _ = write!(out, "  {root}{} = ", names[id.0 as usize]);
        print_node(node, &names, &mut out);
        out.push('\n');
    }
    if single_root.is_none() {
        print_root_tuple(graph, &names, &mut out);
    }
    out.push_str("}\n");
    out
}

fn names(graph: &Graph) -> Vec<String> {
    let mut taken = BTreeSet::new();
    graph
        .nodes()
        .iter()
        .enumerate()
        .map(|(i, node)| {
            let usable = is_printable(&node.name) && taken.insert(node.name.as_str());
            if usable { node.name.clone() } else { format!("_{i}") }
        })
        .collect()
}

fn combiners(graph: &Graph) -> BTreeSet<(Binary, ElemType)> {
    let combiner = |node: &Node| match node.op {
        Op::Reduce { combiner, .. } => Some((combiner, node.shape.elem)),
        _ => None,
    };
    graph.nodes().iter().filter_map(combiner).collect()
}

fn combiner_name(combiner: Binary, elem: ElemType) -> String {
    format!("{}_{elem}", combiner.name())
}

fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}

fn print_root_tuple(graph: &Graph, names: &[String], out: &mut String) {
    let shapes = graph.roots().iter().map(|&id| shape_text(graph.shape(id), graph.node(id).layout.as_ref()));
    let members = graph.roots().iter().map(|id| &names[id.0 as usize]);
    // One past the last node's index: a name that no node has.
    let _ =
        writeln!(out, "  ROOT _{} = ({}) tuple({})", names.len(), list(shapes, ", "), list(members, ", "));
}

fn shape_text(shape: &Shape, layout: Option<&Layout>) -> String {
    let Some(layout) = layout else { return shape.to_string() };
    let mut text = format!("{shape}{{{}", list(&layout.minor_to_major, ","));
    if !layout.tiles.is_empty() {
        text.push_str(":T");
        for tile in &layout.tiles {
            let _ = write!(text, "({})", list(tile, ","));
        }
    }
    text.push('}');
    text
}

fn print_node(node: &Node, names: &[String], out: &mut String) {
    let _ = write!(out, "{} {}(", shape_text(&node.shape, node.layout.as_ref()), node.op.name());
    match &node.op {
        Op::Parameter(k) => {
            let _ = write!(out, "{k}");
        }
        Op::Constant(literal) => constant::print(literal, out),
        _ => {
            let operand = |id: &NodeId| names[id.0 as usize].as_str();
            out.push_str(&list(node.operands.iter().map(operand), ", "));
        }
    }
    out.push(')');
    print_attributes(node, out);
    if let Some(source) = &node.source {
        let _ = write!(out, ", metadata={{op_name={}", quoted(&source.op_name));
        if !source.file.is_empty() {
            let _ = write!(out, " source_file={}", quoted(&source.file));
        }
        if source.line != 0 {
            let _ = write!(out, " source_line={}", source.line);
        }
        out.push('}');
    }
}

fn print_attributes(node: &Node, out: &mut String) {
    // Writing to a String does not fail.
    let _ = match &node.op {
        Op::Iota { dim } => write!(out, ", iota_dimension={dim}"),
        Op::Compare(direction) => write!(out, ", direction={}", direction.name()),
        Op::ReducePrecision { exponent_bits, mantissa_bits } => {
            write!(out, ", exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}")
        }
        Op::Broadcast { dims } | Op::Reverse { dims } | Op::Transpose { perm: dims } => {
            write!(out, ", dimensions={{{}}}", list(dims, ","))
        }
        Op::Slice { start, limit, stride } => {
            let ranges = start.iter().zip(limit).zip(stride).map(|((start, limit), stride)| {
                if *stride == 1 {
                    format!("[{start}:{limit}]")
                } else {
                    format!("[{start}:{limit}:{stride}]")
                }
            });
            write!(out, ", slice={{{}}}", list(ranges, ", "))
        }
        Op::DynamicSlice { sizes } => write!(out, ", dynamic_slice_sizes={{{}}}", list(sizes, ",")),
        Op::Pad { low, .. } if low.is_empty() => Ok(()),
        Op::Pad { low, high, interior } => {
            let dims = low.iter().zip(high).zip(interior).map(|((low, high), interior)| {
                if *interior == 0 { format!("{low}_{high}") } else { format!("{low}_{high}_{interior}") }
            });
            write!(out, ", padding={}", list(dims, "x"))
        }
        Op::Concatenate { dim } => write!(out, ", dimensions={{{dim}}}"),
        Op::Reduce { dims, combiner } => write!(
            out,
            ", dimensions={{{}}}, to_apply={}",
            list(dims, ","),
            combiner_name(*combiner, node.shape.elem)
        ),
        Op::Dot(dims) => [
            ("lhs_batch_dims", &dims.lhs_batch),
            ("lhs_contracting_dims", &dims.lhs_contracting),
            ("rhs_batch_dims", &dims.rhs_batch),
            ("rhs_contracting_dims", &dims.rhs_contracting),
        ]
        .into_iter()
        .filter(|(_, dims)| !dims.is_empty())
        .try_for_each(|(name, dims)| write!(out, ", {name}={{{}}}", list(dims, ","))),
        _ => Ok(()),
    };
}
