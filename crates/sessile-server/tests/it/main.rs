//! The service's tests. Everything about stores holds for each of them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod crowd;
mod linear;
mod stores;
mod suite;
