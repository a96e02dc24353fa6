//! What a change comes to, given what it depends on: nothing here asks the database.

use serde_json::{Value, json};

use super::queue::{Queue, Waited};
use super::rows::Found;
use super::sql::Sql;
use super::transaction::{Params, Step, params};
use crate::change::{Change, Done, Refusal, check_number, check_settings};
use crate::json_text::JsonText;
use crate::model::{Conversation, Entry, Resource, Session, Ticket};

type Outcome = Result<Done, Refusal>;

/// What was found and locked, and what is to be written.
pub(super) struct Make {
    user: String,
    now: i64,
    /// The one that it is about.
    session: Option<Found>,
    /// Another that has the name that is asked for.
    named: Option<Found>,
    /// One that begins.
    new: Option<Found>,
    queue: Queue,
    /// The kind and revision of the value that it is about.
    entry: Option<(String, i64)>,
    /// Where the session stands with its agent, if that is asked for.
    conversation: Option<Conversation>,
    writes: Vec<Step>,
}

impl Make {
    pub(super) fn new(
        user: &str,
        now: i64,
        session: Option<Found>,
        named: Option<Found>,
        queue: Queue,
        entry: Option<(String, i64)>,
    ) -> Self {
        let (user, writes) = (user.to_owned(), Vec::new());
        Make { user, now, session, named, new: None, queue, entry, conversation: None, writes }
    }

    pub(super) fn with_conversation(mut self, conversation: Option<Conversation>) -> Self {
        self.conversation = conversation;
        self
    }

    /// The id of the session that it is about.
    pub(super) fn session_id(&self) -> Option<String> {
        self.session.as_ref().map(|found| found.session.id.clone())
    }

    /// The place that can be held when this is done, if somebody waits at it.
    pub(super) fn next_to_hold(&self) -> Option<i64> {
        self.queue.next_to_hold()
    }

