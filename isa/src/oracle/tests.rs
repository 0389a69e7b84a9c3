//! Golden vectors derived by hand from the definitions of the hardware, and every kind of fault.

use super::*;
use crate::{BetaVal, load_target};
use act_hlo::ElemType;

fn int(v: i64) -> AttrVal {
    AttrVal::Int(v)
}

fn f32(v: f32) -> AttrVal {
    AttrVal::F32(v.to_bits())
}

fn chip(at: i64) -> BetaVal {
    BetaVal::Int(Affine::constant(at))
}

fn operand(at: i64) -> BetaVal {
    BetaVal::Hbm(Space::Operand(0), Affine::constant(at))
}

fn result(at: i64) -> BetaVal {
    BetaVal::Hbm(Space::Result(0), Affine::constant(at))
}

fn s8(dims: [u64; 2], values: &[i8]) -> Literal {
    Literal::from_bytes(Shape::new(ElemType::S8, dims), values.iter().map(|v| *v as u8).collect::<Vec<u8>>())
        .unwrap()
}

fn s32(dims: [u64; 2], values: &[i32]) -> Literal {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Literal::from_bytes(Shape::new(ElemType::S32, dims), bytes).unwrap()
}

fn bf16(dims: [u64; 2], value: impl Fn(u64, u64) -> f32) -> Literal {
    let at = (0..dims[0]).flat_map(|i| (0..dims[1]).map(move |j| (i, j)));
    let bytes: Vec<u8> = at.flat_map(|(i, j)| half::bf16::from_f32(value(i, j)).to_le_bytes()).collect();
    Literal::from_bytes(Shape::new(ElemType::BF16, dims), bytes).unwrap()
}

/// A test bench: one machine, instructions by name.
struct Bench<'a> {
    isa: &'a Isa,
    machine: Machine<'a>,
}

impl<'a> Bench<'a> {
    fn new(oracle: &'a Oracle<'a>, operands: &[&[u8]], results: &[u64]) -> Bench<'a> {
        Bench { isa: oracle.isa, machine: oracle.machine(operands, results, 64, &[7]) }
    }

    fn buf(&self, name: &str) -> BufferId {
        self.isa.buffer_ids().find(|&b| self.isa.buffer(b).name == name).unwrap()
    }

    fn set(&mut self, buf: &str, start: &[i64], value: &Literal) {
        self.machine.set_slot(self.buf(buf), start, value).unwrap();
    }

    fn get(&self, buf: &str, start: &[i64], like: &Literal) -> Literal {
        self.machine.slot_value(self.buf(buf), start, like.shape()).unwrap()
    }

    fn try_run(&mut self, name: &str, alpha: &[AttrVal], beta: &[BetaVal]) -> Result<(), Fault> {
        let op = self.isa.instr_named(name).unwrap();
        self.machine.execute(&Program::Instr { op, alpha: alpha.to_vec(), beta: beta.to_vec() })
    }

    fn run(&mut self, name: &str, alpha: &[AttrVal], beta: &[BetaVal]) {
        self.try_run(name, alpha, beta).unwrap_or_else(|e| panic!("{e}"));
    }

    fn fault(&mut self, name: &str, alpha: &[AttrVal], beta: &[BetaVal]) -> Fault {
        self.try_run(name, alpha, beta).unwrap_err()
    }

    fn result(self) -> Vec<u8> {
        self.machine.finish().1.remove(0)
    }
}

const POISON: u8 = 0xa5;

