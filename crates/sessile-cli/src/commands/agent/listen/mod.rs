//! `sessile agent listen`: receiver of push notifications.
//!
//! A connection's thread verifies a notification and queues it; the thread of the command prints it or runs a program for
//! it, in the order of arrival. The agent gets its answer when the notification is queued, because agents wait only
//! seconds. A full queue is answered with status 503, so that the agent tries again.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod jwt;
mod verify;

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use serde_json::{Value, json};
use sessile::error::{FileError, UsageError};
use sessile::text::shown;
use sessile_agent::{Listener, ListenerLimits, ReceivedRequest, reply};
use sessile_wire::a2a::{AgentEvent, Dialect};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::verify::NotificationVerifier;
use crate::cli::Cx;
use crate::error::{CommandError, Failure, Outcome};
use crate::help::examples;
use crate::view::{EventView, event_kind};

/// Largest notification.
const MAX_BODY: usize = 4 << 20;

/// Number of connections at once.
const MAX_CONNECTIONS: usize = 64;

/// Number of notifications that may wait to be printed or handled.
const QUEUE: usize = 256;

/// Receive push notifications of agents
///
/// Accepts a notification with the token of --token in the header X-A2A-Notification-Token, or with a JWT signed by a
/// key of --jwks. With both flags, requires both. Prints one line per event. With --exec the program gets the event as
/// JSON on standard input, one at a time; no shell is involved. Ctrl-C stops the receiver.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile agent listen --token @push.token"
    "sessile agent listen --jwks https://agent.example/jwks.json --output jsonl"
    "sessile agent listen --token @push.token --exec ./on-event --verbose"
))]
pub struct Args {
    /// Listen on this address: loopback, or any address with --behind-proxy
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8739", value_parser = crate::commands::serve::parse_listen)]
    listen: SocketAddr,

    /// Accept notifications with this token: @FILE reads it from a file, - from standard input
    #[arg(long, value_name = "SOURCE")]
    token: Option<String>,

    /// Accept notifications with a JWT that a key of this JWK set signed: a file or a URL
    #[arg(long, value_name = "SOURCE")]
    jwks: Option<String>,

    /// Require this audience in the JWT
    #[arg(long, value_name = "AUDIENCE", requires = "jwks")]
    audience: Option<String>,

    /// Accept every notification
    #[arg(long, conflicts_with_all = ["token", "jwks"])]
    no_verify: bool,

    /// Listen on plain HTTP behind a proxy that terminates TLS
    #[arg(long)]
    behind_proxy: bool,

    /// Stop after this many notifications
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Run this program for each notification; takes all remaining arguments
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<String>,
}

/// Event that the command's thread waits for.
enum Arrival {
    /// A verified notification: the event, and its body.
    Event(Box<AgentEvent>, Value),
    /// A request that was refused, and why.
    Refused(String),
    /// A signal that ends the receiver.
    Stop,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if !cx.out.prints_events() {
        let text = "agent listen prints events as they arrive; pass --output jsonl";
        return Err(UsageError::Arguments(text.into()).into());
    }
    if !args.listen.ip().is_loopback() && !args.behind_proxy {
        let text = format!("refusing to listen on {} without TLS; pass --behind-proxy", args.listen);
        return Err(UsageError::Arguments(text).into());
    }
    if let Some(program) = args.exec.first() {
        require_program(cx, program)?;
    }
    let verifier = NotificationVerifier::new(args, cx)?;
    let failed = |source| FileError::Io { action: "listen on", path: args.listen.to_string().into(), source };
    let socket = TcpListener::bind(args.listen).map_err(failed)?;
    let url = format!("http://{}/", socket.local_addr().map_err(failed)?);
    let (queue, arrivals) = sync_channel(QUEUE);
    stop_on_signal(queue.clone())?;
    let limits = ListenerLimits { body: MAX_BODY, connections: MAX_CONNECTIONS };
    let answer = move |request: &ReceivedRequest, stream: &mut TcpStream| {
        let (status, text, arrival) = match verifier.accept(request) {
            Ok((event, body)) => (200, "", Arrival::Event(Box::new(event), body)),
            Err(refusal) => (refusal.status, refusal.reason, Arrival::Refused(refusal.line(request))),
        };
        match queue.try_send(arrival) {
            Err(TrySendError::Full(Arrival::Event(..))) => {
                reply(stream, 503, "text/plain", "", "the queue is full")
            }
            _ => reply(stream, status, "text/plain", "", text),
        }
    };
    let listener = Listener::start(socket, limits, answer).map_err(failed)?;
    cx.out.note(&format!("listening on {url}; Ctrl-C stops"));
    let mut handled = 0;
    for arrival in &arrivals {
        match arrival {
            Arrival::Stop => break,
            Arrival::Refused(line) => cx.out.note(&line),
            Arrival::Event(event, body) => {
                handle(args, cx, &event, &body);
                handled += 1;
                if args.count.is_some_and(|count| handled >= count) {
                    break;
                }
            }
        }
    }
    drop(listener);
    Ok(())
}

