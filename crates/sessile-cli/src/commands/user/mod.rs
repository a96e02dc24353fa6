//! `sessile user`: who may use the session service.

pub mod add;
pub mod disable;
pub mod list;
pub mod token;

use sessile::Error;
use sessile_server::users::UserError;

use super::service_store::{StoreArgs, failed};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy::{Lazy, LazyGroup};

/// Add users of the session service, and give them tokens
///
/// Whoever can open the store administers it. A token is shown once, when it is made, and kept nowhere.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile user add ann"
    "sessile user token create ann --scope read --scope write --expires 90d"
    "sessile user disable ann"
))]
pub enum Command {
    /// Add a user
    Add(Lazy<add::Args>),
    /// List the users
    List(Lazy<list::Args>),
    /// Shut a user out, or let them in again
    Disable(Lazy<disable::Args>),
    /// Make, list and take back tokens
    Token(LazyGroup<token::Command>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Add(Lazy(args)) => add::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Disable(Lazy(args)) => disable::run(args, cx),
            Command::Token(LazyGroup(command)) => command.run(cx),
        }
    }
}

/// Does something with the service's store.
fn with_store<T>(
    cx: &Cx,
    store: &StoreArgs,
    what: impl AsyncFnOnce(&sessile_server::db::Db) -> Result<T, UserError>,
) -> Result<T, Failure> {
    let place = store.place(cx)?;
    let done = sessile_server::block_on(async {
        let db = place.open().await?;
        what(&db).await
    });
    match done {
        Ok(done) => done.map_err(refused),
        Err(source) => Err(Error::Io { action: "start", path: "a runtime".into(), source }.into()),
    }
}

fn refused(error: UserError) -> Failure {
    match error {
        UserError::Exists(user) => Error::UserExists(user).into(),
        UserError::NoUser(user) => Error::UserNotFound(user).into(),
        UserError::NoToken(id) => Error::TokenNotFound(id).into(),
        UserError::Db(error) => failed(&error),
        UserError::InvalidName | UserError::NoScope => Error::Usage(error.to_string()).into(),
        UserError::Random(detail) => Error::Store { path: "random bytes".into(), detail }.into(),
    }
}

/// A time as it is told.
fn at(millis: i64) -> String {
    sessile::context::approval::time(millis)
}
