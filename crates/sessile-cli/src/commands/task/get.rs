//! `sessile task get`.
use sessile_wire::a2a::AgentEvent;

use super::{lines, meant};
use crate::agent_session::{AgentArgs, ConversationLog, ConversationSelector, agent_error};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::view::TaskView;

/// Show a task as it is now
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task get" "sessile task get 3f2a --url http://localhost:8000 --output json"))]
pub struct Args {
    /// The task; else that of the session's last conversation
    #[arg(value_name = "TASK")]
    task: Option<String>,

    /// How many of the messages so far to show
    #[arg(long, value_name = "N")]
    history_length: Option<u32>,

    #[command(flatten)]
    reach: AgentArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, id) = meant(cx, args.task.as_deref(), args.reach.url.as_deref())?;
    let connection = args.reach.connection(&cx.state, &named)?;
    let task = connection.agent(cx)?.task(&id, args.history_length);
    let task = task.map_err(|error| agent_error(&named.url, Some(&id), error))?;
    remember(cx, &named.url, &id, &AgentEvent::Task(task.clone()))?;
    cx.out.result(&TaskView::new(&named.url, &task), || lines(&task))
}

/// Remembers how a task stands that a conversation of this session is about.
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
