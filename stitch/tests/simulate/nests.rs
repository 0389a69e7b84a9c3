//! Random loop programs of several levels, with fences and host copies, on the oracle and on the compiled simulator, both
//! strict: the same fault at the same execution in the same memory, or the same results and counters.

use crate::differential::{Random, random_alpha, room, small};
use crate::tile_machine;
use act_hlo::ElemType;
use act_isa::*;
use act_stitch::simulate::{Check, Executable, LowerError, Options, RunError};
use act_stitch::stitched::emit;
use std::collections::BTreeMap;

/// Bytes of the operand, the result, scratch and the constants.
const SEGMENT: u64 = 1 << 14;
/// What both simulators fill unwritten memory with.
const POISON: u8 = 0xa5;
const DEEPEST: usize = 3;

struct Nests<'a> {
    isa: &'a Isa,
    random: Random,
    loops: Vec<LoopId>,
    next: u32,
}

impl Nests<'_> {
    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    fn body(&mut self) -> Program {
        let count = 1 + self.random.below(4);
        Program::Seq((0..count).map(|_| self.item()).collect())
    }

    fn item(&mut self) -> Program {
        match self.random.below(10) {
            0..3 if self.loops.len() < DEEPEST => {
                let iv = LoopId(self.next);
                self.next += 1;
                let (trip, parallel) = (self.random.below(5).min(3), self.chance(2));
                self.loops.push(iv);
                let body = Box::new(self.body());
                self.loops.pop();
                Program::For { iv, trip, parallel, body }
            }
            3 => Program::Fence,
            4 => self.host_copy(),
            _ => self.instr(),
        }
    }

    /// An offset that other accesses are likely to meet, and that steps with some of the loops.
    fn offset(&mut self, unit: i64, most: u64) -> Affine {
        let mut affine = Affine::constant(self.random.below(most.max(1)) as i64 * unit);
        for iv in self.loops.clone() {
            if self.chance(3) {
                affine.add_term(iv, (self.random.below(5) as i64 - 1) * unit);
            }
        }
        affine
    }

    fn space(&mut self, read: bool) -> Space {
        match (self.random.below(16), read) {
            (0..7, true) | (0, false) => Space::Operand(0),
            (7..9, true) | (1, false) => Space::Consts,
            (9..13, true) | (2..10, false) => Space::Scratch,
            _ => Space::Result(0),
        }
    }

    fn instr(&mut self) -> Program {
        loop {
            let op = InstrId(self.random.below(self.isa.instrs.len() as u64) as u16);
            // Half of them load or store: hazards are between those.
            let moves =
                self.isa.instr(op).beta.iter().enumerate().any(|(k, _)| self.isa.instr(op).is_address(k));
            if !moves && self.chance(2) {
                continue;
            }
            let instr = self.isa.instr(op);
            let Some(alpha) = random_alpha(self.isa, instr, &mut self.random) else { continue };
            let reads = |k: usize| {
                let mut found = false;
                for slice in &instr.inputs {
                    if let Slice::Hbm(window) = slice {
                        window.start.for_each_leaf(&mut |leaf| found |= *leaf == Expr::Beta(k as u16));
                    }
                }
                found
            };
            let beta = (0..instr.beta.len()).map(|k| {
                if instr.is_address(k) {
                    let space = self.space(reads(k));
                    let stray = if self.chance(12) { SEGMENT as i64 - 100 } else { 0 };
                    let mut offset = self.offset(64, 6);
                    offset.c0 += stray;
                    return BetaVal::Hbm(space, offset);
                }
                let room = room(self.isa, instr, &alpha, k).unwrap_or(8) as u64;
                BetaVal::Int(match self.random.below(8) {
                    7 if self.chance(4) => Affine::constant(room as i64 + 1),
                    // What engines like to start from.
                    0 => self.offset(64, (room / 64 + 1).min(3)),
                    1 => self.offset(1, room + 2),
                    2 => self.offset(16, 4),
                    _ => Affine::constant(self.random.below(2.min(room + 1)) as i64 * room.min(16) as i64),
                })
            });
            let beta = beta.collect();
            return Program::Instr { op, alpha, beta };
        }
    }

    fn host_copy(&mut self) -> Program {
        let elem = [ElemType::S8, ElemType::BF16, ElemType::F32][self.random.below(3) as usize];
        let width = elem.bytes() as i64;
        let lens: Vec<u64> = (0..self.random.below(4)).map(|_| self.random.below(9)).collect();
        let mut side = |read: bool| {
            let mut step = width;
            let mut dims: Vec<(u64, i64)> = Vec::new();
            for &len in lens.iter().rev() {
                let stride = match self.random.below(8) {
                    0 => -step,
                    1 => step - 1,
                    2 => step + width,
                    _ => step,
                };
                dims.push((len, stride));
                step *= len.max(1) as i64;
            }
            dims.reverse();
            let (space, start) = (self.space(read), self.offset(32, 16));
            View { space, elem, dims, start }
        };
        let (from, to) = (side(true), side(false));
        Program::HostCopy { from, to }
    }
}

