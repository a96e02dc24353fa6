#![doc = include_str!("../README.md")]

mod account;
pub mod agents;
pub mod app;
pub mod args;
pub mod backup;
pub mod call;
pub mod clock;
pub mod code;
pub mod config;
mod config_state;
pub mod confirm;
pub mod context;
pub mod conversation;
pub mod database;
pub mod dirs;
pub mod doctor;
pub mod duration;
pub mod error;
pub mod exit;
pub mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod history;
pub mod hook;
pub mod import;
mod interactive;
pub mod json;
pub mod lock;
pub mod names;
mod overrides;
pub mod path_text;
pub mod process;
pub mod random;
mod resolve;
pub mod run;
pub mod runtime;
pub mod secrets;
pub mod session;
pub mod settings;
pub mod site;
pub mod state;
pub mod status;
mod store;
pub mod terminal;
pub mod text;
pub mod tool;
pub mod variables;
pub mod vault;
pub mod vault_key;
pub mod warning;
pub mod world;

pub use app::App;
pub use args::StateArgs;
pub use call::StateCall;
pub use code::Code;
pub use error::{Error, Report, ReportBody, Result};
pub use state::State;
pub use status::Status;
pub use warning::Warning;
pub use world::World;

/// The examples of the guide, compiled and run with those of the crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/turns.md")]
struct Guide;

/// The programs of the tutorial, compiled and run in the same way.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/embed.md")]
struct Tutorial;
