//! The program as its users see it: one file per command or promise.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and looks at files and locks as they are"
)]

use testkit::Home;

mod contract;
mod crash;
mod hostile;
mod no_input;
mod parallel;

/// A throwaway home for the program.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_sessile"))
}
