//! Where and why a text was not understood.

use super::lexer::Token;
use std::fmt;

/// A position in the text, what was wrong there and the line itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    pub message: String,
    /// The line of the text, for the caret.
    pub source_line: String,
}

impl ParseError {
    pub(super) fn at_offset(source: &str, offset: usize, message: impl Into<String>) -> ParseError {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = source[line_start..].lines().next().unwrap_or("");
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            source_line: line.to_owned(),
        }
    }

    /// At a token, or at the end of the text when there are not as many.
    pub(super) fn at_token(
        source: &str,
        tokens: &[Token],
        token: usize,
        message: impl Into<String>,
    ) -> ParseError {
        let offset = tokens.get(token).map_or(source.trim_end().len(), |t| t.start);
        ParseError::at_offset(source, offset, message)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        writeln!(f, "{number} | {}", self.source_line)?;
        // Tabs are kept, so that the caret stands below its character.
        let indent: String =
            self.source_line.chars().take(self.column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
        write!(f, "{margin} | {indent}^")
    }
}

impl std::error::Error for ParseError {}
