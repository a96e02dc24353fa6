//! How long things are kept, and who removes them: a little at a time, beside everything else.

use std::time::Duration;

use tokio::sync::watch;

use crate::clock::now_ms;
use crate::db::{Db, DbError, Old};

/// How many rows are removed at once.
const TOGETHER: i64 = 1000;

/// How long others have the store to themselves then.
const PAUSE: Duration = Duration::from_millis(50);

/// How long after its start a service looks for what is old, and how long after that it looks again.
const FIRST: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(600);

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// What a change came to that was made under an idempotency key.
    pub answered: Duration,
    /// Events of sessions.
    pub events: Duration,
    /// The record of accesses.
    pub audit: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        Keep { answered: days(1), events: days(7), audit: days(90) }
    }
}

/// Removes what is older than it is to be kept, as of a time; how many rows. Any number of processes may do so at once.
pub async fn sweep(db: &Db, keep: &Keep, now_ms: i64) -> Result<usize, DbError> {
    let mut removed = 0;
    for account in db.accounts().await? {
        for (what, time) in
            [(Old::Answered, keep.answered), (Old::Events, keep.events), (Old::Audit, keep.audit)]
        {
            let before = now_ms.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
            loop {
                let some = db.forget(&account.user, what, before, TOGETHER).await?;
                removed += some;
                if i64::try_from(some).is_ok_and(|some| some < TOGETHER) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Ok(removed)
}

/// Sweeps every now and then, until the service goes down.
pub(crate) async fn run(db: Db, keep: Keep, mut closing: watch::Receiver<bool>) {
    let mut pause = FIRST;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // That nobody is there to say so any more means the same.
            _ = closing.wait_for(|closing| *closing) => return,
        }
        pause = AGAIN;
        tokio::select! {
            // A store that fails now is there again the next time, and so is what is old.
            _ = sweep(&db, &keep, now_ms()) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}
