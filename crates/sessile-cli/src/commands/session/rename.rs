//! `sessile session rename`.

use serde_json::json;
use sessile::session::SessionName;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Give a session another name
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session rename 01890a5d release"))]
pub struct Args {
    /// Its name, its id, or the beginning of its id
    #[arg(value_name = "SESSION")]
    which: String,

    /// Its new name
    #[arg(value_name = "NEW")]
    new: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let new: SessionName = args.new.parse()?;
    let session = cx.state.sessions()?.get_live(&args.which)?;
    cx.state.rename_session(&session, &new)?;
    cx.changed(json!({ "id": session.id, "old": session.name, "new": new }), || {
        format!("session {} is named {} now\n", quoted(session.label()), quoted(new.as_str()))
    })
}
