//! `sessile run`: a command in a session, with state of its own.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::lock::{LockMode, LockName};
use sessile::run::{IsolationArgs, PreparedRun, RunRequest, RunSession, RunSessionArgs};
use sessile::secrets::has_url_password;
use sessile::secrets::looks_secret;
use sessile::session::{end_marked, end_others};
use sessile::text::{shortened, shown};
use sessile::tool::{Plan, Withheld};

use crate::child::Child;
use crate::cli::Cx;
use crate::commands::binding_args::BindingArgs;
use crate::commands::lock::run::TOKEN_VARIABLE;
use crate::commands::lock::{keep_there, run_kept};
use crate::error::{Failure, Outcome};
use crate::help::examples_and_precedence;
use crate::isolation::{close, variables};
use crate::local::holder;
use crate::output::{Table, Tone};
use crate::remote::{ServerArgs, ServiceClient, refuse_namesake};
use crate::watcher::{self, LifeLimit};

/// Widest value in the table of variables; JSON has all of it.
const WIDEST: usize = 120;

/// Run a command with state of its own: its kube context, cloud profile, account and so on are the session's
///
/// The tools' state is copied into the session's private room at its first use; variables lead every known tool there.
/// What the context binds is pinned at every run. Nothing is ever written back. A session of the given name is started
/// if there is none; without a session the command gets one for itself, which is gone afterwards. Inside a session it
/// joins that one.
///
/// The exit status is the command's own; 125 if it could not be prepared, 126 and 127 if it could not be started, 124
/// after --timeout, 128 and the signal's number if it was ended by one.
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile run --context staging -- claude"
    "sessile run --bind kubectl.context=staging --bind aws.profile=dev -- ./deploy.sh"
    "sessile run --session deploy --context staging -- kubectl get pods"
    "sessile run --session deploy --expect staging -- ./deploy.sh"
    "sessile run --dry-run --context staging -- aws s3 ls"
    "sessile run --isolate home --timeout 10m -- ./untidy-script"
))]
pub struct Args {
    #[command(flatten)]
    session: RunSessionArgs,

    #[command(flatten)]
    pub(crate) binding: BindingArgs,

    #[command(flatten)]
    isolation: IsolationArgs,

    /// Print what would be set, and why, and run nothing
    #[arg(long)]
    dry_run: bool,

    /// End the command after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Hold this lock while the command runs
    #[arg(long, value_name = "LOCK")]
    lock: Option<String>,

    /// Share the lock of --lock with other holders that share it
    #[arg(long, requires = "lock")]
    lock_shared: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// End what the command left running in the session when it has ended
    #[arg(long)]
    kill_stragglers: bool,

