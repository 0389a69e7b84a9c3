//! One native function per (instruction, alpha): checks of its addresses, then its semantics over memory. The
//! function is a template of the description's computation; no instruction is known by name.

use super::LowerError;
use super::code::{Code, Value};
use super::fault::Check;
use super::machine::word;
use super::scalar::Unsupported;
use super::tensor::{Memory, Scope, Shared, Tensors};
use act_hlo::{ElemType, Graph, NodeId, OpKind, Shape};
use act_isa::{
    AttrKind, AttrVal, BufferSlice, Cond, Env, EvalExprError, Expr, HbmWindow, Instr, Isa, Position, Slice,
};

/// Largest absolute value of an addressing attribute that is no address; keeps arithmetic on it within i64.
const BETA_LIMIT: i64 = 1 << 40;
/// Addresses are below this on every machine that can run the simulator.
pub(crate) const ADDRESS_LIMIT: i64 = 1 << 56;

/// The scopes that memory accesses of a module fall into.
#[derive(Clone, Debug)]
pub(crate) struct Scopes {
    pub(crate) hbm: Scope,
    /// By buffer.
    pub(crate) buffers: Vec<Scope>,
}

/// A function of the generated module.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    pub(crate) text: String,
    pub(crate) checks: Vec<Check>,
}

/// The head that all native functions share.
pub(crate) struct Head {
    pub(crate) code: Code,
    pub(crate) machine: Value,
    pub(crate) site: Value,
    pub(crate) arguments: Vec<Value>,
}

/// Opens `@name(machine, site, arguments..)` and counts the execution as that of native function `number`.
pub(crate) fn open_function(name: &str, number: usize, arguments: usize) -> Head {
    let mut code = Code::default();
    let (machine, site) = (code.name(), code.name());
    let arguments: Vec<Value> = (0..arguments).map(|_| code.name()).collect();
    let rest: String = arguments.iter().map(|a| format!(", {a}: i64")).collect();
    code.open(format_args!(
        "func.func @{name}({machine}: !llvm.ptr, {site}: i64{rest}) attributes {{{INTERNAL}}}"
    ));
    let counts = load_word(&mut code, machine, word::COUNTS, "!llvm.ptr");
    let offset = code.const_i64(8 * number as i64);
    let count = code.pointer(counts, offset);
    let before = code.op(format_args!("llvm.load {count} : !llvm.ptr -> i64"));
    let after = code.add_i64(before, 1);
    code.line(format_args!("llvm.store {after}, {count} : i64, !llvm.ptr"));
    Head { code, machine, site, arguments }
}

/// Internal to the module and free to be inlined. Denormals are zeros, as the run sets the processor.
pub(crate) const INTERNAL: &str = "llvm.linkage = #llvm.linkage<internal>, \
     passthrough = [[\"denormal-fp-math\", \"preserve-sign,preserve-sign\"]]";

pub(crate) fn close_function(mut code: Code) -> String {
    code.line(format_args!("return"));
    code.close();
    code.into_text()
}

/// A word of the machine that does not change during a run.
pub(crate) fn load_word(code: &mut Code, machine: Value, offset: i64, ty: &str) -> Value {
    let offset = code.const_i64(offset);
    let pointer = code.pointer(machine, offset);
    code.op(format_args!("llvm.load {pointer} invariant : !llvm.ptr -> {ty}"))
}

/// Runs `body` if all `conditions` hold and records the first that does not otherwise.
pub(crate) fn guarded<R>(
    code: &mut Code,
    machine: Value,
    site: Value,
    conditions: &[Value],
    body: impl FnOnce(&mut Code) -> R,
) -> R {
    let mut all: Option<Value> = None;
    for &condition in conditions {
        all = Some(match all {
            None => condition,
            Some(all) => code.op(format_args!("arith.andi {all}, {condition} : i1")),
        });
    }
    let Some(all) = all else { return body(code) };
    code.open(format_args!("scf.if {all}"));
    let result = body(code);
    code.close();
    let violated = {
        let truth = code.op(format_args!("arith.constant true"));
        code.op(format_args!("arith.xori {all}, {truth} : i1"))
    };
    code.block(format_args!("scf.if {violated}"), |code| {
        let mut first = code.const_i64(-1);
        for (k, &condition) in conditions.iter().enumerate().rev() {
            let number = code.const_i64(k as i64);
            first = code.op(format_args!("arith.select {condition}, {first}, {number} : i64"));
        }
        code.line(format_args!(
            "func.call @act_fault({machine}, {site}, {first}) : (!llvm.ptr, i64, i64) -> ()"
        ));
    });
    result
}

