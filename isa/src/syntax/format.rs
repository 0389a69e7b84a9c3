//! The layout of a text: indentation and blanks. Works on tokens alone, so comments, named constants, spellings and
//! line breaks of the author stay.

use super::diagnostic::{Diagnostics, Span};
use super::lexer::{Token, Tokens, tokens};
use super::parser::{PARTS, parse};

/// Blanks per open brace.
const INDENT: usize = 2;
/// More blanks for a line that goes on with what began above.
const CONTINUED: usize = 4;

/// The text with its layout put right.
///
/// # Errors
/// The text is not well-formed; nothing is known about its layout then.
pub fn format(text: &str, file: &str) -> Result<String, Diagnostics> {
    let list = parse(text).faults;
    if !list.is_empty() {
        return Err(Diagnostics { file: file.to_owned(), text: text.into(), list });
    }
    let mut layout = Layout {
        text,
        out: String::new(),
        braces: Vec::new(),
        brackets: Vec::new(),
        backtick: false,
        strings: None,
    };
    let mut last: Option<Piece> = None;
    let pieces = pieces(text);
    for (k, piece) in pieces.iter().enumerate() {
        let gap = text.get(last.as_ref().map_or(0, |l| l.span.end)..piece.span.start).unwrap_or_default();
        let before = k.checked_sub(2).and_then(|at| pieces.get(at));
        layout.put(before, last.as_ref(), piece, gap);
        last = Some(piece.clone());
    }
    if !layout.out.is_empty() {
        layout.out.push('\n');
    }
    Ok(layout.out)
}

/// A token or a comment.
#[derive(Clone, Debug)]
struct Piece {
    /// `None`: a comment.
    token: Option<Token>,
    span: Span,
}

impl Piece {
    fn is(&self, punct: &str) -> bool {
        matches!(&self.token, Some(Token::Punct(p)) if *p == punct)
    }

    fn is_any(&self, puncts: &[&str]) -> bool {
        matches!(&self.token, Some(Token::Punct(p)) if puncts.contains(p))
    }

    fn is_word(&self, words: &[&str]) -> bool {
        matches!(&self.token, Some(Token::Ident(word)) if words.contains(&word.as_str()))
    }

    fn is_name(&self) -> bool {
        matches!(self.token, Some(Token::Ident(_)))
    }

    /// Whether what stands before a part of an instruction may end here, or is the word `in`.
    fn ends_part(&self) -> bool {
        self.is_word(&["in"]) || self.ends_value() || matches!(self.token, Some(Token::Str(_)))
    }

    /// Whether a value may end here, so that a `-` behind it subtracts.
    fn ends_value(&self) -> bool {
        let literal = matches!(self.token, Some(Token::Int(_) | Token::Hex(_) | Token::Float(_)));
        let word =
            self.is_name() && !self.is_word(&["and", "or", "not", "in", "by"]) && !self.is_word(&PARTS);
        literal || word || self.is_any(&[")", "]", "}", "`"])
    }
}

fn pieces(text: &str) -> Vec<Piece> {
    let Tokens { list, comments, .. } = tokens(text);
    let tokens = list.into_iter().filter(|(token, _)| *token != Token::End);
    let mut pieces: Vec<Piece> = tokens
        .map(|(token, span)| Piece { token: Some(token), span })
        .chain(comments.into_iter().map(|span| Piece { token: None, span }))
        .collect();
    pieces.sort_by_key(|p| p.span.start);
    pieces
}

struct Layout<'a> {
    text: &'a str,
    out: String,
    /// Open braces; whether each holds a block rather than a list.
    braces: Vec<bool>,
    /// Open parentheses and brackets; whether each is a parenthesis.
    brackets: Vec<bool>,
    backtick: bool,
    /// Column of the first of the strings before.
    strings: Option<usize>,
}

