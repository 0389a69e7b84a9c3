//! Matching a generated rule against an e-graph: which instructions with which computational attributes compute a class,
//! and from what. Knows the rules as data only.

use super::closed;
use super::facts::{Source, TensorGraph, Value};
use super::language::{ConstId, TensorNode};
use super::matcher::{Form, Matcher, Target};
use super::polynomial::{Polynomial, Solution};
use super::symbolic::SymbolicView;
use super::view::Layout;
use act_hlo::{DotDims, ElemType, Literal, OpKind, Shape};
use act_isa::constant::int_scalar;
use act_isa::{Affine, AttrVal, Buffer, BufferId, Env, InstrId, Isa, Slice, Space, SymConst, SymOp, View};
use egg::Id;

/// Matches kept per rule and class.
pub(super) const MATCHES: usize = 64;
/// Largest alignment that a segment of d0 has.
const SEGMENT_ALIGN: u64 = 16;

/// Where an instruction takes an input from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Input {
    /// The class, in this buffer.
    OnChip(Id, BufferId),
    /// Bytes of d0: the instruction's window.
    Hbm { source: Source, window: View },
    /// A window over bytes that all belong to equal elements, placed among the constants.
    Fill { scalar: ConstId, window: View },
}

/// A partially instantiated instruction that computes a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Match {
    pub(crate) instr: InstrId,
    pub(crate) alpha: Vec<AttrVal>,
    pub(crate) inputs: Vec<Input>,
    /// Lengths of the output's slot; empty for a store.
    pub(crate) lens: Vec<u64>,
    /// The window written, for an instruction that stores.
    pub(crate) store: Option<View>,
    /// Cost in cycles.
    pub(crate) cost: u64,
    /// Where the instruction has several outputs.
    pub(crate) wanted: Option<Wanted>,
}

/// One of several outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub(crate) output: usize,
    /// Buffer and lengths of the first output's slot.
    first: (Option<BufferId>, Vec<u64>),
}

/// An instruction that is executed for any of its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Execution {
    /// As if for its first output.
    pub(crate) first: Match,
    /// Of the first output; `None` in d0.
    pub(crate) buffer: Option<BufferId>,
}

impl Match {
    /// Which of several outputs is wanted, and the instruction: one execution for all outputs with the same inputs.
    pub(crate) fn execution(&self) -> Option<(usize, Execution)> {
        let Wanted { output, first: (buffer, lens) } = self.wanted.clone()?;
        Some((output, Execution { first: Match { lens, wanted: None, ..self.clone() }, buffer }))
    }

    /// Whether some input is placed among the constants.
    pub(crate) fn reads_constants(&self) -> bool {
        self.inputs
            .iter()
            .any(|input| matches!(input, Input::Fill { .. } | Input::Hbm { source: Source::Constant(_), .. }))
    }
}

pub(crate) struct Matching<'a> {
    pub(crate) isa: &'a Isa,
    pub(crate) egraph: &'a TensorGraph,
    /// The results of the kernel that lie in d0, and where.
    pub(crate) stored: &'a [(Id, Layout)],
}

#[derive(Clone)]
pub(super) enum Bound {
    Class(Id, BufferId),
    View(Source, View),
    Fill(ConstId),
}

#[derive(Clone)]
pub(super) struct State<'a> {
    pub(super) solution: Solution<'a>,
    bound: Vec<Option<Id>>,
    /// Statements that are constants, with the classes that must have their values.
    closed: Vec<(usize, Id)>,
    pub(super) inputs: Vec<Option<Bound>>,
}

