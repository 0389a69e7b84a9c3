//! Tokens to terms: integer expressions and conditions by precedence.
//! Loosest first: `or`, `and`, `not`, comparison, shift, sum, product, sign.

use super::ast::{BinaryOp, Name, Term, TermKind};
use super::diagnostic::{Diagnostic, Problem, Span};
use super::lexer::Token;
use super::parser::{Parsed, Parser};
use crate::expr::Relation;

/// Greatest height of a term; later passes recurse over terms.
const MAX_DEPTH: usize = 300;

/// Deepest parentheses and braces: each level is a dozen calls of the parser, which must fit a thread's stack.
pub(super) const MAX_NESTING: usize = 32;

/// Binary operators above comparison, loosest level first.
const ARITHMETIC: [&[(&str, BinaryOp)]; 3] = [
    &[("<<", BinaryOp::Shl), (">>", BinaryOp::Shr)],
    &[("+", BinaryOp::Add), ("-", BinaryOp::Sub)],
    &[("*", BinaryOp::Mul), ("/", BinaryOp::Div), ("%", BinaryOp::Mod)],
];

const RELATIONS: [(&str, Relation); 6] = [
    ("<", Relation::Lt),
    ("<=", Relation::Le),
    (">", Relation::Gt),
    (">=", Relation::Ge),
    ("==", Relation::Eq),
    ("!=", Relation::Ne),
];

impl Term {
    pub(super) fn new(kind: TermKind, span: Span) -> Parsed<Term> {
        let below = match &kind {
            TermKind::Int(_) | TermKind::Name(_) => 0,
            TermKind::Negate(a) | TermKind::Not(a) => a.depth,
            TermKind::Binary(_, a, b) => a.depth.max(b.depth),
            TermKind::Call(_, args) => args.iter().map(|a| a.depth).max().unwrap_or(0),
            TermKind::In(a, set) => set.iter().map(|b| b.depth).max().unwrap_or(0).max(a.depth),
        };
        if below >= MAX_DEPTH {
            return Err(Diagnostic::error(span, Problem::TooDeep(MAX_DEPTH)));
        }
        Ok(Term { kind, span, depth: below + 1 })
    }

    fn binary(op: BinaryOp, a: Term, b: Term) -> Parsed<Term> {
        let span = a.span.to(b.span);
        Term::new(TermKind::Binary(op, a.into(), b.into()), span)
    }
}

impl Parser {
    /// Any term.
    pub(super) fn term(&mut self) -> Parsed<Term> {
        if self.depth >= MAX_NESTING {
            return Err(Diagnostic::error(self.span(), Problem::TooDeep(MAX_NESTING)));
        }
        self.depth += 1;
        let term = self.disjunction();
        self.depth -= 1;
        term
    }

    fn disjunction(&mut self) -> Parsed<Term> {
        let mut term = self.conjunction()?;
        while self.eat("||") || self.eat_word("or") {
            term = Term::binary(BinaryOp::Or, term, self.conjunction()?)?;
        }
        Ok(term)
    }

    fn conjunction(&mut self) -> Parsed<Term> {
        let mut term = self.negation()?;
        while self.eat("&&") || self.eat_word("and") {
            term = Term::binary(BinaryOp::And, term, self.negation()?)?;
        }
        Ok(term)
    }

    fn negation(&mut self) -> Parsed<Term> {
        let mut nots = Vec::new();
        while self.is("!") || self.is_word("not") {
            nots.push(self.span());
            self.advance();
        }
        let mut term = self.comparison()?;
        for span in nots.into_iter().rev() {
            let span = span.to(term.span);
            term = Term::new(TermKind::Not(term.into()), span)?;
        }
        Ok(term)
    }

