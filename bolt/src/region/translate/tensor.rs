//! Graphs of tensor operators as loops of Hex. Movement becomes the index at which an element is read, elementwise operators
//! become expressions; sums, and what would be computed several times, get a tensor of their own. Knows no machine.

use super::Names;
use super::index::{Index, flat, unflat};
use super::scalar::Scalars;
use act_hlo::{Binary, DotDims, ElemType, Graph, Literal, NodeId, Op, Shape, eval_op};
use std::fmt::Write as _;

/// Where a tensor lies.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A box of a buffer that starts there; a tensor of its own starts nowhere.
    Box { name: String, start: Vec<Index> },
    /// In a row of elements: the first one, and the distance between two in every dimension.
    Row { name: String, start: Index, strides: Vec<Index> },
}

impl Place {
    pub(super) fn tensor(name: &str) -> Place {
        Place::Box { name: name.to_owned(), start: Vec::new() }
    }

    /// The element at some indices; `offset` is added to the place in a row.
    pub(super) fn element(&self, indices: &[Index], offset: i64) -> String {
        match self {
            Place::Box { name, .. } if indices.is_empty() => name.clone(),
            Place::Box { name, start } => {
                let at = |(k, index): (usize, &Index)| match start.get(k) {
                    Some(start) => start.plus(index).to_string(),
                    None => index.to_string(),
                };
                let all: Vec<String> = indices.iter().enumerate().map(at).collect();
                format!("{name}[{}]", all.join(", "))
            }
            Place::Row { name, start, strides } => {
                let step = |sum: Index, (index, stride): (&Index, &Index)| {
                    sum.plus(&match (stride.value(), index.value()) {
                        (Some(stride), _) => index.times(stride),
                        (_, Some(index)) => stride.times(index),
                        _ => Index::text(format!("({index}) * ({stride})")),
                    })
                };
                let at = indices.iter().zip(strides).fold(start.plus(&Index::constant(offset)), step);
                format!("{name}[{at}]")
            }
        }
    }
}

/// Loops over all elements of a tensor around statements.
pub(super) fn nest(dims: &[u64], counters: &[String], body: &str, indent: usize) -> String {
    let loops: Vec<String> = dims
        .iter()
        .zip(counters)
        .filter(|(dim, _)| **dim != 1)
        .map(|(dim, counter)| format!("parfor {counter} in 0..{dim} {{ "))
        .collect();
    let pad = " ".repeat(indent);
    let body: String = body.lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{pad}{}{line}", if loops.is_empty() { "" } else { "  " });
        text
    });
    if loops.is_empty() {
        return body;
    }
    format!("{pad}{}\n{body}{pad}{}\n", loops.concat().trim_end(), "} ".repeat(loops.len()).trim_end())
}

/// The statements of one graph, as far as they are made.
pub(super) struct TensorCode<'a> {
    pub(super) scalars: &'a mut Scalars,
    pub(super) names: &'a mut Names,
    graph: &'a Graph,
    inputs: &'a [Place],
    /// Tensors that nodes have of their own.
    stored: Vec<Option<String>>,
    /// `buffer NAME[..]: T` lines.
    pub(super) decls: String,
    pub(super) body: String,
    indent: usize,
}

type Made<T> = Result<T, String>;

