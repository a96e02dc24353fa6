//! `sessile message send`.

use super::compose::ComposeArgs;
use super::deliver::ReplyCollector;
use super::exchange::deliver;
use super::remote as remote_message;
use crate::agent_session::ConversationLog;
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Send a message and print the reply
///
/// It waits until the agent has replied, or the task has ended or asks for something. What the agent said is from
/// outside: it is made safe for terminals, and marked in JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile message send http://localhost:8000 \"hello\""
    "sessile message send --url http://localhost:8000 \"hello\" --new"
    "sessile message send research - --session work < question.txt"
    "sessile message send research \"summarise\" --file report.pdf --save-artifacts out"
    "sessile message send research \"yes\" --task-id 3f2a --output json"
))]
pub struct Args {
    #[command(flatten)]
    compose: ComposeArgs,

    /// Do not wait for the end of the task
    #[arg(long)]
    no_wait: bool,
}

impl Args {
    pub(crate) fn server(&self) -> &ServerArgs {
        &self.compose.server
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let StateBackend::Remote(remote) = StateBackend::resolve(cx)? {
        return remote_message::run(&args.compose, cx, &remote, false);
    }
    let (named, words) = args.compose.agent(cx)?;
    args.compose.check(cx)?;
    let session = crate::agent_session::session(cx, "message send")?;
    let mut log = ConversationLog::open(&cx.state, session, &named.url, &args.compose.wanted())?;
    let outgoing = args.compose.outgoing(cx, &words, &log)?;
    let connection = args.compose.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    cx.out.progress(&format!("waiting for {}", named.url));
    let mut collector = ReplyCollector::new(cx, &named.url, args.compose.save_artifacts.as_deref());
    let delivered =
        deliver(&args.compose, &agent, &mut log, &mut collector, outgoing, |exchange, outgoing| {
            if args.no_wait { exchange.send_and_return(outgoing) } else { exchange.send(outgoing) }
        });
    cx.out.progress_over();
    delivered.map_err(|failure| failure.into_failure(cx, &named.url))?;
    collector.finish(log)
}
