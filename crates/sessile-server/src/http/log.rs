//! Access log, one line per request. A thread writes it, so that a stalled reader blocks no request.

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use sessile::text::shown;

use super::metrics::Metrics;

/// Lines that may be buffered; more are dropped, and counted.
const WAITING: usize = 4096;

/// Format of the request log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// Not at all.
    Off,
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Destination of log lines.
pub type LogTo = Box<dyn Write + Send>;

/// Log line of a request.
#[derive(Debug)]
pub(crate) struct LogLine {
    pub(crate) at_ms: i64,
    pub(crate) request_id: String,
    pub(crate) peer: Option<String>,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) route: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) status: u16,
    pub(crate) ms: f64,
    pub(crate) code: Option<&'static str>,
    pub(crate) cause: Option<String>,
}

impl LogLine {
    fn as_text(&self) -> String {
        let LogLine { method, path, status, ms, request_id, .. } = self;
        let user = self.user.as_deref().unwrap_or("-");
        let time = jiff::Timestamp::from_millisecond(self.at_ms).unwrap_or_default();
        let mut text =
            format!("{time:.3} {status} {method} {} {ms:.1}ms user={user} id={request_id}", shown(path));
        for (name, value) in [("code", self.code), ("cause", self.cause.as_deref())] {
            if let Some(value) = value {
                text.push_str(&format!(" {name}={}", shown(value)));
            }
        }
        text
    }

    fn as_json(&self) -> Value {
        json!({
            "at_ms": self.at_ms,
            "level": if self.status >= 500 { "error" } else { "info" },
            "request_id": self.request_id,
            "peer": self.peer,
            "method": self.method,
            "path": self.path,
            "route": self.route,
            "user": self.user,
            "token": self.token,
            "status": self.status,
            "ms": (self.ms * 1000.0).round() / 1000.0,
            "code": self.code,
            "cause": self.cause,
        })
    }
}

/// Takes lines.
#[derive(Clone, Debug)]
pub(crate) struct Logger {
    lines: Option<(Log, SyncSender<String>)>,
    metrics: Arc<Metrics>,
}

impl Logger {
    /// Starts the log thread. It ends when the last handle is dropped.
    pub(crate) fn start(log: Log, to: LogTo, metrics: Arc<Metrics>) -> (Self, Option<JoinHandle<()>>) {
        if log == Log::Off {
            return (Logger { lines: None, metrics }, None);
        }
        let (sender, lines) = sync_channel(WAITING);
        match std::thread::Builder::new().spawn(move || write(&lines, to)) {
            Ok(thread) => (Logger { lines: Some((log, sender)), metrics }, Some(thread)),
            // A log that cannot be written is no reason to stop serving; the lines are counted.
            Err(_) => (Logger { lines: Some((log, sender)), metrics }, None),
        }
    }

    pub(crate) fn line(&self, line: &LogLine) {
        let Some((log, lines)) = &self.lines else { return };
        let mut text = if *log == Log::Json { line.as_json().to_string() } else { line.as_text() };
        text.push('\n');
        // Never waits: a log that nobody reads must not hold up answers.
        if lines.try_send(text).is_err() {
            self.metrics.unlogged();
        }
    }
}

fn write(lines: &Receiver<String>, mut to: LogTo) {
    for line in lines {
        // A log that cannot be written is no reason to stop serving.
        let _ = to.write_all(line.as_bytes());
    }
    let _ = to.flush();
}
