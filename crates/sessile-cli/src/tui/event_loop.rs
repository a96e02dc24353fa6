//! The event loop: draws, waits for events, and does what the keys ask for.

use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::action::{ApprovalQuestion, TuiAction, UndoQuestion, failure_line};
use super::app::{Pane, TuiApp, TuiEffect};
use super::call_source::CallSource;
use super::draw::draw;
use super::loader::{Loader, LoaderMessage};
use super::terminal::{Screen, ScreenWaker, TerminalEvent};
use super::theme::Theme;

/// Time between two frames while idle times and countdowns are visible.
const CLOCK: Duration = Duration::from_secs(1);

/// Events that are handled before a frame is drawn, at most.
const BURST: usize = 1000;

/// Runs the TUI until the person quits or the terminal closes.
pub(crate) fn run(calls: &CallSource, theme: Theme) -> io::Result<()> {
    let mut screen: Screen<LoaderMessage> = Screen::enter()?;
    let loader = Loader::start(calls, &screen.waker())?;
    let mut app = TuiApp::new(theme, calls.now_ms());
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
            next = screen.try_next();
        }
    }
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
        TuiEffect::Perform(action) => perform(action, calls.clone(), screen.waker())?,
        TuiEffect::AskApproval(context) => {
            let question = ApprovalQuestion::new(calls, &context);
            app.ask_approval(question.map_err(|failure| failure_line(&failure)));
        }
        TuiEffect::AskUndo { number, others } => {
            app.ask_undo(UndoQuestion::new(calls, number, &others));
        }
        TuiEffect::Reload => loader.reload(),
        TuiEffect::Open(key) => loader.open(key),
        TuiEffect::Shell(id) => run_program(app, screen, &["shell", "--session", &id], OnFailure::Return)?,
        // The chat takes the whole terminal and gives it back, as the shell does.
        TuiEffect::Chat(row) => {
            let words = row.chat_words();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            run_program(app, screen, &words, OnFailure::Pause)?;
            loader.reload();
        }
    }
    Ok(())
}

/// Makes a change in another thread: stopping a session waits for its commands.
fn perform(action: TuiAction, calls: CallSource, waker: ScreenWaker<LoaderMessage>) -> io::Result<()> {
    std::thread::Builder::new().name("action".to_owned()).spawn(move || {
        let done = action.perform(&calls).map_err(|failure| failure_line(&failure));
        waker.wake(LoaderMessage::Done(done));
    })?;
    Ok(())
}

/// Reaction to the failure of a program that had the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    /// Return: a shell ends with the status of its last command.
    Return,
    /// Wait for Enter: the screen of the TUI hides what the program printed.
    Pause,
}

/// Gives the terminal to a command of this program and takes it back.
fn run_program(
    app: &mut TuiApp,
    screen: &mut Screen<LoaderMessage>,
    words: &[&str],
    on_failure: OnFailure,
) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let status = screen.suspend(|| {
        let status = Command::new(program).args(words).status();
        if on_failure == OnFailure::Pause && !status.as_ref().is_ok_and(ExitStatus::success) {
            let _ = write!(io::stdout(), "press Enter to go back to the TUI ");
            let _ = io::stdout().flush();
            let _ = io::stdin().lock().read_line(&mut String::new());
        }
        status
    })?;
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => app.fail(&format!("{} ended with {status}", words.join(" "))),
        Err(error) => app.fail(&error.to_string()),
    }
    Ok(())
}
