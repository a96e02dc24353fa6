//! `sessile session stop`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;
use sessile::confirm::can_ask;
use sessile::settings::Layer;
use sessile::text::quoted;

use super::meant;
use crate::ask;
use crate::cli::Cx;
use crate::error::{CommandError, Outcome};
use crate::help::examples;
use crate::remote::{Remote, ServerArgs};

/// Stop a session and what runs in it
///
/// What runs in it is asked to end and, after five seconds, made to. The command succeeds only if the session is
/// stopped. On a terminal it asks first when something runs. A session is stopped by its id or name, or from inside
/// by its own SESSILE_SESSION, and by nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session stop deploy" "sessile session stop 01890a5d"))]
pub struct Args {
    /// Its name, its id, or the beginning of its id
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(remote) = Remote::of(cx)? {
        let session = remote.meant(args.which.as_deref(), "stopping")?;
        let was_over = session.ended_ms.is_some();
        remote.end(&session)?;
        let json =
            json!({ "id": session.id, "name": session.name, "ended_processes": [], "was_over": was_over });
        return remote.changed(cx, &session, json, || stopped(session.label(), was_over, 0));
    }
    if args.which.is_none()
        && let Some(current) = cx.state.session()?.filter(|current| current.origin.layer == Layer::Terminal)
    {
        return Err(CommandError::SessionUnnamed(current.session.label().to_owned()).into());
    }
    let session = meant(cx, args.which.as_deref(), "stopping")?;
    let running = session.room().running();
    if !running.is_empty() && can_ask(&cx.state) {
        let names: Vec<String> =
            running.iter().map(|one| format!("{} (pid {})", one.program, one.process.pid)).collect();
        ask::confirm(
            &cx.state,
            &format!("stop session {} and {}", quoted(session.label()), names.join(", ")),
        )?;
    }
    // Called from inside, it is among what is told to end; it has to outlive that to finish.
    let _told = signal_hook::flag::register::<Arc<AtomicBool>>(signal_hook::consts::SIGTERM, Arc::default());
    let was_over = session.ended.is_some();
    let ended = cx.state.stop_session("session stop", &session)?;
    cx.changed(
        json!({ "id": session.id, "name": session.name, "ended_processes": ended, "was_over": was_over }),
        || stopped(session.label(), was_over, ended.len()),
    )
}

fn stopped(label: &str, was_over: bool, ended: usize) -> String {
    let label = quoted(label);
    match (was_over, ended) {
        (true, _) => format!("session {label} had ended already\n"),
        (false, 0) => format!("stopped session {label}\n"),
        (false, count) => format!("stopped session {label} and {count} process(es) in it\n"),
    }
}
