//! Limits of an agent's replies.

use std::time::Duration;

use crate::http::Timeouts;

/// Limits of one reply: time, bytes, values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyLimits {
    /// Maximum time before the response begins, and between two reads of it.
    pub(crate) head: Duration,
    /// Maximum silence of a stream, also before it begins. A complete line ends the silence; a comment is one.
    pub(crate) idle: Duration,
    /// Maximum duration of a reply that is not a stream.
    pub(crate) total: Duration,
    /// Maximum time to send a request, if it has one.
    pub(crate) write: Option<Duration>,
    /// Maximum duration of a stream, if it has one.
    pub(crate) stream: Option<Duration>,
    /// Maximum bytes of a reply, streams included.
    pub(crate) bytes: usize,
    /// Maximum bytes of one event.
    pub(crate) event: usize,
    /// Maximum values in one JSON text: few bytes of JSON can take many in memory.
    pub(crate) values: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        ReplyLimits {
            head: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(900),
            write: None,
            stream: None,
            bytes: 64 << 20,
            event: 32 << 20,
            values: 1_000_000,
        }
    }
}

/// Maximum bytes of a card.
const MAX_CARD: usize = 4 << 20;

impl ReplyLimits {
    /// Limits of a card.
    pub(super) fn for_card(self) -> Self {
        let short = Duration::from_secs(30);
        ReplyLimits {
            head: self.head.min(short),
            total: self.total.min(short),
            bytes: self.bytes.min(MAX_CARD),
            ..self
        }
    }

    pub(super) fn patience(&self, is_stream: bool) -> Timeouts {
        let silence = if is_stream { self.idle } else { self.head };
        let total = if is_stream { self.stream } else { Some(self.total) };
        Timeouts { write: self.write, head: silence, silence, total }
    }
}
