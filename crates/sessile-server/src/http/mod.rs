//! The service over HTTP. A request passes `router` (its id, its log line, its metrics), then the caller's door
//! (`caller`), then a handler in `routes`.
//!
//! | module | content |
//! |---|---|
//! | `router`, `route`, `parameters`, `openapi` | one list of routes, which yields the router and the OpenAPI document |
//! | `caller`, `user_quota` | token, scopes and quota of the caller; the store bound to that user |
//! | `anonymous_limits`, `valid_tokens` | rate limits of clients without a valid token; tokens that bypass them |
//! | `request_head`, `input`, `json`, `unread_body` | limits of the head; parameters and bodies; bodies that no handler read |
//! | `response`, `reply`, `pages`, `problem` | responses and failures |
//! | `queue`, `wakeups`, `feeds` | waiting for turns and locks; following sessions |
//! | `completion` | turns in which the upstream writes the reply |
//! | `audit`, `metrics`, `log`, `readiness` | audit log of reads, metrics, one line per request, whether the store takes writes |
//!
//! The path of a request:
//!
//! 1. `serve::connection` limits the time and size of the head. `router` adds an id, a log line and metrics.
//! 2. `ApiCaller` is extracted from the head: the token by its hash, the user's quota, the scopes of the route. Only then
//!    is a body read, within its limits. A route without scopes is refused to everybody.
//! 3. The handler validates the input and builds a `StoreChange` or a `Query`. `ApiCaller` adds the user; handlers have no
//!    other way to the store.
//! 4. A change wakes the waiters of this process: the first in line, and the streams of the session. Changes of other
//!    processes are found by the first in line, and once per followed session.
//!
//! An error contains no text of the store, no path and no data of another user: those go to the log. Everything that
//! a client sends, keeps open or leaves unread is bounded in size and time.

mod anonymous_limits;
mod app;
mod audit;
mod caller;
mod completion;
mod feeds;
mod input;
mod json;
mod log;
mod metrics;
pub mod openapi;
mod pages;
pub(crate) mod parameters;
mod problem;
mod queue;
mod readiness;
pub(crate) mod reply;
mod request_head;
mod response;
mod route;
mod router;
mod routes;
mod unread_body;
mod user_quota;
mod valid_tokens;
mod wakeups;

pub(crate) use anonymous_limits::AnonymousLimits;
pub(crate) use app::{AppParts, AppState};
pub(crate) use audit::audit;
pub(crate) use caller::{AlreadyCharged, ApiCaller, Gate};
pub(crate) use input::{header, read, taken};
pub(crate) use log::Logger;
pub use log::{Log, LogTo};
pub(crate) use metrics::{Gauge, Metrics};
pub(crate) use problem::ApiProblem;
pub(crate) use route::{BOTH, ResponseBody, Route};
pub(crate) use router::{PeerAddress, RequestId, network_router, process_router};
pub(crate) use routes::all as routes;
