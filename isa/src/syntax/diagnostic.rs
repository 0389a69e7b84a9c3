//! What is wrong with a description, where, and how it is shown: file, line, column, the line and a caret.

use std::fmt;
use std::sync::Arc;

/// Characters of a line that are shown.
const WIDTH: usize = 120;
/// Characters of a word that are quoted.
const MAX_QUOTED: usize = 60;
/// Faults that are shown of one text.
const MAX_SHOWN: usize = 40;

/// A byte range of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The range that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// The kinds of faults in a description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("unexpected character {0:?}")]
    UnexpectedCharacter(char),
    #[error("this {0} does not end on its line")]
    Unterminated(&'static str),
    #[error("`{}` is no number that fits", quoted(.0))]
    BadNumber(String),
    #[error("expected {expected}, found {found}")]
    Expected { expected: String, found: String },
    #[error("unknown {what} `{}`{}", quoted(name), nearest.as_ref().map(|n| format!("; the nearest known one is `{n}`")).unwrap_or_default())]
    UnknownName { what: &'static str, name: String, nearest: Option<String> },
    #[error("{what} `{name}` is declared twice")]
    DuplicateName { what: &'static str, name: String },
    #[error("`{0}` is a word of the language and cannot be an attribute")]
    ReservedName(String),
    #[error("{of} has no {what}")]
    Missing { what: &'static str, of: String },
    #[error("{of} has a second {what}")]
    Repeated { what: &'static str, of: String },
    #[error("this nests deeper than {0} levels")]
    TooDeep(usize),
    #[error("too many {what}: at most {limit}")]
    TooMany { what: &'static str, limit: usize },
    #[error("{what}: expected {expected}, got {got}")]
    Count { what: String, expected: usize, got: usize },
    #[error("this has no value here: {0}")]
    NotConstant(String),
    #[error("the range {min}..{max} is empty")]
    EmptyRange { min: i64, max: i64 },
    #[error("{0} must be at least 1")]
    NotPositive(&'static str),
    #[error("{0}")]
    Constant(#[from] crate::constant::ConstantError),
    #[error("operator `{op}`: {message}")]
    Operator { op: String, message: String },
    #[error("{}{message}", if alpha.is_empty() { String::new() } else { format!("for {alpha}: ") })]
    Type {
        alpha: String,
        message: String,
        /// Attribute values for which nothing is wrong.
        fits: Option<String>,
    },
    #[error("{}{message}", if given.is_empty() { String::new() } else { format!("for {given}: ") })]
    FieldOverflow {
        /// Attribute values that show it.
        given: String,
        message: String,
        /// Bits that every value fits, and whether some are negative.
        bits: u32,
        signed: bool,
    },
    #[error("no legal values of the attributes were found: the requirements seem to contradict each other")]
    NoLegalAlpha,
    #[error("no values of the attributes fulfil the requirements")]
    Contradiction,
    #[error("this can never hold{}{}",
        if *together { " together with the requirements before it" } else { "" },
        if addresses.is_empty() { String::new() } else { format!(": {addresses}") })]
    Unreachable {
        /// Whether earlier requirements take part.
        together: bool,
        /// What the memories leave of the addresses in it.
        addresses: String,
    },
    #[error("attribute `{name}` {why}, so the compiler cannot solve it")]
    Unsolvable { name: String, why: &'static str },
    #[error("addressing attribute `{0}` is used nowhere")]
    UnusedBeta(String),
    #[error("`{0}` is used both as an address of main memory and as a position on chip")]
    MixedBeta(String),
    #[error("the address must be one addressing attribute plus an offset")]
    WindowStart,
    #[error(
        "an output is named at the end of the block: mark the statement after the branch, or write `return NAME`"
    )]
    NestedRoot,
    #[error("parameters stand outside of `if` and `repeat`")]
    NestedParameter,
    #[error("{0}")]
    Encoding(String),
    #[error(
        "instruction `{name}` writes {stores} places of main memory, and the compiler selects only instructions that \
         write one"
    )]
    SeveralStores { name: String, stores: usize },
    #[error("the semantics do not use this slice")]
    UnusedInput,
    #[error("this is the same slice as an earlier output; only one of them can be written")]
    SameOutput,
    #[error("no instruction writes buffer `{0}`, but one reads it")]
    NeverWritten(String),
    #[error("no instruction uses buffer `{0}`")]
    UnusedBuffer(String),
    #[error("nothing reads buffer `{0}`: what is written into it is lost")]
    NeverRead(String),
    #[error("this can never be executed: nothing brings a first value into buffer `{0}`")]
    NeverProduced(String),
    #[error("{0}")]
    Template(crate::assembly::TemplateError),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub problem: Problem,
    pub span: Span,
}

impl Diagnostic {
    pub fn error(span: Span, problem: Problem) -> Diagnostic {
        Diagnostic { severity: Severity::Error, problem, span }
    }

    pub fn warning(span: Span, problem: Problem) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, problem, span }
    }
}

