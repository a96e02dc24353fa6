//! `sessile session show`.

use std::time::Duration;

use serde_json::{Value, json};
use sessile::duration::short;
use sessile::session::{EntryKind, Owner};
use sessile::text::shown;
use sessile::tool::{Held, held};

use super::conversations::{add_conversations, in_words};
use super::{describe, meant};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{Remote, ServerArgs};

/// Show a session, with what it holds of the tools' state and whether that differs from your own
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session show deploy" "sessile session show --output json"))]
pub struct Args {
    /// Its name, its id, or the beginning of its id; the current session if none is given
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(remote) = Remote::of(cx)? {
        let session = remote.meant(args.which.as_deref(), "showing")?;
        let mut json = remote.describe(&session, &remote.owner()?);
        json["settings"] = json!(session.settings);
        json["tools"] = json!([]);
        json["conversations"] = json!([]);
        json["state_values"] = json!(remote.values(&session)?.len());
        return shown_to(cx, &json, &[]);
    }
    let session = meant(cx, args.which.as_deref(), "showing")?;
    let (sessions, session) = cx.state.look_up_session(session.id.as_str())?;
    let mut json = describe(cx, &session);
    let settings = sessions.entries(&session, EntryKind::Setting)?;
    json["settings"] = settings.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    let held = if session.ended.is_none() { held(&session)? } else { Vec::new() };
    json["tools"] = json!(held);
    add_conversations(cx, std::slice::from_mut(&mut json))?;
    json["state_values"] = json!(sessions.entries(&session, EntryKind::State)?.len());
    shown_to(cx, &json, &held)
}

/// Prints a session, be it of this machine or of a server.
fn shown_to(cx: &Cx, json: &Value, held: &[Held]) -> Outcome {
    cx.out.result(json, || {
        let mut text = format!("{}\n", json["id"].as_str().unwrap_or_default());
        let mut line = |label: &str, value: &str| text.push_str(&format!("  {label:<9} {}\n", shown(value)));
        let cell = |key: &str| json[key].as_str().unwrap_or("-").to_owned();
        line("name", &cell("name"));
        line("state", &cell("state"));
        line("context", json["context"].as_str().unwrap_or("none, for its whole life"));
        let owner: Option<Owner> = serde_json::from_value(json["owner"].clone()).ok();
        line("owner", &owner.map_or_else(|| "-".to_owned(), |owner| owner.short()));
        line("started", &cell("started_at"));
        let limit = |key: &str| short(Duration::from_millis(json[key].as_u64().unwrap_or(0)));
        line("idle", &format!("{} of {}", limit("idle_ms"), limit("idle_limit_ms")));
        line("expires", &cell("expires_at"));
        for (key, value) in json["labels"].as_object().into_iter().flatten() {
            line("label", &format!("{key}={}", value.as_str().unwrap_or_default()));
        }
        for one in json["running"].as_array().into_iter().flatten() {
            line(
                "running",
                &format!("{} (pid {})", one["program"].as_str().unwrap_or("?"), one["process"]["pid"]),
            );
        }
        for one in in_words(json) {
            line("talks", &one);
        }
        for (key, value) in json["settings"].as_object().into_iter().flatten() {
            line("setting", &format!("{key} = {value}"));
        }
        for tool in held {
            let mut about = tool.bound.clone();
            about.extend(tool.shared.as_ref().map(|reason| format!("shared: {reason}")));
            about.extend(tool.copies.iter().map(|copy| {
                let state = match (copy.changed, copy.original_changed) {
                    (false, false) => "as the original",
                    (true, false) => "changed here",
                    (false, true) => "the original has changed since",
                    (true, true) => "changed here, and the original has changed since",
                };
                match copy.original.first() {
                    Some(original) => format!("{} ({state})", original.display()),
                    None => format!("{} (made here)", copy.copy.display()),
                }
            }));
            line("tool", &format!("{}: {}", tool.tool, about.join("; ")));
        }
        if json["ended_at"].is_string() {
            line("ended", &format!("{} ({})", cell("ended_at"), cell("end_reason")));
        }
        text
    })
}
