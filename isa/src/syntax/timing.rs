//! Queues and banks: from tokens to the model, and back to text.

use super::ast::{Name, Term};
use super::diagnostic::{Diagnostic, Problem, Span, nearest};
use super::parser::{Parsed, Parser};
use super::scope::Scope;
use crate::model::{BufferId, Isa};
use crate::timing::{Banks, Queue};
use std::fmt::Write;

const QUEUE_PARTS: [&str; 6] = ["depth", "issue", "start", "latency", "serial", "yields"];
const BANKS_PARTS: [&str; 1] = ["port"];

/// What stands between the braces of a `queue` or `banks` item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimingParts {
    numbers: Vec<(Name, Term)>,
    serial: bool,
    yields: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TimingAst {
    Queue { unit: Name, parts: TimingParts },
    Banks { buffer: Name, count: (Vec<Term>, Span), parts: TimingParts },
}

impl Parser {
    /// What follows `queue`: a unit and its parts in braces.
    pub(super) fn queue(&mut self) -> Parsed<TimingAst> {
        let unit = self.name("a unit's name")?;
        let parts = self.timing_parts(&format!("queue `{}`", unit.text), "part of a queue", &QUEUE_PARTS)?;
        Ok(TimingAst::Queue { unit, parts })
    }

    /// What follows `banks`: a buffer, numbers of banks in parentheses, and parts in braces.
    pub(super) fn banks(&mut self) -> Parsed<TimingAst> {
        let buffer = self.name("a buffer's name")?;
        let start = self.span();
        self.expect("(")?;
        let terms = self.list(")", Parser::term)?;
        let count = (terms, start.to(self.last_span()));
        let of = format!("`banks {}`", buffer.text);
        let parts = self.timing_parts(&of, "part of `banks`", &BANKS_PARTS)?;
        Ok(TimingAst::Banks { buffer, count, parts })
    }

    fn timing_parts(&mut self, of: &str, what: &'static str, words: &[&str]) -> Parsed<TimingParts> {
        self.expect("{")?;
        let mut parts = TimingParts { numbers: Vec::new(), serial: false, yields: false };
        while !self.eat("}") {
            let word = self.name(&format!("a {what} or `}}`"))?;
            if !words.contains(&word.text.as_str()) {
                let nearest = nearest(&word.text, words.iter().copied());
                let problem = Problem::UnknownName { what, name: word.text, nearest };
                return Err(Diagnostic::error(word.span, problem));
            }
            let flag = match word.text.as_str() {
                "serial" => Some(&mut parts.serial),
                "yields" => Some(&mut parts.yields),
                _ => None,
            };
            let number = flag.is_none();
            let repeated = match flag {
                Some(flag) => std::mem::replace(flag, true),
                None => parts.numbers.iter().any(|(name, _)| name.text == word.text),
            };
            if repeated {
                let what = words_of(&word.text);
                return Err(Diagnostic::error(word.span, Problem::Repeated { what, of: of.to_owned() }));
            }
            if number {
                let value = self.term()?;
                parts.numbers.push((word, value));
            }
            self.eat(";");
        }
        Ok(parts)
    }
}

/// A part as diagnostics name it.
fn words_of(word: &str) -> &'static str {
    match word {
        "depth" => "`depth`",
        "issue" => "`issue`",
        "start" => "`start`",
        "latency" => "`latency`",
        "serial" => "`serial`",
        "yields" => "`yields`",
        _ => "`port`",
    }
}

/// A number of cycles or instructions.
fn count(term: &Term, scope: &Scope) -> Parsed<u64> {
    let value = scope.value(term)?;
    u64::try_from(value).ok().filter(|&v| v <= u64::from(u32::MAX)).ok_or_else(|| {
        let expected = format!("a number in 0..{}", u32::MAX);
        Diagnostic::error(term.span, Problem::Expected { expected, found: value.to_string() })
    })
}

fn positive(what: &'static str, term: &Term, scope: &Scope) -> Parsed<u64> {
    match count(term, scope)? {
        0 => Err(Diagnostic::error(term.span, Problem::NotPositive(what))),
        value => Ok(value),
    }
}

impl TimingParts {
    fn part(&self, word: &str) -> Option<&Term> {
        self.numbers.iter().find(|(name, _)| name.text == word).map(|(_, term)| term)
    }

