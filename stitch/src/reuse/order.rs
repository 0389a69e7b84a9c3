//! Orders of a nest of independent loops: permutations, and one loop cut into blocks whose inner part comes last, so
//! that what the loop between them loads serves a whole block.

use super::nest::{FreshLoops, instance};
use act_isa::{Affine, LoopId, Program};

/// Loops from the outside in whose order is free, and what they run.
struct Chain<'a> {
    loops: Vec<(LoopId, u64)>,
    body: &'a Program,
}

/// A way to run a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// Position in the original nest of every loop, from the outside in.
    permutation: Vec<usize>,
    /// The loop before the last is cut into blocks of so many iterations, run inside the last.
    block: Option<u64>,
}

/// Nests deeper than this keep their outer loops as they are.
const PERMUTED: usize = 3;

fn chain(nest: &Program) -> Chain<'_> {
    let mut loops = Vec::new();
    let mut body = nest;
    loop {
        match body {
            Program::For { iv, trip, parallel: true, body: inner } => {
                loops.push((*iv, *trip));
                body = inner;
            }
            Program::Seq(parts) if !loops.is_empty() => match &parts[..] {
                [only @ Program::For { parallel: true, .. }] => body = only,
                _ => break,
            },
            _ => break,
        }
    }
    Chain { loops, body }
}

/// The orders of a nest, its own first.
pub(super) fn orders(nest: &Program) -> Vec<Order> {
    let loops = chain(nest).loops;
    let fixed = loops.len().saturating_sub(PERMUTED);
    let mut found = Vec::new();
    for tail in permutations(&(fixed..loops.len()).collect::<Vec<usize>>()) {
        let permutation: Vec<usize> = (0..fixed).chain(tail).collect();
        found.push(Order { permutation: permutation.clone(), block: None });
        let Some(&[blocked, _]) = permutation.last_chunk::<2>() else { continue };
        let mut block = 2;
        while block < loops[blocked].1 {
            found.push(Order { permutation: permutation.clone(), block: Some(block) });
            block *= 2;
        }
    }
    found
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for (at, &first) in of.iter().enumerate() {
        let rest = [&of[..at], &of[at + 1..]].concat();
        for mut tail in permutations(&rest) {
            tail.insert(0, first);
            found.push(tail);
        }
    }
    found
}

impl Order {
    /// The nest in this order, all its loops renamed: whole blocks, and then the rest of the blocked loop. Empty when an
    /// address overflows.
    pub(super) fn apply(&self, nest: &Program, names: &mut FreshLoops) -> Vec<Program> {
        let chain = chain(nest);
        let order: Vec<(LoopId, u64)> = self.permutation.iter().map(|&k| chain.loops[k]).collect();
        let Some((block, (blocked, trip))) =
            self.block.zip(order.len().checked_sub(2).and_then(|at| order.get(at).copied()))
        else {
            return self.build(&chain, &order, None, names).into_iter().collect();
        };
        let whole = Block { blocked, first: 0, len: block, count: trip / block };
        let rest = Block { blocked, first: trip / block * block, len: trip % block, count: 1 };
        let blocks = [whole, rest].into_iter().filter(|b| b.len > 0);
        blocks
            .map(|b| self.build(&chain, &order, Some(b), names))
            .collect::<Option<Vec<_>>>()
            .unwrap_or_default()
    }

