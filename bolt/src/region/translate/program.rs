//! The loop program as driver code, and the case around it. Registers are followed through the program first: what an
//! instruction computes may depend on them.

use super::index::Index;
use super::instruction::{Choice, Command, Machine};
use super::scalar::Scalars;
use super::tensor::{Place, TensorCode, extents, nest};
use super::{Names, TranslateError};
use crate::region::RegionSpec;
use act_hlo::{ElemType, Graph, Literal, Shape, print_graph};
use act_isa::{
    Affine, AttrVal, BetaVal, Env, Instr, InstrId, Isa, LoopId, LoopProgram, Program, Space, View,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

type Made<T> = Result<T, TranslateError>;

fn refuse<T>(place: &str, reason: impl Into<String>) -> Made<T> {
    Err(TranslateError::Form { place: place.to_owned(), reason: reason.into() })
}

/// Values of all registers when an instruction was reached, by those that it depends on.
type Seen = BTreeMap<Mentioned, Vec<i64>>;

/// Registers by position, with their values.
type Mentioned = Vec<(usize, i64)>;

/// Values of the registers, at every instruction of the text, in its order.
struct Registers<'a> {
    isa: &'a Isa,
    now: Vec<i64>,
    loops: Vec<(LoopId, i64)>,
    seen: Vec<Seen>,
    executed: u64,
}

impl Registers<'_> {
    const MOST: u64 = 1 << 22;

    /// Executes a part whose first instruction has the number `at`; returns the number behind it.
    fn execute(&mut self, program: &Program, at: usize) -> Made<usize> {
        match program {
            Program::Seq(parts) => parts.iter().try_fold(at, |at, part| self.execute(part, at)),
            Program::For { iv, trip, body, .. } => {
                let mut end = at + count(body);
                for step in 0..*trip {
                    self.loops.push((*iv, step as i64));
                    end = self.execute(body, at)?;
                    self.loops.pop();
                }
                Ok(end)
            }
            Program::Instr { op, alpha, beta } => {
                let isa = self.isa;
                let instr = isa.instr(*op);
                self.executed += 1;
                if self.executed > Self::MOST {
                    return refuse(&instr.name, format!("more than {} instructions", Self::MOST));
                }
                let mentioned = instr.registers_mentioned().into_iter().map(usize::from);
                let key = mentioned.filter_map(|k| Some((k, *self.now.get(k)?))).collect();
                self.seen[at].entry(key).or_insert_with(|| self.now.clone());
                let alpha = instr.alpha_env(alpha);
                let alpha = alpha.map_err(|e| TranslateError::at(&instr.name)(e.to_string()))?;
                let value = |value: &BetaVal| match value {
                    BetaVal::Int(affine) | BetaVal::Hbm(_, affine) => {
                        affine.eval(|iv| self.loops.iter().rev().find(|(l, _)| *l == iv).map(|(_, v)| *v))
                    }
                };
                let beta: Vec<Option<i64>> = beta.iter().map(value).collect();
                let mut next = self.now.clone();
                for (register, expr) in &instr.updates {
                    let env = Env { alpha: &alpha, beta: &beta, registers: &self.now };
                    let value = expr.eval(env).map_err(|e| TranslateError::at(&instr.name)(e.to_string()))?;
                    if !(0..1 << 62).contains(&value) {
                        return refuse(&instr.name, format!("a register that becomes {value}"));
                    }
                    next[usize::from(*register)] = value;
                }
                self.now = next;
                Ok(at + 1)
            }
            Program::HostCopy { .. } | Program::Fence => Ok(at),
        }
    }
}

/// Instructions in the text of a part.
fn count(program: &Program) -> usize {
    match program {
        Program::Seq(parts) => parts.iter().map(count).sum(),
        Program::For { body, .. } => count(body),
        Program::Instr { .. } => 1,
        Program::HostCopy { .. } | Program::Fence => 0,
    }
}

/// Commands by what they do: instruction, attributes, segments and semantics.
type Known = BTreeMap<(InstrId, Vec<AttrVal>, Vec<Option<Space>>, String), String>;

struct Translation<'a> {
    isa: &'a Isa,
    scalars: Scalars,
    names: Names,
    machine: Machine,
    /// By number of the instruction in the text.
    seen: Vec<Seen>,
    known: Known,
    decls: String,
    commands: String,
    /// Counters of the loops around the place.
    loops: Vec<(LoopId, String)>,
    /// Instructions of the text before the place.
    at: usize,
    body: String,
}

