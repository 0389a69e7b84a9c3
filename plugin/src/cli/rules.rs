//! `act rules`: the rewrite rules that every generated backend chooses from, and how each is tested.

use super::outcome::{CliError, Report};
use act_generator::phase1::{CatalogueEntry, Proof, catalogue};
use serde_json::{Value, json};
use std::fmt::Write as _;

fn proof(entry: &CatalogueEntry) -> &'static str {
    match entry.proof {
        Some(Proof::Symbolic) => "symbolic",
        Some(Proof::Concrete) => "concrete",
        None => "none",
    }
}

fn value(entry: &CatalogueEntry) -> Value {
    json!({
        "theme": entry.theme,
        "name": entry.name,
        "class": entry.class.name(),
        "policy": entry.policy.to_string(),
        "statement": entry.statement,
        "counted": entry.counted(),
        "cases": entry.cases,
        "compared": entry.compared,
        "witness": entry.witness,
        "proof": proof(entry),
    })
}

/// Every rule in a line, by theme.
fn list(entries: &[CatalogueEntry]) -> Report {
    let mut text = String::new();
    let mut theme = "";
    // Writing to a String cannot fail.
    for entry in entries {
        if entry.theme != theme {
            theme = entry.theme;
            let _ = writeln!(text, "{}{theme}", if text.is_empty() { "" } else { "\n" });
        }
        let witness = if entry.witness.is_some() { "witness" } else { "-" };
        let _ = writeln!(
            text,
            "  {:<20} {:<13} {:<5} {:>5} compared  {witness:<7}  proof {:<8}  {}",
            entry.name,
            entry.class.name(),
            entry.policy.to_string(),
            entry.compared,
            proof(entry),
            entry.statement,
        );
    }
    let counted = entries.iter().filter(|e| e.counted()).count();
    let proven = entries.iter().filter(|e| e.proof.is_some()).count();
    let _ = writeln!(
        text,
        "\n{} rules, {counted} of them no float algebra; {proven} with a proof. `act rules NAME` shows one.",
        entries.len()
    );
    let rules: Vec<Value> = entries.iter().map(value).collect();
    Report { text, json: json!({ "rules": rules, "counted": counted, "proven": proven }), success: true }
}

/// One rule in full.
fn show(entry: &CatalogueEntry) -> Report {
    let witness = entry.witness.map_or("none".to_owned(), |path| format!("generator/{path}"));
    let proof = match entry.proof {
        Some(Proof::Symbolic) => "for all sizes",
        Some(Proof::Concrete) => {
            "for all inputs, at fixed sizes of a reshape or cut or a fixed length of a sum"
        }
        None => "none",
    };
    let text = format!(
        "{}\n  theme      {}\n  statement  {}\n  class      {}: {}\n  policy     {} or looser\n  tested     on {} random \
         kernels, {} proposals equal to the reference evaluator's values\n  witness    {witness}\n  proof      {proof}\n",
        entry.name,
        entry.theme,
        entry.statement,
        entry.class.name(),
        entry.class.meaning(),
        entry.policy,
        entry.cases,
        entry.compared,
    );
    Report { text, json: value(entry), success: true }
}

/// Lists the rules, or shows the one of this name.
///
/// # Errors
/// There is no rule of this name.
pub(super) fn rules(name: Option<&str>) -> Result<Report, CliError> {
    let entries = catalogue();
    match name {
        None => Ok(list(&entries)),
        Some(name) => match entries.iter().find(|e| e.name == name) {
            Some(entry) => Ok(show(entry)),
            None => Err(CliError::NoRule { name: name.to_owned() }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_listed_and_shown() {
        let all = rules(None).unwrap_or_else(|e| panic!("{e}"));
        let listed = all.json["rules"].as_array().expect("a list").len();
        assert_eq!(listed, catalogue().len());
        for entry in catalogue() {
            assert!(all.text.contains(entry.name));
            let one = rules(Some(entry.name)).unwrap_or_else(|e| panic!("{e}"));
            assert!(one.text.contains(entry.statement), "{}", one.text);
            assert!(one.json["compared"].as_u64().is_some_and(|n| n > 0), "{}: never compared", entry.name);
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_says_where_to_look() {
        let error = rules(Some("no-such-rule")).err().expect("an error").to_string();
        assert!(error.contains("no-such-rule") && error.contains("act rules"), "{error}");
    }
}
