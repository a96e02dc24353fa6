//! Users and their tokens: for who administers the service.

use crate::account::{Account, Administer, Token, TokenScope};
use crate::change::Refusal;
use crate::clock::{self, now_ms};
use crate::ids::{InvalidId, TokenId, TokenSecret, UserName};
use crate::model::Accessed;
use crate::query::{Answer, Query};
use crate::request::{Access, Read};
use crate::store::{ServiceStore, ServiceStoreError};

/// Why something about users was not done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UserError {
    /// The name is not a valid one.
    #[error(transparent)]
    InvalidName(#[from] InvalidId),
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
    Store(#[from] ServiceStoreError),
}

/// A token that was just made, with its secret, which is nowhere else.
#[derive(Debug)]
pub struct NewToken {
    /// The token as it is stored.
    pub token: Token,
    /// Its secret, which is stored nowhere.
    pub secret: TokenSecret,
}

/// Adds a user.
pub async fn add(db: &ServiceStore, name: &str) -> Result<UserName, UserError> {
    let user: UserName = name.parse()?;
    if db.administer(Administer::AddUser(user.clone())).await?.is_err() {
        return Err(UserError::Exists(name.to_owned()));
    }
    record(db, &user, "user.add", None).await?;
    Ok(user)
}

/// Puts on the record what was done about a user by who administers the store. It is said after it was done, so it may be
/// missing where the store fails in between; it never says what was not done.
pub(crate) async fn record(
    db: &ServiceStore,
    user: &UserName,
    action: &str,
    token: Option<TokenId>,
) -> Result<(), UserError> {
    let id = clock::new_id().map_err(|error| UserError::Random(error.to_string()))?;
    let access = Access { id, token };
    let (user, action, outcome) = (user.clone(), action.to_owned(), "done".to_owned());
    db.record(vec![Read { user, access, action, session: None, outcome, at_ms: now_ms() }]).await?;
    Ok(())
}

/// Name of a user who should exist. A text that is not a valid name belongs to nobody.
pub fn existing(name: &str) -> Result<UserName, UserError> {
    name.parse().map_err(|_| UserError::NoUser(name.to_owned()))
}

/// The users, in order.
pub async fn list(db: &ServiceStore) -> Result<Vec<Account>, UserError> {
    Ok(db.accounts().await?)
}

/// Shuts a user out, or lets them in again. Their tokens stay and count for nothing meanwhile.
pub async fn disable(db: &ServiceStore, user: &UserName, disabled: bool) -> Result<(), UserError> {
    found(db.administer(Administer::Disable(user.clone(), disabled)).await?, || {
        UserError::NoUser(user.to_string())
    })?;
    record(db, user, if disabled { "user.disable" } else { "user.enable" }, None).await
}

/// Gives a user a token. The secret is in the answer and nowhere else.
pub async fn create_token(
    db: &ServiceStore,
    user: &UserName,
    scopes: &[TokenScope],
    expires_ms: Option<i64>,
) -> Result<NewToken, UserError> {
    if scopes.is_empty() {
        return Err(UserError::NoScope);
    }
    let random = |error: sessile::Error| UserError::Random(error.to_string());
    let secret = TokenSecret::generate().map_err(random)?;
    let id = TokenId::generate().map_err(random)?;
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    let token = Token { id, user: user.clone(), scopes, made_ms: now_ms(), expires_ms, revoked_ms: None };
    let added = db.administer(Administer::AddToken(token.clone(), secret.hash())).await?;
    found(added, || UserError::NoUser(user.to_string()))?;
    record(db, user, "token.create", Some(token.id.clone())).await?;
    Ok(NewToken { token, secret })
}

/// The tokens of a user, the oldest first.
pub async fn tokens(db: &ServiceStore, user: &UserName) -> Result<Vec<Token>, UserError> {
    let tokens = db.tokens(user).await?;
    if tokens.is_empty() && !db.accounts().await?.iter().any(|account| account.user == *user) {
        return Err(UserError::NoUser(user.to_string()));
    }
    Ok(tokens)
}

/// Takes a token back, by its id.
pub async fn revoke(db: &ServiceStore, id: &str) -> Result<(), UserError> {
    let no_token = || UserError::NoToken(id.to_owned());
    let id: TokenId = id.parse().map_err(|_| no_token())?;
    let user = db.owner(&id).await?.ok_or_else(no_token)?;
    found(db.administer(Administer::Revoke(id.clone())).await?, no_token)?;
    record(db, &user, "token.revoke", Some(id)).await
}

/// What is on the record of one user, or of all, before an id and the newest first; what was only read too.
pub async fn audit(
    db: &ServiceStore,
    user: Option<&UserName>,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<(UserName, Accessed)>, UserError> {
    let accounts = db.accounts().await?.into_iter().map(|account| account.user);
    let wanted: Vec<UserName> = accounts.filter(|one| user.is_none_or(|user| user == one)).collect();
    if let (Some(user), []) = (user, &wanted[..]) {
        return Err(UserError::NoUser(user.to_string()));
    }
    let mut all = Vec::new();
    // One after the other, each bound to its user like everything else.
    for user in wanted {
        let before = before.map(str::to_owned);
        let query = Query::History { session: None, since_ms: None, reads: true, before, limit };
        if let Ok(Answer::History(page)) = db.ask(&user, query).await? {
            all.extend(page.items.into_iter().map(|access| (user.clone(), access)));
        }
    }
    all.sort_by(|(_, one), (_, other)| other.id.cmp(&one.id));
    all.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(all)
}

fn found(outcome: Result<(), Refusal>, otherwise: impl FnOnce() -> UserError) -> Result<(), UserError> {
    outcome.map_err(|_| otherwise())
}
