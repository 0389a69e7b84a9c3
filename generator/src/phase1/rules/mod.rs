//! IR-to-IR rewrites as data: what a rule is, and the list of all of them. The rules stand in one file per theme; their
//! laws are in RULES.md. Knows no accelerator: a rule asks the vocabulary of the description what is worth producing.

mod add;
mod bytes;
mod catalogue;
mod commute;
mod compare;
mod compose;
mod contraction;
mod convert;
mod cut;
mod divide;
mod division;
mod dot;
mod dot_algebra;
mod dot_structure;
mod extrema;
mod fma;
mod identity;
mod known;
mod logical;
mod mask;
mod multiply;
mod narrow;
mod order;
mod pieces;
mod product_of_constant;
mod ragged;
mod reduce;
mod reduce_algebra;
mod reduce_terms;
mod saturate;
mod select;
mod shift;
mod slot;
mod softmax;
mod stack;
mod subtract;
mod sum;
mod tile;
mod unary;
mod width;

pub(crate) use super::context::Context;
pub use catalogue::{CatalogueEntry, Proof, catalogue};
pub(super) use tile::fits;

use super::language::TensorNode;
use super::term::Term;
use super::vocabulary::Vocabulary;
use crate::numerics::FloatPolicy;
use act_hlo::{Binary, ElemType, Literal, Shape};
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

impl RuleClass {
    /// The class in a word.
    pub fn name(self) -> &'static str {
        match self {
            RuleClass::Exact => "exact",
            RuleClass::Integer => "integer",
            RuleClass::Conditional => "conditional",
            RuleClass::FloatAlgebra => "float-algebra",
        }
    }

    /// What it promises.
    pub fn meaning(self) -> &'static str {
        match self {
            RuleClass::Exact => "bit for bit, for every type",
            RuleClass::Integer => "exact for wrapping integers; another rounding of floats",
            RuleClass::Conditional => "exact under a condition that the rule checks",
            RuleClass::FloatAlgebra => "equal over the real numbers",
        }
    }
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

/// The themes with their rules, in the order in which they are tried.
fn themes() -> Vec<(&'static str, &'static [Rule])> {
    vec![
        ("identities", identity::RULES),
        ("movement composed", compose::RULES),
        ("elementwise operators and movement", commute::RULES),
        ("conversions", convert::RULES),
        ("products", dot::RULES),
        ("reductions", reduce::RULES),
        ("order", order::RULES),
        ("division", division::RULES),
        ("sums", sum::RULES),
        ("softmax", softmax::RULES),
        ("tiling", tile::RULES),
        ("addition", add::RULES),
        ("subtraction", subtract::RULES),
        ("multiplication", multiply::RULES),
        ("quotients", divide::RULES),
        ("unary operators", unary::RULES),
        ("logic", logical::RULES),
        ("shifts", shift::RULES),
        ("comparisons", compare::RULES),
        ("selections", select::RULES),
        ("extrema", extrema::RULES),
        ("widths", width::RULES),
        ("slots", slot::RULES),
        ("fused multiply-add", fma::RULES),
        ("narrowing", narrow::RULES),
        ("saturation", saturate::RULES),
        ("contraction", contraction::RULES),
        ("algebra of products", dot_algebra::RULES),
        ("structure of products", dot_structure::RULES),
        ("products with constants", product_of_constant::RULES),
        ("algebra of reductions", reduce_algebra::RULES),
        ("terms of reductions", reduce_terms::RULES),
        ("cuts and padding", cut::RULES),
        ("ragged edges", ragged::RULES),
        ("bytes", bytes::RULES),
        ("masks", mask::RULES),
        ("movement in pieces", pieces::RULES),
        ("stacked blocks", stack::RULES),
    ]
}

/// All rules, in the order in which they are tried.
pub(crate) fn all() -> Vec<&'static Rule> {
    themes().into_iter().flat_map(|(_, rules)| rules).collect()
}

/// For rules whose right side is made of operators that its left side already has.
fn always(_: &Vocabulary) -> bool {
    true
}

/// The number 1 of a type.
fn one(elem: ElemType) -> Option<Literal> {
    act_isa::constant::int_scalar(elem, 1).ok()
}

/// The value that a combiner leaves every other value unchanged with, zeros of floats aside: `0.0 + -0.0` is `0.0`.
fn neutral(combiner: Binary, elem: ElemType) -> Option<Literal> {
    use act_isa::constant::{f32_scalar, int_scalar};
    let bits = elem.bits();
    let least = || match elem {
        _ if elem.is_float() => f32_scalar(elem, f32::NEG_INFINITY.to_bits()).ok(),
        _ if elem.is_signed_int() => int_scalar(elem, i64::MIN >> (64 - bits)).ok(),
        _ => int_scalar(elem, 0).ok(),
    };
    let most = || match elem {
        _ if elem.is_float() => f32_scalar(elem, f32::INFINITY.to_bits()).ok(),
        _ if elem.is_signed_int() => int_scalar(elem, i64::MAX >> (64 - bits)).ok(),
        _ => Literal::from_bytes(Shape::scalar(elem), vec![0xff; elem.bytes() as usize]).ok(),
    };
    if elem.is_complex() || elem == ElemType::Pred || (elem.is_int() && u64::from(bits) != 8 * elem.bytes()) {
        return None;
    }
    match combiner {
        Binary::Add => int_scalar(elem, 0).ok(),
        Binary::Multiply => int_scalar(elem, 1).ok(),
        Binary::Maximum => least(),
        Binary::Minimum => most(),
        Binary::Or | Binary::Xor if elem.is_int() => int_scalar(elem, 0).ok(),
        Binary::And if elem.is_int() => {
            Literal::from_bytes(Shape::scalar(elem), vec![0xff; elem.bytes() as usize]).ok()
        }
        _ => None,
    }
}

/// The type in which a dot or a reduction of this type adds up before it rounds.
pub(super) fn summed_in(elem: ElemType) -> ElemType {
    match elem {
        ElemType::BF16 | ElemType::F16 => ElemType::F32,
        elem => elem,
    }
}
