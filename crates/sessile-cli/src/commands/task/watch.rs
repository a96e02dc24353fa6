//! `sessile task watch`.

use std::path::PathBuf;
use std::time::Duration;

use sessile::args::parse_duration;

use super::{TaskArgs, resolve_task};
use crate::agent_session::{ConversationLog, ConversationSelector, agent_error, check_dir};
use crate::cli::Cx;
use crate::commands::message::{DeliveryLimits, Exchange, ReplyCollector};
use crate::error::Outcome;
use crate::help::examples;

/// Follow a task until it ends or requires input
///
/// Resumes after a broken stream, or after the process was killed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task watch" "sessile task watch 3f2a --url http://localhost:8738 --output jsonl"))]
pub struct Args {
    #[command(flatten)]
    target: TaskArgs,

    /// Print the reply as it arrives (default)
    #[arg(long)]
    stream: bool,

    /// Save the task's artifacts as files in this directory
    #[arg(long, value_name = "DIR")]
    save_artifacts: Option<PathBuf>,

    /// Poll the task's state at this interval; default: 20ms to 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    poll_interval: Option<Duration>,

    /// Print the agent's JSON unchanged, as the protocol has it
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(dir) = &args.save_artifacts {
        check_dir(&cx.state.absolute(dir))?;
    }
    let (named, id) = resolve_task(cx, args.target.id(), args.target.reach.url.as_deref())?;
    let session = match cx.state.session()? {
        Some(_) => Some(cx.state.require_session("following a task in it")?),
        None => None,
    };
    let wanted = ConversationSelector { task_id: Some(id.clone()), ..ConversationSelector::default() };
    let mut log = ConversationLog::open(&cx.state, session, &named.url, &wanted)?;
    log.forget_unless_known();
    let connection = args.target.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    let dir = args.save_artifacts.as_deref();
    let mut collector = ReplyCollector::new(cx, &named.url, dir).streaming().with_raw(args.raw);
    let limits = DeliveryLimits { poll_interval: args.poll_interval, ..args.target.reach.delivery_limits() };
    Exchange::new(&agent, &mut log, &mut collector)
        .with_limits(limits)
        .follow_task(&id)
        .map_err(|error| agent_error(&named.url, Some(&id), error))?;
    collector.finish(log)
}
