//! `sessile task list`.

use sessile::conversation::TaskState;
use sessile::error::UsageError;
use sessile::text::shown;
use sessile_wire::a2a::TaskFilter;

use crate::agent_session::{AgentArgs, agent_error};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::view::TaskView;

/// List an agent's tasks
///
/// As the agent tells; not every agent can.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task list research" "sessile task list --url http://localhost:8000 --state working"))]
pub struct Args {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    /// Only those of this conversation, by the agent's id of it
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,

    /// Only those in this state
    #[arg(long, value_name = "STATE")]
    state: Option<String>,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,

    /// Go on after the page before
    #[arg(long, value_name = "TOKEN")]
    cursor: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let text = args.agent.as_deref().or(args.reach.url.as_deref());
    let named = cx
        .state
        .agent(text.ok_or_else(|| UsageError::Arguments("say which agent: its name or URL".into()))?)?;
    let state = args.state.as_deref().map(TaskState::of);
    // Every word that is not a state becomes `Unknown`.
    if let (Some(TaskState::Unknown), Some(word)) = (state, &args.state)
        && word != "unknown"
    {
        return Err(UsageError::InvalidValue {
            place: "--state".into(),
            value: word.clone(),
            expected: "a state such as working, input-required, completed, failed or canceled".into(),
        }
        .into());
    }
    let connection = args.reach.connection(&cx.state, &named)?;
    let filter = TaskFilter {
        context_id: args.context_id.clone(),
        state,
        // The protocol allows pages of 1 to 100.
        page_size: Some(args.limit.clamp(1, 100)),
        page_token: args.cursor.clone(),
        ..TaskFilter::default()
    };
    let page = connection.agent(cx)?.tasks(&filter).map_err(|error| agent_error(&named.url, None, error))?;
    let found: Vec<TaskView<'_>> = page.tasks.iter().map(|task| TaskView::new(&named.url, task)).collect();
    cx.out.list(&found, || {
        if page.tasks.is_empty() {
            return "there are no such tasks\n".to_owned();
        }
        let mut table = Table::new(&["TASK", "STATE", "CONTEXT"]);
        for task in &page.tasks {
            let context = task.context_id.as_deref().unwrap_or("-");
            table.row(&[shown(&task.id), task.state.to_string(), shown(context)], None);
        }
        table.render(&cx.out)
    })?;
    if let Some(token) = &page.next_page_token {
        cx.out.note(&format!("there are more: --cursor {}", sessile::text::shell_quoted(token)));
    }
    Ok(())
}