    /// Decides. The history of a turn that is held is empty, and to be filled in.
    pub(super) fn change(&mut self, change: &Change) -> Outcome {
        match change {
            Change::StartSession { id, name, context, labels, settings, idle_ms, max_ms } => {
                self.free_name()?;
                let mut session = self.begun(id, name.as_deref());
                session.context.clone_from(context);
                session.labels.clone_from(labels);
                let mut new = Found::new(session, *idle_ms, *max_ms);
                self.index_labels(&new);
                for (key, value) in settings {
                    self.set_setting(&mut new, key, value);
                }
                self.event(&mut new, "session.started", &json!({}));
                Ok(Done::Session(self.new.insert(new).session.clone()))
            }
            Change::EditSession { if_revision, name, labels, settings, .. } => {
                let mut found = self.live()?;
                let revision = found.session.revision;
                if if_revision.is_some_and(|expected| expected != revision) {
                    return Err(Refusal::Changed { revision });
                }
                check_settings(&found.session.settings, settings)?;
                self.free_name()?;
                found.session.revision += 1;
                if name.is_some() {
                    found.session.name.clone_from(name);
                }
                if let Some(labels) = labels.as_ref().filter(|labels| **labels != found.session.labels) {
                    found.session.labels.clone_from(labels);
                    let drop = params![self.user.clone(), found.session.id.clone()];
                    self.run(Sql::DropLabels, drop);
                    self.index_labels(&found);
                }
                for (key, value) in settings {
                    self.set_setting(&mut found, key, value);
                }
                self.event(&mut found, "session.edited", &json!({}));
                Ok(Done::Session(self.session.insert(found).session.clone()))
            }
            Change::EndSession { reason, .. } => {
                let mut found = self.session.take().ok_or(Refusal::NoSession)?;
                if found.session.ended_ms.is_none() {
                    self.end(&mut found, reason);
                }
                Ok(Done::Session(self.session.insert(found).session.clone()))
            }
            Change::Append { bodies, if_last, .. } => {
                let found = self.live()?;
                self.nobody_holds()?;
                let last = found.session.messages;
                if if_last.is_some_and(|expected| expected != last) {
                    return Err(Refusal::Changed { revision: last });
                }
                Ok(self.append(found, 0, bodies))
            }
            Change::Rewind { session, to } => {
                let mut found = self.live()?;
                self.nobody_holds()?;
                let last = found.session.messages;
                let to = check_number(*to, last)?;
                self.run(Sql::DropConversation, params![self.user.clone(), session.clone()]);
                self.run(Sql::CutMessages, params![self.user.clone(), session.clone(), to]);
                found.session.messages = to;
                self.event(&mut found, "messages.rewound", &json!({ "to": to }));
                self.session = Some(found);
                Ok(Done::Rewound { removed: last - to })
            }
            Change::Fork { session, at, id, name } => self.fork(session, *at, id, name.as_deref()),
            Change::SetEntry { session, key, value, if_revision } => {
                self.set_entry(session, key, value.as_ref(), *if_revision)
            }
            Change::Ask { resource, holder, claim, busy, ttl_ms, wait_ms, .. } => {
                let session = self.session_of(resource)?;
                let ticket = self.queue.ask(holder, claim, *busy, (*ttl_ms, *wait_ms))?;
                let begins = ticket.token.is_some();
                Ok(self.placed(session, Waited { ticket, begins }))
            }
            Change::Wait { resource, place, claim, ttl_ms, .. } => {
                self.wait(resource, *place, claim, *ttl_ms)
            }
            Change::Renew { resource, token, ttl_ms } => {
                self.session = self.session_of(resource)?;
                let ticket = self.queue.renew(*token, *ttl_ms)?;
                Ok(Done::Ticket { ticket, history: None })
            }
            Change::Leave { place, claim, key, .. } => {
                self.queue.leave(*place, claim)?;
                if let Some(key) = key {
                    self.run(Sql::DropAnswered, params![self.user.clone(), key.clone()]);
                }
                Ok(Done::Left)
            }
            Change::StepAside { claim, .. } => self.queue.step_aside(claim).map(|()| Done::Left),
            Change::Release { token, .. } => self.queue.release(*token).map(|()| Done::Left),
            Change::CommitTurn { session, token, bodies, conversation } => {
                let found = self.live()?;
                self.queue.release(*token)?;
                let done = self.append(found, *token, bodies);
                if let Some(conversation) = conversation {
                    let (user, mark) = (self.user.clone(), conversation.mark());
                    self.run(Sql::ClaimContext, params![user.clone(), mark.clone(), session.clone()]);
                    let value = serde_json::to_string(conversation).unwrap_or_default();
                    self.run(Sql::PutConversation, params![user, mark, session.clone(), value, self.now]);
                }
                Ok(done)
            }
            Change::TakeConversation { session, token } => {
                self.session = Some(self.live()?);
                self.queue.held_with(*token)?;
                self.run(Sql::DropConversation, params![self.user.clone(), session.clone()]);
                Ok(Done::Conversation(self.conversation.take()))
            }
        }
    }

    /// What is answered to a change that was made before. A place that was asked for may have come up, or be gone.
    pub(super) fn again(&mut self, change: &Change, done: Done) -> Outcome {
        match (change, done) {
            (Change::Ask { resource, claim, ttl_ms, wait_ms, .. }, Done::Ticket { ticket, .. }) => {
                self.queue.claim(ticket.place, claim, *wait_ms);
                self.wait(resource, ticket.place, claim, *ttl_ms)
            }
            (_, done) => Ok(done),
        }
    }

    fn wait(&mut self, resource: &Resource, place: i64, claim: &str, ttl_ms: i64) -> Outcome {
        let session = self.session_of(resource)?;
        let waited = self.queue.wait(place, claim, ttl_ms)?;
        Ok(self.placed(session, waited))
    }

    /// What is to be written.
    pub(super) fn write(self, steps: &mut Vec<Step>) {
        let Make { user, session, named, new, queue, writes, .. } = self;
        // Who gives a name back does it before who takes it.
        for found in [named, session].into_iter().flatten().filter(|found| found.changed) {
            steps.push(update(&user, found));
        }
        if let Some(new) = new {
            steps.push(insert(&user, new));
        }
        steps.extend(writes);
        queue.write(&user, steps);
    }

