//! Assembly text against values, in the default form and by templates.

use super::*;
use crate::program::{LoopId, LoopProgram, Program, View};
use crate::{InstrId, Isa, load_target};
use act_hlo::ElemType;

fn affine(c0: i64, ivs: &[(u32, i64)]) -> Affine {
    Affine { c0, ivs: ivs.iter().map(|&(i, k)| (LoopId(i), k)).collect() }
}

/// Every instruction of a description with attribute values in the middle of nowhere in particular.
fn every_instr(isa: &Isa) -> Vec<AsmInstr> {
    let one = |op: InstrId| {
        let instr = isa.instr(op);
        let alpha = instr.alpha.iter().enumerate().map(|(k, a)| match a.kind {
            crate::AttrKind::Int { min, .. } => AttrVal::Int(min + k as i64),
            crate::AttrKind::F32 => AttrVal::F32(1e-9f32.to_bits()),
        });
        let beta = (0..instr.beta.len()).map(|k| match instr.is_address(k) {
            true => BetaVal::Hbm(Space::Result(3), affine(128, &[(2, 1024)])),
            false => BetaVal::Int(affine(-4, &[(0, 16), (7, 1)])),
        });
        AsmInstr { op, alpha: alpha.collect(), beta: beta.collect() }
    };
    isa.instr_ids().map(one).collect()
}

#[test]
fn assembly_of_every_target_reads_back() {
    for (name, _) in crate::targets() {
        let isa = load_target(name).unwrap();
        let assembly = Assembly { instrs: every_instr(&isa), consts: vec![0, 255, 16], scratch_bytes: 64 };
        let text = print_assembly(&isa, &assembly);
        assert_eq!(parse_assembly(&isa, &text).unwrap_or_else(|e| panic!("{e}\n{text}")), assembly);
    }
}

#[test]
fn the_two_forms_look_as_documented() {
    let isa = load_target("h_qkv").unwrap();
    let beta = vec![BetaVal::Hbm(Space::Operand(0), affine(128, &[])), BetaVal::Int(affine(2, &[]))];
    let load = print_instr(&isa, isa.instr_named("load_rm").unwrap(), &[AttrVal::Int(4)], &beta);
    assert_eq!(load, "load_rm n=4 addr_in=operand0+128 addr_out=2");

    let isa = load_target("gemmini").unwrap();
    let op = isa.instr_named("mvout_acc_scaled_relu").unwrap();
    let alpha = [AttrVal::Int(16), AttrVal::Int(8), AttrVal::Int(64), AttrVal::F32(0.0625f32.to_bits())];
    let beta = [BetaVal::Int(affine(0, &[(2, 16)])), BetaVal::Hbm(Space::Result(0), affine(0, &[]))];
    let text = print_instr(&isa, op, &alpha, &beta);
    assert_eq!(text, "config_st 64, 0.0625, relu\nmvout result0, acc[%i2*16], 16, 8");
}

#[test]
fn loop_programs_read_back() {
    let isa = load_target("gemmini").unwrap();
    let instr = |AsmInstr { op, alpha, beta }| Program::Instr { op, alpha, beta };
    let view = |space, start| View { space, elem: ElemType::S8, dims: vec![(16, 64), (4, -1)], start };
    let copy = Program::HostCopy {
        from: view(Space::Operand(1), affine(8, &[(1, 64)])),
        to: view(Space::Scratch, affine(0, &[])),
    };
    let inner = Program::For {
        iv: LoopId(1),
        trip: 3,
        parallel: false,
        body: Box::new(Program::Seq(
            [vec![copy], every_instr(&isa).into_iter().map(instr).collect()].concat(),
        )),
    };
    let outer = Program::For {
        iv: LoopId(0),
        trip: 4,
        parallel: true,
        body: Box::new(Program::Seq(vec![inner, Program::Fence])),
    };
    let program = LoopProgram {
        body: Program::Seq(vec![outer, Program::Fence]),
        operands: vec![4096, 64],
        results: vec![1],
        scratch_bytes: 256,
        consts: vec![1, 2],
    };
    let text = print_program(&isa, &program);
    assert!(text.contains("for %i0 in 0..4 parallel {\n  for %i1 in 0..3 {\n    host_copy s8 operand1+%i1*64+8[16 by 64, 4 by -1] -> s8 scratch"), "{text}");
    assert_eq!(parse_program(&isa, &text).unwrap_or_else(|e| panic!("{e}\n{text}")), program);
}

#[test]
fn faulty_text_is_named_by_line() {
    let isa = load_target("h_qkv").unwrap();
    let error = |text: &str| parse_assembly(&isa, text).unwrap_err().to_string();
    assert_eq!(error("\nlod n=4"), "line 2: no instruction is written like `lod n = 4`");
    assert_eq!(
        error("load_rm n=x addr_in=operand0 addr_out=0"),
        "line 1: `x` is no value of attribute `n` of load_rm"
    );
    assert!(error("load_rm n=4 addr_in=7 addr_out=0").contains("attribute `addr_in`"));
    assert!(error("scratch 1\nscratch 2").contains("scratch is given twice"));
    assert!(error("consts 0x123").contains("hexadecimal"));
    assert!(error("load_rm n=4").contains("no instruction"));
    let deep = format!("{}{}", "for %i0 in 0..2 {\n".repeat(100), "}".repeat(100));
    assert!(parse_program(&isa, &deep).unwrap_err().to_string().contains("deeper"));
    assert!(parse_program(&isa, "for %i0 in 0..2 { fence").unwrap_err().to_string().contains("expected `}`"));
}

#[test]
fn templates_that_cannot_be_read_back_are_refused() {
    let isa = load_target("h_qkv").unwrap();
    let refused = |load: &str, store: &str| {
        let mut isa = isa.clone();
        isa.instrs[0].asm = load.to_owned();
        isa.instrs[2].asm = store.to_owned();
        check_templates(&isa)
    };
    let full = "ld {n}, {addr_in}, {addr_out}";
    assert_eq!(refused(full, ""), Ok(()));
    assert_eq!(
        refused("ld {n}, {addr_in}", ""),
        Err((0, TemplateError::MissingAttribute("addr_out".into())))
    );
    assert_eq!(refused("ld x{n}, {addr_in}, {addr_out}", ""), Err((0, TemplateError::Glued("n".into()))));
    assert_eq!(refused("ld {n}{addr_in}, {addr_out}", ""), Err((0, TemplateError::Glued("addr_in".into()))));
    assert_eq!(refused("ld {n}, {addr}", ""), Err((0, TemplateError::UnknownAttribute("addr".into()))));
    assert_eq!(refused("ld {n}, {addr_in, {addr_out}", ""), Err((0, TemplateError::Brace)));
    assert_eq!(refused("{n} ld {addr_in}, {addr_out}", ""), Err((0, TemplateError::Start)));
    assert_eq!(refused("for {n}, {addr_in}, {addr_out}", ""), Err((0, TemplateError::Start)));
    let other = Err((2, TemplateError::Ambiguous("load_rm".into())));
    assert_eq!(refused(full, full), other);
    assert_eq!(refused(full, "ld 4, {addr_in}, {addr_out} {n}"), other);
    assert_eq!(refused(full, "ld w, {addr_in}, {addr_out} {n}"), Ok(()));
    assert_eq!(refused(full, &format!("{full}, done")), Ok(()));
}
