//! `sessile user`: users of the session service.

pub mod add;
pub mod approve;
pub mod audit;
pub mod disable;
pub mod list;
pub mod token;

use std::time::Duration;

use sessile::Error;
use sessile::error::{FileError, UsageError};
use sessile_server::account::TokenScope;
use sessile_server::users::UserError;

use super::service_store::{StoreArgs, StoreLocation, failed};
use crate::cli::Cx;
use crate::error::{Failure, Outcome, ServiceError};
use crate::help::examples;
use crate::lazy_command::{Lazy, LazyGroup};

/// Manage users and tokens of the session service
///
/// Everyone with access to the store can administer it. A token is printed once, when it is created; only its hash is
/// stored.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile user add ann"
    "sessile user token create ann --scope read --scope write --expires 90d"
    "sessile user approve BCDF-GHJK --user ann"
    "sessile user disable ann"
))]
pub enum Command {
    /// Add a user
    Add(Lazy<add::Args>),
    /// List the users
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Approve or deny a device login
    Approve(Lazy<approve::Args>),
    /// Disable or enable a user
    Disable(Lazy<disable::Args>),
    /// Show the service's audit log, newest entries first
    Audit(Lazy<audit::Args>),
    /// Create, list and revoke tokens
    Token(LazyGroup<token::Command>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Add(Lazy(args)) => add::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Approve(Lazy(args)) => approve::run(args, cx),
            Command::Disable(Lazy(args)) => disable::run(args, cx),
            Command::Audit(Lazy(args)) => audit::run(args, cx),
            Command::Token(LazyGroup(command)) => command.run(cx),
        }
    }
}

/// Opens the store of the service for a command.
fn with_store<T>(
    cx: &Cx,
    store: &StoreArgs,
    what: impl AsyncFnOnce(&sessile_server::store::ServiceStore) -> Result<T, UserError>,
) -> Result<T, Failure> {
    with_place(store.existing(cx)?, what)
}

/// Same with a store that is created if missing.
fn with_place<T>(
    place: StoreLocation,
    what: impl AsyncFnOnce(&sessile_server::store::ServiceStore) -> Result<T, UserError>,
) -> Result<T, Failure> {
    // The runtime lives only for this call, so that other commands never start one.
    let done = sessile_server::block_on(async {
        let db = place.open().await?;
        what(&db).await
    });
    match done {
        Ok(done) => done.map_err(refused),
        Err(source) => Err(FileError::Io { action: "start", path: "a runtime".into(), source }.into()),
    }
}

fn refused(error: UserError) -> Failure {
    match error {
        UserError::Exists(user) => ServiceError::UserExists(user).into(),
        UserError::NoUser(user) => ServiceError::UserNotFound(user).into(),
        UserError::Disabled(user) => ServiceError::UserDisabled(user).into(),
        UserError::NoLogin(code) => ServiceError::LoginNotFound(code).into(),
        UserError::NoToken(id) => ServiceError::TokenNotFound(id).into(),
        UserError::Store(error) => failed(&error),
        UserError::InvalidName(_) | UserError::NoScope => UsageError::Arguments(error.to_string()).into(),
        UserError::Random(detail) => {
            ServiceError::StoreFailed(format!("cannot read random bytes: {detail}")).into()
        }
    }
}

/// Scopes of a new token.
fn scopes(words: &[String]) -> Vec<TokenScope> {
    if words.is_empty() {
        return vec![TokenScope::Read, TokenScope::Write];
    }
    let scope = |word: &String| match word.as_str() {
        "read" => TokenScope::Read,
        "write" => TokenScope::Write,
        _ => TokenScope::Admin,
    };
    words.iter().map(scope).collect()
}

/// Expiry of a token with this lifetime.
fn expiry(cx: &Cx, time: Option<Duration>) -> Result<Option<i64>, Error> {
    let Some(time) = time else { return Ok(None) };
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    if millis == 0 {
        return Err(UsageError::Arguments("--expires must be greater than 0".into()).into());
    }
    Ok(Some(cx.state.world().now().as_millisecond().saturating_add(millis)))
}

/// Time for output.
fn at(millis: i64) -> String {
    sessile::clock::rfc3339(millis)
}
