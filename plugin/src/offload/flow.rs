//! One computation as a flat dataflow graph in which fusions are opened: every value that is computed, whether
//! XLA materialises it or not.

use super::refusal::RefusalReason;
use super::window;
use act_hlo::proto::convert::{Converted, Inexpressible, Why, convert};
use act_hlo::proto::{ArrayShape, Computation, HloModule, HloShape, Instruction, ProtoError};
use act_hlo::{Op, SourceLoc};
use std::collections::{BTreeMap, BTreeSet};

/// Index of a value in [`Flow::nodes`]; operands have smaller indices than their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FlowId(pub(crate) u32);

impl FlowId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One computed value.
#[derive(Debug)]
pub(crate) struct FlowNode {
    /// The instruction that computes it, in the computation or inside one of its fusions.
    pub(crate) instruction: Instruction,
    /// Index of the host instruction that it belongs to.
    pub(crate) host: usize,
    pub(crate) operands: Vec<FlowId>,
    /// Users that the computation's result or an effect depends on.
    pub(crate) users: Vec<FlowId>,
    pub(crate) shape: HloShape,
    /// The operators it stands for, when a region may take it.
    pub(crate) takable: Result<Converted, RefusalReason>,
    /// A value made of small constants alone: every region that needs it makes its own.
    pub(crate) duplicable: bool,
    /// Neither the computation's result nor an effect depends on it: false.
    pub(crate) live: bool,
}

/// An instruction of the computation itself.
#[derive(Debug)]
pub(crate) struct HostInstruction {
    pub(crate) instruction: Instruction,
    pub(crate) kind: HostKind,
}

#[derive(Debug)]
pub(crate) enum HostKind {
    Plain(FlowId),
    /// An opened fusion. `elements`: the values of a fusion with several results, whose `root` is their tuple.
    Fusion {
        root: FlowId,
        elements: Option<Vec<FlowId>>,
    },
    /// Takes one of the results of the opened fusion at host index `fusion`.
    Element {
        fusion: usize,
        index: usize,
    },
}

/// A computation, flattened.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) computation: i64,
    pub(crate) nodes: Vec<FlowNode>,
    pub(crate) hosts: Vec<HostInstruction>,
    pub(crate) root: FlowId,
    /// Value of every host instruction, by its id.
    pub(crate) value: BTreeMap<i64, FlowId>,
    /// Values that stay even when nothing uses them, and the root.
    pub(crate) anchors: Vec<FlowId>,
}

impl Flow {
    /// # Errors
    /// An instruction that cannot be read or stands before its operands.
    pub(crate) fn of(module: &HloModule, computation: &Computation) -> Result<Flow, ProtoError> {
        let mut builder = Builder {
            module,
            ordered: ordered_by_control(computation)?,
            flow: Flow {
                computation: computation.id(),
                nodes: Vec::new(),
                hosts: Vec::new(),
                root: FlowId(0),
                value: BTreeMap::new(),
                anchors: Vec::new(),
            },
        };
        for instruction in computation.instructions() {
            builder.host(instruction)?;
        }
        let Builder { mut flow, ordered, .. } = builder;
        flow.root = lookup(&flow.value, computation.root_id())?;
        flow.mark_live(&ordered);
        flow.leave_padding();
        Ok(flow)
    }