/// Whether `[low, high)` lies in one segment, a writable one if `write`.
pub(crate) fn in_segment(code: &mut Code, machine: Value, low: Value, high: Value, write: bool) -> Value {
    let write = code.op(format_args!("arith.constant {write}"));
    code.op(format_args!(
        "func.call @act_in_segment({machine}, {low}, {high}, {write}) : (!llvm.ptr, i64, i64, i1) -> i1"
    ))
}

/// The functions that native functions call.
pub(crate) fn support() -> String {
    format!(
        "  func.func @act_fault(%machine: !llvm.ptr, %site: i64, %check: i64) attributes {{{INTERNAL}}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %before = llvm.load %machine : !llvm.ptr -> i64
    %first = arith.cmpi eq, %before, %zero : i64
    scf.if %first {{
      %number = arith.addi %site, %one : i64
      llvm.store %number, %machine : i64, !llvm.ptr
      %at = arith.constant {fault_check} : i64
      %slot = llvm.getelementptr %machine[%at] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      llvm.store %check, %slot : i64, !llvm.ptr
    }}
    return
  }}
  func.func @act_in_segment(%machine: !llvm.ptr, %low: i64, %high: i64, %write: i1) -> i1 attributes {{{INTERNAL}}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %no = arith.constant false
    %yes = arith.constant true
    %table_at = arith.constant {segments} : i64
    %table_slot = llvm.getelementptr %machine[%table_at] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %table = llvm.load %table_slot invariant : !llvm.ptr -> !llvm.ptr
    %count_at = arith.constant {segment_count} : i64
    %count_slot = llvm.getelementptr %machine[%count_at] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %count = llvm.load %count_slot invariant : !llvm.ptr -> i64
    %read = arith.xori %write, %yes : i1
    %found = scf.for %k = %zero to %count step %one iter_args(%before = %no) -> (i1) : i64 {{
      %start_slot = llvm.getelementptr %table[%k, 0] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<3 x i64>
      %end_slot = llvm.getelementptr %table[%k, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<3 x i64>
      %writable_slot = llvm.getelementptr %table[%k, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<3 x i64>
      %start = llvm.load %start_slot invariant : !llvm.ptr -> i64
      %end = llvm.load %end_slot invariant : !llvm.ptr -> i64
      %writable = llvm.load %writable_slot invariant : !llvm.ptr -> i64
      %after_start = arith.cmpi ule, %start, %low : i64
      %before_end = arith.cmpi ule, %high, %end : i64
      %may_write = arith.cmpi ne, %writable, %zero : i64
      %allowed = arith.ori %read, %may_write : i1
      %inside = arith.andi %after_start, %before_end : i1
      %fits = arith.andi %inside, %allowed : i1
      %now = arith.ori %before, %fits : i1
      scf.yield %now : i1
    }}
    return %found : i1
  }}
",
        fault_check = word::FAULT_CHECK,
        segments = word::SEGMENTS,
        segment_count = word::SEGMENT_COUNT,
    )
}