#[test]
fn gemmini_loads() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    let data: Vec<u8> = (0..=255).collect();
    let mut bench = Bench::new(&oracle, &[&data], &[]);

    // Rows 100 apart from byte 20; 120 and up are negative as s8 from 128 on.
    bench.run("mvin", &[int(2), int(3), int(108)], &[operand(20), chip(5)]);
    let expected = s8([2, 3], &[20, 21, 22, -128, -127, -126]);
    assert_eq!(bench.get("sp", &[5, 0], &expected), expected);

    // Stride 0 repeats the row.
    bench.run("mvin", &[int(3), int(2), int(0)], &[operand(1), chip(9)]);
    let expected = s8([3, 2], &[1, 2, 1, 2, 1, 2]);
    assert_eq!(bench.get("sp", &[9, 0], &expected), expected);

    // Two blocks of 16 columns: column 16 of row r is row 2 + r.
    bench.run("mvin_blocks", &[int(2), int(2), int(32)], &[operand(0), chip(100)]);
    let rows: Vec<i8> = [0i8, 32, 16, 48].iter().flat_map(|&first| (0..16).map(move |c| first + c)).collect();
    let expected = s8([4, 16], &rows);
    assert_eq!(bench.get("sp", &[100, 0], &expected), expected);

    // Zeros cover the box and nothing else.
    bench.run("zero_sp", &[int(2), int(3)], &[chip(101)]);
    let mut rows = rows;
    for at in [16, 17, 18, 32, 33, 34] {
        rows[at] = 0;
    }
    let expected = s8([4, 16], &rows);
    assert_eq!(bench.get("sp", &[100, 0], &expected), expected);
}

#[test]
fn gemmini_accumulator_loads() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    let words: Vec<u8> = [1i32, -2, i32::MAX, i32::MIN].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut bench = Bench::new(&oracle, &[&words, &[0x80, 0x7f]], &[]);
    let low = BetaVal::Hbm(Space::Operand(1), Affine::constant(0));

    bench.run("mvin_acc", &[int(2), int(2), int(8)], &[operand(0), chip(3)]);
    let expected = s32([2, 2], &[1, -2, i32::MAX, i32::MIN]);
    assert_eq!(bench.get("acc", &[3, 0], &expected), expected);

    // Sums wrap: MAX + MAX = -2, MIN + MIN = 0.
    bench.run("mvin_acc_accumulate", &[int(2), int(2), int(8)], &[operand(0), chip(3)]);
    let expected = s32([2, 2], &[2, -4, -2, 0]);
    assert_eq!(bench.get("acc", &[3, 0], &expected), expected);

    bench.run("mvin_acc_low", &[int(1), int(2), int(0)], &[low.clone(), chip(0)]);
    let expected = s32([1, 2], &[-128, 127]);
    assert_eq!(bench.get("acc", &[0, 0], &expected), expected);
    bench.run("mvin_acc_low_accumulate", &[int(1), int(2), int(0)], &[low, chip(0)]);
    let expected = s32([1, 2], &[-256, 254]);
    assert_eq!(bench.get("acc", &[0, 0], &expected), expected);

    bench.run("zero_acc", &[int(1), int(1)], &[chip(0)]);
    let expected = s32([1, 2], &[0, 254]);
    assert_eq!(bench.get("acc", &[0, 0], &expected), expected);
}

#[test]
fn gemmini_stores() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    let mut bench = Bench::new(&oracle, &[], &[12]);
    bench.set("sp", &[0, 0], &s8([2, 3], &[1, -2, 3, 4, 5, -6]));
    bench.run("mvout", &[int(2), int(3), int(5)], &[chip(0), result(1)]);
    let p = POISON;
    assert_eq!(bench.result(), [p, 1, 0xfe, 3, p, p, 4, 5, 0xfa, p, p, p]);

    let mut bench = Bench::new(&oracle, &[], &[12]);
    bench.set("acc", &[7, 0], &s32([2, 1], &[-2, 0x0102_0304]));
    bench.run("mvout_acc", &[int(2), int(1), int(6)], &[chip(7), result(0)]);
    assert_eq!(bench.result(), [0xfe, 0xff, 0xff, 0xff, p, p, 4, 3, 2, 1, p, p]);
}

