//! Instructions with several outputs: what the wanted one does not decide is decided by the others. Knows the rules as
//! data only.

use super::matcher::{Matcher, Target};
use super::matching::{Bound, MATCHES, Match, Matching, State};
use super::polynomial::Polynomial;
use act_isa::{Slice, View};
use egg::Id;

impl<'a> Matching<'a> {
    /// Adds the instruction that computes `class` as its output number `output`, once its other outputs have what they
    /// need too.
    pub(super) fn complete(
        &self,
        matcher: &Matcher,
        output: usize,
        class: Id,
        state: State<'a>,
        place: Option<&View>,
        found: &mut Vec<Match>,
    ) {
        let instr = self.isa.instr(matcher.instr);
        if instr.outputs.len() == 1 {
            found.extend(self.instantiate(matcher, state, (output, class), place));
            return;
        }
        let mut states = vec![(state, place.cloned())];
        if place.is_none() && instr.outputs.iter().any(|slice| matches!(slice, Slice::Hbm(_))) {
            states = states.into_iter().flat_map(|(state, _)| self.beside_store(matcher, &state)).collect();
        }
        for (state, place) in states {
            let whole = |state: &State<'_>| state.inputs.iter().all(Option::is_some);
            let open = !whole(&state);
            let mut ready = if open { self.beside_slots(matcher, output, &state) } else { Vec::new() };
            ready.extend(if open { self.with_anything(matcher, state) } else { Some(state) });
            let ready = ready.into_iter().filter(whole);
            found.extend(ready.filter_map(|s| self.instantiate(matcher, s, (output, class), place.as_ref())));
        }
    }

    /// The ways in which the output that lies in d0 is a result of the kernel.
    fn beside_store(&self, matcher: &Matcher, state: &State<'a>) -> Vec<(State<'a>, Option<View>)> {
        let mut found = Vec::new();
        for target in &matcher.targets {
            let Target::Store { root, view, .. } = target else { continue };
            for (class, place) in self.stored {
                let Some(place) = place.strided() else { continue };
                let states = self.stores(matcher, *root, view, *class, &place, state.clone());
                found.extend(states.into_iter().map(|state| (state, Some(place.clone()))));
            }
        }
        found
    }

    /// The ways in which the other outputs on chip are values that there are.
    fn beside_slots(&self, matcher: &Matcher, output: usize, state: &State<'a>) -> Vec<State<'a>> {
        let mut ids: Vec<Id> = self.egraph.classes().map(|class| class.id).collect();
        ids.sort_unstable();
        let mut states = vec![state.clone()];
        let others = (0..self.isa.instr(matcher.instr).outputs.len()).filter(|&other| other != output);
        for other in others {
            let mut next = Vec::new();
            for state in &states {
                for target in &matcher.targets {
                    let Target::OnChip { output: of, root, buffer, lens } = target else { continue };
                    for &class in ids.iter().filter(|_| *of == other) {
                        if next.len() >= MATCHES {
                            break;
                        }
                        let mut state = state.clone();
                        if self.slot(class, *buffer, lens, &mut state.solution) {
                            next.extend(self.rooted(matcher, *root, class, state));
                        }
                    }
                }
            }
            if !next.is_empty() {
                states = next;
            }
        }
        states
    }

    /// What the wanted output does not depend on may be any value: one that is an operand anyway.
    fn with_anything(&self, matcher: &Matcher, mut state: State<'a>) -> Option<State<'a>> {
        let instr = self.isa.instr(matcher.instr);
        for (k, slice) in instr.inputs.iter().enumerate() {
            if state.inputs[k].is_some() {
                continue;
            }
            let Slice::OnChip(slice) = slice else { return None };
            let lens: Vec<Polynomial> = slice.len.iter().map(Polynomial::of).collect();
            let known: Vec<Id> = state
                .inputs
                .iter()
                .filter_map(|bound| match bound {
                    Some(Bound::Class(class, buffer)) if *buffer == slice.buffer => Some(*class),
                    _ => None,
                })
                .collect();
            let fitting = known.into_iter().find_map(|class| {
                let mut solution = state.solution.clone();
                self.slot(class, slice.buffer, &lens, &mut solution).then_some((class, solution))
            });
            let (class, solution) = fitting?;
            state.solution = solution;
            state.inputs[k] = Some(Bound::Class(class, slice.buffer));
        }
        Some(state)
    }
}
