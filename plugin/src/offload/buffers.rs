//! Buffers that XLA has already decided to reuse. Copy insertion has run: a loop's next state overwrites its
//! last, a donated argument is overwritten by a result, an in-place operation by its own. Each of these was safe
//! because every reader of the old value runs before the writer of the new one. Replacing instructions must
//! keep it so: what was ordered stays ordered, by a control edge or, where a custom call itself would read and
//! write the buffer, by a copy.

use super::rewrite::Rewritten;
use super::topological::sort;
use act_hlo::proto::{FreshNames, HloModule, HloShape, Instruction, ProtoError};
use act_hlo::{Binary, Unary};
use std::collections::{BTreeMap, BTreeSet};

/// What a computation's callers let it overwrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The entry: pairs of (parameter, index into it) and index into the result.
    Entry(Vec<(Position, Vec<i64>)>),
    /// A loop body: its result overwrites its parameter.
    LoopBody,
    Other,
}

/// An array within the value of an instruction; for [`Role::Entry`], of the parameter with that number.
pub(crate) type Position = (i64, Vec<i64>);

/// What overwrites a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Writer {
    Instruction(i64),
    /// Whatever computes this part of the result.
    Result(Vec<i64>),
}

/// All readers of `value` run before `writer`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Obligation {
    value: Position,
    writer: Writer,
}

/// Why the order cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OrderError {
    #[error(transparent)]
    Proto(#[from] ProtoError),
    #[error("cannot be ordered before the operation that overwrites its operand")]
    Conflict,
}

/// The instructions of one computation with their dependences.
struct Order<'a> {
    instructions: Vec<&'a Instruction>,
    operands: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// What each instruction really reads; nothing for those that only pass values on.
    reads: Vec<Vec<Part>>,
    index: BTreeMap<i64, usize>,
    root: usize,
}

/// A part of the value of an instruction, by its place in the list.
type Part = (usize, Vec<i64>);

/// Whether one holds the other.
fn overlap(a: &Part, b: &Part) -> bool {
    a.0 == b.0 && (a.1.starts_with(&b.1) || b.1.starts_with(&a.1))
}

