//! Whether what clients saw could have happened one after the other, in an order that nobody's clock contradicts.
//!
//! Every change of a value hands out a revision, so the order is known, and only has to be held against the clocks: what
//! ended before something else began comes before it. That is all there is to linearizability of such a value. With a lock it
//! is the fencing token.

use std::sync::atomic::{AtomicI64, Ordering};

/// A clock that never shows the same twice.
pub fn tick() -> i64 {
    static CLOCK: AtomicI64 = AtomicI64::new(0);
    // All threads must agree on the order of ticks and of what they observe.
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// Observation of a client.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Time of the request.
    pub begun: i64,
    /// Time of the response.
    pub ended: i64,
    /// Outcome.
    pub what: ObservedRevision,
}

/// Observed outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedRevision {
    /// Write that got this revision.
    Wrote(i64),
    /// Read of this revision, or a refusal that names it.
    Read(i64),
}

impl Observation {
    /// Position in the order: a read is between the write that it saw and the next.
    fn position(&self) -> i64 {
        match self.what {
            ObservedRevision::Wrote(revision) => 2 * revision,
            ObservedRevision::Read(revision) => 2 * revision + 1,
        }
    }
}

/// Contradiction between the observations of one value, if any.
pub fn contradiction(seen: &[Observation]) -> Option<String> {
    let mut written: Vec<i64> = seen
        .iter()
        .filter_map(
            |one| if let ObservedRevision::Wrote(revision) = one.what { Some(revision) } else { None },
        )
        .collect();
    written.sort_unstable();
    if let Some(twice) = written.windows(2).find(|pair| pair[0] == pair[1]) {
        return Some(format!("revision {} was given twice", twice[0]));
    }
    let last = written.last().copied().unwrap_or(0);
    // Revisions count from 1 without gaps.
    if i64::try_from(written.len()).ok() != Some(last) {
        return Some(format!(
            "{last} revisions, and {} were given: a change was lost or made twice",
            written.len()
        ));
    }
    // In the order of beginning, against the furthest that had ended before.
    let (mut by_begin, mut by_end) = (seen.to_vec(), seen.to_vec());
    by_begin.sort_by_key(|one| one.begun);
    by_end.sort_by_key(|one| one.ended);
    let (mut ended, mut furthest): (usize, Option<Observation>) = (0, None);
    for one in &by_begin {
        while let Some(before) = by_end.get(ended).filter(|before| before.ended < one.begun) {
            if furthest.is_none_or(|far| far.position() < before.position()) {
                furthest = Some(*before);
            }
            ended += 1;
        }
        if let Some(before) = furthest.filter(|before| before.position() > one.position()) {
            return Some(format!("{before:?} had ended when {one:?} began"));
        }
    }
    // Nobody reads what nobody has begun to write.
    for one in seen {
        if let ObservedRevision::Read(revision) = one.what
            && let Some(writer) = seen.iter().find(|other| other.what == ObservedRevision::Wrote(revision))
            && writer.begun > one.ended
        {
            return Some(format!("{one:?} saw {writer:?}"));
        }
    }
    None
}

/// The time in which somebody had a lock for certain: from being told until giving it back.
#[derive(Clone, Copy, Debug)]
pub struct LeaseInterval {
    /// Time of the acquisition.
    pub from: i64,
    /// Start of the release.
    pub until: i64,
    /// Fencing token.
    pub token: i64,
}

/// Overlapping holders of a lock, or a later holder with a smaller token.
pub fn overlap(had: &[LeaseInterval]) -> Option<(LeaseInterval, LeaseInterval)> {
    let mut had = had.to_vec();
    had.sort_by_key(|one| one.from);
    had.windows(2)
        .map(|pair| (pair[0], pair[1]))
        // Neighbours are enough: an overlap with a later one is also one with the next.
        .find(|(one, two)| two.from < one.until || two.token <= one.token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checker_accepts_what_can_be_and_refuses_what_cannot() {
        let seen = |begun, ended, what| Observation { begun, ended, what };
        use ObservedRevision::{Read, Wrote};
        assert_eq!(
            contradiction(&[
                seen(0, 1, Read(0)),
                seen(2, 5, Wrote(1)),
                seen(3, 4, Read(0)),
                seen(3, 9, Read(1))
            ]),
            None
        );
        for (wrong, why) in [
            (vec![seen(0, 1, Wrote(1)), seen(2, 3, Read(0))], "a stale read"),
            (vec![seen(0, 1, Wrote(2)), seen(2, 3, Wrote(1))], "an order against the clock"),
            (vec![seen(0, 1, Wrote(1)), seen(2, 3, Wrote(1))], "twice"),
            (vec![seen(0, 1, Wrote(1)), seen(2, 3, Wrote(3))], "lost"),
            (vec![seen(0, 1, Read(1)), seen(2, 3, Wrote(1))], "from the future"),
            (vec![seen(0, 9, Wrote(1)), seen(1, 2, Read(1)), seen(3, 4, Read(0))], "back again"),
        ] {
            assert!(contradiction(&wrong).is_some(), "{why}");
        }
    }

    #[test]
    fn two_who_have_it_at_once_are_found() {
        let had = |from, until, token| LeaseInterval { from, until, token };
        assert!(overlap(&[had(0, 2, 1), had(3, 4, 2)]).is_none());
        assert!(overlap(&[had(0, 4, 1), had(3, 5, 2)]).is_some());
        assert!(overlap(&[had(0, 2, 2), had(3, 4, 1)]).is_some());
    }

    /// Each looks, and then sets what it makes of it; and each reads what it remembers.
    #[test]
    fn store_that_is_not_linearizable_is_found() {
        let (value, both) = (AtomicI64::new(0), std::sync::Barrier::new(2));
        let client = || {
            let begun = tick();
            let revision = value.load(Ordering::SeqCst) + 1;
            both.wait();
            value.store(revision, Ordering::SeqCst);
            Observation { begun, ended: tick(), what: ObservedRevision::Wrote(revision) }
        };
        let seen = std::thread::scope(|scope| {
            let (one, two) = (scope.spawn(client), scope.spawn(client));
            vec![one.join().expect("a client"), two.join().expect("a client")]
        });
        assert!(contradiction(&seen).is_some(), "{seen:?}");
        let remembered = value.load(Ordering::SeqCst);
        value.fetch_add(1, Ordering::SeqCst);
        let wrote =
            |revision| Observation { begun: tick(), ended: tick(), what: ObservedRevision::Wrote(revision) };
        let wrote = [wrote(1), wrote(2)];
        let read = Observation { begun: tick(), ended: tick(), what: ObservedRevision::Read(remembered) };
        assert!(contradiction(&[wrote[0], wrote[1], read]).is_some(), "{read:?}");
    }
}
