//! Tokens to a case: items, declarations and statements. Expressions are in a part of their own.

mod expr;

use super::lexer::{Token, lex};
use super::source::{HexError, Source, Span};
use super::syntax::*;

/// How a file that a case includes is found: its text by the name in the `include`.
pub type Loader<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A case that includes nothing.
///
/// # Errors
/// The text is no Hex; the place is in the error.
pub fn parse(name: &str, text: &str) -> Result<(Case, Source), (HexError, Source)> {
    parse_with(name, text, &|file| Err(format!("`{file}`: this case cannot include files")))
}

/// A case with the files it includes.
///
/// # Errors
/// A text is no Hex, or a file cannot be read; the place is in the error.
pub fn parse_with(name: &str, text: &str, loader: Loader<'_>) -> Result<(Case, Source), (HexError, Source)> {
    let mut source = Source { files: vec![(name.to_owned(), text.to_owned())] };
    let mut case = Case::default();
    match file(&mut case, &mut source, 0, loader) {
        Ok(()) => Ok((case, source)),
        Err(error) => Err((error, source)),
    }
}

fn file(case: &mut Case, source: &mut Source, index: u16, loader: Loader<'_>) -> Result<(), HexError> {
    let tokens = lex(&source.files[usize::from(index)].1, index)?;
    let mut parser = Parser { tokens, at: 0, depth: 0, names: std::mem::take(&mut case.names) };
    let result = parser.items(case, source, loader);
    case.names = parser.names;
    result
}

struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    /// Expressions and blocks around the place.
    depth: usize,
    names: Names,
}

/// How deep expressions and blocks may be nested: what walks over them is recursive.
const DEEPEST: usize = 100;

/// Words that cannot name anything.
const RESERVED: &[&str] = &[
    "case",
    "include",
    "param",
    "require",
    "type",
    "fun",
    "index",
    "ir",
    "aligned",
    "accelerator",
    "mapping",
    "relate",
    "invariant",
    "output",
    "input",
    "tensor",
    "buffer",
    "reg",
    "command",
    "call",
    "for",
    "parfor",
    "loop",
    "until",
    "whereby",
    "if",
    "then",
    "else",
    "let",
    "and",
    "or",
    "not",
    "true",
    "false",
    "in",
    "over",
    "made",
    "used",
    "at",
    "ensure",
    "infer",
    "reads",
    "commutative",
];

/// Whether a word cannot name anything.
pub(crate) fn is_reserved(word: &str) -> bool {
    // Functions of the language are no words of its grammar, but a name would hide them.
    RESERVED.contains(&word)
        || ["add", "sub", "mul", "max", "min", "int", "hlo"].contains(&word)
        || word.strip_prefix("bv").is_some_and(|bits| bits.bytes().all(|b| b.is_ascii_digit()))
}

