//! `sessile conversation export`.

use crate::backend::{MessageRange, StateBackend};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::json_text;
use crate::remote::ServerArgs;

/// Print a conversation and its messages as JSON
///
/// With --server, or the setting server, it is that of a session of the service, which is named instead.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile conversation export research > research.json"))]
pub struct Args {
    /// Its name or id, or the agent whose last one it is; else the last one of all
    #[arg(value_name = "CONVERSATION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let conversation = StateBackend::resolve(cx)?.conversation(args.which.as_deref(), MessageRange::All)?;
    // It is JSON whatever the format of other results.
    cx.out.result(&conversation, || json_text(&conversation))
}
