//! Conversations of this machine, with whether credentials for their agents exist.

use std::collections::BTreeMap;

use sessile::context::Context;
use sessile::conversation::{Conversation, Conversations};
use sessile::error::ConversationError;
use sessile::{Error, State};

use super::LocalBackend;
use crate::backend::MessageRange;
use crate::cli::Cx;
use crate::error::Failure;
use crate::view::{ConversationView, CredentialPresence};

/// Conversations as views. For programs each has whether a credential for its agent exists, in the context of its session, which
/// `context_of` knows by the id of the session; the vault is opened once for all of them.
pub(crate) fn conversation_views(
    cx: &Cx,
    conversations: Vec<Conversation>,
    context_of: impl Fn(&str) -> Option<String>,
) -> Vec<ConversationView> {
    let mut views: Vec<ConversationView> = conversations.into_iter().map(ConversationView::from).collect();
    // Only JSON shows it, and opening the vault may be slow or ask for a passphrase.
    if cx.out.is_text() || views.is_empty() {
        return views;
    }
    let known = cx.state.credential_availability();
    // By session and by name: many conversations are of one session, and many sessions of one context.
    let mut names: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut contexts: BTreeMap<String, Option<Context>> = BTreeMap::new();
    for view in &mut views {
        let name = names.entry(view.session.clone()).or_insert_with(|| context_of(&view.session)).clone();
        let context = name.and_then(|name| {
            contexts.entry(name.clone()).or_insert_with(|| context(&cx.state, &name)).as_ref()
        });
        view.has_credentials = Some(CredentialPresence(known.has(&view.agent_url, context)));
    }
    views
}

/// Context of a session; none if it was deleted or cannot be read.
fn context(state: &State, name: &str) -> Option<Context> {
    state.contexts().find(&name.parse().ok()?).ok().flatten()
}

/// Id of the session to list conversations of; none lists those of all sessions.
pub(crate) fn session_filter(state: &State, all: bool) -> Result<Option<String>, Error> {
    if all {
        return Ok(None);
    }
    Ok(state.session()?.map(|current| current.session.id.to_string()))
}

/// Conversation by its name or id, or the last one with the agent of this URL or name; without a text the last one of all.
pub(crate) fn find_conversation(
    state: &State,
    all: &Conversations,
    text: Option<&str>,
) -> Result<Conversation, Error> {
    let session = session_filter(state, false)?;
    let newest =
        |agent: Option<&str>| Ok::<_, Error>(all.list(session.as_deref(), agent)?.into_iter().next());
    let Some(text) = text else {
        return newest(None)?.ok_or_else(|| not_found("the last one"));
    };
    if text.contains("://") {
        return newest(Some(text))?.ok_or_else(|| not_found(text));
    }
    match all.find(text, session.as_deref()) {
        Ok(found) => Ok(found),
        Err(missing) => match state.agent(text) {
            // A conversation's own name comes first; an agent may have the same.
            Ok(agent) => newest(Some(&agent.url))?.ok_or(missing),
            Err(_) => Err(missing),
        },
    }
}

fn not_found(name: &str) -> Error {
    Error::Conversation(ConversationError::NotFound { name: name.to_owned(), near: None })
}

impl LocalBackend<'_> {
    pub(crate) fn list_conversations(
        &self,
        agent: Option<&str>,
        of_all_sessions: bool,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ConversationView>, Failure> {
        let session = session_filter(&self.cx.state, of_all_sessions)?;
        let all = match self.cx.state.conversations_to_look_at()? {
            Some(all) => all.list(session.as_deref(), agent)?,
            None => Vec::new(),
        };
        let after = match cursor {
            // An unknown cursor gives an empty page, and not the first one again.
            Some(cursor) => all.iter().position(|one| one.id == cursor).map_or(all.len(), |at| at + 1),
            None => 0,
        };
        Ok(self.with_credentials(all.into_iter().skip(after).take(limit).collect()))
    }

    pub(crate) fn conversation(
        &self,
        given: Option<&str>,
        range: MessageRange,
    ) -> Result<ConversationView, Failure> {
        let all = self.cx.state.conversations_to_look_at()?;
        let all = all.ok_or_else(|| not_found(given.unwrap_or_default()))?;
        let found = find_conversation(&self.cx.state, &all, given)?;
        let (from, count, has_credentials) = match range {
            MessageRange::Last(last) => {
                ((found.items - last + 1).max(1), usize::try_from(last).unwrap_or(0), true)
            }
            MessageRange::All => (1, usize::MAX, false),
        };
        let items = all.items(&found, from, count)?;
        let mut views = if has_credentials {
            self.with_credentials(vec![found])
        } else {
            vec![ConversationView::from(found)]
        };
        let mut view = views.pop().ok_or_else(|| not_found(given.unwrap_or_default()))?;
        view.messages = Some(items);
        Ok(view)
    }

    fn with_credentials(&self, conversations: Vec<Conversation>) -> Vec<ConversationView> {
        let is_looked_up = !self.cx.out.is_text() && !conversations.is_empty();
        let sessions = is_looked_up.then(|| self.cx.state.sessions_to_look_at().ok().flatten()).flatten();
        conversation_views(self.cx, conversations, |id| sessions.as_ref()?.get(id).ok()?.context)
    }
}
