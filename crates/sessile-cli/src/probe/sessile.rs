//! Session service of `sessile serve`: a session per user, with replies of its upstream. Without an upstream the
//! probe takes turns and writes the replies of a correct agent itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sessile_wire::service::limits::MAX_PAGE_ITEMS;
use sessile_wire::service::{
    AppendRequest, AppendResponse, BeginTurnRequest, BeginTurnResponse, ChatMessage, CommitTurnRequest,
    CreateSessionRequest, MessagePage, ProblemDetails, ProblemReason, ReplyResponse, ServiceMessage,
    ServiceSession,
};
use ureq::http::Method;

use super::service::{FailureKind, ProbeFailure, ProbeReply, Service, StoredHistory, User};
use super::transport::ProbeTransport;

/// Page size of messages.
const PAGE: i64 = MAX_PAGE_ITEMS;

/// The most pages of a history that are read: more than any probe writes.
const PAGES: usize = 100;

/// Wait for sessions that are being started, before they are ended.
const GRACE: Duration = Duration::from_secs(2);

/// Such a service.
pub(crate) struct SessileService {
    pub(crate) wire: ProbeTransport,
    /// Whether it is known to write no replies.
    has_no_upstream: AtomicBool,
    /// Users with a session, listed apart because a hung thread would hide them.
    begun: Mutex<Vec<User>>,
    /// Number of sessions that are being started.
    starting: AtomicUsize,
}

impl SessileService {
    pub(crate) fn new(wire: ProbeTransport) -> Self {
        SessileService {
            wire,
            has_no_upstream: AtomicBool::new(false),
            begun: Mutex::default(),
            starting: AtomicUsize::new(0),
        }
    }

    /// Path of the user's session, which is started if missing.
    fn session(&self, user: &mut User) -> Result<String, ProbeFailure> {
        let id = match &user.context_id {
            Some(id) => id.clone(),
            None => {
                self.starting.fetch_add(1, Ordering::SeqCst);
                let started = self.start(user);
                self.starting.fetch_sub(1, Ordering::SeqCst);
                user.context_id.insert(started?).clone()
            }
        };
        Ok(format!("/v1/sessions/{id}"))
    }

    fn start(&self, user: &User) -> Result<String, ProbeFailure> {
        let labels = [("probe".to_owned(), user.name.clone())].into();
        let new = CreateSessionRequest { labels, ..CreateSessionRequest::default() };
        let (started, whole): (ServiceSession, _) = self.post(user, "", "/v1/sessions", &new)?;
        // A hostile service could otherwise lead later requests to another path.
        let id = Some(started.id).filter(|id| is_plain(id));
        let id = id.ok_or_else(|| ProbeFailure::unusable("the session has no id", &whole))?;
        let (name, session) = (user.name.clone(), user.session.clone());
        let user =
            User { number: user.number, name, session, context_id: Some(id.clone()), ..User::default() };
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(user);
        Ok(id)
    }

    /// Posts a request. Returns the response, and its text.
    fn post<T: DeserializeOwned>(
        &self,
        user: &User,
        message: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(T, String), ProbeFailure> {
        let body =
            serde_json::to_string(body).map_err(|error| ProbeFailure::unusable(&error.to_string(), ""))?;
        let whole = self.wire.ask((user, message), (&Method::POST, path), Some(&body))?;
        Ok((parse(&whole)?, whole))
    }

    /// Lets the service reply.
    fn replied(&self, user: &User, message: &str, session: &str) -> Result<ProbeReply, ProbeFailure> {
        let body =
            AppendRequest { messages: vec![ChatMessage::new("user", message).to_body()], if_last: None };
        let (answer, whole): (ReplyResponse, _) =
            self.post(user, message, &format!("{session}/messages?reply=true"), &body)?;
        let text = answer.reply.and_then(|reply| ChatMessage::of_body(&reply.body).content);
        let text = text.ok_or_else(|| ProbeFailure::unusable("the response has no reply", &whole))?;
        Ok(ProbeReply { text, whole })
    }

    /// Takes a turn, and commits what the history that came with it says.
    fn turn(&self, user: &User, message: &str, session: &str) -> Result<ProbeReply, ProbeFailure> {
        let turns = format!("{session}/turns");
        let request = BeginTurnRequest { history: Some(PAGE), ..BeginTurnRequest::default() };
        let (turn, begun): (BeginTurnResponse, _) = self.post(user, message, &turns, &request)?;
        let told: Vec<String> =
            turn.history.iter().filter_map(user_text).chain([message.to_owned()]).collect();
        let text = told.iter().filter_map(|text| word(text)).collect::<Vec<_>>().join(" ");
        let messages = [ChatMessage::new("user", message), ChatMessage::new("assistant", text.as_str())];
        let body = CommitTurnRequest { messages: messages.iter().map(ChatMessage::to_body).collect() };
        let commit = format!("{turns}/{}/commit", turn.ticket.token);
        let (_, committed): (AppendResponse, _) = self.post(user, message, &commit, &body)?;
        Ok(ProbeReply { text, whole: format!("{begun}\n{committed}") })
    }
}

impl Service for SessileService {
    fn say(&self, user: &mut User, message: &str) -> Result<ProbeReply, ProbeFailure> {
        let session = self.session(user)?;
        if !self.has_no_upstream.load(Ordering::Relaxed) {
            match self.replied(user, message, &session) {
                Err(trouble) if has_no_upstream(&trouble) => {
                    // Remembered, so that only the first requests are sent twice.
                    self.has_no_upstream.store(true, Ordering::Relaxed);
                }
                replied => return replied,
            }
        }
        self.turn(user, message, &session)
    }

