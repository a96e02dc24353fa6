//! `sessile tui`.

use sessile::error::UsageError;

use crate::chat::screen;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::tui::{Theme, event_loop};

/// Show sessions, contexts, locks and history on one screen
///
/// Follows changes as they happen. Keys: ? shows all of them, / filters, : chooses a command by name, Enter opens a row, q
/// quits. Approvals follow the rules of `context approve`: on a terminal, outside any session, with the PIN if one is set.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile tui" "sessile tui --color never"))]
pub struct Args {}

pub(crate) fn run(_args: &Args, cx: &Cx) -> Outcome {
    let streams = cx.state.world().streams();
    if !streams.stdin || !streams.stdout {
        return Err(UsageError::TerminalRequired {
            what: "tui".into(),
            instead: "run `sessile status` or `sessile session list`".into(),
        }
        .into());
    }
    let theme = Theme::of(cx.state.world(), cx.state.color()?);
    // Broken settings are listed by the TUI, which then draws the chat as everything else.
    let chat_theme = screen::theme(cx).unwrap_or(theme);
    Ok(event_loop::run(cx, theme, chat_theme)?)
}
