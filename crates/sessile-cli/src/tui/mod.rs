//! The full-screen interface of `tui`, and the terminal layer that `chat` shares.
//!
//! | module | |
//! |---|---|
//! | `terminal`, `reader_gate` | raw mode, alternate screen, events, wake-ups; restores the terminal however the process ends or stops |
//! | `theme`, `screen_text`, `text_input` | styles; sanitizing and cutting untrusted text; a line that a person edits |
//! | `model` | content of the panes, as plain data without a terminal |
//! | `loader`, `snapshot_loader`, `detail_loader` | threads that read the state and ask the service |
//! | `call_source`, `action` | calls in the name of commands, and the changes that they make |
//! | `app`, `app_commands`, `keys`, `dialog` | panes, selection, keys, dialogs: no terminal and no disk |
//! | `draw`, `pane`, `table_view`, `overlay_view` | drawing |
//! | `event_loop` | the loop that ties them together |
//!
//! The pane of the chat is the app of `chat::screen`, whose jobs run on threads: a slow agent never delays a frame.

mod action;
mod app;
mod app_commands;
mod call_source;
mod detail_loader;
mod dialog;
mod draw;
pub(crate) mod event_loop;
pub(crate) mod keys;
mod loader;
mod model;
mod overlay_view;
mod pane;
mod reader_gate;
pub(crate) mod screen_text;
mod snapshot_loader;
mod table_view;
pub(crate) mod terminal;
pub(crate) mod text_input;
pub(crate) mod theme;

#[cfg(test)]
mod pane_tests;
#[cfg(test)]
mod tests;

pub(crate) use theme::Theme;