impl Translation<'_> {
    fn line(&mut self, text: &str) {
        let pad = "  ".repeat(self.loops.len() + 1);
        let _ = writeln!(self.body, "{pad}{text}");
    }

    fn affine(&self, value: &Affine) -> Made<Index> {
        let mut sum = Index::constant(value.c0);
        for (iv, factor) in &value.ivs {
            let counter = self.loops.iter().rev().find(|(known, _)| known == iv);
            let Some((_, counter)) = counter else {
                return refuse("an address", "a counter outside of its loop");
            };
            sum = sum.plus(&Index::text(counter.clone()).times(*factor));
        }
        Ok(sum)
    }

    fn part(&mut self, program: &Program) -> Made<()> {
        match program {
            Program::Seq(parts) => parts.iter().try_for_each(|part| self.part(part)),
            Program::For { iv, trip, body, .. } => {
                let counter = self.names.fresh(&format!("i{}", iv.0));
                self.line(&format!("for {counter} in 0..{trip} {{"));
                self.loops.push((*iv, counter));
                self.part(body)?;
                self.loops.pop();
                self.line("}");
                Ok(())
            }
            Program::Instr { op, alpha, beta } => self.instr(*op, alpha, beta),
            Program::HostCopy { from, to } => self.host_copy(from, to),
            Program::Fence => {
                self.line("# a fence: stores before it come before loads behind it");
                Ok(())
            }
        }
    }

    fn instr(&mut self, op: InstrId, alpha: &[AttrVal], beta: &[BetaVal]) -> Made<()> {
        let isa = self.isa;
        let instr = isa.instr(op);
        let at = self.at;
        self.at += 1;
        let mut arguments = Vec::with_capacity(beta.len());
        let mut spaces = Vec::with_capacity(beta.len());
        for value in beta {
            let (space, affine) = match value {
                BetaVal::Int(affine) => (None, affine),
                BetaVal::Hbm(space, affine) => (Some(*space), affine),
            };
            arguments.push(self.affine(affine)?.to_string());
            spaces.push(space);
        }
        // Registers that lead to other semantics choose another command.
        let mut choices: Vec<(String, Vec<Mentioned>)> = Vec::new();
        for (key, registers) in self.seen[at].clone() {
            let graph = instr.instantiate_with(isa, alpha, &registers);
            let graph = graph.map_err(|e| TranslateError::at(&instr.name)(e.to_string()))?;
            let name = self.command(op, instr, alpha, &spaces, &graph)?;
            match choices.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push(key),
                None => choices.push((name, vec![key])),
            }
        }
        let arguments = arguments.join(", ");
        match choices.as_slice() {
            [] => self.line(&format!("# {} is never reached", instr.name)),
            [(name, _)] => self.line(&format!("call {name}({arguments})")),
            several => {
                const MOST: usize = 64;
                if several.iter().map(|(_, all)| all.len()).sum::<usize>() > MOST {
                    return refuse(&instr.name, "its meaning changes with the registers too often");
                }
                let conditions: Vec<String> = several
                    .iter()
                    .flat_map(|(name, all)| all.iter().map(move |registers| (name, registers)))
                    .map(|(name, registers)| {
                        let equal: Vec<String> = registers
                            .iter()
                            .map(|(k, value)| format!("{} == {value}", self.machine.registers[*k]))
                            .collect();
                        format!("if {} {{ call {name}({arguments}) }}", equal.join(" and "))
                    })
                    .collect();
                // A command may change the registers: only one of them runs.
                let last = conditions.len() - 1;
                for (k, condition) in conditions.iter().enumerate() {
                    self.line(&if k < last { format!("{condition} else {{") } else { condition.clone() });
                }
                self.line(&"} ".repeat(last));
            }
        }
        Ok(())
    }

    /// The command that does this, made if there is none yet.
    fn command(
        &mut self,
        op: InstrId,
        instr: &Instr,
        alpha: &[AttrVal],
        spaces: &[Option<Space>],
        graph: &Graph,
    ) -> Made<String> {
        let key = (op, alpha.to_vec(), spaces.to_vec(), print_graph(graph));
        if let Some(name) = self.known.get(&key) {
            return Ok(name.clone());
        }
        let mut wish = instr.name.clone();
        for value in alpha {
            let _ = match value {
                AttrVal::Int(value) => write!(wish, "_{value}"),
                AttrVal::F32(bits) => write!(wish, "_{bits:x}"),
            };
        }
        for space in spaces.iter().flatten() {
            let _ = write!(wish, "_{space}");
        }
        let name = self.names.fresh(&wish);
        let alpha = instr.alpha_env(alpha).map_err(|e| TranslateError::at(&instr.name)(e.to_string()))?;
        let choice = Choice { instr, alpha: &alpha, graph, spaces };
        let made = self.machine.command((&mut self.scalars, &mut self.names), &name, &choice);
        let Command { decls, text } = made.map_err(TranslateError::at(&instr.name))?;
        self.decls += &decls;
        self.commands += &text;
        self.known.insert(key, name.clone());
        Ok(name)
    }

    fn host_copy(&mut self, from: &View, to: &View) -> Made<()> {
        let mut places = Vec::new();
        for view in [from, to] {
            let Some(name) = self.machine.segments.get(&view.space).cloned() else {
                return refuse("host_copy", format!("no segment {}", view.space));
            };
            let strides = view.dims.iter().map(|d| d.1).chain([1]).map(Index::constant).collect();
            places.push(Place::Row { name, start: self.affine(&view.start)?, strides });
        }
        let dims: Vec<u64> = to.dims.iter().map(|d| d.0).chain([to.elem.bytes()]).collect();
        if dims.contains(&0) {
            return Ok(());
        }
        let counters: Vec<String> = (0..dims.len()).map(|k| format!("x{k}")).collect();
        let at: Vec<Index> = counters.iter().zip(&dims).map(|(c, &dim)| Index::counter(c, dim)).collect();
        let copy = format!("{} := {}", places[1].element(&at, 0), places[0].element(&at, 0));
        let text = nest(&dims, &counters, &copy, 2 * (self.loops.len() + 1));
        self.body += &text;
        Ok(())
    }
}

