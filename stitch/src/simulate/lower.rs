//! Stitched MLIR to simulator calls: the text of every `llvm.inline_asm` is read against the description and the
//! operation becomes a call of the native function of that (instruction, alpha).

use super::LowerError;
use super::code::{Code, Value};
use super::fault::Check;
use super::index::Index;
use super::native::{self, Head, Native, Scopes, close_function, guarded, in_segment, open_function};
use super::tensor::Shared;
use crate::mlir::{Session, operations};
use crate::stitched::syntax::{self, BetaText};
use crate::stitched::{HOST_COPY, Interface, KERNEL, interface, kernel};
use act_isa::{AttrVal, InstrId, Isa, Position};
use melior::Context;
use melior::dialect::{arith, func};
use melior::ir::attribute::{
    DenseI64ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute, StringAttribute,
};
use melior::ir::operation::{OperationLike, OperationRef};
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockLike, Module, RegionLike, Value as MlirValue};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Name of the function that unpacks its argument array and calls the kernel.
pub(crate) const ENTRY: &str = "act_entry";

/// What a native function does, for counters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Instr { op: InstrId, alpha: Vec<AttrVal> },
    HostCopy { elem_bytes: i64, lengths: Vec<i64>, from_strides: Vec<i64>, to_strides: Vec<i64> },
}

/// An instruction in the text.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) text: String,
    /// Index into [`Lowered::natives`].
    pub(crate) native: usize,
}

pub(crate) struct Lowered {
    pub(crate) interface: Interface,
    pub(crate) natives: Vec<(Kind, Vec<Check>)>,
    pub(crate) sites: Vec<Site>,
    pub(crate) shared: Shared,
}

/// Rewrites `module` in place into calls of native functions, which it gains, and lowers it to the LLVM dialect.
///
/// # Errors
/// Text that is no instruction, instructions that cannot be simulated, MLIR's own refusals.
pub(crate) fn lower(session: &Session, isa: &Isa, module: &mut Module<'_>) -> Result<Lowered, LowerError> {
    let interface = interface(module)?;
    let mut natives = Natives {
        isa,
        scopes: Scopes { hbm: 0, buffers: Vec::new() },
        shared: Shared::default(),
        known: BTreeMap::new(),
        list: Vec::new(),
        text: String::new(),
    };
    natives.scopes = Scopes {
        hbm: natives.shared.scope(),
        buffers: isa.buffers.iter().map(|_| natives.shared.scope()).collect(),
    };
    let sites = rewrite(session.context(), module, &mut natives)?;
    let text = natives.module_text(&interface);
    let support = session.parse(&text)?;
    move_functions(&support, module);
    session.verify(module)?;
    session.lower_to_llvm(module)?;
    Ok(Lowered { interface, natives: natives.list, sites, shared: natives.shared })
}

struct Natives<'a> {
    isa: &'a Isa,
    scopes: Scopes,
    shared: Shared,
    known: BTreeMap<Kind, usize>,
    list: Vec<(Kind, Vec<Check>)>,
    text: String,
}

impl Natives<'_> {
    /// Number of the native function of this kind, made on first use.
    fn get(&mut self, kind: Kind) -> Result<usize, LowerError> {
        if let Some(&number) = self.known.get(&kind) {
            return Ok(number);
        }
        let number = self.list.len();
        let name = native_name(number);
        let native = match &kind {
            Kind::Instr { op, alpha } => {
                let instr = self.isa.instr(*op);
                native::instruction(self.isa, instr, alpha, &name, number, &self.scopes, &mut self.shared)?
            }
            Kind::HostCopy { elem_bytes, lengths, from_strides, to_strides } => {
                host_copy(&name, number, *elem_bytes, lengths, from_strides, to_strides)?
            }
        };
        self.text.push_str(&native.text);
        self.list.push((kind.clone(), native.checks));
        self.known.insert(kind, number);
        Ok(number)
    }

    /// The module that holds everything but the kernel.
    fn module_text(&self, interface: &Interface) -> String {
        let mut text = String::from("#domain = #llvm.alias_scope_domain<id = distinct[0]<>>\n");
        // Writing to a String cannot fail.
        for scope in 0..self.shared.scopes {
            let _ = writeln!(
                text,
                "#scope{scope} = #llvm.alias_scope<id = distinct[{}]<>, domain = #domain>",
                scope + 1
            );
        }
        text.push_str("module {\n");
        text.push_str(&self.shared.globals);
        for (name, signature, _) in self.shared.externals.used() {
            let _ = writeln!(text, "  func.func private @{name}{signature}");
        }
        text.push_str(&native::support());
        text.push_str(&self.text);
        text.push_str(&entry(interface));
        text.push_str("}\n");
        text
    }
}

fn native_name(number: usize) -> String {
    format!("act_native_{number}")
}