impl Layout<'_> {
    fn put(&mut self, before: Option<&Piece>, last: Option<&Piece>, piece: &Piece, gap: &str) {
        let closes_block = piece.is("}") && self.braces.last() == Some(&true);
        match last {
            None => {}
            Some(last) if gap.contains('\n') || last.token.is_none() => {
                self.out.push('\n');
                let opened = last.is("{") && self.braces.last() == Some(&true);
                // At most one blank line, none at the edges of a block.
                if gap.matches('\n').count() > 1 && !opened && !closes_block {
                    self.out.push('\n');
                }
                let depth = self.braces.iter().filter(|block| **block).count() - usize::from(closes_block);
                let string = matches!(piece.token, Some(Token::Str(_)));
                let continued = string
                    || !self.brackets.is_empty()
                    || self.backtick
                    || self.braces.last() == Some(&false)
                    || last.is_any(&[",", "="])
                    || piece.is_any(&["+", "*", "/", "&&", "||", "<=", ">=", "==", "!=", ","])
                    || piece.is_word(&["and", "or"]);
                let blanks = match self.strings {
                    // Strings stand one below the other.
                    Some(column) if string => column,
                    _ if piece.is_word(&["clobber"]) => depth * INDENT + INDENT,
                    _ => depth * INDENT + if continued { CONTINUED } else { 0 },
                };
                self.out.extend(std::iter::repeat_n(' ', blanks));
            }
            // Comments behind code keep their column as far as it goes.
            Some(_) if piece.token.is_none() => {
                self.out.push_str(if gap.trim_matches(' ').is_empty() && !gap.is_empty() {
                    gap
                } else {
                    " "
                });
            }
            Some(last) => {
                let blanks = self.blanks(before, last, piece, gap.len());
                self.out.extend(std::iter::repeat_n(' ', blanks));
            }
        }
        if !matches!(piece.token, Some(Token::Str(_))) {
            self.strings = None;
        } else if self.strings.is_none() {
            let line = self.out.rsplit('\n').next().unwrap_or_default();
            self.strings = Some(line.chars().count());
        }
        self.out.push_str(self.text.get(piece.span.start..piece.span.end).unwrap_or_default());
        self.note(last, piece);
    }

    fn note(&mut self, last: Option<&Piece>, piece: &Piece) {
        match &piece.token {
            Some(Token::Punct("{")) => {
                let list = last
                    .is_some_and(|l| l.is_any(&["=", ",", "(", ":"]) || l.is_word(&["in", "init"]))
                    || self.braces.last() == Some(&false)
                    || !self.brackets.is_empty();
                self.braces.push(!list);
            }
            Some(Token::Punct("}")) => {
                self.braces.pop();
            }
            Some(Token::Punct(open @ ("(" | "["))) => self.brackets.push(*open == "("),
            Some(Token::Punct(")" | "]")) => {
                self.brackets.pop();
            }
            Some(Token::Punct("`")) => self.backtick = !self.backtick,
            _ => {}
        }
    }

    /// Blanks between two tokens of a line. Where styles differ, what the author wrote decides.
    fn blanks(&self, before: Option<&Piece>, last: &Piece, piece: &Piece, written: usize) -> usize {
        let kept = written.min(1);
        // Two blanks may set parts of an instruction off, and align `in` with `out`.
        let part = piece.is_word(&PARTS) || last.is_word(&["in"]);
        if part && last.ends_part() && piece.is_name() && self.braces == [true] && self.brackets.is_empty() {
            return written.clamp(1, 2);
        }
        if piece.is_any(&[",", ";"]) {
            return 0;
        }
        if last.is_any(&[",", ";"]) {
            return 1;
        }
        if piece.is(":+") || last.is(":+") {
            return 1;
        }
        if piece.is("..") || last.is("..") {
            return 0;
        }
        if piece.is("=") || last.is("=") {
            // An attribute of an operator; everything else is a definition.
            let name = if piece.is("=") { before } else { None };
            return if name.is_some_and(|b| b.is(",")) || self.is_option() { 0 } else { 1 };
        }
        if piece.is_any(&[")", "]"]) && !last.is("|") {
            return 0;
        }
        if last.is_any(&["(", "["]) {
            return 0;
        }
        if piece.is(":") && self.brackets.last() != Some(&false) {
            return 0;
        }
        if last.is(":") && self.brackets.last() != Some(&false) {
            return 1;
        }
        if last.is_any(&[")", "]"]) && piece.is_name() {
            return 1;
        }
        if piece.is("{") {
            return if last.is("{") { 0 } else { usize::from(written > 0 || self.brackets.is_empty()) };
        }
        let block = self.braces.last() == Some(&true);
        if last.is("{") || piece.is("}") {
            return if block { 1 } else { 0 };
        }
        if piece.is("[") && last.is_name() {
            return usize::from(last.is_word(&["in"]));
        }
        let binary = ["+", "*", "/", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&&", "||"];
        if piece.is_any(&binary) || last.is_any(&binary) {
            return 1;
        }
        if piece.is("-") && last.ends_value() {
            // `bitcast-convert` is one name.
            return kept;
        }
        if last.is("-") {
            return if before.is_some_and(Piece::ends_value) { kept } else { 0 };
        }
        if last.is_name() && (piece.is_name() || piece.token.as_ref().is_some_and(is_literal)) {
            return 1;
        }
        kept
    }

    /// Whether the `=` just written belongs to an attribute of an operator.
    fn is_option(&self) -> bool {
        self.out.ends_with('=') && !self.out.ends_with(" =")
    }
}

