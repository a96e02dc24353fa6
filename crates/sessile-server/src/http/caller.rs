//! Callers of the API. The store is behind this door: a caller is bound to one user, and nothing else in `http` can reach the
//! store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use tokio::sync::OwnedSemaphorePermit;

use super::anonymous_limits::PeerRateLimit;
use super::app::AppState;
use super::audit::Audit;
use super::feeds::Feeds;
use super::input;
use super::problem::ApiProblem;
use super::readiness::Readiness;
use super::user_quota::UserQuota;
use super::valid_tokens::ValidTokens;
use super::wakeups::WakeupHub;
use crate::account::{Token, TokenScope};
use crate::change::{ChangeOutcome, Refusal, StoreChange};
use crate::clock::now_ms;
use crate::ids::{Position, SecretHash, SessionId, TokenId, TokenSecret, UserName};
use crate::limits::Limits;
use crate::login::{self, LoginCodes, LoginOutcome};
use crate::model::Resource;
use crate::query::{Query, QueryAnswer};
use crate::request::{Access, AuditedRead, Request};
use crate::rules::audit::DONE;
use crate::store::{PendingWait, ServiceStore, WaitResult};

/// Scopes that a route requires. Every route has them; a request without them is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequiredScopes(pub(crate) &'static [TokenScope]);

/// Mark of a request made in this process on behalf of one that was charged already. No client can send it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlreadyCharged;

/// User and token of a request, for its log line.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestIdentity(pub(crate) Arc<Mutex<Option<(String, String)>>>);

/// Gate to the store: only it makes stores bound to a user.
#[derive(Debug)]
pub(crate) struct Gate {
    db: ServiceStore,
    audit: Audit,
    audit_reads: bool,
    quotas: Mutex<HashMap<UserName, Arc<UserQuota>>>,
    pub(crate) wakeups: Arc<WakeupHub>,
    pub(crate) feeds: Arc<Feeds>,
    valid_tokens: ValidTokens,
    readiness: Readiness,
}

impl Gate {
    pub(crate) fn new(db: ServiceStore, audit: Audit, audit_reads: bool) -> Self {
        Gate {
            db,
            audit,
            audit_reads,
            quotas: Mutex::default(),
            wakeups: Arc::default(),
            feeds: Arc::default(),
            valid_tokens: ValidTokens::default(),
            readiness: Readiness::default(),
        }
    }

    /// Fails unless the store can be read and written.
    pub(crate) async fn ready(&self) -> Result<(), ApiProblem> {
        Ok(self.readiness.check(&self.db).await?)
    }

    /// Begins a device login, which belongs to no user yet.
    pub(crate) async fn begin_login(
        &self,
        client: &str,
        peer: Option<String>,
        most: i64,
    ) -> Result<LoginCodes, ApiProblem> {
        let begun = login::begin(&self.db, client, peer, most).await?;
        begun.ok_or_else(|| ApiProblem::rate_limited("too many pending requests", 60_000))
    }

    /// Collects the token of an approved device login.
    pub(crate) async fn collect_login(&self, device_code: &str) -> Result<LoginOutcome, ApiProblem> {
        Ok(login::collect(&self.db, device_code).await?)
    }

