//! Random assembly for every instruction of every target, on the oracle and on the compiled simulator: the same
//! buffers, results and counters, bit for bit, or a fault of both.

use crate::tile_machine;
use act_hlo::ElemType;
use act_isa::oracle::Oracle;
use act_isa::*;
use act_stitch::simulate::{Executable, LowerError, Options, RunError, VectorLevel};
use act_stitch::stitched::emit;

/// Bytes of the operand and of the result segment.
const SEGMENT: u64 = 1 << 17;

/// Reproducible pseudo-random numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn bytes(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// Bytes of elements that have any bits but those that no value of the type has; products of `moderate` bfloat16 numbers
/// neither overflow nor underflow, but for a few.
fn values(elem: ElemType, bytes: u64, moderate: bool, random: &mut Random) -> Vec<u8> {
    let mut bytes = random.bytes(bytes);
    let extremes = random.below(4) == 0;
    match elem {
        ElemType::BF16 if moderate => {
            for number in bytes.chunks_exact_mut(2) {
                let bits = u16::from_le_bytes([number[0], number[1]]);
                let exponent = match (bits >> 7) & 0xff {
                    // One in 16.
                    rare if rare < 16 => 0,
                    // Around the limits of what may be multiplied now and then, mostly numbers whose sums round.
                    wide if wide < 64 && extremes => 62 + u16::from(number[0]) % 130,
                    other => 122 + other % 10,
                };
                number.copy_from_slice(&(bits & 0x807f | exponent << 7).to_le_bytes());
            }
        }
        ElemType::S4 => bytes.iter_mut().for_each(|b| *b = ((*b as i8) << 4 >> 4) as u8),
        ElemType::U4 => bytes.iter_mut().for_each(|b| *b &= 15),
        ElemType::Pred => bytes.iter_mut().for_each(|b| *b &= 1),
        _ => {}
    }
    bytes
}

pub(crate) fn random_alpha(isa: &Isa, instr: &Instr, random: &mut Random) -> Option<Vec<AttrVal>> {
    (0..500).find_map(|_| {
        let one = |a: &AttrDecl| match a.kind {
            AttrKind::Int { min, max } => {
                // Whole ranges where they are short, else the neighbourhood of the start.
                let span = max.saturating_sub(min).clamp(0, 130) as u64 + 1;
                AttrVal::Int(if random.below(4) == 0 {
                    max.min(min + 130)
                } else {
                    min + random.below(span) as i64
                })
            }
            AttrKind::F32 => {
                let scales = [1.0, 0.5, 0.0117, -3.0, 1e-9, 123.456f32];
                AttrVal::F32(scales[random.below(scales.len() as u64) as usize].to_bits())
            }
        };
        let alpha: Vec<AttrVal> = instr.alpha.iter().map(one).collect();
        instr.instantiate(isa, &alpha).is_ok().then_some(alpha)
    })
}

/// How far attribute k may move a slice on chip that starts at it.
pub(crate) fn room(isa: &Isa, instr: &Instr, alpha: &[AttrVal], k: usize) -> Option<i64> {
    let (ints, registers) = (instr.alpha_env(alpha).ok()?, isa.register_values());
    let env = Env { alpha: &ints, beta: &[], registers: &registers };
    let slices = instr.inputs.iter().chain(&instr.outputs).filter_map(|slice| match slice {
        Slice::OnChip(slice) => Some(slice),
        Slice::Hbm(_) => None,
    });
    let rooms = slices.flat_map(|slice| {
        let access = &isa.buffer(slice.buffer).access;
        let starts = slice
            .start
            .iter()
            .zip(&slice.len)
            .zip(access)
            .filter(|((start, _), _)| **start == Expr::Beta(k as u16));
        starts.filter_map(|((_, len), &size)| Some(size as i64 - len.eval(env).ok()?)).collect::<Vec<i64>>()
    });
    rooms.min().map(|room| room.max(0))
}

