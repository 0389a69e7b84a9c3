//! What the instructions of a description compute with: rewrites that would only produce other operators are left out
//! (the rule filter of the ACT paper, appendix B.3), and goal-directed rules aim at what stands here.

use super::language::{is_elementwise, is_movement};
use super::operators::OperatorTable;
use super::rims::{self, Rim, Step};
use act_hlo::{Binary, Direction, DotDims, ElemType, OpKind};
use act_isa::{AttrDecl, AttrKind, Computation, Expr, Instr, Isa, Slice, SymConst, SymOp};
use std::collections::BTreeSet;

/// The lengths that a dimension takes over all attributes of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sizes {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// The two-dimensional product of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DotForm {
    pub(crate) dims: DotDims,
    pub(crate) lhs: ElemType,
    pub(crate) rhs: ElemType,
    pub(crate) out: ElemType,
}

/// A product of an instruction and the sizes it takes: rows, columns and contracted length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProductSizes {
    pub(crate) form: DotForm,
    pub(crate) m: Sizes,
    pub(crate) n: Sizes,
    pub(crate) k: Sizes,
    /// Of the operands, before they are widened.
    pub(crate) types: [ElemType; 2],
    /// Whether the left and the right operand are read from main memory, where nothing can be put beside them.
    pub(crate) in_memory: [bool; 2],
}

/// A reduction of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reduction {
    pub(crate) combiner: Binary,
    pub(crate) elem: ElemType,
    pub(crate) dims: Vec<usize>,
    /// Of the operand.
    pub(crate) rank: usize,
    /// Of the operand, where they are products or sums of attributes.
    pub(crate) sizes: Option<Vec<Sizes>>,
}

/// What a load or a store moves between main memory and a buffer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    /// Of an element: movers move the bits of any type.
    pub(crate) bits: u32,
    /// Of the slot, access dimensions first.
    pub(crate) sizes: Vec<Sizes>,
    /// How many access dimensions.
    pub(crate) access: usize,
}

impl Transfer {
    pub(crate) fn takes(&self, dims: &[u64]) -> bool {
        self.sizes.len() == dims.len()
            && self.sizes.iter().zip(dims).all(|(s, d)| (s.min..=s.max).contains(d))
    }
}

/// Results that an instruction stores from blocks that lie stacked on chip: r rows of b blocks, w columns each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoredStack {
    pub(crate) elem: ElemType,
    pub(crate) rows: Sizes,
    pub(crate) blocks: Sizes,
    pub(crate) width: u64,
}

/// The product or reduction from which an instruction computes an operator; of a product the types of what it multiplies,
/// before they are widened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gathered {
    pub(crate) name: &'static str,
    pub(crate) types: Option<[ElemType; 2]>,
}

