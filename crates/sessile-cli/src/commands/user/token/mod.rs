//! `sessile user token`: access tokens of users.

pub mod create;
pub mod list;
pub mod revoke;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Create, list and revoke tokens
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile user token create ann"
    "sessile user token list ann"
    "sessile user token revoke 0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10"
))]
pub enum Command {
    /// Create a token for a user, and print it once
    Create(Lazy<create::Args>),
    /// List the tokens of a user, without their secrets
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Revoke a token
    Revoke(Lazy<revoke::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Create(Lazy(args)) => create::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Revoke(Lazy(args)) => revoke::run(args, cx),
        }
    }
}
