//! A machine of a description whose memories a test fills and reads by name and place. Remembers which instructions ran,
//! so that a test can demand that none was left out. Knows no target.

use act_hlo::{Literal, Shape};
use act_isa::{Affine, AttrVal, BetaVal, BufferId, FaultKind, Isa, Machine, Oracle, Program, Space};
use std::cell::RefCell;
use std::collections::BTreeSet;

pub(crate) const POISON: u8 = 0xa5;

thread_local! {
    /// (target, instruction) of everything that this thread's stages executed.
    static RAN: RefCell<BTreeSet<(String, String)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Fails when this thread has not executed every instruction of the description.
pub(crate) fn assert_all_ran(isa: &Isa) {
    let ran = RAN.with_borrow(Clone::clone);
    let left: Vec<&str> = isa
        .instrs
        .iter()
        .map(|i| i.name.as_str())
        .filter(|name| !ran.contains(&(isa.name.clone(), (*name).to_owned())))
        .collect();
    assert!(left.is_empty(), "no test of {left:?} of {}", isa.name);
}

pub(crate) fn int(v: i64) -> AttrVal {
    AttrVal::Int(v)
}

pub(crate) fn float(v: f32) -> AttrVal {
    AttrVal::F32(v.to_bits())
}

pub(crate) fn chip(at: i64) -> BetaVal {
    BetaVal::Int(Affine::constant(at))
}

/// Byte `at` of operand `k`.
pub(crate) fn operand(k: u16, at: i64) -> BetaVal {
    BetaVal::Hbm(Space::Operand(k), Affine::constant(at))
}

/// Byte `at` of the result.
pub(crate) fn result(at: i64) -> BetaVal {
    BetaVal::Hbm(Space::Result(0), Affine::constant(at))
}

/// Little-endian bytes of numbers.
pub(crate) trait LittleEndian {
    fn little_endian(&self) -> Vec<u8>;
}

macro_rules! little_endian {
    ($($ty:ty),*) => { $(
        impl LittleEndian for [$ty] {
            fn little_endian(&self) -> Vec<u8> {
                self.iter().flat_map(|v| v.to_le_bytes()).collect()
            }
        }
    )* };
}
little_endian!(u8, i8, i16, i32, f32, half::bf16, half::f16);

pub(crate) fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) fn i32s(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) struct Stage<'a> {
    isa: &'a Isa,
    machine: Machine<'a>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(isa: &'a Isa, oracle: &'a Oracle<'a>, operands: &[&[u8]], result: u64) -> Stage<'a> {
        Stage { isa, machine: oracle.machine(operands, &[result], 0, &[]) }
    }

    /// The buffer called `name`, and the type of a box of it with the given lengths.
    fn place(&self, name: &str, lens: &[u64]) -> (BufferId, Shape) {
        let id = self.isa.buffer_ids().find(|&b| self.isa.buffer(b).name == name).expect(name);
        let buffer = self.isa.buffer(id);
        (id, Shape::new(buffer.elem, [lens, buffer.unit.as_slice()].concat()))
    }

    pub(crate) fn set(&mut self, buffer: &str, start: &[i64], lens: &[u64], bytes: &[u8]) {
        let (id, shape) = self.place(buffer, lens);
        let value = Literal::from_bytes(shape, bytes.to_vec()).unwrap();
        self.machine.set_slot(id, start, &value).unwrap();
    }

    pub(crate) fn get(&self, buffer: &str, start: &[i64], lens: &[u64]) -> Vec<u8> {
        let (id, shape) = self.place(buffer, lens);
        let value = self.machine.slot_value(id, start, &shape);
        value.unwrap_or_else(|fault| panic!("{fault}")).bytes().to_vec()
    }

    fn try_run(&mut self, name: &str, alpha: &[AttrVal], beta: &[BetaVal]) -> Result<(), act_isa::Fault> {
        let op = self.isa.instr_named(name).unwrap_or_else(|| panic!("no instruction {name}"));
        self.machine.execute(&Program::Instr { op, alpha: alpha.to_vec(), beta: beta.to_vec() })
    }

    pub(crate) fn run(&mut self, name: &str, alpha: &[AttrVal], beta: &[BetaVal]) {
        self.try_run(name, alpha, beta).unwrap_or_else(|fault| panic!("{fault}"));
        RAN.with_borrow_mut(|ran| ran.insert((self.isa.name.clone(), name.to_owned())));
    }

    /// Runs what must be refused.
    pub(crate) fn fault(&mut self, name: &str, alpha: &[AttrVal], beta: &[BetaVal]) -> FaultKind {
        match self.try_run(name, alpha, beta) {
            Ok(()) => panic!("{name} {alpha:?} {beta:?} was not refused"),
            Err(fault) => fault.what,
        }
    }

    pub(crate) fn result(self) -> Vec<u8> {
        self.machine.finish().1.remove(0)
    }
}

/// Whether the fault is a violated requirement or an attribute out of its range.
pub(crate) fn refused(fault: &FaultKind) -> bool {
    matches!(fault, FaultKind::Requirement { .. } | FaultKind::Semantics(_) | FaultKind::BetaRange { .. })
}
