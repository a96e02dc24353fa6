//! Questions, answered in one round, as of one moment.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::rows;
use super::sql::Sql;
use super::transaction::{PooledConnection, Step, TxError, params};
use crate::change::Refusal;
use crate::ids::{FencingToken, SessionId, UserName};
use crate::json_text::{JsonText, StoredValue};
use crate::model::{EntryRecord, HistoryEntry, SessionEvent, SessionRecord};
use crate::query::{EventPage, ListPage, PageSize, Query, QueryAnswer, SCAN_ROWS};
use crate::rules::{LoadedSession, StoredAnswer, idempotency};
use crate::store::columns::Column;
use crate::store::lists::{self, LockPlace, LockScan, SessionCandidate};

// At read committed each statement would see its own moment, and a page could contradict its session.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Answers a query of a user.
pub(super) async fn answer(
    inner: &Arc<Inner>,
    user: &UserName,
    query: &Query,
) -> Result<Result<QueryAnswer, Refusal>, TxError> {
    let mut link = PooledConnection::take(inner, user.as_str()).await?;
    let asked = async {
        let asking = QueryRun { user: user.as_str(), link: &mut link };
        asking.answer(query).await
    };
    asked.await.map_err(|error| TxError::of(&error, false))
}

struct QueryRun<'a> {
    user: &'a str,
    link: &'a mut PooledConnection,
}

type Outcome = Result<Result<QueryAnswer, Refusal>, Error>;

