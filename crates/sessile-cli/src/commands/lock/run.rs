//! `sessile lock run`.

use std::ffi::OsString;

use sessile::lock::{LockMode, LockName};
use sessile::run::foreign_credentials;
use sessile::session::MaxAction;
use sessile::session::room::RunningProcess;

use super::{keep_there, run_kept};
use crate::backend::StateBackend;
use crate::child::Child;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::local::holder;
use crate::remote::ServerArgs;
use crate::watcher::LifeLimit;

/// Variable of the fencing token.
pub(crate) const TOKEN_VARIABLE: &str = "SESSILE_LOCK_TOKEN";

/// Run a command while holding a lock
///
/// The kernel holds the lock for as long as the command lives, even if this program is killed, and releases it when the
/// command ends. The exit status is the command's. It is 125 if the lock was not acquired, 126 or 127 if the command
/// did not start, and 128 plus the signal's number if a signal ended it. SESSILE_LOCK_TOKEN contains the fencing token,
/// and SESSILE_SESSION the session, if any. Variables SESSILE_CREDENTIAL_* reach the command only for credentials of
/// the context and of --credential.
///
/// With a server, the lock excludes other machines too. Sessile renews it while the command runs, and releases it
/// afterwards. If this program is killed, the lock stays held until its lease expires (setting lock-ttl). A command
/// whose lock is lost gets SIGTERM.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile lock run deploy -- ./deploy.sh"
    "sessile lock run deploy --lock-timeout 10m -- make release"
    "sessile lock run --shared schema -- ./read-report.sh"
    "sessile lock run deploy --server https://sessile.example -- ./deploy.sh"
))]
pub struct Args {
    /// Name of the lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// Acquire the lock in shared mode
    #[arg(long)]
    shared: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    hold_and_run(args, cx).map_err(Failure::into_own)
}

fn hold_and_run(args: &Args, cx: &Cx) -> Outcome {
    let (name, mode): (LockName, _) = (args.name.parse()?, LockMode::of(args.shared));
    let session = cx.state.session()?.map(|_| cx.state.require_session("running in it")).transpose()?;
    let contexts = cx.state.contexts();
    // The guard is checked now, to fail before the wait, and again after it.
    let is_in_context = cx.state.usable_context()?.is_some();
    let recheck = || if is_in_context { contexts.recheck(true) } else { Ok(()) };
    let selected = cx.state.selected().ok().flatten();
    // A context that cannot be read gives no credential, so all of them count as foreign.
    let context = selected.and_then(|selected| contexts.find(&selected.name).ok().flatten());
    let foreign = foreign_credentials(&cx.state, context.as_ref(), std::iter::empty());
    // Secrets of credentials that the context does not give must not reach the command.
    let mut child =
        foreign.iter().fold(Child::new(&args.command, cx.state.world()), |child, name| child.without(name));
    // What waits in a session works in it, and is ended with it. Descriptors stay open in the child: the kernel lets
    // go of session and lock when the last of them is closed.
    let _entered = match &session {
        Some(session) => {
            let entered = session.room().enter(cx.state.world(), &RunningProcess::own(&args.command))?;
            child = child.env(&cx.state.app().variable("SESSION"), session.id.to_string());
            child = entered.descriptor().into_iter().fold(child, Child::inherit);
            Some(entered)
        }
        None => None,
    };
    let limit = match &session {
        Some(session) => Some(LifeLimit::new(session, cx.state.world(), MaxAction::of(&cx.state)?)),
        None => None,
    };
    let timeout = limit.as_ref().and_then(|limit| limit.timeout(None));
    let explain = |ended| match &limit {
        Some(limit) => limit.explain(ended, None),
        None => ended,
    };
    if let StateBackend::Remote(remote) = StateBackend::resolve(cx)? {
        let kept = keep_there(cx, &cx.state, remote.server, (&name, mode), "lock run")?;
        cx.out.detail(&format!("lock {name}: token {}", kept.token));
        return explain(run_kept(cx, child, timeout, kept, recheck));
    }
    let mut locks = cx.state.locks()?;
    let held = locks.hold(&name, mode, &holder(&cx.state, "lock run")?)?;
    cx.out.detail(&format!("lock {name}: token {}", held.token));
    let ended = recheck().map_err(Failure::from).and_then(|()| {
        child.env(TOKEN_VARIABLE, held.token.to_string()).inherit(held.descriptor()).run(timeout)
    });
    // What the command left running in the background keeps the lock.
    locks.leave(held)?;
    explain(ended)
}
