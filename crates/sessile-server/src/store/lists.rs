//! Lists with filters, for both stores: turn the result of a bounded scan into a page and the cursor of the next one.

use crate::ids::SessionId;
use crate::model::{HistoryEntry, Ticket};
use crate::query::{ListPage, LockRecord, SCAN_ROWS};

/// A session that a scan came across.
pub(super) struct SessionCandidate {
    pub(super) id: SessionId,
    /// Whether the session passes the filters.
    pub(super) matches: bool,
}

/// Larger than every id.
// Ids are hexadecimal digits and dashes, which all sort before this letter.
pub(super) const LAST_ID: &str = "g";

/// Sessions to load for a page, and the cursor of the next page.
pub(super) type SessionPick = (Vec<SessionId>, Option<String>);

/// A page of the live sessions, if `live` are all of them; else they have to be searched for. In any order.
pub(super) fn pick_live(
    mut live: Vec<SessionCandidate>,
    after: Option<&str>,
    limit: i64,
) -> Option<SessionPick> {
    // One row more than the bound was asked for, so this tells that some are missing.
    if rows(live.len()) > SCAN_ROWS {
        return None;
    }
    let after = after.unwrap_or(LAST_ID);
    live.retain(|candidate| candidate.id.as_str() < after);
    // They come in the order of expiry, which is that of the index.
    live.sort_unstable_by(|one, other| other.id.cmp(&one.id));
    Some(pick(live, i64::MAX, limit))
}

/// A page of what a scan of `scan` rows found, the newest first. The next page goes on where the page is full, or behind the
/// last row of the scan.
pub(super) fn pick(candidates: Vec<SessionCandidate>, scan: i64, limit: i64) -> SessionPick {
    let is_cut = rows(candidates.len()) >= scan;
    let (mut picked, mut last) = (Vec::new(), None);
    for candidate in candidates {
        if rows(picked.len()) >= limit {
            return (picked, last.map(String::from));
        }
        last = Some(candidate.id.clone());
        if candidate.matches {
            picked.push(candidate.id);
        }
    }
    let next = last.filter(|_| is_cut || rows(picked.len()) >= limit);
    (picked, next.map(String::from))
}

/// Rows to read for a page of the audit log; with a filter, more than requested.
pub(super) fn history_scan(session: Option<&str>, since_ms: Option<i64>, limit: i64) -> i64 {
    if session.is_some() || since_ms.is_some() { limit.max(SCAN_ROWS) } else { limit.max(0) }
}

/// Time by which ids and times of audit entries may be in different order: both clocks are not the same machine's.
const CLOCK_SKEW_MS: i64 = 3_600_000;

/// A page of the audit log, from the rows of a scan.
pub(super) fn history(
    scanned: Vec<HistoryEntry>,
    session: Option<&str>,
    since_ms: Option<i64>,
    limit: i64,
) -> ListPage<HistoryEntry> {
    let is_cut = rows(scanned.len()) >= history_scan(session, since_ms, limit);
    let since_ms = since_ms.unwrap_or(0);
    let (mut items, mut last, mut is_older) = (Vec::new(), None, false);
    for access in scanned {
        if rows(items.len()) >= limit {
            return ListPage { items, next: last };
        }
        last = Some(access.id.clone());
        // Only the last row counts: rows are in the order of ids, and those after it are older still.
        is_older = access.at_ms < since_ms.saturating_sub(CLOCK_SKEW_MS);
        let is_of_session = session.is_none_or(|session| access.session.as_deref() == Some(session));
        if is_of_session && access.at_ms >= since_ms {
            items.push(access);
        }
    }
    let is_full = rows(items.len()) >= limit;
    ListPage { next: last.filter(|_| is_full || is_cut && !is_older), items }
}

/// Larger than the resource of every lock.
// A semicolon is the character after the colon of `lock:`.
pub(super) const AFTER_LOCKS: &str = "lock;";

/// A place in the queue of a lock.
pub(super) struct LockPlace {
    pub(super) name: String,
    pub(super) ticket: Ticket,
    /// Whether a process waits at the place.
    pub(super) has_process: bool,
}

/// Result of a scan of locks.
pub(super) enum LockScan {
    Page(ListPage<LockRecord>),
    /// One lock alone has more places than were scanned: read all of its places.
    Whole(String),
}

/// A page of locks, from the places that a scan of `scan` rows found, in the order of names.
pub(super) fn locks(places: Vec<LockPlace>, scan: i64, limit: i64, now: i64) -> LockScan {
    let is_cut = rows(places.len()) >= scan;
    let mut groups: Vec<(String, Vec<LockPlace>)> = Vec::new();
    for place in places {
        match groups.last_mut() {
            Some((name, group)) if *name == place.name => group.push(place),
            _ => groups.push((place.name.clone(), vec![place])),
        }
    }
    if is_cut {
        // Some of its places may be missing.
        match groups.pop() {
            Some((name, _)) if groups.is_empty() => return LockScan::Whole(name),
            _ => {}
        }
    }
    let (mut items, mut last) = (Vec::new(), None);
    for (name, places) in groups {
        if rows(items.len()) >= limit {
            return LockScan::Page(ListPage { items, next: last });
        }
        last = Some(name.clone());
        items.extend(locked(name, places, now));
    }
    let next = last.filter(|_| is_cut || rows(items.len()) >= limit);
    LockScan::Page(ListPage { items, next })
}

/// A page of one lock, from all of its places.
pub(super) fn whole_lock(places: Vec<LockPlace>, name: String, now: i64) -> ListPage<LockRecord> {
    let next = Some(name.clone());
    ListPage { items: locked(name, places, now).into_iter().collect(), next }
}

fn locked(name: String, places: Vec<LockPlace>, now: i64) -> Option<LockRecord> {
    let is_current = |place: &&LockPlace| place.ticket.expires_ms > now;
    let waits = |place: &&LockPlace| place.has_process && place.ticket.token.is_none();
    let waiting = rows(places.iter().filter(is_current).filter(waits).count());
    let is_held = |place: &LockPlace| place.ticket.token.is_some() && is_current(&place);
    let mut held = places.into_iter().filter(is_held).map(|place| place.ticket);
    Some(LockRecord { name, ticket: held.next()?, others: held.collect(), waiting })
}

fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
