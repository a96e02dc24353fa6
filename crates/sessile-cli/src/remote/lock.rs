//! Locks of a service, and keeping one while a command runs.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use sessile::duration::short;
use sessile::error::{LockError, SessionError};
use sessile::lock::{LockHolder, LockMode, LockName};
use sessile::{Code, Error};
use sessile_wire::backoff::Backoff;
use sessile_wire::service::{BusyPolicy, HeldLock, LockPage, RenewLockRequest, ServiceLock, TakeLockRequest};

use super::client::{ServiceClient, ServiceRequest};
use super::error::{RemoteError, ServiceProblem, Subject};
use super::lock_holder::{holder_line, parse_holder};
use super::session::Remote;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::view::{LeaseView, LockView};

/// Longest wait of one request for a lock. After it the request is repeated under the same idempotency key.
const AT_ONCE: Duration = Duration::from_secs(60);

/// Time for retries while a lock is waited for.
const AWAY: Duration = Duration::from_secs(5);

impl ServiceClient {
    /// Waits for a lock and takes it for a time.
    pub(crate) fn take_lock(
        &self,
        (name, mode): (&LockName, LockMode),
        holder: &LockHolder,
        ttl: Duration,
        timeout: Duration,
        on_wait: &dyn Fn(Option<LockHolder>),
        session: Option<&str>,
    ) -> Result<ServiceLock, Failure> {
        let (begun, about) = (Instant::now(), Subject::default());
        // First without a wait, to tell the user who holds the lock before waiting for it.
        let mut wait = Duration::ZERO;
        // Under one idempotency key it is one place in the queue, however often the request is repeated.
        let mut key = None;
        loop {
            let body = TakeLockRequest {
                ttl_ms: Some(millis(ttl)),
                wait_ms: Some(millis(wait)),
                busy: BusyPolicy::Enqueue,
                mode,
                holder: Some(holder_line(holder)),
                session: session.map(str::to_owned),
            };
            let request =
                ServiceRequest::post(&["v1", "locks", name.as_str()], &body)?.under(key.take()).waiting(wait);
            match self.try_ask::<ServiceLock>(&request, AWAY) {
                Ok(lock) => return Ok(lock),
                Err(RemoteError::Refused(ServiceProblem { code: Some(Code::TimedOut), .. })) => {
                    key = request.key();
                }
                Err(RemoteError::Refused(ServiceProblem {
                    // The place has expired: the next request asks for a new one, under a new key.
                    code: Some(Code::LockHeld | Code::LockLost),
                    ..
                })) => {}
                Err(error) => return Err(error.into_failure(self.url(), &about)),
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                let held = self.held_lock(name)?.map(|held| holder_of(&held));
                return Err(LockError::Held {
                    name: name.to_string(),
                    is_own: held.as_ref().is_some_and(|held| held.is_same_session(holder)),
                    holder: held.map(|held| held.described_to(holder)),
                    waited: begun.elapsed(),
                }
                .into());
            }
            if wait.is_zero() {
                on_wait(self.held_lock(name)?.map(|held| holder_of(&held)));
            }
            wait = left.min(AT_ONCE);
        }
    }

    /// Renews the lease of a lock.
    pub(crate) fn renew_lock(
        &self,
        name: &LockName,
        token: i64,
        ttl: Duration,
    ) -> Result<ServiceLock, Failure> {
        self.ask(&renewal(name, token, ttl)?, &Subject { token, ..Subject::default() })
    }

    /// Gives a lock back.
    pub(crate) fn release_lock(&self, name: &LockName, token: i64) -> Outcome {
        let request = ServiceRequest::delete(&["v1", "locks", name.as_str()])?.with("token", &token);
        self.tell(&request, &Subject { token, ..Subject::default() })
    }

    /// Locks that are held.
    fn held_locks(&self) -> Result<Vec<HeldLock>, Failure> {
        let query = [("limit", "1000".to_owned())];
        self.pages::<LockPage>(&["v1", "locks"], &query, usize::MAX, &Subject::default())
    }

    fn held_lock(&self, name: &LockName) -> Result<Option<HeldLock>, Failure> {
        Ok(self.held_locks()?.into_iter().find(|held| held.lock.name == name.as_str()))
    }
}

