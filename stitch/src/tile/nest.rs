//! Building the loop nest of a region for a choice of tile sizes: loops over the cut axes, ragged edges peeled, a split
//! contraction as prologue, body and epilogue around an accumulator that stays on chip (design, decision 6).

use super::axes::{Axes, AxisId};
use super::cut::{CutGraph, CutParam, TileExtent, cut, tile_view};
use super::grouped::{Group, with_groups};
use super::normalize::NormalRegion;
use super::pack::Packed;
use super::plan::{Nest, PlannedKernel, TilePlan};
use super::rebuild::with_parameters;
use super::segment::{AxisCut, Position};
use super::shared::with_shared_inputs;
use super::slots::{Blocks, SlotForm};
use super::steps::Steps;
use act_hlo::{GraphError, Node, NodeId};
use act_isa::{Affine, BufferId, LoopId, Phase, Place, TiledKernel, View};
use std::collections::BTreeMap;

/// A contraction that is summed over parts of its axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractionSplit {
    pub dot: NodeId,
    /// The contracted axes and how each is cut, the outermost loop first. At least one stays in the tiles' shapes.
    pub axes: Vec<(AxisId, AxisTile)>,
    /// The addition that takes the dot's result as its only user, done once in the prologue instead of after the sum.
    pub addend: Option<NodeId>,
    /// Buffer of the accumulator.
    pub buffer: BufferId,
    /// Dimensions of the buffer's slots. A sum of fewer has ones before its own, as if it lay in one of many tiles.
    pub rank: usize,
    /// Of what blocks the sum is made, where one instruction computes no more than a block of it.
    pub blocks: Option<Blocks>,
    /// The most of the innermost axis that one instruction contracts, where tiles have more.
    pub depth: Option<u64>,
}

/// Tile sizes and packing for a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TileChoice {
    /// Tile size of every parallel axis that is cut; an axis of tile 1 may be squeezed out of the tiles' shapes.
    pub tiles: BTreeMap<AxisId, AxisTile>,
    pub contraction: Option<ContractionSplit>,
    /// Per leaf: its tiles are packed by the host.
    pub packed_leaves: Vec<bool>,
    /// Per leaf: its blocks keep so many elements of the last contracted axis together, if that divides its tiles.
    pub leaf_groups: Vec<Option<(AxisId, u64)>>,
    /// Per root: its tiles are written packed and unpacked by the host.
    pub packed_results: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisTile {
    pub len: u64,
    pub squeezed: bool,
    /// A last tile that the axis does not fill is padded with zeros. All that has the axis must be packed.
    pub padded: bool,
    /// What whole tiles leave is one tile of a multiple of so many elements, and another of the rest.
    pub grain: u64,
}

impl AxisTile {
    /// One index at a time, in no dimension of the tiles.
    pub const ONE: AxisTile = AxisTile { squeezed: true, ..AxisTile::of(1) };

    /// Tiles of `len` elements and a rest.
    pub const fn of(len: u64) -> AxisTile {
        AxisTile { len, squeezed: false, padded: false, grain: 1 }
    }