    /// The session, if changes can be made in it; its being used is one.
    fn live(&mut self) -> Result<Found, Refusal> {
        let mut found = self.session.take().ok_or(Refusal::NoSession)?;
        if !found.is_live(self.now) {
            return Err(Refusal::SessionOver);
        }
        found.used(self.now);
        Ok(found)
    }

    /// The session whose turn is asked for; a lock is nobody's but the user's.
    fn session_of(&mut self, resource: &Resource) -> Result<Option<Found>, Refusal> {
        match resource {
            Resource::Turn { .. } => self.live().map(Some),
            Resource::Lock { .. } => Ok(None),
        }
    }

    fn nobody_holds(&self) -> Result<(), Refusal> {
        match self.queue.holder() {
            Some(Ticket { holder, expires_ms, .. }) => Err(Refusal::Held { holder, expires_ms }),
            None => Ok(()),
        }
    }

    /// Whether the name can be given. One that only an expired session has is free: that session is ended.
    fn free_name(&mut self) -> Result<(), Refusal> {
        let Some(mut named) = self.named.take() else { return Ok(()) };
        if named.is_live(self.now) {
            return Err(Refusal::NameTaken);
        }
        self.end(&mut named, "expired");
        self.named = Some(named);
        Ok(())
    }

    /// A session as it begins.
    fn begun(&self, id: &str, name: Option<&str>) -> Session {
        Session {
            id: id.to_owned(),
            name: name.map(str::to_owned),
            context: None,
            labels: Default::default(),
            settings: Default::default(),
            revision: 1,
            started_ms: self.now,
            used_ms: self.now,
            expires_ms: self.now,
            idle_ms: 0,
            max_ms: 0,
            ended_ms: None,
            end_reason: None,
            messages: 0,
        }
    }

    fn end(&mut self, found: &mut Found, reason: &str) {
        found.session.ended_ms = Some(self.now);
        found.session.end_reason = Some(reason.to_owned());
        found.session.revision += 1;
        let turn = Resource::Turn { session: found.session.id.clone() }.key();
        self.run(Sql::DropQueue, params![self.user.clone(), turn]);
        self.event(found, "session.ended", &json!({ "reason": reason }));
    }

    fn append(&mut self, mut found: Found, token: i64, bodies: &[JsonText]) -> Done {
        self.run(Sql::DropConversation, params![self.user.clone(), found.session.id.clone()]);
        let first = found.session.messages + 1;
        let last = found.session.messages + i64::try_from(bodies.len()).unwrap_or(0);
        if !bodies.is_empty() {
            let texts: Vec<String> = bodies.iter().map(|body| body.get().to_owned()).collect();
            let id = found.session.id.clone();
            self.run(Sql::InsertMessages, params![self.user.clone(), id, first, token, self.now, texts]);
        }
        found.session.messages = last;
        self.event(&mut found, "messages.appended", &json!({ "first": first, "last": last, "token": token }));
        self.session = Some(found);
        Done::Appended { first, last }
    }

    fn fork(&mut self, from: &str, at: Option<i64>, id: &str, name: Option<&str>) -> Outcome {
        let found = self.session.clone().ok_or(Refusal::NoSession)?;
        let Found { session: of, idle_ms, max_ms, .. } = found;
        let at = check_number(at.unwrap_or(of.messages), of.messages)?;
        self.free_name()?;
        let begun = self.begun(id, name);
        let session = Session { context: of.context, labels: of.labels, messages: at, ..begun };
        let mut new = Found::new(session, idle_ms, max_ms);
        self.index_labels(&new);
        for (key, value) in &of.settings {
            self.set_setting(&mut new, key, value);
        }
        self.run(Sql::CopyMessages, params![self.user.clone(), from.to_owned(), id.to_owned(), at]);
        self.event(&mut new, "session.started", &json!({ "forked_from": from, "at": at }));
        Ok(Done::Session(self.new.insert(new).session.clone()))
    }

