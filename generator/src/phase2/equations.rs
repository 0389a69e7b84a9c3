//! The equations of one pii graph: slots within their buffers, slots tied to each other by identity instructions and to
//! the kernel's places, and for every instruction the address maps h and the conditions e (ACT paper, section 6.2,
//! CSP1 to CSP3).

use super::AllocError;
use super::linear::{Fact, Linear, facts, without_addresses};
use super::scope::Scope;
use super::unknowns::{Contradiction, Unknown, Unknowns};
use super::validate::alpha_values;
use crate::pii::{PiiId, PiiOp};
use act_isa::expr::Relation;
use act_isa::{Affine, AttrKind, AttrVal, Cond, Env, Expr, InstrId, Place, Slice, Space, View};
use std::collections::BTreeMap;

pub(super) struct Equations<'a> {
    scope: &'a Scope<'a>,
    pub(super) unknowns: Unknowns,
    /// The slot of every node that lies on chip.
    pub(super) slots: Vec<Option<Vec<Unknown>>>,
    /// `left >= right + offset`.
    pub(super) orderings: Vec<(Unknown, Unknown, i64)>,
    pub(super) conditions: Vec<Residual>,
    pub(super) clobbers: Vec<Clobber>,
}

/// A condition that is no mere fact about one or two unknowns, with the attributes that it is over.
pub(super) struct Residual {
    pub(super) cond: Cond,
    pub(super) alpha: Vec<Option<i64>>,
    pub(super) beta: Vec<Option<Unknown>>,
}

/// What stands for a beta while the equations are collected.
#[derive(Clone, Debug)]
pub(super) enum Beta {
    Unknown(Unknown),
    Address(Space, Affine),
}

/// A slot that an instruction writes beside its value.
pub(super) struct Clobber {
    pub(super) step: usize,
    /// Which output of the instruction.
    pub(super) number: usize,
    pub(super) buffer: usize,
    pub(super) start: Vec<Unknown>,
    pub(super) len: Vec<i64>,
}

