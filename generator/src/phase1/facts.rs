//! What is known of every e-class: its shape, its value when it is a compile-time constant, and where it lies in d0
//! when it is a re-view of a parameter or constant there. Knows no accelerator.

use super::language::{ConstId, HeadOp, TensorNode, is_elementwise};
use super::view::Layout;
use act_hlo::{Literal, Op, OpKind, Shape};
use act_isa::View;
use egg::{Analysis, DidMerge, EGraph, Id};
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeSet, HashSet};

pub(crate) type TensorGraph = EGraph<TensorNode, TensorAnalysis>;

/// Largest constant tensor that is computed at compile time, in bytes.
const FOLD_BYTES: u64 = 1 << 18;
/// Views kept per class.
const VIEWS: usize = 8;

/// The value of a constant class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    /// Every element is this scalar.
    Splat(ConstId),
    Dense(ConstId),
}

/// What the bytes of a view belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    Parameter(u32),
    /// An interned constant; its view is relative to the constant's first byte until it is placed.
    Constant(ConstId),
    /// A computed class, which must be stored to the place that was offered for it.
    Stored(Id),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SourceView {
    pub(crate) source: Source,
    pub(crate) layout: Layout,
}

#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) shape: Shape,
    pub(crate) value: Option<Value>,
    /// The class is this tensor in d0, with the class's shape and element type.
    pub(crate) views: BTreeSet<SourceView>,
    /// The class is only known as what a rule saw a slot as, or as computed from such: it is not put into a slot again.
    pub(crate) slot_form: bool,
}

/// The analysis state: interned literals, places of the parameters, and the first contradiction found.
#[derive(Debug, Default)]
pub(crate) struct TensorAnalysis {
    literals: IndexSet<Literal>,
    /// View of every parameter that lies in d0.
    parameters: Vec<Option<View>>,
    /// A class that lies at a place in d0: whatever else lies there is the same value.
    located: IndexMap<SourceView, Id>,
    clash: Option<String>,
    /// Float constants may differ by a rounding when the policy lets roundings go.
    loose_floats: bool,
    /// Classes that are new, joined or better known since [`TensorAnalysis::take_changed`].
    changed: Vec<Id>,
    /// Classes that were added as forms of slots.
    slot_forms: HashSet<Id>,
}

impl TensorAnalysis {
    pub(crate) fn new(parameters: Vec<Option<View>>, loose_floats: bool) -> TensorAnalysis {
        TensorAnalysis { parameters, loose_floats, ..TensorAnalysis::default() }
    }

    pub(crate) fn intern(&mut self, literal: Literal) -> ConstId {
        ConstId(self.literals.insert_full(literal).0 as u32)
    }

    /// The literal behind an id that this analysis gave out.
    pub(crate) fn literal(&self, id: ConstId) -> &Literal {
        &self.literals[id.0 as usize]
    }

    /// Whether the policy lets float sums be taken in another order.
    pub(crate) fn loose_floats(&self) -> bool {
        self.loose_floats
    }

    /// The contradiction that makes this e-graph worthless, if any: two shapes or two values of one class.
    pub(crate) fn clash(&self) -> Option<&str> {
        self.clash.as_deref()
    }

    /// Notes that a class was added as the form of a slot.
    pub(crate) fn note_slot_form(&mut self, id: Id) {
        self.slot_forms.insert(id);
    }

    /// The classes that changed since the last call; ids may be stale and repeated.
    pub(crate) fn take_changed(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.changed)
    }

    /// Puts back what [`TensorAnalysis::take_changed`] took, in place of what changed since.
    pub(crate) fn put_changed(&mut self, changed: Vec<Id>) {
        self.changed = changed;
    }

    fn classify(&mut self, literal: Literal) -> Value {
        match literal.splat_value() {
            Some(scalar) => Value::Splat(self.intern(scalar)),
            None => Value::Dense(self.intern(literal)),
        }
    }

    /// The whole tensor of a constant class.
    pub(crate) fn materialise(&self, value: Value, shape: &Shape) -> Option<Literal> {
        match value {
            Value::Dense(id) => {
                let literal = self.literal(id);
                (literal.shape() == shape).then(|| literal.clone())
            }
            Value::Splat(id) => {
                if shape.bytes() > FOLD_BYTES {
                    return None;
                }
                let one = self.literal(id).bytes();
                Literal::from_bytes(shape.clone(), one.repeat(shape.elements() as usize)).ok()
            }
        }
    }

    fn fold(&mut self, op: &HeadOp, shape: &Shape, operands: &[(Value, Shape)]) -> Option<Value> {
        let all_splat = operands.iter().all(|(v, _)| matches!(v, Value::Splat(_)));
        let pointwise = is_elementwise(op) && !matches!(op, OpKind::BitcastConvert);
        if !operands.is_empty() && all_splat && (pointwise || moves_splats(op)) {
            if !pointwise {
                return Some(operands[0].0);
            }
            let scalars: Vec<Literal> = operands
                .iter()
                .map(|(v, _)| match v {
                    Value::Splat(id) | Value::Dense(id) => self.literal(*id).clone(),
                })
                .collect();
            let folded = evaluate(&self.concrete(op), &scalars, &Shape::scalar(shape.elem))?;
            return Some(self.classify(folded));
        }
        if matches!(op, OpKind::Parameter(_) | OpKind::Constant(_)) || shape.bytes() > FOLD_BYTES {
            return None;
        }
        let literals: Vec<Literal> =
            operands.iter().map(|(v, s)| self.materialise(*v, s)).collect::<Option<_>>()?;
        let folded = evaluate(&self.concrete(op), &literals, shape)?;
        Some(self.classify(folded))
    }

    /// The operator with its literals in place.
    pub(crate) fn concrete(&self, op: &HeadOp) -> Op {
        let mapped: Result<Op, std::convert::Infallible> =
            op.try_map(|d| Ok(*d), |c| Ok(self.literal(*c).clone()));
        match mapped {
            Ok(op) => op,
            Err(never) => match never {},
        }
    }
}

