//! With which agents sessions talk, told with the sessions.

use std::collections::BTreeMap;

use serde_json::Value;
use sessile::Error;
use sessile::conversation::Conversation;

use crate::agent_session::described;
use crate::cli::Cx;

/// What is told of a conversation with its session.
const MEMBERS: [&str; 7] =
    ["id", "name", "agent_url", "context_id", "task_id", "task_state", "has_credentials"];

/// Adds to sessions as JSON their conversations, the last used first. The store is read once, and so is the vault.
pub(super) fn add_conversations(cx: &Cx, sessions: &mut [Value]) -> Result<(), Error> {
    let id = |session: &Value| session["id"].as_str().unwrap_or_default().to_owned();
    let contexts: BTreeMap<String, Option<String>> =
        sessions.iter().map(|one| (id(one), one["context"].as_str().map(str::to_owned))).collect();
    let only = contexts.keys().next().filter(|_| contexts.len() == 1);
    let mut all: Vec<Conversation> = match cx.state.conversations_to_look_at()? {
        Some(all) if !contexts.is_empty() => all.list(only.map(String::as_str), None)?,
        _ => Vec::new(),
    };
    all.retain(|one| contexts.contains_key(&one.session));
    let told = described(cx, &all, |session| contexts.get(session).cloned().flatten());
    let mut by_session: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (one, json) in all.iter().zip(told) {
        let picked = MEMBERS.iter().map(|key| ((*key).to_owned(), json[*key].clone())).collect();
        by_session.entry(&one.session).or_default().push(Value::Object(picked));
    }
    for session in sessions {
        session["conversations"] = by_session.remove(id(session).as_str()).unwrap_or_default().into();
    }
    Ok(())
}

/// The conversations of a session as JSON, each in a few words.
pub(super) fn in_words(session: &Value) -> Vec<String> {
    let conversations = session["conversations"].as_array().into_iter().flatten();
    let words = conversations.map(|one| {
        let word = |key: &str| one[key].as_str();
        let name = word("name").map_or_else(String::new, |name| format!("{name} with "));
        let task = word("task_state").map_or_else(String::new, |state| format!(" ({state})"));
        format!("{name}{}{task}", word("agent_url").unwrap_or("?"))
    });
    words.collect()
}
