//! Whole random pii graphs against a search that shares nothing with the allocators: it executes instructions in every
//! order and at every address, on buffers whose cells hold tokens, until every value has been where it is wanted.
//! Buffers of one to three dimensions, alignment, conditions on addresses, updates in place, results that may take an
//! operand's slot, slices and concatenations.

use super::super::{AllocError, AllocLimits, AllocOptions, AllocatorChoice, allocate};
use super::description::{Builder, alpha, beta, buffer, in_hbm, instr, int, isa, requires, slice, window};
use super::replay::{positions, replay, signed, tokens};
use crate::pii::{PiiGraph, PiiId, PiiOp};
use act_hlo::random::SplitMix64;
use act_isa::expr::Relation;
use act_isa::{Buffer, Cond, Env, Expr, Isa, Slice};
use std::collections::{BTreeMap, BTreeSet};

/// Instructions of a buffer of some rank: lengths are computational attributes, one per dimension.
fn description(rng: &mut SplitMix64, rank: usize) -> Isa {
    let most = [7, 4, 3][rank - 1];
    let access: Vec<u64> = (0..rank).map(|_| 2 + rng.below(most - 1)).collect();
    let align: Vec<u64> = (0..rank).map(|d| if d == 0 { 1 + rng.below(2) } else { 1 }).collect();
    let wide = Buffer { align, nospill: true, ..buffer("wide", &access) };
    let narrow = Buffer { nospill: true, ..buffer("narrow", &[2 + rng.below(3)]) };
    let lens: Vec<Expr> = (0..rank as u16).map(alpha).collect();
    // Betas come in groups of `rank`, one group for a slot.
    let slot = |group: usize| {
        let start: Vec<Expr> = (0..rank).map(|d| beta((group * rank + d) as u16)).collect();
        slice(0, &start, &lens)
    };
    let small = |k: usize| slice(1, &[beta(k as u16)], &[int(1)]);
    let address = |k: usize| window(beta(k as u16), int(16));
    let first = |group: usize| Expr::Beta((group * rank) as u16);
    let conds = [
        Cond::Cmp(Relation::Ge, first(1), first(0)),
        Cond::Cmp(Relation::Ne, first(0), first(1)),
        Cond::Cmp(Relation::Eq, Expr::Mod(Box::new(first(1)), Box::new(int(2))), int(1)),
        Cond::Cmp(Relation::Le, first(0), int(1)),
        Cond::Cmp(Relation::Eq, first(0), first(1)),
    ];
    let cond = conds[rng.below(conds.len() as u64) as usize].clone();
    let instrs = vec![
        instr("load", rank, rank + 1, vec![address(rank)], slot(0)),
        instr("store", rank, rank + 1, vec![slot(0)], address(rank)),
        instr("map", rank, 2 * rank, vec![slot(0)], slot(1)),
        instr("add", rank, 3 * rank, vec![slot(0), slot(1)], slot(2)),
        instr("update", rank, 2 * rank, vec![slot(0), slot(1)], slot(0)),
        requires(instr("picky", rank, 2 * rank, vec![slot(0)], slot(1)), cond),
        instr("down", rank, rank + 1, vec![slot(0)], small(rank)),
        instr("up", rank, rank + 2, vec![slot(0), small(rank)], slot(0)),
        instr("store_small", 0, 2, vec![small(0)], address(1)),
    ];
    isa(vec![wide, narrow], instrs)
}