    fn build(
        &self,
        chain: &Chain<'_>,
        order: &[(LoopId, u64)],
        block: Option<Block>,
        names: &mut FreshLoops,
    ) -> Option<Program> {
        let mut replaced = Vec::new();
        let mut loops = Vec::new();
        let mut inner = None;
        for &(iv, trip) in order {
            match block {
                Some(block) if block.blocked == iv => {
                    let mut value = Affine::constant(i64::try_from(block.first).ok()?);
                    if block.count > 1 {
                        let outer = names.fresh();
                        loops.push((outer, block.count));
                        value.add_term(outer, i64::try_from(block.len).ok()?)?;
                    }
                    let within = names.fresh();
                    value.add_term(within, 1)?;
                    inner = Some((within, block.len));
                    replaced.push((iv, value));
                }
                _ => {
                    let fresh = names.fresh();
                    loops.push((fresh, trip));
                    replaced.push((iv, Affine { c0: 0, ivs: vec![(fresh, 1)] }));
                }
            }
        }
        loops.extend(inner);
        let body = instance(chain.body, &mut replaced, names)?;
        Some(loops.into_iter().rev().fold(body, |body, (iv, trip)| {
            let body = match body {
                Program::Seq(_) => body,
                other => Program::Seq(vec![other]),
            };
            Program::For { iv, trip, parallel: true, body: Box::new(body) }
        }))
    }
}

/// Part of a blocked loop: `count` blocks of `len` iterations from iteration `first` on.
#[derive(Clone, Copy)]
struct Block {
    blocked: LoopId,
    first: u64,
    len: u64,
    count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use act_isa::{BetaVal, InstrId};
    use std::collections::BTreeMap;

    fn nest(trips: &[u64]) -> Program {
        let value = Affine {
            c0: 0,
            ivs: (0..trips.len()).map(|k| (LoopId(k as u32), 100i64.pow(k as u32))).collect(),
        };
        let instr = Program::Instr { op: InstrId(0), alpha: vec![], beta: vec![BetaVal::Int(value)] };
        let body = Program::Seq(vec![instr]);
        trips.iter().enumerate().rev().fold(body, |body, (k, &trip)| {
            let iv = LoopId(k as u32);
            Program::Seq(vec![Program::For { iv, trip, parallel: true, body: Box::new(body) }])
        })
    }

    fn values(program: &Program, loops: &mut BTreeMap<LoopId, i64>, out: &mut Vec<i64>) {
        match program {
            Program::Seq(parts) => parts.iter().for_each(|p| values(p, loops, out)),
            Program::For { iv, trip, body, .. } => {
                for i in 0..*trip {
                    loops.insert(*iv, i as i64);
                    values(body, loops, out);
                }
                loops.remove(iv);
            }
            Program::Instr { beta, .. } => {
                let [BetaVal::Int(value)] = &beta[..] else { panic!("one position") };
                out.push(value.eval(|iv| loops.get(&iv).copied()).expect("bound"));
            }
            _ => panic!("nothing else"),
        }
    }

    #[test]
    fn every_order_runs_every_iteration_once() {
        for trips in [&[5][..], &[2, 7], &[9, 4], &[3, 1, 6], &[2, 3, 2, 5]] {
            let Program::Seq(parts) = nest(trips) else { panic!("a sequence") };
            let mut expected = Vec::new();
            values(&parts[0], &mut BTreeMap::new(), &mut expected);
            expected.sort_unstable();
            let orders = orders(&parts[0]);
            assert_eq!(orders[0].block, None);
            for order in orders {
                let mut names = FreshLoops::after(&parts[0]);
                let applied = Program::Seq(order.apply(&parts[0], &mut names));
                let mut found = Vec::new();
                values(&applied, &mut BTreeMap::new(), &mut found);
                found.sort_unstable();
                assert_eq!(found, expected, "{trips:?} {order:?}");
            }
        }
    }

    #[test]
    fn a_block_runs_inside_the_loop_after_it() {
        let Program::Seq(parts) = nest(&[9, 4]) else { panic!("a sequence") };
        let order = Order { permutation: vec![0, 1], block: Some(4) };
        let applied = order.apply(&parts[0], &mut FreshLoops::after(&parts[0]));
        let mut found = Vec::new();
        values(&Program::Seq(applied), &mut BTreeMap::new(), &mut found);
        assert_eq!(found[..6], [0, 1, 2, 3, 100, 101]);
        assert_eq!(found[32..], [8, 108, 208, 308]);
    }
}
