//! Code for dot: blocks of the result in registers, sums with k ascending, multiplied and added separately. Products of
//! bytes are in `byte_dot`, those of bfloat16 pairs in `pair_dot`.

use super::byte_dot::{ByteColumns, ByteDot, ByteRows};
use super::code::{Code, Value};
use super::index::Index;
use super::pair_dot::{PAIR_WIDTHS, Pairs};
use super::rounding::round_to;
use super::scalar::{self, Result, lanes_of, register_type};
use super::tensor::{Memory, Tensors, unsupported};
use super::vectors::VectorLevel;
use act_hlo::{DotDims, ElemType, NodeId, OpKind};

impl Tensors<'_> {
    /// `node` without conversions to a wider type that keep the value.
    fn narrowed(&self, node: NodeId) -> NodeId {
        let OpKind::Convert = self.graph.node(node).op else { return node };
        let operand = self.graph.node(node).operands[0];
        let (from, to) = (self.elem(operand), self.elem(node));
        let wider = to.bits() > from.bits();
        let keeps = if from.is_int() && to.is_int() {
            wider && (from.is_unsigned_int() || to.is_signed_int())
        } else {
            // f64 would see denormals that f32 arithmetic flushes.
            wider && from.is_float() && to == ElemType::F32
        };
        if keeps && self.memory(node).is_none() { self.narrowed(operand) } else { node }
    }

    /// `node` as strided memory, where data movement alone leads there.
    pub(crate) fn strided(&mut self, node: NodeId) -> Option<Memory> {
        let vars: Vec<_> = self.dims(node).iter().map(|&d| self.vars.free(d as i64)).collect();
        let index: Vec<Index> = vars.iter().map(|v| v.1.clone()).collect();
        let (memory, mut offset) = self.locate(node, &index)?;
        let strides = vars.iter().map(|&(var, _)| offset.coefficient(var)).collect();
        for &(var, _) in &vars {
            offset = offset.without(var);
        }
        let base = self.pointer(memory.base, &offset)?;
        Some(Memory { base, elem: self.elem(node), strides, scope: memory.scope })
    }

    /// A dot operand as memory. `order` lists its dimensions, slowest first, for the case that it must be copied;
    /// with `contiguous`, its last one must have unit stride.
    fn operand(&mut self, node: NodeId, order: &[usize], contiguous: Option<usize>) -> Result<Memory> {
        let node = self.narrowed(node);
        let elem = self.elem(node);
        if let Some(memory) = self.strided(node) {
            let dims = self.dims(node);
            if contiguous.is_none_or(|d| dims[d] == 1 || memory.strides[d] == elem.bytes() as i64) {
                return Ok(memory);
            }
        }
        let dims: Vec<u64> = order.iter().map(|&d| self.dims(node)[d]).collect();
        let copy = self.temporary(elem, &dims);
        let memory = Memory { strides: permuted(&copy.strides, order), ..copy };
        self.nest(&dims, |this, index| {
            let at = permuted(index, order);
            let value = this.pull(node, &at)?;
            this.store(&memory, &at, value)
        })?;
        Ok(memory)
    }

    /// The dot, plus the addend if there is one, straight into `out`; gives whether memory allows that.
    pub(crate) fn accumulate(&mut self, dot: NodeId, addend: Option<NodeId>, out: &Memory) -> Result<bool> {
        let elem = self.elem(dot);
        let last = self.dims(dot).last().copied().unwrap_or(1);
        let adjacent =
            |memory: &Memory| last == 1 || memory.strides.last().copied() == Some(elem.bytes() as i64);
        let OpKind::Dot(dims) = &self.graph.node(dot).op else { return Ok(false) };
        let mut old = None;
        if let Some(addend) = addend {
            old = self.strided(addend).filter(adjacent);
            if old.is_none() {
                return Ok(false);
            }
        }
        let fits = adjacent(out)
            && elem.bits() >= 8
            && elem != ElemType::Pred
            && out.elem == elem
            && self.graph.shape(dot).elements() > 0;
        if fits {
            self.dot(dot, dims, out, old)?;
        }
        Ok(fits)
    }

    /// The dot at `node` into `out`, or its sum with `addend`, which has the result's shape. Both have adjacent elements
    /// in the last dimension.
    pub(crate) fn dot(
        &mut self,
        node: NodeId,
        dims: &DotDims,
        out: &Memory,
        addend: Option<Memory>,
    ) -> Result<()> {
        let operands = &self.graph.node(node).operands;
        let (lhs_node, rhs_node) = (operands[0], operands[1]);
        let (lhs_dims, rhs_dims) = (self.dims(lhs_node), self.dims(rhs_node));
        let free = |rank: usize, batch: &[usize], contracting: &[usize]| -> Vec<usize> {
            (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
        };
        let lhs_free = free(lhs_dims.len(), &dims.lhs_batch, &dims.lhs_contracting);
        let rhs_free = free(rhs_dims.len(), &dims.rhs_batch, &dims.rhs_contracting);
        let lhs_order = [&dims.lhs_batch[..], &lhs_free, &dims.lhs_contracting].concat();
        let rhs_order = [&dims.rhs_batch[..], &dims.rhs_contracting, &rhs_free].concat();
        let lhs = self.operand(lhs_node, &lhs_order, None)?;
        let rhs = self.operand(rhs_node, &rhs_order, rhs_free.last().copied())?;

        let elem = self.elem(node);
        let wide = Self::accumulator(elem);
        let floats = [lhs.elem, rhs.elem, wide].map(ElemType::is_float);
        let ints = [lhs.elem, rhs.elem, wide].map(ElemType::is_int);
        // f32 operands of a sum in f64 would lose their denormals to the processor's mode.
        let doubles = [lhs.elem, rhs.elem, elem].map(|e| e == ElemType::F64);
        if (floats.contains(&false) && ints.contains(&false))
            || (doubles.contains(&true) && doubles.contains(&false))
        {
            return Err(unsupported(self.graph, node));
        }
        let size = |dims: &[u64], which: &[usize]| which.iter().map(|&d| dims[d]).collect::<Vec<u64>>();
        let (rows_outer, rows) = split_last(size(lhs_dims, &lhs_free));
        let (columns_outer, columns) = split_last(size(rhs_dims, &rhs_free));
        let batch = size(lhs_dims, &dims.lhs_batch);
        let extent = Extent { batch, rows_outer, rows, columns_outer, columns };
        let plan = Dot {
            lhs,
            rhs,
            out: out.clone(),
            addend,
            elem,
            wide,
            dims: dims.clone(),
            has_row: !lhs_free.is_empty(),
            has_column: !rhs_free.is_empty(),
            lhs_free,
            rhs_free,
            contracted: size(lhs_dims, &dims.lhs_contracting),
        };
        if plan.is_paired(self.shared.vectors, columns) {
            let moderate = self.is_moderate(&plan, lhs_dims, rhs_dims)?;
            return self.either(
                moderate,
                |this| {
                    let rows = Rows::Pairs(this.pair_rows(&plan, lhs_dims)?);
                    this.blocks(&plan, &extent, &rows)
                },
                |this| this.plain_blocks(plan.clone(), &extent, lhs_dims, &lhs_order),
            );
        }
        if let Some(bytes) = ByteDot::choose(self.shared.vectors, &plan, columns) {
            let rows = Rows::Bytes(self.byte_rows(bytes, &plan, lhs_dims, &lhs_order)?);
            return self.blocks(&plan, &extent, &rows);
        }
        self.plain_blocks(plan.clone(), &extent, lhs_dims, &lhs_order)
    }

    /// The whole result by multiplications and additions of their own.
    fn plain_blocks(
        &mut self,
        mut plan: Dot,
        extent: &Extent,
        lhs_dims: &[u64],
        lhs_order: &[usize],
    ) -> Result<()> {
        if plan.lhs.elem != plan.wide && plan.wide.is_float() && extent.columns > 1 {
            // Every element of the left operand is used for many columns.
            plan.lhs = self.widened(&plan.lhs, plan.wide, lhs_dims, lhs_order)?;
        }
        self.blocks(&plan, extent, &Rows::Plain)
    }

    /// The whole result, block by block.
    fn blocks(&mut self, plan: &Dot, extent: &Extent, rows: &Rows) -> Result<()> {
        let wide_registers = self.shared.vectors >= VectorLevel::Avx512;
        // Accumulators that fit in registers beside a row of the right operand.
        let (height, row_bytes) = match rows {
            // A row of sums is one register.
            Rows::Bytes(_) if wide_registers => (16, 64),
            _ if wide_registers => (8, 128),
            _ => (4, 64),
        };
        let lanes = (row_bytes / plan.wide.bytes()).min(extent.columns);
        let chunks = match rows {
            Rows::Plain => chunks_of(extent.columns, &[lanes]),
            Rows::Bytes(bytes) => chunks_of(extent.columns, &[bytes.kind.lanes]),
            Rows::Pairs(_) => chunks_of(extent.columns, &PAIR_WIDTHS),
        };
        self.nest(&extent.batch, |this, batch| {
            this.nest(&extent.columns_outer, |this, column_outer| {
                for (start, count, width) in chunks {
                    this.nest(&[count], |this, chunk| {
                        let column = &Index::constant(start as i64).plus(width as i64, &chunk[0]);
                        let row = &Index::constant(0);
                        let at = At { batch, row_outer: &[], row, column_outer, column };
                        let columns = match rows {
                            Rows::Bytes(rows) if rows.kind.lanes == width => {
                                Columns::Bytes(rows, this.byte_columns(rows, plan, &at)?)
                            }
                            Rows::Pairs(rows) if PAIR_WIDTHS.contains(&width) => {
                                Columns::Pairs(rows, this.pair_columns(plan, &at, width)?)
                            }
                            _ => Columns::Plain,
                        };
                        this.nest(&extent.rows_outer, |this, row_outer| {
                            for (start, count, height) in chunks_of(extent.rows, &[height]) {
                                this.nest(&[count], |this, block| {
                                    let row = &Index::constant(start as i64).plus(height as i64, &block[0]);
                                    let at = At { row_outer, row, ..at };
                                    match &columns {
                                        Columns::Plain => this.dot_block(plan, &at, height, width),
                                        Columns::Bytes(rows, columns) => {
                                            this.byte_block(rows, columns, plan, &at, height)
                                        }
                                        Columns::Pairs(rows, columns) => {
                                            this.pair_block(rows, columns, plan, &at, height, width)
                                        }
                                    }
                                })?;
                            }
                            Ok(())
                        })
                    })?;
                }
                Ok(())
            })
        })
    }

    /// A copy of the left operand in the type of the sums, in the given order of its dimensions.
    fn widened(&mut self, lhs: &Memory, wide: ElemType, dims: &[u64], order: &[usize]) -> Result<Memory> {
        let ordered: Vec<u64> = order.iter().map(|&d| dims[d]).collect();
        let copy = self.temporary(wide, &ordered);
        let memory = Memory { strides: permuted(&copy.strides, order), ..copy };
        self.nest(&ordered, |this, index| {
            let at = permuted(index, order);
            let value = this.load(lhs, &at)?;
            let value = scalar::convert(&mut this.code, lhs.elem, wide, value, 1)?;
            this.store(&memory, &at, value)
        })?;
        Ok(memory)
    }

    /// `height` rows times `width` columns of the result, accumulated in registers.
    fn dot_block(&mut self, plan: &Dot, at: &At<'_>, height: u64, width: u64) -> Result<()> {
        let ty = register_type(plan.wide)?;
        let types = vec![lanes_of(ty, width); height as usize];
        let zero = scalar::constant(&mut self.code, plan.wide, &[], width)?;
        let sums =
            self.fold(&plan.contracted, &types, vec![zero; height as usize], |this, inner, sums| {
                let rhs = plan.rhs_index(at, inner);
                let offset = Self::offset(&plan.rhs, &rhs);
                let right = this.load_at(&plan.rhs, &offset, plan.rhs.elem, width)?;
                let mut next = Vec::with_capacity(sums.len());
                for (r, &sum) in sums.iter().enumerate() {
                    let lhs = plan.lhs_index(at, r as i64, inner);
                    let left = this.load(&plan.lhs, &lhs)?;
                    next.push(multiply_add(&mut this.code, plan, left, right, sum, width)?);
                }
                Ok(next)
            })?;
        for (r, &sum) in sums.iter().enumerate() {
            self.finish_row(plan, at, r as i64, sum, width)?;
        }
        Ok(())
    }

    /// Stores the sums of a row, rounded, on top of the addend's if there is one.
    pub(crate) fn finish_row(
        &mut self,
        plan: &Dot,
        at: &At<'_>,
        row: i64,
        sum: Value,
        width: u64,
    ) -> Result<()> {
        let mut value = round_to(&mut self.code, plan.elem, sum, width);
        if let Some(old) = self.addend_row(plan, at, row, width)? {
            let ty = lanes_of(register_type(plan.elem)?, width);
            let add = if plan.elem.is_float() { "addf" } else { "addi" };
            let added = self.code.op(format_args!("arith.{add} {old}, {value} : {ty}"));
            value = round_to(&mut self.code, plan.elem, added, width);
        }
        self.store_row(plan, at, row, value, width)
    }

    /// A row of the addend, if there is one.
    pub(crate) fn addend_row(
        &mut self,
        plan: &Dot,
        at: &At<'_>,
        row: i64,
        width: u64,
    ) -> Result<Option<Value>> {
        let Some(addend) = &plan.addend else { return Ok(None) };
        let offset = Self::offset(addend, &plan.out_index(at, row));
        self.load_at(addend, &offset, plan.elem, width).map(Some)
    }

    pub(crate) fn store_row(
        &mut self,
        plan: &Dot,
        at: &At<'_>,
        row: i64,
        value: Value,
        width: u64,
    ) -> Result<()> {
        let offset = Self::offset(&plan.out, &plan.out_index(at, row));
        self.store_at(&plan.out, &offset, plan.elem, value, width)
    }
}

