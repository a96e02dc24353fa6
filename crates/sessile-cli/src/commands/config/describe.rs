//! `sessile config describe`.

use serde_json::json;
use sessile::error::UsageError;
use sessile::settings::SettingKey;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::settings::app;

/// Describe the settings: kind, default, meaning
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile config describe" "sessile config describe lock-timeout"))]
pub struct Args {
    /// Describe only these settings
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut settings: Vec<_> = app().settings().collect();
    if let Some(unknown) = args.keys.iter().find(|key| !settings.iter().any(|setting| setting.key == **key)) {
        // The parser of keys knows near matches.
        unknown.parse::<SettingKey>()?;
        return Err(UsageError::Arguments(format!("unknown setting {}", quoted(unknown))).into());
    }
    settings.retain(|setting| args.keys.is_empty() || args.keys.iter().any(|key| key == setting.key));
    settings.sort_by_key(|setting| setting.key);
    let settings = args.page.of(settings, |setting| setting.key.to_owned());
    let variable =
        |setting: &sessile::settings::Definition| setting.variable().map(|name| app().variable(&name));
    let items: Vec<_> = settings
        .iter()
        .map(|setting| {
            json!({
                "key": setting.key,
                "kind": setting.kind.as_str(),
                "expected": setting.kind.expected(),
                "default": setting.default,
                "variable": variable(setting),
                "needs_trust": setting.needs_trust,
                "about": setting.about,
            })
        })
        .collect();
    cx.out.list(&items, || {
        let mut table = Table::new(&["KEY", "KIND", "DEFAULT", "ABOUT"]);
        for setting in &settings {
            table.row(
                &[setting.key, setting.kind.as_str(), setting.default.unwrap_or("-"), setting.about],
                None,
            );
        }
        table.render_wrapped(&cx.out)
    })
}
