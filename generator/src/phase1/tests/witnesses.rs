//! Every rule is needed: for each there is a witness, a kernel and a description for which the outcome changes when this
//! one rule is disabled. A witness is a file `generator/witnesses/<theme>/<rule>.witness` of two or three parts between
//! lines of dashes: a header (`has:` operators of a miniature description or `target:` a shipped one, `numerics:`),
//! instructions beside the miniature ones, and the kernel.

use super::execute::{assert_exact, error};
use super::{kernel, miniature};
use crate::numerics::{FloatPolicy, Numerics};
use crate::phase1::rules::{self, Rule, RuleClass};
use crate::phase1::{Limits, Selector};
use act_isa::{Isa, TiledKernel, load_target};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

struct Witness {
    isa: Isa,
    kernel: TiledKernel,
    policy: FloatPolicy,
}

/// Path of every witness, by the name of its rule.
pub(super) fn paths() -> BTreeMap<String, PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("witnesses");
    let mut found = BTreeMap::new();
    for theme in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let theme = theme.expect("a folder's entry").path();
        for file in std::fs::read_dir(&theme).unwrap_or_else(|e| panic!("{}: {e}", theme.display())) {
            let path = file.expect("a folder's entry").path();
            let name = path.file_stem().and_then(|n| n.to_str()).expect("a name in UTF-8").to_owned();
            let before = found.insert(name, path.clone());
            assert!(before.is_none(), "{}: a second witness", path.display());
        }
    }
    found
}

fn witness(path: &Path, rule: &Rule) -> Witness {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parts: Vec<&str> = text.split("\n---\n").collect();
    let (header, more, hlo) = match parts[..] {
        [header, hlo] => (header, "", hlo),
        [header, more, hlo] => (header, more, hlo),
        _ => panic!("{}: two or three parts between lines of dashes", path.display()),
    };
    let (mut isa, mut policy) = (None, rule.policy);
    for line in header.lines().filter(|l| !l.trim().is_empty() && !l.starts_with("//")) {
        match line.split_once(':').map(|(key, value)| (key, value.trim())) {
            Some(("has", operators)) => {
                let text = miniature::description(operators, more);
                let parsed = Isa::parse(&text, "miniature.taidl");
                isa = Some(parsed.unwrap_or_else(|e| panic!("{}:\n{e}\n{text}", path.display())));
            }
            Some(("target", name)) => {
                isa = Some(load_target(name).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
            }
            Some(("numerics", value)) => {
                policy = value.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            }
            _ => panic!("{}: `{line}` is no line of a header", path.display()),
        }
    }
    let isa = isa.unwrap_or_else(|| panic!("{}: neither `has:` nor `target:`", path.display()));
    Witness { isa, kernel: kernel(hlo), policy }
}

/// The description of a rule's witness if it has one, and the same with f32 in place of s32 where that makes sense.
pub(super) fn descriptions(rule: &Rule) -> Vec<Isa> {
    let Some(path) = paths().remove(rule.name) else { return Vec::new() };
    let own = witness(&path, rule).isa;
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let operators = text.lines().find_map(|line| line.strip_prefix("has:"));
    let floats = operators.map(|o| miniature::description(&o.replace("s32", "f32"), ""));
    // What has no float form is no description.
    let floats = floats.and_then(|text| Isa::parse(&text, "miniature.taidl").ok());
    std::iter::once(own).chain(floats).collect()
}

/// Cost of the cheapest graph with these rules, after a check that it computes the kernel; why there is none otherwise.
fn outcome(witness: &Witness, rules: &[&'static Rule], exact: bool) -> Result<u64, String> {
    let selector = Selector::generate(&witness.isa).map_err(|e| e.to_string())?;
    let numerics = Numerics { float: witness.policy };
    let mut selection = selector
        .select_with(&witness.kernel, numerics, &Limits::default(), rules)
        .map_err(|e| e.to_string())?;
    let best = selection.next().ok_or("no graph within the limits")?;
    if exact {
        assert_exact(&witness.isa, &witness.kernel, &best.graph);
    } else {
        (0..3).for_each(|seed| assert!(error(&witness.isa, &witness.kernel, &best.graph, seed) < 1e-2));
    }
    Ok(best.cost)
}

/// What is wrong with a witness.
fn check(rule: &'static Rule, path: &Path) -> Result<(), String> {
    let witness = witness(path, rule);
    let selector = Selector::generate(&witness.isa).map_err(|e| e.to_string())?;
    let all = selector.rewrites(Numerics { float: witness.policy });
    let without: Vec<&'static Rule> = all.iter().copied().filter(|r| r.name != rule.name).collect();
    if without.len() == all.len() {
        return Err("not in use for its witness".to_owned());
    }
    let roots = witness.kernel.graph.roots();
    let float = roots.iter().any(|&r| witness.kernel.graph.shape(r).elem.is_float());
    let exact = !float || (rule.class == RuleClass::Exact && witness.policy == FloatPolicy::Exact);
    let with = outcome(&witness, &all, exact)?;
    match outcome(&witness, &without, exact) {
        Ok(cost) if cost <= with => Err(format!("costs {cost} without it and {with} with it")),
        _ => Ok(()),
    }
}

#[test]
fn disabling_a_rule_changes_the_outcome_of_its_witness() {
    let paths = paths();
    let found: Vec<String> = rules::all()
        .into_iter()
        .filter_map(|rule| {
            let path = paths.get(rule.name)?;
            let checked = std::panic::catch_unwind(|| check(rule, path));
            let wrong = checked.unwrap_or_else(|_| Err("panicked".to_owned())).err()?;
            Some(format!("{}: {wrong}", rule.name))
        })
        .collect();
    assert!(found.is_empty(), "{} witnesses:\n{}", found.len(), found.join("\n"));
}

/// Float algebra does not count: it is off unless asked for.
#[test]
fn every_counted_rule_has_a_witness() {
    let paths = paths();
    let counted = rules::all().into_iter().filter(|r| r.class != RuleClass::FloatAlgebra);
    let without: Vec<&str> = counted.map(|r| r.name).filter(|name| !paths.contains_key(*name)).collect();
    assert!(without.is_empty(), "without a witness: {without:?}");
}

#[test]
fn the_list_of_witnesses_is_what_there_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let line = |(name, path): (String, PathBuf)| {
        let path = path.strip_prefix(folder).expect("within the crate").display().to_string();
        format!("{name}\t{path}\n")
    };
    super::generated::compare("witnesses.tsv", &paths().into_iter().map(line).collect::<String>());
}

#[test]
fn every_witness_is_of_a_rule() {
    let all = rules::all();
    for (name, path) in paths() {
        assert!(all.iter().any(|r| r.name == name), "{}: no rule of this name", path.display());
    }
}
