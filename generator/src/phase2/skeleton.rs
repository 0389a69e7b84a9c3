//! What every order of one pii graph has in common (ACT paper, section 6.2): the unknown slots and addressing
//! attributes with the equations of the address maps h between them, the conditions e, the parts of values that are
//! read, and which instruction must precede which.

use super::AllocError;
use super::csp::{AtLeast, Condition, Csp, SlotBox, Term, Variable};
use super::linear::{Fact, Linear, facts, without_addresses};
use super::pieces::{Piece, resolve};
use super::unknowns::{Contradiction, Unknown, Unknowns};
use super::validate::alpha_values;
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::expr::Relation;
use act_isa::{
    Affine, AttrKind, AttrVal, Cond, Env, Expr, InstrId, Isa, Place, Slice, Space, TiledKernel, View,
};
use std::collections::{BTreeMap, BTreeSet};

/// One real instruction of the graph.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) node: PiiId,
    pub(super) op: InstrId,
    pub(super) alpha: Vec<AttrVal>,
    /// The value of every addressing attribute, once the slots are known.
    pub(super) beta: Vec<BetaTerm>,
    /// Steps that must come earlier: producers of operands first (as operands of the pii node), then those that read
    /// what this one overwrites.
    pub(super) producers: Vec<usize>,
    pub(super) hazards: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum BetaTerm {
    Slot(Term),
    Address(Space, Affine),
}

/// A part of a value that is needed for some time.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) owner: Owner,
    pub(super) buffer: usize,
    pub(super) start: Vec<Term>,
    pub(super) len: Vec<i64>,
    /// Steps that read this part.
    pub(super) readers: Vec<usize>,
    /// Whether it is occupied by the writing alone, whoever reads it.
    pub(super) written: bool,
    /// Whether it must outlive the kernel.
    pub(super) to_end: bool,
}

/// What occupies a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Input(PiiId),
    Step(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Skeleton {
    pub(super) steps: Vec<Step>,
    pub(super) parts: Vec<Part>,
    /// The slot of every node that lies on chip.
    pub(super) slots: Vec<Option<Vec<Term>>>,
    /// Steps that store spilled values.
    pub(super) spills: Vec<usize>,
    /// Steps of the roots, in their order.
    pub(super) sinks: Vec<usize>,
    pub(super) capacity: Vec<Vec<i64>>,
    /// Bytes of one access position of every buffer.
    pub(super) position_bytes: Vec<u64>,
    vars: Vec<Variable>,
    orderings: Vec<AtLeast>,
    conditions: Vec<Condition>,
    registers: Vec<i64>,
}

impl Skeleton {
    /// Builds the skeleton of a validated graph.
    pub(super) fn new(isa: &Isa, kernel: &TiledKernel, graph: &PiiGraph) -> Result<Skeleton, AllocError> {
        let builder = Builder::new(isa, kernel, graph);
        builder.build()
    }

    /// The constraint problem of one order: `order[i]` is the step that runs as number i.
    pub(super) fn csp(&self, order: &[usize]) -> Csp {
        // Inputs are there at time 0, step i writes at time i + 1, and the kernel is over at time N + 1.
        let mut time = vec![0u32; self.steps.len()];
        for (at, &step) in order.iter().enumerate() {
            time[step] = at as u32 + 1;
        }
        let end = order.len() as u32 + 1;
        let owners: BTreeMap<Owner, usize> =
            self.parts.iter().map(|p| p.owner).collect::<BTreeSet<_>>().into_iter().zip(0..).collect();
        let boxes = self.parts.iter().map(|part| {
            let born = match part.owner {
                Owner::Input(_) => 0,
                Owner::Step(step) => time[step],
            };
            let mut dies = part.readers.iter().map(|&r| time[r]).max().unwrap_or(born);
            dies = dies.max(if part.written { born + 1 } else { born });
            dies = if part.to_end { end } else { dies };
            SlotBox {
                owner: owners[&part.owner],
                buffer: part.buffer,
                start: part.start.clone(),
                len: part.len.clone(),
                live: (born, dies),
            }
        });
        Csp {
            vars: self.vars.clone(),
            boxes: boxes.collect(),
            capacity: self.capacity.clone(),
            orderings: self.orderings.clone(),
            conditions: self.conditions.clone(),
            registers: self.registers.clone(),
        }
    }
}

struct Builder<'a> {
    isa: &'a Isa,
    kernel: &'a TiledKernel,
    graph: &'a PiiGraph,
    /// Nodes that a root depends on.
    needed: Vec<bool>,
    pieces: Vec<Vec<Piece>>,
    unknowns: Unknowns,
    slots: Vec<Option<Vec<Unknown>>>,
    /// Step number of every instruction node.
    step_of: Vec<Option<usize>>,
    orderings: Vec<(Unknown, Unknown, i64)>,
    conditions: Vec<Residual>,
}