/// Sizes of an operator, and the product or reduction that it is or that is an operand of it.
type SizesAfter = (Vec<Sizes>, Option<Gathered>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    ops: OperatorTable<()>,
    /// Result sizes of an operator in some instruction, by operator.
    sizes: OperatorTable<BTreeSet<Vec<Sizes>>>,
    /// The same, with the product or reduction that is an operand there if any: what is computed from one is computed
    /// from nothing else.
    sizes_after: OperatorTable<BTreeSet<SizesAfter>>,
    /// Sizes of elementwise operators within stacked blocks. They are reached by rules of their own, and aimed at by no
    /// other.
    stacked_sizes: OperatorTable<BTreeSet<Vec<Sizes>>>,
    /// Lengths of the contracted dimension per product that is added to another value, with the types of what it
    /// multiplies before they are widened.
    pub(crate) contractions: BTreeSet<(DotForm, [ElemType; 2], Sizes)>,
    pub(crate) dots: BTreeSet<DotForm>,
    /// Products with the sizes of their results, and whether an instruction has the product as such or only adds it
    /// to a value.
    products: BTreeSet<(DotForm, Vec<Sizes>, bool)>,
    /// Literal bounds of clamps: (low, high), both scalars of the clamp's type.
    pub(crate) clamps: BTreeSet<(act_hlo::Literal, act_hlo::Literal)>,
    /// Maxima and minima with a constant, or with any value where there is none.
    extrema: BTreeSet<(&'static str, ElemType, Option<act_hlo::Literal>)>,
    /// Operators that some instruction computes by themselves, from inputs of its own; comparisons, selections and
    /// conversions wherever they stand.
    offered: OperatorTable<()>,
    /// Comparisons by the type compared, and those that an instruction computes by themselves.
    comparisons: BTreeSet<(Direction, ElemType, bool)>,
    /// Conversions from one type to another, and whether by themselves.
    conversions: BTreeSet<(ElemType, ElemType, bool)>,
    /// Some instruction adds a product to another value.
    pub(crate) accumulates: bool,
    /// Ranks of the values that buffers hold.
    pub(crate) ranks: BTreeSet<usize>,
    /// How instructions see their slots.
    pub(crate) rims: Vec<Rim>,
    pub(crate) product_sizes: BTreeSet<ProductSizes>,
    pub(crate) reductions: BTreeSet<Reduction>,
    /// No instruction reverses, and products with constants can.
    pub(crate) reversed_by_products: bool,
    /// Types of sums, no term of which is a product.
    pub(crate) plain_sums: BTreeSet<ElemType>,
    /// Types of broadcasts of more than a scalar.
    pub(crate) spreads: BTreeSet<ElemType>,
    /// Broadcasts of more than a scalar: type, dimensions and rank of the result.
    broadcasts: BTreeSet<(ElemType, Vec<usize>, usize)>,
    /// Blocks of columns that an instruction stacks: type, width of a block, and how many.
    pub(crate) stacks: BTreeSet<(ElemType, u64, Sizes)>,
    pub(crate) stored_stacks: BTreeSet<StoredStack>,
    /// Types of what products multiply, before they are widened.
    multiplied: BTreeSet<[ElemType; 2]>,
    /// Types that products multiply in, with the types that their operands are converted from.
    pub(crate) widened: BTreeSet<(ElemType, ElemType)>,
    /// Conversions, from one type to another, of more than what a product multiplies.
    converted_alone: BTreeSet<(ElemType, ElemType)>,
    /// What instructions that only move bring from main memory into a buffer, and from a buffer to main memory.
    pub(crate) loads: Vec<Transfer>,
    pub(crate) stores: Vec<Transfer>,
}

/// The operator as far as coverage is concerned: `reduce maximum` is not `reduce add`.
pub(crate) fn key<D, C>(op: &OpKind<D, C>) -> String {
    match op {
        OpKind::Reduce { combiner, .. } => format!("reduce {}", combiner.name()),
        other => other.name().to_owned(),
    }
}

/// The type of an operand of a product before it is widened.
fn multiplied(stmt: &act_isa::Stmt, computation: &Computation) -> ElemType {
    match (&stmt.op, &stmt.operands[..]) {
        (OpKind::Convert, &[narrow]) => computation.stmts[narrow].elem,
        _ => stmt.elem,
    }
}

/// What computes an element of its result from many of its operands.
fn gathered(stmt: &act_isa::Stmt, computation: &Computation) -> Option<Gathered> {
    let name = stmt.op.name();
    match (&stmt.op, &stmt.operands[..]) {
        (OpKind::Dot(_), &[a, b]) => Some(Gathered {
            name,
            types: Some([a, b].map(|x| multiplied(&computation.stmts[x], computation))),
        }),
        (OpKind::Reduce { .. }, _) => Some(Gathered { name, types: None }),
        _ => None,
    }
}

impl Vocabulary {
    pub(crate) fn of(isa: &Isa) -> Vocabulary {
        let mut vocabulary = Vocabulary { rims: rims::rims(isa), ..Vocabulary::default() };
        for instr in &isa.instrs {
            vocabulary.read(instr);
        }
        vocabulary.loads = transfers(isa, true);
        vocabulary.stores = transfers(isa, false);
        vocabulary.reversed_by_products = !vocabulary.dots.is_empty() && !vocabulary.names("reverse");
        vocabulary.ranks = isa.buffers.iter().map(|b| b.access.len() + b.unit.len()).collect();
        vocabulary
    }

    fn read(&mut self, instr: &Instr) {
        let computation = &instr.computation;
        self.read_operators(computation);
        let stacks = computation.stmts.iter().any(|stmt| blocks_turned(stmt, &instr.alpha).is_some());
        for (at, stmt) in computation.stmts.iter().enumerate() {
            self.ops.entry(&key(&stmt.op), stmt.elem);
            let result: Option<Vec<Sizes>> = stmt.dims.iter().map(|d| sizes(d, &instr.alpha)).collect();
            let operand = |k: usize| stmt.operands.get(k).and_then(|&o| computation.stmts.get(o));
            if let Some(result) = &result {
                let name = key(&stmt.op);
                if stacks && is_elementwise(&stmt.op) {
                    self.stacked_sizes.entry(&name, stmt.elem).insert(result.clone());
                } else {
                    let inner = |k: usize| operand(k).and_then(|s| gathered(s, computation));
                    let after =
                        gathered(stmt, computation).or_else(|| (0..stmt.operands.len()).find_map(inner));
                    self.multiplied.extend(after.and_then(|gathered| gathered.types));
                    self.sizes_after.entry(&name, stmt.elem).insert((result.clone(), after));
                    self.sizes.entry(&name, stmt.elem).insert(result.clone());
                }
            }
            match &stmt.op {
                OpKind::Dot(dims) => {
                    if let (Some(lhs), Some(rhs)) = (operand(0), operand(1)) {
                        let form =
                            DotForm { dims: dims.clone(), lhs: lhs.elem, rhs: rhs.elem, out: stmt.elem };
                        let mut users = computation.stmts.iter().filter(|s| s.operands.contains(&at));
                        let bare = computation.roots.contains(&at)
                            || users.any(|s| !matches!(s.op, OpKind::Binary(Binary::Add)));
                        if let Some(result) = &result {
                            self.products.insert((form.clone(), result.clone(), bare));
                        }
                        self.product_sizes.extend(product_sizes(&form, lhs, rhs, instr));
                        for side in [lhs, rhs].into_iter().filter(|side| side.op == OpKind::Convert) {
                            let from = side.operands.first().and_then(|&o| computation.stmts.get(o));
                            self.widened.extend(from.map(|from| (side.elem, from.elem)));
                        }
                        self.dots.insert(form);
                    }
                }
                OpKind::Clamp => {
                    let bound =
                        |k| operand(k).and_then(|s| literal(&s.op, &s.operands, computation, stmt.elem));
                    if let (Some(low), Some(high)) = (bound(0), bound(2)) {
                        self.clamps.insert((low, high));
                    }
                }
                OpKind::Binary(op @ (Binary::Maximum | Binary::Minimum)) => {
                    let constant =
                        |k| operand(k).and_then(|s| literal(&s.op, &s.operands, computation, stmt.elem));
                    self.extrema.insert((op.name(), stmt.elem, constant(0).or(constant(1))));
                }
                OpKind::Binary(Binary::Add) => {
                    let product =
                        |k| operand(k).is_some_and(|s: &act_isa::Stmt| matches!(s.op, OpKind::Dot(_)));
                    self.accumulates |= product(0) || product(1);
                    if !product(0) && !product(1) {
                        self.plain_sums.insert(stmt.elem);
                    }
                    for k in 0..2 {
                        self.contractions.extend(operand(k).and_then(|s| contraction(instr, s)));
                    }
                }
                OpKind::Reduce { dims, combiner } => {
                    if let Some(x) = operand(0) {
                        self.reductions.insert(Reduction {
                            combiner: *combiner,
                            elem: stmt.elem,
                            dims: dims.clone(),
                            rank: x.dims.len(),
                            sizes: x.dims.iter().map(|d| sizes(d, &instr.alpha)).collect(),
                        });
                    }
                }
                OpKind::Transpose { .. } => {
                    if let Some(([first, second], width)) = blocks_turned(stmt, &instr.alpha) {
                        if is_stored(instr, at) {
                            let (rows, blocks) = (first, second);
                            self.stored_stacks.insert(StoredStack { elem: stmt.elem, rows, blocks, width });
                        } else {
                            self.stacks.insert((stmt.elem, width, first));
                        }
                    }
                }
                OpKind::Broadcast { dims } if !dims.is_empty() => {
                    self.spreads.insert(stmt.elem);
                    self.broadcasts.insert((stmt.elem, dims.clone(), stmt.dims.len()));
                }
                _ => {}
            }
        }
    }

    fn read_operators(&mut self, computation: &Computation) {
        let stmts = &computation.stmts;
        let inner = |s: &act_isa::Stmt| {
            !(matches!(s.op, OpKind::Parameter(_) | OpKind::Constant(_)) || is_movement(&s.op))
        };
        let single = stmts.iter().filter(|s| inner(s)).count() == 1;
        // Whether an operand is an input, perhaps moved.
        let mut input = vec![false; stmts.len()];
        for (at, stmt) in stmts.iter().enumerate() {
            input[at] = matches!(stmt.op, OpKind::Parameter(_))
                || is_movement(&stmt.op) && stmt.operands.iter().all(|&o| input[o]);
            // Comparisons and what is done with their results come in so many equal forms that one which stands in an
            // instruction at all is not written as others.
            let truth = matches!(stmt.op, OpKind::Compare(_) | OpKind::Select | OpKind::Convert);
            let offered = truth || single && inner(stmt) && stmt.operands.iter().all(|&o| input[o]);
            if offered {
                self.offered.entry(&key(&stmt.op), stmt.elem);
            }
            let from = stmt.operands.first().map(|&o| stmts[o].elem);
            match (&stmt.op, from) {
                (OpKind::Compare(direction), Some(from)) => {
                    self.comparisons.insert((*direction, from, offered));
                }
                (OpKind::Convert, Some(from)) => {
                    let mut users = stmts.iter().filter(|s| s.operands.contains(&at));
                    let root = computation.roots.contains(&at);
                    if root || users.any(|s| !matches!(s.op, OpKind::Dot(_))) {
                        self.converted_alone.insert((from, stmt.elem));
                    }
                    self.conversions.insert((from, stmt.elem, offered));
                }
                _ => {}
            }
        }
    }

    /// Whether an instruction computes this operator and nothing else; for comparisons, selections and conversions,
    /// whether any contains it.
    pub(crate) fn computes(&self, key: &str, elem: ElemType) -> bool {
        self.offered.has(key, elem)
    }

    /// Whether it may help to write one operator as others: no instruction computes it, and they occur.
    pub(crate) fn wants(&self, instead_of: &str, others: &[&str], elem: ElemType) -> bool {
        others.iter().all(|key| self.has(key, elem)) && !self.computes(instead_of, elem)
    }

    /// Whether some instruction takes a maximum or minimum with this constant, or with any.
    pub(crate) fn bounds_by(&self, op: Binary, constant: &act_hlo::Literal) -> bool {
        let with = |c: Option<act_hlo::Literal>| self.extrema.contains(&(op.name(), constant.elem(), c));
        with(None) || with(Some(constant.clone()))
    }

    /// Whether some instruction compares values of this type so.
    pub(crate) fn compares(&self, direction: Direction, elem: ElemType) -> bool {
        [false, true].iter().any(|&offered| self.comparisons.contains(&(direction, elem, offered)))
    }

    /// Whether some instruction compares so; what a test only wishes for does not count.
    pub(crate) fn offers_compare(&self, direction: Direction, elem: ElemType) -> bool {
        self.comparisons.contains(&(direction, elem, true))
    }

    pub(crate) fn converts(&self, from: ElemType, to: ElemType) -> bool {
        [false, true].iter().any(|&offered| self.conversions.contains(&(from, to, offered)))
    }

    /// Whether products of other types than these are computed too.
    pub(crate) fn multiplies_others(&self, types: [ElemType; 2]) -> bool {
        self.multiplied.iter().any(|other| *other != types)
    }

    /// Whether instructions convert so what their products multiply, and nothing else.
    pub(crate) fn only_widens(&self, from: ElemType, to: ElemType) -> bool {
        self.widened.contains(&(to, from)) && !self.converted_alone.contains(&(from, to))
    }

    /// The types from which instructions convert to this one.
    pub(crate) fn converted_to(&self, to: ElemType) -> Vec<ElemType> {
        let mut from: Vec<ElemType> = self.conversions.iter().filter(|c| c.1 == to).map(|c| c.0).collect();
        from.dedup();
        from
    }

    pub(crate) fn offers_convert(&self, from: ElemType, to: ElemType) -> bool {
        self.conversions.contains(&(from, to, true))
    }

    /// Types for which instructions have an operator, narrowest first.
    pub(crate) fn types(&self, key: &str) -> Vec<ElemType> {
        let mut found: Vec<ElemType> = self.ops.types(key).collect();
        found.sort_by_key(|e| (e.bits(), *e));
        found
    }

    /// All operators for all of these types, none of them offered: whatever a rule may aim at.
    #[cfg(test)]
    pub(crate) fn with_every_operator(mut self, elems: &[ElemType]) -> Vocabulary {
        let unaries = act_hlo::Unary::ALL.iter().map(|u| u.name());
        let others = ["compare", "select", "clamp", "fma", "convert", "bitcast-convert", "dot"];
        let keys = unaries.chain(Binary::ALL.iter().map(|b| b.name())).chain(others);
        for (key, &a) in keys.flat_map(|key| elems.iter().map(move |e| (key, e))) {
            self.ops.entry(key, a);
        }
        for &a in elems {
            self.comparisons.extend(Direction::ALL.iter().map(|d| (*d, a, false)));
            self.conversions.extend(elems.iter().map(|&b| (a, b, false)));
        }
        self.offered.clear();
        self.reversed_by_products = false;
        for op in [Binary::Maximum, Binary::Minimum] {
            self.extrema.extend(elems.iter().map(|&a| (op.name(), a, None)));
        }
        self
    }

    /// Sizes at which instructions have an operator.
    pub(crate) fn sizes(&self, key: &str, elem: ElemType) -> impl Iterator<Item = &Vec<Sizes>> + use<'_> {
        self.sizes.get(key, elem).into_iter().flatten()
    }

    /// Sizes at which instructions have an operator, each with the product or reduction that they compute it from, if
    /// they do.
    pub(crate) fn sizes_after(
        &self,
        key: &str,
        elem: ElemType,
    ) -> impl Iterator<Item = &SizesAfter> + use<'_> {
        self.sizes_after.get(key, elem).into_iter().flatten()
    }

    /// Whether some instruction has an elementwise operator at these sizes within stacked blocks.
    pub(crate) fn fits_stacked(&self, key: &str, elem: ElemType, dims: &[u64]) -> bool {
        let sizes = self.stacked_sizes.get(key, elem).into_iter().flatten();
        sizes.into_iter().any(|sizes| {
            sizes.len() == dims.len() && sizes.iter().zip(dims).all(|(s, d)| (s.min..=s.max).contains(d))
        })
    }

    /// Whether instructions have a product of these sizes only as something that they add to a value.
    pub(crate) fn only_adds(&self, form: &DotForm, dims: &[u64]) -> bool {
        let fits = |sizes: &[Sizes]| {
            sizes.len() == dims.len() && sizes.iter().zip(dims).all(|(s, d)| (s.min..=s.max).contains(d))
        };
        let mut bare = self.products.iter().filter(|(f, sizes, _)| f == form && fits(sizes)).map(|p| p.2);
        bare.next() == Some(false) && bare.all(|bare| !bare)
    }

    /// Whether there are products that instructions only add to values.
    pub(crate) fn adds_products(&self) -> bool {
        self.products.iter().any(|p| !p.2)
    }

    /// The types of what products of this type multiply: the narrower ones that instructions convert their operands from,
    /// or the type itself.
    pub(crate) fn operand_types(&self, elem: ElemType) -> Vec<ElemType> {
        let from: Vec<ElemType> =
            self.widened.iter().filter(|(wide, _)| *wide == elem).map(|(_, from)| *from).collect();
        if from.is_empty() { vec![elem] } else { from }
    }

    pub(crate) fn has_broadcast(&self, elem: ElemType, dims: &[usize], rank: usize) -> bool {
        self.broadcasts.iter().any(|(e, d, r)| *e == elem && d == dims && *r == rank)
    }

    pub(crate) fn has_sizes(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Whether some instruction computes with no less than a few elements of a dimension.
    pub(crate) fn has_least_sizes(&self) -> bool {
        const SHAPED: [&str; 7] =
            ["parameter", "constant", "reshape", "bitcast-convert", "slice", "concatenate", "pad"];
        self.sizes.of_others(&SHAPED).flat_map(|all| all.iter().flatten()).any(|s| s.min > 1)
    }

    pub(crate) fn has(&self, key: &str, elem: ElemType) -> bool {
        self.ops.has(key, elem)
    }

    /// Whether contractions whose result is of this type may be computed at all: by a product of an instruction, or by
    /// multiplying and adding. Rewrites convert between floats and between integers, and from integers to floats, but make
    /// no integers of floats.
    pub(crate) fn may_contract(&self, elem: ElemType) -> bool {
        let related = |other: ElemType| {
            other == elem || other.is_float() && !elem.is_complex() || other.is_int() && elem.is_int()
        };
        let adds = |other| self.has("add", other) || self.has("reduce add", other);
        self.dots.iter().any(|dot| related(dot.out))
            || ElemType::ALL
                .into_iter()
                .any(|other| related(other) && self.has("multiply", other) && adds(other))
    }

    /// Whether no instruction sees a slot as another type than it is kept in. Where some do, every value has many
    /// spellings through slots already; rules that only add more of them are left out.
    pub(crate) fn slots_keep_their_type(&self) -> bool {
        self.rims.iter().all(|rim| !rim.steps.contains(&Step::Bitcast))
    }

    /// Whether an instruction contains the operator for some type.
    pub(crate) fn names(&self, key: &str) -> bool {
        self.ops.types(key).next().is_some()
    }
}