    /// Tell why it could not be run in this file instead of on standard error, which is the command's
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
    pub(crate) fn starts_anew(&self) -> bool {
        self.session.new
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let outcome = if args.dry_run { dry_run(args, cx) } else { execute(args, cx) };
    // Statuses below 125 are those of the command.
    outcome.map_err(Failure::into_own)
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
    let outcome = execute_in(args, cx, &run, &request, lock.as_ref());
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
    let stays = run.is_ephemeral() || lock.is_some() || is_marked;
    // It starts while the room is prepared.
    let watcher = if stays { None } else { limit.start_watcher() };
    let prepared = run.prepare(request)?;
    let variables = variables(cx, &prepared)?;
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
    let child = Child::from(command);
    let ended = match lock {
        None => {
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
    // A command whose time is up ends with everything that it has started.
    if args.kill_stragglers || matches!(ended, Err(Failure::TimedOut { .. })) {
        let killed = match is_marked {
            true => end_marked(run.session(), &format!("{RUN_VARIABLE}={mark}"))?,
            false => end_others(run.session())?,
        };
        cx.out.detail(&format!("ended {} process(es) that were left", killed.len()));
    }
    // After the stragglers: until then the session counts as busy, and no other process ends it.
    drop(presence);
    // What the command left in the background keeps the session busy, and nobody else sees its end.
    if !run.is_ephemeral() && run.session().room().is_busy() {
        watcher::detach(limit.start_watcher());
    }
    limit.explain(ended, args.timeout)
}

/// Prepares an ephemeral session like the real one, prints its plan, and removes it.
fn dry_run(args: &Args, cx: &Cx) -> Outcome {
    let target = cx.state.session()?.map(|current| current.session.room().dir().display().to_string());
    let target = target.unwrap_or_else(|| "ROOM".to_owned());
    let request = args.request();
    let run = RunSession::open_ephemeral(&cx.state, &request)?;
    let result = run
        .prepare(&request)
        .map_err(Failure::from)
        .and_then(|prepared| preview(args, cx, &prepared, &target));
    close(cx, &run, &result);
    result
}

/// Variable of a command, as a dry run shows it.
#[derive(Serialize)]
struct VariableView {
    name: String,
    /// Value; none if the variable is taken away.
    value: Option<String>,
    origin: String,
}

/// Copy that a room would hold.
#[derive(Serialize)]
struct CopyView {
    tool: String,
    from: Vec<PathBuf>,
    to: String,
}

/// Tool whose state stays shared.
#[derive(Serialize)]
struct SharedToolView {
    tool: String,
    reason: String,
}

/// Protected target that a room would not hold.
#[derive(Serialize)]
struct WithheldView<'a> {
    tool: &'a str,
    key: &'a str,
    name: &'a str,
    aliases: &'a [String],
    /// Guarded context that protects it.
    context: &'a str,
}

fn preview(args: &Args, cx: &Cx, prepared: &PreparedRun<'_>, target: &str) -> Outcome {
    let PreparedRun { plan, environment, .. } = prepared;
    let run = prepared.run();
    let room = run.session().room().dir().display().to_string();
    let (id, label) = (run.session().id.to_string(), target_label(cx));
    // A dry run has a room of its own, but shows the one that a real run would use.
    let moved = |text: &str| text.replace(&room, target).replace(&id, &label);
    let changes: Vec<_> = environment
        .changes
        .iter()
        // It only repeats the others, for commands that are run inside.
        .filter(|change| change.name != run.state().app().variable("ORIGINALS"))
        .map(|change| {
            let value = change.value.as_deref().map(moved);
            // What leads into the room is a path, whatever the variable is called.
            let hidden = value.as_deref().is_some_and(|value| {
                !value.starts_with(target) && looks_secret(&change.name) || has_url_password(value)
            });
            VariableView {
                name: change.name.clone(),
                value: if hidden { Some("********".to_owned()) } else { value },
                origin: moved(&change.origin),
            }
        })
        .collect();
    let bound = environment.credentials.iter().map(|bound| {
        let origin = format!("{}, credential {}", bound.origin, bound.credential);
        VariableView { name: bound.name.clone(), value: Some("********".to_owned()), origin }
    });
    let changes: Vec<_> = changes.into_iter().chain(bound).collect();
    let copied = Plan::copies(run.session().room().dir())?;
    let copies: Vec<_> = copied
        .iter()
        .flat_map(|(tool, seeds)| seeds.iter().map(move |seeded| (tool, seeded)))
        .filter(|(_, seeded)| !seeded.from.is_empty())
        .map(|(tool, seeded)| CopyView {
            tool: tool.clone(),
            from: seeded.from.clone(),
            to: moved(&seeded.to.display().to_string()),
        })
        .collect();
    let shared: Vec<_> = plan
        .tools
        .iter()
        .filter_map(|tool| {
            Some(SharedToolView { tool: tool.tool.clone(), reason: moved(tool.shared.as_ref()?) })
        })
        .collect();
    let withheld: Vec<_> = plan
        .withheld
        .iter()
        .flat_map(Withheld::targets)
        .map(|(tool, target)| WithheldView {
            tool,
            key: &target.key,
            name: &target.name,
            aliases: &target.aliases,
            context: &target.context,
        })
        .collect();
    let json = json!({
        "command": args.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "session": cx.state.session()?.map(|current| &current.session.id),
        "context": run.session().context,
        "room": target,
        "variables": changes,
        "copies": copies,
        "shared": shared,
        "withheld": withheld,
    });
    cx.out.result(&json, || {
        let mut table = Table::new(&["VARIABLE", "VALUE", "FROM"]);
        for change in &changes {
            let cell = |text: &str| shown(shortened(text, WIDEST));
            let value = change.value.as_deref();
            let tone = value.is_none().then_some(Tone::Faint);
            let cells = [cell(&change.name), cell(value.unwrap_or("(taken away)")), cell(&change.origin)];
            table.row(&cells, tone);
        }
        let mut text = table.render(&cx.out);
        for CopyView { from, to, .. } in &copies {
            let from: Vec<Cow<'_, str>> = from.iter().map(|path| path.to_string_lossy()).collect();
            text.push_str(&format!("copy {} to {}\n", shown(from.join(", ")), shown(to)));
        }
        for (tool, path) in plan.linked() {
            let what = format!("link {} of {tool}, which is too large to copy", path.display());
            text.push_str(&format!("{}\n", shown(what)));
        }
        for SharedToolView { tool, reason } in &shared {
            text.push_str(&format!("{} stays shared: {}\n", shown(tool), shown(reason)));
        }
        for WithheldView { tool, key, name, context, .. } in &withheld {
            let what = format!("withhold {tool} {key} {name}, protected by context {context}");
            text.push_str(&format!("{}\n", shown(what)));
        }
        text
    })
}

fn target_label(cx: &Cx) -> String {
    let current = cx.state.session().ok().flatten();
    current.map_or_else(|| "SESSION".to_owned(), |current| current.session.id.to_string())
}