/// The native function of `instr` at `alpha`.
///
/// # Errors
/// An instruction without meaning at this alpha, or one that the simulator has no code for.
pub(crate) fn instruction(
    isa: &Isa,
    instr: &Instr,
    alpha: &[AttrVal],
    name: &str,
    number: usize,
    scopes: &Scopes,
    shared: &mut Shared,
) -> Result<Native, LowerError> {
    if !instr.updates.is_empty() || !instr.registers_mentioned().is_disjoint(&isa.mutable_registers()) {
        return Err(LowerError::ChangingRegisters { instr: instr.name.clone() });
    }
    for slice in instr.inputs.iter().chain(&instr.outputs) {
        if let Slice::OnChip(BufferSlice { buffer, .. }) = slice
            && isa.buffer(*buffer).init.is_some()
        {
            let buffer = isa.buffer(*buffer).name.clone();
            return Err(LowerError::InitialValue { instr: instr.name.clone(), buffer });
        }
    }
    let graph = instr
        .instantiate(isa, alpha)
        .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
    let alpha_ints = instr
        .alpha_env(alpha)
        .map_err(|error| LowerError::Instantiate { instr: instr.name.clone(), error })?;
    let registers = isa.register_values();
    let env = Env { alpha: &alpha_ints, beta: &[], registers: &registers };
    let Head { mut code, machine, site, arguments } = open_function(name, number, instr.beta.len());

    let mut checker =
        Checker { isa, instr, env, machine, beta: &arguments, conditions: Vec::new(), checks: Vec::new() };
    let located = checker.all(&mut code)?;
    let Checker { conditions, checks, .. } = checker;

    let code = guarded(&mut code, machine, site, &conditions, |code| {
        let workspace = load_word(code, machine, word::WORKSPACE, "!llvm.ptr");
        let mut tensors = Tensors::new(std::mem::take(code), shared, &graph, workspace);
        let places = located.iter().map(|l| place(&mut tensors, machine, l, scopes)).collect::<Vec<Memory>>();
        let (inputs, outputs) = places.split_at(instr.inputs.len());
        // Every access must know every scope, whichever comes first.
        for memory in &places {
            if !tensors.scopes.contains(&memory.scope) {
                tensors.scopes.push(memory.scope);
            }
        }
        for (&param, memory) in graph.params().iter().zip(inputs) {
            tensors.place(param, memory.clone());
        }
        let result = body(&mut tensors, instr, outputs);
        *code = tensors.code;
        result
    })
    .map_err(|error| LowerError::Unsupported { instr: instr.name.clone(), error })
    .map(|()| code)?;
    Ok(Native { text: close_function(code), checks })
}

/// Computes what must be kept in memory, then stores the roots.
fn body(tensors: &mut Tensors<'_>, instr: &Instr, outputs: &[Memory]) -> Result<(), Unsupported> {
    let graph = tensors.graph;
    let early = roots_to_finish_first(graph, instr);
    for node in graph.ids().filter(|&n| is_needed(graph, n)) {
        let kept = match &graph.node(node).op {
            OpKind::Parameter(_) => false,
            OpKind::Dot(_)
            | OpKind::Reduce { .. }
            | OpKind::Concatenate { .. }
            | OpKind::Pad { .. }
            | OpKind::DynamicUpdateSlice => true,
            op => early.contains(&node) || (Tensors::is_costly(op) && is_recomputed(graph, node)),
        };
        if kept {
            tensors.materialise(node)?;
        }
    }
    for (&root, memory) in graph.roots().iter().zip(outputs) {
        tensors.store_root(root, memory)?;
    }
    Ok(())
}

/// Whether a root depends on `node`.
fn is_needed(graph: &Graph, node: NodeId) -> bool {
    graph.roots().iter().any(|&root| reaches(graph, root, node))
}

fn reaches(graph: &Graph, from: NodeId, to: NodeId) -> bool {
    let mut seen = vec![false; graph.nodes().len()];
    let mut stack = vec![from];
    while let Some(node) = stack.pop() {
        if node == to {
            return true;
        }
        // Operands stand before their users.
        if node > to && !std::mem::replace(&mut seen[node.0 as usize], true) {
            stack.extend(&graph.node(node).operands);
        }
    }
    false
}

/// Whether elements of `node` would be computed more than once.
fn is_recomputed(graph: &Graph, node: NodeId) -> bool {
    let mut uses = 0;
    for user in graph.ids() {
        let of_user = graph.node(user).operands.iter().filter(|&&o| o == node).count();
        if of_user > 0 && matches!(graph.node(user).op, OpKind::Broadcast { .. }) {
            return true;
        }
        uses += of_user;
    }
    uses > 1
}

/// Roots that must be complete before any output is written, because their computation reads what a store
/// overwrites. Slice, compute, upslice: an instruction reads all of its inputs before it writes (appendix A).
fn roots_to_finish_first(graph: &Graph, instr: &Instr) -> Vec<NodeId> {
    let overlap = |out: &Slice, input: &Slice| match (out, input) {
        (Slice::Hbm(_), Slice::Hbm(_)) => true,
        (Slice::OnChip(a), Slice::OnChip(b)) => a.buffer == b.buffer,
        _ => false,
    };
    let mut finish = Vec::new();
    for (k, &root) in graph.roots().iter().enumerate() {
        for (param, in_place) in reads(graph, root) {
            let input = &instr.inputs[param];
            let clash = instr.outputs[..=k].iter().enumerate().any(|(j, out)| {
                // Updating an element from the same element alone is safe.
                let same = j == k && in_place && out == input && matches!(out, Slice::OnChip(_));
                overlap(out, input) && !same
            });
            if clash && !finish.contains(&root) {
                finish.push(root);
            }
        }
    }
    finish
}

