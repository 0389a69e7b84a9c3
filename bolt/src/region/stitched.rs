//! The stitched text of a region read back: the MLIR that runs, as far as the compiler writes it, into a loop program. An
//! own reader, so that what is judged is the text and not what its writer meant.

use act_hlo::ElemType;
use act_isa::{Affine, BetaVal, Isa, LoopId, LoopProgram, Program, Space, View, parse_operand_form};
use std::collections::HashMap;

/// Why text is no stitched region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct StitchedTextError {
    pub line: u32,
    pub what: String,
}

type Read<T> = Result<T, StitchedTextError>;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Mark(char),
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Value {
    Pointer(Option<Space>),
    Number(Affine),
    Address(Space, Affine),
}

/// Attributes by name.
#[derive(Clone, Debug)]
enum Attribute {
    Unit,
    Number(i64),
    Numbers(Vec<i64>),
    Bytes(Vec<u8>),
    Other,
}

/// Reads a module; the first of the pair is the name of its target.
///
/// # Errors
/// The first place that is not understood.
pub fn parse(isa: &Isa, text: &str) -> Read<LoopProgram> {
    let mut reader = Reader { tokens: tokens(text)?, at: 0, isa, names: HashMap::new(), loops: 0 };
    reader.module()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@' | '!' | '$')
}

fn tokens(text: &str) -> Read<Vec<(Token, u32)>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c == '\n' {
            line += 1;
        }
        if c.is_whitespace() {
            chars.next();
        } else if c == '/' {
            while chars.next_if(|&c| c != '\n').is_some() {}
        } else if c == '"' {
            chars.next();
            tokens.push((Token::Text(quoted(&mut chars, line)?), line));
        } else if is_word(c) {
            let mut word = String::new();
            while let Some(c) = chars.next_if(|&c| is_word(c)) {
                word.push(c);
            }
            tokens.push((Token::Word(word), line));
        } else {
            chars.next();
            if c == '-' && chars.peek().is_some_and(char::is_ascii_digit) {
                let mut word = String::from('-');
                while let Some(c) = chars.next_if(|&c| is_word(c)) {
                    word.push(c);
                }
                tokens.push((Token::Word(word), line));
            } else {
                tokens.push((Token::Mark(c), line));
            }
        }
    }
    Ok(tokens)
}

/// The rest of a string; `\XX` is a byte.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, line: u32) -> Read<String> {
    let error = |what: &str| StitchedTextError { line, what: what.to_owned() };
    let mut bytes = Vec::new();
    loop {
        match chars.next() {
            None | Some('\n') => return Err(error("a string that does not end")),
            Some('"') => return String::from_utf8(bytes).map_err(|_| error("a string that is no text")),
            Some('\\') => {
                let pair: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&pair, 16).map_err(|_| error("an escape that is no byte"))?);
            }
            Some(c) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

struct Reader<'a> {
    tokens: Vec<(Token, u32)>,
    at: usize,
    isa: &'a Isa,
    names: HashMap<String, Value>,
    loops: u32,
}

