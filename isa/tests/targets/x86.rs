//! The description `x86` against the processor: random and special values through the description's instruction on the
//! oracle and through the real one, compared bit for bit.
//!
//! A NaN that f32 arithmetic makes is compared as a NaN only: the reference evaluator makes the one NaN 0x7fc00000, the
//! processor the negative one or a quieted operand. Everything else, NaNs that are moved, masked or selected included, has
//! to be the same bits.

use crate::bench::{Bench, POISON};
use crate::native::{Kernel, Memory, Registers, run_avx2, ymm, ymm_immediate};
use act_hlo::random::SplitMix64;
use act_isa::{AttrVal, Isa, Oracle, Slice, load_target};
use std::collections::BTreeSet;

/// How results are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bits,
    Arithmetic,
}
use Kind::{Arithmetic as ARITHMETIC, Bits as BITS};

/// Random operands for each instruction, shared out among the values of its computational attributes.
const TRIALS: u64 = 4096;

/// The instructions whose attributes are not immediates of the real one.
fn kernels() -> Vec<(&'static str, Kind, Kernel)> {
    vec![
        ("vmovups_load", BITS, ymm!("vmovups ymm8, [rsi]")),
        ("vmovups_store", BITS, ymm!("vmovups [rdx], ymm0")),
        (
            "vmaskmovps_load",
            BITS,
            ymm!("vmovq xmm15, rcx", "vpmovsxbd ymm15, xmm15", "vmaskmovps ymm8, ymm15, [rsi]"),
        ),
        (
            "vmaskmovps_store",
            BITS,
            ymm!("vmovq xmm15, rcx", "vpmovsxbd ymm15, xmm15", "vmaskmovps [rdx], ymm15, ymm0"),
        ),
        ("vmovaps", BITS, ymm!("vmovaps ymm8, ymm0")),
        ("vbroadcastss_load", BITS, ymm!("vbroadcastss ymm8, dword ptr [rsi]")),
        ("vbroadcastss", BITS, ymm!("vbroadcastss ymm8, xmm0")),
        ("vpbroadcastb_load", BITS, ymm!("vpbroadcastb ymm8, byte ptr [rsi]")),
        ("vpbroadcastw_load", BITS, ymm!("vpbroadcastw ymm8, word ptr [rsi]")),
        ("vxorps_zero", BITS, ymm!("vxorps ymm8, ymm8, ymm8")),
        ("splat_f32", BITS, ymm!("vmovd xmm15, ecx", "vbroadcastss ymm8, xmm15")),
        ("splat_s32", BITS, ymm!("vmovd xmm15, ecx", "vpbroadcastd ymm8, xmm15")),
        ("iota_s32", BITS, ymm!("mov rax, 0x0706050403020100", "vmovq xmm15, rax", "vpmovzxbd ymm8, xmm15")),
        ("vaddps", ARITHMETIC, ymm!("vaddps ymm8, ymm0, ymm1")),
        ("vaddps_mem", ARITHMETIC, ymm!("vaddps ymm8, ymm0, [rsi]")),
        ("vsubps", ARITHMETIC, ymm!("vsubps ymm8, ymm0, ymm1")),
        ("vsubps_mem", ARITHMETIC, ymm!("vsubps ymm8, ymm0, [rsi]")),
        ("vmulps", ARITHMETIC, ymm!("vmulps ymm8, ymm0, ymm1")),
        ("vmulps_mem", ARITHMETIC, ymm!("vmulps ymm8, ymm0, [rsi]")),
        ("vdivps", ARITHMETIC, ymm!("vdivps ymm8, ymm0, ymm1")),
        ("vdivps_mem", ARITHMETIC, ymm!("vdivps ymm8, ymm0, [rsi]")),
        ("vsqrtps", ARITHMETIC, ymm!("vsqrtps ymm8, ymm0")),
        ("vfmadd231ps", ARITHMETIC, ymm!("vfmadd231ps ymm2, ymm0, ymm1", "vmovaps ymm8, ymm2")),
        ("vfnmadd231ps", ARITHMETIC, ymm!("vfnmadd231ps ymm2, ymm0, ymm1", "vmovaps ymm8, ymm2")),
        ("vfmsub231ps", ARITHMETIC, ymm!("vfmsub231ps ymm2, ymm0, ymm1", "vmovaps ymm8, ymm2")),
        ("vfmadd231ps_mem", ARITHMETIC, ymm!("vfmadd231ps ymm1, ymm0, [rsi]", "vmovaps ymm8, ymm1")),
        ("vmaxps", BITS, ymm!("vmaxps ymm8, ymm0, ymm1")),
        ("vminps", BITS, ymm!("vminps ymm8, ymm0, ymm1")),
        (
            "maximum",
            ARITHMETIC,
            ymm!(
                "vmaxps ymm15, ymm0, ymm1",
                "vmaxps ymm8, ymm1, ymm0",
                "vandps ymm8, ymm8, ymm15",
                "vcmpunordps ymm15, ymm0, ymm1",
                "vorps ymm8, ymm8, ymm15"
            ),
        ),
        (
            "minimum",
            ARITHMETIC,
            ymm!(
                "vminps ymm15, ymm0, ymm1",
                "vminps ymm8, ymm1, ymm0",
                "vorps ymm8, ymm8, ymm15",
                "vcmpunordps ymm15, ymm0, ymm1",
                "vorps ymm8, ymm8, ymm15"
            ),
        ),
        (
            "relu",
            ARITHMETIC,
            ymm!("vxorps ymm15, ymm15, ymm15", "vmaxps ymm8, ymm15, ymm0", "vaddps ymm8, ymm8, ymm15"),
        ),
        (
            "negate",
            BITS,
            ymm!("vpcmpeqd ymm15, ymm15, ymm15", "vpslld ymm15, ymm15, 31", "vxorps ymm8, ymm0, ymm15"),
        ),
        (
            "absolute",
            BITS,
            ymm!("vpcmpeqd ymm15, ymm15, ymm15", "vpsrld ymm15, ymm15, 1", "vandps ymm8, ymm0, ymm15"),
        ),
        ("vroundps_nearest", ARITHMETIC, ymm!("vroundps ymm8, ymm0, 0")),
        ("vroundps_floor", ARITHMETIC, ymm!("vroundps ymm8, ymm0, 1")),
        ("vroundps_ceil", ARITHMETIC, ymm!("vroundps ymm8, ymm0, 2")),
        ("vroundps_trunc", ARITHMETIC, ymm!("vroundps ymm8, ymm0, 3")),
        (
            "row_times_matrix_1",
            ARITHMETIC,
            ymm!(
                "vxorps ymm8, ymm8, ymm8",
                "vbroadcastss ymm15, dword ptr [rsi + 0]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15"
            ),
        ),
        (
            "row_times_matrix_1_acc",
            ARITHMETIC,
            ymm!(
                "vxorps ymm8, ymm8, ymm8",
                "vbroadcastss ymm15, dword ptr [rsi + 0]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "vaddps ymm8, ymm0, ymm8"
            ),
        ),
        (
            "row_times_matrix_4",
            ARITHMETIC,
            ymm!(
                "vxorps ymm8, ymm8, ymm8",
                "vbroadcastss ymm15, dword ptr [rsi + 0]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "add rdx, rcx",
                "vbroadcastss ymm15, dword ptr [rsi + 4]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "add rdx, rcx",
                "vbroadcastss ymm15, dword ptr [rsi + 8]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "add rdx, rcx",
                "vbroadcastss ymm15, dword ptr [rsi + 12]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15"
            ),
        ),
        (
            "row_times_matrix_4_acc",
            ARITHMETIC,
            ymm!(
                "vxorps ymm8, ymm8, ymm8",
                "vbroadcastss ymm15, dword ptr [rsi + 0]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "add rdx, rcx",
                "vbroadcastss ymm15, dword ptr [rsi + 4]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "add rdx, rcx",
                "vbroadcastss ymm15, dword ptr [rsi + 8]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "add rdx, rcx",
                "vbroadcastss ymm15, dword ptr [rsi + 12]",
                "vmulps ymm15, ymm15, [rdx]",
                "vaddps ymm8, ymm8, ymm15",
                "vaddps ymm8, ymm0, ymm8"
            ),
        ),
        ("vcmpps_eq", BITS, ymm!("vcmpeq_oqps ymm8, ymm0, ymm1")),
        ("vcmpps_lt", BITS, ymm!("vcmplt_oqps ymm8, ymm0, ymm1")),
        ("vcmpps_le", BITS, ymm!("vcmple_oqps ymm8, ymm0, ymm1")),
        ("vcmpps_neq", BITS, ymm!("vcmpneq_uqps ymm8, ymm0, ymm1")),
        ("vcmpps_ge", BITS, ymm!("vcmpge_oqps ymm8, ymm0, ymm1")),
        ("vcmpps_gt", BITS, ymm!("vcmpgt_oqps ymm8, ymm0, ymm1")),
        ("vpcmpeqd", BITS, ymm!("vpcmpeqd ymm8, ymm0, ymm1")),
        ("vpcmpgtd", BITS, ymm!("vpcmpgtd ymm8, ymm0, ymm1")),
        ("vblendvps", BITS, ymm!("vblendvps ymm8, ymm0, ymm1, ymm2")),
        ("select_eqps", BITS, ymm!("vcmpeq_oqps ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_ltps", BITS, ymm!("vcmplt_oqps ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_leps", BITS, ymm!("vcmple_oqps ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_neqps", BITS, ymm!("vcmpneq_uqps ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_geps", BITS, ymm!("vcmpge_oqps ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_gtps", BITS, ymm!("vcmpgt_oqps ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_eqd", BITS, ymm!("vpcmpeqd ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_ned", BITS, ymm!("vpcmpeqd ymm15, ymm0, ymm1", "vblendvps ymm8, ymm2, ymm3, ymm15")),
        ("select_gtd", BITS, ymm!("vpcmpgtd ymm15, ymm0, ymm1", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_led", BITS, ymm!("vpcmpgtd ymm15, ymm0, ymm1", "vblendvps ymm8, ymm2, ymm3, ymm15")),
        ("select_ltd", BITS, ymm!("vpcmpgtd ymm15, ymm1, ymm0", "vblendvps ymm8, ymm3, ymm2, ymm15")),
        ("select_ged", BITS, ymm!("vpcmpgtd ymm15, ymm1, ymm0", "vblendvps ymm8, ymm2, ymm3, ymm15")),
        ("vcvtdq2ps", BITS, ymm!("vcvtdq2ps ymm8, ymm0")),
        ("vcvtps2dq", BITS, ymm!("vcvtps2dq ymm8, ymm0")),
        ("vcvttps2dq", BITS, ymm!("vcvttps2dq ymm8, ymm0")),
        (
            "convert_f32_s32",
            BITS,
            ymm!(
                "mov eax, 0x4f000000",
                "vmovd xmm15, eax",
                "vbroadcastss ymm15, xmm15",
                "vcmpge_oqps ymm15, ymm0, ymm15",
                "vcvttps2dq ymm8, ymm0",
                "vxorps ymm8, ymm8, ymm15",
                "vcmpordps ymm15, ymm0, ymm0",
                "vandps ymm8, ymm8, ymm15"
            ),
        ),
        ("vpmovsxbd_load", BITS, ymm!("vpmovsxbd ymm8, qword ptr [rsi]")),
        ("vpmovsxbd", BITS, ymm!("vpmovsxbd ymm8, xmm0")),
        ("vpmovzxbd_load", BITS, ymm!("vpmovzxbd ymm8, qword ptr [rsi]")),
        ("vpmovzxbd", BITS, ymm!("vpmovzxbd ymm8, xmm0")),
        ("vpmovsxwd_load", BITS, ymm!("vpmovsxwd ymm8, xmmword ptr [rsi]")),
        ("vpmovsxwd", BITS, ymm!("vpmovsxwd ymm8, xmm0")),
        ("vpmovzxwd_load", BITS, ymm!("vpmovzxwd ymm8, xmmword ptr [rsi]")),
        ("vpmovzxwd", BITS, ymm!("vpmovzxwd ymm8, xmm0")),
        ("vpmovsxbw_load", BITS, ymm!("vpmovsxbw ymm8, xmmword ptr [rsi]")),
        ("vpmovsxbw", BITS, ymm!("vpmovsxbw ymm8, xmm0")),
        ("vpmovzxbw_load", BITS, ymm!("vpmovzxbw ymm8, xmmword ptr [rsi]")),
        ("vpmovzxbw", BITS, ymm!("vpmovzxbw ymm8, xmm0")),
        ("vpaddd", BITS, ymm!("vpaddd ymm8, ymm0, ymm1")),
        ("vpsubd", BITS, ymm!("vpsubd ymm8, ymm0, ymm1")),
        ("vpmulld", BITS, ymm!("vpmulld ymm8, ymm0, ymm1")),
        ("vpminsd", BITS, ymm!("vpminsd ymm8, ymm0, ymm1")),
        ("vpmaxsd", BITS, ymm!("vpmaxsd ymm8, ymm0, ymm1")),
        ("vandps", BITS, ymm!("vandps ymm8, ymm0, ymm1")),
        ("vorps", BITS, ymm!("vorps ymm8, ymm0, ymm1")),
        ("vxorps", BITS, ymm!("vxorps ymm8, ymm0, ymm1")),
        ("vpsllvd", BITS, ymm!("vpsllvd ymm8, ymm0, ymm1")),
        ("vpsrlvd", BITS, ymm!("vpsrlvd ymm8, ymm0, ymm1")),
        ("vpsravd", BITS, ymm!("vpsravd ymm8, ymm0, ymm1")),
        ("vpaddd_mem", BITS, ymm!("vpaddd ymm8, ymm0, [rsi]")),
        ("vpmulld_mem", BITS, ymm!("vpmulld ymm8, ymm0, [rsi]")),
        ("vandnps", BITS, ymm!("vandnps ymm8, ymm0, ymm1")),
        ("vpminud", BITS, ymm!("vpminud ymm8, ymm0, ymm1")),
        ("vpmaxud", BITS, ymm!("vpmaxud ymm8, ymm0, ymm1")),
        ("vpabsd", BITS, ymm!("vpabsd ymm8, ymm0")),
        ("complement", BITS, ymm!("vpcmpeqd ymm15, ymm15, ymm15", "vxorps ymm8, ymm0, ymm15")),
        ("negate_s32", BITS, ymm!("vxorps ymm15, ymm15, ymm15", "vpsubd ymm8, ymm15, ymm0")),
        ("vpaddb", BITS, ymm!("vpaddb ymm8, ymm0, ymm1")),
        ("vpsubb", BITS, ymm!("vpsubb ymm8, ymm0, ymm1")),
        ("vpminsb", BITS, ymm!("vpminsb ymm8, ymm0, ymm1")),
        ("vpmaxsb", BITS, ymm!("vpmaxsb ymm8, ymm0, ymm1")),
        ("vpaddw", BITS, ymm!("vpaddw ymm8, ymm0, ymm1")),
        ("vpsubw", BITS, ymm!("vpsubw ymm8, ymm0, ymm1")),
        ("vpmullw", BITS, ymm!("vpmullw ymm8, ymm0, ymm1")),
        ("vpminsw", BITS, ymm!("vpminsw ymm8, ymm0, ymm1")),
        ("vpmaxsw", BITS, ymm!("vpmaxsw ymm8, ymm0, ymm1")),
        ("vpmaddwd", BITS, ymm!("vpmaddwd ymm8, ymm0, ymm1")),
        ("vpmaddwd_acc", BITS, ymm!("vpmaddwd ymm15, ymm0, ymm1", "vpaddd ymm8, ymm2, ymm15")),
        ("vpmaddubsw", BITS, ymm!("vpmaddubsw ymm8, ymm0, ymm1")),
        ("vpackssdw", BITS, ymm!("vpackssdw ymm8, ymm0, ymm1")),
        ("vpackusdw", BITS, ymm!("vpackusdw ymm8, ymm0, ymm1")),
        ("vpacksswb", BITS, ymm!("vpacksswb ymm8, ymm0, ymm1")),
        ("vpackuswb", BITS, ymm!("vpackuswb ymm8, ymm0, ymm1")),
        ("vunpcklps", BITS, ymm!("vunpcklps ymm8, ymm0, ymm1")),
        ("vunpckhps", BITS, ymm!("vunpckhps ymm8, ymm0, ymm1")),
        ("vunpcklpd", BITS, ymm!("vunpcklpd ymm8, ymm0, ymm1")),
        ("vunpckhpd", BITS, ymm!("vunpckhpd ymm8, ymm0, ymm1")),
        ("vhaddps", ARITHMETIC, ymm!("vhaddps ymm8, ymm0, ymm1")),
    ]
}

/// The instructions with an immediate.
fn immediate_kernels() -> Vec<(&'static str, [[Kernel; 16]; 16])> {
    vec![
        ("vpslld", ymm_immediate!("vpslld ymm8, ymm0, {imm}")),
        ("vpsrld", ymm_immediate!("vpsrld ymm8, ymm0, {imm}")),
        ("vpsrad", ymm_immediate!("vpsrad ymm8, ymm0, {imm}")),
        ("vshufps", ymm_immediate!("vshufps ymm8, ymm0, ymm1, {imm}")),
        ("vperm2f128", ymm_immediate!("vperm2f128 ymm8, ymm0, ymm1, {imm}")),
        ("vextractf128", ymm_immediate!("vextractf128 xmm8, ymm0, {imm}")),
    ]
}

/// The immediate that stands for the attributes, by the SDM's encoding.
fn immediate(name: &str, alpha: &[AttrVal]) -> usize {
    let fields: Vec<usize> = alpha.iter().map(|a| a.as_int().unwrap() as usize).collect();
    match (name, fields.as_slice()) {
        ("vshufps", &[i0, i1, i2, i3]) => i0 | i1 << 2 | i2 << 4 | i3 << 6,
        ("vperm2f128", &[low, high]) => low | high << 4,
        (_, &[count]) => count,
        _ => panic!("{name} has another number of attributes"),
    }
}

/// What rcx holds: a pitch, a constant, or a byte of ones for each of n lanes.
fn scalar(name: &str, alpha: &[AttrVal]) -> u64 {
    match (name, alpha) {
        ("vmaskmovps_load" | "vmaskmovps_store", &[AttrVal::Int(n)]) => u64::MAX >> (64 - 8 * n),
        (_, &[AttrVal::Int(value)]) => value as u64,
        (_, &[AttrVal::F32(bits)]) => u64::from(bits),
        _ => 0,
    }
}

/// The real instruction on the operands that the description's had; `None` without AVX2.
fn on_processor(
    kernel: Kernel,
    scalar: u64,
    inputs: &[(bool, &Vec<u8>)],
    memory_result: Option<(usize, usize)>,
) -> Option<Vec<u8>> {
    let mut registers = Registers { input: [[0; 64]; 4], output: [0; 64] };
    let (on_chip, in_memory): (Vec<_>, Vec<_>) = inputs.iter().partition(|(on_chip, _)| *on_chip);
    for (register, (_, bytes)) in registers.input.iter_mut().zip(on_chip) {
        register[..bytes.len()].copy_from_slice(bytes);
    }
    let mut result = memory_result.map(|(_, len)| vec![POISON; len]);
    let mut memories: Vec<Vec<u8>> = in_memory.iter().map(|(_, bytes)| (*bytes).clone()).collect();
    let mut pointers = memories.iter_mut().map(|m| m.as_mut_ptr());
    let first = pointers.next().unwrap_or(std::ptr::null_mut());
    let second = match (&mut result, memory_result) {
        (Some(result), Some((offset, _))) => result[offset..].as_mut_ptr(),
        _ => pointers.next().unwrap_or(std::ptr::null_mut()),
    };
    run_avx2(kernel, &mut registers, Memory { first, second, scalar })?;
    Some(result.unwrap_or_else(|| registers.output[..32].to_vec()))
}

/// Whether the processor's bytes are the oracle's.
fn same(kind: Kind, oracle: &[u8], processor: &[u8]) -> bool {
    let lane = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let lanes = oracle.chunks_exact(4).zip(processor.chunks_exact(4));
    oracle == processor
        || (kind == ARITHMETIC
            && lanes.into_iter().all(|(a, b)| a == b || (lane(a).is_nan() && lane(b).is_nan())))
}

fn check(bench: &Bench<'_>, name: &str, kind: Kind, kernel: impl Fn(&[AttrVal]) -> Kernel) -> bool {
    let (id, instr) = bench.instr(name);
    let mut rng = SplitMix64::new(u64::from(id.0) + 1);
    let alphas = bench.alphas(&mut rng, instr, 256);
    for trial in 0..TRIALS {
        let alpha = &alphas[trial as usize % alphas.len()];
        let operands = bench.operands(&mut rng, instr, alpha);
        let expected = bench.run(&mut rng, name, alpha, &operands);
        let on_chip = instr.inputs.iter().map(|s| matches!(s, Slice::OnChip(_)));
        let inputs: Vec<(bool, &Vec<u8>)> = on_chip.zip(&operands).collect();
        let in_memory = matches!(instr.outputs[0], Slice::Hbm(_));
        let result = in_memory.then_some((expected.offset, expected.bytes.len()));
        let Some(got) = on_processor(kernel(alpha), scalar(name, alpha), &inputs, result) else {
            return false;
        };
        assert!(
            same(kind, &expected.bytes, &got),
            "{name} {alpha:?}\noperands {operands:02x?}\noracle    {:02x?}\nprocessor {got:02x?}",
            expected.bytes
        );
    }
    true
}

#[test]
fn every_instruction_does_what_the_processor_does() {
    let isa = load_target("x86").unwrap();
    let oracle = Oracle::new(&isa);
    let bench = Bench::new(&isa, &oracle);
    let mut run = true;
    for (name, kind, kernel) in kernels() {
        run &= check(&bench, name, kind, |_| kernel);
    }
    for (name, table) in immediate_kernels() {
        run &= check(&bench, name, BITS, |alpha| {
            let at = immediate(name, alpha);
            table[at / 16][at % 16]
        });
    }
    if !run {
        eprintln!("skipped: this processor has no AVX2 and FMA");
    }
}

#[test]
fn every_instruction_has_a_kernel() {
    let isa: Isa = load_target("x86").unwrap();
    let described: BTreeSet<&str> = isa.instrs.iter().map(|i| i.name.as_str()).collect();
    let plain = kernels().into_iter().map(|(name, _, _)| name);
    let tested: Vec<&str> = plain.chain(immediate_kernels().into_iter().map(|(name, _)| name)).collect();
    assert_eq!(tested.len(), described.len(), "an instruction is listed twice");
    assert_eq!(tested.into_iter().collect::<BTreeSet<&str>>(), described);
}
