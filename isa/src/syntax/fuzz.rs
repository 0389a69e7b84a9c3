//! No text makes the front end panic, and what parses prints to itself.

use crate::Isa;
use proptest::collection::vec;
use proptest::prelude::*;

/// A cut of a valid description replaced by something.
#[derive(Clone, Debug)]
enum Edit {
    Delete(usize, usize),
    Insert(usize, String),
    Copy(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        ":+",
        "..",
        "`",
        "\"",
        "//",
        "#",
        "%",
        "@",
        "@c.",
        "-",
        "+",
        "*",
        "/",
        "<<",
        "==",
        "and",
        "or",
        "not",
        "in",
        "by",
        "9223372036854775808",
        "-9223372036854775808",
        "0",
        "1",
        "65",
        "0x80",
        "1e999",
        "0.5",
        "ROOT",
        "return",
        "constant(",
        "parameter(7)",
        "f32",
        "s4[1]",
        "pred",
        "c64",
        "min(",
        "ceildiv(",
        "instr",
        "buffer",
        "hbm",
        "alpha(",
        "out",
        "require",
        "dimensions={9}",
        "slice={[0:1]}",
        "é",
        "\n",
    ]);
    prop_oneof![
        (any::<usize>(), 0..40usize).prop_map(|(at, len)| Edit::Delete(at, len)),
        (any::<usize>(), words.prop_map(str::to_owned)).prop_map(|(at, text)| Edit::Insert(at, text)),
        (any::<usize>(), 0..80usize, any::<usize>()).prop_map(|(from, len, to)| Edit::Copy(from, len, to)),
    ]
}

fn border(text: &str, at: usize) -> usize {
    let mut at = at % (text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn apply(text: &mut String, edit: &Edit) {
    match edit {
        Edit::Delete(at, len) => {
            let start = border(text, *at);
            let end = border(text, (start + len).min(text.len()));
            text.replace_range(start..end.max(start), "");
        }
        Edit::Insert(at, piece) => text.insert_str(border(text, *at), piece),
        Edit::Copy(from, len, to) => {
            let start = border(text, *from);
            let end = border(text, (start + len).min(text.len())).max(start);
            let piece = text[start..end].to_owned();
            text.insert_str(border(text, *to), &piece);
        }
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match Isa::parse(text, "fuzz") {
        Ok(isa) => {
            let printed = isa.print();
            let again = Isa::parse(&printed, "printed");
            prop_assert_eq!(again.as_ref().ok(), Some(&isa), "{}", printed);
        }
        Err(diagnostics) => prop_assert!(!diagnostics.to_string().is_empty()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_descriptions_are_judged(which in 0..2usize, edits in vec(edit(), 1..4)) {
        let mut text = crate::targets()[which].1.to_owned();
        edits.iter().for_each(|edit| apply(&mut text, edit));
        check(&text)?;
    }

    #[test]
    fn any_text_is_judged(text in "\\PC{0,200}") {
        check(&text)?;
    }

    #[test]
    fn any_words_are_judged(edits in vec(edit(), 0..60)) {
        let mut text = String::new();
        edits.iter().for_each(|edit| apply(&mut text, edit));
        check(&text)?;
    }
}