impl Remote<'_> {
    pub(crate) fn locks(&self) -> Result<Vec<LockView>, Failure> {
        Ok(self.server.held_locks()?.into_iter().map(LockView::from).collect())
    }

    pub(crate) fn lock(&self, name: &LockName) -> Result<Option<LockView>, Failure> {
        Ok(self.server.held_lock(name)?.map(LockView::from))
    }

    pub(crate) fn acquire_lock(
        &self,
        name: &LockName,
        mode: LockMode,
        ttl: Duration,
    ) -> Result<LeaseView, Failure> {
        let Remote { server, cx } = self;
        let owner = match self.named() {
            None => None,
            Some((text, is_variable)) => match self.find(text, false) {
                // The variable of a session of this machine: the lock belongs to no session of the service.
                Err(Failure::Library(Error::Session(SessionError::NotFound(_)))) if is_variable => None,
                found => Some(found?.id),
            },
        };
        let session = owner.clone().or_else(|| self.named().map(|(text, _)| text.to_owned()));
        let holder = LockHolder::own(cx.state.world(), session, "lock acquire");
        let on_wait = |other: Option<LockHolder>| note_wait(cx, server.url(), name, other.as_ref());
        let timeout = cx.state.lock_timeout()?;
        let _step = cx.out.slow_step(|| format!("waiting for lock {name} of {}", server.url()));
        let lock = server.take_lock((name, mode), &holder, ttl, timeout, &on_wait, owner.as_deref())?;
        Ok(lock.into())
    }
}

/// Tells the user that a lock of a service is waited for.
pub(crate) fn note_wait(cx: &Cx, url: &str, name: &LockName, holder: Option<&LockHolder>) {
    let holder = holder.map_or_else(|| "another client".to_owned(), LockHolder::short);
    cx.out.note(&format!("waiting for lock {name} of {url}, held by {holder}"));
}

/// Holder of a lock.
pub(crate) fn holder_of(held: &HeldLock) -> LockHolder {
    parse_holder(&held.lock.ticket.holder)
}

fn renewal(name: &LockName, token: i64, ttl: Duration) -> Result<ServiceRequest, Error> {
    let body = RenewLockRequest { token, ttl_ms: Some(millis(ttl)) };
    ServiceRequest::post(&["v1", "locks", name.as_str(), "renew"], &body)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A lock whose lease is renewed while a command runs.
pub(crate) struct LockKeeper {
    pub(crate) server: ServiceClient,
    name: LockName,
    pub(crate) token: i64,
    ttl: Duration,
    /// Time until which the lock is certainly held, counted from before the last renewal was sent.
    until: Instant,
}

impl LockKeeper {
    /// Waits for a lock and acquires it.
    pub(crate) fn acquire(
        server: ServiceClient,
        (name, mode): (&LockName, LockMode),
        holder: &LockHolder,
        ttl: Duration,
        timeout: Duration,
        on_wait: &dyn Fn(Option<LockHolder>),
    ) -> Result<Self, Failure> {
        let lock = server.take_lock((name, mode), holder, ttl, timeout, on_wait, None)?;
        let mut kept =
            LockKeeper { server, name: name.clone(), token: lock.ticket.token, ttl, until: Instant::now() };
        // The request may have waited: only a renewal tells when the lease began.
        let asked = Instant::now();
        kept.server.renew_lock(name, kept.token, ttl)?;
        kept.until = asked + ttl;
        Ok(kept)
    }

    /// Renews the lease until the command has ended. Returns the reason if the lock is lost: the renewal was refused, or the
    /// lease expired without a response.
    pub(crate) fn keep(&mut self, ended: &Receiver<()>) -> Option<String> {
        // Leaves time for two more attempts before the lease ends.
        let often = self.ttl / 3;
        // The longest delay is less than the part of the lease that is left for the command to end in.
        let mut backoff = Backoff::new(self.ttl / 80, self.ttl / 20);
        let mut pause = often;
        loop {
            if ended.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return None;
            }
            let asked = Instant::now();
            let left = self.until.saturating_duration_since(asked);
            // The command must end while the lock is still its own.
            if left <= self.ttl / 10 {
                let time = short(self.ttl);
                return Some(format!("{} was unreachable for {time}", self.server.url()));
            }
            let renewed =
                renewal(&self.name, self.token, self.ttl).map_err(|error| error.to_string()).map(|request| {
                    self.server.try_ask::<ServiceLock>(&request.within(Some(left)), Duration::ZERO)
                });
            pause = match renewed {
                Ok(Ok(_)) => {
                    self.until = asked + self.ttl;
                    backoff.reset();
                    often
                }
                Ok(Err(RemoteError::Refused(ServiceProblem {
                    code: Some(Code::LockLost), detail, ..
                }))) => {
                    return Some(detail);
                }
                // Only the service knows whether the lock is lost; until it answers, the lease counts.
                _ => backoff.next_delay(),
            };
        }
    }

    /// Releases the lock. Returns a warning if the service cannot be reached; the lock is free then when its lease expires.
    pub(crate) fn release(self) -> Result<Option<String>, Failure> {
        match self.server.release_lock(&self.name, self.token) {
            Ok(()) => Ok(None),
            // The command may have run beside another holder, which its caller must know.
            Err(failure @ Failure::Library(Error::Lock(LockError::Lost(_)))) => Err(failure),
            Err(_) => {
                let time = short(self.ttl);
                Ok(Some(format!("lock {} could not be released; its lease ends within {time}", self.name)))
            }
        }
    }
}
