//! Device logins, in tables that belong to no user.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::accounts::{now, read, run, token};
use super::transaction::{TxError, params};
use crate::account::{Login, LoginCollection, LoginDecision, NewLogin, NewTokenHash};
use crate::ids::SecretHash;
use crate::store::fair_queue::TokenOwners;

const CLEAR: &str = concat!("DELETE FROM login WHERE expires_ms <= ", now!());
const BEGIN: &str = concat!(
    "INSERT INTO login (device_hash, code_hash, client, peer, asked_ms, expires_ms, state)
     SELECT $1, $2, $3, $4, ",
    now!(),
    ", ",
    now!(),
    " + $5::bigint, 'pending' WHERE (SELECT count(*) FROM login) < $6
     ON CONFLICT DO NOTHING RETURNING 1"
);
const GET: &str = concat!(
    "SELECT client, peer, asked_ms, expires_ms, state FROM login
     WHERE code_hash = $1 AND state <> 'denied' AND expires_ms > ",
    now!()
);
pub(super) const APPROVE: &str = concat!(
    "UPDATE login SET state = 'approved', user_id = $2, scopes = $3, token_expires_ms = $4
     WHERE code_hash = $1 AND state = 'pending' AND expires_ms > ",
    now!(),
    " AND EXISTS (SELECT 1 FROM account WHERE account.user_id = $2 AND disabled_ms IS NULL) RETURNING 1"
);
/// A login that was approved by mistake can be denied until it is collected.
pub(super) const DENY: &str = concat!(
    "UPDATE login SET state = 'denied', user_id = NULL, scopes = NULL, token_expires_ms = NULL
     WHERE code_hash = $1 AND state <> 'denied' AND expires_ms > ",
    now!(),
    " RETURNING 1"
);
const LOOK: &str = concat!("SELECT state FROM login WHERE device_hash = $1 AND expires_ms > ", now!());
/// Of two who come at once one waits for the other's deletion, and finds nothing.
const TAKE: &str = concat!(
    "WITH taken AS (
        DELETE FROM login WHERE device_hash = $1 AND state = 'approved' AND expires_ms > ",
    now!(),
    " RETURNING user_id, scopes, token_expires_ms
     )
     INSERT INTO token (hash, id, user_id, scopes, made_ms, expires_ms)
     SELECT $2, $3, user_id, scopes, ",
    now!(),
    ", token_expires_ms FROM taken
     WHERE EXISTS (SELECT 1 FROM account WHERE account.user_id = taken.user_id AND disabled_ms IS NULL)
     RETURNING id, user_id, scopes, made_ms, expires_ms, revoked_ms"
);

/// Adds a login unless too many are pending. Expired ones are deleted first.
pub(super) async fn begin(inner: &Arc<Inner>, asked: &NewLogin, most: i64) -> Result<bool, TxError> {
    // Not in one transaction with the insertion: deleting expired rows is right in any case.
    run(inner, TokenOwners::STRANGERS, CLEAR, params![], false).await?;
    let NewLogin { device_hash, code_hash, client, peer, lives_ms } = asked.clone();
    let (device_hash, code_hash) = (device_hash.as_str().to_owned(), code_hash.as_str().to_owned());
    let begun = run(
        inner,
        TokenOwners::STRANGERS,
        BEGIN,
        params![device_hash, code_hash, client, peer, lives_ms, most],
        true,
    );
    Ok(!begun.await?.is_empty())
}

/// A pending or approved login.
pub(super) async fn get(inner: &Arc<Inner>, code_hash: &SecretHash) -> Result<Option<Login>, TxError> {
    let login = |row: &Row| {
        Ok(Login {
            client: row.try_get(0)?,
            peer: row.try_get(1)?,
            asked_ms: row.try_get(2)?,
            expires_ms: row.try_get(3)?,
            is_approved: row.try_get::<_, &str>(4)? == "approved",
        })
    };
    let found = read(
        &run(inner, TokenOwners::STRANGERS, GET, params![code_hash.as_str().to_owned()], false).await?,
        login,
    )?;
    Ok(found.into_iter().next())
}

/// Statement of a decision, with its parameters.
pub(super) fn decide(
    code_hash: &SecretHash,
    decision: &LoginDecision,
) -> (&'static str, super::transaction::SqlParams<'static>) {
    match decision {
        LoginDecision::Approve { user, scopes, expires_ms } => {
            let scopes = serde_json::to_string(scopes).unwrap_or_default();
            (APPROVE, params![code_hash.as_str().to_owned(), user.to_string(), scopes, *expires_ms])
        }
        LoginDecision::Deny => (DENY, params![code_hash.as_str().to_owned()]),
    }
}

/// Creates the token of an approved login, and deletes the login: it is collected once.
pub(super) async fn collect(
    inner: &Arc<Inner>,
    device_hash: &SecretHash,
    minted: &NewTokenHash,
) -> Result<LoginCollection, TxError> {
    let device = || device_hash.as_str().to_owned();
    // Most who ask have to wait, and wait for no lock in order to hear it.
    let found = run(inner, TokenOwners::STRANGERS, LOOK, params![device()], false).await?;
    let state: Option<String> = match found.first() {
        Some(row) => row.try_get(0).map(Some).map_err(|error: Error| TxError::of(&error, false))?,
        None => None,
    };
    match state.as_deref() {
        Some("approved") => {}
        Some("pending") => return Ok(LoginCollection::Pending),
        Some(_) => return Ok(LoginCollection::Denied),
        None => return Ok(LoginCollection::Nothing),
    }
    let params = params![device(), minted.hash.as_str().to_owned(), minted.id.to_string()];
    let made = read(&run(inner, TokenOwners::STRANGERS, TAKE, params, true).await?, token)?;
    Ok(made.into_iter().next().map_or(LoginCollection::Nothing, LoginCollection::Token))
}
