//! Extraction against brute force: on random small AND/OR graphs with sharing and circles, the search gives every acyclic
//! choice once, and by exact cost.

use crate::phase1::cuts::Cuts;
use crate::phase1::demand::{Alternative, Choice, Demand, DemandGraph};
use crate::phase1::enumerate::{Choices, Enumeration, NONE, Space};
use act_hlo::random::SplitMix64;
use act_isa::BufferId;
use egg::Id;
use std::collections::{BTreeMap, BTreeSet};

/// `n` demands with up to `options` ways each and up to three needs, any demand among them.
fn graph(rng: &mut SplitMix64, n: usize, options: u64) -> DemandGraph {
    let mut graph = DemandGraph::default();
    for d in 0..n {
        let ways = (0..=rng.below(options)).map(|_| {
            let needs = (0..rng.below(4)).map(|_| {
                // Mostly forward, so that circles are there and do not prevail.
                let later = d + 1 + rng.below(4) as usize;
                if rng.below(5) == 0 || later >= n { rng.below(n as u64) as usize } else { later }
            });
            Alternative { choice: Choice::Parts, needs: needs.collect(), cost: rng.below(6) }
        });
        let ways = ways.collect();
        graph.demands.insert(Demand::OnChip(Id::from(d), BufferId(0)), ways);
    }
    graph
}

/// All acyclic choices and their costs, by trying everything.
fn brute_force(graph: &DemandGraph, roots: &[usize]) -> BTreeMap<Choices, u64> {
    fn circular(graph: &DemandGraph, chosen: &Choices) -> bool {
        let mut left: BTreeSet<usize> = chosen.keys().copied().collect();
        while let Some(&d) =
            left.iter().find(|d| graph.options(**d)[chosen[*d]].needs.iter().all(|n| !left.contains(n)))
        {
            left.remove(&d);
        }
        !left.is_empty()
    }
    fn go(graph: &DemandGraph, chosen: &mut Choices, roots: &[usize], all: &mut BTreeMap<Choices, u64>) {
        let needs = chosen.iter().flat_map(|(d, o)| graph.options(*d)[*o].needs.iter());
        let open = roots.iter().chain(needs).copied().find(|d| !chosen.contains_key(d));
        let Some(d) = open else {
            if !circular(graph, chosen) {
                let cost = chosen.iter().map(|(d, o)| graph.options(*d)[*o].cost).sum();
                all.insert(chosen.clone(), cost);
            }
            return;
        };
        for o in 0..graph.options(d).len() {
            chosen.insert(d, o);
            go(graph, chosen, roots, all);
            chosen.remove(&d);
        }
    }
    let mut all = BTreeMap::new();
    go(graph, &mut Choices::new(), roots, &mut all);
    all
}

#[test]
fn every_choice_comes_once_and_in_the_order_of_exact_cost() {
    let (mut some, mut circular, mut shared) = (0, 0, 0);
    for seed in 0..600 {
        let mut rng = SplitMix64::new(seed);
        let n = 2 + rng.below(7) as usize;
        let graph = graph(&mut rng, n, 3);
        let roots = if n > 3 && seed % 2 == 0 { vec![0, 1, 0] } else { vec![0] };
        let expected = brute_force(&graph, &roots);
        circular += usize::from(graph.meetable().iter().any(|m| !m));
        let Some(mut search) = Enumeration::new(graph, &roots, usize::MAX, usize::MAX) else {
            assert!(expected.is_empty(), "seed {seed}: {} choices were not seen", expected.len());
            continue;
        };
        let mut given = BTreeMap::new();
        let mut last = 0;
        while let Some((choices, cost)) = search.next_choice() {
            assert!(cost >= last, "seed {seed}: {cost} after {last}");
            last = cost;
            let uses: usize = choices.iter().map(|(d, o)| search.graph().options(*d)[*o].needs.len()).sum();
            shared += usize::from(uses >= choices.len());
            assert_eq!(given.insert(choices, cost), None, "seed {seed}: given twice");
        }
        assert_eq!(given, expected, "seed {seed}");
        some += usize::from(expected.len() > 1);
    }
    assert!(some > 100 && circular > 100 && shared > 100, "{some} {circular} {shared}");
}

/// At its limit the search still gives what it has completed, cheapest first, and says so.
#[test]
fn a_large_graph_has_a_first_choice_at_any_limit() {
    let mut rng = SplitMix64::new(3);
    let n = 3000;
    let mut graph = graph(&mut rng, n, 4);
    // Whatever else it needs, every demand can be met on its own.
    for d in 0..n {
        let dear = Alternative { choice: Choice::Parts, needs: Vec::new(), cost: 40 };
        graph.demands[d].push(dear);
    }
    let mut search = Enumeration::new(graph, &[0], 0, usize::MAX).expect("the root can be met");
    let found: Vec<u64> = std::iter::from_fn(|| search.next_choice()).map(|c| c.1).collect();
    assert!(!found.is_empty() && found.is_sorted());
    assert!(search.exhausted_limit());
}

