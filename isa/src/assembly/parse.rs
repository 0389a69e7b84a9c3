//! Text back to assembly and loop programs, by the templates of the description.

use super::address::{parse_address, parse_affine};
use super::template::{Attr, Piece, TemplateError, is_word, pieces};
use super::{AsmInstr, Assembly, AttrVal, BetaVal};
use crate::model::{AttrKind, Instr, InstrId, Isa};
use crate::program::Affine;
use crate::program::{LoopId, LoopProgram, Program, View};

/// What is wrong with assembly text, and in which line (from 1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct AssemblyError {
    pub line: usize,
    pub problem: AssemblyProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyProblem {
    #[error("no instruction is written like `{0}`")]
    UnknownInstruction(String),
    #[error("`{text}` is no value of attribute `{attr}` of {instr}")]
    BadValue { instr: String, attr: String, text: String },
    #[error("expected {expected}, found {found}")]
    Expected { expected: &'static str, found: String },
    #[error("{0} is given twice")]
    Repeated(&'static str),
    #[error("loops nest deeper than {0} levels")]
    TooDeep(usize),
    #[error("instruction `{instr}`: {error}")]
    Template { instr: String, error: TemplateError },
}

const MAX_DEPTH: usize = 64;

/// Reads what [`super::print_assembly`] writes.
///
/// # Errors
/// The first line that is no instruction, with the reason.
pub fn parse_assembly(isa: &Isa, text: &str) -> Result<Assembly, AssemblyError> {
    let mut reader = Reader::new(isa, text)?;
    let header = reader.header(false)?;
    let mut instrs = Vec::new();
    while reader.peek().is_some() {
        let (op, alpha, beta) = reader.instr(beta_value)?;
        instrs.push(AsmInstr { op, alpha, beta });
    }
    Ok(Assembly { instrs, consts: header.consts, scratch_bytes: header.scratch })
}

/// Reads what [`super::print_program`] writes. Nested sequences come back as one.
///
/// # Errors
/// As [`parse_assembly`].
pub fn parse_program(isa: &Isa, text: &str) -> Result<LoopProgram, AssemblyError> {
    let mut reader = Reader::new(isa, text)?;
    let header = reader.header(true)?;
    let body = Program::Seq(reader.body(0)?);
    Ok(LoopProgram {
        body,
        operands: header.operands,
        results: header.results,
        scratch_bytes: header.scratch,
        consts: header.consts,
    })
}

/// Reads one instruction whose addressing attributes may be any words, as they are where operands stand for them;
/// gives the words in the order of the description.
///
/// # Errors
/// As [`parse_assembly`]; text behind the instruction.
pub fn parse_operand_form(
    isa: &Isa,
    text: &str,
) -> Result<(InstrId, Vec<AttrVal>, Vec<String>), AssemblyError> {
    let mut reader = Reader::new(isa, text)?;
    let found = reader.instr(|_, _, word| Some(word.to_owned()))?;
    if reader.peek().is_some() {
        return reader.expected("the end of the instruction");
    }
    Ok(found)
}

/// The value of addressing attribute `k` where it is written out.
fn beta_value(instr: &Instr, k: usize, word: &str) -> Option<BetaVal> {
    if instr.is_address(k) {
        parse_address(word).map(|(space, offset)| BetaVal::Hbm(space, offset))
    } else {
        parse_affine(word).map(BetaVal::Int)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Mark(char),
}

#[derive(Default)]
struct Header {
    operands: Vec<u64>,
    results: Vec<u64>,
    scratch: u64,
    consts: Vec<u8>,
}

struct Reader<'a> {
    isa: &'a Isa,
    templates: Vec<Vec<Piece>>,
    tokens: Vec<(Token, usize)>,
    at: usize,
}

type Found<T> = Result<T, AssemblyError>;

impl<'a> Reader<'a> {
    fn new(isa: &'a Isa, text: &str) -> Found<Reader<'a>> {
        let mut templates = Vec::with_capacity(isa.instrs.len());
        for instr in &isa.instrs {
            templates.push(pieces(instr).map_err(|error| AssemblyError {
                line: 0,
                problem: AssemblyProblem::Template { instr: instr.name.clone(), error },
            })?);
        }
        let mut tokens = Vec::new();
        for (k, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or("");
            let mut word = String::new();
            for c in line.chars().chain([' ']) {
                if is_word(c) {
                    word.push(c);
                    continue;
                }
                if !word.is_empty() {
                    tokens.push((Token::Word(std::mem::take(&mut word)), k + 1));
                }
                if !c.is_whitespace() {
                    tokens.push((Token::Mark(c), k + 1));
                }
            }
        }
        Ok(Reader { isa, templates, tokens, at: 0 })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn fail<T>(&self, problem: AssemblyProblem) -> Found<T> {
        let line = self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(_, line)| *line);
        Err(AssemblyError { line, problem })
    }

    fn expected<T>(&self, expected: &'static str) -> Found<T> {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Mark(c)) => format!("`{c}`"),
        };
        self.fail(AssemblyProblem::Expected { expected, found })
    }

    fn is_word(&self, text: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word == text)
    }

    fn eat_word(&mut self, text: &str) -> bool {
        let found = self.is_word(text);
        self.at += usize::from(found);
        found
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    /// A word that `read` understands.
    fn word<T>(&mut self, expected: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Found<T> {
        let value = match self.peek() {
            Some(Token::Word(word)) => read(word),
            _ => None,
        };
        match value {
            Some(value) => {
                self.at += 1;
                Ok(value)
            }
            None => self.expected(expected),
        }
    }

    /// Whether a word here belongs to an instruction is decided by its template; header words are reserved.
    fn header(&mut self, segments: bool) -> Found<Header> {
        let mut header = Header::default();
        let mut seen: Vec<&'static str> = Vec::new();
        loop {
            let words: &[&'static str] =
                if segments { &["operands", "results", "scratch", "consts"] } else { &["scratch", "consts"] };
            let Some(&word) = words.iter().find(|w| self.is_word(w)) else { return Ok(header) };
            if seen.contains(&word) {
                return self.fail(AssemblyProblem::Repeated(word));
            }
            seen.push(word);
            self.at += 1;
            match word {
                "scratch" => header.scratch = self.word("a number of bytes", |w| w.parse().ok())?,
                "consts" => header.consts = self.word("0x and hexadecimal digits", bytes)?,
                _ => {
                    let list = if word == "operands" { &mut header.operands } else { &mut header.results };
                    loop {
                        list.push(self.word("a number of bytes", |w| w.parse().ok())?);
                        if !self.eat(',') {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Statements up to the end of the text, or to the brace that closes a loop.
    fn body(&mut self, depth: usize) -> Found<Vec<Program>> {
        if depth > MAX_DEPTH {
            return self.fail(AssemblyProblem::TooDeep(MAX_DEPTH));
        }
        let mut parts = Vec::new();
        while self.peek().is_some() && (depth == 0 || self.peek() != Some(&Token::Mark('}'))) {
            parts.push(self.statement(depth)?);
        }
        Ok(parts)
    }

    fn statement(&mut self, depth: usize) -> Found<Program> {
        if self.eat_word("fence") {
            return Ok(Program::Fence);
        }
        if self.eat_word("host_copy") {
            let from = self.view()?;
            if !(self.eat_word("-") && self.eat('>')) {
                return self.expected("`->`");
            }
            return Ok(Program::HostCopy { from, to: self.view()? });
        }
        if !self.eat_word("for") {
            let (op, alpha, beta) = self.instr(beta_value)?;
            return Ok(Program::Instr { op, alpha, beta });
        }
        let iv = self.word("a loop variable", |w| w.strip_prefix("%i")?.parse().ok().map(LoopId))?;
        if !self.eat_word("in") {
            return self.expected("`in`");
        }
        let trip = self.word("0..trip", |w| w.strip_prefix("0..")?.parse().ok())?;
        let parallel = self.eat_word("parallel");
        if !self.eat('{') {
            return self.expected("`{`");
        }
        let mut parts = self.body(depth + 1)?;
        if !self.eat('}') {
            return self.expected("`}`");
        }
        let body = if parts.len() == 1 { parts.remove(0) } else { Program::Seq(parts) };
        Ok(Program::For { iv, trip, parallel, body: Box::new(body) })
    }

    fn view(&mut self) -> Found<View> {
        let elem = self.word("an element type", |w| w.parse().ok())?;
        let (space, start): (_, Affine) = self.word("an address", parse_address)?;
        if !self.eat('[') {
            return self.expected("`[`");
        }
        let mut dims = Vec::new();
        while !self.eat(']') {
            if !dims.is_empty() && !self.eat(',') {
                return self.expected("`,` or `]`");
            }
            let len = self.word("a length", |w| w.parse().ok())?;
            if !self.eat_word("by") {
                return self.expected("`by`");
            }
            dims.push((len, self.word("a stride in bytes", |w| w.parse().ok())?));
        }
        Ok(View { space, elem, dims, start })
    }

    /// The instruction with the longest template that fits here; `beta` reads addressing attributes.
    fn instr<B: Clone + PartialEq>(
        &mut self,
        beta: impl Fn(&Instr, usize, &str) -> Option<B>,
    ) -> Found<(InstrId, Vec<AttrVal>, Vec<B>)> {
        let mut best: Option<(usize, usize)> = None;
        for (k, template) in self.templates.iter().enumerate() {
            let rest = self.tokens.get(self.at..).unwrap_or_default();
            let fits = rest.len() >= template.len()
                && template.iter().zip(rest).all(|(piece, (token, _))| match (piece, token) {
                    (Piece::Attr(_), Token::Word(_)) => true,
                    (Piece::Word(a), Token::Word(b)) => a == b,
                    (Piece::Mark(a), Token::Mark(b)) => a == b,
                    _ => false,
                });
            if fits && best.is_none_or(|(_, len)| template.len() > len) {
                best = Some((k, template.len()));
            }
        }
        let Some((k, len)) = best else {
            let line = self.tokens.get(self.at).map_or(0, |(_, line)| *line);
            let words = self.tokens.iter().skip(self.at).take_while(|(_, l)| *l == line);
            let shown = words.map(|(token, _)| match token {
                Token::Word(word) => word.clone(),
                Token::Mark(c) => c.to_string(),
            });
            let shown = shown.collect::<Vec<String>>().join(" ");
            return self.fail(AssemblyProblem::UnknownInstruction(shown));
        };
        let found = self.attributes(k, beta)?;
        self.at += len;
        Ok(found)
    }

    fn attributes<B: Clone + PartialEq>(
        &self,
        k: usize,
        read_beta: impl Fn(&Instr, usize, &str) -> Option<B>,
    ) -> Found<(InstrId, Vec<AttrVal>, Vec<B>)> {
        let instr = &self.isa.instrs[k];
        let mut alpha: Vec<Option<AttrVal>> = vec![None; instr.alpha.len()];
        let mut beta: Vec<Option<B>> = vec![None; instr.beta.len()];
        for (piece, (token, _)) in self.templates[k].iter().zip(&self.tokens[self.at..]) {
            let (Piece::Attr(attr), Token::Word(word)) = (piece, token) else { continue };
            let (name, fits) = match *attr {
                Attr::Alpha(a) => {
                    let value = match instr.alpha[a].kind {
                        AttrKind::Int { .. } => word.parse().ok().map(AttrVal::Int),
                        AttrKind::F32 => {
                            let value = word.parse::<f32>().ok().filter(|v| v.is_finite());
                            value.map(|v| AttrVal::F32(v.to_bits()))
                        }
                    };
                    (&instr.alpha[a].name, agrees(&mut alpha[a], value))
                }
                Attr::Beta(b) => {
                    let value = read_beta(instr, b, word);
                    (&instr.beta[b].name, agrees(&mut beta[b], value))
                }
            };
            if !fits {
                let (instr, attr, text) = (instr.name.clone(), name.clone(), word.clone());
                return self.fail(AssemblyProblem::BadValue { instr, attr, text });
            }
        }
        // A template names every attribute, so none is left out.
        Ok((InstrId(k as u16), alpha.into_iter().flatten().collect(), beta.into_iter().flatten().collect()))
    }
}

/// Stores the value; an attribute that occurs twice must have one value.
fn agrees<T: PartialEq>(slot: &mut Option<T>, value: Option<T>) -> bool {
    match (&slot, value) {
        (_, None) => false,
        (Some(old), Some(value)) => *old == value,
        (None, value) => {
            *slot = value;
            true
        }
    }
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    let digits = word.strip_prefix("0x")?;
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}
