//! Fair scheduling: users take turns at the connections of a store, and no user occupies all of them. A user with
//! many requests waits in a queue of their own, and pauses between two requests while others are active: a free slot
//! does not help while the cores are busy.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::ids::{SecretHash, UserName};

/// Cores that this process runs on: where a store has fewer slots for a user than that, one user cannot keep all of them busy.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Lane of the service's own work, such as heartbeats. Not a valid name of a user.
pub(super) const SERVICE: &str = " service";

/// Time after a request during which a user counts as active.
const PRESENT: Duration = Duration::from_millis(250);

/// Shortest and longest pause of a user with a queue; between them it lasts as long as the last requests took.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// A round-robin queue of users.
#[derive(Clone, Debug)]
pub(super) struct FairQueue(Arc<QueueInner>);

#[derive(Debug)]
struct QueueInner {
    /// Slots that one user can have at a time.
    each: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    lanes: HashMap<Arc<str>, Lane>,
    /// Users who wait and may have another slot, in the order in which they get one.
    next: VecDeque<Arc<str>>,
    /// Last user that got a slot, and the last other one before.
    last: Option<(Arc<str>, Instant)>,
    other: Option<(Arc<str>, Instant)>,
}

/// Slots and waiters of one user.
#[derive(Debug, Default)]
struct Lane {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Slot>>,
    /// Whether the user is among the next.
    is_next: bool,
    /// Time that requests took since the last pause.
    owed: Duration,
}

/// Permit of a running request, released on drop.
#[derive(Debug)]
pub(super) struct Slot(Option<SlotUse>);

#[derive(Debug)]
struct SlotUse {
    queue: FairQueue,
    user: Arc<str>,
    since: Instant,
}

impl FairQueue {
    /// Queue with limits of all slots and of slots per user.
    pub(super) fn new(slots: usize, each: usize) -> Self {
        let (lanes, next) = (HashMap::new(), VecDeque::new());
        let state = State { free: slots, lanes, next, last: None, other: None };
        FairQueue(Arc::new(QueueInner { each, state: Mutex::new(state) }))
    }

    /// Waits for a slot. A cancelled wait takes none.
    pub(super) async fn enter(&self, user: &str) -> Slot {
        let waits = match self.join(user) {
            Ok(slot) => return slot,
            Err(waits) => waits,
        };
        // Nobody drops a sender: a queue outlives those who wait in it.
        waits.await.unwrap_or(Slot(None))
    }

