//! Semi-naive saturation leaves nothing out: where it says that it is done, asking every rule about every node adds
//! nothing.

use super::examples::example;
use super::{gemmini, kernel};
use crate::numerics::FloatPolicy;
use crate::phase1::explore::{Saturation, StopReason, initial, proposals};
use crate::phase1::rules::{self, Rule};
use crate::phase1::vocabulary::Vocabulary;
use act_isa::load_target;

#[test]
fn where_it_is_done_no_rule_has_anything_to_add() {
    let mut done = 0;
    for target in ["gemmini", "trainium", "h_qkv"] {
        let vocabulary = Vocabulary::of(&load_target(target).unwrap_or_else(|e| panic!("{e}")));
        let policy = FloatPolicy::Xla;
        let on: Vec<&'static Rule> =
            rules::all().into_iter().filter(|r| r.policy <= policy && (r.useful)(&vocabulary)).collect();
        let examples = rules::all().into_iter().map(|rule| example(rule.name, 1));
        let others = [gemmini::product(40, 33, 17), gemmini::requantized(20, 16, 16)];
        for text in examples.chain(others) {
            let start = initial(&kernel(&text), policy);
            let mut saturation = Saturation::new(start, &on, &vocabulary, policy, 40, 4000);
            // With a pause, which must change nothing.
            saturation.run(200);
            saturation.run(usize::MAX);
            let mut explored = saturation.explored;
            if explored.report.stop != StopReason::Saturated {
                continue;
            }
            done += 1;
            let before = explored.egraph.number_of_classes();
            for (rule, class, term) in proposals(&explored.egraph, &on, &vocabulary, policy) {
                let nodes = explored.egraph.total_size();
                let right = term.add_to(&mut explored.egraph);
                let joined = explored.egraph.union(class, right);
                assert!(!joined, "{target}: {rule} was not asked again\n{text}");
                assert_eq!(explored.egraph.total_size(), nodes, "{target}: {rule}\n{text}");
            }
            assert_eq!(explored.egraph.number_of_classes(), before);
        }
    }
    assert!(done > 60, "{done}");
}
