//! Rules of messages: appending them, inside and outside of turns, and rewinding.

use serde_json::json;

use super::decision::{ChangeResult, Decider};
use super::snapshot::LoadedSession;
use super::write::{EventKind, Write};
use crate::change::{ChangeOutcome, Refusal, check_number};
use crate::ids::{FencingToken, turn_token};
use crate::json_text::JsonText;
use crate::model::AgentConversation;

impl<'c> Decider<'c> {
    pub(super) fn append(&mut self, bodies: &'c [JsonText], if_last: Option<i64>) -> ChangeResult {
        let record = self.live_session()?;
        self.queue.check_free()?;
        let last = record.session.messages;
        if if_last.is_some_and(|expected| expected != last) {
            return Err(Refusal::Changed { revision: last });
        }
        Ok(self.insert_messages(record, None, bodies))
    }

    pub(super) fn commit_turn(
        &mut self,
        token: FencingToken,
        bodies: &'c [JsonText],
        conversation: Option<&'c AgentConversation>,
    ) -> ChangeResult {
        let record = self.live_session()?;
        // Checks the token in the transaction that writes: a late holder is refused here.
        self.queue.release(token)?;
        let session = record.session.id.clone();
        let done = self.insert_messages(record, Some(token), bodies);
        let conversation =
            conversation.map(|conversation| Write::InsertConversation { session, conversation });
        self.writes.extend(conversation);
        Ok(done)
    }

    pub(super) fn rewind(&mut self, to: i64) -> ChangeResult {
        let mut record = self.live_session()?;
        self.queue.check_free()?;
        let last = record.session.messages;
        let to = check_number(to, last)?;
        let session = || record.session.id.clone();
        self.writes.push(Write::DeleteConversation { session: session() });
        self.writes.push(Write::DeleteMessagesAfter { session: session(), after: to, last });
        record.session.messages = to;
        self.record_event(&mut record, EventKind::MessagesRewound, json!({ "to": to }));
        self.session = Some(record);
        Ok(ChangeOutcome::Rewound { removed: last - to })
    }

    /// Appends messages. The agent does not know them, so its conversation is deleted.
    fn insert_messages(
        &mut self,
        mut record: LoadedSession,
        token: Option<FencingToken>,
        bodies: &'c [JsonText],
    ) -> ChangeOutcome {
        let session = record.session.id.clone();
        self.writes.push(Write::DeleteConversation { session: session.clone() });
        let first = record.session.messages + 1;
        let last = record.session.messages + i64::try_from(bodies.len()).unwrap_or(0);
        // A turn may end without messages; its event and the released queue still count.
        if !bodies.is_empty() {
            self.writes.push(Write::InsertMessages { session, first, token, bodies });
        }
        record.session.messages = last;
        let event = json!({ "first": first, "last": last, "token": turn_token::to_number(token) });
        self.record_event(&mut record, EventKind::MessagesAppended, event);
        self.session = Some(record);
        ChangeOutcome::Appended { first, last }
    }
}
