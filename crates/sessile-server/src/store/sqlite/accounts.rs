//! Users and their tokens.

use rusqlite::{Connection, OptionalExtension, Result, Row};

use super::logins;
use crate::account::{Account, AccountChange, Token};
use crate::change::Refusal;
use crate::ids::{SecretHash, TokenId, UserName};
use crate::store::columns::Column;

/// Changes users and tokens.
pub(super) fn administer(
    connection: &Connection,
    change: &AccountChange,
    now: i64,
) -> Result<std::result::Result<(), Refusal>> {
    let changed = match change {
        AccountChange::AddUser(user) => {
            connection
                .prepare_cached(
                    "INSERT INTO upkeep (user, kind, since_ms)
                     SELECT ?1, column1, ?2 FROM (VALUES ('answered'), ('events'), ('audit'), ('sessions'))
                     WHERE true ON CONFLICT DO NOTHING",
                )?
                .execute((user.as_str(), now))?;
            connection
                .prepare_cached("INSERT INTO account (user, made_ms) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
                .execute((user.as_str(), now))?
        }
        AccountChange::Disable(user, disabled) => connection
            .prepare_cached("UPDATE account SET disabled_ms = ?2 WHERE user = ?1")?
            .execute((user.as_str(), disabled.then_some(now)))?,
        AccountChange::AddToken(token, hash) => connection
            .prepare_cached(
                "INSERT INTO token (hash, id, user, scopes, made_ms, expires_ms)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6 FROM account WHERE user = ?3",
            )?
            .execute((
                hash.as_str(),
                token.id.as_str(),
                token.user.as_str(),
                serde_json::to_string(&token.scopes).unwrap_or_default(),
                now,
                token.expires_ms,
            ))?,
        AccountChange::Revoke(id) => connection
            // The first revocation counts, however often it is repeated.
            .prepare_cached("UPDATE token SET revoked_ms = coalesce(revoked_ms, ?2) WHERE id = ?1")?
            .execute((id.as_str(), now))?,
        AccountChange::Decide(code_hash, decision) => logins::decide(connection, code_hash, decision, now)?,
    };
    Ok(if changed == 1 { Ok(()) } else { Err(change.refusal()) })
}

/// Every user.
pub(super) fn all(connection: &Connection) -> Result<Vec<Account>> {
    connection
        .prepare_cached("SELECT user, made_ms, disabled_ms FROM account ORDER BY user")?
        .query_map([], |row| {
            Ok(Account {
                user: row.get::<_, Column<_>>(0)?.0,
                made_ms: row.get(1)?,
                disabled_ms: row.get(2)?,
            })
        })?
        .collect()
}

/// Checks that the tables exist.
pub(super) fn ready(connection: &Connection) -> Result<()> {
    connection.prepare_cached("SELECT 1 FROM account LIMIT 1")?.exists([]).map(drop)
}

const COLUMNS: &str = "token.id, token.user, token.scopes, token.made_ms, token.expires_ms, token.revoked_ms";

fn token(row: &Row<'_>) -> Result<Token> {
    Ok(Token {
        id: row.get::<_, Column<_>>(0)?.0,
        user: row.get::<_, Column<_>>(1)?.0,
        scopes: serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default(),
        made_ms: row.get(3)?,
        expires_ms: row.get(4)?,
        revoked_ms: row.get(5)?,
    })
}

/// The tokens of a user.
pub(super) fn tokens(connection: &Connection, user: &UserName) -> Result<Vec<Token>> {
    let sql = format!("SELECT {COLUMNS} FROM token WHERE user = ?1 ORDER BY made_ms, id");
    connection.prepare_cached(&sql)?.query_map([user.as_str()], token)?.collect()
}

/// A token by its id.
pub(super) fn with_id(connection: &Connection, id: &TokenId) -> Result<Option<Token>> {
    let sql = format!("SELECT {COLUMNS} FROM token WHERE id = ?1");
    connection.prepare_cached(&sql)?.query_row([id.as_str()], token).optional()
}

/// The valid token with a hash.
pub(super) fn usable(connection: &Connection, hash: &SecretHash, now: i64) -> Result<Option<Token>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM token JOIN account ON account.user = token.user
         WHERE hash = ?1 AND revoked_ms IS NULL AND disabled_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?2)"
    );
    connection.prepare_cached(&sql)?.query_row((hash.as_str(), now), token).optional()
}

/// Hashes of all valid tokens.
pub(super) fn usable_hashes(connection: &Connection, now: i64) -> Result<Vec<SecretHash>> {
    connection
        .prepare_cached(
            "SELECT hash FROM token JOIN account ON account.user = token.user
             WHERE revoked_ms IS NULL AND disabled_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?1)",
        )?
        .query_map([now], |row| row.get(0).map(SecretHash::stored))?
        .collect()
}