#[test]
fn gemmini_scaled_stores_round_to_even_and_saturate() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    let scaled = |name: &str, scale: f32, acc: &[i32]| -> Vec<i8> {
        let cols = acc.len() as u64;
        let mut bench = Bench::new(&oracle, &[], &[cols]);
        bench.set("acc", &[0, 0], &s32([1, cols], acc));
        bench.run(name, &[int(1), int(cols as i64), int(0), f32(scale)], &[chip(0), result(0)]);
        bench.result().into_iter().map(|b| b as i8).collect()
    };
    // Halves go to the even neighbour, the rest to the nearest; then saturation.
    let acc = [1, 3, 5, -1, -3, -5, 4, 253, 254, 255, 256, -256, -257, -259, i32::MAX, i32::MIN];
    let expected = [0, 2, 2, 0, -2, -2, 2, 126, 127, 127, 127, -128, -128, -128, 127, -128];
    assert_eq!(scaled("mvout_acc_scaled", 0.5, &acc), expected);
    // 2^24 + 1 is no f32: it becomes 2^24, whose product with 2^-25 is the tie 0.5. In wider arithmetic it would be 1.
    assert_eq!(scaled("mvout_acc_scaled", 2f32.powi(-25), &[(1 << 24) + 1, (1 << 24) + 2]), [0, 1]);
    // Relu looks at the scaled value: with a negative scale negative sums pass.
    assert_eq!(scaled("mvout_acc_scaled_relu", -0.5, &[-10, 10, 3, -3, -1000]), [5, 0, 0, 2, 127]);
    assert_eq!(scaled("mvout_acc_scaled_relu", 1.0, &[-10, 10, 200]), [0, 10, 127]);
}

#[test]
fn gemmini_products() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    let mut bench = Bench::new(&oracle, &[], &[]);
    let ijk = [int(2), int(2), int(3)];
    let abc = [chip(0), chip(16), chip(4)];
    bench.set("sp", &[0, 0], &s8([2, 3], &[1, 2, 3, -4, 5, -6]));
    bench.set("sp", &[16, 0], &s8([3, 2], &[7, 8, 9, 10, -11, 12]));
    // [1 2 3; -4 5 -6] x [7 8; 9 10; -11 12] = [-8 64; 83 -54]
    bench.run("matmul", &ijk, &abc);
    let product = s32([2, 2], &[-8, 64, 83, -54]);
    assert_eq!(bench.get("acc", &[4, 0], &product), product);
    bench.run("matmul_acc", &ijk, &abc);
    let twice = s32([2, 2], &[-16, 128, 166, -108]);
    assert_eq!(bench.get("acc", &[4, 0], &product), twice);
    // Into the scratchpad values saturate: [1 2 3; -4 5 -6] x [100 0; 50 0; 20 0] = [260 0; -270 0].
    bench.set("sp", &[16, 0], &s8([3, 2], &[100, 0, 50, 0, 20, 0]));
    bench.run("matmul_sp", &ijk, &abc);
    let saturated = s8([2, 2], &[127, 0, -128, 0]);
    assert_eq!(bench.get("sp", &[4, 0], &saturated), saturated);

    // The longest sum of the largest products, and the wrap of the accumulator.
    let low = s8([16, 16], &[-128; 256]);
    bench.set("sp", &[0, 0], &low);
    bench.set("acc", &[0, 0], &s32([16, 16], &[i32::MAX; 256]));
    bench.run("matmul_acc", &[int(16), int(16), int(16)], &[chip(0), chip(0), chip(0)]);
    let wrapped = s32([16, 16], &[i32::MIN + 16 * 128 * 128 - 1; 256]);
    assert_eq!(bench.get("acc", &[0, 0], &wrapped), wrapped);
}

#[test]
fn h_qkv_moves() {
    let isa = load_target("h_qkv").unwrap();
    let oracle = Oracle::new(&isa);
    let value = |i: u64, j: u64| (i * 2 + j % 2) as f32;
    let matrix = bf16([64, 64], value);
    let mut bench = Bench::new(&oracle, &[matrix.bytes()], &[8192]);

    bench.run("load_rm", &[int(3)], &[operand(128), chip(10)]);
    let rows = bf16([3, 64], |i, j| value(i + 1, j));
    assert_eq!(bench.get("d1", &[10], &rows), rows);
    bench.run("load_cm", &[int(64)], &[operand(0), chip(64)]);
    let transposed = bf16([64, 64], |i, j| value(j, i));
    assert_eq!(bench.get("d1", &[64], &matrix), transposed);
    bench.set("d2", &[5], &rows);
    bench.run("mov", &[int(2)], &[chip(6), chip(0)]);
    let two = bf16([2, 64], |i, j| value(i + 2, j));
    assert_eq!(bench.get("d1", &[0], &two), two);

    // Two rows stored by columns: elements (0,0) (1,0) (0,1) (1,1) ..
    bench.run("store_cm", &[int(2)], &[chip(0), result(0)]);
    bench.run("store_rm", &[int(2)], &[chip(0), result(256)]);
    let by_columns = bf16([64, 2], |i, j| value(j + 2, i));
    let stored = bench.result();
    assert_eq!(&stored[..256], by_columns.bytes());
    assert_eq!(&stored[256..512], two.bytes());
    assert_eq!(stored[512], POISON);
}

