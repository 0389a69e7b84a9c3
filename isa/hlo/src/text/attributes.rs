//! The attributes of an instruction, read by name and type; one that nobody asked for is an error unless it
//! cannot change the values computed.

use super::parser::Cursor;
use super::{Instruction, ParseError, TextModule};
use crate::SourceLoc;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Attributes that say nothing about values: how to place, schedule, trace or how fast to compute.
const WITHOUT_EFFECT: [&str; 11] = [
    "metadata",
    "sharding",
    "backend_config",
    "frontend_attributes",
    "operand_precision",
    "control-predecessors",
    "statistics",
    "origin",
    "kind",
    "result_accuracy",
    "parameter_replication",
];

pub(super) struct Attributes<'a> {
    module: &'a TextModule,
    instruction: &'a Instruction,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(module: &'a TextModule, instruction: &'a Instruction) -> Attributes<'a> {
        Attributes { module, instruction, asked: RefCell::default() }
    }

    pub(super) fn cursor(&self, range: std::ops::Range<usize>) -> Cursor<'a> {
        Cursor::new(&self.module.source, &self.module.tokens, range)
    }

    fn find(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.asked.borrow_mut().insert(name);
        let (_, _, value) = self.instruction.attributes.iter().find(|(n, _, _)| n == name)?;
        Some(self.cursor(value.clone()))
    }

    pub(super) fn missing(&self, name: &str) -> ParseError {
        let message = format!("`{}` needs the attribute `{name}`", self.instruction.opcode);
        self.module.error(self.instruction.at, message)
    }

    /// The value as one word.
    pub(super) fn word(&self, name: &'static str) -> Result<Option<(&'a str, usize)>, ParseError> {
        let Some(mut cursor) = self.find(name) else { return Ok(None) };
        let at = cursor.at;
        Ok(Some((cursor.word("a name")?, at)))
    }

    pub(super) fn integer<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, ParseError> {
        self.find(name).ok_or_else(|| self.missing(name))?.integer("a number")
    }

    /// `{1,0}`; `None` when the attribute is absent.
    pub(super) fn list<T: std::str::FromStr>(
        &self,
        name: &'static str,
    ) -> Result<Option<Vec<T>>, ParseError> {
        let Some(mut cursor) = self.find(name) else { return Ok(None) };
        let mut values = Vec::new();
        cursor.expect('{')?;
        while !cursor.accept('}') {
            if !values.is_empty() && !cursor.accept(',') {
                return Err(cursor.expected("`,` or `}`"));
            }
            values.push(cursor.integer("a number")?);
        }
        Ok(Some(values))
    }

    pub(super) fn required_list<T: std::str::FromStr>(
        &self,
        name: &'static str,
    ) -> Result<Vec<T>, ParseError> {
        self.list(name)?.ok_or_else(|| self.missing(name))
    }

    /// `{[0:4], [1:7:2]}` as starts, limits and strides.
    pub(super) fn ranges(&self, name: &'static str) -> Result<[Vec<i64>; 3], ParseError> {
        let mut cursor = self.find(name).ok_or_else(|| self.missing(name))?;
        let [mut start, mut limit, mut stride] = [const { Vec::new() }; 3];
        cursor.expect('{')?;
        while !cursor.accept('}') {
            if !start.is_empty() && !cursor.accept(',') {
                return Err(cursor.expected("`,` or `}`"));
            }
            cursor.expect('[')?;
            start.push(cursor.integer("the start of a range")?);
            cursor.expect(':')?;
            limit.push(cursor.integer("the limit of a range")?);
            stride.push(if cursor.accept(':') { cursor.integer("a stride")? } else { 1 });
            cursor.expect(']')?;
        }
        Ok([start, limit, stride])
    }

    /// `0_1x0_2_1` as low, high and interior padding; absent for a scalar.
    pub(super) fn padding(&self, name: &'static str) -> Result<[Vec<i64>; 3], ParseError> {
        let [mut low, mut high, mut interior] = [const { Vec::new() }; 3];
        let Some(mut cursor) = self.find(name) else { return Ok([low, high, interior]) };
        let error = cursor.expected("padding such as 0_1x0_2_1");
        for dim in cursor.word("padding")?.split('x') {
            let numbers: Result<Vec<i64>, _> = dim.split('_').map(str::parse).collect();
            match numbers.as_deref() {
                Ok(&[l, h]) => (low.push(l), high.push(h), interior.push(0)),
                Ok(&[l, h, i]) => (low.push(l), high.push(h), interior.push(i)),
                _ => return Err(error),
            };
        }
        Ok([low, high, interior])
    }

    /// Where the instruction came from, when its metadata says so.
    pub(super) fn source(&self) -> Result<Option<SourceLoc>, ParseError> {
        let Some(mut cursor) = self.find("metadata") else { return Ok(None) };
        let mut source: Option<SourceLoc> = None;
        cursor.expect('{')?;
        while !cursor.accept('}') {
            let field = cursor.word("a field of metadata")?;
            cursor.expect('=')?;
            match field {
                "op_name" => source.get_or_insert_default().op_name = cursor.text()?.to_owned(),
                "source_file" => source.get_or_insert_default().file = cursor.text()?.to_owned(),
                "source_line" => source.get_or_insert_default().line = cursor.integer("a line number")?,
                "stack_frame_id" => {
                    let frame: i64 = cursor.integer("a stack frame")?;
                    if let Some(position) = self.module.frames.get(&frame) {
                        let source = source.get_or_insert_default();
                        source.file.clone_from(&position.file);
                        source.line = position.line;
                    }
                }
                _ => cursor.skip_group()?,
            }
        }
        Ok(source)
    }

    /// Refuses attributes that were not asked for and may matter.
    pub(super) fn finish(&self) -> Result<(), ParseError> {
        let asked = self.asked.borrow();
        let unknown =
            self.instruction.attributes.iter().find(|(name, _, _)| {
                !asked.contains(name.as_str()) && !WITHOUT_EFFECT.contains(&name.as_str())
            });
        match unknown {
            Some((name, at, _)) => {
                let message =
                    format!("`{}` with the attribute `{name}` is not supported", self.instruction.opcode);
                Err(self.module.error(*at, message))
            }
            None => Ok(()),
        }
    }
}
