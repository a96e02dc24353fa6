//! `sessile session attach`.

use serde_json::json;
use sessile::error::UsageError;
use sessile::text::{quoted, shell_quoted};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::shell_hook::note_unaffected;

/// Select a live session for this terminal
///
/// Commands without --session then use this session. In a shell with the hook, every command that you type runs in it.
/// The terminal's previous session stays alive. Without a name, a terminal prompts for the session.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session attach deploy" "sessile session attach 01890a5d"))]
pub struct Args {
    /// Name, id or prefix of the id
    #[arg(value_name = "SESSION")]
    which: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let picked = if args.which.is_some() { None } else { picker::session(cx, "Session to attach:")? };
    let which = args.which.clone().or(picked);
    let which = which.ok_or_else(|| UsageError::Arguments("session attach requires a SESSION".into()))?;
    let (session, selection) = cx.state.attach_session(&which)?;
    let change = json!({
        "id": session.id.to_string(),
        "name": session.name,
        "left_running": selection.left,
    });
    let place = cx.place(Some(&session));
    cx.changed_at(&place, &change, || format!("attached to session {}\n", quoted(session.label())))?;
    report_selection(cx, selection.left.as_deref(), selection.is_hooked);
    Ok(())
}

/// Reports the terminal's new session, the previous one, and whether the shell follows.
pub(super) fn report_selection(cx: &Cx, left: Option<&str>, is_hooked: bool) {
    cx.out.note("selected the session for this terminal");
    if let Some(left) = left {
        cx.out.note(&format!(
            "session {} is still running; stop it: sessile session stop {}",
            quoted(left),
            shell_quoted(left)
        ));
    }
    if !is_hooked {
        note_unaffected(cx);
    }
}