impl Reader<'_> {
    fn error<T>(&self, what: impl Into<String>) -> Read<T> {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        let line = self.tokens.get(at).map_or(0, |(_, line)| *line);
        Err(StitchedTextError { line, what: what.into() })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn mark(&mut self, mark: char) -> Read<()> {
        if self.take(mark) { Ok(()) } else { self.error(format!("`{mark}` expected")) }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    fn keyword(&mut self, word: &str) -> Read<()> {
        if self.take_word(word) { Ok(()) } else { self.error(format!("`{word}` expected")) }
    }

    fn word(&mut self) -> Read<String> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => {
                self.at -= 1;
                self.error("a word expected")
            }
        }
    }

    fn text(&mut self) -> Read<String> {
        match self.next() {
            Some(Token::Text(text)) => Ok(text),
            _ => {
                self.at -= 1;
                self.error("a string expected")
            }
        }
    }

    fn integer(&mut self) -> Read<i64> {
        let word = self.word()?;
        word.parse().or_else(|_| self.error(format!("`{word}` is no integer")))
    }

    fn module(&mut self) -> Read<LoopProgram> {
        self.keyword("module")?;
        if self.take_word("attributes") {
            self.attributes()?;
        }
        self.mark('{')?;
        let mut program = None;
        while !self.take('}') {
            self.keyword("func.func")?;
            if self.take_word("private") {
                self.word()?;
                self.mark('(')?;
                while !self.take(')') {
                    if self.next().is_none() {
                        return self.error("a declaration that does not end");
                    }
                }
            } else if program.is_some() {
                return self.error("a second function with a body");
            } else {
                program = Some(self.kernel()?);
            }
        }
        match program {
            Some(program) if self.peek().is_none() => Ok(program),
            Some(_) => self.error("text behind the module"),
            None => self.error("no function @kernel"),
        }
    }

    fn kernel(&mut self) -> Read<LoopProgram> {
        self.keyword("@kernel")?;
        self.mark('(')?;
        let mut arguments = Vec::new();
        while !self.take(')') {
            arguments.push(self.word()?);
            self.mark(':')?;
            self.keyword("!llvm.ptr")?;
            self.take(',');
        }
        self.keyword("attributes")?;
        let attributes = self.attributes()?;
        let sizes = |reader: &Self, name: &str| match attributes.get(name) {
            Some(Attribute::Numbers(sizes)) => sizes
                .iter()
                .map(|&size| u64::try_from(size))
                .collect::<Result<Vec<u64>, _>>()
                .or_else(|_| reader.error(format!("a negative size in {name}"))),
            _ => reader.error(format!("no {name}")),
        };
        let (operands, results) = (sizes(self, "act.operand_bytes")?, sizes(self, "act.result_bytes")?);
        let scratch_bytes = match attributes.get("act.scratch_bytes") {
            Some(Attribute::Number(bytes)) if *bytes >= 0 => *bytes as u64,
            _ => return self.error("no act.scratch_bytes"),
        };
        let Some(Attribute::Bytes(consts)) = attributes.get("act.consts").cloned() else {
            return self.error("no act.consts");
        };
        let spaces = (0..operands.len() as u16)
            .map(Space::Operand)
            .chain((0..results.len() as u16).map(Space::Result))
            .chain([Space::Scratch, Space::Consts])
            .map(Some)
            .chain([None]);
        let spaces: Vec<Option<Space>> = spaces.collect();
        if spaces.len() != arguments.len() {
            return self.error(format!("{} arguments for {} segments", arguments.len(), spaces.len() - 1));
        }
        for (name, space) in arguments.into_iter().zip(spaces) {
            self.names.insert(name, Value::Pointer(space));
        }
        self.mark('{')?;
        let body = self.block()?;
        Ok(LoopProgram { body, operands, results, scratch_bytes, consts })
    }

    /// `{name = value, ..}`
    fn attributes(&mut self) -> Read<HashMap<String, Attribute>> {
        let mut attributes = HashMap::new();
        self.mark('{')?;
        while !self.take('}') {
            let name = self.word()?;
            let value = if self.take('=') { self.attribute()? } else { Attribute::Unit };
            if attributes.insert(name.clone(), value).is_some() {
                return self.error(format!("attribute `{name}` twice"));
            }
            self.take(',');
        }
        Ok(attributes)
    }

    fn attribute(&mut self) -> Read<Attribute> {
        if let Some(Token::Text(_)) = self.peek() {
            self.at += 1;
            return Ok(Attribute::Other);
        }
        if self.take_word("array") {
            self.mark('<')?;
            self.keyword("i64")?;
            let mut numbers = Vec::new();
            if self.take(':') {
                while !self.take('>') {
                    numbers.push(self.integer()?);
                    self.take(',');
                }
            } else {
                self.mark('>')?;
            }
            return Ok(Attribute::Numbers(numbers));
        }
        if self.take_word("dense") {
            return self.dense();
        }
        let number = self.integer()?;
        self.mark(':')?;
        self.keyword("i64")?;
        Ok(Attribute::Number(number))
    }

    fn dense(&mut self) -> Read<Attribute> {
        self.mark('<')?;
        let (hex, splat) = match self.next() {
            Some(Token::Mark('>')) => (String::new(), None),
            Some(Token::Text(hex)) => {
                self.mark('>')?;
                (hex, None)
            }
            Some(Token::Word(word)) => {
                self.mark('>')?;
                (String::new(), word.parse::<i16>().ok())
            }
            _ => return self.error("bytes expected"),
        };
        self.mark(':')?;
        self.keyword("tensor")?;
        self.mark('<')?;
        let shape = self.word()?;
        self.mark('>')?;
        let Some(len) = shape.strip_suffix("xi8").and_then(|len| len.parse::<usize>().ok()) else {
            return self.error(format!("`{shape}` is no number of bytes"));
        };
        let bytes: Option<Vec<u8>> = match splat {
            Some(value) => Some(vec![value as u8; len]),
            None => {
                let digits = hex.strip_prefix("0x").unwrap_or("");
                let byte =
                    |k: usize| digits.get(2 * k..2 * k + 2).and_then(|d| u8::from_str_radix(d, 16).ok());
                (0..digits.len() / 2).map(byte).collect()
            }
        };
        match bytes {
            // One byte given for many stands for all of them.
            Some(bytes) if bytes.len() == 1 && len > 1 => Ok(Attribute::Bytes(vec![bytes[0]; len])),
            Some(bytes) if bytes.len() == len => Ok(Attribute::Bytes(bytes)),
            _ => self.error("another number of bytes than the type says"),
        }
    }

    /// Operations up to the closing brace.
    fn block(&mut self) -> Read<Program> {
        let mut parts = Vec::new();
        while !self.take('}') {
            match self.word()?.as_str() {
                "return" => {}
                "scf.for" => parts.push(self.for_loop()?),
                "llvm.inline_asm" => parts.push(self.inline_asm()?),
                "func.call" => parts.push(self.host_copy()?),
                name if name.starts_with('%') => {
                    let name = name.to_owned();
                    self.mark('=')?;
                    let value = self.value()?;
                    if self.names.insert(name.clone(), value).is_some() {
                        return self.error(format!("{name} is defined twice"));
                    }
                }
                other => {
                    let what = format!("`{other}` is no operation of stitched text");
                    self.at -= 1;
                    return self.error(what);
                }
            }
        }
        Ok(Program::Seq(parts))
    }

    fn value(&mut self) -> Read<Value> {
        let operation = self.word()?;
        match operation.as_str() {
            "arith.constant" => {
                let value = self.integer()?;
                self.typed()?;
                Ok(Value::Number(Affine::constant(value)))
            }
            "llvm.ptrtoint" => {
                let pointer = self.named()?;
                self.mark(':')?;
                self.keyword("!llvm.ptr")?;
                self.keyword("to")?;
                self.keyword("i64")?;
                match pointer {
                    Value::Pointer(Some(space)) => Ok(Value::Address(space, Affine::constant(0))),
                    _ => self.error("the address of no segment"),
                }
            }
            "arith.addi" | "arith.muli" => {
                let a = self.named()?;
                self.mark(',')?;
                let b = self.named()?;
                self.typed()?;
                let value = if operation == "arith.addi" { sum(&a, &b) } else { product(&a, &b) };
                match value {
                    Some(value) => Ok(value),
                    None => self.error(format!("{operation} of values whose result is not affine")),
                }
            }
            _ => self.error(format!("`{operation}` is no operation of stitched text")),
        }
    }

    fn typed(&mut self) -> Read<()> {
        self.mark(':')?;
        self.keyword("i64")
    }

    fn named(&mut self) -> Read<Value> {
        let name = self.word()?;
        match self.names.get(&name) {
            Some(value) => Ok(value.clone()),
            None => self.error(format!("{name} is not defined here")),
        }
    }

    fn known(&mut self) -> Read<i64> {
        match self.named()? {
            Value::Number(Affine { c0, ivs }) if ivs.is_empty() => Ok(c0),
            _ => self.error("a constant expected"),
        }
    }

    fn for_loop(&mut self) -> Read<Program> {
        let name = self.word()?;
        self.mark('=')?;
        let from = self.known()?;
        self.keyword("to")?;
        let end = self.known()?;
        self.keyword("step")?;
        let step = self.known()?;
        self.typed()?;
        self.mark('{')?;
        let Some(distance) = end.checked_sub(from).filter(|_| step > 0) else {
            return self.error("a loop that does not count upwards");
        };
        let trip = (distance.max(0) as u64).div_ceil(step as u64);
        let iv = LoopId(self.loops);
        self.loops += 1;
        let mut counter = Affine::constant(from);
        if counter.add_term(iv, step).is_none() {
            return self.error("a loop variable that does not fit 64 bits");
        }
        // Names defined inside are gone behind the loop.
        let outside = self.names.clone();
        if self.names.insert(name.clone(), Value::Number(counter)).is_some() {
            return self.error(format!("{name} is defined twice"));
        }
        let body = self.block()?;
        self.names = outside;
        let parallel = match self.peek() {
            Some(Token::Mark('{')) => self.attributes()?.contains_key("act.parallel"),
            _ => false,
        };
        Ok(Program::For { iv, trip, parallel, body: Box::new(body) })
    }

    /// `, `-separated operands up to a mark, then their types.
    fn operands(&mut self) -> Read<Vec<Value>> {
        let mut operands = Vec::new();
        while matches!(self.peek(), Some(Token::Word(word)) if word.starts_with('%')) {
            operands.push(self.named()?);
            if !self.take(',') {
                break;
            }
        }
        Ok(operands)
    }

    /// `: (i64, ..) -> ()`
    fn types(&mut self, count: usize) -> Read<()> {
        self.mark(':')?;
        self.mark('(')?;
        let mut types = 0;
        while !self.take(')') {
            self.keyword("i64")?;
            types += 1;
            self.take(',');
        }
        for mark in ['-', '>', '(', ')'] {
            self.mark(mark)?;
        }
        if types == count { Ok(()) } else { self.error(format!("{types} types for {count} operands")) }
    }

    fn inline_asm(&mut self) -> Read<Program> {
        self.keyword("has_side_effects")?;
        let text = self.text()?;
        self.mark(',')?;
        self.text()?;
        let operands = self.operands()?;
        self.types(operands.len())?;
        if text == "fence" && operands.is_empty() {
            return Ok(Program::Fence);
        }
        // `$k` is an operand, `$$` a dollar; the assembly reader takes words that begin with `%`.
        let mut plain = String::with_capacity(text.len());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            plain.push(match c {
                '$' if chars.next_if_eq(&'$').is_some() => '$',
                '$' => '%',
                other => other,
            });
        }
        let (op, alpha, words) = match parse_operand_form(self.isa, &plain) {
            Ok(found) => found,
            Err(error) => return self.error(format!("`{text}`: {error}")),
        };
        let mut beta = Vec::with_capacity(words.len());
        for word in words {
            let value = match word.strip_prefix('%') {
                Some(k) => k.parse::<usize>().ok().and_then(|k| operands.get(k)).cloned(),
                None => word.parse().ok().map(|v| Value::Number(Affine::constant(v))),
            };
            beta.push(match value {
                Some(Value::Number(affine)) => BetaVal::Int(affine),
                Some(Value::Address(space, affine)) => BetaVal::Hbm(space, affine),
                _ => return self.error(format!("`{text}`: `{word}` is no operand")),
            });
        }
        Ok(Program::Instr { op, alpha, beta })
    }

    fn host_copy(&mut self) -> Read<Program> {
        self.keyword("@act_host_copy")?;
        self.mark('(')?;
        let operands = self.operands()?;
        self.mark(')')?;
        let attributes = self.attributes()?;
        self.types(operands.len())?;
        let [Value::Address(source, from), Value::Address(target, to)] = operands.as_slice() else {
            return self.error("a host copy between other things than addresses");
        };
        let numbers = |name: &str| match attributes.get(name) {
            Some(Attribute::Numbers(numbers)) => Some(numbers.clone()),
            _ => None,
        };
        let elem = match attributes.get("act.elem_bytes") {
            Some(Attribute::Number(1)) => Some(ElemType::U8),
            Some(Attribute::Number(2)) => Some(ElemType::U16),
            Some(Attribute::Number(4)) => Some(ElemType::U32),
            Some(Attribute::Number(8)) => Some(ElemType::U64),
            Some(Attribute::Number(16)) => Some(ElemType::C128),
            _ => None,
        };
        let parts = (elem, numbers("act.lengths"), numbers("act.from_strides"), numbers("act.to_strides"));
        let (Some(elem), Some(lengths), Some(from_strides), Some(to_strides)) = parts else {
            return self.error("a host copy without its shape");
        };
        if lengths.len() != from_strides.len() || lengths.len() != to_strides.len() {
            return self.error("a host copy with strides for other dimensions");
        }
        let Ok(lengths) = lengths.into_iter().map(u64::try_from).collect::<Result<Vec<u64>, _>>() else {
            return self.error("a negative length");
        };
        let view = |space: Space, start: &Affine, strides: Vec<i64>| View {
            space,
            elem,
            dims: lengths.iter().copied().zip(strides).collect(),
            start: start.clone(),
        };
        Ok(Program::HostCopy { from: view(*source, from, from_strides), to: view(*target, to, to_strides) })
    }
}

fn sum(a: &Value, b: &Value) -> Option<Value> {
    Some(match (a, b) {
        (Value::Number(a), Value::Number(b)) => Value::Number(a.checked_add(b)?),
        (Value::Address(space, a), Value::Number(b)) | (Value::Number(b), Value::Address(space, a)) => {
            Value::Address(*space, a.checked_add(b)?)
        }
        _ => return None,
    })
}

fn product(a: &Value, b: &Value) -> Option<Value> {
    let (Value::Number(a), Value::Number(b)) = (a, b) else { return None };
    let (factor, other) = if a.ivs.is_empty() { (a.c0, b) } else { (b.c0, a) };
    if !a.ivs.is_empty() && !b.ivs.is_empty() {
        return None;
    }
    let mut result = Affine::constant(other.c0.checked_mul(factor)?);
    for &(iv, k) in &other.ivs {
        result.add_term(iv, k.checked_mul(factor)?)?;
    }
    Some(Value::Number(result))
}
