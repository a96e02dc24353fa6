//! `sessile conversation show`.

use serde_json::{Value, json};
use sessile::Error;
use sessile::context::approval::time;
use sessile::conversation::Item;
use sessile::error::ConversationError;
use sessile::text::{shown, shown_lines};

use super::one;
use crate::agent_session::described_anywhere;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{Remote, ServerArgs};

/// Show a conversation and what was said in it
///
/// What the agent said is marked as from outside, and safe for terminals. As JSON, has_credentials tells whether the
/// vault or the session's context has a credential for the agent; null if the vault would have to ask somebody. With
/// --server, or the setting server, it is what was said in a session of the service, which is named instead.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile conversation show"
    "sessile conversation show research --last 5"
    "sessile conversation show https://agent.example --output json"
    "sessile conversation show work --server https://sessile.example"
))]
pub struct Args {
    /// Its name or id, or the agent whose last one it is; else the last one of all
    #[arg(value_name = "CONVERSATION")]
    which: Option<String>,

    /// Show only so many of the last things said
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: i64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(remote) = Remote::of(cx)? {
        let session = remote.meant(args.which.as_deref(), "showing")?;
        let items = remote.said(&session, args.last)?;
        let json = remote.conversation(&session, &items);
        return cx.out.result(&json, || {
            let mut text = line("id", &session.id);
            text.extend(session.name.as_deref().map(|name| line("name", name)));
            text.push_str(&line("server", remote.server.url()));
            text.push_str(&line("last used", &time(session.used_ms)));
            text.extend(items.iter().map(|item| lines(item, &said_there(&item.body))));
            text
        });
    }
    let missing = || {
        Error::Conversation(ConversationError::NotFound {
            name: args.which.clone().unwrap_or_default(),
            near: None,
        })
    };
    let all = cx.state.conversations_to_look_at()?.ok_or_else(missing)?;
    let found = one(&cx.state, &all, args.which.as_deref())?;
    let from = (found.items - args.last + 1).max(1);
    let items = all.items(&found, from, usize::try_from(args.last).unwrap_or(0))?;
    let mut json = described_anywhere(cx, std::slice::from_ref(&found)).pop().unwrap_or_default();
    json["messages"] = json!(items);
    cx.out.result(&json, || {
        let mut text = String::new();
        let mut line = |label: &str, value: &str| text.push_str(&line(label, value));
        line("id", &found.id);
        if let Some(name) = &found.name {
            line("name", name);
        }
        line("agent", &found.agent_url);
        line("session", &found.session);
        line("context", found.context_id.as_deref().unwrap_or("none yet"));
        if let Some(task) = &found.task_id {
            line("task", &format!("{task} ({})", found.task_state.map_or("unknown", |state| state.as_str())));
        }
        line("last used", &found.used_at);
        for item in &items {
            text.push_str(&said(item));
        }
        text
    })
}

fn line(label: &str, value: &str) -> String {
    format!("{label:<9} {}\n", shown(value))
}

/// What a message of a service says: such messages are whatever JSON they were sent as.
fn said_there(body: &Value) -> String {
    let said = [body, &body["content"]].into_iter().find_map(Value::as_str).map(str::to_owned);
    said.or_else(|| Some(texts(body).join("\n")).filter(|text| !text.is_empty()))
        .unwrap_or_else(|| body.to_string())
}

/// One thing that was said, for people.
fn said(item: &Item) -> String {
    let texts = texts(&item.body);
    let body = if texts.is_empty() { format!("({})", item.kind) } else { texts.join("\n") };
    lines(item, &body)
}

fn lines(item: &Item, body: &str) -> String {
    let body = shown_lines(body).replace('\n', "\n    ");
    format!("\n{} {} {}\n    {body}\n", item.number, item.source, item.at)
}

/// The texts in a message, a task, a status or an artifact, wherever they stand.
fn texts(body: &Value) -> Vec<String> {
    match body {
        Value::Object(members) => match members.get("text").and_then(|text| text.as_str()) {
            Some(text) => vec![text.to_owned()],
            // What was said before is an item of its own.
            None => members
                .iter()
                .filter(|(name, _)| *name != "history")
                .flat_map(|(_, value)| texts(value))
                .collect(),
        },
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
