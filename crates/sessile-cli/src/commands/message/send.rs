//! `sessile message send`.

use std::time::{Duration, Instant};

use sessile::text::shell_quoted;
use sessile_wire::a2a::{AgentEvent, RpcErrorKind};

use super::compose::{ComposeArgs, remembered};
use super::deliver::ReplyCollector;
use super::remote as remote_message;
use crate::agent_session::{ConversationLog, agent_error};
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::{Outcome, RequestError};
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

/// Poll interval of a task that an agent did not finish in a blocking call.
const PAUSE: Duration = Duration::from_millis(500);

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
    let mut memory = ConversationLog::open(&cx.state, session, &named.url, &args.compose.wanted())?;
    let mut outgoing = args.compose.outgoing(cx, &words, &memory)?;
    outgoing.is_blocking = !args.no_wait;
    let connection = args.compose.reach.connection(&cx.state, &named)?;
    let agent = connection.agent(cx)?;
    cx.out.progress(&format!("waiting for {}", named.url));
    // Before it is sent: what the agent has received must be in the log once it answers.
    memory.will_send(remembered(&outgoing));
    let begun = Instant::now();
    let reply = agent.send(&outgoing);
    cx.out.progress_over();
    let mut event = match reply {
        Ok(event) => event,
        Err(error) => {
            // The next message begins another task, and the user knows.
            let is_over = matches!(
                error.rpc_error_kind(),
                Some(RpcErrorKind::TaskNotFound | RpcErrorKind::TaskTerminal)
            );
            if let (true, Some(task)) = (is_over, &outgoing.task_id) {
                memory.close_task(task)?;
            }
            return Err(agent_error(&named.url, outgoing.task_id.as_deref(), error));
        }
    };
    let mut heard = ReplyCollector::new(cx, &named.url, args.compose.save_artifacts.as_deref());
    memory.record(&event)?;
    // Some agents answer at once, whatever they were asked.
    while let (false, AgentEvent::Task(task)) = (args.no_wait, &event) {
        if task.state.is_terminal()
            || task.state.waits()
            // A state of a newer protocol would be polled forever.
            || task.state == sessile::conversation::TaskState::Unknown
        {
            break;
        }
        if args.compose.reach.timeout().is_some_and(|limit| begun.elapsed() >= limit) {
            let url = shell_quoted(&named.url);
            cx.out.note(&format!(
                "the task goes on: sessile task watch {} --url {url}",
                shell_quoted(&task.id)
            ));
            return Err(RequestError::TimedOut { what: format!("the reply of {}", named.url) }.into());
        }
        std::thread::sleep(PAUSE);
        let id = task.id.clone();
        let now = agent.task(&id, outgoing.history_length);
        event = AgentEvent::Task(now.map_err(|error| agent_error(&named.url, Some(&id), error))?);
        memory.record(&event)?;
    }
    heard.take(&event);
    heard.finish(&memory, true)
}
