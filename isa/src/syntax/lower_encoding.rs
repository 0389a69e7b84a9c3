//! Device encodings and loop constructs as written to the model: fields within their words, holes of texts.

use super::ast::{ConstantAst, EncodingAst, FieldAst, FieldValueAst, LoopAst, TermKind};
use super::diagnostic::{Diagnostic, Problem, Span};
use super::parser::{Parsed, Parser};
use super::scope::{Meaning, Scope};
use crate::device::LoopConstruct;
use crate::encoding::{Dialect, Encoding, Field, FieldValue, Insn, Piece, Template};
use crate::expr::Expr;

/// An encoding, and where the fields of rs1 and then of rs2 stand.
pub(super) fn lower_encoding(ast: &EncodingAst, scope: &Scope) -> Parsed<(Encoding, Vec<Span>)> {
    match ast {
        EncodingAst::Insn { numbers, rs1, rs2 } => {
            let mut bits = [0u8; 3];
            for ((slot, term), limit) in bits.iter_mut().zip(numbers).zip([127, 7, 127]) {
                let value = scope.value(term)?;
                *slot = u8::try_from(value).ok().filter(|v| *v <= limit).ok_or_else(|| {
                    let message = format!("{value} is outside 0..{limit}");
                    Diagnostic::error(term.span, Problem::Encoding(message))
                })?;
            }
            let [opcode, funct3, funct7] = bits;
            let spans = rs1.iter().chain(rs2).map(|f| f.span).collect();
            let insn = Insn { opcode, funct3, funct7, rs1: fields(rs1, scope)?, rs2: fields(rs2, scope)? };
            Ok((Encoding::Insn(insn), spans))
        }
        EncodingAst::Text { dialect, text: (text, span), clobbers } => {
            let text = template(text, *span, scope, *dialect)?;
            Ok((Encoding::Text { dialect: *dialect, text, clobbers: clobbers.clone() }, vec![*span]))
        }
    }
}

fn fields(list: &[FieldAst], scope: &Scope) -> Parsed<Vec<Field>> {
    let mut fields: Vec<Field> = Vec::with_capacity(list.len());
    for ast in list {
        let fail = |span: Span, message: String| Err(Diagnostic::error(span, Problem::Encoding(message)));
        let value = match &ast.value {
            FieldValueAst::Term(term) => FieldValue::Int(scope.expr(term)?),
            FieldValueAst::Bits(ConstantAst::Float(value, _)) if (*value as f32).is_finite() => {
                FieldValue::F32((*value as f32).to_bits())
            }
            FieldValueAst::Bits(ConstantAst::Term(term)) => match &term.kind {
                TermKind::Name(name) => match scope.meaning(name) {
                    Some(Meaning::F32Alpha(k)) => FieldValue::F32Attr(k),
                    Some(_) => return fail(term.span, format!("`{name}` is no f32 attribute")),
                    None => return Err(scope.unknown(name, term.span)),
                },
                _ => return fail(term.span, "bits(..) takes an f32 attribute or a finite float".to_owned()),
            },
            FieldValueAst::Bits(_) => {
                return fail(ast.span, "bits(..) takes an f32 attribute or a finite float".to_owned());
            }
        };
        let (at, width) = (scope.value(&ast.at)?, scope.value(&ast.width)?);
        let inside = (0..64).contains(&at) && (1..=64 - at).contains(&width);
        if !inside {
            return fail(ast.span, format!("{width} bits at {at} are no part of a word of 64 bits"));
        }
        let field = Field { value, at: at as u8, width: width as u8, signed: ast.signed };
        let meets = |other: &&Field| {
            i64::from(other.at) < at + width && at < i64::from(other.at) + i64::from(other.width)
        };
        if let Some(other) = fields.iter().find(meets) {
            let end = u32::from(other.at) + u32::from(other.width);
            return fail(ast.span, format!("the field overlaps the one in bits {}..{end}", other.at));
        }
        if let FieldValue::F32(_) | FieldValue::F32Attr(_) = field.value
            && (field.width != 32 || field.signed)
        {
            return fail(ast.span, "the bits of an f32 need 32 bits, not signed".to_owned());
        }
        fields.push(field);
    }
    Ok(fields)
}

