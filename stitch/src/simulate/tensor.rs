//! Code for tensor graphs: the element of any node at any position, pulled through data movement to memory, and
//! loops that store it. Contractions are in `contraction`.

use super::code::{Code, Value};
use super::externals::Externals;
use super::index::{Index, Vars, linear};
use super::native::Workspace;
use super::rounding::reduce_precision;
use super::scalar::{self, Result, Unsupported};
use super::vectors::VectorLevel;
use act_hlo::{Binary, ElemType, Graph, NodeId, Op, OpKind, Unary};
use std::collections::HashMap;
use std::fmt::Write;

/// Index of an alias scope of the module.
pub(crate) type Scope = u32;

/// A tensor in memory.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Address of the first element.
    pub(crate) base: Value,
    pub(crate) elem: ElemType,
    /// Byte stride of every dimension.
    pub(crate) strides: Vec<i64>,
    pub(crate) scope: Scope,
}

/// What all functions of a module share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) vectors: VectorLevel,
    pub(crate) externals: Externals,
    /// Constant tensors: MLIR of the globals that hold them.
    pub(crate) globals: String,
    pub(crate) global_count: u32,
    /// Alias scopes given out.
    pub(crate) scopes: Scope,
    /// Bytes of workspace that the hungriest function needs.
    pub(crate) workspace: u64,
}

impl Shared {
    pub(crate) fn new(vectors: VectorLevel) -> Shared {
        Shared {
            vectors,
            externals: Externals::default(),
            globals: String::new(),
            global_count: 0,
            scopes: 0,
            workspace: 0,
        }
    }

    pub(crate) fn scope(&mut self) -> Scope {
        self.scopes += 1;
        self.scopes - 1
    }
}

/// Alignment of every temporary in the workspace; a cache line.
const WORKSPACE_ALIGN: u64 = 64;

