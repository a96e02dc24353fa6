//! Locks of a service, and keeping one while a command runs.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessile::context::approval::time;
use sessile::duration::short;
use sessile::error::{LockError, RequestError};
use sessile::lock::{LockHolder, LockName};
use sessile::{Code, Error};

use super::holder::{line, of_line, shown};
use super::server::{Request, Server};
use super::trouble::{Problem, Subject, Trouble};
use crate::error::{Failure, Outcome};

/// For how long a service waits at most before it says that a lock is still held; then it is asked again.
const AT_ONCE: Duration = Duration::from_secs(60);

/// How long a service may be away while a lock is waited for or given back.
const AWAY: Duration = Duration::from_secs(5);

/// A lock that is held for a time.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) token: i64,
    /// Until when, as the service says.
    pub(crate) expires_ms: i64,
}

impl Lease {
    fn of(server: &Server, answer: &Value) -> Result<Self, Failure> {
        match (answer["token"].as_i64(), answer["expires_ms"].as_i64()) {
            (Some(token), Some(expires_ms)) => Ok(Lease { token, expires_ms }),
            _ => {
                let reason = "its answer is no lock".to_owned();
                Err(RequestError::Unreachable { what: server.url().to_owned(), reason }.into())
            }
        }
    }

    /// Until when, for people and programs.
    pub(crate) fn expires_at(&self) -> String {
        time(self.expires_ms)
    }
}

impl Server {
    /// Waits for a lock and takes it for a time.
    pub(crate) fn take_lock(
        &self,
        name: &LockName,
        holder: &LockHolder,
        ttl: Duration,
        timeout: Duration,
        on_wait: &dyn Fn(Option<LockHolder>),
    ) -> Result<Lease, Failure> {
        let (begun, about) = (Instant::now(), Subject::default());
        let mut wait = Duration::ZERO;
        // Under one key it is one place in the queue, however often it is asked for.
        let mut key = None;
        loop {
            let body = json!({ "ttl_ms": millis(ttl), "wait_ms": millis(wait), "holder": line(holder) });
            let request =
                Request::post(&["v1", "locks", name.as_str()], body)?.under(key.take()).waiting(wait);
            match self.try_ask(&request, AWAY) {
                Ok(answer) => return Lease::of(self, &answer),
                Err(Trouble::Refused(Problem { code: Some(Code::TimedOut), .. })) => key = request.key(),
                Err(Trouble::Refused(Problem { code: Some(Code::LockHeld | Code::LockLost), .. })) => {}
                Err(trouble) => return Err(trouble.told(self.url(), &about)),
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                let holder = self.lock(name)?.map(|view| of_line(text(&view, "holder")).short());
                return Err(
                    LockError::Held { name: name.to_string(), holder, waited: begun.elapsed() }.into()
                );
            }
            if wait.is_zero() {
                on_wait(self.lock(name)?.map(|view| of_line(text(&view, "holder"))));
            }
            wait = left.min(AT_ONCE);
        }
    }

    /// Begins the time of a lock anew.
    pub(crate) fn renew_lock(&self, name: &LockName, token: i64, ttl: Duration) -> Result<Lease, Failure> {
        let answer = self.ask(&renewal(name, token, ttl)?, &Subject { token, ..Subject::default() })?;
        Lease::of(self, &answer)
    }

    /// Gives a lock back.
    pub(crate) fn release_lock(&self, name: &LockName, token: i64) -> Outcome {
        let request = Request::delete(&["v1", "locks", name.as_str()])?.with("token", &token);
        self.ask(&request, &Subject { token, ..Subject::default() }).map(drop)
    }

    /// Locks that are held, as commands show them, each with its holder.
    pub(crate) fn locks(&self) -> Result<Vec<(Value, LockHolder)>, Failure> {
        let query = [("limit", "1000".to_owned())];
        let found = self.pages(&["v1", "locks"], &query, "locks", usize::MAX, &Subject::default())?;
        let at = |view: &Value, key: &str| view[key].as_i64().map(time);
        Ok(found
            .iter()
            .map(|view| {
                let holder = of_line(text(view, "holder"));
                let json = json!({
                    "name": view["name"],
                    "token": view["token"],
                    "holder": shown(&holder),
                    "since": at(view, "asked_ms"),
                    "expires_at": at(view, "expires_ms"),
                    "waiting": view["waiting"],
                });
                (json, holder)
            })
            .collect())
    }

