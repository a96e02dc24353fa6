//! Users and their tokens, for administrators of the service.

use crate::account::{Account, AccountChange, Token, TokenScope};
use crate::change::Refusal;
use crate::clock::{self, now_ms};
use crate::ids::{InvalidId, TokenId, TokenSecret, UserName};
use crate::model::HistoryEntry;
use crate::query::{Query, QueryAnswer};
use crate::request::{Access, AuditedRead};
use crate::store::{ServiceStore, ServiceStoreError};

/// Failure of a change of users or tokens.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UserError {
    /// The name is not a valid one.
    #[error(transparent)]
    InvalidName(#[from] InvalidId),
    /// The user exists already.
    #[error("user {0:?} already exists")]
    Exists(String),
    /// The user does not exist.
    #[error("user {0:?} not found")]
    NoUser(String),
    /// The user is disabled.
    #[error("user {0:?} is disabled")]
    Disabled(String),
    /// The token does not exist.
    #[error("token {0:?} not found")]
    NoToken(String),
    /// No device login has this user code.
    #[error("no pending login with the code {0:?}")]
    NoLogin(String),
    /// A token without a scope.
    #[error("a token requires a scope: read, write or admin")]
    NoScope,
    /// Random number generator of the system failed.
    #[error("cannot read random bytes: {0}")]
    Random(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ServiceStoreError),
}

/// A new token with its secret, which is stored nowhere.
#[derive(Debug)]
pub struct NewToken {
    /// Stored token.
    pub token: Token,
    /// Secret, which is stored nowhere.
    pub secret: TokenSecret,
}

/// Adds a user.
pub async fn add(db: &ServiceStore, name: &str) -> Result<UserName, UserError> {
    let user: UserName = name.parse()?;
    if db.administer(AccountChange::AddUser(user.clone())).await?.is_err() {
        return Err(UserError::Exists(name.to_owned()));
    }
    record(db, &user, "user.add", None).await?;
    Ok(user)
}

/// Adds an administrator's change to the audit log, after it was made: if the store fails in between, the entry is missing,
/// but no entry names a change that was not made.
pub(crate) async fn record(
    db: &ServiceStore,
    user: &UserName,
    action: &str,
    token: Option<TokenId>,
) -> Result<(), UserError> {
    let id = clock::new_id().map_err(|error| UserError::Random(error.to_string()))?;
    let access = Access { id, token };
    let (user, action, outcome) = (user.clone(), action.to_owned(), "done".to_owned());
    db.record(vec![AuditedRead { user, access, action, session: None, outcome, at_ms: now_ms() }]).await?;
    Ok(())
}

/// Name of a user that should exist. An invalid name is reported as not found.
pub fn existing(name: &str) -> Result<UserName, UserError> {
    name.parse().map_err(|_| UserError::NoUser(name.to_owned()))
}

/// All users, by name.
pub async fn list(db: &ServiceStore) -> Result<Vec<Account>, UserError> {
    Ok(db.accounts().await?)
}

/// Disables or enables a user. The tokens of a disabled user are kept, and are not valid.
pub async fn disable(db: &ServiceStore, user: &UserName, disabled: bool) -> Result<(), UserError> {
    found(db.administer(AccountChange::Disable(user.clone(), disabled)).await?, || {
        UserError::NoUser(user.to_string())
    })?;
    record(db, user, if disabled { "user.disable" } else { "user.enable" }, None).await
}

/// Fails unless a user exists and is not disabled.
pub(crate) async fn require_enabled(db: &ServiceStore, user: &UserName) -> Result<(), UserError> {
    match db.accounts().await?.iter().find(|account| account.user == *user) {
        None => Err(UserError::NoUser(user.to_string())),
        Some(account) if account.disabled_ms.is_some() => Err(UserError::Disabled(user.to_string())),
        Some(_) => Ok(()),
    }
}

/// Creates a token of a user.
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
    // Stored as text, so equal sets must have one form.
    scopes.sort_unstable();
    scopes.dedup();
    let token = Token { id, user: user.clone(), scopes, made_ms: now_ms(), expires_ms, revoked_ms: None };
    // A token of a disabled user would become valid when the user is enabled again.
    require_enabled(db, user).await?;
    let added = db.administer(AccountChange::AddToken(token.clone(), secret.hash())).await?;
    found(added, || UserError::NoUser(user.to_string()))?;
    record(db, user, "token.create", Some(token.id.clone())).await?;
    Ok(NewToken { token, secret })
}

/// Tokens of a user, the oldest first.
pub async fn tokens(db: &ServiceStore, user: &UserName) -> Result<Vec<Token>, UserError> {
    let tokens = db.tokens(user).await?;
    if tokens.is_empty() && !db.accounts().await?.iter().any(|account| account.user == *user) {
        return Err(UserError::NoUser(user.to_string()));
    }
    Ok(tokens)
}

/// Revokes a token.
pub async fn revoke(db: &ServiceStore, id: &str) -> Result<(), UserError> {
    let no_token = || UserError::NoToken(id.to_owned());
    let id: TokenId = id.parse().map_err(|_| no_token())?;
    let user = db.owner(&id).await?.ok_or_else(no_token)?;
    found(db.administer(AccountChange::Revoke(id.clone())).await?, no_token)?;
    record(db, &user, "token.revoke", Some(id)).await
}

/// Page of the audit log of one user or of all, newest first, before an id; includes reads.
pub async fn audit(
    db: &ServiceStore,
    user: Option<&UserName>,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<(UserName, HistoryEntry)>, UserError> {
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
        if let Ok(QueryAnswer::History(page)) = db.ask(&user, query).await? {
            all.extend(page.items.into_iter().map(|access| (user.clone(), access)));
        }
    }
    // Ids are in the order of time.
    all.sort_by(|(_, one), (_, other)| other.id.cmp(&one.id));
    all.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(all)
}

fn found(outcome: Result<(), Refusal>, otherwise: impl FnOnce() -> UserError) -> Result<(), UserError> {
    outcome.map_err(|_| otherwise())
}
