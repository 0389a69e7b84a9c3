//! Text to tokens. Knows no grammar: every word is an identifier, so that instructions may be named like operators.

use super::diagnostic::{Diagnostic, Problem, Span, quoted};

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
            Token::Ident(name) => format!("`{}`", quoted(name)),
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

/// A text in tokens.
pub(super) struct Tokens {
    /// With their places, closed by [`Token::End`].
    pub list: Vec<(Token, Span)>,
    /// Places of the comments, without the line's end.
    pub comments: Vec<Span>,
    /// Characters and literals that are no token.
    pub faults: Vec<Diagnostic>,
}

pub(super) fn tokens(text: &str) -> Tokens {
    let mut lexer = Lexer { text, at: 0, backtick: None, comments: Vec::new() };
    let mut out = Tokens { list: Vec::new(), comments: Vec::new(), faults: Vec::new() };
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        match lexer.token() {
            Ok(token) => {
                let end = token == Token::End;
                out.list.push((token, Span { start, end: lexer.at }));
                if end {
                    out.comments = lexer.comments;
                    return out;
                }
            }
            // Every fault leaves the lexer behind its first character at least. What was meant to be a string or a
            // number stands as one, lest its absence be a second fault.
            Err(fault) => {
                let meant = match text[start..].chars().next() {
                    Some('"') => Some(Token::Str(String::new())),
                    Some(c) if c.is_ascii_digit() => Some(Token::Int(1)),
                    _ => None,
                };
                out.list.extend(meant.map(|token| (token, Span { start, end: lexer.at })));
                out.faults.push(fault);
            }
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Where the open backtick expression began. In it `//` divides; elsewhere it starts a comment.
    backtick: Option<usize>,
    comments: Vec<Span>,
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

    fn skip_blank(&mut self) {
        // Some editors begin a file with a byte order mark.
        if self.at == 0 && self.rest().starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        loop {
            self.take_while(char::is_whitespace);
            let comment =
                self.rest().starts_with('#') || (self.backtick.is_none() && self.rest().starts_with("//"));
            if !comment {
                return;
            }
            let start = self.at;
            let text = self.take_while(|c| c != '\n').trim_end();
            self.comments.push(Span { start, end: start + text.len() });
        }
    }

    /// Whether the backtick at `self.at` has its partner, in the same statement.
    fn backtick_closes(&self) -> bool {
        let inside = self.text.get(self.at + 1..).unwrap_or_default();
        inside.find(['`', ';']).is_some_and(|end| inside[end..].starts_with('`'))
    }

    fn token(&mut self) -> Result<Token, Diagnostic> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        let second = rest.chars().nth(1);
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|c| c.is_ascii_digit())) {
            return self.number();
        }
        if first == '"' {
            let string = self.string();
            if string.is_err() {
                // What follows on the line is the string's inside.
                self.take_while(|c| !matches!(c, '"' | '\n'));
                self.at += usize::from(self.rest().starts_with('"'));
            }
            return string;
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
            if self.backtick.is_none() && !self.backtick_closes() {
                self.at += 1;
                return self.fail(self.at - 1, Problem::Unterminated("backtick"));
            }
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
        // `1..n` is a range, `0.5` and `1.` are floats.
        if next.next() == Some('.')
            && next.next().is_none_or(|c| digit(c) || !(c == '.' || c.is_alphabetic()))
        {
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
        let found = tokens(text);
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        found.list.into_iter().map(|(token, _)| token).collect()
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
        for (text, at) in [("a \"b\nc", 2), ("x `n;\n`n`", 2), ("`", 0), ("\"a\\q\"", 2)] {
            assert_eq!(tokens(text).faults[0].span.start, at, "{text}");
        }
    }

    #[test]
    fn what_is_no_token_is_left_out() {
        let found = tokens("a $ b // $\n?§");
        assert_eq!(found.faults.len(), 2);
        assert_eq!(found.list.len(), 4);
        assert_eq!(found.comments, [Span { start: 6, end: 10 }]);
    }
}
