//! The stitched text read back: `@kernel` as a tree of counted loops around instructions whose addresses are affine.
//! Whatever else MLIR allows in the function is refused by name. Knows no slices and makes no code.

use super::address::Address;
use super::{LowerError, TextError};
use crate::stitched::syntax::{self, BetaText};
use crate::stitched::{HOST_COPY, Interface, interface, kernel};
use act_isa::{Affine, AttrVal, InstrId, Isa, LoopId};
use melior::ir::attribute::{DenseI64ArrayAttribute, IntegerAttribute, StringAttribute};
use melior::ir::operation::{OperationLike, OperationRef};
use melior::ir::{BlockLike, BlockRef, Module, RegionLike, ValueLike};
use std::collections::HashMap;

/// Trips of a loop and instructions of a text stay below this, so that counting them cannot overflow.
const MAX_TRIP: i64 = 1 << 40;

/// What stands at one place of the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Instr {
        op: InstrId,
        alpha: Vec<AttrVal>,
    },
    /// Operands: source, target.
    HostCopy {
        elem_bytes: i64,
        lengths: Vec<i64>,
        from_strides: Vec<i64>,
        to_strides: Vec<i64>,
        /// Both sides lie in one segment: all is read before anything is written.
        staged: bool,
    },
}

/// An instruction or host copy in the text.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    pub(crate) beta: Vec<Address>,
    /// What the control registers hold before.
    pub(crate) registers: Vec<i64>,
    /// Position among the instructions of the text.
    pub(crate) position: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Loop(Loop),
    /// Index into [`Kernel::sites`].
    Site(usize),
    Fence,
}

/// Its variable counts from 0 to the trip count of [`Kernel::trips`].
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) iv: LoopId,
    /// The text allows the iterations to run in any order.
    pub(crate) parallel: bool,
    pub(crate) body: Vec<Item>,
}

pub(crate) struct Kernel {
    pub(crate) interface: Interface,
    pub(crate) body: Vec<Item>,
    /// In the order of the text.
    pub(crate) sites: Vec<Site>,
    /// By loop variable.
    pub(crate) trips: Vec<u64>,
}

impl Kernel {
    /// # Errors
    /// Text that is no instruction of the description, or code that is no nest of counted loops with affine addresses.
    pub(crate) fn read(isa: &Isa, module: &Module<'_>) -> Result<Kernel, LowerError> {
        let interface = interface(module)?;
        let function = kernel(module)?;
        let body = function.region(0).ok().and_then(|r| r.first_block());
        let body = body.ok_or(LowerError::Stitched(crate::stitched::StitchedError::NoKernel))?;
        let mut reader = Reader { isa, values: HashMap::new(), sites: Vec::new(), trips: Vec::new() };
        // The machine comes last and is no segment.
        for segment in 0..body.argument_count().saturating_sub(1) {
            if let Ok(argument) = body.argument(segment) {
                let address = Address { segment: Some(segment), offset: Affine::constant(0) };
                reader.values.insert(argument.to_raw().ptr, address);
            }
        }
        let body = reader.block(body)?;
        Ok(Kernel { interface, body, sites: reader.sites, trips: reader.trips })
    }

    /// The results, then the scratch segment, can be written.
    pub(crate) fn is_writable(&self, segment: usize) -> bool {
        let operands = self.interface.operands.len();
        (operands..=operands + self.interface.results.len()).contains(&segment)
    }

    /// Bytes of a segment.
    pub(crate) fn segment_bytes(&self, segment: usize) -> u64 {
        let Interface { operands, results, scratch_bytes, consts } = &self.interface;
        let behind = [*scratch_bytes, consts.len() as u64];
        operands.iter().chain(results).chain(&behind).nth(segment).copied().unwrap_or(0)
    }

    /// As assembly spells it.
    pub(crate) fn segment_name(&self, segment: usize) -> String {
        let (operands, results) = (self.interface.operands.len(), self.interface.results.len());
        match segment {
            k if k < operands => format!("operand{k}"),
            k if k < operands + results => format!("result{}", k - operands),
            k if k == operands + results => "scratch".to_owned(),
            _ => "consts".to_owned(),
        }
    }

    /// How often every site is executed.
    pub(crate) fn executions(&self) -> Vec<u64> {
        let mut counts = vec![0; self.sites.len()];
        self.count(&self.body, 1, &mut counts);
        counts
    }

