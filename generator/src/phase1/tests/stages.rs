//! Exploration and extraction in turns: stages end when nothing cheaper comes, go on when asked to, give no graph twice,
//! and lead to what exploring everything at once leads to. Order by aversion.

use super::examples::example;
use super::{kernel, numerics, selector};
use crate::numerics::FloatPolicy;
use crate::phase1::{Aversion, Limits, StopReason, rules};
use crate::pii::PiiGraph;
use act_isa::BufferId;
use std::collections::HashSet;

/// Graphs looked at per stage.
const GRAPHS: usize = 40;

#[test]
fn stages_go_on_to_all_that_there_is() {
    let (mut settled, mut compared, mut equal) = (0, 0, 0);
    for target in ["gemmini", "trainium"] {
        let (_, selector) = selector(target);
        for rule in rules::all().into_iter().step_by(2) {
            let kernel = kernel(&example(rule.name, 1));
            let whole = Limits { settled: usize::MAX, nodes: 3000, ..Limits::default() };
            let Ok(mut all) = selector.select(&kernel, numerics(FloatPolicy::Xla), &whole) else { continue };
            let Some(least) = all.next_of_stage() else { continue };
            if all.exploration().stop != StopReason::Saturated {
                continue;
            }
            let limits = Limits { settled: 0, ..whole };
            let selection = selector.select(&kernel, numerics(FloatPolicy::Xla), &limits);
            let mut selection = selection.unwrap_or_else(|e| panic!("{}: {e}", rule.name));
            settled += usize::from(selection.exploration().stop == StopReason::Settled);
            let (mut seen, mut best) = (HashSet::new(), u64::MAX);
            loop {
                for _ in 0..GRAPHS {
                    let Some(found) = selection.next_of_stage() else { break };
                    best = best.min(found.cost);
                    assert!(seen.insert(found.graph), "{}: given twice", rule.name);
                }
                if !selection.advance() {
                    break;
                }
            }
            assert_eq!(selection.exploration().stop, StopReason::Saturated, "{}", rule.name);
            // What is cut for loads and stores at one stage is rewritten further at the next.
            assert!(best <= least.cost, "{}: {best} {}", rule.name, least.cost);
            equal += usize::from(best == least.cost);
            compared += 1;
        }
    }
    assert!(compared > 20 && settled > 0, "{settled} of {compared}");
    assert!(equal * 20 > compared * 19, "{equal} of {compared}");
}

#[test]
fn graphs_that_do_without_a_buffer_come_first() {
    let (isa, selector) = selector("trainium");
    let inside = |graph: &PiiGraph, buffer| graph.nodes.iter().filter(|n| n.buffer == Some(buffer)).count();
    let mut fewer = 0;
    for rule in rules::all().into_iter().step_by(4) {
        let kernel = kernel(&example(rule.name, 1));
        let limits = Limits { nodes: 2000, ..Limits::default() };
        let select = || selector.select(&kernel, numerics(FloatPolicy::Xla), &limits).ok();
        let Some(first) = select().and_then(|mut s| s.next_of_stage()) else { continue };
        for buffer in (0..isa.buffers.len()).map(|b| BufferId(b as u16)) {
            let Some(mut selection) = select() else { continue };
            if selection.avoid(Aversion::Buffer(buffer))
                && let Some(other) = selection.next_of_stage()
            {
                fewer += usize::from(inside(&other.graph, buffer) < inside(&first.graph, buffer));
                assert!(other.cost >= first.cost, "{}", rule.name);
            }
        }
    }
    assert!(fewer > 0);
}
