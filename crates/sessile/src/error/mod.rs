//! Errors as data: one enum per area, each variant with its code, hint and fix command in the same file.
//!
//! [`Error`] nests the areas. [`Diagnostic`] has the code, hint and fix command of an error.

mod context;
mod conversation;
mod credential;
mod credential_consumer;
mod diagnostic;
mod expired_credential;
mod file;
mod guard;
mod history;
mod library;
mod location;
mod lock;
mod project;
mod report;
mod run;
mod session;
mod settings;
mod store;
mod tool;
mod usage;
mod vault;

pub use context::{ContextError, GuardLoss};
pub use conversation::ConversationError;
pub use credential::{CredentialError, SiteRefusal};
pub use credential_consumer::CredentialConsumer;
pub use diagnostic::{Diagnostic, ErrorDetails};
pub use expired_credential::ExpiredCredential;
pub use file::{FileError, FileLockHolder, io_reason};
pub use guard::{GuardError, Protection};
pub use history::HistoryError;
pub use library::{Error, Result};
pub use location::FileLocation;
pub use lock::LockError;
pub use project::{ProjectError, UnsafeFile, UnsafeReason};
pub use report::{Report, ReportBody};
pub use run::RunError;
pub use session::{SessionEnd, SessionError};
pub use settings::SettingsError;
pub use store::StoreError;
pub use tool::ToolError;
pub use usage::UsageError;
pub use vault::VaultError;
