//! Shape rules of the operators that make, move, cut or join data without computing on it.

use super::{Rule, distinct_dims, in_rank, one_per_dim, same_elem};
use crate::{ElemType, Shape};

pub(super) fn iota(dim: usize, declared: &Shape) -> Rule<Shape> {
    if declared.elem == ElemType::Pred {
        return Err("is not defined on pred".to_owned());
    }
    in_rank("dimension", dim, declared)?;
    Ok(declared.clone())
}

pub(super) fn eye(declared: &Shape) -> Rule<Shape> {
    if declared.rank() == 2 {
        Ok(declared.clone())
    } else {
        Err(format!("makes a matrix, but {declared} has rank {}", declared.rank()))
    }
}

/// No size is stretched: XLA's broadcast has no implicit 1 to n.
pub(super) fn broadcast(dims: &[usize], x: &Shape, declared: &Shape) -> Rule<Shape> {
    one_per_dim("dimensions", dims, x)?;
    distinct_dims("dimension", dims, declared)?;
    same_elem("the operand", x, declared)?;
    for (i, (&size, &dim)) in x.dims.iter().zip(dims).enumerate() {
        let target = declared.dims[dim];
        if size != target {
            return Err(format!(
                "operand dimension {i} of size {size} goes to dimension {dim} of size {target} in {declared}"
            ));
        }
    }
    Ok(declared.clone())
}

pub(super) fn reshape(x: &Shape, declared: &Shape) -> Rule<Shape> {
    same_elem("the operand", x, declared)?;
    if x.elements() != declared.elements() {
        return Err(format!("{x} has {} elements, {declared} has {}", x.elements(), declared.elements()));
    }
    Ok(declared.clone())
}

pub(super) fn transpose(perm: &[usize], x: &Shape) -> Rule<Shape> {
    one_per_dim("the permutation", perm, x)?;
    distinct_dims("dimension", perm, x)?;
    Ok(Shape::new(x.elem, perm.iter().map(|&p| x.dims[p]).collect::<Vec<_>>()))
}

/// Sizes are below 2^63 (checked by the caller), so they compare with attributes as `i64`.
fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

pub(super) fn slice(start: &[i64], limit: &[i64], stride: &[i64], x: &Shape) -> Rule<Shape> {
    one_per_dim("start", start, x)?;
    one_per_dim("limit", limit, x)?;
    one_per_dim("stride", stride, x)?;
    let mut dims = Vec::with_capacity(x.rank());
    for (i, &size) in x.dims.iter().enumerate() {
        let (a, b, s) = (start[i], limit[i], stride[i]);
        if !(0 <= a && a <= b && b <= signed(size)) {
            return Err(format!("range [{a}:{b}] does not lie in dimension {i} of size {size}"));
        }
        if s < 1 {
            return Err(format!("stride {s} in dimension {i} is not positive"));
        }
        dims.push((b - a).unsigned_abs().div_ceil(s.unsigned_abs()));
    }
    Ok(Shape::new(x.elem, dims))
}

fn start_indices(x: &Shape, starts: &[&Shape]) -> Rule<()> {
    one_per_dim("the list of start indices", starts, x)?;
    match starts.iter().find(|s| s.rank() != 0 || !s.elem.is_int()) {
        Some(start) => Err(format!("a start index is {start}, expected an integer scalar")),
        None => Ok(()),
    }
}

pub(super) fn dynamic_slice(sizes: &[i64], x: &Shape, starts: &[&Shape]) -> Rule<Shape> {
    start_indices(x, starts)?;
    one_per_dim("dynamic_slice_sizes", sizes, x)?;
    let mut dims = Vec::with_capacity(x.rank());
    for (i, (&size, &whole)) in sizes.iter().zip(&x.dims).enumerate() {
        match u64::try_from(size) {
            Ok(size) if size <= whole => dims.push(size),
            _ => return Err(format!("size {size} does not fit in dimension {i} of size {whole}")),
        }
    }
    Ok(Shape::new(x.elem, dims))
}

pub(super) fn dynamic_update_slice(x: &Shape, update: &Shape, starts: &[&Shape]) -> Rule<Shape> {
    start_indices(x, starts)?;
    same_elem("the update", update, x)?;
    if update.rank() != x.rank() || update.dims.iter().zip(&x.dims).any(|(u, d)| u > d) {
        return Err(format!("the update {update} does not fit into {x}"));
    }
    Ok(x.clone())
}

pub(super) fn pad(low: &[i64], high: &[i64], interior: &[i64], x: &Shape, value: &Shape) -> Rule<Shape> {
    one_per_dim("low padding", low, x)?;
    one_per_dim("high padding", high, x)?;
    one_per_dim("interior padding", interior, x)?;
    same_elem("the padding value", value, x)?;
    if value.rank() != 0 {
        return Err(format!("the padding value is {value}, expected a scalar"));
    }
    let mut dims = Vec::with_capacity(x.rank());
    for (i, &size) in x.dims.iter().enumerate() {
        if interior[i] < 0 {
            return Err(format!("interior padding {} in dimension {i} is negative", interior[i]));
        }
        let (size, gaps) = (i128::from(size), i128::from(size.saturating_sub(1)));
        let padded = size + gaps * i128::from(interior[i]) + i128::from(low[i]) + i128::from(high[i]);
        let padded = u64::try_from(padded)
            .map_err(|_| format!("dimension {i} of size {size} would get the size {padded}"))?;
        dims.push(padded);
    }
    Ok(Shape::new(x.elem, dims))
}

pub(super) fn reverse(dims: &[usize], x: &Shape) -> Rule<Shape> {
    distinct_dims("dimension", dims, x)?;
    Ok(x.clone())
}

pub(super) fn concatenate(dim: usize, operands: &[&Shape]) -> Rule<Shape> {
    let (first, rest) = operands.split_first().ok_or("takes at least one operand, got none")?;
    in_rank("dimension", dim, first)?;
    let mut result = (*first).clone();
    for (i, operand) in rest.iter().enumerate() {
        let fits = operand.elem == first.elem
            && operand.rank() == first.rank()
            && (0..first.rank()).all(|d| d == dim || operand.dims[d] == first.dims[d]);
        if !fits {
            return Err(format!(
                "operand {} is {operand}, which differs from {first} outside dimension {dim}",
                i + 1
            ));
        }
        result.dims[dim] = result.dims[dim]
            .checked_add(operand.dims[dim])
            .ok_or_else(|| format!("the sizes along dimension {dim} overflow"))?;
    }
    Ok(result)
}