    /// Token of a request. It is looked up by its hash, so no comparison depends on the secret itself: timing reveals
    /// at most the hash.
    ///
    /// Invalid tokens are rate limited. A look-up is charged before it begins, so that parallel requests cannot
    /// exceed the limit, and refunded unless the token proves invalid. A token that was valid at its last look-up is
    /// charged afterwards. Beyond the limit only recently valid tokens are looked up.
    async fn token(
        &self,
        headers: &HeaderMap,
        invalid_tokens: &PeerRateLimit,
        extensions: &Extensions,
    ) -> Result<(Token, SecretHash), ApiProblem> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        // Two Authorization headers could be read differently by a proxy and by this service.
        let (Some(value), None) = (given.next(), given.next()) else {
            return Err(ApiProblem::unauthenticated());
        };
        let value = value.to_str().map_err(|_| ApiProblem::unauthenticated())?;
        let (scheme, secret) = value.split_once(' ').ok_or_else(ApiProblem::unauthenticated)?;
        // Names of authentication schemes are case-insensitive (RFC 9110, 11.1).
        let secret = Some(secret.trim_end()).filter(|_| scheme.eq_ignore_ascii_case("bearer"));
        let hash = secret.and_then(TokenSecret::parse).ok_or_else(ApiProblem::unauthenticated)?.hash();
        // Looked up all the same: a revocation counts from the next request on.
        if self.valid_tokens.was_valid(&hash) {
            return match self.db.token(&hash).await? {
                Some(token) => Ok((token, hash)),
                None => {
                    self.valid_tokens.remove(&hash);
                    // Charged as far as something is left.
                    let _ = invalid_tokens.take(extensions);
                    Err(ApiProblem::unauthenticated())
                }
            };
        }
        let charge = match invalid_tokens.take(extensions) {
            Ok(charge) => Some(charge),
            Err(after_ms) if !self.valid_tokens.may_contain(&self.db, &hash).await? => {
                return Err(ApiProblem::rate_limited("too many invalid tokens", after_ms));
            }
            Err(_) => None,
        };
        let found = self.db.token(&hash).await;
        if let Some(charge) = charge
            // A store that fails says nothing about the token, so a client does not pay for an outage.
            && !matches!(found, Ok(None))
        {
            invalid_tokens.refund(charge);
        }
        let token = found?.ok_or_else(ApiProblem::unauthenticated)?;
        self.valid_tokens.add(&hash);
        Ok((token, hash))
    }

    fn quota(&self, user: &UserName, limits: &Limits) -> Arc<UserQuota> {
        let mut quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        // Only users that there are come here, so it grows no further than their number.
        Arc::clone(quotas.entry(user.clone()).or_insert_with(|| Arc::new(UserQuota::new(limits))))
    }

    fn bound(&self, token: &Token, hash: SecretHash) -> UserStore {
        UserStore {
            db: self.db.clone(),
            user: token.user.clone(),
            token: token.id.clone(),
            hash,
            audit: self.audit.clone(),
            audit_reads: self.audit_reads,
            wakeups: Arc::clone(&self.wakeups),
            feeds: Arc::clone(&self.feeds),
        }
    }
}

/// Store bound to one user.
#[derive(Clone, Debug)]
pub(crate) struct UserStore {
    db: ServiceStore,
    user: UserName,
    token: TokenId,
    hash: SecretHash,
    audit: Audit,
    audit_reads: bool,
    wakeups: Arc<WakeupHub>,
    feeds: Arc<Feeds>,
}

impl UserStore {
    pub(crate) fn user(&self) -> &UserName {
        &self.user
    }

    pub(crate) fn wakeups(&self) -> &WakeupHub {
        &self.wakeups
    }

    /// Returns when a change of another process may have made a place next.
    pub(crate) fn woken(
        &self,
        resource: &Resource,
        place: Position,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.db.wait_for_wakeup(&self.user, resource, place)
    }

    pub(crate) fn feeds(&self) -> &Arc<Feeds> {
        &self.feeds
    }

    /// Makes a change.
    pub(crate) async fn change(
        &self,
        change: StoreChange,
        key: Option<String>,
    ) -> Result<ChangeOutcome, ApiProblem> {
        // Taken before the change moves into the request.
        let touches = Touches::of(&change);
        let access = self.access()?;
        let request = Request { user: self.user.clone(), change, key, access };
        self.outcome(touches, self.db.change(request).await?).await
    }

    /// Leaves a wait with the store, which may carry it out together with the release that it waits for.
    pub(crate) fn wait_with_release(&self, wait: StoreChange) -> Result<PendingWait, ApiProblem> {
        let request = Request { user: self.user.clone(), change: wait, key: None, access: self.access()? };
        Ok(self.db.wait_with_release(request))
    }

    /// Outcome of a wait that the store carried out.
    pub(crate) async fn waited(
        &self,
        wait: &StoreChange,
        outcome: WaitResult,
    ) -> Result<ChangeOutcome, ApiProblem> {
        self.outcome(Touches::of(wait), outcome?).await
    }

