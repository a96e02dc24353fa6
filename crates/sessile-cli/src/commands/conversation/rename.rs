//! `sessile conversation rename`.

use serde_json::json;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::local::find_conversation;

/// Rename a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile conversation rename 01890a5d-ac96-774b-bcce-b302099a8057 research"))]
pub struct Args {
    /// Conversation: name or id, or an agent for the last one with it
    #[arg(value_name = "CONVERSATION")]
    which: String,

    /// New name
    #[arg(value_name = "NEW")]
    new: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut all = cx.state.conversations()?;
    let found = find_conversation(&cx.state, &all, Some(&args.which))?;
    all.rename(&found, Some(&args.new))?;
    sessile::history::record(&cx.state, "conversation rename", &args.new, "rename it back")?;
    cx.changed(json!({ "id": found.id, "old": found.name, "new": args.new }), || {
        format!("renamed conversation {} to {}\n", quoted(found.label()), quoted(&args.new))
    })
}