/// The loads or the stores of a description, each once; values whose sizes are no products or sums of attributes are
/// left out.
fn transfers(isa: &Isa, loads: bool) -> Vec<Transfer> {
    let moved = |instr: &Instr| {
        let ([input], [output], [root]) =
            (&instr.inputs[..], &instr.outputs[..], &instr.computation.roots[..])
        else {
            return None;
        };
        let stmts = &instr.computation.stmts;
        let still = |s: &act_isa::Stmt| matches!(s.op, OpKind::Parameter(_)) || is_movement(&s.op);
        let parameter = stmts.iter().find(|s| matches!(s.op, OpKind::Parameter(_)))?;
        let (slot, value) = match (input, output) {
            (Slice::Hbm(_), Slice::OnChip(slot)) if loads => (slot, &stmts[*root]),
            (Slice::OnChip(slot), Slice::Hbm(_)) if !loads => (slot, parameter),
            _ => return None,
        };
        let sizes = value.dims.iter().map(|d| sizes(d, &instr.alpha)).collect::<Option<_>>()?;
        let transfer = Transfer { bits: value.elem.bits(), sizes, access: slot.len.len() };
        stmts.iter().all(still).then_some(transfer)
    };
    let mut all: Vec<Transfer> = isa.instrs.iter().filter_map(moved).collect();
    all.sort();
    all.dedup();
    all
}

