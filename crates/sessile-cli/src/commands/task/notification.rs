//! `sessile task notification`: push notifications about a task.

use serde_json::{Value, json};
use sessile::error::UsageError;
use sessile::secrets::looks_secret;
use sessile::text::shown;
use sessile_wire::a2a::{PushConfig, PushRegistration};

use super::resolve_task;
use crate::a2a::AgentClient;
use crate::agent_session::{AgentArgs, agent_error};
use crate::cli::Cx;
use crate::commands::message::secret_of;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Manage the push notifications of a task
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile task notification set 3f2a https://hooks.example/x --url research"
    "sessile task notification list 3f2a --url http://localhost:8738"
))]
pub enum Command {
    /// Notify a URL when a task changes
    #[command(visible_alias = "create")]
    Set(Lazy<NotificationSetArgs>),
    /// Show a task's push notification
    Get(Lazy<NotificationGetArgs>),
    /// List a task's push notifications
    #[command(visible_alias = "ls")]
    List(Lazy<NotificationListArgs>),
    /// Remove a task's push notification
    #[command(visible_aliases = ["delete", "rm"])]
    Remove(Lazy<NotificationRemoveArgs>),
}

/// Notify a URL when a task changes
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task notification set 3f2a https://hooks.example/x --url research"))]
pub struct NotificationSetArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,

    /// The URL that the agent notifies
    #[arg(value_name = "HOOK", required_unless_present = "webhook_url")]
    hook: Option<String>,

    /// Same as HOOK
    #[arg(long, value_name = "HOOK", conflicts_with = "hook")]
    webhook_url: Option<String>,

    /// Token that notifications carry; - reads standard input, @FILE a file
    #[arg(short = 't', long, value_name = "SOURCE")]
    token: Option<String>,

    /// Id of the notification; default: chosen by the agent
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

/// Show a task's push notification
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task notification get 3f2a 1 --url http://localhost:8738"))]
pub struct NotificationGetArgs {
    #[command(flatten)]
    notification: NotificationArgs,
}

/// Remove a task's push notification
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task notification remove 3f2a 1 --url http://localhost:8738"))]
pub struct NotificationRemoveArgs {
    #[command(flatten)]
    notification: NotificationArgs,
}

/// One push notification of a task.
#[derive(Debug, clap::Args)]
struct NotificationArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: String,

    /// Id of the notification; required if the task has several
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// Same as ID
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    config_id: Option<String>,

    #[command(flatten)]
    reach: AgentArgs,
}

/// List a task's push notifications
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile task notification list 3f2a --url http://localhost:8738"))]
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
            Command::Get(Lazy(args)) => get(&args.notification, cx),
            Command::List(Lazy(args)) => list(args, cx),
            Command::Remove(Lazy(args)) => remove(&args.notification, cx),
        }
    }
}

impl NotificationArgs {
    /// Id of the notification, by argument or flag; default: the task's only one.
    fn config(&self, url: &str, agent: &AgentClient<'_>, task: &str) -> Result<String, Failure> {
        if let Some(id) = self.id.as_ref().or(self.config_id.as_ref()) {
            return Ok(id.clone());
        }
        let all = agent.push_config_list(task).map_err(|error| agent_error(url, Some(task), error))?;
        match all.as_slice() {
            [PushRegistration { id: Some(id), .. }] => Ok(id.clone()),
            all => {
                let what = format!("the task has {} push notifications; pass the id of one", all.len());
                Err(UsageError::Arguments(what).into())
            }
        }
    }
}

fn described(task: &str, push: &PushRegistration) -> Value {
    json!({
        "source": "agent", "task_id": task, "id": push.id, "url": push.url,
        "has_token": has_secret(&push.raw), "raw": without_secrets(push.raw.clone()),
    })
}

/// Whether a registration holds a token or credentials.
fn has_secret(raw: &Value) -> bool {
    match raw {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let is_filled = value.as_str().is_some_and(|text| !text.is_empty());
            looks_secret(name) && is_filled || has_secret(value)
        }),
        _ => false,
    }
}

/// Registration without its token and credentials, which agents send back.
fn without_secrets(raw: Value) -> Value {
    match raw {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, value)| !(looks_secret(name) && value.is_string()));
            kept.map(|(name, value)| (name, without_secrets(value))).collect()
        }
        other => other,
    }
}

fn line(push: &PushRegistration) -> String {
    format!("{} {}\n", shown(push.id.as_deref().unwrap_or("-")), shown(&push.url))
}

fn set(args: &NotificationSetArgs, cx: &Cx) -> Outcome {
    let (named, task) = resolve_task(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(cx, &named)?;
    let token = args.token.as_deref().map(|source| secret_of(cx, "--token", source)).transpose()?;
    let url = args.hook.clone().or_else(|| args.webhook_url.clone()).unwrap_or_default();
    let config = PushConfig { id: args.id.clone(), url, token, ..PushConfig::default() };
    let push = connection.agent(cx)?.push_config_set(&task, &config);
    let push = push.map_err(|error| agent_error(&named.url, Some(&task), error))?;
    sessile::history::record(&cx.state, "task notification set", &task, "remove it by its id")?;
    cx.changed(described(&task, &push), || line(&push))
}

fn get(args: &NotificationArgs, cx: &Cx) -> Outcome {
    let (named, task) = resolve_task(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    let id = args.config(&named.url, &agent, &task)?;
    let push = agent.push_config_get(&task, &id);
    let push = push.map_err(|error| agent_error(&named.url, None, error))?;
    cx.out.result(&described(&task, &push), || line(&push))
}

fn list(args: &NotificationListArgs, cx: &Cx) -> Outcome {
    let (named, task) = resolve_task(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(cx, &named)?;
    let all = connection.agent(cx)?.push_config_list(&task);
    let all = all.map_err(|error| agent_error(&named.url, Some(&task), error))?;
    let json: Vec<Value> = all.iter().map(|push| described(&task, push)).collect();
    cx.out.list(&json, || all.iter().map(line).collect())
}

fn remove(args: &NotificationArgs, cx: &Cx) -> Outcome {
    let (named, task) = resolve_task(cx, Some(&args.task), args.reach.url.as_deref())?;
    let connection = args.reach.connection(cx, &named)?;
    let agent = connection.agent(cx)?;
    let id = args.config(&named.url, &agent, &task)?;
    let removed = agent.push_config_remove(&task, &id);
    removed.map_err(|error| agent_error(&named.url, Some(&task), error))?;
    sessile::history::record(&cx.state, "task notification remove", &task, "set it again")?;
    cx.changed(json!({ "task_id": task, "id": id }), || format!("removed notification {}\n", shown(&id)))
}
