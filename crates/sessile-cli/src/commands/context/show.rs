//! `sessile context show`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use sessile::context::{ContextContent, ContextLocation};
use sessile::error::ContextError;
use sessile::names::ContextName;
use sessile::settings::Origin;
use sessile::text::{quoted, shown};
use sessile::tool::{ContextProtection, GuardedTarget};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::picker;

/// Show a context
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context show staging"
    "sessile context show --output json"
))]
pub struct Args {
    /// Name of the context; default: the current one
    #[arg(value_name = "CONTEXT")]
    name: Option<String>,
}

/// Context with the content of its file.
#[derive(Debug, Serialize)]
struct ContextDetailView<'a> {
    name: &'a ContextName,
    #[serde(flatten)]
    content: ContextContent,
    home: ContextLocation,
    path: Cow<'a, str>,
    trusted: bool,
    current: bool,
    origin: Option<&'a Origin>,
    #[serde(flatten)]
    protection: ContextProtection,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name = match &args.name {
        Some(name) => name.parse::<ContextName>()?,
        None => match cx.state.selected()? {
            Some(selected) => selected.name.clone(),
            None => picker::context(cx, "Context to show:")?.ok_or(ContextError::NotSelected)?,
        },
    };
    let context = cx.state.contexts().get(&name)?;
    let selected = cx.state.selected()?.filter(|selected| selected.name == name);
    let view = ContextDetailView {
        name: &name,
        content: context.content(cx.state.app())?,
        home: context.home,
        path: context.path().to_string_lossy(),
        trusted: context.trusted,
        current: selected.is_some(),
        origin: selected.map(|selected| &selected.origin),
        protection: ContextProtection::of(&cx.state, &context)?,
    };
    cx.out.result(&view, || {
        let mut text = format!("{name}\n");
        let mut line = |label: &str, value: &str| text.push_str(&format!("  {label:<12} {}\n", shown(value)));
        line("description", context.shown_description().as_deref().unwrap_or("-"));
        line("guard", context.guard.as_str());
        line("file", &shown(context.path().display()));
        if !context.trusted {
            line("trusted", "no");
        }
        if let Some(selected) = selected {
            line("current", &selected.origin.to_string());
        }
        let ContextContent { settings, values, env, tools, agents, .. } = &view.content;
        let tables =
            [("settings", settings), ("values", values), ("env", env), ("tools", tools), ("agents", agents)];
        for (table, pairs) in tables {
            for (key, value) in pairs {
                line(table, &format!("{} = {}", shown(key), plain(value)));
            }
        }
        let named =
            |target: &GuardedTarget| format!("{} {} {}", target.tool, target.key, quoted(&target.name));
        for target in &view.protection.protected {
            line("protected", &named(target));
        }
        for target in &view.protection.shared {
            let with = target.shared_with.join(", ");
            line("shared", &format!("{}, also bound by unguarded {with}", named(target)));
        }
        for what in &view.protection.not_protected {
            line("unprotected", what);
        }
        text
    })
}

/// Value of a context's file for people.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{} = {}", shown(key), plain(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => shown(other),
    }
}