/// One function body under construction.
pub(crate) struct Tensors<'a> {
    pub(crate) code: Code,
    pub(crate) vars: Vars,
    pub(crate) shared: &'a mut Shared,
    pub(crate) graph: &'a Graph,
    workspace: Workspace,
    workspace_used: u64,
    /// Scopes of all memories that this function touches.
    scopes: Vec<Scope>,
    /// Where a node's value lies, for parameters and materialised nodes.
    memory: HashMap<NodeId, Memory>,
    /// Elements already computed in each enclosing loop body.
    cache: Vec<HashMap<(NodeId, Vec<Index>), Value>>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn new(
        code: Code,
        shared: &'a mut Shared,
        graph: &'a Graph,
        workspace: Workspace,
    ) -> Tensors<'a> {
        Tensors {
            code,
            vars: Vars::default(),
            shared,
            graph,
            workspace,
            workspace_used: 0,
            scopes: Vec::new(),
            memory: HashMap::new(),
            cache: vec![HashMap::new()],
        }
    }

    pub(crate) fn place(&mut self, node: NodeId, memory: Memory) {
        self.note_scope(memory.scope);
        self.memory.insert(node, memory);
    }

    pub(crate) fn note_scope(&mut self, scope: Scope) {
        if !self.scopes.contains(&scope) {
            self.scopes.push(scope);
        }
    }

    pub(crate) fn memory(&self, node: NodeId) -> Option<&Memory> {
        self.memory.get(&node)
    }

    pub(crate) fn dims(&self, node: NodeId) -> &'a [u64] {
        &self.graph.shape(node).dims
    }

    pub(crate) fn elem(&self, node: NodeId) -> ElemType {
        self.graph.shape(node).elem
    }

    /// A dense temporary.
    pub(crate) fn temporary(&mut self, elem: ElemType, dims: &[u64]) -> Memory {
        self.packed(elem, dims).0
    }

    /// A dense temporary to store to, and the same to load from in other pieces than were stored.
    pub(crate) fn packed(&mut self, elem: ElemType, dims: &[u64]) -> (Memory, Memory) {
        let shape = act_hlo::Shape::new(elem, dims);
        let offset = self.workspace_used.next_multiple_of(WORKSPACE_ALIGN);
        self.workspace_used = offset + shape.bytes();
        self.shared.workspace = self.shared.workspace.max(self.workspace_used);
        let offset = self.code.const_i64(offset as i64);
        let Workspace { base, packed } = self.workspace;
        let (base, packed) = (self.code.pointer(base, offset), self.code.pointer(packed, offset));
        let scope = self.shared.scope();
        self.scopes.push(scope);
        let strides = shape.row_major_strides().iter().map(|&s| (s * elem.bytes()) as i64).collect();
        let memory = Memory { base, elem, strides, scope };
        (memory.clone(), Memory { base: packed, ..memory })
    }

    /// Attribute text: the access is in `scope` and in none of the others.
    pub(crate) fn alias(&self, scope: Scope) -> String {
        let mut text = format!(", alias_scopes = [#scope{scope}]");
        let others: Vec<String> =
            self.scopes.iter().filter(|&&s| s != scope).map(|s| format!("#scope{s}")).collect();
        if !others.is_empty() {
            let _ = write!(text, ", noalias_scopes = [{}]", others.join(", "));
        }
        text
    }

    /// A loop nest over `dims` around `body`; dimensions of length 1 have no loop, an empty nest no code.
    pub(crate) fn nest(
        &mut self,
        dims: &[u64],
        body: impl FnOnce(&mut Self, &[Index]) -> Result<()>,
    ) -> Result<()> {
        if dims.contains(&0) {
            return Ok(());
        }
        let mut index = Vec::with_capacity(dims.len());
        for &len in dims {
            index.push(self.open_loop(len));
        }
        let result = body(self, &index);
        for &len in dims {
            self.close_loop(len);
        }
        result
    }

    fn open_loop(&mut self, len: u64) -> Index {
        if len == 1 {
            return Index::constant(0);
        }
        let (zero, one, end) =
            (self.code.const_i64(0), self.code.const_i64(1), self.code.const_i64(len as i64));
        let iv = self.code.name();
        self.code.open(format_args!("scf.for {iv} = {zero} to {end} step {one} : i64"));
        self.cache.push(HashMap::new());
        self.vars.bound(iv, len as i64)
    }

    fn close_loop(&mut self, len: u64) {
        if len != 1 {
            self.cache.pop();
            self.code.close();
        }
    }

    /// Runs `body` where values computed in it must not be used afterwards.
    pub(crate) fn scoped<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        self.cache.push(HashMap::new());
        let result = body(self);
        self.cache.pop();
        result
    }

    /// Byte offset of an element of `memory`.
    pub(crate) fn offset(memory: &Memory, index: &[Index]) -> Index {
        index.iter().zip(&memory.strides).fold(Index::constant(0), |sum, (i, &stride)| sum.plus(stride, i))
    }

    pub(crate) fn pointer(&mut self, base: Value, offset: &Index) -> Option<Value> {
        let offset = self.vars.emit(&mut self.code, offset)?;
        Some(self.code.pointer(base, offset))
    }

    pub(crate) fn load(&mut self, memory: &Memory, index: &[Index]) -> Result<Value> {
        let offset = Self::offset(memory, index);
        self.load_at(memory, &offset, memory.elem, 1)
    }

    pub(crate) fn load_at(
        &mut self,
        memory: &Memory,
        offset: &Index,
        elem: ElemType,
        lanes: u64,
    ) -> Result<Value> {
        let Some(pointer) = self.pointer(memory.base, offset) else { return Err(free_variable(elem)) };
        let alias = self.alias(memory.scope);
        scalar::load(&mut self.code, elem, pointer, lanes, &alias)
    }

    pub(crate) fn store(&mut self, memory: &Memory, index: &[Index], value: Value) -> Result<()> {
        let offset = Self::offset(memory, index);
        self.store_at(memory, &offset, memory.elem, value, 1)
    }

    pub(crate) fn store_at(
        &mut self,
        memory: &Memory,
        offset: &Index,
        elem: ElemType,
        value: Value,
        lanes: u64,
    ) -> Result<()> {
        let Some(pointer) = self.pointer(memory.base, offset) else { return Err(free_variable(elem)) };
        let alias = self.alias(memory.scope);
        scalar::store(&mut self.code, elem, value, pointer, lanes, &alias)
    }

    /// The element of `node` at `index`.
    pub(crate) fn pull(&mut self, node: NodeId, index: &[Index]) -> Result<Value> {
        let key = (node, index.to_vec());
        if let Some(&value) = self.cache.iter().rev().find_map(|level| level.get(&key)) {
            return Ok(value);
        }
        let elem = self.elem(node);
        let value = match self.locate(node, index) {
            Some((memory, offset)) => self.load_at(&memory, &offset, elem, 1)?,
            None => self.compute(node, index)?,
        };
        if let Some(level) = self.cache.last_mut() {
            level.insert(key, value);
        }
        Ok(value)
    }

    /// Where the element lies, if only data movement stands between it and memory. The type to load is the node's.
    pub(crate) fn locate(&mut self, node: NodeId, index: &[Index]) -> Option<(Memory, Index)> {
        if let Some(memory) = self.memory.get(&node) {
            return Some((memory.clone(), Self::offset(memory, index)));
        }
        if let OpKind::BitcastConvert = self.graph.node(node).op {
            let operand = self.graph.node(node).operands[0];
            let (from, to) = (self.elem(operand), self.elem(node));
            if from.bits() == 4 || to.bits() == 4 {
                // A 4-bit integer has a byte of its own, extended by its sign or by zeros.
                return None;
            }
            return match from.bytes().cmp(&to.bytes()) {
                std::cmp::Ordering::Equal => self.locate(operand, index),
                std::cmp::Ordering::Greater => {
                    let (last, outer) = index.split_last()?;
                    let (memory, offset) = self.locate(operand, outer)?;
                    Some((memory, offset.plus(to.bytes() as i64, last)))
                }
                std::cmp::Ordering::Less => {
                    // The parts must lie side by side.
                    let parts = (to.bytes() / from.bytes()) as i64;
                    let (var, part) = self.vars.free(parts);
                    let inner: Vec<Index> = index.iter().cloned().chain([part]).collect();
                    let (memory, offset) = self.locate(operand, &inner)?;
                    (offset.coefficient(var) == from.bytes() as i64).then(|| (memory, offset.without(var)))
                }
            };
        }
        let (operand, inner) = self.moved(node, index)?;
        self.locate(operand, &inner)
    }

    /// Which element of which operand a data movement yields.
    fn moved(&mut self, node: NodeId, index: &[Index]) -> Option<(NodeId, Vec<Index>)> {
        let graph = self.graph;
        let operand = *graph.node(node).operands.first()?;
        let inner = match &graph.node(node).op {
            OpKind::Copy => index.to_vec(),
            OpKind::Reshape => {
                let position = linear(index, self.dims(node));
                self.unflatten(&position, self.dims(operand))?
            }
            OpKind::Broadcast { dims } => {
                let from = self.dims(operand);
                // A dimension of length 1 may stretch.
                let pick = |(k, &d): (usize, &usize)| {
                    if from[k] == 1 { Index::constant(0) } else { index[d].clone() }
                };
                dims.iter().enumerate().map(pick).collect()
            }
            OpKind::Transpose { perm } => {
                let mut inner = vec![Index::default(); index.len()];
                for (i, &p) in index.iter().zip(perm) {
                    inner[p] = i.clone();
                }
                inner
            }
            OpKind::Slice { start, stride, .. } => {
                let at = |((i, &s), &k): ((&Index, &i64), &i64)| Index::constant(s).plus(k, i);
                index.iter().zip(start).zip(stride).map(at).collect()
            }
            OpKind::Reverse { dims } => {
                let flip = |(d, i): (usize, &Index)| {
                    if dims.contains(&d) {
                        Index::constant(self.dims(node)[d] as i64 - 1).plus(-1, i)
                    } else {
                        i.clone()
                    }
                };
                index.iter().enumerate().map(flip).collect()
            }
            _ => return None,
        };
        Some((operand, inner))
    }

    /// The multi-dimensional index of a row-major position.
    fn unflatten(&mut self, position: &Index, dims: &[u64]) -> Option<Vec<Index>> {
        let mut rest = position.clone();
        let mut inner = vec![Index::default(); dims.len()];
        for (d, &len) in dims.iter().enumerate().rev() {
            if d == 0 {
                inner[0] = rest.clone();
            } else if len > 0 {
                (rest, inner[d]) = self.vars.split(&mut self.code, &rest, len as i64)?;
            }
        }
        Some(inner)
    }

    /// Code for an element that is not simply loaded.
    fn compute(&mut self, node: NodeId, index: &[Index]) -> Result<Value> {
        let graph = self.graph;
        let elem = self.elem(node);
        let operands = &graph.node(node).operands;
        match &graph.node(node).op {
            OpKind::Constant(literal) => match literal.splat_value() {
                Some(value) => scalar::constant(&mut self.code, elem, value.bytes(), 1),
                None => self.global(literal, index),
            },
            OpKind::Iota { dim } => {
                let value = self.emit(&index[*dim], elem)?;
                scalar::convert(&mut self.code, ElemType::S64, elem, value, 1)
            }
            OpKind::Eye => {
                let (row, column) = (self.emit(&index[0], elem)?, self.emit(&index[1], elem)?);
                let equal = self.code.op(format_args!("arith.cmpi eq, {row}, {column} : i64"));
                scalar::convert(&mut self.code, ElemType::Pred, elem, equal, 1)
            }
            OpKind::Unary(op) => {
                let x = self.pull(operands[0], index)?;
                let from = self.elem(operands[0]);
                scalar::unary(&mut self.code, &mut self.shared.externals, *op, from, x)
            }
            OpKind::Binary(op) => {
                let (a, b) = (self.pull(operands[0], index)?, self.pull(operands[1], index)?);
                scalar::binary(&mut self.code, &mut self.shared.externals, *op, elem, a, b)
            }
            OpKind::Compare(direction) => {
                let (a, b) = (self.pull(operands[0], index)?, self.pull(operands[1], index)?);
                scalar::compare(&mut self.code, *direction, self.graph.shape(operands[0]).elem, a, b)
            }
            OpKind::Select => {
                let p = self.pull_or_scalar(operands[0], index)?;
                let (a, b) = (self.pull(operands[1], index)?, self.pull(operands[2], index)?);
                scalar::select(&mut self.code, elem, p, a, b)
            }
            OpKind::Clamp => {
                let low = self.pull_or_scalar(operands[0], index)?;
                let x = self.pull(operands[1], index)?;
                let high = self.pull_or_scalar(operands[2], index)?;
                let externals = &mut self.shared.externals;
                let raised = scalar::binary(&mut self.code, externals, Binary::Maximum, elem, x, low)?;
                scalar::binary(&mut self.code, externals, Binary::Minimum, elem, raised, high)
            }
            OpKind::Fma => {
                let a = self.pull(operands[0], index)?;
                let (b, c) = (self.pull(operands[1], index)?, self.pull(operands[2], index)?);
                scalar::fma(&mut self.code, elem, a, b, c)
            }
            OpKind::Convert => {
                let x = self.pull(operands[0], index)?;
                scalar::convert(&mut self.code, self.graph.shape(operands[0]).elem, elem, x, 1)
            }
            OpKind::BitcastConvert => self.bitcast(operands[0], node, index),
            OpKind::ReducePrecision { exponent_bits, mantissa_bits } => {
                let x = self.pull(operands[0], index)?;
                reduce_precision(&mut self.code, elem, x, *exponent_bits, *mantissa_bits)
            }
            OpKind::DynamicSlice { sizes } => {
                let mut inner = Vec::with_capacity(index.len());
                for (d, i) in index.iter().enumerate() {
                    let most = self.dims(operands[0])[d] as i64 - sizes[d];
                    inner.push(self.clamped_start(operands[d + 1], most)?.plus(1, i));
                }
                self.pull(operands[0], &inner)
            }
            _ => match self.moved(node, index) {
                Some((operand, inner)) => self.pull(operand, &inner),
                None => Err(unsupported(graph, node)),
            },
        }
    }

    fn emit(&mut self, index: &Index, elem: ElemType) -> Result<Value> {
        self.vars.emit(&mut self.code, index).ok_or_else(|| free_variable(elem))
    }

    /// The operand at `index`, or its only element.
    fn pull_or_scalar(&mut self, node: NodeId, index: &[Index]) -> Result<Value> {
        if self.graph.shape(node).rank() == 0 { self.pull(node, &[]) } else { self.pull(node, index) }
    }

    /// The value of a scalar integer node, clamped to `0..=most`.
    pub(crate) fn clamped_start(&mut self, node: NodeId, most: i64) -> Result<Index> {
        let elem = self.elem(node);
        let value = self.pull(node, &[])?;
        let wide = scalar::convert(&mut self.code, elem, ElemType::S64, value, 1)?;
        let (zero, most_value) = (self.code.const_i64(0), self.code.const_i64(most));
        // An unsigned 64-bit start above i64::MAX is a huge one, not a negative one.
        let clamped = if elem.is_unsigned_int() {
            self.code.op(format_args!("arith.minui {wide}, {most_value} : i64"))
        } else {
            let raised = self.code.op(format_args!("arith.maxsi {wide}, {zero} : i64"));
            self.code.op(format_args!("arith.minsi {raised}, {most_value} : i64"))
        };
        Ok(self.vars.bound(clamped, most + 1))
    }

    fn bitcast(&mut self, operand: NodeId, node: NodeId, index: &[Index]) -> Result<Value> {
        let (from, to) = (self.elem(operand), self.elem(node));
        let int = |elem: ElemType| format!("i{}", elem.bits());
        if from.bits() == to.bits() {
            let x = self.pull(operand, index)?;
            let bits = scalar::to_bits(&mut self.code, from, x)?;
            return scalar::from_bits(&mut self.code, to, bits);
        }
        if from.bits() > to.bits() {
            let Some((last, outer)) = index.split_last() else { return Err(free_variable(to)) };
            let x = self.pull(operand, outer)?;
            let bits = scalar::to_bits(&mut self.code, from, x)?;
            let part = self.emit(last, to)?;
            let shift = self.code.mul_i64(part, i64::from(to.bits()));
            let wide = int(from);
            let shift = match wide.as_str() {
                "i64" => shift,
                "i128" => self.code.op(format_args!("arith.extui {shift} : i64 to i128")),
                _ => self.code.op(format_args!("arith.trunci {shift} : i64 to {wide}")),
            };
            let moved = self.code.op(format_args!("arith.shrui {bits}, {shift} : {wide}"));
            let narrow = self.code.op(format_args!("arith.trunci {moved} : {wide} to {}", int(to)));
            return scalar::from_bits(&mut self.code, to, narrow);
        }
        let (wide, narrow) = (int(to), int(from));
        let mut bits = self.code.op(format_args!("arith.constant 0 : {wide}"));
        for part in 0..u64::from(to.bits() / from.bits()) {
            let inner: Vec<Index> = index.iter().cloned().chain([Index::constant(part as i64)]).collect();
            let x = self.pull(operand, &inner)?;
            let x = scalar::to_bits(&mut self.code, from, x)?;
            let extended = self.code.op(format_args!("arith.extui {x} : {narrow} to {wide}"));
            let shift =
                self.code.op(format_args!("arith.constant {} : {wide}", part * u64::from(from.bits())));
            let moved = self.code.op(format_args!("arith.shli {extended}, {shift} : {wide}"));
            bits = self.code.op(format_args!("arith.ori {bits}, {moved} : {wide}"));
        }
        scalar::from_bits(&mut self.code, to, bits)
    }

    /// An element of a constant that is not one value throughout: the table becomes a global.
    fn global(&mut self, literal: &act_hlo::Literal, index: &[Index]) -> Result<Value> {
        let name = format!("act_constant_{}", self.shared.global_count);
        self.shared.global_count += 1;
        let mut bytes = String::new();
        for byte in literal.bytes() {
            let _ = write!(bytes, "\\{byte:02X}");
        }
        let _ = writeln!(self.shared.globals, "  llvm.mlir.global internal constant @{name}(\"{bytes}\")");
        let base = self.code.op(format_args!("llvm.mlir.addressof @{name} : !llvm.ptr"));
        let elem = literal.elem();
        let offset = linear(index, &literal.shape().dims);
        let offset = Index::constant(0).plus(elem.bytes() as i64, &offset);
        let Some(pointer) = self.pointer(base, &offset) else { return Err(free_variable(elem)) };
        scalar::load(&mut self.code, elem, pointer, 1, "")
    }

    /// Stores `node`'s tensor into `memory`, which has the node's shape.
    pub(crate) fn fill(&mut self, node: NodeId, memory: &Memory) -> Result<()> {
        let dims = self.dims(node);
        self.nest(dims, |this, index| {
            let value = this.pull(node, index)?;
            this.store(memory, index, value)
        })
    }

    /// Whether computing an element of `node` again costs more than keeping it.
    pub(crate) fn is_costly(op: &Op) -> bool {
        match op {
            OpKind::Unary(u) => !matches!(
                u,
                Unary::Abs
                    | Unary::Negate
                    | Unary::Sign
                    | Unary::Not
                    | Unary::Ceil
                    | Unary::Floor
                    | Unary::RoundNearestEven
                    | Unary::RoundNearestAfz
                    | Unary::IsFinite
                    | Unary::Clz
                    | Unary::Popcnt
            ),
            OpKind::Binary(b) => {
                matches!(b, Binary::Divide | Binary::Remainder | Binary::Power | Binary::Atan2)
            }
            _ => false,
        }
    }
}

pub(crate) fn unsupported(graph: &Graph, node: NodeId) -> Unsupported {
    Unsupported { op: graph.node(node).op.name().to_owned(), elem: graph.shape(node).elem }
}

pub(crate) fn free_variable(elem: ElemType) -> Unsupported {
    Unsupported { op: "this data movement".to_owned(), elem }
}
