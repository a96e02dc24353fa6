//! Errors of the store, the users and the logins of the session service.

use sessile::error::Diagnostic;
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};

/// Errors of the store, the users and the logins of the session service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// User name that is taken.
    #[error("user {} exists already", quoted(.0))]
    UserExists(String),
    /// User that the service does not have.
    #[error("there is no user {}", quoted(.0))]
    UserNotFound(String),
    /// User that is disabled.
    #[error("user {} is disabled", quoted(.0))]
    UserDisabled(String),
    /// Token that the service does not have.
    #[error("there is no token {}", quoted(.0))]
    TokenNotFound(String),
    /// Code of a device login that is not pending.
    #[error("no login waits under the code {}", quoted(.0))]
    LoginNotFound(String),
    /// Role or password that the service's database rejected.
    #[error("the service's store lets nobody in with this role and password: {}", shown(.0))]
    StoreRefused(String),
    /// Missing password of the service's database.
    #[error("the service's store wants a password, and none was given")]
    PasswordRequired,
    /// Store with the schema of a newer version.
    #[error(
        "the service's store ({}) has schema version {found}; this program supports versions up to {known}",
        shown(store)
    )]
    StoreTooNew {
        /// File or database of the store.
        store: String,
        /// Schema version of the store.
        found: i64,
        /// Newest schema version that this program supports.
        known: i64,
    },
    /// Failure of the service's store.
    #[error("the service's store failed: {}", shown(.0))]
    StoreFailed(String),
}

impl Diagnostic for ServiceError {
    fn code(&self) -> Code {
        match self {
            Self::StoreFailed(_) => Code::Store,
            Self::StoreTooNew { .. } => Code::StoreTooNew,
            Self::UserExists(_) => Code::UserExists,
            Self::UserNotFound(_) => Code::UserNotFound,
            Self::UserDisabled(_) => Code::UserDisabled,
            Self::TokenNotFound(_) => Code::TokenNotFound,
            Self::LoginNotFound(_) => Code::LoginNotFound,
            Self::StoreRefused(_) | Self::PasswordRequired => Code::CredentialRejected,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::UserExists(user) => {
                format!("give it a token: {name} user token create {}", shell_quoted(user))
            }
            Self::UserNotFound(_) => format!("`{name} user list` shows those there are"),
            Self::UserDisabled(user) => {
                format!("enable the user: {name} user disable {} --undo", shell_quoted(user))
            }
            Self::TokenNotFound(_) => format!("`{name} user token list USER` shows those of a user"),
            Self::StoreRefused(_) => {
                "is the role in --store right, and the password in the file of --store-password-file?"
                    .to_owned()
            }
            Self::PasswordRequired => {
                "put it into a file, and name that with --store-password-file".to_owned()
            }
            Self::LoginNotFound(_) => {
                "a code has eight letters, and counts for 15 minutes until it is approved or refused; \
                 the machine can ask for another"
                    .to_owned()
            }
            Self::StoreTooNew { .. } => {
                format!("upgrade {name}, or restore a backup from before the upgrade")
            }
            _ => return None,
        })
    }
}