    /// How many sites are executed before the one at `site`, in the iteration that the loop variables give.
    pub(crate) fn executed_before(&self, site: usize, variables: &[i64]) -> u64 {
        self.before(&self.body, site, variables).unwrap_or_else(|all| all)
    }

    /// Executions before the site, where it is among the items, else those of all items.
    fn before(&self, items: &[Item], site: usize, variables: &[i64]) -> Result<u64, u64> {
        let mut sum = 0u64;
        for item in items {
            match item {
                Item::Site(at) if *at == site => return Ok(sum),
                Item::Site(_) => sum = sum.saturating_add(1),
                Item::Loop(inner) => {
                    let iv = inner.iv.0 as usize;
                    match self.before(&inner.body, site, variables) {
                        Ok(within) => {
                            // The iterations before take as many each as one that ends.
                            let whole = self.before(&inner.body, self.sites.len(), variables);
                            let done = u64::try_from(variables[iv]).unwrap_or(0);
                            let whole = whole.unwrap_or_else(|all| all).saturating_mul(done);
                            return Ok(sum.saturating_add(whole).saturating_add(within));
                        }
                        Err(whole) => sum = sum.saturating_add(whole.saturating_mul(self.trips[iv])),
                    }
                }
                Item::Fence => {}
            }
        }
        Err(sum)
    }

    fn count(&self, items: &[Item], times: u64, counts: &mut [u64]) {
        for item in items {
            match item {
                Item::Loop(inner) => {
                    let trip = self.trips[inner.iv.0 as usize];
                    self.count(&inner.body, times.saturating_mul(trip), counts);
                }
                Item::Site(site) => counts[*site] = times,
                Item::Fence => {}
            }
        }
    }
}

struct Reader<'a> {
    isa: &'a Isa,
    /// By the address of the MLIR value; only looked up.
    values: HashMap<*const std::ffi::c_void, Address>,
    sites: Vec<Site>,
    trips: Vec<u64>,
}

