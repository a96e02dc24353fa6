//! `sessile context show`.

use serde_json::{Value, json};
use sessile::error::ContextError;
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Show what a context holds
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context show staging"
    "sessile context show --output json"
))]
pub struct Args {
    /// The context; the current one if none is given
    #[arg(value_name = "CONTEXT")]
    name: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name = match &args.name {
        Some(name) => name.parse()?,
        None => cx.state.selected()?.ok_or(ContextError::NotSelected)?.name.clone(),
    };
    let context = cx.state.contexts().get(&name)?;
    let selected = cx.state.selected()?.filter(|selected| selected.name == name);
    let mut json = json!({ "name": name });
    let definition = context.to_json(cx.state.app())?;
    for (key, value) in definition.as_object().into_iter().flatten() {
        json[key] = value.clone();
    }
    json["home"] = json!(context.home);
    json["path"] = json!(context.path().to_string_lossy());
    json["trusted"] = json!(context.trusted);
    json["current"] = json!(selected.is_some());
    json["origin"] = json!(selected.map(|selected| &selected.origin));
    cx.out.result(&json, || {
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
        for (table, pairs) in definition.as_object().into_iter().flatten() {
            for (key, value) in pairs.as_object().into_iter().flatten() {
                line(table, &format!("{} = {}", shown(key), plain(value)));
            }
        }
        text
    })
}

fn plain(value: &Value) -> String {
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