    fn cut(self, size: u64) -> AxisCut {
        match self.padded {
            true => AxisCut::padded(size, self.len.max(1)),
            false => AxisCut::tiles(size, self.len.max(1), self.grain.max(1), self.squeezed),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NestError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("an address or size does not fit 63 bits")]
    TooLarge,
    #[error("the region has a dimension of size 0")]
    Empty,
    /// Ragged edges multiply the kernels of a nest.
    #[error("the tiles' ragged edges need more than {most} kernels")]
    TooManyKernels { most: usize },
}

/// Kernels of one nest: five ragged axes around a contraction in prologue, two bodies and epilogue. Every one is
/// compiled by itself.
pub const MOST_KERNELS: usize = 128;

/// Builds the nest, of `most_kernels` at the most. Loops are numbered from the outside in, in order of appearance.
///
/// # Errors
/// See [`NestError`].
pub fn build_nest(
    region: &NormalRegion,
    axes: &Axes,
    choice: &TileChoice,
    most_kernels: usize,
) -> Result<TilePlan, NestError> {
    if axes.axes.iter().any(|a| a.size == 0) {
        return Err(NestError::Empty);
    }
    let mut cuts: Vec<AxisCut> = axes.axes.iter().map(|a| AxisCut::whole(a.size)).collect();
    let mut order: Vec<AxisId> = Vec::new();
    for &root in region.graph.roots() {
        for &axis in axes.of(root) {
            if choice.tiles.contains_key(&axis) && !order.contains(&axis) {
                order.push(axis);
            }
        }
    }
    for &axis in &order {
        cuts[axis.0 as usize] = choice.tiles[&axis].cut(axes.axis(axis).size);
    }
    for &(axis, tile) in choice.contraction.iter().flat_map(|split| &split.axes) {
        cuts[axis.0 as usize] = tile.cut(axes.axis(axis).size);
    }
    let mut plan = TilePlan {
        nest: Nest::Seq(Vec::new()),
        kernels: Vec::new(),
        groups: 0,
        packed_bytes: region.gathered_bytes,
        consts: region.consts.clone(),
    };
    let pack = |view: &View, node: NodeId, group: Option<Group>, wanted: bool, scratch: &mut u64| match wanted
    {
        true => Packed::reserve(view, axes.of(node), &cuts, group, region.segments.packed(), scratch)
            .map(Some)
            .ok_or(NestError::TooLarge),
        false => Ok(None),
    };
    let mut packed_leaves: Vec<Option<Packed>> = Vec::new();
    // The leaves whose blocks are not those of one before.
    let mut copied = Vec::new();
    for (k, (leaf, &node)) in region.leaves.iter().zip(region.graph.params()).enumerate() {
        let wanted = choice.packed_leaves.get(k).copied().unwrap_or(false);
        let group = choice.leaf_groups.get(k).copied().flatten().and_then(|(axis, size)| {
            let cut = &cuts[axis.0 as usize];
            let whole = !cut.squeezed && cut.segments.iter().all(|segment| segment.len.is_multiple_of(size));
            let dim = axes.of(node).iter().position(|&own| own == axis)?;
            whole.then_some(Group { dim, size })
        });
        let before =
            packed_leaves.iter().flatten().find(|p| p.holds(&leaf.view, axes.of(node), group)).cloned();
        copied.push(wanted && before.is_none());
        packed_leaves.push(match before {
            Some(before) if wanted => Some(before),
            _ => pack(&leaf.view, node, group, wanted, &mut plan.packed_bytes)?,
        });
    }
    let mut packed_results = Vec::new();
    for (k, (view, &node)) in region.results.iter().zip(region.graph.roots()).enumerate() {
        let wanted = choice.packed_results.get(k).copied().unwrap_or(false);
        packed_results.push(pack(view, node, None, wanted, &mut plan.packed_bytes)?);
    }
    let gather = |(from, to): &(View, View)| Nest::HostCopy { from: from.clone(), to: to.clone() };
    let mut copies: Vec<Nest> = region.gathers.iter().map(gather).collect();
    let zero_at = region.consts.len().next_multiple_of(ZERO_ALIGN);
    for ((packed, leaf), copied) in packed_leaves.iter().zip(&region.leaves).zip(copied) {
        let Some(packed) = packed.as_ref().filter(|_| copied) else { continue };
        let zero = View {
            space: region.segments.consts(),
            elem: leaf.view.elem,
            dims: Vec::new(),
            start: Affine::constant(zero_at as i64),
        };
        let zeros = packed.zeros(&cuts, &zero).ok_or(NestError::TooLarge)?;
        if !zeros.is_empty() {
            plan.consts.resize(zero_at + ZERO_ALIGN, 0);
        }
        for (from, to) in zeros {
            copies.push(Nest::HostCopy { from, to });
        }
        for (from, to) in packed.copies(&cuts).ok_or(NestError::TooLarge)? {
            copies.push(Nest::HostCopy { from, to });
        }
    }
    let mut builder = Builder {
        region,
        axes,
        choice,
        order,
        positions: vec![Position::first(); cuts.len()],
        cuts,
        packed_leaves,
        packed_results,
        plan,
        loops: 0,
        most_kernels,
    };
    let body = builder.loops_from(0)?;
    copies.push(body);
    for packed in builder.packed_results.iter().flatten() {
        for (to, from) in packed.copies(&builder.cuts).ok_or(NestError::TooLarge)? {
            copies.push(Nest::HostCopy { from, to });
        }
    }
    builder.plan.nest = sequence(copies);
    Ok(builder.plan)
}

/// Alignment and size of the zero that stands behind a region's constants where padding needs one, in bytes.
const ZERO_ALIGN: usize = 16;

fn sequence(mut parts: Vec<Nest>) -> Nest {
    if parts.len() == 1 { parts.remove(0) } else { Nest::Seq(parts) }
}

struct Builder<'a> {
    region: &'a NormalRegion,
    axes: &'a Axes,
    choice: &'a TileChoice,
    order: Vec<AxisId>,
    cuts: Vec<AxisCut>,
    positions: Vec<Position>,
    packed_leaves: Vec<Option<Packed>>,
    packed_results: Vec<Option<Packed>>,
    plan: TilePlan,
    loops: u32,
    most_kernels: usize,
}

