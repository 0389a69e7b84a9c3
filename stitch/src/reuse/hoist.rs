//! Loads out of loops: what does not depend on a loop is loaded before it, once, into a panel of its own.

use super::access::{Access, Extent, Layout, Region, Relation, accesses, bounds, difference};
use super::nest::{FreshLoops, for_each_loop, instance};
use super::panel::Panel;
use act_isa::{
    Affine, AttrKind, BetaVal, BufferId, Cond, Env, Expr, Instr, InstrId, Isa, LoopId, Program, Slice, Space,
};
use std::collections::{BTreeMap, BTreeSet};

/// Combinations of loop variables for which a requirement on a moved slot is evaluated.
const MOST_COMBINATIONS: u64 = 1 << 14;

/// Hoists in one nest.
pub(super) struct Hoister<'a> {
    isa: &'a Isa,
    layout: &'a Layout,
    names: &'a mut FreshLoops,
    ends: Vec<Vec<i64>>,
    /// Whether panels begin in banks of their own.
    own_banks: bool,
    /// The segment that the last panel of a buffer was loaded from, by its dimension.
    last: BTreeMap<(BufferId, usize), Option<Space>>,
    trips: BTreeMap<LoopId, u64>,
}

/// A load in a run, and where its value goes.
struct Load {
    region: Region,
    /// The segment that is read, if it is one.
    from: Option<Space>,
    /// The loops between the hoisting loop and the load that its address depends on, outermost first.
    loops: Vec<(LoopId, u64)>,
}

