//! From the instructions of a computation to a [`Graph`]: names resolved, calls and fusions inlined, tuples
//! taken apart.

use super::attributes::Attributes;
use super::operator::operator;
use super::{Computation, Instruction, Operands, ParseError, TextModule, TextShape};
use crate::{Graph, Layout, NodeId, Op, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Calls nest no deeper than this; recursion, which HLO forbids, ends here too.
const MAX_CALL_DEPTH: usize = 64;

/// Inlining stops here: a text of n computations can ask for 2^n nodes.
const MAX_NODES: usize = 1 << 17;

#[derive(Clone)]
enum Value {
    Node(NodeId),
    Tuple(Rc<[Value]>),
}

pub(super) fn graph(module: &TextModule, computation: &Computation) -> Result<Graph, ParseError> {
    let is_entry = std::ptr::eq(computation, &module.computations[module.entry]);
    let name = if is_entry { &module.name } else { &computation.name };
    let mut lowering = Lowering {
        module,
        graph: Graph::new(if super::print::is_anonymous(name) { "" } else { name }),
        names: BTreeSet::new(),
    };
    let root = match lowering.computation(computation, None, 0)? {
        Value::Node(id) => vec![Value::Node(id)],
        Value::Tuple(members) => members.to_vec(),
    };
    for member in root {
        let error =
            || module.error(computation.instructions[computation.root].at, "a tuple in the result tuple");
        let Value::Node(id) = member else { return Err(error()) };
        lowering.graph.add_root(id).map_err(|_| error())?;
    }
    Ok(lowering.graph)
}

struct Lowering<'a> {
    module: &'a TextModule,
    graph: Graph,
    /// Names given so far; a name that comes again, through inlining, is not given twice.
    names: BTreeSet<&'a str>,
}

impl<'a> Lowering<'a> {
    fn error(&self, instruction: &Instruction, message: impl Into<String>) -> ParseError {
        self.module.error(instruction.at, message)
    }

    /// The value of the root. Without arguments the parameters become those of the graph.
    fn computation(
        &mut self,
        computation: &'a Computation,
        arguments: Option<&[Value]>,
        depth: usize,
    ) -> Result<Value, ParseError> {
        let mut values: BTreeMap<&str, Value> = BTreeMap::new();
        let numbers = self.parameter_numbers(computation)?;
        if arguments.is_none() && !numbers.values().is_sorted() {
            let mut in_order: Vec<(u32, &Instruction)> =
                numbers.iter().map(|(&i, &k)| (k, &computation.instructions[i])).collect();
            in_order.sort_unstable_by_key(|&(k, _)| k);
            for (k, instruction) in in_order {
                let value = self.parameter(instruction, k, None)?;
                values.insert(&instruction.name, value);
            }
        }
        for (i, instruction) in computation.instructions.iter().enumerate() {
            if values.contains_key(instruction.name.as_str()) {
                continue;
            }
            let value = match numbers.get(&i) {
                Some(&k) => self.parameter(instruction, k, arguments)?,
                None => self.instruction(instruction, &values, depth)?,
            };
            values.insert(&instruction.name, value);
        }
        let root = &computation.instructions[computation.root];
        values.remove(root.name.as_str()).ok_or_else(|| self.error(root, "the root has no value"))
    }

    /// Parameter number by instruction index; the numbers are 0.. without gaps.
    fn parameter_numbers(&self, computation: &Computation) -> Result<BTreeMap<usize, u32>, ParseError> {
        let mut numbers = BTreeMap::new();
        for (i, instruction) in computation.instructions.iter().enumerate() {
            if instruction.opcode != "parameter" {
                continue;
            }
            let Operands::Payload(range) = &instruction.operands else { continue };
            let attributes = Attributes::new(self.module, instruction);
            let mut cursor = attributes.cursor(range.clone());
            let number: u32 = cursor.integer("a parameter number")?;
            if !cursor.is_done() {
                return Err(cursor.expected("`)`"));
            }
            if numbers.values().any(|&other| other == number) {
                return Err(self.error(instruction, format!("parameter {number} is defined twice")));
            }
            numbers.insert(i, number);
        }
        match numbers.iter().find(|&(_, &k)| k as usize >= numbers.len()) {
            Some((&i, k)) => {
                let message = format!("parameter {k} of a computation with {} parameters", numbers.len());
                Err(self.error(&computation.instructions[i], message))
            }
            None => Ok(numbers),
        }
    }

    fn parameter(
        &mut self,
        instruction: &'a Instruction,
        number: u32,
        arguments: Option<&[Value]>,
    ) -> Result<Value, ParseError> {
        let Some(arguments) = arguments else {
            return self.node(instruction, Op::Parameter(number), &[]);
        };
        let value = arguments.get(number as usize).ok_or_else(|| {
            self.error(instruction, format!("no argument is passed for parameter {number}"))
        })?;
        self.check_shape(instruction, value)?;
        Ok(value.clone())
    }