impl<'a> Equations<'a> {
    /// The equations that hold whatever the instructions: slots, identity instructions, places.
    pub(super) fn new(scope: &'a Scope<'a>) -> Result<Equations<'a>, AllocError> {
        let mut equations = Equations {
            scope,
            unknowns: Unknowns::new(),
            slots: Vec::new(),
            orderings: Vec::new(),
            conditions: Vec::new(),
            clobbers: Vec::new(),
        };
        equations.add_slots()?;
        equations.tie_identities()?;
        equations.pin_places()?;
        Ok(equations)
    }

    /// Slots of the values, within their buffers and at the alignment that instructions demand.
    fn add_slots(&mut self) -> Result<(), AllocError> {
        for (index, node) in self.scope.graph.nodes.iter().enumerate() {
            let id = PiiId(index as u32);
            let Some(buffer) = node.buffer.filter(|_| self.scope.is_needed(id)) else {
                self.slots.push(None);
                continue;
            };
            let access = &self.scope.isa.buffer(buffer).access;
            let mut slot = Vec::with_capacity(access.len());
            for (&room, &len) in access.iter().zip(&node.lens) {
                let most = room.checked_sub(len).ok_or_else(|| self.scope.no_fit(id))?;
                slot.push(self.unknowns.add(0, i64::try_from(most).unwrap_or(i64::MAX)));
            }
            self.slots.push(Some(slot));
            if matches!(node.op, PiiOp::Instr { .. } | PiiOp::Output { .. } | PiiOp::OnChipInput(_)) {
                self.align(id)?;
            }
        }
        Ok(())
    }

    fn align(&mut self, id: PiiId) -> Result<(), AllocError> {
        let (Some(buffer), Some(slot)) =
            (self.scope.graph.node(id).buffer, self.slots[id.0 as usize].clone())
        else {
            return Ok(());
        };
        for (&unknown, &align) in slot.iter().zip(&self.scope.isa.buffer(buffer).align) {
            if align > 1 {
                let step = i64::try_from(align).unwrap_or(i64::MAX);
                self.unknowns.congruent(unknown, step, 0).map_err(|Contradiction| self.scope.no_fit(id))?;
            }
        }
        Ok(())
    }

    /// Identity instructions move nothing: a slice lies inside its operand, the operands of a concatenation lie side
    /// by side.
    fn tie_identities(&mut self) -> Result<(), AllocError> {
        for id in self.scope.nodes() {
            let node = self.scope.graph.node(id);
            match &node.op {
                PiiOp::SliceH { start } => {
                    if let Some(&operand) = node.operands.first() {
                        self.tie(id, operand, start)?;
                    }
                }
                PiiOp::ConcatH { dim } => {
                    let mut offset = vec![0; node.lens.len()];
                    for &operand in &node.operands {
                        self.tie(operand, id, &offset)?;
                        offset[*dim] += self.scope.graph.node(operand).lens[*dim];
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Demands that the slot of `inner` starts at `offset` inside the slot of `outer`.
    fn tie(&mut self, inner: PiiId, outer: PiiId, offset: &[u64]) -> Result<(), AllocError> {
        let (Some(a), Some(b)) = (self.slots[inner.0 as usize].clone(), self.slots[outer.0 as usize].clone())
        else {
            return Ok(());
        };
        for ((&a, &b), &offset) in a.iter().zip(&b).zip(offset) {
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            self.unknowns.equate(a, b, offset).map_err(|Contradiction| self.scope.no_fit(inner))?;
        }
        Ok(())
    }

    /// Slots that the kernel fixes, and results that take over the slot of a parameter.
    fn pin_places(&mut self) -> Result<(), AllocError> {
        let mut inputs = BTreeMap::new();
        for id in self.scope.nodes() {
            if let PiiOp::OnChipInput(k) = self.scope.graph.node(id).op {
                self.pin(id, &self.scope.kernel.ins[k])?;
                inputs.entry(k).or_insert(id);
            }
        }
        for (root, stores) in self.scope.graph.roots.iter().enumerate() {
            let (Some(place @ Place::OnChip { .. }), &[id]) =
                (self.scope.kernel.outs.get(root), stores.as_slice())
            else {
                continue;
            };
            self.pin(id, place)?;
            if let Some(parameter) = self.scope.kernel.accumulators.get(root).copied().flatten()
                && let Some(&input) = inputs.get(&parameter)
            {
                let whole = vec![0; self.scope.graph.node(id).lens.len()];
                self.tie(id, input, &whole)?;
            }
        }
        Ok(())
    }

    fn pin(&mut self, id: PiiId, place: &Place) -> Result<(), AllocError> {
        let (Place::OnChip { slot: Some(at), .. }, Some(slot)) = (place, self.slots[id.0 as usize].clone())
        else {
            return Ok(());
        };
        for (&unknown, &at) in slot.iter().zip(at) {
            self.unknowns
                .equate(unknown, Unknowns::ZERO, at)
                .map_err(|Contradiction| self.scope.no_fit(id))?;
        }
        Ok(())
    }

    /// The equations h and the conditions e of one instruction; its betas.
    pub(super) fn add_instruction(
        &mut self,
        id: PiiId,
        op: InstrId,
        alpha: &[AttrVal],
        store: Option<&View>,
        step: usize,
    ) -> Result<Vec<Beta>, AllocError> {
        let instr = self.scope.isa.instr(op);
        let alpha = alpha_values(alpha);
        let isa = self.scope.isa;
        let env = Env { alpha: &alpha, beta: &[], registers: &[] };
        let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
        let env = Env { registers: &registers, ..env };
        let node = self.scope.graph.node(id);
        let mut betas: Vec<Option<Beta>> = vec![None; instr.beta.len()];

        // Byte addresses first: they are known.
        let windows =
            instr.inputs.iter().zip(node.operands.iter().map(|&o| match &self.scope.graph.node(o).op {
                PiiOp::HbmView(view) => Some(view),
                _ => None,
            }));
        let windows: Vec<(&Slice, Option<&View>)> =
            windows.chain(instr.outputs.iter().map(|slice| (slice, store))).collect();
        for (slice, view) in windows {
            let (Slice::Hbm(window), Some(view)) = (slice, view) else { continue };
            let unsupported = || AllocError::UnsupportedAddress { instr: instr.name.clone() };
            let form = Linear::of(&window.start, env).ok_or_else(unsupported)?;
            let (beta, offset) = form.shifted_beta().ok_or_else(unsupported)?;
            let mut address = view.start.clone();
            address.c0 = address.c0.checked_sub(offset).ok_or_else(unsupported)?;
            let aligned = |v: i64| i64::try_from(isa.hbm.align.max(1)).is_ok_and(|a| v % a == 0);
            if !aligned(address.c0) || address.ivs.iter().any(|&(_, k)| !aligned(k)) {
                return Err(AllocError::UnalignedAddress { instr: instr.name.clone(), align: isa.hbm.align });
            }
            match &betas[usize::from(beta)] {
                None => betas[usize::from(beta)] = Some(Beta::Address(view.space, address)),
                Some(Beta::Address(space, known)) if *space == view.space && *known == address => {}
                Some(_) => return Err(unsupported()),
            }
        }
        let betas: Vec<Beta> = betas
            .into_iter()
            .zip(&instr.beta)
            .map(|(beta, decl)| {
                beta.unwrap_or_else(|| {
                    let (min, max) = match decl.kind {
                        AttrKind::Int { min, max } => (min, max),
                        AttrKind::F32 => (0, 0),
                    };
                    Beta::Unknown(self.unknowns.add(min, max))
                })
            })
            .collect();

        for (slice, &operand) in instr.inputs.iter().zip(&node.operands) {
            if let (Slice::OnChip(slice), Some(slot)) = (slice, self.slots[operand.0 as usize].clone()) {
                self.align(operand)?;
                for (&unknown, start) in slot.iter().zip(&slice.start) {
                    self.place(unknown, start, env, &betas)
                        .map_err(|e| e.at(self.scope.no_fit(operand), instr))?;
                }
            }
        }
        let values = self.scope.outputs(id);
        for (number, slice) in instr.outputs.iter().enumerate() {
            let Slice::OnChip(slice) = slice else { continue };
            let access = &isa.buffer(slice.buffer).access;
            let value = values[number].and_then(|value| self.slots[value.0 as usize].clone());
            let slot = if let Some(slot) = value {
                slot
            } else {
                let len: Vec<i64> = slice.len.iter().map(|l| l.eval(env).unwrap_or(0)).collect();
                let start = access.iter().zip(&len).map(|(&room, &len)| {
                    self.unknowns.add(0, i64::try_from(room).unwrap_or(i64::MAX).saturating_sub(len))
                });
                let start: Vec<Unknown> = start.collect();
                let buffer = usize::from(slice.buffer.0);
                self.clobbers.push(Clobber { step, number, buffer, start: start.clone(), len });
                start
            };
            for (&unknown, start) in slot.iter().zip(&slice.start) {
                self.place(unknown, start, env, &betas).map_err(|e| e.at(self.scope.no_fit(id), instr))?;
            }
        }

        let address = |k: u16| match betas.get(usize::from(k)) {
            Some(Beta::Address(_, at)) => {
                let varies = at.ivs.iter().fold(0i64, |g, &(_, k)| greatest_common_divisor(g, k));
                Some((at.c0, varies))
            }
            _ => None,
        };
        for cond in &instr.requires {
            let unsupported = || AllocError::UnsupportedCondition { instr: instr.name.clone() };
            let cond = without_addresses(cond, env, &address).ok_or_else(unsupported)?;
            for fact in facts(&cond, env) {
                self.add_fact(fact, &alpha, &betas).map_err(|e| e.at(self.scope.no_fit(id), instr))?;
            }
        }
        Ok(betas)
    }

    /// Demands that `unknown` is the value of `start`.
    fn place(&mut self, unknown: Unknown, start: &Expr, env: Env<'_>, betas: &[Beta]) -> Result<(), Clash> {
        match Linear::of(start, env) {
            Some(form) if form.coefficients.is_empty() => {
                Ok(self.unknowns.equate(unknown, Unknowns::ZERO, form.constant)?)
            }
            form => match form.as_ref().and_then(Linear::shifted_beta) {
                Some((beta, offset)) => Ok(self.unknowns.equate(unknown, on_chip(betas, beta)?, offset)?),
                None => {
                    // An equation that is not a mere offset: the unknown joins as one more beta.
                    let mut beta: Vec<Option<Unknown>> = betas.iter().map(as_unknown).collect();
                    let extra = u16::try_from(beta.len()).map_err(|_| Clash::Unsupported)?;
                    beta.push(Some(unknown));
                    let cond = Cond::Cmp(Relation::Eq, start.clone(), Expr::Beta(extra));
                    self.conditions.push(Residual { cond, alpha: env.alpha.to_vec(), beta });
                    Ok(())
                }
            },
        }
    }

    fn add_fact(&mut self, fact: Fact, alpha: &[Option<i64>], betas: &[Beta]) -> Result<(), Clash> {
        match fact {
            Fact::Known(true) => Ok(()),
            Fact::Known(false) => Err(Clash::Contradiction),
            Fact::Least(beta, bound) => Ok(self.unknowns.least(on_chip(betas, beta)?, bound)?),
            Fact::Most(beta, bound) => Ok(self.unknowns.most(on_chip(betas, beta)?, bound)?),
            Fact::Congruent { beta, step, residue } => {
                Ok(self.unknowns.congruent(on_chip(betas, beta)?, step, residue)?)
            }
            Fact::Equal { left, right, offset } => {
                Ok(self.unknowns.equate(on_chip(betas, left)?, on_chip(betas, right)?, offset)?)
            }
            Fact::Ordered { left, right, offset } => {
                self.orderings.push((on_chip(betas, left)?, on_chip(betas, right)?, offset));
                Ok(())
            }
            Fact::General(cond) => {
                let beta = betas.iter().map(as_unknown).collect();
                self.conditions.push(Residual { cond, alpha: alpha.to_vec(), beta });
                Ok(())
            }
        }
    }
}

/// Why a demand cannot be met.
enum Clash {
    Contradiction,
    Unsupported,
}

impl From<Contradiction> for Clash {
    fn from(Contradiction: Contradiction) -> Clash {
        Clash::Contradiction
    }
}

impl Clash {
    fn at(self, no_fit: AllocError, instr: &act_isa::Instr) -> AllocError {
        match self {
            Clash::Contradiction => no_fit,
            Clash::Unsupported => AllocError::UnsupportedAddress { instr: instr.name.clone() },
        }
    }
}

fn on_chip(betas: &[Beta], k: u16) -> Result<Unknown, Clash> {
    match betas.get(usize::from(k)) {
        Some(Beta::Unknown(unknown)) => Ok(*unknown),
        _ => Err(Clash::Unsupported),
    }
}

fn as_unknown(beta: &Beta) -> Option<Unknown> {
    match beta {
        Beta::Unknown(unknown) => Some(*unknown),
        Beta::Address(..) => None,
    }
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a.saturating_abs() } else { greatest_common_divisor(b, a % b) }
}
