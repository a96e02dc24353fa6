//! `sessile session attach`.

use serde_json::json;
use sessile::text::{quoted, shell_quoted};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::shell_hook::note_unaffected;

/// Make a live session this terminal's
///
/// Commands that name no session then work in it. In a shell that has loaded the hook, everything typed at the prompt does.
/// The session that the terminal had before goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session attach deploy" "sessile session attach 01890a5d"))]
pub struct Args {
    /// Its name, its id, or the beginning of its id
    #[arg(value_name = "SESSION")]
    which: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (session, selection) = cx.state.attach_session(&args.which)?;
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

/// Says that a session is this terminal's, which one the terminal had, and whether the shell follows.
pub(super) fn report_selection(cx: &Cx, left: Option<&str>, is_hooked: bool) {
    cx.out.note("it is this terminal's session now");
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