/// Cuts a text at its holes: `{term}`, and `{term:KIND}` of [`KINDS`]; `{{` and `}}` are braces.
fn template(text: &str, span: Span, scope: &Scope, dialect: Dialect) -> Parsed<Template> {
    let brace = || {
        let message = "a brace stands alone; write {{ and }} for braces themselves".to_owned();
        Diagnostic::error(span, Problem::Encoding(message))
    };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.peek() == Some(&c) => {
                chars.next();
                literal.push(c);
            }
            '{' => {
                let mut inner = String::new();
                loop {
                    match chars.next() {
                        Some('}') => break,
                        Some(c) if c != '{' => inner.push(c),
                        _ => return Err(brace()),
                    }
                }
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                pieces.push(hole(&inner, scope, dialect).map_err(|fault| Diagnostic { span, ..fault })?);
            }
            '}' => return Err(brace()),
            c => literal.push(c),
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(Template(pieces))
}

type Make = fn(Expr) -> Piece;

/// What may stand behind a term in a hole, what it makes of the term, and whether it is for calls rather than for
/// inline assembly.
const KINDS: [(&str, Make, bool); 3] =
    [("r", Piece::InRegister, false), ("segment", Piece::Segment, true), ("offset", Piece::Offset, true)];

fn hole(text: &str, scope: &Scope, dialect: Dialect) -> Parsed<Piece> {
    let (text, make) = match text.rsplit_once(':') {
        None => (text, Piece::Value as Make),
        Some((term, kind)) => {
            let Some((_, make, call)) = KINDS.iter().find(|(name, ..)| *name == kind.trim()) else {
                let known = "`:r` in inline assembly, `:segment` and `:offset` in a call";
                let message = format!("`:{kind}` means nothing here; known are {known}");
                return Err(Diagnostic::error(Span::default(), Problem::Encoding(message)));
            };
            if *call != (dialect == Dialect::Call) {
                let place = if *call { "a call" } else { "inline assembly" };
                let message = format!("`:{kind}` is for {place}");
                return Err(Diagnostic::error(Span::default(), Problem::Encoding(message)));
            }
            (term, *make)
        }
    };
    let term = Parser::lone_term(text)?;
    if let TermKind::Name(name) = &term.kind
        && let Some(Meaning::F32Alpha(k)) = scope.meaning(name)
    {
        return Ok(Piece::F32Attr(k));
    }
    Ok(make(scope.expr(&term)?))
}

/// The loop construct; `None` is the host's.
pub(super) fn lower_loop(ast: &LoopAst, scope: &Scope) -> Parsed<Option<LoopConstruct>> {
    if ast.host {
        return Ok(None);
    }
    let number = |word: &str| match ast.numbers.iter().find(|(name, _)| name.text == word) {
        None => Ok(None),
        Some((_, term)) => match u64::try_from(scope.value(term)?) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Diagnostic::error(term.span, Problem::Encoding("a negative number".to_owned()))),
        },
    };
    let text = |word: &str, default: &str, holes: &[&str]| {
        let Some((_, (text, span))) = ast.texts.iter().find(|(name, _)| name.text == word) else {
            return Ok(default.to_owned());
        };
        let bare = holes.iter().fold(text.clone(), |text, hole| text.replace(hole, ""));
        let hole = bare.find('{').and_then(|at| Some((at, at + bare[at..].find('}')?)));
        match hole.and_then(|(from, to)| bare.get(from..=to)) {
            Some(hole) if hole.len() > 2 && hole[1..hole.len() - 1].chars().all(|c| c.is_alphanumeric()) => {
                let message = format!("`{hole}` means nothing here; known are {}", holes.join(", "));
                Err(Diagnostic::error(*span, Problem::Encoding(message)))
            }
            _ => Ok(text.clone()),
        }
    };
    let both = ["{iv}", "{trip}"];
    Ok(Some(LoopConstruct {
        name: ast.name.text.clone(),
        max_trip: number("max_trip")?,
        max_depth: number("max_depth")?,
        cost_begin: number("cost_begin")?.unwrap_or(0),
        cost_iteration: number("cost_iteration")?.unwrap_or(0),
        begin: text("begin", "", &both)?,
        end: text("end", "", &both)?,
        indent: text("indent", "  ", &[])?,
        variable: text("variable", "i{n}", &["{n}"])?,
    }))
}
