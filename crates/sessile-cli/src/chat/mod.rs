//! The chat with agents, behind `sessile chat`.
//!
//! | module | |
//! |---|---|
//! | `model` | view model of conversations, without a terminal and without the network |
//! | `engine` | requests to agents and to the store, each on a thread of its own |
//! | `command` | slash commands |
//! | `attachment` | files and data that the next message carries |
//! | `opener` | artifacts opened with the program of the desktop |
//! | `line_mode` | the chat without a capable terminal: lines in, replies out |
//! | `screen` | the full-screen view, which is also a pane of the TUI |
//!
//! Delivery is that of `message send`: a message is stored before it is sent, and an event before it is drawn. So a chat that is
//! killed loses nothing that was acknowledged, and the next one continues. A quit ends no task of an agent.

pub(crate) mod attachment;
pub(crate) mod command;
pub(crate) mod engine;
mod jobs;
pub(crate) mod line_mode;
pub(crate) mod model;
mod opener;
pub(crate) mod screen;
#[cfg(test)]
pub(crate) mod started_jobs;