#[test]
fn h_qkv_computes() {
    let isa = load_target("h_qkv").unwrap();
    let oracle = Oracle::new(&isa);
    let mut bench = Bench::new(&oracle, &[], &[]);
    // Row i of the product is (i mod 4) times the sum over k of (k == j): the identity scaled by rows.
    bench.set("d1", &[0], &bf16([64, 64], |i, j| if i == j { (i % 4) as f32 } else { 0.0 }));
    bench.set("d1", &[64], &bf16([64, 64], |i, j| (i + 2 * j) as f32));
    bench.run("gemm", &[], &[chip(0), chip(64), chip(0)]);
    let product = bf16([64, 64], |i, j| {
        // One exact product per element; rounding it to bf16 is the only rounding.
        (i % 4) as f32 * half::bf16::from_f32((i + 2 * j) as f32).to_f32()
    });
    assert_eq!(bench.get("d2", &[0], &product), product);

    // exp(0) = 1, so a row of zeros becomes 1/64 everywhere; a -inf gets no weight: 1/63 in bf16.
    bench.set("d2", &[8], &bf16([2, 64], |i, j| if i == 1 && j == 0 { f32::NEG_INFINITY } else { 0.0 }));
    bench.run("softmax", &[int(2)], &[chip(8)]);
    let weights = bf16([2, 64], |i, j| match (i, j) {
        (0, _) => 1.0 / 64.0,
        (_, 0) => 0.0,
        _ => 1.0 / 63.0,
    });
    assert_eq!(bench.get("d2", &[8], &weights), weights);
}

/// ((a*i + b*j) mod modulus - modulus/2) / 16, as tests/data/qkv_attention.py has it.
fn attention_operand(a: u64, b: u64, modulus: u64) -> Literal {
    bf16([64, 64], |i, j| (((a * i + b * j) % modulus) as f32 - (modulus / 2) as f32) / 16.0)
}

/// The paper's nine instructions (Fig. 4 and section 8), run on q, k, v.
fn attention(q: &Literal, k: &Literal, v: &Literal) -> (Vec<half::bf16>, Counters) {
    let isa = load_target("h_qkv").unwrap();
    let text = "load_rm n=64 addr_in=operand0 addr_out=0\n\
                load_cm n=64 addr_in=operand1 addr_out=64\n\
                gemm addr_1=0 addr_2=64 addr_out=0\n\
                softmax n=64 addr=0\n\
                mov n=64 addr_in=0 addr_out=0\n\
                load_rm n=64 addr_in=operand2 addr_out=64\n\
                gemm addr_1=0 addr_2=64 addr_out=0\n\
                mov n=64 addr_in=0 addr_out=0\n\
                store_rm n=64 addr_in=0 addr_out=result0\n";
    let assembly = crate::parse_assembly(&isa, text).unwrap();
    let oracle = Oracle::new(&isa);
    let mut results = [vec![0; 8192]];
    let operands = [q.bytes(), k.bytes(), v.bytes()];
    let counters = oracle.run_assembly(&assembly, &operands, &mut results).unwrap_or_else(|e| panic!("{e}"));
    let values = results[0].chunks_exact(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]));
    (values.collect(), counters)
}

