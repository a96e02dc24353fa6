//! `sessile context list`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use sessile::Error;
use sessile::context::{Context, ContextLocation, Guard};
use sessile::names::ContextName;
use sessile::settings::Origin;

use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::output::{Table, Tone};

/// List the contexts and mark the current one
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context list"
    "sessile context list --output json"
))]
pub struct Args {
    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let selected = cx.state.selected()?;
    let contexts = args.page.of(cx.state.contexts().list()?, |(name, _)| name.to_string());
    let mut items = Vec::new();
    let mut table = Table::new(&["", "NAME", "GUARD", "BINDINGS", "FROM", "DESCRIPTION"]);
    for (name, context) in &contexts {
        let origin = selected.filter(|selected| selected.name == *name).map(|selected| &selected.origin);
        let definition = match context {
            Ok(context) => DefinitionView::Valid {
                description: context.shown_description(),
                guard: context.guard,
                home: context.home,
                trusted: context.trusted,
                path: context.path().to_string_lossy(),
                error: None,
            },
            Err(error) => DefinitionView::Invalid { error: error.to_string() },
        };
        items.push(ContextView { name, definition, current: origin.is_some(), origin });
        let mark = if origin.is_some() { "*" } else { "" };
        let [guard, bindings, home, description] = cells(context);
        let description =
            origin.map_or(description.clone(), |origin| format!("{description} (current: {origin})"));
        let cells = [mark, name.as_str(), &guard, &bindings, &home, description.trim_start()];
        let is_guarded = context.as_ref().is_ok_and(|context| context.guard != Guard::None);
        let tone = if is_guarded { Some(Tone::Warning) } else { origin.map(|_| Tone::Strong) };
        table.row(&cells, tone);
    }
    if let Some(missing) =
        selected.filter(|selected| !contexts.iter().any(|(name, _)| *name == selected.name))
        // It may exist on another page of the list.
        && cx.state.context()?.is_none()
    {
        cx.state.warn(format!("selected context {} ({}) does not exist", missing.name, missing.origin), None);
    }
    cx.out.list(&items, || {
        if items.is_empty() {
            "no contexts found; create one: sessile context create NAME\n".to_owned()
        } else {
            // The cause of an error is at its end.
            let has_error = contexts.iter().any(|(_, context)| context.is_err());
            table.render_fitted(&cx.out, args.wide.wide || has_error)
        }
    })
}

/// Context in the list.
#[derive(Debug, Serialize)]
struct ContextView<'a> {
    name: &'a ContextName,
    #[serde(flatten)]
    definition: DefinitionView<'a>,
    current: bool,
    origin: Option<&'a Origin>,
}

/// Definition of a context, or the error in its file.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum DefinitionView<'a> {
    Valid {
        description: Option<String>,
        guard: Guard,
        home: ContextLocation,
        trusted: bool,
        path: Cow<'a, str>,
        error: Option<String>,
    },
    Invalid {
        error: String,
    },
}

/// Guard, bindings, location and description of a context. A guard is named `guarded`, no guard and the user's own location
/// are left out.
fn cells(context: &Result<Context, Error>) -> [String; 4] {
    match context {
        Ok(context) => {
            let guard = match context.guard {
                Guard::None => String::new(),
                guard => format!("guarded: {}", guard.as_str()),
            };
            let bindings: Vec<String> =
                context.tools.iter().flat_map(|(tool, bound)| words(tool, bound)).collect();
            let home = if context.home == ContextLocation::User { "" } else { context.home.as_str() };
            let home = if context.trusted { home.to_owned() } else { format!("{home}, not trusted") };
            let description = context.shown_description().unwrap_or_default();
            [guard, bindings.join(" "), home, description]
        }
        Err(error) => ["?".to_owned(), String::new(), String::new(), format!("error: {error}")],
    }
}

/// Bindings of a tool: `kubectl.context=staging`.
fn words(tool: &str, bound: &[(String, Value)]) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    bound.iter().map(|(key, value)| format!("{tool}.{key}={}", text(value))).collect()
}
