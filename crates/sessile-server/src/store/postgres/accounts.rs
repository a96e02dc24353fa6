//! Users and their tokens, in tables that belong to no user.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::logins;
use super::transaction::{PooledConnection, SERVICE, SqlParams, Step, TxError, params};
use crate::account::{Account, AccountChange, Token};
use crate::change::Refusal;
use crate::ids::{SecretHash, TokenId, UserName};
use crate::store::columns::Column;

macro_rules! now {
    () => {
        "floor(extract(epoch FROM now()) * 1000)::bigint"
    };
}
pub(super) use now;

macro_rules! columns {
    () => {
        "token.id, token.user_id, token.scopes, token.made_ms, token.expires_ms, token.revoked_ms"
    };
}

const ADD_USER: &str = concat!(
    "WITH made AS (INSERT INTO account (user_id, made_ms) VALUES ($1, ",
    now!(),
    ") ON CONFLICT DO NOTHING RETURNING user_id, made_ms),
     kept AS (INSERT INTO upkeep (user_id, kind, since_ms)
         SELECT user_id, kind, made_ms FROM made, unnest(ARRAY['answered', 'events', 'audit', 'sessions']) AS kind
         ON CONFLICT DO NOTHING)
     SELECT 1 FROM made"
);
const DISABLE: &str = concat!(
    "UPDATE account SET disabled_ms = CASE WHEN $2 THEN ",
    now!(),
    " END WHERE user_id = $1 RETURNING 1"
);
const ADD_TOKEN: &str = concat!(
    "INSERT INTO token (hash, id, user_id, scopes, made_ms, expires_ms)
     SELECT $1, $2, user_id, $4, ",
    now!(),
    ", $5::bigint FROM account WHERE user_id = $3 RETURNING 1"
);
const REVOKE: &str =
    concat!("UPDATE token SET revoked_ms = coalesce(revoked_ms, ", now!(), ") WHERE id = $1 RETURNING 1");
const ALL: &str = "SELECT user_id, made_ms, disabled_ms FROM account ORDER BY user_id";
const TOKENS: &str = concat!("SELECT ", columns!(), " FROM token WHERE user_id = $1 ORDER BY made_ms, id");
const OWNER: &str = "SELECT user_id FROM token WHERE id = $1";
const USABLE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM token JOIN account ON account.user_id = token.user_id
     WHERE hash = $1 AND revoked_ms IS NULL AND disabled_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ",
    now!(),
    ")"
);

const USABLE_HASHES: &str = concat!(
    "SELECT hash FROM token JOIN account ON account.user_id = token.user_id
     WHERE revoked_ms IS NULL AND disabled_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ",
    now!(),
    ")"
);

/// Changes users and tokens. It is not retried where it may have been made.
pub(super) async fn administer(
    inner: &Arc<Inner>,
    change: &AccountChange,
) -> Result<Result<(), Refusal>, TxError> {
    let (sql, params) = match change {
        AccountChange::AddUser(user) => (ADD_USER, params![user.to_string()]),
        AccountChange::Disable(user, disabled) => (DISABLE, params![user.to_string(), *disabled]),
        AccountChange::AddToken(token, hash) => {
            let scopes = serde_json::to_string(&token.scopes).unwrap_or_default();
            let (hash, id, user) = (hash.as_str().to_owned(), token.id.to_string(), token.user.to_string());
            (ADD_TOKEN, params![hash, id, user, scopes, token.expires_ms])
        }
        AccountChange::Revoke(id) => (REVOKE, params![id.to_string()]),
        AccountChange::Decide(code_hash, decision) => logins::decide(code_hash, decision),
    };
    // Statements return a row only if they changed one.
    let changed = run(inner, SERVICE, sql, params, true).await?;
    Ok(if changed.is_empty() { Err(change.refusal()) } else { Ok(()) })
}

/// Every user.
pub(super) async fn all(inner: &Arc<Inner>) -> Result<Vec<Account>, TxError> {
    let account = |row: &Row| {
        let Column(user) = row.try_get(0)?;
        Ok(Account { user, made_ms: row.try_get(1)?, disabled_ms: row.try_get(2)? })
    };
    read(&run(inner, SERVICE, ALL, params![], false).await?, account)
}

/// The tokens of a user.
pub(super) async fn tokens(inner: &Arc<Inner>, user: &UserName) -> Result<Vec<Token>, TxError> {
    read(&run(inner, SERVICE, TOKENS, params![user.to_string()], false).await?, token)
}

/// Owner of the token with an id.
pub(super) async fn owner(inner: &Arc<Inner>, id: &TokenId) -> Result<Option<UserName>, TxError> {
    let user = |row: &Row| Ok(row.try_get::<_, Column<_>>(0)?.0);
    let found = read(&run(inner, SERVICE, OWNER, params![id.to_string()], false).await?, user)?;
    Ok(found.into_iter().next())
}

/// The valid token with a hash.
pub(super) async fn usable(inner: &Arc<Inner>, hash: &SecretHash) -> Result<Option<Token>, TxError> {
    // A user who floods the service with requests waits in their own lane, and guesses share one.
    let lane = inner.owners.lane(hash);
    let found = read(&run(inner, &lane, USABLE, params![hash.as_str().to_owned()], false).await?, token)?;
    let token = found.into_iter().next();
    inner.owners.remember(hash, token.as_ref().map(|token| &token.user));
    Ok(token)
}

/// Hashes of all valid tokens.
pub(super) async fn usable_hashes(inner: &Arc<Inner>) -> Result<Vec<SecretHash>, TxError> {
    let hash = |row: &Row| row.try_get(0).map(SecretHash::stored);
    read(&run(inner, SERVICE, USABLE_HASHES, params![], false).await?, hash)
}

/// Checks that the tables exist.
pub(super) async fn ready(inner: &Arc<Inner>) -> Result<(), TxError> {
    run(inner, SERVICE, "SELECT 1 FROM account LIMIT 1", params![], false).await.map(drop)
}

pub(super) async fn run(
    inner: &Arc<Inner>,
    lane: &str,
    sql: &'static str,
    params: SqlParams<'_>,
    writes: bool,
) -> Result<Vec<Row>, TxError> {
    let mut link = PooledConnection::for_accounts(inner, lane).await?;
    let rows = link.send(&[Step::Other(sql, params)]).await.map_err(|error| TxError::of(&error, writes))?;
    Ok(rows.into_iter().next().unwrap_or_default())
}

pub(super) fn read<T>(rows: &[Row], one: impl Fn(&Row) -> Result<T, Error>) -> Result<Vec<T>, TxError> {
    rows.iter().map(one).collect::<Result<_, _>>().map_err(|error| TxError::of(&error, false))
}

pub(super) fn token(row: &Row) -> Result<Token, Error> {
    Ok(Token {
        id: row.try_get::<_, Column<_>>(0)?.0,
        user: row.try_get::<_, Column<_>>(1)?.0,
        scopes: serde_json::from_str(row.try_get(2)?).unwrap_or_default(),
        made_ms: row.try_get(3)?,
        expires_ms: row.try_get(4)?,
        revoked_ms: row.try_get(5)?,
    })
}
