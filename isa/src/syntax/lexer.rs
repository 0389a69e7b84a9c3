//! Text to tokens. Knows no grammar: every word is an identifier, so that instructions may be named like operators.

use super::diagnostic::{Diagnostic, Problem, Span};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Ident(String),
    Int(i128),
    /// `0x..`: an integer, or the bits of a float.
    Hex(u128),
    Float(f64),
    Str(String),
    Punct(&'static str),
    End,
}

impl Token {
    /// How the token is called in a message.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Ident(name) => format!("`{name}`"),
            Token::Int(v) => format!("`{v}`"),
            Token::Hex(v) => format!("`{v:#x}`"),
            Token::Float(v) => format!("`{v:?}`"),
            Token::Str(_) => "a string".to_owned(),
            Token::Punct(p) => format!("`{p}`"),
            Token::End => "the end of the file".to_owned(),
        }
    }
}

/// Longest first where one is the beginning of another.
const PUNCTUATION: [&str; 32] = [
    ":+", "..", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "{", "}", "[", "]", "(", ")", ",", ";", ":",
    "|", "=", "<", ">", "+", "-", "*", "/", "%", "!", "`", "?", "@",
];

/// All tokens with their places, closed by [`Token::End`].
///
/// # Errors
/// The first character or literal that is no token.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, Diagnostic> {
    let mut lexer = Lexer { text, at: 0, backtick: None };
    let mut out = Vec::new();
    loop {
        lexer.skip_blank()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let end = token == Token::End;
        out.push((token, Span { start, end: lexer.at }));
        if end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Where the open backtick expression began. In it `//` divides; elsewhere it starts a comment.
    backtick: Option<usize>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn fail<T>(&self, start: usize, problem: Problem) -> Result<T, Diagnostic> {
        Err(Diagnostic::error(Span { start, end: self.at.max(start + 1) }, problem))
    }

    fn skip_blank(&mut self) -> Result<(), Diagnostic> {
        loop {
            let blank = self.take_while(char::is_whitespace);
            if let (Some(open), true) = (self.backtick, blank.contains('\n')) {
                self.at = open + 1;
                return self.fail(open, Problem::Unterminated("backtick"));
            }
            let comment =
                self.rest().starts_with('#') || (self.backtick.is_none() && self.rest().starts_with("//"));
            if !comment {
                return Ok(());
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn token(&mut self) -> Result<Token, Diagnostic> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return match self.backtick {
                Some(open) => self.fail(open, Problem::Unterminated("backtick")),
                None => Ok(Token::End),
            };
        };
        let second = rest.chars().nth(1);
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == '"' {
            return self.string();
        }
        let word = |c: char| c.is_ascii_alphabetic() || c == '_';
        if word(first) || (first == '@' && second.is_some_and(word)) {
            return Ok(Token::Ident(self.word().to_owned()));
        }
        if self.backtick.is_some() && rest.starts_with("//") {
            self.at += 2;
            return Ok(Token::Punct("/"));
        }
        let Some(&punct) = PUNCTUATION.iter().find(|p| rest.starts_with(**p)) else {
            self.at += first.len_utf8();
            return self.fail(self.at - first.len_utf8(), Problem::UnexpectedCharacter(first));
        };
        if punct == "`" {
            self.backtick = if self.backtick.is_some() { None } else { Some(self.at) };
        }
        self.at += punct.len();
        Ok(Token::Punct(punct))
    }

    /// Letters, digits, `_`, `@`, and single dots inside (`x.1`, `@c.n`), which leaves `a..b` a range.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@';
        let mut len = 0;
        let mut chars = rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let inner_dot = c == '.' && chars.peek().is_some_and(|&(_, next)| part(next));
            if !part(c) && !inner_dot {
                break;
            }
            len = at + c.len_utf8();
        }
        self.at += len;
        &rest[..len]
    }

    fn number(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        if let Some(digits) = self.rest().strip_prefix("0x") {
            let len = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            self.at += 2 + len;
            return match u128::from_str_radix(&digits[..len], 16) {
                Ok(value) => Ok(Token::Hex(value)),
                Err(_) => self.fail(start, Problem::BadNumber(self.text[start..self.at].to_owned())),
            };
        }
        let digit = |c: char| c.is_ascii_digit();
        self.take_while(digit);
        let mut float = false;
        let mut next = self.rest().chars();
        if next.next() == Some('.') && next.next().is_some_and(digit) {
            float = true;
            self.at += 1;
            self.take_while(digit);
        }
        let exponent = self.rest().strip_prefix(['e', 'E']).map(|r| r.strip_prefix(['+', '-']).unwrap_or(r));
        if let Some(digits) = exponent.filter(|r| r.starts_with(digit)) {
            float = true;
            self.at = self.text.len() - digits.len();
            self.take_while(digit);
        }
        let text = &self.text[start..self.at];
        let token = if float {
            text.parse().ok().filter(|v: &f64| v.is_finite()).map(Token::Float)
        } else {
            text.parse().ok().map(Token::Int)
        };
        match token {
            Some(token) => Ok(token),
            None => self.fail(start, Problem::BadNumber(text.to_owned())),
        }
    }

    fn string(&mut self) -> Result<Token, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            value.push_str(self.take_while(|c| !matches!(c, '"' | '\\' | '\n')));
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('"'), _) => {
                    self.at += 1;
                    return Ok(Token::Str(value));
                }
                (Some('\\'), Some(escaped @ ('"' | '\\' | 'n' | 't'))) => {
                    value.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    });
                    self.at += 2;
                }
                (Some('\\'), Some(other)) => {
                    let at = self.at;
                    self.at += 1 + other.len_utf8();
                    return self.fail(at, Problem::UnexpectedCharacter(other));
                }
                _ => {
                    self.at = start + 1;
                    return self.fail(start, Problem::Unterminated("string"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn ranges_names_and_numbers() {
        let ident = |s: &str| Token::Ident(s.into());
        assert_eq!(
            kinds("1..n x.1 @c.n 0.5 1e-3 0x1F // c\n a:+b"),
            [
                Token::Int(1),
                Token::Punct(".."),
                ident("n"),
                ident("x.1"),
                ident("@c.n"),
                Token::Float(0.5),
                Token::Float(1e-3),
                Token::Hex(31),
                ident("a"),
                Token::Punct(":+"),
                ident("b"),
                Token::End
            ]
        );
    }

    #[test]
    fn two_slashes_divide_in_backticks_only() {
        let divided = kinds("`n//2` //x");
        assert_eq!(divided[2], Token::Punct("/"));
        assert_eq!(divided.len(), 6);
    }

    #[test]
    fn open_literals_are_reported_where_they_begin() {
        for (text, at) in [("a \"b\nc", 2), ("x `n\n`", 2), ("`", 0), ("\"a\\q\"", 2)] {
            assert_eq!(tokens(text).unwrap_err().span.start, at, "{text}");
        }
    }
}
