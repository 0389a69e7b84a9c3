//! Tokens to the statements of a computation block, which look like HLO text.

use super::ast::{ArgsAst, ComputationAst, ConstantAst, Name, OptionAst, StepAst, StmtAst, Term, TermKind};
use super::diagnostic::Span;
use super::lexer::Token;
use super::parse_term::MAX_NESTING;
use super::parser::{Parsed, Parser};
use crate::syntax::diagnostic::{Diagnostic, Problem};

impl Parser {
    /// `{ stmt .. [return name, ..] }`
    pub(super) fn computation(&mut self) -> Parsed<ComputationAst> {
        let start = self.span();
        self.expect("{")?;
        let mut steps = Vec::new();
        let mut returns = None;
        loop {
            if self.eat("}") {
                return Ok(ComputationAst { steps, returns, span: start });
            }
            // A statement may itself be called `return` or `ROOT`.
            let keyword = !matches!(self.peek_at(1), Token::Punct("="));
            if keyword && self.is_word("return") {
                self.advance();
                let mut names = vec![self.name("a statement's name")?];
                while self.eat(",") {
                    names.push(self.name("a statement's name")?);
                }
                self.eat(";");
                self.expect("}")?;
                returns = Some(names);
                return Ok(ComputationAst { steps, returns, span: start });
            }
            if *self.peek() == Token::End || self.at_left_item() {
                return self.unexpected("`}` of the block");
            }
            self.step_or_fault(&mut steps, 0);
        }
    }

    /// One more step, or a noted fault and what follows it.
    fn step_or_fault(&mut self, steps: &mut Vec<StepAst>, depth: usize) {
        let at = self.at;
        match self.step(depth) {
            Ok(step) => {
                steps.push(step);
                self.eat(";");
            }
            Err(fault) => {
                self.faults.push(fault);
                self.depth = 0;
                self.skip_to_statement(at);
            }
        }
    }

    /// A statement, `if COND { .. } [else { .. }]` or `repeat NAME in COUNT { .. }`.
    fn step(&mut self, depth: usize) -> Parsed<StepAst> {
        // A statement may itself be called `if`, `repeat` or `ROOT`.
        let keyword = !matches!(self.peek_at(1), Token::Punct("="));
        if keyword && self.eat_word("if") {
            let cond = self.term()?;
            let then = self.nested(depth + 1)?;
            let otherwise = if !self.eat_word("else") {
                Vec::new()
            } else if self.is_word("if") {
                vec![self.step(depth + 1)?]
            } else {
                self.nested(depth + 1)?
            };
            return Ok(StepAst::If { cond, then, otherwise });
        }
        if keyword && self.eat_word("repeat") {
            let name = self.name("the name of the round")?;
            if !self.eat_word("in") {
                return self.unexpected("`in` and how often");
            }
            let count = self.term()?;
            return Ok(StepAst::Repeat { name, count, body: self.nested(depth + 1)? });
        }
        let root = keyword && self.eat_word("ROOT");
        if root && depth > 0 {
            let problem = Problem::NestedRoot;
            return Err(Diagnostic::error(self.last_span(), problem));
        }
        Ok(StepAst::Stmt(self.stmt(root)?))
    }

    /// `{ step .. }`
    fn nested(&mut self, depth: usize) -> Parsed<Vec<StepAst>> {
        if depth > MAX_NESTING {
            return Err(Diagnostic::error(self.span(), Problem::TooDeep(MAX_NESTING)));
        }
        self.expect("{")?;
        let mut steps = Vec::new();
        while !self.eat("}") {
            if *self.peek() == Token::End || self.at_left_item() || self.gives_up() {
                return self.unexpected("`}` of the block");
            }
            self.step_or_fault(&mut steps, depth);
        }
        Ok(steps)
    }

