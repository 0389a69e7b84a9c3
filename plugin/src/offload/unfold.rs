//! Convolutions as products. What a convolution sums over are windows of the image, which overlap; a window is a
//! view of the image's memory with strides of its own, so that nothing is copied: a dot of windows and kernel takes
//! the convolution's place. Padding, spreading and turning around stay operations of the host in front of it.
//!
//! The module unfolded here is for selection only. A convolution whose product no region takes is put back.

use super::convolution::{Along, Convolution, Roles};
use super::refusal::RefusalReason;
use super::scope::Scope;
use super::window::{self, window};
use act_hlo::proto::convert::{Inexpressible, Why};
use act_hlo::proto::instruction::field;
use act_hlo::proto::{
    ArrayShape, Computation, Field, FreshNames, HloModule, HloShape, Instruction, Message, ProtoError,
};
use act_hlo::{Layout, Literal, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// In which form a convolution's operands are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// Before XLA converts them to the type that its own code computes in.
    Narrow,
    /// As they are.
    Plain,
}

/// Convolutions by the id of their instruction, and their forms; those that are not here stay as they are.
pub(crate) type Forms = BTreeMap<i64, Form>;

/// A module with convolutions unfolded.
#[derive(Debug)]
pub(crate) struct Unfolded {
    pub(crate) module: HloModule,
    /// The dot of every convolution.
    pub(crate) dots: BTreeMap<i64, i64>,
    /// The convolution of every window.
    windows: BTreeMap<i64, i64>,
}

impl Unfolded {
    /// Convolutions whose windows are still there in what the module has become.
    pub(crate) fn left(&self, module: &HloModule) -> BTreeSet<i64> {
        let instructions = module.computations().flat_map(Computation::instructions);
        let windows = instructions.filter(|i| window::strides(i).is_some());
        windows.filter_map(|i| self.windows.get(&i.id()).copied()).collect()
    }
}

/// All convolutions of a module.
pub(crate) fn convolutions(module: &HloModule) -> Forms {
    let instructions = module.computations().flat_map(Computation::instructions);
    instructions.filter(|i| i.opcode() == "convolution").map(|i| (i.id(), Form::Narrow)).collect()
}

/// Unfolds these convolutions wherever regions are looked for. Those that have no such form are dropped from `forms`,
/// and the reason is told to `against`.
///
/// # Errors
/// An instruction that cannot be read.
pub(crate) fn unfold(
    module: &HloModule,
    forms: &mut Forms,
    against: &mut BTreeMap<i64, RefusalReason>,
) -> Result<Unfolded, RefusalReason> {
    let mut out = Unfolded { module: module.clone(), dots: BTreeMap::new(), windows: BTreeMap::new() };
    if forms.is_empty() {
        return Ok(out);
    }
    let mut fresh = module.fresh();
    let scope = Scope::of(module)?;
    for (id, _) in &scope.roles {
        let computation = module.computation(*id).ok_or(ProtoError::NoSuchComputation(*id))?;
        let mut body = Body {
            module,
            computation: *id,
            forms,
            fresh: &mut fresh,
            instructions: Vec::new(),
            at: BTreeMap::new(),
            fused: Vec::new(),
            out: &mut out,
            refused: BTreeMap::new(),
        };
        for instruction in computation.instructions() {
            body.instruction(instruction)?;
        }
        let Body { instructions, fused, refused, .. } = body;
        for (site, reason) in refused {
            forms.remove(&site);
            against.insert(site, reason);
        }
        for computation in fused {
            out.module.insert_computation(computation, *id)?;
        }
        let place = out.module.computation_mut(*id).ok_or(ProtoError::NoSuchComputation(*id))?;
        place.set_instructions(instructions);
    }
    out.module.remove_unreachable_computations()?;
    Ok(out)
}

/// A computation being rebuilt.
struct Body<'a> {
    module: &'a HloModule,
    computation: i64,
    forms: &'a Forms,
    fresh: &'a mut FreshNames,
    instructions: Vec<Instruction>,
    /// Index of every instruction by its id.
    at: BTreeMap<i64, usize>,
    /// Bodies of new fusions.
    fused: Vec<Computation>,
    out: &'a mut Unfolded,
    /// Convolutions that stay, and why.
    refused: BTreeMap<i64, RefusalReason>,
}