    pub(crate) fn node(&self, id: FlowId) -> &FlowNode {
        &self.nodes[id.index()]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = FlowId> + use<> {
        (0..self.nodes.len() as u32).map(FlowId)
    }

    /// Whether XLA materialises the value: a host instruction of its own, or a fusion's result.
    pub(crate) fn is_exported(&self, id: FlowId) -> bool {
        match &self.hosts[self.node(id).host].kind {
            HostKind::Plain(_) | HostKind::Element { .. } => true,
            HostKind::Fusion { root, elements } => {
                *root == id || elements.as_ref().is_some_and(|e| e.contains(&id))
            }
        }
    }

    /// The operator, for a value whose instruction is exactly one.
    pub(crate) fn op(&self, id: FlowId) -> Option<&Op> {
        match &self.node(id).takable {
            Ok(Converted { steps, .. }) => steps.last().map(|(op, _)| op),
            Err(_) => None,
        }
    }

    /// The value whose memory a region reads for this one: a window shows another value's.
    pub(crate) fn memory_of(&self, id: FlowId) -> FlowId {
        match &self.node(id).operands[..] {
            &[onto] if self.window(id).is_some() => onto,
            _ => id,
        }
    }

    /// The byte strides of a window.
    pub(crate) fn window(&self, id: FlowId) -> Option<Vec<i64>> {
        window::strides(&self.node(id).instruction)
    }

    /// The array type of a value; `None` for tuples, tokens and foreign element types.
    pub(crate) fn array(&self, id: FlowId) -> Option<&ArrayShape> {
        self.node(id).shape.array()
    }

    pub(crate) fn source(&self, module: &HloModule, id: FlowId) -> Option<SourceLoc> {
        module.source(&self.node(id).instruction).ok().flatten()
    }

    /// What only a window looks at is made by the host: a region that gave it would be cut at its edges.
    fn leave_padding(&mut self) {
        for id in self.ids() {
            let node = self.node(id);
            let seen = !node.users.is_empty() && node.users.iter().all(|&u| self.window(u).is_some());
            if seen && ["pad", "reverse"].contains(&node.instruction.opcode()) {
                self.nodes[id.index()].takable = Err(RefusalReason::BehindWindow);
            }
        }
    }

    /// Marks what the result and effects depend on, and notes the users of every value among it.
    fn mark_live(&mut self, ordered: &BTreeSet<i64>) {
        for host in &self.hosts {
            if let HostKind::Plain(id) = host.kind
                && (is_effectful(&self.nodes[id.index()]) || ordered.contains(&host.instruction.id()))
            {
                self.anchors.push(id);
            }
        }
        self.anchors.push(self.root);
        let mut pending = self.anchors.clone();
        while let Some(id) = pending.pop() {
            let node = &mut self.nodes[id.index()];
            if !std::mem::replace(&mut node.live, true) {
                pending.extend(&node.operands);
            }
        }
        for id in 0..self.nodes.len() as u32 {
            if self.nodes[id as usize].live {
                let operands: BTreeSet<FlowId> = self.nodes[id as usize].operands.iter().copied().collect();
                for operand in operands {
                    self.nodes[operand.index()].users.push(FlowId(id));
                }
            }
        }
    }
}

/// Whether the instruction has to stay even when nothing uses its value: everything but operators of ours and
/// what only passes values on.
fn is_effectful(node: &FlowNode) -> bool {
    let passes_on = ["get-tuple-element", "tuple", "fusion"];
    node.takable.is_err()
        && window::strides(&node.instruction).is_none()
        && node.instruction.opcode() != "constant"
        && !passes_on.contains(&node.instruction.opcode())
}

/// Instructions that control edges order, on either end.
fn ordered_by_control(computation: &Computation) -> Result<BTreeSet<i64>, ProtoError> {
    let mut ordered = BTreeSet::new();
    for instruction in computation.instructions() {
        let predecessors = instruction.control_predecessor_ids()?;
        if !predecessors.is_empty() {
            ordered.insert(instruction.id());
            ordered.extend(predecessors);
        }
    }
    Ok(ordered)
}

fn lookup(values: &BTreeMap<i64, FlowId>, id: i64) -> Result<FlowId, ProtoError> {
    values.get(&id).copied().ok_or(ProtoError::NoSuchInstruction(id))
}

struct Builder<'m> {
    module: &'m HloModule,
    ordered: BTreeSet<i64>,
    flow: Flow,
}

