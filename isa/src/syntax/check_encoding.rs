//! Fields of device encodings against the values that they must hold for legal attributes.

use super::diagnostic::{Diagnostic, Problem, Span};
use super::sample::{holds, legal_extremes};
use crate::AttrVal;
use crate::encoding::{Encoding, Field, FieldValue, Piece, is_address};
use crate::expr::{Env, Expr};
use crate::model::{AttrKind, Instr, Isa, Slice};
use std::collections::BTreeSet;

/// Addressing attributes whose ends are tried together.
const MAX_BETAS: usize = 8;

/// Values of a lone attribute that are all tried.
const MAX_VALUES: i64 = 1 << 14;

/// Notes the first value of every field that does not fit.
pub(super) fn check_fields(isa: &Isa, instr: &Instr, spans: &[Vec<Span>], out: &mut Vec<Diagnostic>) {
    for (encoding, span) in instr.encodings.iter().zip(spans).filter_map(|(e, s)| Some((e, s.first()?))) {
        let Encoding::Text { text, .. } = encoding else { continue };
        let lost = text.0.iter().any(|p| matches!(p, Piece::Segment(e) if !is_address(e, instr)));
        if lost {
            let message = "`:segment` stands behind an address of main memory".to_owned();
            out.push(Diagnostic::error(*span, Problem::Encoding(message)));
        }
    }
    if instr.encodings.iter().all(|e| !matches!(e, Encoding::Insn(_))) {
        return;
    }
    let registers = isa.register_values();
    let alphas = legal_extremes(instr, &registers, &isa.mutable_registers());
    for (encoding, spans) in instr.encodings.iter().zip(spans) {
        let Encoding::Insn(insn) = encoding else { continue };
        let rs1 = insn.rs1.iter().map(|f| ("rs1", f));
        let rs2 = insn.rs2.iter().map(|f| ("rs2", f));
        for ((word, field), &span) in rs1.chain(rs2).zip(spans) {
            let FieldValue::Int(value) = &field.value else { continue };
            let Some(found) = extremes(isa, instr, field, value, &alphas, &registers) else { continue };
            let Some((given, value)) = found.outside else { continue };
            let (low, high) = field.range();
            let message = format!(
                "the field is {value}, and bits {}..{} of {word} hold {low}..{high}",
                field.at,
                u32::from(field.at) + u32::from(field.width)
            );
            let signed = found.min < 0;
            let magnitude = |v: i64| if v < 0 { !v } else { v } as u64;
            let bits =
                64 - magnitude(found.min).max(magnitude(found.max)).leading_zeros() + u32::from(signed);
            out.push(Diagnostic::error(span, Problem::FieldOverflow { given, message, bits, signed }));
        }
    }
}

/// What a field's value may be.
struct Extremes {
    min: i64,
    max: i64,
    /// The first that does not fit, and the attributes that give it, as text.
    outside: Option<(String, i64)>,
}

/// The value for the ends of all ranges; for all of a range where one attribute alone decides and it has few values.
fn extremes(
    isa: &Isa,
    instr: &Instr,
    field: &Field,
    value: &Expr,
    alphas: &[Vec<AttrVal>],
    registers: &[i64],
) -> Option<Extremes> {
    let (low, high) = field.range();
    let (mut read_alpha, mut read_beta) = (BTreeSet::new(), BTreeSet::new());
    value.for_each_leaf(&mut |leaf| match leaf {
        Expr::Alpha(k) => drop(read_alpha.insert(usize::from(*k))),
        Expr::Beta(k) => drop(read_beta.insert(usize::from(*k))),
        _ => {}
    });
    if read_beta.len() > MAX_BETAS {
        return None;
    }
    let mut alphas = alphas.to_vec();
    if let (Some(&k), 1, true) = (read_alpha.first(), read_alpha.len(), read_beta.is_empty())
        && let Some(AttrKind::Int { min, max }) = instr.alpha.get(k).map(|a| &a.kind)
        && max.saturating_sub(*min) < MAX_VALUES
    {
        // One that is not monotonic has its ends elsewhere.
        let mutable = isa.mutable_registers();
        let inside: Vec<Vec<AttrVal>> = alphas
            .first()
            .into_iter()
            .flat_map(|first| {
                (*min..=*max).map(|v| {
                    let mut alpha = first.clone();
                    alpha[k] = AttrVal::Int(v);
                    alpha
                })
            })
            .filter(|alpha| holds(instr, alpha, registers, &mutable))
            .collect();
        alphas.extend(inside);
    }
    let mut found: Option<Extremes> = None;
    for alpha in &alphas {
        let ints: Vec<Option<i64>> = alpha.iter().map(|v| v.as_int()).collect();
        let env = Env { alpha: &ints, beta: &[], registers };
        let ends: Vec<(i64, i64)> = (0..instr.beta.len()).map(|k| beta_range(isa, instr, k, env)).collect();
        for choice in 0..1usize << read_beta.len() {
            let mut beta = vec![None; instr.beta.len()];
            for (bit, &k) in read_beta.iter().enumerate() {
                let (min, max) = ends.get(k).copied().unwrap_or_default();
                beta[k] = Some(if choice >> bit & 1 == 1 { max } else { min });
            }
            let env = Env { alpha: &ints, beta: &beta, registers };
            let Ok(v) = value.eval(env) else { continue };
            if instr.requires.iter().any(|r| r.eval(env) == Ok(false)) {
                continue;
            }
            let extremes = found.get_or_insert(Extremes { min: v, max: v, outside: None });
            (extremes.min, extremes.max) = (extremes.min.min(v), extremes.max.max(v));
            if extremes.outside.is_none() && !(low..=high).contains(&i128::from(v)) {
                let alpha = read_alpha.iter().filter_map(|&k| Some((&instr.alpha[k].name, ints[k]?)));
                let beta = read_beta.iter().filter_map(|&k| Some((&instr.beta[k].name, beta[k]?)));
                let given: Vec<String> = alpha.chain(beta).map(|(n, v)| format!("{n} = {v}")).collect();
                extremes.outside = Some((given.join(", "), v));
            }
        }
    }
    found
}

/// Ends of an addressing attribute: as declared, and such that slices that start at it lie inside their memory.
fn beta_range(isa: &Isa, instr: &Instr, beta: usize, env: Env<'_>) -> (i64, i64) {
    let (mut low, mut high) = match instr.beta.get(beta).map(|b| &b.kind) {
        Some(AttrKind::Int { min, max }) => (*min, *max),
        _ => (0, i64::MAX),
    };
    let starts_here = |e: &Expr| matches!(e, Expr::Beta(k) if usize::from(*k) == beta);
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        match slice {
            Slice::Hbm(window) if starts_here(&window.start) => {
                high = high.min(i64::try_from(isa.hbm.size).unwrap_or(i64::MAX).saturating_sub(1));
            }
            Slice::Hbm(_) => {}
            Slice::OnChip(slice) => {
                let size = &isa.buffer(slice.buffer).access;
                for ((start, len), &size) in slice.start.iter().zip(&slice.len).zip(size) {
                    if starts_here(start) {
                        let len = len.eval(env).unwrap_or(0);
                        high = high.min(i64::try_from(size).unwrap_or(i64::MAX).saturating_sub(len));
                        low = low.max(0);
                    }
                }
            }
        }
    }
    (low, high.max(low))
}
