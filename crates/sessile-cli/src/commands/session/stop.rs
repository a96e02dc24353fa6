//! `sessile session stop`.

use sessile::text::quoted;

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::remote::ServerArgs;
use crate::view::SessionStopView;

/// Stop a session and its commands
///
/// Commands get SIGTERM, and SIGKILL after five seconds. The session's locks are released. Fails if a process does not
/// stop. On a terminal, prompts first if commands are running. Pass the name or the id; inside a session,
/// SESSILE_SESSION selects it. Without a name, prompts on a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session stop deploy" "sessile session stop 01890a5d"))]
pub struct Args {
    /// Name, id or prefix of the id
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    // A call that names a session, or runs in one, means that session.
    let is_named = args.which.is_some() || cx.state.args().session.is_some();
    let picked = if is_named { None } else { picker::session(cx, "Session to stop:")? };
    let which = picked.as_deref().or(args.which.as_deref());
    let stopped = StateBackend::resolve(cx)?.stop_session(which)?;
    stopped.print(cx, text)
}

fn text(stopped: &SessionStopView) -> String {
    let label = quoted(stopped.name.as_ref().unwrap_or(&stopped.id));
    let mut text = match (stopped.was_over, stopped.ended_processes.len()) {
        (true, _) => format!("session {label} has already ended\n"),
        (false, 0) => format!("stopped session {label}\n"),
        (false, count) => format!("stopped session {label} and {count} process(es) in it\n"),
    };
    for lock in &stopped.released_locks {
        text.push_str(&format!("released lock {}\n", quoted(lock)));
    }
    text
}
