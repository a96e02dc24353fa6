//! A session service of our own: a session for each user, replies by its upstream. One without an upstream is asked by the
//! turns it hands out, and what an honest agent would say is said here.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::http::Method;

use super::service::{Kind, Said, Service, Stored, Trouble, User};
use super::wire::Wire;

/// How many messages are read at once.
const PAGE: usize = 1000;

/// The most pages of a history that are read: more than any probe writes.
const PAGES: usize = 100;

/// How long sessions that are just being started are waited for, to be ended then.
const GRACE: Duration = Duration::from_secs(2);

/// Such a service.
pub(crate) struct SessileService {
    pub(crate) wire: Wire,
    /// Whether it is known to write no replies.
    has_no_upstream: AtomicBool,
    /// Those with a session: in the hands of a thread that hangs they would not be found.
    begun: Mutex<Vec<User>>,
    /// How many sessions are being started.
    starting: AtomicUsize,
}

impl SessileService {
    pub(crate) fn new(wire: Wire) -> Self {
        SessileService {
            wire,
            has_no_upstream: AtomicBool::new(false),
            begun: Mutex::default(),
            starting: AtomicUsize::new(0),
        }
    }

    /// The path of the user's session, which is started if there is none.
    fn session(&self, user: &mut User) -> Result<String, Trouble> {
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

    fn start(&self, user: &User) -> Result<String, Trouble> {
        let new = json!({ "labels": { "probe": user.name } });
        let (started, whole) = self.post(user, "", "/v1/sessions", &new)?;
        let id = started["id"].as_str().filter(|id| is_plain(id));
        let id = id.ok_or_else(|| Trouble::unusable("the session has no id", &whole))?.to_owned();
        let (name, session) = (user.name.clone(), user.session.clone());
        let user =
            User { number: user.number, name, session, context_id: Some(id.clone()), ..User::default() };
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(user);
        Ok(id)
    }

    fn post(&self, user: &User, message: &str, path: &str, body: &Value) -> Result<(Value, String), Trouble> {
        let whole = self.wire.ask((user, message), (&Method::POST, path), Some(&body.to_string()))?;
        Ok((json(&whole)?, whole))
    }

    /// Lets the service reply.
    fn replied(&self, user: &User, message: &str, session: &str) -> Result<Said, Trouble> {
        let body = json!({ "messages": [said(message)] });
        let (answer, whole) = self.post(user, message, &format!("{session}/messages?reply=true"), &body)?;
        let text = answer.pointer("/reply/body/content").and_then(Value::as_str).map(str::to_owned);
        let text = text.ok_or_else(|| Trouble::unusable("the answer has no reply", &whole))?;
        Ok(Said { text, whole })
    }

    /// Takes a turn, and commits what the history that came with it says.
    fn turn(&self, user: &User, message: &str, session: &str) -> Result<Said, Trouble> {
        let turns = format!("{session}/turns");
        let (turn, begun) = self.post(user, message, &turns, &json!({ "history": PAGE }))?;
        let token = turn["token"].as_i64();
        let token = token.ok_or_else(|| Trouble::unusable("the turn has no token", &begun))?;
        let history = turn["history"].as_array().map(Vec::as_slice).unwrap_or_default();
        let told = history.iter().filter_map(user_text).chain([message]);
        let text = told.filter_map(word).collect::<Vec<_>>().join(" ");
        let reply = json!({ "role": "assistant", "content": text });
        let body = json!({ "messages": [said(message), reply] });
        let (_, committed) = self.post(user, message, &format!("{turns}/{token}/commit"), &body)?;
        Ok(Said { text, whole: format!("{begun}\n{committed}") })
    }
}

impl Service for SessileService {
    fn say(&self, user: &mut User, message: &str) -> Result<Said, Trouble> {
        let session = self.session(user)?;
        if !self.has_no_upstream.load(Ordering::Relaxed) {
            match self.replied(user, message, &session) {
                Err(trouble) if has_no_upstream(&trouble) => {
                    self.has_no_upstream.store(true, Ordering::Relaxed);
                }
                replied => return replied,
            }
        }
        self.turn(user, message, &session)
    }

    fn history(&self, user: &User) -> Option<Result<Stored, Trouble>> {
        let id = user.context_id.as_ref()?;
        let mut stored = Stored { is_users_only: true, ..Stored::default() };
        let mut after = 0;
        for _ in 0..PAGES {
            let path = format!("/v1/sessions/{id}/messages?after={after}&limit={PAGE}");
            let page = self.wire.ask((user, ""), (&Method::GET, &path), None);
            let page = page.and_then(|whole| json(&whole).map(|page| (page, whole)));
            let (page, whole) = match page {
                Ok(page) => page,
                Err(trouble) => return Some(Err(trouble)),
            };
            stored.whole.push_str(&whole);
            let Some(messages) = page["messages"].as_array() else {
                return Some(Err(Trouble::unusable("the history has no messages", &whole)));
            };
            stored.items.extend(messages.iter().filter_map(user_text).map(str::to_owned));
            match page["next"].as_i64().filter(|next| *next > after) {
                Some(next) => after = next,
                None => return Some(Ok(stored)),
            }
        }
        Some(Err(Trouble::unusable("the history has no end", "")))
    }

    fn begun(&self) -> Option<Vec<User>> {
        let asked = Instant::now();
        while self.starting.load(Ordering::SeqCst) > 0 && asked.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(10));
        }
        Some(std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn end(&self, user: &User, within: Duration) -> Result<(), Trouble> {
        let path = format!("/v1/sessions/{}?reason=probe", user.context_id.as_deref().unwrap_or_default());
        self.wire.ask_within(within, (user, ""), (&Method::DELETE, &path), None).map(drop)
    }
}

fn said(message: &str) -> Value {
    json!({ "role": "user", "content": message })
}

/// What the user said, of a stored message.
fn user_text(message: &Value) -> Option<&str> {
    let body = &message["body"];
    body["content"].as_str().filter(|_| body["role"] == "user")
}

/// The code word that a message tells.
fn word(message: &str) -> Option<&str> {
    message.split_once("code word number ")?.1.split_once(" is ")?.1.split('.').next()
}

/// An id goes into paths.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_no_upstream(trouble: &Trouble) -> bool {
    trouble.kind == Kind::Status(400) && trouble.whole.contains("has no upstream")
}

fn json(whole: &str) -> Result<Value, Trouble> {
    sessile::json::from_str(whole).map_err(|_| Trouble::unusable("the answer is not JSON", whole))
}

#[cfg(test)]
mod tests {
    use super::super::canary::{Canaries, Code};
    use super::*;

    #[test]
    fn the_word_of_a_message_is_found() {
        let canaries = Canaries::new(1, 2, Some(1)).unwrap();
        let code = Code { user: 1, turn: 2 };
        assert_eq!(word(&canaries.message(code)), Some(canaries.word(code)));
        assert_eq!(word(&canaries.message(Code { user: 1, turn: 3 })), None);
    }
}
