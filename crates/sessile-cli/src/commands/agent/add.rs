//! `sessile agent add`.

use serde_json::json;
use sessile::config::write::{change, target};
use sessile::names::CredentialName;
use sessile::settings::{SettingKey, Value};
use sessile::site::agent_url;
use sessile::text::shown;

use crate::cli::Cx;
use crate::commands::config::ScopeArgs;
use crate::error::Outcome;
use crate::help::examples;

/// Give an agent a name
///
/// It is a setting, agents.NAME.url: for the user with --global, for everybody in a project with --project.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile agent add research https://agent.example --global"
    "sessile agent add local http://localhost:8000 --dir --with-credential local-bot"
))]
pub struct Args {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    /// Its URL
    #[arg(value_name = "URL")]
    url: String,

    /// The credential of the vault that it gets
    #[arg(long, value_name = "CREDENTIAL")]
    with_credential: Option<String>,

    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    sessile::names::agent_name(&args.name)?;
    let url = agent_url(&args.url)?;
    // Parsed before the first change, so that a wrong name changes nothing.
    let credential: Option<CredentialName> = args.with_credential.as_deref().map(str::parse).transpose()?;
    let target = target(&cx.state, args.scope.scope())?;
    let key = |member: &str| SettingKey::new(["agents", &args.name, member]);
    let mut changed = change(&cx.state, "agent add", &target, &key("url"), Some(&Value::Text(url.clone())))?;
    if let Some(credential) = &credential {
        let value = Value::Text(credential.to_string());
        changed.path = change(&cx.state, "agent add", &target, &key("credential"), Some(&value))?.path;
    }
    let json = json!({
        "name": args.name,
        "url": url,
        "credential": credential,
        "layer": target.layer(),
        "path": changed.path.to_string_lossy(),
    });
    cx.changed(json, || shown(format!("agent {} is {url}, in {}", args.name, target.place())) + "\n")
}
