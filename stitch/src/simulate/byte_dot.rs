//! Products of 8-bit integers summed in 32 bits, by instructions that multiply pairs or quads and add the products to one
//! sum (Intel SDM volume 2: VPMADDWD, VPDPBUSD). Sums of integers wrap, so their order does not matter.

use super::code::{Code, Value};
use super::dot::{At, Dot, permuted, splat};
use super::index::Index;
use super::scalar::{self, Result};
use super::tensor::{Memory, Tensors};
use super::vectors::VectorLevel;
use act_hlo::ElemType;

/// Groups of the right operand that stay in registers; more of them are packed in memory.
const GROUPS_IN_REGISTERS: u64 = 8;

/// Registers of a packed operand that are moved without a loop.
const FEW_CHUNKS: u64 = 16;

/// How the operands are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteDot {
    /// Sums per instruction.
    pub(crate) lanes: u64,
    /// Products per sum: 4 of bytes or 2 of 16-bit integers.
    group: u64,
    lhs: ElemType,
    rhs: ElemType,
    /// Size of the contracted dimension.
    depth: u64,
}

/// The left operand in the form that the instruction wants.
pub(crate) struct ByteRows {
    pub(crate) kind: ByteDot,
    rows: Memory,
}

/// A chunk of columns of the right operand, grouped.
pub(crate) struct ByteColumns {
    groups: Groups,
    /// What the sums have too much because the left operand was made unsigned by adding 128.
    excess: Option<Value>,
}

enum Groups {
    Registers(Vec<Value>),
    /// One group after the other.
    Memory(Memory),
}

impl ByteDot {
    pub(crate) fn choose(level: VectorLevel, plan: &Dot, columns: u64) -> Option<ByteDot> {
        use ElemType::{S8, S32, U8, U32};
        let (lhs, rhs) = (plan.lhs.elem, plan.rhs.elem);
        let bytes = matches!(lhs, S8 | U8) && matches!(rhs, S8 | U8) && matches!(plan.wide, S32 | U32);
        let [depth] = plan.contracted[..] else { return None };
        let (lanes, group) = match level {
            VectorLevel::Plain => return None,
            VectorLevel::Avx2 => (8, 2),
            VectorLevel::Avx512 => (16, 2),
            // One side is unsigned, the other signed.
            VectorLevel::Avx512Vnni | VectorLevel::Avx512Bf16 if lhs == U8 && rhs == U8 => (16, 2),
            VectorLevel::Avx512Vnni | VectorLevel::Avx512Bf16 => (16, 4),
        };
        (bytes && depth > 0 && columns >= lanes).then_some(ByteDot { lanes, group, lhs, rhs, depth })
    }

    fn groups(&self) -> u64 {
        self.depth.div_ceil(self.group)
    }

    /// Type of a vector of grouped operands.
    fn grouped(&self) -> String {
        let (count, bits) = (self.lanes * self.group, 32 / self.group);
        format!("vector<{count}xi{bits}>")
    }

    fn sums(&self) -> String {
        format!("vector<{}xi32>", self.lanes)
    }

    /// Both operands are signed, so 128 is added to the left one.
    fn is_shifted(&self) -> bool {
        self.group == 4 && self.lhs == ElemType::S8 && self.rhs == ElemType::S8
    }

    /// `sum + left · right` over the groups.
    fn multiply_add(&self, code: &mut Code, sum: Value, left: Value, right: Value) -> Value {
        let (sums, grouped) = (self.sums(), self.grouped());
        if self.group == 4 {
            // The unsigned side first.
            let (a, b) = if self.rhs == ElemType::U8 { (right, left) } else { (left, right) };
            return code.op(format_args!(
                "llvm.call_intrinsic \"llvm.x86.avx512.vpdpbusd.512\"({sum}, {a}, {b}) : \
                 ({sums}, {grouped}, {grouped}) -> {sums}"
            ));
        }
        let name = if self.lanes == 16 { "avx512.pmaddw.d.512" } else { "avx2.pmadd.wd" };
        let products = code.op(format_args!(
            "llvm.call_intrinsic \"llvm.x86.{name}\"({left}, {right}) : ({grouped}, {grouped}) -> {sums}"
        ));
        code.op(format_args!("arith.addi {sum}, {products} : {sums}"))
    }
}

