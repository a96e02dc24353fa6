//! `sessile task list`.

use serde_json::{Value, json};
use sessile::conversation::TaskState;
use sessile::error::UsageError;
use sessile::text::{shown, shown_lines};
use sessile_wire::a2a::TaskFilter;

use crate::agent_session::{AgentArgs, agent_error, resolve_agent};
use crate::cli::Cx;
use crate::commands::message::artifact_text;
use crate::commands::page::WideArgs;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;
use crate::view::TaskView;

/// Most tasks of one call.
const MAX_TASKS: usize = 10_000;

/// List an agent's tasks
///
/// Not every agent supports this.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task list research" "sessile task list --url http://localhost:8738 --state working"))]
pub struct Args {
    /// The agent: its name or URL
    #[arg(value_name = "AGENT")]
    agent: Option<String>,

    /// List only tasks with this context_id
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,

    /// List only tasks in this state
    #[arg(long, visible_alias = "status", value_name = "STATE")]
    state: Option<String>,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Show all, page by page
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// Request this many tasks per page, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 50)]
    page_size: u32,

    /// Show this many messages of each task in JSON
    #[arg(short = 'n', long, value_name = "N")]
    history_length: Option<u32>,

    /// Show the artifacts of each task
    #[arg(long)]
    include_artifacts: bool,

    /// Continue after the previous page
    #[arg(long, value_name = "TOKEN")]
    cursor: Option<String>,

    /// Print the agent's JSON unchanged, as the protocol has it
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    reach: AgentArgs,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let text = args.agent.as_deref().or(args.reach.url.as_deref());
    let text = text.ok_or_else(|| UsageError::Arguments("specify the agent by name or URL".into()))?;
    let named = resolve_agent(cx, text)?;
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
    let connection = args.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    let limit = if args.all { MAX_TASKS } else { args.limit };
    let mut filter = TaskFilter {
        context_id: args.context_id.clone(),
        state,
        // The protocol allows pages of 1 to 100.
        page_size: Some(args.page_size.min(u32::try_from(limit).unwrap_or(100)).clamp(1, 100)),
        page_token: args.cursor.clone(),
        history_length: args.history_length,
        include_artifacts: args.include_artifacts,
    };
    let mut tasks = Vec::new();
    let next = loop {
        let page = agent.tasks(&filter).map_err(|error| agent_error(&named.url, None, error))?;
        let is_empty = page.tasks.is_empty();
        tasks.extend(page.tasks);
        match page.next_page_token {
            // A token that leads to itself, or to empty pages, would never end.
            Some(token) if tasks.len() < limit && !is_empty && Some(&token) != filter.page_token.as_ref() => {
                filter.page_token = Some(token);
            }
            next => break next,
        }
    };
    if args.raw {
        let raw: Vec<&Value> = tasks.iter().map(|task| &task.raw).collect();
        return cx.out.protocol_json(
            &json!({ "tasks": raw, "nextPageToken": next.as_deref().unwrap_or_default(), "pageSize": tasks.len() }),
            false,
        );
    }
    let view = |task| match args.history_length {
        Some(_) => TaskView::new(&named.url, task).with_history(task),
        None => TaskView::new(&named.url, task),
    };
    let found: Vec<TaskView<'_>> = tasks.iter().map(view).collect();
    cx.out.list(&found, || {
        if tasks.is_empty() {
            return "no tasks match\n".to_owned();
        }
        let mut table = Table::new(&["TASK", "STATE", "CONTEXT"]);
        for task in &tasks {
            let context = task.context_id.as_deref().unwrap_or("-");
            table.row(&[shown(&task.id), task.state.to_string(), shown(context)], None);
        }
        let mut text = table.render_fitted(&cx.out, args.wide.wide);
        if args.include_artifacts {
            for task in tasks.iter().filter(|task| !task.artifacts().is_empty()) {
                text.push_str(&format!("\ntask {}\n", shown(&task.id)));
                let artifacts: Vec<String> = task.artifacts().iter().map(artifact_text).collect();
                text.push_str(&format!("{}\n", shown_lines(artifacts.join("\n").trim_end())));
            }
        }
        text
    })?;
    if let Some(token) = next {
        let hint =
            format!("more tasks follow; pass --cursor {} or --all", sessile::text::shell_quoted(&token));
        cx.out.next_cursor(&token, &hint);
    }
    Ok(())
}
