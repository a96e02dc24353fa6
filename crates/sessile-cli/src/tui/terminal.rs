//! The terminal in full-screen mode, and the source of its events.
//!
//! [`Screen`] switches the terminal to raw mode, the alternate screen, mouse reports and bracketed paste. The terminal is restored
//! when the screen is dropped, before a panic is reported, and before a signal ends or stops the process. Two threads serve it: one
//! reads the terminal, one waits for signals. Both block, so an idle screen costs nothing.

use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, KeyEvent,
    KeyEventKind, MouseEvent,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::{Frame, Terminal};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::reader_gate::ReaderGate;

/// Time that a signal waits for a frame to be written. A terminal that accepts nothing must not keep the process alive.
const FRAME_WAIT: Duration = Duration::from_secs(1);

/// Whether the terminal is in full-screen mode.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// Held while a frame is written, and by the signal thread while the process is stopped.
static WRITER: Mutex<()> = Mutex::new(());

/// Sends an event to the current screen.
type Notifier = Box<dyn Fn(Notice) + Send>;

/// Notifier of the current screen, for the signal thread and the panic hook.
static NOTIFIER: Mutex<Option<Notifier>> = Mutex::new(None);

/// Message of the signal thread or the panic hook to the screen.
#[derive(Clone, Copy, Debug)]
enum Notice {
    Redraw,
    Closed,
}

/// An event of the terminal, or a wake-up of another thread with its message `W`.
#[derive(Debug)]
pub(crate) enum TerminalEvent<W> {
    /// A key was pressed or repeats.
    Key(KeyEvent),
    /// The mouse was moved or a button was used.
    Mouse(MouseEvent),
    /// Text was pasted. It is untrusted.
    Paste(String),
    /// The size changed, or the terminal was used by another program: draw everything again.
    Redraw,
    /// Another thread sent a message.
    Wakeup(W),
    /// The terminal can no longer be read, or a thread panicked. No event follows.
    Closed,
}

/// Handle that wakes the screen from another thread.
#[derive(Debug)]
pub(crate) struct ScreenWaker<W>(Sender<TerminalEvent<W>>);

impl<W> Clone for ScreenWaker<W> {
    fn clone(&self) -> Self {
        ScreenWaker(self.0.clone())
    }
}

impl<W> ScreenWaker<W> {
    /// Sends a message. Returns whether the screen still exists.
    pub(crate) fn wake(&self, message: W) -> bool {
        self.0.send(TerminalEvent::Wakeup(message)).is_ok()
    }
}

/// The terminal in full-screen mode, until dropped.
pub(crate) struct Screen<W> {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    events: Receiver<TerminalEvent<W>>,
    sender: Sender<TerminalEvent<W>>,
    reader: Arc<ReaderGate>,
}

