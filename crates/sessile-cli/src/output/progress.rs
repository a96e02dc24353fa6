//! The line on standard error that tells a person what takes long, with the elapsed time.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sessile::text::shown;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Tone, toned};

/// Silence before the line, and time between two of its states.
const EVERY: Duration = Duration::from_secs(1);

/// Columns of a terminal that does not tell its own.
const WIDTH: usize = 80;

/// Stack of the thread that draws: it only formats a line.
const STACK: usize = 1 << 17;

/// Returns to the first column and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// Whether a progress line is on the terminal. Everything else that is printed clears it first.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// A step that can take long. Its line appears after a second, and disappears when this value is dropped.
#[derive(Debug)]
pub(crate) struct SlowStep(Option<ProgressThread>);

/// Thread that draws the line of a step.
#[derive(Debug)]
struct ProgressThread {
    /// New texts of the line. The thread ends when this side is dropped.
    texts: Sender<String>,
    thread: JoinHandle<()>,
}

impl SlowStep {
    /// Step without a line.
    pub(super) fn silent() -> Self {
        SlowStep(None)
    }

    /// Step whose line a thread draws.
    pub(super) fn start(text: &str, colored: bool) -> Self {
        let mut text = shown(text);
        let (texts, receiver) = mpsc::channel::<String>();
        let begun = Instant::now();
        let draw = move || {
            loop {
                match receiver.recv_timeout(EVERY) {
                    Ok(new) => text = new,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                show(&format!("{text} ... {} s", begun.elapsed().as_secs()), colored);
            }
            clear();
        };
        // Where the system refuses a thread, the step goes on without a line.
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(draw);
        SlowStep(thread.ok().map(|thread| ProgressThread { texts, thread }))
    }

    /// Replaces the text and shows the line at once.
    pub(crate) fn update(&self, text: &str) {
        if let Some(drawing) = &self.0 {
            let _ = drawing.texts.send(shown(text));
        }
    }
}

impl Drop for SlowStep {
    fn drop(&mut self) {
        if let Some(ProgressThread { texts, thread }) = self.0.take() {
            drop(texts);
            // Only then is the line certainly gone.
            let _ = thread.join();
        }
    }
}

/// Replaces the line.
pub(super) fn show(text: &str, colored: bool) {
    let line = toned(&cut(text, columns()), Tone::Faint, colored);
    IS_SHOWN.store(true, Ordering::Relaxed);
    let _ = io::stderr().lock().write_all(format!("{CLEAR}{line}").as_bytes());
}

/// Clears the line, if the terminal has one.
pub(super) fn clear() {
    if IS_SHOWN.swap(false, Ordering::Relaxed) {
        let _ = io::stderr().lock().write_all(CLEAR.as_bytes());
    }
}

/// Columns of the terminal.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

/// A text that leaves the last column free, where some terminals break the line. The end stays: it has the time.
fn cut(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    if text.width() <= room {
        return text.to_owned();
    }
    let tail_at = text.rfind(" ... ").unwrap_or(text.len());
    let (head, tail) = text.split_at(tail_at);
    let room = room.saturating_sub(tail.width());
    let (mut cut, mut width) = (String::new(), 0);
    for c in head.chars() {
        width += c.width().unwrap_or(0);
        if width > room {
            break;
        }
        cut.push(c);
    }
    cut + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_keeps_the_elapsed_time() {
        assert_eq!(cut("preparing room ... 3 s", 80), "preparing room ... 3 s");
        let line = cut(&format!("waiting for {} ... 12 s", "x".repeat(90)), 40);
        assert_eq!(line.width(), 39);
        assert!(line.starts_with("waiting for xxx") && line.ends_with("x ... 12 s"), "{line}");
    }
}
