//! IR-to-IR rewrites as data: what a rule is, and the list of all of them. The rules stand in one file per theme; their
//! laws are in RULES.md. Knows no accelerator: a rule asks the vocabulary of the description what is worth producing.

mod add;
mod commute;
mod compare;
mod compose;
mod convert;
mod divide;
mod division;
mod dot;
mod extrema;
mod fma;
mod identity;
mod known;
mod logical;
mod multiply;
mod narrow;
mod order;
mod reduce;
mod select;
mod shift;
mod slot;
mod softmax;
mod subtract;
mod sum;
mod tile;
mod unary;
mod width;

pub(crate) use super::context::Context;
use super::language::TensorNode;
use super::term::Term;
use super::vocabulary::Vocabulary;
use crate::numerics::FloatPolicy;
use act_hlo::ElemType;
use egg::Id;

/// What "equal" means for the two sides of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleClass {
    /// Bit for bit, for every type.
    Exact,
    /// Exact for wrapping integers; changes the rounding of floats, so floats need the policy `xla`.
    Integer,
    /// Exact under a side condition that the rule checks.
    Conditional,
    /// Float algebra.
    FloatAlgebra,
}

/// One rewrite schema. `rewrite` proposes terms equal to the class that the node belongs to.
pub struct Rule {
    pub name: &'static str,
    pub class: RuleClass,
    /// The least policy under which it may touch floats.
    pub policy: FloatPolicy,
    /// Left side, right side and precondition, in the notation of the catalogue.
    pub statement: &'static str,
    /// Whether the right side can help to reach an instruction.
    pub(crate) useful: fn(&Vocabulary) -> bool,
    pub(crate) rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
}

impl Rule {
    const fn new(
        class: RuleClass,
        name: &'static str,
        statement: &'static str,
        useful: fn(&Vocabulary) -> bool,
        rewrite: fn(&Context<'_>, Id, &TensorNode, &mut Vec<Term>),
    ) -> Rule {
        let policy = match class {
            RuleClass::FloatAlgebra => FloatPolicy::Fast,
            _ => FloatPolicy::Exact,
        };
        Rule { name, class, policy, statement, useful, rewrite }
    }
}

/// All rules, in the order in which they are tried.
pub(crate) fn all() -> Vec<&'static Rule> {
    [
        identity::RULES,
        compose::RULES,
        commute::RULES,
        convert::RULES,
        dot::RULES,
        reduce::RULES,
        order::RULES,
        division::RULES,
        sum::RULES,
        softmax::RULES,
        tile::RULES,
        add::RULES,
        subtract::RULES,
        multiply::RULES,
        divide::RULES,
        unary::RULES,
        logical::RULES,
        shift::RULES,
        compare::RULES,
        select::RULES,
        extrema::RULES,
        width::RULES,
        slot::RULES,
        fma::RULES,
        narrow::RULES,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// For rules whose right side is made of operators that its left side already has.
fn always(_: &Vocabulary) -> bool {
    true
}

/// The type in which a dot or a reduction of this type adds up before it rounds.
pub(super) fn summed_in(elem: ElemType) -> ElemType {
    match elem {
        ElemType::BF16 | ElemType::F16 => ElemType::F32,
        elem => elem,
    }
}
