//! `act rules`: the rewrite rules that every generated backend chooses from, and how each is tested; with a target, the
//! rules derived from its description.

use super::outcome::{CliError, Report};
use act_generator::phase1::{CatalogueEntry, Proof, Selector, catalogue};
use act_generator::{FloatPolicy, Numerics};
use act_isa::load_target;
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

/// The rules derived from a target's description, or the one of this instruction; instructions that have none, and the
/// rewrites left out because they lead to no instruction of it.
///
/// # Errors
/// The target does not load, no rule can be derived from it, or none for the instruction of this name.
pub(super) fn generated(target: &str, name: Option<&str>) -> Result<Report, CliError> {
    let isa = load_target(target)?;
    let selector = Selector::generate(&isa)?;
    let instr = |id| isa.instr(id).name.as_str();
    let wanted = |id| name.is_none_or(|name| name == instr(id));
    let rules: Vec<_> = selector.generated().into_iter().filter(|rule| wanted(rule.instr)).collect();
    let without: Vec<_> = selector.unmatchable().iter().filter(|(id, _)| wanted(*id)).collect();
    if let (true, Some(name)) = (rules.is_empty() && without.is_empty(), name) {
        return Err(CliError::NoInstructionRule { isa: isa.name.clone(), name: name.to_owned() });
    }
    // All policies: what is off only by its policy is not left out.
    let used = selector.rewrites(Numerics { float: FloatPolicy::Fast });
    let pruned: Vec<&str> = Selector::all_rewrites()
        .into_iter()
        .filter(|rule| used.iter().all(|other| other.name != rule.name))
        .map(|rule| rule.name)
        .collect();
    let mut text = rules.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>().join("\n");
    // Writing to a String cannot fail.
    for (id, reason) in &without {
        let _ = writeln!(text, "\nno rule for {}: {reason}", instr(*id));
    }
    if name.is_none() {
        let _ = writeln!(
            text,
            "\n{} rules for {} of {} instructions; {} of {} rewrites of no use here: {}",
            rules.len(),
            isa.instrs.len() - without.len(),
            isa.instrs.len(),
            pruned.len(),
            pruned.len() + used.len(),
            pruned.join(", ")
        );
    }
    let json = json!({
        "target": isa.name,
        "rules": rules.iter().map(|r| json!({ "instruction": instr(r.instr), "text": r.text })).collect::<Vec<_>>(),
        "without": without
            .iter()
            .map(|(id, reason)| json!({ "instruction": instr(*id), "reason": reason.to_string() }))
            .collect::<Vec<_>>(),
        "pruned": pruned,
    });
    Ok(Report { text, json, success: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_shows_the_rule_of_every_instruction_and_what_is_pruned() {
        let all = generated("h_qkv", None).unwrap_or_else(|e| panic!("{e}"));
        let isa = load_target("h_qkv").unwrap_or_else(|e| panic!("{e}"));
        for instr in &isa.instrs {
            assert!(all.text.contains(&format!("rule {}(", instr.name)), "{}:\n{}", instr.name, all.text);
        }
        let pruned = all.json["pruned"].as_array().expect("a list");
        // It has no integers, and adds up only within its products.
        assert!(pruned.iter().any(|name| name == "shl-add") && pruned.iter().all(|name| name != "T-dot"));
        let one = generated("h_qkv", Some("gemm")).unwrap_or_else(|e| panic!("{e}"));
        assert!(one.text.starts_with("rule gemm(") && !one.text.contains("rule softmax("), "{}", one.text);
        let error = generated("h_qkv", Some("no-such")).err().expect("an error").to_string();
        assert!(error.contains("no-such") && error.contains("act rules --target h_qkv"), "{error}");
    }

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
