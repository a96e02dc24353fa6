//! `sessile session clear`.

use serde_json::json;
use sessile::session::Session;
use sessile::session::lifecycle::Lifecycle;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::refuse_there;
use crate::terminal_prompt;

/// Delete ended sessions
///
/// With --all, stops live sessions first, after a prompt.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session clear" "sessile session clear old-one" "sessile session clear --all"))]
pub struct Args {
    /// Delete only these sessions
    #[arg(value_name = "SESSION", conflicts_with = "all")]
    sessions: Vec<String>,

    /// Delete all sessions, also live ones
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    refuse_there(cx, "session clear")?;
    let mut sessions = cx.state.sessions()?;
    // Sessions that have expired count as ended only once they were collected.
    sessions.gc(usize::MAX)?;
    let chosen: Vec<Session> = if args.sessions.is_empty() {
        sessions.list(None, false, usize::MAX)?
    } else {
        args.sessions.iter().map(|text| sessions.get(text)).collect::<Result<_, _>>()?
    };
    let (ended, live): (Vec<Session>, Vec<Session>) =
        chosen.into_iter().partition(|session| session.life(cx.state.world()) == Lifecycle::Ended);
    if !args.all {
        if let Some(one) = live.first().filter(|_| !args.sessions.is_empty()) {
            let label = one.label();
            let what = format!("session {} is live; stop it first: session stop {label}", quoted(label));
            return Err(sessile::error::UsageError::Arguments(what).into());
        }
        return forget(cx, &ended, &[]);
    }
    if !live.is_empty() {
        let names: Vec<&str> = live.iter().map(Session::label).collect();
        terminal_prompt::confirm(
            &cx.state,
            &format!("stop and delete {}: {}", counted(live.len(), "live session"), names.join(", ")),
        )?;
    }
    // Stopped all before the first is forgotten: a failure leaves sessions that can still be found.
    for session in &live {
        cx.state.stop_session("session clear --all", session)?;
    }
    forget(cx, &ended, &live)
}

fn forget(cx: &Cx, ended: &[Session], stopped: &[Session]) -> Outcome {
    for session in ended.iter().chain(stopped) {
        cx.state.forget_session(session)?;
    }
    let ids = |sessions: &[Session]| sessions.iter().map(|session| session.id.clone()).collect::<Vec<_>>();
    let count = ended.len() + stopped.len();
    let json = json!({ "forgotten": ids(ended).into_iter().chain(ids(stopped)).collect::<Vec<_>>(), "stopped": ids(stopped) });
    cx.changed(json, || format!("deleted {}\n", counted(count, "session")))
}
