//! Standard input as lines, standard output as whole lines: each by a thread of its own, so that a client that does not
//! write or read holds up nothing else.

use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc as threads};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// The longest line that is read: a message with the largest text there may be, and some more.
pub(super) const LONGEST: u64 = 24 << 20;

/// Input of the server.
#[derive(Debug)]
pub(super) enum InputEvent {
    Line(Vec<u8>),
    /// Line that was too long and is discarded.
    TooLong,
    /// End of input.
    End,
    /// Stop signal, or a client that no longer reads.
    Stop,
}

/// Reads lines until the end of input.
pub(super) fn read(lines: mpsc::Sender<InputEvent>) -> std::io::Result<()> {
    let reader = std::thread::Builder::new().spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            // Bounded, because a client may never send a line break.
            let read = Read::by_ref(&mut input).take(LONGEST).read_until(b'\n', &mut line);
            let is_whole = line.ends_with(b"\n");
            let incoming = match read {
                Ok(0) | Err(_) => break,
                Ok(count) if !is_whole && u64::try_from(count).is_ok_and(|count| count >= LONGEST) => {
                    drop(line);
                    skip_line(&mut input);
                    InputEvent::TooLong
                }
                Ok(_) => InputEvent::Line(line),
            };
            if lines.blocking_send(incoming).is_err() {
                return;
            }
        }
        let _ = lines.blocking_send(InputEvent::End);
    });
    reader.map(drop)
}

fn skip_line(input: &mut impl BufRead) {
    loop {
        let (used, is_over) = match input.fill_buf() {
            Ok([]) | Err(_) => return,
            Ok(some) => {
                let end = some.iter().position(|byte| *byte == b'\n');
                (end.map_or(some.len(), |end| end + 1), end.is_some())
            }
        };
        input.consume(used);
        if is_over {
            return;
        }
    }
}

/// Writes lines, whole and in order.
pub(super) struct LineWriter {
    lines: Option<threads::Sender<(Vec<u8>, oneshot::Sender<()>)>>,
    over: threads::Receiver<()>,
    /// Number of bytes not written yet.
    waiting: Arc<AtomicUsize>,
}

impl LineWriter {
    /// Starts the writer. If the client stops reading, the writer stops the reader.
    pub(super) fn start(nobody_reads: mpsc::Sender<InputEvent>) -> std::io::Result<Self> {
        let (lines, queue) = threads::channel::<(Vec<u8>, oneshot::Sender<()>)>();
        let (is_over, over) = threads::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let left = Arc::clone(&waiting);
        std::thread::Builder::new().spawn(move || {
            let mut output = std::io::stdout().lock();
            for (line, written) in queue {
                let outcome = output.write_all(&line).and_then(|()| output.flush());
                left.fetch_sub(line.len(), Ordering::Relaxed);
                if outcome.is_err() {
                    let _ = nobody_reads.blocking_send(InputEvent::Stop);
                    break;
                }
                let _ = written.send(());
            }
            let _ = is_over.send(());
        })?;
        Ok(LineWriter { lines: Some(lines), over, waiting })
    }

    /// Number of bytes that the client has not read yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Queues a line; the future completes when it is written.
    pub(super) fn write(
        &self,
        mut line: Vec<u8>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static + use<> {
        line.push(b'\n');
        let (written, is_written) = oneshot::channel();
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        let taken = self.lines.as_ref().is_some_and(|lines| lines.send((line, written)).is_ok());
        async move {
            match is_written.await {
                Ok(()) if taken => Ok(()),
                _ => Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Waits until everything is written, but not for a client that does not read.
    pub(super) fn finish(&mut self) {
        self.lines = None;
        let _ = self.over.recv_timeout(Duration::from_secs(2));
    }
}
