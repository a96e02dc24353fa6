//! Users and their tokens: for who administers the service.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sessile::vault::Secret;
use sha2::{Digest, Sha256};

use crate::account::{Account, Administer, Scope, Token};
use crate::change::Refusal;
use crate::clock::now_ms;
use crate::db::{Db, DbError};
use crate::model::UserId;

/// What tokens begin with, so that one that lies about is recognised.
pub const PREFIX: &str = "sst_";

/// How long a user's name may be.
const LONGEST_NAME: usize = 64;

/// Why something about users was not done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UserError {
    /// The name cannot be one.
    #[error(
        "a user's name has 1 to 64 letters, digits, `.`, `_`, `-` or `@`, and begins with a letter or digit"
    )]
    InvalidName,
    /// There is one already.
    #[error("user {0:?} exists already")]
    Exists(String),
    /// There is no such user.
    #[error("there is no user {0:?}")]
    NoUser(String),
    /// There is no such token.
    #[error("there is no token {0:?}")]
    NoToken(String),
    /// No machine that asks to be let in shows this code.
    #[error("no login waits under the code {0:?}")]
    NoLogin(String),
    /// A token without a scope opens nothing.
    #[error("a token needs a scope: read, write or admin")]
    NoScope,
    /// The system gave no random bytes.
    #[error("no random bytes: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A token that was just made, with its secret, which is nowhere else.
#[derive(Debug)]
pub struct NewToken {
    /// What is kept of it.
    pub token: Token,
    /// It itself.
    pub secret: Secret,
}

/// Adds a user.
pub async fn add(db: &Db, name: &str) -> Result<UserId, UserError> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@'));
    if !begins_well || !fits || name.len() > LONGEST_NAME {
        return Err(UserError::InvalidName);
    }
    let user = UserId(name.to_owned());
    match db.administer(Administer::AddUser(user.clone())).await? {
        Ok(()) => Ok(user),
        Err(_) => Err(UserError::Exists(name.to_owned())),
    }
}

/// The users, in order.
pub async fn list(db: &Db) -> Result<Vec<Account>, UserError> {
    Ok(db.accounts().await?)
}

/// Shuts a user out, or lets them in again. Their tokens stay and count for nothing meanwhile.
pub async fn disable(db: &Db, user: &UserId, disabled: bool) -> Result<(), UserError> {
    found(db.administer(Administer::Disable(user.clone(), disabled)).await?, || {
        UserError::NoUser(user.0.clone())
    })
}

/// Gives a user a token. The secret is in the answer and nowhere else.
pub async fn create_token(
    db: &Db,
    user: &UserId,
    scopes: &[Scope],
    expires_ms: Option<i64>,
) -> Result<NewToken, UserError> {
    if scopes.is_empty() {
        return Err(UserError::NoScope);
    }
    let random = |error: sessile::Error| UserError::Random(error.to_string());
    let bytes = sessile::random::bytes::<32>().map_err(random)?;
    let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let id = sessile::session::SessionId::new(now_ms()).map_err(random)?;
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    let token = Token {
        id: id.to_string(),
        user: user.clone(),
        scopes,
        made_ms: now_ms(),
        expires_ms,
        revoked_ms: None,
    };
    let added = db.administer(Administer::AddToken(token.clone(), hash(&secret))).await?;
    found(added, || UserError::NoUser(user.0.clone()))?;
    Ok(NewToken { token, secret: Secret::new(secret) })
}

/// The tokens of a user, the oldest first.
pub async fn tokens(db: &Db, user: &UserId) -> Result<Vec<Token>, UserError> {
    let tokens = db.tokens(user).await?;
    if tokens.is_empty() && !db.accounts().await?.iter().any(|account| account.user == *user) {
        return Err(UserError::NoUser(user.0.clone()));
    }
    Ok(tokens)
}

/// Takes a token back, by its id.
pub async fn revoke(db: &Db, id: &str) -> Result<(), UserError> {
    found(db.administer(Administer::Revoke(id.to_owned())).await?, || UserError::NoToken(id.to_owned()))
}

fn found(outcome: Result<(), Refusal>, otherwise: impl FnOnce() -> UserError) -> Result<(), UserError> {
    outcome.map_err(|_| otherwise())
}

/// What a token is kept and looked up as. A plain hash is enough for 256 random bits: there is nothing to guess.
pub(crate) fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
