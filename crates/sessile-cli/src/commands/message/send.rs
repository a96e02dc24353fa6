//! `sessile message send`.

use super::compose::ComposeArgs;
use super::deliver::ReplyCollector;
use super::exchange::{deliver, require_features};
use super::{remote as remote_message, stream};
use crate::agent_session::ConversationLog;
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Send a message and print the reply
///
/// Waits until the agent replies, or until the task ends or requires input. Replies are untrusted: text output escapes
/// control characters, and JSON names the source.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile message send http://localhost:8738 \"hello\""
    "sessile message send --url http://localhost:8738 \"hello\" --new"
    "sessile message send research - --session work < question.txt"
    "sessile message send research summarise --file report.pdf --save-artifacts out"
    "sessile message send research \"yes\" --task-id 3f2a --output json"
))]
pub struct Args {
    #[command(flatten)]
    compose: ComposeArgs,

    /// Return at once with the task's id
    #[arg(long, visible_aliases = ["async", "return-immediately"], conflicts_with = "stream")]
    no_wait: bool,

    /// Wait until the task ends (default)
    #[arg(long, overrides_with = "no_wait", hide_short_help = true)]
    wait: bool,

    /// Print the reply as it arrives, like message stream
    #[arg(long)]
    stream: bool,
}

impl Args {
    pub(crate) fn server(&self) -> &ServerArgs {
        &self.compose.server
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let StateBackend::Remote(remote) = StateBackend::resolve(cx)? {
        return remote_message::run(&args.compose, cx, &remote, args.stream);
    }
    let compose = args.compose.with_payload(cx)?;
    if args.stream || compose.streams {
        return stream::run_local(&compose, cx, "message send");
    }
    let (named, words) = compose.agent(cx)?;
    compose.check(cx)?;
    let session = crate::agent_session::session(cx, "message send")?;
    let mut log = ConversationLog::open(&cx.state, session, &named.url, &compose.wanted(cx))?;
    let outgoing = compose.outgoing(cx, &words, &log)?;
    let connection = compose.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    require_features(&agent, &named.url, &outgoing)?;
    let mut collector = ReplyCollector::new(cx, &named.url, compose.save_artifacts.as_deref())
        .with_raw(compose.raw)
        .with_progress();
    let delivered =
        deliver(compose.limits(), &agent, &mut log, &mut collector, outgoing, |exchange, outgoing| {
            if args.no_wait { exchange.send_and_return(outgoing) } else { exchange.send(outgoing) }
        });
    collector.end_wait();
    delivered.map_err(|failure| failure.into_failure(cx, &named.url))?;
    collector.finish(log)
}