impl Builder<'_> {
    fn host(&mut self, instruction: &Instruction) -> Result<(), ProtoError> {
        let host = self.flow.hosts.len();
        let operands = instruction
            .operand_ids()?
            .into_iter()
            .map(|id| lookup(&self.flow.value, id))
            .collect::<Result<Vec<_>, _>>()?;
        let kind = if let Some(fused) = self.openable(instruction, &operands)? {
            self.open(&fused, host, &operands)?
        } else if let Some((fusion, index)) = self.element_of(instruction, &operands) {
            HostKind::Element { fusion, index }
        } else {
            HostKind::Plain(self.push(instruction, host, operands)?)
        };
        let value = match &kind {
            HostKind::Plain(id) | HostKind::Fusion { root: id, .. } => Some(*id),
            HostKind::Element { fusion, index } => self.element(*fusion, *index),
        };
        if let Some(value) = value {
            self.flow.value.insert(instruction.id(), value);
        }
        self.flow.hosts.push(HostInstruction { instruction: instruction.clone(), kind });
        Ok(())
    }

    fn element(&self, fusion: usize, index: usize) -> Option<FlowId> {
        match &self.flow.hosts.get(fusion)?.kind {
            HostKind::Fusion { elements: Some(elements), .. } => elements.get(index).copied(),
            _ => None,
        }
    }

    /// The opened fusion and the result number that a get-tuple-element takes, unless it is something else.
    fn element_of(&self, instruction: &Instruction, operands: &[FlowId]) -> Option<(usize, usize)> {
        let [operand] = operands else { return None };
        if instruction.opcode() != "get-tuple-element" || self.ordered.contains(&instruction.id()) {
            return None;
        }
        let fusion = self.flow.node(*operand).host;
        let index = usize::try_from(instruction.tuple_index()).ok()?;
        let is_root = matches!(&self.flow.hosts.get(fusion)?.kind,
            HostKind::Fusion { root, elements: Some(_) } if root == operand);
        (is_root && self.element(fusion, index).is_some()).then_some((fusion, index))
    }

    /// The computation of a fusion that can be opened: one whose borders have the types of what crosses them,
    /// that nothing orders, and whose results are values of its own.
    fn openable(
        &self,
        instruction: &Instruction,
        operands: &[FlowId],
    ) -> Result<Option<Computation>, ProtoError> {
        if instruction.opcode() != "fusion" || self.ordered.contains(&instruction.id()) {
            return Ok(None);
        }
        let [callee] = instruction.called_computation_ids()?[..] else { return Ok(None) };
        let Some(computation) = self.module.computation(callee) else { return Ok(None) };
        let mut parameters = BTreeSet::new();
        for inner in computation.instructions() {
            if inner.opcode() == "fusion" || !inner.control_predecessor_ids()?.is_empty() {
                return Ok(None);
            }
            if inner.opcode() == "parameter" {
                let operand = usize::try_from(inner.parameter_number()).ok().and_then(|n| operands.get(n));
                let Some(&operand) = operand else { return Ok(None) };
                if self.flow.node(operand).shape != inner.shape()? {
                    return Ok(None);
                }
                parameters.insert(inner.id());
            }
        }
        let root = computation.root()?;
        if root.shape()? != instruction.shape()? {
            return Ok(None);
        }
        let results = if root.opcode() == "tuple" { root.operand_ids()? } else { vec![root.id()] };
        let distinct: BTreeSet<&i64> = results.iter().collect();
        if results.iter().any(|id| parameters.contains(id)) || distinct.len() != results.len() {
            return Ok(None);
        }
        Ok(Some(computation.clone()))
    }

    fn open(
        &mut self,
        fused: &Computation,
        host: usize,
        operands: &[FlowId],
    ) -> Result<HostKind, ProtoError> {
        let mut inner: BTreeMap<i64, FlowId> = BTreeMap::new();
        for instruction in fused.instructions() {
            let value = if instruction.opcode() == "parameter" {
                // `openable` has checked that the operand exists.
                operands[instruction.parameter_number() as usize]
            } else {
                let operands = instruction
                    .operand_ids()?
                    .into_iter()
                    .map(|id| lookup(&inner, id))
                    .collect::<Result<Vec<_>, _>>()?;
                self.push(instruction, host, operands)?
            };
            inner.insert(instruction.id(), value);
        }
        let root = lookup(&inner, fused.root_id())?;
        let is_tuple = self.flow.node(root).instruction.opcode() == "tuple";
        let elements = is_tuple.then(|| self.flow.node(root).operands.clone());
        Ok(HostKind::Fusion { root, elements })
    }

    fn push(
        &mut self,
        instruction: &Instruction,
        host: usize,
        operands: Vec<FlowId>,
    ) -> Result<FlowId, ProtoError> {
        let id = FlowId(self.flow.nodes.len() as u32);
        let takable = self.takable(instruction, &operands);
        let duplicable = match &takable {
            Ok(Converted { steps, .. }) => {
                steps.iter().all(|(op, _)| is_movement(op) || matches!(op, Op::Constant(_) | Op::Iota { .. }))
                    && operands.iter().all(|&o| self.flow.node(o).duplicable)
            }
            Err(_) => false,
        };
        self.flow.nodes.push(FlowNode {
            instruction: instruction.clone(),
            host,
            operands,
            users: Vec::new(),
            shape: instruction.shape()?,
            takable,
            duplicable,
            live: false,
        });
        Ok(id)
    }

    fn takable(&self, instruction: &Instruction, operands: &[FlowId]) -> Result<Converted, RefusalReason> {
        let inexpressible = |why| Inexpressible { opcode: instruction.opcode().to_owned(), why };
        if self.ordered.contains(&instruction.id()) {
            return Err(RefusalReason::ControlEdge);
        }
        let mut arrays = Vec::with_capacity(operands.len());
        for &operand in operands {
            arrays.push(self.flow.array(operand).ok_or_else(|| inexpressible(Why::Tuple))?);
        }
        let converted = convert(self.module, instruction, &arrays)?;
        if converted.layout.is_none() || arrays.iter().any(|a| a.layout.is_none()) {
            return Err(RefusalReason::UnknownLayout);
        }
        for (op, _) in &converted.steps {
            match op {
                Op::Parameter(_) => return Err(inexpressible(Why::Operator).into()),
                Op::DynamicUpdateSlice => return Err(RefusalReason::InPlace),
                // Other constants are operands: they are stored once, by XLA.
                Op::Constant(literal) if literal.splat_value().is_none() => {
                    return Err(inexpressible(Why::Operator).into());
                }
                _ => {}
            }
        }
        Ok(converted)
    }
}

/// Operators that only move or re-type elements: making their value again costs next to nothing.
pub(crate) fn is_movement(op: &Op) -> bool {
    matches!(
        op,
        Op::Broadcast { .. } | Op::Reshape | Op::Convert | Op::Copy | Op::Transpose { .. } | Op::Slice { .. }
    )
}
