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

/// Remove a named agent
///
/// Keeps the agent's credential and the conversations with it.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile agent remove research --global"))]
pub struct Args {
    /// Name of the agent
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
    // What stays would be given to the next agent of this name.
    for member in ["credential", "allow-http", "headers", "client-cert-file", "client-key-file"] {
        change(&cx.state, "agent remove", &target, &key(member), None)?;
    }
    let json = json!({ "name": args.name, "layer": target.layer(), "path": changed.path.to_string_lossy() });
    cx.changed(json, || shown(format!("removed agent {} from {}", args.name, target.place())) + "\n")
}