impl Parser {
    /// Parses a part of what is being parsed.
    fn deeper<T>(&mut self, part: fn(&mut Self) -> Result<T, HexError>) -> Result<T, HexError> {
        if self.depth == DEEPEST {
            return Err(HexError::new(self.span(), format!("nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let parsed = part(self);
        self.depth -= 1;
        parsed
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    fn error<T>(&self, wanted: &str) -> Result<T, HexError> {
        let found = match self.token() {
            Token::Word(word) => format!("`{word}`"),
            Token::Int(value) => format!("`{value}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the file".to_owned(),
        };
        Err(HexError::new(self.span(), format!("{wanted} is expected here, not {found}")))
    }

    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.token(), Token::Mark(found) if *found == mark)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Word(found) if found == word)
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let found = self.is_mark(mark);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn mark(&mut self, mark: &str) -> Result<(), HexError> {
        if self.take_mark(mark) { Ok(()) } else { self.error(&format!("`{mark}`")) }
    }

    fn word(&mut self, word: &str) -> Result<(), HexError> {
        if self.take_word(word) { Ok(()) } else { self.error(&format!("`{word}`")) }
    }

    fn raw_name(&mut self) -> Result<String, HexError> {
        match self.token() {
            Token::Word(word) if !RESERVED.contains(&word.as_str()) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => self.error("a name"),
        }
    }

    fn name(&mut self) -> Result<Sym, HexError> {
        let word = self.raw_name()?;
        Ok(self.names.intern(&word))
    }

    fn number(&mut self) -> Result<u32, HexError> {
        match *self.token() {
            Token::Int(value) if (1..=64).contains(&value) => {
                self.at += 1;
                Ok(u32::try_from(value).unwrap_or(0))
            }
            _ => self.error("a width from 1 to 64"),
        }
    }

    /// `(` items `)`, separated by commas.
    fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, HexError>,
    ) -> Result<Vec<T>, HexError> {
        self.mark(open)?;
        let mut items = Vec::new();
        while !self.is_mark(close) {
            items.push(item(self)?);
            if !self.take_mark(",") {
                break;
            }
        }
        self.mark(close)?;
        Ok(items)
    }

    fn items(&mut self, case: &mut Case, source: &mut Source, loader: Loader<'_>) -> Result<(), HexError> {
        while *self.token() != Token::End {
            let start = self.span();
            let Token::Word(word) = self.token().clone() else {
                return self.error("an item such as `param`");
            };
            self.at += 1;
            match word.as_str() {
                "case" => case.name = self.raw_name()?,
                "include" => self.include(case, source, loader)?,
                "param" => {
                    let name = self.name()?;
                    let range = if self.take_word("in") { Some(self.range()?) } else { None };
                    self.mark("=")?;
                    let value = self.expr()?;
                    case.params.push(Param { name, range, value, span: start.to(self.previous()) });
                }
                "require" => case.requires.push(self.expr()?),
                "type" => {
                    let name = self.name()?;
                    self.mark("=")?;
                    let (kind, bits) = self.elem_kind()?;
                    case.types.push(ElemType { name, kind, bits, span: start.to(self.previous()) });
                }
                "fun" => {
                    let function = self.function(start)?;
                    case.functions.push(function);
                }
                "index" => {
                    let name = self.name()?;
                    let params = self.list("(", ")", Self::name)?;
                    self.mark("=")?;
                    let body = self.expr()?;
                    case.macros.push(IndexMacro { name, params, body, span: start.to(self.previous()) });
                }
                "ir" => case.ir = self.side()?,
                "aligned" => case.aligned = Some(self.side()?),
                "mapping" => case.mapping = self.side()?,
                "accelerator" => self.accelerator(case)?,
                "relate" => {
                    self.mark("{")?;
                    while !self.take_mark("}") {
                        self.relation(case)?;
                    }
                }
                _ => {
                    self.at -= 1;
                    return self.error("an item such as `param`");
                }
            }
        }
        Ok(())
    }

    fn include(&mut self, case: &mut Case, source: &mut Source, loader: Loader<'_>) -> Result<(), HexError> {
        let Token::Text(name) = self.token().clone() else { return self.error("a file's name in quotes") };
        let span = self.span();
        self.at += 1;
        if source.files.iter().any(|(file, _)| *file == name) {
            return Err(HexError::new(span, format!("`{name}` is included already")));
        }
        let text = loader(&name).map_err(|reason| HexError::new(span, reason))?;
        let index = u16::try_from(source.files.len()).map_err(|_| HexError::new(span, "too many files"))?;
        source.files.push((name, text));
        case.names = std::mem::take(&mut self.names);
        let result = file(case, source, index, loader);
        self.names = std::mem::take(&mut case.names);
        result
    }

    fn range(&mut self) -> Result<(Expr, Expr), HexError> {
        let lo = self.expr()?;
        self.mark("..")?;
        Ok((lo, self.expr()?))
    }

    fn ty(&mut self) -> Result<Type, HexError> {
        let at = self.span();
        let word = self.raw_name()?;
        if word == "int" {
            return Ok(Type::Int);
        }
        match word.strip_prefix("bv").map(str::parse::<u32>) {
            Some(Ok(bits)) if (1..=62).contains(&bits) => Ok(Type::Bits(bits)),
            Some(Ok(_)) => Err(HexError::new(at, "a register has 1 to 62 bits")),
            _ => Ok(Type::Elem(self.names.intern(&word))),
        }
    }

    /// `unsigned 8`, `signed 8`, or `float 8 23` with the widths of exponent and mantissa.
    fn elem_kind(&mut self) -> Result<(ElemKind, u32), HexError> {
        Ok(match self.raw_name()?.as_str() {
            "signed" => (ElemKind::Signed, self.number()?),
            "unsigned" => (ElemKind::Unsigned, self.number()?),
            "float" => {
                let exponent = self.number()?;
                let bits = 1 + exponent + self.number()?;
                if exponent < 3 || bits > 64 {
                    self.at -= 1;
                    return self.error("a float of at most 64 bits, 3 or more of them its exponent's,");
                }
                (ElemKind::Float { exponent }, bits)
            }
            _ => {
                self.at -= 1;
                return self.error("`signed`, `unsigned` or `float`");
            }
        })
    }

    fn function(&mut self, start: Span) -> Result<Function, HexError> {
        let name = self.name()?;
        let params = self.list("(", ")", |parser| {
            let name = parser.name()?;
            parser.mark(":")?;
            Ok((name, parser.ty()?))
        })?;
        self.mark(":")?;
        let result = self.ty()?;
        let commutative = self.take_word("commutative");
        let (mut concrete, mut foreign) = (None, None);
        if self.take_mark("=") {
            let operator = match self.tokens.get(self.at + 1) {
                Some((Token::Text(text), _)) if self.is_word("hlo") => Some(text.clone()),
                _ => None,
            };
            if operator.is_some() {
                self.at += 2;
                foreign = operator;
            } else {
                concrete = Some(self.expr()?);
            }
        }
        let reads = if self.take_word("reads") { Some(self.expr()?) } else { None };
        let span = start.to(self.previous());
        Ok(Function { name, params, result, commutative, concrete, foreign, reads, span })
    }

    /// `buffer A[2, 3]: u8`, if one starts here.
    fn decl(&mut self) -> Result<Option<Decl>, HexError> {
        let role = match self.token() {
            Token::Word(word) => match word.as_str() {
                "input" => Role::Input,
                "output" => Role::Output,
                "tensor" | "buffer" | "reg" => Role::State,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let start = self.span();
        self.at += 1;
        let name = self.name()?;
        let dims = if self.is_mark("[") { self.list("[", "]", Self::expr)? } else { Vec::new() };
        self.mark(":")?;
        let ty = self.ty()?;
        Ok(Some(Decl { name, role, dims, ty, span: start.to(self.previous()) }))
    }

    fn side(&mut self) -> Result<Block, HexError> {
        self.mark("{")?;
        let mut decls = Vec::new();
        while let Some(decl) = self.decl()? {
            decls.push(decl);
        }
        Ok(Block { decls, body: self.rest_of_block()? })
    }

    fn accelerator(&mut self, case: &mut Case) -> Result<(), HexError> {
        self.raw_name()?;
        self.mark("{")?;
        while let Some(decl) = self.decl()? {
            case.state.push(decl);
        }
        while !self.take_mark("}") {
            let start = self.span();
            self.word("command")?;
            let name = self.name()?;
            let params = self.list("(", ")", Self::name)?;
            let body = self.block()?;
            case.calls.push(CallDef { name, params, body, span: start.to(self.previous()) });
        }
        Ok(())
    }

    fn vars(&mut self) -> Result<Vec<(Sym, Expr, Expr)>, HexError> {
        let mut vars = Vec::new();
        loop {
            let name = self.name()?;
            self.word("in")?;
            let (lo, hi) = self.range()?;
            vars.push((name, lo, hi));
            if !self.take_mark(",") {
                return Ok(vars);
            }
        }
    }

    fn position(&mut self) -> Result<Position, HexError> {
        self.list("(", ")", |parser| {
            let value = parser.expr()?;
            parser.mark("@")?;
            Ok((value, parser.name()?))
        })
    }

    /// `A[..] == B[..] over v in 0..n made (..) used (..) at L`, `ensure ..`, or `invariant at L: formula`.
    fn relation(&mut self, case: &mut Case) -> Result<(), HexError> {
        let start = self.span();
        if self.take_word("invariant") {
            self.word("at")?;
            let at = self.name()?;
            self.mark(":")?;
            let formula = self.expr()?;
            case.invariants.push(Invariant { at, formula, span: start.to(self.previous()) });
            return Ok(());
        }
        if self.take_word("infer") {
            case.infer = true;
            return Ok(());
        }
        let ensure = self.take_word("ensure");
        let left = self.sum()?;
        self.mark("==")?;
        let right = self.sum()?;
        let vars = if self.take_word("over") { self.vars()? } else { Vec::new() };
        if ensure {
            case.posts.push(Post { left, right, vars, span: start.to(self.previous()) });
            return Ok(());
        }
        let made = if self.take_word("made") { self.position()? } else { Vec::new() };
        let used = if self.take_word("used") { self.position()? } else { Vec::new() };
        let mut at = Vec::new();
        if self.take_word("at") {
            at.push(self.name()?);
            while self.take_mark(",") {
                at.push(self.name()?);
            }
        }
        case.relations.push(Relation { left, right, vars, made, used, at, span: start.to(self.previous()) });
        Ok(())
    }

    fn block(&mut self) -> Result<Vec<Stmt>, HexError> {
        self.mark("{")?;
        self.deeper(Self::rest_of_block)
    }

    fn rest_of_block(&mut self) -> Result<Vec<Stmt>, HexError> {
        let mut body = Vec::new();
        while !self.take_mark("}") {
            body.push(self.stmt()?);
        }
        Ok(body)
    }

    fn stmt(&mut self) -> Result<Stmt, HexError> {
        let start = self.span();
        let kind = if self.take_word("let") {
            let name = self.name()?;
            self.mark(":=")?;
            StmtKind::Let(name, self.expr()?)
        } else if self.take_word("if") {
            let condition = self.expr()?;
            let then = self.block()?;
            let other = if self.take_word("else") { self.block()? } else { Vec::new() };
            StmtKind::If(condition, then, other)
        } else if self.take_word("call") {
            let name = self.name()?;
            StmtKind::Call(name, self.list("(", ")", Self::expr)?)
        } else if self.take_word("for") {
            StmtKind::Loop(Box::new(self.counted(LoopKind::Counted)?))
        } else if self.take_word("parfor") {
            StmtKind::Loop(Box::new(self.counted(LoopKind::Parallel)?))
        } else if self.take_word("loop") {
            StmtKind::Loop(Box::new(self.counted(LoopKind::Hardware)?))
        } else {
            let name = self.name()?;
            let indices = if self.is_mark("[") { self.list("[", "]", Self::expr)? } else { Vec::new() };
            self.mark(":=")?;
            StmtKind::Assign(name, indices, self.expr()?)
        };
        Ok(Stmt { kind, span: start.to(self.previous()) })
    }

    fn counted(&mut self, kind: LoopKind) -> Result<Loop, HexError> {
        let counter = self.name()?;
        self.word("in")?;
        let (lo, hi) = self.range()?;
        let label = if self.take_mark("@") { Some(self.name()?) } else { None };
        let mut whereby = Vec::new();
        if self.take_word("whereby") {
            whereby.push(self.expr()?);
            while self.take_mark(",") {
                whereby.push(self.expr()?);
            }
        }
        let body = self.block()?;
        let until = match kind {
            LoopKind::Hardware => {
                self.word("until")?;
                Some(self.expr()?)
            }
            _ => None,
        };
        Ok(Loop { kind, label, counter, lo, hi, whereby, until, body })
    }
}