/// A graph of a few instructions, all of which a root depends on. No value is updated in place twice: those that are
/// would be copied first.
fn graph(rng: &mut SplitMix64, isa: &Isa) -> PiiGraph {
    let rank = isa.buffers[0].access.len();
    let mut b = Builder::new(isa);
    let mut values: Vec<PiiId> = Vec::new();
    let mut small: Vec<PiiId> = Vec::new();
    let mut taken: BTreeSet<PiiId> = BTreeSet::new();
    let mut free: BTreeSet<PiiId> = BTreeSet::new();
    let shape = |rng: &mut SplitMix64| -> Vec<u64> {
        isa.buffers[0].access.iter().map(|&room| 1 + rng.below(room.min(3))).collect()
    };
    let base = shape(rng);
    let steps = 3 + rng.below(4);
    for step in 0..steps {
        let pick = |rng: &mut SplitMix64, of: &[PiiId]| of[rng.below(of.len() as u64) as usize];
        let like = |b: &Builder<'_>, values: &[PiiId], lens: &[u64]| -> Vec<PiiId> {
            values.iter().copied().filter(|&v| b.graph.node(v).lens == lens).collect()
        };
        let choice = if step < 1 || values.is_empty() { 0 } else { rng.below(10) };
        let attributes = |lens: &[u64]| lens.iter().map(|&l| l as i64).collect::<Vec<i64>>();
        let made = match choice {
            0 | 1 => {
                let lens = if rng.below(3) == 0 { shape(rng) } else { base.clone() };
                let bytes = b.bytes(step as u16, 0, 16);
                b.run("load", &attributes(&lens), &[bytes])
            }
            2 | 3 => {
                let x = pick(rng, &values);
                let lens = b.graph.node(x).lens.clone();
                b.run(if choice == 2 { "map" } else { "picky" }, &attributes(&lens), &[x])
            }
            4..=6 => {
                let x = pick(rng, &values);
                let lens = b.graph.node(x).lens.clone();
                let y = pick(rng, &like(&b, &values, &lens));
                if choice == 6 && !taken.insert(x) {
                    continue;
                }
                b.run(if choice == 6 { "update" } else { "add" }, &attributes(&lens), &[x, y])
            }
            7 => {
                let x = pick(rng, &values);
                // A part of a joint slot that is never read as a whole would have one all the same.
                if !matches!(b.graph.node(x).op, PiiOp::Instr { .. }) {
                    continue;
                }
                let lens = b.graph.node(x).lens.clone();
                let d = rng.below(rank as u64) as usize;
                let len = 1 + rng.below(lens[d]);
                let (mut start, mut part) = (vec![0; rank], lens.clone());
                start[d] = rng.below(lens[d] - len + 1);
                part[d] = len;
                b.cut(x, &start, &part)
            }
            8 => {
                let (x, y) = (pick(rng, &values), pick(rng, &values));
                let d = rng.below(rank as u64) as usize;
                let (of_x, of_y) = (b.graph.node(x).lens.clone(), b.graph.node(y).lens.clone());
                let cells: BTreeSet<_> = tokens(&b.graph, x).into_iter().collect();
                let fits = tokens(&b.graph, y).iter().all(|token| !cells.contains(token))
                    && of_x[d] + of_y[d] <= isa.buffers[0].access[d]
                    && (0..rank).all(|other| other == d || of_x[other] == of_y[other]);
                if !fits {
                    continue;
                }
                b.glue(d, &[x, y])
            }
            _ => {
                let x = pick(rng, &values);
                let lens = b.graph.node(x).lens.clone();
                match small.last() {
                    Some(&s) if taken.insert(x) => b.run("up", &attributes(&lens), &[x, s]),
                    _ => b.run("down", &attributes(&lens), &[x]),
                }
            }
        };
        b.graph.node(made).operands.iter().for_each(|o| {
            free.remove(o);
        });
        free.insert(made);
        if b.graph.node(made).buffer.is_some_and(|of| of.0 == 0) { &mut values } else { &mut small }
            .push(made);
    }
    let mut stores = Vec::new();
    for (k, &value) in free.iter().enumerate() {
        let lens: Vec<i64> = b.graph.node(value).lens.iter().map(|&l| l as i64).collect();
        let in_wide = b.graph.node(value).buffer.is_some_and(|of| of.0 == 0);
        let (name, lens) = if in_wide { ("store", lens.as_slice()) } else { ("store_small", [].as_slice()) };
        stores.push(b.store(name, lens, value, 16 * k as i64, 16));
    }
    b.root(&stores)
}

type Cell = (u16, Vec<i64>);
type Memory = BTreeMap<Cell, (u32, usize)>;
/// The steps that are done, as bits, and what lies where.
type State = (u64, Memory);

/// Whether some order and some addresses execute the graph.
struct Exhaustive<'a> {
    isa: &'a Isa,
    graph: &'a PiiGraph,
    steps: Vec<PiiId>,
    seen: BTreeSet<State>,
}