    fn stmt(&mut self, root: bool) -> Parsed<StmtAst> {
        let name = self.name("a statement's name, `return` or `}`")?;
        self.expect("=")?;
        let elem = self.elem()?;
        self.expect("[")?;
        let dims = self.list("]", Parser::term)?;
        let op = self.operator_name()?;
        self.expect("(")?;
        let args = match op.text.as_str() {
            "parameter" => {
                let index = self.term()?;
                self.expect(")")?;
                ArgsAst::Parameter(index)
            }
            "constant" => {
                let constant = self.constant(0)?;
                self.expect(")")?;
                ArgsAst::Constant(constant)
            }
            _ => ArgsAst::Operands(self.list(")", |p| p.name("an operand"))?),
        };
        let mut options = Vec::new();
        while self.eat(",") {
            let name = self.name("an attribute of the operator")?;
            self.expect("=")?;
            let value =
                if name.text == "init" { OptionAst::Constant(self.constant(0)?) } else { self.option()? };
            options.push((name, value));
        }
        let span = name.span.to(self.last_span());
        Ok(StmtAst { root, name, elem, dims, op, args, options, span })
    }

    /// An operator's name: words joined by `-` without blanks. `_` stands for `-` as in the released TAIDL.
    fn operator_name(&mut self) -> Parsed<Name> {
        let mut name = self.name("an operator")?;
        while self.is("-") && self.span().start == name.span.end {
            self.advance();
            let part = self.name("the rest of the operator's name")?;
            name.text = format!("{}-{}", name.text, part.text);
            name.span = name.span.to(part.span);
        }
        name.text = name.text.replace('_', "-");
        Ok(name)
    }

    fn option(&mut self) -> Parsed<OptionAst> {
        if self.is("%") {
            // `to_apply=%add`, as HLO refers to a computation.
            let name = self.name("a name")?;
            return Ok(OptionAst::Word(Term::new(TermKind::Name(name.text), name.span)?));
        }
        if !self.eat("{") {
            return Ok(OptionAst::Word(self.term()?));
        }
        if !self.is("[") {
            return Ok(OptionAst::Terms(self.list("}", Parser::term)?));
        }
        Ok(OptionAst::Ranges(self.list("}", |p| {
            p.expect("[")?;
            let start = p.term()?;
            p.expect(":")?;
            let limit = p.term()?;
            let stride = if p.eat(":") { Some(p.term()?) } else { None };
            p.expect("]")?;
            Ok((start, limit, stride))
        })?))
    }

    pub(super) fn constant(&mut self, depth: usize) -> Parsed<ConstantAst> {
        let start = self.span();
        if depth > MAX_NESTING {
            return Err(Diagnostic::error(start, Problem::TooDeep(MAX_NESTING)));
        }
        if self.eat("{") {
            let items = self.list("}", |p| p.constant(depth + 1))?;
            return Ok(ConstantAst::List(items, start.to(self.last_span())));
        }
        if self.is("`") && self.is_float_at(1 + usize::from(matches!(self.peek_at(1), Token::Punct("-")))) {
            self.advance();
            let constant = self.constant(depth + 1)?;
            self.expect("`")?;
            return Ok(constant);
        }
        let negative = self.is("-");
        let number = self.peek_at(usize::from(negative)).clone();
        let mut float = |value: f64| {
            if negative {
                self.advance();
            }
            self.advance();
            let span: Span = start.to(self.last_span());
            Ok(ConstantAst::Float(if negative { -value } else { value }, span))
        };
        match number {
            Token::Float(value) => float(value),
            Token::Ident(word) if word == "inf" => float(f64::INFINITY),
            Token::Ident(word) if word == "nan" => float(f64::NAN),
            Token::Ident(word) if !negative && (word == "true" || word == "false") => {
                self.advance();
                let term = Term::new(TermKind::Int(i128::from(word == "true")), start)?;
                Ok(ConstantAst::Term(term))
            }
            Token::Hex(bits) if !negative => {
                self.advance();
                Ok(ConstantAst::Hex(bits, start))
            }
            _ => Ok(ConstantAst::Term(self.term()?)),
        }
    }

    /// Whether the token is one that only a constant may be.
    fn is_float_at(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            Token::Float(_) => true,
            Token::Ident(word) => matches!(word.as_str(), "inf" | "nan" | "true" | "false"),
            _ => false,
        }
    }
}
