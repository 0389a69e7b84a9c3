//! A complete choice as a pii graph, with the constants it reads laid out.

use super::demand::{Choice, DemandGraph};
use super::enumerate::Choices;
use super::facts::{Source, TensorAnalysis};
use super::language::ConstId;
use super::matching::{Input, Match};
use crate::pii::{PiiGraph, PiiId, PiiNode, PiiOp};
use act_isa::{BufferId, Space, View};
use std::collections::BTreeMap;

/// Alignment of every constant, in bytes.
const CONST_ALIGN: usize = 16;

pub(crate) struct Emitter<'a> {
    graph: &'a DemandGraph,
    choices: &'a Choices,
    analysis: &'a TensorAnalysis,
    pii: PiiGraph,
    done: BTreeMap<usize, Vec<PiiId>>,
    views: BTreeMap<View, PiiId>,
    /// Further outputs of instructions.
    outputs: BTreeMap<(PiiId, usize), PiiId>,
    placed: BTreeMap<ConstId, usize>,
    fills: BTreeMap<ConstId, (usize, usize)>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        graph: &'a DemandGraph,
        choices: &'a Choices,
        analysis: &'a TensorAnalysis,
    ) -> Emitter<'a> {
        Emitter {
            graph,
            choices,
            analysis,
            pii: PiiGraph::default(),
            done: BTreeMap::new(),
            views: BTreeMap::new(),
            outputs: BTreeMap::new(),
            placed: BTreeMap::new(),
            fills: BTreeMap::new(),
        }
    }

    /// The graph whose k-th root meets the k-th demand. `None` when the choices are incomplete.
    pub(crate) fn emit(mut self, roots: &[usize]) -> Option<PiiGraph> {
        for &root in roots {
            let ids = self.demand(root)?;
            self.pii.roots.push(ids);
        }
        super::round_trips::compact(&mut self.pii);
        Some(self.pii)
    }

    fn demand(&mut self, demand: usize) -> Option<Vec<PiiId>> {
        if let Some(ids) = self.done.get(&demand) {
            return Some(ids.clone());
        }
        let alternative = self.graph.options(demand).get(*self.choices.get(&demand)?)?;
        let mut needs = Vec::with_capacity(alternative.needs.len());
        for &need in &alternative.needs {
            needs.push(self.demand(need)?);
        }
        let buffer = self.graph.buffer(demand);
        let ids = match &alternative.choice {
            Choice::Parts => needs.into_iter().flatten().collect(),
            Choice::Input { parameter, lens } => {
                vec![self.node(PiiOp::OnChipInput(*parameter), Vec::new(), buffer, lens.clone())]
            }
            Choice::SliceH { start, lens } => {
                let operands = needs.into_iter().flatten().collect();
                vec![self.node(PiiOp::SliceH { start: start.clone() }, operands, buffer, lens.clone())]
            }
            Choice::ConcatH { dim, lens } => {
                let operands = needs.into_iter().flatten().collect();
                vec![self.node(PiiOp::ConcatH { dim: *dim }, operands, buffer, lens.clone())]
            }
            Choice::Output { number, lens } => {
                let instr = *needs.into_iter().flatten().collect::<Vec<_>>().first()?;
                vec![self.output(instr, *number, buffer, lens)]
            }
            Choice::Instr(m) => {
                let mut needs = needs.into_iter();
                let mut operands = Vec::with_capacity(m.inputs.len());
                for input in &m.inputs {
                    operands.push(match input {
                        Input::OnChip(..) => *needs.next()?.first()?,
                        // The store that the window's bytes come from is a need without a value on chip.
                        Input::Hbm { source: source @ Source::Stored(_), window } => {
                            needs.next()?;
                            self.view(*source, window)?
                        }
                        Input::Hbm { source, window } => self.view(*source, window)?,
                        Input::Fill { scalar, window } => self.fill(*scalar, window)?,
                    });
                }
                let op = instruction(m);
                vec![self.node(op, operands, buffer, m.lens.clone())]
            }
        };
        self.done.insert(demand, ids.clone());
        Some(ids)
    }

    fn node(&mut self, op: PiiOp, operands: Vec<PiiId>, buffer: Option<BufferId>, lens: Vec<u64>) -> PiiId {
        let id = PiiId(self.pii.nodes.len() as u32);
        self.pii.nodes.push(PiiNode { op, operands, buffer, lens });
        id
    }

    /// An output of an instruction, whoever else wants it.
    fn output(&mut self, instr: PiiId, number: usize, buffer: Option<BufferId>, lens: &[u64]) -> PiiId {
        if number == 0 {
            return instr;
        }
        if let Some(&id) = self.outputs.get(&(instr, number)) {
            return id;
        }
        let id = self.node(PiiOp::Output { number }, vec![instr], buffer, lens.to_vec());
        self.outputs.insert((instr, number), id);
        id
    }

    fn leaf(&mut self, view: View) -> PiiId {
        if let Some(&id) = self.views.get(&view) {
            return id;
        }
        let id = self.node(PiiOp::HbmView(view.clone()), Vec::new(), None, Vec::new());
        self.views.insert(view, id);
        id
    }

    fn view(&mut self, source: Source, window: &View) -> Option<PiiId> {
        let mut window = window.clone();
        if let Source::Constant(id) = source {
            let base = match self.placed.get(&id) {
                Some(&base) => base,
                None => {
                    let bytes = self.analysis.literal(id).bytes();
                    let base = self.append(bytes);
                    self.placed.insert(id, base);
                    base
                }
            };
            window.space = Space::Consts;
            window.start.c0 = window.start.c0.checked_add(i64::try_from(base).ok()?)?;
        }
        Some(self.leaf(window))
    }

    fn fill(&mut self, scalar: ConstId, window: &View) -> Option<PiiId> {
        let mut span = 1usize;
        for &(len, stride) in &window.dims {
            let reach =
                usize::try_from(stride).ok()?.checked_mul(usize::try_from(len).ok()?.checked_sub(1)?)?;
            span = span.checked_add(reach)?;
        }
        let base = match self.fills.get(&scalar) {
            Some(&(base, size)) if size >= span => base,
            _ => {
                let one = self.analysis.literal(scalar).bytes();
                let bytes = one.repeat(span.div_ceil(one.len()));
                let base = self.append(&bytes);
                self.fills.insert(scalar, (base, bytes.len()));
                base
            }
        };
        let mut window = window.clone();
        window.start.c0 = i64::try_from(base).ok()?;
        Some(self.leaf(window))
    }

    fn append(&mut self, bytes: &[u8]) -> usize {
        let base = self.pii.consts.len().next_multiple_of(CONST_ALIGN);
        self.pii.consts.resize(base, 0);
        self.pii.consts.extend_from_slice(bytes);
        base
    }
}

fn instruction(m: &Match) -> PiiOp {
    PiiOp::Instr { op: m.instr, alpha: m.alpha.clone(), store: m.store.clone() }
}
