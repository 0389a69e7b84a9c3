//! What must be available where, and the ways to make it so: the AND/OR graph that extraction searches. A demand is a
//! class in a buffer, or a class stored to a place in d0; a choice is an instruction, an identity instruction or an input.
//! Choices are found top-down from the roots, so that only what some instruction asks for is matched.

use super::facts::{Source, TensorGraph};
use super::language::TensorNode;
use super::matcher::{Look, Matcher};
use super::matching::{Execution, Input, Match, Matching, has_slot};
use super::operators::OperatorNumber;
use super::round_trips;
use super::view::Layout;
use act_hlo::OpKind;
use act_isa::{BufferId, Expr, Isa, Place, Slice};
use egg::Id;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of class and place considered for one store.
const DESTINATIONS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Demand {
    OnChip(Id, BufferId),
    /// In a buffer, in a slot of its own; the number tells copies apart.
    Made(Id, BufferId, usize),
    Store(Id, Layout),
    /// The execution of an instruction with several outputs; the number tells copies apart.
    Run(Box<Execution>, usize),
}

impl Demand {
    /// The buffer that the demand names.
    pub(crate) fn buffer(&self) -> Option<BufferId> {
        match self {
            Demand::OnChip(_, buffer) | Demand::Made(_, buffer, _) => Some(*buffer),
            Demand::Run(execution, _) => execution.buffer,
            Demand::Store(..) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Instr(Match),
    /// One of the outputs of an execution.
    Output {
        number: usize,
        lens: Vec<u64>,
    },
    /// Parameter k of the kernel lies there already.
    Input {
        parameter: usize,
        lens: Vec<u64>,
    },
    SliceH {
        start: Vec<u64>,
        lens: Vec<u64>,
    },
    ConcatH {
        dim: usize,
        lens: Vec<u64>,
    },
    /// The parts of a store are stored one by one.
    Parts,
}

/// A choice with the demands it makes in turn, as indices.
#[derive(Clone, Debug)]
pub(crate) struct Alternative {
    pub(crate) choice: Choice,
    pub(crate) needs: Vec<usize>,
    pub(crate) cost: u64,
}

/// All demands reachable from the roots.
#[derive(Debug, Default)]
pub(crate) struct DemandGraph {
    pub(crate) demands: IndexMap<Demand, Vec<Alternative>>,
    /// Demands before this one have their alternatives.
    expanded: usize,
}

pub(crate) struct Expander<'a> {
    pub(crate) isa: &'a Isa,
    pub(crate) egraph: &'a TensorGraph,
    pub(crate) matchers: &'a [Matcher],
    pub(crate) ins: &'a [Place],
    /// Class of every parameter.
    pub(crate) params: &'a [Id],
    /// The results of the kernel that lie in d0, and where.
    pub(crate) stored: &'a [(Id, Layout)],
}

impl Expander<'_> {
    /// Adds a demand and everything it may need; returns its index.
    pub(crate) fn expand(&self, graph: &mut DemandGraph, demand: Demand) -> usize {
        let root = graph.index(demand);
        while let Some((demand, _)) = graph.demands.get_index(graph.expanded) {
            let found = self.choices(&demand.clone());
            let alternatives = found.into_iter().map(|(choice, needs, cost)| Alternative {
                choice,
                needs: needs.into_iter().map(|d| graph.index(d)).collect(),
                cost,
            });
            let alternatives = alternatives.collect();
            graph.demands[graph.expanded] = alternatives;
            graph.expanded += 1;
        }
        root
    }

    fn choices(&self, demand: &Demand) -> Vec<(Choice, Vec<Demand>, u64)> {
        match demand {
            Demand::OnChip(class, buffer) => {
                let mut found = self.made(*class, *buffer, 0);
                found.extend(self.identities(*class, *buffer));
                found
            }
            Demand::Made(class, buffer, copy) => self.made(*class, *buffer, *copy),
            Demand::Store(class, place) => self.store(*class, place),
            Demand::Run(execution, _) => vec![self.executed(execution.first.clone())],
        }
    }

    /// Inputs that lie there, and instructions.
    fn made(&self, class: Id, buffer: BufferId, copy: usize) -> Vec<(Choice, Vec<Demand>, u64)> {
        let mut found = Vec::new();
        for (k, (place, param)) in self.ins.iter().zip(self.params).enumerate() {
            if let Place::OnChip { buf, .. } = place
                && *buf == buffer
                && self.egraph.find(*param) == class
            {
                let access = self.isa.buffer(buffer).access.len();
                let lens = self.egraph[class].data.shape.dims.iter().take(access).copied().collect();
                found.push((Choice::Input { parameter: k, lens }, Vec::new(), 0));
            }
        }
        let matching = self.matching();
        let look = self.look(class);
        for matcher in self.matchers.iter().filter(|m| m.may_fill(buffer, &look)) {
            let matches = matching.on_chip(matcher, class, buffer);
            found.extend(matches.into_iter().map(|m| self.instruction(m, copy)));
        }
        // At the same cost a constant is better made on the device than read.
        found.sort_by_key(|(choice, ..)| matches!(choice, Choice::Instr(m) if m.reads_constants()));
        found
    }