/// A row of elements where a tensor of the region lies.
fn elements(name: &str, view: &View) -> Place {
    let width = view.elem.bytes() as i64;
    Place::Row {
        name: name.to_owned(),
        start: Index::constant(view.start.c0 / width),
        strides: view.dims.iter().map(|d| Index::constant(d.1 / width)).collect(),
    }
}

/// The whole case.
pub(super) fn case(isa: &Isa, spec: &RegionSpec<'_>, program: &LoopProgram) -> Made<String> {
    let elems = spec.operand_elems(program.operands.len()).map_err(TranslateError::at("operands"))?;
    if let Some(fault) = spec.other_sizes(program) {
        return refuse("segments", fault);
    }
    let scalars = Scalars::default();
    let mut names = Names::default();
    Scalars::reserve(&mut names);
    // Counters and locals of commands.
    for k in 0..16 {
        [format!("x{k}"), format!("k{k}")].iter().for_each(|name| names.take(name));
    }
    ["s", "a", "b", "c", "d", "e", "f", "g", "h", "k", "result_of_it"]
        .iter()
        .for_each(|name| names.take(name));
    let name = names.fresh(&spec.graph.name);

    let inputs: Vec<String> = (0..elems.len()).map(|k| names.fresh(&format!("input{k}"))).collect();
    let mut registers = Registers {
        isa,
        now: isa.register_values(),
        loops: Vec::new(),
        seen: vec![Seen::new(); count(&program.body)],
        executed: 0,
    };
    registers.execute(&program.body, 0)?;
    let seen = std::mem::take(&mut registers.seen);

    let mut segments = BTreeMap::new();
    let mut sizes = Vec::new();
    let operands = program.operands.iter().enumerate().map(|(k, &size)| (Space::Operand(k as u16), size));
    let results = program.results.iter().enumerate().map(|(k, &size)| (Space::Result(k as u16), size));
    let others = [(Space::Scratch, program.scratch_bytes), (Space::Consts, program.consts.len() as u64)];
    for (space, size) in operands.chain(results).chain(others) {
        let segment = names.fresh(&space.to_string());
        sizes.push((segment.clone(), size.max(1)));
        segments.insert(space, segment);
    }
    let machine = Machine {
        buffers: isa.buffers.iter().map(|buffer| names.fresh(&buffer.name)).collect(),
        registers: isa.registers.iter().map(|(name, _)| names.fresh(name)).collect(),
        segments,
        used: BTreeSet::new(),
    };
    let mut translation = Translation {
        isa,
        scalars,
        names,
        machine,
        seen,
        known: BTreeMap::new(),
        decls: String::new(),
        commands: String::new(),
        loops: Vec::new(),
        at: 0,
        body: String::new(),
    };
    translation.part(&program.body)?;
    let Translation { mut scalars, mut names, machine, decls, commands, body, .. } = translation;

    let byte = scalars.elem(ElemType::U8).map_err(TranslateError::at("segments"))?;
    let mut state = String::new();
    for (segment, size) in &sizes {
        let _ = writeln!(state, "  buffer {segment}[{size}]: {byte}");
    }
    let mut setup = String::new();
    for id in &machine.used {
        let buffer = isa.buffer(*id);
        let shape = Shape::new(buffer.elem, [buffer.access.as_slice(), buffer.unit.as_slice()].concat());
        let name = &machine.buffers[usize::from(id.0)];
        let ty = scalars.elem(buffer.elem).map_err(TranslateError::at(&buffer.name))?;
        let _ = writeln!(state, "  buffer {name}{}: {ty}", extents(&shape));
        if let Some(value) = &buffer.init {
            let value = scalars.constant(value).map_err(TranslateError::at(&buffer.name))?;
            let counters: Vec<String> = (0..shape.rank()).map(|k| format!("x{k}")).collect();
            let at: Vec<Index> =
                counters.iter().zip(&shape.dims).map(|(c, &n)| Index::counter(c, n)).collect();
            let store = format!("{} := {value}", Place::tensor(name).element(&at, 0));
            setup += &nest(&shape.dims, &counters, &store, 2);
        }
    }
    for (name, (_, value)) in machine.registers.iter().zip(&isa.registers) {
        if *value < 0 {
            return refuse("registers", format!("`{name}` begins with {value}"));
        }
        let _ = writeln!(state, "  reg {name}: bv62");
        let _ = writeln!(setup, "  {name} := {value}");
    }
    setup += &constants(&mut scalars, &machine.segments[&Space::Consts], &program.consts)?;

    let mut data = Data::default();
    data.inputs(&mut scalars, &machine, &inputs, &elems, program)?;
    data.outputs((&mut scalars, &mut names), spec, &inputs, &machine)?;
    let Data { declared, ir_decls, ir, store, load, ensure, results } = data;
    let mut text =
        format!("# Stitched code for {}, as `act verify --emit hex` writes it.\ncase {name}\n", isa.name);
    text += &scalars.items();
    let _ = write!(
        text,
        "ir {{\n{declared}{ir_decls}{ir}}}\naligned {{\n{ir}}}\naccelerator {} {{\n{state}{decls}{commands}}}\n\
         mapping {{\n{results}{setup}{store}{body}{load}}}\nrelate {{\n{ensure}}}\n",
        names.fresh(&isa.name)
    );
    Ok(text)
}

