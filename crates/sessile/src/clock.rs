//! Points in time: on the wall clock and the machine's own, and as text.

use std::time::Duration;

use jiff::Timestamp;

use crate::world::World;

/// A point in time on both clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock.
    pub wall_ms: i64,
    /// Boot id.
    pub boot: String,
    /// The time since then.
    pub boot_ms: i64,
    /// The same without what the machine slept.
    pub awake_ms: i64,
}

impl Moment {
    /// Now.
    pub fn now(world: &World) -> Self {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Moment {
            wall_ms: world.now().as_millisecond(),
            boot: crate::process::boot_id(),
            boot_ms: millis(world.since_boot()),
            awake_ms: millis(world.awake_since_boot()),
        }
    }

    /// Time since another moment, in milliseconds. A moment in the future (the clock was set back between two starts
    /// of the machine) counts as long ago, so that its session still expires.
    pub fn since(&self, earlier: &Moment) -> i64 {
        const SKEW_MS: i64 = 60_000;
        if self.same_boot(earlier) {
            return self.boot_ms.saturating_sub(earlier.boot_ms).max(0);
        }
        match self.wall_ms.saturating_sub(earlier.wall_ms) {
            past if past >= 0 => past,
            // Time synchronization steps the clock back a little, which must not expire a session.
            near if near > -SKEW_MS => 0,
            _ => i64::MAX,
        }
    }

    /// The same without what the machine slept in between.
    pub(crate) fn awake_since(&self, earlier: &Moment) -> i64 {
        match self.same_boot(earlier) {
            true => self.awake_ms.saturating_sub(earlier.awake_ms).max(0),
            false => self.since(earlier),
        }
    }

    fn same_boot(&self, other: &Moment) -> bool {
        // Systems without a boot id cannot tell two boots apart.
        !self.boot.is_empty() && self.boot == other.boot
    }
}

/// A time in milliseconds as RFC 3339 text, in UTC and whole seconds.
pub fn rfc3339(millis: i64) -> String {
    // Also right for times before 1970.
    Timestamp::from_second(millis.div_euclid(1000)).map_or_else(|_| String::new(), |time| time.to_string())
}
