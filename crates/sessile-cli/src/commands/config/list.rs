//! `sessile config list`.

use serde_json::json;

use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::settings::app;

/// List the settings there are
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile config list" "sessile config list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut settings: Vec<_> = app().settings().collect();
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
        table.render(&cx.out)
    })
}