/// The oracle's fault as the simulator words it; what the simulator does not tell is left out.
fn same(oracle: &Fault, check: &Check) -> bool {
    match (&oracle.what, check) {
        (FaultKind::BetaRange { attr, .. }, Check::BetaRange { attr: other }) => attr == other,
        (FaultKind::Requirement { index }, Check::Requirement { index: other }) => index == other,
        (FaultKind::OutOfSlots { dim, .. }, Check::BufferBounds { dim: other, .. }) => dim == other,
        (FaultKind::Misaligned { .. }, Check::BufferAlign { .. } | Check::HbmAlign { .. })
        | (FaultKind::OutOfBytes { .. }, Check::Segment { .. })
        | (FaultKind::ReadOnly, Check::ReadOnly { .. })
        | (FaultKind::OverlappingStore, Check::OverlappingStore { .. }) => true,
        (FaultKind::OverlappingOutputs { output }, Check::OverlappingOutputs { output: other, .. }) => {
            output == other
        }
        (FaultKind::Uninitialised { offset }, Check::Written { offset: other, .. }) => offset == other,
        (FaultKind::Unfenced { offset, store }, Check::Fenced { offset: at, store: by, .. }) => {
            (offset, store) == (at, by)
        }
        _ => false,
    }
}

/// The host fills a segment from another one.
fn fill(from: Space, to: Space) -> Program {
    let whole = |space| View::row_major(space, &act_hlo::Shape::new(ElemType::U8, [SEGMENT]));
    Program::HostCopy { from: whole(from), to: whole(to) }
}

