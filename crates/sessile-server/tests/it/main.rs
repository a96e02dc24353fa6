//! The service's tests. Everything about stores holds for each of them.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests read files, the clock and variables directly, print measurements, and fail by panicking"
)]

mod crowd;
mod fairness;
mod http;
mod linearizability;
mod lists;
mod logins;
mod postgres;
mod queues;
mod retention;
mod stalls;
mod stores;
mod suite;
