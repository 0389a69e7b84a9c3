//! The description `amx` against the processor's AMX and AVX-512, where it has them.

use crate::differential::{Entry, Kind, check_all, check_complete};
use crate::native::{tmm, zmm, zmm_immediate};
use act_isa::load_target;

/// Bit for bit.
const BITS: Kind = Kind::Bits;
/// NaNs as NaNs.
const ARITHMETIC: Kind = Kind::Arithmetic;
const BF16: Kind = Kind::Bf16;

/// Random operands for each instruction; a tile has as many lanes as sixteen registers.
const TRIALS: u64 = 4096;
const TILE_TRIALS: u64 = 512;

fn entries() -> Vec<Entry> {
    let plain = [
        ("tilezero", BITS, tmm!("tilezero tmm2")),
        ("tileloadd", BITS, tmm!("tileloadd tmm2, [rsi + rcx]")),
        ("tilestored", BITS, tmm!("tilestored [rdx + rcx], tmm0")),
        ("tdpbssd", BITS, tmm!("tdpbssd tmm2, tmm0, tmm1")),
        ("tdpbsud", BITS, tmm!("tdpbsud tmm2, tmm0, tmm1")),
        ("tdpbusd", BITS, tmm!("tdpbusd tmm2, tmm0, tmm1")),
        ("tdpbuud", BITS, tmm!("tdpbuud tmm2, tmm0, tmm1")),
        ("tdpbf16ps", BF16, tmm!("tdpbf16ps tmm2, tmm0, tmm1")),
        ("vmovupsz_load", BITS, zmm!("vmovups zmm8, [rsi]")),
        ("vmovupsz_store", BITS, zmm!("vmovups [rdx], zmm0")),
        ("vmovdqu32_load", BITS, zmm!("vmovdqu32 zmm8, [rsi]")),
        ("vmovdqu32_store", BITS, zmm!("vmovdqu32 [rdx], zmm0")),
        ("vmovaps", BITS, zmm!("vmovaps zmm8, zmm0")),
        ("vbroadcastssl", BITS, zmm!("vbroadcastss zmm8, dword ptr [rsi]")),
        ("vbroadcastss", BITS, zmm!("vbroadcastss zmm8, xmm0")),
        ("vpxord_zero", BITS, zmm!("vpxord zmm8, zmm8, zmm8")),
        ("vmovd", BITS, zmm!("vmovd xmm8, ecx")),
        ("splat_f32", BITS, zmm!("vpbroadcastd zmm8, ecx")),
        ("splat_s32", BITS, zmm!("vpbroadcastd zmm8, ecx")),
        ("vaddps", ARITHMETIC, zmm!("vaddps zmm8, zmm0, zmm1")),
        ("vaddpsz_mem", ARITHMETIC, zmm!("vaddps zmm8, zmm0, [rsi]")),
        ("vsubps", ARITHMETIC, zmm!("vsubps zmm8, zmm0, zmm1")),
        ("vsubpsz_mem", ARITHMETIC, zmm!("vsubps zmm8, zmm0, [rsi]")),
        ("vmulps", ARITHMETIC, zmm!("vmulps zmm8, zmm0, zmm1")),
        ("vmulpsz_mem", ARITHMETIC, zmm!("vmulps zmm8, zmm0, [rsi]")),
        ("vdivps", ARITHMETIC, zmm!("vdivps zmm8, zmm0, zmm1")),
        ("vsqrtps", ARITHMETIC, zmm!("vsqrtps zmm8, zmm0")),
        ("vfmadd231ps", ARITHMETIC, zmm!("vfmadd231ps zmm2, zmm0, zmm1", "vmovaps zmm8, zmm2")),
        ("vfmadd231psz_mem", ARITHMETIC, zmm!("vfmadd231ps zmm1, zmm0, [rsi]", "vmovaps zmm8, zmm1")),
        ("vmaxps", BITS, zmm!("vmaxps zmm8, zmm0, zmm1")),
        ("vminps", BITS, zmm!("vminps zmm8, zmm0, zmm1")),
        ("vmaxpsz_mem", BITS, zmm!("vmaxps zmm8, zmm0, [rsi]")),
        (
            "maximum",
            ARITHMETIC,
            zmm!(
                "vrangeps zmm8, zmm0, zmm1, 5",
                "vcmpunordps k1, zmm0, zmm1",
                "vaddps zmm8 {{k1}}, zmm0, zmm1"
            ),
        ),
        (
            "minimum",
            ARITHMETIC,
            zmm!(
                "vrangeps zmm8, zmm0, zmm1, 4",
                "vcmpunordps k1, zmm0, zmm1",
                "vaddps zmm8 {{k1}}, zmm0, zmm1"
            ),
        ),
        (
            "relu",
            ARITHMETIC,
            zmm!("vfpclassps k1, zmm0, 0x76", "knotw k1, k1", "vmovaps zmm8 {{k1}} {{z}}, zmm0"),
        ),
        ("negate", BITS, zmm!("mov eax, 0x80000000", "vpbroadcastd zmm15, eax", "vpxord zmm8, zmm0, zmm15")),
        (
            "absolute",
            BITS,
            zmm!("mov eax, 0x7fffffff", "vpbroadcastd zmm15, eax", "vpandd zmm8, zmm0, zmm15"),
        ),
        ("vrndscaleps_nearest", ARITHMETIC, zmm!("vrndscaleps zmm8, zmm0, 0")),
        ("vrndscaleps_floor", ARITHMETIC, zmm!("vrndscaleps zmm8, zmm0, 1")),
        ("vrndscaleps_ceil", ARITHMETIC, zmm!("vrndscaleps zmm8, zmm0, 2")),
        ("vrndscaleps_trunc", ARITHMETIC, zmm!("vrndscaleps zmm8, zmm0, 3")),
        (
            "row_times_matrix_1",
            ARITHMETIC,
            zmm!(
                "vpxord zmm8, zmm8, zmm8",
                "vbroadcastss zmm15, dword ptr [rsi + 0]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15"
            ),
        ),
        (
            "row_times_matrix_1_acc",
            ARITHMETIC,
            zmm!(
                "vpxord zmm8, zmm8, zmm8",
                "vbroadcastss zmm15, dword ptr [rsi + 0]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "vaddps zmm8, zmm0, zmm8"
            ),
        ),
        (
            "row_times_matrix_4",
            ARITHMETIC,
            zmm!(
                "vpxord zmm8, zmm8, zmm8",
                "vbroadcastss zmm15, dword ptr [rsi + 0]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "add rdx, rcx",
                "vbroadcastss zmm15, dword ptr [rsi + 4]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "add rdx, rcx",
                "vbroadcastss zmm15, dword ptr [rsi + 8]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "add rdx, rcx",
                "vbroadcastss zmm15, dword ptr [rsi + 12]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15"
            ),
        ),
        (
            "row_times_matrix_4_acc",
            ARITHMETIC,
            zmm!(
                "vpxord zmm8, zmm8, zmm8",
                "vbroadcastss zmm15, dword ptr [rsi + 0]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "add rdx, rcx",
                "vbroadcastss zmm15, dword ptr [rsi + 4]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "add rdx, rcx",
                "vbroadcastss zmm15, dword ptr [rsi + 8]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "add rdx, rcx",
                "vbroadcastss zmm15, dword ptr [rsi + 12]",
                "vmulps zmm15, zmm15, [rdx]",
                "vaddps zmm8, zmm8, zmm15",
                "vaddps zmm8, zmm0, zmm8"
            ),
        ),
        ("select_eqps", BITS, zmm!("vcmpeq_oqps k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_ltps", BITS, zmm!("vcmplt_oqps k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_leps", BITS, zmm!("vcmple_oqps k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_neqps", BITS, zmm!("vcmpneq_uqps k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_geps", BITS, zmm!("vcmpge_oqps k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_gtps", BITS, zmm!("vcmpgt_oqps k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_eqd", BITS, zmm!("vpcmpeqd k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_ltd", BITS, zmm!("vpcmpltd k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_led", BITS, zmm!("vpcmpled k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_ned", BITS, zmm!("vpcmpneqd k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_ged", BITS, zmm!("vpcmpnltd k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("select_gtd", BITS, zmm!("vpcmpnled k1, zmm0, zmm1", "vblendmps zmm8 {{k1}}, zmm3, zmm2")),
        ("vcvtdq2ps", BITS, zmm!("vcvtdq2ps zmm8, zmm0")),
        ("vcvtps2dq", BITS, zmm!("vcvtps2dq zmm8, zmm0")),
        ("vcvttps2dq", BITS, zmm!("vcvttps2dq zmm8, zmm0")),
        (
            "convert_f32_s32",
            BITS,
            zmm!(
                "mov eax, 0x4f000000",
                "vpbroadcastd zmm15, eax",
                "vcvttps2dq zmm8, zmm0",
                "vcmpge_oqps k1, zmm0, zmm15",
                "mov eax, 0x7fffffff",
                "vpbroadcastd zmm8 {{k1}}, eax",
                "vcmpordps k1, zmm0, zmm0",
                "vmovdqa32 zmm8 {{k1}} {{z}}, zmm8"
            ),
        ),
        ("vpmovsxbd_load", BITS, zmm!("vpmovsxbd zmm8, xmmword ptr [rsi]")),
        ("vpmovzxbd_load", BITS, zmm!("vpmovzxbd zmm8, xmmword ptr [rsi]")),
        ("vpmovdb_store", BITS, zmm!("vpmovdb xmmword ptr [rdx], zmm0")),
        ("vpmovsdb_store", BITS, zmm!("vpmovsdb xmmword ptr [rdx], zmm0")),
        ("vpmovusdb_store", BITS, zmm!("vpmovusdb xmmword ptr [rdx], zmm0")),
        ("vpaddd", BITS, zmm!("vpaddd zmm8, zmm0, zmm1")),
        ("vpsubd", BITS, zmm!("vpsubd zmm8, zmm0, zmm1")),
        ("vpmulld", BITS, zmm!("vpmulld zmm8, zmm0, zmm1")),
        ("vpminsd", BITS, zmm!("vpminsd zmm8, zmm0, zmm1")),
        ("vpmaxsd", BITS, zmm!("vpmaxsd zmm8, zmm0, zmm1")),
        ("vpandd", BITS, zmm!("vpandd zmm8, zmm0, zmm1")),
        ("vpord", BITS, zmm!("vpord zmm8, zmm0, zmm1")),
        ("vpxord", BITS, zmm!("vpxord zmm8, zmm0, zmm1")),
        ("vpsllvd", BITS, zmm!("vpsllvd zmm8, zmm0, zmm1")),
        ("vpsrlvd", BITS, zmm!("vpsrlvd zmm8, zmm0, zmm1")),
        ("vpsravd", BITS, zmm!("vpsravd zmm8, zmm0, zmm1")),
        ("vpaddd_mem", BITS, zmm!("vpaddd zmm8, zmm0, [rsi]")),
        ("vpabsd", BITS, zmm!("vpabsd zmm8, zmm0")),
    ];
    let mut entries: Vec<Entry> =
        plain.into_iter().map(|(name, kind, kernel)| Entry::plain(name, kind, kernel)).collect();
    entries.extend([
        // A one for each of n lanes.
        Entry::scaled(
            "vmovupsz_load_lanes",
            zmm!("kmovw k1, ecx", "vmovups zmm8 {{k1}} {{z}}, [rsi]"),
            |n| (1 << n) - 1,
        ),
        Entry::scaled("vmovupsz_store_lanes", zmm!("kmovw k1, ecx", "vmovups [rdx] {{k1}}, zmm0"), |n| {
            (1 << n) - 1
        }),
        Entry::immediate("vpslld", zmm_immediate!("vpslld zmm8, zmm0, {imm}"), |f| f[0]),
        Entry::immediate("vpsrld", zmm_immediate!("vpsrld zmm8, zmm0, {imm}"), |f| f[0]),
        Entry::immediate("vpsrad", zmm_immediate!("vpsrad zmm8, zmm0, {imm}"), |f| f[0]),
    ]);
    entries
}

#[test]
fn every_instruction_does_what_the_processor_does() {
    check_all(&load_target("amx").unwrap(), &entries(), |entry| {
        if entry.name.starts_with('t') { TILE_TRIALS } else { TRIALS }
    });
}

#[test]
fn every_instruction_is_compared() {
    let entries = entries();
    check_complete(&load_target("amx").unwrap(), &entries.iter().map(|e| e.name).collect::<Vec<&str>>());
}
