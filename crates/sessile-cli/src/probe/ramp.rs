//! Rounds of a probe: each with more users at once than the one before, until the budget is used.

/// Minimum number of users in a round, because a leak needs two.
pub(crate) const FEWEST: u32 = 2;

/// Budget of a probe and the range of its users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    /// Users of the first round.
    pub(crate) first: u32,
    /// Most users of a round.
    pub(crate) most: u32,
    /// Requests that one user makes.
    pub(crate) per_user: u32,
    /// Requests of all rounds together.
    pub(crate) requests: u32,
}

impl Ramp {
    /// Users of each round. The number doubles up to the maximum; the last round takes the rest of the budget.
    pub(crate) fn rounds(self) -> Vec<u32> {
        let (mut left, mut next) = (self.requests / self.per_user.max(1), self.first.min(self.most));
        let mut rounds = Vec::new();
        while left >= FEWEST && next >= FEWEST {
            // A further round would be smaller than this one, and test less.
            let is_last = left.saturating_sub(next) < next;
            let users = if is_last { left.min(self.most) } else { next };
            rounds.push(users);
            left -= users;
            next = next.saturating_mul(2).min(self.most);
        }
        rounds
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rounds(first: u32, most: u32, per_user: u32, requests: u32) -> Vec<u32> {
        Ramp { first, most, per_user, requests }.rounds()
    }

    #[test]
    fn users_double_until_the_budget_is_used() {
        assert_eq!(rounds(10, 1000, 6, 2000), [10, 20, 40, 80, 183]);
        assert_eq!(rounds(10, 25, 6, 600), [10, 20, 25, 25, 20]);
        assert_eq!(rounds(10, 4, 2, 24), [4, 4, 4]);
        assert_eq!(rounds(10, 1000, 6, 60), [10]);
        assert_eq!(rounds(10, 1000, 6, 90), [15]);
        assert_eq!(rounds(10, 1000, 6, 12), [2]);
        assert_eq!(rounds(10, 1000, 6, 11), [0; 0]);
    }

    proptest! {
        #[test]
        fn no_round_exceeds_its_limits(first in 2u32..50, most in 2u32..1000, per in 2u32..20, requests in 0u32..20_000) {
            let rounds = rounds(first, most, per, requests);
            prop_assert!(rounds.iter().all(|users| (FEWEST..=most).contains(users)));
            let used = rounds.iter().sum::<u32>() * per;
            prop_assert!(used <= requests && (requests - used) / per < FEWEST);
        }
    }
}
