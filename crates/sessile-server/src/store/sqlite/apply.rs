//! Carrying out a change: load its snapshot, decide, write, and add it to the audit log.

use rusqlite::{Connection, OptionalExtension, Result};

use super::{rows, snapshot, write};
use crate::change::{ChangeOutcome, Refusal, StoreChange};
use crate::ids::{Position, TokenId};
use crate::request::{AuditedRead, Request};
use crate::rules::audit::AuditEntry;
use crate::rules::{ChangeSnapshot, Dependencies, StoredAnswer, decide, idempotency};

/// Outcome of a change, and the position in its queue that can be acquired by it.
pub(super) type AppliedChange = (std::result::Result<ChangeOutcome, Refusal>, Option<Position>);

/// Makes a change, unless the same one was made before under its key, and adds it to the audit log.
pub(super) fn apply(
    connection: &Connection,
    process: &str,
    request: &Request,
    now: i64,
) -> Result<AppliedChange> {
    let applied = make(connection, process, request, now);
    let entry = match &applied {
        Ok((outcome, _)) => AuditEntry::of(request, outcome),
        Err(_) => Some(AuditEntry::failed(request)),
    };
    if let Some(entry) = entry {
        // Outside of the savepoint: the record of a failed change stays.
        insert_audit(connection, request, &entry, now)?;
    }
    applied
}

fn make(connection: &Connection, process: &str, request: &Request, now: i64) -> Result<AppliedChange> {
    let invalid = |error: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
    let user = request.user.as_str();
    let answered = request.key.as_deref().map(|key| answer(connection, user, key)).transpose()?.flatten();
    let snapshot = match answered {
        // The stored outcome is the answer, whatever else there is.
        Some(answered) if !matches!(request.change, StoreChange::Ask { .. }) => {
            ChangeSnapshot { answered: Some(answered), ..ChangeSnapshot::default() }
        }
        answered => {
            let position = answered.as_ref().and_then(idempotency::position);
            let dependencies = Dependencies::of(&request.change).with_position(position);
            let snapshot = snapshot::load(connection, user, process, now, &dependencies)?;
            ChangeSnapshot { answered, ..snapshot }
        }
    };
    let mut decision = decide(request, process, snapshot).map_err(invalid)?;
    if let Some(history) = decision.history() {
        let messages = rows::last_messages(
            connection,
            user,
            history.session.as_str(),
            history.last,
            history.limit,
            i64::MAX,
        )?;
        decision.set_history(messages);
    }
    let next = decision.next_to_wake();
    let (outcome, writes) = decision.into_parts().map_err(invalid)?;
    if !writes.is_empty() {
        in_savepoint(connection, || {
            let writer = write::SqliteWrites { connection, user, process, now };
            writes.iter().try_for_each(|write| writer.carry_out(write))
        })?;
    }
    Ok((outcome, next))
}

/// Answer that is stored under an idempotency key.
pub(super) fn answer(connection: &Connection, user: &str, key: &str) -> Result<Option<StoredAnswer>> {
    connection
        .prepare_cached("SELECT change, done FROM answered WHERE user = ?1 AND key = ?2")?
        .query_row((user, key), |row| Ok(StoredAnswer { change: row.get(0)?, done: row.get(1)? }))
        .optional()
}

/// Undoes the writes if one of them fails: the transaction goes on with the changes of others.
fn in_savepoint(connection: &Connection, write: impl FnOnce() -> Result<()>) -> Result<()> {
    connection.prepare_cached("SAVEPOINT one")?.execute([])?;
    let written = write();
    if written.is_err() {
        connection.prepare_cached("ROLLBACK TO one")?.execute([])?;
    }
    connection.prepare_cached("RELEASE one")?.execute([])?;
    written
}

fn insert_audit(connection: &Connection, request: &Request, entry: &AuditEntry<'_>, now: i64) -> Result<()> {
    let (user, access) = (request.user.as_str(), &request.access);
    let token = access.token.as_ref().map(TokenId::as_str);
    let AuditEntry { action, session, subject, outcome } = entry;
    connection
        .prepare_cached(
            "INSERT INTO audit (user, id, at_ms, token, action, session, subject, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((user, &access.id, now, token, action, session, subject, outcome))
        .map(drop)
}

/// Adds reads to the audit log.
pub(super) fn record_reads(connection: &Connection, reads: &[AuditedRead]) -> Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit (user, id, at_ms, token, action, session, outcome) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for read in reads {
        let AuditedRead { user, access, action, session, outcome, at_ms } = read;
        let token = access.token.as_ref().map(TokenId::as_str);
        insert.execute((user.as_str(), &access.id, at_ms, token, action, session, outcome))?;
    }
    Ok(())
}
