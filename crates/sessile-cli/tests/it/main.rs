//! The program as its users see it: one file per command or promise.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and looks at files and locks as they are"
)]

use testkit::Home;

mod approve;
mod color;
mod completions;
mod config_get;
mod config_set;
mod config_show;
mod config_validate;
mod context_delete;
mod context_edit;
mod context_rename;
mod context_transfer;
mod context_use;
mod contexts;
mod contract;
mod crash;
mod demo;
mod doctor;
mod documents;
mod editor;
mod global_flags;
mod guards;
mod help;
mod hostile;
mod isolated_config;
mod man;
mod manifest;
mod no_input;
mod packages;
mod parallel;
mod precedence;
mod reference;
mod repository;
mod schema;
mod status;
mod terminals;
mod trust;

/// A throwaway home for the program.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_sessile"))
}

/// A throwaway home with contexts in it.
fn home_with(contexts: &[&str]) -> Home {
    let home = home();
    for name in contexts {
        home.write(format!(".config/sessile/contexts/{name}.toml"), "");
    }
    home
}