impl<'a> TensorCode<'a> {
    /// Computes what has to have a tensor of its own; `prefix` begins their names.
    ///
    /// # Errors
    /// An operator that Hex has no form for.
    pub(super) fn new(
        (scalars, names): (&'a mut Scalars, &'a mut Names),
        graph: &'a Graph,
        inputs: &'a [Place],
        prefix: &str,
        indent: usize,
    ) -> Made<TensorCode<'a>> {
        let stored = vec![None; graph.nodes().len()];
        let (decls, body) = (String::new(), String::new());
        let mut code = TensorCode { scalars, names, graph, inputs, stored, decls, body, indent };
        let own = code.of_their_own();
        for (at, id) in graph.ids().enumerate() {
            if own[at] {
                let shape = graph.shape(id).clone();
                let name = code.declare(&format!("{prefix}_{at}"), &shape)?;
                code.fill(id, &Place::tensor(&name))?;
                code.stored[at] = Some(name);
            }
        }
        Ok(code)
    }

    /// A tensor for values.
    pub(super) fn declare(&mut self, name: &str, shape: &Shape) -> Made<String> {
        let name = self.names.fresh(name);
        let ty = self.scalars.elem(shape.elem)?;
        let _ = writeln!(self.decls, "  buffer {name}{}: {ty}", extents(shape));
        Ok(name)
    }

    /// Which nodes get a tensor: sums, and what is costly and used more than once.
    fn of_their_own(&self) -> Vec<bool> {
        let nodes = self.graph.nodes();
        let mut uses = vec![0u32; nodes.len()];
        let mut own = vec![false; nodes.len()];
        // A root that nothing else reads is computed where it goes.
        let mut read = vec![false; nodes.len()];
        nodes.iter().flat_map(|node| &node.operands).for_each(|id| read[id.0 as usize] = true);
        for root in self.graph.roots() {
            uses[root.0 as usize] += 1;
        }
        for (at, node) in nodes.iter().enumerate().rev() {
            if uses[at] == 0 {
                continue;
            }
            let costly = matches!(
                node.op,
                Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select | Op::Clamp | Op::Fma
            );
            let table = matches!(&node.op, Op::Constant(value) if value.splat_value().is_none());
            let sum = matches!(node.op, Op::Dot(_) | Op::Reduce { .. });
            own[at] = uses[at] > 1 && costly || (read[at] || uses[at] > 1) && (sum || table);
            let each = match node.op {
                Op::Dot(_) | Op::BitcastConvert => 2,
                _ => 1,
            };
            let weight = if own[at] { each } else { uses[at].saturating_mul(each) };
            for operand in &node.operands {
                let uses = &mut uses[operand.0 as usize];
                *uses = uses.saturating_add(weight);
            }
        }
        own
    }

    /// Statements that copy a tensor of a node's shape.
    pub(super) fn copy(&mut self, id: NodeId, from: &Place, to: &Place) {
        let dims = &self.graph.shape(id).dims;
        let counters: Vec<String> = (0..dims.len()).map(|k| format!("x{k}")).collect();
        let at: Vec<Index> = counters.iter().zip(dims).map(|(c, &dim)| Index::counter(c, dim)).collect();
        let copy = format!("{} := {}", to.element(&at, 0), from.element(&at, 0));
        self.body += &nest(dims, &counters, &copy, self.indent);
    }

    fn convert(&mut self, from: ElemType, to: ElemType, value: String) -> Made<String> {
        if from == to { Ok(value) } else { self.scalars.apply(&Op::Convert, &[from], to, &[value]) }
    }

    /// Statements that put the value of a node somewhere.
    pub(super) fn fill(&mut self, id: NodeId, to: &Place) -> Made<()> {
        let graph = self.graph;
        let (node, shape) = (graph.node(id), graph.shape(id));
        if shape.dims.contains(&0) {
            return Err("a tensor without elements has no form in Hex".to_owned());
        }
        let counters: Vec<String> = (0..shape.rank()).map(|k| format!("x{k}")).collect();
        let at: Vec<Index> =
            counters.iter().zip(&shape.dims).map(|(c, &dim)| Index::counter(c, dim)).collect();
        let target = to.element(&at, 0);
        let known = self.stored[id.0 as usize].is_some();
        let body = match &node.op {
            Op::Dot(dims) if !known => self.dot(dims, id, &at, &target)?,
            Op::Reduce { dims, combiner } if !known => self.reduce(dims, *combiner, id, &at, &target)?,
            Op::Constant(value) if !known && value.splat_value().is_none() => {
                return self.table(value, to);
            }
            _ => format!("{target} := {}", self.element(id, &at)?),
        };
        self.body += &nest(&shape.dims, &counters, &body, self.indent);
        Ok(())
    }

    /// A constant, element by element.
    fn table(&mut self, value: &Literal, to: &Place) -> Made<()> {
        const MOST: u64 = 1 << 16;
        let shape = value.shape();
        if shape.elements() > MOST {
            return Err(format!("a constant of {} elements is too long for a program", shape.elements()));
        }
        for k in 0..shape.elements() {
            let element = Literal::from_bytes(Shape::scalar(shape.elem), value.element_bytes(k).to_vec());
            let element = self.scalars.constant(&element.map_err(|error| error.to_string())?)?;
            let at = unflat(&shape.dims, &Index::constant(k as i64));
            let _ = writeln!(self.body, "{}{} := {element}", " ".repeat(self.indent), to.element(&at, 0));
        }
        Ok(())
    }

    fn dot(&mut self, dims: &DotDims, id: NodeId, at: &[Index], target: &str) -> Made<String> {
        let graph = self.graph;
        let operands = &graph.node(id).operands;
        let (lhs, rhs) = (graph.shape(operands[0]), graph.shape(operands[1]));
        let result = graph.shape(id).elem;
        let inner = match [lhs.elem, rhs.elem, result] {
            _ if !result.is_float() => result,
            elems if elems.contains(&ElemType::F64) => ElemType::F64,
            _ => ElemType::F32,
        };
        let lengths: Vec<u64> = dims.lhs_contracting.iter().map(|&d| lhs.dims[d]).collect();
        let over: Vec<Index> =
            (0..).zip(&lengths).map(|(k, &n)| Index::counter(&format!("k{k}"), n)).collect();
        // Batch, free of the left operand, free of the right one.
        let free = |shape: &Shape, batch: &[usize], contracting: &[usize]| -> Vec<usize> {
            (0..shape.rank()).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
        };
        let left_free = free(lhs, &dims.lhs_batch, &dims.lhs_contracting);
        let right_free = free(rhs, &dims.rhs_batch, &dims.rhs_contracting);
        let batch = dims.lhs_batch.len();
        let place = |rank: usize, parts: [(&[usize], &[Index]); 3]| -> Vec<Index> {
            let mut indices = vec![Index::constant(0); rank];
            for (dims, from) in parts {
                dims.iter().zip(from).for_each(|(&d, index)| indices[d] = index.clone());
            }
            indices
        };
        let free_at = (&at[batch..batch + left_free.len()], &at[batch + left_free.len()..]);
        let left = place(
            lhs.rank(),
            [(&dims.lhs_batch, &at[..batch]), (&left_free, free_at.0), (&dims.lhs_contracting, &over)],
        );
        let right = place(
            rhs.rank(),
            [(&dims.rhs_batch, &at[..batch]), (&right_free, free_at.1), (&dims.rhs_contracting, &over)],
        );
        let value = self.element(operands[0], &left)?;
        let a = self.convert(lhs.elem, inner, value)?;
        let value = self.element(operands[1], &right)?;
        let b = self.convert(rhs.elem, inner, value)?;
        let [multiply, add] =
            if inner == ElemType::Pred { [Binary::And, Binary::Or] } else { [Binary::Multiply, Binary::Add] };
        let product = self.scalars.apply(&Op::Binary(multiply), &[inner; 2], inner, &[a, b])?;
        let sum = self.scalars.apply(&Op::Binary(add), &[inner; 2], inner, &["s".to_owned(), product])?;
        let zero = self.scalars.constant(&Literal::zeros(Shape::scalar(inner)))?;
        let total = self.convert(inner, result, "s".to_owned())?;
        Ok(fold(&zero, &lengths, &sum, target, &total))
    }

    fn reduce(
        &mut self,
        dims: &[usize],
        combiner: Binary,
        id: NodeId,
        at: &[Index],
        target: &str,
    ) -> Made<String> {
        let graph = self.graph;
        let operands = &graph.node(id).operands;
        let shape = graph.shape(operands[0]);
        let inner = match shape.elem {
            ElemType::F16 | ElemType::BF16 => ElemType::F32,
            other => other,
        };
        let (mut lengths, mut kept) = (Vec::new(), at.iter());
        let indices: Vec<Index> = (0..shape.rank())
            .map(|d| {
                if !dims.contains(&d) {
                    return kept.next().cloned().unwrap_or(Index::constant(0));
                }
                lengths.push(shape.dims[d]);
                Index::counter(&format!("k{}", lengths.len() - 1), shape.dims[d])
            })
            .collect();
        let first = self.element(operands[1], &[])?;
        let first = self.convert(shape.elem, inner, first)?;
        let value = self.element(operands[0], &indices)?;
        let value = self.convert(shape.elem, inner, value)?;
        let step = self.scalars.apply(&Op::Binary(combiner), &[inner; 2], inner, &["s".to_owned(), value])?;
        let total = self.convert(inner, shape.elem, "s".to_owned())?;
        Ok(fold(&first, &lengths, &step, target, &total))
    }

    /// An expression for an element of a node.
    pub(super) fn element(&mut self, id: NodeId, at: &[Index]) -> Made<String> {
        let graph = self.graph;
        if let Some(name) = &self.stored[id.0 as usize] {
            return Ok(Place::tensor(name).element(at, 0));
        }
        let node = graph.node(id);
        let shape = graph.shape(id);
        let of = |k: usize| graph.shape(node.operands[k]);
        match &node.op {
            Op::Parameter(k) => {
                let place = self.inputs.get(*k as usize).ok_or("a parameter without a place")?;
                Ok(place.element(at, 0))
            }
            Op::Constant(value) => {
                let splat = value.splat_value().ok_or("a constant without a tensor")?;
                self.scalars.constant(&splat)
            }
            Op::Copy => self.element(node.operands[0], at),
            Op::Reshape => {
                let place = flat(&shape.dims, at);
                self.element(node.operands[0], &unflat(&of(0).dims, &place))
            }
            Op::Broadcast { dims } => {
                let indices: Vec<Index> = dims
                    .iter()
                    .zip(&of(0).dims)
                    .map(|(&d, &len)| if len == 1 { Index::constant(0) } else { at[d].clone() })
                    .collect();
                self.element(node.operands[0], &indices)
            }
            Op::Transpose { perm } => {
                let mut indices = vec![Index::constant(0); perm.len()];
                perm.iter().zip(at).for_each(|(&d, index)| indices[d] = index.clone());
                self.element(node.operands[0], &indices)
            }
            Op::Slice { start, stride, .. } => {
                let shifted = |((index, &start), &stride): ((&Index, &i64), &i64)| {
                    index.times(stride).plus(&Index::constant(start))
                };
                let indices: Vec<Index> = at.iter().zip(start).zip(stride).map(shifted).collect();
                self.element(node.operands[0], &indices)
            }
            Op::Reverse { dims } => {
                let mut indices = at.to_vec();
                for &d in dims {
                    indices[d] = Index::constant(shape.dims[d] as i64 - 1).plus(&at[d].times(-1));
                }
                self.element(node.operands[0], &indices)
            }
            Op::Pad { low, interior, .. } => self.pad(id, low, interior, at),
            Op::Concatenate { dim } => self.concatenate(id, *dim, at),
            Op::BitcastConvert => self.bitcast(id, at),
            Op::Iota { .. } | Op::Eye => self.known(id, at),
            Op::Dot(_) | Op::Reduce { .. } => Err("a sum without a tensor".to_owned()),
            op => {
                let mut arguments = Vec::with_capacity(node.operands.len());
                let mut params = Vec::with_capacity(node.operands.len());
                for &operand in &node.operands {
                    // Bounds and predicates may be scalars.
                    let indices = if graph.shape(operand).rank() == 0 { &[][..] } else { at };
                    arguments.push(self.element(operand, indices)?);
                    params.push(graph.shape(operand).elem);
                }
                self.scalars.apply(op, &params, shape.elem, &arguments)
            }
        }
    }

    fn pad(&mut self, id: NodeId, low: &[i64], interior: &[i64], at: &[Index]) -> Made<String> {
        let graph = self.graph;
        let operands = &graph.node(id).operands;
        let (mut inside, mut indices) = (Vec::new(), Vec::new());
        for (d, index) in at.iter().enumerate() {
            let from = index.plus(&Index::constant(-low[d]));
            let step = interior[d] + 1;
            let len = graph.shape(operands[0]).dims[d] as i64;
            if !from.within((len - 1) * step + 1) {
                inside.push(format!("{from} >= 0 and {from} < {}", (len - 1) * step + 1));
            }
            if step > 1 && from.modulo(step).value() != Some(0) {
                inside.push(format!("({from}) % {step} == 0"));
            }
            indices.push(if step == 1 { from } else { Index::text(format!("({from}) / {step}")) });
        }
        let value = self.element(operands[0], &indices)?;
        if inside.is_empty() {
            return Ok(value);
        }
        let padding = self.element(operands[1], &[])?;
        Ok(format!("(if {} then {value} else {padding})", inside.join(" and ")))
    }

    fn concatenate(&mut self, id: NodeId, dim: usize, at: &[Index]) -> Made<String> {
        let graph = self.graph;
        let operands = &graph.node(id).operands;
        let mut text = String::new();
        let mut begin = 0;
        for (k, &operand) in operands.iter().enumerate() {
            let mut indices = at.to_vec();
            indices[dim] = at[dim].plus(&Index::constant(-begin));
            begin += graph.shape(operand).dims[dim] as i64;
            let value = self.element(operand, &indices)?;
            if k + 1 == operands.len() {
                text += &value;
            } else {
                let _ = write!(text, "if {} < {begin} then {value} else ", at[dim]);
            }
        }
        Ok(format!("({text})"))
    }

    fn bitcast(&mut self, id: NodeId, at: &[Index]) -> Made<String> {
        let graph = self.graph;
        let operand = graph.node(id).operands[0];
        let (from, to) = (graph.shape(operand).elem, graph.shape(id).elem);
        if from.bytes() == to.bytes() {
            let value = self.element(operand, at)?;
            return self.scalars.same_bits(from, to, &value);
        }
        match (from, to) {
            (ElemType::U8, _) => {
                let mut bytes = Vec::new();
                for k in 0..to.bytes() {
                    let mut indices = at.to_vec();
                    indices.push(Index::constant(k as i64));
                    bytes.push(self.element(operand, &indices)?);
                }
                self.scalars.of_bytes(to, &bytes)
            }
            (_, ElemType::U8) => {
                let (last, rest) = at.split_last().ok_or("a bitcast to a scalar")?;
                let value = self.element(operand, rest)?;
                self.scalars.byte(from, &value, &last.to_string())
            }
            _ => Err(format!("bits of {from} as several of {to} have no form in Hex")),
        }
    }

    /// An element that only its place decides.
    fn known(&mut self, id: NodeId, at: &[Index]) -> Made<String> {
        let graph = self.graph;
        let (node, shape) = (graph.node(id), graph.shape(id));
        let value = eval_op(&node.op, &[], shape).map_err(|error| error.to_string())?;
        const MOST: u64 = 1 << 10;
        let place = flat(&shape.dims, at);
        if let Some(k) = place.value() {
            let element =
                Literal::from_bytes(Shape::scalar(shape.elem), value.element_bytes(k as u64).to_vec());
            return self.scalars.constant(&element.map_err(|error| error.to_string())?);
        }
        let (along, len) = match node.op {
            Op::Iota { dim } => (dim, shape.dims[dim]),
            _ => (0, 2),
        };
        if len > MOST {
            return Err(format!("{} of {len} is too long for an expression", node.op.name()));
        }
        let stride = shape.row_major_strides()[along];
        let mut text = String::new();
        for k in 0..len {
            let (condition, element) = match node.op {
                Op::Iota { .. } => (format!("{} == {k}", at[along]), k * stride),
                _ => (format!("{} == {}", at[0], at[1]), if k == 0 { 0 } else { 1 }),
            };
            let literal =
                Literal::from_bytes(Shape::scalar(shape.elem), value.element_bytes(element).to_vec());
            let element = self.scalars.constant(&literal.map_err(|error| error.to_string())?)?;
            let _ = match k + 1 == len {
                true => write!(text, "{element}"),
                false => write!(text, "if {condition} then {element} else "),
            };
        }
        Ok(format!("({text})"))
    }
}

/// Statements that fold values into `s` and store the outcome.
fn fold(first: &str, lengths: &[u64], step: &str, target: &str, total: &str) -> String {
    let mut text = format!("let s := {first}\n");
    let loops: Vec<String> = (0..)
        .zip(lengths)
        .filter(|(_, len)| **len != 1)
        .map(|(k, len): (usize, _)| format!("for k{k} in 0..{len} {{ "))
        .collect();
    let _ = writeln!(text, "{}s := {step}{}", loops.concat(), " }".repeat(loops.len()));
    let _ = writeln!(text, "{target} := {total}");
    text
}

/// `[2, 3]`, or nothing.
pub(super) fn extents(shape: &Shape) -> String {
    let dims: Vec<String> = shape.dims.iter().map(ToString::to_string).collect();
    if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) }
}