impl Builder<'_> {
    fn fresh_loop(&mut self) -> LoopId {
        self.loops += 1;
        LoopId(self.loops - 1)
    }

    /// The loops over `order[depth..]` and all that is inside.
    fn loops_from(&mut self, depth: usize) -> Result<Nest, NestError> {
        let Some(&axis) = self.order.get(depth) else { return self.tile() };
        let segments = self.cuts[axis.0 as usize].segments.clone();
        let mut parts = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            if segment.trip == 1 {
                self.positions[axis.0 as usize] = Position { segment: number, tile: Affine::constant(0) };
                parts.push(self.loops_from(depth + 1)?);
            } else {
                let iv = self.fresh_loop();
                let tile = Affine { c0: 0, ivs: vec![(iv, 1)] };
                self.positions[axis.0 as usize] = Position { segment: number, tile };
                let body = Box::new(self.loops_from(depth + 1)?);
                parts.push(Nest::For { iv, trip: segment.trip, parallel: true, body });
            }
        }
        Ok(sequence(parts))
    }

    /// What is done for one tile of the results.
    fn tile(&mut self) -> Result<Nest, NestError> {
        let split = self.choice.contraction.clone();
        let steps = |s: &ContractionSplit| -> u64 {
            let along = |axis: AxisId| -> u64 {
                self.cuts[axis.0 as usize].segments.iter().map(|segment| segment.trip).sum()
            };
            s.axes.iter().fold(1, |product, &(axis, _)| product.saturating_mul(along(axis)))
        };
        match split {
            Some(split) if steps(&split) > 1 => self.split_contraction(&split),
            _ => {
                let roots = self.region.graph.roots().to_vec();
                let kernel = self.kernel(&roots, None, Phase::Whole, None)?;
                self.leaf(kernel, None)
            }
        }
    }

    fn split_contraction(&mut self, split: &ContractionSplit) -> Result<Nest, NestError> {
        let group = self.plan.groups;
        self.plan.groups += 1;
        let accumulated = split.addend.unwrap_or(split.dot);
        let on_chip = || Place::OnChip { buf: split.buffer, slot: None, carried: None };
        let mut parts = Vec::new();

        self.first_step(split);
        let prologue = match (split.blocks, split.depth) {
            (None, None) => self.kernel(&[accumulated], None, Phase::Prologue, Some(on_chip()))?,
            _ => self.prologue_in_parts(split, on_chip())?,
        };
        parts.push(self.leaf(prologue, Some(group))?);
        self.bodies(split, 0, true, None, &mut parts)?;
        self.first_step(split);
        let roots = self.region.graph.roots().to_vec();
        let epilogue = self.kernel(&roots, Some((accumulated, on_chip())), Phase::Epilogue, None)?;
        parts.push(self.leaf(epilogue, Some(group))?);
        Ok(Nest::Seq(parts))
    }

    fn first_step(&mut self, split: &ContractionSplit) {
        for &(axis, _) in &split.axes {
            self.positions[axis.0 as usize] = Position::first();
        }
    }

    /// The steps over `split.axes[depth..]`, inside the loop `inside` of the contraction if any. `begun`: the axes
    /// before stand at their first tiles, so that the very first step of all has been the prologue's.
    fn bodies(
        &mut self,
        split: &ContractionSplit,
        depth: usize,
        begun: bool,
        inside: Option<LoopId>,
        parts: &mut Vec<Nest>,
    ) -> Result<(), NestError> {
        let Some(&(axis, _)) = split.axes.get(depth) else {
            if !begun {
                let group = self.plan.groups - 1;
                let place = Place::OnChip { buf: split.buffer, slot: None, carried: inside };
                let body = self.body(split, place)?;
                parts.push(self.leaf(body, Some(group))?);
            }
            return Ok(());
        };
        let axis = axis.0 as usize;
        for (number, segment) in self.cuts[axis].segments.clone().into_iter().enumerate() {
            let first = begun && number == 0;
            if first {
                self.positions[axis] = Position::first();
                self.bodies(split, depth + 1, true, inside, parts)?;
            }
            let done = u64::from(first);
            match segment.trip - done {
                0 => {}
                1 => {
                    let tile = Affine::constant(done as i64);
                    self.positions[axis] = Position { segment: number, tile };
                    self.bodies(split, depth + 1, false, inside, parts)?;
                }
                trip => {
                    let iv = self.fresh_loop();
                    let tile = Affine { c0: done as i64, ivs: vec![(iv, 1)] };
                    self.positions[axis] = Position { segment: number, tile };
                    let mut steps = Vec::new();
                    self.bodies(split, depth + 1, false, Some(iv), &mut steps)?;
                    let body = Box::new(sequence(steps));
                    parts.push(Nest::For { iv, trip, parallel: false, body });
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, kernel: TiledKernel, group: Option<usize>) -> Result<Nest, NestError> {
        if self.plan.kernels.len() >= self.most_kernels {
            return Err(NestError::TooManyKernels { most: self.most_kernels });
        }
        self.plan.kernels.push(PlannedKernel { kernel, group });
        Ok(Nest::Kernel(self.plan.kernels.len() - 1))
    }

    fn extents(&self) -> Result<Vec<TileExtent>, NestError> {
        let extents = self.positions.iter().zip(&self.cuts).map(|(position, cut)| position.extent(cut));
        extents.collect::<Option<_>>().ok_or(NestError::TooLarge)
    }

    /// The kernel that computes `roots` at the current positions, from `given` (an accumulated value and its place) if
    /// any, into `out` or, when absent, the region's results.
    fn kernel(
        &self,
        roots: &[NodeId],
        given: Option<(NodeId, Place)>,
        phase: Phase,
        out: Option<Place>,
    ) -> Result<TiledKernel, NestError> {
        let extents = self.extents()?;
        let (value, place) = given.unzip();
        let given: Vec<NodeId> = value.into_iter().collect();
        let mut part = cut(&self.region.graph, self.axes, &extents, roots, &given)?;
        for root in roots {
            let value = part.node_of[root];
            let root = if out.is_some() { self.slot_form().put(&mut part.graph, value)? } else { value };
            part.graph.add_root(root)?;
        }
        let ins = self.places(&part, &extents, place.as_ref())?;
        let outs = match out {
            Some(place) => vec![place],
            None => {
                let results = self.region.results.iter().zip(&self.packed_results).zip(roots);
                results
                    .map(|((view, packed), &root)| self.view(view, packed.as_ref(), root, &extents))
                    .map(|view| view.map(Place::Hbm))
                    .collect::<Result<_, _>>()?
            }
        };
        let accumulators = vec![None; outs.len()];
        let kernel = TiledKernel { graph: part.graph, ins, accumulators, outs, phase };
        self.finished(self.given_in_slots(kernel)?, &part.params)
    }

    /// The kernel that adds one more step of the contraction to the accumulator.
    fn body(&self, split: &ContractionSplit, place: Place) -> Result<TiledKernel, NestError> {
        let (mut parts, dot, factors) = self.factors(split, None)?;
        let mut ins = self.places(&parts, &self.extents()?, None)?;
        let steps = self.steps(split);
        let slot = parts.graph.parameter(steps.form.shape(&dot.shape));
        ins.push(place.clone());
        let root = steps.add_product(&mut parts.graph, Some(slot), &dot, factors)?;
        parts.graph.add_root(root)?;
        let accumulators = vec![Some(ins.len() - 1)];
        let (outs, phase) = (vec![place], Phase::Body);
        self.finished(TiledKernel { graph: parts.graph, ins, outs, accumulators, phase }, &parts.params)
    }

    /// The kernel that does the first step of a contraction whose sum is made of parts.
    fn prologue_in_parts(&self, split: &ContractionSplit, place: Place) -> Result<TiledKernel, NestError> {
        let addend = split.addend.map(|sum| {
            let operands = &self.region.graph.node(sum).operands;
            operands.iter().copied().find(|&o| o != split.dot).unwrap_or(sum)
        });
        let (mut parts, dot, factors) = self.factors(split, addend)?;
        let ins = self.places(&parts, &self.extents()?, None)?;
        let steps = self.steps(split);
        let before =
            addend.map(|addend| steps.form.put(&mut parts.graph, parts.node_of[&addend])).transpose()?;
        let root = steps.add_product(&mut parts.graph, before, &dot, factors)?;
        parts.graph.add_root(root)?;
        let (outs, accumulators, phase) = (vec![place], vec![None], Phase::Prologue);
        self.finished(TiledKernel { graph: parts.graph, ins, outs, accumulators, phase }, &parts.params)
    }

    /// The graph of the dot's operands, and of one more value, at the current positions; the dot as it is there, and its
    /// operands.
    fn factors(
        &self,
        split: &ContractionSplit,
        more: Option<NodeId>,
    ) -> Result<(CutGraph, Node, [NodeId; 2]), NestError> {
        let extents = self.extents()?;
        let whole = cut(&self.region.graph, self.axes, &extents, &[split.dot], &[])?;
        let dot = whole.graph.node(whole.node_of[&split.dot]).clone();
        let operands = &self.region.graph.node(split.dot).operands;
        let roots: Vec<NodeId> = operands.iter().copied().chain(more).collect();
        let parts = cut(&self.region.graph, self.axes, &extents, &roots, &[])?;
        let factors = [parts.node_of[&operands[0]], parts.node_of[&operands[1]]];
        Ok((parts, dot, factors))
    }

    fn steps(&self, split: &ContractionSplit) -> Steps {
        Steps { form: self.slot_form(), depth: split.depth }
    }

    /// How sums lie on chip from one kernel to the next.
    fn slot_form(&self) -> SlotForm {
        let split = self.choice.contraction.as_ref();
        split.map_or_else(SlotForm::default, |split| SlotForm { rank: split.rank, blocks: split.blocks })
    }

    /// The kernel with what it is given on chip in the shape of its slot.
    fn given_in_slots(&self, kernel: TiledKernel) -> Result<TiledKernel, GraphError> {
        let form = self.slot_form();
        let graph = with_parameters(&kernel.graph, |graph, k, id, _| {
            let shape = kernel.graph.shape(id);
            match kernel.ins[k] {
                Place::Hbm(_) => Ok(graph.parameter(shape.clone())),
                Place::OnChip { .. } => {
                    let slot = graph.parameter(form.shape(shape));
                    form.take(graph, slot, shape)
                }
            }
        })?;
        Ok(TiledKernel { graph, ..kernel })
    }

    /// The kernel with its inputs as they are packed. `params` are those that the cut made, the first ones.
    fn finished(&self, kernel: TiledKernel, params: &[CutParam]) -> Result<TiledKernel, NestError> {
        let group = |param: &CutParam| match param {
            CutParam::Leaf(k) => self.packed_leaves[*k].as_ref()?.tile_group(&self.cuts),
            CutParam::Value(_) => None,
        };
        let groups: Vec<Option<Group>> = params.iter().map(group).collect();
        Ok(with_shared_inputs(with_groups(kernel, &groups)?)?)
    }

    fn places(
        &self,
        part: &CutGraph,
        extents: &[TileExtent],
        value: Option<&Place>,
    ) -> Result<Vec<Place>, NestError> {
        let place = |param: &CutParam| match param {
            CutParam::Leaf(k) => {
                let node = self.region.graph.params()[*k];
                self.view(&self.region.leaves[*k].view, self.packed_leaves[*k].as_ref(), node, extents)
                    .map(Place::Hbm)
            }
            // Only the accumulated value is given, and its place with it.
            CutParam::Value(_) => value.cloned().ok_or(NestError::TooLarge),
        };
        part.params.iter().map(place).collect()
    }

    fn view(
        &self,
        view: &View,
        packed: Option<&Packed>,
        node: NodeId,
        extents: &[TileExtent],
    ) -> Result<View, NestError> {
        match packed {
            Some(packed) => packed.tile(&self.cuts, &self.positions),
            None => tile_view(view, self.axes.of(node), extents),
        }
        .ok_or(NestError::TooLarge)
    }
}
