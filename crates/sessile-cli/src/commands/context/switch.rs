//! `sessile context use`.

use std::time::Duration;

use serde_json::json;
use sessile::Report;
use sessile::confirm::can_ask;
use sessile::context::{ContextSwitch, SwitchScope, SwitchTarget, switch};
use sessile::error::UsageError;
use sessile::text::{quoted, shown};

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::picker;
use crate::shell_hook::note_unaffected;

/// Select a context for this terminal, directory or user
///
/// In an interactive call, selects the context for this terminal only. Scripts pass --context to each command, or use
/// --dir or --global. Refused inside a session, because the context of a session never changes. In a shell with the
/// hook (`sessile hook`), the selection applies from the next prompt on.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile context use staging            in this terminal"
    "sessile context use -                  back to the one before"
    "sessile context use staging --dir      in this directory, for you"
    "sessile context use staging --global   everywhere"
    "sessile context use --none             select none"
))]
pub struct Args {
    /// Name of the context, or - for the previous one
    #[arg(value_name = "CONTEXT", allow_hyphen_values = true)]
    name: Option<String>,

    /// Deselect the context
    #[arg(long, conflicts_with = "name")]
    none: bool,

    /// Select for this directory and below, in .sessile/local.toml
    #[arg(long, conflicts_with = "global")]
    dir: bool,

    /// Select for this user, unless a narrower scope selects another
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
                let error = UsageError::Arguments("context use requires a CONTEXT or --none".into());
                if can_ask(&cx.state) {
                    return Err(without_contexts(cx, &error));
                }
                return Err(error.into());
            }
        },
    };
    let switched = switch(&cx.state, &to, scope)?;
    let is_hooked = cx.state.hooked_prompt().is_some();
    let variable = cx.state.app().variable("CONTEXT");
    let overriding = cx.state.world().variable(&variable).map(|name| name.to_string_lossy());
    cx.changed(json!(switched), || text(&switched, is_hooked && overriding.is_none()))?;
    if let Some(name) = &overriding {
        let name = quoted(name);
        cx.out.note(&format!(
            "{variable} selects context {name} here, and overrides this selection; unset {variable}"
        ));
    }
    if let Some(left) = &switched.left_session {
        cx.out.note(&format!("session {} is still running", quoted(left)));
    }
    if !is_hooked && cx.state.call().selectable_terminal().is_some() {
        note_unaffected(cx);
    }
    Ok(())
}

/// The picker had nothing to offer: the way to a first context.
fn without_contexts(cx: &Cx, error: &UsageError) -> Failure {
    let name = cx.state.app().name();
    let hint = format!("no context exists; create contexts for your tools' targets: {name} import");
    let fix_command = Some(format!("{name} import"));
    Failure::Remote(Box::new(Report { hint: Some(hint), fix_command, ..Report::of(error, cx.state.app()) }))
}

fn text(switched: &ContextSwitch, is_hooked: bool) -> String {
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
    let from = if is_hooked { ", from the next prompt on" } else { "" };
    match &switched.new {
        Some(new) => {
            let new = quoted(new.as_str());
            format!("selected context {new} for {whose}, {place} (was {was}{set}){from}\n")
        }
        None => format!("deselected the context for {whose}, {place} (was {was}{set}){from}\n"),
    }
}
