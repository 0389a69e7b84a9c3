//! The text of one instruction inside `llvm.inline_asm`: the description's assembly with computational attributes
//! printed and addressing attributes as operands `$0`, `$1`, .. in the order of the description. Knows nothing of
//! loops.

use act_isa::{AttrKind, AttrVal, Instr, InstrId, Isa};
use std::fmt::Write;

/// An addressing attribute as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BetaText {
    /// `$k`: the k-th operand of the inline assembly.
    Operand(usize),
    /// A number written out.
    Immediate(i64),
}

/// One instruction as parsed back from its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstrText {
    pub op: InstrId,
    pub alpha: Vec<AttrVal>,
    pub beta: Vec<BetaText>,
}

/// The text is no instruction of the description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsmTextError {
    #[error("`{text}` is no instruction of {isa}")]
    NoSuchInstruction { text: String, isa: String },
    #[error("`{text}` reads both as {first} and as {second}")]
    Ambiguous { text: String, first: String, second: String },
}

/// The mnemonic of [`act_isa::Program::Fence`].
pub const FENCE: &str = "fence";

#[derive(Clone, Copy)]
enum Attr {
    Alpha(usize),
    Beta(usize),
}

enum Piece {
    Literal(String),
    Hole(Attr),
}

/// The instruction's assembly template: the description's, or `name attr=value ..`.
fn template(instr: &Instr) -> Vec<Piece> {
    let named = |name: &str| {
        let alpha = instr.alpha.iter().position(|a| a.name == name).map(Attr::Alpha);
        alpha.or_else(|| instr.beta.iter().position(|b| b.name == name).map(Attr::Beta))
    };
    // `$` starts an operand in inline assembly; a plain one is doubled.
    let literal = |text: &str| Piece::Literal(text.replace('$', "$$"));
    let mut pieces = Vec::new();
    if instr.asm.is_empty() {
        pieces.push(literal(&instr.name));
        let alphas = (0..instr.alpha.len()).map(|k| (&instr.alpha[k].name, Attr::Alpha(k)));
        let betas = (0..instr.beta.len()).map(|k| (&instr.beta[k].name, Attr::Beta(k)));
        for (name, attr) in alphas.chain(betas) {
            pieces.push(literal(&format!(" {name}=")));
            pieces.push(Piece::Hole(attr));
        }
        return pieces;
    }
    let mut rest = instr.asm.as_str();
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').map(|at| open + at);
        match close.and_then(|close| Some((close, named(&rest[open + 1..close])?))) {
            Some((close, attr)) => {
                pieces.push(literal(&rest[..open]));
                pieces.push(Piece::Hole(attr));
                rest = &rest[close + 1..];
            }
            None => {
                pieces.push(literal(&rest[..=open]));
                rest = &rest[open + 1..];
            }
        }
    }
    pieces.push(literal(rest));
    pieces
}

/// The text of an instruction whose k-th addressing attribute is operand k.
pub(crate) fn print(instr: &Instr, alpha: &[AttrVal]) -> String {
    let mut text = String::new();
    for piece in template(instr) {
        // Writing to a String cannot fail.
        let _ = match piece {
            Piece::Literal(literal) => write!(text, "{literal}"),
            Piece::Hole(Attr::Beta(k)) => write!(text, "${k}"),
            Piece::Hole(Attr::Alpha(k)) => match alpha.get(k) {
                Some(AttrVal::Int(v)) => write!(text, "{v}"),
                // The shortest decimal that reads back to the same f32.
                Some(AttrVal::F32(bits)) => write!(text, "{:?}", f32::from_bits(*bits)),
                None => Ok(()),
            },
        };
    }
    text
}

/// Reads the text of one instruction.
///
/// # Errors
/// When no instruction, or more than one, has this text.
pub fn parse(isa: &Isa, text: &str) -> Result<InstrText, AsmTextError> {
    let mut found: Option<InstrText> = None;
    for op in isa.instr_ids() {
        let Some(parsed) = parse_as(isa.instr(op), op, text.trim()) else { continue };
        if let Some(first) = found {
            return Err(AsmTextError::Ambiguous {
                text: text.to_owned(),
                first: isa.instr(first.op).name.clone(),
                second: isa.instr(op).name.clone(),
            });
        }
        found = Some(parsed);
    }
    found.ok_or_else(|| AsmTextError::NoSuchInstruction { text: text.to_owned(), isa: isa.name.clone() })
}

fn parse_as(instr: &Instr, op: InstrId, text: &str) -> Option<InstrText> {
    let mut alpha: Vec<Option<AttrVal>> = vec![None; instr.alpha.len()];
    let mut beta: Vec<Option<BetaText>> = vec![None; instr.beta.len()];
    let mut rest = text;
    for piece in template(instr) {
        match piece {
            Piece::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
            Piece::Hole(attr) => {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.$_".contains(c)));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                rest = after;
                match attr {
                    Attr::Alpha(k) => {
                        let value = match instr.alpha[k].kind {
                            AttrKind::Int { .. } => AttrVal::Int(word.parse().ok()?),
                            AttrKind::F32 => AttrVal::F32(word.parse::<f32>().ok()?.to_bits()),
                        };
                        if alpha[k].is_some_and(|before| before != value) {
                            return None;
                        }
                        alpha[k] = Some(value);
                    }
                    Attr::Beta(k) => {
                        let value = match word.strip_prefix('$') {
                            Some(operand) => BetaText::Operand(operand.parse().ok()?),
                            None => BetaText::Immediate(word.parse().ok()?),
                        };
                        if beta[k].is_some_and(|before| before != value) {
                            return None;
                        }
                        beta[k] = Some(value);
                    }
                }
            }
        }
    }
    if !rest.is_empty() {
        return None;
    }
    Some(InstrText { op, alpha: alpha.into_iter().collect::<Option<_>>()?, beta: beta.into_iter().collect::<Option<_>>()? })
}