/// Parameters that a root's final loops read, and whether each is read at the stored position only.
fn reads(graph: &Graph, root: NodeId) -> Vec<(usize, bool)> {
    let mut found = Vec::new();
    let mut stack = vec![(root, true)];
    let mut seen = std::collections::BTreeSet::new();
    while let Some((node, in_place)) = stack.pop() {
        if !seen.insert((node, in_place)) {
            continue;
        }
        let n = graph.node(node);
        match &n.op {
            OpKind::Parameter(k) => found.push((*k as usize, in_place)),
            // Complete before the first store.
            OpKind::Dot(_)
            | OpKind::Reduce { .. }
            | OpKind::Concatenate { .. }
            | OpKind::Pad { .. }
            | OpKind::DynamicUpdateSlice => {}
            OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Compare(_)
            | OpKind::Select
            | OpKind::Clamp
            | OpKind::Fma
            | OpKind::Convert
            | OpKind::Copy => {
                let shape = |id: NodeId| &graph.shape(id).dims;
                stack.extend(n.operands.iter().map(|&o| (o, in_place && shape(o) == shape(node))));
            }
            _ => stack.extend(n.operands.iter().map(|&o| (o, false))),
        }
    }
    found
}

/// A slice whose start is in registers.
enum Located {
    /// Start per access dimension.
    OnChip {
        buffer: usize,
        bytes_per_step: Vec<i64>,
        start: Vec<Value>,
        elem: ElemType,
        strides: Vec<i64>,
    },
    Hbm {
        address: Value,
        strides: Vec<i64>,
    },
}

fn place(tensors: &mut Tensors<'_>, machine: Value, located: &Located, scopes: &Scopes) -> Memory {
    let code = &mut tensors.code;
    match located {
        Located::Hbm { address, strides } => {
            let base = code.op(format_args!("llvm.inttoptr {address} : i64 to !llvm.ptr"));
            Memory { base, elem: ElemType::U8, strides: strides.clone(), scope: scopes.hbm }
        }
        Located::OnChip { buffer, bytes_per_step, start, elem, strides } => {
            let mut base = load_word(code, machine, word::BUFFERS + 8 * *buffer as i64, "!llvm.ptr");
            for (&start, &bytes) in start.iter().zip(bytes_per_step) {
                let offset = code.mul_i64(start, bytes);
                base = code.pointer(base, offset);
            }
            Memory { base, elem: *elem, strides: strides.clone(), scope: scopes.buffers[*buffer] }
        }
    }
}

/// A value with bounds that hold once all checks have passed.
#[derive(Clone, Copy)]
struct Bounded {
    value: Value,
    low: i128,
    high: i128,
}

struct Checker<'a> {
    isa: &'a Isa,
    instr: &'a Instr,
    env: Env<'a>,
    machine: Value,
    beta: &'a [Value],
    conditions: Vec<Value>,
    checks: Vec<Check>,
}

