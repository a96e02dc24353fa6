//! `sessile context current`.

use serde_json::json;
use sessile::error::ContextError;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;

/// Print the current context
///
/// The exit status is 5 if none is selected or the selected one does not exist. With --check it is 7 unless the context's guard is satisfied, so that
/// a script can ask before it acts.
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
    if cx.state.context()?.is_none() {
        return Err(cx.state.contexts().missing(selected).into());
    }
    cx.out.result(&json!({ "context": selected.name, "context_origin": selected.origin }), || {
        format!("{}\n", selected.name)
    })
}
