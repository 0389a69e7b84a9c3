//! HloModuleProto and HloComputationProto, editable without loss: what is not edited keeps its bytes.

use super::instruction::Instruction;
use super::shape::HloShape;
use super::wire::{Field, Message, Payload, ProtoError};
use crate::SourceLoc;
use prost::bytes::Bytes;
use std::collections::BTreeSet;

const MODULE: &str = "HloModuleProto";
const COMPUTATION: &str = "HloComputationProto";

/// Field numbers of HloModuleProto (xla/service/hlo.proto).
mod module_field {
    pub(super) const NAME: u32 = 1;
    pub(super) const COMPUTATIONS: u32 = 3;
    pub(super) const ENTRY_COMPUTATION_ID: u32 = 6;
    pub(super) const SCHEDULE: u32 = 7;
    pub(super) const INPUT_OUTPUT_ALIAS: u32 = 8;
    pub(super) const STACK_FRAME_INDEX: u32 = 17;
}

/// Field numbers of HloComputationProto.
mod computation_field {
    pub(super) const NAME: u32 = 1;
    pub(super) const INSTRUCTIONS: u32 = 2;
    pub(super) const PROGRAM_SHAPE: u32 = 4;
    pub(super) const ID: u32 = 5;
    pub(super) const ROOT_ID: u32 = 6;
    pub(super) const IS_FUSION: u32 = 7;
}

/// A field of a message whose `number`-th sub-messages are kept decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot<T> {
    Raw(Field),
    /// The decoded member, and its field as read while nothing has touched it.
    Member(T, Option<Field>),
}

fn split<T>(
    bytes: &Bytes,
    message: &'static str,
    number: u32,
    mut read: impl FnMut(&Bytes) -> Result<T, ProtoError>,
) -> Result<Vec<Slot<T>>, ProtoError> {
    let message = Message::parse(bytes, message)?;
    let slot = |field: &Field| match &field.payload {
        Payload::Bytes(b) if field.number == number => Ok(Slot::Member(read(b)?, Some(field.clone()))),
        _ => Ok(Slot::Raw(field.clone())),
    };
    message.fields().iter().map(slot).collect()
}

fn join<T>(slots: &[Slot<T>], number: u32, write: impl Fn(&T) -> Bytes) -> Bytes {
    let mut out = Vec::new();
    for slot in slots {
        match slot {
            Slot::Raw(field) | Slot::Member(_, Some(field)) => out.extend_from_slice(field.raw()),
            Slot::Member(member, None) => {
                out.extend_from_slice(Field::bytes(number, write(member)).raw());
            }
        }
    }
    out.into()
}

fn members<T>(slots: &[Slot<T>]) -> impl Iterator<Item = &T> {
    slots.iter().filter_map(|slot| match slot {
        Slot::Member(member, _) => Some(member),
        Slot::Raw(_) => None,
    })
}

/// The decoded members for editing; they will be encoded anew.
fn members_mut<T>(slots: &mut [Slot<T>]) -> impl Iterator<Item = &mut T> {
    slots.iter_mut().filter_map(|slot| match slot {
        Slot::Member(member, original) => {
            *original = None;
            Some(member)
        }
        Slot::Raw(_) => None,
    })
}

/// Replaces all members by `new`, at the place of the first.
fn replace_members<T>(slots: &mut Vec<Slot<T>>, new: Vec<T>) {
    let at = slots.iter().position(|s| matches!(s, Slot::Member(..))).unwrap_or(slots.len());
    slots.retain(|s| matches!(s, Slot::Raw(_)));
    let at = at.min(slots.len());
    slots.splice(at..at, new.into_iter().map(|member| Slot::Member(member, None)));
}

/// The raw fields as a message, to read scalars from.
fn raw_fields<T>(slots: &[Slot<T>]) -> Message {
    let mut out = Message::default();
    for slot in slots {
        if let Slot::Raw(field) = slot {
            out.push(field.clone());
        }
    }
    out
}

/// Sets one raw field, or removes it.
fn set_raw<T>(slots: &mut Vec<Slot<T>>, number: u32, new: Option<Field>) {
    let matches = |s: &Slot<T>| matches!(s, Slot::Raw(f) if f.number == number);
    let at = slots.iter().position(matches).unwrap_or(slots.len());
    slots.retain(|s| !matches(s));
    if let Some(field) = new {
        slots.insert(at.min(slots.len()), Slot::Raw(field));
    }
}

