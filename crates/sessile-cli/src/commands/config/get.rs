//! `sessile config get`.

use serde_json::json;
use sessile::Error;
use sessile::error::SettingsError;
use sessile::settings::SettingKey;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Print the value of a setting
///
/// A value that looks like a secret is masked, as in `config show`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile config get lock-timeout"
    "sessile config get context --source"
))]
pub struct Args {
    /// Key of the setting
    #[arg(value_name = "KEY")]
    key: String,

    /// Also print the origin of the value
    #[arg(long, visible_alias = "show-origin")]
    source: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let key: SettingKey = args.key.parse()?;
    // A terminal's selection is in no settings file, but wins over those.
    let selected = super::show::is_context(&key).then(|| cx.state.selected()).transpose()?.flatten();
    let (value, origin) = match selected {
        Some(selected) => (json!(selected.name), selected.origin.clone()),
        None => {
            let not_set = || Error::Settings(SettingsError::NotSet { key: key.to_string(), path: None });
            let found = cx.state.settings()?.resolve(&key)?.ok_or_else(not_set)?;
            (json!(found.value.masked_for(&key)), found.origin)
        }
    };
    let text = value.as_str().map_or_else(|| super::show::plain(&value), str::to_owned);
    cx.out.result(&json!({ "key": key, "value": value, "origin": origin }), || {
        if args.source { format!("{}\t{origin}\n", shown(text)) } else { format!("{}\n", shown(text)) }
    })
}
