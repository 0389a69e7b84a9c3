//! Products of bfloat16 summed in f32, two per instruction (Intel SDM volume 2: VDPBF16PS). The instruction adds the
//! product of the upper halves first, then that of the lower ones, each sum rounded to nearest even and denormals taken
//! for zeros. The product of two bfloat16 numbers is exact in f32, so the sums are those of `dot`, bit for bit, where no
//! product overflows or is too small for a normal number: that is looked at before, for every dot that is executed.

use super::code::Value;
use super::dot::{At, Dot, permuted, splat};
use super::index::Index;
use super::scalar::{self, Result, lanes_of};
use super::tensor::{Memory, Tensors};
use super::vectors::VectorLevel;
use act_hlo::ElemType;

/// Sums per register.
const LANES: u64 = 16;

/// Columns of the result that a block of rows has in registers, as many as there are.
pub(crate) const PAIR_WIDTHS: [u64; 2] = [2 * LANES, LANES];

/// Biased exponent of the least normal number.
const NORMAL: i64 = 1;

/// Biased exponent of infinities and NaNs.
const INFINITE: i64 = 255;

/// Bits of the fraction of a bfloat16.
const FRACTION: i64 = 7;

/// The product of two finite numbers is normal and finite if the sum of their biased exponents is in this range: at least
/// 2^-126 = 2^(128 - 2*127), and below 4 * 2^(380 - 2*127) = 2^128.
const PRODUCT: std::ops::RangeInclusive<i64> = 128..=380;

/// Elements looked at together.
const LOOK: u64 = 32;

/// A factor with two adjacent elements of the contracted dimension in 32 bits, the earlier one in the upper half.
pub(crate) struct Pairs {
    /// The contracted dimension counts pairs.
    memory: Memory,
}

/// Bits that stand behind the last element of an odd number of them. The product of both is -0, which changes no sum.
enum Filler {
    Zero = 0,
    MinusZero = 0x8000,
}

impl Dot {
    /// Whether the instruction may be asked for.
    pub(crate) fn is_paired(&self, level: VectorLevel, columns: u64) -> bool {
        let narrow = self.lhs.elem == ElemType::BF16 && self.rhs.elem == ElemType::BF16;
        level >= VectorLevel::Avx512Bf16
            && narrow
            && self.wide == ElemType::F32
            && matches!(self.contracted[..], [depth] if depth > 1)
            && columns >= LANES
    }
}

/// Pairs among so many elements.
fn pairs(depth: u64) -> u64 {
    depth.div_ceil(2)
}

