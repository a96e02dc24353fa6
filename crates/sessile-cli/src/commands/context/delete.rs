//! `sessile context delete`.

use serde_json::json;
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::terminal_prompt;

/// Delete a context
///
/// Lists where the context is selected, prompts, then deletes the context and those selections.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile context delete old-test" "sessile context delete old-test --yes"))]
pub struct Args {
    /// Name of the context; prompts on a terminal by default
    #[arg(value_name = "CONTEXT")]
    name: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name = picker::required_context(cx, args.name.as_deref(), "Context to delete:", "context delete")?;
    let contexts = cx.state.contexts();
    // Before the question, and again by `delete`: a guard may have been added meanwhile.
    contexts.check_deletable(&contexts.get(&name)?)?;
    let pointing = contexts.pointing_to(&name)?;
    let mut what = format!("delete context {}", quoted(name.as_str()));
    if !pointing.is_empty() {
        let places: Vec<String> = pointing.iter().map(ToString::to_string).collect();
        what.push_str(&format!(", selected by {}", places.join(" and ")));
    }
    terminal_prompt::confirm(&cx.state, &what)?;
    let removed = contexts.delete(&name)?;
    cx.changed(
        json!({ "name": name, "path": removed.path.to_string_lossy(), "was_selected_by": removed.pointed_to_by }),
        || {
            let mut text =
                format!("deleted context {} ({})\n", quoted(name.as_str()), shown(removed.path.display()));
            for origin in &removed.pointed_to_by {
                text.push_str(&format!("removed its selection by {origin}\n"));
            }
            text
        },
    )
}