#[test]
fn attention_agrees_with_jax() {
    let golden: Vec<half::bf16> = include_str!("../../tests/data/qkv_attention.hex")
        .split_whitespace()
        .flat_map(|row| row.as_bytes().chunks_exact(4))
        .map(|digits| {
            half::bf16::from_bits(u16::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        })
        .collect();
    let (q, k, v) = (attention_operand(7, 3, 17), attention_operand(5, 11, 13), attention_operand(3, 13, 29));
    // XLA's order of sums differs from ours, so an element may round to the neighbour: one unit in the eighth bit of
    // the largest weight times the largest v (14/16), and the sum of 64 weights is 1.
    let error = |values: &[half::bf16]| {
        let pairs = values.iter().zip(&golden);
        pairs.map(|(a, b)| (a.to_f32() - b.to_f32()).abs()).fold(0f32, f32::max)
    };
    let (values, counters) = attention(&q, &k, &v);
    assert_eq!(golden.len(), 4096);
    assert!(error(&values) <= 1.0 / 256.0, "{}", error(&values));
    let same = values.iter().zip(&golden).filter(|(a, b)| a == b).count();
    assert!(same > 3900, "only {same} of 4096 elements have the same bits");
    assert!(error(&attention(&k, &q, &v).0) > 1.0 / 32.0);

    assert_eq!(counters.instructions["gemm"], 2);
    assert_eq!(counters.instructions.values().sum::<u64>(), 9);
    assert_eq!(counters.bytes_between("d0", "d1"), 3 * 8192);
    assert_eq!(counters.bytes_between("d1", "d0"), 8192);
    assert_eq!(counters.bytes_between("d2", "d2"), 0);
    assert_eq!((counters.cycles, counters.unwritten_result_bytes), (9 * 64, 0));
    assert_eq!(counters.unit_cycles["gemm"], 128);
    let json = serde_json::to_string(&counters).unwrap();
    assert_eq!(serde_json::from_str::<Counters>(&json).unwrap(), counters);
}

#[test]
fn faults_name_instruction_and_memory() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    let mut bench = Bench::new(&oracle, &[&[0; 64]], &[64]);
    let mvin = [int(4), int(16), int(16)];

    let fault = bench.fault("mvin", &mvin, &[operand(1), chip(0)]);
    assert_eq!(fault.what, FaultKind::OutOfBytes { start: 1, end: 65, size: 64 });
    assert_eq!((fault.number, fault.instr.as_str(), fault.buffer.as_str()), (0, "mvin", "operand0"));
    let fault = bench.fault("mvin", &mvin, &[operand(0), chip(16381)]);
    assert_eq!(fault.what, FaultKind::OutOfSlots { dim: 0, start: 16381, end: 16385, size: 16384 });
    let fault = bench.fault("mvin", &mvin, &[operand(0), chip(-1)]);
    assert!(matches!(fault.what, FaultKind::BetaRange { value: -1, .. }));
    let fault = bench.fault("mvin", &mvin, &[chip(0), chip(0)]);
    assert!(matches!(fault.what, FaultKind::BetaKind { .. }));
    let fault = bench.fault("mvin", &[int(17), int(16), int(16)], &[operand(0), chip(0)]);
    assert!(matches!(fault.what, FaultKind::Semantics(_)));
    let no_operand = BetaVal::Hbm(Space::Operand(1), Affine::constant(0));
    assert_eq!(bench.fault("mvin", &mvin, &[no_operand, chip(0)]).what, FaultKind::NoSuchSegment);

    bench.run("mvin", &mvin, &[operand(0), chip(0)]);
    // Row 4 was never written; byte 64 is its first.
    let fault = bench.fault("mvout", &[int(5), int(1), int(16)], &[chip(0), result(0)]);
    assert_eq!(fault.what, FaultKind::Uninitialised { offset: 64 });
    assert_eq!((fault.number, fault.buffer.as_str()), (1, "sp"));
    let fault = bench.fault("mvout", &[int(4), int(16), int(15)], &[chip(0), result(0)]);
    let unmet = FaultKind::from(crate::InstantiateError::Requirement { index: 0 });
    assert_eq!(fault.what, unmet, "{fault}");
    let fault = bench.fault("mvout", &mvin, &[chip(0), operand(0)]);
    assert_eq!((fault.what, fault.buffer.as_str()), (FaultKind::ReadOnly, "operand0"));
    let fault = bench.fault("mvin", &[int(1), int(1), int(0)], &[result(0), chip(0)]);
    assert_eq!(fault.what, FaultKind::Uninitialised { offset: 0 });
    let consts = BetaVal::Hbm(Space::Consts, Affine::constant(0));
    bench.run("mvin", &[int(1), int(1), int(0)], &[consts, chip(0)]);
    assert_eq!(bench.get("sp", &[0, 0], &s8([1, 1], &[7])), s8([1, 1], &[7]));
    let iv = BetaVal::Int(Affine { c0: 0, ivs: vec![(LoopId(0), 1)] });
    assert_eq!(bench.fault("mvin", &mvin, &[operand(0), iv]).what, FaultKind::Address);
}

