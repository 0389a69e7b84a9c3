//! Tokens to the tree of a description: items and the bodies of instructions. After a fault it goes on at the next
//! item, part of an instruction or statement (`recovery.rs`).

use super::ast::{
    AttrAst, AttrKindAst, BufferAst, DevicePart, InstrAst, Item, Name, SliceAst, SliceKindAst, Term,
};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::lexer::{Token, tokens};
use super::recovery::{Layout, layout};
use act_hlo::ElemType;

pub(super) struct Parser {
    tokens: Vec<(Token, Span)>,
    pub(super) at: usize,
    pub(super) lines: Vec<Layout>,
    pub(super) faults: Vec<Diagnostic>,
    /// Nesting of the term being parsed.
    pub(super) depth: usize,
}

pub(super) type Parsed<T> = Result<T, Diagnostic>;

pub(super) const ITEMS: [&str; 14] = [
    "isa", "hbm", "buffer", "register", "const", "unit", "units", "queue", "banks", "prologue", "epilogue",
    "fence", "loop", "instr",
];
pub(super) const PARTS: [&str; 10] =
    ["in", "out", "require", "update", "cost", "unit", "asm", "encode", "computation", "ENTRY"];

/// Sizes in bytes, by powers of two as everywhere in the TAIDL papers.
pub(super) const SIZE_UNITS: [(&str, u64); 4] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// A text as far as it could be understood.
pub(super) struct ParsedText {
    /// Without the items that have a fault.
    pub items: Vec<Item>,
    pub faults: Vec<Diagnostic>,
    /// Whether something other than an instruction is missing from the items.
    pub declarations_lost: bool,
}

pub(super) fn parse(text: &str) -> ParsedText {
    let mut parser = Parser::new(text);
    let mut items = Vec::new();
    let mut declarations_lost = !parser.faults.is_empty();
    while *parser.peek() != Token::End {
        let (start, known) = (parser.at, parser.faults.len());
        let instr = parser.is_word("instr");
        match parser.item() {
            Ok(item) if parser.faults.len() == known => items.push(item),
            Ok(_) => {}
            Err(fault) => {
                parser.faults.push(fault);
                parser.skip_to_item(start);
            }
        }
        declarations_lost |= !instr && parser.faults.len() > known;
        if parser.gives_up() {
            declarations_lost = true;
            break;
        }
        parser.eat(";");
    }
    ParsedText { items, faults: parser.faults, declarations_lost }
}

/// The faults of a lone semantics block, `ENTRY name { .. }` or `{ .. }`.
pub(super) fn parse_block(text: &str) -> Vec<Diagnostic> {
    let mut parser = Parser::new(text);
    let block = |p: &mut Parser| {
        if p.eat_word("ENTRY") {
            p.name("the computation's name")?;
        }
        p.computation()?;
        match p.peek() {
            Token::End => Ok(()),
            _ => p.unexpected("the end of the block"),
        }
    };
    if let Err(fault) = block(&mut parser) {
        parser.faults.push(fault);
    }
    parser.faults
}

impl Parser {
    fn new(text: &str) -> Parser {
        let found = tokens(text);
        let lines = layout(text, &found.list);
        Parser { tokens: found.list, at: 0, lines, faults: found.faults, depth: 0 }
    }

