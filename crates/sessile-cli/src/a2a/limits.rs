//! How much of an agent is put up with.

use std::time::Duration;

use crate::http::Patience;

/// What one reply may cost. Each can be set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long an agent may think before the first word of a reply, or fall silent in it.
    pub(crate) head: Duration,
    /// How long a stream may be silent, before its first word too: a whole line has to come in that time, and a
    /// comment is one.
    pub(crate) idle: Duration,
    /// How long a reply may take that is not a stream.
    pub(crate) total: Duration,
    /// How long a stream may take, if there is an end to that.
    pub(crate) stream: Option<Duration>,
    /// The most bytes of a reply, streams included.
    pub(crate) bytes: usize,
    /// The most bytes of one event.
    pub(crate) event: usize,
    /// The most values in one JSON text: a few bytes of it can become many in memory.
    pub(crate) values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(900),
            stream: None,
            bytes: 64 << 20,
            event: 32 << 20,
            values: 1_000_000,
        }
    }
}

/// The largest card that makes sense.
const CARD: usize = 4 << 20;

impl Limits {
    /// What reading a card may cost.
    pub(super) fn for_card(self) -> Self {
        let short = Duration::from_secs(30);
        Limits {
            head: self.head.min(short),
            total: self.total.min(short),
            bytes: self.bytes.min(CARD),
            ..self
        }
    }

    pub(super) fn patience(&self, is_stream: bool) -> Patience {
        let silence = if is_stream { self.idle } else { self.head };
        let total = if is_stream { self.stream } else { Some(self.total) };
        Patience { head: silence, silence, total }
    }
}
