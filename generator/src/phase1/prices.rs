//! A lower bound of what completes a partial choice, by prices. Every demand divides its least cost among those who may
//! use it, so that what is shared is counted once: prices are the dual of the linear relaxation of extraction. If no
//! option of a demand costs less, own cost and the prices that it pays included, than the demand takes in from its
//! users, then the prices that the roots pay bound the cost of every complete choice from below:
//!
//! own cost of a choice = sum over its demands of (own cost + prices paid for its needs - income from its users)
//!                      + prices that the roots pay + prices of users that turned out not to use a demand,
//!
//! and none of the terms is negative. The first and the last are what a decision adds to the bound.

use super::enumerate::Space;

/// Prices are multiples of 1 / SCALE cycles, so that dividing loses little; what it loses makes the bound smaller.
pub(super) const SCALE: u64 = 1 << 16;

/// Sweeps over the demands: one is enough without circles.
const SWEEPS: usize = 3;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// Per demand what it pays for each demand that some option of it needs, by index of the latter.
    paid: Vec<Vec<(usize, u64)>>,
    /// The same, per demand that is paid for.
    payers: Vec<Vec<(usize, u64)>>,
    income: Vec<u64>,
    roots: u64,
}

impl Prices {
    /// Prices that charge the users of a demand in `chosen`, evenly; a demand that is not in it charges all who may use
    /// it.
    pub(super) fn new(space: &Space, chosen: &[u32]) -> Prices {
        let n = space.open.len();
        let uses = |user: usize, need: usize| {
            let k = chosen[user];
            k != NONE && space.open[user][k as usize].needs.binary_search(&need).is_ok()
        };
        let mut root = vec![false; n];
        space.roots.iter().for_each(|&r| root[r] = true);
        let mut paid: Vec<Vec<(usize, u64)>> = space
            .open
            .iter()
            .map(|options| {
                let mut needs: Vec<usize> = options.iter().flat_map(|o| o.needs.iter().copied()).collect();
                needs.sort_unstable();
                needs.dedup();
                needs.into_iter().map(|need| (need, 0)).collect()
            })
            .collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (user, needs) in paid.iter().enumerate() {
            needs.iter().for_each(|&(need, _)| users[need].push(user));
        }
        // Who pays, and in how many parts the cost is divided.
        let mut parts = vec![0u64; n];
        for (d, users) in users.iter_mut().enumerate() {
            if chosen[d] != NONE {
                users.retain(|&user| uses(user, d));
            }
            parts[d] = users.len() as u64 + u64::from(root[d]);
        }
        let mut roots = vec![0u64; n];
        for _ in 0..SWEEPS {
            let mut changed = false;
            for d in space.components.order() {
                let least = space.open[d].iter().map(|option| {
                    let price = |need: usize| match paid[d].binary_search_by_key(&need, |p| p.0) {
                        Ok(at) => paid[d][at].1,
                        Err(_) => 0,
                    };
                    let needs = option.needs.iter().fold(0u64, |sum, &need| sum.saturating_add(price(need)));
                    option.cost.saturating_mul(SCALE).saturating_add(needs)
                });
                let Some(share) = least.min().and_then(|least| least.checked_div(parts[d])) else { continue };
                for &user in &users[d] {
                    if let Ok(at) = paid[user].binary_search_by_key(&d, |p| p.0) {
                        changed |= std::mem::replace(&mut paid[user][at].1, share) != share;
                    }
                }
                if root[d] {
                    changed |= std::mem::replace(&mut roots[d], share) != share;
                }
            }
            if !changed {
                break;
            }
        }
        let mut payers: Vec<Vec<(usize, u64)>> = vec![Vec::new(); n];
        let mut income = roots.clone();
        for (user, needs) in paid.iter_mut().enumerate() {
            needs.retain(|&(_, price)| price > 0);
            for &(need, price) in needs.iter() {
                payers[need].push((user, price));
                income[need] = income[need].saturating_add(price);
            }
        }
        let roots = roots.iter().fold(0u64, |sum, &price| sum.saturating_add(price));
        Prices { paid, payers, income, roots }
    }

    /// Of every complete choice, in units of 1 / [`SCALE`] cycles.
    pub(super) fn bound(&self) -> u64 {
        self.roots
    }

    pub(super) fn income(&self, demand: usize) -> u64 {
        self.income[demand]
    }

    pub(super) fn paid_by(&self, demand: usize) -> &[(usize, u64)] {
        &self.paid[demand]
    }

    pub(super) fn payers(&self, demand: usize) -> &[(usize, u64)] {
        &self.payers[demand]
    }
}