/// Sizes of the result, its last row and column dimension apart from the others.
struct Extent {
    batch: Vec<u64>,
    rows_outer: Vec<u64>,
    rows: u64,
    columns_outer: Vec<u64>,
    columns: u64,
}

/// The left operand, as it is multiplied.
enum Rows {
    Plain,
    Bytes(ByteRows),
    Pairs(Pairs),
}

/// A chunk of columns of the right operand, and the left one in the form that goes with it.
enum Columns<'a> {
    Plain,
    Bytes(&'a ByteRows, ByteColumns),
    Pairs(&'a Pairs, Pairs),
}

/// `(first, count, width)`: as many chunks of each width, the widest first, as fit, and one of what is left.
fn chunks_of(length: u64, widths: &[u64]) -> Vec<(u64, u64, u64)> {
    let mut chunks = Vec::new();
    let mut first = 0;
    for &width in widths {
        chunks.push((first, (length - first) / width, width));
        first += (length - first) / width * width;
    }
    chunks.push((first, 1, length - first));
    chunks.retain(|&(_, count, width)| count > 0 && width > 0);
    chunks
}

/// A dot with its operands in memory.
#[derive(Clone)]
pub(crate) struct Dot {
    pub(crate) lhs: Memory,
    pub(crate) rhs: Memory,
    pub(crate) out: Memory,
    pub(crate) addend: Option<Memory>,
    pub(crate) elem: ElemType,
    /// Type of the sums.
    pub(crate) wide: ElemType,
    pub(crate) dims: DotDims,
    lhs_free: Vec<usize>,
    rhs_free: Vec<usize>,
    has_row: bool,
    has_column: bool,
    pub(crate) contracted: Vec<u64>,
}

/// Position of a block of the result.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) batch: &'a [Index],
    pub(crate) row_outer: &'a [Index],
    pub(crate) row: &'a Index,
    pub(crate) column_outer: &'a [Index],
    pub(crate) column: &'a Index,
}

