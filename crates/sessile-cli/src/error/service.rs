//! Errors of the store, the users and the logins of the session service.

use sessile::error::Diagnostic;
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};

/// Errors of the store, the users and the logins of the session service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// User name that is taken.
    #[error("user {} already exists", quoted(.0))]
    UserExists(String),
    /// User that the service does not have.
    #[error("user {} not found", quoted(.0))]
    UserNotFound(String),
    /// User that is disabled.
    #[error("user {} is disabled", quoted(.0))]
    UserDisabled(String),
    /// Token that the service does not have.
    #[error("token {} not found", quoted(.0))]
    TokenNotFound(String),
    /// Code of a device login that is not pending.
    #[error("no pending login with the code {}", quoted(.0))]
    LoginNotFound(String),
    /// Role or password that the service's database rejected.
    #[error("PostgreSQL refused the login of the store's role: {}", shown(.0))]
    StoreRefused(String),
    /// Missing password of the service's database.
    #[error("the service's store requires a password")]
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
                format!("create a token: {name} user token create {}", shell_quoted(user))
            }
            Self::UserNotFound(_) => format!("list the users: {name} user list"),
            Self::UserDisabled(user) => {
                format!("enable the user: {name} user disable {} --undo", shell_quoted(user))
            }
            Self::TokenNotFound(_) => format!("list the tokens of a user: {name} user token list USER"),
            Self::StoreRefused(_) => {
                "check the role in --store and the password in the file of --store-password-file"
                    .to_owned()
            }
            Self::PasswordRequired => {
                "put the password into a file and pass --store-password-file FILE".to_owned()
            }
            Self::LoginNotFound(_) => {
                "a code has eight letters and is valid for 15 minutes; log in again on the machine for a new one"
                    .to_owned()
            }
            Self::StoreTooNew { .. } => {
                format!("upgrade {name}, or restore a backup from before the upgrade")
            }
            _ => return None,
        })
    }
}
