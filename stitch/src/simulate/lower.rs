//! A placed kernel to MLIR: the loops of the text around calls of native functions, one for each (instruction, alpha),
//! with pointers in place of addresses. Loops whose iterations may run on several threads become functions of their
//! own.

use super::LowerError;
use super::address;
use super::code::{Code, Value};
use super::host_copy::HostCopy;
use super::independence::Parallel;
use super::kernel::{Item, Kernel, Kind, Loop, Site};
use super::layout::BufferLayout;
use super::machine::word;
use super::native::{self, Scopes, Source, Workspace};
use super::place::{Placement, Region, Start};
use super::tensor::Shared;
use act_isa::{Affine, Expr, Isa, LoopId};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Name of the function that runs a kernel on a machine.
pub(crate) const ENTRY: &str = "act_entry";
/// Name of the function of the runtime that shares a loop out to threads.
pub(crate) const PARALLEL: &str = "act_parallel";

/// Name of the function that runs some iterations of a parallel loop.
pub(crate) fn body_name(number: usize) -> String {
    format!("act_body_{number}")
}

pub(crate) struct Lowered {
    pub(crate) text: String,
    pub(crate) shared: Shared,
}

/// What a native function depends on.
fn what(site: &Site) -> (&Kind, &[i64]) {
    (&site.kind, &site.registers)
}

/// The text of a module with `@act_entry(machine)` and, for parallel loop k, `@act_body_k(machine, variables, first,
/// end)`.
///
/// # Errors
/// Instructions that cannot be simulated.
pub(crate) fn lower(
    isa: &Isa,
    kernel: &Kernel,
    placement: &Placement,
    layouts: &[BufferLayout],
    parallel: &[Parallel],
    mut shared: Shared,
) -> Result<Lowered, LowerError> {
    let scopes =
        Scopes { hbm: shared.scope(), buffers: isa.buffers.iter().map(|_| shared.scope()).collect() };
    let (mut names, mut functions) = (BTreeMap::new(), String::new());
    let mut calls: BTreeMap<(&Kind, &[i64]), usize> = BTreeMap::new();
    kernel.sites.iter().for_each(|site| *calls.entry(what(site)).or_default() += 1);
    let mut callees = Vec::with_capacity(kernel.sites.len());
    for (site, located) in kernel.sites.iter().zip(&placement.sites) {
        let number = names.len();
        let number = *names.entry(what(site)).or_insert(number);
        let name = format!("act_native_{number}");
        if number + 1 == names.len() && !callees.contains(&name) {
            functions.push_str(&match &site.kind {
                Kind::Instr { op, alpha } => {
                    let instr = isa.instr(*op);
                    let places = &located.places;
                    let registers = &site.registers;
                    let source = Source { isa, instr, alpha, registers, places, layouts, scopes: &scopes };
                    let function = native::instruction(&source, &name, &mut shared)?;
                    native::inlined(function, calls[&what(site)])
                }
                Kind::HostCopy { elem_bytes, lengths, from_strides, to_strides, staged } => {
                    let copy = HostCopy { elem_bytes: *elem_bytes, lengths, from_strides, to_strides };
                    if *staged {
                        shared.workspace = shared.workspace.max(copy.bytes());
                        copy.staged(&name)
                    } else {
                        copy.direct(&name)
                    }
                }
            });
        }
        callees.push(name);
    }
    let nest = Nest { kernel, placement, layouts, parallel, callees: &callees };
    functions.push_str(&nest.entry());
    for (number, region) in parallel.iter().enumerate() {
        functions.push_str(&nest.parallel_body(number, region));
    }
    let mut text = String::from("#domain = #llvm.alias_scope_domain<id = distinct[0]<>>\n");
    // Writing to a String cannot fail.
    for scope in 0..shared.scopes {
        let number = scope + 1;
        let _ =
            writeln!(text, "#scope{scope} = #llvm.alias_scope<id = distinct[{number}]<>, domain = #domain>");
    }
    text.push_str("module {\n");
    text.push_str(&shared.globals);
    for (name, signature, _) in shared.externals.used() {
        let _ = writeln!(text, "  func.func private @{name}{signature}");
    }
    let _ = writeln!(text, "  func.func private @{PARALLEL}(!llvm.ptr, i64, !llvm.ptr)");
    text.push_str(&functions);
    text.push_str("}\n");
    Ok(Lowered { text, shared })
}

struct Nest<'a> {
    kernel: &'a Kernel,
    placement: &'a Placement,
    layouts: &'a [BufferLayout],
    parallel: &'a [Parallel],
    /// Native function of every site.
    callees: &'a [String],
}

/// One function with loops.
struct Function {
    code: Code,
    machine: Value,
    /// Where a parallel loop finds the variables of the loops around it.
    variables: Value,
    workspace: Workspace,
    segments: Vec<Value>,
    buffers: Vec<Value>,
    /// Values of the loop variables in scope.
    ivs: BTreeMap<LoopId, Value>,
}

