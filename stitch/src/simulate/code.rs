//! Text of MLIR functions under construction: SSA names, nesting, the handful of operations that all generated
//! code needs. Knows nothing of tensors.

use std::fmt::{self, Write};

/// An SSA value of the function being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    name: u32,
    /// Which result of an operation with several.
    part: Option<u32>,
}

impl Value {
    /// The k-th result of the operation that defines this name.
    pub(crate) fn part(self, k: u32) -> Value {
        Value { part: Some(k), ..self }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%v{}", self.name)?;
        self.part.map_or(Ok(()), |part| write!(f, "#{part}"))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Code {
    text: String,
    next: u32,
    depth: usize,
}

impl Code {
    /// A fresh name, to be defined by the text that the caller writes.
    pub(crate) fn name(&mut self) -> Value {
        self.next += 1;
        Value { name: self.next, part: None }
    }

    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) {
        for _ in 0..=self.depth {
            self.text.push_str("  ");
        }
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(text);
        self.text.push('\n');
    }

    /// An operation with one result.
    pub(crate) fn op(&mut self, text: fmt::Arguments<'_>) -> Value {
        let value = self.name();
        self.line(format_args!("{value} = {text}"));
        value
    }

    /// Writes `header {`.
    pub(crate) fn open(&mut self, header: fmt::Arguments<'_>) {
        self.line(format_args!("{header} {{"));
        self.depth += 1;
    }

    pub(crate) fn close(&mut self) {
        self.depth -= 1;
        self.line(format_args!("}}"));
    }

    pub(crate) fn const_i64(&mut self, value: i64) -> Value {
        self.op(format_args!("arith.constant {value} : i64"))
    }

    pub(crate) fn add_i64(&mut self, value: Value, add: i64) -> Value {
        let add = self.const_i64(add);
        self.op(format_args!("arith.addi {value}, {add} overflow<nsw> : i64"))
    }

    pub(crate) fn mul_i64(&mut self, value: Value, factor: i64) -> Value {
        let factor = self.const_i64(factor);
        self.op(format_args!("arith.muli {value}, {factor} overflow<nsw> : i64"))
    }

    /// `base + offset` bytes.
    pub(crate) fn pointer(&mut self, base: Value, offset: Value) -> Value {
        self.op(format_args!("llvm.getelementptr {base}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8"))
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}
