//! Feeds of events. Streams of one session share one poller; each buffers at most a page.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::caller::UserStore;
use super::problem::ApiProblem;
use super::queue::unexpected;
use crate::ids::{SessionId, UserName};
use crate::model::SessionEvent;
use crate::query::{EventPage, Query, QueryAnswer};

/// Events that are read at once.
const PAGE: i64 = 128;

/// Events that are kept in memory for followers that are a little behind.
const KEPT: usize = 256;

/// Interval at which events of other processes are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// With many sessions that are followed each is looked at less often, so that all of them together stay affordable.
const LOOK_PER_FEED: Duration = Duration::from_millis(1);

/// The sessions that are followed.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    // Weak, so that the last follower ends the poller by going.
    open: Mutex<HashMap<(UserName, SessionId), Weak<Feed>>>,
    count: AtomicUsize,
}

/// A session that is followed.
#[derive(Debug)]
pub(crate) struct Feed {
    recent: Mutex<VecDeque<Arc<SessionEvent>>>,
    head: watch::Sender<i64>,
    touched: Notify,
}

impl Feeds {
    /// Wakes the feed of a session.
    pub(crate) fn touched(&self, user: &UserName, session: SessionId) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = open.get(&(user.clone(), session)).and_then(Weak::upgrade) {
            feed.touched.notify_one();
        }
    }

    /// Feed of a session, for a follower that has seen the events up to a number.
    pub(crate) fn follow(self: &Arc<Self>, bound: &UserStore, session: &SessionId, seen: i64) -> Arc<Feed> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (bound.user().clone(), session.clone());
        if let Some(feed) = open.get(&key).and_then(Weak::upgrade) {
            return feed;
        }
        // The poller begins where the first follower is; a follower further behind reads from the store.
        let (head, _) = watch::channel(seen);
        let feed = Arc::new(Feed { recent: Mutex::default(), head, touched: Notify::new() });
        open.insert(key.clone(), Arc::downgrade(&feed));
        self.count.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(Arc::clone(self).look(Arc::downgrade(&feed), bound.clone(), key));
        feed
    }

    /// Polls for new events until the feed has no followers.
    async fn look(self: Arc<Self>, feed: Weak<Feed>, bound: UserStore, key: (UserName, SessionId)) {
        // Upgraded anew in each round, so that the poller itself does not keep the feed alive.
        while let Some(feed) = feed.upgrade() {
            let after = *feed.head.borrow();
            let more = match events(&bound, &key.1, after).await {
                Ok(page) => feed.push(page),
                // Followers keep their streams through a short outage; the next round tries again.
                Err(_) => false,
            };
            if !more {
                let feeds = u32::try_from(self.count.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
                let pause = LOOK.max(LOOK_PER_FEED.saturating_mul(feeds));
                let _ = tokio::time::timeout(pause, feed.touched.notified()).await;
            }
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A follower may have opened a new feed for the session since the last one went.
        if open.get(&key).is_some_and(|feed| feed.strong_count() == 0) {
            open.remove(&key);
        }
    }
}

impl Feed {
    /// Adds a page; returns whether to read the next one at once.
    fn push(&self, page: EventPage) -> bool {
        let EventPage { events, last } = page;
        let Some(last_read) = events.last().map(|event| event.number) else {
            // If a sweep was faster, followers look in the store and find the gap.
            self.head.send_if_modified(|head| last > std::mem::replace(head, last.max(*head)));
            return false;
        };
        let full = i64::try_from(events.len()).is_ok_and(|read| read >= PAGE);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.extend(events.into_iter().map(Arc::new));
        let extra = recent.len().saturating_sub(KEPT);
        recent.drain(..extra);
        // Released before followers are woken, for each of them takes this lock at once.
        drop(recent);
        self.head.send_replace(last_read);
        full
    }

    /// Waits for events after a number; `None` if they must be read from the store.
    pub(crate) async fn next(&self, seen: i64) -> Option<Vec<Arc<SessionEvent>>> {
        let mut head = self.head.subscribe();
        // The sender is this feed's own.
        let _ = head.wait_for(|head| *head > seen).await;
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = recent.front().map(|event| event.number)?;
        // The follower is further behind than the events that are kept in memory.
        if first > seen + 1 {
            return None;
        }
        let events: Vec<_> = recent.iter().filter(|event| event.number > seen).map(Arc::clone).collect();
        // None of them if a sweep was faster. Gaps among them are found by the stream itself.
        Some(events).filter(|events| !events.is_empty())
    }
}

/// A page of events after a number.
pub(crate) async fn events(
    bound: &UserStore,
    session: &SessionId,
    after: i64,
) -> Result<EventPage, ApiProblem> {
    match bound.peek(Query::Events { session: session.clone(), after, limit: PAGE }).await? {
        QueryAnswer::Events(page) => Ok(page),
        other => Err(unexpected(&other)),
    }
}

/// Whether a page is the last for now.
pub(crate) fn is_last(page: &EventPage) -> bool {
    i64::try_from(page.events.len()).is_ok_and(|read| read < PAGE)
}