impl Dot {
    pub(crate) fn lhs_index(&self, at: &At<'_>, row: i64, inner: &[Index]) -> Vec<Index> {
        let row = Index::constant(row).plus(1, at.row);
        let free = at.row_outer.iter().chain(self.has_row.then_some(&row));
        assemble(&self.dims.lhs_batch, at.batch, &self.lhs_free, free, &self.dims.lhs_contracting, inner)
    }

    pub(crate) fn rhs_index(&self, at: &At<'_>, inner: &[Index]) -> Vec<Index> {
        let free = at.column_outer.iter().chain(self.has_column.then_some(at.column));
        assemble(&self.dims.rhs_batch, at.batch, &self.rhs_free, free, &self.dims.rhs_contracting, inner)
    }

    /// Result dimensions: batch, free of lhs, free of rhs.
    pub(crate) fn out_index(&self, at: &At<'_>, row: i64) -> Vec<Index> {
        let row = Index::constant(row).plus(1, at.row);
        let rows = at.row_outer.iter().chain(self.has_row.then_some(&row));
        let columns = at.column_outer.iter().chain(self.has_column.then_some(at.column));
        at.batch.iter().chain(rows).chain(columns).cloned().collect()
    }
}

fn assemble<'a>(
    batch_dims: &[usize],
    batch: &'a [Index],
    free_dims: &[usize],
    free: impl Iterator<Item = &'a Index>,
    contracting_dims: &[usize],
    inner: &'a [Index],
) -> Vec<Index> {
    let mut index = vec![Index::default(); batch_dims.len() + free_dims.len() + contracting_dims.len()];
    let placed = batch_dims
        .iter()
        .zip(batch)
        .chain(free_dims.iter().zip(free))
        .chain(contracting_dims.iter().zip(inner));
    for (&d, i) in placed {
        index[d] = i.clone();
    }
    index
}

