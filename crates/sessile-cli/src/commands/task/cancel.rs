//! `sessile task cancel`.

use sessile_wire::a2a::{AgentEvent, RpcErrorKind, TaskState};

use super::get::remember;
use super::{TaskArgs, lines, meant};
use crate::agent_session::agent_error;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::view::TaskView;

/// Call a task off
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task cancel" "sessile task cancel 3f2a --url http://localhost:8000"))]
pub struct Args {
    #[command(flatten)]
    target: TaskArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, id) = meant(cx, args.target.task.as_deref(), args.target.reach.url.as_deref())?;
    let connection = args.target.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    let task = agent.cancel(&id).or_else(|error| match error.rpc_error_kind() {
        // A task that is canceled already is what was asked for.
        Some(RpcErrorKind::TaskNotCancelable | RpcErrorKind::TaskTerminal) => match agent.task(&id, None) {
            Ok(task) if task.state == TaskState::Canceled => Ok(task),
            _ => Err(error),
        },
        _ => Err(error),
    });
    let task = task.map_err(|error| agent_error(&named.url, Some(&id), error))?;
    remember(cx, &named.url, &id, &AgentEvent::Task(task.clone()))?;
    sessile::history::record(&cx.state, "task cancel", &id, "send the message again")?;
    cx.changed(TaskView::new(&named.url, &task), || lines(&task))
}