#[test]
fn alignment_and_in_place_order() {
    let text = "isa t\nhbm d0: 1 KiB align 4\nbuffer b: s8[8 | 4] align(2)\n\
        instr load beta(d, r) { in d0[d :+ 4] out b[r :+ 1] computation { x = u8[4] parameter(0) \
        c = s8[4] bitcast-convert(x) ROOT y = s8[1,4] reshape(c) } }\n\
        instr swap beta(p, q) { in b[p :+ 1] in b[q :+ 1] out b[q :+ 1] out b[p :+ 1] computation { \
        x = s8[1,4] parameter(0) y = s8[1,4] parameter(1) return x, y } }\n";
    let isa = Isa::parse(text, "t").unwrap_or_else(|e| panic!("{e}"));
    let oracle = Oracle::new(&isa);
    let mut bench = Bench::new(&oracle, &[&[1, 2, 3, 4, 5, 6, 7, 8]], &[]);
    let fault = bench.fault("load", &[], &[operand(2), chip(0)]);
    assert_eq!(
        (fault.what, fault.buffer.as_str()),
        (FaultKind::Misaligned { start: 2, align: 4 }, "operand0")
    );
    let fault = bench.fault("load", &[], &[operand(0), chip(3)]);
    assert_eq!(fault.what, FaultKind::Misaligned { start: 3, align: 2 });
    bench.run("load", &[], &[operand(0), chip(2)]);
    bench.run("load", &[], &[operand(4), chip(6)]);
    bench.run("swap", &[], &[chip(2), chip(6)]);
    let (first, second) = (s8([1, 4], &[5, 6, 7, 8]), s8([1, 4], &[1, 2, 3, 4]));
    assert_eq!(bench.get("b", &[2], &first), first);
    assert_eq!(bench.get("b", &[6], &first), second);
}

#[test]
fn loops_step_addresses_and_count() {
    let isa = load_target("gemmini").unwrap();
    let oracle = Oracle::new(&isa);
    // Three tiles of 2x16 rows, packed into scratch by the host, loaded from there and stored in reverse order.
    let text = "operands 96\nresults 96\nscratch 32\n\
        for %i0 in 0..3 {\n\
          host_copy s8 operand0+%i0*32[2 by 16, 16 by 1] -> s8 scratch[2 by 16, 16 by 1]\n\
          config_ld 16, 1.0\n mvin scratch, sp[%i0*2], 2, 16\n\
        }\nfence\n\
        for %i1 in 0..3 parallel { config_st 16\n mvout result0+%i1*-32+64, sp[%i1*2], 2, 16 }\n";
    let program = crate::parse_program(&isa, text).unwrap_or_else(|e| panic!("{e}"));
    let data: Vec<u8> = (0..96).collect();
    let mut results = [Vec::new()];
    let counters = oracle.run(&program, &[&data], &mut results).unwrap_or_else(|e| panic!("{e}"));
    let reversed: Vec<u8> = data.chunks(32).rev().flatten().copied().collect();
    assert_eq!(results[0], reversed);
    assert_eq!((counters.instructions["mvin"], counters.instructions["mvout"]), (3, 3));
    assert_eq!((counters.host_copy_bytes, counters.bytes_between("dram", "sp")), (96, 96));
    assert_eq!((counters.unit_cycles["load"], counters.cycles), (30, 60));
    let wrong = oracle.run(&program, &[&data[1..]], &mut results).unwrap_err();
    assert!(matches!(wrong.what, FaultKind::OperandSize { index: 0, expected: 96, got: 95 }));
    assert!(matches!(oracle.run(&program, &[], &mut results).unwrap_err().what, FaultKind::Count { .. }));
}
