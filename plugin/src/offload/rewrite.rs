//! A computation with its regions replaced by custom calls. What is left of a fusion of which a region took a
//! part becomes smaller fusions, one per value that is still needed.

use super::compiler::RegionId;
use super::flow::{Flow, FlowId, HostKind};
use super::leftover::{Leftover, Piece};
use super::region::Region;
use super::topological::sort;
use crate::ffi_handler;
use act_hlo::proto::instruction::field;
use act_hlo::proto::{Computation, FreshNames, HloShape, Instruction, ProtoError};
use std::collections::{BTreeMap, BTreeSet};

/// A region that will run on the device.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) id: RegionId,
    /// The contraction that it was grown from.
    pub(crate) seed: FlowId,
    pub(crate) region: Region,
    pub(crate) inputs: Vec<FlowId>,
    pub(crate) outputs: Vec<FlowId>,
    /// The kernel's key.
    pub(crate) key: String,
}

/// The new instructions of a computation.
#[derive(Clone, Debug)]
pub(crate) struct Rewritten {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) root: i64,
    /// Bodies of the fusions that are new.
    pub(crate) fused: Vec<Computation>,
    /// For every old instruction whose value still exists, the instruction that has it now.
    pub(crate) value: BTreeMap<i64, i64>,
    /// The regions' custom calls.
    pub(crate) calls: BTreeSet<i64>,
}

/// Why a computation could not be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RewriteError {
    #[error(transparent)]
    Proto(#[from] ProtoError),
    #[error("its instructions would wait for each other")]
    Cycle,
    /// A value that was taken away is needed after all: a defect of region selection.
    #[error("value {0} is needed but no longer computed")]
    Lost(String),
}

/// An instruction of the new computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Host(usize),
    /// One result of an opened fusion that stays.
    Element(usize, usize),
    /// The custom call of a region.
    Call(usize),
    /// One result of a region that has several.
    Output(usize, usize),
    Piece(FlowId),
}

/// Replaces the regions of a computation.
///
/// # Errors
/// See [`RewriteError`]; nothing has been changed then.
pub(crate) fn rewrite(
    flow: &Flow,
    planned: &[Planned],
    fresh: &mut FreshNames,
) -> Result<Rewritten, RewriteError> {
    let mut dissolved: BTreeSet<usize> = BTreeSet::new();
    for region in planned {
        for id in region.region.core(flow) {
            let host = flow.node(id).host;
            if matches!(flow.hosts[host].kind, HostKind::Fusion { .. }) {
                dissolved.insert(host);
            }
        }
    }
    loop {
        let mut rewriter = Rewriter::new(flow, planned, &dissolved, fresh);
        rewriter.emit_all()?;
        match rewriter.finish()? {
            Ok(rewritten) => return Ok(rewritten),
            // A fusion with several results may give to a region with one and take from it with another.
            Err(waiting) => {
                let several = waiting.iter().copied().filter(|&host| {
                    matches!(flow.hosts[host].kind, HostKind::Fusion { elements: Some(_), .. })
                });
                let before = dissolved.len();
                dissolved.extend(several);
                if dissolved.len() == before {
                    return Err(RewriteError::Cycle);
                }
            }
        }
    }
}

struct Rewriter<'a> {
    flow: &'a Flow,
    planned: &'a [Planned],
    dissolved: &'a BTreeSet<usize>,
    fresh: &'a mut FreshNames,
    /// Region and, for its results, the number of every value that a region took.
    taken: BTreeMap<FlowId, (usize, Option<usize>)>,
    leftover: Leftover<'a>,
    assigned: BTreeMap<Item, i64>,
    /// Ids of the items that are emitted.
    ids: BTreeMap<Item, i64>,
    instructions: Vec<(Item, Instruction)>,
    fused: Vec<Computation>,
}

