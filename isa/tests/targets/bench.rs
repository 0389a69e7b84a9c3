//! One instruction of a description on the oracle: operands and result as plain bytes, in registers and addresses that
//! are drawn at random. Knows no target.

use crate::samples;
use act_hlo::random::SplitMix64;
use act_hlo::{Literal, Shape};
use act_isa::{
    Affine, AttrKind, AttrVal, BetaVal, Env, Expr, Instr, InstrId, Isa, Oracle, Program, Slice, Space,
};
use std::collections::BTreeSet;

/// Bytes around every operand and result in memory.
pub(crate) const MARGIN: usize = 64;

/// What the oracle's result memory holds before an instruction writes it.
pub(crate) const POISON: u8 = 0xa5;

pub(crate) struct Bench<'a> {
    pub(crate) isa: &'a Isa,
    oracle: &'a Oracle<'a>,
}

/// What an instruction made of its operands.
pub(crate) struct Outcome {
    /// The value of a slice on chip, or a window of memory with [`MARGIN`] bytes around it.
    pub(crate) bytes: Vec<u8>,
    /// Position of the window in `bytes`.
    pub(crate) offset: usize,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(isa: &'a Isa, oracle: &'a Oracle<'a>) -> Bench<'a> {
        Bench { isa, oracle }
    }

    pub(crate) fn instr(&self, name: &str) -> (InstrId, &'a Instr) {
        let id = self.isa.instr_named(name).unwrap_or_else(|| panic!("no instruction {name}"));
        (id, self.isa.instr(id))
    }

    /// Bytes of a slice: its value's on chip, first to last of its window in memory.
    fn span(&self, slice: &Slice, alpha: &[Option<i64>]) -> usize {
        let env = Env { alpha, beta: &[], registers: &[] };
        let value = |e: &Expr| e.eval(env).unwrap();
        match slice {
            Slice::OnChip(_) => self.shape(slice, alpha).bytes() as usize,
            Slice::Hbm(window) if window.dims.iter().any(|(len, _)| value(len) == 0) => 0,
            Slice::Hbm(window) => {
                let last = |(len, stride): &(Expr, Expr)| (value(len) - 1) * value(stride);
                1 + window.dims.iter().map(last).sum::<i64>() as usize
            }
        }
    }

    fn shape(&self, slice: &Slice, alpha: &[Option<i64>]) -> Shape {
        let Slice::OnChip(slice) = slice else { panic!("only values on chip have a type of their own") };
        let buffer = self.isa.buffer(slice.buffer);
        let env = Env { alpha, beta: &[], registers: &[] };
        let lens = slice.len.iter().map(|len| len.eval(env).unwrap() as u64);
        Shape::new(buffer.elem, lens.chain(buffer.unit.iter().copied()).collect::<Vec<u64>>())
    }

    /// Bytes of each operand of an instruction.
    pub(crate) fn operand_sizes(&self, instr: &Instr, alpha: &[AttrVal]) -> Vec<usize> {
        let alpha = instr.alpha_env(alpha).unwrap();
        instr.inputs.iter().map(|slice| self.span(slice, &alpha)).collect()
    }

    /// Places for the addressing attributes: different ones in each buffer, so that every `require` of the kind
    /// `dst != a` holds, and addresses of any alignment.
    fn beta(&self, rng: &mut SplitMix64, instr: &Instr, alpha: &[Option<i64>]) -> Vec<BetaVal> {
        let mut taken: BTreeSet<i64> = BTreeSet::new();
        let mut made = Vec::new();
        for (k, decl) in instr.beta.iter().enumerate() {
            let leads = |slice: &&Slice| match slice {
                Slice::Hbm(window) => window.start == Expr::Beta(k as u16),
                Slice::OnChip(slice) => slice.start.contains(&Expr::Beta(k as u16)),
            };
            let input = instr.inputs.iter().find(leads);
            let slice = input.or(instr.outputs.iter().find(leads)).expect("an attribute that leads a slice");
            let Slice::OnChip(on_chip) = slice else {
                let reads = instr.inputs.iter().filter(|s| matches!(s, Slice::Hbm(_)));
                let space = match reads.clone().position(|s| leads(&s)) {
                    Some(at) => Space::Operand(at as u16),
                    None => Space::Result(0),
                };
                made.push(BetaVal::Hbm(space, Affine::constant(rng.below(MARGIN as u64) as i64)));
                continue;
            };
            let lens = self.shape(slice, alpha).dims;
            let AttrKind::Int { max, .. } = decl.kind else { panic!("{} is a position", decl.name) };
            let last = (self.isa.buffer(on_chip.buffer).access[0] - lens[0]).min(max as u64);
            let free = |at: &i64| (*at..*at + lens[0] as i64).all(|p| !taken.contains(&p));
            let at = std::iter::repeat_with(|| rng.below(last + 1) as i64).find(free).unwrap();
            taken.extend(at..at + lens[0] as i64);
            made.push(BetaVal::Int(Affine::constant(at)));
        }
        made
    }

    /// Runs an instruction with one output.
    pub(crate) fn run(
        &self,
        rng: &mut SplitMix64,
        name: &str,
        alpha: &[AttrVal],
        operands: &[Vec<u8>],
    ) -> Outcome {
        let (op, instr) = self.instr(name);
        let ints = instr.alpha_env(alpha).unwrap();
        let beta = self.beta(rng, instr, &ints);
        let values: Vec<Option<i64>> = beta
            .iter()
            .map(|b| match b {
                BetaVal::Int(at) | BetaVal::Hbm(_, at) => Some(at.c0),
            })
            .collect();
        let env = Env { alpha: &ints, beta: &values, registers: &[] };
        let start = |e: &Expr| e.eval(env).unwrap();

        let mut memories: Vec<Vec<u8>> = Vec::new();
        for (slice, bytes) in instr.inputs.iter().zip(operands) {
            if let Slice::Hbm(window) = slice {
                let mut memory = vec![0x5a; start(&window.start) as usize];
                memory.extend(bytes);
                memories.push(memory);
            }
        }
        let [output] = instr.outputs.as_slice() else { panic!("{name} has one output") };
        let written = match output {
            Slice::Hbm(_) => vec![(self.span(output, &ints) + 2 * MARGIN) as u64],
            Slice::OnChip(_) => Vec::new(),
        };
        let memories: Vec<&[u8]> = memories.iter().map(Vec::as_slice).collect();
        let mut machine = self.oracle.machine(&memories, &written, 0, &[]);
        for (slice, bytes) in instr.inputs.iter().zip(operands) {
            if let Slice::OnChip(place) = slice {
                let value = Literal::from_bytes(self.shape(slice, &ints), bytes.clone()).unwrap();
                let at: Vec<i64> = place.start.iter().map(start).collect();
                machine.set_slot(place.buffer, &at, &value).unwrap();
            }
        }
        machine
            .execute(&Program::Instr { op, alpha: alpha.to_vec(), beta })
            .unwrap_or_else(|fault| panic!("{name} {alpha:?}: {fault}"));
        match output {
            Slice::OnChip(place) => {
                let at: Vec<i64> = place.start.iter().map(start).collect();
                let value = machine.slot_value(place.buffer, &at, &self.shape(output, &ints)).unwrap();
                Outcome { bytes: value.bytes().to_vec(), offset: 0 }
            }
            Slice::Hbm(window) => {
                Outcome { bytes: machine.finish().1.remove(0), offset: start(&window.start) as usize }
            }
        }
    }

    /// All values of the computational attributes when there are at most `limit`, otherwise as many random ones. An
    /// attribute without an upper end is taken below 200.
    pub(crate) fn alphas(&self, rng: &mut SplitMix64, instr: &Instr, limit: u64) -> Vec<Vec<AttrVal>> {
        let range = |kind: &AttrKind| match kind {
            AttrKind::Int { min, max } => Some((*min, if *max == i64::MAX { min + 200 } else { *max })),
            AttrKind::F32 => None,
        };
        let sizes = instr.alpha.iter().map(|a| range(&a.kind).map_or(u64::MAX, |(l, h)| l.abs_diff(h) + 1));
        let total = sizes.fold(1u64, u64::saturating_mul);
        let nth = |mut index: u64| {
            let one = |a: &act_isa::AttrDecl| {
                let (low, high) = range(&a.kind).expect("a finite number of values");
                let size = low.abs_diff(high) + 1;
                let value = low + (index % size) as i64;
                index /= size;
                AttrVal::Int(value)
            };
            instr.alpha.iter().map(one).collect::<Vec<AttrVal>>()
        };
        if total <= limit {
            return (0..total).map(nth).collect();
        }
        let mut random = |a: &act_isa::AttrDecl| loop {
            let bytes = samples::bytes(rng, 4);
            let bits = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            match range(&a.kind) {
                None if f32::from_bits(bits).is_finite() => return AttrVal::F32(bits),
                None => {}
                Some((low, high)) if (low..=high).contains(&i64::from(bits as i32)) => {
                    return AttrVal::Int(i64::from(bits as i32));
                }
                Some((low, high)) if low.abs_diff(high) < 1 << 20 => {
                    return AttrVal::Int(low + rng.below(low.abs_diff(high) + 1) as i64);
                }
                Some(_) => {}
            }
        };
        (0..limit).map(|_| instr.alpha.iter().map(&mut random).collect()).collect()
    }
}
