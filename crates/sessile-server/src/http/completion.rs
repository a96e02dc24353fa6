//! Completion of a turn: the session's messages go upstream, and the reply is committed together with the new messages.
//!
//! A completion is a task of its own. If the client disconnects before the turn begins, its place is released; after
//! that the turn is completed, so that the same idempotency key finds the reply and the upstream is not paid twice. The
//! key belongs to the commit alone: the request for the turn has none, and a waiter under the same key looks again when
//! it holds the turn.
//!
//! The session's place in an agent's memory is deleted before the request to the agent. If the turn then fails, the
//! agent may know messages that the history does not hold. Only a commit stores it again, and any other change of the
//! messages deletes it. It is not a message, value or setting: a user who could write it could continue in the
//! context of another user.

use std::time::Duration;

use serde_json::Value;
use sessile_wire::backoff::Backoff;
use sessile_wire::service::ReplyResponse;
use tokio::sync::{mpsc, oneshot, watch};

use super::app::AppState;
use super::caller::ApiCaller;
use super::problem::ApiProblem;
use super::queue::{self, LeaseRequest, unexpected};
use super::response::replied;
use super::routes::last_bodies;
use crate::change::{Busy, ChangeOutcome, LockMode, Refusal, StoreChange};
use crate::ids::{FencingToken, SessionId};
use crate::json_text::JsonText;
use crate::model::{AgentConversation, Resource};
use crate::query::{CommittedTurn, Query, QueryAnswer, StoredOutcome};
use crate::upstream::{ReplyRequest, Upstream, UpstreamReply};

/// Lease of the turn, which is also how long a crash blocks the turn.
const TTL_MS: i64 = 30_000;

/// Retries of a commit while the store is unavailable. The idempotency key tells whether an earlier one succeeded.
const TRIES: u32 = 5;

/// Delays between them.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_millis(800);

/// A turn to complete.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) app: AppState,
    pub(crate) caller: ApiCaller,
    pub(crate) upstream: Upstream,
    pub(crate) session: SessionId,
    pub(crate) messages: Vec<JsonText>,
    pub(crate) if_last: Option<i64>,
    pub(crate) busy: Busy,
    pub(crate) wait_ms: i64,
    /// Number of last messages that are sent upstream.
    pub(crate) history: i64,
    pub(crate) streams: bool,
}

/// Receiver of the result.
type ResultSender = oneshot::Sender<Result<ReplyResponse, ApiProblem>>;

impl Completion {
    /// Starts the task. Returns the text of the reply so far, and the response at the end.
    pub(crate) fn start(
        self,
    ) -> (watch::Receiver<String>, oneshot::Receiver<Result<ReplyResponse, ApiProblem>>) {
        let (text, coming) = watch::channel(String::new());
        let (mut outcome, told) = oneshot::channel();
        // A shutdown waits for all clones of this sender to be gone.
        let busy: Option<mpsc::Sender<()>> = self.app.busy.upgrade();
        tokio::spawn(async move {
            let completed = self.completed(&text, &mut outcome).await;
            // The client may be gone.
            let _ = outcome.send(completed);
            drop(busy);
        });
        (coming, told)
    }

    async fn completed(
        &self,
        text: &watch::Sender<String>,
        outcome: &mut ResultSender,
    ) -> Result<ReplyResponse, ApiProblem> {
        if let Some(before) = self.answered().await? {
            return Ok(before);
        }
        let wanted = LeaseRequest {
            resource: self.turn(),
            holder: self.caller.token().user.to_string(),
            busy: self.busy,
            mode: LockMode::Exclusive,
            session: None,
            ttl_ms: self.ttl_ms(),
            wait_ms: self.wait_ms,
        };
        // Held until the end: an upstream may take minutes, in which the user's other requests need the slot.
        let _waits = self.caller.wait()?;
        // The key is the commit's: one that waits twice under it finds below what the first has done.
        let (ticket, given) = tokio::select! {
            biased;
            taken = queue::take(&self.app, self.caller.bound(), None, wanted) => taken?,
            () = outcome.closed() => return Err(ApiProblem::closing_down()),
        };
        let completed = match ticket.token {
            Some(token) => self.in_turn(token, text, outcome).await,
            None => Err(unexpected(&ticket)),
        };
        match &completed {
            Ok((_, true)) => given.keep(),
            // Before it is told, so that who tries again finds nobody there.
            _ => given.give_back().await,
        }
        completed.map(|(answer, _)| answer)
    }

    /// Response, and whether the turn ended with it.
    async fn in_turn(
        &self,
        token: FencingToken,
        text: &watch::Sender<String>,
        outcome: &mut ResultSender,
    ) -> Result<(ReplyResponse, bool), ApiProblem> {
        // A request under the same key may have committed while this one waited for the turn.
        if let Some(before) = self.answered().await? {
            return Ok((before, false));
        }
        let nobody_left = async {
            // A shutdown alone does not abort a reply that is paid for: somebody may still wait for it.
            self.app.closed().await;
            outcome.closed().await;
        };
        let reply = tokio::select! {
            reply = self.reply(token, text) => reply?,
            // A commit would be refused, and another holder may ask the upstream already.
            lost = self.lost(token) => return Err(lost),
            () = nobody_left => return Err(ApiProblem::closing_down()),
        };
        let mut bodies = self.messages.clone();
        bodies.push(reply.body);
        self.commit(token, bodies, reply.conversation).await
    }

