//! Tokens of HLO text. Names, numbers and dimension strings (`0_1x0_2`) are all words: only their place in the
//! grammar tells which a word is.

use super::ParseError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Letters, digits and `_ . - +`, without a leading `%`.
    Word(String),
    /// A quoted string, escapes resolved.
    Text(String),
    Arrow,
    Punctuation(char),
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Byte offset in the text.
    pub(super) start: usize,
}

impl Token {
    /// For messages.
    pub(super) fn describe(&self) -> String {
        match &self.kind {
            TokenKind::Word(word) => format!("`{word}`"),
            TokenKind::Text(_) => "a string".to_owned(),
            TokenKind::Arrow => "`->`".to_owned(),
            TokenKind::Punctuation(c) => format!("`{c}`"),
        }
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

pub(super) fn tokens(source: &str) -> Result<Vec<Token>, ParseError> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let start = source.len() - rest.len();
        if c.is_whitespace() {
            rest = rest.trim_start();
        } else if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            let end = rest
                .find("*/")
                .ok_or_else(|| ParseError::at_offset(source, start, "this comment is not closed"))?;
            rest = &rest[end + 2..];
        } else if rest.starts_with("->") {
            tokens.push(Token { kind: TokenKind::Arrow, start });
            rest = &rest[2..];
        } else if c == '"' {
            let (text, after) = string(source, start)?;
            tokens.push(Token { kind: TokenKind::Text(text), start });
            rest = after;
        } else {
            let body = rest.strip_prefix('%').unwrap_or(rest);
            let end = body
                .char_indices()
                .find(|&(i, c)| !in_word(c) || body[i..].starts_with("->"))
                .map_or(body.len(), |(i, _)| i);
            let kind = if end > 0 {
                rest = &body[end..];
                TokenKind::Word(body[..end].to_owned())
            } else {
                rest = &rest[c.len_utf8()..];
                TokenKind::Punctuation(c)
            };
            tokens.push(Token { kind, start });
        }
    }
    Ok(tokens)
}

/// The string that begins at `start`, and the text after it.
fn string(source: &str, start: usize) -> Result<(String, &str), ParseError> {
    let mut text = String::new();
    let mut chars = source[start + 1..].char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Ok((text, &source[start + 1 + i + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    Err(ParseError::at_offset(source, start, "this string is not closed"))
}

/// The inverse of what [`tokens`] does to a string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '"' | '\\' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
