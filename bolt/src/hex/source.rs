//! The texts of a case and places in them; errors that point at a place with a caret.

use std::fmt;

/// A range of bytes in one of the files of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: u16,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// From the start of `self` to the end of `last`.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span { end: last.end.max(self.end), ..self }
    }
}

/// The files of a case, the first being the one that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub files: Vec<(String, String)>,
}

impl Source {
    /// File, line and column (from 1) of a place.
    #[must_use]
    pub fn position(&self, span: Span) -> (&str, usize, usize) {
        let (name, text) = &self.files[usize::from(span.file)];
        let before = &text[..(span.start as usize).min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        (name, line, column)
    }

    /// `file:line: text of the line`.
    #[must_use]
    pub fn line(&self, span: Span) -> String {
        let (name, line, _) = self.position(span);
        let text = self.files[usize::from(span.file)].1.lines().nth(line - 1).unwrap_or("");
        format!("{name}:{line}: {}", text.trim())
    }
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HexError {
    pub span: Span,
    pub message: String,
}

impl HexError {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> HexError {
        HexError { span, message: message.into() }
    }

    /// The message with the line it is about and carets under the place.
    #[must_use]
    pub fn render(&self, source: &Source) -> String {
        let (name, line, column) = source.position(self.span);
        let text = source.files[usize::from(self.span.file)].1.lines().nth(line - 1).unwrap_or("");
        let width = (self.span.end.saturating_sub(self.span.start) as usize)
            .clamp(1, text.len().saturating_sub(column - 1).max(1));
        format!(
            "{name}:{line}:{column}: {}\n  {text}\n  {}{}",
            self.message,
            " ".repeat(column - 1),
            "^".repeat(width)
        )
    }
}

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HexError {}