    /// Adds what a session is found by.
    fn index_labels(&mut self, found: &Found) {
        let Session { id, labels, .. } = &found.session;
        if !labels.is_empty() {
            let (keys, values): (Vec<String>, Vec<String>) = labels.clone().into_iter().unzip();
            self.run(Sql::InsertLabels, params![self.user.clone(), id.clone(), keys, values]);
        }
    }

    fn set_setting(&mut self, found: &mut Found, key: &str, value: &Value) {
        let (user, session) = (self.user.clone(), found.session.id.clone());
        if value.is_null() {
            found.session.settings.remove(key);
            self.run(Sql::DropSetting, params![user, session, key.to_owned()]);
        } else {
            found.session.settings.insert(key.to_owned(), value.clone());
            let params = params![user, session, key.to_owned(), value.to_string(), self.now];
            self.run(Sql::PutSetting, params);
        }
    }

    /// A removed value leaves its revision behind, so that none comes twice.
    fn set_entry(
        &mut self,
        session: &str,
        key: &str,
        value: Option<&JsonText>,
        expected: Option<i64>,
    ) -> Outcome {
        let mut found = self.live()?;
        let last = self.entry.take();
        let there = last.as_ref().filter(|(kind, _)| kind == "state").map_or(0, |(_, revision)| *revision);
        if expected.is_some_and(|expected| expected != there) {
            return Err(Refusal::Changed { revision: there });
        }
        if value.is_none() && there == 0 {
            self.session = Some(found);
            return Ok(Done::Entry(None));
        }
        let revision = last.map_or(1, |(_, revision)| revision + 1);
        let (user, session, key) = (self.user.clone(), session.to_owned(), key.to_owned());
        self.run(Sql::DropEntry, params![user.clone(), session.clone(), key.clone()]);
        let kind = if value.is_some() { "state" } else { "state-gone" };
        let text = value.map_or("null", JsonText::get).to_owned();
        self.run(Sql::InsertEntry, params![user, session, kind, key.clone(), text, revision, self.now]);
        self.event(&mut found, "state.changed", &json!({ "key": key, "revision": revision }));
        self.session = Some(found);
        Ok(Done::Entry(value.map(|value| Entry { key, value: value.clone(), revision })))
    }

    fn placed(&mut self, session: Option<Found>, waited: Waited) -> Done {
        let Waited { ticket, begins } = waited;
        let mut history = None;
        self.session = session.map(|mut found| {
            if let Some(token) = ticket.token {
                if begins {
                    self.event(&mut found, "turn.began", &json!({ "token": token }));
                }
                history = Some(Vec::new());
            }
            found
        });
        Done::Ticket { ticket, history }
    }

    fn event(&mut self, found: &mut Found, kind: &'static str, body: &Value) {
        let number = found.next_event;
        found.next_event += 1;
        found.changed = true;
        let (user, id) = (self.user.clone(), found.session.id.clone());
        self.run(Sql::InsertEvent, params![user, id, number, kind, body.to_string(), self.now]);
    }

    fn run(&mut self, sql: Sql, params: Params) {
        self.writes.push(Step::Run(sql, params));
    }
}

fn update(user: &str, found: Found) -> Step {
    let Found { session, next_event, .. } = found;
    let labels = serde_json::to_string(&session.labels).unwrap_or_default();
    let Session { id, name, used_ms, ended_ms, end_reason, revision, messages, .. } = session;
    let next_message = messages + 1;
    let params = params![
        user.to_owned(),
        id,
        name,
        labels,
        used_ms,
        ended_ms,
        end_reason,
        revision,
        next_message,
        next_event
    ];
    Step::Run(Sql::UpdateSession, params)
}

fn insert(user: &str, found: Found) -> Step {
    let Found { session, idle_ms, max_ms, next_event, .. } = found;
    let labels = serde_json::to_string(&session.labels).unwrap_or_default();
    let Session { id, name, context, started_ms, messages, .. } = session;
    let next_message = messages + 1;
    let user = user.to_owned();
    let params =
        params![user, id, name, context, labels, idle_ms, max_ms, started_ms, next_message, next_event];
    Step::Run(Sql::InsertSession, params)
}