impl<'a> Matching<'a> {
    /// All ways in which the rule computes `class` in `buffer`.
    pub(crate) fn on_chip(&self, matcher: &Matcher, class: Id, buffer: BufferId) -> Vec<Match> {
        let mut found = Vec::new();
        if !self.allows(matcher) {
            return found;
        }
        for target in &matcher.targets {
            let Target::OnChip { output, root, buffer: out, lens } = target else { continue };
            if *out != buffer {
                continue;
            }
            let mut state = self.start(matcher);
            if self.slot(class, buffer, lens, &mut state.solution) {
                for state in self.rooted(matcher, *root, class, state) {
                    self.complete(matcher, *output, class, state, None, &mut found);
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// All ways in which the rule stores `class` to `place`.
    pub(crate) fn store(&self, matcher: &Matcher, class: Id, place: &Layout) -> Vec<Match> {
        let mut found = Vec::new();
        let Some(place) = &place.strided().filter(|_| self.allows(matcher)) else { return found };
        for target in &matcher.targets {
            let Target::Store { output, root, view } = target else { continue };
            for state in self.stores(matcher, *root, view, class, place, self.start(matcher)) {
                self.complete(matcher, *output, class, state, Some(place), &mut found);
            }
        }
        found.sort();
        found.dedup();
        found
    }

    fn allows(&self, matcher: &Matcher) -> bool {
        !matcher.loose || self.egraph.analysis.loose_floats()
    }

    fn start(&self, matcher: &Matcher) -> State<'a> {
        let instr = self.isa.instr(matcher.instr);
        State {
            solution: Solution::new(instr),
            bound: vec![None; matcher.patterns.len()],
            closed: Vec::new(),
            inputs: vec![None; instr.inputs.len()],
        }
    }

    /// The class fills a slot of the buffer with these lengths, as its own type or as the bits of another one.
    pub(super) fn slot(
        &self,
        class: Id,
        buffer: BufferId,
        lens: &[Polynomial],
        solution: &mut Solution<'_>,
    ) -> bool {
        let shape = &self.egraph[class].data.shape;
        let buffer = self.isa.buffer(buffer);
        let access = buffer.access.len();
        has_slot(buffer, shape)
            && lens.len() == access
            && lens
                .iter()
                .zip(&shape.dims)
                .all(|(p, &n)| i64::try_from(n).is_ok_and(|n| solution.equate(p, n)))
    }

    /// The ways in which a class is the value of statement `root`.
    pub(super) fn rooted(
        &self,
        matcher: &Matcher,
        root: usize,
        class: Id,
        state: State<'a>,
    ) -> Vec<State<'a>> {
        let mut states = Vec::new();
        let (elem, seen) = (matcher.patterns[root].elem, self.egraph[class].data.shape.elem);
        if elem == seen {
            self.solve(matcher, vec![(root, class)], state, &mut states);
        } else if elem.bits() == seen.bits() {
            self.moves(matcher, root, class, state, &mut states);
        }
        states
    }

    /// The ways in which a class is the value of statement `root`, which goes to `place`.
    pub(super) fn stores(
        &self,
        matcher: &Matcher,
        root: usize,
        view: &SymbolicView,
        class: Id,
        place: &View,
        mut state: State<'a>,
    ) -> Vec<State<'a>> {
        let bits = View { elem: view.elem, ..place.clone() };
        if view.elem.bits() != place.elem.bits() || !view.unify(&bits, &mut state.solution) {
            return Vec::new();
        }
        self.rooted(matcher, root, class, state)
    }

    /// The ways in which an instruction that only moves the bits of its result moves a class of another type of the same
    /// width.
    fn moves(
        &self,
        matcher: &Matcher,
        root: usize,
        class: Id,
        mut state: State<'a>,
        out: &mut Vec<State<'a>>,
    ) {
        let class = self.egraph.find(class);
        let pattern = &matcher.patterns[root];
        if !equate_dims(&pattern.dims, &self.egraph[class].data.shape, &mut state.solution) {
            return;
        }
        state.bound[root] = Some(class);
        for form in &pattern.forms {
            if matches!(form, Form::OnChip { .. } | Form::InHbm { .. }) {
                self.form(matcher, (root, form), class, &[], &state, out);
            }
        }
    }

    fn solve(
        &self,
        matcher: &Matcher,
        mut goals: Vec<(usize, Id)>,
        mut state: State<'a>,
        out: &mut Vec<State<'a>>,
    ) {
        if out.len() >= MATCHES {
            return;
        }
        let Some((stmt, class)) = goals.pop() else {
            out.push(state);
            return;
        };
        let class = self.egraph.find(class);
        let pattern = &matcher.patterns[stmt];
        let facts = &self.egraph[class].data;
        if facts.shape.elem != pattern.elem {
            return;
        }
        let splat_only = matches!(pattern.forms.as_slice(), [Form::Splat(_)]);
        if let Some(known) = state.bound[stmt].filter(|_| !splat_only) {
            // A repeated operand is one value; constants are compared by value below.
            if known == class {
                self.solve(matcher, goals, state, out);
            }
            return;
        }
        // Scalars broadcast implicitly beside full tensors (bounds of clamp), so a splat may have either rank.
        let either_rank = splat_only && (facts.shape.rank() == 0 || pattern.dims.is_empty());
        if !either_rank && !equate_dims(&pattern.dims, &facts.shape, &mut state.solution) {
            return;
        }
        state.bound[stmt] = Some(class);
        for form in &pattern.forms {
            self.form(matcher, (stmt, form), class, &goals, &state, out);
        }
    }

    /// The ways in which a class stands for a statement by one of its forms, and the other goals are met. The class has
    /// the statement's sizes and its type, or another one of the same width where the form only moves.
    fn form(
        &self,
        matcher: &Matcher,
        (stmt, form): (usize, &Form),
        class: Id,
        goals: &[(usize, Id)],
        state: &State<'a>,
        out: &mut Vec<State<'a>>,
    ) {
        let facts = &self.egraph[class].data;
        match form {
            Form::OnChip { input, buffer, lens } => {
                // The slice may stand in the semantics as its own type and re-typed; it is one value.
                let free = match &state.inputs[*input] {
                    None => true,
                    Some(Bound::Class(known, _)) => *known == class,
                    Some(_) => false,
                };
                if !free || !has_slot(self.isa.buffer(*buffer), &facts.shape) {
                    return;
                }
                let mut next = state.clone();
                if self.slot(class, *buffer, lens, &mut next.solution) {
                    next.inputs[*input] = Some(Bound::Class(class, *buffer));
                    self.solve(matcher, goals.to_vec(), next, out);
                }
            }
            Form::InHbm { input, view } => {
                for from in &facts.views {
                    let mut next = state.clone();
                    let Some(strided) = from.layout.strided() else { continue };
                    let strided = View { elem: view.elem, ..strided };
                    let fits = match &next.inputs[*input] {
                        None => true,
                        Some(Bound::View(source, known)) => {
                            *source == from.source && known.start == strided.start
                        }
                        Some(_) => false,
                    };
                    if fits && view.unify(&strided, &mut next.solution) {
                        next.inputs[*input] = Some(Bound::View(from.source, strided));
                        self.solve(matcher, goals.to_vec(), next, out);
                    }
                }
                let Some(value) = facts.value else { return };
                let mut next = state.clone();
                if next.inputs[*input].is_some() {
                    return;
                }
                match value {
                    Value::Splat(scalar) => {
                        if view.unify_lengths(&facts.shape.dims, &mut next.solution) {
                            next.inputs[*input] = Some(Bound::Fill(scalar));
                            self.solve(matcher, goals.to_vec(), next, out);
                        }
                    }
                    Value::Dense(id) => {
                        let dense = View { elem: view.elem, ..View::row_major(Space::Consts, &facts.shape) };
                        if view.unify(&dense, &mut next.solution) {
                            next.inputs[*input] = Some(Bound::View(Source::Constant(id), dense));
                            self.solve(matcher, goals.to_vec(), next, out);
                        }
                    }
                }
            }
            Form::Splat(constant) => {
                let Some(Value::Splat(value)) = facts.value else { return };
                let mut next = state.clone();
                let value = self.egraph.analysis.literal(value);
                if splat_matches(constant, value, &mut next.solution) {
                    self.solve(matcher, goals.to_vec(), next, out);
                }
            }
            Form::Closed => {
                // Compared when the attributes are known.
                if facts.value.is_some() {
                    let mut next = state.clone();
                    next.closed.push((stmt, class));
                    self.solve(matcher, goals.to_vec(), next, out);
                }
            }
            Form::Same { operand } => {
                let mut goals = goals.to_vec();
                goals.push((*operand, class));
                self.solve(matcher, goals, state.clone(), out);
            }
            Form::TimesOne { operand, attr } => {
                let mut next = state.clone();
                if next.solution.set_f32(*attr, 1f32.to_bits()) {
                    let mut goals = goals.to_vec();
                    goals.push((*operand, class));
                    self.solve(matcher, goals, next, out);
                }
            }
            Form::Node { operator, op, operands, commutes } => {
                for node in &self.egraph[class].nodes {
                    if node.head.operator != *operator || node.operands.len() != operands.len() {
                        continue;
                    }
                    let mut next = state.clone();
                    let ordered_sums = !self.egraph.analysis.loose_floats() && facts.shape.elem.is_float();
                    if !attributes_agree(op, node, ordered_sums, &mut next.solution) {
                        continue;
                    }
                    let mut ordered = goals.to_vec();
                    ordered.extend(operands.iter().copied().zip(node.operands.iter().copied()));
                    self.solve(matcher, ordered, next.clone(), out);
                    if *commutes && node.operands.first() != node.operands.last() {
                        let mut swapped = goals.to_vec();
                        let reversed = node.operands.iter().rev().copied();
                        swapped.extend(operands.iter().copied().zip(reversed));
                        self.solve(matcher, swapped, next, out);
                    }
                }
            }
        }
    }

    pub(super) fn instantiate(
        &self,
        matcher: &Matcher,
        state: State<'a>,
        (output, class): (usize, Id),
        place: Option<&View>,
    ) -> Option<Match> {
        let instr = self.isa.instr(matcher.instr);
        let alpha = self.attributes(matcher, &state)?;
        let ints: Vec<Option<i64>> = alpha.iter().map(|v| v.as_int()).collect();
        let env = Env { alpha: &ints, ..Env::default() };
        let mut inputs = Vec::with_capacity(state.inputs.len());
        for (slice, bound) in instr.inputs.iter().zip(state.inputs) {
            inputs.push(match (slice, bound?) {
                (Slice::OnChip(_), Bound::Class(class, buffer)) => Input::OnChip(class, buffer),
                (slice @ Slice::Hbm(_), Bound::View(source, view)) => {
                    let window = self.window(slice, env, view.space, view.start)?;
                    Input::Hbm { source, window }
                }
                (slice @ Slice::Hbm(_), Bound::Fill(scalar)) => {
                    let window = self.window(slice, env, Space::Consts, Affine::constant(0))?;
                    let width = self.egraph.analysis.literal(scalar).elem().bytes();
                    // Every element of the window must fall on a whole element of the fill.
                    let whole = |&(len, stride): &(u64, i64)| {
                        len == 1 || stride % width as i64 == 0 || (stride == 1 && len.is_multiple_of(width))
                    };
                    if width > 1 && !window.dims.iter().all(whole) && !dense(&window) {
                        return None;
                    }
                    Input::Fill { scalar, window }
                }
                _ => return None,
            });
        }
        let stored = instr.outputs.iter().find(|slice| matches!(slice, Slice::Hbm(_)));
        let store = match (place, stored) {
            (Some(place), Some(slice)) => Some(self.window(slice, env, place.space, place.start.clone())?),
            _ => None,
        };
        let lens = match instr.outputs.get(output)? {
            Slice::OnChip(slice) => self.egraph[class].data.shape.dims.get(..slice.len.len())?.to_vec(),
            Slice::Hbm(_) => Vec::new(),
        };
        let first = match instr.outputs.first()? {
            Slice::OnChip(slice) => {
                let lens = slice.len.iter().map(|len| len.eval(env).ok().and_then(|l| u64::try_from(l).ok()));
                (Some(slice.buffer), lens.collect::<Option<_>>()?)
            }
            Slice::Hbm(_) => (None, Vec::new()),
        };
        let wanted = (instr.outputs.len() > 1).then_some(Wanted { output, first });
        let cost = u64::try_from(instr.cost.eval(env).ok()?).ok()?;
        Some(Match { instr: matcher.origin, alpha, inputs, lens, store, cost, wanted })
    }

    /// All attributes, for which the constants of the semantics are those of the kernel.
    fn attributes(&self, matcher: &Matcher, state: &State<'a>) -> Option<Vec<AttrVal>> {
        let instr = self.isa.instr(matcher.instr);
        let mut solution = state.solution.clone();
        let mut wanted = Vec::with_capacity(state.closed.len());
        for &(stmt, class) in &state.closed {
            let facts = &self.egraph[class].data;
            let literal = self.egraph.analysis.materialise(facts.value?, &facts.shape)?;
            let open: Vec<u16> = closed::attributes(instr, stmt)
                .into_iter()
                .filter(|k| solution.ints().get(usize::from(*k)).is_some_and(Option::is_none))
                .collect();
            if let [k] = open[..] {
                let low = solution.least(k)?;
                let found = closed::solve(instr, stmt, solution.ints(), solution.known(), (k, low), &literal);
                if let Some(v) = found
                    && !solution.set_int(k, v)
                {
                    return None;
                }
            }
            wanted.push((stmt, literal));
        }
        let alpha = solution.finish(&matcher.feasibility)?;
        let ints: Vec<Option<i64>> = alpha.iter().map(|v| v.as_int()).collect();
        let known: Vec<Option<AttrVal>> = alpha.iter().copied().map(Some).collect();
        let equal = |(stmt, literal): &(usize, Literal)| {
            closed::value(instr, *stmt, &ints, &known).as_ref() == Some(literal)
        };
        wanted.iter().all(equal).then_some(alpha)
    }

    /// The window of an HBM slice in a segment, when it keeps the alignment that the description demands.
    fn window(&self, slice: &Slice, env: Env<'_>, space: Space, start: Affine) -> Option<View> {
        let Slice::Hbm(window) = slice else { return None };
        let mut dims = Vec::with_capacity(window.dims.len());
        for (len, stride) in &window.dims {
            dims.push((u64::try_from(len.eval(env).ok()?).ok()?, stride.eval(env).ok()?));
        }
        let align = self.isa.hbm.align.max(1);
        let aligned = |v: i64| v % align as i64 == 0;
        let kept = align == 1
            || (align <= SEGMENT_ALIGN && aligned(start.c0) && start.ivs.iter().all(|&(_, k)| aligned(k)));
        kept.then_some(View { space, elem: ElemType::U8, dims, start })
    }
}

/// Whether a slot of the buffer may hold a value of this shape, as its own type or as the bits of another one.
pub(crate) fn has_slot(buffer: &Buffer, shape: &Shape) -> bool {
    let access = buffer.access.len();
    shape.elem.bits() == buffer.elem.bits()
        && shape.rank() == access + buffer.unit.len()
        && shape.dims[access..].iter().eq(&buffer.unit)
        && shape.dims.iter().zip(&buffer.access).all(|(len, capacity)| (1..=*capacity).contains(len))
}

/// One run of adjacent bytes.
fn dense(window: &View) -> bool {
    let mut step = 1i64;
    window.dims.iter().rev().all(|&(len, stride)| {
        let fits = len == 1 || stride == step;
        step = step.saturating_mul(len as i64);
        fits
    })
}

fn equate_dims(dims: &[Polynomial], shape: &Shape, solution: &mut Solution<'_>) -> bool {
    dims.len() == shape.rank()
        && dims.iter().zip(&shape.dims).all(|(p, &n)| i64::try_from(n).is_ok_and(|n| solution.equate(p, n)))
}

fn splat_matches(constant: &SymConst, value: &Literal, solution: &mut Solution<'_>) -> bool {
    match constant {
        SymConst::Literal(literal) => literal.splat_value().as_ref() == Some(value),
        SymConst::Int(expr) => {
            let reduced = expr.eval(Env { alpha: solution.ints(), ..Env::default() });
            match reduced {
                Ok(v) => int_scalar(value.elem(), v).is_ok_and(|literal| literal == *value),
                // The attribute is determined by the constant's value.
                Err(_) => integer_value(value).is_some_and(|v| solution.equate(&Polynomial::of(expr), v)),
            }
        }
        SymConst::F32Attr(k) => {
            value.elem() == ElemType::F32
                && <[u8; 4]>::try_from(value.bytes())
                    .is_ok_and(|bytes| solution.set_f32(*k, u32::from_le_bytes(bytes)))
        }
    }
}

/// The value of a scalar that is a whole number and has exactly the bits which that number has in its type.
fn integer_value(literal: &Literal) -> Option<i64> {
    let value = super::facts::real_value(literal)?;
    let whole = value as i64;
    (int_scalar(literal.elem(), whole).ok()? == *literal).then_some(whole)
}

/// The operator with its attributes in one order of the several that mean the same: what is reversed or reduced is a
/// set, of which dimensions of one element are no part where they are reversed; so are the pairs of contracted dimensions
/// where sums may be taken in any order.
fn in_order(op: OpKind<(), ()>, dims: &[u64], ordered_sums: bool) -> OpKind<(), ()> {
    match op {
        OpKind::Reverse { dims: mut over } => {
            over.retain(|&d| dims.get(d) != Some(&1));
            over.sort_unstable();
            OpKind::Reverse { dims: over }
        }
        OpKind::Reduce { dims: mut over, combiner } => {
            over.sort_unstable();
            OpKind::Reduce { dims: over, combiner }
        }
        OpKind::Dot(dims) if !ordered_sums => {
            let mut pairs: Vec<(usize, usize)> =
                dims.lhs_contracting.iter().copied().zip(dims.rhs_contracting.iter().copied()).collect();
            pairs.sort_unstable();
            let (lhs_contracting, rhs_contracting) = pairs.into_iter().unzip();
            OpKind::Dot(DotDims { lhs_contracting, rhs_contracting, ..dims })
        }
        op => op,
    }
}

/// Whether an e-node's operator is the pattern's: same operator, same attributes, sizes as the attributes solve them.
fn attributes_agree(
    pattern: &SymOp,
    node: &TensorNode,
    ordered_sums: bool,
    solution: &mut Solution<'_>,
) -> bool {
    fn plain<D, C>(op: &OpKind<D, C>) -> Option<OpKind<(), ()>> {
        op.try_map(|_| Ok::<_, std::convert::Infallible>(()), |_| Ok(())).ok()
    }
    fn sizes<D, C>(op: &OpKind<D, C>) -> Vec<&D> {
        match op {
            OpKind::Slice { start, limit, stride } => start.iter().chain(limit).chain(stride).collect(),
            OpKind::DynamicSlice { sizes } => sizes.iter().collect(),
            OpKind::Pad { low, high, interior } => low.iter().chain(high).chain(interior).collect(),
            _ => Vec::new(),
        }
    }
    let same = |op| in_order(op, &node.shape().dims, ordered_sums);
    plain(pattern).map(same) == plain(node.op()).map(same)
        && sizes(pattern)
            .into_iter()
            .zip(sizes(node.op()))
            .all(|(p, &v)| solution.equate(&Polynomial::of(p), v))
}
