//! `sessile session rename`.

use serde_json::json;
use sessile::session::SessionName;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{Remote, ServerArgs};

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

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let new: SessionName = args.new.parse()?;
    let text = |label: &str| format!("session {} is named {} now\n", quoted(label), quoted(new.as_str()));
    if let Some(remote) = Remote::of(cx)? {
        let session = remote.meant(Some(&args.which), "renaming")?;
        remote.rename(&session, new.as_str())?;
        let json = json!({ "id": session.id, "old": session.name, "new": new });
        return remote.changed(cx, &session, json, || text(session.label()));
    }
    let session = cx.state.sessions()?.get_live(&args.which)?;
    cx.state.rename_session(&session, &new)?;
    let json = json!({ "id": session.id, "old": session.name, "new": new });
    cx.changed(json, || text(session.label()))
}