fn is_literal(token: &Token) -> bool {
    matches!(token, Token::Int(_) | Token::Hex(_) | Token::Float(_) | Token::Str(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use proptest::prelude::*;

    fn formatted(text: &str) -> String {
        format(text, "t").unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_layout_is_put_right_and_comments_stay() {
        let text = "isa   t // the name\n\n\n# on its own\nhbm d0 :1  MiB\nconst N=4\nbuffer v:f32[ 8|4 ]\n\
            instr f alpha( n :1 .. N )beta(i,o){\n\n// first\nin  v[i:+n]   // read\nout v[o :+n]\nrequire n>=1\nand n<8\n\
            asm \"f {i}\"\n\"g {o}\"\ncomputation{\n x=f32[n,4] parameter( 0 )\nROOT y = f32[4,n] transpose(x),\
            dimensions = { 1,0 } ;\n}\n}";
        let expected = "isa t // the name\n\n# on its own\nhbm d0: 1 MiB\nconst N = 4\nbuffer v: f32[8|4]\n\
            instr f alpha(n: 1..N) beta(i, o) {\n  // first\n  in  v[i :+ n]   // read\n  out v[o :+ n]\n\
            \x20 require n >= 1\n      and n < 8\n  asm \"f {i}\"\n      \"g {o}\"\n  computation {\n\
            \x20   x = f32[n, 4] parameter(0)\n    ROOT y = f32[4, n] transpose(x), dimensions={1, 0};\n  }\n}\n";
        assert_eq!(formatted(text), expected);
        assert_eq!(formatted(expected), expected);
    }

    #[test]
    fn a_faulty_text_has_no_layout() {
        assert!(format("isa", "t").is_err());
        assert_eq!(formatted(""), "");
        assert_eq!(formatted("// alone"), "// alone\n");
    }

    fn kinds(text: &str) -> Vec<String> {
        pieces(text).into_iter().map(|p| text[p.span.start..p.span.end].to_owned()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the blanks and breaks, tokens and comments stay, the model stays, and formatting twice is
        /// formatting once.
        #[test]
        fn formatting_changes_blanks_alone(which in any::<prop::sample::Index>(), seed in any::<u64>()) {
            let targets = crate::targets();
            let (_, text) = targets[which.index(targets.len())];
            let mut random = seed | 1;
            let mut messed = String::new();
            let mut end = 0;
            for piece in pieces(text) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let gap = &text[end..piece.span.start];
                // Breaks end comments and separate what stands on lines; elsewhere blanks come and stay.
                messed.push_str(match (gap.contains('\n'), gap.is_empty(), random >> 62) {
                    (true, _, 0) => "\n\n\n",
                    (true, _, 1) => "\n       ",
                    (true, ..) => "\n",
                    (false, true, _) => "",
                    (false, false, 0) => "   ",
                    (false, false, 1) => "\t",
                    (false, false, _) => " ",
                });
                messed.push_str(&text[piece.span.start..piece.span.end]);
                end = piece.span.end;
            }
            let once = formatted(&messed);
            prop_assert_eq!(kinds(&once), kinds(text));
            prop_assert_eq!(&formatted(&once), &once);
            prop_assert_eq!(Isa::parse(&once, "t").ok(), Isa::parse(text, "t").ok());
        }
    }
}