    fn matching(&self) -> Matching<'_> {
        Matching { isa: self.isa, egraph: self.egraph, stored: self.stored }
    }

    fn look(&self, class: Id) -> Look {
        let facts = &self.egraph[class].data;
        let mut operators: Vec<OperatorNumber> =
            self.egraph[class].nodes.iter().map(|n| n.head.operator).collect();
        operators.sort_unstable();
        operators.dedup();
        let in_memory = facts.value.is_some() || !facts.views.is_empty();
        Look { elem: facts.shape.elem, operators, in_memory, constant: facts.value.is_some() }
    }

    /// An instruction, or the output of one that has several, which are had by one execution.
    fn instruction(&self, m: Match, copy: usize) -> (Choice, Vec<Demand>, u64) {
        match m.execution() {
            Some((number, execution)) => {
                let choice = Choice::Output { number, lens: m.lens };
                (choice, vec![Demand::Run(Box::new(execution), copy)], 0)
            }
            None => self.executed(m),
        }
    }

    fn executed(&self, m: Match) -> (Choice, Vec<Demand>, u64) {
        let needs = m.inputs.iter().filter_map(|input| match input {
            Input::OnChip(class, buffer) => Some(Demand::OnChip(*class, *buffer)),
            Input::Hbm { source: Source::Stored(class), .. } => {
                let place = round_trips::place(self.egraph, *class)?;
                Some(Demand::Store(*class, place.clone()))
            }
            Input::Hbm { .. } | Input::Fill { .. } => None,
        });
        let (needs, cost) = (needs.collect(), m.cost);
        (Choice::Instr(m), needs, cost)
    }

    /// The identity instructions: boxes of a slot and adjacent slots, in access dimensions.
    fn identities(&self, class: Id, buffer: BufferId) -> Vec<(Choice, Vec<Demand>, u64)> {
        let declared = self.isa.buffer(buffer);
        let access = declared.access.len();
        let fits = |id: Id| has_slot(declared, &self.egraph[id].data.shape);
        let mut found = Vec::new();
        if !fits(class) {
            return found;
        }
        let lens = self.egraph[class].data.shape.dims[..access].to_vec();
        for node in &self.egraph[class].nodes {
            match node.op() {
                OpKind::Slice { start, stride, .. } => {
                    let of = self.egraph.find(node.operands[0]);
                    let positions: Option<Vec<u64>> = start.iter().map(|&s| u64::try_from(s).ok()).collect();
                    let (Some(positions), true) = (positions, stride.iter().all(|&s| s == 1) && fits(of))
                    else {
                        continue;
                    };
                    let reached = (0..access).all(|d| self.begins(buffer, d, positions[d]));
                    if of != class && reached {
                        let choice =
                            Choice::SliceH { start: positions[..access].to_vec(), lens: lens.clone() };
                        found.push((choice, vec![Demand::OnChip(of, buffer)], 0));
                    }
                }
                OpKind::Concatenate { dim }
                    if *dim < access
                        && node.operands.iter().all(|&o| fits(o))
                        && self.adjacent(node, *dim, buffer) =>
                {
                    let needs = self.side_by_side(node, *dim, access, buffer);
                    found.push((Choice::ConcatH { dim: *dim, lens: lens.clone() }, needs, 0));
                }
                _ => {}
            }
        }
        found
    }

    /// Whether a slot may begin so far behind the beginning of another one.
    fn begins(&self, buffer: BufferId, d: usize, behind: u64) -> bool {
        let align = self.isa.buffer(buffer).align.get(d).copied().unwrap_or(1).max(1);
        behind == 0 || behind.is_multiple_of(align) && self.moves(buffer, d)
    }

    /// Whether the operands of a concatenation may lie side by side.
    fn adjacent(&self, node: &TensorNode, dim: usize, buffer: BufferId) -> bool {
        let mut behind = 0;
        node.operands.iter().all(|&operand| {
            let begins = self.begins(buffer, dim, behind);
            behind += self.egraph[operand].data.shape.dims[dim];
            begins
        })
    }

    /// Whether slots of the buffer may begin anywhere in an access dimension: where all instructions have them begin at
    /// one place, there are neither parts behind it nor values side by side.
    fn moves(&self, buffer: BufferId, d: usize) -> bool {
        let given = |place: &Place| matches!(place, Place::OnChip { buf, .. } if *buf == buffer);
        let slices = self.isa.instrs.iter().flat_map(|i| i.inputs.iter().chain(&i.outputs));
        let mut starts = slices.filter_map(|slice| match slice {
            Slice::OnChip(slice) if slice.buffer == buffer => slice.start.get(d),
            _ => None,
        });
        self.ins.iter().any(given) || starts.any(|start| !matches!(start, Expr::Int(_)))
    }

    /// What adjacent slots must hold for a concatenation. A value that occurs again, and boxes of one value that lie to
    /// each other otherwise than in that value, have slots of their own.
    fn side_by_side(&self, node: &TensorNode, dim: usize, access: usize, buffer: BufferId) -> Vec<Demand> {
        let operands: Vec<Id> = node.operands.iter().map(|&o| self.egraph.find(o)).collect();
        // Where a value would begin within the concatenation if the operand is a box of it: all such places.
        let mut begins: BTreeMap<Id, BTreeSet<Vec<i64>>> = BTreeMap::new();
        let mut boxes: Vec<Vec<Id>> = Vec::with_capacity(operands.len());
        let mut along = 0;
        for &operand in &operands {
            let mut of = Vec::new();
            for n in &self.egraph[operand].nodes {
                if let OpKind::Slice { start, .. } = n.op() {
                    let mut begin: Vec<i64> = start[..access].to_vec();
                    begin[dim] -= along;
                    let value = self.egraph.find(n.operands[0]);
                    begins.entry(value).or_default().insert(begin);
                    of.push(value);
                }
            }
            boxes.push(of);
            along += self.egraph[operand].data.shape.dims[dim] as i64;
        }
        let mut copies: BTreeMap<Id, usize> = BTreeMap::new();
        let operands = operands.into_iter().zip(&boxes);
        operands
            .map(|(operand, of)| {
                let copy = copies.entry(operand).or_insert(0);
                *copy += 1;
                let moved = of.iter().any(|value| begins.get(value).is_some_and(|places| places.len() > 1));
                if moved || *copy > 1 {
                    Demand::Made(operand, buffer, *copy)
                } else {
                    Demand::OnChip(operand, buffer)
                }
            })
            .collect()
    }

    fn store(&self, class: Id, place: &Layout) -> Vec<(Choice, Vec<Demand>, u64)> {
        let matching = self.matching();
        let mut found = Vec::new();
        for (class, place) in self.destinations(class, place) {
            let look = self.look(class);
            for matcher in self.matchers.iter().filter(|m| m.may_store(&look)) {
                let matches = matching.store(matcher, class, &place);
                found.extend(matches.into_iter().map(|m| self.instruction(m, 0)));
            }
            for node in &self.egraph[class].nodes {
                let OpKind::Concatenate { dim } = node.op() else { continue };
                let lens: Vec<u64> =
                    node.operands.iter().map(|&o| self.egraph[o].data.shape.dims[*dim]).collect();
                let parts: Option<Vec<Demand>> = node
                    .operands
                    .iter()
                    .enumerate()
                    .map(|(k, &o)| place.part(*dim, &lens, k).map(|v| Demand::Store(self.egraph.find(o), v)))
                    .collect();
                if let Some(parts) = parts {
                    found.push((Choice::Parts, parts, 0));
                }
            }
        }
        let mut distinct: Vec<(Choice, Vec<Demand>, u64)> = Vec::with_capacity(found.len());
        for option in found {
            if !distinct.contains(&option) {
                distinct.push(option);
            }
        }
        distinct
    }

    /// Storing a class to a place also means storing what it is a re-view of to the place seen through that operator.
    fn destinations(&self, class: Id, place: &Layout) -> Vec<(Id, Layout)> {
        let first = (self.egraph.find(class), place.clone());
        let mut seen = BTreeSet::from([first.clone()]);
        let mut all = vec![first];
        let mut next = 0;
        while next < all.len() && all.len() < DESTINATIONS {
            let (class, place) = all[next].clone();
            next += 1;
            for node in &self.egraph[class].nodes {
                let [x] = node.operands[..] else { continue };
                let x = self.egraph.find(x);
                let from = &self.egraph[x].data.shape;
                if let Some(place) = place.back_through(node.op(), from)
                    && seen.insert((x, place.clone()))
                {
                    all.push((x, place));
                }
            }
        }
        all
    }
}

