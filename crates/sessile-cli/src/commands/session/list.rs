//! `sessile session list`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use sessile::args::parse_duration;
use sessile::duration::short;
use sessile::session::life::{Life, Moment};

use super::conversations::{add_conversations, in_words};
use super::describe;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::remote::{Remote, ServerArgs};

/// List sessions, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session list"
    "sessile session list --state all --label team=web --output json"
    "sessile session list --of-context staging --older-than 1h"
    "sessile session list --conversations --output json"
))]
pub struct Args {
    /// Which sessions: live, expired, ended or all
    #[arg(long, value_name = "STATE", default_value = "live", value_parser = ["live", "expired", "ended", "all"])]
    state: String,

    /// Only those pinned to this context
    #[arg(long, value_name = "CONTEXT")]
    of_context: Option<String>,

    /// Only those with this label
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,

    /// Only those started longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,

    /// Only those started not longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    newer_than: Option<Duration>,

    /// Tell of each with which agents it talks
    #[arg(long)]
    conversations: bool,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Go on after this one, the last id of the page before
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Rows read at a time while looking for those that fit.
const BATCH: usize = 500;

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(remote) = Remote::of(cx)? {
        return there(args, cx, &remote);
    }
    let sessions = cx.state.sessions_to_look_at()?;
    let only_live = args.state == "live" || args.state == "expired";
    let mut found: Vec<Value> = Vec::new();
    let mut cursor = args.cursor.clone();
    while found.len() < args.limit {
        let Some(sessions) = &sessions else { break };
        let batch = sessions.list(cursor.as_deref(), only_live, BATCH)?;
        for session in batch.iter().filter(|session| {
            let age = Moment::now(cx.state.world()).since(&session.started);
            args.fits(session.context.as_deref(), &session.labels, age)
        }) {
            let described = describe(cx, session);
            if (args.state == "all" || described["state"] == args.state.as_str()) && found.len() < args.limit
            {
                found.push(described);
            }
        }
        match batch.last() {
            Some(last) if batch.len() == BATCH => cursor = Some(last.id.to_string()),
            _ => break,
        }
    }
    if args.conversations {
        add_conversations(cx, &mut found)?;
    }
    let current = cx.state.session().ok().flatten().map(|current| current.session.id.to_string());
    cx.out.list(&found, || text(&found, args, cx, current.as_deref()))
}

/// The same on a server, which knows of no conversations.
fn there(args: &Args, cx: &Cx, remote: &Remote<'_>) -> Outcome {
    let owner = remote.owner()?;
    let now = cx.state.world().now().as_millisecond();
    let only_live = args.state == "live";
    let mut found: Vec<Value> = Vec::new();
    for session in remote.list(args.cursor.as_deref(), only_live)? {
        let mut described = remote.describe(&session, &owner);
        if (args.state == "all" || described["state"] == args.state.as_str())
            && args.fits(session.context.as_deref(), &session.labels, now.saturating_sub(session.started_ms))
            && found.len() < args.limit
        {
            if args.conversations {
                described["conversations"] = serde_json::json!([]);
            }
            found.push(described);
        }
    }
    // As it was named, be it by its name.
    let named = cx.state.args().session.as_deref();
    let is_named =
        |one: &&Value| named.is_some() && [one["id"].as_str(), one["name"].as_str()].contains(&named);
    let current = found.iter().find(is_named).and_then(|one| one["id"].as_str()).map(str::to_owned);
    cx.out.list(&found, || text(&found, args, cx, current.as_deref()))
}

impl Args {
    fn fits(&self, context: Option<&str>, labels: &BTreeMap<String, String>, age: i64) -> bool {
        let millis = |time: &Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let has = |pair: &String| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            labels.get(key).is_some_and(|found| value.is_empty() || found == value)
        };
        self.of_context.as_ref().is_none_or(|wanted| context == Some(wanted))
            && self.label.iter().all(has)
            && self.older_than.as_ref().is_none_or(|limit| age > millis(limit))
            && self.newer_than.as_ref().is_none_or(|limit| age <= millis(limit))
    }
}

fn text(found: &[Value], args: &Args, cx: &Cx, current: Option<&str>) -> String {
    if found.is_empty() {
        return "there are no such sessions\n".to_owned();
    }
    let mut columns = vec!["", "ID", "NAME", "STATE", "CONTEXT", "IDLE", "EXPIRES", "RUNNING", "OWNER"];
    columns.extend(args.conversations.then_some("CONVERSATIONS"));
    let mut table = Table::new(&columns);
    for session in found {
        let cell = |key: &str| session[key].as_str().unwrap_or("-").to_owned();
        let idle = Duration::from_millis(session["idle_ms"].as_u64().unwrap_or(0));
        let running: Vec<String> = session["running"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| format!("{}[{}]", one["program"].as_str().unwrap_or("?"), one["process"]["pid"]))
            .collect();
        let is_current = current.is_some() && current == session["id"].as_str();
        let owner = format!(
            "{}@{}{}",
            session["owner"]["user"].as_str().unwrap_or("?"),
            session["owner"]["host"].as_str().unwrap_or("?"),
            session["owner"]["agent"].as_str().map_or_else(String::new, |agent| format!(" ({agent})"))
        );
        let is_live = session["state"] == Life::Live.as_str();
        let mut cells = vec![
            if is_current { "*".to_owned() } else { String::new() },
            cell("id"),
            cell("name"),
            cell("state"),
            cell("context"),
            if is_live { short(idle) } else { "-".to_owned() },
            cell("expires_at"),
            if running.is_empty() { "-".to_owned() } else { running.join(" ") },
            owner,
        ];
        if args.conversations {
            let of_it = in_words(session);
            cells.push(if of_it.is_empty() { "-".to_owned() } else { of_it.join(", ") });
        }
        table.row(&cells, is_current.then_some(Tone::Strong));
    }
    table.render(&cx.out)
}