/// A value that everything uses costs once: the search finds what counting it every time would pass by.
#[test]
fn sharing_is_cheaper_than_it_looks() {
    let mut graph = DemandGraph::default();
    let way = |needs: &[usize], cost| Alternative { choice: Choice::Parts, needs: needs.to_vec(), cost };
    // 0 needs 1..=8; each of them is made from 9 for nothing, or alone for 2; 9 costs 10.
    let needs: Vec<usize> = (1..=8).collect();
    graph.demands.insert(Demand::OnChip(Id::from(0), BufferId(0)), vec![way(&needs, 1)]);
    for d in 1..=8 {
        graph.demands.insert(Demand::OnChip(Id::from(d), BufferId(0)), vec![way(&[9], 0), way(&[], 2)]);
    }
    graph.demands.insert(Demand::OnChip(Id::from(9usize), BufferId(0)), vec![way(&[], 10)]);
    let mut search = Enumeration::new(graph, &[0], 1000, usize::MAX).expect("the root can be met");
    let costs: Vec<u64> = std::iter::from_fn(|| search.next_choice()).map(|c| c.1).collect();
    assert_eq!((costs.len(), costs[0], costs[1]), (256, 11, 13));
}

/// Thirty-two demands, each met alone for 24 or with its three neighbours for 72. The search could not go through all the
/// choices: the first one is the cheapest.
#[test]
fn the_first_choice_is_made_for_sharing() {
    let mut graph = DemandGraph::default();
    let way = |needs: &[usize], cost| Alternative { choice: Choice::Parts, needs: needs.to_vec(), cost };
    let needs: Vec<usize> = (1..=32).collect();
    graph.demands.insert(Demand::OnChip(Id::from(0), BufferId(0)), vec![way(&needs, 1)]);
    for d in 1..=32 {
        let four = 33 + (d - 1) / 4;
        graph.demands.insert(Demand::OnChip(Id::from(d), BufferId(0)), vec![way(&[], 24), way(&[four], 0)]);
    }
    for four in 33..=40 {
        graph.demands.insert(Demand::OnChip(Id::from(four), BufferId(0)), vec![way(&[], 72)]);
    }
    let mut search = Enumeration::new(graph, &[0], 100, usize::MAX).expect("the root can be met");
    assert_eq!((search.first_cost(), search.next_choice().map(|c| c.1)), (1 + 8 * 72, Some(1 + 8 * 72)));
}

/// What is chosen for sharing is a choice without circles, and mostly the cheapest.
#[test]
fn shared_choices_are_choices() {
    let (mut least, mut all) = (0, 0);
    for seed in 0..600 {
        let mut rng = SplitMix64::new(seed);
        let n = 2 + rng.below(7) as usize;
        let graph = graph(&mut rng, n, 3);
        let roots = if n > 3 && seed % 2 == 0 { vec![0, 1] } else { vec![0] };
        let choices = brute_force(&graph, &roots);
        let Some(space) = Space::new(graph, &roots) else { continue };
        let (chosen, cost) = space.shared();
        let options = chosen.iter().enumerate().filter(|(_, k)| **k != NONE);
        let chosen: Choices = options.map(|(d, &k)| (d, space.open[d][k as usize].option)).collect();
        assert_eq!(choices.get(&chosen), Some(&cost), "seed {seed}");
        all += 1;
        least += usize::from(choices.values().min() == Some(&cost));
    }
    assert!(all > 300 && least * 100 > all * 95, "{least} of {all}");
}

/// The bound of the cuts is below the cheapest choice, and mostly it is that.
#[test]
fn cuts_bound_every_choice_from_below() {
    let (mut tight, mut all) = (0, 0);
    for seed in 0..600 {
        let mut rng = SplitMix64::new(seed);
        let n = 2 + rng.below(8) as usize;
        let graph = graph(&mut rng, n, 3);
        let roots = if n > 3 && seed % 2 == 0 { vec![0, 1] } else { vec![0] };
        let least = brute_force(&graph, &roots).into_values().min();
        let (Some(least), Some(space)) = (least, Space::new(graph, &roots)) else { continue };
        let bound = Cuts::new(&space).bound();
        assert!(bound <= least, "seed {seed}: {bound} above {least}");
        all += 1;
        tight += usize::from(bound == least);
    }
    assert!(all > 300 && tight * 100 > all * 95, "{tight} of {all}");
}

/// Values that may be copied from one buffer to another and back: copying in a circle makes nothing, so each level costs
/// what making its value costs, and the search goes straight down.
#[test]
fn circles_do_not_weaken_the_bound() {
    let way = |needs: &[usize], cost| Alternative { choice: Choice::Parts, needs: needs.to_vec(), cost };
    let levels = 100;
    let mut graph = DemandGraph::default();
    for level in 0..levels {
        let (here, there, below) = (2 * level, 2 * level + 1, 2 * level + 2);
        let made = if level + 1 < levels { way(&[below, below + 1], 50) } else { way(&[], 50) };
        graph.demands.insert(Demand::OnChip(Id::from(here), BufferId(0)), vec![way(&[there], 1), made]);
        graph.demands.insert(Demand::OnChip(Id::from(there), BufferId(0)), vec![way(&[here], 1)]);
    }
    let least = 50 * levels as u64 + levels as u64 - 1;
    let space = Space::new(graph, &[0]).expect("the root can be met");
    assert_eq!(Cuts::new(&space).bound(), least);
}
