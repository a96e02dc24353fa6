//! `sessile lock run`.

use std::ffi::OsString;

use sessile::lock::LockName;

use super::{holder, locks};
use crate::child::{self, Child};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Where the command finds the fencing token.
pub(crate) const TOKEN_VARIABLE: &str = "SESSILE_LOCK_TOKEN";

/// Run a command while holding a lock
///
/// The lock is held by the kernel as long as the command lives, also if this program is killed, and is free at once
/// when it ends. The exit status is the command's own; 125 if the lock could not be had, 126 and 127 if the command
/// could not be started, 128 and the signal's number if it was ended by one. The command finds the fencing token in
/// SESSILE_LOCK_TOKEN and, if this call works in a session, that session in SESSILE_SESSION.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile lock run deploy -- ./deploy.sh"
    "sessile lock run deploy --lock-timeout 10m -- make release"
))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    hold_and_run(args, cx).map_err(Failure::into_own)
}

fn hold_and_run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    let session = cx.state.session()?.map(|_| cx.state.require_session("running in it")).transpose()?;
    let mut locks = locks(&cx.state)?;
    let mut child = Child::new(&args.command);
    // What waits in a session works in it, and is ended with it. Descriptors stay open in the child: the kernel lets
    // go of session and lock when the last of them is closed.
    let _entered = match &session {
        Some(session) => {
            let entered = session.room().enter(cx.state.world(), &child::own_record(&args.command))?;
            child = child.env(&cx.state.app().variable("SESSION"), session.id.to_string());
            child = entered.descriptor().into_iter().fold(child, Child::inherit);
            Some(entered)
        }
        None => None,
    };
    let held = locks.hold(&name, &holder(&cx.state, "lock run")?)?;
    cx.out.detail(&format!("lock {name}: token {}", held.token));
    let ended = child.env(TOKEN_VARIABLE, held.token.to_string()).inherit(held.descriptor()).run(None);
    // What the command left running in the background keeps the lock.
    locks.leave(held)?;
    ended
}
