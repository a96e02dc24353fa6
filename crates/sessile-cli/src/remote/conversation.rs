//! Sessions of a service, shown like local conversations.

use sessile::clock::rfc3339;
use sessile::conversation::ConversationItem;
use sessile_wire::service::{ChatMessage, MessagePage, ServiceMessage, ServiceSession};

use super::client::ServiceRequest;
use super::error::Subject;
use super::session::Remote;
use crate::backend::MessageRange;
use crate::error::{Failure, RequestError};
use crate::view::{ConversationView, ServiceConversation};

/// Page size of messages.
const PAGE: i64 = 1000;

impl Remote<'_> {
    /// Session as a conversation, with its messages.
    pub(crate) fn conversation(
        &self,
        given: Option<&str>,
        range: MessageRange,
    ) -> Result<ConversationView, Failure> {
        let (purpose, last) = match range {
            MessageRange::Last(last) => ("showing", last),
            MessageRange::All => ("exporting", i64::MAX),
        };
        let session = self.resolve_session(given, purpose)?;
        let messages = self.said(&session, last)?;
        let mut view =
            ConversationView::from(ServiceConversation { session: &session, url: self.server.url() });
        view.messages = Some(messages);
        Ok(view)
    }

    /// Last messages of a session, oldest first.
    fn said(&self, session: &ServiceSession, last: i64) -> Result<Vec<ConversationItem>, Failure> {
        let about = Subject { session: session.label(), ..Subject::default() };
        let mut after = session.messages.saturating_sub(last.max(0)).max(0);
        let mut said = Vec::new();
        while after < session.messages {
            let request = ServiceRequest::get(&["v1", "sessions", &session.id, "messages"])
                .with("after", &after)
                // Not beyond the end that was read with the session: messages may be appended meanwhile.
                .with("limit", &(session.messages - after).min(PAGE));
            let MessagePage::<ServiceMessage> { messages, .. } = self.server.ask(&request, &about)?;
            // The session may have been rewound meanwhile.
            let Some(number) = messages.last().map(|message| message.number) else { break };
            if number <= after {
                return Err(RequestError::unreachable(self.server.url(), "invalid page cursor").into());
            }
            said.extend(messages.iter().map(item));
            after = number;
        }
        Ok(said)
    }
}

/// A message as an item of a conversation. Only messages with the role `user` are the user's own.
fn item(message: &ServiceMessage) -> ConversationItem {
    let (kind, source) = match ChatMessage::of_body(&message.body).is_of_user() {
        true => ("sent", "user"),
        false => ("message", "agent"),
    };
    ConversationItem {
        number: message.number,
        kind: kind.to_owned(),
        source,
        at: rfc3339(message.at_ms),
        body: sessile::json::from_str(message.body.get()).unwrap_or_default(),
    }
}