impl Tensors<'_> {
    /// Whether the instruction does what `dot` does with these operands.
    pub(crate) fn is_moderate(&mut self, plan: &Dot, lhs_dims: &[u64], rhs_dims: &[u64]) -> Result<Value> {
        let left = self.exponents(&plan.lhs, lhs_dims)?;
        let right = self.exponents(&plan.rhs, rhs_dims)?;
        let code = &mut self.code;
        let [least, most] =
            [0, 1].map(|k| code.op(format_args!("arith.addi {}, {} : i64", left[k], right[k])));
        let mut tests = Vec::new();
        let (low, high) = (code.const_i64(*PRODUCT.start()), code.const_i64(*PRODUCT.end()));
        tests.push(code.op(format_args!("arith.cmpi sge, {least}, {low} : i64")));
        tests.push(code.op(format_args!("arith.cmpi sle, {most}, {high} : i64")));
        let infinite = code.const_i64(INFINITE);
        for most in [left[1], right[1]] {
            tests.push(code.op(format_args!("arith.cmpi slt, {most}, {infinite} : i64")));
        }
        let first = tests.remove(0);
        Ok(tests.into_iter().fold(first, |all, test| code.op(format_args!("arith.andi {all}, {test} : i1"))))
    }

    /// The least biased exponent among elements that are no zeros to the processor, and the greatest of all. Without any
    /// element but zeros the former is above the latter.
    fn exponents(&mut self, operand: &Memory, dims: &[u64]) -> Result<[Value; 2]> {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(operand.strides[d]));
        let bytes = ElemType::BF16.bytes() as i64;
        let adjacent = order.last().is_some_and(|&d| operand.strides[d] == bytes);
        let ordered: Vec<u64> = order.iter().map(|&d| dims[d]).collect();
        let (outer, last) = match ordered.split_last() {
            Some((&last, outer)) if adjacent => (outer, last),
            _ => (&ordered[..], 1),
        };
        // Magnitudes less NORMAL, so that zeros and denormals wrap around to the top; and magnitudes.
        let mut bounds = [
            self.code.op(format_args!("arith.constant -1 : i16")),
            self.code.op(format_args!("arith.constant 0 : i16")),
        ];
        for (start, chunks, lanes) in [(0, last / LOOK, LOOK), (last / LOOK * LOOK, 1, last % LOOK)] {
            if lanes == 0 || chunks == 0 {
                continue;
            }
            let ty = lanes_of("i16", lanes);
            let init = [-1, 0].map(|bits| scalar::splat(&mut self.code, bits, "i16", lanes));
            let loops = [outer, &[chunks]].concat();
            let found =
                self.fold(&loops, &[ty.clone(), ty.clone()], init.to_vec(), |this, index, found| {
                    let mut at = index.to_vec();
                    let chunk = at.pop().unwrap_or_default();
                    if adjacent {
                        at.push(Index::constant(start as i64).plus(lanes as i64, &chunk));
                    }
                    let offset = Self::offset(operand, &permuted(&at, &order));
                    let bits = this.load_at(operand, &offset, ElemType::U16, lanes)?;
                    let code = &mut this.code;
                    let sign = scalar::splat(code, 0x7fff, "i16", lanes);
                    let magnitude = code.op(format_args!("arith.andi {bits}, {sign} : {ty}"));
                    let normal = scalar::splat(code, NORMAL << FRACTION, "i16", lanes);
                    let above = code.op(format_args!("arith.subi {magnitude}, {normal} : {ty}"));
                    Ok(vec![
                        code.op(format_args!("arith.minui {}, {above} : {ty}", found[0])),
                        code.op(format_args!("arith.maxui {}, {magnitude} : {ty}", found[1])),
                    ])
                })?;
            for (k, name) in ["min", "max"].into_iter().enumerate() {
                let mut value = found[k];
                if lanes > 1 {
                    value = self
                        .code
                        .op(format_args!("\"llvm.intr.vector.reduce.u{name}\"({value}) : ({ty}) -> i16"));
                }
                bounds[k] = self.code.op(format_args!("arith.{name}ui {}, {value} : i16", bounds[k]));
            }
        }
        let fraction = self.code.const_i64(FRACTION);
        let [least, most] = bounds.map(|bits| {
            let bits = self.code.op(format_args!("arith.extui {bits} : i16 to i64"));
            self.code.op(format_args!("arith.shrui {bits}, {fraction} : i64"))
        });
        Ok([self.code.add_i64(least, NORMAL), most])
    }

    /// One of two pieces of code, as `condition` says when it runs.
    pub(crate) fn either(
        &mut self,
        condition: Value,
        yes: impl FnOnce(&mut Self) -> Result<()>,
        no: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.code.open(format_args!("scf.if {condition}"));
        let result = self.scoped(yes);
        self.code.close();
        self.code.open(format_args!("else"));
        let other = self.scoped(no);
        self.code.close();
        result.and(other)
    }

    /// The left operand in pairs.
    pub(crate) fn pair_rows(&mut self, plan: &Dot, dims: &[u64]) -> Result<Pairs> {
        let contracted = plan.dims.lhs_contracting[0];
        let bytes = ElemType::BF16.bytes() as i64;
        // The dimension whose elements are moved together, if they are adjacent.
        let vector = (0..dims.len()).rev().find(|&d| plan.lhs.strides[d] == bytes && dims[d] > 1);
        let vector = vector.unwrap_or(contracted);
        let mut order: Vec<usize> = (0..dims.len()).filter(|&d| d != vector && d != contracted).collect();
        order.push(contracted);
        if vector != contracted {
            order.push(vector);
        }
        let mut packed = dims.to_vec();
        packed[contracted] = pairs(dims[contracted]);
        let (to, from) = self.packed(ElemType::S32, &order.iter().map(|&d| packed[d]).collect::<Vec<_>>());
        let place = |memory: Memory| Memory { strides: permuted(&memory.strides, &order), ..memory };
        let (to, from) = (place(to), place(from));
        let whole = dims[contracted] / 2;
        let rest = dims[contracted] % 2;
        for (first, count, half) in [(0, whole, false), (whole, rest, true)] {
            // Pairs that are adjacent are loaded as they lie.
            let along = if vector == contracted { count } else { packed[vector] };
            let rotated = vector == contracted && plan.lhs.strides[contracted] == bytes && !half;
            let wide = if vector != contracted || rotated { LANES } else { 1 };
            for (start, chunks, width) in [(0, along / wide, wide), (along / wide * wide, 1, along % wide)] {
                if width == 0 || count == 0 {
                    continue;
                }
                let mut lengths: Vec<u64> = order.iter().map(|&d| packed[d]).collect();
                if vector != contracted {
                    let at = lengths.len() - 2;
                    lengths[at] = count;
                }
                if let Some(last) = lengths.last_mut() {
                    *last = chunks;
                }
                self.nest(&lengths, |this, index| {
                    let mut at = index.to_vec();
                    if let Some(last) = at.last_mut() {
                        *last = Index::constant(start as i64).plus(width as i64, last);
                    }
                    let mut at = permuted(&at, &order);
                    at[contracted].c0 += first as i64;
                    let source = plan.lhs.clone();
                    let value = if rotated {
                        let mut element = at.clone();
                        element[contracted] = Index::constant(0).plus(2, &at[contracted]);
                        let offset = Self::offset(&source, &element);
                        let pairs = this.load_at(&source, &offset, ElemType::U32, width)?;
                        this.swapped(pairs, width)
                    } else {
                        this.pair(&source, &at, contracted, half, Filler::Zero, width)?
                    };
                    let offset = Self::offset(&to, &at);
                    this.store_at(&to, &offset, ElemType::S32, value, width)
                })?;
            }
        }
        Ok(Pairs { memory: from })
    }

    /// Both halves of every word exchanged.
    fn swapped(&mut self, words: Value, lanes: u64) -> Value {
        let ty = lanes_of("i32", lanes);
        let sixteen = scalar::splat(&mut self.code, 16, "i32", lanes);
        let up = self.code.op(format_args!("arith.shli {words}, {sixteen} : {ty}"));
        let down = self.code.op(format_args!("arith.shrui {words}, {sixteen} : {ty}"));
        self.code.op(format_args!("arith.ori {up}, {down} : {ty}"))
    }

    /// The pair at `at`, whose contracted dimension counts pairs, for `lanes` adjacent positions of another dimension.
    fn pair(
        &mut self,
        source: &Memory,
        at: &[Index],
        contracted: usize,
        half: bool,
        filler: Filler,
        lanes: u64,
    ) -> Result<Value> {
        let (narrow, wide) = (lanes_of("i16", lanes), lanes_of("i32", lanes));
        let mut element = at.to_vec();
        element[contracted] = Index::constant(0).plus(2, &at[contracted]);
        let offset = Self::offset(source, &element);
        let earlier = self.load_at(source, &offset, ElemType::U16, lanes)?;
        let later = if half {
            scalar::splat(&mut self.code, filler as i64, "i32", lanes)
        } else {
            element[contracted].c0 += 1;
            let offset = Self::offset(source, &element);
            let later = self.load_at(source, &offset, ElemType::U16, lanes)?;
            self.code.op(format_args!("arith.extui {later} : {narrow} to {wide}"))
        };
        let earlier = self.code.op(format_args!("arith.extui {earlier} : {narrow} to {wide}"));
        let sixteen = scalar::splat(&mut self.code, 16, "i32", lanes);
        let upper = self.code.op(format_args!("arith.shli {earlier}, {sixteen} : {wide}"));
        Ok(self.code.op(format_args!("arith.ori {upper}, {later} : {wide}")))
    }

    /// `width` columns of the right operand from `at.column` on, in pairs: pairs, then columns.
    pub(crate) fn pair_columns(&mut self, plan: &Dot, at: &At<'_>, width: u64) -> Result<Pairs> {
        let depth = plan.contracted[0];
        let (to, from) = self.packed(ElemType::S32, &[pairs(depth), width]);
        let contracted = plan.dims.rhs_contracting[0];
        for (first, count, half) in [(0, depth / 2, false), (depth / 2, depth % 2, true)] {
            self.nest(&[count], |this, index| {
                let pair = Index::constant(first as i64).plus(1, &index[0]);
                for column in (0..width).step_by(LANES as usize) {
                    let column_at = Index::constant(column as i64).plus(1, at.column);
                    let at = At { column: &column_at, ..*at };
                    let place = plan.rhs_index(&at, std::slice::from_ref(&pair));
                    let value = this.pair(&plan.rhs, &place, contracted, half, Filler::MinusZero, LANES)?;
                    let offset = Self::offset(&to, &[pair.clone(), Index::constant(column as i64)]);
                    this.store_at(&to, &offset, ElemType::S32, value, LANES)?;
                }
                Ok(())
            })?;
        }
        Ok(Pairs { memory: from })
    }

    /// `height` rows times `width` columns of the result.
    pub(crate) fn pair_block(
        &mut self,
        rows: &Pairs,
        columns: &Pairs,
        plan: &Dot,
        at: &At<'_>,
        height: u64,
        width: u64,
    ) -> Result<()> {
        let (words, factors, sums_ty) =
            (lanes_of("i32", LANES), lanes_of("bf16", 2 * LANES), lanes_of("f32", LANES));
        let registers = width / LANES;
        let count = (height * registers) as usize;
        let zero = scalar::constant(&mut self.code, plan.wide, &[], LANES)?;
        let depth = [pairs(plan.contracted[0])];
        let sums =
            self.fold(&depth, &vec![sums_ty.clone(); count], vec![zero; count], |this, pair, sums| {
                let mut right = Vec::new();
                for register in 0..registers {
                    let column = Index::constant((register * LANES) as i64);
                    let offset = Self::offset(&columns.memory, &[pair[0].clone(), column]);
                    let value = this.load_at(&columns.memory, &offset, ElemType::S32, LANES)?;
                    right.push(this.code.op(format_args!("llvm.bitcast {value} : {words} to {factors}")));
                }
                let mut next = Vec::with_capacity(count);
                for (r, sums) in sums.chunks(registers as usize).enumerate() {
                    let offset = Self::offset(&rows.memory, &plan.lhs_index(at, r as i64, pair));
                    let left = this.load_at(&rows.memory, &offset, ElemType::S32, 1)?;
                    let left = splat(&mut this.code, left, "i32", LANES);
                    let left = this.code.op(format_args!("llvm.bitcast {left} : {words} to {factors}"));
                    for (&sum, right) in sums.iter().zip(&right) {
                        next.push(this.code.op(format_args!(
                            "llvm.call_intrinsic \"llvm.x86.avx512bf16.dpbf16ps.512\"({sum}, {left}, {right}) : \
                             ({sums_ty}, {factors}, {factors}) -> {sums_ty}"
                        )));
                    }
                }
                Ok(next)
            })?;
        for (r, sums) in sums.chunks(registers as usize).enumerate() {
            for (register, &sum) in (0i64..).zip(sums) {
                let column = Index::constant(register * LANES as i64).plus(1, at.column);
                self.finish_row(plan, &At { column: &column, ..*at }, r as i64, sum, LANES)?;
            }
        }
        Ok(())
    }
}