    /// The closing bracket when the token is one that opens a set.
    fn set_close(&self, ahead: usize) -> Option<&'static str> {
        match self.peek_at(ahead) {
            Token::Punct("{") => Some("}"),
            // As Python spells it.
            Token::Punct("[") => Some("]"),
            Token::Punct("(") => Some(")"),
            _ => None,
        }
    }

    /// `a < b`, `a <= b < c` (both must hold), `a in {1, 2}`, `a not in {1, 2}`.
    fn comparison(&mut self) -> Parsed<Term> {
        let first = self.arithmetic(0)?;
        let inverted = self.is_word("not") && matches!(self.peek_at(1), Token::Ident(word) if word == "in");
        let set = usize::from(inverted) + 1;
        if (inverted || self.is_word("in"))
            && let Some(close) = self.set_close(set)
        {
            (0..=set).for_each(|_| self.advance());
            let set = self.list(close, Parser::term)?;
            let span = first.span.to(self.last_span());
            let within = Term::new(TermKind::In(first.into(), set), span)?;
            return if inverted { Term::new(TermKind::Not(within.into()), span) } else { Ok(within) };
        }
        let mut chain: Option<Term> = None;
        let mut left = first;
        while let Some(relation) = self.relation() {
            let right = self.arithmetic(0)?;
            let link = Term::binary(BinaryOp::Compare(relation), left, right.clone())?;
            chain = Some(match chain {
                None => link,
                Some(chain) => Term::binary(BinaryOp::And, chain, link)?,
            });
            left = right;
        }
        Ok(chain.unwrap_or(left))
    }

    fn relation(&mut self) -> Option<Relation> {
        let Token::Punct(punct) = self.peek() else { return None };
        let relation = RELATIONS.iter().find(|(p, _)| p == punct).map(|(_, relation)| *relation);
        if relation.is_some() {
            self.advance();
        }
        relation
    }

    fn arithmetic(&mut self, level: usize) -> Parsed<Term> {
        let Some(operators) = ARITHMETIC.get(level) else { return self.sign() };
        let mut term = self.arithmetic(level + 1)?;
        loop {
            let Token::Punct(punct) = self.peek() else { return Ok(term) };
            let Some(&(_, op)) = operators.iter().find(|(p, _)| p == punct) else { return Ok(term) };
            self.advance();
            term = Term::binary(op, term, self.arithmetic(level + 1)?)?;
        }
    }

    fn sign(&mut self) -> Parsed<Term> {
        let mut signs = Vec::new();
        while self.is("-") {
            signs.push(self.span());
            self.advance();
        }
        let mut term = self.primary()?;
        for span in signs.into_iter().rev() {
            let span = span.to(term.span);
            let kind = match term.kind {
                TermKind::Int(v) => TermKind::Int(-v),
                _ => TermKind::Negate(term.into()),
            };
            term = Term::new(kind, span)?;
        }
        Ok(term)
    }

    fn primary(&mut self) -> Parsed<Term> {
        let span = self.span();
        match self.peek().clone() {
            Token::Int(v) if i64::try_from(-v).is_ok() => {
                self.advance();
                Term::new(TermKind::Int(v), span)
            }
            Token::Hex(v) if v <= i64::MAX as u128 => {
                self.advance();
                Term::new(TermKind::Int(v as i128), span)
            }
            Token::Int(v) => Err(Diagnostic::error(span, Problem::BadNumber(v.to_string()))),
            Token::Hex(v) => Err(Diagnostic::error(span, Problem::BadNumber(format!("{v:#x}")))),
            Token::Ident(text) => {
                self.advance();
                if self.eat("(") {
                    let args = self.list(")", Parser::term)?;
                    let span = span.to(self.last_span());
                    return Term::new(TermKind::Call(Name { text, span }, args), span);
                }
                Term::new(TermKind::Name(text), span)
            }
            Token::Punct("(") => self.enclosed("(", ")"),
            Token::Punct("`") => self.enclosed("`", "`"),
            _ => self.unexpected("a number, an attribute or `(`"),
        }
    }

    fn enclosed(&mut self, open: &'static str, close: &'static str) -> Parsed<Term> {
        let start = self.span();
        self.expect(open)?;
        let mut term = self.term()?;
        self.expect(close)?;
        term.span = start.to(self.last_span());
        Ok(term)
    }
}
