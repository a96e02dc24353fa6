//! `sessile config set`.

use serde_json::json;
use sessile::config::write::{change, target};
use sessile::settings::SettingKey;
use sessile::text::shown;

use super::ScopeArgs;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Set a setting
///
/// Inside a session, sets the value for the session. Inside a project, sets it in the project's personal file.
/// Elsewhere choose a scope: --dir for this directory, --global for this user.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile config set lock-timeout 10s --global"
    "sessile config set expect-context staging --project"
    "sessile config set env.RUST_LOG debug --dir"
))]
pub struct Args {
    /// Key of the setting
    #[arg(value_name = "KEY")]
    key: String,

    /// New value
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,

    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let key: SettingKey = args.key.parse()?;
    let definition = cx.state.settings()?.definition(&key)?;
    let value = definition.parse(&args.value, key.to_string())?;
    let target = target(&cx.state, args.scope.scope())?;
    let layer = target.layer();
    let changed = change(&cx.state, "config set", &target, &key, Some(&value))?;
    cx.changed(
        json!({ "key": changed.key, "old": changed.old, "new": changed.new, "layer": layer, "path": changed.path.to_string_lossy() }),
        || {
            let was = changed.old.as_ref().map_or_else(|| "not set before".to_owned(), |old| format!("it was {old}"));
            // The value may look like a secret although the key accepts it.
            let value = value.masked_for(&key);
            shown(format!("set {key} to {value} in {} ({was})", target.place())) + "\n"
        },
    )
}