/// Operators that map a splat to a splat of the same value.
fn moves_splats(op: &HeadOp) -> bool {
    matches!(
        op,
        OpKind::Copy
            | OpKind::Reshape
            | OpKind::Transpose { .. }
            | OpKind::Broadcast { .. }
            | OpKind::Slice { .. }
            | OpKind::Reverse { .. }
    )
}

/// The value of an operator over constants by the reference evaluator; `None` where it has none.
pub(crate) fn evaluate(op: &Op, operands: &[Literal], shape: &Shape) -> Option<Literal> {
    let refs: Vec<&Literal> = operands.iter().collect();
    act_hlo::eval_op(op, &refs, shape).ok()
}

impl Analysis<TensorNode> for TensorAnalysis {
    type Data = Facts;

    fn make(egraph: &mut TensorGraph, node: &TensorNode, id: Id) -> Facts {
        let slot_form = egraph.analysis.slot_forms.contains(&id)
            || node.operands.iter().any(|&c| egraph[c].data.slot_form);
        let shape = node.shape().clone();
        let known: Option<Vec<(Value, Shape)>> = node
            .operands
            .iter()
            .map(|&c| egraph[c].data.value.map(|v| (v, egraph[c].data.shape.clone())))
            .collect();
        let mut views = BTreeSet::new();
        match node.op() {
            OpKind::Parameter(k) => {
                if let Some(Some(view)) = egraph.analysis.parameters.get(*k as usize) {
                    views.insert(SourceView { source: Source::Parameter(*k), layout: Layout::of(view) });
                }
            }
            OpKind::Constant(id) => {
                let layout = Layout::row_major(act_isa::Space::Consts, &shape);
                views.insert(SourceView { source: Source::Constant(*id), layout });
            }
            op => {
                if let [only] = node.operands[..] {
                    for from in &egraph[only].data.views {
                        if let Some(layout) = from.layout.through(op, &shape) {
                            views.insert(SourceView { source: from.source, layout });
                        }
                    }
                }
            }
        }
        let value = match node.op() {
            OpKind::Constant(id) => {
                let literal = egraph.analysis.literal(*id).clone();
                Some(egraph.analysis.classify(literal))
            }
            op => known.and_then(|operands| egraph.analysis.fold(op, &shape, &operands)),
        };
        Facts { shape, value, views, slot_form }
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        if a.shape != b.shape {
            self.clash.get_or_insert_with(|| format!("one class has shapes {} and {}", a.shape, b.shape));
            return DidMerge(false, true);
        }
        let (mut a_changed, mut b_changed) = (false, false);
        match (a.value, b.value) {
            (None, Some(value)) => {
                a.value = Some(value);
                a_changed = true;
            }
            (Some(_), None) => b_changed = true,
            (Some(x), Some(y)) if x != y => {
                if self.loose_floats && a.shape.elem.is_float() {
                    a.value = Some(x.min(y));
                    a_changed = x > y;
                    b_changed = x < y;
                } else {
                    self.clash.get_or_insert_with(|| format!("one class of {} has two values", a.shape));
                }
            }
            _ => {}
        }
        if a.views != b.views {
            let before = a.views.clone();
            a.views.extend(b.views.iter().cloned());
            while a.views.len() > VIEWS {
                a.views.pop_last();
            }
            a_changed |= a.views != before;
            b_changed |= a.views != b.views;
        }
        if a.slot_form != b.slot_form {
            a_changed |= a.slot_form;
            b_changed |= b.slot_form;
            a.slot_form = false;
        }
        DidMerge(a_changed, b_changed)
    }

    /// Makes one class of what lies at one place, and gives every small constant class its constant node, so that equal
    /// constants are one class.
    fn modify(egraph: &mut TensorGraph, id: Id) {
        egraph.analysis.changed.push(id);
        for view in egraph[id].data.views.clone() {
            let known = *egraph.analysis.located.entry(view).or_insert(id);
            egraph.union(known, id);
        }
        let Some(value) = egraph[id].data.value else { return };
        let shape = egraph[id].data.shape.clone();
        let node = match value {
            Value::Splat(c) if shape.rank() == 0 => TensorNode::new(OpKind::Constant(c), shape, Vec::new()),
            Value::Splat(c) => {
                let scalar = Shape::scalar(shape.elem);
                let scalar = egraph.add(TensorNode::new(OpKind::Constant(c), scalar, Vec::new()));
                TensorNode::new(OpKind::Broadcast { dims: Vec::new() }, shape, vec![scalar])
            }
            Value::Dense(c) => TensorNode::new(OpKind::Constant(c), shape, Vec::new()),
        };
        let constant = egraph.add(node);
        egraph.union(id, constant);
    }
}

/// A scalar as an f64, when its type is real or a whole number that an f64 holds exactly.
pub(crate) fn real_value(literal: &Literal) -> Option<f64> {
    let (elem, bytes) = (literal.elem(), literal.bytes());
    if elem.is_float() {
        return act_isa::constant::float_value(elem, bytes);
    }
    let whole = act_isa::constant::int_value(elem, bytes)?;
    (whole.unsigned_abs() < 1 << 53).then_some(whole as f64)
}