impl Body<'_> {
    fn push(&mut self, instruction: Instruction) -> i64 {
        let id = instruction.id();
        self.at.insert(id, self.instructions.len());
        self.instructions.push(instruction);
        id
    }

    fn fresh(&mut self, base: &str) -> (i64, String) {
        (self.fresh.instruction_id(self.computation), self.fresh.name(base))
    }

    fn get(&self, id: i64) -> Result<&Instruction, ProtoError> {
        self.at.get(&id).map(|&k| &self.instructions[k]).ok_or(ProtoError::NoSuchInstruction(id))
    }

    /// The array that an instruction computes, with its layout.
    fn array(&self, id: i64) -> Result<(ArrayShape, Layout), RefusalReason> {
        array(self.get(id)?)
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), RefusalReason> {
        match instruction.opcode() {
            "convolution" if self.forms.contains_key(&instruction.id()) => {
                self.convolution(instruction, instruction.id(), instruction.clone())?;
            }
            "fusion" | "call" => match self.openable(instruction)? {
                Some(callee) => self.open(instruction, &callee)?,
                None => {
                    self.push(instruction.clone());
                }
            },
            _ => {
                self.push(instruction.clone());
            }
        }
        Ok(())
    }

    /// The callee of a fusion or call with a convolution to unfold in it, when its instructions can stand by
    /// themselves: one plain result, nothing called or ordered.
    fn openable(&self, caller: &Instruction) -> Result<Option<Computation>, ProtoError> {
        let [callee] = caller.called_computation_ids()?[..] else { return Ok(None) };
        let Some(callee) = self.module.computation(callee) else { return Ok(None) };
        let wanted = callee.instructions().any(|i| self.forms.contains_key(&i.id()));
        if !wanted || callee.root()?.opcode() == "tuple" || !caller.control_predecessor_ids()?.is_empty() {
            return Ok(None);
        }
        // A call that is more than the convolution is one function of XLA's for a reason.
        let only = callee.instructions().all(|i| ["parameter", "convolution"].contains(&i.opcode()));
        let plain = |i: &Instruction| -> Result<bool, ProtoError> {
            Ok(i.called_computation_ids()?.is_empty() && i.control_predecessor_ids()?.is_empty())
        };
        for inner in callee.instructions() {
            if !plain(inner)? {
                return Ok(None);
            }
        }
        Ok((caller.opcode() == "fusion" || only).then(|| callee.clone()))
    }

    /// Puts a callee's instructions in its caller's place.
    fn open(&mut self, caller: &Instruction, callee: &Computation) -> Result<(), RefusalReason> {
        let operands = caller.operand_ids()?;
        let mut ids: BTreeMap<i64, i64> = BTreeMap::new();
        for inner in callee.instructions() {
            if inner.opcode() == "parameter" {
                let operand = usize::try_from(inner.parameter_number()).ok().and_then(|n| operands.get(n));
                let operand = *operand.ok_or(ProtoError::NoSuchInstruction(inner.id()))?;
                ids.insert(inner.id(), operand);
                continue;
            }
            let mut copy = inner.clone();
            let read = inner.operand_ids()?;
            let read: Option<Vec<i64>> = read.iter().map(|o| ids.get(o).copied()).collect();
            copy.set_operand_ids(&read.ok_or(ProtoError::NoSuchInstruction(inner.id()))?);
            if inner.id() == callee.root_id() {
                copy.set_id(caller.id());
                copy.set_name(caller.name());
            } else {
                let (id, name) = self.fresh(inner.name());
                copy.set_id(id);
                copy.set_name(&name);
            }
            ids.insert(inner.id(), copy.id());
            if inner.opcode() == "convolution" && self.forms.contains_key(&inner.id()) {
                self.convolution(inner, inner.id(), copy)?;
            } else {
                self.push(copy);
            }
        }
        Ok(())
    }

    /// Adds `standing`, which is convolution `site`, as a product; as it is, where it has no such form.
    fn convolution(
        &mut self,
        original: &Instruction,
        site: i64,
        standing: Instruction,
    ) -> Result<(), RefusalReason> {
        let before = self.instructions.len();
        let product = Convolution::read(original)
            .map_err(RefusalReason::from)
            .and_then(|convolution| self.product(&convolution, site, &standing));
        if let Err(reason) = product {
            // Nothing of a half-made product stays.
            self.instructions.truncate(before);
            self.at.retain(|_, at| *at < before);
            self.out.windows.retain(|_, of| *of != site);
            self.refused.insert(site, reason);
            self.push(standing);
        }
        Ok(())
    }

    fn product(
        &mut self,
        convolution: &Convolution,
        site: i64,
        standing: &Instruction,
    ) -> Result<(), RefusalReason> {
        let doubtful = |what: &str| {
            let why = Why::Attribute(what.to_owned());
            RefusalReason::from(Inexpressible { opcode: "convolution".to_owned(), why })
        };
        if !standing.control_predecessor_ids()?.is_empty() {
            return Err(RefusalReason::ControlEdge);
        }
        let [lhs, rhs] = standing.operand_ids()?[..] else { return Err(doubtful("operands")) };
        let (result, layout) = array(standing)?;
        let (Convolution { image, kernel, .. }, groups) = (convolution, convolution.groups);
        let size =
            |shape: &ArrayShape, d: usize| shape.shape.dims.get(d).copied().ok_or(doubtful("dim_labels"));
        let (channels, features) =
            (size(&self.array(rhs)?.0, kernel.feature)?, size(&self.array(rhs)?.0, kernel.batch)?);
        if groups > 1 && channels == 1 {
            return Err(RefusalReason::Depthwise);
        }
        if features % groups != 0 || size(&self.array(lhs)?.0, image.feature)? != channels * groups {
            return Err(doubtful("feature_group_count"));
        }
        let (lhs_elem, rhs_elem) = (self.array(lhs)?.0.shape.elem, self.array(rhs)?.0.shape.elem);
        let narrow = self.forms.get(&site) == Some(&Form::Narrow);
        let (lhs, rhs) = match narrow {
            true => (self.narrowed(lhs)?.unwrap_or(lhs), self.narrowed(rhs)?.unwrap_or(rhs)),
            false => (lhs, rhs),
        };
        let lhs = self.padded(lhs, image, &convolution.window)?;
        let rhs = self.turned(rhs, kernel, &convolution.window)?;

        // Windows: [group,] image, place..., tap..., channel.
        let (padded, place) = self.array(lhs)?;
        let step = place.byte_strides(&padded.shape);
        let grouped = groups > 1;
        let mut dims: Vec<(u64, i64)> = Vec::new();
        if grouped {
            dims.push((groups, times(step[image.feature], channels)?));
        }
        dims.push((size(&padded, image.batch)?, step[image.batch]));
        for (along, (&d, &o)) in
            convolution.window.iter().zip(image.spatial.iter().zip(&convolution.result.spatial))
        {
            let places = size(&result, o)?;
            if !stays_inside(along, places, size(&padded, d)?) {
                return Err(doubtful("window"));
            }
            dims.push((places, step[d].checked_mul(along.stride).ok_or(doubtful("stride"))?));
        }
        let taps = dims.len();
        for (along, &d) in convolution.window.iter().zip(&image.spatial) {
            let length = u64::try_from(along.size).map_err(|_| doubtful("window"))?;
            dims.push((length, step[d].checked_mul(along.dilation).ok_or(doubtful("rhs_dilate"))?));
        }
        dims.push((channels, step[image.feature]));
        let windows = self.window(site, lhs, &dims)?;
        let windows = self.widened(windows, lhs_elem)?;
        let lhs_contracting: Vec<usize> = (taps..dims.len()).collect();

        let (weights, rhs_contracting) = match grouped {
            false => {
                let order = kernel.spatial.iter().copied().chain([kernel.feature]).collect();
                (rhs, order)
            }
            true => {
                // [group, tap..., channel, feature]
                let (array, place) = self.array(rhs)?;
                let step = place.byte_strides(&array.shape);
                let per_group = features / groups;
                let mut dims = vec![(groups, times(step[kernel.batch], per_group)?)];
                for &d in kernel.spatial.iter().chain([&kernel.feature]) {
                    dims.push((size(&array, d)?, step[d]));
                }
                dims.push((per_group, step[kernel.batch]));
                let contracting = (1..dims.len() - 1).collect::<Vec<usize>>();
                (self.window(site, rhs, &dims)?, contracting)
            }
        };
        let weights = self.widened(weights, rhs_elem)?;
        let batch: &[usize] = if grouped { &[0] } else { &[] };
        let numbers = dot_dimensions(batch, &lhs_contracting, &rhs_contracting);
        self.dot(site, standing, convolution, (windows, weights), numbers, (&result, &layout))
    }

    /// The dot, laid out in memory as the convolution's result is, and the result's own dimensions over it.
    fn dot(
        &mut self,
        site: i64,
        standing: &Instruction,
        convolution: &Convolution,
        (lhs, rhs): (i64, i64),
        numbers: Message,
        (result, layout): (&ArrayShape, &Layout),
    ) -> Result<(), RefusalReason> {
        let grouped = usize::from(convolution.groups > 1);
        let Roles { batch, feature, spatial } = &convolution.result;
        let features = result.shape.dims[*feature];
        // [group,] image, place..., feature
        let mut dims: Vec<u64> = Vec::new();
        if grouped == 1 {
            dims.push(convolution.groups);
        }
        dims.push(result.shape.dims[*batch]);
        dims.extend(spatial.iter().map(|&d| result.shape.dims[d]));
        dims.push(features / convolution.groups);
        let last = dims.len() - 1;
        let mut minor_to_major = Vec::with_capacity(dims.len());
        for &d in &layout.minor_to_major {
            if d == *feature {
                minor_to_major.push(last);
                minor_to_major.extend((grouped == 1).then_some(0));
            } else if d == *batch {
                minor_to_major.push(grouped);
            } else {
                let at = spatial.iter().position(|&s| s == d).unwrap_or_default();
                minor_to_major.push(grouped + 1 + at);
            }
        }
        let layout = Layout { minor_to_major, tiles: Vec::new() };
        let own =
            ArrayShape { shape: Shape::new(result.shape.elem, dims), layout: Some(layout), exotic: false };
        let same = own.shape == result.shape && own.layout == result.layout;
        let (id, name) = match same {
            true => (standing.id(), standing.name().to_owned()),
            false => self.fresh(standing.name()),
        };
        let mut dot = Instruction::new(id, &name, "dot", &HloShape::Array(own), &[lhs, rhs]);
        dot.message_mut().set_message(field::DOT_DIMENSIONS, &numbers);
        dot.copy_provenance(standing);
        self.out.dots.insert(site, id);
        self.push(dot);
        if !same {
            let mut view =
                Instruction::new(standing.id(), standing.name(), "bitcast", &standing.shape()?, &[id]);
            view.copy_provenance(standing);
            self.push(view);
        }
        Ok(())
    }

    fn window(&mut self, site: i64, onto: i64, dims: &[(u64, i64)]) -> Result<i64, RefusalReason> {
        let shape = self.get(onto)?.shape()?;
        let elem = self.array(onto)?.0.shape.elem;
        let (id, name) = self.fresh("window");
        self.out.windows.insert(id, site);
        Ok(self.push(window(id, &name, elem, dims, onto, &shape)))
    }

    /// A value in the element type `elem`.
    fn widened(&mut self, value: i64, elem: act_hlo::ElemType) -> Result<i64, RefusalReason> {
        let (array, layout) = self.array(value)?;
        if array.shape.elem == elem {
            return Ok(value);
        }
        let shape = Shape::new(elem, array.shape.dims);
        let shape = HloShape::Array(ArrayShape { shape, layout: Some(layout), exotic: false });
        let (id, name) = self.fresh("convert");
        Ok(self.push(Instruction::new(id, &name, "convert", &shape, &[value])))
    }

    /// The image with its padding, its elements spread.
    fn padded(&mut self, image: i64, roles: &Roles, window: &[Along]) -> Result<i64, RefusalReason> {
        if window.iter().all(|w| (w.low, w.high, w.spread) == (0, 0, 1)) {
            return Ok(image);
        }
        let (array, layout) = self.array(image)?;
        let mut dims = array.shape.dims.clone();
        let mut config = vec![(0, 0, 0); dims.len()];
        let mut cut: Vec<(i64, i64)> = dims.iter().map(|&length| (0, length as i64)).collect();
        for (along, &d) in window.iter().zip(&roles.spatial) {
            let spread = (dims[d] as i64 - 1).max(0) * (along.spread - 1);
            let length = dims[d] as i64 + spread + along.low + along.high;
            // XLA generates no code for padding below zero, which its own passes have turned into slices by now.
            let (low, high) = (along.low.max(0), along.high.max(0));
            let (cut_low, cut_high) = (low - along.low, high - along.high);
            let extended = length.checked_add(cut_low + cut_high).ok_or(RefusalReason::UnknownLayout)?;
            dims[d] = u64::try_from(extended).map_err(|_| RefusalReason::UnknownLayout)?;
            config[d] = (low, high, along.spread - 1);
            cut[d] = (cut_low, extended - cut_high);
            if cut[d].0 > cut[d].1 {
                return Err(RefusalReason::UnknownLayout);
            }
        }
        let zero = Literal::zeros(Shape::scalar(array.shape.elem));
        let (id, name) = self.fresh("zero");
        let zero = Instruction::constant(id, &name, &zero).ok_or(RefusalReason::UnknownLayout)?;
        let zero = self.push(zero);
        let shape = Shape::new(array.shape.elem, dims);
        let shape = HloShape::Array(ArrayShape { shape, layout: Some(layout), exotic: false });
        let (id, name) = self.fresh("pad");
        let mut pad = Instruction::new(id, &name, "pad", &shape, &[image, zero]);
        let mut message = Message::default();
        for (low, high, interior) in config {
            let mut dim = Message::default();
            dim.set_int(1, low);
            dim.set_int(2, high);
            dim.set_int(3, interior);
            message.push(Field::bytes(1, dim.to_bytes()));
        }
        pad.message_mut().set_message(field::PADDING_CONFIG, &message);
        let padded = self.push(pad);
        self.cut(padded, &cut)
    }

    /// What is left of a value between a start and a limit in each dimension.
    fn cut(&mut self, value: i64, limits: &[(i64, i64)]) -> Result<i64, RefusalReason> {
        let (array, layout) = self.array(value)?;
        let elem = array.shape.elem;
        let whole: Vec<(i64, i64)> = array.shape.dims.iter().map(|&length| (0, length as i64)).collect();
        if whole == limits {
            return Ok(value);
        }
        let dims: Vec<u64> = limits.iter().map(|(start, limit)| (limit - start) as u64).collect();
        let shape = Shape::new(elem, dims);
        let shape = HloShape::Array(ArrayShape { shape, layout: Some(layout), exotic: false });
        let (id, name) = self.fresh("slice");
        let mut slice = Instruction::new(id, &name, "slice", &shape, &[value]);
        for &(start, limit) in limits {
            let mut dim = Message::default();
            dim.set_int(1, start);
            dim.set_int(2, limit);
            dim.set_int(3, 1);
            slice.message_mut().push(Field::bytes(field::SLICE_DIMENSIONS, dim.to_bytes()));
        }
        Ok(self.push(slice))
    }

    /// The kernel with the dimensions turned around that the window reverses.
    fn turned(&mut self, kernel: i64, roles: &Roles, window: &[Along]) -> Result<i64, RefusalReason> {
        let turned = window.iter().zip(&roles.spatial).filter(|(w, _)| w.reversed && w.size > 1);
        let dims: Vec<i64> = turned.map(|(_, &d)| d as i64).collect();
        if dims.is_empty() {
            return Ok(kernel);
        }
        let shape = self.get(kernel)?.shape()?;
        let (id, name) = self.fresh("reverse");
        let mut reverse = Instruction::new(id, &name, "reverse", &shape, &[kernel]);
        reverse.message_mut().set_ints(field::DIMENSIONS, &dims);
        Ok(self.push(reverse))
    }

    /// The value that `value` is a conversion of, possibly moved about afterwards, in the narrower type.
    fn narrowed(&mut self, value: i64) -> Result<Option<i64>, RefusalReason> {
        let instruction = self.get(value)?.clone();
        if instruction.opcode() == "convert" {
            let operand = instruction.operand_ids()?;
            let narrower = self.narrower(&instruction, self.get(operand[0])?)?;
            return Ok(narrower.then_some(operand[0]));
        }
        if instruction.opcode() != "fusion" {
            return Ok(None);
        }
        let [callee] = instruction.called_computation_ids()?[..] else { return Ok(None) };
        let Some(callee) = self.module.computation(callee).cloned() else { return Ok(None) };
        let find = |id: i64| callee.instruction(id).ok_or(ProtoError::NoSuchInstruction(id));
        // From the result down to the conversion.
        let mut moved = BTreeSet::new();
        let mut at = callee.root()?;
        while ["copy", "transpose", "bitcast", "reshape"].contains(&at.opcode()) {
            moved.insert(at.id());
            at = find(at.operand_ids()?[0])?;
        }
        if at.opcode() != "convert" || callee.instructions().any(|i| i.opcode() == "fusion") {
            return Ok(None);
        }
        let convert = at.id();
        let source = find(at.operand_ids()?[0])?;
        if !self.narrower(at, source)? {
            return Ok(None);
        }
        let elem = array(source)?.0.shape.elem;
        if moved.is_empty() && source.opcode() == "parameter" {
            let number = usize::try_from(source.parameter_number()).ok();
            let operands = instruction.operand_ids()?;
            return Ok(number.and_then(|n| operands.get(n).copied()));
        }
        // The same fusion without the conversion.
        let computation = self.fresh.computation_id();
        let mut ids: BTreeMap<i64, i64> = BTreeMap::new();
        let mut body = Vec::new();
        for inner in callee.instructions() {
            let operands = inner.operand_ids()?;
            let operands: Option<Vec<i64>> = operands.iter().map(|o| ids.get(o).copied()).collect();
            let operands = operands.ok_or(ProtoError::NoSuchInstruction(inner.id()))?;
            if inner.id() == convert {
                ids.insert(convert, operands[0]);
                continue;
            }
            let mut copy = inner.clone();
            copy.set_id(self.fresh.instruction_id(computation));
            copy.set_name(&self.fresh.name(inner.name()));
            copy.set_operand_ids(&operands);
            if moved.contains(&inner.id()) {
                let (array, layout) = array(inner)?;
                let shape = Shape::new(elem, array.shape.dims);
                copy.set_shape(&HloShape::Array(ArrayShape { shape, layout: Some(layout), exotic: false }));
            }
            ids.insert(inner.id(), copy.id());
            body.push(copy);
        }
        let root = *ids.get(&callee.root_id()).ok_or(ProtoError::NoSuchInstruction(callee.root_id()))?;
        let shape =
            body.iter().find(|i| i.id() == root).ok_or(ProtoError::NoSuchInstruction(root))?.shape()?;
        let name = self.fresh.name("narrow_computation");
        self.fused.push(Computation::new_fused(computation, &name, root, body)?);
        let (id, name) = self.fresh("narrow");
        let operands = instruction.operand_ids()?;
        let mut fusion = Instruction::fusion(id, &name, &shape, &operands, "kLoop", computation);
        fusion.copy_provenance(&instruction);
        Ok(Some(self.push(fusion)))
    }

    /// Whether a conversion makes its operand's elements larger. Padding with zeros and looking through windows
    /// commute with every conversion.
    fn narrower(&self, convert: &Instruction, operand: &Instruction) -> Result<bool, RefusalReason> {
        Ok(array(operand)?.0.shape.elem.bytes() < array(convert)?.0.shape.elem.bytes())
    }
}

