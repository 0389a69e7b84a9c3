//! Text to tokens.

use super::source::{HexError, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(String),
    Int(i64),
    Text(String),
    /// An operator or bracket.
    Mark(&'static str),
    End,
}

/// Longest first.
const MARKS: &[&str] = &[
    ":=", "..", "==", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}",
    ",", ":", "@",
];

/// The tokens of a text; the last is `End`. A comment goes from `#` to the end of its line.
///
/// # Errors
/// A character that starts no token, an integer too large, a text without its closing quote.
pub fn lex(text: &str, file: u16) -> Result<Vec<(Token, Span)>, HexError> {
    let bytes = text.as_bytes();
    let span = |start: usize, end: usize| Span {
        file,
        start: u32::try_from(start).unwrap_or(u32::MAX),
        end: u32::try_from(end).unwrap_or(u32::MAX),
    };
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        let run = |accept: fn(u8) -> bool| {
            bytes[start..].iter().position(|&b| !accept(b)).map_or(bytes.len(), |n| start + n)
        };
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if byte == b'#' {
            at = run(|b| b != b'\n');
            continue;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            at = run(|b| b.is_ascii_alphanumeric() || b == b'_');
            tokens.push((Token::Word(text[start..at].to_owned()), span(start, at)));
        } else if byte.is_ascii_digit() {
            at = run(|b| b.is_ascii_alphanumeric());
            let word = &text[start..at];
            let value = match word.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => word.parse(),
            };
            let value =
                value.map_err(|e| HexError::new(span(start, at), format!("`{word}` is no integer: {e}")))?;
            tokens.push((Token::Int(value), span(start, at)));
        } else if byte == b'"' {
            let length =
                text[start + 1..].find(['"', '\n']).filter(|&n| bytes[start + 1 + n] == b'"').ok_or_else(
                    || HexError::new(span(start, start + 1), "this text has no closing quote on its line"),
                )?;
            at = start + length + 2;
            tokens.push((Token::Text(text[start + 1..at - 1].to_owned()), span(start, at)));
        } else if let Some(mark) = MARKS.iter().find(|mark| text[start..].starts_with(**mark)) {
            at += mark.len();
            tokens.push((Token::Mark(mark), span(start, at)));
        } else {
            let character = text[start..].chars().next().unwrap_or(' ');
            let end = start + character.len_utf8();
            return Err(HexError::new(span(start, end), format!("`{character}` starts nothing in Hex")));
        }
    }
    tokens.push((Token::End, span(bytes.len(), bytes.len())));
    Ok(tokens)
}
