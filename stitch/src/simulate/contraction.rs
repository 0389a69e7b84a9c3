//! Code for the operators whose result is kept in memory: dot, reduce, concatenate, pad, dynamic-update-slice.
//! Sums run with k ascending, multiplied and added separately.

use super::code::{Code, Value};
use super::index::Index;
use super::scalar::{self, Result, lanes_of, register_type};
use super::tensor::{Memory, Tensors, unsupported};
use act_hlo::{Binary, DotDims, ElemType, NodeId, OpKind};

/// Rows of the result that share a load of the right operand.
const ROWS: u64 = 4;
/// Bytes of one row of accumulators: two AVX2 registers, so that ROWS of them stay in registers.
const ROW_BYTES: u64 = 64;

impl Tensors<'_> {
    /// Computes `node` into a temporary, from where it is loaded from then on.
    pub(crate) fn materialise(&mut self, node: NodeId) -> Result<()> {
        let graph = self.graph;
        let out = self.temporary(self.elem(node), self.dims(node));
        if graph.shape(node).elements() > 0 {
            let operands = &graph.node(node).operands;
            self.scoped(|this| match &graph.node(node).op {
                OpKind::Dot(dims) => this.dot(node, dims, &out),
                OpKind::Reduce { dims, combiner } => this.reduce(node, dims, *combiner, &out),
                OpKind::Concatenate { dim } => this.concatenate(operands, *dim, &out),
                OpKind::Pad { low, interior, .. } => this.pad(node, low, interior, &out),
                OpKind::DynamicUpdateSlice => this.update_slice(operands, &out),
                _ => this.fill(node, &out),
            })?;
        }
        self.place(node, out);
        Ok(())
    }

    fn concatenate(&mut self, operands: &[NodeId], dim: usize, out: &Memory) -> Result<()> {
        let mut at = 0;
        for &operand in operands {
            let dims = self.dims(operand);
            self.nest(dims, |this, index| {
                let value = this.pull(operand, index)?;
                let mut to = index.to_vec();
                to[dim].c0 += at;
                this.store(out, &to, value)
            })?;
            at += dims[dim] as i64;
        }
        Ok(())
    }

    fn pad(&mut self, node: NodeId, low: &[i64], interior: &[i64], out: &Memory) -> Result<()> {
        let operands = &self.graph.node(node).operands;
        let (operand, padding) = (operands[0], operands[1]);
        let outer = self.dims(node);
        self.nest(outer, |this, index| {
            let value = this.pull(padding, &[])?;
            this.store(out, index, value)
        })?;
        // Operand element i goes to low + i·(interior + 1), if that is inside.
        let mut first = Vec::new();
        let mut count = Vec::new();
        for (d, &len) in self.dims(operand).iter().enumerate() {
            let step = interior[d] + 1;
            let begin = (-low[d]).max(0).div_euclid(step) + i64::from((-low[d]).max(0).rem_euclid(step) != 0);
            let last = (outer[d] as i64 - 1 - low[d]).div_euclid(step).min(len as i64 - 1);
            first.push(begin);
            count.push(u64::try_from(last - begin + 1).unwrap_or(0));
        }
        self.nest(&count, |this, index| {
            let from: Vec<Index> =
                index.iter().zip(&first).map(|(i, &f)| Index::constant(f).plus(1, i)).collect();
            let to: Vec<Index> = from
                .iter()
                .enumerate()
                .map(|(d, i)| Index::constant(low[d]).plus(interior[d] + 1, i))
                .collect();
            let value = this.pull(operand, &from)?;
            this.store(out, &to, value)
        })
    }

    fn update_slice(&mut self, operands: &[NodeId], out: &Memory) -> Result<()> {
        let (array, update) = (operands[0], operands[1]);
        self.fill(array, out)?;
        let mut start = Vec::new();
        for (d, &scalar) in operands[2..].iter().enumerate() {
            start.push(self.clamped_start(scalar, (self.dims(array)[d] - self.dims(update)[d]) as i64)?);
        }
        self.nest(self.dims(update), |this, index| {
            let to: Vec<Index> = start.iter().zip(index).map(|(s, i)| s.plus(1, i)).collect();
            let value = this.pull(update, index)?;
            this.store(out, &to, value)
        })
    }

    /// Narrow floats accumulate in f32 and are rounded once.
    fn accumulator(elem: ElemType) -> ElemType {
        if matches!(elem, ElemType::BF16 | ElemType::F16) { ElemType::F32 } else { elem }
    }

    fn reduce(&mut self, node: NodeId, reduced: &[usize], combiner: Binary, out: &Memory) -> Result<()> {
        let operands = &self.graph.node(node).operands;
        let (array, init) = (operands[0], operands[1]);
        let elem = self.elem(node);
        let wide = Self::accumulator(elem);
        let rank = self.dims(array).len();
        let kept: Vec<usize> = (0..rank).filter(|d| !reduced.contains(d)).collect();
        let mut order = reduced.to_vec();
        order.sort_unstable();
        let reduced_dims: Vec<u64> = order.iter().map(|&d| self.dims(array)[d]).collect();
        let out_dims = self.dims(node);
        let source = |outer: &[Index], inner: &[Index]| {
            let mut index = vec![Index::default(); rank];
            for (&d, i) in kept.iter().zip(outer).chain(order.iter().zip(inner)) {
                index[d] = i.clone();
            }
            index
        };
        let step = |this: &mut Self, sum: Value, index: &[Index]| {
            let x = this.pull(array, index)?;
            scalar::binary(&mut this.code, &mut this.shared.externals, combiner, wide, sum, x)
        };
        if order.last().is_some_and(|&d| d + 1 == rank) || out_dims.is_empty() {
            return self.nest(out_dims, |this, outer| {
                let first = this.pull(init, &[])?;
                let types = [register_type(wide)?.to_owned()];
                let sums = this.fold(&reduced_dims, &types, vec![first], |this, inner, sums| {
                    Ok(vec![step(this, sums[0], &source(outer, inner))?])
                })?;
                let value = scalar::round_to(&mut this.code, elem, sums[0], 1);
                this.store(out, outer, value)
            });
        }
        // The innermost dimension is kept: whole rows are added up, which vectorises and leaves each sum's order.
        let sums = if wide == elem { out.clone() } else { self.temporary(wide, out_dims) };
        self.nest(out_dims, |this, outer| {
            let first = this.pull(init, &[])?;
            this.store(&sums, outer, first)
        })?;
        self.nest(&reduced_dims, |this, inner| {
            this.nest(out_dims, |this, outer| {
                let sum = this.load(&sums, outer)?;
                let sum = step(this, sum, &source(outer, inner))?;
                this.store(&sums, outer, sum)
            })
        })?;
        if wide == elem {
            return Ok(());
        }
        self.nest(out_dims, |this, outer| {
            let sum = this.load(&sums, outer)?;
            let value = scalar::round_to(&mut this.code, elem, sum, 1);
            this.store(out, outer, value)
        })
    }

    /// Loops over `dims` that carry values.
    fn fold(
        &mut self,
        dims: &[u64],
        types: &[String],
        init: Vec<Value>,
        body: impl FnOnce(&mut Self, &[Index], &[Value]) -> Result<Vec<Value>>,
    ) -> Result<Vec<Value>> {
        if dims.contains(&0) {
            return Ok(init);
        }
        let mut carried = init;
        let mut results = Vec::new();
        let mut index = Vec::new();
        for &len in dims {
            if len == 1 {
                index.push(Index::constant(0));
                continue;
            }
            let (iv, names, outputs) = open_fold(&mut self.code, len, types, &carried);
            carried = names;
            results.push(outputs);
            index.push(self.vars.bound(iv, len as i64));
        }
        let mut values = self.scoped(|this| body(this, &index, &carried))?;
        while let Some(outputs) = results.pop() {
            self.code.line(format_args!("scf.yield {} : {}", join(&values), types.join(", ")));
            self.code.close();
            values = outputs;
        }
        Ok(values)
    }

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
    fn strided(&mut self, node: NodeId) -> Option<Memory> {
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
        let mut strides = vec![0; dims.len()];
        for (&d, &stride) in order.iter().zip(&copy.strides) {
            strides[d] = stride;
        }
        let memory = Memory { strides, ..copy };
        self.nest(&dims, |this, index| {
            let mut at = vec![Index::default(); index.len()];
            for (&d, i) in order.iter().zip(index) {
                at[d] = i.clone();
            }
            let value = this.pull(node, &at)?;
            this.store(&memory, &at, value)
        })?;
        Ok(memory)
    }

    fn dot(&mut self, node: NodeId, dims: &DotDims, out: &Memory) -> Result<()> {
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
        let plan = Dot {
            lhs,
            rhs,
            out: out.clone(),
            elem,
            wide,
            dims: dims.clone(),
            has_row: !lhs_free.is_empty(),
            has_column: !rhs_free.is_empty(),
            lhs_free,
            rhs_free,
            contracted: size(lhs_dims, &dims.lhs_contracting),
        };
        let lanes = (ROW_BYTES / wide.bytes()).min(columns);
        self.nest(&size(lhs_dims, &dims.lhs_batch), |this, batch| {
            this.nest(&rows_outer, |this, row_outer| {
                // Full blocks, then what is left.
                for (start, blocks, height) in [(0, rows / ROWS, ROWS), (rows / ROWS * ROWS, 1, rows % ROWS)]
                {
                    if height == 0 {
                        continue;
                    }
                    this.nest(&[blocks], |this, block| {
                        let row = Index::constant(start as i64).plus(height as i64, &block[0]);
                        this.nest(&columns_outer, |this, column_outer| {
                            for (start, chunks, width) in
                                [(0, columns / lanes, lanes), (columns / lanes * lanes, 1, columns % lanes)]
                            {
                                if width == 0 {
                                    continue;
                                }
                                this.nest(&[chunks], |this, chunk| {
                                    let column = Index::constant(start as i64).plus(width as i64, &chunk[0]);
                                    let at =
                                        At { batch, row_outer, row: &row, column_outer, column: &column };
                                    this.dot_block(&plan, &at, height, width)
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
            let value = scalar::round_to(&mut self.code, plan.elem, sum, width);
            let offset = Self::offset(&plan.out, &plan.out_index(at, r as i64));
            self.store_at(&plan.out, &offset, plan.elem, value, width)?;
        }
        Ok(())
    }
}

/// A dot with its operands in memory.
struct Dot {
    lhs: Memory,
    rhs: Memory,
    out: Memory,
    elem: ElemType,
    /// Type of the sums.
    wide: ElemType,
    dims: DotDims,
    lhs_free: Vec<usize>,
    rhs_free: Vec<usize>,
    has_row: bool,
    has_column: bool,
    contracted: Vec<u64>,
}

/// Position of a block of the result.
struct At<'a> {
    batch: &'a [Index],
    row_outer: &'a [Index],
    row: &'a Index,
    column_outer: &'a [Index],
    column: &'a Index,
}

impl Dot {
    fn lhs_index(&self, at: &At<'_>, row: i64, inner: &[Index]) -> Vec<Index> {
        let row = Index::constant(row).plus(1, at.row);
        let free = at.row_outer.iter().chain(self.has_row.then_some(&row));
        assemble(&self.dims.lhs_batch, at.batch, &self.lhs_free, free, &self.dims.lhs_contracting, inner)
    }

    fn rhs_index(&self, at: &At<'_>, inner: &[Index]) -> Vec<Index> {
        let free = at.column_outer.iter().chain(self.has_column.then_some(at.column));
        assemble(&self.dims.rhs_batch, at.batch, &self.rhs_free, free, &self.dims.rhs_contracting, inner)
    }

    /// Result dimensions: batch, free of lhs, free of rhs.
    fn out_index(&self, at: &At<'_>, row: i64) -> Vec<Index> {
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
fn splat(code: &mut Code, value: Value, ty: &str, lanes: u64) -> Value {
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

/// Opens a loop that carries values; gives its variable, the carried values inside and the results.
fn open_fold(code: &mut Code, len: u64, types: &[String], init: &[Value]) -> (Value, Vec<Value>, Vec<Value>) {
    let (zero, one, end) = (code.const_i64(0), code.const_i64(1), code.const_i64(len as i64));
    let result = code.name();
    let iv = code.name();
    let names: Vec<Value> = init.iter().map(|_| code.name()).collect();
    let bindings: Vec<String> = names.iter().zip(init).map(|(n, i)| format!("{n} = {i}")).collect();
    let arity = if init.len() == 1 { String::new() } else { format!(":{}", init.len()) };
    code.open(format_args!(
        "{result}{arity} = scf.for {iv} = {zero} to {end} step {one} iter_args({}) -> ({}) : i64",
        bindings.join(", "),
        types.join(", "),
    ));
    let results =
        if init.len() == 1 { vec![result] } else { (0..init.len() as u32).map(|k| result.part(k)).collect() };
    (iv, names, results)
}

fn join(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}
