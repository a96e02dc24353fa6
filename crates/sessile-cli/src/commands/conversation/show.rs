//! `sessile conversation show`.

use crate::backend::{MessageRange, StateBackend};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Show a conversation and its messages
///
/// Marks the agent's replies as external, and escapes control characters. In JSON, has_credentials states whether the
/// vault or the session's context has a credential for the agent. It is null if the vault is locked. With --server or
/// the setting server, pass a session of the service, not a conversation.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation show"
    "sessile conversation show research --last 5"
    "sessile conversation show https://agent.example --output json"
    "sessile conversation show work --server https://sessile.example"
))]
pub struct Args {
    /// Conversation: name or id, or an agent for the last one with it; default: the last conversation
    #[arg(value_name = "CONVERSATION")]
    which: Option<String>,

    /// Show only this many of the last messages
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