impl<W: Send + 'static> Screen<W> {
    /// Switches the terminal of standard input and output to full-screen mode.
    pub(crate) fn enter() -> io::Result<Self> {
        install_panic_hook();
        install_signal_thread()?;
        let (sender, events) = mpsc::channel();
        let notices = sender.clone();
        let notifier: Notifier = Box::new(move |notice| {
            let _ = notices.send(match notice {
                Notice::Redraw => TerminalEvent::Redraw,
                Notice::Closed => TerminalEvent::Closed,
            });
        });
        *lock(&NOTIFIER) = Some(notifier);
        // The theme decides about colour; the library below would ask the environment by itself.
        crossterm::style::force_color_output(true);
        switch_on()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| switch_off())?;
        let reader = Arc::new(ReaderGate::default());
        let screen = Screen { terminal, events, sender, reader };
        screen.spawn_reader()?;
        Ok(screen)
    }

    fn spawn_reader(&self) -> io::Result<()> {
        let (gate, sender) = (Arc::clone(&self.reader), self.sender.clone());
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            loop {
                gate.pass();
                let event = match crossterm::event::read() {
                    Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => TerminalEvent::Key(key),
                    Ok(Event::Mouse(mouse)) => TerminalEvent::Mouse(mouse),
                    Ok(Event::Paste(text)) => TerminalEvent::Paste(text),
                    Ok(Event::Resize(..)) => TerminalEvent::Redraw,
                    Ok(_) => continue,
                    Err(_) => TerminalEvent::Closed,
                };
                let is_closed = matches!(event, TerminalEvent::Closed);
                if sender.send(event).is_err() || is_closed {
                    return gate.leave();
                }
            }
        })?;
        Ok(())
    }

    /// Draws a frame and writes what differs from the last one.
    pub(crate) fn draw(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let _writer = lock(&WRITER);
        self.terminal.draw(render).map(|_| ())
    }

    /// Forgets the last frame, so that the next one is written as a whole.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let _writer = lock(&WRITER);
        // `Terminal::clear` asks the terminal for the position of its cursor, and not every terminal answers.
        self.terminal.backend_mut().clear()?;
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// The next event. `None` after `timeout`; without one the call blocks until an event arrives.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Option<TerminalEvent<W>> {
        let event = match timeout {
            Some(timeout) => self.events.recv_timeout(timeout),
            None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(TerminalEvent::Closed),
        }
    }

    /// An event that has already arrived.
    pub(crate) fn try_next(&self) -> Option<TerminalEvent<W>> {
        self.events.try_recv().ok()
    }

    /// Handle for other threads.
    pub(crate) fn waker(&self) -> ScreenWaker<W> {
        ScreenWaker(self.sender.clone())
    }

    /// Gives the terminal to `other`, such as a shell or an editor, and takes it back afterwards.
    pub(crate) fn suspend<T>(&mut self, other: impl FnOnce() -> T) -> io::Result<T> {
        self.reader.close();
        switch_off();
        let result = other();
        let entered = switch_on();
        self.reader.open();
        entered?;
        self.clear()?;
        Ok(result)
    }

    /// Stops the process as Ctrl-Z does in a cooked terminal.
    pub(crate) fn stop_process(&self) {
        let _ = signal_hook::low_level::raise(SIGTSTP);
    }
}

impl<W> Drop for Screen<W> {
    fn drop(&mut self) {
        // A panic may unwind while the notifier is locked; the terminal is restored either way.
        *lock(&NOTIFIER) = None;
        // A reader that panicked cannot be waited for.
        if !std::thread::panicking() {
            self.reader.close();
        }
        switch_off();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn switch_on() -> io::Result<()> {
    enable_raw_mode()?;
    IS_ENTERED.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, cursor::Hide)
        .inspect_err(|_| switch_off())
}

/// Restores the terminal. Safe to call from any thread, and more than once.
fn switch_off() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs no restoring.
        let _ = execute!(
            io::stdout(),
            DisableBracketedPaste,
            DisableMouseCapture,
            LeaveAlternateScreen,
            cursor::Show
        );
        let _ = disable_raw_mode();
    }
}

fn notify(notice: Notice) {
    // Not waited for: the hook may run in the thread that holds it.
    if let Ok(notifier) = NOTIFIER.try_lock()
        && let Some(notifier) = notifier.as_ref()
    {
        notifier(notice);
    }
}

/// Restores the terminal before a panic is reported, or the report would go to the alternate screen.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            switch_off();
            report(panic);
            notify(Notice::Closed);
        }));
    });
}

/// Waits for signals for the rest of the process: without a screen it does what the signal does by default.
fn install_signal_thread() -> io::Result<()> {
    static IS_INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut is_installed = lock(&IS_INSTALLED);
    if *is_installed {
        return Ok(());
    }
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let writer = writer_within(FRAME_WAIT);
            let was_entered = IS_ENTERED.load(Ordering::SeqCst);
            if signal != SIGCONT {
                switch_off();
                // Ends or stops the process. After a stop it returns once the process continues.
                let _ = emulate_default_handler(signal);
            }
            if was_entered && switch_on().is_ok() {
                notify(Notice::Redraw);
            }
            drop(writer);
        }
    })?;
    *is_installed = true;
    Ok(())
}

fn writer_within(limit: Duration) -> Option<MutexGuard<'static, ()>> {
    let start = Instant::now();
    loop {
        match WRITER.try_lock() {
            Ok(writer) => return Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if start.elapsed() < limit => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
