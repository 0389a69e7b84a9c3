//! The description `x86` against the processor's AVX2 and FMA.

use crate::differential::{Entry, Kind, check_all, check_complete};
use crate::native::{ymm, ymm_immediate};
use act_isa::load_target;

/// Bit for bit.
const BITS: Kind = Kind::Bits;
/// NaNs as NaNs.
const ARITHMETIC: Kind = Kind::Arithmetic;

/// Random operands for each instruction.
const TRIALS: u64 = 4096;

fn entries() -> Vec<Entry> {
    let plain = [
        ("vmovups_load", BITS, ymm!("vmovups ymm8, [rsi]")),
        ("vmovups_store", BITS, ymm!("vmovups [rdx], ymm0")),
        ("vmovdqu_load", BITS, ymm!("vmovdqu ymm8, [rsi]")),
        ("vmovdqu_store", BITS, ymm!("vmovdqu [rdx], ymm0")),
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
        (
            "row_times_matrix_s32_1",
            BITS,
            ymm!("vpbroadcastd ymm15, dword ptr [rsi]", "vpmulld ymm8, ymm15, [rdx]"),
        ),
        (
            "row_times_matrix_s32_1_acc",
            BITS,
            ymm!(
                "vpbroadcastd ymm15, dword ptr [rsi]",
                "vpmulld ymm8, ymm15, [rdx]",
                "vpaddd ymm8, ymm0, ymm8"
            ),
        ),
        (
            "row_times_matrix_s8_1",
            BITS,
            ymm!(
                "vpmovsxbd ymm15, qword ptr [rdx]",
                "vpbroadcastb xmm8, byte ptr [rsi]",
                "vpmovsxbd ymm8, xmm8",
                "vpmulld ymm8, ymm8, ymm15"
            ),
        ),
        (
            "row_times_matrix_s8_1_acc",
            BITS,
            ymm!(
                "vpmovsxbd ymm15, qword ptr [rdx]",
                "vpbroadcastb xmm8, byte ptr [rsi]",
                "vpmovsxbd ymm8, xmm8",
                "vpmulld ymm8, ymm8, ymm15",
                "vpaddd ymm8, ymm0, ymm8"
            ),
        ),
        (
            "row_times_matrix_s8_2",
            BITS,
            ymm!(
                "vmovq xmm15, qword ptr [rdx]",
                "vmovq xmm8, qword ptr [rdx + rcx]",
                "vpunpcklbw xmm15, xmm15, xmm8",
                "vpmovsxbw ymm15, xmm15",
                "vpbroadcastw xmm8, word ptr [rsi]",
                "vpmovsxbw ymm8, xmm8",
                "vpmaddwd ymm8, ymm8, ymm15"
            ),
        ),
        (
            "row_times_matrix_s8_2_acc",
            BITS,
            ymm!(
                "vmovq xmm15, qword ptr [rdx]",
                "vmovq xmm8, qword ptr [rdx + rcx]",
                "vpunpcklbw xmm15, xmm15, xmm8",
                "vpmovsxbw ymm15, xmm15",
                "vpbroadcastw xmm8, word ptr [rsi]",
                "vpmovsxbw ymm8, xmm8",
                "vpmaddwd ymm8, ymm8, ymm15",
                "vpaddd ymm8, ymm0, ymm8"
            ),
        ),
        ("vhaddps", ARITHMETIC, ymm!("vhaddps ymm8, ymm0, ymm1")),
    ];
    let mut entries: Vec<Entry> =
        plain.into_iter().map(|(name, kind, kernel)| Entry::plain(name, kind, kernel)).collect();
    entries.extend([
        // A byte of ones for each of n lanes.
        Entry::scaled(
            "vmaskmovps_load",
            ymm!("vmovq xmm15, rcx", "vpmovsxbd ymm15, xmm15", "vmaskmovps ymm8, ymm15, [rsi]"),
            |n| u64::MAX >> (64 - 8 * n),
        ),
        Entry::scaled(
            "vmaskmovps_store",
            ymm!("vmovq xmm15, rcx", "vpmovsxbd ymm15, xmm15", "vmaskmovps [rdx], ymm15, ymm0"),
            |n| u64::MAX >> (64 - 8 * n),
        ),
        Entry::immediate("vpslld", ymm_immediate!("vpslld ymm8, ymm0, {imm}"), |f| f[0]),
        Entry::immediate("vpsrld", ymm_immediate!("vpsrld ymm8, ymm0, {imm}"), |f| f[0]),
        Entry::immediate("vpsrad", ymm_immediate!("vpsrad ymm8, ymm0, {imm}"), |f| f[0]),
        Entry::immediate("vshufps", ymm_immediate!("vshufps ymm8, ymm0, ymm1, {imm}"), |f| {
            f[0] | f[1] << 2 | f[2] << 4 | f[3] << 6
        }),
        Entry::immediate("vperm2f128", ymm_immediate!("vperm2f128 ymm8, ymm0, ymm1, {imm}"), |f| {
            f[0] | f[1] << 4
        }),
        Entry::immediate("vextractf128", ymm_immediate!("vextractf128 xmm8, ymm0, {imm}"), |f| f[0]),
    ]);
    entries
}

#[test]
fn every_instruction_does_what_the_processor_does() {
    check_all(&load_target("x86").unwrap(), &entries(), |_| TRIALS);
}

#[test]
fn every_instruction_is_compared() {
    let entries = entries();
    check_complete(&load_target("x86").unwrap(), &entries.iter().map(|e| e.name).collect::<Vec<&str>>());
}
