//! `sessile conversation export`.

use crate::backend::{MessageRange, StateBackend};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::json_text;
use crate::remote::ServerArgs;

/// Print a conversation and its messages as JSON or Markdown
///
/// With --server or the setting server, pass a session of the service, not a conversation.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile conversation export research > research.json" "sessile conversation export research --format md"))]
pub struct Args {
    /// Conversation: name or id, or an agent for the last one with it; default: the last conversation
    #[arg(value_name = "CONVERSATION")]
    which: Option<String>,

    /// Format: json or md (Markdown, without files and data)
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = ["json", "md"])]
    format: String,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let conversation = StateBackend::resolve(cx)?.conversation(args.which.as_deref(), MessageRange::All)?;
    if args.format == "md" {
        return cx.out.print(&conversation.markdown());
    }
    // It is JSON whatever the format of other results.
    cx.out.result(&conversation, || json_text(&conversation))
}
