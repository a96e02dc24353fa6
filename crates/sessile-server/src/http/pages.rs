//! Pages of a list: each ends at a number of items, or at a number of bytes.

use axum::response::Response;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use sessile_wire::service::CursorPage;

use super::caller::ApiCaller;
use super::problem::ApiProblem;
use super::reply;
use crate::limits::Limits;
use crate::query::{ListPage, Query, QueryAnswer};

/// Reads that may find less than they looked for; then the page ends early. Each of them is bounded by
/// [`SCAN_ROWS`](crate::query::SCAN_ROWS), so that no filter makes one request read everything.
const SHORT_READS: usize = 8;

/// Items that are serialized before other tasks of this thread run.
const YIELD_EVERY: usize = 64;

/// A list that is read in pages.
pub(crate) struct PagedList<T, W> {
    /// Query for so many items after a cursor.
    pub(crate) query: Box<dyn Fn(Option<String>, i64) -> Query + Send + Sync>,
    /// Number of items that are read from the store at once, where the query has no bound in bytes. Without it the page is
    /// one snapshot.
    pub(crate) at_once: Option<i64>,
    /// Page in an answer of the store.
    pub(crate) answered: fn(QueryAnswer) -> Result<ListPage<T>, ApiProblem>,
    /// Cursor of the page that begins after an item.
    pub(crate) cursor: fn(&T) -> &str,
    /// Item of the response.
    pub(crate) response: fn(T) -> W,
}

impl<T, W: Serialize> PagedList<T, W> {
    /// Page of at most `limit` items after a cursor.
    pub(crate) async fn page<P>(
        self,
        caller: &ApiCaller,
        limits: &Limits,
        limit: i64,
        mut after: Option<String>,
    ) -> Result<Response, ApiProblem>
    where
        P: CursorPage<Item = Box<RawValue>> + Serialize,
    {
        let (mut bytes, mut left, mut items) = (0, limit, Vec::new());
        let (mut reads, mut short_reads) = (0_usize, 0);
        while left > 0 && short_reads < SHORT_READS {
            let wanted = self.at_once.map_or(left, |at_once| left.min(at_once));
            let query = (self.query)(after.take(), wanted);
            // One request is one audit entry, however many reads the page takes.
            let answer = if reads == 0 { caller.ask(query).await? } else { caller.ask_more(query).await? };
            let ListPage { items: read, next } = (self.answered)(answer)?;
            reads += 1;
            short_reads += usize::from(i64::try_from(read.len()).is_ok_and(|read| read < wanted));
            for item in read {
                left -= 1;
                after = Some((self.cursor)(&item).to_owned());
                let raw = to_raw_value(&(self.response)(item));
                let raw = raw.map_err(|error| ApiProblem::internal(error.to_string()))?;
                bytes += raw.get().len();
                items.push(raw);
                // After the item is added: a page without items would never let its client get on.
                if bytes > limits.page_bytes {
                    return reply::page::<P>(items, after.as_deref());
                }
                // A thousand without a pause would keep this thread from everybody else.
                if items.len() % YIELD_EVERY == 0 {
                    tokio::task::yield_now().await;
                }
            }
            after = next;
            if after.is_none() || self.at_once.is_none() {
                break;
            }
        }
        reply::page::<P>(items, after.as_deref())
    }
}
