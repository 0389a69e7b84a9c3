//! Assembly syntax of an instruction: a template whose placeholders are attributes, cut into the tokens of assembly
//! text. A template can be read back: every attribute occurs, each placeholder is a token of its own, and no two
//! instructions of a description print alike.

use super::address::{parse_address, parse_affine};
use crate::model::{AttrKind, Instr, Isa};

/// Words that begin other lines of assembly text.
pub(crate) const RESERVED: [&str; 7] =
    ["for", "fence", "host_copy", "operands", "results", "scratch", "consts"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attr {
    Alpha(usize),
    Beta(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A run of word characters.
    Word(String),
    /// Any other visible character.
    Mark(char),
    Attr(Attr),
}

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "the assembly template has an unclosed or stray brace; write {{{{ and }}}} for braces themselves"
    )]
    Brace,
    #[error("`{0}` in the assembly template is no attribute of the instruction")]
    UnknownAttribute(String),
    #[error("attribute `{0}` does not occur in the assembly template, so the text cannot be read back")]
    MissingAttribute(String),
    #[error("attribute `{0}` runs into the letters, digits or signs beside it in the assembly template")]
    Glued(String),
    #[error("an assembly template begins with a word of its own, and not with {}", RESERVED.join(", "))]
    Start,
    #[error("`//` begins a comment in assembly text")]
    Comment,
    #[error("the assembly text cannot be told from that of instruction `{0}`")]
    Ambiguous(String),
}

/// Characters of words and of values (`operand0+%i2*1024-4`, `1e-9`).
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '*' | '%' | '-')
}

/// The template text: the description's, or the default form `name alpha=.. beta=..`.
pub(crate) fn text(instr: &Instr) -> String {
    if !instr.asm.is_empty() {
        return instr.asm.clone();
    }
    let attrs = instr.alpha.iter().chain(&instr.beta);
    attrs.fold(instr.name.clone(), |text, a| format!("{text} {0}={{{0}}}", a.name))
}

/// Literal text and placeholders, in order.
pub(crate) enum Part {
    Text(String),
    Attr(Attr),
}

/// Cuts a template at its placeholders.
///
/// # Errors
/// Stray braces, unknown attributes.
pub(crate) fn parts(instr: &Instr) -> Result<Vec<Part>, TemplateError> {
    let template = text(instr);
    let mut out = Vec::new();
    let mut literal = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.peek() == Some(&c) => {
                chars.next();
                literal.push(c);
            }
            '{' => {
                let mut name = String::new();
                loop {
                    match chars.next() {
                        Some('}') => break,
                        Some(c) if c != '{' => name.push(c),
                        _ => return Err(TemplateError::Brace),
                    }
                }
                let find = |list: &[crate::AttrDecl]| list.iter().position(|a| a.name == name);
                let attr = find(&instr.alpha).map(Attr::Alpha).or_else(|| find(&instr.beta).map(Attr::Beta));
                out.push(Part::Text(std::mem::take(&mut literal)));
                out.push(Part::Attr(attr.ok_or(TemplateError::UnknownAttribute(name))?));
            }
            '}' => return Err(TemplateError::Brace),
            c => literal.push(c),
        }
    }
    out.push(Part::Text(literal));
    Ok(out)
}

/// The tokens of a template.
///
/// # Errors
/// Whatever keeps its text from being read back, other instructions aside.
pub(crate) fn pieces(instr: &Instr) -> Result<Vec<Piece>, TemplateError> {
    let name = |attr: Attr| {
        let decl = match attr {
            Attr::Alpha(k) => instr.alpha.get(k),
            Attr::Beta(k) => instr.beta.get(k),
        };
        decl.map(|d| d.name.clone()).unwrap_or_default()
    };
    let mut pieces: Vec<Piece> = Vec::new();
    // Whether the text so far ends in a placeholder, and whether it ends in a word character.
    let mut after_attr: Option<Attr> = None;
    let mut open_word = false;
    for part in parts(instr)? {
        match part {
            Part::Attr(attr) => {
                if open_word || after_attr.is_some() {
                    return Err(TemplateError::Glued(name(attr)));
                }
                pieces.push(Piece::Attr(attr));
                after_attr = Some(attr);
            }
            Part::Text(text) => {
                if text.contains("//") {
                    return Err(TemplateError::Comment);
                }
                for c in text.chars() {
                    match (after_attr.take(), pieces.last_mut()) {
                        (Some(attr), _) if is_word(c) => return Err(TemplateError::Glued(name(attr))),
                        (None, Some(Piece::Word(word))) if open_word && is_word(c) => {
                            word.push(c);
                            continue;
                        }
                        _ => {}
                    }
                    open_word = is_word(c);
                    if open_word {
                        pieces.push(Piece::Word(c.to_string()));
                    } else if !c.is_whitespace() {
                        pieces.push(Piece::Mark(c));
                    }
                }
            }
        }
    }
    match pieces.first() {
        Some(Piece::Word(word)) if !RESERVED.contains(&word.as_str()) => {}
        _ => return Err(TemplateError::Start),
    }
    let attrs = (0..instr.alpha.len()).map(Attr::Alpha).chain((0..instr.beta.len()).map(Attr::Beta));
    for attr in attrs {
        if !pieces.contains(&Piece::Attr(attr)) {
            return Err(TemplateError::MissingAttribute(name(attr)));
        }
    }
    Ok(pieces)
}

/// Checks the templates of a description against each other.
///
/// # Errors
/// The index of the first instruction with a fault, and the fault.
pub fn check_templates(isa: &Isa) -> Result<(), (usize, TemplateError)> {
    let mut all: Vec<Vec<Piece>> = Vec::with_capacity(isa.instrs.len());
    for (at, instr) in isa.instrs.iter().enumerate() {
        let own = pieces(instr).map_err(|error| (at, error))?;
        for (other, earlier) in isa.instrs.iter().zip(&all) {
            if alike(instr, &own, other, earlier) {
                return Err((at, TemplateError::Ambiguous(other.name.clone())));
            }
        }
        all.push(own);
    }
    Ok(())
}

/// Whether some text is both; the longer template wins where one begins with the other, unless what it goes on with
/// could be the next instruction.
fn alike(a: &Instr, a_pieces: &[Piece], b: &Instr, b_pieces: &[Piece]) -> bool {
    let both = a_pieces.iter().zip(b_pieces);
    let common = both.clone().all(|(p, q)| match (p, q) {
        (Piece::Attr(_), Piece::Attr(_)) => true,
        (Piece::Attr(attr), Piece::Word(word)) => is_value(a, *attr, word),
        (Piece::Word(word), Piece::Attr(attr)) => is_value(b, *attr, word),
        (p, q) => p == q,
    });
    let next = a_pieces.get(b_pieces.len()).or(b_pieces.get(a_pieces.len()));
    common && !matches!(next, Some(Piece::Mark(_)))
}

/// Whether a word of one template reads as a value of an attribute of another.
fn is_value(instr: &Instr, attr: Attr, word: &str) -> bool {
    match attr {
        Attr::Alpha(k) => match instr.alpha.get(k).map(|a| &a.kind) {
            Some(AttrKind::F32) => word.parse::<f32>().is_ok(),
            _ => word.parse::<i64>().is_ok(),
        },
        Attr::Beta(_) => parse_affine(word).is_some() || parse_address(word).is_some(),
    }
}