/// Stores that fill the segment of constants, runs of equal bytes as loops.
fn constants(scalars: &mut Scalars, segment: &str, bytes: &[u8]) -> Made<String> {
    const MOST: usize = 1 << 12;
    let mut text = String::new();
    let (mut at, mut runs) = (0, 0);
    while at < bytes.len() {
        let len = bytes[at..].iter().take_while(|byte| **byte == bytes[at]).count();
        let value = Literal::from_bytes(Shape::scalar(ElemType::U8), vec![bytes[at]]);
        let value = value.map_err(|error| TranslateError::at("constants")(error.to_string()))?;
        let value = scalars.constant(&value).map_err(TranslateError::at("constants"))?;
        let index = Index::counter("x0", len as u64).plus(&Index::constant(at as i64));
        text += &nest(&[len as u64], &["x0".to_owned()], &format!("{segment}[{index}] := {value}"), 2);
        at += len;
        runs += 1;
        if runs > MOST {
            return refuse("constants", format!("more than {MOST} runs of equal bytes"));
        }
    }
    Ok(text)
}

/// The region's tensors on both sides.
#[derive(Default)]
struct Data {
    /// Inputs and outputs of the tensor program.
    declared: String,
    ir_decls: String,
    ir: String,
    /// Inputs' bytes to the operands' segments, and results back.
    store: String,
    load: String,
    results: String,
    ensure: String,
}