    async fn reply(
        &self,
        token: FencingToken,
        text: &watch::Sender<String>,
    ) -> Result<UpstreamReply, ApiProblem> {
        let (bound, session) = (self.caller.bound(), &self.session);
        // The look at the session is the one that stands on the record.
        let query = Query::Session { session: session.clone().into() };
        let last = match self.caller.ask(query).await? {
            QueryAnswer::Session(session) => session.messages,
            other => return Err(unexpected(&other)),
        };
        if self.if_last.is_some_and(|expected| expected != last) {
            return Err(Refusal::Changed { revision: last }.into());
        }
        let history = last_bodies(&self.app, &bound, session, self.history).await?;
        let history: Vec<Value> = history.iter().map(JsonText::to_value).collect();
        let most = self.app.limits.message_bytes;
        let text = self.streams.then_some(text);
        let messages: Vec<Value> = self.messages.iter().map(JsonText::to_value).collect();
        let request = ReplyRequest { user: bound.user(), history: &history, messages: &messages, most, text };
        let reply = self.upstream.reply(request, self.conversation(token)).await?;
        if reply.body.get().len() > most {
            return Err(ApiProblem::unusable("the reply is too long"));
        }
        Ok(reply)
    }

    /// Takes the conversation with the agent out of the store: only a commit puts it back.
    async fn conversation(&self, token: FencingToken) -> Result<Option<AgentConversation>, ApiProblem> {
        let take = StoreChange::TakeConversation { session: self.session.clone(), token };
        match self.caller.bound().change(take, None).await? {
            ChangeOutcome::Conversation(conversation) => Ok(conversation),
            other => Err(unexpected(&other)),
        }
    }

    /// Renews the turn, and returns when it is lost.
    async fn lost(&self, token: FencingToken) -> ApiProblem {
        let ttl_ms = self.ttl_ms();
        loop {
            // A third of the lease leaves time for two more attempts if the store is away.
            tokio::time::sleep(Duration::from_millis(ttl_ms.unsigned_abs() / 3)).await;
            let renew = StoreChange::Renew { resource: self.turn(), token, ttl_ms };
            match self.caller.bound().change(renew, None).await {
                Err(problem) if !problem.is_unreachable() => return problem,
                _ => {}
            }
        }
    }

    /// Response, and whether the turn ended with it.
    async fn commit(
        &self,
        token: FencingToken,
        bodies: Vec<JsonText>,
        conversation: Option<AgentConversation>,
    ) -> Result<(ReplyResponse, bool), ApiProblem> {
        let (mut tries, mut backoff) = (0, Backoff::new(FIRST_DELAY, MAX_DELAY));
        loop {
            let change = StoreChange::CommitTurn {
                session: self.session.clone(),
                token,
                bodies: bodies.clone(),
                conversation: conversation.clone(),
            };
            let problem = match self.caller.change(change).await {
                Ok(ChangeOutcome::Appended { first, .. }) => return Ok((replied(first, bodies), true)),
                Ok(other) => return Err(unexpected(&other)),
                Err(problem) => problem,
            };
            tries += 1;
            // Without a key a commit that succeeded unseen could not be told from one that failed.
            if problem.is_unreachable() && self.caller.key().is_some() && tries < TRIES {
                tokio::time::sleep(backoff.next_delay()).await;
                continue;
            }
            // Another with the same key may have been faster.
            return match self.answered().await {
                Ok(Some(before)) => Ok((before, false)),
                _ => Err(problem),
            };
        }
    }

    /// Earlier response under the idempotency key.
    async fn answered(&self) -> Result<Option<ReplyResponse>, ApiProblem> {
        let Some(key) = self.caller.key() else { return Ok(None) };
        let query = Query::Answered { session: self.session.clone(), key };
        match self.caller.ask_more(query).await? {
            QueryAnswer::Answered(None) => Ok(None),
            QueryAnswer::Answered(Some(before)) => match *before {
                StoredOutcome {
                    turn: Some(CommittedTurn { session, bodies }),
                    done: ChangeOutcome::Appended { first, .. },
                    // The reply is not part of the request, so the changes cannot be compared as a whole.
                } if session == self.session && self.is_before_reply(&bodies) => {
                    Ok(Some(replied(first, bodies)))
                }
                _ => Err(Refusal::KeyReused.into()),
            },
            other => Err(unexpected(&other)),
        }
    }

    /// Whether these are the messages of this request, and a reply.
    fn is_before_reply(&self, bodies: &[JsonText]) -> bool {
        bodies.len() == self.messages.len() + 1
            && bodies.iter().zip(&self.messages).all(|(before, message)| before.is_same(message))
    }

    fn turn(&self) -> Resource {
        Resource::Turn { session: self.session.clone() }
    }

    fn ttl_ms(&self) -> i64 {
        TTL_MS.min(self.app.limits.ttl_ms)
    }
}
