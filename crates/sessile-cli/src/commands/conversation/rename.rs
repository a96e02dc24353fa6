//! `sessile conversation rename`.

use serde_json::json;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::local::find_conversation;

/// Give a conversation a name
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile conversation rename 01890a5d-ac96-774b-bcce-b302099a8057 research"))]
pub struct Args {
    /// Its name or id, or the agent whose last one it is
    #[arg(value_name = "CONVERSATION")]
    which: String,

    /// Its new name
    #[arg(value_name = "NEW")]
    new: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut all = cx.state.conversations()?;
    let found = find_conversation(&cx.state, &all, Some(&args.which))?;
    all.rename(&found, Some(&args.new))?;
    sessile::history::record(&cx.state, "conversation rename", &args.new, "name it back")?;
    cx.changed(json!({ "id": found.id, "old": found.name, "new": args.new }), || {
        format!("conversation {} is named {} now\n", quoted(found.label()), quoted(&args.new))
    })
}
