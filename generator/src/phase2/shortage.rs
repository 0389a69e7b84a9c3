//! What a refusal says of the room on chip: the buffers that do not suffice and the values that have no room in them
//! together.

use super::conflict::conflict;
use super::csp::Csp;
use super::skeleton::{Owner, Skeleton};
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{BufferId, Isa};
use std::fmt;

/// Values that a message lists one by one.
const LISTED: usize = 8;

/// Values that cannot lie on chip at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The buffers that they would lie in: names and lengths of the access dimensions. Empty when no buffer is to blame.
    pub buffers: Vec<(String, Vec<u64>)>,
    /// What makes each of them, and the lengths of its slot; empty when no small set of them is known.
    pub values: Vec<(String, Vec<u64>)>,
}

impl Shortage {
    /// Of a problem without an answer; `culprit` is the buffer to name where no values are found.
    pub(super) fn of(
        isa: &Isa,
        graph: &PiiGraph,
        skeleton: &Skeleton,
        csp: &Csp,
        culprit: Option<usize>,
    ) -> Shortage {
        let owners = skeleton.owners();
        let nodes = conflict(csp).into_iter().filter_map(|owner| match owners.get(owner)? {
            Owner::Input(id) => Some(*id),
            Owner::Output { step, number } => skeleton.steps[*step].outputs.get(*number).copied().flatten(),
        });
        let nodes: Vec<PiiId> = nodes.collect();
        if nodes.is_empty() {
            let culprit = culprit.and_then(|b| u16::try_from(b).ok()).map(BufferId);
            return Shortage {
                buffers: culprit.map(|b| named(isa, b)).into_iter().collect(),
                values: Vec::new(),
            };
        }
        Shortage::of_values(isa, graph, &nodes)
    }

    pub(super) fn of_values(isa: &Isa, graph: &PiiGraph, nodes: &[PiiId]) -> Shortage {
        let mut ids: Vec<BufferId> = nodes.iter().filter_map(|&id| graph.node(id).buffer).collect();
        ids.sort_unstable();
        ids.dedup();
        let value = |&id: &PiiId| {
            let node = graph.node(id);
            let name = match &node.op {
                PiiOp::OnChipInput(k) => format!("parameter {k}"),
                PiiOp::Instr { op, .. } => {
                    isa.instrs.get(usize::from(op.0)).map_or("?", |i| &i.name).to_owned()
                }
                PiiOp::Output { number } => format!("output {number}"),
                PiiOp::SliceH { .. } | PiiOp::ConcatH { .. } | PiiOp::HbmView(_) => "a joint slot".to_owned(),
            };
            (name, node.lens.clone())
        };
        Shortage {
            buffers: ids.into_iter().map(|b| named(isa, b)).collect(),
            values: nodes.iter().map(value).collect(),
        }
    }
}

fn named(isa: &Isa, buffer: BufferId) -> (String, Vec<u64>) {
    isa.buffers
        .get(usize::from(buffer.0))
        .map_or_else(Default::default, |b| (b.name.clone(), b.access.clone()))
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.buffers.is_empty() {
            return f.write_str("the conditions of its instructions contradict each other");
        }
        let lengths = |of: &[u64]| of.iter().map(u64::to_string).collect::<Vec<String>>().join(", ");
        let buffers = self.buffers.iter().map(|(name, room)| format!("`{name}` [{}]", lengths(room)));
        f.write_str(&enumerated(buffers.collect()))?;
        f.write_str(if self.buffers.len() == 1 { " has no room for " } else { " have no room for " })?;
        if self.values.is_empty() {
            return f.write_str("all that is needed at one time");
        }
        // Like values once, with their number.
        let mut counted: Vec<(&(String, Vec<u64>), usize)> = Vec::new();
        for value in &self.values {
            match counted.iter_mut().find(|(known, _)| *known == value) {
                Some((_, times)) => *times += 1,
                None => counted.push((value, 1)),
            }
        }
        let more: usize = counted.iter().skip(LISTED).map(|(_, times)| times).sum();
        let mut listed: Vec<String> = counted
            .iter()
            .take(LISTED)
            .map(|((name, lens), times)| match times {
                1 => format!("{name} [{}]", lengths(lens)),
                _ => format!("{times} × {name} [{}]", lengths(lens)),
            })
            .collect();
        if more > 0 {
            listed.push(format!("{more} more"));
        }
        f.write_str(&enumerated(listed))?;
        f.write_str(if self.values.len() == 1 { " where it must lie" } else { " at one time" })
    }
}

/// `a`, `a and b`, `a, b and c`.
fn enumerated(mut items: Vec<String>) -> String {
    let last = items.pop().unwrap_or_default();
    if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) }
}
