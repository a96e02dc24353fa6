//! Errors of the store, the users and the logins of the session service.

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shell_quoted, shown};

/// Errors of the store, the users and the logins of the session service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A user of the service that is there already.
    #[error("user {} exists already", quoted(.0))]
    UserExists(String),
    /// No such user of the service.
    #[error("there is no user {}", quoted(.0))]
    UserNotFound(String),
    /// No such token of the service.
    #[error("there is no token {}", quoted(.0))]
    TokenNotFound(String),
    /// No machine that asks to be let in to the service shows this code.
    #[error("no login waits under the code {}", quoted(.0))]
    LoginNotFound(String),
    /// A database of the service that does not take the role or the password.
    #[error("the service's store lets nobody in with this role and password: {}", shown(.0))]
    StoreRefused(String),
    /// A database of the service that wants a password, and none was given.
    #[error("the service's store wants a password, and none was given")]
    PasswordRequired,
    /// A store of the service that a newer version has changed.
    #[error(
        "the service's store ({}) has schema version {found}; this program supports versions up to {known}",
        shown(store)
    )]
    StoreTooNew {
        /// The file, or the database.
        store: String,
        /// Its schema version.
        found: i64,
        /// The newest schema version known here.
        known: i64,
    },
    /// The service's store failed.
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
Self::TokenNotFound(_) => format!("`{name} user token list USER` shows those of a user"),
Self::StoreRefused(_) => {
                "is the role in --store right, and the password in the file of --store-password-file?".to_owned()
            }
Self::PasswordRequired => {
                "put it into a file, and name that with --store-password-file".to_owned()
            }
Self::LoginNotFound(_) => {
                "a code has eight letters, and counts for 15 minutes until it is approved or refused; the machine can ask for \
                 another".to_owned()
            }
Self::StoreTooNew { .. } => format!("upgrade {name}, or restore a backup from before the upgrade"),
_ => return None,
})
    }
}
