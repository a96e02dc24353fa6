//! The event loop: draws, waits for events, and does what the keys ask for.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::action::{ApprovalQuestion, UndoQuestion, failure_line};
use super::app::{Pane, TuiApp, TuiEffect};
use super::call_source::CallSource;
use super::draw::draw;
use super::loader::{Loader, LoaderMessage};
use super::terminal::{Screen, ScreenWaker, TerminalEvent};
use super::theme::Theme;
use crate::agent_session::AgentArgs;
use crate::chat::engine::ChatEngine;
use crate::chat::screen::app::ChatApp;
use crate::chat::screen::copy;
use crate::cli::Cx;
use crate::effects;

/// Time between two frames while idle times and countdowns are visible.
const CLOCK: Duration = Duration::from_secs(1);

/// Events that are handled before a frame is drawn, at most.
const BURST: usize = 1000;

/// Runs the TUI until the person quits or the terminal closes.
pub(crate) fn run(cx: &Cx, theme: Theme, chat_theme: Theme) -> io::Result<()> {
    let calls = &CallSource::new(cx);
    let mut screen: Screen<LoaderMessage> = Screen::enter()?;
    let loader = Loader::start(calls, &screen.waker())?;
    let mut app = TuiApp::new(theme, calls.now_ms(), chat_pane(cx, screen.waker(), chat_theme));
    let mut page = Vec::new();
    let mut begun = Instant::now();
    loop {
        app.tick(calls.now_ms());
        screen.draw(|frame| draw(&mut app, frame))?;
        // From the event to the frame, which `benches/tui` reads.
        tracing::debug!(micros = begun.elapsed().as_micros(), "drew a frame");
        if app.pane == Pane::Sessions {
            let visible = app.page_of_sessions();
            if visible != page {
                loader.follow(visible.clone());
                page = visible;
            }
        }
        let first = screen.next(app.has_clock().then_some(CLOCK));
        begun = Instant::now();
        let mut next = first;
        for _ in 0..BURST {
            let Some(event) = next else { break };
            let effect = match event {
                TerminalEvent::Key(key) => app.key(key),
                TerminalEvent::Mouse(mouse) => app.mouse(mouse),
                TerminalEvent::Paste(text) => {
                    app.paste(&text);
                    None
                }
                TerminalEvent::Wakeup(message) => app.receive(message),
                TerminalEvent::Redraw => {
                    screen.clear()?;
                    None
                }
                TerminalEvent::Closed => return Err(io::Error::other("the terminal was closed")),
            };
            match effect {
                Some(TuiEffect::Quit) => return Ok(()),
                Some(effect) => carry_out(effect, &mut app, &mut screen, &loader, calls)?,
                None => {}
            }
            if let Some(text) = app.chat.take_clipboard() {
                copy(&text)?;
            }
            next = screen.try_next();
        }
    }
}

/// Chat with the flags of the TUI, in the mode of `chat`.
fn chat_pane(cx: &Cx, waker: ScreenWaker<LoaderMessage>, theme: Theme) -> ChatApp {
    let mode = effects::entry("chat").map_or_else(|| cx.state.call().mode(), |entry| entry.mode);
    let call = cx.state.call().clone().with_mode(mode);
    let sink = Arc::new(move |event| {
        waker.wake(LoaderMessage::Chat(Box::new(event)));
    });
    let engine = ChatEngine::new(call, cx.out.clone(), AgentArgs::default(), sink);
    ChatApp::pane(Box::new(engine), theme, PathBuf::new())
}

fn carry_out(
    effect: TuiEffect,
    app: &mut TuiApp,
    screen: &mut Screen<LoaderMessage>,
    loader: &Loader,
    calls: &CallSource,
) -> io::Result<()> {
    match effect {
        TuiEffect::Quit => {}
        TuiEffect::Suspend => screen.stop_process(),
        TuiEffect::Perform(action) => in_thread(calls, screen, move |calls| {
            LoaderMessage::Done(action.perform(calls).map_err(|failure| failure_line(&failure)))
        })?,
        TuiEffect::AskApproval(context) => in_thread(calls, screen, move |calls| {
            let question = ApprovalQuestion::new(calls, &context);
            LoaderMessage::Approval(question.map_err(|failure| failure_line(&failure)))
        })?,
        TuiEffect::AskUndo { number, others } => in_thread(calls, screen, move |calls| {
            LoaderMessage::Undo(UndoQuestion::new(calls, number, &others))
        })?,
        TuiEffect::Reload => loader.reload(),
        TuiEffect::Open(key) => loader.open(key),
        TuiEffect::Shell(id) => run_program(app, screen, &["shell", "--session", &id])?,
    }
    Ok(())
}

/// Does something in another thread: stopping a session waits for its commands, and the store may be locked.
fn in_thread(
    calls: &CallSource,
    screen: &Screen<LoaderMessage>,
    work: impl FnOnce(&CallSource) -> LoaderMessage + Send + 'static,
) -> io::Result<()> {
    let (calls, waker) = (calls.clone(), screen.waker());
    std::thread::Builder::new().name("action".to_owned()).spawn(move || {
        waker.wake(work(&calls));
    })?;
    Ok(())
}

/// Gives the terminal to a command of this program and takes it back.
fn run_program(app: &mut TuiApp, screen: &mut Screen<LoaderMessage>, words: &[&str]) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let status = screen.suspend(|| Command::new(program).args(words).status())?;
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => app.fail(&format!("{} ended with {status}", words.join(" "))),
        Err(error) => app.fail(&error.to_string()),
    }
    Ok(())
}
