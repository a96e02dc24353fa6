//! `sessile conversation show`.

use crate::backend::{MessageRange, StateBackend};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Show a conversation and what was said in it
///
/// What the agent said is marked as from outside, and safe for terminals. As JSON, has_credentials tells whether the
/// vault or the session's context has a credential for the agent; null if the vault would have to ask somebody. With
/// --server, or the setting server, it is what was said in a session of the service, which is named instead.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation show"
    "sessile conversation show research --last 5"
    "sessile conversation show https://agent.example --output json"
    "sessile conversation show work --server https://sessile.example"
))]
pub struct Args {
    /// Its name or id, or the agent whose last one it is; else the last one of all
    #[arg(value_name = "CONVERSATION")]
    which: Option<String>,

    /// Show only so many of the last things said
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: i64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let range = MessageRange::Last(args.last);
    let conversation = StateBackend::resolve(cx)?.conversation(args.which.as_deref(), range)?;
    cx.out.result(&conversation, || conversation.text())
}
