//! Questions, answered in one round, as of one moment.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::rows::{self, Found, json};
use super::sql::Sql;
use super::transaction::{Link, Step, Trouble, params, trouble};
use crate::change::Refusal;
use crate::db::record;
use crate::model::{Accessed, Entry, Event, Session, UserId};
use crate::query::{Answer, EventPage, Locked, Query};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// What a user may know.
pub(super) async fn answer(
    inner: &Arc<Inner>,
    user: &UserId,
    query: &Query,
) -> Result<Result<Answer, Refusal>, Trouble> {
    let mut link = Link::take(inner).await?;
    let asked = async {
        let asking = Asking { user: user.0.as_str(), link: &mut link };
        asking.answer(query).await
    };
    asked.await.map_err(|error| trouble(&error, false))
}

struct Asking<'a> {
    user: &'a str,
    link: &'a mut Link,
}

type Outcome = Result<Result<Answer, Refusal>, Error>;

impl Asking<'_> {
    async fn answer(mut self, query: &Query) -> Outcome {
        let user = || self.user.to_owned();
        match query {
            Query::Session { session } => {
                let called = Step::Run(Sql::SessionCalled, params![user(), session.clone()]);
                let (_, rows) = self.read(vec![called]).await?;
                let found = rows::sessions(at(&rows, 0))?;
                let found = self.with_settings(found).await?;
                Ok(found
                    .into_iter()
                    .next()
                    .map(|found| Answer::Session(found.session))
                    .ok_or(Refusal::NoSession))
            }
            Query::Sessions { live, label, after, limit } => {
                self.sessions(*live, label.as_ref(), after.clone(), *limit).await
            }
            Query::Messages { session, after, limit } => {
                let params = params![user(), session.clone(), *after, (*limit).max(0)];
                self.of(session, Step::Run(Sql::Messages, params), |rows| {
                    rows::messages(rows).map(Answer::Messages)
                })
                .await
            }
            Query::LastMessages { session, limit } => {
                let params = params![user(), session.clone(), (*limit).max(0)];
                self.of(session, Step::Run(Sql::LastMessages, params), |rows| {
                    rows::messages(rows).map(Answer::Messages)
                })
                .await
            }
            Query::Entries { session, key, after, limit } => {
                let after = after.clone().unwrap_or_default();
                let params = params![user(), session.clone(), key.clone(), after, (*limit).max(0)];
                self.of(session, Step::Run(Sql::Entries, params), |rows| {
                    rows.iter().map(entry).collect::<Result<_, _>>().map(Answer::Entries)
                })
                .await
            }
            Query::Answered { session, key } => {
                let known = Step::Run(Sql::Session, params![user(), session.clone()]);
                let made = Step::Run(Sql::Answered, params![user(), key.clone()]);
                let (_, rows) = self.read(vec![known, made]).await?;
                if at(&rows, 0).is_empty() {
                    return Ok(Err(Refusal::NoSession));
                }
                let Some(row) = at(&rows, 1).first() else { return Ok(Ok(Answer::Answered(None))) };
                Ok(record::before(row.try_get(0)?, row.try_get(1)?))
            }
            Query::Locks { after, limit } => {
                let from = format!("lock:{}", after.as_deref().unwrap_or(""));
                let locks = Step::Run(Sql::Locks, params![user(), from, (*limit).max(0)]);
                let (_, rows) = self.read(vec![locks]).await?;
                let lock = |row: &Row| {
                    let resource: &str = row.try_get(5)?;
                    let name = resource.strip_prefix("lock:").unwrap_or(resource).to_owned();
                    Ok(Locked { name, ticket: rows::ticket(row)?, waiting: row.try_get(6)? })
                };
                at(&rows, 0)
                    .iter()
                    .map(lock)
                    .collect::<Result<_, Error>>()
                    .map(|locks| Ok(Answer::Locks(locks)))
            }
            Query::History { session, since_ms, reads, before, limit } => {
                let sql = if *reads { Sql::HistoryAndReads } else { Sql::History };
                // Larger than every id.
                let before = before.clone().unwrap_or_else(|| "g".to_owned());
                let params = params![user(), before, since_ms.unwrap_or(0), session.clone(), (*limit).max(0)];
                let (_, rows) = self.read(vec![Step::Run(sql, params)]).await?;
                let history = at(&rows, 0).iter().map(accessed).collect::<Result<_, Error>>();
                history.map(|history| Ok(Answer::History(history)))
            }
            Query::Events { session, after, limit } => {
                let last = Step::Run(Sql::LastEvent, params![user(), session.clone()]);
                let params = params![user(), session.clone(), *after, (*limit).max(0)];
                let (_, rows) = self.read(vec![last, Step::Run(Sql::Events, params)]).await?;
                let Some(row) = at(&rows, 0).first() else { return Ok(Err(Refusal::NoSession)) };
                let events = at(&rows, 1).iter().map(event).collect::<Result<_, _>>()?;
                Ok(Ok(Answer::Events(EventPage { events, last: row.try_get(0)? })))
            }
        }
    }

    /// What is asked about a session, if there is one.
    async fn of(
        &mut self,
        session: &str,
        step: Step,
        answer: impl FnOnce(&[Row]) -> Result<Answer, Error>,
    ) -> Outcome {
        let known = Step::Run(Sql::Session, params![self.user.to_owned(), session.to_owned()]);
        let (_, rows) = self.read(vec![known, step]).await?;
        if at(&rows, 0).is_empty() {
            return Ok(Err(Refusal::NoSession));
        }
        answer(at(&rows, 1)).map(Ok)
    }

    async fn sessions(
        &mut self,
        live: bool,
        label: Option<&(String, String)>,
        mut after: Option<String>,
        limit: i64,
    ) -> Outcome {
        let mut sessions = Vec::new();
        // Those that do not fit are passed over, page by page.
        loop {
            // Larger than every id.
            let before = after.unwrap_or_else(|| "g".to_owned());
            let page = Step::Run(Sql::Sessions, params![self.user.to_owned(), before, limit.max(0)]);
            let (now, rows) = self.read(vec![page]).await?;
            let page = rows::sessions(at(&rows, 0))?;
            let Some(last) = page.last() else { break };
            after = Some(last.session.id.clone());
            let fits =
                |session: &Session| label.is_none_or(|(key, value)| session.labels.get(key) == Some(value));
            let fitting =
                page.into_iter().filter(|found| (!live || found.is_live(now)) && fits(&found.session));
            let fitting = self.with_settings(fitting.collect()).await?;
            sessions.extend(fitting.into_iter().map(|found| found.session));
            if i64::try_from(sessions.len()).unwrap_or(i64::MAX) >= limit {
                break;
            }
        }
        sessions.truncate(usize::try_from(limit).unwrap_or(0));
        Ok(Ok(Answer::Sessions(sessions)))
    }

    async fn with_settings(&mut self, mut found: Vec<Found>) -> Result<Vec<Found>, Error> {
        if found.is_empty() {
            return Ok(found);
        }
        let ids: Vec<String> = found.iter().map(|found| found.session.id.clone()).collect();
        let (_, rows) = self.read(vec![Step::Run(Sql::Settings, params![self.user.to_owned(), ids])]).await?;
        rows::with_settings(&mut found, at(&rows, 0))?;
        Ok(found)
    }

    /// What the steps find, and the time.
    async fn read(&mut self, steps: Vec<Step>) -> Result<(i64, Vec<Vec<Row>>), Error> {
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

fn entry(row: &Row) -> Result<Entry, Error> {
    Ok(Entry { key: row.try_get(0)?, value: json(row.try_get(1)?), revision: row.try_get(2)? })
}

fn accessed(row: &Row) -> Result<Accessed, Error> {
    Ok(Accessed {
        id: row.try_get(0)?,
        at_ms: row.try_get(1)?,
        action: row.try_get(2)?,
        session: row.try_get(3)?,
        subject: row.try_get(4)?,
        outcome: row.try_get(5)?,
        token_id: row.try_get(6)?,
    })
}

fn event(row: &Row) -> Result<Event, Error> {
    Ok(Event {
        number: row.try_get(0)?,
        kind: row.try_get(1)?,
        body: json(row.try_get(2)?),
        at_ms: row.try_get(3)?,
    })
}
