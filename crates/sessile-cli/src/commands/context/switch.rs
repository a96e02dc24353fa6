//! `sessile context use`.

use std::time::Duration;

use serde_json::json;
use sessile::context::{ContextSwitch, SwitchScope, SwitchTarget, switch};
use sessile::error::UsageError;
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::picker;
use crate::shell_hook::note_unaffected;

/// Select a context: for this terminal, this directory, or this user
///
/// On a terminal it is selected for that terminal alone: standard input and output must be the terminal, and neither CI nor
/// --no-input may be set. A script names the context of each command with --context, or passes --dir or --global. Inside
/// a session it is refused: a session keeps its context. In a shell that has loaded the hook (`sessile hook`), commands typed
/// at the prompt use the context from the next prompt on.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context use staging            in this terminal"
    "sessile context use -                  back to the one before"
    "sessile context use staging --dir      in this directory, for you"
    "sessile context use staging --global   everywhere"
    "sessile context use --none             select none"
))]
pub struct Args {
    /// The context, or - for the one before
    #[arg(value_name = "CONTEXT", allow_hyphen_values = true)]
    name: Option<String>,

    /// Deselect the context
    #[arg(long, conflicts_with = "name")]
    none: bool,

    /// Select it in this directory and below, in .sessile/local.toml
    #[arg(long, conflicts_with = "global")]
    dir: bool,

    /// Select it for this user, wherever nothing narrower says another
    #[arg(long)]
    global: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let scope = match (args.dir, args.global) {
        (true, _) => Some(SwitchScope::Directory),
        (_, true) => Some(SwitchScope::Global),
        _ => None,
    };
    let to = match args.name.as_deref() {
        Some("-") => SwitchTarget::Previous,
        Some(name) => SwitchTarget::Named(name.parse()?),
        None if args.none => SwitchTarget::Nothing,
        None => match picker::context(cx, "Context to select:")? {
            Some(name) => SwitchTarget::Named(name),
            None => {
                return Err(UsageError::Arguments("context use requires a CONTEXT or --none".into()).into());
            }
        },
    };
    let switched = switch(&cx.state, &to, scope)?;
    cx.changed(json!(switched), || text(&switched))?;
    if let Some(left) = &switched.left_session {
        cx.out.note(&format!("session {} is still running", quoted(left)));
    }
    if cx.state.hooked_prompt().is_none() && cx.state.call().selectable_terminal().is_some() {
        note_unaffected(cx);
    }
    Ok(())
}

fn text(switched: &ContextSwitch) -> String {
    let whose = match switched.scope {
        SwitchScope::Terminal => "this terminal",
        SwitchScope::Directory => "this directory",
        SwitchScope::Global => "this user",
    };
    let was = switched.old.as_deref().map_or_else(|| "none".to_owned(), quoted);
    let set = switched.old_set.as_ref().map_or_else(String::new, |set| {
        let age = Duration::from_millis(set.age_ms.max(0).unsigned_abs());
        format!(", set {} ago by pid {}", sessile::duration::short(age), set.pid)
    });
    let place = shown(&switched.place);
    match &switched.new {
        Some(new) => {
            let new = quoted(new.as_str());
            format!("context {new} selected for {whose}, {place} (it was {was}{set})\n")
        }
        None => format!("context deselected for {whose}, {place} (it was {was}{set})\n"),
    }
}