/// `values` in the order of the dimensions that they belong to.
pub(crate) fn permuted<T: Clone + Default>(values: &[T], order: &[usize]) -> Vec<T> {
    let mut placed = vec![T::default(); values.len()];
    for (&d, value) in order.iter().zip(values) {
        placed[d] = value.clone();
    }
    placed
}

fn split_last(mut dims: Vec<u64>) -> (Vec<u64>, u64) {
    let last = dims.pop().unwrap_or(1);
    (dims, last)
}

/// `sum + left · right` in every lane.
fn multiply_add(
    code: &mut Code,
    plan: &Dot,
    left: Value,
    right: Value,
    sum: Value,
    lanes: u64,
) -> Result<Value> {
    use ElemType::{S16, U16};
    let (lhs, rhs, wide) = (plan.lhs.elem, plan.rhs.elem, plan.wide);
    let (add, multiply) = if wide.is_float() { ("addf", "mulf") } else { ("addi", "muli") };
    // A product of two bytes fits 16 bits exactly, signed unless both are unsigned; twice the lanes per register.
    let bytes = lhs.is_int() && lhs.bits() == 8 && rhs.bits() == 8 && wide.bits() > 16;
    let product_elem = match bytes {
        true if lhs.is_unsigned_int() && rhs.is_unsigned_int() => U16,
        true => S16,
        false => wide,
    };
    let ty = register_type(product_elem)?;
    let left = scalar::convert(code, lhs, product_elem, left, 1)?;
    let left = splat(code, left, ty, lanes);
    let right = scalar::convert(code, rhs, product_elem, right, lanes)?;
    let product = code.op(format_args!("arith.{multiply} {left}, {right} : {}", lanes_of(ty, lanes)));
    let product = scalar::convert(code, product_elem, wide, product, lanes)?;
    Ok(code.op(format_args!("arith.{add} {sum}, {product} : {}", lanes_of(register_type(wide)?, lanes))))
}

/// A vector of one value.
pub(crate) fn splat(code: &mut Code, value: Value, ty: &str, lanes: u64) -> Value {
    if lanes == 1 {
        return value;
    }
    let vector = lanes_of(ty, lanes);
    let poison = code.op(format_args!("llvm.mlir.poison : {vector}"));
    let zero = code.const_i64(0);
    let one = code.op(format_args!("llvm.insertelement {value}, {poison}[{zero} : i64] : {vector}"));
    let mask = vec!["0"; lanes as usize].join(", ");
    code.op(format_args!("llvm.shufflevector {one}, {poison} [{mask}] : {vector}"))
}
