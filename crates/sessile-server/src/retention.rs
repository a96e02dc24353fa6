//! Retention: sweeps delete expired rows in small slices, beside everything else.

use std::time::Duration;

use tokio::sync::watch;

use crate::clock::now_ms;
use crate::ids::UserName;
use crate::store::{ExpiringRows, ServiceStore, ServiceStoreError, Sweep, SweepKind, SweepLimit};

/// Rows that are deleted at once.
const TOGETHER: i64 = 1000;

/// Sessions that are looked for at once.
const SESSIONS: i64 = 100;

/// Users that are looked for at once.
const USERS: i64 = 100;

/// The lease of the process that sweeps for all: if the process dies, another takes over when the lease has expired.
const LEASE_NAME: &str = "sweep";
const LEASE: Duration = Duration::from_secs(2 * 600);

/// Pause between two deletions.
const PAUSE: Duration = Duration::from_millis(50);

/// Delay of the first sweep after the start, and interval of the others.
const FIRST: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(600);

/// Retention of rows and sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Outcomes of changes that were made under an idempotency key.
    pub answered: Duration,
    /// Events of sessions.
    pub events: Duration,
    /// The audit log.
    pub audit: Duration,
    /// Retention of ended sessions; `None` keeps them.
    pub sessions: Option<Duration>,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        RetentionPolicy { answered: days(1), events: days(7), audit: days(90), sessions: None }
    }
}

/// Retention of ended sessions that a service is started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionRetention {
    /// The store's own, from when it was made.
    #[default]
    OfStore,
    /// For this time after their end.
    For(Duration),
    /// Never removed.
    Forever,
}

impl SessionRetention {
    /// Retention of ended sessions; `None` keeps them.
    pub(crate) async fn resolve(self, db: &ServiceStore) -> Result<Option<Duration>, ServiceStoreError> {
        match self {
            SessionRetention::OfStore => db.session_retention().await,
            SessionRetention::For(time) => Ok(Some(time)),
            SessionRetention::Forever => Ok(None),
        }
    }
}

/// Removes rows and sessions that are older than their retention at a time, and returns their numbers. It visits only
/// users with old rows, and only after another 1 % of the retention has passed; otherwise it would visit an active
/// user each time for a few rows. Processes may sweep concurrently.
pub async fn sweep(
    db: &ServiceStore,
    keep: &RetentionPolicy,
    now_ms: i64,
) -> Result<usize, ServiceStoreError> {
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let kinds = [
        (SweepKind::Rows(ExpiringRows::Answered), Some(keep.answered)),
        (SweepKind::Rows(ExpiringRows::Events), Some(keep.events)),
        (SweepKind::Rows(ExpiringRows::Audit), Some(keep.audit)),
        (SweepKind::Sessions, keep.sessions),
    ];
    let mut removed = 0;
    for (what, time) in kinds {
        let Some(time) = time else { continue };
        let before_ms = now_ms.saturating_sub(millis(time));
        let sweep = Sweep { kind: what, before_ms, now_ms };
        let look = Sweep { before_ms: before_ms.saturating_sub(millis(time / 100)), ..sweep };
        loop {
            let due = db.due(look, USERS).await?;
            if due.is_empty() {
                break;
            }
            for user in due {
                removed += match what {
                    SweepKind::Rows(rows) => sweep_rows(db, &user, rows, before_ms).await?,
                    SweepKind::Sessions => sweep_sessions(db, &user, before_ms).await?,
                };
                // After the deletions: a crash in between only sweeps the user again.
                db.mark_swept(&user, sweep).await?;
            }
        }
    }
    Ok(removed)
}

async fn sweep_rows(
    db: &ServiceStore,
    user: &UserName,
    rows: ExpiringRows,
    before_ms: i64,
) -> Result<usize, ServiceStoreError> {
    let mut removed = 0;
    loop {
        let some = db.delete_expired(user, rows, SweepLimit { before_ms, most: TOGETHER }).await?;
        removed += some;
        if i64::try_from(some).is_ok_and(|some| some < TOGETHER) {
            return Ok(removed);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn sweep_sessions(
    db: &ServiceStore,
    user: &UserName,
    before_ms: i64,
) -> Result<usize, ServiceStoreError> {
    let mut removed = 0;
    loop {
        let sessions = db.expired_sessions(user, SweepLimit { before_ms, most: SESSIONS }).await?;
        if sessions.is_empty() {
            return Ok(removed);
        }
        for session in sessions {
            while !db.delete_session(user, &session, SweepLimit { before_ms, most: TOGETHER }).await? {
                tokio::time::sleep(PAUSE).await;
            }
            removed += 1;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sweeps every now and then, until the service goes down, if no other process of the store does.
pub(crate) async fn run(db: ServiceStore, keep: RetentionPolicy, mut closing: watch::Receiver<bool>) {
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
            _ = sweep_as_leader(&db, &keep) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

/// Sweeps if this process has the lease, and renews it meanwhile.
async fn sweep_as_leader(db: &ServiceStore, keep: &RetentionPolicy) -> Result<(), ServiceStoreError> {
    if !db.acquire_lease(LEASE_NAME, LEASE).await? {
        return Ok(());
    }
    let renew = async {
        loop {
            // A sweep of many users may outlast the lease.
            tokio::time::sleep(LEASE / 4).await;
            // Two that sweep at once are slower, and nothing else.
            let _ = db.acquire_lease(LEASE_NAME, LEASE).await;
        }
    };
    tokio::select! {
        swept = sweep(db, keep, now_ms()) => swept.map(drop),
        () = renew => Ok(()),
    }
}