    fn cycles(&self, word: &str, scope: &Scope) -> Parsed<u64> {
        self.part(word).map_or(Ok(0), |term| count(term, scope))
    }
}

impl TimingAst {
    /// Adds the item to the model, whose units and buffers are known. An item about something in `faulty`, which has a
    /// fault of its own, is passed over.
    pub(super) fn lower(&self, isa: &mut Isa, scope: &Scope, faulty: &[String]) -> Parsed<()> {
        match self {
            TimingAst::Queue { unit, parts } => {
                let Some(at) = isa.unit_named(&unit.text) else {
                    let nearest = nearest(&unit.text, isa.units.iter().map(String::as_str));
                    let problem = Problem::UnknownName { what: "unit", name: unit.text.clone(), nearest };
                    return Err(Diagnostic::error(unit.span, problem));
                };
                if isa.timing.queue(at).is_some() {
                    let problem = Problem::DuplicateName { what: "queue", name: unit.text.clone() };
                    return Err(Diagnostic::error(unit.span, problem));
                }
                let depth = parts.part("depth").map(|term| positive("the depth", term, scope)).transpose()?;
                isa.timing.queues.push(Queue {
                    unit: at,
                    depth,
                    issue: parts.cycles("issue", scope)?,
                    start: parts.cycles("start", scope)?,
                    latency: parts.cycles("latency", scope)?,
                    serial: parts.serial,
                    yields: parts.yields,
                });
            }
            TimingAst::Banks { buffer, .. } if faulty.contains(&buffer.text) => {}
            TimingAst::Banks { buffer, count: (terms, span), parts } => {
                let Some(at) = isa.buffers.iter().position(|b| b.name == buffer.text) else {
                    let nearest = nearest(&buffer.text, isa.buffers.iter().map(|b| b.name.as_str()));
                    let problem = Problem::UnknownName { what: "buffer", name: buffer.text.clone(), nearest };
                    return Err(Diagnostic::error(buffer.span, problem));
                };
                let id = BufferId(at as u16);
                if isa.timing.banks(id).is_some() {
                    let problem =
                        Problem::DuplicateName { what: "`banks` of buffer", name: buffer.text.clone() };
                    return Err(Diagnostic::error(buffer.span, problem));
                }
                let access = &isa.buffers[at].access;
                if terms.len() != access.len() {
                    let what = format!("numbers of banks, one per access dimension of `{}`", buffer.text);
                    let problem = Problem::Count { what, expected: access.len(), got: terms.len() };
                    return Err(Diagnostic::error(*span, problem));
                }
                let count = terms
                    .iter()
                    .zip(access)
                    .map(|(term, &size)| {
                        let value = positive("the number of banks", term, scope)?;
                        if size.is_multiple_of(value) {
                            return Ok(value);
                        }
                        let expected = format!("a divisor of the dimension, which is {size}");
                        let found = value.to_string();
                        Err(Diagnostic::error(term.span, Problem::Expected { expected, found }))
                    })
                    .collect::<Parsed<Vec<u64>>>()?;
                let port = parts.cycles("port", scope)?;
                isa.timing.banks.push(Banks { buffer: id, count, port });
            }
        }
        Ok(())
    }
}

/// The items about time.
pub(super) fn print(isa: &Isa, out: &mut String) {
    for Queue { unit, depth, issue, start, latency, serial, yields } in &isa.timing.queues {
        let name = isa.units.get(usize::from(*unit)).map_or("?", String::as_str);
        let _ = write!(out, "queue {name} {{");
        if let Some(depth) = depth {
            let _ = write!(out, " depth {depth}");
        }
        for (word, value) in [("issue", issue), ("start", start), ("latency", latency)] {
            if *value != 0 {
                let _ = write!(out, " {word} {value}");
            }
        }
        for (word, flag) in [("serial", serial), ("yields", yields)] {
            if *flag {
                let _ = write!(out, " {word}");
            }
        }
        out.push_str(" }\n");
    }
    for Banks { buffer, count, port } in &isa.timing.banks {
        let name = isa.buffers.get(usize::from(buffer.0)).map_or("?", |b| b.name.as_str());
        let count: Vec<String> = count.iter().map(u64::to_string).collect();
        let _ = write!(out, "banks {name}({}) {{", count.join(", "));
        if *port != 0 {
            let _ = write!(out, " port {port}");
        }
        out.push_str(" }\n");
    }
}