fn random_beta(
    isa: &Isa,
    instr: &Instr,
    alpha: &[AttrVal],
    random: &mut Random,
    loops: &[LoopId],
) -> Vec<BetaVal> {
    let reads = |k: usize| {
        let mut found = false;
        for slice in &instr.inputs {
            if let Slice::Hbm(window) = slice {
                window.start.for_each_leaf(&mut |leaf| found |= *leaf == Expr::Beta(k as u16));
            }
        }
        found
    };
    (0..instr.beta.len())
        .map(|k| {
            let mut affine = Affine::default();
            for &iv in loops {
                if random.below(6) == 0 {
                    affine.add_term(iv, 1 + random.below(3) as i64);
                }
            }
            if instr.is_address(k) {
                affine.c0 = random.below(SEGMENT / 4) as i64 & !63;
                let space = if reads(k) { Space::Operand(0) } else { Space::Result(0) };
                return BetaVal::Hbm(space, affine);
            }
            affine.c0 = match (random.below(8), room(isa, instr, alpha, k)) {
                (0, _) => random.below(100) as i64 - 2,
                // What engines like to start from.
                (1..=4, Some(room)) => random.below(room as u64 / 64 + 1) as i64 * 64,
                (_, Some(room)) => random.below(room as u64 + 1) as i64,
                (_, None) => random.below(8) as i64,
            };
            BetaVal::Int(affine)
        })
        .collect()
}

fn buffer_shape(buffer: &Buffer) -> act_hlo::Shape {
    act_hlo::Shape::new(buffer.elem, [buffer.access.as_slice(), buffer.unit.as_slice()].concat())
}

/// One program of a few instructions, `first` among them. Gives whether it ran without a fault.
fn compare(isa: &Isa, first: InstrId, seed: u64, options: Options) -> bool {
    let mut random = Random(seed);
    let iv = LoopId(3);
    let mut body = Vec::new();
    let count = 1 + random.below(3);
    let place = random.below(count);
    for at in 0..count {
        let op = if at == place { first } else { InstrId(random.below(isa.instrs.len() as u64) as u16) };
        let instr = isa.instr(op);
        let Some(alpha) = random_alpha(isa, instr, &mut random) else { continue };
        let beta = random_beta(isa, instr, &alpha, &mut random, &[iv]);
        body.push(Program::Instr { op, alpha, beta });
    }
    let trip = 1 + random.below(3);
    let program = LoopProgram {
        body: Program::For { iv, trip, parallel: false, body: Box::new(Program::Seq(body)) },
        operands: vec![SEGMENT],
        results: vec![SEGMENT],
        scratch_bytes: 0,
        consts: vec![],
    };
    let operand = random.bytes(SEGMENT);
    let moderate = random.below(2) == 0;
    let mut buffers: Vec<Vec<u8>> =
        isa.buffers.iter().map(|b| values(b.elem, buffer_shape(b).bytes(), moderate, &mut random)).collect();

    run_both(isa, &program, &operand, &mut buffers, options, |refused| {
        let stateful = |instr: &Instr| {
            !instr.updates.is_empty() || !instr.registers_mentioned().is_disjoint(&isa.mutable_registers())
        };
        assert!(isa.instrs.iter().any(stateful), "seed {seed}, {refused}");
        stateful(isa.instr(first))
    })
}

/// Whether the program runs without a fault, on both the same; `refused` answers where the simulator does not take it.
fn run_both(
    isa: &Isa,
    program: &LoopProgram,
    operand: &[u8],
    buffers: &mut [Vec<u8>],
    options: Options,
    refused: impl FnOnce(LowerError) -> bool,
) -> bool {
    let oracle = Oracle::new(isa);
    let untouched = oracle.machine(&[operand], &program.results, 0, &[]).finish().1;
    let mut machine = oracle.machine(&[operand], &program.results, 0, &[]);
    for (k, (buffer, bytes)) in isa.buffers.iter().zip(&*buffers).enumerate() {
        let value = act_hlo::Literal::from_bytes(buffer_shape(buffer), bytes.as_slice()).unwrap();
        machine.set_slot(BufferId(k as u16), &vec![0; buffer.access.len()], &value).unwrap();
    }
    let expected = machine.execute(&program.body);

    let module = emit(isa, program).unwrap();
    let context = || module.text();
    let executable = match Executable::compile_with(isa, &module, options) {
        Ok(executable) => executable,
        Err(error @ LowerError::ChangingRegisters { .. }) => return refused(error),
        Err(error) => panic!("{error}, {}", context()),
    };
    let mut result = untouched[0].clone();
    let got = executable.run_on_chip(&[operand], &mut [&mut result], buffers);
    match (expected, got) {
        (Ok(()), Ok(counters)) => {
            for (k, buffer) in isa.buffers.iter().enumerate() {
                let start = vec![0; buffer.access.len()];
                let value = machine.slot_value(BufferId(k as u16), &start, &buffer_shape(buffer)).unwrap();
                assert!(value.bytes() == buffers[k], "buffer {} differs, {}", buffer.name, context());
            }
            let (mut totals, results) = machine.finish();
            assert!(results[0] == result, "the result differs, {}", context());
            totals.unwritten_result_bytes = 0;
            assert_eq!(totals, counters, "{}", context());
            true
        }
        (Err(_), Err(RunError::Fault(_))) => false,
        (expected, got) => panic!("oracle {expected:?}, simulator {got:?}, {}", context()),
    }
}