    /// A slot, or the place to wait for one.
    fn join(&self, user: &str) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut state = self.state();
        let known = state.lanes.get_key_value(user).map(|(user, _)| Arc::clone(user));
        let user = known.unwrap_or_else(|| Arc::from(user));
        let each = self.0.each;
        let State { free, lanes, next, .. } = &mut *state;
        let lane = lanes.entry(Arc::clone(&user)).or_default();
        // Not past the user's own waiters, even if a slot is free.
        if *free > 0 && lane.running < each && lane.waiting.is_empty() {
            *free -= 1;
            lane.running += 1;
            return Ok(self.slot(&mut state, user));
        }
        let (slot, waits) = oneshot::channel();
        lane.waiting.push_back(slot);
        if lane.running < each && !lane.is_next {
            lane.is_next = true;
            next.push_back(user);
        }
        Err(waits)
    }

    fn slot(&self, state: &mut State, user: Arc<str>) -> Slot {
        let since = Instant::now();
        state.note(&user, since);
        Slot(Some(SlotUse { queue: self.clone(), user, since }))
    }

    /// Returns a slot, and grants free slots to waiters.
    fn leave(&self, user: Arc<str>, held: Duration) {
        let mut state = self.state();
        state.free += 1;
        // Without a runtime there is nobody who could wait.
        let pause = Handle::try_current().ok().zip(state.pause_of(&user, held, Instant::now()));
        match pause {
            None => state.left(&user, self.0.each),
            Some((runtime, pause)) => {
                let queue = self.clone();
                runtime.spawn(async move {
                    tokio::time::sleep(pause).await;
                    let mut state = queue.state();
                    // The slot is free during the pause, but still counts as the user's.
                    state.left(&user, queue.0.each);
                    queue.hand_out(&mut state);
                });
            }
        }
        self.hand_out(&mut state);
    }

    fn hand_out(&self, state: &mut State) {
        while let Some((user, waiter)) = state.grant(self.0.each) {
            let slot = self.slot(state, Arc::clone(&user));
            // The receiver runs only later: nothing is locked twice here.
            if let Err(mut gone) = waiter.send(slot) {
                // Its drop would lock the queue again, which is locked here.
                gone.0 = None;
                state.free += 1;
                state.left(&user, self.0.each);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Records that a user got a slot.
    fn note(&mut self, user: &Arc<str>, now: Instant) {
        // The service's own work needs little and comes often: a user who is alone must not pause for it.
        if &**user == SERVICE {
            return;
        }
        if self.last.as_ref().is_some_and(|(last, _)| last != user) {
            self.other = self.last.take();
        }
        self.last = Some((Arc::clone(user), now));
    }

    /// Pause of a user after a request, if more of their requests wait and other users are active.
    fn pause_of(&mut self, user: &str, held: Duration, now: Instant) -> Option<Duration> {
        let lane = self.lanes.get_mut(user)?;
        // Requests whose clients are gone must not make the user pause.
        while lane.waiting.front().is_some_and(oneshot::Sender::is_closed) {
            lane.waiting.pop_front();
        }
        let mut others = [&self.last, &self.other].into_iter().flatten();
        let is_alone =
            !others.any(|(other, at)| **other != *user && now.saturating_duration_since(*at) < PRESENT);
        if is_alone || lane.waiting.is_empty() {
            // Time that nobody else waited for is not charged later.
            lane.owed = Duration::ZERO;
            return None;
        }
        lane.owed += held;
        (lane.owed >= PAUSE.0).then(|| std::mem::take(&mut lane.owed).min(PAUSE.1))
    }

    /// One of a user's slots has come free.
    fn left(&mut self, user: &str, each: usize) {
        let Some((user, _)) = self.lanes.get_key_value(user) else { return };
        let user = Arc::clone(user);
        let Some(lane) = self.lanes.get_mut(&user) else { return };
        lane.running -= 1;
        // Lanes of users that are idle would grow with the number of users.
        if lane.running == 0 && lane.waiting.is_empty() {
            self.lanes.remove(&user);
        } else if lane.running < each && !lane.waiting.is_empty() && !lane.is_next {
            lane.is_next = true;
            self.next.push_back(user);
        }
    }

    /// Gives a free slot to the next user.
    fn grant(&mut self, each: usize) -> Option<(Arc<str>, oneshot::Sender<Slot>)> {
        if self.free == 0 {
            return None;
        }
        let user = self.next.pop_front()?;
        let lane = self.lanes.get_mut(&user)?;
        lane.is_next = false;
        let slot = lane.waiting.pop_front()?;
        self.free -= 1;
        lane.running += 1;
        // To the back: a user with many requests gets one slot per round.
        if lane.running < each && !lane.waiting.is_empty() {
            lane.is_next = true;
            self.next.push_back(Arc::clone(&user));
        }
        Some((user, slot))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(SlotUse { queue, user, since }) = self.0.take() {
            queue.leave(user, since.elapsed());
        }
    }
}

/// Tokens that are remembered at most.
const REMEMBERED: usize = 65_536;

/// Owners of tokens by hash, from earlier look-ups. They only select the lane in which the next check waits; the
/// validity of a token is read from the store each time.
#[derive(Clone, Debug, Default)]
pub(super) struct TokenOwners(Arc<Mutex<HashMap<SecretHash, Arc<str>>>>);

impl TokenOwners {
    /// Lane of tokens without a known owner. Not a valid name of a user.
    pub(super) const STRANGERS: &str = "";

    pub(super) fn lane(&self, hash: &SecretHash) -> Arc<str> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(hash).map_or_else(|| Arc::from(Self::STRANGERS), Arc::clone)
    }

    /// Remembers what a check found.
    pub(super) fn remember(&self, hash: &SecretHash, owner: Option<&UserName>) {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match owner {
            Some(owner) if owners.get(hash).is_some_and(|known| **known == *owner.as_str()) => {}
            Some(owner) => {
                // Clearing costs each token one check in the strangers' lane; an eviction order would cost every check.
                if owners.len() >= REMEMBERED {
                    owners.clear();
                }
                owners.insert(hash.clone(), Arc::from(owner.as_str()));
            }
            None => drop(owners.remove(hash)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{FairQueue, PAUSE, PRESENT, SERVICE, Slot, TokenOwners};
    use crate::ids::SecretHash;

    /// A slot that is there at once.
    async fn at_once(queue: &FairQueue, user: &str) -> Option<Slot> {
        tokio::time::timeout(Duration::from_millis(1), queue.enter(user)).await.ok()
    }

    #[tokio::test]
    async fn user_with_many_requests_leaves_slots_for_others() {
        let queue = FairQueue::new(4, 2);
        let (one, two) = (queue.enter("ann").await, queue.enter("ann").await);
        assert!(at_once(&queue, "ann").await.is_none(), "ann has what one user can have");
        let his = [at_once(&queue, "bob").await, at_once(&queue, "bob").await];
        assert!(his.iter().all(Option::is_some));
        assert!(at_once(&queue, "eve").await.is_none(), "all slots are taken");
        drop((one, two, his));
        assert!(queue.state().lanes.is_empty() && queue.state().free == 4, "{queue:?}");
    }

    #[tokio::test]
    async fn waiting_users_take_turns() {
        let queue = FairQueue::new(1, 1);
        let held = queue.enter("eve").await;
        let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut work = tokio::task::JoinSet::new();
        for user in ["ann", "ann", "ann", "bob", "bob", "eve"] {
            let (queue, order) = (queue.clone(), std::sync::Arc::clone(&order));
            work.spawn(async move {
                let _slot = queue.enter(user).await;
                order.lock().unwrap().push(user);
            });
            tokio::task::yield_now().await;
        }
        drop(held);
        work.join_all().await;
        let mut order = order.lock().unwrap().clone();
        assert_eq!(order[..3], ["ann", "bob", "eve"]);
        assert_eq!(order[5], "ann");
        order[3..5].sort_unstable();
        assert_eq!(order[3..5], ["ann", "bob"]);
        assert!(queue.state().lanes.is_empty() && queue.state().free == 1, "{queue:?}");
    }

    #[tokio::test]
    async fn user_with_a_queue_pauses_only_for_other_users() {
        let queue = FairQueue::new(4, 1);
        let waiters = || queue.state().lanes.get("ann").map_or(0, |lane| lane.waiting.len());
        for (other, pauses) in [(None, false), (Some(SERVICE), false), (Some("bob"), true)] {
            // On a busy machine bob may have been away for too long when ann is done: then once more.
            loop {
                let begun = Instant::now();
                if let Some(other) = other {
                    drop(queue.enter(other).await);
                }
                let held = queue.enter("ann").await;
                let waiting = queue.clone();
                let waiter = tokio::spawn(async move { drop(waiting.enter("ann").await) });
                while waiters() == 0 {
                    tokio::task::yield_now().await;
                }
                // The pause is as long as the request took, and a shorter one than this is left out.
                tokio::time::sleep(PAUSE.0 * 2).await;
                drop(held);
                let is_judged = begun.elapsed() < PRESENT;
                let is_paused = waiters() == 1;
                // Others have the slot meanwhile.
                drop(queue.enter(other.unwrap_or(SERVICE)).await);
                waiter.await.unwrap();
                assert!(queue.state().lanes.is_empty(), "{queue:?}");
                if is_judged {
                    assert_eq!(is_paused, pauses);
                    break;
                }
            }
        }
    }

    #[tokio::test]
    async fn waiter_that_goes_away_takes_no_slot_along() {
        let queue = FairQueue::new(2, 1);
        let held = queue.enter("ann").await;
        let other = queue.enter("bob").await;
        // One that is not granted, and one that is granted and never looks.
        assert!(at_once(&queue, "ann").await.is_none());
        let mut granted = Box::pin(queue.enter("eve"));
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut granted).await.is_err());
        drop((held, other));
        drop(granted);
        assert!(queue.state().lanes.is_empty() && queue.state().free == 2, "{queue:?}");
        assert!(at_once(&queue, "ann").await.is_some());
    }

    #[test]
    fn unknown_tokens_share_one_lane() {
        let owners = TokenOwners::default();
        let (x, y) = (SecretHash::of("x"), SecretHash::of("y"));
        assert_eq!(&*owners.lane(&x), TokenOwners::STRANGERS);
        owners.remember(&x, Some(&"ann".parse().unwrap()));
        assert_eq!((&*owners.lane(&x), &*owners.lane(&y)), ("ann", TokenOwners::STRANGERS));
        owners.remember(&x, None);
        assert_eq!(&*owners.lane(&x), TokenOwners::STRANGERS);
    }
}