impl Exhaustive<'_> {
    fn possible(isa: &Isa, graph: &PiiGraph) -> bool {
        let is_step = |id: &PiiId| matches!(graph.node(*id).op, PiiOp::Instr { .. });
        let steps = (0..graph.nodes.len() as u32).map(PiiId).filter(is_step).collect();
        Exhaustive { isa, graph, steps, seen: BTreeSet::new() }.go(0, &Memory::new())
    }

    fn go(&mut self, done: u64, memory: &Memory) -> bool {
        if done.count_ones() as usize == self.steps.len() {
            return true;
        }
        if !self.seen.insert((done, memory.clone())) {
            return false;
        }
        for at in (0..self.steps.len()).filter(|at| done >> at & 1 == 0) {
            let id = self.steps[at];
            let PiiOp::Instr { op, alpha, .. } = &self.graph.node(id).op else { continue };
            let decl = self.isa.instr(*op);
            let alpha: Vec<Option<i64>> = alpha.iter().map(|a| a.as_int()).collect();
            let mut betas: Vec<Option<i64>> = vec![None; decl.beta.len()];
            // Where an operand's first cell lies is where the slice that reads it starts.
            let readable = decl.inputs.iter().zip(&self.graph.node(id).operands).all(|(slice, &operand)| {
                let Slice::OnChip(s) = slice else { return true };
                let wanted = tokens(self.graph, operand);
                let at = memory.iter().find(|((b, _), token)| *b == s.buffer.0 && **token == wanted[0]);
                let Some(((_, start), _)) = at else { return false };
                let consistent = s.start.iter().zip(start).all(|(beta, &at)| {
                    let Expr::Beta(k) = beta else { panic!("starts are betas here") };
                    *betas[usize::from(*k)].get_or_insert(at) == at
                });
                let cells = positions(start, &signed(&self.graph.node(operand).lens));
                let found: Vec<_> = cells.into_iter().map(|p| memory.get(&(s.buffer.0, p))).collect();
                consistent
                    && self.admits(s.buffer.0, start)
                    && found == wanted.iter().map(Some).collect::<Vec<_>>()
            });
            if !readable {
                continue;
            }
            let Slice::OnChip(out) = &decl.outputs[0] else {
                if self.go(done | 1 << at, memory) {
                    return true;
                }
                continue;
            };
            let lens = signed(&self.graph.node(id).lens);
            let room = signed(&self.isa.buffers[usize::from(out.buffer.0)].access);
            let starts: Vec<i64> = room.iter().zip(&lens).map(|(r, l)| r - l + 1).collect();
            for start in positions(&vec![0; room.len()], &starts) {
                let mut betas = betas.clone();
                let consistent = out.start.iter().zip(&start).all(|(beta, &at)| {
                    let Expr::Beta(k) = beta else { panic!("starts are betas here") };
                    *betas[usize::from(*k)].get_or_insert(at) == at
                });
                let env = Env { alpha: &alpha, beta: &betas, registers: &[] };
                if !consistent
                    || !self.admits(out.buffer.0, &start)
                    || !decl.requires.iter().all(|c| c.eval(env) == Ok(true))
                {
                    continue;
                }
                let mut after = memory.clone();
                for (p, t) in positions(&start, &lens).into_iter().zip(tokens(self.graph, id)) {
                    after.insert((out.buffer.0, p), t);
                }
                if self.go(done | 1 << at, &after) {
                    return true;
                }
            }
        }
        false
    }

    fn admits(&self, buffer: u16, start: &[i64]) -> bool {
        start.iter().zip(&self.isa.buffers[usize::from(buffer)].align).all(|(s, &a)| s % a as i64 == 0)
    }
}

/// Graphs for each rank.
const GRAPHS: u64 = 700;

#[test]
fn both_allocators_agree_with_execution_in_every_order_at_every_address() {
    let limits = AllocLimits { orders: 10_000, prefixes: 1_000_000, spills: 0, ..AllocLimits::default() };
    for rank in 1..=3 {
        let (mut placed, mut refused, mut updates) = (0, 0, 0);
        for seed in 0..GRAPHS {
            let mut rng = SplitMix64::new(seed * 3 + rank as u64);
            let isa = description(&mut rng, rank);
            let graph = graph(&mut rng, &isa);
            let kernel = in_hbm(8);
            let possible = Exhaustive::possible(&isa, &graph);
            for allocator in [AllocatorChoice::Auto, AllocatorChoice::CpSat] {
                match allocate(&isa, &kernel, &graph, &AllocOptions { allocator, limits }) {
                    Ok(allocation) => {
                        assert!(possible, "rank {rank} seed {seed}: {}", graph.text(&isa));
                        replay(&isa, &kernel, &allocation.graph, &allocation);
                    }
                    Err(AllocError::NoFit { .. } | AllocError::NoOrder) => {
                        assert!(!possible, "rank {rank} seed {seed} {allocator:?}: {}", graph.text(&isa));
                    }
                    Err(other) => panic!("rank {rank} seed {seed}: {other}\n{}", graph.text(&isa)),
                }
            }
            *if possible { &mut placed } else { &mut refused } += 1;
            let update = |id: &PiiId| matches!(graph.node(*id).op, PiiOp::Instr { op, .. } if isa.instr(op).updates_in_place(0).is_some());
            updates += u32::from((0..graph.nodes.len() as u32).map(PiiId).any(|id| update(&id)));
        }
        assert!(placed > 150 && refused > 100 && updates > 150, "rank {rank}: {placed} {refused} {updates}");
    }
}