impl<'a> Order<'a> {
    fn of(instructions: impl Iterator<Item = &'a Instruction>, root: i64) -> Result<Order<'a>, ProtoError> {
        let instructions: Vec<&Instruction> = instructions.collect();
        let index: BTreeMap<i64, usize> = instructions.iter().enumerate().map(|(k, i)| (i.id(), k)).collect();
        let find = |id: i64| index.get(&id).copied().ok_or(ProtoError::NoSuchInstruction(id));
        let mut users = vec![Vec::new(); instructions.len()];
        let mut operands = Vec::with_capacity(instructions.len());
        for (k, instruction) in instructions.iter().enumerate() {
            let own = instruction.operand_ids()?.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
            for &o in &own {
                users[o].push(k);
            }
            for predecessor in instruction.control_predecessor_ids()? {
                users[find(predecessor)?].push(k);
            }
            operands.push(own);
        }
        let root = find(root)?;
        let mut order = Order { instructions, operands, users, reads: Vec::new(), index, root };
        let reads = |k: usize| match order.passes_on(k) {
            true => Vec::new(),
            false => order.operands[k].iter().flat_map(|&o| order.parts(o)).collect(),
        };
        order.reads = (0..order.instructions.len()).map(reads).collect();
        Ok(order)
    }

    /// Whether `later` depends on `earlier`, directly or not.
    fn reaches(&self, earlier: usize, later: usize) -> bool {
        let mut seen = vec![false; self.instructions.len()];
        let mut pending = self.users[earlier].clone();
        while let Some(k) = pending.pop() {
            if k == later {
                return true;
            }
            if !std::mem::replace(&mut seen[k], true) {
                pending.extend_from_slice(&self.users[k]);
            }
        }
        false
    }

    fn passes_on(&self, k: usize) -> bool {
        matches!(
            self.instructions[k].opcode(),
            "tuple" | "get-tuple-element" | "bitcast" | "optimization-barrier"
        )
    }

    /// The instruction and the part of its value that `path` into the value of `k` really is.
    fn base(&self, mut k: usize, mut path: Vec<i64>) -> Part {
        loop {
            let next = match (self.instructions[k].opcode(), &self.operands[k][..]) {
                ("bitcast" | "optimization-barrier", &[operand]) => operand,
                ("get-tuple-element", &[operand]) => {
                    path.insert(0, self.instructions[k].tuple_index());
                    operand
                }
                ("tuple", operands) => {
                    let Some(&operand) = path.first().and_then(|&p| operands.get(usize::try_from(p).ok()?))
                    else {
                        return (k, path);
                    };
                    path.remove(0);
                    operand
                }
                _ => return (k, path),
            };
            k = next;
        }
    }

    /// All values that the value of `k` consists of.
    fn parts(&self, k: usize) -> Vec<Part> {
        let (base, path) = self.base(k, Vec::new());
        if self.instructions[base].opcode() == "tuple" && path.is_empty() {
            return self.operands[base].iter().flat_map(|&o| self.parts(o)).collect();
        }
        vec![(base, path)]
    }

    /// Instructions that read what `value` holds.
    fn readers(&self, value: &Part) -> BTreeSet<usize> {
        let reads = |&k: &usize| self.reads[k].iter().any(|part| overlap(part, value));
        (0..self.instructions.len()).filter(reads).collect()
    }

    fn is_in_result(&self, value: &Part) -> bool {
        self.parts(self.root).iter().any(|part| overlap(part, value))
    }

    fn writer(&self, writer: &Writer) -> Option<usize> {
        match writer {
            Writer::Instruction(id) => self.index.get(id).copied(),
            Writer::Result(path) => Some(self.base(self.root, path.clone()).0),
        }
    }
}

/// Instructions, besides elementwise ones, of which it is known that they never overwrite an operand.
const PURE: [&str; 41] = [
    "after-all",
    "bitcast",
    "bitcast-convert",
    "broadcast",
    "cholesky",
    "clamp",
    "compare",
    "complex",
    "concatenate",
    "constant",
    "convert",
    "convolution",
    "copy",
    "dot",
    "dynamic-slice",
    "fft",
    "gather",
    "get-tuple-element",
    "imag",
    "iota",
    "map",
    "optimization-barrier",
    "pad",
    "parameter",
    "partition-id",
    "real",
    "reduce",
    "reduce-precision",
    "reduce-window",
    "replica-id",
    "reshape",
    "reverse",
    "rng",
    "rng-bit-generator",
    "select",
    "select-and-scatter",
    "slice",
    "stochastic-convert",
    "transpose",
    "triangular-solve",
    "tuple",
];

/// Whether an instruction may overwrite an operand. Unknown ones may.
fn may_overwrite(module: &HloModule, instruction: &Instruction) -> Result<bool, ProtoError> {
    let opcode = instruction.opcode();
    Ok(match opcode {
        "custom-call" => instruction.has_output_operand_aliasing(),
        "fusion" => {
            for id in instruction.called_computation_ids()? {
                let called = module.computation(id).ok_or(ProtoError::NoSuchComputation(id))?;
                for inner in called.instructions() {
                    if inner.opcode() == "fusion" || may_overwrite(module, inner)? {
                        return Ok(true);
                    }
                }
            }
            false
        }
        _ => {
            !PURE.contains(&opcode)
                && Unary::from_name(opcode).is_none()
                && Binary::from_name(opcode).is_none()
        }
    })
}

/// The order in which buffers of one computation are reused.
#[derive(Debug)]
pub(crate) struct Obligations {
    list: Vec<Obligation>,
}

impl Obligations {
    /// What the computation relies on as XLA gave it.
    ///
    /// # Errors
    /// Unreadable instructions.
    pub(crate) fn of(module: &HloModule, computation: i64, role: &Role) -> Result<Obligations, ProtoError> {
        let computation =
            module.computation(computation).ok_or(ProtoError::NoSuchComputation(computation))?;
        let order = Order::of(computation.instructions(), computation.root_id())?;
        let mut candidates: Vec<Obligation> = Vec::new();
        let mut offer = |value: Part, writer: Writer| {
            let obligation = Obligation { value: (order.instructions[value.0].id(), value.1), writer };
            if !candidates.contains(&obligation) {
                candidates.push(obligation);
            }
        };
        for k in 0..order.instructions.len() {
            if may_overwrite(module, order.instructions[k])? {
                for &operand in &order.operands[k] {
                    for part in order.parts(operand) {
                        offer(part, Writer::Instruction(order.instructions[k].id()));
                    }
                }
            }
        }
        let parameter = |number: i64| {
            let is_it = |i: &&Instruction| i.opcode() == "parameter" && i.parameter_number() == number;
            order.instructions.iter().position(is_it)
        };
        match role {
            Role::Other => {}
            Role::Entry(pairs) => {
                for ((number, index), output) in pairs {
                    if let Some(k) = parameter(*number) {
                        offer((k, index.clone()), Writer::Result(output.clone()));
                    }
                }
            }
            Role::LoopBody => {
                if let Some(k) = parameter(0) {
                    match order.instructions[k].shape()? {
                        HloShape::Tuple(members) => {
                            for index in 0..members.len() as i64 {
                                offer((k, vec![index]), Writer::Result(vec![index]));
                            }
                        }
                        _ => offer((k, Vec::new()), Writer::Result(Vec::new())),
                    }
                }
            }
        }
        candidates.retain(|obligation| {
            let Some(&value) = order.index.get(&obligation.value.0) else { return false };
            let value = (value, obligation.value.1.clone());
            let Some(writer) = order.writer(&obligation.writer) else { return false };
            // A loop value handed on unchanged, or one that outlives the writer, has a buffer to itself.
            writer != value.0
                && !order.is_in_result(&value)
                && order.readers(&value).iter().all(|&r| r == writer || order.reaches(r, writer))
        });
        Ok(Obligations { list: candidates })
    }