/// The first two sizes, exchanged already, and the width of blocks of columns that a statement stacks, or lays side by
/// side.
fn blocks_turned(stmt: &act_isa::Stmt, alpha: &[AttrDecl]) -> Option<([Sizes; 2], u64)> {
    let OpKind::Transpose { perm } = &stmt.op else { return None };
    let all: Option<Vec<Sizes>> = stmt.dims.iter().map(|d| sizes(d, alpha)).collect();
    match all?[..] {
        [first, second, width] if *perm == [1, 0, 2] && width.min == width.max => {
            Some(([first, second], width.max))
        }
        _ => None,
    }
}

/// Whether a statement, moved at most, is what the instruction stores in main memory.
fn is_stored(instr: &Instr, at: usize) -> bool {
    let computation = &instr.computation;
    let stored = computation.roots.iter().zip(&instr.outputs).filter(|(_, to)| matches!(to, Slice::Hbm(_)));
    stored.map(|(&root, _)| root).any(|mut root| {
        while root != at {
            match (&computation.stmts[root].op, &computation.stmts[root].operands[..]) {
                (
                    OpKind::Copy | OpKind::Reshape | OpKind::Transpose { .. } | OpKind::BitcastConvert,
                    &[x],
                ) => {
                    root = x;
                }
                _ => return false,
            }
        }
        true
    })
}