/// `@act_entry(args)`: loads the kernel's pointers from an array and calls it.
fn entry(interface: &Interface) -> String {
    let count = interface.operands.len() + interface.results.len() + 3;
    let types = vec!["!llvm.ptr"; count].join(", ");
    let mut code = Code::default();
    let args = code.name();
    code.open(format_args!("func.func @{ENTRY}({args}: !llvm.ptr)"));
    let mut pointers: Vec<Value> = Vec::new();
    for k in 0..count {
        let offset = code.const_i64(8 * k as i64);
        let slot = code.pointer(args, offset);
        pointers.push(code.op(format_args!("llvm.load {slot} : !llvm.ptr -> !llvm.ptr")));
    }
    let list = pointers.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    code.line(format_args!("func.call @{KERNEL}({list}) : ({types}) -> ()"));
    // The kernel itself is in the other module until both are joined.
    format!("  func.func private @{KERNEL}({types})\n{}", close_function(code))
}

/// Copies a strided array element by element.
fn host_copy(
    name: &str,
    number: usize,
    elem_bytes: i64,
    lengths: &[i64],
    from_strides: &[i64],
    to_strides: &[i64],
) -> Result<Native, LowerError> {
    let malformed = || LowerError::HostCopy;
    if !matches!(elem_bytes, 1 | 2 | 4 | 8 | 16)
        || lengths.len() != from_strides.len()
        || lengths.len() != to_strides.len()
    {
        return Err(malformed());
    }
    let Head { mut code, machine, site, arguments } = open_function(name, number, 2);
    if lengths.contains(&0) {
        return Ok(Native { text: close_function(code), checks: Vec::new() });
    }
    let mut conditions = Vec::new();
    for (address, strides, write) in [(arguments[0], from_strides, false), (arguments[1], to_strides, true)] {
        let (mut low, mut high) = (0i128, i128::from(elem_bytes));
        for (&len, &stride) in lengths.iter().zip(strides) {
            if len < 0 {
                return Err(malformed());
            }
            let far = (i128::from(len) - 1) * i128::from(stride);
            low += far.min(0);
            high += far.max(0);
        }
        // Farther than any address is from another.
        if low < -i128::from(native::ADDRESS_LIMIT) || high > i128::from(native::ADDRESS_LIMIT) {
            return Err(malformed());
        }
        let first = code.add_i64(address, low as i64);
        let end = code.add_i64(address, high as i64);
        conditions.push(in_segment(&mut code, machine, first, end, write));
    }
    guarded(&mut code, machine, site, &conditions, |code| {
        let from = code.op(format_args!("llvm.inttoptr {} : i64 to !llvm.ptr", arguments[0]));
        let to = code.op(format_args!("llvm.inttoptr {} : i64 to !llvm.ptr", arguments[1]));
        let mut vars = super::index::Vars::default();
        let (mut source, mut target, mut loops) = (Index::constant(0), Index::constant(0), 0);
        for ((&len, &from_stride), &to_stride) in lengths.iter().zip(from_strides).zip(to_strides) {
            if len == 1 {
                continue;
            }
            let (zero, one, end) = (code.const_i64(0), code.const_i64(1), code.const_i64(len));
            let iv = code.name();
            code.open(format_args!("scf.for {iv} = {zero} to {end} step {one} : i64"));
            loops += 1;
            let index = vars.bound(iv, len);
            source = source.plus(from_stride, &index);
            target = target.plus(to_stride, &index);
        }
        if let (Some(source), Some(target)) = (vars.emit(code, &source), vars.emit(code, &target)) {
            let (source, target) = (code.pointer(from, source), code.pointer(to, target));
            let ty = format!("i{}", 8 * elem_bytes);
            let value =
                code.op(format_args!("llvm.load {source} {{alignment = 1 : i64}} : !llvm.ptr -> {ty}"));
            code.line(format_args!("llvm.store {value}, {target} {{alignment = 1 : i64}} : {ty}, !llvm.ptr"));
        }
        for _ in 0..loops {
            code.close();
        }
    });
    let checks =
        vec![Check::Segment { slice: Position::Input(0) }, Check::Segment { slice: Position::Output(0) }];
    Ok(Native { text: close_function(code), checks })
}

