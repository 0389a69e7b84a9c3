//! A stable, injective encoding of what a graph computes, for kernel keys. Names and source positions do not
//! take part; the order of nodes, layouts and the bytes of constants do.

use crate::{Graph, Layout, Op, Shape};

/// Changes whenever the encoding does.
const VERSION: u64 = 1;

/// The encoding of `graph`. Two graphs have the same bytes exactly when their nodes (operators with
/// attributes, operands, shapes, layouts) and roots are equal.
pub fn canonical_bytes(graph: &Graph) -> Vec<u8> {
    let mut out = Encoder(Vec::new());
    out.number(VERSION);
    out.sequence(graph.nodes(), |out, node| {
        out.op(&node.op);
        out.sequence(&node.operands, |out, id| out.number(id.0.into()));
        out.shape(&node.shape);
        out.sequence(node.layout.as_slice(), Encoder::layout);
    });
    out.sequence(graph.roots(), |out, id| out.number(id.0.into()));
    out.0
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn sequence<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Encoder, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|x| item(self, x));
    }

    fn dims(&mut self, dims: &[usize]) {
        self.sequence(dims, |out, &d| out.number(d as u64));
    }

    fn sizes(&mut self, sizes: &[i64]) {
        self.sequence(sizes, |out, &s| out.number(s as u64));
    }

    fn shape(&mut self, shape: &Shape) {
        self.number(shape.elem.primitive_type() as u64);
        self.sequence(&shape.dims, |out, &d| out.number(d));
    }

    fn layout(&mut self, layout: &Layout) {
        self.dims(&layout.minor_to_major);
        self.sequence(&layout.tiles, |out, tile| out.sizes(tile));
    }

    /// Names of operators are unique and outlive the order in which the code lists them.
    fn op(&mut self, op: &Op) {
        self.bytes(op.name().as_bytes());
        match op {
            Op::Parameter(k) => self.number((*k).into()),
            Op::Constant(literal) => {
                self.shape(literal.shape());
                self.bytes(literal.bytes());
            }
            Op::Iota { dim } | Op::Concatenate { dim } => self.number(*dim as u64),
            Op::Compare(direction) => self.bytes(direction.name().as_bytes()),
            Op::ReducePrecision { exponent_bits, mantissa_bits } => {
                self.number((*exponent_bits).into());
                self.number((*mantissa_bits).into());
            }
            Op::Broadcast { dims } | Op::Transpose { perm: dims } | Op::Reverse { dims } => self.dims(dims),
            Op::Slice { start, limit, stride } => {
                self.sizes(start);
                self.sizes(limit);
                self.sizes(stride);
            }
            Op::DynamicSlice { sizes } => self.sizes(sizes),
            Op::Pad { low, high, interior } => {
                self.sizes(low);
                self.sizes(high);
                self.sizes(interior);
            }
            Op::Reduce { dims, combiner } => {
                self.dims(dims);
                self.bytes(combiner.name().as_bytes());
            }
            Op::Dot(dims) => {
                self.dims(&dims.lhs_batch);
                self.dims(&dims.rhs_batch);
                self.dims(&dims.lhs_contracting);
                self.dims(&dims.rhs_contracting);
            }
            Op::Eye
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Clamp
            | Op::Fma
            | Op::Convert
            | Op::BitcastConvert
            | Op::Copy
            | Op::Reshape
            | Op::DynamicUpdateSlice => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, ElemType, SourceLoc};

    fn sum(combiner: Binary, dim: usize) -> Graph {
        let mut graph = Graph::new("sum");
        let x = graph.parameter(Shape::new(ElemType::S32, [4, 4]));
        let zero = graph.add(Op::Constant(crate::Literal::zeros(Shape::scalar(ElemType::S32))), &[]).unwrap();
        let root = graph.add(Op::Reduce { dims: vec![dim], combiner }, &[x, zero]).unwrap();
        graph.add_root(root).unwrap();
        graph
    }

    #[test]
    fn only_what_is_computed_counts() {
        let plain = sum(Binary::Add, 0);
        let mut named = plain.clone();
        named.name = "other".to_owned();
        let root = named.annotate(named.roots()[0]);
        root.name = "total".to_owned();
        root.source = Some(SourceLoc { op_name: "jit(f)/sum".to_owned(), ..SourceLoc::default() });
        assert_eq!(canonical_bytes(&plain), canonical_bytes(&named));

        named.annotate(named.roots()[0]).layout = Some(Layout::row_major(1));
        let mut more_roots = plain.clone();
        more_roots.add_root(more_roots.params()[0]).unwrap();
        for other in [sum(Binary::Add, 1), sum(Binary::Maximum, 0), named, more_roots] {
            assert_ne!(canonical_bytes(&plain), canonical_bytes(&other));
        }
    }
}
