//! Deciding what a change comes to.

use serde_json::{Value, json};

use super::idempotency;
use super::queue::{QueueState, WaitOutcome};
use super::snapshot::{ChangeSnapshot, Dependencies, DirtyFields, LoadedSession, StoredEntry};
use super::write::{EventKind, Write};
use crate::change::{ChangeOutcome, Refusal, StoreChange};
use crate::ids::{Position, SessionId};
use crate::json_text::JsonText;
use crate::model::{AgentConversation, EntryRecord, MessageRecord, Resource};
use crate::request::Request;

pub(super) type ChangeResult = Result<ChangeOutcome, Refusal>;

/// Outcome of a change, and the writes that make it so.
#[derive(Debug)]
pub(crate) struct Decision<'c> {
    outcome: ChangeResult,
    writes: Vec<Write<'c>>,
    next: Option<Position>,
    history: Option<HistoryRequest>,
    /// Idempotency key, and the stored form of the change.
    key: Option<(&'c str, String)>,
}

/// Messages that a store is to add to the outcome.
#[derive(Debug)]
pub(crate) struct HistoryRequest {
    pub(crate) session: SessionId,
    /// Number of the session's last message.
    pub(crate) last: i64,
    /// Number of messages, at most.
    pub(crate) limit: i64,
}

/// Decides what a request comes to. `process` is the id of this process.
pub(crate) fn decide<'c>(
    request: &'c Request,
    process: &str,
    mut snapshot: ChangeSnapshot,
) -> serde_json::Result<Decision<'c>> {
    let change = &request.change;
    let answered = snapshot.answered.take();
    let Some(key) = request.key.as_deref() else {
        return Ok(Decider::new(change, process, snapshot).finish(Decider::change));
    };
    let text = idempotency::encode(change)?;
    let Some(answered) = answered else {
        let decision = Decider::new(change, process, snapshot).finish(Decider::change);
        return Ok(Decision { key: Some((key, text)), ..decision });
    };
    let decision = match idempotency::replay(&answered, &text) {
        // The stored answer is of the moment of the request; a place changes afterwards.
        Ok(done) if matches!(change, StoreChange::Ask { .. }) => {
            Decider::new(change, process, snapshot).finish(|decider, change| decider.ask_again(change, done))
        }
        outcome => Decision { outcome, writes: Vec::new(), next: None, history: None, key: None },
    };
    Ok(decision)
}

impl<'c> Decision<'c> {
    /// Messages that the store is to read and hand to [`set_history`](Self::set_history).
    pub(crate) fn history(&self) -> Option<&HistoryRequest> {
        self.history.as_ref()
    }

    /// Adds messages to the outcome.
    pub(crate) fn set_history(&mut self, messages: Vec<MessageRecord>) {
        if let Ok(ChangeOutcome::Ticket { history: Some(history), .. }) = &mut self.outcome {
            *history = messages;
        }
    }

    /// Position in the queue that the change lets come up, if a client waits there.
    pub(crate) fn next_to_wake(&self) -> Option<Position> {
        self.next
    }

    /// The outcome, and the writes in the order in which they are carried out. A refused change writes nothing.
    pub(crate) fn into_parts(self) -> serde_json::Result<(ChangeResult, Vec<Write<'c>>)> {
        let Decision { outcome, mut writes, key, .. } = self;
        // A refusal is not stored: the same request may succeed later under its key.
        if let (Ok(done), Some((key, change))) = (&outcome, key) {
            writes.push(Write::InsertAnswer { key, change, done: serde_json::to_string(done)? });
        }
        Ok((outcome, writes))
    }
}

/// State of a decision: the loaded snapshot and the changes so far.
pub(super) struct Decider<'c> {
    change: &'c StoreChange,
    pub(super) now: i64,
    /// The session that the change is about.
    pub(super) session: Option<LoadedSession>,
    /// Another session that has the name that the change gives.
    pub(super) named: Option<LoadedSession>,
    /// A session that the change starts.
    pub(super) created: Option<LoadedSession>,
    pub(super) queue: QueueState,
    entry: Option<StoredEntry>,
    conversation: Option<AgentConversation>,
    history: Option<HistoryRequest>,
    pub(super) writes: Vec<Write<'c>>,
}

