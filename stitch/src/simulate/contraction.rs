//! Code for the operators whose result is kept in memory: reduce, concatenate, pad, dynamic-update-slice, and loops that
//! carry values. Dot is in `dot`.

use super::code::{Code, Value};
use super::index::Index;
use super::rounding::round_to;
use super::scalar::{self, Result, register_type};
use super::tensor::{Memory, Tensors};
use act_hlo::{Binary, ElemType, NodeId, OpKind};

impl Tensors<'_> {
    /// Computes `node` into a temporary, from where it is loaded from then on.
    pub(crate) fn materialise(&mut self, node: NodeId) -> Result<()> {
        let graph = self.graph;
        let out = self.temporary(self.elem(node), self.dims(node));
        if graph.shape(node).elements() > 0 {
            let operands = &graph.node(node).operands;
            self.scoped(|this| match &graph.node(node).op {
                OpKind::Dot(dims) => this.dot(node, dims, &out, None),
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
    pub(crate) fn accumulator(elem: ElemType) -> ElemType {
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
                let value = round_to(&mut this.code, elem, sums[0], 1);
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
            let value = round_to(&mut this.code, elem, sum, 1);
            this.store(out, outer, value)
        })
    }

    /// Loops over `dims` that carry values.
    pub(crate) fn fold(
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
