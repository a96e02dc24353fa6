//! The service's tests. Everything about stores holds for each of them.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests look at files, the clock and variables as they are, tell numbers, and fail by panicking"
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
