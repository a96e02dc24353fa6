//! `sessile agent remove`.

use serde_json::json;
use sessile::config::write::{change, target};
use sessile::error::ConversationError;
use sessile::settings::SettingKey;
use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::config::ScopeArgs;
use crate::error::Outcome;
use crate::help::examples;

/// Take an agent's name away
///
/// Conversations with it, and its credential, stay.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent remove research --global"))]
pub struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let target = target(&cx.state, args.scope.scope())?;
    let key = |member: &str| SettingKey::new(["agents", &args.name, member]);
    let changed = change(&cx.state, "agent remove", &target, &key("url"), None)?;
    if changed.old.is_none() {
        return Err(ConversationError::AgentNotFound { name: args.name.clone(), near: None }.into());
    }
    // A credential without a URL would be given to the next agent of this name.
    change(&cx.state, "agent remove", &target, &key("credential"), None)?;
    let json = json!({ "name": args.name, "layer": target.layer(), "path": changed.path.to_string_lossy() });
    cx.changed(json, || {
        shown(format!("agent {} has no name in {} any more", args.name, target.place())) + "\n"
    })
}