impl Checker<'_> {
    fn require(&mut self, check: Check, condition: Value) {
        self.checks.push(check);
        self.conditions.push(condition);
    }

    /// Checks of all slices: inputs, then outputs.
    fn all(&mut self, code: &mut Code) -> Result<Vec<Located>, LowerError> {
        for k in 0..self.instr.beta.len() {
            let (low, high) = self.beta_range(k);
            let (low, high) = (code.const_i64(low), code.const_i64(high));
            let above = code.op(format_args!("arith.cmpi sge, {}, {low} : i64", self.beta[k]));
            let below = code.op(format_args!("arith.cmpi sle, {}, {high} : i64", self.beta[k]));
            let within = code.op(format_args!("arith.andi {above}, {below} : i1"));
            self.require(Check::BetaRange { attr: self.instr.beta[k].name.clone() }, within);
        }
        for (index, condition) in self.instr.requires.iter().enumerate() {
            if condition.mentions_beta() {
                let holds = self.condition(code, condition)?;
                self.require(Check::Requirement { index }, holds);
            }
        }
        let inputs = self.instr.inputs.iter().enumerate().map(|(k, s)| (s, Position::Input(k), false));
        let outputs = self.instr.outputs.iter().enumerate().map(|(k, s)| (s, Position::Output(k), true));
        let mut located = Vec::new();
        for (slice, position, write) in inputs.chain(outputs) {
            located.push(match slice {
                Slice::OnChip(slice) => self.on_chip(code, slice, position)?,
                Slice::Hbm(window) => self.hbm(code, window, position, write)?,
            });
        }
        Ok(located)
    }

    fn beta_range(&self, k: usize) -> (i64, i64) {
        if self.instr.is_address(k) {
            // The declared range is one of offsets; the value is a host address.
            return (0, ADDRESS_LIMIT);
        }
        match self.instr.beta[k].kind {
            AttrKind::Int { min, max } => (min.max(-BETA_LIMIT), max.min(BETA_LIMIT)),
            AttrKind::F32 => (-BETA_LIMIT, BETA_LIMIT),
        }
    }

    fn on_chip(
        &mut self,
        code: &mut Code,
        slice: &BufferSlice,
        position: Position,
    ) -> Result<Located, LowerError> {
        let buffer =
            self.isa.buffers.get(usize::from(slice.buffer.0)).ok_or_else(|| self.malformed(position))?;
        let dims: Vec<u64> = buffer.access.iter().chain(&buffer.unit).copied().collect();
        let elem = buffer.elem;
        let whole = Shape::new(elem, dims);
        let strides: Vec<i64> =
            whole.row_major_strides().iter().map(|&s| (s * elem.bytes()) as i64).collect();
        if slice.start.len() != buffer.access.len() || slice.len.len() != buffer.access.len() {
            return Err(self.malformed(position));
        }
        let mut starts = Vec::new();
        for (dim, (start, len)) in slice.start.iter().zip(&slice.len).enumerate() {
            let len = self.fixed(len, position)?;
            let room = i64::try_from(buffer.access[dim]).unwrap_or(i64::MAX) - len;
            let start = self.expr(code, start, position)?.value;
            let name = || buffer.name.clone();
            let (zero, room) = (code.const_i64(0), code.const_i64(room));
            let above = code.op(format_args!("arith.cmpi sge, {start}, {zero} : i64"));
            let below = code.op(format_args!("arith.cmpi sle, {start}, {room} : i64"));
            let within = code.op(format_args!("arith.andi {above}, {below} : i1"));
            self.require(Check::BufferBounds { slice: position, buffer: name(), dim }, within);
            let align = buffer.align.get(dim).copied().unwrap_or(1);
            if align > 1 {
                let aligned = is_multiple(code, start, align);
                self.require(Check::BufferAlign { slice: position, buffer: name(), dim }, aligned);
            }
            starts.push(start);
        }
        let bytes_per_step = strides[..buffer.access.len()].to_vec();
        Ok(Located::OnChip {
            buffer: usize::from(slice.buffer.0),
            bytes_per_step,
            start: starts,
            elem,
            strides,
        })
    }

    fn hbm(
        &mut self,
        code: &mut Code,
        window: &HbmWindow,
        position: Position,
        write: bool,
    ) -> Result<Located, LowerError> {
        let address = self.expr(code, &window.start, position)?.value;
        let (mut low, mut high, mut empty) = (0i128, 1i128, false);
        let (mut lens, mut strides) = (Vec::new(), Vec::new());
        for (len, stride) in &window.dims {
            let (len, stride) = (self.fixed(len, position)?, self.fixed(stride, position)?);
            empty |= len == 0;
            let far = (i128::from(len) - 1) * i128::from(stride);
            low += far.min(0);
            high += far.max(0);
            lens.push(len);
            strides.push(stride);
        }
        if write && overlaps_itself(&lens, &strides) {
            return Err(LowerError::OverlappingStore { instr: self.instr.name.clone(), slice: position });
        }
        if !empty {
            let limit = i128::from(ADDRESS_LIMIT);
            if low < -limit || high > limit {
                return Err(LowerError::Overflow { instr: self.instr.name.clone(), slice: position });
            }
            let first = code.add_i64(address, low as i64);
            let end = code.add_i64(address, high as i64);
            let inside = in_segment(code, self.machine, first, end, write);
            self.require(Check::Segment { slice: position }, inside);
        }
        if self.isa.hbm.align > 1 {
            let aligned = is_multiple(code, address, self.isa.hbm.align);
            self.require(Check::HbmAlign { slice: position }, aligned);
        }
        Ok(Located::Hbm { address, strides })
    }

    /// A length or stride, which alpha alone decides.
    fn fixed(&self, e: &Expr, position: Position) -> Result<i64, LowerError> {
        e.eval(self.env).map_err(|error| match error {
            EvalExprError::Unsolved => {
                LowerError::VariableShape { instr: self.instr.name.clone(), slice: position }
            }
            _ => LowerError::Overflow { instr: self.instr.name.clone(), slice: position },
        })
    }

    fn malformed(&self, position: Position) -> LowerError {
        LowerError::MalformedSlice { instr: self.instr.name.clone(), slice: position }
    }

    /// Code for an expression over addressing attributes. Refused if it could leave i64 for any admissible value.
    fn expr(&self, code: &mut Code, e: &Expr, position: Position) -> Result<Bounded, LowerError> {
        let overflow = || LowerError::Overflow { instr: self.instr.name.clone(), slice: position };
        if !e.mentions_beta() {
            let value = e.eval(self.env).map_err(|_| overflow())?;
            return Ok(Bounded { value: code.const_i64(value), low: value.into(), high: value.into() });
        }
        let mut both = |a: &Expr, b: &Expr| {
            Ok::<_, LowerError>((self.expr(code, a, position)?, self.expr(code, b, position)?))
        };
        let result = match e {
            Expr::Int(_) | Expr::Alpha(_) | Expr::Register(_) => return Err(overflow()),
            Expr::Beta(k) => {
                let k = usize::from(*k);
                let value = *self.beta.get(k).ok_or_else(|| self.malformed(position))?;
                let (low, high) = self.beta_range(k);
                return Ok(Bounded { value, low: low.into(), high: high.into() });
            }
            Expr::Add(a, b) => {
                let (a, b) = both(a, b)?;
                let value = code.op(format_args!("arith.addi {}, {} : i64", a.value, b.value));
                Bounded { value, low: a.low + b.low, high: a.high + b.high }
            }
            Expr::Sub(a, b) => {
                let (a, b) = both(a, b)?;
                let value = code.op(format_args!("arith.subi {}, {} : i64", a.value, b.value));
                Bounded { value, low: a.low - b.high, high: a.high - b.low }
            }
            Expr::Mul(a, b) => {
                let (a, b) = both(a, b)?;
                let value = code.op(format_args!("arith.muli {}, {} : i64", a.value, b.value));
                let corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
                Bounded { value, low: min(corners), high: max(corners) }
            }
            Expr::Div(a, b) | Expr::Mod(a, b) | Expr::CeilDiv(a, b) => {
                let (a, b) = both(a, b)?;
                // A fixed positive divisor: the quotient stays within the dividend's range.
                if b.low != b.high || b.low <= 0 {
                    return Err(overflow());
                }
                // Rounding up is rounding down after adding divisor - 1.
                let up = if let Expr::CeilDiv(..) = e { b.low - 1 } else { 0 };
                let dividend = code.add_i64(a.value, up as i64);
                let (low, high) = ((a.low + up).div_euclid(b.low), (a.high + up).div_euclid(b.low));
                let quotient = floor_div(code, dividend, b.value);
                if let Expr::Mod(..) = e {
                    let whole = code.op(format_args!("arith.muli {quotient}, {} : i64", b.value));
                    let value = code.op(format_args!("arith.subi {}, {whole} : i64", a.value));
                    Bounded { value, low: 0, high: b.low - 1 }
                } else {
                    Bounded { value: quotient, low, high }
                }
            }
            Expr::Shl(a, b) | Expr::Shr(a, b) => {
                let (a, b) = both(a, b)?;
                if b.low != b.high || !(0..63).contains(&b.low) {
                    return Err(overflow());
                }
                if let Expr::Shl(..) = e {
                    let value = code.op(format_args!("arith.shli {}, {} : i64", a.value, b.value));
                    Bounded { value, low: a.low << b.low, high: a.high << b.low }
                } else {
                    let value = code.op(format_args!("arith.shrsi {}, {} : i64", a.value, b.value));
                    Bounded { value, low: a.low >> b.low, high: a.high >> b.low }
                }
            }
            Expr::Min(a, b) => {
                let (a, b) = both(a, b)?;
                let value = code.op(format_args!("arith.minsi {}, {} : i64", a.value, b.value));
                Bounded { value, low: a.low.min(b.low), high: a.high.min(b.high) }
            }
            Expr::Max(a, b) => {
                let (a, b) = both(a, b)?;
                let value = code.op(format_args!("arith.maxsi {}, {} : i64", a.value, b.value));
                Bounded { value, low: a.low.max(b.low), high: a.high.max(b.high) }
            }
        };
        if result.low < i64::MIN.into() || result.high > i64::MAX.into() {
            return Err(overflow());
        }
        Ok(result)
    }

    fn condition(&self, code: &mut Code, condition: &Cond) -> Result<Value, LowerError> {
        use act_isa::expr::Relation;
        let place = Position::Require(0);
        Ok(match condition {
            Cond::Cmp(relation, a, b) => {
                let (a, b) = (self.expr(code, a, place)?.value, self.expr(code, b, place)?.value);
                let predicate = match relation {
                    Relation::Lt => "slt",
                    Relation::Le => "sle",
                    Relation::Gt => "sgt",
                    Relation::Ge => "sge",
                    Relation::Eq => "eq",
                    Relation::Ne => "ne",
                };
                code.op(format_args!("arith.cmpi {predicate}, {a}, {b} : i64"))
            }
            Cond::And(a, b) => {
                let (a, b) = (self.condition(code, a)?, self.condition(code, b)?);
                code.op(format_args!("arith.andi {a}, {b} : i1"))
            }
            Cond::Or(a, b) => {
                let (a, b) = (self.condition(code, a)?, self.condition(code, b)?);
                code.op(format_args!("arith.ori {a}, {b} : i1"))
            }
            Cond::Not(a) => {
                let a = self.condition(code, a)?;
                let truth = code.op(format_args!("arith.constant true"));
                code.op(format_args!("arith.xori {a}, {truth} : i1"))
            }
            Cond::In(a, set) => {
                let a = self.expr(code, a, place)?.value;
                let mut any = code.op(format_args!("arith.constant false"));
                for &member in set {
                    let member = code.const_i64(member);
                    let equal = code.op(format_args!("arith.cmpi eq, {a}, {member} : i64"));
                    any = code.op(format_args!("arith.ori {any}, {equal} : i1"));
                }
                any
            }
        })
    }
}

