//! `sessile session gc`.

use serde_json::json;

use super::gc_timer::{self, TimerUnits};
use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;

/// End all expired sessions
///
/// Other commands that change state end only a few expired sessions at a time. Keeps sessions with running commands.
/// Also deletes rooms and queue entries of killed processes, and conversations that were not used for the time in the
/// setting conversation.keep.
///
/// With --install-timer, a systemd user timer does this every 15 minutes.
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

    /// Print the units of --install-timer without writing them
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
    let step = cx.out.slow_step(|| "ending expired sessions");
    let mut sessions = cx.state.sessions()?;
    // Lapsed approvals are withdrawn by the next call that writes, and this is one.
    cx.state.withdraw_unapproved(None)?;
    let ended = sessions.gc(usize::MAX)?;
    let swept = sessions.sweep()?;
    let conversations = cx.state.expire_conversations()?;
    drop(step);
    let json = json!({ "ended": ended, "swept": swept, "conversations": conversations });
    cx.changed(json, || {
        let mut text = format!(
            "ended {}, removed {} of killed processes\n",
            counted(ended.len(), "expired session"),
            counted(swept, "leftover")
        );
        if conversations > 0 {
            text.push_str(&format!(
                "deleted {} past the retention\n",
                counted(conversations, "conversation")
            ));
        }
        text
    })
}