    /// Adds the control edges and copies that keep the order in the rewritten computation.
    ///
    /// # Errors
    /// When no edge can, because the reader depends on the writer.
    pub(crate) fn keep(
        &self,
        computation: i64,
        mut new: Rewritten,
        fresh: &mut FreshNames,
    ) -> Result<Rewritten, OrderError> {
        let mut pending = self.list.iter();
        while let Some((remedy, rest)) = self.next_remedy(pending, &new)? {
            pending = rest;
            match remedy {
                Remedy::Edges { from, to } => add_control_edges(&mut new.instructions, &from, to)?,
                Remedy::Copy { path, after } => {
                    let copy = copy_result(&mut new, &path, computation, fresh)?;
                    add_control_edges(&mut new.instructions, &after, copy)?;
                }
            }
        }
        new.instructions = sort(new.instructions)?.map_err(|_| OrderError::Conflict)?;
        Ok(new)
    }

    /// The first of the pending obligations that something has to be done for, and those after it.
    fn next_remedy<'o>(
        &self,
        mut pending: std::slice::Iter<'o, Obligation>,
        new: &Rewritten,
    ) -> Result<Option<(Remedy, std::slice::Iter<'o, Obligation>)>, OrderError> {
        let order = Order::of(new.instructions.iter(), new.root)?;
        while let Some(obligation) = pending.next() {
            if let Some(remedy) = remedy(obligation, &order, new)? {
                return Ok(Some((remedy, pending)));
            }
        }
        Ok(None)
    }
}