/// Replaces every instruction of the kernel by a call.
fn rewrite<'c>(
    context: &'c Context,
    module: &Module<'c>,
    natives: &mut Natives<'_>,
) -> Result<Vec<Site>, LowerError> {
    let function = kernel(module)?;
    let entry = function.region(0).ok().and_then(|r| r.first_block());
    let machine = entry
        .and_then(|block| block.argument(block.argument_count().checked_sub(1)?).ok())
        .ok_or(LowerError::Stitched(crate::stitched::StitchedError::NoKernel))?;
    let mut sites = Vec::new();
    for operation in operations(module) {
        let name = operation.name();
        let (text, kind, operands) = match name.as_string_ref().as_str() {
            Ok("llvm.inline_asm") => {
                let text = string_attribute(&operation, "asm_string")?;
                if text.trim() == syntax::FENCE {
                    // Simulated stores are visible to later loads at once.
                    erase(operation);
                    continue;
                }
                if operation.result_count() != 0 {
                    return Err(LowerError::AsmResult { text });
                }
                let parsed = syntax::parse(natives.isa, &text)?;
                let operands = beta_operands(context, &operation, &parsed.beta, &text)?;
                (text, Kind::Instr { op: parsed.op, alpha: parsed.alpha }, operands)
            }
            Ok("func.call") if calls(&operation, HOST_COPY) => {
                let lengths = integers(&operation, "act.lengths")?;
                let kind = Kind::HostCopy {
                    elem_bytes: operation
                        .attribute("act.elem_bytes")
                        .and_then(IntegerAttribute::try_from)
                        .map_err(|_| LowerError::HostCopy)?
                        .value(),
                    lengths,
                    from_strides: integers(&operation, "act.from_strides")?,
                    to_strides: integers(&operation, "act.to_strides")?,
                };
                (HOST_COPY.to_owned(), kind, operation.operands().collect())
            }
            _ => continue,
        };
        let native = natives.get(kind)?;
        let block = operation.block().ok_or(LowerError::HostCopy)?;
        let location = operation.location();
        let i64_type = IntegerType::new(context, 64).into();
        let number = IntegerAttribute::new(i64_type, sites.len() as i64).into();
        let site = block.insert_operation_before(operation, arith::constant(context, number, location));
        let site: MlirValue<'_, '_> = site.result(0).map_err(|_| LowerError::HostCopy)?.into();
        let mut arguments: Vec<MlirValue<'_, '_>> = vec![machine.into(), site];
        arguments.extend(operands);
        let callee = FlatSymbolRefAttribute::new(context, &native_name(native));
        block.insert_operation_before(operation, func::call(context, callee, &arguments, &[], location));
        erase(operation);
        sites.push(Site { text, native });
    }
    Ok(sites)
}

/// The values of an instruction's addressing attributes, in the order of the description.
fn beta_operands<'c, 'a>(
    context: &'c Context,
    operation: &OperationRef<'c, 'a>,
    beta: &[BetaText],
    text: &str,
) -> Result<Vec<MlirValue<'c, 'a>>, LowerError> {
    let i64_type = IntegerType::new(context, 64).into();
    let block = operation.block();
    let mut values = Vec::new();
    for &beta in beta {
        values.push(match beta {
            BetaText::Operand(k) => {
                let value = operation.operand(k).ok().filter(|v| {
                    use melior::ir::ValueLike;
                    v.r#type() == i64_type
                });
                value.ok_or_else(|| LowerError::AsmOperand { text: text.to_owned(), operand: k })?
            }
            BetaText::Immediate(value) => {
                let attribute = IntegerAttribute::new(i64_type, value).into();
                let constant = arith::constant(context, attribute, operation.location());
                let constant = block.map(|block| block.insert_operation_before(*operation, constant));
                let result = constant.and_then(|c| c.result(0).ok());
                result.ok_or_else(|| LowerError::AsmOperand { text: text.to_owned(), operand: 0 })?.into()
            }
        });
    }
    Ok(values)
}

fn string_attribute(operation: &OperationRef<'_, '_>, name: &str) -> Result<String, LowerError> {
    let attribute = operation.attribute(name).and_then(StringAttribute::try_from);
    Ok(attribute.map_err(|_| LowerError::AsmResult { text: String::new() })?.value().to_owned())
}

fn integers(operation: &OperationRef<'_, '_>, name: &str) -> Result<Vec<i64>, LowerError> {
    let array = operation
        .attribute(name)
        .and_then(DenseI64ArrayAttribute::try_from)
        .map_err(|_| LowerError::HostCopy)?;
    (0..array.len()).map(|k| array.element(k).map_err(|_| LowerError::HostCopy)).collect()
}

fn calls(operation: &OperationRef<'_, '_>, callee: &str) -> bool {
    operation.attribute("callee").is_ok_and(|symbol| symbol.to_string() == format!("@{callee}"))
}

fn erase(operation: OperationRef<'_, '_>) {
    // SAFETY: the operation has no results (checked by the callers), so nothing refers to it; the list of operations
    // that is being walked holds it no further.
    unsafe { mlir_sys::mlirOperationDestroy(operation.to_raw()) };
}

/// Moves all functions and globals of `from` to the end of `to`; declarations of the kernel stay behind.
fn move_functions(from: &Module<'_>, to: &Module<'_>) {
    let mut all = Vec::new();
    let mut next = from.body().first_operation();
    while let Some(operation) = next {
        next = operation.next_in_block();
        let declares_kernel =
            operation.attribute("sym_name").is_ok_and(|name| name.to_string() == format!("\"{KERNEL}\""));
        if !declares_kernel {
            all.push(operation.to_raw());
        }
    }
    for raw in all {
        // SAFETY: the operation is alive and leaves its old owner before it gets its new one; both modules are in one
        // context.
        unsafe {
            mlir_sys::mlirOperationRemoveFromParent(raw);
            mlir_sys::mlirBlockAppendOwnedOperation(to.body().to_raw(), raw);
        }
    }
}
