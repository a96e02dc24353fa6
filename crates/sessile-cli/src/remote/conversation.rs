//! What was said in a session of a service, as a conversation of this machine is shown.

use serde_json::{Value, json};
use sessile::Error;
use sessile::context::approval::time;

use super::server::Request;
use super::session::{Remote, RemoteSession};
use super::trouble::Subject;
use crate::error::Failure;

/// How many messages are asked for at once.
const PAGE: i64 = 1000;

impl Remote<'_> {
    /// The session with the last things that were said in it, oldest first.
    pub(crate) fn conversation(&self, session: &RemoteSession, last: i64) -> Result<Value, Failure> {
        Ok(json!({
            "id": session.id,
            "name": session.name,
            "session": session.id,
            "agent_url": self.server.url(),
            "context_id": null,
            "task_id": null,
            "task_state": null,
            "started_at": time(session.started_ms),
            "used_at": time(session.used_ms),
            "items": session.messages,
            "has_credentials": true,
            "messages": self.messages(session, last)?,
        }))
    }

    fn messages(&self, session: &RemoteSession, last: i64) -> Result<Vec<Value>, Failure> {
        let about = Subject { session: session.label(), ..Subject::default() };
        let mut after = session.messages.saturating_sub(last.max(0)).max(0);
        let mut said = Vec::new();
        while after < session.messages {
            let request = Request::get(&["v1", "sessions", &session.id, "messages"])
                .with("after", &after)
                .with("limit", &(session.messages - after).min(PAGE));
            let page = self.server.ask(&request, &about)?;
            let messages = page["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
            // It may have been rewound meanwhile.
            let Some(number) = messages.last().and_then(|message| message["number"].as_i64()) else { break };
            if number <= after {
                let (what, reason) = (self.server.url().to_owned(), "its pages do not go on".to_owned());
                return Err(Error::Unreachable { what, reason }.into());
            }
            said.extend(messages.iter().map(item));
            after = number;
        }
        Ok(said)
    }
}

/// A message as an item of a conversation. What is not said to be somebody's own is from outside.
fn item(message: &Value) -> Value {
    let source = if message["body"]["role"] == "user" { "user" } else { "agent" };
    json!({
        "number": message["number"],
        "kind": if source == "user" { "sent" } else { "message" },
        "source": source,
        "at": message["at_ms"].as_i64().map(time),
        "body": message["body"],
    })
}
