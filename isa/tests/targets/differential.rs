//! A description's instructions against the processor's: random and special values through the instruction on the oracle
//! and through the real one, compared bit for bit.
//!
//! A NaN that f32 arithmetic makes is compared as a NaN only: the reference evaluator makes the one NaN 0x7fc00000, the
//! processor the negative one or a quieted operand. Everything else, NaNs that are moved, masked or selected included, has
//! to be the same bits.

use crate::bench::{Bench, POISON};
use crate::native::{Memory, Native};
use crate::samples;
use act_hlo::random::SplitMix64;
use act_isa::{AttrVal, Isa, Oracle, Slice};
use std::collections::BTreeSet;

/// How results are compared, and what operands are drawn from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bits,
    Arithmetic,
    /// Arithmetic on tiles of bf16: operands of like magnitude on most trials.
    Bf16,
}

/// The kernel and the value of rcx for computational attributes.
type Choose = Box<dyn Fn(&[AttrVal]) -> (Native, u64)>;

/// One instruction of a description and the real one.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    native: Choose,
}

impl Entry {
    /// A kernel that takes its attribute, if any, in rcx.
    pub(crate) fn plain(name: &'static str, kind: Kind, native: Native) -> Entry {
        let scalar = |alpha: &[AttrVal]| match *alpha {
            [] => 0,
            [AttrVal::Int(value)] => value as u64,
            [AttrVal::F32(bits)] => u64::from(bits),
            _ => panic!("one attribute fits into rcx"),
        };
        Entry { name, kind, native: Box::new(move |alpha| (native, scalar(alpha))) }
    }

    /// One kernel per immediate; `encode` makes the immediate from the attributes.
    pub(crate) fn immediate(
        name: &'static str,
        table: [[Native; 16]; 16],
        encode: impl Fn(&[usize]) -> usize + 'static,
    ) -> Entry {
        let native = move |alpha: &[AttrVal]| {
            let fields: Vec<usize> = alpha.iter().map(|a| a.as_int().unwrap() as usize).collect();
            let at = encode(&fields);
            (table[at / 16][at % 16], 0)
        };
        Entry { name, kind: Kind::Bits, native: Box::new(native) }
    }

    /// A kernel that takes `scalar` of its integer attribute in rcx.
    pub(crate) fn scaled(name: &'static str, native: Native, scalar: impl Fn(u64) -> u64 + 'static) -> Entry {
        let native = move |alpha: &[AttrVal]| (native, scalar(alpha[0].as_int().unwrap() as u64));
        Entry { name, kind: Kind::Bits, native: Box::new(native) }
    }
}

/// Whether the processor's bytes are the oracle's.
fn same(kind: Kind, oracle: &[u8], processor: &[u8]) -> bool {
    let lane = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut lanes = oracle.chunks_exact(4).zip(processor.chunks_exact(4));
    oracle == processor
        || (kind != Kind::Bits && lanes.all(|(a, b)| a == b || (lane(a).is_nan() && lane(b).is_nan())))
}

/// Random operands, related to one another.
fn operands(rng: &mut SplitMix64, kind: Kind, sizes: &[usize], trial: u64) -> Vec<Vec<u8>> {
    let mut made: Vec<Vec<u8>> = Vec::new();
    for &size in sizes {
        if kind == Kind::Bf16 && !trial.is_multiple_of(8) {
            made.push(samples::bf16_pairs(rng, size, trial));
            continue;
        }
        let mut bytes = samples::bytes(rng, size);
        if let Some(earlier) = made.last() {
            samples::relate(rng, earlier, &mut bytes);
        }
        made.push(bytes);
    }
    made
}

/// Runs `trials` vectors through one instruction, shared out among the values of its attributes; false where the
/// processor lacks it.
fn check(bench: &Bench<'_>, entry: &Entry, trials: u64) -> bool {
    let (id, instr) = bench.instr(entry.name);
    let mut rng = SplitMix64::new(u64::from(id.0) + 1);
    let alphas = bench.alphas(&mut rng, instr, 256);
    for trial in 0..trials {
        let alpha = &alphas[trial as usize % alphas.len()];
        let operands = operands(&mut rng, entry.kind, &bench.operand_sizes(instr, alpha), trial);
        let expected = bench.run(&mut rng, entry.name, alpha, &operands);

        let part = |on_chip: bool| {
            let wanted = move |s: &Slice| matches!(s, Slice::OnChip(_)) == on_chip;
            instr.inputs.iter().zip(&operands).filter(move |(s, _)| wanted(s)).map(|(_, bytes)| bytes)
        };
        let registers: Vec<&Vec<u8>> = part(true).collect();
        let mut memories: Vec<Vec<u8>> = part(false).cloned().collect();
        let mut pointers = memories.iter_mut().map(|m| m.as_mut_ptr());
        let first = pointers.next().unwrap_or(std::ptr::null_mut());
        let mut result = vec![POISON; expected.bytes.len()];
        let stores = matches!(instr.outputs[0], Slice::Hbm(_));
        let second = if stores {
            result[expected.offset..].as_mut_ptr()
        } else {
            pointers.next().unwrap_or(std::ptr::null_mut())
        };
        let (native, scalar) = (entry.native)(alpha);
        let Some(on_chip) = native.run(&registers, Memory { first, second, scalar }, result.len()) else {
            return false;
        };
        let got = if stores { result } else { on_chip };
        assert!(
            same(entry.kind, &expected.bytes, &got),
            "{} {alpha:?}\noperands {operands:02x?}\noracle    {:02x?}\nprocessor {got:02x?}",
            entry.name,
            expected.bytes
        );
    }
    true
}

/// Compares every instruction listed; those that the processor lacks are named.
pub(crate) fn check_all(isa: &Isa, entries: &[Entry], trials: impl Fn(&Entry) -> u64) {
    let oracle = Oracle::new(isa);
    let bench = Bench::new(isa, &oracle);
    for entry in entries {
        if !check(&bench, entry, trials(entry)) {
            eprintln!("skipped: this processor does not have {} of {}", entry.name, isa.name);
        }
    }
}

/// Every instruction of the description is listed, once.
pub(crate) fn check_complete(isa: &Isa, names: &[&str]) {
    let described: BTreeSet<&str> = isa.instrs.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names.iter().copied().collect::<BTreeSet<&str>>(), described);
    assert_eq!(names.len(), described.len(), "an instruction is listed twice");
}
