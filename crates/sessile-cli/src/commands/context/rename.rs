//! `sessile context rename`.

use serde_json::json;
use sessile::names::ContextName;
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Rename a context
///
/// Selections by terminals, directories and this user follow the new name. Revokes approvals of the old name.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile context rename staging test"))]
pub struct Args {
    /// Name of the context
    #[arg(value_name = "CONTEXT")]
    name: String,

    /// New name
    #[arg(value_name = "NEW")]
    new: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (old, new): (ContextName, ContextName) = (args.name.parse()?, args.new.parse()?);
    let context = cx.state.contexts().rename(&old, &new)?;
    cx.changed(json!({ "old": old, "new": new, "path": context.path().to_string_lossy() }), || {
        format!(
            "renamed context {} to {} ({})\n",
            quoted(old.as_str()),
            quoted(new.as_str()),
            shown(context.path().display())
        )
    })
}
