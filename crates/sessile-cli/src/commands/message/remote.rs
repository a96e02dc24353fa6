//! Messages to a session of a service, whose upstream replies.

use serde_json::{Value, json};
use sessile::text::shown_lines;
use sessile_wire::service::ReplyDelta;

use super::compose::Compose;
use super::deliver::reply_json;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::remote::{Remote, SessionSpec, reply};

pub(super) fn run(compose: &Compose, cx: &Cx, remote: &Remote<'_>, streams: bool) -> Outcome {
    let server = &remote.server;
    let text = compose.text_for_server(cx, server.url())?;
    let mut is_new = false;
    let session = remote.require_or_start("talking in it", |name| {
        let (idle, max) = cx.state.session_lifetime(None, None)?;
        let context = cx.state.selected()?.map(|_| cx.state.contexts().require()).transpose()?;
        let context = context.map(|context| context.name.to_string());
        let labels = std::collections::BTreeMap::new();
        let new =
            SessionSpec { name: Some(name), context: context.as_deref(), labels, agent: None, idle, max };
        let started = remote.start(new)?;
        is_new = true;
        Ok(started)
    })?;
    remote.require_context_of(&session)?;
    let mut is_line_open = false;
    let mut on_piece = |piece: &str| {
        let raw = ReplyDelta { content: piece.to_owned() };
        let event = json!({
            "source": "agent",
            "event": "message",
            "context_id": null,
            "task_id": null,
            "state": null,
            "text": piece,
            "raw": raw,
        });
        is_line_open = !piece.ends_with('\n');
        cx.out.event(&event, piece, true);
    };
    if !streams {
        cx.out.progress(&format!("waiting for {}", server.url()));
    }
    let on_piece: Option<&mut dyn FnMut(&str)> = if streams { Some(&mut on_piece) } else { None };
    let replied = reply(server, &session, &text, compose.reach.timeout(), on_piece);
    cx.out.progress_over();
    if is_line_open {
        cx.out.event(&Value::Null, "\n", true);
    }
    let replied = replied.inspect_err(|failure| {
        if is_new {
            remote.end_unused(&session, failure);
        }
    })?;
    let json = reply_json(server.url(), &replied.text, Some(&json!(replied.message)));
    remote.changed(cx, &session, json, || match streams {
        true => String::new(),
        false => format!("{}\n", shown_lines(&replied.text)),
    })
}
