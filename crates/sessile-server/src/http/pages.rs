//! Pages of things that may be large: one ends at so many things, or at so many bytes.

use axum::response::Response;
use serde::Serialize;

use super::caller::Caller;
use super::problem::Problem;
use super::queue::unexpected;
use super::reply;
use crate::limits::Limits;
use crate::query::{Answer, Query};

/// How many are read from the store at once.
const AT_ONCE: i64 = 16;

/// What is on a page.
pub(crate) struct Paged<T> {
    /// What they are called.
    pub(crate) name: &'static str,
    /// The question for so many of them, after one.
    pub(crate) query: Box<dyn Fn(Option<String>, i64) -> Query + Send + Sync>,
    /// They, if they are what was answered.
    pub(crate) answered: fn(Answer) -> Option<Vec<T>>,
    /// What the next page begins after.
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
        while left > 0 {
            let wanted = left.min(AT_ONCE);
            let query = (self.query)(after.take(), wanted);
            let answer =
                if things.is_empty() { caller.ask(query).await? } else { caller.ask_more(query).await? };
            let read = (self.answered)(answer).ok_or_else(|| unexpected(&self.name))?;
            let is_end = i64::try_from(read.len()).is_ok_and(|read| read < wanted);
            for thing in read {
                left -= 1;
                bytes += serde_json::to_string(&thing).map_or(0, |text| text.len());
                after = Some((self.mark)(&thing).to_owned());
                things.push(thing);
                if bytes > limits.page_bytes {
                    return reply::page(self.name, &things, after.as_deref());
                }
            }
            if is_end {
                return reply::page(self.name, &things, None);
            }
        }
        reply::page(self.name, &things, after.as_deref())
    }
}
