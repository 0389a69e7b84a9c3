//! Where the parser goes on after a fault, so that one mistake is told once and the next ones are found too. Rests on
//! line breaks and braces alone, since the grammar is what is broken.

use super::diagnostic::Span;
use super::lexer::Token;
use super::parser::{ITEMS, PARTS, Parser};

/// Faults after which a text is given up.
const MAX_FAULTS: usize = 100;

/// How a token stands on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// First on its line, without indentation.
    Left,
    /// First on its line.
    First,
    Inside,
}

pub(super) fn layout(text: &str, tokens: &[(Token, Span)]) -> Vec<Layout> {
    let mut end = 0;
    let one = |(_, span): &(Token, Span)| {
        let between = text.get(end..span.start).unwrap_or_default();
        let breaks = end == 0 || between.contains('\n');
        end = span.end;
        match (breaks, between.ends_with('\n') || span.start == 0) {
            (true, true) => Layout::Left,
            (true, false) => Layout::First,
            (false, _) => Layout::Inside,
        }
    };
    tokens.iter().map(one).collect()
}

impl Parser {
    fn layout(&self) -> Layout {
        self.lines.get(self.at).copied().unwrap_or(Layout::Inside)
    }

    fn is_word_of(&self, words: &[&str]) -> bool {
        matches!(self.peek(), Token::Ident(word) if words.contains(&word.as_str()))
    }

    /// Whether an item starts here for certain: a word at the left edge of the page that begins nothing else.
    pub(super) fn at_left_item(&self) -> bool {
        let statement = matches!(self.peek_at(1), Token::Punct("="));
        self.layout() == Layout::Left && self.is_word_of(&ITEMS) && !self.is_word_of(&PARTS) && !statement
    }

    pub(super) fn gives_up(&self) -> bool {
        self.faults.len() >= MAX_FAULTS
    }

    /// Leaves the tokens behind until `stop` holds outside of braces opened since token `start`, or an item starts, or
    /// a brace closes that was open before. Takes one token at least unless it is the last.
    fn skip(&mut self, start: usize, stop: impl Fn(&Parser) -> bool) {
        let mut open = self.braces_since(start);
        while *self.peek() != Token::End {
            if self.at > start && (self.at_left_item() || (open <= 0 && stop(self))) {
                return;
            }
            match self.peek() {
                Token::Punct("{") => open += 1,
                Token::Punct("}") if open <= 0 && self.at > start => return,
                Token::Punct("}") => open -= 1,
                _ => {}
            }
            self.advance();
        }
    }

    /// To the next item.
    pub(super) fn skip_to_item(&mut self, start: usize) {
        loop {
            // At the left edge an item may begin whose word is unknown.
            self.skip(start, |p| match p.layout() {
                Layout::Left => matches!(p.peek(), Token::Ident(_)),
                Layout::First => p.is_word_of(&ITEMS),
                Layout::Inside => false,
            });
            // A brace that closes nothing here is part of what is skipped.
            if !self.eat("}") {
                return;
            }
        }
    }

    /// To the next part of an instruction, or the brace that closes it.
    pub(super) fn skip_to_part(&mut self, start: usize) {
        self.skip(start, |p| p.layout() != Layout::Inside && p.is_word_of(&PARTS));
    }

    /// To the next statement of a block, or the brace that closes it.
    pub(super) fn skip_to_statement(&mut self, start: usize) {
        self.skip(start, |p| p.is(";") || p.layout() != Layout::Inside);
        self.eat(";");
    }

    /// Braces opened and not closed from token `start` up to here.
    fn braces_since(&self, start: usize) -> isize {
        let one = |token: &Token| match token {
            Token::Punct("{") => 1,
            Token::Punct("}") => -1,
            _ => 0,
        };
        self.taken_since(start).map(one).sum()
    }
}
