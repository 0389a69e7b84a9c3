//! The grammar of HLO text: modules, computations, instructions, shapes. It does not know the operators: their
//! attributes stay token ranges until `lower.rs` reads them.

use super::lexer::{Token, TokenKind, tokens};
use super::{Computation, Instruction, Operands, ParseError, TextModule, TextShape};
use crate::{Layout, Shape, SourceLoc};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A place in the tokens of a text.
pub(super) struct Cursor<'a> {
    source: &'a str,
    tokens: &'a [Token],
    pub(super) at: usize,
    /// No token from here on is read.
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a str, tokens: &'a [Token], range: Range<usize>) -> Cursor<'a> {
        Cursor { source, tokens, at: range.start, end: range.end }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::at_token(self.source, self.tokens, self.at, message)
    }

    fn error_at(&self, token: usize, message: impl Into<String>) -> ParseError {
        ParseError::at_token(self.source, self.tokens, token, message)
    }

    pub(super) fn expected(&self, what: &str) -> ParseError {
        let found = match self.tokens.get(self.at) {
            Some(token) => token.describe(),
            None => "the end of the text".to_owned(),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    fn peek_ahead(&self, n: usize) -> Option<&'a TokenKind> {
        let at = self.at.checked_add(n).filter(|&at| at < self.end)?;
        self.tokens.get(at).map(|t| &t.kind)
    }

    pub(super) fn peek(&self) -> Option<&'a TokenKind> {
        self.peek_ahead(0)
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.end
    }

    fn sees(&self, c: char) -> bool {
        self.peek() == Some(&TokenKind::Punctuation(c))
    }

    pub(super) fn accept(&mut self, c: char) -> bool {
        let seen = self.sees(c);
        self.at += usize::from(seen);
        seen
    }

    pub(super) fn expect(&mut self, c: char) -> Result<(), ParseError> {
        if self.accept(c) { Ok(()) } else { Err(self.expected(&format!("`{c}`"))) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.peek() {
            Some(TokenKind::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let seen = matches!(self.peek(), Some(TokenKind::Word(w)) if w == word);
        self.at += usize::from(seen);
        seen
    }

    pub(super) fn text(&mut self) -> Result<&'a str, ParseError> {
        match self.peek() {
            Some(TokenKind::Text(text)) => {
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.expected("a string")),
        }
    }

    pub(super) fn integer<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, ParseError> {
        let error = self.expected(what);
        self.word(what)?.parse().map_err(|_| error)
    }

    /// Skips one word, string or bracketed group.
    pub(super) fn skip_group(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match self.peek() {
                None if depth > 0 => return Err(self.error_at(start, "this bracket is not closed")),
                None => return Err(self.expected("a value")),
                Some(TokenKind::Punctuation('{' | '(' | '[')) => depth += 1,
                Some(TokenKind::Punctuation('}' | ')' | ']')) => match depth.checked_sub(1) {
                    Some(outer) => depth = outer,
                    None => return Err(self.expected("a value")),
                },
                Some(TokenKind::Word(_) | TokenKind::Text(_)) => {}
                Some(_) if depth > 0 => {}
                Some(_) => return Err(self.expected("a value")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The tokens of an attribute's value: `{...}`, `name`, `"text"`, `bf01_oi01->bf01`, `[2,4]<=[8]`.
    fn attribute_value(&mut self) -> Result<Range<usize>, ParseError> {
        let start = self.at;
        self.skip_group()?;
        loop {
            if self.peek() == Some(&TokenKind::Arrow) {
                self.at += 1;
            } else if self.sees('<') && self.peek_ahead(1) == Some(&TokenKind::Punctuation('=')) {
                self.at += 2;
            } else {
                return Ok(start..self.at);
            }
            self.skip_group()?;
        }
    }
}

pub(super) fn module(source: &str) -> Result<TextModule, ParseError> {
    let tokens = tokens(source)?;
    let mut cursor = Cursor::new(source, &tokens, 0..tokens.len());
    let mut name = None;
    let mut frames = BTreeMap::new();
    if cursor.accept_word("HloModule") {
        name = Some(cursor.word("the module's name")?.to_owned());
        while cursor.accept(',') {
            cursor.word("an attribute of the module")?;
            cursor.expect('=')?;
            cursor.attribute_value()?;
        }
        frames = stack_frames(&mut cursor)?;
    }
    let mut computations = Vec::new();
    let mut names = BTreeSet::new();
    let mut entry = None;
    while !cursor.is_done() {
        if cursor.accept_word("ENTRY") {
            if entry.is_some() {
                return Err(cursor.error("a module has one ENTRY computation, this is the second"));
            }
            entry = Some(computations.len());
        }
        let at = cursor.at;
        let computation = computation(&mut cursor)?;
        if !names.insert(computation.name.clone()) {
            return Err(cursor.error_at(at, format!("computation `{}` is defined twice", computation.name)));
        }
        computations.push(computation);
    }
    // A lone computation needs no ENTRY to be the one meant.
    let entry = entry
        .or((computations.len() == 1).then_some(0))
        .ok_or_else(|| cursor.expected("an `ENTRY` computation"))?;
    let name = name.unwrap_or_else(|| computations[entry].name.clone());
    Ok(TextModule { name, source: source.into(), tokens, computations, entry, frames })
}

/// The tables that XLA prints below the module's header, down to the position of each stack frame.
fn stack_frames(cursor: &mut Cursor) -> Result<BTreeMap<i64, SourceLoc>, ParseError> {
    type Row = BTreeMap<String, i64>;
    fn number(cursor: &Cursor) -> bool {
        matches!(cursor.peek(), Some(TokenKind::Word(w)) if w.bytes().all(|b| b.is_ascii_digit()))
    }
    fn names(cursor: &mut Cursor) -> Result<BTreeMap<i64, String>, ParseError> {
        let mut table = BTreeMap::new();
        while number(cursor) {
            table.insert(cursor.integer("a row number")?, cursor.text()?.to_owned());
        }
        Ok(table)
    }
    fn rows(cursor: &mut Cursor) -> Result<BTreeMap<i64, Row>, ParseError> {
        let mut table = BTreeMap::new();
        while number(cursor) {
            let key = cursor.integer("a row number")?;
            let mut row = Row::new();
            cursor.expect('{')?;
            while !cursor.accept('}') {
                let field = cursor.word("a field")?.to_owned();
                cursor.expect('=')?;
                row.insert(field, cursor.integer("a number")?);
            }
            table.insert(key, row);
        }
        Ok(table)
    }
    let (mut files, mut locations, mut frames) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    loop {
        if cursor.accept_word("FileNames") {
            files = names(cursor)?;
        } else if cursor.accept_word("FunctionNames") {
            names(cursor)?;
        } else if cursor.accept_word("FileLocations") {
            locations = rows(cursor)?;
        } else if cursor.accept_word("StackFrames") {
            frames = rows(cursor)?;
        } else {
            break;
        }
    }
    let position = |frame: &Row| {
        let location: &Row = locations.get(frame.get("file_location_id")?)?;
        Some(SourceLoc {
            op_name: String::new(),
            file: files.get(location.get("file_name_id")?)?.clone(),
            line: u32::try_from(*location.get("line")?).ok()?,
        })
    };
    Ok(frames.iter().filter_map(|(&id, frame)| Some((id, position(frame)?))).collect())
}

fn computation(cursor: &mut Cursor) -> Result<Computation, ParseError> {
    let name = cursor.word("a computation's name")?.to_owned();
    // The signature repeats what the body says.
    if cursor.sees('(') {
        cursor.skip_group()?;
        if cursor.peek() != Some(&TokenKind::Arrow) {
            return Err(cursor.expected("`->` and the result of the signature"));
        }
        cursor.at += 1;
        shape(cursor, true)?;
    }
    cursor.expect('{')?;
    let (mut instructions, mut names) = (Vec::new(), BTreeSet::new());
    let mut root = None;
    while !cursor.accept('}') {
        if cursor.accept_word("ROOT") {
            if root.is_some() {
                return Err(cursor.error("a computation has one ROOT, this is the second"));
            }
            root = Some(instructions.len());
        }
        let at = cursor.at;
        let instruction = instruction(cursor)?;
        if !names.insert(instruction.name.clone()) {
            return Err(cursor.error_at(at, format!("`{}` is defined twice", instruction.name)));
        }
        instructions.push(instruction);
    }
    // The attributes of a computation, such as its thread, do not change what it computes.
    while cursor.accept(',') {
        cursor.word("an attribute of the computation")?;
        cursor.expect('=')?;
        cursor.attribute_value()?;
    }
    let Some(last) = instructions.len().checked_sub(1) else {
        return Err(cursor.error_at(cursor.at.saturating_sub(1), format!("computation `{name}` is empty")));
    };
    Ok(Computation { name, instructions, root: root.unwrap_or(last) })
}

fn instruction(cursor: &mut Cursor) -> Result<Instruction, ParseError> {
    let name = cursor.word("an instruction or `}`")?.to_owned();
    cursor.expect('=')?;
    let shape = shape(cursor, false)?;
    let at = cursor.at;
    let opcode = cursor.word("an operator")?.to_owned();
    let operands = if matches!(opcode.as_str(), "constant" | "parameter") {
        let start = cursor.at;
        if !cursor.sees('(') {
            return Err(cursor.expected("`(`"));
        }
        cursor.skip_group()?;
        Operands::Payload(start + 1..cursor.at - 1)
    } else {
        Operands::Values(operands(cursor)?)
    };
    let mut attributes = Vec::new();
    while cursor.accept(',') {
        let at = cursor.at;
        let name = cursor.word("an attribute")?.to_owned();
        cursor.expect('=')?;
        attributes.push((name, at, cursor.attribute_value()?));
    }
    Ok(Instruction { name, at, opcode, shape, operands, attributes })
}

fn operands(cursor: &mut Cursor) -> Result<Vec<(String, usize)>, ParseError> {
    let mut values = Vec::new();
    cursor.expect('(')?;
    if cursor.accept(')') {
        return Ok(values);
    }
    loop {
        // Longer forms repeat the operand's shape before its name.
        if cursor.sees('(') || cursor.peek_ahead(1) == Some(&TokenKind::Punctuation('[')) {
            shape(cursor, false)?;
        }
        let at = cursor.at;
        values.push((cursor.word("an operand")?.to_owned(), at));
        if cursor.accept(')') {
            return Ok(values);
        }
        if !cursor.accept(',') {
            return Err(cursor.expected("`,` or `)`"));
        }
    }
}

/// Tuples in a text nest no deeper than this.
const MAX_TUPLE_DEPTH: usize = 32;

/// A shape with its layout. `before_body`: a brace that does not look like a layout begins something else.
fn shape(cursor: &mut Cursor, before_body: bool) -> Result<TextShape, ParseError> {
    nested_shape(cursor, before_body, 0)
}

fn nested_shape(cursor: &mut Cursor, before_body: bool, depth: usize) -> Result<TextShape, ParseError> {
    if depth > MAX_TUPLE_DEPTH {
        return Err(cursor.error("tuples nest too deep"));
    }
    if cursor.accept('(') {
        let mut members = Vec::new();
        while !cursor.accept(')') {
            // The signature may name the members.
            members.push(nested_shape(cursor, before_body, depth + 1)?);
            if !cursor.accept(',') && !cursor.sees(')') {
                return Err(cursor.expected("`,` or `)`"));
            }
        }
        return Ok(TextShape::Tuple(members));
    }
    let error = cursor.expected("a shape");
    let elem = cursor.word("a shape")?;
    let elem = elem.parse().map_err(|e| ParseError { message: format!("{e}"), ..error })?;
    cursor.expect('[')?;
    let mut dims = Vec::new();
    while !cursor.accept(']') {
        dims.push(cursor.integer("a dimension size")?);
        if !cursor.accept(',') && !cursor.sees(']') {
            return Err(cursor.expected("`,` or `]`"));
        }
    }
    let shape = Shape::new(elem, dims);
    let looks_like_layout = match cursor.peek_ahead(1) {
        Some(TokenKind::Word(w)) => w.bytes().all(|b| b.is_ascii_digit()),
        Some(TokenKind::Punctuation(c)) => *c == ':' || (*c == '}' && !before_body),
        _ => false,
    };
    let layout = if cursor.sees('{') && (looks_like_layout || !before_body) {
        Some(layout(cursor, &shape)?)
    } else {
        None
    };
    Ok(TextShape::Array(shape, layout))
}

/// `{1,0}`, `{1,0:T(8,128)(2,1)}`; what else stands behind the colon (memory space, element size) is skipped.
fn layout(cursor: &mut Cursor, shape: &Shape) -> Result<Layout, ParseError> {
    let start = cursor.at;
    cursor.expect('{')?;
    let mut minor_to_major = Vec::new();
    while !cursor.sees('}') && !cursor.sees(':') {
        minor_to_major.push(cursor.integer("a dimension number")?);
        if !cursor.accept(',') && !cursor.sees('}') && !cursor.sees(':') {
            return Err(cursor.expected("`,`, `:` or `}`"));
        }
    }
    let mut sorted: Vec<usize> = minor_to_major.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..shape.rank()) {
        return Err(cursor.error_at(start, format!("this layout does not order the dimensions of {shape}")));
    }
    let mut tiles = Vec::new();
    if cursor.accept(':') {
        while !cursor.sees('}') {
            if cursor.accept_word("T") {
                while cursor.accept('(') {
                    let mut tile = Vec::new();
                    while !cursor.accept(')') {
                        tile.push(cursor.integer("a tile size")?);
                        if !cursor.accept(',') && !cursor.sees(')') {
                            return Err(cursor.expected("`,` or `)`"));
                        }
                    }
                    tiles.push(tile);
                }
            } else {
                cursor.skip_group()?;
            }
        }
    }
    cursor.expect('}')?;
    Ok(Layout { minor_to_major, tiles })
}
