//! `sessile session export`.

use std::path::PathBuf;

use serde_json::json;
use sessile::files::LockedDir;
use sessile::text::{json_safe, quoted, shown};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::local::LocalBackend;
use crate::picker;
use crate::terminal_prompt;

/// Export a session: settings, state, messages and conversations
///
/// Writes JSON for `session import`, on this machine or another. The file contains no credentials. Possible secrets
/// in settings and state are left out, with a warning. Messages and conversations are exported unchanged.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session export deploy > deploy.json"
    "sessile session export deploy --file deploy.json"
))]
pub struct Args {
    /// Name, id or prefix of the id; default: the current session
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let which = picker::session_unless_current(cx, args.which.as_deref(), "Session to export:")?;
    let session = LocalBackend { cx }.session(which.as_deref(), "exporting")?;
    let exported = cx.state.look_up_session(session.id.as_str())?.0.export(&session)?;
    for key in &exported.left_out {
        cx.state.warn(format!("left out {}: it may contain a secret", quoted(key)), None);
    }
    let exported = json!(exported);
    // Escapes say the same in JSON, and a file may be printed on a terminal too.
    let text = json_safe(&format!("{exported:#}\n"));
    let Some(file) = &args.file else {
        // It is JSON whatever the format of other results.
        return cx.out.result(&exported, || text);
    };
    let path = cx.state.absolute(file);
    if path.exists() {
        terminal_prompt::confirm(&cx.state, &format!("replace {}", shown(path.display())))?;
    }
    let (dir, name) = LockedDir::of_file(&cx.state.locker()?, &path, 0o755)?;
    // Messages are exported as they are, and may hold secrets.
    dir.replace(&name, &text, 0o600)?;
    cx.changed(json!({ "id": session.id, "path": path.to_string_lossy() }), || {
        format!("exported session {} to {}\n", quoted(session.label()), shown(path.display()))
    })
}
