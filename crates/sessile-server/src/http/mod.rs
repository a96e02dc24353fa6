//! The service over HTTP. A request passes `router` (its id, its log line, its metrics), then the caller's door
//! (`caller`), then a handler in `routes`.

mod app;
mod audit;
mod caller;
mod completing;
mod drain;
mod feeds;
mod guesses;
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
mod share;
mod strangers;
mod wake;

pub(crate) use app::{App, Shared};
pub(crate) use audit::audit;
pub(crate) use caller::{Caller, Gate, Paid};
pub(crate) use input::{header, read, taken};
pub(crate) use log::Logger;
pub use log::{Log, LogTo};
pub(crate) use metrics::{Gauge, Metrics};
pub(crate) use problem::Problem;
pub(crate) use route::{ResponseBody, Route};
pub(crate) use router::{Peer, RequestId, router};
pub(crate) use routes::all as routes;
pub(crate) use strangers::Strangers;