/// The sizes of a product of matrices; `None` where one is no product or sum of attributes.
fn product_sizes(
    form: &DotForm,
    lhs: &act_isa::Stmt,
    rhs: &act_isa::Stmt,
    instr: &Instr,
) -> Option<ProductSizes> {
    let ([i], [j]) = (form.dims.lhs_contracting.as_slice(), form.dims.rhs_contracting.as_slice()) else {
        return None;
    };
    if lhs.dims.len() != 2 || rhs.dims.len() != 2 || !form.dims.lhs_batch.is_empty() {
        return None;
    }
    let of = |stmt: &act_isa::Stmt, d: usize| sizes(stmt.dims.get(d)?, &instr.alpha);
    let (m, n) = (of(lhs, 1_usize.checked_sub(*i)?)?, of(rhs, 1_usize.checked_sub(*j)?)?);
    let in_memory = [lhs, rhs].map(|side| reads_memory(instr, side));
    let types = [lhs, rhs].map(|side| multiplied(side, &instr.computation));
    Some(ProductSizes { form: form.clone(), m, n, k: of(lhs, *i)?, types, in_memory })
}

/// Whether a value is an input from main memory, moved or converted at most.
fn reads_memory<'a>(instr: &'a Instr, mut stmt: &'a act_isa::Stmt) -> bool {
    while let (op, &[x]) = (&stmt.op, &stmt.operands[..])
        && (is_movement(op) || *op == OpKind::Convert)
    {
        stmt = &instr.computation.stmts[x];
    }
    match stmt.op {
        OpKind::Parameter(k) => matches!(instr.inputs.get(k as usize), Some(Slice::Hbm(_))),
        _ => false,
    }
}

