//! `sessile session gc`.

use serde_json::json;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// End every session that has expired
///
/// Any command that changes something does this for a few of them; this one does it for all. What something runs in
/// is left alone. Rooms and tickets that killed processes left behind go too.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session gc"))]
pub struct Args {}

pub(crate) fn run(_: &Args, cx: &Cx) -> Outcome {
    let mut sessions = cx.state.sessions()?;
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
