//! `sessile shell`: a shell in a session.

use std::ffi::OsString;

use sessile::State;
use sessile::run::shell::startup;
use sessile::run::{IsolationArgs, RunRequest, RunSession, RunSessionArgs};
use sessile::settings::{Layer, Origin, Value};

use crate::child::Child;
use crate::cli::Cx;
use crate::commands::binding_args::BindingArgs;
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::isolation::{close, describe_run, preparation, variables};
use crate::picker;
use crate::remote::refuse_namesake;
use crate::watcher::{self, LifeLimit};

/// Open a shell in a session
///
/// --session attaches to a live session, or starts one of that name. Without --session the shell gets an ephemeral
/// session that is deleted when the shell exits. The prompt shows the session and its context. The session's variables
/// are set after your start-up files. If no context is selected, a terminal prompts for one. The exit status is that of
/// the shell, or 125 if Sessile fails.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile shell --session deploy --context staging"
    "sessile shell --bind kubectl.context=staging"
    "sessile shell --shell /usr/bin/zsh"
))]
pub struct Args {
    /// Open this shell; default: $SHELL, else the login shell of the account
    #[arg(long, value_name = "PROGRAM")]
    shell: Option<String>,

    #[command(flatten)]
    session: RunSessionArgs,

    #[command(flatten)]
    pub(crate) binding: BindingArgs,

    #[command(flatten)]
    isolation: IsolationArgs,
}

impl Args {
    /// Whether an ended session is started again.
    pub(crate) fn restarts_session(&self) -> bool {
        self.session.new
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    with_picked_context(args, cx).map_err(Failure::into_own)
}

/// Opens the shell. A person who named neither a session nor a context, and has none selected, chooses a context first.
fn with_picked_context(args: &Args, cx: &Cx) -> Outcome {
    let is_named = cx.state.args().session.is_some()
        || cx.state.enclosing_session().is_some()
        || cx.state.selected()?.is_some()
        || cx.state.session()?.is_some();
    let picked =
        if is_named { None } else { picker::context_or_none(cx, "Context of the shell:")?.flatten() };
    let Some(name) = picked else { return open(args, cx) };
    let origin = Origin::named(Layer::Flag, "choice");
    let call = cx.state.call().clone().with_override("context", Value::Text(name.to_string()), origin);
    open(args, &Cx { state: State::from(call), out: cx.out.clone() })
}

fn open(args: &Args, cx: &Cx) -> Outcome {
    let usual = cx.state.world().variable("SHELL").map(|shell| shell.to_string_lossy().into_owned());
    let account = || cx.state.world().account_shell().map(|shell| shell.to_string_lossy().into_owned());
    let program = args.shell.clone().or(usual).or_else(account).unwrap_or_else(|| "/bin/sh".to_owned());
    let words = [OsString::from(&program)];
    let request =
        RunRequest { operation: "shell", words: &words, session: &args.session, isolation: &args.isolation };
    refuse_namesake(cx)?;
    let run = RunSession::open(&cx.state, &request)?;
    describe_run(cx, &run);
    let outcome = open_in(cx, &run, &request, &program);
    close(cx, &run, &outcome);
    outcome
}

fn open_in(cx: &Cx, run: &RunSession<'_>, request: &RunRequest<'_>, program: &str) -> Outcome {
    let limit = LifeLimit::of(run, request.session)?;
    let stays = run.is_ephemeral() || limit.is_near();
    let watcher = if stays { None } else { limit.start_watcher() };
    let step = preparation(cx, run);
    let prepared = run.prepare(request)?;
    drop(step);
    let session = run.session();
    let label = if run.is_ephemeral() { "sessile" } else { session.label() };
    let mark = match &session.context {
        Some(context) => format!("{label}:{context}"),
        None => label.to_owned(),
    };
    let changes = &prepared.environment.changes;
    // Start-up files of the user may export the same variables; they are set again after those.
    let (words, more) = startup(run.state(), session.room().dir(), program, &mark, changes)?;
    let variables = variables(cx, &prepared)?;
    watcher::watch_approval(run)?;
    let mut command = prepared.into_command(&words, variables);
    for (name, value) in more {
        command = command.env(&name, value);
    }
    if !stays {
        watcher::detach(watcher);
        return Ok(command.exec().map(|never| match never {})?);
    }
    command.guard().check(false)?;
    let (command, presence) = command.into_parts();
    let ended = Child::from(command).run(limit.timeout(None));
    // What the shell left in the background ends with the session's life.
    if matches!(ended, Err(Failure::TimedOut { .. })) {
        sessile::session::end_others(session)?;
    }
    drop(presence);
    limit.explain(ended, None)
}