impl QueryRun<'_> {
    async fn answer(mut self, query: &Query) -> Outcome {
        let user = || self.user.to_owned();
        match query {
            Query::Session { session } => {
                let called = Step::Run(Sql::SessionCalled, params![user(), session.as_str().to_owned()]);
                let (_, rows) = self.read(vec![called]).await?;
                let found = rows::sessions(at(&rows, 0))?;
                let found = self.with_settings(found).await?;
                Ok(found
                    .into_iter()
                    .next()
                    .map(|found| QueryAnswer::Session(found.session))
                    .ok_or(Refusal::NoSession))
            }
            Query::Sessions { live, label, after, limit } => {
                let (ids, next) = self.pick(*live, label.as_ref(), after.as_deref(), *limit).await?;
                let items = self.sessions(ids, *live).await?;
                Ok(Ok(QueryAnswer::Sessions(ListPage { items, next })))
            }
            Query::Messages { session, after, limit, bytes } => {
                let params = params![user(), session.to_string(), *after, (*limit).max(0), *bytes];
                self.messages(Step::Run(Sql::Messages, params)).await
            }
            Query::LastMessages { session, limit, bytes } => {
                let params = params![user(), session.to_string(), (*limit).max(0), *bytes];
                self.messages(Step::Run(Sql::LastMessages, params)).await
            }
            Query::Entries { session, key, after, limit, bytes } => {
                let after = after.clone().unwrap_or_default();
                let params =
                    params![user(), session.to_string(), key.clone(), after, (*limit).max(0), *bytes];
                self.of(session, Step::Run(Sql::Entries, params), |rows| {
                    let entries = rows.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
                    let mut size = PageSize::new(*bytes);
                    entries.iter().for_each(|entry: &EntryRecord| size.add(&entry.value));
                    Ok(QueryAnswer::Entries(ListPage::of(entries, *limit, size, |last| last.key.clone())))
                })
                .await
            }
            Query::Answered { session, key } => {
                let known = Step::Run(Sql::Session, params![user(), session.to_string()]);
                let made = Step::Run(Sql::Answered, params![user(), key.clone()]);
                let (_, rows) = self.read(vec![known, made]).await?;
                if at(&rows, 0).is_empty() {
                    return Ok(Err(Refusal::NoSession));
                }
                let Some(row) = at(&rows, 1).first() else { return Ok(Ok(QueryAnswer::Answered(None))) };
                Ok(idempotency::decode(&StoredAnswer { change: row.try_get(0)?, done: row.try_get(1)? }))
            }
            Query::Locks { after, limit } => self.locks(after.as_deref(), *limit).await,
            Query::SessionLocks { session } => self.session_locks(session).await,
            Query::History { session, since_ms, reads, before, limit } => {
                let sql = if *reads { Sql::HistoryAndReads } else { Sql::History };
                let before = before.clone().unwrap_or_else(|| lists::LAST_ID.to_owned());
                let scan = lists::history_scan(session.as_deref(), *since_ms, *limit);
                let (_, rows) = self.read(vec![Step::Run(sql, params![user(), before, scan])]).await?;
                let scanned = at(&rows, 0).iter().map(accessed).collect::<Result<_, Error>>()?;
                Ok(Ok(QueryAnswer::History(lists::history(scanned, session.as_deref(), *since_ms, *limit))))
            }
            Query::Events { session, after, limit } => {
                let last = Step::Run(Sql::LastEvent, params![user(), session.to_string()]);
                let params = params![user(), session.to_string(), *after, (*limit).max(0)];
                let (_, rows) = self.read(vec![last, Step::Run(Sql::Events, params)]).await?;
                let Some(row) = at(&rows, 0).first() else { return Ok(Err(Refusal::NoSession)) };
                let events = at(&rows, 1).iter().map(event).collect::<Result<_, _>>()?;
                Ok(Ok(QueryAnswer::Events(EventPage { events, last: row.try_get(0)? })))
            }
        }
    }

    /// Messages of a session, if it exists: one without messages has a row too.
    async fn messages(&mut self, step: Step<'_>) -> Outcome {
        let (_, rows) = self.read(vec![step]).await?;
        if at(&rows, 0).is_empty() {
            return Ok(Err(Refusal::NoSession));
        }
        rows::messages(at(&rows, 0)).map(|found| Ok(QueryAnswer::Messages(found)))
    }

    /// Answers a query about a session, if it exists.
    async fn of(
        &mut self,
        session: &SessionId,
        step: Step<'_>,
        answer: impl FnOnce(&[Row]) -> Result<QueryAnswer, Error>,
    ) -> Outcome {
        let known = Step::Run(Sql::Session, params![self.user.to_owned(), session.to_string()]);
        let (_, rows) = self.read(vec![known, step]).await?;
        if at(&rows, 0).is_empty() {
            return Ok(Err(Refusal::NoSession));
        }
        answer(at(&rows, 1)).map(Ok)
    }

    /// The sessions of a page, and the cursor of the next page.
    async fn pick(
        &mut self,
        live: bool,
        label: Option<&(String, String)>,
        after: Option<&str>,
        limit: i64,
    ) -> Result<lists::SessionPick, Error> {
        let user = self.user.to_owned();
        let (key, value) = label.cloned().unzip();
        if live {
            let params = params![user.clone(), key.clone(), value.clone(), SCAN_ROWS + 1];
            let live = self.candidates(Step::Run(Sql::Live, params)).await?;
            if let Some(picked) = lists::pick_live(live, after, limit) {
                return Ok(picked);
            }
        }
        // Where every row matches, no more of them are read than are asked for.
        let scan = if live { SCAN_ROWS.max(limit) } else { limit.max(0) };
        let after = after.unwrap_or(lists::LAST_ID).to_owned();
        let step = match label {
            Some(_) => Step::Run(Sql::Labelled, params![user, key, value, after, scan]),
            None => Step::Run(Sql::Newest, params![user, after, scan]),
        };
        let mut found = self.candidates(step).await?;
        if !live {
            found.iter_mut().for_each(|candidate| candidate.matches = true);
        }
        Ok(lists::pick(found, scan, limit))
    }

    async fn candidates(&mut self, step: Step<'_>) -> Result<Vec<SessionCandidate>, Error> {
        let (_, rows) = self.read(vec![step]).await?;
        let candidate = |row: &Row| {
            let matches: Option<bool> = row.try_get(1)?;
            Ok(SessionCandidate { id: row.try_get::<_, Column<_>>(0)?.0, matches: matches.unwrap_or(false) })
        };
        at(&rows, 0).iter().map(candidate).collect()
    }

    /// Sessions by their ids, the newest first.
    async fn sessions(&mut self, ids: Vec<SessionId>, live: bool) -> Result<Vec<SessionRecord>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = ids.into_iter().map(String::from).collect();
        let sessions = Step::Run(Sql::SessionsById, params![self.user.to_owned(), ids.clone()]);
        let settings = Step::Run(Sql::Settings, params![self.user.to_owned(), ids]);
        let (now, rows) = self.read(vec![sessions, settings]).await?;
        let mut found = rows::sessions(at(&rows, 0))?;
        // One that was ended since it was picked is not live any more.
        found.retain(|found| !live || found.session.is_live(now));
        rows::with_settings(&mut found, at(&rows, 1))?;
        Ok(found.into_iter().map(|found| found.session).collect())
    }

    async fn locks(&mut self, after: Option<&str>, limit: i64) -> Outcome {
        let after = format!("lock:{}", after.unwrap_or(""));
        let scan = SCAN_ROWS.max(limit);
        let (now, places) = self.places(&after, lists::AFTER_LOCKS, scan).await?;
        let page = match lists::locks(places, scan, limit, now) {
            LockScan::Page(page) => page,
            LockScan::Whole(name) => {
                let (now, all) = self.places(&after, &format!("lock:{name}"), i64::MAX).await?;
                lists::whole_lock(all, name, now)
            }
        };
        Ok(Ok(QueryAnswer::Locks(page)))
    }

    async fn session_locks(&mut self, session: &SessionId) -> Outcome {
        let params = params![self.user.to_owned(), session.to_string()];
        let (now, rows) = self.read(vec![Step::Run(Sql::SessionLocks, params)]).await?;
        let mut locks = Vec::new();
        for row in at(&rows, 0) {
            let (resource, expires_ms): (&str, i64) = (row.try_get(0)?, row.try_get(2)?);
            if let Some(name) = resource.strip_prefix("lock:").filter(|_| expires_ms > now) {
                locks.push((name.to_owned(), FencingToken::new(row.try_get(1)?)));
            }
        }
        Ok(Ok(QueryAnswer::SessionLocks(locks)))
    }

    async fn places(&mut self, after: &str, to: &str, scan: i64) -> Result<(i64, Vec<LockPlace>), Error> {
        let params = params![self.user.to_owned(), after.to_owned(), to.to_owned(), scan];
        let (now, rows) = self.read(vec![Step::Run(Sql::LockPlaces, params)]).await?;
        let place = |row: &Row| {
            let resource: &str = row.try_get(7)?;
            let name = resource.strip_prefix("lock:").unwrap_or(resource).to_owned();
            Ok(LockPlace { name, ticket: rows::ticket(row)?, has_process: row.try_get(8)? })
        };
        let places = at(&rows, 0).iter().map(place).collect::<Result<_, Error>>()?;
        Ok((now, places))
    }

    async fn with_settings(&mut self, mut found: Vec<LoadedSession>) -> Result<Vec<LoadedSession>, Error> {
        if found.is_empty() {
            return Ok(found);
        }
        let ids: Vec<String> = found.iter().map(|found| found.session.id.to_string()).collect();
        let (_, rows) = self.read(vec![Step::Run(Sql::Settings, params![self.user.to_owned(), ids])]).await?;
        rows::with_settings(&mut found, at(&rows, 0))?;
        Ok(found)
    }

    /// Rows of the steps, and the time.
    async fn read(&mut self, steps: Vec<Step<'_>>) -> Result<(i64, Vec<Vec<Row>>), Error> {
        let mut all = vec![Step::Plain(BEGIN), Step::Run(Sql::As, params![self.user.to_owned()])];
        all.extend(steps);
        all.push(Step::Plain("COMMIT"));
        let mut rows = self.link.send(&all).await?;
        let now = at(&rows, 1).first().map_or(Ok(0), |row| row.try_get(1))?;
        rows.drain(..2.min(rows.len()));
        Ok((now, rows))
    }
}

fn at(rows: &[Vec<Row>], index: usize) -> &[Row] {
    rows.get(index).map_or(&[], Vec::as_slice)
}

fn entry(row: &Row) -> Result<EntryRecord, Error> {
    Ok(EntryRecord {
        key: row.try_get(0)?,
        value: row.try_get::<_, Column<JsonText>>(1)?.0,
        revision: row.try_get(2)?,
    })
}

fn accessed(row: &Row) -> Result<HistoryEntry, Error> {
    Ok(HistoryEntry {
        id: row.try_get(0)?,
        at_ms: row.try_get(1)?,
        action: row.try_get(2)?,
        session: row.try_get(3)?,
        subject: row.try_get(4)?,
        outcome: row.try_get(5)?,
        token_id: row.try_get(6)?,
    })
}

fn event(row: &Row) -> Result<SessionEvent, Error> {
    Ok(SessionEvent {
        number: row.try_get(0)?,
        kind: row.try_get(1)?,
        body: row.try_get::<_, Column<StoredValue>>(2)?.0.0,
        at_ms: row.try_get(3)?,
    })
}
