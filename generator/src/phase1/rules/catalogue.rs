//! All rules with how each is tested, for people who want to read or trust them. The test status is generated data: the
//! tests write it with ACT_BLESS=1 and compare it otherwise.

use super::{Rule, RuleClass, themes};
use crate::numerics::FloatPolicy;

const PROPERTY: &str = include_str!("../../../rules/property.tsv");
const WITNESSES: &str = include_str!("../../../rules/witnesses.tsv");
const PROOFS: &str = include_str!("../../../rules/proofs.tsv");

/// What a proof fixes beside ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Nothing: it holds for all sizes.
    Symbolic,
    /// The sizes of a reshape or a cut, or the length of a sum.
    Concrete,
}

/// A rule and how it is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    pub theme: &'static str,
    pub name: &'static str,
    pub class: RuleClass,
    pub policy: FloatPolicy,
    pub statement: &'static str,
    /// Random kernels on which it was run, and proposals whose value was compared with the reference evaluator's.
    pub cases: usize,
    pub compared: usize,
    /// The kernel whose outcome changes without the rule, as a path within the crate.
    pub witness: Option<&'static str>,
    pub proof: Option<Proof>,
}

impl CatalogueEntry {
    /// Whether the rule counts as one: float algebra is off unless asked for.
    pub fn counted(&self) -> bool {
        self.class != RuleClass::FloatAlgebra
    }
}

/// The fields after the name in the line of a rule.
fn fields<'a>(table: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let lines = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    lines.filter(|l| l.first() == Some(&name)).map(|l| l[1..].to_vec()).next()
}

fn entry(theme: &'static str, rule: &'static Rule) -> CatalogueEntry {
    let property = fields(PROPERTY, rule.name).unwrap_or_default();
    let number = |k: usize| property.get(k).and_then(|n| n.parse().ok()).unwrap_or(0);
    let proof = fields(PROOFS, rule.name).and_then(|f| match f.first() {
        Some(&"symbolic") => Some(Proof::Symbolic),
        Some(&"concrete") => Some(Proof::Concrete),
        _ => None,
    });
    CatalogueEntry {
        theme,
        name: rule.name,
        class: rule.class,
        policy: rule.policy,
        statement: rule.statement,
        cases: number(0),
        compared: number(1),
        witness: fields(WITNESSES, rule.name).and_then(|f| f.first().copied()),
        proof,
    }
}

/// All rules by theme, in the order in which they are tried.
pub fn catalogue() -> Vec<CatalogueEntry> {
    themes().into_iter().flat_map(|(theme, rules)| rules.iter().map(move |rule| entry(theme, rule))).collect()
}