/// Prints an event, or runs the program for it.
fn handle(args: &Args, cx: &Cx, event: &AgentEvent, body: &Value) {
    let view = EventView::from(event);
    let Some((program, arguments)) = args.exec.split_first() else {
        let id = |id: Option<&str>| id.unwrap_or("-").to_owned();
        let state = event.state().map_or_else(String::new, |state| format!(" {state}"));
        let said = event.text();
        let said = if said.is_empty() { String::new() } else { format!(": {}", shown(said)) };
        let line = format!("{} task {}{state}{said}", event_kind(event), shown(id(event.task_id())));
        cx.out.event(&view, &line, false);
        return;
    };
    let input = json!({ "source": "agent", "event": event_kind(event), "body": body });
    let run = || -> std::io::Result<ExitStatus> {
        let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input may have ended already.
            let _ = writeln!(stdin, "{input}");
        }
        child.wait()
    };
    // The next notification may succeed, and the agent sends none of them twice.
    match run() {
        Ok(status) if status.success() => {}
        Ok(status) => cx.out.note(&format!("{} failed: {status}", shown(program))),
        Err(error) => cx.out.note(&format!("cannot run {}: {error}", shown(program))),
    }
}

/// Fails if a program cannot be executed. A word without a slash is looked up in PATH.
fn require_program(cx: &Cx, program: &str) -> Result<(), Failure> {
    let world = cx.state.world();
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![cx.state.absolute(Path::new(program))]
    } else {
        let path = world.variable("PATH").unwrap_or_default();
        std::env::split_paths(path).map(|dir| dir.join(program)).collect()
    };
    let is_program =
        |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if candidates.iter().any(is_program) {
        return Ok(());
    }
    let is_there = candidates.iter().any(|path| path.is_file());
    Err(UsageError::InvalidValue {
        place: "--exec".into(),
        value: program.to_owned(),
        expected: if is_there { "an executable file" } else { "a program that exists" }.into(),
    }
    .into())
}

/// Puts the end into the queue when a signal arrives.
fn stop_on_signal(queue: SyncSender<Arrival>) -> Result<(), Failure> {
    let refused = |source| CommandError::ThreadRefused { purpose: "that waits for signals", source };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(refused)?;
    let wait = move || {
        signals.forever().next();
        let _ = queue.send(Arrival::Stop);
    };
    std::thread::Builder::new().spawn(wait).map_err(refused)?;
    Ok(())
}

/// Event in the body of a notification: a wrapped event in version 1.0, a task in version 0.3.
fn event_of(body: &Value) -> Option<AgentEvent> {
    let dialect = if body.get("kind").is_some() { Dialect::V03JsonRpc } else { Dialect::V1 };
    AgentEvent::read(body.clone(), dialect)
}
