//! `sessile agent use`.

use serde_json::json;
use sessile::agents::DEFAULT;
use sessile::config::write::{change, target};
use sessile::settings::{SettingKey, Value};
use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::config::ScopeArgs;
use crate::error::Outcome;
use crate::help::examples;

/// Set the default agent for messages
///
/// The command sets message.agent in the session, or outside a session in the scope that you pass.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile agent use research --session work"
    "sessile message send \"hello\" --session work"
    "sessile agent use --none --global"
))]
pub struct Args {
    /// Name or URL of the agent
    #[arg(value_name = "AGENT", required_unless_present = "none")]
    agent: Option<String>,

    /// Remove the default agent
    #[arg(long, conflicts_with = "agent")]
    none: bool,

    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    // A name stays a name: its URL may change later.
    let agent = args.agent.as_deref().map(|text| cx.state.agent(text)).transpose()?;
    let chosen = agent.map(|agent| agent.name.unwrap_or(agent.url));
    let target = target(&cx.state, args.scope.scope())?;
    let key: SettingKey = DEFAULT.parse()?;
    let value = chosen.clone().map(Value::Text);
    let changed = change(&cx.state, "agent use", &target, &key, value.as_ref())?;
    let json = json!({
        "agent": chosen,
        "old": changed.old,
        "layer": target.layer(),
        "path": changed.path.to_string_lossy(),
    });
    cx.changed(json, || match &chosen {
        Some(agent) => shown(format!("set the default agent to {agent} in {}", target.place())) + "\n",
        None => shown(format!("removed the default agent in {}", target.place())) + "\n",
    })
}