fn compare_all(isa: &Isa, programs: u64) {
    compare_with(isa, programs, Options::default());
}

/// So many programs for every instruction, and more until some of them ran: instructions with many requirements seldom
/// get legal attributes by chance.
fn compare_with(isa: &Isa, programs: u64, options: Options) {
    for op in isa.instr_ids() {
        let mut fine = 0;
        for seed in 0..400 {
            if seed >= programs && fine >= 2 {
                break;
            }
            fine += u64::from(compare(isa, op, seed << 16 | u64::from(op.0), options));
        }
        assert!(fine > 0, "no program with {} ran", isa.instr(op).name);
    }
}

#[test]
fn tile_machine() {
    compare_all(&tile_machine::isa(), 12);
}

#[test]
fn every_movement() {
    let text = include_str!("movement.taidl");
    compare_all(&Isa::parse(text, "movement.taidl").unwrap_or_else(|e| panic!("{e}")), 12);
}

/// With every set of vector instructions that this processor has.
#[test]
fn every_dot() {
    let isa = Isa::parse(include_str!("dots.taidl"), "dots.taidl").unwrap_or_else(|e| panic!("{e}"));
    for vectors in VectorLevel::ALL {
        if vectors <= VectorLevel::detect() {
            compare_with(&isa, 4, Options { vectors, ..Options::default() });
        } else {
            eprintln!("skipped: this processor lacks {vectors:?}");
        }
    }
}

/// Tiles go through a queue whose ends are registers; what the oracle refuses is a fault of the same instruction.
#[test]
fn registers_that_the_code_changes() {
    let isa = small(load_target("tpu_v1").unwrap());
    let instr = |name: &str, address: Option<i64>| {
        let from = address.map(|at| BetaVal::Hbm(Space::Operand(0), Affine::constant(at)));
        let op = isa.instr_named(name).unwrap();
        Program::Instr { op, alpha: vec![], beta: from.into_iter().collect() }
    };
    let (push, pop) = (|at| instr("read_weights", Some(at)), || instr("shift_weights", None));
    let nest = |trip, parts: Vec<Program>| {
        let body = Box::new(Program::Seq(parts));
        Program::For { iv: LoopId(0), trip, parallel: false, body }
    };
    let program = |parts: Vec<Program>| LoopProgram {
        body: Program::Seq(parts),
        operands: vec![1 << 17],
        results: vec![64],
        scratch_bytes: 0,
        consts: vec![],
    };
    let run = |parts: Vec<Program>| {
        let program = program(parts);
        let operand = Random(9).bytes(1 << 17);
        let mut buffers: Vec<Vec<u8>> =
            isa.buffers.iter().map(|b| vec![0; buffer_shape(b).bytes() as usize]).collect();
        run_both(&isa, &program, &operand, &mut buffers, Options::default(), |e| panic!("{e}"))
    };
    // The first in is the first out, around the end of the queue.
    assert!(run(vec![nest(3, vec![push(0), push(1 << 16), pop(), pop()]), push(64), pop()]));
    assert!(run(vec![instr("load_weights", Some(0)), push(0), pop(), instr("load_weights", Some(64))]));
    assert!(!run(vec![push(0), instr("load_weights", Some(64))]));
    assert!(!run(vec![push(0), pop(), pop()]));
    assert!(!run(vec![nest(5, vec![push(0)])]));
    let compile = |parts| Executable::compile(&isa, &emit(&isa, &program(parts)).unwrap());
    let Err(RunError::Fault(fault)) =
        compile(vec![nest(5, vec![push(0)])]).unwrap().run(&[&[0; 1 << 17]], &mut [&mut [0; 64]])
    else {
        panic!("no fault");
    };
    assert_eq!((fault.instr, fault.number), (0, 4), "{fault}");
    // So many are not followed.
    let long = compile(vec![nest(10_000, vec![push(0), pop()])]);
    assert!(matches!(long, Err(LowerError::ChangingRegisters { .. })));
}