    fn history(&self, user: &User) -> Option<Result<StoredHistory, ProbeFailure>> {
        let id = user.context_id.as_ref()?;
        let mut stored = StoredHistory { is_users_only: true, ..StoredHistory::default() };
        let mut after = 0;
        for _ in 0..PAGES {
            let path = format!("/v1/sessions/{id}/messages?after={after}&limit={PAGE}");
            let page = self.wire.ask((user, ""), (&Method::GET, &path), None);
            let page = page.and_then(|whole| parse(&whole).map(|page| (page, whole)));
            let (page, whole): (MessagePage, _) = match page {
                Ok(page) => page,
                Err(trouble) => return Some(Err(trouble)),
            };
            stored.whole.push_str(&whole);
            stored.items.extend(page.messages.iter().filter_map(user_text));
            // A page that does not advance would be read forever.
            match page.next.filter(|next| *next > after) {
                Some(next) => after = next,
                None => return Some(Ok(stored)),
            }
        }
        Some(Err(ProbeFailure::unusable("the history does not end", "")))
    }

    fn begun(&self) -> Option<Vec<User>> {
        let asked = Instant::now();
        while self.starting.load(Ordering::SeqCst) > 0 && asked.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(10));
        }
        Some(std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn end(&self, user: &User, within: Duration) -> Result<(), ProbeFailure> {
        let path = format!("/v1/sessions/{}?reason=probe", user.context_id.as_deref().unwrap_or_default());
        self.wire.ask_within(within, (user, ""), (&Method::DELETE, &path), None).map(drop)
    }
}

/// Text of a stored message, if the user wrote it.
fn user_text(message: &ServiceMessage) -> Option<String> {
    let body = ChatMessage::of_body(&message.body);
    body.is_of_user().then_some(body.content).flatten()
}

/// The code word that a message tells.
fn word(message: &str) -> Option<&str> {
    message.split_once("code word number ")?.1.split_once(" is ")?.1.split('.').next()
}

/// An id goes into paths.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_no_upstream(trouble: &ProbeFailure) -> bool {
    let reason = || sessile::json::from_str::<ProblemDetails>(&trouble.whole).ok()?.reason;
    trouble.kind == FailureKind::Status(400) && reason() == Some(ProblemReason::NoUpstream)
}

fn parse<T: DeserializeOwned>(whole: &str) -> Result<T, ProbeFailure> {
    sessile::json::from_str(whole).map_err(|error| {
        ProbeFailure::unusable(&format!("the response is not from a session service: {error}"), whole)
    })
}

#[cfg(test)]
mod tests {
    use super::super::canary::{Canaries, CodeWordId};
    use super::*;

    #[test]
    fn the_word_of_a_message_is_found() {
        let canaries = Canaries::new(1, 2, Some(1)).unwrap();
        let code = CodeWordId { user: 1, turn: 2 };
        assert_eq!(word(&canaries.message(code)), Some(canaries.word(code)));
        assert_eq!(word(&canaries.message(CodeWordId { user: 1, turn: 3 })), None);
    }
}
