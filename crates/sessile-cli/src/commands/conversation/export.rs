//! `sessile conversation export`.

use serde_json::json;
use sessile::Error;
use sessile::error::ConversationError;

use super::one;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{Remote, ServerArgs};

/// Print a conversation as JSON, with all that was said
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
    if let Some(remote) = Remote::of(cx)? {
        let session = remote.meant(args.which.as_deref(), "exporting")?;
        let json = remote.conversation(&session, &remote.said(&session, i64::MAX)?);
        return cx.out.result(&json, || sessile::text::json_safe(&format!("{json:#}\n")));
    }
    let missing = || {
        Error::Conversation(ConversationError::NotFound {
            name: args.which.clone().unwrap_or_default(),
            near: None,
        })
    };
    let all = cx.state.conversations_to_look_at()?.ok_or_else(missing)?;
    let found = one(&cx.state, &all, args.which.as_deref())?;
    let mut json = json!(found);
    json["messages"] = json!(all.items(&found, 1, usize::MAX)?);
    cx.out.result(&json, || sessile::text::json_safe(&format!("{json:#}\n")))
}
