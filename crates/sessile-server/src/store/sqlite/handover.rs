//! Waits that the writer carries out with the change that makes their place next.
//!
//! A waiter stores its `Wait` here. A release of the turn or lock in this process makes the next waiter the holder in the same
//! transaction, so that a handover costs one sync and not two. A waiter without a stored `Wait`, or in another process, is woken
//! and sends its request again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{apply, describe};
use crate::change::StoreChange;
use crate::ids::{Position, UserName};
use crate::request::Request;
use crate::store::ServiceStoreError;
use crate::store::pending_wait::{PendingWait, WaitResult};

type Key = (UserName, String, Position);

/// Waits of this process, by place. A request that was sent again waits for the same place.
#[derive(Clone, Debug, Default)]
pub(super) struct Handover {
    waits: Arc<Mutex<HashMap<Key, Vec<LeftWait>>>>,
    next: Arc<AtomicU64>,
}

#[derive(Debug)]
struct LeftWait {
    id: u64,
    request: Request,
    reply: oneshot::Sender<WaitResult>,
}

/// A wait that was carried out, to be answered after the commit.
pub(super) struct MadeWait {
    reply: oneshot::Sender<WaitResult>,
    result: WaitResult,
}

impl MadeWait {
    /// Answers the waiter.
    pub(super) fn answer(self, committed: Result<(), ServiceStoreError>) {
        // A waiter that is gone by now releases its place.
        let _ = self.reply.send(committed.and(self.result));
    }
}

impl Handover {
    /// Leaves a wait, until the returned handle is dropped.
    pub(super) fn leave(&self, request: Request) -> PendingWait {
        let StoreChange::Wait { resource, place, .. } = &request.change else { return PendingWait::never() };
        let key = (request.user.clone(), resource.key(), *place);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.lock().entry(key.clone()).or_default().push(LeftWait { id, request, reply });
        let handover = self.clone();
        PendingWait::new(answer, move || handover.take_back(&key, id))
    }

    /// Carries out the stored waits for the next place in the queue, and for the places that come next because of that. Returns
    /// the first place without a stored wait.
    pub(super) fn carry_out(
        &self,
        connection: &Connection,
        process: &str,
        (user, resource): (&UserName, &str),
        mut next: Option<Position>,
        now: i64,
    ) -> (Vec<MadeWait>, Option<Position>) {
        let mut made = Vec::new();
        while let Some(place) = next {
            let left = self.lock().remove(&(user.clone(), resource.to_owned(), place));
            let Some(left) = left else { break };
            next = None;
            for LeftWait { request, reply, .. } in left {
                let applied = apply::apply(connection, process, &request, now);
                let result = applied.map_err(|error| describe(&error)).map(|(outcome, following)| {
                    next = next.or(following);
                    outcome
                });
                made.push(MadeWait { reply, result });
            }
        }
        (made, next)
    }

    /// Removes a wait. False if it is being carried out.
    fn take_back(&self, key: &Key, id: u64) -> bool {
        let mut waits = self.lock();
        let Some(left) = waits.get_mut(key) else { return false };
        let before = left.len();
        left.retain(|wait| wait.id != id);
        let is_removed = left.len() < before;
        if left.is_empty() {
            waits.remove(key);
        }
        is_removed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<LeftWait>>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
