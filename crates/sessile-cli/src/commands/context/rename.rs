//! `sessile context rename`.

use serde_json::json;
use sessile::names::ContextName;
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;

/// Rename a context
///
/// Selections by terminals, directories and this user follow the new name. Revokes approvals of the old name.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile context rename staging test"))]
pub struct Args {
    /// Name of the context; prompts on a terminal by default
    #[arg(value_name = "CONTEXT")]
    name: Option<String>,

    /// New name; prompts on a terminal by default
    #[arg(value_name = "NEW")]
    new: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let old = picker::required_context(cx, args.name.as_deref(), "Context to rename:", "context rename")?;
    let new: ContextName = picker::required_name(cx, args.new.as_deref(), "context rename")?.parse()?;
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
