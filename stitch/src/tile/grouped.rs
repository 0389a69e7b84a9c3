//! Elements in groups: instructions that multiply several pairs for one sum want so many elements of the contracted
//! dimension side by side. The host packs an operand so; here the tiled kernel says how it comes back from that.

use super::rebuild::with_parameters;
use act_hlo::{GraphError, Op, Shape};
use act_isa::TiledKernel;

/// Adjacent elements along a dimension that stand together, behind all other dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Dimension of the tile.
    pub dim: usize,
    /// Elements, at least 2, that the tile's length is a multiple of.
    pub size: u64,
}

impl Group {
    /// Dimensions of a tile that is kept in groups: as many groups as there are along the dimension, the others, then
    /// the elements of a group.
    pub fn dims(self, dims: &[u64]) -> Vec<u64> {
        let mut grouped = dims.to_vec();
        grouped[self.dim] /= self.size;
        grouped.push(self.size);
        grouped
    }
}

/// The kernel whose parameter k is kept in `groups[k]`: a transpose and a reshape undo it.
///
/// # Errors
/// Shape inference refuses them: a group does not divide its dimension.
pub(super) fn with_groups(kernel: TiledKernel, groups: &[Option<Group>]) -> Result<TiledKernel, GraphError> {
    if groups.iter().all(Option::is_none) {
        return Ok(kernel);
    }
    let graph = with_parameters(&kernel.graph, |graph, k, id, _| {
        let shape = kernel.graph.shape(id);
        let Some(group) = groups.get(k).copied().flatten() else { return Ok(graph.parameter(shape.clone())) };
        let dims = group.dims(&shape.dims);
        let packed = graph.parameter(Shape::new(shape.elem, dims.clone()));
        let mut perm: Vec<usize> = (0..shape.dims.len()).collect();
        perm.insert(group.dim + 1, shape.dims.len());
        let rows = Shape::new(shape.elem, perm.iter().map(|&d| dims[d]).collect::<Vec<_>>());
        let rows = graph.add_declared(Op::Transpose { perm }, &[packed], Some(&rows))?;
        graph.add_declared(Op::Reshape, &[rows], Some(shape))
    })?;
    Ok(TiledKernel { graph, ..kernel })
}
