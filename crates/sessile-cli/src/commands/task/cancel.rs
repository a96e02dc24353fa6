//! `sessile task cancel`.

use sessile_wire::a2a::{AgentEvent, AgentTask, RpcErrorKind, TaskState};

use super::get::remember;
use super::{TaskArgs, lines, resolve_task};
use crate::a2a::AgentClient;
use crate::agent_session::agent_error;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::view::TaskView;

/// Cancel a task
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task cancel" "sessile task cancel 3f2a --url http://localhost:8738"))]
pub struct Args {
    #[command(flatten)]
    target: TaskArgs,

    /// Print the agent's JSON unchanged, as the protocol has it
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, id) = resolve_task(cx, args.target.id(), args.target.reach.url.as_deref())?;
    let connection = args.target.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    let task = cancel_task(cx, &agent, &named.url, &id)?;
    if args.raw {
        return cx.out.protocol_json(&task.raw, false);
    }
    cx.changed(TaskView::new(&named.url, &task), || lines(&task))
}

/// Cancels a task, and stores and records that.
pub(crate) fn cancel_task(
    cx: &Cx,
    agent: &AgentClient<'_>,
    url: &str,
    id: &str,
) -> Result<AgentTask, Failure> {
    let task = agent.cancel(id).or_else(|error| match error.rpc_error_kind() {
        // A task that is canceled already is what was asked for.
        Some(RpcErrorKind::TaskNotCancelable | RpcErrorKind::TaskTerminal) => match agent.task(id, None) {
            Ok(task) if task.state == TaskState::Canceled => Ok(task),
            _ => Err(error),
        },
        _ => Err(error),
    });
    let task = task.map_err(|error| agent_error(url, Some(id), error))?;
    remember(cx, url, id, &AgentEvent::Task(task.clone()))?;
    sessile::history::record(&cx.state, "task cancel", id, "send the message again")?;
    Ok(task)
}