    /// The token of the lock's holder, and who that is.
    pub(crate) fn lock_holder(&self, name: &LockName) -> Result<Option<(i64, LockHolder)>, Failure> {
        let view = self.lock(name)?;
        Ok(view.and_then(|view| Some((view["token"].as_i64()?, of_line(text(&view, "holder"))))))
    }

    fn lock(&self, name: &LockName) -> Result<Option<Value>, Failure> {
        let query = [("limit", "1000".to_owned())];
        let found = self.pages(&["v1", "locks"], &query, "locks", usize::MAX, &Subject::default())?;
        Ok(found.into_iter().find(|view| view["name"] == name.as_str()))
    }
}

fn renewal(name: &LockName, token: i64, ttl: Duration) -> Result<Request, Error> {
    let body = json!({ "token": token, "ttl_ms": millis(ttl) });
    Request::post(&["v1", "locks", name.as_str(), "renew"], body)
}

fn text<'a>(view: &'a Value, key: &str) -> &'a str {
    view[key].as_str().unwrap_or_default()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A lock that is kept while a command runs.
pub(crate) struct Kept {
    pub(crate) server: Server,
    name: LockName,
    pub(crate) token: i64,
    ttl: Duration,
    /// Until when it is certainly held: from before the service was asked.
    until: Instant,
}

impl Kept {
    /// Waits for a lock and takes it, to be kept.
    pub(crate) fn take(
        server: Server,
        name: &LockName,
        holder: &LockHolder,
        ttl: Duration,
        timeout: Duration,
        on_wait: &dyn Fn(Option<LockHolder>),
    ) -> Result<Self, Failure> {
        let lease = server.take_lock(name, holder, ttl, timeout, on_wait)?;
        let mut kept = Kept { server, name: name.clone(), token: lease.token, ttl, until: Instant::now() };
        // It may have been waited for: when its time began is known only of a renewal.
        let asked = Instant::now();
        kept.server.renew_lock(name, kept.token, ttl)?;
        kept.until = asked + ttl;
        Ok(kept)
    }

    /// Renews it until the command has ended. Why it is lost, if it is: refused, or its time was over without an answer.
    pub(crate) fn keep(&mut self, ended: &Receiver<()>) -> Option<String> {
        let (often, soon) = (self.ttl / 3, self.ttl / 20);
        let mut pause = often;
        loop {
            if ended.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return None;
            }
            let asked = Instant::now();
            let left = self.until.saturating_duration_since(asked);
            // What runs is to end while the lock is still its own.
            if left <= self.ttl / 10 {
                let time = short(self.ttl);
                return Some(format!("{} was not reached for {time}", self.server.url()));
            }
            let renewed = renewal(&self.name, self.token, self.ttl)
                .map_err(|error| error.to_string())
                .map(|request| self.server.try_ask(&request.within(Some(left)), Duration::ZERO));
            pause = match renewed {
                Ok(Ok(_)) => {
                    self.until = asked + self.ttl;
                    often
                }
                Ok(Err(Trouble::Refused(Problem { code: Some(Code::LockLost), detail, .. }))) => {
                    return Some(detail);
                }
                _ => soon,
            };
        }
    }

    /// Gives it back. One that could not be told is free when its time is over.
    pub(crate) fn leave(self) -> Result<Option<String>, Failure> {
        match self.server.release_lock(&self.name, self.token) {
            Ok(()) => Ok(None),
            Err(failure @ Failure::Library(Error::Lock(LockError::Lost(_)))) => Err(failure),
            Err(_) => {
                let time = short(self.ttl);
                Ok(Some(format!("lock {} could not be given back; it is free within {time}", self.name)))
            }
        }
    }
}
