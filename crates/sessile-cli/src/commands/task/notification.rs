//! `sessile task notification`: who is told when a task changes.

use serde_json::{Value, json};
use sessile::text::shown;
use sessile_wire::a2a::{PushConfig, PushRegistration};

use super::meant;
use crate::agent_session::{AgentArgs, agent_error};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Say who is told when a task changes
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile task notification set 3f2a https://hooks.example/x --url http://localhost:8000"
    "sessile task notification list 3f2a --url http://localhost:8000"
))]
pub enum Command {
    /// Have the agent tell a URL
    Set(Lazy<NotificationSetArgs>),
    /// Show one
    Get(Lazy<NotificationArgs>),
    /// List all
    List(Lazy<NotificationListArgs>),
    /// Have the agent tell it no more
    Remove(Lazy<NotificationArgs>),
}

/// Have the agent tell a URL when a task changes
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task notification set 3f2a https://hooks.example/x --url http://localhost:8000"))]
pub struct NotificationSetArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,

    /// The URL that is told
    #[arg(value_name = "HOOK")]
    hook: String,

    /// Its id; else the agent makes one
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

/// Look at one of those who are told when a task changes, or have it told no more
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile task notification get 3f2a 1 --url http://localhost:8000"
    "sessile task notification remove 3f2a 1 --url http://localhost:8000"
))]
pub struct NotificationArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,

    /// Its id
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    reach: AgentArgs,
}

/// List those who are told when a task changes
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task notification list 3f2a --url http://localhost:8000"))]
pub struct NotificationListArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,

    #[command(flatten)]
    reach: AgentArgs,
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Set(Lazy(args)) => set(args, cx),
            Command::Get(Lazy(args)) => get(args, cx),
            Command::List(Lazy(args)) => list(args, cx),
            Command::Remove(Lazy(args)) => remove(args, cx),
        }
    }
}

fn described(task: &str, push: &PushRegistration) -> Value {
    json!({ "source": "agent", "task_id": task, "id": push.id, "url": push.url, "raw": push.raw })
}

fn line(push: &PushRegistration) -> String {
    format!("{} {}\n", shown(push.id.as_deref().unwrap_or("-")), shown(&push.url))
}

fn set(args: &NotificationSetArgs, cx: &Cx) -> Outcome {
    let (named, task) = meant(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(&cx.state, &named)?;
    let config = PushConfig { id: args.id.clone(), url: args.hook.clone(), ..PushConfig::default() };
    let push = connection.agent(cx)?.push_config_set(&task, &config);
    let push = push.map_err(|error| agent_error(&named.url, Some(&task), error))?;
    sessile::history::record(&cx.state, "task notification set", &task, "remove it by its id")?;
    cx.changed(described(&task, &push), || line(&push))
}

fn get(args: &NotificationArgs, cx: &Cx) -> Outcome {
    let (named, task) = meant(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(&cx.state, &named)?;
    let push = connection.agent(cx)?.push_config_get(&task, &args.id);
    let push = push.map_err(|error| agent_error(&named.url, None, error))?;
    cx.out.result(&described(&task, &push), || line(&push))
}

fn list(args: &NotificationListArgs, cx: &Cx) -> Outcome {
    let (named, task) = meant(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(&cx.state, &named)?;
    let all = connection.agent(cx)?.push_config_list(&task);
    let all = all.map_err(|error| agent_error(&named.url, Some(&task), error))?;
    let json: Vec<Value> = all.iter().map(|push| described(&task, push)).collect();
    cx.out.list(&json, || all.iter().map(line).collect())
}

fn remove(args: &NotificationArgs, cx: &Cx) -> Outcome {
    let (named, task) = meant(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(&cx.state, &named)?;
    let removed = connection.agent(cx)?.push_config_remove(&task, &args.id);
    removed.map_err(|error| agent_error(&named.url, Some(&task), error))?;
    sessile::history::record(&cx.state, "task notification remove", &task, "set it again")?;
    cx.changed(json!({ "task_id": task, "id": args.id }), || "it is told no more\n".to_owned())
}
