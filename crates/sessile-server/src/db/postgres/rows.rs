//! Rows of the store, as what they stand for.

use tokio_postgres::{Error, Row};

use crate::json_text::JsonText;
use crate::model::{Message, Session, Ticket};

/// A session, and what its life and its numbers are counted by.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) session: Session,
    pub(super) idle_ms: i64,
    pub(super) max_ms: i64,
    pub(super) next_event: i64,
    /// Whether it is no longer as it was found.
    pub(super) changed: bool,
}

impl Found {
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let labels: &str = row.try_get(3)?;
        let session = Session {
            id: row.try_get(0)?,
            name: row.try_get(1)?,
            context: row.try_get(2)?,
            labels: serde_json::from_str(labels).unwrap_or_default(),
            settings: Default::default(),
            revision: row.try_get(4)?,
            started_ms: row.try_get(5)?,
            used_ms: row.try_get(6)?,
            expires_ms: 0,
            idle_ms: row.try_get(7)?,
            max_ms: row.try_get(8)?,
            ended_ms: row.try_get(9)?,
            end_reason: row.try_get(10)?,
            messages: row.try_get::<_, i64>(11)? - 1,
        };
        let (idle_ms, max_ms) = (row.try_get(7)?, row.try_get(8)?);
        let found = Found { session, idle_ms, max_ms, next_event: row.try_get(12)?, changed: false };
        Ok(found.counted())
    }

    /// With the time that its life ends at.
    fn counted(mut self) -> Self {
        self.session.expires_ms = self.expires_ms();
        self
    }

    fn expires_ms(&self) -> i64 {
        let Session { used_ms, started_ms, .. } = self.session;
        used_ms.saturating_add(self.idle_ms).min(started_ms.saturating_add(self.max_ms))
    }

    /// Whether it neither was ended nor has expired.
    pub(super) fn is_live(&self, now: i64) -> bool {
        self.session.ended_ms.is_none() && now < self.expires_ms()
    }

    /// That it is used now. Transactions need not get their locks in the order in which they began.
    pub(super) fn used(&mut self, now: i64) {
        self.session.used_ms = self.session.used_ms.max(now);
        self.session.expires_ms = self.expires_ms();
        self.changed = true;
    }

    pub(super) fn new(session: Session, idle_ms: i64, max_ms: i64) -> Self {
        let session = Session { idle_ms, max_ms, ..session };
        Found { session, idle_ms, max_ms, next_event: 1, changed: true }.counted()
    }
}

pub(super) fn sessions(rows: &[Row]) -> Result<Vec<Found>, Error> {
    rows.iter().map(Found::read).collect()
}

/// Gives sessions their settings.
pub(super) fn with_settings(sessions: &mut [Found], settings: &[Row]) -> Result<(), Error> {
    for row in settings {
        let (of, key, value): (&str, String, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        for found in sessions.iter_mut().filter(|found| found.session.id == of) {
            found.session.settings.insert(key.clone(), json(value));
        }
    }
    Ok(())
}

pub(super) fn messages(rows: &[Row]) -> Result<Vec<Message>, Error> {
    let message = |row: &Row| {
        Ok(Message {
            number: row.try_get(0)?,
            token: row.try_get(1)?,
            body: JsonText::stored(row.try_get(2)?),
            at_ms: row.try_get(3)?,
        })
    };
    rows.iter().map(message).collect()
}

/// From the columns place, token, holder, `asked_ms`, `expires_ms`.
pub(super) fn ticket(row: &Row) -> Result<Ticket, Error> {
    Ok(Ticket {
        place: row.try_get(0)?,
        token: row.try_get(1)?,
        holder: row.try_get(2)?,
        asked_ms: row.try_get(3)?,
        expires_ms: row.try_get(4)?,
    })
}

/// What was stored as JSON.
pub(super) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_default()
}
