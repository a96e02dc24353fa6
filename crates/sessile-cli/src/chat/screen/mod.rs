//! The full-screen chat.
//!
//! | module | |
//! |---|---|
//! | `app` | state, keys and events, without a terminal |
//! | `draw` | the state as a frame |
//! | `tab`, `transcript`, `composer`, `overlay` | parts of the state |
//! | `keys` | table of the keys |
//! | `filter_list` | a list to choose from |
//! | `markdown`, `wrap` | text of replies as rows |

pub(crate) mod app;
mod composer;
pub(crate) mod draw;
pub(crate) mod filter_list;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod keys;
mod markdown;
mod overlay;
mod tab;
#[cfg(test)]
mod tests;
mod transcript;
mod wrap;

use std::io::{self, Write};
use std::sync::Arc;

use base64::Engine;
use sessile::error::FileError;

use self::app::ChatApp;
use super::engine::{ChatEngine, ChatEvent};
use super::line_mode::ChatStart;
use crate::agent_session::AgentArgs;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::tui::terminal::{Screen, TerminalEvent};
use crate::tui::theme::Theme;

/// Bytes that are copied to the clipboard. Terminals ignore longer ones.
const MOST_COPIED: usize = 74_994;

/// Runs the chat on the terminal until it is left.
pub(crate) fn run(
    cx: &Cx,
    reach: AgentArgs,
    save_dir: std::path::PathBuf,
    start: Option<ChatStart>,
) -> Outcome {
    let theme = theme(cx)?;
    let failed = |source| Failure::from(FileError::Io { action: "use", path: "the terminal".into(), source });
    let mut screen: Screen<ChatEvent> = Screen::enter().map_err(failed)?;
    let waker = screen.waker();
    let sink = Arc::new(move |event| {
        waker.wake(event);
    });
    let mut app = ChatApp::new(
        Box::new(ChatEngine::new(cx.state.call().clone(), cx.out.clone(), reach, sink)),
        theme,
        save_dir,
    );
    app.start(start);
    while !app.has_quit() {
        screen.draw(|frame| draw::draw(&mut app, frame)).map_err(failed)?;
        let Some(event) = screen.next(None) else { continue };
        if !take(&mut app, &mut screen, event).map_err(failed)? {
            break;
        }
        // What has arrived meanwhile is drawn at once: a fast agent must not make the screen lag.
        while let Some(event) = screen.try_next() {
            if !take(&mut app, &mut screen, event).map_err(failed)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Takes an event. Returns whether the terminal is still there.
fn take(
    app: &mut ChatApp,
    screen: &mut Screen<ChatEvent>,
    event: TerminalEvent<ChatEvent>,
) -> io::Result<bool> {
    use crossterm::event::{KeyCode, KeyModifiers};
    match event {
        TerminalEvent::Key(key)
            if key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) =>
        {
            screen.stop_process();
        }
        TerminalEvent::Key(key) => app.key(key),
        TerminalEvent::Mouse(mouse) => app.mouse(mouse),
        TerminalEvent::Paste(text) => app.paste(&text),
        TerminalEvent::Redraw => screen.clear()?,
        TerminalEvent::Wakeup(event) => app.event(event),
        TerminalEvent::Closed => return Ok(false),
    }
    if let Some(text) = app.take_clipboard() {
        copy(&text)?;
    }
    Ok(true)
}

/// Copies a text by the terminal's clipboard sequence (OSC 52), which also works over ssh.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let head = &text[..text.floor_char_boundary(MOST_COPIED)];
    let encoded = base64::engine::general_purpose::STANDARD.encode(head);
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{encoded}\x07")?;
    out.flush()
}

/// Theme of the setting.
pub(crate) fn theme(cx: &Cx) -> Result<Theme, Failure> {
    let theme = Theme::of(cx.state.world(), cx.state.color()?);
    let name = cx.state.settings()?.get("chat.theme")?.map(|found| found.value.to_string());
    Ok(name.and_then(|name| theme.named(&name)).unwrap_or(theme))
}
