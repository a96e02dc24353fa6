//! Command line of Sessile: parsing, dispatch, output. The library does the work.
//!
//! Reading order: [`cli`] (the command tree), `dispatch` (the path of a call), one file in [`commands`], [`output`].

mod a2a;
mod agent_session;
mod backend;
mod build_info;
mod chat;
mod child;
pub mod cli;
pub mod commands;
mod completion;
mod counted;
mod cx;
mod dispatch;
mod editor;
pub mod effects;
mod error;
mod file_watch;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod help;
mod http;
mod isolation;
mod lazy_command;
mod local;
mod logging;
pub mod mcp;
mod oauth;
pub mod output;
mod parse;
mod picker;
mod probe;
mod remote;
mod renewer;
mod settings;
mod shell_hook;
mod suggestion;
mod temporary_home;
mod terminal_prompt;
mod tui;
mod vault_unlock;
mod view;
mod watcher;

pub use dispatch::main;
pub use settings::app;