impl<'a> Rewriter<'a> {
    fn new(
        flow: &'a Flow,
        planned: &'a [Planned],
        dissolved: &'a BTreeSet<usize>,
        fresh: &'a mut FreshNames,
    ) -> Rewriter<'a> {
        let mut taken = BTreeMap::new();
        for (number, region) in planned.iter().enumerate() {
            for id in region.region.core(flow) {
                taken.insert(id, (number, region.outputs.iter().position(|&o| o == id)));
            }
        }
        let asked: BTreeSet<FlowId> = planned.iter().flat_map(|p| p.inputs.iter().copied()).collect();
        let leftover = Leftover::new(flow, taken.keys().copied().collect(), dissolved, &asked);
        Rewriter {
            flow,
            planned,
            dissolved,
            fresh,
            taken,
            leftover,
            assigned: BTreeMap::new(),
            ids: BTreeMap::new(),
            instructions: Vec::new(),
            fused: Vec::new(),
        }
    }

    /// What computes a value in the new computation.
    fn item(&self, id: FlowId) -> Result<Item, RewriteError> {
        let node = self.flow.node(id);
        match self.taken.get(&id) {
            Some(&(region, Some(output))) => {
                return Ok(match self.planned[region].outputs.len() {
                    1 => Item::Call(region),
                    _ => Item::Output(region, output),
                });
            }
            Some((_, None)) => return Err(RewriteError::Lost(node.instruction.name().to_owned())),
            None => {}
        }
        Ok(match &self.flow.hosts[node.host].kind {
            HostKind::Plain(_) | HostKind::Element { .. } => Item::Host(node.host),
            HostKind::Fusion { .. } if self.dissolved.contains(&node.host) => Item::Piece(id),
            HostKind::Fusion { root, .. } if *root == id => Item::Host(node.host),
            HostKind::Fusion { elements: Some(elements), .. } => match elements.iter().position(|&e| e == id)
            {
                Some(index) => Item::Element(node.host, index),
                None => Item::Piece(id),
            },
            HostKind::Fusion { .. } => Item::Piece(id),
        })
    }

    /// Emits everything that the anchors need.
    fn emit_all(&mut self) -> Result<(), RewriteError> {
        let mut pending = Vec::new();
        for &anchor in &self.flow.anchors {
            pending.push(self.item(anchor)?);
        }
        while let Some(item) = pending.pop() {
            if !self.ids.contains_key(&item) {
                let operands = self.emit(item)?;
                pending.extend(operands);
            }
        }
        Ok(())
    }

    /// The id that an item has or will have.
    fn id_of(&mut self, item: Item) -> i64 {
        match item {
            Item::Host(host) => self.flow.hosts[host].instruction.id(),
            Item::Element(fusion, index) => {
                let original = self.element_host(fusion, index).map(|h| self.flow.hosts[h].instruction.id());
                original.unwrap_or_else(|| self.assign(item))
            }
            _ => self.assign(item),
        }
    }

    /// A fresh id, always the same one for the same item.
    fn assign(&mut self, item: Item) -> i64 {
        let fresh = &mut *self.fresh;
        *self.assigned.entry(item).or_insert_with(|| fresh.instruction_id(self.flow.computation))
    }

    fn element_host(&self, fusion: usize, index: usize) -> Option<usize> {
        let is_it = |kind: &HostKind| matches!(kind, HostKind::Element { fusion: f, index: i } if (*f, *i) == (fusion, index));
        self.flow.hosts.iter().position(|h| is_it(&h.kind))
    }

    /// Adds the instruction of an item; gives the items that it reads.
    fn emit(&mut self, item: Item) -> Result<Vec<Item>, RewriteError> {
        let id = self.id_of(item);
        self.ids.insert(item, id);
        let (instruction, operands) = match item {
            Item::Host(host) => self.host(host)?,
            Item::Element(fusion, index) => self.element(id, fusion, index)?,
            Item::Call(region) => self.call(id, region)?,
            Item::Output(region, output) => {
                let value = self.planned[region].outputs[output];
                let node = self.flow.node(value);
                let name = self.fresh.name(node.instruction.name());
                let call = self.id_of(Item::Call(region));
                let mut instruction =
                    Instruction::get_tuple_element(id, &name, &node.shape, call, output as i64);
                instruction.copy_provenance(&node.instruction);
                (instruction, vec![Item::Call(region)])
            }
            Item::Piece(value) => self.piece(id, value)?,
        };
        self.instructions.push((item, instruction));
        Ok(operands)
    }

    fn items(&self, values: &[FlowId]) -> Result<Vec<Item>, RewriteError> {
        values.iter().map(|&v| self.item(v)).collect()
    }

    fn ids(&mut self, items: &[Item]) -> Vec<i64> {
        items.iter().map(|&i| self.id_of(i)).collect()
    }

    fn host(&mut self, host: usize) -> Result<(Instruction, Vec<Item>), RewriteError> {
        let mut instruction = self.flow.hosts[host].instruction.clone();
        let old = instruction.operand_ids()?;
        let mut values = Vec::with_capacity(old.len());
        for id in &old {
            values.push(*self.flow.value.get(id).ok_or(ProtoError::NoSuchInstruction(*id))?);
        }
        let items = self.items(&values)?;
        let new = self.ids(&items);
        if new != old {
            instruction.set_operand_ids(&new);
        }
        Ok((instruction, items))
    }

    fn element(
        &mut self,
        id: i64,
        fusion: usize,
        index: usize,
    ) -> Result<(Instruction, Vec<Item>), RewriteError> {
        let operand = self.flow.hosts[fusion].instruction.id();
        let instruction = match self.element_host(fusion, index) {
            Some(host) => self.flow.hosts[host].instruction.clone(),
            None => {
                let shape = match self.flow.hosts[fusion].instruction.shape()? {
                    HloShape::Tuple(members) => members.into_iter().nth(index),
                    _ => None,
                };
                let shape = shape.ok_or_else(|| RewriteError::Lost(format!("element {index}")))?;
                let name = self.fresh.name("get-tuple-element");
                Instruction::get_tuple_element(id, &name, &shape, operand, index as i64)
            }
        };
        Ok((instruction, vec![Item::Host(fusion)]))
    }

    fn call(&mut self, id: i64, region: usize) -> Result<(Instruction, Vec<Item>), RewriteError> {
        let Planned { seed, inputs, outputs, key, .. } = &self.planned[region];
        let shapes = |values: &[FlowId]| -> Vec<HloShape> {
            values.iter().map(|&v| self.flow.node(v).shape.clone()).collect()
        };
        let mut results = shapes(outputs);
        let result = if results.len() == 1 { results.remove(0) } else { HloShape::Tuple(results) };
        let operand_shapes = shapes(inputs);
        let items = self.items(inputs)?;
        // The region's result tells most about it; with several, the contraction does.
        let told_by = self.flow.node(if outputs.len() == 1 { outputs[0] } else { *seed });
        let told_by = match told_by.instruction.metadata()?.op_name.is_empty() {
            true => &self.flow.node(*seed).instruction,
            false => &told_by.instruction,
        };
        let attributes = format!("{{abi = {} : i64, key = \"{key}\"}}", ffi_handler::ABI);
        let operands = self.ids(&items);
        let name = self.fresh.name(ffi_handler::TARGET);
        let mut call = Instruction::custom_call(
            id,
            &name,
            &result,
            &operands,
            &operand_shapes,
            ffi_handler::TARGET,
            &attributes,
        );
        call.copy_provenance(told_by);
        Ok((call, items))
    }

    fn piece(&mut self, id: i64, value: FlowId) -> Result<(Instruction, Vec<Item>), RewriteError> {
        let Piece { members, inputs } = self.leftover.piece(value);
        let items = self.items(&inputs)?;
        let operands = self.ids(&items);
        let root = &self.flow.node(value).instruction;
        let name = self.fresh.name(root.name());
        let plain = ["constant", "bitcast", "tuple", "get-tuple-element"];
        if members.len() == 1 && plain.contains(&root.opcode()) {
            let mut instruction = root.clone();
            instruction.set_id(id);
            instruction.set_name(&name);
            // The same operand may be read twice; pieces list it once.
            let read = self.flow.node(value).operands.clone();
            let read = self.items(&read)?;
            let read = self.ids(&read);
            instruction.set_operand_ids(&read);
            return Ok((instruction, items));
        }
        let fusion = self.flow.hosts[self.flow.node(value).host].instruction.clone();
        let computation = self.fresh.computation_id();
        let body = self.body(computation, &members, &inputs)?;
        self.fused.push(body);
        let mut piece = fusion.clone();
        piece.set_id(id);
        piece.set_name(&name);
        piece.set_operand_ids(&operands);
        piece.set_called_computation_ids(&[computation]);
        piece.copy_provenance(root);
        if self.flow.node(value).shape != fusion.shape()? {
            piece.copy_shape(root);
            // A loop's configuration is the partition of its result; another fusion's names its emitter.
            if fusion.fusion_kind()? == "kLoop" {
                piece.message_mut().clear(field::BACKEND_CONFIG);
                piece.message_mut().clear(field::BACKEND_CONFIG_PAYLOAD);
            }
        }
        if fusion.fusion_kind()? == "kOutput" {
            // That kind promises a contraction followed by its epilogue, which a piece may no longer be.
            piece.message_mut().set_bytes(field::FUSION_KIND, &b"kLoop"[..]);
            piece.message_mut().clear(field::BACKEND_CONFIG);
            piece.message_mut().clear(field::BACKEND_CONFIG_PAYLOAD);
        }
        Ok((piece, items))
    }

    /// The computation of a new fusion.
    fn body(
        &mut self,
        computation: i64,
        members: &[FlowId],
        inputs: &[FlowId],
    ) -> Result<Computation, RewriteError> {
        let mut ids: BTreeMap<FlowId, i64> = BTreeMap::new();
        let mut instructions = Vec::with_capacity(members.len() + inputs.len());
        for (number, &input) in inputs.iter().enumerate() {
            let id = self.fresh.instruction_id(computation);
            let name = self.fresh.name(&format!("param_{number}"));
            let value = self.flow.node(input);
            let mut parameter = Instruction::parameter(id, &name, &value.shape, number as i64);
            parameter.copy_shape(&value.instruction);
            instructions.push(parameter);
            ids.insert(input, id);
        }
        let mut root = 0;
        for &member in members {
            let node = self.flow.node(member);
            let mut operands = Vec::with_capacity(node.operands.len());
            for operand in &node.operands {
                let id = ids.get(operand).copied();
                operands.push(id.ok_or_else(|| RewriteError::Lost(node.instruction.name().to_owned()))?);
            }
            root = self.fresh.instruction_id(computation);
            let mut instruction = node.instruction.clone();
            instruction.set_id(root);
            instruction.set_name(&self.fresh.name(node.instruction.name()));
            instruction.set_operand_ids(&operands);
            instructions.push(instruction);
            ids.insert(member, root);
        }
        let name = self.fresh.name("fused_computation");
        Ok(Computation::new_fused(computation, &name, root, instructions)?)
    }

    /// The finished computation; or the host instructions that wait for each other.
    fn finish(self) -> Result<Result<Rewritten, Vec<usize>>, RewriteError> {
        let mut value = BTreeMap::new();
        for (&old, &id) in &self.flow.value {
            if let Ok(item) = self.item(id)
                && let Some(&new) = self.ids.get(&item)
            {
                value.insert(old, new);
            }
        }
        let root_item = self.item(self.flow.root)?;
        let root = *self.ids.get(&root_item).ok_or(RewriteError::Lost("the result".to_owned()))?;
        let calls = self.ids.iter().filter(|(i, _)| matches!(i, Item::Call(_))).map(|(_, &id)| id).collect();
        // Emission went from users to operands.
        let mut instructions: Vec<(Item, Instruction)> = self.instructions;
        instructions.sort_by_key(|&(item, _)| order_key(self.flow, self.planned, item));
        let hosts: BTreeMap<i64, usize> = instructions
            .iter()
            .filter_map(|(item, i)| if let Item::Host(h) = item { Some((i.id(), *h)) } else { None })
            .collect();
        let list = instructions.into_iter().map(|(_, i)| i).collect();
        Ok(match sort(list)? {
            Ok(instructions) => Ok(Rewritten { instructions, root, fused: self.fused, value, calls }),
            Err(waiting) => Err(waiting.iter().filter_map(|id| hosts.get(id).copied()).collect()),
        })
    }
}

/// The place that an instruction would like to have: where the value stood that it computes.
fn order_key(flow: &Flow, planned: &[Planned], item: Item) -> (usize, Item) {
    let host = match item {
        Item::Host(host) => host,
        Item::Element(fusion, _) => fusion,
        Item::Call(region) | Item::Output(region, _) => {
            planned[region].outputs.first().map_or(0, |&o| flow.node(o).host)
        }
        Item::Piece(id) => flow.node(id).host,
    };
    (host, item)
}