/// Sums of products at the limits of what an instruction that fuses them does as well, by bits of bfloat16: `(a, b)` by
/// position, and the sum. Derived by hand: every product is rounded and flushed for itself, in order.
#[test]
fn limits_of_bfloat16_products() {
    let cases: [(&[(u16, u16)], f32); 5] = [
        // -1.5 * 2^-126 + 2^-126 is flushed to -0, which an odd number of products leaves behind.
        (&[(0xa040, 0x2000), (0x2000, 0x2000), (0x8000, 0x3f80)], -0.0),
        // 0.75 * 2^-126 is no normal number, so that nothing is added to 2^-126.
        (&[(0x2000, 0x2000), (0x1fc0, 0x2000)], f32::MIN_POSITIVE),
        // 2^128 and 1.125 * 2^128 are infinite before they meet something finite of the other sign.
        (&[(0xdf80, 0x5f00), (0x5f80, 0x5f80)], f32::INFINITY),
        (&[(0xdfc0, 0x5f00), (0x5fc0, 0x5f40)], f32::INFINITY),
        // The largest product that is finite, less half of it.
        (&[(0x5fb4, 0x5f35), (0xdfb4, 0x5eb5)], 1.40625 * 1.4140625 * 2f32.powi(126)),
    ];
    let isa = Isa::parse(include_str!("dots.taidl"), "dots.taidl").unwrap_or_else(|e| panic!("{e}"));
    let op = isa.instr_ids().find(|&op| isa.instr(op).name == "hh").unwrap();
    let buffer = |name: &str| isa.buffers.iter().position(|b| b.name == name).unwrap();
    let zero = BetaVal::Int(Affine::constant(0));
    for (products, sum) in cases {
        let alpha = [1, 40, products.len() as i64].map(AttrVal::Int).to_vec();
        let program = LoopProgram {
            body: Program::Instr { op, alpha, beta: vec![zero.clone(); 5] },
            operands: vec![64],
            results: vec![64],
            scratch_bytes: 0,
            consts: vec![],
        };
        let mut buffers: Vec<Vec<u8>> =
            isa.buffers.iter().map(|b| vec![0; buffer_shape(b).bytes() as usize]).collect();
        let mut set = |name: &str, row: usize, column: usize, bits: u16| {
            let at = 2 * (row * isa.buffers[buffer(name)].access[1] as usize + column);
            buffers[buffer(name)][at..at + 2].copy_from_slice(&bits.to_le_bytes());
        };
        // Only the first of the columns, which are more than one piece of what is looked at together.
        for (k, &(a, b)) in products.iter().enumerate() {
            set("ha", 0, k, a);
            set("hb", k, 0, b);
        }
        for vectors in VectorLevel::ALL.into_iter().filter(|&v| v <= VectorLevel::detect()) {
            let options = Options { vectors, ..Options::default() };
            let mut after = buffers.clone();
            assert!(run_both(&isa, &program, &[0; 64], &mut after, options, |e| panic!("{e}")));
            assert_eq!(after[buffer("wide")][..4], sum.to_le_bytes(), "{vectors:?} {products:x?}");
        }
    }
}

/// The same instructions over smaller buffers: the oracle keeps every byte, and slices are short here.
pub(crate) fn small(mut isa: Isa) -> Isa {
    for buffer in &mut isa.buffers {
        buffer.access.iter_mut().for_each(|size| *size = (*size).min(1024));
    }
    isa
}

#[test]
fn every_target() {
    for (name, _) in targets() {
        compare_all(&small(load_target(name).unwrap()), 6);
    }
}
