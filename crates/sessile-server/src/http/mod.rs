//! The service over HTTP. A request passes `router` (its id, its log line, its metrics), then the caller's door
//! (`caller`), then a handler in `routes`.

mod anonymous_limits;
mod app;
mod audit;
mod caller;
mod completion;
mod feeds;
mod head;
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
pub(crate) use route::{ResponseBody, Route};
pub(crate) use router::{Peer, RequestId, network_router, process_router};
pub(crate) use routes::all as routes;
