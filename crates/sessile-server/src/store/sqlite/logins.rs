//! Device logins.

use rusqlite::{Connection, OptionalExtension, Result};

use super::accounts;
use crate::account::{Login, LoginCollection, LoginDecision, NewLogin, NewTokenHash};
use crate::ids::SecretHash;

/// Adds a login unless too many are pending. Expired ones are deleted first.
pub(super) fn begin(connection: &Connection, asked: &NewLogin, most: i64, now: i64) -> Result<bool> {
    connection.prepare_cached("DELETE FROM login WHERE expires_ms <= ?1")?.execute([now])?;
    let begun = connection
        .prepare_cached(
            "INSERT INTO login (device_hash, code_hash, client, peer, asked_ms, expires_ms, state)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, 'pending' WHERE (SELECT count(*) FROM login) < ?7
             ON CONFLICT DO NOTHING",
        )?
        .execute((
            asked.device_hash.as_str(),
            asked.code_hash.as_str(),
            &asked.client,
            &asked.peer,
            now,
            now.saturating_add(asked.lives_ms),
            most,
        ))?;
    Ok(begun == 1)
}

/// A pending or approved login.
pub(super) fn get(connection: &Connection, code_hash: &SecretHash, now: i64) -> Result<Option<Login>> {
    connection
        .prepare_cached(
            "SELECT client, peer, asked_ms, expires_ms, state FROM login
             WHERE code_hash = ?1 AND state <> 'denied' AND expires_ms > ?2",
        )?
        .query_row((code_hash.as_str(), now), |row| {
            Ok(Login {
                client: row.get(0)?,
                peer: row.get(1)?,
                asked_ms: row.get(2)?,
                expires_ms: row.get(3)?,
                is_approved: row.get::<_, String>(4)? == "approved",
            })
        })
        .optional()
}

/// Approves or denies a login; how many.
pub(super) fn decide(
    connection: &Connection,
    code_hash: &SecretHash,
    decision: &LoginDecision,
    now: i64,
) -> Result<usize> {
    match decision {
        LoginDecision::Approve { user, scopes, expires_ms } => connection
            .prepare_cached(
                "UPDATE login SET state = 'approved', user = ?3, scopes = ?4, token_expires_ms = ?5
                 WHERE code_hash = ?1 AND state = 'pending' AND expires_ms > ?2
                     AND EXISTS (SELECT 1 FROM account WHERE account.user = ?3 AND disabled_ms IS NULL)",
            )?
            .execute((
                code_hash.as_str(),
                now,
                user.as_str(),
                serde_json::to_string(scopes).unwrap_or_default(),
                expires_ms,
            )),
        // One that was approved by mistake can be refused until it is collected.
        LoginDecision::Deny => connection
            .prepare_cached(
                "UPDATE login SET state = 'denied', user = NULL, scopes = NULL, token_expires_ms = NULL
                 WHERE code_hash = ?1 AND state <> 'denied' AND expires_ms > ?2",
            )?
            .execute((code_hash.as_str(), now)),
    }
}

/// State of a login; `None` if it is approved and its token can be collected.
pub(super) fn look(
    connection: &Connection,
    device_hash: &SecretHash,
    now: i64,
) -> Result<Option<LoginCollection>> {
    let state: Option<String> = connection
        .prepare_cached("SELECT state FROM login WHERE device_hash = ?1 AND expires_ms > ?2")?
        .query_row((device_hash.as_str(), now), |row| row.get(0))
        .optional()?;
    Ok(match state.as_deref() {
        Some("approved") => None,
        Some("pending") => Some(LoginCollection::Pending),
        Some(_) => Some(LoginCollection::Denied),
        None => Some(LoginCollection::Nothing),
    })
}

/// Creates the token of an approved login, and deletes the login: it is collected once.
pub(super) fn take(
    connection: &Connection,
    device_hash: &SecretHash,
    minted: &NewTokenHash,
    now: i64,
) -> Result<LoginCollection> {
    // Looked at again in the writer: of two that saw it approved, one comes second.
    if let Some(other) = look(connection, device_hash, now)? {
        return Ok(other);
    }
    connection
        .prepare_cached(
            "INSERT INTO token (hash, id, user, scopes, made_ms, expires_ms)
             SELECT ?2, ?3, user, scopes, ?4, token_expires_ms FROM login WHERE device_hash = ?1
                 AND EXISTS (SELECT 1 FROM account WHERE account.user = login.user AND disabled_ms IS NULL)",
        )?
        .execute((device_hash.as_str(), minted.hash.as_str(), minted.id.as_str(), now))?;
    connection.prepare_cached("DELETE FROM login WHERE device_hash = ?1")?.execute([device_hash.as_str()])?;
    let made = accounts::with_id(connection, &minted.id)?;
    Ok(made.map_or(LoginCollection::Nothing, LoginCollection::Token))
}