impl Nest<'_> {
    /// Loads what all functions need. `machine` is an argument of the open function.
    fn open(&self, mut code: Code, machine: Value, variables: Value) -> Function {
        let mut word = |offset: i64| {
            let offset = code.const_i64(offset);
            let slot = code.pointer(machine, offset);
            code.op(format_args!("llvm.load {slot} invariant : !llvm.ptr -> !llvm.ptr"))
        };
        let interface = &self.kernel.interface;
        let segment_count = interface.operands.len() + interface.results.len() + 2;
        let workspace = Workspace { base: word(word::WORKSPACE), packed: word(word::PACKED) };
        let segments: Vec<Value> = (0..segment_count).map(|k| word(word::POINTERS + 8 * k as i64)).collect();
        let behind = word::POINTERS + 8 * segment_count as i64;
        let buffers = (0..self.layouts.len()).map(|k| word(behind + 8 * k as i64)).collect();
        Function { code, machine, variables, workspace, segments, buffers, ivs: BTreeMap::new() }
    }

    fn entry(&self) -> String {
        let mut code = Code::default();
        let machine = code.name();
        code.open(format_args!("func.func @{ENTRY}({machine}: !llvm.ptr)"));
        let count = code.const_i64(self.kernel.trips.len().max(1) as i64);
        let variables = code.op(format_args!("llvm.alloca {count} x i64 : (i64) -> !llvm.ptr"));
        let mut function = self.open(code, machine, variables);
        self.items(&mut function, &self.kernel.body);
        native::close_function(function.code)
    }

    fn parallel_body(&self, number: usize, region: &Parallel) -> String {
        let mut code = Code::default();
        let [machine, variables, first, end] = std::array::from_fn(|_| code.name());
        let name = body_name(number);
        code.open(format_args!(
            "func.func @{name}({machine}: !llvm.ptr, {variables}: !llvm.ptr, {first}: i64, {end}: i64)"
        ));
        let mut function = self.open(code, machine, variables);
        for &iv in &region.around {
            let offset = function.code.const_i64(8 * i64::from(iv.0));
            let slot = function.code.pointer(variables, offset);
            let value = function.code.op(format_args!("llvm.load {slot} : !llvm.ptr -> i64"));
            function.ivs.insert(iv, value);
        }
        if let Some(body) = find(&self.kernel.body, region.iv) {
            self.counted(&mut function, region.iv, first, end, body);
        }
        native::close_function(function.code)
    }

    fn counted(&self, function: &mut Function, iv: LoopId, first: Value, end: Value, body: &[Item]) {
        let one = function.code.const_i64(1);
        let variable = function.code.name();
        function.code.open(format_args!("scf.for {variable} = {first} to {end} step {one} : i64"));
        function.ivs.insert(iv, variable);
        self.items(function, body);
        function.ivs.remove(&iv);
        function.code.close();
    }

    fn items(&self, function: &mut Function, items: &[Item]) {
        for item in items {
            match item {
                Item::Loop(inner) => self.for_loop(function, inner),
                Item::Site(site) => self.site(function, *site),
                // Simulated stores are visible to later loads at once.
                Item::Fence => {}
            }
        }
    }

    fn for_loop(&self, function: &mut Function, inner: &Loop) {
        let code = &mut function.code;
        if let Some(number) = self.parallel.iter().position(|p| p.iv == inner.iv) {
            for (&iv, &value) in &function.ivs {
                let offset = code.const_i64(8 * i64::from(iv.0));
                let slot = code.pointer(function.variables, offset);
                code.line(format_args!("llvm.store {value}, {slot} : i64, !llvm.ptr"));
            }
            let number = code.const_i64(number as i64);
            let (machine, variables) = (function.machine, function.variables);
            code.line(format_args!(
                "func.call @{PARALLEL}({machine}, {number}, {variables}) : (!llvm.ptr, i64, !llvm.ptr) -> ()"
            ));
            return;
        }
        let (first, end) =
            (code.const_i64(0), code.const_i64(address::trip(&self.kernel.trips, inner.iv) as i64));
        self.counted(function, inner.iv, first, end, &inner.body);
    }

    fn site(&self, function: &mut Function, site: usize) {
        let places = &self.placement.sites[site].places;
        let mut arguments = vec![function.workspace.base, function.workspace.packed];
        for place in places {
            arguments.push(match &place.region {
                Region::Hbm { segment, start, .. } => {
                    let offset = function.affine(start);
                    function.code.pointer(function.segments[*segment], offset)
                }
                Region::OnChip { buffer, start, .. } => self.on_chip(function, site, *buffer, start),
            });
        }
        let types = vec!["!llvm.ptr"; arguments.len()].join(", ");
        let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
        let callee = &self.callees[site];
        function.code.line(format_args!("func.call @{callee}({}) : ({types}) -> ()", arguments.join(", ")));
    }

    fn on_chip(&self, function: &mut Function, site: usize, buffer: usize, start: &[Start]) -> Value {
        let mut pointer = function.buffers[buffer];
        let mut offset = Affine::constant(0);
        for (start, &stride) in start.iter().zip(&self.layouts[buffer].strides) {
            let bytes = match start {
                Start::Affine(start) => address::scaled(start, stride).and_then(|o| offset.checked_add(&o)),
                Start::Varying(_) => None,
            };
            match (bytes, start) {
                (Some(sum), _) => offset = sum,
                (None, Start::Affine(start)) => {
                    let start = function.affine(start);
                    pointer = step(&mut function.code, pointer, start, stride);
                }
                (None, Start::Varying(e)) => {
                    let start = self.expression(function, site, e);
                    pointer = step(&mut function.code, pointer, start, stride);
                }
            }
        }
        let offset = function.affine(&offset);
        function.code.pointer(pointer, offset)
    }

    /// An expression over addressing attributes. Its value, and those of its parts, were seen to fit in 64 bits for
    /// every iteration.
    fn expression(&self, function: &mut Function, site: usize, e: &Expr) -> Value {
        let attributes = address::Attributes {
            alpha: &self.placement.sites[site].alpha,
            registers: &self.kernel.sites[site].registers,
            beta: &self.kernel.sites[site].beta,
        };
        if let Some(affine) = attributes.address(e) {
            return function.affine(&affine.offset);
        }
        let operator = match e {
            Expr::Int(_) | Expr::Alpha(_) | Expr::Register(_) | Expr::Variable(_) | Expr::Beta(_) => {
                return function.code.const_i64(0);
            }
            Expr::Add(..) => "addi",
            Expr::Sub(..) => "subi",
            Expr::Mul(..) => "muli",
            Expr::Shl(..) => "shli",
            Expr::Shr(..) => "shrsi",
            Expr::Min(..) => "minsi",
            Expr::Max(..) => "maxsi",
            Expr::Div(..) | Expr::Mod(..) => "floordivsi",
            Expr::CeilDiv(..) => "ceildivsi",
        };
        let (Expr::Add(a, b)
        | Expr::Sub(a, b)
        | Expr::Mul(a, b)
        | Expr::Shl(a, b)
        | Expr::Shr(a, b)
        | Expr::Min(a, b)
        | Expr::Max(a, b)
        | Expr::Div(a, b)
        | Expr::Mod(a, b)
        | Expr::CeilDiv(a, b)) = e
        else {
            return function.code.const_i64(0);
        };
        let (a, b) = (self.expression(function, site, a), self.expression(function, site, b));
        let code = &mut function.code;
        match operator {
            "floordivsi" | "ceildivsi" => {
                let quotient = divide(code, a, b, operator == "ceildivsi");
                if let Expr::Mod(..) = e {
                    let whole = code.op(format_args!("arith.muli {quotient}, {b} : i64"));
                    return code.op(format_args!("arith.subi {a}, {whole} : i64"));
                }
                quotient
            }
            _ => code.op(format_args!("arith.{operator} {a}, {b} : i64")),
        }
    }
}

