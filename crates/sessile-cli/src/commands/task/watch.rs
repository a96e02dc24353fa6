//! `sessile task watch`.

use std::time::{Duration, Instant};

use sessile_wire::a2a::{AgentEvent, RpcErrorKind};

use super::meant;
use crate::agent_session::{AgentArgs, ConversationLog, ConversationSelector, agent_error};
use crate::cli::Cx;
use crate::commands::message::{ReplyCollector, follow, listen};
use crate::error::{Outcome, RequestError};
use crate::help::examples;

/// Follow a task until it ends or asks for something
///
/// It goes on where a stream broke off, also one of a process that was killed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task watch" "sessile task watch 3f2a --url http://localhost:8000 --output jsonl"))]
pub struct Args {
    /// The task; else that of the session's last conversation
    #[arg(value_name = "TASK")]
    task: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

/// Poll interval of an agent that does not stream.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, id) = meant(cx, args.task.as_deref(), args.reach.url.as_deref())?;
    let session = match cx.state.session()? {
        Some(_) => Some(cx.state.require_session("following a task in it")?),
        None => None,
    };
    let wanted = ConversationSelector { task_id: Some(id.clone()), ..ConversationSelector::default() };
    let mut memory = ConversationLog::open(&cx.state, session, &named.url, &wanted)?;
    // Following somebody else's task must not begin a conversation of this session.
    memory.forget_unless_known();
    let begun = Instant::now();
    let connection = args.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    let mut heard = ReplyCollector::new(cx, &named.url, None);
    if agent.card.streaming {
        let streamed = listen(cx, &mut memory, &mut heard, |on_event| agent.resubscribe(&id, on_event))?;
        match streamed {
            Ok(_) => {}
            // It has ended meanwhile, or cannot be followed: then it is looked at.
            Err(error)
                if matches!(
                    error.rpc_error_kind(),
                    Some(
                        RpcErrorKind::TaskTerminal
                            | RpcErrorKind::UnsupportedOperation
                            | RpcErrorKind::InvalidParams
                            | RpcErrorKind::MethodNotFound
                    )
                ) => {}
            Err(error) => return Err(agent_error(&named.url, Some(&id), error)),
        }
    }
    // A stream may end while the task goes on; then it is polled.
    if heard.state().is_some_and(|state| state.is_terminal() || state.waits()) {
        return heard.finish(&memory, false);
    }
    loop {
        let task = agent.task(&id, None).map_err(|error| agent_error(&named.url, Some(&id), error))?;
        let is_over = task.state.is_terminal() || task.state.waits();
        follow(cx, &mut memory, &mut heard, &AgentEvent::Task(task))?;
        if is_over {
            return heard.finish(&memory, false);
        }
        if args.reach.timeout().is_some_and(|limit| begun.elapsed() >= limit) {
            return Err(RequestError::TimedOut { what: format!("following task {id}") }.into());
        }
        std::thread::sleep(PAUSE);
    }
}