impl DemandGraph {
    fn index(&mut self, demand: Demand) -> usize {
        let entry = self.demands.entry(demand);
        let index = entry.index();
        entry.or_default();
        index
    }

    /// The buffer that a demand names.
    pub(crate) fn buffer(&self, demand: usize) -> Option<BufferId> {
        self.demands.get_index(demand)?.0.buffer()
    }

    pub(crate) fn options(&self, demand: usize) -> &[Alternative] {
        &self.demands[demand]
    }

    /// For every demand whether it can be met, without circles.
    pub(crate) fn meetable(&self) -> Vec<bool> {
        let n = self.demands.len();
        let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n];
        let mut missing: Vec<Vec<usize>> = Vec::with_capacity(n);
        let mut met = vec![false; n];
        let mut todo = Vec::new();
        for (d, options) in self.demands.values().enumerate() {
            for (k, option) in options.iter().enumerate() {
                option.needs.iter().for_each(|&need| users[need].push((d, k)));
            }
            missing.push(options.iter().map(|o| o.needs.len()).collect());
            if options.iter().any(|o| o.needs.is_empty()) {
                met[d] = true;
                todo.push(d);
            }
        }
        while let Some(d) = todo.pop() {
            for &(user, option) in &users[d] {
                missing[user][option] -= 1;
                if missing[user][option] == 0 && !std::mem::replace(&mut met[user], true) {
                    todo.push(user);
                }
            }
        }
        met
    }
}