/// Division rounded down, or up.
fn divide(code: &mut Code, a: Value, b: Value, up: bool) -> Value {
    let zero = code.const_i64(0);
    let quotient = code.op(format_args!("arith.divsi {a}, {b} : i64"));
    let rest = code.op(format_args!("arith.remsi {a}, {b} : i64"));
    let inexact = code.op(format_args!("arith.cmpi ne, {rest}, {zero} : i64"));
    let sides = code.op(format_args!("arith.xori {a}, {b} : i64"));
    // Truncation rounds up below zero and down above it.
    let predicate = if up { "sge" } else { "slt" };
    let off = code.op(format_args!("arith.cmpi {predicate}, {sides}, {zero} : i64"));
    let adjust = code.op(format_args!("arith.andi {inexact}, {off} : i1"));
    let other = code.add_i64(quotient, if up { 1 } else { -1 });
    code.op(format_args!("arith.select {adjust}, {other}, {quotient} : i64"))
}

fn step(code: &mut Code, pointer: Value, start: Value, stride: i64) -> Value {
    let offset = code.mul_i64(start, stride);
    code.pointer(pointer, offset)
}

impl Function {
    /// `c0 + Σ coefficient · loop variable`.
    fn affine(&mut self, affine: &Affine) -> Value {
        let mut sum = None;
        for &(iv, k) in &affine.ivs {
            // A variable out of scope cannot occur: MLIR's verifier has seen the text.
            let Some(&value) = self.ivs.get(&iv) else { continue };
            let term = if k == 1 { value } else { self.code.mul_i64(value, k) };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.code.op(format_args!("arith.addi {sum}, {term} overflow<nsw> : i64")),
            });
        }
        match sum {
            None => self.code.const_i64(affine.c0),
            Some(sum) if affine.c0 == 0 => sum,
            Some(sum) => self.code.add_i64(sum, affine.c0),
        }
    }
}

fn find(items: &[Item], iv: LoopId) -> Option<&[Item]> {
    items.iter().find_map(|item| match item {
        Item::Loop(inner) if inner.iv == iv => Some(inner.body.as_slice()),
        Item::Loop(inner) => find(&inner.body, iv),
        _ => None,
    })
}
