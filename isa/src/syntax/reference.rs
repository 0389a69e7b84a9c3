//! The language reference, `TAIDL.md`, against the front end: its examples are descriptions without a fault, and nothing
//! of the language is missing from it.

use super::diagnostic::Problem;
use super::parser::{ITEMS, PARTS};
use crate::Isa;
use act_hlo::{Binary, ElemType, Unary};

const REFERENCE: &str = include_str!("../../TAIDL.md");

/// Blocks marked with `language`.
pub(super) fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    REFERENCE.split(opening.as_str()).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_examples_are_right_and_print_to_themselves() {
    let examples = blocks("taidl");
    assert!(examples.len() >= 5);
    for text in examples {
        let (isa, mut warnings) =
            Isa::parse_with_warnings(text, "TAIDL.md").unwrap_or_else(|e| panic!("{e}"));
        // An example may end before its values get back to main memory.
        let expected = |p: &Problem| matches!(p, Problem::NeverRead(_));
        warnings.list.retain(|w| !expected(&w.problem));
        assert!(warnings.list.is_empty(), "{warnings}");
        let again = Isa::parse(&isa.print(), "printed").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(isa, again);
    }
}

#[test]
fn the_grammar_has_every_word_of_the_language() {
    let grammar = blocks("ebnf").concat();
    let quoted = |word: &str| grammar.contains(&format!("\"{word}\""));
    for word in ITEMS.iter().chain(&PARTS).copied().chain(ElemType::ALL.iter().map(|e| e.name())) {
        assert!(quoted(word), "{word}");
    }
    for word in super::scope::RESERVED {
        assert!(quoted(word), "{word}");
    }
}

#[test]
fn the_table_has_every_operator() {
    let names = Unary::ALL.iter().map(|u| u.name()).chain(Binary::ALL.iter().map(|b| b.name()));
    for name in names.chain(super::lower_stmt::STRUCTURED) {
        let listed = REFERENCE.contains(&format!("`{name}`")) || REFERENCE.contains(&format!("`{name}("));
        assert!(listed, "{name}");
    }
}