/// A condition that is no mere fact about one or two unknowns, with the attributes that it is over.
struct Residual {
    cond: Cond,
    alpha: Vec<Option<i64>>,
    beta: Vec<Option<Unknown>>,
}

/// What stands for a beta while the equations are collected.
#[derive(Clone, Debug)]
enum Beta {
    Unknown(Unknown),
    Address(Space, Affine),
}

/// A slot that an instruction writes beside its value.
struct Clobber {
    step: usize,
    buffer: usize,
    start: Vec<Unknown>,
    len: Vec<i64>,
}

impl<'a> Builder<'a> {
    fn new(isa: &'a Isa, kernel: &'a TiledKernel, graph: &'a PiiGraph) -> Builder<'a> {
        let mut needed = vec![false; graph.nodes.len()];
        for id in graph.roots.iter().flatten() {
            needed[id.0 as usize] = true;
        }
        for index in (0..graph.nodes.len()).rev() {
            // Parameters occupy their slots, and spilled values are stored, whoever reads them.
            if matches!(graph.nodes[index].op, PiiOp::OnChipInput(_)) || is_spill(&graph.nodes[index].op) {
                needed[index] = true;
            }
            if needed[index] {
                for id in &graph.nodes[index].operands {
                    needed[id.0 as usize] = true;
                }
            }
        }
        let mut steps = 0;
        let step_of = graph.nodes.iter().zip(&needed).map(|(node, &needed)| {
            let real = needed && matches!(node.op, PiiOp::Instr { .. });
            steps += usize::from(real);
            real.then(|| steps - 1)
        });
        let step_of = step_of.collect();
        Builder {
            isa,
            kernel,
            graph,
            needed,
            pieces: resolve(graph),
            unknowns: Unknowns::new(),
            slots: Vec::new(),
            step_of,
            orderings: Vec::new(),
            conditions: Vec::new(),
        }
    }

    fn nodes(&self) -> impl Iterator<Item = PiiId> + use<> {
        let needed = self.needed.clone();
        (0..self.graph.nodes.len() as u32).map(PiiId).filter(move |id| needed[id.0 as usize])
    }

    /// The problem has no answer whatever the order; what it lacks is told by the buffer of `node`.
    fn no_fit(&self, node: PiiId) -> AllocError {
        let buffer = self.graph.node(node).buffer.map(|b| self.isa.buffer(b).name.clone());
        AllocError::NoFit { buffer, orders: 0 }
    }

    fn build(mut self) -> Result<Skeleton, AllocError> {
        self.add_slots()?;
        self.tie_identities()?;
        self.pin_places()?;
        let mut steps = Vec::new();
        let mut betas = Vec::new();
        let mut clobbers = Vec::new();
        for id in self.nodes() {
            if let PiiOp::Instr { op, alpha, store } = &self.graph.node(id).op {
                let beta =
                    self.add_instruction(id, *op, alpha, store.as_ref(), steps.len(), &mut clobbers)?;
                betas.push(beta);
                steps.push(Step {
                    node: id,
                    op: *op,
                    alpha: alpha.clone(),
                    beta: Vec::new(),
                    producers: self.producers(id),
                    hazards: Vec::new(),
                });
            }
        }
        self.add_hazards(&mut steps);
        self.finish(steps, &betas, &clobbers)
    }

    /// Slots of the values, within their buffers and at the alignment that instructions demand.
    fn add_slots(&mut self) -> Result<(), AllocError> {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let id = PiiId(index as u32);
            let Some(buffer) = node.buffer.filter(|_| self.needed[index]) else {
                self.slots.push(None);
                continue;
            };
            let access = &self.isa.buffer(buffer).access;
            let mut slot = Vec::with_capacity(access.len());
            for (&room, &len) in access.iter().zip(&node.lens) {
                let most = room.checked_sub(len).ok_or_else(|| self.no_fit(id))?;
                slot.push(self.unknowns.add(0, i64::try_from(most).unwrap_or(i64::MAX)));
            }
            self.slots.push(Some(slot));
            if matches!(node.op, PiiOp::Instr { .. } | PiiOp::OnChipInput(_)) {
                self.align(id)?;
            }
        }
        Ok(())
    }