    async fn outcome(
        &self,
        touches: Touches,
        outcome: Result<ChangeOutcome, Refusal>,
    ) -> Result<ChangeOutcome, ApiProblem> {
        match outcome {
            Ok(done) => {
                self.tell(touches, &done);
                Ok(done)
            }
            // A queue knows nothing of sessions: of one that the user has not, nothing can be lost either.
            Err(refusal @ (Refusal::Lost { .. } | Refusal::PlaceLost { .. })) => {
                if let Touches::Freed(Resource::Turn { session }) = touches {
                    self.peek(Query::Session { session: session.into() }).await?;
                }
                Err(refusal.into())
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Reads. The audit log has it if it was refused, or if reads are recorded at all.
    pub(crate) async fn ask(&self, query: Query) -> Result<QueryAnswer, ApiProblem> {
        let (action, session) = (query.name(), query.session().map(str::to_owned));
        let answer = self.db.ask(&self.user, query).await?;
        // A refused read is always recorded: somebody tried ids or names that are not theirs.
        if self.audit_reads || answer.is_err() {
            let outcome = answer.as_ref().map_or_else(Refusal::name, |_| DONE);
            self.record(action, session, outcome.to_owned()).await?;
        }
        Ok(answer?)
    }

    /// Reads on behalf of a request that is on the record already.
    pub(crate) async fn peek(&self, query: Query) -> Result<QueryAnswer, ApiProblem> {
        Ok(self.db.ask(&self.user, query).await??)
    }

    /// Whether the token is still valid. While the store is unavailable it counts as valid.
    pub(crate) async fn is_token_valid(&self) -> bool {
        // A short outage of the store must not end every stream and every wait.
        self.db.token(&self.hash).await.map_or(true, |token| token.is_some())
    }

    async fn record(&self, action: &str, session: Option<String>, outcome: String) -> Result<(), ApiProblem> {
        let (user, access) = (self.user.clone(), self.access()?);
        self.audit
            .record(AuditedRead {
                user,
                access,
                action: action.to_owned(),
                session,
                outcome,
                at_ms: now_ms(),
            })
            .await;
        Ok(())
    }

    fn access(&self) -> Result<Access, ApiProblem> {
        Ok(Access { id: input::new_id()?, token: Some(self.token.clone()) })
    }

    fn tell(&self, touches: Touches, done: &ChangeOutcome) {
        match touches {
            Touches::Session(session) => self.feeds.touched(&self.user, session),
            // All of them: each waiter of an ended session fails, and none hands on to the next.
            Touches::Ended(session) => {
                self.wakeups.notify_all(&self.user, Resource::Turn { session: session.clone() }.key());
                self.feeds.touched(&self.user, session);
            }
            Touches::Freed(resource) => {
                self.wakeups.notify_first(&self.user, resource.key());
                if let Resource::Turn { session } = resource {
                    self.feeds.touched(&self.user, session);
                }
            }
            Touches::Asked(Resource::Turn { session }) if matches!(done, ChangeOutcome::Ticket { ticket, .. } if ticket.token.is_some()) =>
            {
                self.feeds.touched(&self.user, session);
            }
            // Other shared holders may come up beside it.
            Touches::Asked(resource @ Resource::Lock { .. }) if matches!(done, ChangeOutcome::Ticket { ticket, .. } if ticket.token.is_some() && ticket.mode.is_shared()) =>
            {
                self.wakeups.notify_first(&self.user, resource.key());
            }
            Touches::Asked(_) | Touches::Nothing => {}
        }
    }
}

/// Waiters and streams that a change concerns.
enum Touches {
    Nothing,
    Session(SessionId),
    Ended(SessionId),
    Asked(Resource),
    Freed(Resource),
}

impl Touches {
    fn of(change: &StoreChange) -> Self {
        match change {
            StoreChange::StartSession { .. }
            | StoreChange::Fork { .. }
            | StoreChange::Renew { .. }
            | StoreChange::TakeConversation { .. } => Touches::Nothing,
            StoreChange::EditSession { session, .. }
            | StoreChange::Append { session, .. }
            | StoreChange::Rewind { session, .. }
            | StoreChange::SetEntry { session, .. } => Touches::Session(session.clone()),
            StoreChange::EndSession { session, .. } => Touches::Ended(session.clone()),
            StoreChange::Ask { resource, .. } | StoreChange::Wait { resource, .. } => {
                Touches::Asked(resource.clone())
            }
            StoreChange::Leave { resource, .. }
            | StoreChange::StepAside { resource, .. }
            | StoreChange::Release { resource, .. } => Touches::Freed(resource.clone()),
            StoreChange::CommitTurn { session, .. } => {
                Touches::Freed(Resource::Turn { session: session.clone() })
            }
        }
    }
}

/// Authorized caller: its token has the scopes of the route.
#[derive(Debug)]
pub(crate) struct ApiCaller {
    bound: UserStore,
    token: Token,
    key: Option<String>,
    quota: Arc<UserQuota>,
    at_once: Mutex<Option<OwnedSemaphorePermit>>,
}

impl ApiCaller {
    /// Makes a change, once for each idempotency key.
    pub(crate) async fn change(&self, change: StoreChange) -> Result<ChangeOutcome, ApiProblem> {
        self.bound.change(change, self.key.clone()).await
    }

    /// Reads.
    pub(crate) async fn ask(&self, query: Query) -> Result<QueryAnswer, ApiProblem> {
        self.bound.ask(query).await
    }

    /// Reads the next page of the same query, without another audit entry.
    pub(crate) async fn ask_more(&self, query: Query) -> Result<QueryAnswer, ApiProblem> {
        self.bound.peek(query).await
    }

    /// Store of the user, for tasks that outlive the request.
    pub(crate) fn bound(&self) -> UserStore {
        self.bound.clone()
    }

    pub(crate) fn key(&self) -> Option<String> {
        self.key.clone()
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Permit to wait, which frees the slot of an active request.
    pub(crate) fn wait(&self) -> Result<OwnedSemaphorePermit, ApiProblem> {
        let waiting = self.quota.waiting();
        let waiting =
            waiting.ok_or_else(|| ApiProblem::rate_limited("too many waiters of this user", 1000))?;
        // Waiters would otherwise use up all slots, and the request that releases the lock could not get in.
        *self.at_once.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(waiting)
    }

    /// Leave to follow one more session.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, ApiProblem> {
        self.quota
            .stream()
            .ok_or_else(|| ApiProblem::rate_limited("too many event streams of this user", 1000))
    }
}

impl FromRequestParts<AppState> for ApiCaller {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiProblem> {
        let (token, hash) =
            app.gate.token(&parts.headers, &app.anonymous_limits.invalid_tokens, &parts.extensions).await?;
        if let Some(RequestIdentity(who)) = parts.extensions.get() {
            *who.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((token.user.to_string(), token.id.to_string()));
        }
        // Charged before the scopes are checked, so that refused requests count too.
        let quota = app.gate.quota(&token.user, &app.limits);
        if parts.extensions.get::<AlreadyCharged>().is_none()
            && let Err(after_ms) = quota.take()
        {
            return Err(ApiProblem::rate_limited("rate limit of this user exceeded", after_ms));
        }
        let Some(at_once) = quota.at_once() else {
            return Err(ApiProblem::rate_limited("too many concurrent requests of this user", 100));
        };
        let bound = app.gate.bound(&token, hash);
        let Some(RequiredScopes(scopes)) = parts.extensions.get().copied() else {
            return Err(ApiProblem::internal("the route declares no scope"));
        };
        if let Some(missing) = scopes.iter().find(|scope| !token.scopes.contains(scope)) {
            let action = format!("{} {}", parts.method, input::route(&parts.extensions).unwrap_or_default());
            bound.record(&action, None, "out_of_scope".to_owned()).await?;
            return Err(ApiProblem::out_of_scope(*missing));
        }
        let key = key(&parts.headers)?;
        Ok(ApiCaller { bound, token, key, quota, at_once: Mutex::new(Some(at_once)) })
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ApiProblem> {
    let Some(key) = input::header(headers, "idempotency-key")? else { return Ok(None) };
    if key.is_empty() || key.len() > 255 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let detail = "invalid Idempotency-Key: 1 to 255 visible characters required";
        return Err(ApiProblem::new(StatusCode::BAD_REQUEST, sessile::Code::InvalidValue, detail));
    }
    Ok(Some(key.to_owned()))
}
