//! `sessile config list`.

use serde::Serialize;
use serde_json::Value as Json;
use sessile::settings::{Candidate, Definition, Origin, SettingKey, Value};

use super::show::candidates;
use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::output::Table;
use crate::settings::app;

/// List the settings with their effective values
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile config list"
    "sessile config list --show-origin"
    "sessile config list --output json"
))]
pub struct Args {
    /// Also print the origin of each value
    #[arg(long, visible_alias = "source")]
    show_origin: bool,

    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    wide: WideArgs,
}

/// Setting with its definition and its effective value.
#[derive(Debug, Serialize)]
struct SettingView {
    key: String,
    kind: Option<&'static str>,
    expected: Option<Json>,
    default: Option<&'static str>,
    variable: Option<String>,
    needs_trust: Option<bool>,
    about: Option<&'static str>,
    value: Option<Value>,
    origin: Option<Origin>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let app = app();
    let mut keys: Vec<String> = app.settings().map(|setting| setting.key.to_owned()).collect();
    // Tables such as `env` have keys of the user's own.
    keys.extend(cx.state.settings()?.keys(true).iter().map(ToString::to_string));
    keys.sort();
    keys.dedup();
    let views = args.page.of(keys, Clone::clone).into_iter().map(|key| {
        let definition = app.settings().find(|setting| setting.key == key);
        let counts = effective(cx, &key)?;
        Ok(SettingView {
            kind: definition.map(|one| one.kind.as_str()),
            expected: definition.map(|one| serde_json::json!(one.kind.expected())),
            default: definition.and_then(|one| one.default),
            variable: definition.and_then(Definition::variable).map(|name| app.variable(&name)),
            needs_trust: definition.map(|one| one.needs_trust),
            about: definition.map(|one| one.about),
            value: counts.as_ref().map(|counts| counts.value.clone()),
            origin: counts.map(|counts| counts.origin),
            key,
        })
    });
    let views: Vec<SettingView> = views.collect::<Result<_, Failure>>()?;
    cx.out.list(&views, || {
        let mut table =
            Table::new(if args.show_origin { &["KEY", "VALUE", "ORIGIN"] } else { &["KEY", "VALUE"] });
        for view in views.iter().filter(|view| view.value.is_some()) {
            let value = view.value.as_ref().map(ToString::to_string).unwrap_or_default();
            let origin = view.origin.as_ref().filter(|_| args.show_origin).map(ToString::to_string);
            let cells: Vec<String> = [view.key.clone(), value].into_iter().chain(origin).collect();
            table.row(&cells, None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}

/// Value that counts, if a key has one. A group of settings has none itself.
fn effective(cx: &Cx, key: &str) -> Result<Option<Candidate>, Failure> {
    let Ok(key) = key.parse::<SettingKey>() else { return Ok(None) };
    Ok(candidates(cx, &key)?.into_iter().find(|candidate| candidate.ignored.is_none()))
}
