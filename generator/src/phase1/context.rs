//! What a rule sees of the e-graph. Everything that a rule reads is noted, so that it is asked again exactly when
//! something it has read has changed. Knows no rule.

use super::facts::{TensorGraph, Value};
use super::language::{HeadOp, TensorNode};
use super::term::{Kind, Term};
use super::vocabulary::Vocabulary;
use crate::numerics::FloatPolicy;
use act_hlo::{ElemType, Literal, Op, Shape};
use egg::Id;
use std::cell::RefCell;

/// The e-graph as a rule may read it.
pub(crate) struct Context<'a> {
    /// Private: a rule that reads past the notes would not be asked again.
    egraph: &'a TensorGraph,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) policy: FloatPolicy,
    /// Classes whose nodes or value were read. Shapes are not noted, since a class keeps its shape.
    reads: RefCell<Vec<Id>>,
    /// Classes whose users were read.
    users: RefCell<Vec<Id>>,
}

/// What rules have read since the last look, each class once.
pub(super) struct Reads {
    pub(super) classes: Vec<Id>,
    /// Classes whose users were read.
    pub(super) users: Vec<Id>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        egraph: &'a TensorGraph,
        vocabulary: &'a Vocabulary,
        policy: FloatPolicy,
    ) -> Context<'a> {
        Context { egraph, vocabulary, policy, reads: RefCell::default(), users: RefCell::default() }
    }

    /// What was read since the last call.
    pub(super) fn take_reads(&self) -> Reads {
        let distinct = |ids: &RefCell<Vec<Id>>| {
            let mut ids = std::mem::take(&mut *ids.borrow_mut());
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        Reads { classes: distinct(&self.reads), users: distinct(&self.users) }
    }

    fn note(&self, id: Id) {
        let id = self.egraph.find(id);
        let mut reads = self.reads.borrow_mut();
        if reads.last() != Some(&id) {
            reads.push(id);
        }
    }

    pub(crate) fn nodes(&self, id: Id) -> &'a [TensorNode] {
        self.note(id);
        &self.egraph[id].nodes
    }

    /// The nodes that have the class as an operand, as they were added.
    pub(crate) fn users(&self, id: Id) -> impl Iterator<Item = &'a TensorNode> {
        self.users_in_classes(id).map(|(_, user)| user)
    }

    /// The same with the classes that they belong to.
    pub(crate) fn users_in_classes(&self, id: Id) -> impl Iterator<Item = (Id, &'a TensorNode)> {
        let (egraph, id) = (self.egraph, self.egraph.find(id));
        self.users.borrow_mut().push(id);
        egraph[id].parents().map(|user| (egraph.find(user), egraph.id_to_node(user)))
    }

    /// The class that an id stands for now.
    pub(crate) fn find(&self, id: Id) -> Id {
        self.egraph.find(id)
    }

    /// The same where the rewrite depends on what else it stands for.
    pub(crate) fn noted(&self, id: Id) -> Id {
        self.note(id);
        self.egraph.find(id)
    }

    /// Whether the value lies in main memory or is known, as a whole.
    pub(crate) fn in_memory(&self, id: Id) -> bool {
        self.note(id);
        let facts = &self.egraph[id].data;
        facts.value.is_some() || !facts.views.is_empty()
    }

    /// Where the value lies in main memory, but nowhere with one stride in every dimension: how many elements follow one
    /// another at one stride, per dimension.
    pub(crate) fn runs(&self, id: Id) -> Option<Vec<u64>> {
        self.note(id);
        let facts = &self.egraph[id].data;
        let strided = facts.views.iter().any(|view| view.layout.strided().is_some());
        if strided || facts.value.is_some() {
            return None;
        }
        facts.views.first().map(|view| view.layout.runs())
    }

    pub(crate) fn shape(&self, id: Id) -> &'a Shape {
        &self.egraph[id].data.shape
    }

    pub(crate) fn same(&self, a: Id, b: Id) -> bool {
        self.note(a);
        self.note(b);
        self.egraph.find(a) == self.egraph.find(b)
    }

    /// The class as a term.
    pub(crate) fn class(&self, id: Id) -> Term {
        Term { shape: self.shape(id).clone(), kind: Kind::Class(id) }
    }

    /// The class as a term that is equal to it.
    pub(crate) fn respelled(&self, id: Id, term: Term) -> Term {
        Term { shape: self.shape(id).clone(), kind: Kind::Respelled(id, Box::new(term)) }
    }

    /// Whether the class is only known as the form of a slot, or as computed from such.
    pub(crate) fn is_slot_form(&self, id: Id) -> bool {
        self.note(id);
        self.egraph[id].data.slot_form
    }

    fn value(&self, id: Id) -> Option<Value> {
        self.note(id);
        self.egraph[id].data.value
    }

    /// The one value of every element.
    pub(crate) fn splat(&self, id: Id) -> Option<&'a Literal> {
        match self.value(id)? {
            Value::Splat(c) => Some(self.egraph.analysis.literal(c)),
            Value::Dense(_) => None,
        }
    }

    /// The tensor, where it is known and its elements differ.
    pub(crate) fn dense(&self, id: Id) -> Option<&'a Literal> {
        match self.value(id)? {
            Value::Dense(c) => Some(self.egraph.analysis.literal(c)),
            Value::Splat(_) => None,
        }
    }

    pub(crate) fn is_constant(&self, id: Id) -> bool {
        self.value(id).is_some()
    }

    /// The splat value as a real number.
    pub(crate) fn number(&self, id: Id) -> Option<f64> {
        self.splat(id).and_then(super::facts::real_value)
    }

    /// The operator with its literals in place.
    pub(crate) fn concrete(&self, op: &HeadOp) -> Op {
        self.egraph.analysis.concrete(op)
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

    /// Whether factors and signs may move through sums of products of this type, and products be taken in another
    /// order: exact for wrapping integers, float algebra otherwise.
    pub(crate) fn may_distribute(&self, elem: ElemType) -> bool {
        elem.is_int() || self.policy >= FloatPolicy::Fast
    }
}
