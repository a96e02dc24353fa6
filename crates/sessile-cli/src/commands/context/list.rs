//! `sessile context list`.

use std::borrow::Cow;

use serde::Serialize;
use sessile::Error;
use sessile::context::{Context, ContextLocation, Guard};
use sessile::names::ContextName;
use sessile::settings::Origin;

use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::output::{Table, Tone};

/// List the contexts; the current one is marked
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context list"
    "sessile context list --output json"
))]
pub struct Args {
    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let selected = cx.state.selected()?;
    let contexts = args.page.of(cx.state.contexts().list()?, |(name, _)| name.to_string());
    let mut items = Vec::new();
    let mut table = Table::new(&["", "NAME", "GUARD", "HOME", "DESCRIPTION"]);
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
        let (guard, home, description) = cells(context)?;
        let description =
            origin.map_or(description.clone(), |origin| format!("{description} (current: {origin})"));
        let cells = [mark, name.as_str(), &guard, &home, description.trim_start()];
        table.row(&cells, origin.map(|_| Tone::Strong));
    }
    if let Some(missing) =
        selected.filter(|selected| !contexts.iter().any(|(name, _)| *name == selected.name))
        // It may exist on another page of the list.
        && cx.state.context()?.is_none()
    {
        cx.state.warn(
            format!("context {} is selected ({}) and does not exist", missing.name, missing.origin),
            None,
        );
    }
    cx.out.list(&items, || {
        if items.is_empty() {
            "there are no contexts; make one with `sessile context create NAME`\n".to_owned()
        } else {
            table.render(&cx.out)
        }
    })
}

/// A context of the list.
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

fn cells(context: &Result<Context, Error>) -> Result<(String, String, String), Failure> {
    Ok(match context {
        Ok(context) => {
            let home = context.home.as_str();
            let home = if context.trusted { home.to_owned() } else { format!("{home}, not trusted") };
            (context.guard.as_str().to_owned(), home, context.shown_description().unwrap_or_default())
        }
        Err(error) => ("?".to_owned(), "?".to_owned(), format!("error: {error}")),
    })
}