    fn instruction(
        &mut self,
        instruction: &'a Instruction,
        values: &BTreeMap<&str, Value>,
        depth: usize,
    ) -> Result<Value, ParseError> {
        let mut operands = Vec::new();
        if let Operands::Values(names) = &instruction.operands {
            for (name, at) in names {
                let value = values.get(name.as_str()).ok_or_else(|| {
                    self.module.error(*at, format!("`{name}` is not defined before its use here"))
                })?;
                operands.push(value.clone());
            }
        }
        let attributes = Attributes::new(self.module, instruction);
        let value = match instruction.opcode.as_str() {
            "tuple" => Value::Tuple(operands.into()),
            "get-tuple-element" => {
                let index: usize = attributes.integer("index")?;
                let [Value::Tuple(members)] = &operands[..] else {
                    return Err(self.error(instruction, "`get-tuple-element` takes one tuple"));
                };
                let message = format!("the tuple has {} members", members.len());
                members.get(index).cloned().ok_or_else(|| self.error(instruction, message))?
            }
            "fusion" => self.call(instruction, &attributes, "calls", &operands, depth)?,
            "call" => self.call(instruction, &attributes, "to_apply", &operands, depth)?,
            _ => {
                let mut nodes = Vec::with_capacity(operands.len());
                for operand in operands {
                    let Value::Node(id) = operand else {
                        return Err(self.error(instruction, format!("`{}` of a tuple", instruction.opcode)));
                    };
                    nodes.push(id);
                }
                return self.compute(instruction, &attributes, &nodes);
            }
        };
        attributes.finish()?;
        self.check_shape(instruction, &value)?;
        Ok(value)
    }

    fn compute(
        &mut self,
        instruction: &'a Instruction,
        attributes: &Attributes,
        operands: &[NodeId],
    ) -> Result<Value, ParseError> {
        let TextShape::Array(shape, layout) = &instruction.shape else {
            let message = format!("`{}` with a tuple for its result is not supported", instruction.opcode);
            return Err(self.error(instruction, message));
        };
        let op = if instruction.opcode == "bitcast" {
            self.bitcast(instruction, operands, shape, layout.as_ref())?
        } else {
            operator(self.module, instruction, attributes, shape)?
        };
        attributes.finish()?;
        self.node(instruction, op, operands)
    }

    /// Between row-major layouts a bitcast is a reshape.
    fn bitcast(
        &self,
        instruction: &Instruction,
        operands: &[NodeId],
        shape: &Shape,
        layout: Option<&Layout>,
    ) -> Result<Op, ParseError> {
        let &[operand] = operands else {
            return Err(self.error(instruction, "`bitcast` takes one operand"));
        };
        let operand = self.graph.node(operand);
        let row_major = |layout: Option<&Layout>| layout.is_none_or(Layout::is_row_major);
        if operand.shape.elem != shape.elem || !row_major(layout) || !row_major(operand.layout.as_ref()) {
            let message = "`bitcast` is supported between row-major layouts of one element type only";
            return Err(self.error(instruction, message));
        }
        Ok(Op::Reshape)
    }

    fn call(
        &mut self,
        instruction: &Instruction,
        attributes: &Attributes,
        attribute: &'static str,
        operands: &[Value],
        depth: usize,
    ) -> Result<Value, ParseError> {
        let (name, at) = attributes.word(attribute)?.ok_or_else(|| attributes.missing(attribute))?;
        let module = self.module;
        let callee = module
            .computation(name)
            .ok_or_else(|| module.error(at, format!("there is no computation `{name}`")))?;
        if depth == MAX_CALL_DEPTH {
            return Err(module.error(at, format!("calls nest deeper than {MAX_CALL_DEPTH}")));
        }
        let parameters = callee.instructions.iter().filter(|i| i.opcode == "parameter").count();
        if parameters != operands.len() {
            let message = format!("`{name}` has {parameters} parameters, got {} operands", operands.len());
            return Err(self.error(instruction, message));
        }
        self.computation(callee, Some(operands), depth + 1)
    }

    fn node(
        &mut self,
        instruction: &'a Instruction,
        op: Op,
        operands: &[NodeId],
    ) -> Result<Value, ParseError> {
        let TextShape::Array(shape, layout) = &instruction.shape else {
            return Err(self.error(instruction, "a parameter that is a tuple is not supported"));
        };
        if self.graph.nodes().len() >= MAX_NODES {
            return Err(self.error(instruction, format!("the graph grows beyond {MAX_NODES} nodes")));
        }
        let id = self
            .graph
            .add_declared(op, operands, Some(shape))
            .map_err(|e| self.module.error(instruction.at, e.to_string()))?;
        let source = Attributes::new(self.module, instruction).source()?;
        let node = self.graph.annotate(id);
        node.layout.clone_from(layout);
        node.source = source;
        let name = instruction.name.as_str();
        if !super::print::is_anonymous(name) && self.names.insert(name) {
            name.clone_into(&mut node.name);
        }
        Ok(Value::Node(id))
    }

    fn check_shape(&self, instruction: &Instruction, value: &Value) -> Result<(), ParseError> {
        if self.has_shape(value, &instruction.shape) {
            return Ok(());
        }
        let message = format!("the shape declared for `{}` is not that of its value", instruction.name);
        Err(self.error(instruction, message))
    }

    fn has_shape(&self, value: &Value, shape: &TextShape) -> bool {
        match (value, shape) {
            (Value::Node(id), TextShape::Array(shape, _)) => self.graph.shape(*id) == shape,
            (Value::Tuple(values), TextShape::Tuple(shapes)) => {
                values.len() == shapes.len() && values.iter().zip(shapes).all(|(v, s)| self.has_shape(v, s))
            }
            _ => false,
        }
    }
}
