//! `sessile task get`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::text::shown;
use sessile_wire::a2a::{AgentEvent, AgentTask};
use sessile_wire::backoff::Backoff;

use super::{TaskArgs, lines, resolve_task};
use crate::a2a::A2aError;
use crate::agent_session::{ConversationLog, ConversationSelector, agent_error, save_artifact, save_parts};
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::view::TaskView;

/// Show a task
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile task get"
    "sessile task get 3f2a --url http://localhost:8738 --output json"
    "sessile task get 3f2a --url research --wait --save-artifacts out"
))]
pub struct Args {
    #[command(flatten)]
    target: TaskArgs,

    /// Show this many of the last messages
    #[arg(short = 'n', long, visible_alias = "history", value_name = "N")]
    history_length: Option<u32>,

    /// Save the task's artifacts as files in this directory
    #[arg(long, value_name = "DIR")]
    save_artifacts: Option<PathBuf>,

    /// Take id and historyLength from this JSON
    #[arg(long, value_name = "JSON", conflicts_with_all = ["task", "task_id"])]
    params: Option<String>,

    /// Wait until the task ends or requires input
    #[arg(long, visible_alias = "watch")]
    wait: bool,

    /// Poll at this interval while waiting; default: 20ms to 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "wait")]
    poll_interval: Option<Duration>,

    /// Print the agent's JSON unchanged, as the protocol has it
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (params_id, params_length) = args.params.as_deref().map_or(Ok((None, None)), parse_params)?;
    let reach = &args.target.reach;
    let (named, id) = resolve_task(cx, params_id.as_deref().or(args.target.id()), reach.url.as_deref())?;
    let connection = reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    let failed = |error| agent_error(&named.url, Some(&id), error);
    let history_length = args.history_length.or(params_length);
    let deadline = reach.timeout().map(|timeout| Instant::now() + timeout);
    let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
    let task = loop {
        let task = agent.task(&id, history_length).map_err(failed)?;
        if let Some(state) = task.undefined_state() {
            return Err(failed(A2aError::UndefinedState { state: state.to_owned() }));
        }
        if !args.wait || task.state.is_terminal() || task.state.waits() {
            break task;
        }
        let pause = args.poll_interval.unwrap_or_else(|| backoff.next_delay());
        if deadline.is_some_and(|deadline| Instant::now() + pause > deadline) {
            return Err(failed(A2aError::TimedOut { url: named.url.clone() }));
        }
        std::thread::sleep(pause);
    };
    remember(cx, &named.url, &id, &AgentEvent::Task(task.clone()))?;
    let saved = args.save_artifacts.as_deref().map_or(Ok(Vec::new()), |dir| save(cx, dir, &task))?;
    if args.raw {
        return cx.out.protocol_json(&task.raw, false);
    }
    let mut view = TaskView::new(&named.url, &task);
    view.saved = saved;
    if history_length.is_some() {
        view = view.with_history(&task);
    }
    cx.out.result(&view, || {
        let saved = view.saved.iter().map(|path| format!("saved {}\n", shown(path)));
        lines(&task) + &saved.collect::<String>()
    })
}

/// Saves the artifacts of a task as files and returns their paths.
pub(super) fn save(cx: &Cx, dir: &Path, task: &AgentTask) -> Result<Vec<String>, Failure> {
    let dir = cx.state.absolute(dir);
    let mut saved = Vec::new();
    for artifact in task.artifacts() {
        saved.extend(save_artifact(&dir, &artifact)?);
    }
    let files = task.message().into_iter().flat_map(|message| message.parts());
    saved.extend(save_parts(&dir, "message", files.filter(|part| !part.is_text()).collect())?);
    Ok(saved.iter().map(|path| path.to_string_lossy().into_owned()).collect())
}

/// Id and history length of `--params`.
fn parse_params(text: &str) -> Result<(Option<String>, Option<u32>), Failure> {
    let invalid = || UsageError::InvalidValue {
        place: "--params".into(),
        value: sessile::text::shortened(text, 60),
        expected: "JSON such as {\"id\": \"3f2a\", \"historyLength\": 5}".into(),
    };
    let params: Value = sessile::json::from_str(text).map_err(|_| invalid())?;
    let fields = params.as_object().ok_or_else(invalid)?;
    let (mut id, mut length) = (None, None);
    for (key, value) in fields {
        match key.as_str() {
            "id" | "task_id" => id = Some(value.as_str().ok_or_else(invalid)?.to_owned()),
            "historyLength" | "history_length" => {
                length = Some(value.as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(invalid)?);
            }
            _ => return Err(invalid().into()),
        }
    }
    Ok((id, length))
}

/// Stores the state of a task in the session's conversation.
pub(super) fn remember(cx: &Cx, agent: &str, task: &str, event: &AgentEvent) -> Outcome {
    if cx.state.session()?.is_none() {
        return Ok(());
    }
    let session = cx.state.require_session("remembering a task in it")?;
    let wanted = ConversationSelector { task_id: Some(task.to_owned()), ..ConversationSelector::default() };
    let mut log = ConversationLog::open(&cx.state, Some(session), agent, &wanted)?;
    if log.conversation().is_some() {
        log.record(event);
    }
    log.into_saved()
}