/// The array that an instruction computes, with its layout.
fn array(instruction: &Instruction) -> Result<(ArrayShape, Layout), RefusalReason> {
    match instruction.shape()? {
        HloShape::Array(array) if !array.exotic => {
            let layout = array.layout.clone().ok_or(RefusalReason::UnknownLayout)?;
            Ok((array, layout))
        }
        _ => Err(RefusalReason::UnknownLayout),
    }
}

fn times(step: i64, count: u64) -> Result<i64, RefusalReason> {
    i64::try_from(count).ok().and_then(|c| step.checked_mul(c)).ok_or(RefusalReason::UnknownLayout)
}

/// Whether the last window at one of so many places ends within the padded image.
fn stays_inside(along: &Along, places: u64, length: u64) -> bool {
    let last = || {
        let place = i64::try_from(places).ok()?.checked_sub(1)?.checked_mul(along.stride)?;
        place.checked_add(along.size.checked_sub(1)?.checked_mul(along.dilation)?)
    };
    last().is_some_and(|last| last >= 0 && u64::try_from(last).is_ok_and(|l| l < length))
}

fn dot_dimensions(batch: &[usize], lhs: &[usize], rhs: &[usize]) -> Message {
    let ints = |dims: &[usize]| dims.iter().map(|&d| d as i64).collect::<Vec<i64>>();
    let mut message = Message::default();
    for (number, dims) in [(1, lhs), (2, rhs), (3, batch), (4, batch)] {
        if !dims.is_empty() {
            message.set_ints(number, &ints(dims));
        }
    }
    message
}
