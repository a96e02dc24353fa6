//! Conversion of rows to values of the model.

use std::collections::BTreeMap;

use tokio_postgres::{Error, Row};

use crate::change::LockMode;
use crate::ids::{FencingToken, Position, turn_token};
use crate::json_text::{JsonText, StoredValue};
use crate::model::{MessageRecord, SessionRecord, Ticket};
use crate::rules::LoadedSession;
use crate::store::columns::Column;

fn session(row: &Row) -> Result<LoadedSession, Error> {
    let labels: &str = row.try_get(3)?;
    let mut session = SessionRecord {
        id: row.try_get::<_, Column<_>>(0)?.0,
        name: row.try_get(1)?,
        context: row.try_get(2)?,
        labels: serde_json::from_str(labels).unwrap_or_default(),
        settings: BTreeMap::new(),
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
    session.set_expiry();
    Ok(LoadedSession::new(session, row.try_get(12)?))
}

/// Rows of sessions, without their settings.
pub(super) fn sessions(rows: &[Row]) -> Result<Vec<LoadedSession>, Error> {
    rows.iter().map(session).collect()
}

/// Gives sessions their settings.
pub(super) fn with_settings(sessions: &mut [LoadedSession], settings: &[Row]) -> Result<(), Error> {
    for row in settings {
        let (of, key): (&str, String) = (row.try_get(0)?, row.try_get(1)?);
        let value = row.try_get::<_, Column<StoredValue>>(2)?.0.0;
        for record in sessions.iter_mut().filter(|record| record.session.id.as_str() == of) {
            record.session.settings.insert(key.clone(), value.clone());
        }
    }
    Ok(())
}

/// Messages of a session that exists.
pub(super) fn messages(rows: &[Row]) -> Result<Vec<MessageRecord>, Error> {
    let message = |row: &Row| {
        // The row of a session without messages has none.
        let Some(number) = row.try_get(0)? else { return Ok(None) };
        Ok(Some(MessageRecord {
            number,
            token: turn_token::from_number(row.try_get(1)?),
            body: row.try_get::<_, Column<JsonText>>(2)?.0,
            at_ms: row.try_get(3)?,
        }))
    };
    rows.iter().filter_map(|row| message(row).transpose()).collect()
}

/// From the columns place, token, holder, `asked_ms`, `expires_ms`, shared, session.
pub(super) fn ticket(row: &Row) -> Result<Ticket, Error> {
    Ok(Ticket {
        place: Position::new(row.try_get(0)?),
        token: row.try_get::<_, Option<i64>>(1)?.map(FencingToken::new),
        holder: row.try_get(2)?,
        asked_ms: row.try_get(3)?,
        expires_ms: row.try_get(4)?,
        mode: LockMode::of(row.try_get(5)?),
        session: row.try_get(6)?,
    })
}
