//! Lifecycle of a session: live while it is not ended, younger than its limit, and busy or used lately.
//!
//! Within one start of the machine its own clock counts, which neither jumps nor is set back and which goes on
//! during suspension; across starts the wall clock has to do.

use serde::Serialize;

use crate::clock::Moment;

/// Lifecycle state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Usable.
    Live,
    /// Idle for too long, or too old.
    Expired,
    /// Stopped.
    Ended,
}

impl Lifecycle {
    /// Word.
    pub fn as_str(self) -> &'static str {
        match self {
            Lifecycle::Live => "live",
            Lifecycle::Expired => "expired",
            Lifecycle::Ended => "ended",
        }
    }
}

/// Times that decide the lifecycle state.
#[derive(Clone, Debug)]
pub struct Times {
    /// Start.
    pub started: Moment,
    /// Last use.
    pub used: Moment,
    /// Idle limit, in milliseconds.
    pub idle_ms: i64,
    /// Lifetime limit, in milliseconds.
    pub max_ms: i64,
}

impl Times {
    /// Lifecycle state. With `busy` a process runs in the session: the session is not idle, and the machine's sleep
    /// does not age it. After its maximum lifetime it accepts no new commands, but running ones continue.
    pub fn life(&self, now: &Moment, busy: bool) -> Lifecycle {
        // A command that runs does not lose its session to a night's suspension.
        let age = if busy { now.awake_since(&self.started) } else { now.since(&self.started) };
        let too_idle = !busy && now.since(&self.used) >= self.idle_ms;
        if age >= self.max_ms || too_idle { Lifecycle::Expired } else { Lifecycle::Live }
    }

    /// Wall-clock time at which the session expires if it is not used again.
    pub fn expires_ms(&self, now: &Moment) -> i64 {
        let by_age = self.max_ms.saturating_sub(now.since(&self.started));
        let by_idleness = self.idle_ms.saturating_sub(now.since(&self.used));
        now.wall_ms.saturating_add(by_age.min(by_idleness))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall_ms: i64, boot: &str, boot_ms: i64) -> Moment {
        Moment { wall_ms, boot: boot.into(), boot_ms, awake_ms: boot_ms }
    }

    fn times() -> Times {
        Times {
            started: at(1_000_000, "b", 10_000),
            used: at(1_000_000, "b", 10_000),
            idle_ms: 5_000,
            max_ms: 50_000,
        }
    }

    #[test]
    fn a_clock_jump_expires_nothing_and_keeps_nothing() {
        assert_eq!(times().life(&at(900_000_000, "b", 11_000), false), Lifecycle::Live, "jumped ahead");
        assert_eq!(
            times().life(&at(0, "b", 16_000), false),
            Lifecycle::Expired,
            "set back, but time went by"
        );
        assert_eq!(
            times().life(&at(0, "c", 0), false),
            Lifecycle::Expired,
            "from the future after a restart"
        );
        assert_eq!(times().life(&at(1_002_000, "c", 100), false), Lifecycle::Live, "a quick restart");
    }

    #[test]
    fn extreme_times_saturate() {
        for extreme in [i64::MIN, i64::MAX] {
            let moment = at(extreme, "b", extreme);
            let times = Times { started: moment.clone(), used: moment, idle_ms: extreme, max_ms: extreme };
            for boot in ["b", "c"] {
                for busy in [false, true] {
                    times.life(&at(1_000_000, boot, 10_000), busy);
                }
                times.expires_ms(&at(1_000_000, boot, 10_000));
            }
        }
    }

    #[test]
    fn busy_session_expires_only_by_its_maximum_lifetime() {
        assert_eq!(times().life(&at(0, "b", 40_000), true), Lifecycle::Live, "busy is not idle");
        assert_eq!(times().life(&at(0, "b", 60_000), true), Lifecycle::Expired, "too old");
        let slept = Moment { awake_ms: 20_000, ..at(0, "b", 900_000) };
        assert_eq!(times().life(&slept, true), Lifecycle::Live, "the machine slept");
        assert_eq!(times().life(&slept, false), Lifecycle::Expired);
        assert_eq!(times().life(&at(0, "b", 14_999), false), Lifecycle::Live);
    }
}
