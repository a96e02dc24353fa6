//! The program as its users see it: one file per command or promise.

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
