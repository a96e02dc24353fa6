//! Pages of things that may be large: one ends at so many things, or at so many bytes.

use axum::response::Response;
use serde::Serialize;

use super::caller::Caller;
use super::problem::Problem;
use super::queue::unexpected;
use super::reply;
use crate::limits::Limits;
use crate::query::{Answer, ListPage, Query};

/// Reads that may find less than they looked for; then the page ends early. Each of them is bounded by
/// [`SCAN_ROWS`](crate::query::SCAN_ROWS), so that no filter makes one request read everything.
const SHORT_READS: usize = 8;

/// How many are written as JSON before other requests have their turn at this thread.
const YIELD_EVERY: usize = 64;

/// What is on a page.
pub(crate) struct Paged<T> {
    /// What they are called.
    pub(crate) name: &'static str,
    /// The question for so many of them, after one.
    pub(crate) query: Box<dyn Fn(Option<String>, i64) -> Query + Send + Sync>,
    /// How many are read from the store at once, where the query has no bound in bytes. Without it the page is one snapshot.
    pub(crate) at_once: Option<i64>,
    /// The page in an answer.
    pub(crate) answered: fn(Answer) -> Option<ListPage<T>>,
    /// Cursor of the page that begins after an item.
    pub(crate) mark: fn(&T) -> &str,
}

impl<T: Serialize> Paged<T> {
    /// At most `limit` of them, after one.
    pub(crate) async fn page(
        self,
        caller: &Caller,
        limits: &Limits,
        limit: i64,
        mut after: Option<String>,
    ) -> Result<Response, Problem> {
        let (mut bytes, mut left, mut things) = (0, limit, Vec::new());
        let (mut reads, mut short_reads) = (0_usize, 0);
        while left > 0 && short_reads < SHORT_READS {
            let wanted = self.at_once.map_or(left, |at_once| left.min(at_once));
            let query = (self.query)(after.take(), wanted);
            let answer = if reads == 0 { caller.ask(query).await? } else { caller.ask_more(query).await? };
            let ListPage { items, next } = (self.answered)(answer).ok_or_else(|| unexpected(&self.name))?;
            reads += 1;
            short_reads += usize::from(i64::try_from(items.len()).is_ok_and(|read| read < wanted));
            for thing in items {
                left -= 1;
                let text = serde_json::to_string(&thing);
                let text = text.map_err(|error| Problem::internal(error.to_string()))?;
                bytes += text.len();
                after = Some((self.mark)(&thing).to_owned());
                things.push(text);
                if bytes > limits.page_bytes {
                    return Ok(reply::page_of(self.name, &things, after.as_deref()));
                }
                // A thousand without a pause would keep this thread from everybody else.
                if things.len() % YIELD_EVERY == 0 {
                    tokio::task::yield_now().await;
                }
            }
            after = next;
            if after.is_none() || self.at_once.is_none() {
                break;
            }
        }
        Ok(reply::page_of(self.name, &things, after.as_deref()))
    }
}