impl<'c> Decider<'c> {
    fn new(change: &'c StoreChange, process: &str, snapshot: ChangeSnapshot) -> Self {
        let ChangeSnapshot { now, session, named, queue, entry, conversation, .. } = snapshot;
        let resource = Dependencies::of(change).queue.map(|(resource, _)| resource).unwrap_or_default();
        Decider {
            change,
            now,
            session,
            named,
            created: None,
            queue: QueueState::new(resource, queue, process, now),
            entry,
            conversation,
            history: None,
            writes: Vec::new(),
        }
    }

    fn finish(mut self, decide: impl FnOnce(&mut Self, &'c StoreChange) -> ChangeResult) -> Decision<'c> {
        let change = self.change;
        let outcome = decide(&mut self, change);
        // Writes that were collected before the refusal are dropped with the decider.
        if outcome.is_err() {
            return Decision { outcome, writes: Vec::new(), next: None, history: None, key: None };
        }
        // In the queue as it is after the change: a waiter is woken only if it can acquire.
        let next = change.freed_queue().and_then(|_| self.queue.next_to_acquire());
        let Decider { session, named, created, queue, writes: others, history, .. } = self;
        // A session that gives its name up is written before the one that takes it.
        let mut writes: Vec<Write<'c>> = [named, session].into_iter().flatten().filter_map(update).collect();
        writes.extend(created.map(|created| Write::InsertSession(Box::new(created))));
        writes.extend(others);
        queue.write(&mut writes);
        Decision { outcome, writes, next, history, key: None }
    }

    fn change(&mut self, change: &'c StoreChange) -> ChangeResult {
        match change {
            StoreChange::StartSession { .. } => self.start_session(change),
            StoreChange::EditSession { if_revision, name, labels, settings, .. } => {
                self.edit_session(*if_revision, name.as_ref(), labels.as_ref(), settings)
            }
            StoreChange::EndSession { reason, .. } => self.end_session(reason),
            StoreChange::Append { bodies, if_last, .. } => self.append(bodies, *if_last),
            StoreChange::Rewind { to, .. } => self.rewind(*to),
            StoreChange::Fork { at, id, name, .. } => self.fork(*at, id, name.as_deref()),
            StoreChange::SetEntry { key, value, if_revision, .. } => {
                self.set_entry(key, value.as_ref(), *if_revision)
            }
            StoreChange::Ask {
                resource,
                holder,
                claim,
                busy,
                mode,
                ttl_ms,
                wait_ms,
                session: owner,
                history,
            } => {
                let session = self.session_of(resource, owner.as_ref())?;
                let times = (*ttl_ms, *wait_ms);
                let ticket = self.queue.ask(holder, claim, (*busy, *mode), times, owner.as_ref())?;
                let is_acquired = ticket.token.is_some();
                Ok(self.placed(session, WaitOutcome { ticket, is_acquired }, *history))
            }
            StoreChange::Wait { resource, place, claim, ttl_ms, session, history } => {
                self.wait((resource, session.as_ref()), *place, claim, *ttl_ms, *history)
            }
            StoreChange::Renew { resource, token, ttl_ms } => {
                self.session = self.session_of(resource, None)?;
                let ticket = self.queue.renew(*token, *ttl_ms)?;
                Ok(ChangeOutcome::Ticket { ticket, history: None })
            }
            StoreChange::Leave { place, claim, key, .. } => {
                self.queue.leave(*place, claim)?;
                // Otherwise a retry under the key would be answered with a place that no longer exists.
                self.writes.extend(key.as_ref().map(|key| Write::DeleteAnswer { key }));
                Ok(ChangeOutcome::Left)
            }
            StoreChange::StepAside { claim, .. } => {
                self.queue.step_aside(claim).map(|()| ChangeOutcome::Left)
            }
            StoreChange::Release { token, .. } => self.queue.release(*token).map(|()| ChangeOutcome::Left),
            StoreChange::CommitTurn { token, bodies, conversation, .. } => {
                self.commit_turn(*token, bodies, conversation.as_ref())
            }
            StoreChange::TakeConversation { token, .. } => {
                let session = self.live_session()?;
                self.queue.held_with(*token)?;
                self.writes.push(Write::DeleteConversation { session: session.session.id.clone() });
                self.session = Some(session);
                Ok(ChangeOutcome::Conversation(self.conversation.take()))
            }
        }
    }

    /// Answers a request for a place that was made before: meanwhile the place may have come up, or be removed.
    fn ask_again(&mut self, change: &'c StoreChange, done: ChangeOutcome) -> ChangeResult {
        match (change, done) {
            (
                StoreChange::Ask { resource, claim, ttl_ms, wait_ms, session, history, .. },
                ChangeOutcome::Ticket { ticket, .. },
            ) => {
                self.queue.reclaim(ticket.place, claim, *wait_ms);
                self.wait((resource, session.as_ref()), ticket.place, claim, *ttl_ms, *history)
            }
            (_, done) => Ok(done),
        }
    }

    fn wait(
        &mut self,
        (resource, owner): (&Resource, Option<&SessionId>),
        place: Position,
        claim: &str,
        ttl_ms: i64,
        history: i64,
    ) -> ChangeResult {
        let session = self.session_of(resource, owner)?;
        let outcome = self.queue.wait(place, claim, ttl_ms)?;
        Ok(self.placed(session, outcome, history))
    }

    /// The outcome for a place. The history of a held turn is added by the store.
    fn placed(&mut self, session: Option<LoadedSession>, outcome: WaitOutcome, limit: i64) -> ChangeOutcome {
        let WaitOutcome { ticket, is_acquired } = outcome;
        let mut history = None;
        if let (Some(mut session), token) = (session, ticket.token) {
            if let Some(token) = token {
                if is_acquired {
                    self.record_event(&mut session, EventKind::TurnBegan, json!({ "token": token }));
                }
                let (session, last) = (session.session.id.clone(), session.session.messages);
                self.history = Some(HistoryRequest { session, last, limit: limit.max(0) });
                // Empty for now: deciding does no I/O.
                history = Some(Vec::new());
            }
            self.session = Some(session);
        }
        ChangeOutcome::Ticket { ticket, history }
    }

    /// The session, if it is live. Being changed counts as being used.
    pub(super) fn live_session(&mut self) -> Result<LoadedSession, Refusal> {
        let mut session = self.session.take().ok_or(Refusal::NoSession)?;
        if !session.session.is_live(self.now) {
            return Err(Refusal::SessionOver);
        }
        session.touch(self.now);
        Ok(session)
    }

    /// The live session whose turn a resource is; none for a lock. A lock that belongs to a session is refused once the
    /// session is over.
    fn session_of(
        &mut self,
        resource: &Resource,
        owner: Option<&SessionId>,
    ) -> Result<Option<LoadedSession>, Refusal> {
        match (resource, owner) {
            (Resource::Turn { .. }, _) => self.live_session().map(Some),
            (Resource::Lock { .. }, Some(_)) => {
                self.session = Some(self.live_session()?);
                Ok(None)
            }
            (Resource::Lock { .. }, None) => Ok(None),
        }
    }

    fn set_entry(
        &mut self,
        key: &'c str,
        value: Option<&'c JsonText>,
        expected: Option<i64>,
    ) -> ChangeResult {
        let mut session = self.live_session()?;
        let last = self.entry.take();
        let current = last.filter(|entry| !entry.is_removed).map_or(0, |entry| entry.revision);
        if expected.is_some_and(|expected| expected != current) {
            return Err(Refusal::Changed { revision: current });
        }
        // Removing what does not exist is no change: no revision, no event.
        if value.is_none() && current == 0 {
            self.session = Some(session);
            return Ok(ChangeOutcome::Entry(None));
        }
        // Counted on from a removed value, so that an old ETag never matches a new value.
        let revision = last.map_or(1, |entry| entry.revision + 1);
        let id = session.session.id.clone();
        self.writes.push(Write::ReplaceEntry { session: id, key, value, revision });
        self.record_event(&mut session, EventKind::StateChanged, json!({ "key": key, "revision": revision }));
        self.session = Some(session);
        Ok(ChangeOutcome::Entry(value.map(|value| EntryRecord {
            key: key.to_owned(),
            value: value.clone(),
            revision,
        })))
    }

    pub(super) fn record_event(&mut self, session: &mut LoadedSession, kind: EventKind, body: Value) {
        let number = session.next_event;
        session.next_event += 1;
        session.mark(DirtyFields::Counters);
        self.writes.push(Write::InsertEvent { session: session.session.id.clone(), number, kind, body });
    }
}

fn update<'c>(session: LoadedSession) -> Option<Write<'c>> {
    match session.dirty {
        DirtyFields::No => None,
        DirtyFields::Counters => Some(Write::UpdateCounters(Box::new(session))),
        DirtyFields::All => Some(Write::UpdateSession(Box::new(session))),
    }
}
