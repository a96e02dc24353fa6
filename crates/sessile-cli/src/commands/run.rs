//! `sessile run`: a command in a session, with state of its own.

mod preview;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sessile::args::parse_duration;
use sessile::error::{Error, FileError, UsageError};
use sessile::lock::{LockMode, LockName};
use sessile::run::{IsolationArgs, RunRequest, RunSession, RunSessionArgs};
use sessile::session::{OutputLog, end_marked, end_others};
use zeroize::Zeroizing;

use crate::child::{Child, orphans};
use crate::cli::Cx;
use crate::commands::binding_args::BindingArgs;
use crate::commands::command_hint::command_hint;
use crate::commands::lock::run::TOKEN_VARIABLE;
use crate::commands::lock::{keep_there, run_kept};
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::isolation::{close, describe_run, preparation, variables};
use crate::local::holder;
use crate::remote::{ServerArgs, ServiceClient, refuse_namesake};
use crate::watcher::{self, LifeLimit};

/// Run a command in a session with private copies of tool state
///
/// The first run copies the state of known tools (kube context, cloud profile, accounts) into the session's private
/// room, and sets variables that redirect the tools there. Every run pins the targets that the context binds. Nothing
/// is written back to your own files. --session starts the session if it does not exist. Without --session the command
/// joins the session that it is called in, or gets an ephemeral one that is deleted afterwards.
///
/// The exit status is that of the command, or 125 if Sessile fails, 126 if the command is not executable, 127 if it is
/// not found, 124 after --timeout, and 128 plus the number of the signal that killed it.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile run --context staging -- claude"
    "sessile run --bind kubectl.context=dev --bind aws.profile=dev -- ./deploy.sh"
    "sessile run --session deploy --context staging -- kubectl get pods"
    "sessile run --session deploy --expect staging -- ./deploy.sh"
    "sessile run --dry-run --context staging -- aws s3 ls"
    "sessile run --isolate home --timeout 10m -- ./untidy-script"
    "sessile run --session deploy --log -- ./deploy.sh"
))]
pub struct Args {
    #[command(flatten)]
    session: RunSessionArgs,

    #[command(flatten)]
    pub(crate) binding: BindingArgs,

    #[command(flatten)]
    isolation: IsolationArgs,

    /// Print context, targets and withheld targets, and run nothing
    #[arg(long)]
    dry_run: bool,

    /// With --dry-run: print the variables and copies too; -v prints long values in full
    #[arg(long = "variables", requires = "dry_run", hide_short_help = true)]
    shows_variables: bool,

    /// End the command after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Hold this lock while the command runs
    #[arg(long, value_name = "LOCK")]
    lock: Option<String>,

    /// Share the lock of --lock with other holders that share it
    #[arg(long, requires = "lock", hide_short_help = true)]
    lock_shared: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Keep a copy of the output in the session's room; show it with session log
    #[arg(long)]
    log: bool,

    /// Stop background processes of the command when it ends
    #[arg(long, hide_short_help = true)]
    kill_stragglers: bool,

    /// Write the error to this file, not to standard error, if the command cannot start
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) report: Option<PathBuf>,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "dry_run")]
    command: Vec<OsString>,
}

/// Variable that identifies the processes of one command.
pub(crate) const RUN_VARIABLE: &str = "SESSILE_RUN";

impl Args {
    fn request(&self) -> RunRequest<'_> {
        RunRequest {
            operation: "run",
            words: &self.command,
            session: &self.session,
            isolation: &self.isolation,
        }
    }

    /// Whether an ended session is started again.
    pub(crate) fn restarts_session(&self) -> bool {
        self.session.new
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let outcome = if args.dry_run { preview::dry_run(args, cx) } else { execute(args, cx) };
    // Statuses below 125 are those of the command.
    outcome.map_err(|failure| {
        let is_context = |name: &str| {
            cx.state.contexts().names().is_ok_and(|names| names.iter().any(|known| known.as_str() == name))
        };
        failure
            .into_own()
            .with_command_hint(cx.state.app(), || command_hint("run", &args.command, is_context))
    })
}

fn execute(args: &Args, cx: &Cx) -> Outcome {
    let lock: Option<LockName> = args.lock.as_deref().map(str::parse).transpose()?;
    if lock.is_none() && args.server.server.as_ref().is_some_and(|url| !url.is_empty()) {
        return Err(
            UsageError::Arguments("--server says where the lock is: it goes with --lock".into()).into()
        );
    }
    // A session of this machine would be started beside the server's of the same name.
    refuse_namesake(cx)?;
    let request = args.request();
    let run = RunSession::open(&cx.state, &request)?;
    describe_run(cx, &run);
    // The copy would be deleted with the room before anybody could read it.
    let outcome = if args.log && run.is_ephemeral() {
        Err(UsageError::Arguments(
            "--log requires a session that outlives the command: pass --session NAME".into(),
        )
        .into())
    } else {
        execute_in(args, cx, &run, &request, lock.as_ref())
    };
    close(cx, &run, &outcome);
    outcome
}

