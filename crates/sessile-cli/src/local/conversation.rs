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
use crate::view::{ConversationView, CredentialPresence, FoundMessage, texts};

/// Conversations as views. For programs each has whether a credential for its agent exists, in the context it was held in; the
/// vault is opened once for all of them.
pub(crate) fn conversation_views(cx: &Cx, conversations: Vec<Conversation>) -> Vec<ConversationView> {
    let mut views: Vec<ConversationView> = conversations.into_iter().map(ConversationView::from).collect();
    // Only JSON shows it, and opening the vault may be slow or ask for a passphrase.
    if cx.out.is_text() || views.is_empty() {
        return views;
    }
    let known = cx.state.credential_availability();
    let mut contexts: BTreeMap<String, Option<Context>> = BTreeMap::new();
    for view in &mut views {
        let context = view.context.clone().and_then(|name| {
            contexts.entry(name.clone()).or_insert_with(|| context(&cx.state, &name)).as_ref()
        });
        view.has_credentials = Some(CredentialPresence(known.has(&view.agent_url, context)));
    }
    views
}

/// Context of a conversation; none if it was deleted or cannot be read.
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
        return newest(None)?.ok_or_else(|| ConversationError::NoneFound.into());
    };
    if text.contains("://") {
        return newest(Some(text))?.ok_or_else(|| not_found(text));
    }
    let missing = match all.find(text, session.as_deref()) {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    // An id means one conversation in whatever session, a name one of this session.
    if let Some(found) = all.find_by_id(text)? {
        return Ok(found);
    }
    match state.agent(text) {
        // A conversation's own name comes first; an agent may have the same.
        Ok(agent) => newest(Some(&agent.url))?.ok_or(missing),
        Err(_) => Err(missing),
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

    /// Number of conversations of the session's context that other sessions had; 0 outside a session.
    pub(crate) fn count_of_other_sessions(&self, agent: Option<&str>) -> Result<usize, Failure> {
        let Some(current) = self.cx.state.session()? else { return Ok(0) };
        let Some(all) = self.cx.state.conversations_to_look_at()? else { return Ok(0) };
        let is_other = |one: &Conversation| {
            one.context == current.session.context && one.session != current.session.id.as_str()
        };
        Ok(all.list(None, agent)?.iter().filter(|one| is_other(one)).count())
    }

    /// Messages that contain a text, in whatever case, of the last used conversations first.
    pub(crate) fn search_conversations(
        &self,
        text: &str,
        of_all_sessions: bool,
        limit: usize,
    ) -> Result<Vec<FoundMessage>, Failure> {
        let session = session_filter(&self.cx.state, of_all_sessions)?;
        let Some(all) = self.cx.state.conversations_to_look_at()? else { return Ok(Vec::new()) };
        let wanted = text.to_lowercase();
        let mut found = Vec::new();
        for conversation in all.list(session.as_deref(), None)? {
            for item in all.items(&conversation, 1, usize::MAX)? {
                let said = texts(&item.body).join("\n");
                if said.to_lowercase().contains(&wanted) {
                    found.push(FoundMessage::new(&conversation, item, said));
                }
                if found.len() == limit {
                    return Ok(found);
                }
            }
        }
        Ok(found)
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
        conversation_views(self.cx, conversations)
    }
}
