//! Conversations as JSON, with whether credentials for their agents exist.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sessile::State;
use sessile::context::Context;
use sessile::conversation::Conversation;

use crate::cli::Cx;

/// Conversations as JSON. For programs each says whether there are credentials for its agent, in the context of its
/// session, which `context_of` knows by the session's id; the vault is opened once for all of them. `null` says that
/// somebody would have to be asked.
pub(crate) fn described(
    cx: &Cx,
    conversations: &[Conversation],
    context_of: impl Fn(&str) -> Option<String>,
) -> Vec<Value> {
    let mut all: Vec<Value> = conversations.iter().map(|one| json!(one)).collect();
    if cx.out.is_text() || all.is_empty() {
        return all;
    }
    let known = cx.state.known_credentials();
    // By session and by name: many conversations are of one session, and many sessions of one context.
    let mut names: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut contexts: BTreeMap<String, Option<Context>> = BTreeMap::new();
    for (one, json) in conversations.iter().zip(&mut all) {
        let name = names.entry(&one.session).or_insert_with(|| context_of(&one.session)).clone();
        let context = name.and_then(|name| {
            contexts.entry(name.clone()).or_insert_with(|| context(&cx.state, &name)).as_ref()
        });
        json["has_credentials"] = json!(known.has(&one.agent_url, context));
    }
    all
}

/// The same, for those whose sessions nobody has looked at yet.
pub(crate) fn described_anywhere(cx: &Cx, conversations: &[Conversation]) -> Vec<Value> {
    let is_told = !cx.out.is_text() && !conversations.is_empty();
    let sessions = is_told.then(|| cx.state.sessions_to_look_at().ok().flatten()).flatten();
    described(cx, conversations, |id| sessions.as_ref()?.get(id).ok()?.context)
}

/// A context that may be gone, or not to be read.
fn context(state: &State, name: &str) -> Option<Context> {
    state.contexts().find(&name.parse().ok()?).ok().flatten()
}
