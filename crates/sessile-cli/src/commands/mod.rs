//! One file per command, one folder per group. The doc comment on the arguments is the help.

pub mod agent;
pub mod auth;
pub mod backup;
pub mod completions;
pub mod config;
pub mod context;
pub mod conversation;
pub mod demo;
pub mod doctor;
pub mod env;
pub mod history;
pub mod hook;
mod input;
pub mod lock;
pub mod man;
pub mod manifest;
pub mod message;
mod page;
pub mod prompt;
pub mod run;
pub mod session;
pub mod shell;
pub mod status;
pub mod task;
pub mod tool;
pub mod trust;
pub mod undo;
