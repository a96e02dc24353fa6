//! `sessile session gc`.

use serde_json::json;

use super::gc_timer::{self, TimerUnits};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// End every session that has expired
///
/// Any command that changes something does this for a few of them; this one does it for all. Sessions in which something runs
/// stay. Rooms and tickets that killed processes left behind go too.
///
/// With --install-timer a timer of systemd's user manager does this every 15 minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session gc"
    "sessile session gc --install-timer --dry-run"
    "sessile session gc --install-timer"
))]
pub struct Args {
    /// Install and start a systemd user timer that runs this command
    #[arg(long, conflicts_with = "remove_timer")]
    install_timer: bool,

    /// Stop and remove the systemd user timer
    #[arg(long)]
    remove_timer: bool,

    /// Print the units of --install-timer, and write nothing
    #[arg(long, requires = "install_timer")]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.install_timer {
        let units = TimerUnits::new(cx)?;
        return if args.dry_run { gc_timer::print(cx, &units) } else { gc_timer::install(cx, &units) };
    }
    if args.remove_timer {
        return gc_timer::remove(cx);
    }
    let mut sessions = cx.state.sessions()?;
    // Lapsed approvals are withdrawn by the next call that writes, and this is one.
    cx.state.withdraw_unapproved(None)?;
    let ended = sessions.gc(usize::MAX)?;
    let swept = sessions.sweep()?;
    cx.changed(json!({ "ended": ended, "swept": swept }), || {
        format!(
            "{} session(s) had expired, {swept} leftover(s) of killed processes were removed\n",
            ended.len()
        )
    })
}