impl Reader<'_> {
    fn block<'c, 'a>(&mut self, block: BlockRef<'c, 'a>) -> Result<Vec<Item>, LowerError> {
        let mut items = Vec::new();
        let mut next = block.first_operation();
        while let Some(operation) = next {
            if let Some(item) = self.operation(&operation)? {
                items.push(item);
            }
            next = operation.next_in_block();
        }
        Ok(items)
    }

    fn operation(&mut self, operation: &OperationRef<'_, '_>) -> Result<Option<Item>, LowerError> {
        let identifier = operation.name();
        let name = identifier.as_string_ref().as_str().unwrap_or_default();
        let bad = || TextError::Operation { text: operation.to_string().trim().to_owned() };
        let value = match name {
            "arith.constant" => {
                let number = operation.attribute("value").and_then(IntegerAttribute::try_from);
                Some(Address::constant(number.map_err(|_| bad())?.value()))
            }
            "llvm.ptrtoint" => Some(self.operand(operation, 0)?),
            "arith.addi" => self.operand(operation, 0)?.plus(&self.operand(operation, 1)?),
            "arith.subi" => {
                let negated = self.operand(operation, 1)?.times(-1);
                negated.and_then(|b| self.operand(operation, 0).ok()?.plus(&b))
            }
            "arith.muli" => {
                let (a, b) = (self.operand(operation, 0)?, self.operand(operation, 1)?);
                match (a.as_constant(), b.as_constant()) {
                    (_, Some(factor)) => a.times(factor),
                    (Some(factor), _) => b.times(factor),
                    _ => None,
                }
            }
            "scf.for" => return self.for_loop(operation).map(|l| Some(Item::Loop(l))),
            "llvm.inline_asm" => return self.inline_asm(operation).map(Some),
            "func.call" if calls(operation, HOST_COPY) => return self.host_copy(operation).map(Some),
            "func.return" | "scf.yield" => return Ok(None),
            _ => return Err(bad().into()),
        };
        let result = operation.result(0).map_err(|_| bad())?;
        self.values.insert(result.to_raw().ptr, value.ok_or_else(bad)?);
        Ok(None)
    }

    fn operand(&self, operation: &OperationRef<'_, '_>, k: usize) -> Result<Address, TextError> {
        let value = operation.operand(k).ok().and_then(|v| self.values.get(&v.to_raw().ptr).cloned());
        value.ok_or_else(|| TextError::Operation { text: operation.to_string().trim().to_owned() })
    }

    fn for_loop(&mut self, operation: &OperationRef<'_, '_>) -> Result<Loop, LowerError> {
        let bad = || TextError::Loop { text: operation.to_string().lines().next().unwrap_or("").to_owned() };
        let bound = |k| self.operand(operation, k).ok().and_then(|v| v.as_constant()).ok_or_else(bad);
        let (first, end, step) = (bound(0)?, bound(1)?, bound(2)?);
        if step <= 0 || operation.result_count() != 0 {
            return Err(bad().into());
        }
        let span = end.checked_sub(first).ok_or_else(bad)?.max(0);
        let trip = span / step + i64::from(span % step != 0);
        if trip > MAX_TRIP {
            return Err(bad().into());
        }
        let iv = LoopId(self.trips.len() as u32);
        self.trips.push(trip as u64);
        let block = operation.region(0).ok().and_then(|r| r.first_block()).ok_or_else(bad)?;
        let variable = block.argument(0).map_err(|_| bad())?;
        let offset = Affine { c0: first, ivs: vec![(iv, step)] };
        self.values.insert(variable.to_raw().ptr, Address { segment: None, offset });
        let parallel = operation.has_attribute("act.parallel");
        Ok(Loop { iv, parallel, body: self.block(block)? })
    }

    fn inline_asm(&mut self, operation: &OperationRef<'_, '_>) -> Result<Item, LowerError> {
        let text = operation.attribute("asm_string").and_then(StringAttribute::try_from);
        let bad = || TextError::Operation { text: operation.to_string().trim().to_owned() };
        let text = text.map_err(|_| bad())?.value().to_owned();
        if text.trim() == syntax::FENCE {
            return Ok(Item::Fence);
        }
        if operation.result_count() != 0 {
            return Err(TextError::AsmResult { text }.into());
        }
        let parsed = syntax::parse(self.isa, &text)?;
        let mut beta = Vec::with_capacity(parsed.beta.len());
        for word in &parsed.beta {
            beta.push(match *word {
                BetaText::Immediate(value) => Address::constant(value),
                BetaText::Operand(operand) => {
                    let missing = |_| TextError::AsmOperand { text: text.clone(), operand };
                    self.operand(operation, operand).map_err(missing)?
                }
            });
        }
        let instr = self.isa.instr(parsed.op);
        for (k, value) in beta.iter().enumerate() {
            if value.segment.is_some() != instr.is_address(k) {
                let attr = instr.beta[k].name.clone();
                return Err(TextError::BetaKind { text, attr }.into());
            }
        }
        Ok(self.site(text, Kind::Instr { op: parsed.op, alpha: parsed.alpha }, beta))
    }

    fn host_copy(&mut self, operation: &OperationRef<'_, '_>) -> Result<Item, LowerError> {
        let elem_bytes = operation.attribute("act.elem_bytes").and_then(IntegerAttribute::try_from);
        let elem_bytes = elem_bytes.map_err(|_| TextError::HostCopy)?.value();
        let lengths = integers(operation, "act.lengths")?;
        let from_strides = integers(operation, "act.from_strides")?;
        let to_strides = integers(operation, "act.to_strides")?;
        let beta = vec![self.operand(operation, 0)?, self.operand(operation, 1)?];
        let usable = matches!(elem_bytes, 1 | 2 | 4 | 8 | 16)
            && lengths.len() == from_strides.len()
            && lengths.len() == to_strides.len()
            && lengths.iter().all(|&len| len >= 0)
            && beta.iter().all(|b| b.segment.is_some());
        if !usable {
            return Err(TextError::HostCopy.into());
        }
        let staged = beta[0].segment == beta[1].segment;
        let kind = Kind::HostCopy { elem_bytes, lengths, from_strides, to_strides, staged };
        Ok(self.site(HOST_COPY.to_owned(), kind, beta))
    }

    fn site(&mut self, text: String, kind: Kind, beta: Vec<Address>) -> Item {
        let (registers, position) = (self.isa.register_values(), self.sites.len());
        self.sites.push(Site { text, kind, beta, registers, position });
        Item::Site(self.sites.len() - 1)
    }
}

fn integers(operation: &OperationRef<'_, '_>, name: &str) -> Result<Vec<i64>, TextError> {
    let bad = |_| TextError::HostCopy;
    let array = operation.attribute(name).and_then(DenseI64ArrayAttribute::try_from).map_err(bad)?;
    (0..array.len()).map(|k| array.element(k).map_err(bad)).collect()
}

fn calls(operation: &OperationRef<'_, '_>, callee: &str) -> bool {
    operation.attribute("callee").is_ok_and(|symbol| symbol.to_string() == format!("@{callee}"))
}