/// What keeps an obligation.
#[derive(Debug)]
enum Remedy {
    Edges {
        from: Vec<i64>,
        to: i64,
    },
    /// A copy of a part of the result, after these readers.
    Copy {
        path: Vec<i64>,
        after: Vec<i64>,
    },
}

fn remedy(obligation: &Obligation, order: &Order<'_>, new: &Rewritten) -> Result<Option<Remedy>, OrderError> {
    // A value that only a region still has inside it is in no buffer of XLA's.
    let Some(&value) = new.value.get(&obligation.value.0).and_then(|id| order.index.get(id)) else {
        return Ok(None);
    };
    let value = order.base(value, obligation.value.1.clone());
    let writer = match &obligation.writer {
        Writer::Instruction(id) => {
            Writer::Instruction(*new.value.get(id).ok_or(ProtoError::NoSuchInstruction(*id))?)
        }
        result @ Writer::Result(_) => result.clone(),
    };
    let at = order.writer(&writer).ok_or(OrderError::Conflict)?;
    let readers = order.readers(&value);
    let id_of = |k: usize| order.instructions[k].id();
    let late: Vec<usize> = readers.iter().copied().filter(|&r| r != at && !order.reaches(r, at)).collect();
    let reads_and_writes = readers.contains(&at) && new.calls.contains(&id_of(at));
    let from: Vec<i64> = late.iter().map(|&r| id_of(r)).collect();
    if !reads_and_writes && late.is_empty() {
        return Ok(None);
    }
    if !reads_and_writes && late.iter().all(|&r| !order.reaches(at, r)) {
        return Ok(Some(Remedy::Edges { from, to: id_of(at) }));
    }
    match writer {
        Writer::Result(path) => Ok(Some(Remedy::Copy { path, after: from })),
        Writer::Instruction(_) => Err(OrderError::Conflict),
    }
}

fn add_control_edges(instructions: &mut [Instruction], from: &[i64], to: i64) -> Result<(), ProtoError> {
    if from.is_empty() {
        return Ok(());
    }
    let instruction =
        instructions.iter_mut().find(|i| i.id() == to).ok_or(ProtoError::NoSuchInstruction(to))?;
    let mut predecessors = instruction.control_predecessor_ids()?;
    predecessors.extend(from);
    instruction.set_control_predecessor_ids(&predecessors);
    Ok(())
}

/// Puts a copy between a part of the result and what computes it.
fn copy_result(
    new: &mut Rewritten,
    path: &[i64],
    computation: i64,
    fresh: &mut FreshNames,
) -> Result<i64, OrderError> {
    let find = |id: i64| new.instructions.iter().position(|i| i.id() == id);
    let root = find(new.root).ok_or(ProtoError::NoSuchInstruction(new.root))?;
    let mut operands = new.instructions[root].operand_ids()?;
    let (slot, source) = match path {
        [] => (None, new.root),
        &[index] if new.instructions[root].opcode() == "tuple" => {
            let slot = usize::try_from(index).ok().filter(|&s| s < operands.len());
            let slot = slot.ok_or(OrderError::Conflict)?;
            (Some(slot), operands[slot])
        }
        _ => return Err(OrderError::Conflict),
    };
    let source_at = find(source).ok_or(ProtoError::NoSuchInstruction(source))?;
    let shape = new.instructions[source_at].shape()?;
    if shape.array().is_none() {
        return Err(OrderError::Conflict);
    }
    let id = fresh.instruction_id(computation);
    let mut copy = Instruction::new(id, &fresh.name("copy"), "copy", &shape, &[source]);
    copy.copy_shape(&new.instructions[source_at]);
    copy.copy_provenance(&new.instructions[source_at]);
    match slot {
        Some(slot) => {
            operands[slot] = id;
            new.instructions[root].set_operand_ids(&operands);
        }
        None => new.root = id,
    }
    new.instructions.push(copy);
    Ok(id)
}