impl<'a> Hoister<'a> {
    pub(super) fn new(
        isa: &'a Isa,
        layout: &'a Layout,
        names: &'a mut FreshLoops,
        own_banks: bool,
    ) -> Hoister<'a> {
        let (ends, last) = (layout.ends.clone(), BTreeMap::new());
        Hoister { isa, layout, names, ends, own_banks, last, trips: BTreeMap::new() }
    }

    /// A nest with its loads hoisted as far out as they go; what comes before the nest comes first.
    pub(super) fn nest(&mut self, nest: Program) -> Vec<Program> {
        for_each_loop(&nest, &mut |iv, trip| {
            self.trips.insert(iv, trip);
        });
        let Program::For { iv, trip, parallel, mut body } = nest else { return vec![nest] };
        let mut before = Vec::new();
        if trip > 1 {
            let mut written = BTreeSet::new();
            written_spaces(self.isa, &body, &mut written);
            self.hoist(&mut body, iv, &written, &mut Vec::new(), &mut before);
        }
        let parts = match *body {
            Program::Seq(parts) => parts,
            other => vec![other],
        };
        let parts = parts.into_iter().flat_map(|part| self.nest(part)).collect();
        before.push(Program::For { iv, trip, parallel, body: Box::new(Program::Seq(parts)) });
        before
    }

    /// Moves the loads inside `program` that do not depend on `out_of` to `before`.
    fn hoist(
        &mut self,
        program: &mut Program,
        out_of: LoopId,
        written: &BTreeSet<Space>,
        inner: &mut Vec<(LoopId, u64)>,
        before: &mut Vec<Program>,
    ) {
        match program {
            Program::Seq(parts) => {
                let mut at = 0;
                while at < parts.len() {
                    if !matches!(parts[at], Program::Instr { .. }) {
                        self.hoist(&mut parts[at], out_of, written, inner, before);
                        at += 1;
                        continue;
                    }
                    let run = parts[at..].iter().take_while(|p| matches!(p, Program::Instr { .. })).count();
                    match self.hoist_first(&mut parts[at..at + run], out_of, written, inner) {
                        Some(load) => {
                            before.push(load);
                            parts.remove(at);
                        }
                        None => at += 1,
                    }
                }
            }
            Program::For { iv, trip, body, .. } => {
                inner.push((*iv, *trip));
                self.hoist(body, out_of, written, inner, before);
                inner.pop();
            }
            Program::Instr { .. } | Program::HostCopy { .. } | Program::Fence => {}
        }
    }

    /// Hoists the first instruction of a run if that can be done: the rest of the run reads the panel, and the load with
    /// the loops that it depends on is returned.
    fn hoist_first(
        &mut self,
        run: &mut [Program],
        out_of: LoopId,
        written: &BTreeSet<Space>,
        inner: &[(LoopId, u64)],
    ) -> Option<Program> {
        let (first, users) = run.split_first_mut()?;
        let load = self.load(first, out_of, written, inner)?;
        for dim in 0..load.region.len.len() {
            let Some(panel) = self.panel(&load, dim) else { continue };
            let slot = panel.slot()?;
            let Some(moved) = self.moved_users(users, &load.region, dim, &slot) else { continue };
            let Some(own) = self.with_start(first, Side::Output, &load.region, dim, &slot) else { continue };
            let nest = load.loops.iter().rev().fold(own, |body, &(iv, trip)| {
                let body = Box::new(Program::Seq(vec![body]));
                Program::For { iv, trip, parallel: false, body }
            });
            let nest = instance(&nest, &mut Vec::new(), self.names)?;
            panel.occupy(&load.region, &mut self.ends);
            self.last.insert((load.region.buffer, dim), load.from);
            users.clone_from_slice(&moved);
            return Some(nest);
        }
        None
    }

    /// Room for a panel along `dim`. What comes from one segment is one operand, as a rule, and read with others: its
    /// panels share a bank, apart from those of other segments as long as there are banks.
    fn panel(&self, load: &Load, dim: usize) -> Option<Panel> {
        let reserve =
            |own_bank| Panel::reserve(self.isa, &load.region, &load.loops, dim, &self.ends, own_bank);
        let behind_its_like = self.last.get(&(load.region.buffer, dim)) == Some(&load.from);
        let own_bank = self.own_banks && !behind_its_like;
        reserve(own_bank).or_else(|| reserve(false).filter(|_| own_bank))
    }

    /// The instruction as a load that may move before the loop: it reads d0 alone, where nothing in the loop writes, at
    /// an address that the loop does not change, and nothing but its own run reads what it writes.
    fn load(
        &self,
        program: &Program,
        out_of: LoopId,
        written: &BTreeSet<Space>,
        inner: &[(LoopId, u64)],
    ) -> Option<Load> {
        let Program::Instr { op, alpha, beta } = program else { return None };
        let found = accesses(self.isa, *op, alpha, beta)?;
        let from_memory = |access: &Access| matches!(access, Access::Hbm(space) if !written.contains(space));
        if found.inputs.is_empty() || !found.inputs.iter().all(from_memory) {
            return None;
        }
        let [Access::OnChip(region)] = &found.outputs[..] else { return None };
        let ivs: BTreeSet<LoopId> = beta.iter().flat_map(|b| affine_of(b).ivs.iter().map(|t| t.0)).collect();
        let extent = Extent::of(region, &self.trips)?;
        if ivs.contains(&out_of) || self.layout.exposed.iter().any(|e| e.overlaps(&extent)) {
            return None;
        }
        let loops = inner.iter().filter(|(iv, _)| ivs.contains(iv)).copied().collect();
        let from = match found.inputs[..] {
            [Access::Hbm(space)] => Some(space),
            _ => None,
        };
        Some(Load { region: region.clone(), from, loops })
    }

    /// The users of a value in `region` reading it from `slot` instead; `None` when some cannot.
    fn moved_users(
        &self,
        users: &[Program],
        region: &Region,
        dim: usize,
        slot: &Affine,
    ) -> Option<Vec<Program>> {
        let mut moved = users.to_vec();
        for (at, user) in users.iter().enumerate() {
            let Program::Instr { op, alpha, beta } = user else { return None };
            let found = accesses(self.isa, *op, alpha, beta)?;
            let relation = |access: &Access| match access {
                Access::OnChip(other) => region.relation(other, &self.trips),
                Access::Hbm(_) => Relation::Disjoint,
            };
            if found.inputs.iter().any(|a| relation(a) != Relation::Disjoint) {
                moved[at] = self.with_start(user, Side::Input, region, dim, slot)?;
            }
            let overwrites = found.outputs.iter().any(|a| relation(a) != Relation::Disjoint);
            if overwrites {
                // Only a write of all of it ends the value's life for certain.
                let whole = found.outputs.iter().any(
                    |a| matches!(a, Access::OnChip(other) if other.relation(region, &self.trips) == Relation::Covers),
                );
                return whole.then_some(moved);
            }
        }
        Some(moved)
    }

    /// The instruction with its slices inside `region`, on one side, moved along `dim` to `slot`. `None` when a slice
    /// reaches beyond the region, when its start is not an attribute of its own, or a requirement forbids it.
    fn with_start(
        &self,
        program: &Program,
        side: Side,
        region: &Region,
        dim: usize,
        slot: &Affine,
    ) -> Option<Program> {
        let Program::Instr { op, alpha, beta } = program else { return None };
        let instr = self.isa.instrs.get(usize::from(op.0))?;
        let found = accesses(self.isa, *op, alpha, beta)?;
        let (slices, touched, others) = match side {
            Side::Input => (&instr.inputs, &found.inputs, &instr.outputs),
            Side::Output => (&instr.outputs, &found.outputs, &instr.inputs),
        };
        let mut moved = beta.clone();
        let mut changed = BTreeSet::new();
        for (slice, access) in slices.iter().zip(touched) {
            let (Slice::OnChip(slice), Access::OnChip(own)) = (slice, access) else { continue };
            match region.relation(own, &self.trips) {
                Relation::Disjoint => continue,
                Relation::Covers => {}
                Relation::Overlaps => return None,
            }
            let Some(Expr::Beta(k)) = slice.start.get(dim) else { return None };
            let offset = difference(&own.start[dim], &region.start[dim])?;
            let mut start = slot.clone();
            start.c0 = start.c0.checked_add(offset)?;
            *moved.get_mut(usize::from(*k))? = BetaVal::Int(start);
            changed.insert(*k);
        }
        // An attribute that moves must not place anything else.
        for slice in slices.iter().chain(others) {
            let stays = match slice {
                Slice::OnChip(s) => s.start.iter().chain(&s.len).collect::<Vec<_>>(),
                Slice::Hbm(w) => {
                    std::iter::once(&w.start).chain(w.dims.iter().flat_map(|d| [&d.0, &d.1])).collect()
                }
            };
            let is_moved = slices.iter().zip(touched).any(|(s, access)| {
                std::ptr::eq(s, slice)
                    && matches!(access, Access::OnChip(own) if region.relation(own, &self.trips) != Relation::Disjoint)
            });
            for (at, expr) in stays.into_iter().enumerate() {
                let mentions = mentions_any(expr, &changed);
                if mentions && !(is_moved && at == dim) {
                    return None;
                }
            }
        }
        self.allowed(instr, alpha, &moved, &changed).then(|| Program::Instr {
            op: InstrId(op.0),
            alpha: alpha.clone(),
            beta: moved,
        })
    }

    /// Whether the moved attributes keep to their ranges and to the requirements that mention them, in every iteration.
    fn allowed(
        &self,
        instr: &Instr,
        alpha: &[act_isa::AttrVal],
        beta: &[BetaVal],
        changed: &BTreeSet<u16>,
    ) -> bool {
        for &k in changed {
            let (Some(value), Some(decl)) = (beta.get(usize::from(k)), instr.beta.get(usize::from(k))) else {
                return false;
            };
            let AttrKind::Int { min, max } = decl.kind else { return false };
            let Some((low, high)) = bounds(affine_of(value), &self.trips) else { return false };
            if low < min || high > max {
                return false;
            }
        }
        let alpha: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
        let registers = self.isa.register_values();
        instr.requires.iter().all(|require| {
            let mut mentioned: BTreeSet<u16> = BTreeSet::new();
            require.for_each_leaf(&mut |leaf| {
                if let Expr::Beta(k) = leaf {
                    mentioned.insert(*k);
                }
            });
            mentioned.is_disjoint(changed) || self.holds(require, &mentioned, &alpha, beta, &registers)
        })
    }

    fn holds(
        &self,
        require: &Cond,
        mentioned: &BTreeSet<u16>,
        alpha: &[Option<i64>],
        beta: &[BetaVal],
        registers: &[i64],
    ) -> bool {
        let mut loops: BTreeMap<LoopId, u64> = BTreeMap::new();
        for &k in mentioned {
            // Absolute addresses are not known here.
            let Some(BetaVal::Int(value)) = beta.get(usize::from(k)) else { return false };
            for (iv, _) in &value.ivs {
                let Some(&trip) = self.trips.get(iv) else { return false };
                loops.insert(*iv, trip);
            }
        }
        let combinations = loops.values().fold(1u64, |n, &trip| n.saturating_mul(trip));
        combinations <= MOST_COMBINATIONS
            && (0..combinations).all(|number| {
                let mut rest = number;
                let at: BTreeMap<LoopId, i64> = loops
                    .iter()
                    .map(|(&iv, &trip)| {
                        let value = rest % trip;
                        rest /= trip;
                        (iv, value as i64)
                    })
                    .collect();
                let value = |b: &BetaVal| match b {
                    BetaVal::Int(value) => value.eval(|iv| at.get(&iv).copied()),
                    BetaVal::Hbm(..) => None,
                };
                let beta: Vec<Option<i64>> = beta.iter().map(value).collect();
                require.eval(Env { alpha, beta: &beta, registers }) == Ok(true)
            })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

fn affine_of(value: &BetaVal) -> &Affine {
    match value {
        BetaVal::Int(value) | BetaVal::Hbm(_, value) => value,
    }
}

fn mentions_any(expr: &Expr, betas: &BTreeSet<u16>) -> bool {
    let mut found = false;
    expr.for_each_leaf(&mut |leaf| found |= matches!(leaf, Expr::Beta(k) if betas.contains(k)));
    found
}

/// Segments of d0 that a program writes. An instruction whose slices are not known writes them all, which the caller
/// has ruled out.
fn written_spaces(isa: &Isa, program: &Program, written: &mut BTreeSet<Space>) {
    match program {
        Program::Seq(parts) => parts.iter().for_each(|part| written_spaces(isa, part, written)),
        Program::For { body, .. } => written_spaces(isa, body, written),
        Program::Instr { op, alpha, beta } => {
            let outputs = accesses(isa, *op, alpha, beta).map(|found| found.outputs).unwrap_or_default();
            written.extend(outputs.iter().filter_map(|access| match access {
                Access::Hbm(space) => Some(*space),
                Access::OnChip(_) => None,
            }));
        }
        Program::HostCopy { to, .. } => {
            written.insert(to.space);
        }
        Program::Fence => {}
    }
}
