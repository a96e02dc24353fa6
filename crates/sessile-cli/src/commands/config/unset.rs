//! `sessile config unset`.

use serde_json::json;
use sessile::config::write::{change, target};
use sessile::error::SettingsError;
use sessile::settings::SettingKey;
use sessile::text::shown;

use super::ScopeArgs;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Remove a setting
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile config unset lock-timeout --global"
    "sessile config unset context --dir"
))]
pub struct Args {
    /// Key of the setting
    #[arg(value_name = "KEY")]
    key: String,

    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let key: SettingKey = args.key.parse()?;
    let target = target(&cx.state, args.scope.scope())?;
    let layer = target.layer();
    let changed = change(&cx.state, "config unset", &target, &key, None)?;
    let Some(old) = &changed.old else {
        return Err(SettingsError::NotSet { key: key.to_string(), path: Some(changed.path) }.into());
    };
    cx.changed(
        json!({ "key": changed.key, "old": changed.old, "new": null, "layer": layer, "path": changed.path.to_string_lossy() }),
        || shown(format!("removed {key} from {} (was {old})", target.place())) + "\n",
    )
}
