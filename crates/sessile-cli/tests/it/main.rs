//! The program as its users see it: one file per command or promise.

use testkit::Home;

mod contract;
mod documents;
mod packages;
mod reference;
mod repository;

/// A throwaway home for the program.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_sessile"))
}
