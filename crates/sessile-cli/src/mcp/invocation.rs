//! Call of the program in its own process, bounded in time and output, and stopped on cancellation.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sessile::ReportBody;
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::capture::CaptureBuffer;
use crate::output::StderrLine;

/// Limit of captured output per stream.
const TEXT: usize = 32 * 1024;

/// Limit of a result of this program.
pub(super) const RESULT: usize = 16 << 20;

/// Grace period of a cancelled call.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Wait for streams that orphans keep open after the command has ended.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// A call to be made.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) args: Vec<String>,
    /// A variable of the server's that is not for it.
    pub(super) without: Option<String>,
    pub(super) stdin: Vec<u8>,
    pub(super) directory: Option<PathBuf>,
    /// Timeout.
    pub(super) limit: Duration,
    /// Whether it prints whatever a command prints, and not a result of ours.
    pub(super) is_text: bool,
    /// Page of the list that it prints.
    pub(super) page: Option<ResultPage>,
}

/// Page of a list. The call asks for one item more, which shows whether the list goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResultPage {
    /// Member of an item that continues the list after it.
    pub(super) key: &'static str,
    pub(super) limit: usize,
}

/// Output and status of a call.
#[derive(Debug)]
pub(super) struct CallOutput {
    /// Status; none if it was ended from here.
    pub(super) status: Option<ExitStatus>,
    pub(super) out: CaptureBuffer,
    pub(super) err: CaptureBuffer,
    /// Reason why a command did not run or did not end. It is not on the command's streams, because a command can
    /// print anything there.
    pub(super) report: Option<ReportBody>,
}

/// Outcome of a call.
pub(super) enum CallOutcome {
    Ended(CallOutput),
    /// Timed out.
    TimedOut(CallOutput),
    /// Cancelled.
    CalledOff,
}

enum CallEnd {
    Ended(ExitStatus),
    TimedOut,
    /// Cancelled, with the grace period.
    CalledOff(Duration),
}

impl Invocation {
    /// Call that reads, with these words.
    pub(super) fn reading(args: Vec<String>, limit: Duration) -> Self {
        Invocation {
            args,
            without: None,
            stdin: Vec::new(),
            directory: None,
            limit,
            is_text: false,
            page: None,
        }
    }

    /// Makes the call. A cancelled call gets a grace period to end. `latest` receives the last printed line while the
    /// call runs.
    pub(super) async fn make(
        &self,
        called_off: impl Future<Output = Duration>,
        latest: &watch::Sender<Option<String>>,
    ) -> io::Result<CallOutcome> {
        // The command owns both streams, so the program reports its own failure in a file.
        let report = self.is_text.then(NamedTempFile::new).transpose()?;
        let mut child = self.spawn(report.as_ref().map(NamedTempFile::path))?;
        let limit = if self.is_text { TEXT } else { RESULT };
        let (mut out, mut err) = (CaptureBuffer::new(limit), CaptureBuffer::new(TEXT));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut pipe) = stdin {
                // A command that does not read is none of our business.
                let _ = pipe.write_all(&self.stdin).await;
            }
        };
        let how = {
            let streams = async {
                tokio::join!(
                    write,
                    keep(stdout, &mut out, self.is_text.then_some(latest)),
                    keep(stderr, &mut err, Some(latest))
                );
            };
            tokio::pin!(streams);
            let all = async {
                let status = tokio::select! {
                    status = child.wait() => status,
                    // Both streams may be closed before the process ends.
                    () = &mut streams => return child.wait().await,
                };
                // What the command left running may hold its streams: what was printed until now counts.
                let _ = timeout(AFTERWARDS, &mut streams).await;
                status
            };
            tokio::select! {
                status = all => CallEnd::Ended(status?),
                () = sleep(self.limit) => CallEnd::TimedOut,
                grace = called_off => CallEnd::CalledOff(grace),
            }
        };
        let told = || {
            let text = report.as_ref().and_then(|file| sessile::files::read(file.path()).ok()?)?;
            match StderrLine::parse(&text)? {
                StderrLine::Error(report) => Some(report),
                StderrLine::Warning(_) | StderrLine::NextCursor(_) | StderrLine::Note(_) => None,
            }
        };
        Ok(match how {
            CallEnd::Ended(status) => {
                CallOutcome::Ended(CallOutput { status: Some(status), out, err, report: told() })
            }
            CallEnd::TimedOut => {
                end(&mut child, GRACE).await;
                CallOutcome::TimedOut(CallOutput { status: None, out, err, report: None })
            }
            CallEnd::CalledOff(grace) => {
                end(&mut child, grace).await;
                CallOutcome::CalledOff
            }
        })
    }

    fn spawn(&self, report: Option<&Path>) -> io::Result<Child> {
        let mut command = Command::new(own_program()?);
        let (name, rest) = self.args.split_at(1.min(self.args.len()));
        command
            .args(name)
            .args(report.map(|file| format!("--report={}", file.display())))
            .args(rest)
            // Never the server's own, which carries the protocol.
            .stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // What is typed at the server's terminal is not for it, and it can be ended with all that it started.
            .process_group(0)
            // The process must not outlive the call that waits for it.
            .kill_on_drop(true);
        if let Some(variable) = &self.without {
            command.env_remove(variable);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.spawn()
    }
}

/// This program as it was started: it may have been replaced by another version since.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

async fn keep(
    stream: Option<impl AsyncRead + Unpin>,
    kept: &mut CaptureBuffer,
    latest: Option<&watch::Sender<Option<String>>>,
) {
    let Some(mut stream) = stream else { return };
    let mut piece = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        kept.take(&piece[..count]);
        if let Some(latest) = latest {
            // `send` would fail while nobody subscribes.
            latest.send_replace(kept.last_line());
        }
    }
}

/// Ends a call, which ends what it runs; then whatever of it is left.
async fn end(child: &mut Child, grace: Duration) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Some(group) = group else { return };
    // It hands the signal on: a command that got it twice would take the second for impatience.
    let _ = kill_process(group, Signal::TERM);
    let _ = timeout(grace, child.wait()).await;
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait().await;
}
