//! `sessile message stream`.

use super::compose::ComposeArgs;
use super::deliver::ReplyCollector;
use super::exchange::{deliver, require_features};
use super::remote as remote_message;
use crate::agent_session::ConversationLog;
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::{AgentError, Outcome};
use crate::help::examples;
use crate::remote::ServerArgs;

/// Send a message and print the reply as it arrives
///
/// With --output jsonl every event is a line. If the stream breaks, the task continues; resume it with `task watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile message stream http://localhost:8738 \"tell me a story\""
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
    run_local(&args.compose.with_payload(cx)?, cx, "message stream")
}

/// Sends a message to an agent and prints the reply as it arrives.
pub(super) fn run_local(compose: &ComposeArgs, cx: &Cx, command: &str) -> Outcome {
    let (named, words) = compose.agent(cx)?;
    compose.check(cx)?;
    let session = crate::agent_session::session(cx, command)?;
    let mut log = ConversationLog::open(&cx.state, session, &named.url, &compose.wanted(cx))?;
    let outgoing = compose.outgoing(cx, &words, &log)?;
    let connection = compose.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    require_features(&agent, &named.url, &outgoing)?;
    if !agent.card.streaming {
        let reason = "the agent does not support streaming; use `message send`".to_owned();
        return Err(AgentError::Unusable { agent: named.url.clone(), reason }.into());
    }
    let dir = compose.save_artifacts.as_deref();
    let mut collector = ReplyCollector::new(cx, &named.url, dir).streaming().with_raw(compose.raw);
    let delivered =
        deliver(compose.limits(), &agent, &mut log, &mut collector, outgoing, |exchange, outgoing| {
            exchange.send(outgoing)
        });
    delivered.map_err(|failure| failure.into_failure(cx, &named.url))?;
    collector.finish(log)
}
