//! What every order of one pii graph has in common (ACT paper, section 6.2): the unknown slots and addressing
//! attributes with the equations of the address maps h between them, the conditions e, the parts of values that are
//! read, and which instruction must precede which.

use super::csp::{AtLeast, Condition, Csp, SlotBox, Term, Variable};
use super::equations::{Beta, Equations, Residual};
use super::scope::{Scope, is_spill};
use super::{AllocError, hazards, parts};
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_isa::{Affine, AttrVal, InstrId, Isa, Space, TiledKernel};
use std::collections::{BTreeMap, BTreeSet};

/// One real instruction of the graph.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) node: PiiId,
    /// The node of every output; `None` where nobody needs it.
    pub(super) outputs: Vec<Option<PiiId>>,
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
    Output {
        step: usize,
        /// Which output of the instruction.
        number: usize,
    },
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
        let scope = Scope::new(isa, kernel, graph);
        let mut equations = Equations::new(&scope)?;
        let mut steps = Vec::new();
        let mut betas = Vec::new();
        for id in scope.nodes() {
            if let PiiOp::Instr { op, alpha, store } = &graph.node(id).op {
                betas.push(equations.add_instruction(id, *op, alpha, store.as_ref(), steps.len())?);
                steps.push(Step {
                    node: id,
                    outputs: scope.outputs(id),
                    op: *op,
                    alpha: alpha.clone(),
                    beta: Vec::new(),
                    producers: scope.producers(id),
                    hazards: Vec::new(),
                });
            }
        }
        hazards::add(&scope, &mut steps);

        let (vars, term) = equations.unknowns.solve_classes();
        for (step, betas) in steps.iter_mut().zip(&betas) {
            let beta = betas.iter().map(|beta| match beta {
                Beta::Unknown(unknown) => BetaTerm::Slot(term(*unknown)),
                Beta::Address(space, at) => BetaTerm::Address(*space, at.clone()),
            });
            step.beta = beta.collect();
        }
        let slots: Vec<Option<Vec<Term>>> = equations
            .slots
            .iter()
            .map(|s| s.as_ref().map(|s| s.iter().map(|&u| term(u)).collect()))
            .collect();
        let mut parts = parts::parts(&scope, &steps, &slots);
        parts.extend(equations.clobbers.iter().map(|c| Part {
            owner: Owner::Output { step: c.step, number: c.number },
            buffer: c.buffer,
            start: c.start.iter().map(|&u| term(u)).collect(),
            len: c.len.clone(),
            readers: Vec::new(),
            written: true,
            to_end: false,
        }));
        let orderings = equations.orderings.iter().map(|&(left, right, offset)| {
            let right = term(right);
            AtLeast { left: term(left), right: Term { offset: right.offset.saturating_add(offset), ..right } }
        });
        let conditions = equations.conditions.iter().map(|Residual { cond, alpha, beta }| Condition {
            cond: cond.clone(),
            alpha: alpha.clone(),
            beta: beta.iter().map(|b| b.map(&term)).collect(),
        });
        let spills: Vec<usize> =
            (0..steps.len()).filter(|&s| is_spill(&scope.graph.node(steps[s].node).op)).collect();
        let mut sinks = Vec::new();
        for root in scope.graph.roots.iter().flatten() {
            let of_root = scope.pieces[root.0 as usize].iter().map(|p| p.producer);
            for id in of_root.chain([*root]) {
                if let Some(step) = scope.step_of[id.0 as usize]
                    && !sinks.contains(&step)
                {
                    sinks.push(step);
                }
            }
        }
        let (orderings, conditions) = (orderings.collect(), conditions.collect());
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

    /// What the boxes' owners stand for, by number.
    pub(super) fn owners(&self) -> Vec<Owner> {
        self.parts.iter().map(|p| p.owner).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The constraint problem of one order: `order[i]` is the step that runs as number i.
    pub(super) fn csp(&self, order: &[usize]) -> Csp {
        // Inputs are there at time 0, step i writes at time i + 1, and the kernel is over at time N + 1.
        let mut time = vec![0u32; self.steps.len()];
        for (at, &step) in order.iter().enumerate() {
            time[step] = at as u32 + 1;
        }
        let end = order.len() as u32 + 1;
        let owners: BTreeMap<Owner, usize> = self.owners().into_iter().zip(0..).collect();
        let boxes = self.parts.iter().map(|part| {
            let born = match part.owner {
                Owner::Input(_) => 0,
                Owner::Output { step, .. } => time[step],
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
