//! How an accumulated value lies in its slot on chip between the kernels that share it. A value wider than the results of
//! one instruction is made of blocks of columns. Knows no accelerator.

use act_hlo::{Graph, GraphError, NodeId, Op, Shape};

/// Blocks of columns, each as wide as an instruction's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub width: u64,
    /// Rows of a whole block. Instructions that move several blocks know whole ones; others are moved one by one.
    pub rows: u64,
    /// One block lies behind the other along the rows, where a buffer has room for the columns of one only; otherwise
    /// they lie side by side.
    pub stacked: bool,
}

/// The form of all slots of an accumulator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlotForm {
    /// Dimensions of the buffer's slots. A value of fewer has ones before its own, as if it lay in one of many tiles.
    pub(super) rank: usize,
    pub(super) blocks: Option<Blocks>,
}

impl SlotForm {
    /// The blocks that a value of this shape is made of, and how many; `None` where it is one by itself.
    pub(super) fn blocks(&self, shape: &Shape) -> Option<(Blocks, u64)> {
        let blocks = self.blocks?;
        let &[_, columns] = &shape.dims[..] else { return None };
        let whole = columns > blocks.width && columns.is_multiple_of(blocks.width);
        whole.then(|| (blocks, columns / blocks.width))
    }

    /// The dimension along which blocks follow each other, and how many elements of it each has.
    pub(super) fn step(blocks: Blocks, shape: &Shape) -> (usize, u64) {
        if blocks.stacked { (0, shape.dims[0]) } else { (1, blocks.width) }
    }

    /// The shape of the slot of a value.
    pub(super) fn shape(&self, shape: &Shape) -> Shape {
        let mut own = shape.dims.to_vec();
        if let Some((Blocks { width, stacked: true, .. }, count)) = self.blocks(shape) {
            own = vec![shape.dims[0] * count, width];
        }
        let mut dims = vec![1; self.rank.saturating_sub(own.len())];
        dims.extend(own);
        Shape::new(shape.elem, dims)
    }

    /// The value as it lies in its slot.
    pub(super) fn put(&self, graph: &mut Graph, value: NodeId) -> Result<NodeId, GraphError> {
        let shape = graph.shape(value).clone();
        let value = match self.blocks(&shape) {
            Some((Blocks { width, rows, stacked: true }, count)) if shape.dims[0] == rows => {
                let turned = turned(graph, value, [rows, count, width])?;
                let stack = Shape::new(shape.elem, vec![count * rows, width]);
                seen_as(graph, turned, &stack)?
            }
            Some((Blocks { width, stacked: true, .. }, count)) => {
                let blocks = (0..count).map(|k| part(graph, value, 1, k * width, width));
                let blocks: Vec<NodeId> = blocks.collect::<Result<_, _>>()?;
                graph.add(Op::Concatenate { dim: 0 }, &blocks)?
            }
            _ => value,
        };
        seen_as(graph, value, &self.shape(&shape))
    }

    /// The value of the given shape that lies in `slot`.
    pub(super) fn take(&self, graph: &mut Graph, slot: NodeId, shape: &Shape) -> Result<NodeId, GraphError> {
        let value = match self.blocks(shape) {
            Some((Blocks { width, rows, stacked: true }, count)) if shape.dims[0] == rows => {
                turned(graph, slot, [count, rows, width])?
            }
            Some((blocks @ Blocks { stacked: true, .. }, count)) => {
                let blocks = self.blocks_in(graph, slot, shape, blocks, count)?;
                graph.add(Op::Concatenate { dim: 1 }, &blocks)?
            }
            _ => slot,
        };
        seen_as(graph, value, shape)
    }

    /// The blocks of the value of the given shape that lies in `slot`.
    pub(super) fn blocks_in(
        &self,
        graph: &mut Graph,
        slot: NodeId,
        shape: &Shape,
        blocks: Blocks,
        count: u64,
    ) -> Result<Vec<NodeId>, GraphError> {
        let inner = SlotForm { rank: 0, ..*self }.shape(shape);
        let slot = seen_as(graph, slot, &inner)?;
        let (dim, len) = SlotForm::step(blocks, shape);
        (0..count).map(|k| part(graph, slot, dim, k * len, len)).collect()
    }
}

/// A value seen with these dimensions, and the first two of them exchanged.
fn turned(graph: &mut Graph, value: NodeId, dims: [u64; 3]) -> Result<NodeId, GraphError> {
    let split = Shape::new(graph.shape(value).elem, dims.to_vec());
    let split = seen_as(graph, value, &split)?;
    graph.add(Op::Transpose { perm: vec![1, 0, 2] }, &[split])
}

/// The elements `start..start + len` of dimension `dim`.
pub(super) fn part(
    graph: &mut Graph,
    value: NodeId,
    dim: usize,
    start: u64,
    len: u64,
) -> Result<NodeId, GraphError> {
    let dims = graph.shape(value).dims.to_vec();
    let end = |d: usize, n: u64| (if d == dim { start + len } else { n }) as i64;
    let op = Op::Slice {
        start: (0..dims.len()).map(|d| if d == dim { start as i64 } else { 0 }).collect(),
        limit: dims.iter().enumerate().map(|(d, &n)| end(d, n)).collect(),
        stride: vec![1; dims.len()],
    };
    graph.add(op, &[value])
}

/// The same elements with other dimensions.
pub(super) fn seen_as(graph: &mut Graph, value: NodeId, shape: &Shape) -> Result<NodeId, GraphError> {
    if graph.shape(value) == shape {
        Ok(value)
    } else {
        graph.add_declared(Op::Reshape, &[value], Some(shape))
    }
}
