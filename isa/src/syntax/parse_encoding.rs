//! Tokens to device encodings and loop constructs.

use super::ast::{EncodingAst, FieldAst, FieldValueAst, LoopAst, Name};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::lexer::Token;
use super::parser::{Parsed, Parser};
use crate::encoding::Dialect;

const DIALECTS: [(&str, Dialect); 3] =
    [("riscv", Dialect::Riscv), ("x86", Dialect::X86), ("call", Dialect::Call)];

/// Parts of a loop construct that are numbers, and that are text.
const NUMBERS: [&str; 4] = ["max_trip", "max_depth", "cost_begin", "cost_iteration"];
const TEXTS: [&str; 4] = ["begin", "end", "indent", "variable"];

impl Parser {
    /// What follows `encode`: `riscv insn(..) { .. }`, or a dialect, a text and `clobber "..", ..`.
    pub(super) fn encoding(&mut self) -> Parsed<EncodingAst> {
        let Some(&(_, dialect)) = DIALECTS.iter().find(|(word, _)| self.is_word(word)) else {
            return self.unexpected("`riscv`, `x86` or `call`");
        };
        self.advance();
        if dialect == Dialect::Riscv && self.eat_word("insn") {
            return self.insn();
        }
        let text = self.asm()?;
        let mut clobbers = Vec::new();
        if self.eat_word("clobber") {
            loop {
                let Token::Str(name) = self.peek() else { return self.unexpected("a string") };
                clobbers.push(name.clone());
                self.advance();
                if !self.eat(",") {
                    break;
                }
            }
        }
        Ok(EncodingAst::Text { dialect, text, clobbers })
    }

    /// `(opcode 0x7b, funct3 3, funct7 2) { rs1 { .. } rs2 { .. } }`
    fn insn(&mut self) -> Parsed<EncodingAst> {
        self.expect("(")?;
        let mut numbers = Vec::new();
        for (k, word) in ["opcode", "funct3", "funct7"].into_iter().enumerate() {
            if k > 0 {
                self.expect(",")?;
            }
            if !self.eat_word(word) {
                return self.unexpected(format!("`{word}` and its value"));
            }
            numbers.push(self.term()?);
        }
        self.expect(")")?;
        self.expect("{")?;
        let mut words: [Option<Vec<FieldAst>>; 2] = [None, None];
        while !self.eat("}") {
            let Some(at) = ["rs1", "rs2"].iter().position(|word| self.is_word(word)) else {
                return self.unexpected("`rs1`, `rs2` or `}`");
            };
            let span = self.span();
            self.advance();
            if words[at].replace(self.fields()?).is_some() {
                let what = if at == 0 { "`rs1`" } else { "`rs2`" };
                let of = "the instruction word".to_owned();
                return Err(Diagnostic::error(span, Problem::Repeated { what, of }));
            }
        }
        let [rs1, rs2] = words.map(Option::unwrap_or_default);
        Ok(EncodingAst::Insn { numbers, rs1, rs2 })
    }

    /// `{ value at BIT width BITS [signed], .. }`; the commas may be left out.
    fn fields(&mut self) -> Parsed<Vec<FieldAst>> {
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.eat("}") {
            let start = self.span();
            let value = if self.is_word("bits") && matches!(self.peek_at(1), Token::Punct("(")) {
                self.advance();
                self.advance();
                let value = self.constant(0)?;
                self.expect(")")?;
                FieldValueAst::Bits(value)
            } else {
                FieldValueAst::Term(self.term()?)
            };
            let mut number = |word: &str| {
                if self.eat_word(word) {
                    self.term()
                } else {
                    self.unexpected(format!("`{word}` and a number"))
                }
            };
            let (at, width) = (number("at")?, number("width")?);
            let signed = self.eat_word("signed");
            fields.push(FieldAst { value, at, width, signed, span: start.to(self.last_span()) });
            self.eat(",");
        }
        Ok(fields)
    }

    /// What follows `loop`: `host`, or a name and its parts in braces.
    pub(super) fn loop_construct(&mut self) -> Parsed<LoopAst> {
        let name = self.name("`host`, or the name of the device's loop")?;
        let mut ast = LoopAst { host: name.text == "host", name, numbers: Vec::new(), texts: Vec::new() };
        if ast.host {
            return Ok(ast);
        }
        self.expect("{")?;
        while !self.eat("}") {
            let word = self.name("a part of the loop construct or `}`")?;
            let known = |list: &[(Name, _)]| list.iter().any(|(n, _): &(Name, _)| n.text == word.text);
            let text_known = ast.texts.iter().any(|(n, _): &(Name, (String, Span))| n.text == word.text);
            if known(&ast.numbers) || text_known {
                let problem = Problem::DuplicateName { what: "part", name: word.text };
                return Err(Diagnostic::error(word.span, problem));
            }
            if NUMBERS.contains(&word.text.as_str()) {
                let value = self.term()?;
                ast.numbers.push((word, value));
            } else if TEXTS.contains(&word.text.as_str()) {
                let text = self.asm()?;
                ast.texts.push((word, text));
            } else {
                let nearest = nearest(&word.text, NUMBERS.into_iter().chain(TEXTS));
                let what = "part of a loop construct";
                return Err(Diagnostic::error(
                    word.span,
                    Problem::UnknownName { what, name: word.text, nearest },
                ));
            }
            self.eat(";");
        }
        Ok(ast)
    }
}