/// A computation: instructions in topological order with one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computation {
    slots: Vec<Slot<Instruction>>,
    id: i64,
    root_id: i64,
    name: String,
    is_fusion: bool,
}

impl Computation {
    fn parse(bytes: &Bytes) -> Result<Computation, ProtoError> {
        let slots = split(bytes, COMPUTATION, computation_field::INSTRUCTIONS, Instruction::parse)?;
        let fields = raw_fields(&slots);
        Ok(Computation {
            id: fields.int(computation_field::ID),
            root_id: fields.int(computation_field::ROOT_ID),
            name: fields.string(computation_field::NAME, COMPUTATION)?.to_owned(),
            is_fusion: fields.flag(computation_field::IS_FUSION),
            slots,
        })
    }

    /// A computation called by a fusion. `instructions` are in topological order.
    ///
    /// # Errors
    /// When an instruction has no readable shape, or the root is not among them.
    pub fn new_fused(
        id: i64,
        name: &str,
        root_id: i64,
        instructions: Vec<Instruction>,
    ) -> Result<Computation, ProtoError> {
        let name_field = Field::bytes(computation_field::NAME, name.as_bytes().to_vec());
        let mut out = Computation {
            slots: vec![
                Slot::Raw(name_field),
                Slot::Raw(Field::varint(computation_field::ID, id as u64)),
                Slot::Raw(Field::varint(computation_field::ROOT_ID, root_id as u64)),
                Slot::Raw(Field::varint(computation_field::IS_FUSION, 1)),
            ],
            id,
            root_id,
            name: name.to_owned(),
            is_fusion: true,
        };
        out.set_instructions(instructions);
        out.refresh_program_shape()?;
        Ok(out)
    }

    fn to_bytes(&self) -> Bytes {
        join(&self.slots, computation_field::INSTRUCTIONS, Instruction::to_bytes)
    }

    pub fn id(&self) -> i64 {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn root_id(&self) -> i64 {
        self.root_id
    }

    /// Whether it is the body of a fusion.
    pub fn is_fusion(&self) -> bool {
        self.is_fusion
    }

    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        members(&self.slots)
    }

    pub fn instructions_mut(&mut self) -> impl Iterator<Item = &mut Instruction> {
        members_mut(&mut self.slots)
    }

    pub fn instruction(&self, id: i64) -> Option<&Instruction> {
        self.instructions().find(|i| i.id() == id)
    }

    /// # Errors
    /// When the root is not among the instructions.
    pub fn root(&self) -> Result<&Instruction, ProtoError> {
        self.instruction(self.root_id).ok_or(ProtoError::NoSuchInstruction(self.root_id))
    }

    pub fn set_instructions(&mut self, instructions: Vec<Instruction>) {
        replace_members(&mut self.slots, instructions);
    }

    pub fn set_root_id(&mut self, id: i64) {
        self.root_id = id;
        set_raw(
            &mut self.slots,
            computation_field::ROOT_ID,
            Some(Field::varint(computation_field::ROOT_ID, id as u64)),
        );
    }

    /// Brings the program shape in line with the parameters and the root.
    ///
    /// # Errors
    /// When a parameter or the root has no shape.
    pub fn refresh_program_shape(&mut self) -> Result<(), ProtoError> {
        let shape_bytes = |i: &Instruction| {
            i.message()
                .bytes(super::instruction::field::SHAPE)
                .cloned()
                .ok_or(ProtoError::Missing { message: "HloInstructionProto", field: "shape" })
        };
        let mut parameters: Vec<&Instruction> =
            self.instructions().filter(|i| i.opcode() == "parameter").collect();
        parameters.sort_by_key(|i| i.parameter_number());
        let mut shape = Message::default();
        for parameter in &parameters {
            shape.push(Field::bytes(1, shape_bytes(parameter)?));
        }
        shape.push(Field::bytes(2, shape_bytes(self.root()?)?));
        for parameter in &parameters {
            shape.push(Field::bytes(3, parameter.name().as_bytes().to_vec()));
        }
        let field = Field::bytes(computation_field::PROGRAM_SHAPE, shape.to_bytes());
        set_raw(&mut self.slots, computation_field::PROGRAM_SHAPE, Some(field));
        Ok(())
    }

