//! `sessile message stream`.

use super::compose::ComposeArgs;
use super::deliver::ReplyCollector;
use super::exchange::deliver;
use super::remote as remote_message;
use crate::agent_session::ConversationLog;
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::{AgentError, Outcome};
use crate::help::examples;
use crate::remote::ServerArgs;

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
    let mut log = ConversationLog::open(&cx.state, session, &named.url, &args.compose.wanted())?;
    let outgoing = args.compose.outgoing(cx, &words, &log)?;
    let connection = args.compose.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    if !agent.card.streaming {
        let reason = "it does not stream: use `message send`".to_owned();
        return Err(AgentError::Unusable { agent: named.url.clone(), reason }.into());
    }
    let dir = args.compose.save_artifacts.as_deref();
    let mut collector = ReplyCollector::new(cx, &named.url, dir).streaming();
    let delivered =
        deliver(&args.compose, &agent, &mut log, &mut collector, outgoing, |exchange, outgoing| {
            exchange.send(outgoing)
        });
    delivered.map_err(|failure| failure.into_failure(cx, &named.url))?;
    collector.finish(log)
}