impl Tensors<'_> {
    /// Copies the left operand so that a group is 32 adjacent bits.
    pub(crate) fn byte_rows(
        &mut self,
        kind: ByteDot,
        plan: &Dot,
        dims: &[u64],
        order: &[usize],
    ) -> Result<ByteRows> {
        let (elem, source) = (if kind.group == 4 { ElemType::U8 } else { ElemType::S16 }, &plan.lhs);
        let ordered: Vec<u64> = order.iter().map(|&d| dims[d]).collect();
        let contracted = plan.dims.lhs_contracting[0];
        let contiguous = source.strides[contracted] == 1 || kind.depth == 1;
        if kind.group == 4 && contiguous && !kind.is_shifted() && kind.depth.is_multiple_of(4) {
            return Ok(ByteRows { kind, rows: source.clone() });
        }
        let mut padded = ordered.clone();
        if let Some(last) = padded.last_mut() {
            *last = kind.groups() * kind.group;
        }
        let place = |memory: Memory| Memory { strides: permuted(&memory.strides, order), ..memory };
        let (to, from) = self.packed(elem, &padded);
        let (to, rows) = (place(to), place(from));
        let change = |this: &mut Self, value: Value, chunk: u64| {
            if !kind.is_shifted() {
                return scalar::convert(&mut this.code, source.elem, elem, value, chunk);
            }
            let ty = scalar::lanes_of("i8", chunk);
            let top = scalar::constant(&mut this.code, ElemType::U8, &[0x80], chunk)?;
            Ok(this.code.op(format_args!("arith.xori {value}, {top} : {ty}")))
        };
        let total: u64 = ordered.iter().product();
        let chunk = largest_chunk(total);
        if kind.group == 4
            && padded == ordered
            && is_dense(source, dims, order)
            && total <= FEW_CHUNKS * chunk
        {
            // All of it lies side by side.
            for at in (0..total).step_by(chunk as usize) {
                let offset = Index::constant(at as i64);
                let value = self.load_at(source, &offset, source.elem, chunk)?;
                let value = change(self, value, chunk)?;
                self.store_at(&to, &offset, elem, value, chunk)?;
            }
            return Ok(ByteRows { kind, rows });
        }
        let chunk = if contiguous && kind.group == 4 { largest_chunk(kind.depth) } else { 1 };
        let mut steps = ordered;
        if let Some(last) = steps.last_mut() {
            *last /= chunk;
        }
        self.nest(&steps, |this, index| {
            let mut at = permuted(index, order);
            at[contracted] = Index::constant(0).plus(chunk as i64, &at[contracted]);
            let offset = Self::offset(source, &at);
            let value = this.load_at(source, &offset, source.elem, chunk)?;
            let value = change(this, value, chunk)?;
            let offset = Self::offset(&to, &at);
            this.store_at(&to, &offset, elem, value, chunk)
        })?;
        // What lies behind the last row element meets zeros of the right operand.
        Ok(ByteRows { kind, rows })
    }

    /// Groups the columns from `at.column` on.
    pub(crate) fn byte_columns(&mut self, rows: &ByteRows, plan: &Dot, at: &At<'_>) -> Result<ByteColumns> {
        let kind = rows.kind;
        let zero = scalar::constant(&mut self.code, plan.wide, &[], kind.lanes)?;
        if kind.groups() <= GROUPS_IN_REGISTERS {
            let mut groups = Vec::new();
            let mut excess = kind.is_shifted().then_some(zero);
            for g in 0..kind.groups() {
                let first = Index::constant((g * kind.group) as i64);
                let group = self.byte_group(kind, plan, at, &first, kind.depth - g * kind.group)?;
                excess = excess.map(|sum| self.excess(kind, sum, group)).transpose()?;
                groups.push(group);
            }
            return Ok(ByteColumns { groups: Groups::Registers(groups), excess });
        }
        let packed = self.temporary(ElemType::S32, &[kind.groups(), kind.lanes]);
        let full = kind.depth / kind.group;
        let types = [kind.sums()];
        let store = |this: &mut Self, g: &Index, left: u64, sum: Value| {
            let first = Index::constant(0).plus(kind.group as i64, g);
            let group = this.byte_group(kind, plan, at, &first, left)?;
            let (grouped, sums) = (kind.grouped(), kind.sums());
            let bits = this.code.op(format_args!("llvm.bitcast {group} : {grouped} to {sums}"));
            let offset = Self::offset(&packed, &[g.clone(), Index::constant(0)]);
            this.store_at(&packed, &offset, ElemType::S32, bits, kind.lanes)?;
            if kind.is_shifted() { this.excess(kind, sum, group) } else { Ok(sum) }
        };
        let mut sums = self.fold(&[full], &types, vec![zero], |this, g, sums| {
            Ok(vec![store(this, &g[0], kind.group, sums[0])?])
        })?;
        if !kind.depth.is_multiple_of(kind.group) {
            let g = Index::constant(full as i64);
            sums = vec![store(self, &g, kind.depth % kind.group, sums[0])?];
        }
        let excess = kind.is_shifted().then(|| sums[0]);
        Ok(ByteColumns { groups: Groups::Memory(packed), excess })
    }

    /// `sum + 128 · group`.
    fn excess(&mut self, kind: ByteDot, sum: Value, group: Value) -> Result<Value> {
        let shift = scalar::constant(&mut self.code, ElemType::U8, &[0x80], kind.lanes * kind.group)?;
        Ok(kind.multiply_add(&mut self.code, sum, shift, group))
    }

    /// Rows `first..` of the right operand side by side per column, zeros for those beyond the `left` that are there.
    fn byte_group(
        &mut self,
        kind: ByteDot,
        plan: &Dot,
        at: &At<'_>,
        first: &Index,
        left: u64,
    ) -> Result<Value> {
        let rhs = &plan.rhs;
        let (elem, bits) = if kind.group == 4 { (rhs.elem, 8) } else { (ElemType::S16, 16) };
        let all = kind.lanes * kind.group;
        let step = rhs.strides[plan.dims.rhs_contracting[0]];
        let mut parts = Vec::new();
        if left >= kind.group && step == kind.lanes as i64 {
            // The rows lie side by side.
            let offset = Self::offset(rhs, &plan.rhs_index(at, std::slice::from_ref(first)));
            let rows = self.load_at(rhs, &offset, rhs.elem, all)?;
            parts.push(scalar::convert(&mut self.code, rhs.elem, elem, rows, all)?);
        } else {
            for k in 0..kind.group {
                parts.push(if k < left {
                    let inner = [Index::constant(k as i64).plus(1, first)];
                    let offset = Self::offset(rhs, &plan.rhs_index(at, &inner));
                    let row = self.load_at(rhs, &offset, rhs.elem, kind.lanes)?;
                    scalar::convert(&mut self.code, rhs.elem, elem, row, kind.lanes)?
                } else {
                    scalar::constant(&mut self.code, elem, &[], kind.lanes)?
                });
            }
        }
        // Row after row in one register.
        let mut length = all / parts.len() as u64;
        while parts.len() > 1 {
            let ty = format!("vector<{length}xi{bits}>");
            let mask = join(0..2 * length);
            let pair = |pair: &[Value]| {
                self.code.op(format_args!("llvm.shufflevector {}, {} [{mask}] : {ty}", pair[0], pair[1]))
            };
            parts = parts.chunks(2).map(pair).collect();
            length *= 2;
        }
        // Then column after column.
        let mask = join((0..all).map(|to| to % kind.group * kind.lanes + to / kind.group));
        let (rows, ty) = (parts[0], format!("vector<{all}xi{bits}>"));
        Ok(self.code.op(format_args!("llvm.shufflevector {rows}, {rows} [{mask}] : {ty}")))
    }

    /// `height` rows of the result for one chunk of columns.
    pub(crate) fn byte_block(
        &mut self,
        rows: &ByteRows,
        columns: &ByteColumns,
        plan: &Dot,
        at: &At<'_>,
        height: u64,
    ) -> Result<()> {
        let kind = rows.kind;
        let (sums_ty, grouped) = (kind.sums(), kind.grouped());
        let zero = scalar::constant(&mut self.code, plan.wide, &[], kind.lanes)?;
        let mut init = Vec::with_capacity(height as usize);
        for r in 0..height {
            // Sums that wrap may begin with what they are added to.
            let old = self.addend_row(plan, at, r as i64, kind.lanes)?.unwrap_or(zero);
            init.push(match columns.excess {
                Some(excess) => self.code.op(format_args!("arith.subi {old}, {excess} : {sums_ty}")),
                None => old,
            });
        }
        let step = |this: &mut Self, g: &Index, right: Value, sums: &[Value]| {
            let mut next = Vec::with_capacity(sums.len());
            for (r, &sum) in sums.iter().enumerate() {
                let inner = [Index::constant(0).plus(kind.group as i64, g)];
                let offset = Self::offset(&rows.rows, &plan.lhs_index(at, r as i64, &inner));
                let left = this.load_at(&rows.rows, &offset, ElemType::S32, 1)?;
                let left = splat(&mut this.code, left, "i32", kind.lanes);
                let left = this.code.op(format_args!("llvm.bitcast {left} : {sums_ty} to {grouped}"));
                next.push(kind.multiply_add(&mut this.code, sum, left, right));
            }
            Ok(next)
        };
        let sums = match &columns.groups {
            Groups::Registers(groups) => {
                let mut sums = init;
                for (g, &group) in groups.iter().enumerate() {
                    sums = step(self, &Index::constant(g as i64), group, &sums)?;
                }
                sums
            }
            Groups::Memory(packed) => {
                let types = vec![sums_ty.clone(); height as usize];
                self.fold(&[kind.groups()], &types, init, |this, g, sums| {
                    let offset = Self::offset(packed, &[g[0].clone(), Index::constant(0)]);
                    let group = this.load_at(packed, &offset, ElemType::S32, kind.lanes)?;
                    let group = this.code.op(format_args!("llvm.bitcast {group} : {sums_ty} to {grouped}"));
                    step(this, &g[0], group, sums)
                })?
            }
        };
        for (r, &sum) in sums.iter().enumerate() {
            self.store_row(plan, at, r as i64, sum, kind.lanes)?;
        }
        Ok(())
    }
}

/// As many bytes at once as a register holds and `bytes` is a multiple of.
fn largest_chunk(bytes: u64) -> u64 {
    (bytes & bytes.wrapping_neg()).clamp(1, 64)
}

/// Whether bytes of these dimensions lie side by side in the given order.
fn is_dense(memory: &Memory, dims: &[u64], order: &[usize]) -> bool {
    let mut step = 1;
    order.iter().rev().all(|&d| {
        let here = dims[d] == 1 || memory.strides[d] == step;
        step *= dims[d] as i64;
        here
    })
}

fn join(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
}
