//! `sessile context current`.

use serde_json::json;
use sessile::context::ContextContent;
use sessile::error::ContextError;
use sessile::text::shown;

use super::show::plain;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Print the current context
///
/// The exit status is 5 if no context is selected or the selected one does not exist. With --check it is 7 unless the
/// context's guard is satisfied. With --verbose it also names the guard, the bindings and the settings.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context current"
    "sessile context current --output json"
    "sessile context current --check --context production"
))]
pub struct Args {
    /// Fail unless the context exists, is trusted and its guard is satisfied
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.check {
        cx.state.usable_context()?;
    }
    let selected = cx.state.selected()?.ok_or(ContextError::NotSelected)?;
    // A script that asks for the context must not go on with one that was deleted.
    let Some(context) = cx.state.context()? else {
        return Err(cx.state.contexts().missing(selected).into());
    };
    cx.out.result(&json!({ "context": selected.name, "context_origin": selected.origin }), || {
        format!("{}\n", selected.name)
    })?;
    if cx.out.is_verbose() {
        let content = context.content(cx.state.app())?;
        details(&content).iter().for_each(|line| cx.out.detail(line));
    }
    Ok(())
}

/// Guard, bindings and settings of the context, a line each.
fn details(content: &ContextContent) -> Vec<String> {
    let mut lines = vec![format!("guard: {}", content.guard.as_str())];
    for (label, pairs) in [("binding", &content.tools), ("setting", &content.settings)] {
        lines.extend(pairs.iter().map(|(key, value)| format!("{label}: {} = {}", shown(key), plain(value))));
    }
    lines
}