/// Division rounded down by a positive divisor.
fn floor_div(code: &mut Code, dividend: Value, divisor: Value) -> Value {
    let zero = code.const_i64(0);
    let quotient = code.op(format_args!("arith.divsi {dividend}, {divisor} : i64"));
    let rest = code.op(format_args!("arith.remsi {dividend}, {divisor} : i64"));
    let below = code.op(format_args!("arith.cmpi slt, {rest}, {zero} : i64"));
    let one_less = code.add_i64(quotient, -1);
    code.op(format_args!("arith.select {below}, {one_less}, {quotient} : i64"))
}

fn is_multiple(code: &mut Code, value: Value, align: u64) -> Value {
    let (zero, align) = (code.const_i64(0), code.const_i64(align as i64));
    let rest = code.op(format_args!("arith.remui {value}, {align} : i64"));
    code.op(format_args!("arith.cmpi eq, {rest}, {zero} : i64"))
}

/// Whether two bytes of a window have one address, or cannot be seen not to have: each stride must step over all that
/// the smaller ones reach.
fn overlaps_itself(lens: &[i64], strides: &[i64]) -> bool {
    let mut long: Vec<(u64, i64)> = lens
        .iter()
        .zip(strides)
        .filter(|(len, _)| **len > 1)
        .map(|(&len, s)| (s.unsigned_abs(), len))
        .collect();
    long.sort_unstable();
    let mut reach = 1u128;
    !lens.contains(&0)
        && long.iter().any(|&(stride, len)| {
            let into = u128::from(stride) < reach;
            reach += u128::from(stride) * (len - 1) as u128;
            into
        })
}

fn min(values: [i128; 4]) -> i128 {
    values.into_iter().fold(i128::MAX, i128::min)
}

fn max(values: [i128; 4]) -> i128 {
    values.into_iter().fold(i128::MIN, i128::max)
}
