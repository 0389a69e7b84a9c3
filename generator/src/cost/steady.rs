//! Loops of the queue model: rounds are simulated until the state of the machine repeats, and those that are left are
//! taken to repeat it. Rounds in which something moves to another bank are simulated.

use super::nest::{Loop, Move};
use super::queues::Machine;

/// Rounds without a repetition after which the mean of the last [`MEAN`] is taken for the others.
const MOST_DISTINCT: usize = 16;
const MEAN: usize = 8;

/// Simulated instructions after which rounds between banks are no longer simulated one by one.
const MOST_EXACT: u64 = 1_000_000;

impl<'a> Machine<'a> {
    pub(super) fn run_loop(&mut self, of: &'a Loop, values: &mut Vec<i64>) {
        let mut seen: Vec<(u64, Vec<i64>)> = Vec::new();
        let mut round = 0u64;
        values.truncate(of.slot);
        values.push(0);
        while round < of.trip {
            if let Some(value) = values.get_mut(of.slot) {
                *value = i64::try_from(round).unwrap_or(i64::MAX);
            }
            self.run(&of.body, values);
            values.truncate(of.slot + 1);
            round += 1;
            let left = of.trip - round;
            // The last round is simulated: what comes after the loop sees its state.
            if left < 2 || !self.extrapolates {
                continue;
            }
            let signature = self.signature();
            let repeats = seen.iter().rposition(|(_, earlier)| *earlier == signature);
            let period = match repeats {
                Some(at) => seen.len() - at,
                None if seen.len() >= MOST_DISTINCT => MEAN,
                None => 0,
            };
            let clock = self.clock;
            if let Some((earlier, _)) = seen.len().checked_sub(period).and_then(|at| seen.get(at))
                && period > 0
            {
                let same_banks = of.moves.iter().map(|m| m.rounds_left(round - 1, values)).min();
                let free = if self.steps > MOST_EXACT { left } else { same_banks.unwrap_or(left) };
                let skipped = (left - 1).min(free) / period as u64;
                if skipped > 0 {
                    let rounds = skipped * period as u64;
                    self.pass(of.slot, rounds, (clock - earlier).saturating_mul(skipped));
                    round += rounds;
                    seen.clear();
                    continue;
                }
            }
            if seen.len() == 2 * MOST_DISTINCT {
                seen.drain(..MOST_DISTINCT);
            }
            seen.push((clock, signature));
        }
        values.truncate(of.slot);
    }
}

impl Move {
    /// Rounds after `round` in which the range stays in the bank it is in; none when it lies in several.
    fn rounds_left(&self, round: u64, values: &[i64]) -> u64 {
        let at = i64::try_from(round).ok().and_then(|round| self.step.checked_mul(round));
        let Some(base) = at.and_then(|at| self.base.at(values).checked_add(at)) else { return 0 };
        let (low, high) = (base.saturating_add(self.low), base.saturating_add(self.high));
        let bank = low.div_euclid(self.bank);
        if bank != high.div_euclid(self.bank) {
            return 0;
        }
        let room = if self.step > 0 {
            bank.saturating_add(1).saturating_mul(self.bank).saturating_sub(1).saturating_sub(high)
        } else {
            low.saturating_sub(bank.saturating_mul(self.bank))
        };
        u64::try_from(room).unwrap_or(0) / self.step.unsigned_abs().max(1)
    }
}
