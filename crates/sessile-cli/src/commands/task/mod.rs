//! `sessile task`: tasks of agents.

pub mod cancel;
pub mod download;
pub mod get;
pub mod list;
pub mod notification;
pub mod watch;

use sessile::agents::Agent;
use sessile::error::UsageError;
use sessile::text::{quoted, shown, shown_lines};
use sessile_wire::a2a::AgentTask;

use crate::agent_session::{AgentArgs, resolve_agent};
use crate::cli::Cx;
use crate::commands::message::{artifact_text, parts_text};
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy_command::{Lazy, LazyGroup};

pub(crate) use cancel::cancel_task;

/// Show, follow and cancel the tasks of agents
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile task get"
    "sessile task watch"
    "sessile task cancel 3f2a --url http://localhost:8738"
))]
pub enum Command {
    /// Show a task
    Get(Lazy<get::Args>),
    /// List an agent's tasks
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Cancel a task
    Cancel(Lazy<cancel::Args>),
    /// Follow a task until it ends or requires input
    #[command(visible_aliases = ["subscribe", "resubscribe"])]
    Watch(Lazy<watch::Args>),
    /// Save a task's artifacts as files
    Download(Lazy<download::Args>),
    /// Manage the push notifications of a task
    #[command(visible_alias = "push-config")]
    Notification(LazyGroup<notification::Command>),
}

/// A task, and how its agent is reached.
#[derive(Debug, clap::Args)]
struct TaskArgs {
    /// Id of the task; default: the task of the session's last conversation
    #[arg(value_name = "TASK")]
    task: Option<String>,

    /// Same as TASK
    #[arg(long = "task", value_name = "TASK", conflicts_with = "task")]
    task_id: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

impl TaskArgs {
    /// Id of the task, by argument or flag.
    fn id(&self) -> Option<&str> {
        self.task.as_deref().or(self.task_id.as_deref())
    }
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Get(Lazy(args)) => get::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Cancel(Lazy(args)) => cancel::run(args, cx),
            Command::Watch(Lazy(args)) => watch::run(args, cx),
            Command::Download(Lazy(args)) => download::run(args, cx),
            Command::Notification(LazyGroup(command)) => command.run(cx),
        }
    }
}

/// Task and its agent: from the arguments, else of the last conversation of this session.
pub(crate) fn resolve_task(
    cx: &Cx,
    task: Option<&str>,
    agent: Option<&str>,
) -> Result<(Agent, String), Failure> {
    let agent = agent.map(|text| resolve_agent(cx, text)).transpose()?;
    if let (Some(agent), Some(task)) = (&agent, task) {
        return Ok((agent.clone(), task.to_owned()));
    }
    let session = cx.state.session()?.map(|current| current.session.id.to_string());
    let all = match (cx.state.conversations_to_look_at()?, &session) {
        (Some(all), Some(session)) => {
            all.list(Some(session), agent.as_ref().map(|agent| agent.url.as_str()))?
        }
        _ => Vec::new(),
    };
    let found = all.into_iter().find(|one| match task {
        Some(task) => one.task_id.as_deref() == Some(task),
        None => one.task_id.is_some(),
    });
    match found {
        Some(one) => {
            let task = one.task_id.clone().unwrap_or_default();
            Ok((cx.state.agent(&one.agent_url)?, task))
        }
        None => {
            let text = match task {
                Some(task) => format!("task {} not found in this session; pass --url AGENT", quoted(task)),
                None => "the session has no task; pass TASK --url AGENT".to_owned(),
            };
            Err(UsageError::Arguments(text).into())
        }
    }
}

pub(crate) fn lines(task: &AgentTask) -> String {
    let mut text = format!("task      {}\nstate     {}\n", shown(&task.id), task.state);
    if let Some(context) = &task.context_id {
        text.push_str(&format!("context   {}\n", shown(context)));
    }
    // Some agents repeat what was said.
    let mut seen = std::collections::BTreeSet::new();
    for message in
        task.history().iter().filter(|one| one.message_id.is_none() || seen.insert(one.message_id.clone()))
    {
        let who = if message.is_user { "user" } else { "agent" };
        text.push_str(&format!("\n{who}: {}\n", shown_lines(&parts_text(&message.parts()))));
    }
    let artifacts = task.artifacts();
    for artifact in &artifacts {
        text.push_str(&format!("\n{}\n", shown_lines(artifact_text(artifact).trim_end())));
    }
    if let Some(message) = task.message()
        && (artifacts.is_empty() || message.text() != task.text())
    {
        let parts = parts_text(&message.parts());
        if !parts.is_empty() {
            text.push_str(&format!("\n{}\n", shown_lines(&parts)));
        }
    }
    text
}