    fn align(&mut self, id: PiiId) -> Result<(), AllocError> {
        let (Some(buffer), Some(slot)) = (self.graph.node(id).buffer, self.slots[id.0 as usize].clone())
        else {
            return Ok(());
        };
        for (&unknown, &align) in slot.iter().zip(&self.isa.buffer(buffer).align) {
            if align > 1 {
                let step = i64::try_from(align).unwrap_or(i64::MAX);
                self.unknowns.congruent(unknown, step, 0).map_err(|Contradiction| self.no_fit(id))?;
            }
        }
        Ok(())
    }

    /// Identity instructions move nothing: a slice lies inside its operand, the operands of a concatenation lie side
    /// by side.
    fn tie_identities(&mut self) -> Result<(), AllocError> {
        for id in self.nodes() {
            let node = self.graph.node(id);
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
                        offset[*dim] += self.graph.node(operand).lens[*dim];
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
            self.unknowns.equate(a, b, offset).map_err(|Contradiction| self.no_fit(inner))?;
        }
        Ok(())
    }

    /// Slots that the kernel fixes, and results that take over the slot of a parameter.
    fn pin_places(&mut self) -> Result<(), AllocError> {
        let mut inputs = BTreeMap::new();
        for id in self.nodes() {
            if let PiiOp::OnChipInput(k) = self.graph.node(id).op {
                self.pin(id, &self.kernel.ins[k])?;
                inputs.entry(k).or_insert(id);
            }
        }
        for (root, stores) in self.graph.roots.iter().enumerate() {
            let (Some(place @ Place::OnChip { .. }), &[id]) = (self.kernel.outs.get(root), stores.as_slice())
            else {
                continue;
            };
            self.pin(id, place)?;
            if let Some(parameter) = self.kernel.accumulators.get(root).copied().flatten()
                && let Some(&input) = inputs.get(&parameter)
            {
                let whole = vec![0; self.graph.node(id).lens.len()];
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
            self.unknowns.equate(unknown, Unknowns::ZERO, at).map_err(|Contradiction| self.no_fit(id))?;
        }
        Ok(())
    }

    /// The equations h and the conditions e of one instruction; its betas.
    fn add_instruction(
        &mut self,
        id: PiiId,
        op: InstrId,
        alpha: &[AttrVal],
        store: Option<&View>,
        step: usize,
        clobbers: &mut Vec<Clobber>,
    ) -> Result<Vec<Beta>, AllocError> {
        let instr = self.isa.instr(op);
        let alpha = alpha_values(alpha);
        let isa = self.isa;
        let env = Env { alpha: &alpha, beta: &[], registers: &[] };
        let registers: Vec<i64> = isa.registers.iter().map(|r| r.1).collect();
        let env = Env { registers: &registers, ..env };
        let node = self.graph.node(id);
        let mut betas: Vec<Option<Beta>> = vec![None; instr.beta.len()];

        // Byte addresses first: they are known.
        let windows = instr.inputs.iter().zip(node.operands.iter().map(|&o| match &self.graph.node(o).op {
            PiiOp::HbmView(view) => Some(view),
            _ => None,
        }));
        let windows: Vec<(&Slice, Option<&View>)> =
            windows.chain(instr.outputs.iter().zip(std::iter::once(store))).collect();
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
                    self.place(unknown, start, env, &betas).map_err(|e| e.at(self.no_fit(operand), instr))?;
                }
            }
        }
        for (number, slice) in instr.outputs.iter().enumerate() {
            let Slice::OnChip(slice) = slice else { continue };
            let access = &isa.buffer(slice.buffer).access;
            let slot = if number == 0 {
                self.slots[id.0 as usize].clone().unwrap_or_default()
            } else {
                let len: Vec<i64> = slice.len.iter().map(|l| l.eval(env).unwrap_or(0)).collect();
                let start = access.iter().zip(&len).map(|(&room, &len)| {
                    self.unknowns.add(0, i64::try_from(room).unwrap_or(i64::MAX).saturating_sub(len))
                });
                let start: Vec<Unknown> = start.collect();
                let buffer = usize::from(slice.buffer.0);
                clobbers.push(Clobber { step, buffer, start: start.clone(), len });
                start
            };
            for (&unknown, start) in slot.iter().zip(&slice.start) {
                self.place(unknown, start, env, &betas).map_err(|e| e.at(self.no_fit(id), instr))?;
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
                self.add_fact(fact, &alpha, &betas).map_err(|e| e.at(self.no_fit(id), instr))?;
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

    /// Steps whose values an instruction reads, in the order of its operands.
    fn producers(&self, id: PiiId) -> Vec<usize> {
        let mut steps = Vec::new();
        for operand in &self.graph.node(id).operands {
            for piece in &self.pieces[operand.0 as usize] {
                if let Some(step) = self.step_of[piece.producer.0 as usize]
                    && !steps.contains(&step)
                {
                    steps.push(step);
                }
            }
        }
        steps
    }

    /// Orders reads before the writes that destroy what they read (operands updated in place, bytes of d0 that are both
    /// loaded and stored), and loads of spilled values after their stores.
    fn add_hazards(&self, steps: &mut [Step]) {
        let reads: Vec<Vec<&Piece>> = steps.iter().map(|s| self.read_pieces(s.node)).collect();
        let mut hazards: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for (writer, step) in steps.iter().enumerate() {
            let node = self.graph.node(step.node);
            let updated = self.isa.instr(step.op).updates_in_place(0).and_then(|k| node.operands.get(k));
            let mut updated: Vec<Piece> =
                updated.map(|o| self.pieces[o.0 as usize].clone()).unwrap_or_default();
            updated.extend(self.taken_over(step.node));
            for (reader, read) in reads.iter().enumerate() {
                let destroys = read.iter().any(|r| updated.iter().any(|u| share_cells(r, u)));
                let stores = self.stored_window(step.node);
                let shares = stores.is_some_and(|stored| {
                    self.loaded_windows(steps[reader].node).any(|loaded| may_share_bytes(stored, loaded))
                });
                // Scratch bytes are read after they were written; of all others, it is the old contents that is read.
                let scratch = stores.is_some_and(|s| s.space == Space::Scratch);
                if reader != writer && (destroys || (shares && !scratch)) {
                    hazards[writer].push(reader);
                }
                if reader != writer && shares && scratch {
                    hazards[reader].push(writer);
                }
            }
        }
        for (step, hazards) in steps.iter_mut().zip(hazards) {
            step.hazards = hazards;
        }
    }

    /// Cells of parameters that the value of `id` replaces, because the kernel demands that a result takes over the
    /// slot of a parameter.
    fn taken_over(&self, id: PiiId) -> Vec<Piece> {
        let mut cells = Vec::new();
        for (root, parameter) in self.graph.roots.iter().zip(&self.kernel.accumulators) {
            let input = parameter
                .and_then(|k| self.nodes().find(|&n| self.graph.node(n).op == PiiOp::OnChipInput(k)));
            let (Some(input), &[root]) = (input, root.as_slice()) else { continue };
            for piece in self.pieces[root.0 as usize].iter().filter(|p| p.producer == id) {
                cells.push(Piece { producer: input, at: piece.to.clone(), ..piece.clone() });
            }
        }
        cells
    }

    fn read_pieces(&self, id: PiiId) -> Vec<&Piece> {
        self.graph.node(id).operands.iter().flat_map(|o| &self.pieces[o.0 as usize]).collect()
    }

    fn stored_window(&self, id: PiiId) -> Option<&View> {
        match &self.graph.node(id).op {
            PiiOp::Instr { store, .. } => store.as_ref(),
            _ => None,
        }
    }

    fn loaded_windows(&self, id: PiiId) -> impl Iterator<Item = &View> {
        self.graph.node(id).operands.iter().filter_map(|&o| match &self.graph.node(o).op {
            PiiOp::HbmView(view) => Some(view),
            _ => None,
        })
    }

    fn finish(
        self,
        mut steps: Vec<Step>,
        betas: &[Vec<Beta>],
        clobbers: &[Clobber],
    ) -> Result<Skeleton, AllocError> {
        let (vars, term) = self.unknowns.solve_classes();
        for (step, betas) in steps.iter_mut().zip(betas) {
            let beta = betas.iter().map(|beta| match beta {
                Beta::Unknown(unknown) => BetaTerm::Slot(term(*unknown)),
                Beta::Address(space, at) => BetaTerm::Address(*space, at.clone()),
            });
            step.beta = beta.collect();
        }
        let slots: Vec<Option<Vec<Term>>> =
            self.slots.iter().map(|s| s.as_ref().map(|s| s.iter().map(|&u| term(u)).collect())).collect();
        let mut parts = self.parts(&steps, &slots);
        parts.extend(clobbers.iter().map(|c| Part {
            owner: Owner::Step(c.step),
            buffer: c.buffer,
            start: c.start.iter().map(|&u| term(u)).collect(),
            len: c.len.clone(),
            readers: Vec::new(),
            written: true,
            to_end: false,
        }));
        let orderings = self.orderings.iter().map(|&(left, right, offset)| {
            let right = term(right);
            AtLeast { left: term(left), right: Term { offset: right.offset.saturating_add(offset), ..right } }
        });
        let conditions = self.conditions.iter().map(|Residual { cond, alpha, beta }| Condition {
            cond: cond.clone(),
            alpha: alpha.clone(),
            beta: beta.iter().map(|b| b.map(&term)).collect(),
        });
        let spills: Vec<usize> =
            (0..steps.len()).filter(|&s| is_spill(&self.graph.node(steps[s].node).op)).collect();
        let mut sinks = Vec::new();
        for root in self.graph.roots.iter().flatten() {
            let of_root = self.pieces[root.0 as usize].iter().map(|p| p.producer);
            for id in of_root.chain([*root]) {
                if let Some(step) = self.step_of[id.0 as usize]
                    && !sinks.contains(&step)
                {
                    sinks.push(step);
                }
            }
        }
        let (orderings, conditions) = (orderings.collect(), conditions.collect());
        let isa = self.isa;
        let as_lengths = |dims: &[u64]| dims.iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
        Ok(Skeleton {
            steps,
            parts,
            slots,
            spills,
            sinks,
            capacity: isa.buffers.iter().map(|b| as_lengths(&b.access)).collect(),
            position_bytes: isa
                .buffers
                .iter()
                .map(|b| b.unit.iter().fold(b.elem.bytes(), |n, &d| n.saturating_mul(d)))
                .collect(),
            vars,
            orderings,
            conditions,
            registers: isa.registers.iter().map(|r| r.1).collect(),
        })
    }

    /// The parts of every value: the whole of it while it is written, and whatever is read of it later.
    fn parts(&self, steps: &[Step], slots: &[Option<Vec<Term>>]) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut first = vec![None; self.graph.nodes.len()];
        for id in self.nodes() {
            let node = self.graph.node(id);
            let owner = match (&node.op, self.step_of[id.0 as usize]) {
                (PiiOp::OnChipInput(_), _) => Owner::Input(id),
                (_, Some(step)) => Owner::Step(step),
                _ => continue,
            };
            let (Some(buffer), Some(slot)) = (node.buffer, &slots[id.0 as usize]) else { continue };
            first[id.0 as usize] = Some(parts.len());
            parts.push(Part {
                owner,
                buffer: usize::from(buffer.0),
                start: slot.clone(),
                len: lengths(&node.lens),
                readers: Vec::new(),
                written: true,
                to_end: self.outlives(id),
            });
        }
        let mut note = |piece: &Piece, reader: Option<usize>| {
            let Some(whole) = first[piece.producer.0 as usize] else { return };
            let whole_part = parts[whole].clone();
            let start: Vec<Term> = whole_part
                .start
                .iter()
                .zip(&piece.at)
                .map(|(t, &at)| Term {
                    offset: t.offset.saturating_add(i64::try_from(at).unwrap_or(i64::MAX)),
                    ..*t
                })
                .collect();
            let len = lengths(&piece.len);
            let same =
                parts.iter().position(|p| p.owner == whole_part.owner && p.start == start && p.len == len);
            let at = same.unwrap_or_else(|| {
                parts.push(Part {
                    start,
                    len,
                    readers: Vec::new(),
                    written: false,
                    to_end: false,
                    ..whole_part
                });
                parts.len() - 1
            });
            match reader {
                Some(step) => parts[at].readers.push(step),
                None => parts[at].to_end = true,
            }
        };
        for (number, step) in steps.iter().enumerate() {
            for piece in self.read_pieces(step.node) {
                note(piece, Some(number));
            }
        }
        for (root, place) in self.graph.roots.iter().zip(&self.kernel.outs) {
            if matches!(place, Place::OnChip { .. }) {
                for piece in root.iter().flat_map(|id| &self.pieces[id.0 as usize]) {
                    note(piece, None);
                }
            }
        }
        parts
    }

    /// Whether a parameter must keep its value beyond the kernel: a loop carries it, and no result takes its place.
    fn outlives(&self, id: PiiId) -> bool {
        let PiiOp::OnChipInput(k) = self.graph.node(id).op else { return false };
        let carried = matches!(self.kernel.ins.get(k), Some(Place::OnChip { carried: Some(_), .. }));
        carried && !self.kernel.accumulators.contains(&Some(k))
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

fn lengths(lens: &[u64]) -> Vec<i64> {
    lens.iter().map(|&l| i64::try_from(l).unwrap_or(i64::MAX)).collect()
}

/// Whether the operation stores to scratch memory.
fn is_spill(op: &PiiOp) -> bool {
    matches!(op, PiiOp::Instr { store: Some(view), .. } if view.space == Space::Scratch)
}

fn share_cells(a: &Piece, b: &Piece) -> bool {
    a.producer == b.producer
        && (0..a.at.len()).all(|d| a.at[d] < b.at[d] + b.len[d] && b.at[d] < a.at[d] + a.len[d])
}

/// Whether two windows of d0 may have a byte in common.
fn may_share_bytes(a: &View, b: &View) -> bool {
    if a.space != b.space {
        return false;
    }
    if a.start.ivs != b.start.ivs {
        return true;
    }
    let extent = |view: &View| {
        let mut span = (i128::from(view.start.c0), i128::from(view.start.c0) + i128::from(view.elem.bytes()));
        for &(len, stride) in &view.dims {
            if len == 0 {
                return (0, 0);
            }
            let reach = i128::from(len - 1) * i128::from(stride);
            span = (span.0 + reach.min(0), span.1 + reach.max(0));
        }
        span
    };
    let (a, b) = (extent(a), extent(b));
    a.0 < b.1 && b.0 < a.1
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a.saturating_abs() } else { greatest_common_divisor(b, a % b) }
}