/// Everything found in one file, in the order of the text where it matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    pub file: String,
    pub text: Arc<str>,
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Line and column, both counted from 1, of a byte offset; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = self.before(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The text up to `offset`, moved back to a character border.
    fn before(&self, offset: usize) -> &str {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }

    fn render(&self, f: &mut fmt::Formatter<'_>, diagnostic: &Diagnostic) -> fmt::Result {
        let (line, column) = self.line_column(diagnostic.span.start);
        let word = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(f, "{word}: {}", diagnostic.problem)?;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{margin}--> {}:{line}:{column}", self.file)?;
        let source = self.text.lines().nth(line - 1).unwrap_or("");
        let (end_line, end_column) = self.line_column(diagnostic.span.end);
        let last = if end_line == line { end_column } else { source.chars().count() + 1 };
        // A long line is shown around its fault.
        let from = if column > WIDTH { column - WIDTH / 2 } else { 1 };
        let long = source.chars().count() >= from + WIDTH;
        let shown: String = source.chars().skip(from - 1).take(WIDTH).collect();
        let (head, tail) = (if from > 1 { "…" } else { "" }, if long { "…" } else { "" });
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {head}{shown}{tail}")?;
        // Tabs are kept, so that the caret stands under its character whatever their width.
        let indent: String =
            shown.chars().take(column - from).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let pad = if from > 1 { " " } else { "" };
        let width = last.saturating_sub(column).clamp(1, WIDTH.saturating_sub(column - from).max(1));
        write!(f, "{margin} | {pad}{indent}{}", "^".repeat(width))?;
        match diagnostic.problem.mend() {
            Some(mend) => write!(f, "\n{margin} = {mend}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, diagnostic) in self.list.iter().take(MAX_SHOWN).enumerate() {
            if k > 0 {
                f.write_str("\n\n")?;
            }
            self.render(f, diagnostic)?;
        }
        match self.list.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

impl std::error::Error for Diagnostics {}

/// A word as messages quote it: a long one is cut.
pub(super) fn quoted(word: &str) -> String {
    match word.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

/// The candidate closest to `name` by edit distance, if one is close enough to be a likely slip.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let limit = (name.chars().count() / 3).max(1) + 1;
    if name.chars().count() > MAX_QUOTED {
        return None;
    }
    // A word that was meant to be longer than it is spelled, such as `instruction`, is near its beginning.
    let short_form = |candidate: &str| candidate.len() >= 4 && name.starts_with(candidate);
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= limit || short_form(candidate))
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein distance over characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_likely_slip() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(nearest("spad", ["acc", "sp"]), Some("sp".to_owned()));
        assert_eq!(nearest("weights", ["acc", "sp"]), None);
        assert_eq!(nearest("instruction", ["unit", "instr"]), Some("instr".to_owned()));
    }

    #[test]
    fn a_caret_stands_under_the_fault() {
        let text = "isa x\n\tbuffer ü: q8[1]\n";
        let start = text.find("q8").unwrap();
        let problem =
            Problem::UnknownName { what: "element type", name: "q8".into(), nearest: Some("s8".into()) };
        let list = vec![Diagnostic::error(Span { start, end: start + 2 }, problem)];
        let shown = Diagnostics { file: "x.taidl".into(), text: text.into(), list }.to_string();
        let expected = "error: unknown element type `q8`; the nearest known one is `s8`\n --> x.taidl:2:12\n  |\n\
                        2 | \tbuffer ü: q8[1]\n  | \t          ^^\n  = write `s8`?";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_line_is_shown_around_its_fault() {
        let text = format!("{}${}", "x ".repeat(50_000), " y".repeat(50_000));
        let list =
            vec![Diagnostic::error(Span { start: 100_000, end: 100_001 }, Problem::UnexpectedCharacter('$'))];
        let shown = Diagnostics { file: "x".into(), text: text.into(), list }.to_string();
        assert!(shown.len() < 600, "{}", shown.len());
        let lines: Vec<&str> = shown.lines().collect();
        let at = |line: &str, c: char| line.chars().position(|d| d == c);
        assert_eq!(at(lines[3], '$'), at(lines[4], '^'), "{shown}");
    }

    #[test]
    fn only_so_many_faults_are_shown() {
        let list = vec![Diagnostic::error(Span::default(), Problem::UnexpectedCharacter('$')); 100];
        let shown = Diagnostics { file: "x".into(), text: "$".into(), list }.to_string();
        assert_eq!(shown.matches("unexpected").count(), MAX_SHOWN);
        assert!(shown.ends_with("and 60 more"));
    }
}