    /// The shape of the k-th parameter, if there is one.
    ///
    /// # Errors
    /// A malformed shape.
    pub fn parameter_shape(&self, number: i64) -> Result<Option<HloShape>, ProtoError> {
        self.instructions()
            .find(|i| i.opcode() == "parameter" && i.parameter_number() == number)
            .map(Instruction::shape)
            .transpose()
    }
}

/// A result of the entry computation that is written into a parameter's buffer. Indices lead into tuples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferAlias {
    pub output: Vec<i64>,
    pub parameter: i64,
    pub parameter_index: Vec<i64>,
}

/// A module of HLO as XLA serializes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloModule {
    slots: Vec<Slot<Computation>>,
    frames: StackFrames,
}

impl HloModule {
    /// Reads a serialized HloModuleProto. Fields that we do not know are kept.
    ///
    /// # Errors
    /// Malformed bytes.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<HloModule, ProtoError> {
        let slots = split(&bytes.into(), MODULE, module_field::COMPUTATIONS, Computation::parse)?;
        let fields = raw_fields(&slots);
        let frames = match fields.message(module_field::STACK_FRAME_INDEX, "StackFrameIndexProto")? {
            Some(index) => StackFrames::read(&index)?,
            None => StackFrames::default(),
        };
        fields.string(module_field::NAME, MODULE)?;
        Ok(HloModule { slots, frames })
    }

    /// The serialized module; exactly the bytes read where nothing was edited.
    pub fn to_bytes(&self) -> Vec<u8> {
        join(&self.slots, module_field::COMPUTATIONS, Computation::to_bytes).into()
    }

    pub fn name(&self) -> String {
        raw_fields(&self.slots).string(module_field::NAME, MODULE).unwrap_or_default().to_owned()
    }

    pub fn entry_id(&self) -> i64 {
        raw_fields(&self.slots).int(module_field::ENTRY_COMPUTATION_ID)
    }

    /// Computations in the order of the module: callees before callers.
    pub fn computations(&self) -> impl Iterator<Item = &Computation> {
        members(&self.slots)
    }

    pub fn computation(&self, id: i64) -> Option<&Computation> {
        self.computations().find(|c| c.id() == id)
    }

    /// The computation for editing; the others keep their bytes.
    pub fn computation_mut(&mut self, id: i64) -> Option<&mut Computation> {
        self.slots.iter_mut().find_map(|slot| match slot {
            Slot::Member(c, original) if c.id == id => {
                *original = None;
                Some(c)
            }
            _ => None,
        })
    }

    /// Puts a new computation before the one with id `before`, which is to call it.
    ///
    /// # Errors
    /// When there is no such computation.
    pub fn insert_computation(&mut self, computation: Computation, before: i64) -> Result<(), ProtoError> {
        let at = self
            .slots
            .iter()
            .position(|s| matches!(s, Slot::Member(c, _) if c.id == before))
            .ok_or(ProtoError::NoSuchComputation(before))?;
        self.slots.insert(at, Slot::Member(computation, None));
        Ok(())
    }

    /// Drops computations that the entry does not reach.
    ///
    /// # Errors
    /// Malformed called-computation ids.
    pub fn remove_unreachable_computations(&mut self) -> Result<(), ProtoError> {
        let mut reached = BTreeSet::new();
        let mut pending = vec![self.entry_id()];
        while let Some(id) = pending.pop() {
            if reached.insert(id)
                && let Some(computation) = self.computation(id)
            {
                for instruction in computation.instructions() {
                    pending.extend(instruction.called_computation_ids()?);
                }
            }
        }
        self.slots.retain(|s| !matches!(s, Slot::Member(c, _) if !reached.contains(&c.id)));
        Ok(())
    }

    /// Whether the module carries an order of execution, which names every instruction: such a module must
    /// not be edited.
    pub fn has_schedule(&self) -> bool {
        raw_fields(&self.slots).bytes(module_field::SCHEDULE).is_some_and(|b| !b.is_empty())
    }

    /// Where an instruction comes from, its stack frame resolved; `None` when nothing is known.
    ///
    /// # Errors
    /// Malformed metadata.
    pub fn source(&self, instruction: &Instruction) -> Result<Option<SourceLoc>, ProtoError> {
        let metadata = instruction.metadata()?;
        let (file, line) = match self.frames.resolve(metadata.stack_frame_id) {
            Some((file, line)) if metadata.file.is_empty() => (file.to_owned(), line),
            _ => (metadata.file, metadata.line),
        };
        if metadata.op_name.is_empty() && file.is_empty() {
            return Ok(None);
        }
        Ok(Some(SourceLoc { op_name: metadata.op_name, file, line: u32::try_from(line).unwrap_or(0) }))
    }

    /// Drops the order of execution, for a module taken from a finished program.
    pub fn clear_schedule(&mut self) {
        set_raw(&mut self.slots, module_field::SCHEDULE, None);
    }

    /// Results that have to be written into a parameter's buffer (donation).
    ///
    /// # Errors
    /// Malformed entries.
    pub fn input_output_alias(&self) -> Result<Vec<BufferAlias>, ProtoError> {
        const NAME: &str = "HloInputOutputAliasProto";
        let fields = raw_fields(&self.slots);
        let Some(config) = fields.message(module_field::INPUT_OUTPUT_ALIAS, NAME)? else {
            return Ok(Vec::new());
        };
        let entries = config.all_bytes(1).map(|bytes| {
            let entry = Message::parse(bytes, NAME)?;
            Ok(BufferAlias {
                output: entry.ints(1, NAME)?,
                parameter: entry.int(2),
                parameter_index: entry.ints(3, NAME)?,
            })
        });
        entries.collect()
    }

    /// Ids and names that are still free.
    pub fn fresh(&self) -> FreshNames {
        FreshNames::of(self)
    }
}