    pub(super) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.at + ahead).map_or(&Token::End, |(token, _)| token)
    }

    /// A text that is one term.
    pub(super) fn lone_term(text: &str) -> Parsed<Term> {
        let mut parser = Parser::new(text);
        if let Some(fault) = parser.faults.pop() {
            return Err(fault);
        }
        let term = parser.term()?;
        match parser.peek() {
            Token::End => Ok(term),
            _ => parser.unexpected("the end of the expression"),
        }
    }

    pub(super) fn taken_since(&self, start: usize) -> impl Iterator<Item = &Token> {
        self.tokens.get(start..self.at).unwrap_or_default().iter().map(|(token, _)| token)
    }

    /// Place of the next token; at the end of the file, of its end.
    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(Span::default(), |(_, span)| *span)
    }

    /// Place of the token just taken.
    pub(super) fn last_span(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(Span::default(), |(_, span)| *span)
    }

    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len());
    }

    pub(super) fn is(&self, punct: &str) -> bool {
        matches!(self.peek(), Token::Punct(p) if *p == punct)
    }

    pub(super) fn eat(&mut self, punct: &str) -> bool {
        let found = self.is(punct);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Ident(name) if name == word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn unexpected<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        let problem = Problem::Expected { expected: expected.into(), found: self.peek().describe() };
        Err(Diagnostic::error(self.span(), problem))
    }

    pub(super) fn expect(&mut self, punct: &'static str) -> Parsed<()> {
        if self.eat(punct) { Ok(()) } else { self.unexpected(format!("`{punct}`")) }
    }

    /// A name; HLO's `%` in front of it is dropped.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.is("%") && matches!(self.peek_at(1), Token::Ident(_)) {
            self.advance();
        }
        let span = self.span();
        match self.peek() {
            Token::Ident(text) => {
                let text = text.clone();
                self.advance();
                Ok(Name { text, span })
            }
            _ => self.unexpected(what),
        }
    }

    /// `part {, part}` up to `close`, which is taken; possibly empty.
    pub(super) fn list<T>(
        &mut self,
        close: &'static str,
        mut part: impl FnMut(&mut Parser) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut parts = Vec::new();
        if self.eat(close) {
            return Ok(parts);
        }
        loop {
            parts.push(part(self)?);
            if self.eat(close) {
                return Ok(parts);
            }
            if !self.eat(",") {
                return self.unexpected(format!("`,` or `{close}`"));
            }
        }
    }

    fn unknown_word<T>(&self, what: &'static str, words: &[&str]) -> Parsed<T> {
        match self.peek() {
            Token::Ident(name) => {
                let nearest = nearest(name, words.iter().copied());
                let problem = Problem::UnknownName { what, name: name.clone(), nearest };
                Err(Diagnostic::error(self.span(), problem))
            }
            _ => self.unexpected(format!("one of {}", words.join(", "))),
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        let word = match self.peek() {
            Token::Ident(word) => word.clone(),
            _ => return self.unknown_word("item", &ITEMS),
        };
        if !ITEMS.contains(&word.as_str()) {
            return self.unknown_word("item", &ITEMS);
        }
        self.advance();
        Ok(match word.as_str() {
            "isa" => Item::Isa(self.name("the accelerator's name")?),
            "hbm" => self.hbm()?,
            "buffer" => Item::Buffer(self.buffer()?),
            "register" | "const" => {
                let name = self.name("a name")?;
                self.expect("=")?;
                let value = self.term()?;
                if word == "const" { Item::Const(name, value) } else { Item::Register(name, value) }
            }
            "instr" => Item::Instr(Box::new(self.instr()?)),
            "loop" => Item::Loop(self.loop_construct()?),
            "queue" => Item::Timing(self.queue()?),
            "banks" => Item::Timing(self.banks()?),
            "prologue" | "epilogue" | "fence" => {
                let start = self.span();
                if !self.eat_word("encode") {
                    return self.unexpected("`encode`");
                }
                let encoding = self.encoding()?;
                let span = start.to(self.last_span());
                let part = match word.as_str() {
                    "prologue" => DevicePart::Prologue,
                    "epilogue" => DevicePart::Epilogue,
                    _ => DevicePart::Fence,
                };
                Item::Device(part, encoding, span)
            }
            _ => {
                let mut names = vec![self.name("a unit's name")?];
                while self.eat(",") {
                    names.push(self.name("a unit's name")?);
                }
                Item::Units(names)
            }
        })
    }

    /// `hbm d0: 1 MiB align 64 ordered`; what follows the size in any order and each at most once.
    fn hbm(&mut self) -> Parsed<Item> {
        let name = self.name("the name of main memory")?;
        self.expect(":")?;
        let size = self.term()?;
        let mut scale = 1;
        if let Token::Ident(unit) = self.peek() {
            let canonical = match unit.strip_suffix('B') {
                Some(prefix) if !prefix.ends_with('i') => format!("{prefix}iB"),
                _ => unit.clone(),
            };
            if let Some(&(_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| *name == canonical) {
                scale = bytes;
                self.advance();
            } else if unit == "B" {
                self.advance();
            } else if !matches!(unit.as_str(), "align" | "ordered") && !ITEMS.contains(&unit.as_str()) {
                let units = SIZE_UNITS.iter().map(|(name, _)| *name);
                let nearest = units
                    .clone()
                    .find(|name| name.eq_ignore_ascii_case(&canonical))
                    .map(str::to_owned)
                    .or_else(|| nearest(unit, units));
                let problem = Problem::UnknownName { what: "unit of size", name: unit.clone(), nearest };
                return Err(Diagnostic::error(self.span(), problem));
            }
        }
        let (mut align, mut ordered) = (None, false);
        loop {
            let span = self.span();
            let repeated = |what: &'static str| {
                let of = format!("main memory `{}`", name.text);
                Err(Diagnostic::error(span, Problem::Repeated { what, of }))
            };
            if self.eat_word("align") {
                if align.replace(self.term()?).is_some() {
                    return repeated("alignment");
                }
            } else if self.eat_word("ordered") {
                if std::mem::replace(&mut ordered, true) {
                    return repeated("`ordered`");
                }
            } else {
                return Ok(Item::Hbm { name, size, scale, align, ordered });
            }
        }
    }

    /// `buffer d1: bf16[128 | 64] align(2)`
    fn buffer(&mut self) -> Parsed<BufferAst> {
        let name = self.name("a buffer's name")?;
        self.expect(":")?;
        let elem = self.elem()?;
        self.expect("[")?;
        let mut access = Vec::new();
        while !self.is("|") && !self.is("]") {
            access.push(self.term()?);
            if !self.eat(",") && !self.is("|") && !self.is("]") {
                return self.unexpected("`,`, `|` or `]`");
            }
        }
        let unit = if self.eat("|") {
            self.list("]", Parser::term)?
        } else {
            self.expect("]")?;
            Vec::new()
        };
        let mut buffer = BufferAst { name, elem, access, unit, align: None, nospill: false, init: None };
        while self.buffer_option(&mut buffer)? {}
        Ok(buffer)
    }

    /// `align(2)`, `nospill`, `init 0`, in any order and each at most once.
    fn buffer_option(&mut self, buffer: &mut BufferAst) -> Parsed<bool> {
        let span = self.span();
        let repeated = |what: &'static str| {
            let of = format!("buffer `{}`", buffer.name.text);
            Err(Diagnostic::error(span, Problem::Repeated { what, of }))
        };
        if self.eat_word("align") {
            let start = self.span();
            self.expect("(")?;
            let terms = self.list(")", Parser::term)?;
            if buffer.align.replace((terms, start.to(self.last_span()))).is_some() {
                return repeated("alignment");
            }
        } else if self.eat_word("nospill") {
            if std::mem::replace(&mut buffer.nospill, true) {
                return repeated("`nospill`");
            }
        } else if self.eat_word("init") {
            let start = self.span();
            let value = self.constant(0)?;
            if buffer.init.replace((value, start.to(self.last_span()))).is_some() {
                return repeated("initial value");
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    pub(super) fn elem(&mut self) -> Parsed<ElemType> {
        let name = self.name("an element type")?;
        name.text.parse().map_err(|_| {
            let nearest = nearest(&name.text, ElemType::ALL.iter().map(|e| e.name()));
            Diagnostic::error(
                name.span,
                Problem::UnknownName { what: "element type", name: name.text, nearest },
            )
        })
    }

    fn attrs(&mut self) -> Parsed<Vec<AttrAst>> {
        self.expect("(")?;
        self.list(")", |p| {
            let name = p.name("an attribute's name")?;
            let kind = if !p.eat(":") {
                AttrKindAst::Plain
            } else if p.eat_word("f32") {
                AttrKindAst::F32
            } else if p.is("{") {
                let start = p.span();
                p.expect("{")?;
                let values = p.list("}", Parser::term)?;
                AttrKindAst::Set(values, start.to(p.last_span()))
            } else {
                let min = p.term()?;
                p.expect("..")?;
                let open = p.is(",") || p.is(")");
                AttrKindAst::Range(min, if open { None } else { Some(p.term()?) })
            };
            Ok(AttrAst { name, kind })
        })
    }

    fn instr(&mut self) -> Parsed<InstrAst> {
        let name = self.name("an instruction's name")?;
        let mut instr = InstrAst {
            name,
            alpha: Vec::new(),
            beta: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            requires: Vec::new(),
            updates: Vec::new(),
            cost: None,
            unit: None,
            asm: None,
            computation: None,
            encodings: Vec::new(),
        };
        let (mut alpha, mut beta) = (false, false);
        loop {
            if !alpha && self.eat_word("alpha") {
                alpha = true;
                instr.alpha = self.attrs()?;
            } else if !beta && self.eat_word("beta") {
                beta = true;
                instr.beta = self.attrs()?;
            } else {
                break;
            }
        }
        self.expect("{")?;
        while !self.eat("}") {
            if *self.peek() == Token::End || self.at_left_item() {
                return self.unexpected(format!("`}}` of instruction `{}`", instr.name.text));
            }
            let start = self.at;
            if let Err(fault) = self.part(&mut instr) {
                self.faults.push(fault);
                self.depth = 0;
                self.skip_to_part(start);
            }
            self.eat(";");
        }
        Ok(instr)
    }

    fn part(&mut self, instr: &mut InstrAst) -> Parsed<()> {
        let span = self.span();
        let word = match self.peek() {
            Token::Ident(word) if PARTS.contains(&word.as_str()) => word.clone(),
            _ => return self.unknown_word("part of an instruction", &PARTS),
        };
        let repeated = |what: &'static str, of: &InstrAst| {
            let of = format!("instruction `{}`", of.name.text);
            Err(Diagnostic::error(span, Problem::Repeated { what, of }))
        };
        self.advance();
        match word.as_str() {
            "in" => instr.inputs.push(self.slice()?),
            "out" => instr.outputs.push(self.slice()?),
            "require" => {
                instr.requires.push(self.term()?);
                if self.is("=") {
                    return self.unexpected("`==`");
                }
            }
            "encode" => instr.encodings.push(self.encoding()?),
            "update" => {
                let register = self.name("a register")?;
                self.expect("=")?;
                instr.updates.push((register, self.term()?));
            }
            "cost" if instr.cost.is_some() => return repeated("cost", instr),
            "cost" => instr.cost = Some(self.term()?),
            "unit" if instr.unit.is_some() => return repeated("unit", instr),
            "unit" => instr.unit = Some(self.name("a unit's name")?),
            "asm" if instr.asm.is_some() => return repeated("asm", instr),
            "asm" => instr.asm = Some(self.asm()?),
            _ if instr.computation.is_some() => return repeated("computation", instr),
            "computation" => {
                if self.eat_word("ENTRY") {
                    self.name("the computation's name")?;
                }
                instr.computation = Some(self.computation()?);
            }
            _ => {
                self.name("the computation's name")?;
                instr.computation = Some(self.computation()?);
            }
        }
        Ok(())
    }

    /// One string per line of assembly.
    pub(super) fn asm(&mut self) -> Parsed<(String, Span)> {
        let start = self.span();
        let mut lines: Vec<String> = Vec::new();
        while let Token::Str(line) = self.peek() {
            lines.push(line.clone());
            self.advance();
        }
        if lines.is_empty() {
            return self.unexpected("a string");
        }
        Ok((lines.join("\n"), start.to(self.last_span())))
    }

    fn slice(&mut self) -> Parsed<SliceAst> {
        let memory = self.name("a buffer or main memory")?;
        self.expect("[")?;
        let kind = if self.eat("]") {
            SliceKindAst::Box(Vec::new())
        } else {
            let first = self.term()?;
            if self.eat(";") {
                let dims = self.list("]", |p| {
                    let len = p.term()?;
                    let stride = if p.eat_word("by") { Some(p.term()?) } else { None };
                    Ok((len, stride))
                })?;
                SliceKindAst::Window(first, dims)
            } else {
                SliceKindAst::Box(self.box_dims(first)?)
            }
        };
        let span = memory.span.to(self.last_span());
        Ok(SliceAst { memory, kind, span })
    }

    fn box_dims(&mut self, first: Term) -> Parsed<Vec<(Term, Term)>> {
        self.expect(":+")?;
        let mut dims = vec![(first, self.term()?)];
        while self.eat(",") {
            let start = self.term()?;
            self.expect(":+")?;
            dims.push((start, self.term()?));
        }
        if !self.eat("]") {
            return self.unexpected("`,` or `]`");
        }
        Ok(dims)
    }
}
