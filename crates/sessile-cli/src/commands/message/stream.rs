//! `sessile message stream`.

use std::ops::ControlFlow;

use sessile::Error;
use sessile_wire::a2a::{AgentEvent, RpcErrorKind};

use super::compose::{ComposeArgs, remembered};
use super::deliver::ReplyCollector;
use super::remote as remote_message;
use crate::a2a::{A2aError, StreamEnd};
use crate::agent_session::{ConversationLog, agent_error};
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::{AgentError, Outcome};
use crate::help::examples;
use crate::remote::ServerArgs;
use crate::view::EventView;

/// Send a message and print what the agent says as it comes
///
/// With --output jsonl every event is a line. If the stream breaks off, the task goes on, and `task watch` finds it.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile message stream http://localhost:8000 \"tell me a story\""
    "sessile message stream research \"go\" --output jsonl"
))]
pub struct Args {
    #[command(flatten)]
    compose: ComposeArgs,
}

impl Args {
    pub(crate) fn server(&self) -> &ServerArgs {
        &self.compose.server
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let StateBackend::Remote(remote) = StateBackend::resolve(cx)? {
        return remote_message::run(&args.compose, cx, &remote, true);
    }
    let (named, words) = args.compose.agent(cx)?;
    args.compose.check(cx)?;
    let session = crate::agent_session::session(cx, "message stream")?;
    let mut memory = ConversationLog::open(&cx.state, session, &named.url, &args.compose.wanted())?;
    let outgoing = args.compose.outgoing(cx, &words, &memory)?;
    let connection = args.compose.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    if !agent.card.streaming {
        let reason = "it does not stream: use `message send`".to_owned();
        return Err(AgentError::Unusable { agent: named.url.clone(), reason }.into());
    }
    memory.will_send(remembered(&outgoing));
    let mut heard = ReplyCollector::new(cx, &named.url, args.compose.save_artifacts.as_deref());
    let streamed = listen(cx, &mut memory, &mut heard, |on_event| agent.stream(&outgoing, on_event))?;
    if let Err(error) = streamed {
        let is_over =
            matches!(error.rpc_error_kind(), Some(RpcErrorKind::TaskNotFound | RpcErrorKind::TaskTerminal));
        if let (true, Some(task)) = (is_over, &outgoing.task_id) {
            memory.close_task(task)?;
        }
        if let Some(task) = memory.task_id.as_ref().filter(|_| !is_over) {
            let url = sessile::text::shell_quoted(&named.url);
            cx.out.note(&format!(
                "the task may go on: sessile task watch {} --url {url}",
                sessile::text::shell_quoted(task)
            ));
        }
        return Err(agent_error(&named.url, outgoing.task_id.as_deref(), error));
    }
    heard.finish(&memory, false)
}

/// Listens to a stream to its end. What cannot be remembered ends it at once.
pub(crate) fn listen(
    cx: &Cx,
    memory: &mut ConversationLog<'_>,
    heard: &mut ReplyCollector<'_>,
    stream: impl FnOnce(&mut dyn FnMut(AgentEvent) -> ControlFlow<()>) -> Result<StreamEnd, A2aError>,
) -> Result<Result<StreamEnd, A2aError>, Error> {
    let mut wrong = None;
    let ended = stream(&mut |event| match follow(cx, memory, heard, &event) {
        Ok(()) if event.is_final() => ControlFlow::Break(()),
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            // Carried out of the closure, because the stream knows only errors of the agent.
            wrong = Some(error);
            ControlFlow::Break(())
        }
    });
    wrong.map_or(Ok(ended), Err)
}

/// Takes in one event: remembered first, then shown.
pub(crate) fn follow(
    cx: &Cx,
    memory: &mut ConversationLog<'_>,
    heard: &mut ReplyCollector<'_>,
    event: &AgentEvent,
) -> Result<(), Error> {
    memory.record(event)?;
    let new = heard.take(event);
    // The pieces of one text belong together.
    let goes_on = matches!(event, AgentEvent::Artifact(artifact) if !artifact.is_last_chunk);
    if !new.is_empty() {
        if heard.is_line_open && !matches!(event, AgentEvent::Artifact(_)) {
            cx.out.end_line();
        }
        heard.is_line_open = goes_on && !new.ends_with('\n');
    }
    cx.out.event(&EventView::from(event), &new, goes_on);
    Ok(())
}
