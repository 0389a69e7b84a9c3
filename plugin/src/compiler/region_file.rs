//! A region as a file: HLO text, and in front of it the byte strides of what does not lie row-major.

use act_hlo::text::{ParseError, parse_graph};
use act_hlo::{Graph, NodeId, print_graph};
use act_isa::{Space, View};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// A region and where its operands and results lie.
pub(crate) struct RegionFile {
    pub(crate) graph: Graph,
    pub(crate) operands: Vec<View>,
    pub(crate) results: Vec<View>,
}

/// Bytes of the hash that names a region.
const NAME_HASH: usize = 6;

impl RegionFile {
    /// The region without names and source positions, which do not make it another one.
    pub(crate) fn canonical(graph: &Graph, operands: &[View], results: &[View]) -> RegionFile {
        let mut graph = graph.clone();
        "region".clone_into(&mut graph.name);
        for id in graph.ids() {
            let node = graph.annotate(id);
            node.name.clear();
            node.source = None;
        }
        RegionFile { graph, operands: operands.to_vec(), results: results.to_vec() }
    }

    /// The same for the same region.
    pub(crate) fn name(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(act_hlo::canonical_bytes(&self.graph));
        hash.update(format!("{:?}{:?}", self.operands, self.results));
        crate::compiler::hexadecimal(&hash.finalize()[..NAME_HASH])
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (what, views, ids) in
            [("operand", &self.operands, self.graph.params()), ("result", &self.results, self.graph.roots())]
        {
            for (k, (view, &id)) in views.iter().zip(ids).enumerate() {
                if view.dims != View::row_major(view.space, self.graph.shape(id)).dims {
                    let strides: Vec<String> = view.dims.iter().map(|d| d.1.to_string()).collect();
                    // Writing to a String cannot fail.
                    let _ = writeln!(out, "// {what} {k} strides {}", strides.join(" "));
                }
            }
        }
        out + &print_graph(&self.graph)
    }

    /// # Errors
    /// The text is no region.
    pub(crate) fn parse(text: &str) -> Result<RegionFile, ParseError> {
        let graph = parse_graph(text)?;
        let views = |ids: &[NodeId], space: fn(u16) -> Space| -> Vec<View> {
            (0..).zip(ids).map(|(k, &id)| View::row_major(space(k), graph.shape(id))).collect()
        };
        let mut operands = views(graph.params(), Space::Operand);
        let mut results = views(graph.roots(), Space::Result);
        for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, k, "strides", strides @ ..] = &words[..] else { continue };
            let views = if *what == "operand" { &mut operands } else { &mut results };
            let view = k.parse::<usize>().ok().and_then(|k| views.get_mut(k));
            for (dim, stride) in view.into_iter().flat_map(|v| &mut v.dims).zip(strides) {
                dim.1 = stride.parse().unwrap_or(dim.1);
            }
        }
        Ok(RegionFile { graph, operands, results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_hlo::{DotDims, ElemType, Op, Shape};
    use act_isa::Affine;

    #[test]
    fn strides_survive_writing_and_reading() {
        let mut graph = Graph::new("anything");
        let x = graph.parameter(Shape::new(ElemType::S8, [3, 4, 5]));
        let w = graph.parameter(Shape::new(ElemType::S8, [4, 5, 2]));
        graph.annotate(x).name = "image".to_owned();
        let dims = DotDims { lhs_contracting: vec![1, 2], rhs_contracting: vec![0, 1], ..DotDims::default() };
        let shape = Shape::new(ElemType::S32, [3, 2]);
        let dot = graph.add_declared(Op::Dot(dims), &[x, w], Some(&shape)).unwrap();
        graph.add_root(dot).unwrap();
        let windows = View {
            space: Space::Operand(0),
            elem: ElemType::S8,
            dims: vec![(3, 5), (4, 10), (5, 1)],
            start: Affine::default(),
        };
        let operands = [windows, View::row_major(Space::Operand(1), graph.shape(w))];
        let results = [View { dims: vec![(3, 4), (2, 12)], ..View::row_major(Space::Result(0), &shape) }];
        let region = RegionFile::canonical(&graph, &operands, &results);
        let text = region.text();
        assert!(!text.contains("image"), "{text}");
        let read = RegionFile::parse(&text).unwrap();
        assert_eq!(read.operands, operands);
        assert_eq!(read.results, results);
        assert_eq!(RegionFile::canonical(&read.graph, &read.operands, &read.results).name(), region.name());
    }
}