/// The table of Python frames that instructions refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StackFrames {
    files: Vec<String>,
    /// (1-based file, line)
    locations: Vec<(i64, i64)>,
    /// 1-based location of each frame; frames are numbered from 1.
    frames: Vec<i64>,
}

impl StackFrames {
    fn read(index: &Message) -> Result<StackFrames, ProtoError> {
        const NAME: &str = "StackFrameIndexProto";
        let mut out = StackFrames::default();
        for bytes in index.all_bytes(1) {
            out.files.push(String::from_utf8_lossy(bytes).into_owned());
        }
        for bytes in index.all_bytes(3) {
            let location = Message::parse(bytes, NAME)?;
            out.locations.push((location.int(1), location.int(3)));
        }
        for bytes in index.all_bytes(4) {
            out.frames.push(Message::parse(bytes, NAME)?.int(1));
        }
        Ok(out)
    }

    /// File and line of the innermost frame.
    fn resolve(&self, frame: i64) -> Option<(&str, i64)> {
        let location = *nth(&self.frames, frame)?;
        let &(file, line) = nth(&self.locations, location)?;
        Some((nth(&self.files, file)?, line))
    }
}

fn nth<T>(table: &[T], number: i64) -> Option<&T> {
    table.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// Hands out ids and names that a module does not use yet.
#[derive(Clone, Debug)]
pub struct FreshNames {
    last_computation: i64,
    last_instruction: i64,
    last_local: i64,
    /// Instruction ids are (computation id << 32 | local id), as newer XLA numbers them.
    qualified: bool,
    names: BTreeSet<String>,
}

impl FreshNames {
    fn of(module: &HloModule) -> FreshNames {
        let mut fresh = FreshNames {
            last_computation: 0,
            last_instruction: 0,
            last_local: 0,
            qualified: true,
            names: BTreeSet::new(),
        };
        for computation in module.computations() {
            fresh.last_computation = fresh.last_computation.max(computation.id());
            fresh.names.insert(computation.name().to_owned());
            for instruction in computation.instructions() {
                let id = instruction.id();
                fresh.last_instruction = fresh.last_instruction.max(id);
                fresh.last_local = fresh.last_local.max(id & 0xffff_ffff);
                fresh.qualified &= id >> 32 == computation.id();
                fresh.names.insert(instruction.name().to_owned());
            }
        }
        fresh
    }

    pub fn computation_id(&mut self) -> i64 {
        self.last_computation = self.last_computation.saturating_add(1);
        self.last_computation
    }

    /// An id for an instruction of the computation with the given id.
    pub fn instruction_id(&mut self, computation: i64) -> i64 {
        if self.qualified {
            self.last_local += 1;
            (computation << 32) | self.last_local
        } else {
            self.last_instruction = self.last_instruction.saturating_add(1);
            self.last_instruction
        }
    }

    /// `base`, or `base.N` with the smallest free N.
    pub fn name(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut n = 1u64;
        while !self.names.insert(name.clone()) {
            name = format!("{base}.{n}");
            n += 1;
        }
        name
    }
}