fn execute_in(
    args: &Args,
    cx: &Cx,
    run: &RunSession<'_>,
    request: &RunRequest<'_>,
    lock: Option<&LockName>,
) -> Outcome {
    let limit = LifeLimit::of(run, &args.session)?;
    let is_marked = args.kill_stragglers || args.timeout.is_some() || limit.is_near();
    // Otherwise this process becomes the command: signals and status need no forwarding.
    let stays = run.is_ephemeral() || lock.is_some() || is_marked || args.log;
    // It starts while the room is prepared.
    let watcher = if stays { None } else { limit.start_watcher() };
    let step = preparation(cx, run);
    let prepared = run.prepare(request)?;
    drop(step);
    let variables = variables(cx, &prepared)?;
    let secrets = if args.log { prepared.secrets(&variables) } else { Vec::new() };
    watcher::watch_approval(run)?;
    let mut command = prepared.into_command(&args.command, variables);
    // Others may be at work in the same session: what this command leaves is told by a mark of its own.
    let mark = format!("{}-{}", run.session().id, std::process::id());
    if is_marked {
        command = command.env(RUN_VARIABLE, mark.clone());
    }
    if !stays {
        watcher::detach(watcher);
        // Nothing stays in between; the record is the command's now, and its descriptor keeps the session busy.
        return Ok(command.exec().map(|never| match never {})?);
    }
    let (mode, timeout) = (LockMode::of(args.lock_shared), limit.timeout(args.timeout));
    let guard = command.guard();
    let (command, presence) = command.into_parts();
    let log = if args.log { Some(output_log(run, &args.command, &secrets)?) } else { None };
    let child = Child::from(command);
    let child = match &log {
        Some(log) => child.with_log(log),
        None => child,
    };
    let ended = match lock {
        None => {
            let child = if run.is_ephemeral() { child.adopting() } else { child };
            // Last thing before the start, because preparing may have taken long.
            guard.check(false)?;
            child.run(timeout)
        }
        Some(name) => match ServiceClient::of(cx, run.state())? {
            Some(server) => {
                let kept = keep_there(cx, run.state(), server, (name, mode), "run")?;
                run_kept(cx, child, timeout, kept, || guard.check(true))
            }
            None => {
                let mut locks = run.state().locks()?;
                let held = locks.hold(name, mode, &holder(run.state(), "run")?)?;
                let ended = guard.check(true).map_err(Failure::from).and_then(|()| {
                    child.env(TOKEN_VARIABLE, held.token.to_string()).inherit(held.descriptor()).run(timeout)
                });
                locks.leave(held)?;
                ended
            }
        },
    };
    if let Some(error) = log.and_then(|log| log.take_error()) {
        cx.out.note(&format!("the copy of the output is incomplete: {error}"));
    }
    // A command whose time is up ends with everything that it has started.
    if args.kill_stragglers || matches!(ended, Err(Failure::TimedOut { .. })) {
        let killed = match is_marked {
            true => end_marked(run.session(), &format!("{RUN_VARIABLE}={mark}"))?,
            false => end_others(run.session())?,
        };
        cx.out.detail(&format!("ended {} leftover process(es)", killed.len()));
    }
    // After the stragglers: until then the session counts as busy, and no other process ends it.
    drop(presence);
    if run.is_ephemeral() && !orphans::are_left() {
        run.note_deserted();
    }
    // What the command left in the background keeps the session busy, and nobody else sees its end.
    if !run.is_ephemeral() && run.session().room().is_busy() {
        watcher::detach(limit.start_watcher());
    }
    limit.explain(ended, args.timeout)
}

/// Starts the copy of the command's output.
fn output_log(
    run: &RunSession<'_>,
    words: &[OsString],
    secrets: &[Zeroizing<Vec<u8>>],
) -> Result<Arc<OutputLog>, Failure> {
    let room = run.session().room();
    let log =
        room.open_output_log(run.state().world(), words, secrets.iter().map(|secret| secret.as_slice()));
    let log = log.map_err(|error| {
        Error::File(FileError::Io { action: "write", path: room.dir().join("output"), source: error })
    })?;
    Ok(Arc::new(log))
}
