//! IR-to-IR rewrites as data: what a rule is, and the list of all of them. The rules stand in one file per theme; their
//! laws are in RULES.md. Knows no accelerator: a rule asks the vocabulary of the description what is worth producing.

mod commute;
mod compose;
mod convert;
mod division;
mod dot;
mod fma;
mod identity;
mod narrow;
mod order;
mod reduce;
mod slot;
mod softmax;
mod sum;
mod tile;

use super::facts::{TensorGraph, Value};
use super::language::{HeadOp, TensorNode};
use super::term::{Kind, Term};
use super::vocabulary::Vocabulary;
use crate::numerics::FloatPolicy;
use act_hlo::{ElemType, Literal, Shape};
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

/// What a rule may look at.
pub(crate) struct Context<'a> {
    pub(crate) egraph: &'a TensorGraph,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) policy: FloatPolicy,
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

impl<'a> Context<'a> {
    pub(crate) fn nodes(&self, id: Id) -> &'a [TensorNode] {
        &self.egraph[id].nodes
    }

    pub(crate) fn shape(&self, id: Id) -> &'a Shape {
        &self.egraph[id].data.shape
    }

    pub(crate) fn same(&self, a: Id, b: Id) -> bool {
        self.egraph.find(a) == self.egraph.find(b)
    }

    /// The class as a term.
    pub(crate) fn class(&self, id: Id) -> Term {
        Term { shape: self.shape(id).clone(), kind: Kind::Class(id) }
    }

    /// The one value of every element.
    pub(crate) fn splat(&self, id: Id) -> Option<&'a Literal> {
        match self.egraph[id].data.value? {
            Value::Splat(c) => Some(self.egraph.analysis.literal(c)),
            Value::Dense(_) => None,
        }
    }

    pub(crate) fn is_constant(&self, id: Id) -> bool {
        self.egraph[id].data.value.is_some()
    }

    /// The splat value as a real number.
    pub(crate) fn number(&self, id: Id) -> Option<f64> {
        self.splat(id).and_then(super::facts::real_value)
    }

    /// Operands of the nodes of a class with this operator, for operators without sizes.
    pub(crate) fn operands_of(&self, id: Id, op: &HeadOp) -> impl Iterator<Item = &'a [Id]> {
        let op = op.clone();
        self.nodes(id).iter().filter(move |n| *n.op() == op).map(|n| n.operands.as_slice())
    }

    /// Whether sums over this type may be taken in another order. Sums of narrow floats are taken in f32 and rounded
    /// once (facts of XLA's CPU backend): parts rounded one by one are another value.
    pub(crate) fn may_reassociate(&self, elem: ElemType) -> bool {
        let needed = match elem {
            ElemType::BF16 | ElemType::F16 => FloatPolicy::Fast,
            elem if elem.is_float() || elem.is_complex() => FloatPolicy::Xla,
            _ => return true,
        };
        self.policy >= needed
    }
}

/// The type in which a dot or a reduction of this type adds up before it rounds.
pub(super) fn summed_in(elem: ElemType) -> ElemType {
    match elem {
        ElemType::BF16 | ElemType::F16 => ElemType::F32,
        elem => elem,
    }
}
