//! `sessile task watch`.

use std::time::Instant;

use super::{TaskArgs, meant};
use crate::agent_session::{ConversationLog, ConversationSelector, agent_error};
use crate::cli::Cx;
use crate::commands::message::{Exchange, ReplyCollector};
use crate::error::Outcome;
use crate::help::examples;

/// Follow a task until it ends or asks for something
///
/// It goes on where a stream broke off, also one of a process that was killed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task watch" "sessile task watch 3f2a --url http://localhost:8000 --output jsonl"))]
pub struct Args {
    #[command(flatten)]
    target: TaskArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, id) = meant(cx, args.target.task.as_deref(), args.target.reach.url.as_deref())?;
    let session = match cx.state.session()? {
        Some(_) => Some(cx.state.require_session("following a task in it")?),
        None => None,
    };
    let wanted = ConversationSelector { task_id: Some(id.clone()), ..ConversationSelector::default() };
    let mut log = ConversationLog::open(&cx.state, session, &named.url, &wanted)?;
    log.forget_unless_known();
    let deadline = args.target.reach.timeout().map(|timeout| Instant::now() + timeout);
    let connection = args.target.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    let mut collector = ReplyCollector::new(cx, &named.url, None).streaming();
    Exchange { agent: &agent, log: &mut log, collector: &mut collector, deadline }
        .follow_task(&id)
        .map_err(|error| agent_error(&named.url, Some(&id), error))?;
    collector.finish(log)
}
