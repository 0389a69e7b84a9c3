//! Data movement that does nothing.

use super::{Context, Rule, RuleClass, always};
use crate::numerics::FloatPolicy;
use crate::phase1::language::TensorNode;
use crate::phase1::term::Term;
use act_hlo::OpKind;
use egg::Id;

pub(crate) static RULES: &[Rule] = &[Rule {
    name: "movement-identity",
    class: RuleClass::Exact,
    policy: FloatPolicy::Exact,
    statement: "copy x, reshape to the same shape, identity transpose, identity broadcast, whole slice, \
                    concatenation of one, convert and bitcast to the same type => x",
    useful: always,
    rewrite: movement_identity,
}];

fn movement_identity(cx: &Context<'_>, _: Id, node: &TensorNode, out: &mut Vec<Term>) {
    let [x] = node.operands[..] else { return };
    if cx.shape(x) != node.shape() {
        return;
    }
    let nothing = match node.op() {
        OpKind::Copy
        | OpKind::Reshape
        | OpKind::Slice { .. }
        | OpKind::Concatenate { .. }
        | OpKind::Convert
        | OpKind::BitcastConvert => true,
        OpKind::Transpose { perm: dims } | OpKind::Broadcast { dims } => {
            dims.iter().copied().eq(0..dims.len())
        }
        _ => false,
    };
    if nothing {
        out.push(cx.class(x));
    }
}