/// Runs one program on both; gives what came of it. A warm one begins with every segment written.
fn compare(isa: &Isa, seed: u64, warm: bool) -> &'static str {
    let mut nests = Nests { isa, random: Random(seed), loops: Vec::new(), next: 0 };
    let mut parts = vec![nests.body()];
    if warm {
        parts.insert(0, fill(Space::Consts, Space::Scratch));
        parts.insert(0, fill(Space::Operand(0), Space::Result(0)));
    }
    let program = LoopProgram {
        body: Program::Seq(parts),
        operands: vec![SEGMENT],
        results: vec![SEGMENT],
        scratch_bytes: SEGMENT,
        consts: nests.random.bytes(SEGMENT),
    };
    let operand = nests.random.bytes(SEGMENT);
    let module = emit(isa, &program).unwrap();
    let context = || format!("{} seed {seed}\n{}", isa.name, module.text());
    let options = Options { strict: true, ..Options::default() };
    let executable = match Executable::compile_with(isa, &module, options) {
        Ok(executable) => executable,
        Err(LowerError::ChangingRegisters { .. }) => return "registers",
        Err(error) => panic!("{error}, {}", context()),
    };
    let mut results = [Vec::new()];
    let expected = Oracle::new(isa).strict().run(&program, &[&operand], &mut results);
    let mut result = vec![POISON; SEGMENT as usize];
    match (expected, executable.run(&[&operand], &mut [&mut result])) {
        (Ok(expected), Ok(counters)) => {
            assert!(results[0] == result, "the results differ, {}", context());
            assert_eq!(expected, counters, "{}", context());
            // The same without checks, which strict mode's own sweep could have steered around.
            let plain = Executable::compile(isa, &module).unwrap();
            let mut again = vec![POISON; SEGMENT as usize];
            let counters = plain.run(&[&operand], &mut [&mut again]).unwrap();
            assert!(again == result, "the results differ without strict mode, {}", context());
            assert_eq!(Counters { unwritten_result_bytes: 0, ..expected }, counters, "{}", context());
            "ran"
        }
        (Err(expected), Err(RunError::Fault(fault))) => {
            assert!(
                same(&expected, &fault.check)
                    && (expected.number, expected.buffer.as_str()) == (fault.number, fault.check.memory()),
                "oracle: {expected}\nsimulator: {fault}\n{}",
                context()
            );
            match fault.check {
                Check::Written { .. } => "unwritten",
                Check::Fenced { .. } => "unfenced",
                Check::ReadOnly { .. } => "read-only",
                Check::Segment { .. } => "outside a segment",
                Check::BufferBounds { .. } => "outside a buffer",
                Check::OverlappingStore { .. } => "overlapping store",
                _ => "other rule",
            }
        }
        (expected, got) => panic!("oracle {expected:?}, simulator {got:?}, {}", context()),
    }
}

fn compare_all(isa: &Isa, programs: u64, warm: bool) -> BTreeMap<&'static str, u64> {
    let mut outcomes = BTreeMap::new();
    for seed in 0..programs {
        *outcomes.entry(compare(isa, seed, warm)).or_default() += 1;
    }
    outcomes
}

/// Every buffer holds zeros at first.
fn initialised(mut isa: Isa) -> Isa {
    for buffer in &mut isa.buffers {
        let zero = act_hlo::Literal::from_bytes(
            act_hlo::Shape::new(buffer.elem, []),
            vec![0; buffer.elem.bytes() as usize],
        );
        buffer.init = buffer.init.take().or_else(|| zero.ok());
    }
    isa
}

#[test]
fn both_strict_modes_agree_on_the_tile_machine() {
    let cold = compare_all(&tile_machine::isa(), 150, false);
    let mut isa = initialised(tile_machine::isa());
    let mut outcomes = compare_all(&isa, 200, false);
    outcomes.extend(cold);
    for outcome in ["ran", "unwritten", "outside a segment", "outside a buffer", "read-only"] {
        assert!(outcomes.contains_key(outcome), "{outcome} did not occur: {outcomes:?}");
    }
    // With everything written more programs come as far as their fences.
    let warm = compare_all(&isa, 200, true);
    for outcome in ["ran", "unfenced", "overlapping store"] {
        assert!(warm.contains_key(outcome), "{outcome} did not occur: {warm:?}");
    }
    isa.hbm.ordered = true;
    let ordered = compare_all(&isa, 200, true);
    assert!(!ordered.contains_key("unfenced"), "{ordered:?}");
    assert!(ordered["ran"] > warm["ran"], "{ordered:?} {warm:?}");
}

#[test]
fn both_strict_modes_agree_on_every_target() {
    let mut outcomes = BTreeMap::new();
    for (name, _) in targets() {
        let isa = small(load_target(name).unwrap());
        outcomes.extend(compare_all(&isa, 10, false));
        let warm = compare_all(&initialised(isa), 20, true);
        assert!(warm.contains_key("ran"), "no program for {name} ran: {warm:?}");
        outcomes.extend(warm);
    }
    for outcome in ["unwritten", "unfenced", "read-only"] {
        assert!(outcomes.contains_key(outcome), "{outcome} did not occur: {outcomes:?}");
    }
}