impl Data {
    fn inputs(
        &mut self,
        scalars: &mut Scalars,
        machine: &Machine,
        inputs: &[String],
        elems: &[ElemType],
        program: &LoopProgram,
    ) -> Made<()> {
        for (k, (input, &elem)) in inputs.iter().zip(elems).enumerate() {
            let at = TranslateError::at(format!("operand {k}"));
            let width = elem.bytes();
            let count = program.operands[k] / width;
            let ty = scalars.elem(elem).map_err(at)?;
            let _ = writeln!(self.declared, "  input {input}[{}]: {ty}", count.max(1));
            let counters = ["x0".to_owned(), "x1".to_owned()];
            let [element, part] = [Index::counter("x0", count), Index::counter("x1", width)];
            let value = scalars.byte(elem, &format!("{input}[{element}]"), &part.to_string());
            let value = value.map_err(TranslateError::at(format!("operand {k}")))?;
            let segment = &machine.segments[&Space::Operand(k as u16)];
            let place = element.times(width as i64).plus(&part);
            if count > 0 {
                self.store += &nest(&[count, width], &counters, &format!("{segment}[{place}] := {value}"), 2);
            }
        }
        Ok(())
    }

    fn outputs(
        &mut self,
        (scalars, names): (&mut Scalars, &mut Names),
        spec: &RegionSpec<'_>,
        inputs: &[String],
        machine: &Machine,
    ) -> Made<()> {
        let params: Vec<Place> = spec
            .operands
            .iter()
            .map(|view| match view.space {
                Space::Operand(k) => elements(&inputs[usize::from(k)], view),
                _ => elements("", view),
            })
            .collect();
        let code = TensorCode::new((scalars, names), spec.graph, &params, "node", 2);
        let mut code = code.map_err(TranslateError::at("the region"))?;
        let mut roots = Vec::new();
        for (k, &root) in spec.graph.roots().iter().enumerate() {
            let shape = spec.graph.shape(root);
            let wanted = code.names.fresh(&format!("wanted{k}"));
            let ty = code.scalars.elem(shape.elem).map_err(TranslateError::at("the region"))?;
            let _ = writeln!(self.declared, "  output {wanted}{}: {ty}", extents(shape));
            code.fill(root, &Place::tensor(&wanted)).map_err(TranslateError::at("the region"))?;
            let got = code.names.fresh(&format!("got{k}"));
            let _ = writeln!(self.results, "  output {got}{}: {ty}", extents(shape));
            roots.push((wanted, got, shape));
        }
        let TensorCode { decls, body, .. } = code;
        (self.ir_decls, self.ir) = (decls, body);
        for ((wanted, got, shape), view) in roots.iter().zip(spec.results) {
            let counters: Vec<String> = (0..shape.rank()).map(|k| format!("x{k}")).collect();
            let at: Vec<Index> =
                counters.iter().zip(&shape.dims).map(|(c, &n)| Index::counter(c, n)).collect();
            let Some(segment) = machine.segments.get(&view.space) else {
                return refuse("results", format!("no segment {}", view.space));
            };
            let place = Place::Row {
                name: segment.clone(),
                start: Index::constant(view.start.c0),
                strides: view.dims.iter().map(|d| Index::constant(d.1)).collect(),
            };
            let bytes: Vec<String> = (0..view.elem.bytes()).map(|b| place.element(&at, b as i64)).collect();
            let value = scalars.of_bytes(view.elem, &bytes).map_err(TranslateError::at("results"))?;
            let load = format!("{} := {value}", Place::tensor(got).element(&at, 0));
            self.load += &nest(&shape.dims, &counters, &load, 2);
            let all: Vec<Index> = counters.iter().map(|c| Index::text(c.clone())).collect();
            let ranges: Vec<String> =
                counters.iter().zip(&shape.dims).map(|(c, n)| format!("{c} in 0..{n}")).collect();
            let over = if ranges.is_empty() { String::new() } else { format!(" over {}", ranges.join(", ")) };
            let (got, wanted) = (Place::tensor(got).element(&all, 0), Place::tensor(wanted).element(&all, 0));
            let _ = writeln!(self.ensure, "  ensure {got} == {wanted}{over}");
        }
        Ok(())
    }
}