/// A product, the types of what it multiplies, and the lengths of its contracted dimension.
fn contraction(instr: &Instr, stmt: &act_isa::Stmt) -> Option<(DotForm, [ElemType; 2], Sizes)> {
    let OpKind::Dot(dims) = &stmt.op else { return None };
    let operand = |k: usize| instr.computation.stmts.get(*stmt.operands.get(k)?);
    let (lhs, rhs) = (operand(0)?, operand(1)?);
    let [i] = dims.lhs_contracting.as_slice() else { return None };
    let lengths = sizes(lhs.dims.get(*i)?, &instr.alpha)?;
    let form = DotForm { dims: dims.clone(), lhs: lhs.elem, rhs: rhs.elem, out: stmt.elem };
    Some((form, gathered(stmt, &instr.computation)?.types?, lengths))
}

/// Bounds of a size that is a product or sum of attributes; `None` where it is no such thing.
fn sizes(expr: &Expr, alpha: &[AttrDecl]) -> Option<Sizes> {
    let both = |a: &Expr, b: &Expr, f: fn(u64, u64) -> Option<u64>| {
        let (a, b) = (sizes(a, alpha)?, sizes(b, alpha)?);
        Some(Sizes { min: f(a.min, b.min)?, max: f(a.max, b.max)? })
    };
    match expr {
        Expr::Int(v) => u64::try_from(*v).ok().map(|v| Sizes { min: v, max: v }),
        Expr::Alpha(k) => match alpha.get(usize::from(*k))?.kind {
            AttrKind::Int { min, max } => {
                Some(Sizes { min: u64::try_from(min).ok()?, max: u64::try_from(max).ok()? })
            }
            AttrKind::F32 => None,
        },
        Expr::Add(a, b) => both(a, b, u64::checked_add),
        Expr::Mul(a, b) => both(a, b, u64::checked_mul),
        _ => None,
    }
}

fn literal(
    op: &SymOp,
    operands: &[usize],
    computation: &Computation,
    elem: ElemType,
) -> Option<act_hlo::Literal> {
    match op {
        OpKind::Constant(SymConst::Literal(literal)) => literal.splat_value(),
        OpKind::Constant(SymConst::Int(Expr::Int(v))) => act_isa::constant::int_scalar(elem, *v).ok(),
        OpKind::Broadcast { .. } => {
            let from = computation.stmts.get(*operands.first()?)?;
            literal(&from.op, &from.operands, computation, elem)
        }
        _ => None,
    }
}
